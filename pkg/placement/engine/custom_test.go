package engine

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	testingclock "k8s.io/utils/clock/testing"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/projection"
)

// rollouts is a custom kind that is described, and rolloutOf reads an object of it: replicas of one core each.
func rollouts(statusPath string) (kind projection.Kind, rolloutOf func(replicas, arrived int64, decision, breakdown string) *projection.CustomObject) {
	paths := projection.PodPathsOf(&v1alpha1.CustomWorkload{
		Kind: "Deployment.example.com", PodTemplatePaths: []string{".spec.template"}, SpecReplicasPath: ".spec.replicas", StatusReplicasPath: statusPath,
	})
	gvk := schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Deployment"}
	return projection.Custom(gvk, "deployments", paths), func(replicas, arrived int64, decision, breakdown string) *projection.CustomObject {
		in := &unstructured.Unstructured{Object: map[string]any{
			"spec": map[string]any{"replicas": replicas, "template": map[string]any{"spec": map[string]any{"containers": []any{
				map[string]any{"name": "app", "resources": map[string]any{"requests": map[string]any{"cpu": "1"}}},
			}}}},
			"status": map[string]any{"replicas": arrived},
		}}
		in.SetGroupVersionKind(gvk)
		in.SetNamespace("shop")
		in.SetName("web")
		in.SetAnnotations(map[string]string{v1alpha1.AnnotationPlacement: decision, v1alpha1.AnnotationStatus: breakdown})
		return paths.Read(in)
	}
}

// A copy that is there is no pod yet.
func TestRoomIsKeptForACustomWorkloadUntilItsPodsAreThere(t *testing.T) {
	const onEast, onBoth = `{"east":{"replicas":3}}`, `{"east":{"replicas":3},"west":{"replicas":3}}`
	for name, test := range map[string]struct {
		statusPath          string
		arrived             int64
		decision, breakdown string
		placed, coming      int64
	}{
		"nothing of it is there":                            {".status.replicas", 0, onEast, `{"east":{}}`, 3000, 3000},
		"its status says how many are":                      {".status.replicas", 2, onEast, `{"east":{"generation":1}}`, 3000, 1000},
		"all of them are":                                   {".status.replicas", 3, onEast, `{"east":{"generation":1}}`, 3000, 0},
		"a status of before it came counts for nothing":     {".status.replicas", 3, onEast, `{"west":{"generation":1}}`, 3000, 3000},
		"of several, each copy says":                        {".status.replicas", 0, onBoth, `{"east":{"generation":1,"status":{"replicas":1}},"west":{"generation":1}}`, 3000, 2000},
		"a copy that says nonsense counts for none":         {".status.replicas", 0, onBoth, `{"east":{"generation":1,"status":{"replicas":"many"}}}`, 3000, 3000},
		"where nobody knows what says so, a copy counts":    {"", 0, onEast, `{"east":{"generation":1}}`, 3000, 0},
		"once it is there":                                  {"", 0, onEast, `{"east":{}}`, 3000, 3000},
		"what is not placed takes nothing":                  {"", 0, "", "", 0, 0},
		"nor does one whose breakdown nobody can read more": {".status.replicas", 3, onEast, `[]`, 3000, 3000},
	} {
		t.Run(name, func(t *testing.T) {
			kind, rolloutOf := rollouts(test.statusPath)
			l := newLedger(testingclock.NewFakePassiveClock(start))
			// A built-in workload of the same kind and name is another one.
			l.handler(deployments, func(Ref) {}).OnAdd(&appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{
				Namespace: "shop", Name: "web", Annotations: map[string]string{v1alpha1.AnnotationPlacement: `{"east":{"replicas":1}}`},
			}}, false)
			handler := l.handler(kind, func(Ref) {})
			handler.OnAdd(rolloutOf(3, 0, "", ""), false)
			handler.OnUpdate(rolloutOf(3, 0, "", ""), rolloutOf(3, test.arrived, test.decision, test.breakdown))
			load := l.load("east")
			if placed, coming := load.Placed.Of(corev1.ResourceCPU), load.Assumed.Of(corev1.ResourceCPU); placed != test.placed || coming != test.coming {
				t.Errorf("%d placed and %d coming, want %d and %d", placed, coming, test.placed, test.coming)
			}
			if others := l.others("shop", true); len(others) != 1 || others[0].Group == "example.com" {
				t.Errorf("affinity is about %+v", others)
			}
			if rivals := l.classed(); len(rivals) != 1 {
				t.Errorf("%+v may make room", rivals)
			}
			l.forgetKind(kind.ListedAs())
			if load := l.load("east"); load.Placed.Of(corev1.ResourceCPU) != 0 || l.entries[Ref{"Deployment", "shop", "web"}] == nil {
				t.Errorf("a kind that nobody describes any more still counts: %+v", load)
			}
		})
	}
}
