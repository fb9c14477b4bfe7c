package admission

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/warning"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
)

func TestWhatGoesNowhereIsWarnedOf(t *testing.T) {
	claims := schema.GroupVersionResource{Version: "v1", Resource: "persistentvolumeclaims"}
	deployments := schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
	gizmos := schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "gizmos"}
	for name, test := range map[string]struct {
		resource               schema.GroupVersionResource
		namespace, subresource string
		pin                    string
		want                   string
	}{
		"a claim in a namespace of the system": {
			resource: claims, namespace: "kube-system",
			want: `Thing "data" is not sent to any cluster: namespace "kube-system" belongs to Kubernetes in every cluster`,
		},
		"a claim in the namespace of Manifold":            {resource: claims, namespace: "manifold-system", want: "belongs to Manifold"},
		"a claim in a namespace that only sounds like it": {resource: claims, namespace: "kube-flannel"},
		"its status":                               {resource: claims, namespace: "kube-system", subresource: "status"},
		"a ConfigMap, which is read above":         {resource: schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}, namespace: "kube-system"},
		"a ConfigMap that is pinned":               {resource: schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}, namespace: "kube-public", pin: "east", want: "is not sent to any cluster"},
		"a workload, which its decision warns of":  {resource: deployments, namespace: "kube-system", pin: "east"},
		"a custom resource, which may stay above":  {resource: gizmos, namespace: "kube-system"},
		"a custom resource that is sent somewhere": {resource: gizmos, namespace: "kube-system", pin: "east", want: "is not sent to any cluster"},
	} {
		t.Run(name, func(t *testing.T) {
			object := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: test.namespace, Name: "data"}}
			if test.pin != "" {
				object.Annotations = map[string]string{v1alpha1.AnnotationClusters: test.pin}
			}
			attributes := admission.NewAttributesRecord(object, nil, test.resource.GroupVersion().WithKind("Thing"), test.namespace, "data",
				test.resource, test.subresource, admission.Create, nil, false, &user.DefaultInfo{Name: "jane"})
			warnings := &recorder{}
			if err := (&protected{}).Validate(warning.WithWarningRecorder(t.Context(), warnings), attributes, nil); err != nil {
				t.Fatal(err)
			}
			if got := strings.Join(warnings.texts, "\n"); !strings.Contains(got, test.want) || (got == "") != (test.want == "") {
				t.Errorf("warning %q, want %q in it", got, test.want)
			}
		})
	}
}
