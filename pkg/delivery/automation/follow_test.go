package automation

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/delivery"
)

// regional is a target of the clusters of a region.
func regional(region string, follow v1alpha1.FollowPolicy) v1alpha1.Target {
	return v1alpha1.Target{Name: region, Follow: follow, ClusterSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"region": region}}}
}

// running has a release leave clusters that run revisions, each written TARGET@CLUSTER=REVISION.
func running(parts ...string) func(*v1alpha1.Release) {
	return func(r *v1alpha1.Release) {
		primary := v1alpha1.Variant{Name: v1alpha1.VariantPrimary}
		for _, part := range parts {
			where, revision, _ := strings.Cut(part, "=")
			target, cluster, _ := strings.Cut(where, "@")
			primary.Clusters = append(primary.Clusters, v1alpha1.VariantCluster{Target: target, Cluster: cluster, Revision: revision})
		}
		r.Status.Variants = []v1alpha1.Variant{primary}
	}
}

// to says which targets automation knew when it made a release.
func to(targets ...v1alpha1.Target) func(*v1alpha1.Release) {
	return func(r *v1alpha1.Release) {
		r.Annotations = map[string]string{v1alpha1.AnnotationTargets: Fingerprint(targets)}
	}
}

func TestWhatTargetsGetThatFollowTheirClustersAtOnce(t *testing.T) {
	eu, us, later := regional("eu", v1alpha1.FollowImmediately), regional("us", v1alpha1.FollowImmediately), regional("us", v1alpha1.FollowNextRelease)
	clusters := func(of ...string) map[string]delivery.Cluster {
		out := map[string]delivery.Cluster{}
		for _, one := range of {
			name, region, _ := strings.Cut(one, "=")
			out[name] = delivery.Cluster{Labels: map[string]string{"region": region}}
		}
		return out
	}
	done := func(phase v1alpha1.ReleasePhase, change ...func(*v1alpha1.Release)) []*v1alpha1.Release {
		return []*v1alpha1.Release{release("a", 11, 1, auto, phase, change...)}
	}
	both := []v1alpha1.Target{eu, us}
	for name, test := range map[string]struct {
		change   []func(*v1alpha1.Application)
		targets  []v1alpha1.Target
		clusters map[string]delivery.Cluster
		unready  string
		releases []*v1alpha1.Release
		// want is REVISION to TARGETS: MESSAGE.
		want string
	}{
		"nothing where all is as it was": {targets: both, clusters: clusters("a=eu"), releases: done(v1alpha1.ReleaseSucceeded, to(both...), running("eu@a=web-v1"))},
		"a cluster that has joined": {
			targets: both, clusters: clusters("a=eu", "b=eu"), releases: done(v1alpha1.ReleaseSucceeded, to(both...), running("eu@a=web-v1")),
			want: `web-v1 to eu: cluster "b" has joined target eu`,
		},
		"a cluster that has got other labels": {
			targets: both, clusters: clusters("a=eu", "b=asia"), releases: done(v1alpha1.ReleaseSucceeded, to(both...), running("eu@a=web-v1", "us@b=web-v1")),
			want: `web-v1 to us: cluster "b" has left target us`,
		},
		"the last one that leaves": {
			targets: []v1alpha1.Target{eu}, clusters: clusters("a=asia"), releases: done(v1alpha1.ReleaseSucceeded, to(eu), running("eu@a=web-v1")),
			want: `web-v1 to eu: cluster "a" has left target eu`,
		},
		"a cluster that is gone": {
			targets: both, clusters: clusters("a=eu"), releases: done(v1alpha1.ReleaseSucceeded, to(both...), running("eu@a=web-v1", "eu@b=web-v1")),
			want: `web-v1 to eu: cluster "b" has left target eu`,
		},
		"one that goes from one target to another": {
			targets: both, clusters: clusters("a=eu", "b=us"), releases: done(v1alpha1.ReleaseSucceeded, to(both...), running("eu@a=web-v1", "eu@b=web-v1")),
			want: `web-v1 to us: cluster "b" has joined target us`,
		},
		"several at once": {
			targets: both, clusters: clusters("a=eu", "b=us", "c=us"), releases: done(v1alpha1.ReleaseSucceeded, to(both...), running("eu@d=web-v1", "us@b=web-v1")),
			want: `web-v1 to eu,us: cluster "a" has joined target eu; cluster "d" has left target eu; cluster "c" has joined target us`,
		},
		"nothing of a target that waits for the next release": {
			targets: []v1alpha1.Target{eu, later}, clusters: clusters("a=eu", "b=us"), releases: done(v1alpha1.ReleaseSucceeded, to(eu, later), running("eu@a=web-v1")),
		},
		"nothing of one that joins and is not well yet": {
			targets: both, clusters: clusters("a=eu", "b=eu"), unready: "b", releases: done(v1alpha1.ReleaseSucceeded, to(both...), running("eu@a=web-v1")),
		},
		"also where releases are made by hand alone": {
			change: []func(*v1alpha1.Application){manual}, targets: both, clusters: clusters("a=eu", "b=eu"), releases: done(v1alpha1.ReleaseSucceeded, to(both...), running("eu@a=web-v1")),
			want: `web-v1 to eu: cluster "b" has joined target eu`,
		},
		"nothing while it is suspended": {
			change: []func(*v1alpha1.Application){suspended}, targets: both, clusters: clusters("a=eu", "b=eu"), releases: done(v1alpha1.ReleaseSucceeded, to(both...), running("eu@a=web-v1")),
		},
		"nothing before what is due anyway": {
			change: []func(*v1alpha1.Application){pinned("web-v2")}, targets: both, clusters: clusters("a=eu", "b=eu"), releases: done(v1alpha1.ReleaseSucceeded, to(both...), running("eu@a=web-v1")),
			want: "web-v2 to : the application is pinned to web-v2",
		},
		"what is pinned": {
			change: []func(*v1alpha1.Application){pinned("web-v1")}, targets: both, clusters: clusters("a=eu", "b=eu"), releases: done(v1alpha1.ReleaseSucceeded, to(both...), running("eu@a=web-v1")),
			want: `web-v1 to eu: cluster "b" has joined target eu`,
		},
		"nothing while a release is on its way":   {targets: both, clusters: clusters("a=eu", "b=eu"), releases: done(v1alpha1.ReleaseRunning, to(both...), running("eu@a=web-v1"))},
		"nothing while one waits":                 {targets: both, clusters: clusters("a=eu", "b=eu"), releases: append(done(v1alpha1.ReleaseSucceeded, to(both...), running("eu@a=web-v1")), release("b", 12, 1, command, v1alpha1.ReleasePending))},
		"nothing after one that has failed":       {targets: both, clusters: clusters("a=eu", "b=eu"), releases: done(v1alpha1.ReleaseFailed, to(both...), running("eu@a=web-v1"))},
		"nothing after one that somebody stopped": {targets: both, clusters: clusters("a=eu", "b=eu"), releases: done(v1alpha1.ReleaseCancelled, to(both...), running("eu@a=web-v1"))},
		"what was put back": {
			targets: both, clusters: clusters("a=eu", "b=eu"), releases: []*v1alpha1.Release{
				release("a", 11, 1, auto, v1alpha1.ReleaseSucceeded, to(both...), begunAs(1)),
				release("b", 21, 2, auto, v1alpha1.ReleaseRolledBack, to(both...), before("web-v1"), running("eu@a=web-v1"), begunAs(2)),
			},
			want: `web-v1 to eu: cluster "b" has joined target eu`,
		},
		"what somebody has released to the target alone": {
			targets: both, clusters: clusters("a=eu", "b=us", "c=us"), releases: []*v1alpha1.Release{
				release("a", 21, 2, auto, v1alpha1.ReleaseSucceeded, to(both...), begunAs(1)),
				release("b", 25, 1, command, v1alpha1.ReleaseSucceeded, partial, running("eu@a=web-v2", "us@b=web-v1"), begunAs(2)),
			},
			want: `web-v1 to us: cluster "c" has joined target us`,
		},
		"nothing where the clusters of a target differ": {
			targets: both, clusters: clusters("a=eu", "b=eu", "c=eu"), releases: done(v1alpha1.ReleaseSucceeded, to(both...), running("eu@a=web-v1", "eu@b=web-v2")),
		},
		"nothing while a target is nowhere": {
			targets: []v1alpha1.Target{eu, {Name: "x", Cluster: "mars"}}, clusters: clusters("a=eu", "b=eu"),
			releases: done(v1alpha1.ReleaseSucceeded, to(eu, v1alpha1.Target{Name: "x", Cluster: "mars"}), running("eu@a=web-v1")),
		},
		"nothing where placement decides":      {clusters: clusters("a=eu"), releases: done(v1alpha1.ReleaseSucceeded, running("default@b=web-v1"))},
		"nothing before anything was released": {targets: both, clusters: clusters("a=eu"), releases: done(v1alpha1.ReleaseFailed, to(both...), neverBegun)},
	} {
		t.Run(name, func(t *testing.T) {
			state := State{
				Application: application(test.change...), Targets: test.targets, Revisions: revisions(2), Releases: test.releases,
				Clusters: test.clusters, Unready: map[string]bool{test.unready: true},
			}
			if len(test.change) == 0 { // the newest revision is somebody's to release
				state.Application.Spec.Trigger.Mode = v1alpha1.TriggerManual
			}
			got, wrong := state.Next()
			said := ""
			if got != nil {
				said = got.Spec.Revision + " to " + strings.Join(got.Spec.Targets, ",") + ": " + got.Spec.TriggeredBy.Message
			}
			if said != test.want || wrong != "" {
				t.Fatalf("released is %q (%s), want %q", said, wrong, test.want)
			}
			if got == nil || len(got.Spec.Targets) == 0 {
				return
			}
			if !got.Follows() || got.Spec.Strategy != v1alpha1.StrategyQuickSync || got.Spec.TriggeredBy.Cause != v1alpha1.CauseTargets {
				t.Errorf("it is %+v", got)
			}
			if again, _ := state.Next(); again.Name != got.Name {
				t.Errorf("asked again it is called %s, and was %s", again.Name, got.Name)
			}
			// Whatever has come of it, it is not made twice, and nothing else is.
			for _, phase := range []v1alpha1.ReleasePhase{v1alpha1.ReleasePending, v1alpha1.ReleaseRunning, v1alpha1.ReleaseRolledBack, v1alpha1.ReleaseFailed} {
				made := got.DeepCopy()
				made.UID, made.CreationTimestamp, made.Status.Phase = types.UID("made"), at(30), phase
				if phase != v1alpha1.ReleasePending {
					made.Status.StartTime, made.Status.Sequence, made.Status.Variants = new(metav1.Time), 3, test.releases[len(test.releases)-1].Status.Variants
					*made.Status.StartTime = at(30)
				}
				state := state
				state.Releases = append(append([]*v1alpha1.Release(nil), test.releases...), made)
				if again, wrong := state.Next(); again != nil || wrong != "" {
					t.Errorf("after it is %s, released is %+v (%s)", phase, again, wrong)
				}
			}
		})
	}
}

func TestAClusterThatComesBackIsFollowedAgain(t *testing.T) {
	eu := regional("eu", v1alpha1.FollowImmediately)
	state := State{
		Application: application(manual), Targets: []v1alpha1.Target{eu}, Revisions: revisions(1),
		Releases: []*v1alpha1.Release{release("a", 11, 1, auto, v1alpha1.ReleaseSucceeded, to(eu), running("eu@a=web-v1"), begunAs(1))},
	}
	in, out := delivery.Cluster{Labels: map[string]string{"region": "eu"}}, delivery.Cluster{}
	names := map[string]bool{}
	for i, b := range []delivery.Cluster{in, out, in, out} {
		state.Clusters = map[string]delivery.Cluster{"a": in, "b": b}
		got, _ := state.Next()
		if got == nil || names[got.Name] {
			t.Fatalf("turn %d: released is %+v, want another release", i, got)
		}
		names[got.Name] = true
		got.UID, got.CreationTimestamp, got.Status.Phase = types.UID(got.Name), at(20+i), v1alpha1.ReleaseSucceeded
		got.Status.StartTime, got.Status.EndTime, got.Status.Sequence = &got.CreationTimestamp, &got.CreationTimestamp, int64(i+2)
		parts := []string{"eu@a=web-v1"}
		if b.Labels != nil {
			parts = append(parts, "eu@b=web-v1")
		}
		running(parts...)(got)
		state.Releases = append(state.Releases, got)
		if again, _ := state.Next(); again != nil {
			t.Fatalf("turn %d: then released is %+v", i, again)
		}
	}
}
