package syncer

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/projection"
)

func TestAClusterThatReturnsIsFencedWhileItRunsWhatOthersDo(t *testing.T) {
	toEast := statefulSet("db", `{"east":{"replicas":3}}`, 3)
	reported := func(breakdown string) *appsv1.StatefulSet {
		above := statefulSet("db", `{"east":{"replicas":3}}`, 3)
		above.Annotations[v1alpha1.AnnotationStatus] = breakdown
		return above
	}
	was := projectedSet(toEast, 0, 3)
	emptied := projectedSet(toEast, 0, 0)
	const still = "replicas of StatefulSet shop/db that were given to other clusters still run there"
	for name, test := range map[string]struct {
		above *appsv1.StatefulSet
		// west is what the cluster holds that has returned, east the one that was given its replicas.
		west, east []projection.Object
		// unseen tells that east has not been seen yet.
		unseen bool
		want   string
	}{
		"it holds none of it":                                                {above: toEast, east: []projection.Object{projectedSet(toEast, 0, 3)}},
		"it is to run what the other runs":                                   {above: toEast, west: []projection.Object{was}, east: []projection.Object{projectedSet(toEast, 0, 3)}, want: still},
		"it is told to run nothing, and has done so":                         {above: toEast, west: []projection.Object{emptied}, east: []projection.Object{projectedSet(toEast, 0, 3)}},
		"a pod is left":                                                      {above: toEast, west: []projection.Object{emptied, podBelow(emptied, "db-2", "")}, east: []projection.Object{projectedSet(toEast, 0, 3)}, want: still},
		"the other has not been told to run anything":                        {above: toEast, west: []projection.Object{was}},
		"nobody has seen yet what the other runs, which has reported it":     {above: reported(`{"east":{"replicas":3}}`), west: []projection.Object{was}, unseen: true, want: still},
		"nobody has seen yet what the other runs, which has reported others": {above: reported(`{"east":{"replicas":3,"start":3}}`), west: []projection.Object{was}, unseen: true},
	} {
		t.Run(name, func(t *testing.T) {
			u := newUpstream(t, test.above)
			attach(t, u, "west", test.west...)
			if east := attach(t, u, "east", test.east...); test.unseen {
				east.synced.Store(false)
			}
			if got := u.Fence("west"); got != test.want && !(test.want != "" && strings.Contains(got, test.want)) {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
	u := newUpstream(t)
	attach(t, u, "west").synced.Store(false)
	if got := u.Fence("west"); !strings.Contains(got, "not been read yet") {
		t.Errorf("a cluster that has not been seen: %q", got)
	}
}
