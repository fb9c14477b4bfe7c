package syncer

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/identity"
	"github.com/manifold-dev/manifold/pkg/projection"
)

// plainSet is a ReplicaSet that a user made.
func plainSet(name, decision string) *appsv1.ReplicaSet {
	rs := &appsv1.ReplicaSet{ObjectMeta: objectMeta(name), Spec: appsv1.ReplicaSetSpec{Replicas: ptr.To[int32](2)}}
	if decision != "" {
		rs.Annotations = map[string]string{v1alpha1.AnnotationPlacement: decision}
	}
	return rs
}

// handProjected is what a cluster holds for one, controlled by owner unless that is nil.
func handProjected(above *appsv1.ReplicaSet, owner *appsv1.Deployment) *appsv1.ReplicaSet {
	rs := above.DeepCopy()
	rs.UID = above.UID + "-below"
	rs.Labels = map[string]string{v1alpha1.LabelLogicalCluster: logicalCluster}
	rs.Annotations = map[string]string{
		v1alpha1.AnnotationNamespace: above.Namespace, v1alpha1.AnnotationName: above.Name, v1alpha1.AnnotationUID: string(above.UID),
		v1alpha1.AnnotationTemplate: "hand",
	}
	rs.OwnerReferences = nil
	if owner != nil {
		rs.OwnerReferences = controlledBy(owner, "Deployment")
	}
	return rs
}

func TestWhatADeploymentHasTakenOverIsLeftToIt(t *testing.T) {
	const toEast, toWest = `{"east":{"replicas":2}}`, `{"west":{"replicas":2}}`
	above := deployment("web", toEast)
	elsewhere := deployment("web", toWest)
	below := projected(above, 2, 2)
	byHand := plainSet("web-hand", toEast)
	mirror := byHand.DeepCopy()
	mirror.OwnerReferences = controlledBy(above, "Deployment")
	madeBelow := plainSet("web-abc", "")
	madeBelow.Annotations, madeBelow.OwnerReferences = map[string]string{v1alpha1.AnnotationTemplate: "abc"}, controlledBy(below, "Deployment")
	ending := byHand.DeepCopy()
	ending.DeletionTimestamp = &metav1.Time{}
	for name, test := range map[string]struct {
		above   *appsv1.ReplicaSet
		live    *appsv1.ReplicaSet
		cluster []projection.Object
		upper   *appsv1.Deployment
		want    bool
	}{
		"one that was taken over":                    {byHand, handProjected(byHand, below), []projection.Object{below}, above, true},
		"and is shown so above":                      {mirror, handProjected(byHand, below), []projection.Object{below}, above, true},
		"another share that will be":                 {mirror, handProjected(byHand, nil), nil, above, true},
		"not a share where the Deployment is not":    {mirror, handProjected(byHand, nil), nil, elsewhere, false},
		"not one that nobody took":                   {byHand, handProjected(byHand, nil), []projection.Object{below}, above, false},
		"not one that the user deletes":              {ending, handProjected(byHand, below), []projection.Object{below}, above, false},
		"not one of which the cluster holds nothing": {byHand, nil, []projection.Object{below}, above, false},
		"one that was a mirror a moment ago":         {plainSet(madeBelow.Name, toEast), nil, []projection.Object{below, madeBelow}, above, true},
	} {
		t.Run(name, func(t *testing.T) {
			u := newUpstream(t, test.upper, test.above)
			s := attach(t, u, "east", test.cluster...)
			var live projection.Object
			if test.live != nil {
				live = test.live
			}
			kind, _ := projection.KindOf(test.above)
			got, err := s.adoption.HandedOver(t.Context(), kind, test.above, live)
			if err != nil || got != test.want {
				t.Errorf("left alone: %t, %v; want %t", got, err, test.want)
			}
		})
	}
}

func TestWhoHasTakenOverIsToldAsTheObjectAbove(t *testing.T) {
	above := deployment("web", `{"east":{"replicas":2}}`)
	below := projected(above, 2, 2)
	byHand := plainSet("web-hand", `{"east":{"replicas":2}}`)
	u := newUpstream(t, above, byHand)
	s := attach(t, u, "east", below, handProjected(byHand, below))
	kind, _ := projection.KindOf(byHand)
	key := identity.KeyOf(kind, byHand)
	if got := s.reports.Adopter(key, byHand); got == nil || got.UID != above.UID || got.Kind != "Deployment" || !*got.Controller {
		t.Errorf("taken over by %+v, want the Deployment above", got)
	}
	another := byHand.DeepCopy()
	another.UID = "made anew"
	if got := s.reports.Adopter(key, another); got != nil {
		t.Errorf("one made anew is taken over by %+v", got)
	}
	overwritten := handProjected(byHand, below)
	overwritten.Annotations[v1alpha1.AnnotationUID] = string(above.UID)
	if got := attach(t, newUpstream(t, above, byHand), "east", below, overwritten).reports.Adopter(key, byHand); got == nil || got.UID != above.UID {
		t.Errorf("one that carries the marks of the Deployment by now is taken over by %+v", got)
	}
	going := above.DeepCopy()
	going.DeletionTimestamp = &metav1.Time{}
	if got := attach(t, newUpstream(t, going, byHand), "east", below, handProjected(byHand, below)).reports.Adopter(key, byHand); got != nil {
		t.Errorf("a Deployment that is being deleted takes over: %+v", got)
	}
	if got := s.reports.ReplicaSets(above); len(got["web-hand"]) != 1 || len(got) != 1 {
		t.Errorf("the Deployment's ReplicaSets are %v, want the one that was made by hand under its name", got)
	}
}

// A pod that the user made belongs to whoever takes it over below, and to nobody once it is let go.
func TestPodsShowWhoHasTakenThemOver(t *testing.T) {
	set := plainSet("web", `{"east":{"replicas":2}}`)
	below := handProjected(set, nil)
	custom := metav1.OwnerReference{APIVersion: "example.com/v1", Kind: "Fleet", Name: "f", UID: "f", Controller: ptr.To(true)}
	loose := metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: "c", UID: "c"}
	above, lower := controlledBy(set, "ReplicaSet")[0], controlledBy(below, "ReplicaSet")[0]
	stranger := metav1.OwnerReference{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "other", UID: "other", Controller: ptr.To(true)}
	for name, test := range map[string]struct {
		above, below, want []metav1.OwnerReference
	}{
		"taken over":                     {nil, []metav1.OwnerReference{lower}, []metav1.OwnerReference{above}},
		"known to be":                    {[]metav1.OwnerReference{above}, []metav1.OwnerReference{lower}, []metav1.OwnerReference{above}},
		"let go":                         {[]metav1.OwnerReference{above}, nil, nil},
		"what else owns it stays":        {[]metav1.OwnerReference{loose, above}, nil, []metav1.OwnerReference{loose}},
		"a controller of another kind":   {[]metav1.OwnerReference{custom}, nil, []metav1.OwnerReference{custom}},
		"taken over by we know not whom": {[]metav1.OwnerReference{loose}, []metav1.OwnerReference{stranger}, []metav1.OwnerReference{loose}},
	} {
		t.Run(name, func(t *testing.T) {
			s := attach(t, newUpstream(t, set), "east", below)
			user, live := &corev1.Pod{ObjectMeta: objectMeta("web-1")}, &corev1.Pod{ObjectMeta: objectMeta("web-1")}
			user.OwnerReferences, live.OwnerReferences = test.above, test.below
			if got := s.owners.OfOwn(user, live); !equality.Semantic.DeepEqual(got, test.want) {
				t.Errorf("owners %+v, want %+v", got, test.want)
			}
		})
	}
}

// A ReplicaSet that becomes a mirror leaves the clusters in which nobody took it over.
func TestWhatBecomesAMirrorIsLookedAtWhereItIs(t *testing.T) {
	above := deployment("web", `{"east":{"replicas":2}}`)
	byHand := plainSet("web-hand", `{"west":{"replicas":2}}`)
	mirror := byHand.DeepCopy()
	mirror.Annotations, mirror.OwnerReferences = nil, controlledBy(above, "Deployment")
	u := newUpstream(t, above, mirror)
	west, east := attach(t, u, "west", handProjected(byHand, nil)), attach(t, u, "east")
	kind, _ := projection.KindOf(byHand)
	u.router.Route(kind, byHand, mirror)
	if got := west.enqueued(); len(got) == 0 {
		t.Error("the cluster that holds a share of it does not look")
	}
	if got := east.enqueued(); len(got) != 0 {
		t.Errorf("a cluster that holds none looks at %v", got)
	}
	if _, wanted := u.Demand.Part(kind, mirror, "west"); wanted {
		t.Error("a mirror is wanted in a cluster")
	}
}
