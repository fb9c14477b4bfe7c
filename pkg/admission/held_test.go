package admission

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/warning"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
)

const (
	heldWest = `{"east":{"replicas":2,"revision":"web-v8","target":"eu"},"west":{"replicas":1,"revision":"web-v7","target":"eu"}}`
	heldBoth = `{"east":{"replicas":2,"revision":"web-v7","target":"eu"},"west":{"replicas":1,"revision":"web-v7","target":"us"}}`
	heldNone = `{"east":{"replicas":2},"west":{"replicas":1}}`
)

func heldDeployment(annotation, image string, change ...func(*appsv1.Deployment)) *appsv1.Deployment {
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "web", Annotations: map[string]string{v1alpha1.AnnotationPlacement: annotation}}}
	d.Spec.Replicas = new(int32)
	d.Spec.Template.Spec.Containers = []corev1.Container{{Name: "app", Image: image}}
	for _, c := range change {
		c(d)
	}
	return d
}

func TestChangesThatClustersDoNotGetAreToldOf(t *testing.T) {
	gizmo := func(annotation, size string) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"metadata": map[string]any{"name": "web", "resourceVersion": size, "annotations": map[string]any{v1alpha1.AnnotationPlacement: annotation}},
			"spec":     map[string]any{"size": strings.TrimSuffix(size, "'")}, "status": map[string]any{"seen": size},
		}}
	}
	secret := func(value string) *corev1.Secret {
		return &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Name: "web", Annotations: map[string]string{v1alpha1.AnnotationPlacement: `{"west":{"replicas":0,"revision":"web-v7","target":"eu"}}`}},
			Data:       map[string][]byte{"key": []byte(value)},
		}
	}
	for name, test := range map[string]struct {
		user, subresource string
		now, old          runtime.Object
		want              string
	}{
		"another image": {
			now: heldDeployment(heldBoth, "new"), old: heldDeployment(heldBoth, "old"),
			want: `Any "web" is held at web-v7 by Application web until a Release lets it go`,
		},
		"another image while a release is under way": {
			now: heldDeployment(heldWest, "new"), old: heldDeployment(heldWest, "old"),
			want: `Any "web" is held at web-v7 in west and at web-v8 in east by Application web until a Release lets it go`,
		},
		"an image where nothing is held":    {now: heldDeployment(heldNone, "new"), old: heldDeployment(heldNone, "old")},
		"an image where nothing is decided": {now: heldDeployment("", "new"), old: heldDeployment("", "old")},
		"a decision that cannot be read":    {now: heldDeployment(`{"revision"`, "new"), old: heldDeployment("", "old")},
		"what clusters get at once": {
			old: heldDeployment(heldBoth, "old"),
			now: heldDeployment(heldBoth, "old", func(d *appsv1.Deployment) {
				d.Labels, d.Spec.Replicas, d.Status.Replicas = map[string]string{"tier": "front"}, new(int32(5)), 4
			}),
		},
		"no change":                  {now: heldDeployment(heldBoth, "old"), old: heldDeployment(heldBoth, "old")},
		"a status":                   {subresource: "status", now: heldDeployment(heldBoth, "new"), old: heldDeployment(heldBoth, "old")},
		"a release":                  {user: v1alpha1.DeliveryUser, now: heldDeployment(heldBoth, "new"), old: heldDeployment(heldBoth, "old")},
		"a controller of ours":       {user: v1alpha1.SummaryUser, now: heldDeployment(heldBoth, "new"), old: heldDeployment(heldBoth, "old")},
		"a Secret":                   {now: secret("new"), old: secret("old"), want: `Any "web" is held at web-v7 by Application web until a Release lets it go`},
		"the same Secret":            {now: secret("old"), old: secret("old")},
		"a custom resource":          {now: gizmo(heldBoth, "2"), old: gizmo(heldBoth, "1"), want: `Any "web" is held at web-v7 by Application web until a Release lets it go`},
		"the same custom resource":   {now: gizmo(heldBoth, "1'"), old: gizmo(heldBoth, "1")},
		"nothing to compare it with": {now: heldDeployment(heldBoth, "new")},
	} {
		t.Run(name, func(t *testing.T) {
			who, seen := test.user, &recorder{}
			if who == "" {
				who = "jane"
			}
			resource := schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
			a := admission.NewAttributesRecord(test.now, test.old, resource.GroupVersion().WithKind("Any"), "shop", "web", resource, test.subresource,
				admission.Update, nil, true, &user.DefaultInfo{Name: who})
			if err := (&held{}).Validate(warning.WithWarningRecorder(t.Context(), seen), a, nil); err != nil {
				t.Fatal(err)
			}
			if got := strings.Join(seen.texts, "; "); got != test.want {
				t.Errorf("warnings %q, want %q", got, test.want)
			}
		})
	}
}
