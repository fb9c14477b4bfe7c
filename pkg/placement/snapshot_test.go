package placement_test

import (
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/placement"
	"github.com/manifold-dev/manifold/pkg/placement/build"
)

func list(pairs ...string) corev1.ResourceList {
	out := corev1.ResourceList{}
	for i := 0; i < len(pairs); i += 2 {
		out[corev1.ResourceName(pairs[i])] = resource.MustParse(pairs[i+1])
	}
	return out
}

func TestObserveFindsWhatIsFree(t *testing.T) {
	for name, tc := range map[string]struct {
		allocatable, requested, limits corev1.ResourceList
		load                           placement.Load
		want                           placement.Resources
	}{
		"allocatable less requested": {
			allocatable: list("cpu", "4", "memory", "8Gi", "pods", "110"), requested: list("cpu", "1500m", "pods", "10"),
			want: placement.Resources{"cpu": 2500, "memory": 8 << 30, "pods": 100},
		},
		"less what is assumed": {
			allocatable: list("cpu", "4"), requested: list("cpu", "1"), load: placement.Load{Assumed: placement.Amounts{{"cpu", 500}}},
			want: placement.Resources{"cpu": 2500},
		},
		"overcommitted is negative": {
			allocatable: list("cpu", "1"), requested: list("cpu", "3"),
			want: placement.Resources{"cpu": -2000},
		},
		"limits are held against what is placed": {
			allocatable: list("cpu", "10", "pods", "9"), requested: list("cpu", "3"), limits: list("cpu", "4"),
			load: placement.Load{Placed: placement.Amounts{{"cpu", 1000}}},
			want: placement.Resources{"cpu": 3000, "pods": 9},
		},
		"limits are held against everything if what is placed is not known": {
			allocatable: list("cpu", "10"), requested: list("cpu", "3"), limits: list("cpu", "4"),
			load: placement.Load{Assumed: placement.Amounts{{"cpu", 250}}},
			want: placement.Resources{"cpu": 750},
		},
		"limits add nothing": {
			allocatable: list("cpu", "10"), requested: list("cpu", "9"), limits: list("cpu", "400", "gpu", "3"),
			load: placement.Load{Placed: placement.Amounts{}},
			want: placement.Resources{"cpu": 1000},
		},
		"but for claims, of which nobody says how much there is": {
			allocatable: list("cpu", "10"), limits: list("requests.storage", "10Gi", "persistentvolumeclaims", "3"),
			load: placement.Load{Placed: placement.Amounts{{"requests.storage", 4 << 30}, {"persistentvolumeclaims", 4}}},
			want: placement.Resources{"cpu": 10000, "requests.storage": 6 << 30, "persistentvolumeclaims": -1},
		},
		"a cluster without nodes has nothing": {
			requested: list("cpu", "9"), limits: list("cpu", "400"),
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := &v1alpha1.Cluster{
				Spec:   v1alpha1.ClusterSpec{Limits: tc.limits},
				Status: v1alpha1.ClusterStatus{Allocatable: tc.allocatable, Requested: tc.requested},
			}
			got := placement.Observe(c, tc.load).Free
			if !slices.Equal(got, tc.want.Amounts()) || (got == nil) != (tc.want == nil) {
				t.Errorf("got %v, want %v", got, tc.want)
			}
		})
	}
}

func TestObserveCopiesWhatPlacementReads(t *testing.T) {
	c := &v1alpha1.Cluster{
		ObjectMeta: metav1.ObjectMeta{Name: "east", Labels: map[string]string{"zone": "eu"}},
		Spec:       v1alpha1.ClusterSpec{Unschedulable: true, Taints: []corev1.Taint{{Key: "gpu"}}},
		Status: v1alpha1.ClusterStatus{
			Kinds:      []string{"Pod.v1"},
			Conditions: []metav1.Condition{{Type: v1alpha1.ClusterReady, Status: metav1.ConditionFalse, Message: "no answer"}},
		},
	}
	got := placement.Observe(c, placement.Load{})
	if got.Name != "east" || got.Labels["zone"] != "eu" || !got.Unschedulable || got.Taints[0].Key != "gpu" ||
		got.Kinds[0] != "Pod.v1" || got.Ready != metav1.ConditionFalse || got.ReadyMessage != "no answer" {
		t.Errorf("got %+v", got)
	}
}

func TestSnapshotSortsAndDropsDoubles(t *testing.T) {
	kinds := []string{"Pod.v1", "Deployment.v1.apps"}
	s := placement.NewSnapshot([]placement.Cluster{{Facts: &placement.Facts{Name: "west"}}, {Facts: &placement.Facts{Name: "east", Kinds: kinds}}, {Facts: &placement.Facts{Name: "east", Unschedulable: true}}})
	var names []string
	for _, c := range s.Clusters() {
		names = append(names, c.Name)
	}
	if !slices.Equal(names, []string{"east", "west"}) || s.Clusters()[0].Unschedulable {
		t.Errorf("clusters %v", names)
	}
	for _, kind := range kinds {
		if !s.Clusters()[0].Serves(kind) {
			t.Errorf("%s is not found among unsorted kinds", kind)
		}
	}
	if kinds[0] != "Pod.v1" {
		t.Error("the caller's kinds were sorted")
	}
	if s.Clusters()[0].Serves("Job.v1.batch") || !s.Clusters()[1].Serves("Job.v1.batch") {
		t.Error("only what is known bounds the kinds")
	}
}

func TestKindName(t *testing.T) {
	if got := placement.KindName(schema.GroupVersionKind{Version: "v1", Kind: "Pod"}); got != "Pod.v1" {
		t.Error(got)
	}
	if got := placement.KindName(schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}); got != "Deployment.v1.apps" {
		t.Error(got)
	}
}

func TestSnapshotWithChanges(t *testing.T) {
	before := build.Snapshot(build.Cluster("east", 1), build.Cluster("north", 2), build.Cluster("west", 3))
	after := before.With([]placement.Cluster{build.Cluster("west", 9).Cluster, build.Cluster("middle", 5).Cluster}, map[string]bool{"north": true})
	read := func(s placement.Snapshot) (out []string) {
		for _, c := range s.Clusters() {
			out = append(out, fmt.Sprintf("%s=%d", c.Name, c.Free.Of(corev1.ResourceCPU)/1000))
		}
		return out
	}
	if got, want := read(after), []string{"east=1", "middle=5", "west=9"}; !slices.Equal(got, want) {
		t.Errorf("after %v, want %v", got, want)
	}
	if got, want := read(before), []string{"east=1", "north=2", "west=3"}; !slices.Equal(got, want) {
		t.Errorf("before %v, want %v: a snapshot never changes", got, want)
	}
}
