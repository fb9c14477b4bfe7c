package syncer

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/utils/ptr"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/identity"
	"github.com/manifold-dev/manifold/pkg/projection"
)

// Replicas with ordinals go down one after another, over all clusters.
func TestAClusterUpdatesItsOrdinalsAfterTheHigherOnes(t *testing.T) {
	above := statefulSet("db", `{"east":{"replicas":2},"north":{"replicas":2,"start":2},"west":{"replicas":2,"start":4}}`, 6)
	above.Spec.UpdateStrategy.Type = appsv1.RollingUpdateStatefulSetStrategyType
	partitioned := above.DeepCopy()
	partitioned.Spec.UpdateStrategy.RollingUpdate = &appsv1.RollingUpdateStatefulSetStrategy{Partition: ptr.To[int32](4)}
	onDelete := above.DeepCopy()
	onDelete.Spec.UpdateStrategy.Type = appsv1.OnDeleteStatefulSetStrategyType
	hash := projection.TemplateHash(&above.Spec.Template)

	// part is what a cluster has: so many of its two replicas are updated and available.
	part := func(start, updated, available int32, edits ...func(*appsv1.StatefulSet)) *appsv1.StatefulSet {
		set := projectedSet(above, start, 2)
		set.Annotations[v1alpha1.AnnotationTemplate] = hash
		set.Status.UpdatedReplicas, set.Status.AvailableReplicas = updated, available
		set.Status.CurrentRevision, set.Status.UpdateRevision = "old", "new"
		if updated == 2 && available == 2 {
			set.Status.CurrentRevision = "new"
		}
		for _, edit := range edits {
			edit(set)
		}
		return set
	}
	old := func(set *appsv1.StatefulSet) {
		set.Annotations[v1alpha1.AnnotationTemplate] = "another"
		set.Status.CurrentRevision, set.Status.UpdateRevision = "old", "old"
	}
	unseen := func(set *appsv1.StatefulSet) { set.Generation++ }
	told := func(set *appsv1.StatefulSet) {
		set.Spec.UpdateStrategy.RollingUpdate = &appsv1.RollingUpdateStatefulSetStrategy{Partition: ptr.To[int32](2)}
	}
	const north, west = `waits for the pods with higher ordinals to be updated in cluster "north"`, `waits for the pods with higher ordinals to be updated in cluster "west"`

	for name, test := range map[string]struct {
		above *appsv1.StatefulSet
		// east is the cluster with the lowest ordinals, which is asked; nil for none.
		east, north, west *appsv1.StatefulSet
		want              string
	}{
		"all have the old template":               {above: above, east: part(0, 2, 2, old), north: part(2, 2, 2, old), west: part(4, 2, 2, old), want: north},
		"the highest are done":                    {above: above, east: part(0, 2, 2, old), north: part(2, 2, 2, old), west: part(4, 2, 2), want: north},
		"the highest are not":                     {above: above, east: part(0, 2, 2, old), north: part(2, 2, 2), west: part(4, 1, 1), want: west},
		"all others are done":                     {above: above, east: part(0, 2, 2, old), north: part(2, 2, 2), west: part(4, 2, 2)},
		"one of the others is not available":      {above: above, east: part(0, 2, 2, old), north: part(2, 2, 2), west: part(4, 2, 1), want: west},
		"one of the others is not there":          {above: above, east: part(0, 2, 2, old), north: part(2, 2, 2), want: west},
		"one of the others has not seen it":       {above: above, east: part(0, 2, 2, old), north: part(2, 2, 2), west: part(4, 2, 2, unseen), want: west},
		"it was told to wait, and has not seen":   {above: above, east: part(0, 2, 2, told, unseen), north: part(2, 2, 2), west: part(4, 1, 1), want: west},
		"it was told to wait, and has seen":       {above: above, east: part(0, 0, 2, told), north: part(2, 2, 2), west: part(4, 1, 1), want: west},
		"it waits no longer":                      {above: above, east: part(0, 0, 2, told), north: part(2, 2, 2), west: part(4, 2, 2)},
		"it has begun and goes on":                {above: above, east: part(0, 1, 2), north: part(2, 2, 2), west: part(4, 2, 1)},
		"it is done":                              {above: above, east: part(0, 2, 2), north: part(2, 2, 2), west: part(4, 2, 1)},
		"it is made":                              {above: above, north: part(2, 0, 0)},
		"a partition leaves it alone":             {above: partitioned, east: part(0, 2, 2, old), north: part(2, 2, 2, old), west: part(4, 2, 2, old)},
		"pods that users delete wait for nothing": {above: onDelete, east: part(0, 2, 2, old), north: part(2, 2, 2, old), west: part(4, 2, 2, old)},
	} {
		t.Run(name, func(t *testing.T) {
			u := newUpstream(t, test.above)
			var asked *testSyncer
			var live projection.Object
			for cluster, has := range map[string]*appsv1.StatefulSet{"east": test.east, "north": test.north, "west": test.west} {
				var objects []projection.Object
				if has != nil {
					objects = append(objects, has)
				}
				s := attach(t, u, cluster, objects...)
				if cluster == "east" {
					asked = s
					if has != nil {
						live = has
					}
				}
			}
			if step := asked.next(test.above); step.Paced != (test.want != "") || step.Reason != test.want {
				t.Errorf("%+v; want it to wait for %q", step, test.want)
			}
			wantPartition := int32(-1)
			if rolling := test.above.Spec.UpdateStrategy.RollingUpdate; rolling != nil {
				wantPartition = min(*rolling.Partition, 2)
			}
			if test.want != "" {
				wantPartition = 2
			}
			desired, waits, err := asked.desired(setKind, test.above, live)
			if err != nil {
				t.Fatal(err)
			}
			got := int32(-1)
			if rolling := desired.(*appsv1.StatefulSet).Spec.UpdateStrategy.RollingUpdate; rolling != nil {
				got = *rolling.Partition
			}
			if got != wantPartition || waits.Paced != (test.want != "") || waits.Held {
				t.Errorf("partition %d, waits %+v, want partition %d", got, waits, wantPartition)
			}
		})
	}
}

// What may be out of service at a time is counted over all clusters.
func TestAClusterReplacesItsDaemonsAfterThoseThatMayNotServe(t *testing.T) {
	above := &appsv1.DaemonSet{ObjectMeta: objectMeta("agent")}
	above.Annotations = map[string]string{v1alpha1.AnnotationPlacement: `{"east":{"replicas":0},"west":{"replicas":0}}`}
	above.Spec.UpdateStrategy.Type = appsv1.RollingUpdateDaemonSetStrategyType
	has := func(template string) *appsv1.DaemonSet {
		live := above.DeepCopy()
		live.Annotations = map[string]string{
			v1alpha1.AnnotationNamespace: "shop", v1alpha1.AnnotationName: "agent", v1alpha1.AnnotationUID: string(above.UID),
			v1alpha1.AnnotationTemplate: template,
		}
		live.Labels = map[string]string{v1alpha1.LabelLogicalCluster: logicalCluster}
		live.Status = appsv1.DaemonSetStatus{ObservedGeneration: 1, DesiredNumberScheduled: 1, UpdatedNumberScheduled: 1, NumberAvailable: 1}
		return live
	}
	hash := projection.TemplateHash(&above.Spec.Template)
	kind, _ := projection.KindOf(above)
	for name, test := range map[string]struct {
		east string // the template of its pods
		want bool
	}{
		"the other cluster has them replaced": {east: "old", want: true},
		"it is done":                          {east: hash},
	} {
		t.Run(name, func(t *testing.T) {
			u := newUpstream(t, above)
			attach(t, u, "east", has(test.east))
			s := attach(t, u, "west", has("old"))
			desired, waits, err := s.desired(kind, above, s.below.Get(identity.KeyOf(kind, above)))
			if err != nil {
				t.Fatal(err)
			}
			told := desired.(*appsv1.DaemonSet).Spec.UpdateStrategy.Type == appsv1.OnDeleteDaemonSetStrategyType
			if told != test.want || waits.Paced != test.want || (waits.Reason != "") != test.want {
				t.Errorf("told to wait: %t, because %q; want %t", told, waits.Reason, test.want)
			}
			if test.want && !strings.Contains(waits.Reason, `waits for cluster "east" to finish updating`) {
				t.Errorf("it waits because %q, want it to name the other cluster", waits.Reason)
			}
		})
	}
}
