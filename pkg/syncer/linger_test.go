package syncer

import (
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/identity"
	"github.com/manifold-dev/manifold/pkg/projection"
)

// heldBy makes an object one that is being deleted and that has these finalizers.
func heldBy[T projection.Object](o T, finalizers ...string) T {
	o.SetDeletionTimestamp(&metav1.Time{})
	o.SetFinalizers(finalizers)
	return o
}

const theirs = "example.com/x"

func TestAWorkloadThatSomebodyHoldsStaysAsItIs(t *testing.T) {
	earlier := projected(deployment("web", toEast), 2, 2)
	earlier.Annotations[v1alpha1.AnnotationUID] = "earlier"
	for name, test := range map[string]struct {
		finalizers []string
		below      []projection.Object
		leaving    bool
		emptied    bool // the namespace is
		want       bool
	}{
		"it stays where it is": {
			finalizers: []string{theirs}, below: []projection.Object{projected(deployment("web", toEast), 2, 2)}, want: true,
		},
		"it goes when we alone hold it": {
			finalizers: []string{v1alpha1.FinalizerProjection}, below: []projection.Object{projected(deployment("web", toEast), 2, 2)},
		},
		"it goes when its pods are to go first": {
			finalizers: []string{theirs, "foregroundDeletion"}, below: []projection.Object{projected(deployment("web", toEast), 2, 2)},
		},
		"it is not made where it is not":               {finalizers: []string{theirs}},
		"what is left of an earlier one does not stay": {finalizers: []string{theirs}, below: []projection.Object{earlier}},
		"a cluster that is removed does not wait": {
			finalizers: []string{theirs}, below: []projection.Object{projected(deployment("web", toEast), 2, 2)}, leaving: true,
		},
		"a namespace that is deleted takes it along": {
			finalizers: []string{theirs}, below: []projection.Object{projected(deployment("web", toEast), 2, 2)}, emptied: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			above := heldBy(deployment("web", toEast), test.finalizers...)
			shop := namespace("shop")
			if test.emptied {
				shop.DeletionTimestamp = &metav1.Time{}
			}
			s := attach(t, newUpstream(t, above, shop), "east", test.below...)
			s.Leaving = func(string) (bool, string) { return test.leaving, "" }
			if got := s.planner.Lingers(deployments, above, s.below.Get(identity.KeyOf(deployments, above))); got != test.want {
				t.Errorf("lingers: %t, want %t", got, test.want)
			}
		})
	}
}

func TestAWorkloadThatSomebodyHoldsIsReported(t *testing.T) {
	for name, attach := range map[string]func(*testing.T, *Upstream, string, ...projection.Object) *testSyncer{
		"by the process that gave it": attach,
		"by one that started since":   attachFound,
	} {
		t.Run(name, func(t *testing.T) {
			above := heldBy(deployment("web", toEast), theirs)
			above.Generation = 7 // the deletion counts
			s := attach(t, newUpstream(t, above, namespace("shop")), "east", projected(deployment("web", toEast), 2, 2))
			for range 2 { // what it was told is the same when it is looked at again
				if err := s.sync(t.Context(), identity.KeyOf(deployments, above)); err != nil {
					t.Fatal(err)
				}
			}
			report, known := s.reports.Report(identity.KeyOf(deployments, above), above)
			if !known || report.Live == nil || report.Generation != 7 {
				t.Fatalf("reports %+v, want what is there, for the generation of the deletion", report)
			}
			if got := report.Live.(*appsv1.Deployment).Status; got.ReadyReplicas != 2 || report.Doubts != nil {
				t.Errorf("reports %d ready and doubts %q, want 2 and none", got.ReadyReplicas, report.Doubts)
			}
			if got := s.client.(*fake.Clientset).Actions(); len(got) > 0 {
				t.Errorf("the cluster was sent %v, want nothing", got)
			}
		})
	}
}

func TestAWorkloadThatSomebodyHoldsIsNotBegun(t *testing.T) {
	above := heldBy(deployment("web", toEast), theirs)
	s := attach(t, newUpstream(t, above, namespace("shop")), "east")
	if err := s.sync(t.Context(), identity.KeyOf(deployments, above)); err != nil {
		t.Fatal(err)
	}
	if got := s.client.(*fake.Clientset).Actions(); len(got) > 0 {
		t.Errorf("the cluster was sent %v, want nothing", got)
	}
}

func TestADependentThatSomebodyHoldsIsThereAsLong(t *testing.T) {
	kind, _ := projection.ForResource(secretResource)
	for name, test := range map[string]struct {
		finalizers []string
		want       bool
	}{
		"it goes when nobody holds it":   {nil, false},
		"it is there as long as they do": {[]string{theirs}, true},
	} {
		t.Run(name, func(t *testing.T) {
			key := heldBy(secret("key"), test.finalizers...)
			s := attach(t, newUpstream(t, key, deployment("web", toEast, usingSecret("key")), namespace("shop")), "east")
			desired, _, err := s.desired(kind, key, nil)
			if err != nil || (desired != nil) != test.want {
				t.Errorf("wants %v, %v; want one: %t", desired, err, test.want)
			}
		})
	}
}

func TestWhatIsBeingDeletedKeepsNoClusterFromBeingRemoved(t *testing.T) {
	u := newUpstream(t, deployment("web", toEast), heldBy(deployment("old", toEast), theirs), &corev1.Pod{ObjectMeta: objectMeta("p")})
	if got, want := u.Placed("east"), []string{"shop/web"}; !slices.Equal(got, want) {
		t.Errorf("placed are %v, want %v", got, want)
	}
}

func TestANamespaceThatIsDeletedHasWhatSomebodyHoldsLookedAt(t *testing.T) {
	shop, held := heldBy(namespace("shop")), heldBy(deployment("web", toEast), theirs)
	u := newUpstream(t, shop, held, deployment("other", toEast))
	s := attach(t, u, "east", projected(deployment("web", toEast), 2, 2), projected(deployment("other", toEast), 2, 2))
	kind, _ := projection.ForResource(namespaceResource)
	u.router.Route(kind, namespace("shop"), shop)
	if got := s.enqueued(); !slices.Contains(got, "deployments shop/web") || slices.Contains(got, "deployments shop/other") {
		t.Errorf("looks at %v, want what is held, and not what goes by itself", got)
	}
}
