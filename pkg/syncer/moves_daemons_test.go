package syncer

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/identity"
	"github.com/manifold-dev/manifold/pkg/projection"
	"github.com/manifold-dev/manifold/pkg/syncer/states"
)

// What runs on every node of its clusters leaves one for another in the same order as all else.
func TestADaemonSetLeavesWhenOthersServeInItsPlace(t *testing.T) {
	kind, _ := projection.KindOf(&appsv1.DaemonSet{})
	set := func(decision string) *appsv1.DaemonSet {
		ds := &appsv1.DaemonSet{ObjectMeta: objectMeta("agent")}
		ds.Annotations = map[string]string{v1alpha1.AnnotationPlacement: decision}
		return ds
	}
	below := func(of *appsv1.DaemonSet, desired, available int32) *appsv1.DaemonSet {
		ds := of.DeepCopy()
		ds.Labels = map[string]string{v1alpha1.LabelLogicalCluster: logicalCluster}
		ds.Annotations = map[string]string{
			v1alpha1.AnnotationNamespace: of.Namespace, v1alpha1.AnnotationName: of.Name, v1alpha1.AnnotationUID: string(of.UID),
			v1alpha1.AnnotationProjection: "hash",
		}
		ds.Status = appsv1.DaemonSetStatus{ObservedGeneration: 1, DesiredNumberScheduled: desired, NumberAvailable: available}
		return ds
	}
	toWest := set(`{"west":{"replicas":0}}`)
	unseen := below(toWest, 0, 0)
	unseen.Status.ObservedGeneration = 0
	for name, test := range map[string]struct {
		above   *appsv1.DaemonSet
		west    *appsv1.DaemonSet // nil for none
		problem string            // of west
		silent  string
		absent  bool // the syncer of west has not begun
		want    bool // east keeps it
	}{
		"the other has none yet":                  {above: toWest, want: true},
		"its controller has not seen it":          {above: toWest, west: unseen, want: true},
		"its pods do not serve yet":               {above: toWest, west: below(toWest, 3, 0), want: true},
		"they serve":                              {above: toWest, west: below(toWest, 3, 3)},
		"it has not been seen what the other has": {above: toWest, west: below(toWest, 3, 3), absent: true, want: true},
		"no node takes any there":                 {above: toWest, west: below(toWest, 0, 0)},
		"nobody can ask the only other":           {above: toWest, west: below(toWest, 3, 3), silent: "west", want: true},
		"the only other cannot hold it":           {above: toWest, problem: "the name is taken", want: true},
		"one of two others cannot hold it":        {above: set(`{"north":{"replicas":0},"west":{"replicas":0}}`), west: below(toWest, 3, 3), silent: "north"},
		"one of two others has none yet":          {above: set(`{"north":{"replicas":0},"west":{"replicas":0}}`), west: below(toWest, 3, 3), want: true},
		"it is to stay":                           {above: set(`{"east":{"replicas":0},"west":{"replicas":0}}`)},
		"it has no place any more":                {above: set(""), want: true},
	} {
		t.Run(name, func(t *testing.T) {
			u := newUpstream(t, test.above)
			live := below(test.above, 3, 3)
			east := attach(t, u, "east", live)
			attach(t, u, "north")
			var has []projection.Object
			if test.west != nil {
				has = append(has, test.west)
			}
			west := attach(t, u, "west", has...)
			west.states.Set(identity.KeyOf(kind, test.above), states.State{Problem: test.problem})
			west.synced.Store(!test.absent)
			u.Fleets.Silent = func(cluster string) bool { return cluster == test.silent }
			if step := east.next(test.above); step.Held != test.want {
				t.Errorf("%+v; want it kept %t", step, test.want)
			}
		})
	}
}
