package rules

import (
	"maps"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/placement"
	"github.com/manifold-dev/manifold/pkg/placement/build"
)

func TestLeave(t *testing.T) {
	now := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	ago := func(d time.Duration) *metav1.Time { return &metav1.Time{Time: now.Add(-d)} }
	drain := corev1.Taint{Key: v1alpha1.TaintDrain, Effect: corev1.TaintEffectNoExecute, TimeAdded: ago(time.Second)}
	forced := drain
	forced.Value = v1alpha1.DrainForce
	silent := func(name string, since time.Duration) placement.Cluster {
		return placement.Cluster{Facts: &placement.Facts{Name: name, Ready: metav1.ConditionUnknown, Taints: []corev1.Taint{
			{Key: v1alpha1.TaintUnreachable, Effect: corev1.TaintEffectNoSchedule, TimeAdded: ago(since)},
			{Key: v1alpha1.TaintUnreachable, Effect: corev1.TaintEffectNoExecute, TimeAdded: ago(since)},
		}}}
	}
	ready := func(name string, taints ...corev1.Taint) placement.Cluster {
		return placement.Cluster{Facts: &placement.Facts{Name: name, Ready: metav1.ConditionTrue, Taints: taints}}
	}
	back := func(name string, since time.Duration) placement.Cluster {
		return placement.Cluster{Facts: &placement.Facts{Name: name, Ready: metav1.ConditionTrue, ReadySince: now.Add(-since)}}
	}
	joined := func(c placement.Cluster, since time.Duration) placement.Cluster {
		c.Joined = now.Add(-since)
		return c
	}
	others := []placement.Cluster{ready("north"), ready("south")}
	set := func(names ...string) map[string]bool {
		out := map[string]bool{}
		for _, name := range names {
			out[name] = true
		}
		return out
	}
	for name, test := range map[string]struct {
		clusters          []placement.Cluster
		division          placement.Division
		once              bool
		elsewhere         bool
		now, lost, forced map[string]bool
		next              time.Duration // from now
	}{
		"a cluster without taints is not left":              {clusters: []placement.Cluster{ready("east")}},
		"one that is drained is left at once":               {clusters: []placement.Cluster{ready("east", drain)}, now: set("east")},
		"one that is drained by force is told":              {clusters: []placement.Cluster{ready("east", forced)}, now: set("east"), forced: set("east")},
		"one that is drained is left by what is everywhere": {clusters: []placement.Cluster{ready("east", drain)}, division: placement.Everywhere, now: set("east")},
		"a taint against what is new drives nothing out": {clusters: []placement.Cluster{
			ready("east", corev1.Taint{Key: "spot", Effect: corev1.TaintEffectNoSchedule}),
		}},
		"a taint that does not say since when has been there always": {clusters: []placement.Cluster{
			ready("east", corev1.Taint{Key: "spot", Effect: corev1.TaintEffectNoExecute}),
		}, now: set("east")},
		"a silent cluster is tolerated for a while": {clusters: []placement.Cluster{silent("east", time.Minute)}, next: 4 * time.Minute},
		"and then lost": {clusters: []placement.Cluster{silent("east", 5*time.Minute)}, now: set("east"), lost: set("east")},
		"what may run only once waits for its return":    {clusters: []placement.Cluster{silent("east", time.Hour)}, once: true},
		"one that is drained is left by such a workload": {clusters: []placement.Cluster{ready("east", drain)}, once: true, now: set("east")},
		"what is everywhere waits for its return":        {clusters: []placement.Cluster{silent("east", time.Hour)}, division: placement.Everywhere},
		"what has nothing there need not leave":          {clusters: []placement.Cluster{silent("east", time.Hour), ready("west", drain)}, elsewhere: true},
		"half of the clusters are not most":              {clusters: []placement.Cluster{silent("east", time.Hour), silent("west", time.Hour)}, now: set("east"), lost: set("east")},
		"nobody leaves when most are silent":             {clusters: []placement.Cluster{silent("east", time.Hour), silent("west", time.Hour), silent("mid", time.Hour)}},
		"one that is left silent by the others has its time from when they returned": {
			clusters: []placement.Cluster{silent("east", time.Hour), silent("west", time.Hour), back("mid", time.Minute)}, next: 4 * time.Minute,
		},
		"though not each time that one more returns": {
			clusters: []placement.Cluster{silent("east", time.Hour), back("west", time.Minute), back("mid", 6*time.Minute)}, now: set("east"), lost: set("east"),
		},
		"one that returns alone gives nobody time":                  {clusters: []placement.Cluster{silent("east", time.Hour), back("west", time.Minute)}, now: set("east"), lost: set("east")},
		"one that has joined meanwhile was never silent":            {clusters: []placement.Cluster{silent("east", time.Hour), back("west", time.Minute), joined(back("mid", time.Minute), time.Minute)}, now: set("east"), lost: set("east")},
		"unless they are drained as well, which is somebody's will": {clusters: []placement.Cluster{func() placement.Cluster { c := silent("east", time.Hour); c.Taints = append(c.Taints, drain); return c }(), silent("west", time.Hour), silent("mid", time.Hour)}, now: set("east")},
	} {
		t.Run(name, func(t *testing.T) {
			r := placement.Request{Workload: placement.Workload{Division: test.division, Once: test.once}, Current: build.Shares("east", 3)}
			if test.elsewhere {
				r.Current = build.Shares("north", 3)
			}
			got := Leave(placement.NewSnapshot(append(test.clusters, others...)), &r, 5*time.Minute, now)
			if !maps.Equal(got.Now, test.now) || !maps.Equal(got.Lost, test.lost) || !maps.Equal(got.Forced, test.forced) {
				t.Errorf("got %+v, want now %v, lost %v, forced %v", got, test.now, test.lost, test.forced)
			}
			want := time.Time{}
			if test.next > 0 {
				want = now.Add(test.next)
			}
			if !got.Next.Equal(want) {
				t.Errorf("next is %v, want %v", got.Next, want)
			}
		})
	}
}
