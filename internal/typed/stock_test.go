package typed

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/rest"
)

func TestClientsAreFoundByTheNamesOfResources(t *testing.T) {
	for name, test := range map[string]struct {
		resource schema.GroupVersionResource
		fails    bool
	}{
		"of the core group":              {resource: corev1.SchemeGroupVersion.WithResource("persistentvolumeclaims")},
		"of a group with a short name":   {resource: appsv1.SchemeGroupVersion.WithResource("deployments")},
		"of a group with a domain":       {resource: networkingv1.SchemeGroupVersion.WithResource("ingresses")},
		"not of one without a status":    {resource: corev1.SchemeGroupVersion.WithResource("configmaps"), fails: true},
		"not of one outside namespaces":  {resource: corev1.SchemeGroupVersion.WithResource("nodes"), fails: true},
		"not of one that nobody knows":   {resource: appsv1.SchemeGroupVersion.WithResource("widgets"), fails: true},
		"not of a group that nobody has": {resource: schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "deployments"}, fails: true},
		"nor of another version of one":  {resource: schema.GroupVersionResource{Group: "apps", Version: "v7", Resource: "deployments"}, fails: true},
	} {
		t.Run(name, func(t *testing.T) {
			found, err := For(fake.NewClientset(), test.resource, "shop")
			if (err != nil) != test.fails || (found == nil) != test.fails {
				t.Errorf("found %v, error %v", found, err)
			}
		})
	}
}

func TestAClientReadsAndWrites(t *testing.T) {
	web := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}}
	elsewhere := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "other", Name: "api"}}
	client := fake.NewClientset(web, elsewhere)
	found, err := For(client, appsv1.SchemeGroupVersion.WithResource("deployments"), "shop")
	if err != nil {
		t.Fatal(err)
	}
	changed := web.DeepCopy()
	changed.Status.Replicas = 3
	if got, err := found.UpdateStatus(t.Context(), changed, metav1.UpdateOptions{}); err != nil || got.(*appsv1.Deployment).Status.Replicas != 3 {
		t.Errorf("status %+v, %v", got, err)
	}
	if action := client.Actions()[0]; action.GetSubresource() != "status" {
		t.Errorf("it writes %q", action.GetSubresource())
	}
	patch := []byte(`{"metadata":{"labels":{"a":"b"}}}`)
	if got, err := found.Patch(t.Context(), "web", types.MergePatchType, patch, metav1.PatchOptions{}); err != nil || got.GetLabels()["a"] != "b" {
		t.Errorf("patched to %+v, %v", got, err)
	}
	list, err := found.List(t.Context(), metav1.ListOptions{})
	if deployments, is := list.(*appsv1.DeploymentList); err != nil || !is || len(deployments.Items) != 1 || deployments.Items[0].Name != "web" {
		t.Errorf("lists %v, %v", list, err)
	}
	if got, err := found.Patch(t.Context(), "api", types.MergePatchType, patch, metav1.PatchOptions{}); !apierrors.IsNotFound(err) || got != nil {
		t.Errorf("what is not there is patched to %v, %v", got, err)
	}
}

func TestRequestsAreSentByTheClientOfTheGroup(t *testing.T) {
	client, err := kubernetes.NewForConfig(&rest.Config{Host: "https://east"})
	if err != nil {
		t.Fatal(err)
	}
	for _, of := range []schema.GroupVersion{corev1.SchemeGroupVersion, appsv1.SchemeGroupVersion, networkingv1.SchemeGroupVersion} {
		got, err := REST(client, of)
		if err != nil || got.APIVersion() != of {
			t.Errorf("about %s requests are sent by that of %v, %v", of, got, err)
		}
	}
	if _, err := REST(client, schema.GroupVersion{Group: "example.com", Version: "v1"}); err == nil {
		t.Error("a group that nobody has has a client")
	}
}
