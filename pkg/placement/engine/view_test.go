package engine

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	testingclock "k8s.io/utils/clock/testing"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/clusters/status"
	"github.com/manifold-dev/manifold/pkg/placement"
)

// However clusters, requests and decisions change, a view shows what looking at everything anew shows.
func TestViewShowsWhatLookingAnewShows(t *testing.T) {
	r := rand.New(rand.NewPCG(11, 12))
	l := newLedger(testingclock.NewFakePassiveClock(start))
	requests := map[string]corev1.ResourceList{}
	v := newView(func(name string) (corev1.ResourceList, bool) { list, known := requests[name]; return list, known }, l)
	all := map[string]*v1alpha1.Cluster{}
	for round := range 2000 {
		name := fmt.Sprintf("c%d", r.IntN(6))
		switch r.IntN(5) {
		case 0:
			all[name] = joined(name, r.Int64N(9))
		case 1:
			delete(all, name)
		case 2:
			requests[name] = corev1.ResourceList{corev1.ResourceCPU: *resource.NewQuantity(r.Int64N(9), resource.DecimalSI)}
		case 3:
			delete(requests, name)
		case 4:
			l.expect(workload(fmt.Sprintf("w%d", r.IntN(4)), 3), placement.Decision{name: {Replicas: r.Int32N(4)}})
		}
		var list []*v1alpha1.Cluster
		var anew []placement.Cluster
		for name, c := range all {
			list = append(list, c)
			known, room := status.ForPlacement(c, requests[name])
			known.Free = room.Free(l.load(name))
			anew = append(anew, known)
		}
		got, want := v.of(list).Clusters(), placement.NewSnapshot(anew).Clusters()
		if len(got)+len(want) > 0 && !reflect.DeepEqual(got, want) {
			t.Fatalf("round %d: got %+v, want %+v", round, got, want)
		}
	}
}

func TestViewLooksOnlyAtWhatHasChanged(t *testing.T) {
	l := newLedger(testingclock.NewFakePassiveClock(start))
	v := newView(func(string) (corev1.ResourceList, bool) { return nil, false }, l)
	list := []*v1alpha1.Cluster{joined("east", 4), joined("west", 4)}
	before := v.of(list).Clusters()
	l.expect(workload("web", 1), placement.Decision{"east": {Replicas: 1}})
	after := v.of(list).Clusters()
	if after[0] == before[0] || after[1] != before[1] {
		t.Errorf("east is looked at anew: %t, want true; west: %t, want false", after[0] != before[0], after[1] != before[1])
	}
	if before[0].Free.Of(corev1.ResourceCPU) != 4000 || after[0].Free.Of(corev1.ResourceCPU) != 3000 {
		t.Errorf("free before %d and after %d, want 4000 and 3000", before[0].Free.Of(corev1.ResourceCPU), after[0].Free.Of(corev1.ResourceCPU))
	}
	w := workload("web", 1)
	l.set(refOf(w), entry{requests: w.Requests}, placement.Decision{"east": {Replicas: 1}}, nil)
	if shown := v.of(list).Clusters(); shown[0] != after[0] {
		t.Error("east is looked at anew when a watch shows what was expected")
	}
}
