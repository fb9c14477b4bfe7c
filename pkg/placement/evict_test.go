package placement

import (
	"maps"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
)

func TestLeave(t *testing.T) {
	now := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	ago := func(d time.Duration) *metav1.Time { return &metav1.Time{Time: now.Add(-d)} }
	drain := corev1.Taint{Key: v1alpha1.TaintDrain, Effect: corev1.TaintEffectNoExecute, TimeAdded: ago(time.Second)}
	forced := drain
	forced.Value = v1alpha1.DrainForce
	silent := func(name string, since time.Duration) Cluster {
		return Cluster{Facts: &Facts{Name: name, Ready: metav1.ConditionUnknown, Taints: []corev1.Taint{
			{Key: v1alpha1.TaintUnreachable, Effect: corev1.TaintEffectNoSchedule, TimeAdded: ago(since)},
			{Key: v1alpha1.TaintUnreachable, Effect: corev1.TaintEffectNoExecute, TimeAdded: ago(since)},
		}}}
	}
	ready := func(name string, taints ...corev1.Taint) Cluster {
		return Cluster{Facts: &Facts{Name: name, Ready: metav1.ConditionTrue, Taints: taints}}
	}
	back := func(name string, since time.Duration) Cluster {
		return Cluster{Facts: &Facts{Name: name, Ready: metav1.ConditionTrue, ReadySince: now.Add(-since)}}
	}
	joined := func(c Cluster, since time.Duration) Cluster {
		c.Joined = now.Add(-since)
		return c
	}
	others := []Cluster{ready("north"), ready("south")}
	set := func(names ...string) map[string]bool {
		out := map[string]bool{}
		for _, name := range names {
			out[name] = true
		}
		return out
	}
	for name, test := range map[string]struct {
		clusters          []Cluster
		division          Division
		once              bool
		elsewhere         bool
		now, lost, forced map[string]bool
		next              time.Duration // from now
	}{
		"a cluster without taints is not left":              {clusters: []Cluster{ready("east")}},
		"one that is drained is left at once":               {clusters: []Cluster{ready("east", drain)}, now: set("east")},
		"one that is drained by force is told":              {clusters: []Cluster{ready("east", forced)}, now: set("east"), forced: set("east")},
		"one that is drained is left by what is everywhere": {clusters: []Cluster{ready("east", drain)}, division: Everywhere, now: set("east")},
		"a taint against what is new drives nothing out": {clusters: []Cluster{
			ready("east", corev1.Taint{Key: "spot", Effect: corev1.TaintEffectNoSchedule}),
		}},
		"a taint that does not say since when has been there always": {clusters: []Cluster{
			ready("east", corev1.Taint{Key: "spot", Effect: corev1.TaintEffectNoExecute}),
		}, now: set("east")},
		"a silent cluster is tolerated for a while": {clusters: []Cluster{silent("east", time.Minute)}, next: 4 * time.Minute},
		"and then lost": {clusters: []Cluster{silent("east", 5*time.Minute)}, now: set("east"), lost: set("east")},
		"what may run only once waits for its return":    {clusters: []Cluster{silent("east", time.Hour)}, once: true},
		"one that is drained is left by such a workload": {clusters: []Cluster{ready("east", drain)}, once: true, now: set("east")},
		"what is everywhere waits for its return":        {clusters: []Cluster{silent("east", time.Hour)}, division: Everywhere},
		"what has nothing there need not leave":          {clusters: []Cluster{silent("east", time.Hour), ready("west", drain)}, elsewhere: true},
		"half of the clusters are not most":              {clusters: []Cluster{silent("east", time.Hour), silent("west", time.Hour)}, now: set("east"), lost: set("east")},
		"nobody leaves when most are silent":             {clusters: []Cluster{silent("east", time.Hour), silent("west", time.Hour), silent("mid", time.Hour)}},
		"one that is left silent by the others has its time from when they returned": {
			clusters: []Cluster{silent("east", time.Hour), silent("west", time.Hour), back("mid", time.Minute)}, next: 4 * time.Minute,
		},
		"though not each time that one more returns": {
			clusters: []Cluster{silent("east", time.Hour), back("west", time.Minute), back("mid", 6*time.Minute)}, now: set("east"), lost: set("east"),
		},
		"one that returns alone gives nobody time":                  {clusters: []Cluster{silent("east", time.Hour), back("west", time.Minute)}, now: set("east"), lost: set("east")},
		"one that has joined meanwhile was never silent":            {clusters: []Cluster{silent("east", time.Hour), back("west", time.Minute), joined(back("mid", time.Minute), time.Minute)}, now: set("east"), lost: set("east")},
		"unless they are drained as well, which is somebody's will": {clusters: []Cluster{func() Cluster { c := silent("east", time.Hour); c.Taints = append(c.Taints, drain); return c }(), silent("west", time.Hour), silent("mid", time.Hour)}, now: set("east")},
	} {
		t.Run(name, func(t *testing.T) {
			r := Request{Workload: Workload{Division: test.division, Once: test.once}, Current: shares("east", 3)}
			if test.elsewhere {
				r.Current = shares("north", 3)
			}
			got := NewSnapshot(append(test.clusters, others...)).Leave(&r, 5*time.Minute, now)
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

func TestWhatStartsOverLeavesWhatIsLostOrDrainedByForce(t *testing.T) {
	job := statefulSet(1).Workload
	job.GVK.Kind, job.Fixed = "Job", true
	both := snapshot(cluster("east", 4), cluster("west", 4))
	for name, test := range map[string]struct {
		restarts     bool
		lost, forced bool
		current      Decision
		want         Decision
	}{
		"a drain leaves it alone":             {restarts: true, current: shares("east", 1), want: shares("east", 1)},
		"a drain by force does not":           {restarts: true, forced: true, current: shares("east", 1), want: shares("west", 1)},
		"nor does the loss of its cluster":    {restarts: true, lost: true, current: shares("east", 1), want: shares("west", 1)},
		"what cannot start over stays":        {lost: true, current: shares("east", 1), want: shares("east", 1)},
		"and so does what has begun in parts": {restarts: true, lost: true, current: shares("east", 1, "west", 1), want: shares("east", 1, "west", 1)},
	} {
		t.Run(name, func(t *testing.T) {
			w, here := job, map[string]bool{"east": true}
			w.Restarts = test.restarts
			r := Request{Workload: w, Current: test.current, Evict: here}
			if test.lost {
				r.Lost = here
			}
			if test.forced {
				r.Forced = here
			}
			if got := Place(both, r); !got.Decision.Equal(test.want) {
				t.Errorf("got %v, want %v: %s", got.Decision, test.want, got.Message())
			}
		})
	}
}

func TestDepartureAndObstacle(t *testing.T) {
	r := deployment(2).Request
	r.Current, r.Evict = shares("east", 2), map[string]bool{"east": true}
	moved := Place(snapshot(cluster("east", 4), cluster("west", 4)), r)
	if got, want := moved.Departure(r.Current), `; moved off cluster "east", which is being emptied`; got != want {
		t.Errorf("departure %q, want %q", got, want)
	}
	if got := moved.Departure(moved.Decision); got != "" {
		t.Errorf("nothing has moved, but %q", got)
	}
	stuck := Place(snapshot(cluster("east", 4), cluster("west", 4).cordoned()), r)
	if got, want := stuck.Obstacle("east"), "1 is cordoned"; got != want {
		t.Errorf("obstacle %q, want %q", got, want)
	}
	if got, want := Place(snapshot(cluster("east", 4)), r).Obstacle("east"), "there is no other cluster"; got != want {
		t.Errorf("obstacle %q, want %q", got, want)
	}
}
