package placement

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
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
		load                           Load
		want                           Resources
	}{
		"allocatable less requested": {
			allocatable: list("cpu", "4", "memory", "8Gi", "pods", "110"), requested: list("cpu", "1500m", "pods", "10"),
			want: Resources{"cpu": 2500, "memory": 8 << 30, "pods": 100},
		},
		"less what is assumed": {
			allocatable: list("cpu", "4"), requested: list("cpu", "1"), load: Load{Assumed: Amounts{{"cpu", 500}}},
			want: Resources{"cpu": 2500},
		},
		"overcommitted is negative": {
			allocatable: list("cpu", "1"), requested: list("cpu", "3"),
			want: Resources{"cpu": -2000},
		},
		"limits are held against what is placed": {
			allocatable: list("cpu", "10", "pods", "9"), requested: list("cpu", "3"), limits: list("cpu", "4"),
			load: Load{Placed: Amounts{{"cpu", 1000}}},
			want: Resources{"cpu": 3000, "pods": 9},
		},
		"limits are held against everything if what is placed is not known": {
			allocatable: list("cpu", "10"), requested: list("cpu", "3"), limits: list("cpu", "4"),
			load: Load{Assumed: Amounts{{"cpu", 250}}},
			want: Resources{"cpu": 750},
		},
		"limits add nothing": {
			allocatable: list("cpu", "10"), requested: list("cpu", "9"), limits: list("cpu", "400", "gpu", "3"),
			load: Load{Placed: Amounts{}},
			want: Resources{"cpu": 1000},
		},
		"but for claims, of which nobody says how much there is": {
			allocatable: list("cpu", "10"), limits: list("requests.storage", "10Gi", "persistentvolumeclaims", "3"),
			load: Load{Placed: Amounts{{"requests.storage", 4 << 30}, {"persistentvolumeclaims", 4}}},
			want: Resources{"cpu": 10000, "requests.storage": 6 << 30, "persistentvolumeclaims": -1},
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
			got := Observe(c, tc.load).Free
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
	got := Observe(c, Load{})
	if got.Name != "east" || got.Labels["zone"] != "eu" || !got.Unschedulable || got.Taints[0].Key != "gpu" ||
		got.Kinds[0] != "Pod.v1" || got.Ready != metav1.ConditionFalse || got.ReadyMessage != "no answer" {
		t.Errorf("got %+v", got)
	}
}

func TestSnapshotSortsAndDropsDoubles(t *testing.T) {
	kinds := []string{"Pod.v1", "Deployment.v1.apps"}
	s := NewSnapshot([]Cluster{{Facts: &Facts{Name: "west"}}, {Facts: &Facts{Name: "east", Kinds: kinds}}, {Facts: &Facts{Name: "east", Unschedulable: true}}})
	var names []string
	for _, c := range s.Clusters() {
		names = append(names, c.Name)
	}
	if !slices.Equal(names, []string{"east", "west"}) || s.Clusters()[0].Unschedulable {
		t.Errorf("clusters %v", names)
	}
	for _, kind := range kinds {
		if !s.clusters[0].serves(kind) {
			t.Errorf("%s is not found among unsorted kinds", kind)
		}
	}
	if kinds[0] != "Pod.v1" {
		t.Error("the caller's kinds were sorted")
	}
	if s.clusters[0].serves("Job.v1.batch") || !s.clusters[1].serves("Job.v1.batch") {
		t.Error("only what is known bounds the kinds")
	}
}

func TestKindName(t *testing.T) {
	if got := KindName(schema.GroupVersionKind{Version: "v1", Kind: "Pod"}); got != "Pod.v1" {
		t.Error(got)
	}
	if got := KindName(schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}); got != "Deployment.v1.apps" {
		t.Error(got)
	}
}

func TestRequestsOf(t *testing.T) {
	container := func(pairs ...string) corev1.Container {
		return corev1.Container{Resources: corev1.ResourceRequirements{Requests: list(pairs...)}}
	}
	for name, tc := range map[string]struct {
		spec corev1.PodSpec
		want Resources
	}{
		"a pod that requests nothing needs its place": {
			spec: corev1.PodSpec{Containers: []corev1.Container{container()}},
			want: Resources{"pods": 1},
		},
		"containers add up": {
			spec: corev1.PodSpec{Containers: []corev1.Container{container("cpu", "250m", "memory", "1Gi"), container("cpu", "1")}},
			want: Resources{"cpu": 1250, "memory": 1 << 30, "pods": 1},
		},
		"an init container counts if it needs more, and overhead is added": {
			spec: corev1.PodSpec{
				InitContainers: []corev1.Container{container("cpu", "2")},
				Containers:     []corev1.Container{container("cpu", "1", "example.com/gpu", "1")},
				Overhead:       list("cpu", "100m"),
			},
			want: Resources{"cpu": 2100, "example.com/gpu": 1, "pods": 1},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if got := RequestsOf(&corev1.PodTemplateSpec{Spec: tc.spec}); !maps.Equal(got, tc.want) {
				t.Errorf("got %v, want %v", got, tc.want)
			}
		})
	}
}

func TestAmountsAreReadable(t *testing.T) {
	for _, tc := range []struct {
		name  corev1.ResourceName
		value int64
		want  string
	}{
		{"cpu", 4000, "4"}, {"cpu", 1500, "1.5"}, {"cpu", 1999, "1.99"}, {"cpu", 290, "0.29"},
		{"memory", 512, "512"}, {"memory", 2047, "1.99Ki"}, {"memory", math.MaxInt64, "8Ei"}, {"memory", 0, "0"}, {"memory", 1 << 30, "1Gi"}, {"memory", 3<<30 + 1<<29, "3.5Gi"},
		{"ephemeral-storage", 5 << 40, "5Ti"}, {"pods", 110, "110"}, {"hugepages-2Mi", 1 << 22, "4Mi"},
	} {
		if got := amount(tc.name, tc.value); got != tc.want {
			t.Errorf("%d of %s reads %q, want %q", tc.value, tc.name, got, tc.want)
		}
	}
}

func TestNeighboursCountReplicasAndWorkloads(t *testing.T) {
	n := Neighbours{}
	n.Add(shares("east", 3, "west", 1))
	n.Add(shares("west", 0))
	n.Add(nil)
	if want := (Neighbours{"east": 3, "west": 2}); !maps.Equal(n, want) {
		t.Errorf("got %v, want %v", n, want)
	}
	if got := n.home(); got != "east" {
		t.Errorf("home %q", got)
	}
	if got := (Neighbours{"west": 2, "east": 2}).home(); got != "east" {
		t.Errorf("of equals the first name is home, got %q", got)
	}
	if got := (Neighbours{}).home(); got != "" {
		t.Errorf("nobody's home is %q", got)
	}
}

func TestSnapshotWithChanges(t *testing.T) {
	before := snapshot(cluster("east", 1), cluster("north", 2), cluster("west", 3))
	after := before.With([]Cluster{cluster("west", 9).Cluster, cluster("middle", 5).Cluster}, map[string]bool{"north": true})
	read := func(s Snapshot) (out []string) {
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
