package state

import (
	"fmt"
	"strings"
	"testing"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
)

// released is a release to east and west of target eu, and to north alone of target no.
func released(phase v1alpha1.ReleasePhase, revisions map[string]string) *v1alpha1.Release {
	out := &v1alpha1.Release{Spec: v1alpha1.ReleaseSpec{Revision: "web-v2"}, Status: v1alpha1.ReleaseStatus{Phase: phase}}
	out.Status.Plan = &v1alpha1.ReleasePlan{Targets: []v1alpha1.ResolvedTarget{{Name: "eu", Clusters: []string{"east", "west"}}}}
	variant := v1alpha1.Variant{Name: v1alpha1.VariantPrimary}
	for _, cluster := range []string{"east", "west"} {
		variant.Clusters = append(variant.Clusters, v1alpha1.VariantCluster{Target: "eu", Cluster: cluster, Revision: revisions[cluster]})
	}
	out.Status.Variants = []v1alpha1.Variant{variant}
	return out
}

var both = map[string]string{"east": "web-v2", "west": "web-v2"}

// runs has three replicas in a cluster, made of a revision.
func runs(revision string, change ...func(*Part)) Part {
	out := Part{Wanted: 3, Reported: true, Ready: 3, Updated: 3, Running: 3, Revision: revision}
	for _, c := range change {
		c(&out)
	}
	return out
}

func TestWhatATargetRuns(t *testing.T) {
	for name, test := range map[string]struct {
		release      *v1alpha1.Release
		east, west   *Part
		failed       string
		silent       map[string]bool
		drifted      map[string]string
		unclear      map[string]string
		nowhere      string
		ailing       map[string]Ailment
		live         string
		sync         v1alpha1.SyncStatus
		health       v1alpha1.HealthStatus
		wanted, runs string
		says         string
	}{
		"nothing before the first release": {sync: v1alpha1.SyncUnknown, health: v1alpha1.HealthUnknown, says: "nothing was released"},
		"the same everywhere": {
			release: released(v1alpha1.ReleaseSucceeded, both), east: part(runs("web-v2")), west: part(runs("web-v2")),
			sync: v1alpha1.Synced, health: v1alpha1.Healthy, wanted: "web-v2", runs: "web-v2",
		},
		"one wave is done, and the other waits for its turn": {
			release: released(v1alpha1.ReleaseRunning, map[string]string{"east": "web-v2", "west": "web-v1"}), east: part(runs("web-v2")), west: part(runs("web-v1")),
			sync: v1alpha1.Synced, health: v1alpha1.Healthy,
		},
		"a cluster is behind": {
			release: released(v1alpha1.ReleaseRunning, both), east: part(runs("web-v2")), west: part(runs("web-v1")),
			sync: v1alpha1.OutOfSync, health: v1alpha1.Healthy, wanted: "web-v2", says: "west: Deployment web is to be made of web-v2, and web-v1 was found",
		},
		"a cluster reports no revision, as right after a scale": {
			release: released(v1alpha1.ReleaseSucceeded, both), east: part(runs("web-v2")), west: part(runs("")),
			sync: v1alpha1.SyncUnknown, health: v1alpha1.Healthy, wanted: "web-v2", says: "west: Deployment web: which revision it is made of is not known yet",
		},
		"a cluster reports no revision, and an object of it is not what was released": {
			release: released(v1alpha1.ReleaseSucceeded, both), east: part(runs("web-v2")), west: part(runs("")), drifted: map[string]string{"west": "Service/web differs"},
			sync: v1alpha1.OutOfSync, health: v1alpha1.Healthy, wanted: "web-v2", says: "west: Service/web differs",
		},
		"a cluster lacks something beside its workload": {
			release: released(v1alpha1.ReleaseRunning, both), east: part(runs("web-v2")), west: part(runs("web-v2", func(p *Part) { p.Lacks = "Service web of web-v2 is not there: taken" })),
			sync: v1alpha1.OutOfSync, health: v1alpha1.Healthy, wanted: "web-v2", says: "west: Service web of web-v2 is not there: taken",
		},
		"pods are not ready": {
			release: released(v1alpha1.ReleaseRunning, both), east: part(runs("web-v2", func(p *Part) { p.Ready, p.Waits = 1, "room" })), west: part(runs("web-v2")),
			sync: v1alpha1.Synced, health: v1alpha1.Progressing, wanted: "web-v2", runs: "web-v2", says: "Deployment web: 1 of 3 replicas are ready: room",
		},
		"pods never become ready": {
			release: released(v1alpha1.ReleaseRunning, both), east: part(runs("web-v2", func(p *Part) { p.Ready = 1 })), west: part(runs("web-v2")), failed: "deadline exceeded",
			sync: v1alpha1.Synced, health: v1alpha1.Degraded, wanted: "web-v2", runs: "web-v2", says: "deadline exceeded",
		},
		"a cluster refuses it": {
			release: released(v1alpha1.ReleaseRunning, both), east: part(runs("web-v2", func(p *Part) { p.Problem = "quota\x1b[31m" })), west: part(runs("web-v2")),
			sync: v1alpha1.Synced, health: v1alpha1.Degraded, wanted: "web-v2", runs: "web-v2", says: "east: Deployment web: quota^[[31m",
		},
		"a cluster has not got it": {
			release: released(v1alpha1.ReleaseRunning, both), east: part(Part{Wanted: 3}), west: part(runs("web-v2")),
			sync: v1alpha1.SyncUnknown, health: v1alpha1.Missing, wanted: "web-v2", says: "east: Deployment web is not there yet",
		},
		"a silent cluster makes its own part unknown": {
			release: released(v1alpha1.ReleaseRunning, both), east: part(runs("web-v2")), west: part(runs("web-v2")), silent: map[string]bool{"west": true},
			sync: v1alpha1.SyncUnknown, health: v1alpha1.Healthy, wanted: "web-v2", says: `cluster "west" does not answer`,
		},
		"what was heard last of a silent cluster proves nothing": {
			release: released(v1alpha1.ReleaseRunning, both), east: part(runs("web-v2")), west: part(runs("web-v1", func(p *Part) { p.Stale = true })),
			sync: v1alpha1.SyncUnknown, health: v1alpha1.Healthy, wanted: "web-v2", says: "does not answer",
		},
		"an object of a cluster is not what was released": {
			release: released(v1alpha1.ReleaseSucceeded, both), east: part(runs("web-v2")), west: part(runs("web-v2")), drifted: map[string]string{"west": "Service/web differs"},
			sync: v1alpha1.OutOfSync, health: v1alpha1.Healthy, wanted: "web-v2", runs: "web-v2", says: "west: Service/web differs",
		},
		"of what has no workloads likewise": {
			release: released(v1alpha1.ReleaseSucceeded, both), live: "web-v2", drifted: map[string]string{"west": "ConfigMap/web differs"},
			sync: v1alpha1.OutOfSync, health: v1alpha1.Healthy, wanted: "web-v2", runs: "web-v2", says: "west: ConfigMap/web differs",
		},
		"a silent cluster is never out of sync": {
			release: released(v1alpha1.ReleaseSucceeded, both), east: part(runs("web-v2")), west: part(runs("web-v2")), drifted: map[string]string{"west": "Service/web differs"},
			silent: map[string]bool{"west": true},
			sync:   v1alpha1.SyncUnknown, health: v1alpha1.Healthy, wanted: "web-v2", says: `cluster "west" does not answer`,
		},
		"another revision says more than a field": {
			release: released(v1alpha1.ReleaseRunning, both), east: part(runs("web-v2")), west: part(runs("web-v1")), drifted: map[string]string{"west": "Service/web differs"},
			sync: v1alpha1.OutOfSync, health: v1alpha1.Healthy, wanted: "web-v2", says: "and web-v1 was found",
		},
		"what cannot be compared is unknown": {
			release: released(v1alpha1.ReleaseSucceeded, both), east: part(runs("web-v2")), west: part(runs("web-v2")), unclear: map[string]string{"west": "Service/web cannot be compared"},
			sync: v1alpha1.SyncUnknown, health: v1alpha1.Healthy, wanted: "web-v2", runs: "web-v2", says: "west: Service/web cannot be compared",
		},
		"an object that is no workload is not well": {
			release: released(v1alpha1.ReleaseSucceeded, both), east: part(runs("web-v2")), west: part(runs("web-v2")),
			ailing: map[string]Ailment{"west": {v1alpha1.Degraded, "Gizmo/one: no right"}},
			sync:   v1alpha1.Synced, health: v1alpha1.Degraded, wanted: "web-v2", runs: "web-v2", says: "west: Gizmo/one: no right",
		},
		"nor is one beside no workload": {
			release: released(v1alpha1.ReleaseSucceeded, both), live: "web-v2", ailing: map[string]Ailment{"west": {v1alpha1.Progressing, "Gizmo/one: Ready=False"}},
			sync: v1alpha1.Synced, health: v1alpha1.Progressing, wanted: "web-v2", runs: "web-v2", says: "west: Gizmo/one: Ready=False",
		},
		"a workload that is worse says more": {
			release: released(v1alpha1.ReleaseSucceeded, both), east: part(runs("web-v2", func(p *Part) { p.Problem = "quota" })), west: part(runs("web-v2")),
			ailing: map[string]Ailment{"east": {v1alpha1.Progressing, "Gizmo/one: Ready=False"}},
			sync:   v1alpha1.Synced, health: v1alpha1.Degraded, wanted: "web-v2", runs: "web-v2", says: "east: Deployment web: quota",
		},
		"what has no workloads goes by its release": {
			release: released(v1alpha1.ReleaseSucceeded, both), live: "web-v2", sync: v1alpha1.Synced, health: v1alpha1.Healthy, wanted: "web-v2", runs: "web-v2",
		},
		"what of that is in no cluster is said": {
			release: released(v1alpha1.ReleaseSucceeded, both), live: "web-v2", nowhere: "in no cluster: ConfigMap/web", sync: v1alpha1.Synced, health: v1alpha1.Healthy, wanted: "web-v2", runs: "web-v2",
			says: "in no cluster: ConfigMap/web",
		},
		"what has no workloads is not known before": {
			release: released(v1alpha1.ReleaseRunning, both), live: "web-v1", sync: v1alpha1.SyncUnknown, health: v1alpha1.HealthUnknown, wanted: "web-v2", says: "nothing of it reports",
		},
	} {
		t.Run(name, func(t *testing.T) {
			workload := Workload{Name: "Deployment web", Failed: test.failed, Clusters: map[string]Part{}}
			for cluster, of := range map[string]*Part{"east": test.east, "west": test.west} {
				if of != nil {
					workload.Clusters[cluster] = *of
				}
			}
			got := Targets([]v1alpha1.Target{{Name: "eu"}}, World{Release: test.release, Live: test.live, Workloads: []Workload{workload}, Silent: test.silent, Drifted: test.drifted, Ailing: test.ailing, Unclear: test.unclear, Nowhere: test.nowhere})
			if len(got) != 1 {
				t.Fatalf("%d targets, want 1", len(got))
			}
			if got[0].Sync != test.sync || got[0].Health != test.health || got[0].Revision != test.wanted || got[0].LiveRevision != test.runs {
				t.Errorf("%s, %s, wanted %q, live %q; want %s, %s, %q, %q", got[0].Sync, got[0].Health, got[0].Revision, got[0].LiveRevision, test.sync, test.health, test.wanted, test.runs)
			}
			if !strings.Contains(got[0].Message, test.says) || test.says == "" && got[0].Message != "" {
				t.Errorf("it says %q, want %q", got[0].Message, test.says)
			}
		})
	}
}

func part(of Part) *Part { return &of }

// A target that is none any more is told of as long as something of the application runs there.
func TestATargetThatWasDroppedIsToldOf(t *testing.T) {
	in := func(clusters ...string) []Workload {
		of := Workload{Name: "Deployment web", Clusters: map[string]Part{}}
		for _, cluster := range clusters {
			of.Clusters[cluster] = runs("web-v2")
		}
		return []Workload{of}
	}
	us := released(v1alpha1.ReleaseRunning, both)
	us.Status.Plan.Targets = []v1alpha1.ResolvedTarget{{Name: "us", Clusters: []string{"east", "west"}}}
	us.Status.Variants[0].Clusters[0].Target = "us"
	unplanned := released(v1alpha1.ReleaseFailed, both)
	unplanned.Status.Plan = nil
	behind := in("east", "west")
	behind[0].Clusters["west"] = runs("web-v1")
	for name, test := range map[string]struct {
		release   *v1alpha1.Release
		workloads []Workload
		want      string
	}{
		"while it runs":                          {released(v1alpha1.ReleaseSucceeded, both), in("east", "west"), "us:  Unknown; eu: east west Synced east: dropped"},
		"while it runs in one of its clusters":   {released(v1alpha1.ReleaseSucceeded, both), in("west"), "us:  Unknown; eu: west Synced west: dropped"},
		"with what is wrong there":               {released(v1alpha1.ReleaseSucceeded, both), behind, "us:  Unknown; eu: east west OutOfSync east: dropped"},
		"where nothing reports, by its release":  {released(v1alpha1.ReleaseSucceeded, both), nil, "us:  Unknown; eu: east west Synced east: dropped"},
		"after one that could not begin":         {unplanned, in("east", "west"), "us:  Unknown; eu: east west Synced east: dropped"},
		"not once nothing of it is left":         {released(v1alpha1.ReleaseSucceeded, both), in("north"), "us:  Unknown"},
		"as far as no other target has them":     {us, in("east", "west"), "us: east Synced; eu: west Synced west: dropped"},
		"nor is there one before anything began": {nil, nil, "us:  Unknown"},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, target := range Targets([]v1alpha1.Target{{Name: "us"}}, World{Release: test.release, Live: "web-v2", Workloads: test.workloads, Dropped: "dropped"}) {
				var clusters []string
				for _, cluster := range target.Clusters {
					clusters = append(clusters, cluster.Name)
				}
				if len(clusters) == 0 {
					target.Message = ""
				}
				got = append(got, strings.TrimSuffix(fmt.Sprintf("%s: %s %s %s", target.Name, strings.Join(clusters, " "), target.Sync, target.Message), " "))
			}
			if got := strings.Join(got, "; "); got != test.want {
				t.Errorf("%q, want %q", got, test.want)
			}
		})
	}
	told := Targets(nil, World{Release: released(v1alpha1.ReleaseSucceeded, both), Workloads: behind, Dropped: "dropped"})
	if got := told[0].Clusters[1].Message; !strings.HasPrefix(got, "dropped; Deployment web is to be made of web-v2") {
		t.Errorf("of west it says %q", got)
	}
}

func TestHowSeveralAreTogether(t *testing.T) {
	if got := Sync(nil); got != v1alpha1.SyncUnknown {
		t.Errorf("none together are %s", got)
	}
	if got := Sync([]v1alpha1.SyncStatus{v1alpha1.SyncUnknown, v1alpha1.OutOfSync, v1alpha1.Synced}); got != v1alpha1.OutOfSync {
		t.Errorf("one that is out of sync makes it %s", got)
	}
	if got := Health([]v1alpha1.HealthStatus{v1alpha1.HealthUnknown, v1alpha1.Healthy}); got != v1alpha1.Healthy {
		t.Errorf("what is known makes it %s", got)
	}
}

// What is ready is counted in each cluster, and of one that is silent nothing is known to be.
func TestReadyPodsAreCounted(t *testing.T) {
	half := Workload{Name: "Deployment web", Clusters: map[string]Part{"east": runs("web-v2", func(p *Part) { p.Ready = 1 }), "west": runs("web-v2")}}
	whole := Workload{Name: "StatefulSet db", Clusters: map[string]Part{"east": runs("web-v2")}}
	got := Targets([]v1alpha1.Target{{Name: "eu"}}, World{Release: released(v1alpha1.ReleaseSucceeded, both), Workloads: []Workload{half, whole}, Silent: map[string]bool{"west": true}})
	east, west := got[0].Clusters[0], got[0].Clusters[1]
	if east.Ready != 4 || east.Replicas != 6 || west.Ready != 0 || west.Replicas != 3 {
		t.Errorf("east has %d of %d, west %d of %d; want 4 of 6 and 0 of 3", east.Ready, east.Replicas, west.Ready, west.Replicas)
	}
}
