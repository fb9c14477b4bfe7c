package workloads

import (
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/kubernetes/pkg/apis/apps"
	replicasetstrategy "k8s.io/kubernetes/pkg/registry/apps/replicaset"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/projection"
	"github.com/manifold-dev/manifold/pkg/server/storage/storagetest"
)

// The garbage collector takes its finalizer away as soon as nothing above refers to the object. Clusters may come to it much later.
func TestThatWhatIsOwnedStaysIsRemembered(t *testing.T) {
	orphaning := func(change ...func(*apps.Deployment)) *apps.Deployment {
		d := stored(3)
		d.DeletionTimestamp = &metav1.Time{}
		d.Finalizers = append(d.Finalizers, metav1.FinalizerOrphanDependents)
		for _, c := range change {
			c(d)
		}
		return d
	}
	done := func(d *apps.Deployment) { d.Finalizers = []string{v1alpha1.FinalizerProjection} }
	remembered := func(d *apps.Deployment) { d.Annotations[v1alpha1.AnnotationOrphan] = "true" }
	for name, test := range map[string]struct {
		who         string
		old, object *apps.Deployment
		want        string
	}{
		"by the collector's own update":      {user.APIServerUser, orphaning(), orphaning(done), "true"},
		"by any other":                       {v1alpha1.PlacementUser, orphaning(), orphaning(), "true"},
		"whatever a user says later":         {"jane", orphaning(done, remembered), orphaning(done), "true"},
		"not for what goes with all it owns": {"jane", orphaning(done), orphaning(done), ""},
		"nor for what a user says of it":     {"jane", stored(3), stored(3, v1alpha1.AnnotationOrphan, "true"), ""},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, _ := storagetest.As(t, test.who)
			placing(&placer{}).PrepareForUpdate(ctx, test.object, test.old)
			if got := test.object.Annotations[v1alpha1.AnnotationOrphan]; got != test.want {
				t.Errorf("remembered as %q, want %q", got, test.want)
			}
		})
	}
}

func TestAMirrorThatNobodyControlsAnyMoreIsAWorkload(t *testing.T) {
	kind, _ := projection.ForGVK(appsv1.SchemeGroupVersion.WithKind("ReplicaSet"))
	owner := metav1.NewControllerRef(&appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "web", UID: "u"}}, appsv1.SchemeGroupVersion.WithKind("Deployment"))
	mirror := func(change ...func(*apps.ReplicaSet)) *apps.ReplicaSet {
		rs := &apps.ReplicaSet{ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: "web-1", OwnerReferences: []metav1.OwnerReference{*owner},
			Annotations: map[string]string{v1alpha1.AnnotationPlacement: `{"west":{"replicas":2}}`},
		}}
		rs.Spec.Replicas = 2
		for _, c := range change {
			c(rs)
		}
		return rs
	}
	alone := func(rs *apps.ReplicaSet) { rs.OwnerReferences = nil }
	nowhere := func(rs *apps.ReplicaSet) { rs.Annotations = nil }
	going := func(rs *apps.ReplicaSet) { rs.DeletionTimestamp = &metav1.Time{} }
	for name, test := range map[string]struct {
		old, object *apps.ReplicaSet
		want        string
		wantHeld    bool
	}{
		"it is where it was shown":           {mirror(), mirror(alone), `{"west":{"replicas":2}}`, true},
		"also if the update knows nothing":   {mirror(), mirror(alone, nowhere), `{"west":{"replicas":2}}`, true},
		"it is placed if it was nowhere":     {mirror(nowhere), mirror(nowhere, alone), onEast(2), true},
		"as long as it is one, it stays one": {mirror(), mirror(), `{"west":{"replicas":2}}`, false},
		"one that goes is not held":          {mirror(going), mirror(going, alone), `{"west":{"replicas":2}}`, false},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, _ := storagetest.As(t, user.APIServerUser)
			s := placedStrategy{Strategy: replicasetstrategy.Strategy, reader: reader{kind}, placer: &placer{}}
			s.PrepareForUpdate(ctx, test.object, test.old)
			if got := test.object.Annotations[v1alpha1.AnnotationPlacement]; got != test.want {
				t.Errorf("decision %s, want %s", got, test.want)
			}
			if got := slices.Contains(test.object.Finalizers, v1alpha1.FinalizerProjection); got != test.wantHeld {
				t.Errorf("held %t, want %t", got, test.wantHeld)
			}
		})
	}
}
