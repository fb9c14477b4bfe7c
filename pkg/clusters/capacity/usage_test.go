package capacity

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
)

// list builds a resource list from name and quantity in turn.
func list(pairs ...string) corev1.ResourceList {
	l := corev1.ResourceList{}
	for i := 0; i < len(pairs); i += 2 {
		l[corev1.ResourceName(pairs[i])] = resource.MustParse(pairs[i+1])
	}
	return l
}

func pod(name string) types.NamespacedName {
	return types.NamespacedName{Namespace: "shop", Name: name}
}

func wantSums(t *testing.T, u *Usage, want corev1.ResourceList) {
	t.Helper()
	if got, _ := u.Snapshot(); !equality.Semantic.DeepEqual(got, want) {
		t.Errorf("sums:\n got %v\nwant %v", got, want)
	}
}

func TestUsage(t *testing.T) {
	small, large := list("cpu", "100m", "memory", "64Mi"), list("cpu", "2", "memory", "1Gi", "nvidia.com/gpu", "1")
	for name, test := range map[string]struct {
		events func(u *Usage)
		want   corev1.ResourceList
	}{
		"without pods nothing is requested": {
			events: func(*Usage) {},
			want:   list("cpu", "0", "memory", "0", "pods", "0"),
		},
		"pods add up, each with its place": {
			events: func(u *Usage) {
				u.PodChanged(pod("a"), small, 0, true)
				u.PodChanged(pod("b"), large, 0, true)
			},
			want: list("cpu", "2100m", "memory", "1088Mi", "nvidia.com/gpu", "1", "pods", "2"),
		},
		"the same event twice counts once": {
			events: func(u *Usage) {
				u.PodChanged(pod("a"), small, 0, true)
				u.PodChanged(pod("a"), small, 0, true)
			},
			want: list("cpu", "100m", "memory", "64Mi", "pods", "1"),
		},
		"a resize replaces what was requested before": {
			events: func(u *Usage) {
				u.PodChanged(pod("a"), large, 0, true)
				u.PodChanged(pod("a"), small, 0, true)
			},
			want: list("cpu", "100m", "memory", "64Mi", "pods", "1"),
		},
		"a pod that has ended requests nothing, and its deletion changes nothing more": {
			events: func(u *Usage) {
				u.PodChanged(pod("a"), small, 0, true)
				u.PodChanged(pod("a"), nil, 0, false)
				u.PodGone(pod("a"))
			},
			want: list("cpu", "0", "memory", "0", "pods", "0"),
		},
		"a pod without requests still takes a place": {
			events: func(u *Usage) { u.PodChanged(pod("a"), nil, 0, true) },
			want:   list("cpu", "0", "memory", "0", "pods", "1"),
		},
		"pods of one name in two namespaces are two": {
			events: func(u *Usage) {
				u.PodChanged(pod("a"), small, 0, true)
				u.PodChanged(types.NamespacedName{Namespace: "office", Name: "a"}, small, 0, true)
			},
			want: list("cpu", "200m", "memory", "128Mi", "pods", "2"),
		},
		"a new watch drops the pods that it does not see, once it is synced": {
			events: func(u *Usage) {
				u.PodChanged(pod("a"), small, 0, true)
				u.PodChanged(pod("b"), small, 0, true)
				u.Synced()
				u.Begin()
				u.PodChanged(pod("b"), small, 0, true)
				u.Synced()
			},
			want: list("cpu", "100m", "memory", "64Mi", "pods", "1"),
		},
		"a new watch keeps the pods of the last one until it is synced": {
			events: func(u *Usage) {
				u.PodChanged(pod("a"), small, 0, true)
				u.Synced()
				u.Begin()
			},
			want: list("cpu", "100m", "memory", "64Mi", "pods", "1"),
		},
	} {
		t.Run(name, func(t *testing.T) {
			u := NewUsage(nil)
			test.events(u)
			wantSums(t, u, test.want)
		})
	}
}

func TestUsageIsCompleteFromTheFirstSyncAndCurrentSinceTheLast(t *testing.T) {
	u := NewUsage(nil)
	want := func(when string, complete, current bool) {
		t.Helper()
		if _, got := u.Snapshot(); got != complete || u.Current() != current {
			t.Errorf("%s: complete %v, current %v, want %v, %v", when, got, u.Current(), complete, current)
		}
	}
	want("at first", false, false)
	u.Begin()
	want("while the first watch lists", false, false)
	u.Synced()
	want("after the first list", true, true)
	u.Begin()
	want("while the second watch lists", true, false)
}

func TestUsageByPriority(t *testing.T) {
	u := NewUsage(nil)
	u.PodChanged(pod("a"), list("cpu", "1"), 10, true)
	u.PodChanged(pod("b"), list("cpu", "2"), -5, true)
	u.PodChanged(pod("c"), list("cpu", "3"), 10, true)
	u.PodChanged(pod("d"), list("cpu", "4"), 0, true)
	u.PodChanged(pod("a"), list("cpu", "1"), 0, true) // another pod of that name, say
	u.PodGone(pod("b"))
	want := []Level{
		{Priority: 0, Requests: list("cpu", "5", "memory", "0", "pods", "2")},
		{Priority: 10, Requests: list("cpu", "3", "memory", "0", "pods", "1")},
	}
	if got := u.Levels(); !equality.Semantic.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestUsageTellsOnlyOfChanges(t *testing.T) {
	changes := 0
	u := NewUsage(func(bool) { changes++ })
	u.PodChanged(pod("a"), list("cpu", "1"), 0, true)
	u.PodChanged(pod("a"), list("cpu", "1"), 0, true)
	u.PodGone(pod("b"))
	u.PodGone(pod("a"))
	if changes != 2 {
		t.Errorf("told of %d changes, want 2", changes)
	}
}

// The incremental sums equal a sum over all pods that are left, after any sequence of events and from several goroutines.
func TestUsageEqualsASumFromScratch(t *testing.T) {
	const goroutines, events, names = 4, 2000, 50
	u := NewUsage(nil)
	left := make([]map[types.NamespacedName]corev1.ResourceList, goroutines)
	var wg sync.WaitGroup
	for g := range goroutines {
		left[g] = map[types.NamespacedName]corev1.ResourceList{}
		wg.Go(func() {
			random := rand.New(rand.NewPCG(1, uint64(g)))
			for range events {
				key := types.NamespacedName{Namespace: fmt.Sprint(g), Name: fmt.Sprint(random.IntN(names))}
				if random.IntN(3) == 0 {
					u.PodGone(key)
					delete(left[g], key)
					continue
				}
				requests := list("cpu", fmt.Sprintf("%dm", random.IntN(3000)), "memory", fmt.Sprintf("%dMi", random.IntN(500)))
				if random.IntN(2) == 0 {
					requests["example.com/license"] = *resource.NewQuantity(int64(1+random.IntN(3)), resource.DecimalSI)
				}
				u.PodChanged(key, requests, 0, true)
				left[g][key] = requests
			}
		})
	}
	wg.Wait()
	want := list("cpu", "0", "memory", "0", "pods", "0")
	for g := range goroutines {
		for _, requests := range left[g] {
			addTo(want, requests)
			addTo(want, list("pods", "1"))
		}
	}
	wantSums(t, u, want)
}

func TestPodRequests(t *testing.T) {
	container := func(requests corev1.ResourceList) corev1.Container {
		return corev1.Container{Resources: corev1.ResourceRequirements{Requests: requests}}
	}
	for name, test := range map[string]struct {
		pod     corev1.Pod
		want    corev1.ResourceList
		counted bool
	}{
		"a pending pod counts": {
			pod:  corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{container(list("cpu", "1")), container(list("cpu", "2"))}}},
			want: list("cpu", "3"), counted: true,
		},
		"the largest init container counts if it is more": {
			pod: corev1.Pod{Spec: corev1.PodSpec{
				InitContainers: []corev1.Container{container(list("cpu", "4")), container(list("cpu", "1"))},
				Containers:     []corev1.Container{container(list("cpu", "1"))},
			}},
			want: list("cpu", "4"), counted: true,
		},
		"overhead counts": {
			pod: corev1.Pod{Spec: corev1.PodSpec{
				Containers: []corev1.Container{container(list("cpu", "1"))}, Overhead: list("cpu", "100m"),
			}},
			want: list("cpu", "1100m"), counted: true,
		},
		"a pod that has succeeded does not": {pod: corev1.Pod{Status: corev1.PodStatus{Phase: corev1.PodSucceeded}}},
		"a pod that has failed does not":    {pod: corev1.Pod{Status: corev1.PodStatus{Phase: corev1.PodFailed}}},
	} {
		t.Run(name, func(t *testing.T) {
			got, counted := PodRequests(&test.pod)
			if counted != test.counted || !equality.Semantic.DeepEqual(got, test.want) {
				t.Errorf("got %v, %v, want %v, %v", got, counted, test.want, test.counted)
			}
		})
	}
}

func BenchmarkPodChanged(b *testing.B) {
	u := NewUsage(nil)
	requests := [2]corev1.ResourceList{list("cpu", "100m", "memory", "64Mi"), list("cpu", "200m", "memory", "64Mi")}
	for i := range 10000 {
		u.PodChanged(pod(fmt.Sprint(i)), requests[0], 0, true)
	}
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		i++
		u.PodChanged(pod("1"), requests[i%2], 0, true)
	}
}
