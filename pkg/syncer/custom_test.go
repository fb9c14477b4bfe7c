package syncer

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/identity"
	"github.com/manifold-dev/manifold/pkg/projection"
	"github.com/manifold-dev/manifold/pkg/syncer/logical"
)

// rolloutPaths describe a custom kind, and rollouts is its row.
var (
	rolloutPaths = projection.PodPathsOf(&v1alpha1.CustomWorkload{PodTemplatePaths: []string{".spec.template"}, SpecReplicasPath: ".spec.replicas"})
	rollouts     = projection.Custom(schema.GroupVersionKind{Group: "argoproj.io", Version: "v1alpha1", Kind: "Rollout"}, "rollouts", rolloutPaths)
)

// rollout is one whose pods name a ConfigMap and a Secret, and have the label app: web.
func rollout(decision, breakdown string) (*projection.CustomObject, *unstructured.Unstructured) {
	in := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"replicas": int64(2), "template": map[string]any{
		"metadata": map[string]any{"labels": map[string]any{"app": "web"}},
		"spec": map[string]any{"containers": []any{map[string]any{"name": "serve", "envFrom": []any{
			map[string]any{"configMapRef": map[string]any{"name": "settings"}},
			map[string]any{"secretRef": map[string]any{"name": "password"}},
		}}}},
	}}}}
	in.SetGroupVersionKind(rollouts.GVK)
	in.SetNamespace("shop")
	in.SetName("web")
	in.SetUID("rollout")
	in.SetAnnotations(map[string]string{v1alpha1.AnnotationPlacement: decision, v1alpha1.AnnotationStatus: breakdown})
	return rolloutPaths.Read(in), in
}

// withRollouts has u follow the kind, of which it knows the objects.
func withRollouts(t *testing.T, u *Upstream, objects ...*projection.CustomObject) cache.Indexer {
	t.Helper()
	store := cache.NewIndexer(cache.MetaNamespaceKeyFunc, logical.CustomIndexers(rollouts))
	for _, o := range objects {
		if err := store.Add(o); err != nil {
			t.Fatal(err)
		}
	}
	u.AddCustom(rollouts, store)
	return store
}

// needed are what pods of a rollout need, beside its namespace.
func needed() []projection.Object {
	meta := metav1.ObjectMeta{Namespace: "shop", Name: "settings", UID: "settings"}
	selected := metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "web"}
	return []projection.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop", UID: "shop"}},
		&corev1.ConfigMap{ObjectMeta: meta},
		&corev1.Service{ObjectMeta: selected, Spec: corev1.ServiceSpec{Selector: map[string]string{"app": "web"}}},
		&policyv1.PodDisruptionBudget{ObjectMeta: selected, Spec: policyv1.PodDisruptionBudgetSpec{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}}},
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "unrelated", UID: "unrelated"}},
	}
}

func TestWhatADescribedCustomWorkloadNeedsGoesWithItsCopies(t *testing.T) {
	for name, test := range map[string]struct {
		decision, breakdown string
		want                string
	}{
		"to the cluster of its decision":               {`{"east":{"replicas":2}}`, `{"east":{}}`, "configmaps/settings namespaces/shop poddisruptionbudgets/web services/web"},
		"not where it is not":                          {`{"west":{"replicas":2}}`, `{"west":{"generation":1}}`, ""},
		"and stays as long as there may be a copy":     {`{"west":{"replicas":2}}`, `{"east":{"generation":1},"west":{}}`, "configmaps/settings namespaces/shop poddisruptionbudgets/web services/web"},
		"nothing of one that is nowhere goes anywhere": {"", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			objects := needed()
			u := newUpstream(t, objects...)
			above, _ := rollout(test.decision, test.breakdown)
			withRollouts(t, u, above)
			attach(t, u, "east")
			var got []string
			for _, obj := range objects {
				if kind, _ := projection.KindOf(obj); u.Demand.Wanted(kind, obj, "east") {
					got = append(got, kind.Resource.Resource+"/"+obj.GetName())
				}
			}
			slices.Sort(got)
			if text := strings.Join(got, " "); text != test.want {
				t.Errorf("%q go there, want %q", text, test.want)
			}
		})
	}
}

func TestAKindThatNobodyDescribesAnyMoreDrawsNothing(t *testing.T) {
	objects := needed()
	u := newUpstream(t, objects...)
	above, _ := rollout(`{"east":{"replicas":2}}`, `{"east":{}}`)
	withRollouts(t, u, above)
	attach(t, u, "east")
	kind, _ := projection.KindOf(objects[1])
	if !u.Demand.Wanted(kind, objects[1], "east") {
		t.Fatal("it draws nothing to begin with")
	}
	u.RemoveCustom(rollouts)
	if u.Demand.Wanted(kind, objects[1], "east") || u.Get(identity.KeyOf(rollouts, above)) != nil {
		t.Error("it still draws what it needed")
	}
}

// A restart must not take away what pods need only because their workload has not been read yet.
func TestNothingIsTakenAwayWhileCustomWorkloadsAreNotKnown(t *testing.T) {
	objects := needed()
	u := newUpstream(t, objects...)
	known := false
	u.CustomKnown = func() bool { return known }
	kind, _ := projection.KindOf(objects[1])
	held := copyIn(t, objects[1], "east")
	s := attach(t, u, "east", held)
	if !u.Demand.Wanted(kind, objects[1], "east") {
		t.Error("what the cluster has is taken away")
	}
	if services, _ := projection.KindOf(objects[2]); u.Demand.Wanted(services, objects[2], "east") {
		t.Error("what the cluster does not have is sent there")
	}
	known = true
	u.CustomIsKnown()
	if s.queue.Len() == 0 {
		t.Error("nobody looks again")
	}
	if u.Demand.Wanted(kind, objects[1], "east") {
		t.Error("what nothing needs stays")
	}
}

func TestChangesOfACustomWorkloadReachWhatItNeeds(t *testing.T) {
	before, _ := rollout("", "")
	placed, _ := rollout(`{"east":{"replicas":2}}`, `{"east":{}}`)
	running, _ := rollout(`{"east":{"replicas":2}}`, `{"east":{"generation":1}}`)
	for name, test := range map[string]struct {
		before, after *projection.CustomObject
		want          bool
	}{
		"its decision":                        {before, placed, true},
		"nothing when its copy is only there": {placed, running, false},
		"its end":                             {running, nil, true},
	} {
		t.Run(name, func(t *testing.T) {
			u := newUpstream(t, needed()...)
			s := attach(t, u, "east")
			handler := u.router.Custom(rollouts)
			if test.after == nil {
				handler.OnDelete(test.before)
			} else {
				after := test.after.DeepCopyObject().(*projection.CustomObject)
				after.ResourceVersion = "8"
				withRollouts(t, u, after)
				handler.OnUpdate(test.before, after)
			}
			if got := s.queue.Len() > 0; got != test.want {
				t.Errorf("%d objects are looked at", s.queue.Len())
			}
		})
	}
}

func TestACustomWorkloadWaitsForWhatItsPodsName(t *testing.T) {
	objects := needed()
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "password", UID: "password"}, Type: corev1.SecretTypeOpaque}
	for name, test := range map[string]struct {
		above   []projection.Object
		below   []projection.Object
		problem string
		waits   bool
	}{
		"a Secret that does not exist":    {objects, []projection.Object{objects[1]}, "Secret shop/password, which does not exist", false},
		"a ConfigMap that is on its way":  {append(objects, secret), []projection.Object{secret}, "", true},
		"nothing when all of it is there": {append(objects, secret), []projection.Object{secret, objects[1]}, "", false},
	} {
		t.Run(name, func(t *testing.T) {
			u := newUpstream(t, test.above...)
			above, whole := rollout(`{"east":{"replicas":2}}`, `{"east":{}}`)
			withRollouts(t, u, above)
			var there []projection.Object
			for _, obj := range test.below {
				there = append(there, copyIn(t, obj, "east"))
			}
			s := attach(t, u, "east", there...)
			var woken []identity.Key
			s.CustomChanged = func(_ string, key identity.Key) { woken = append(woken, key) }
			desired, err := rollouts.Project(whole, projection.Part{}, s.target)
			if err != nil {
				t.Fatal(err)
			}
			w := identity.Workload{Kind: rollouts, Object: desired}
			problem, waits, err := u.CustomLacks(t.Context(), "east", w, desired)
			if err != nil || waits != test.waits || (problem == "") != (test.problem == "") || !strings.Contains(problem, test.problem) {
				t.Errorf("problem %q, waits %t, error %v; want %q and %t", problem, waits, err, test.problem, test.waits)
			}
			// What it waits for has it looked at by whoever makes its copies.
			if err := s.sync(t.Context(), w.Key()); err != nil || len(woken) != 1 || woken[0] != w.Key() {
				t.Errorf("%v are woken, error %v", woken, err)
			}
		})
	}
	u := newUpstream(t)
	if _, _, err := u.CustomLacks(t.Context(), "mars", identity.Workload{}, nil); err == nil {
		t.Error("a cluster that is not connected lacks nothing")
	}
}

// copyIn is what a cluster holds of an object that goes along with workloads.
func copyIn(t *testing.T, above projection.Object, cluster string) projection.Object {
	t.Helper()
	kind, _ := projection.KindOf(above)
	out, err := kind.Project(above, projection.Part{}, projection.Target{LogicalCluster: logicalCluster, Cluster: cluster})
	if err != nil {
		t.Fatal(err)
	}
	return out
}
