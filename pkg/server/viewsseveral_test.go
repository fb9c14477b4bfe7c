package server

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"golang.org/x/sync/errgroup"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/utils/ptr"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/identity"
)

// heldObjects are objects of all kinds that several clusters may hold, by resource. What they say is told by a label, and by one field of the content.
func heldObjects() map[schema.GroupVersionResource]runtime.Object {
	meta := metav1.ObjectMeta{Name: "web"}
	selector := &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
	template := corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: selector.MatchLabels}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Image: "web:1"}}}}
	path := networkingv1.PathTypePrefix
	return map[schema.GroupVersionResource]runtime.Object{
		corev1.SchemeGroupVersion.WithResource("configmaps"):      &corev1.ConfigMap{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}, ObjectMeta: meta, Data: map[string]string{"a": "b"}},
		corev1.SchemeGroupVersion.WithResource("secrets"):         &corev1.Secret{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"}, ObjectMeta: meta, StringData: map[string]string{"a": "b"}},
		corev1.SchemeGroupVersion.WithResource("serviceaccounts"): &corev1.ServiceAccount{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ServiceAccount"}, ObjectMeta: meta},
		corev1.SchemeGroupVersion.WithResource("services"): &corev1.Service{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Service"}, ObjectMeta: meta,
			Spec: corev1.ServiceSpec{Selector: selector.MatchLabels, Ports: []corev1.ServicePort{{Name: "http", Port: 80}}}},
		appsv1.SchemeGroupVersion.WithResource("deployments"): &appsv1.Deployment{TypeMeta: metav1.TypeMeta{APIVersion: "apps/v1", Kind: "Deployment"}, ObjectMeta: meta,
			Spec: appsv1.DeploymentSpec{Replicas: ptr.To[int32](2), Selector: selector, Template: template}},
		appsv1.SchemeGroupVersion.WithResource("daemonsets"): &appsv1.DaemonSet{TypeMeta: metav1.TypeMeta{APIVersion: "apps/v1", Kind: "DaemonSet"}, ObjectMeta: meta,
			Spec: appsv1.DaemonSetSpec{Selector: selector, Template: template}},
		networkingv1.SchemeGroupVersion.WithResource("ingresses"): &networkingv1.Ingress{TypeMeta: metav1.TypeMeta{APIVersion: "networking.k8s.io/v1", Kind: "Ingress"}, ObjectMeta: meta,
			Spec: networkingv1.IngressSpec{Rules: []networkingv1.IngressRule{{Host: "web.example.com", IngressRuleValue: networkingv1.IngressRuleValue{HTTP: &networkingv1.HTTPIngressRuleValue{
				Paths: []networkingv1.HTTPIngressPath{{Path: "/", PathType: &path, Backend: networkingv1.IngressBackend{Service: &networkingv1.IngressServiceBackend{
					Name: "web", Port: networkingv1.ServiceBackendPort{Number: 80}}}}}}}}}}},
		networkingv1.SchemeGroupVersion.WithResource("networkpolicies"): &networkingv1.NetworkPolicy{TypeMeta: metav1.TypeMeta{APIVersion: "networking.k8s.io/v1", Kind: "NetworkPolicy"},
			ObjectMeta: meta, Spec: networkingv1.NetworkPolicySpec{PodSelector: *selector}},
		policyv1.SchemeGroupVersion.WithResource("poddisruptionbudgets"): &policyv1.PodDisruptionBudget{TypeMeta: metav1.TypeMeta{APIVersion: "policy/v1", Kind: "PodDisruptionBudget"},
			ObjectMeta: meta, Spec: policyv1.PodDisruptionBudgetSpec{Selector: selector}},
	}
}

// content is what tells one cluster's object from another's, by kind: what a merge patch changes.
func content(kind, cluster string) map[string]any {
	number := int64(len(cluster) + int(cluster[0])) // one of its own
	switch kind {
	case "ConfigMap":
		return map[string]any{"data": map[string]any{"of": cluster}}
	case "Secret":
		return map[string]any{"stringData": map[string]any{"of": cluster}}
	case "ServiceAccount":
		return map[string]any{"imagePullSecrets": []any{map[string]any{"name": cluster}}}
	case "Service":
		return map[string]any{"spec": map[string]any{"ports": []any{map[string]any{"name": "http", "port": int64(80), "targetPort": number}}}}
	case "Deployment", "DaemonSet":
		return map[string]any{"spec": map[string]any{"minReadySeconds": number}}
	case "Ingress":
		return map[string]any{"spec": map[string]any{"ingressClassName": cluster}}
	case "NetworkPolicy":
		return map[string]any{"spec": map[string]any{"policyTypes": []any{map[bool]string{true: "Egress", false: "Ingress"}[cluster == "west"]}}}
	}
	return map[string]any{"spec": map[string]any{"minAvailable": number}}
}

// told is what an object says of which cluster it is, in its label and its content.
func told(t *testing.T, obj *unstructured.Unstructured, cluster string) error {
	t.Helper()
	want := content(obj.GetKind(), cluster)
	if secret, is := want["stringData"].(map[string]any); is {
		want = map[string]any{"data": map[string]any{"of": map[string]string{"east": "ZWFzdA==", "west": "d2VzdA=="}[secret["of"].(string)]}}
	}
	for field, of := range want {
		for key, value := range asMap(of) {
			got, _, _ := unstructured.NestedFieldNoCopy(obj.Object, field, key)
			if field == "imagePullSecrets" {
				got = obj.Object[field]
				value = of
			}
			wanted, _ := json.Marshal(value)
			have, _ := json.Marshal(got)
			if text := strings.ReplaceAll(string(have), `"protocol":"TCP",`, ""); text != string(wanted) {
				return fmt.Errorf("%s.%s is %s, want %s", field, key, text, wanted)
			}
		}
	}
	if got := obj.GetLabels()["of"]; got != cluster {
		return fmt.Errorf("it is labelled %q, want %q", got, cluster)
	}
	return nil
}

func asMap(of any) map[string]any {
	if m, is := of.(map[string]any); is {
		return m
	}
	return map[string]any{"": of}
}

func TestSeveralClustersHoldOneObjectEachAsItsViewSays(t *testing.T) {
	ctx := t.Context()
	logical, config, _ := serve(t, "several")
	known(t, config, "east", "west")
	viewer(t, logical, "east", "west")
	admin, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	views := map[string]dynamic.Interface{}
	for _, name := range []string{"east", "west"} {
		client, through := throughView(t, logical, config, name)
		if views[name], err = dynamic.NewForConfig(through); err != nil {
			t.Fatal(err)
		}
		soon(t, "the rights count", func() error {
			_, err := client.CoreV1().ConfigMaps("shop").List(ctx, metav1.ListOptions{})
			return err
		})
	}
	t.Run("at once", func(t *testing.T) {
		for i := range 10 {
			var both errgroup.Group
			for cluster, view := range views {
				both.Go(func() error {
					made := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "data": map[string]any{"of": cluster}}}
					made.SetName(fmt.Sprintf("at-once-%d", i))
					_, err := view.Resource(identity.ConfigMaps).Namespace("shop").Create(ctx, made, metav1.CreateOptions{})
					return err
				})
			}
			if err := both.Wait(); err != nil {
				t.Errorf("made in two views at once: %v", err)
			}
			for cluster, view := range views {
				got, err := view.Resource(identity.ConfigMaps).Namespace("shop").Get(ctx, fmt.Sprintf("at-once-%d", i), metav1.GetOptions{})
				if err != nil || got.Object["data"].(map[string]any)["of"] != cluster {
					t.Errorf("the view of %s has %v, %v", cluster, got, err)
				}
			}
		}
	})
	for resource, of := range heldObjects() {
		t.Run(resource.Resource, func(t *testing.T) {
			fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(of)
			if err != nil {
				t.Fatal(err)
			}
			above := admin.Resource(resource).Namespace("shop")
			for _, cluster := range []string{"east", "west"} {
				made := &unstructured.Unstructured{Object: runtime.DeepCopyJSON(fields)}
				unstructured.RemoveNestedField(made.Object, "metadata", "creationTimestamp")
				merge(made.Object, content(made.GetKind(), cluster))
				made.SetLabels(map[string]string{"of": cluster})
				got, err := views[cluster].Resource(resource).Namespace("shop").Create(ctx, made, metav1.CreateOptions{})
				if err != nil {
					t.Fatalf("made through the view of %s: %v", cluster, err)
				}
				if err := told(t, got, cluster); err != nil {
					t.Errorf("made through the view of %s: %v", cluster, err)
				}
			}
			each(t, views, resource, "as they were made")
			whole, err := above.Get(ctx, "web", metav1.GetOptions{})
			if err != nil || told(t, whole, "east") != nil || whole.GetAnnotations()[v1alpha1.AnnotationView] != "east,west" || len(identity.ViewsOf(whole)) != 2 {
				t.Errorf("the object says %v, %v", whole, err)
			}

			// Patches and server-side applies change what is the cluster's, and are refused above.
			patch := []byte(`{"metadata":{"annotations":{"note":"west's"}}}`)
			if _, err := views["west"].Resource(resource).Namespace("shop").Patch(ctx, "web", types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
				t.Errorf("patched: %v", err)
			}
			for cluster, want := range map[string]string{"east": "", "west": "west's"} {
				if got, err := views[cluster].Resource(resource).Namespace("shop").Get(ctx, "web", metav1.GetOptions{}); err != nil || got.GetAnnotations()["note"] != want {
					t.Errorf("the view of %s has %v, %v", cluster, got.GetAnnotations(), err)
				}
			}
			if _, err := above.Patch(ctx, "web", types.MergePatchType, patch, metav1.PatchOptions{}); !apierrors.IsForbidden(err) {
				t.Errorf("patched at the logical cluster: %v", err)
			}
			applied := &unstructured.Unstructured{Object: map[string]any{"apiVersion": whole.GetAPIVersion(), "kind": whole.GetKind(), "metadata": map[string]any{"name": "web"}}}
			applied.SetAnnotations(map[string]string{"applied": "yes"})
			if _, err := views["west"].Resource(resource).Namespace("shop").Apply(ctx, "web", applied, metav1.ApplyOptions{FieldManager: "me"}); err != nil {
				t.Errorf("applied: %v", err)
			}
			if got, err := views["east"].Resource(resource).Namespace("shop").Get(ctx, "web", metav1.GetOptions{}); err != nil || got.GetAnnotations()["applied"] != "" || managed(got, "me") {
				t.Errorf("what was applied in the other view is seen: %v, %v", got.GetManagedFields(), err)
			}
			each(t, views, resource, "after that")

			// What tells of it is nobody's to write.
			before := bookkeeping(ctx, t, above)
			forge := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:"[]",%q:"{}",%q:"east"}}}`, v1alpha1.AnnotationViews, v1alpha1.AnnotationViewContents, v1alpha1.AnnotationView)
			if _, err := above.Patch(ctx, "web", types.MergePatchType, forge, metav1.PatchOptions{}); err != nil {
				t.Errorf("forged above: %v", err)
			}
			if after := bookkeeping(ctx, t, above); after != before {
				t.Errorf("it is now\n%s, and was\n%s", after, before)
			}
			// Through a view, admission may take it for something that its writer has read, and drop it: that he has written it is noted with what the cluster holds.
			_, err = views["west"].Resource(resource).Namespace("shop").Patch(ctx, "web", types.MergePatchType, forge, metav1.PatchOptions{})
			if err != nil && !apierrors.IsForbidden(err) {
				t.Errorf("forged through a view: %v", err)
			}
			whole, err = above.Get(ctx, "web", metav1.GetOptions{})
			if err != nil || fmt.Sprint(identity.ViewsOf(whole).Clusters(), identity.MadeThrough(whole)) != "[east west] [east west]" {
				t.Errorf("forged through a view it says %v, %v", whole.GetAnnotations(), err)
			}
			each(t, views, resource, "forged")

			// The first one leaves, and the other one has it.
			if err := views["east"].Resource(resource).Namespace("shop").Delete(ctx, "web", metav1.DeleteOptions{}); err != nil {
				t.Errorf("deleted: %v", err)
			}
			if _, err := views["east"].Resource(resource).Namespace("shop").Get(ctx, "web", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
				t.Errorf("what has left is seen: %v", err)
			}
			whole, err = above.Get(ctx, "web", metav1.GetOptions{})
			if err != nil || told(t, whole, "west") != nil || identity.Viewed(whole) || whole.GetAnnotations()[v1alpha1.AnnotationClusters] != "west" || whole.GetAnnotations()["note"] != "west's" {
				t.Errorf("after the first has left it says %v, %v", whole, err)
			}
			if err := views["west"].Resource(resource).Namespace("shop").Delete(ctx, "web", metav1.DeleteOptions{}); err != nil {
				t.Errorf("the last one is deleted: %v", err)
			}
			soon(t, "it is gone", func() error {
				if _, err := above.Get(ctx, "web", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
					return fmt.Errorf("it is there: %w", err)
				}
				return nil
			})
		})
	}
}

func merge(into, from map[string]any) {
	for key, value := range from {
		below, is := value.(map[string]any)
		if have, has := into[key].(map[string]any); is && has {
			merge(have, below)
			continue
		}
		into[key] = value
	}
}

func each(t *testing.T, views map[string]dynamic.Interface, resource schema.GroupVersionResource, when string) {
	t.Helper()
	for cluster, view := range views {
		got, err := view.Resource(resource).Namespace("shop").List(t.Context(), metav1.ListOptions{LabelSelector: "of=" + cluster})
		if err != nil || len(got.Items) != 1 {
			t.Errorf("%s the view of %s lists %v, %v", when, cluster, got, err)
			continue
		}
		if err := told(t, &got.Items[0], cluster); err != nil {
			t.Errorf("%s in the view of %s: %v", when, cluster, err)
		}
	}
}

func managed(of *unstructured.Unstructured, by string) bool {
	for _, entry := range of.GetManagedFields() {
		if entry.Manager == by {
			return true
		}
	}
	return false
}

func bookkeeping(ctx context.Context, t *testing.T, in dynamic.ResourceInterface) string {
	t.Helper()
	obj, err := in.Get(ctx, "web", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	annotations := obj.GetAnnotations()
	return annotations[v1alpha1.AnnotationView] + annotations[v1alpha1.AnnotationViews] + annotations[v1alpha1.AnnotationViewContents] + annotations[v1alpha1.AnnotationClusters]
}
