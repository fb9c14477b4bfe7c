package syncer

import (
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/identity"
	"github.com/manifold-dev/manifold/pkg/projection"
	"github.com/manifold-dev/manifold/pkg/syncer/planning"
)

// What is done about an object, and in which order, is said before anything is.
func TestPlan(t *testing.T) {
	now := &metav1.Time{Time: time.Now()}
	toEast, toWest := deployment("web", `{"east":{"replicas":3}}`), deployment("web", `{"west":{"replicas":3}}`)
	deleted := deployment("web", `{"east":{"replicas":3}}`, func(d *appsv1.Deployment) {
		d.DeletionTimestamp, d.Finalizers = now, []string{v1alpha1.FinalizerProjection}
	})
	orphaning := deleted.DeepCopy()
	orphaning.Finalizers = append(orphaning.Finalizers, metav1.FinalizerOrphanDependents)
	held := deleted.DeepCopy()
	held.Finalizers = append(held.Finalizers, "example.com/hold")
	set := statefulSet("db", `{"west":{"replicas":3}}`, 3)
	set.Spec.VolumeClaimTemplates = []corev1.PersistentVolumeClaim{{ObjectMeta: metav1.ObjectMeta{Name: "data"}}}
	emptied := projectedSet(set, 0, 0)
	emptied.Spec.VolumeClaimTemplates = set.Spec.VolumeClaimTemplates
	going := projected(toEast, 3, 3)
	going.DeletionTimestamp, going.DeletionGracePeriodSeconds = now, ptr.To[int64](30)

	for name, test := range map[string]struct {
		above, live projection.Object
		want        string
	}{
		"it is made": {
			above: toEast,
			want:  "project (Create) after its namespace, rights above, classes, quotas, pod webhooks, what it names: the cluster has none",
		},
		"it is to run elsewhere and has never been here": {above: toWest, want: "forget: the cluster holds nothing of it"},
		"it leaves":                              {above: toWest, live: projected(toWest, 0, 0), want: "delete: the cluster should not hold it"},
		"it is deleted":                          {above: deleted, live: projected(toEast, 3, 3), want: "delete: the cluster should not hold it"},
		"its pods are kept":                      {above: orphaning, live: projected(toEast, 3, 3), want: "delete, and keep what it owns: the cluster should not hold it"},
		"somebody holds it":                      {above: held, live: projected(toEast, 3, 3), want: "keep as it is: it is being deleted, and somebody holds it by a finalizer"},
		"its claims stay when it runs elsewhere": {above: set, live: emptied, want: "delete: the cluster should not hold it"},
		"it is ending already":                   {above: deleted, live: going, want: "forget: it is being deleted"},
		"somebody else has the name":             {above: toWest, live: deployment("web", ""), want: "forget: it is not ours"},
	} {
		t.Run(name, func(t *testing.T) {
			u := newUpstream(t, test.above, namespace("shop"))
			var has []projection.Object
			if test.live != nil {
				has = append(has, test.live)
			}
			s := attach(t, u, "east", has...)
			kind, _ := projection.KindOf(test.above)
			got := s.planner.Plan(planning.Look{Key: identity.KeyOf(kind, test.above), Kind: kind, Above: test.above, Live: test.live})
			if got.String() != test.want {
				t.Errorf("plans to %s\nwant     %s", got, test.want)
			}
			if test.above == set && (got.Removal.Owned != metav1.DeletePropagationOrphan) {
				t.Errorf("deletes with %+v, which takes the claims along", got.Removal)
			}
		})
	}
}
