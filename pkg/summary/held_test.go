package summary

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/manifold-dev/manifold/pkg/placement"
)

// at makes a decision of replicas and revisions for east, west and north.
func at(replicas int32, revisions ...string) placement.Decision {
	out := placement.Decision{}
	for i, revision := range revisions {
		out[[]string{"east", "west", "north"}[i]] = placement.Share{Replicas: replicas, Revision: revision, Target: "eu"}
	}
	return out
}

func has(revision string) func(*Report) {
	return func(r *Report) { r.Revision, r.Target = revision, "eu" }
}

func TestAHeldClusterIsNotUpdated(t *testing.T) {
	for name, test := range map[string]struct {
		decision      placement.Decision
		reports       map[string]Report
		updated       int32
		reason, wants string
	}{
		"all have the revision of their shares": {
			decision: at(2, "web-v8", "web-v8"), updated: 4, reason: reasonComplete, wants: `Deployment "web" has successfully progressed.`,
			reports: map[string]Report{"east": and(done(2), has("web-v8")), "west": and(done(2), has("web-v8"))},
		},
		"one is held at an older one": {
			decision: at(2, "web-v8", "web-v7"), updated: 2, reason: reasonUpdated, wants: `Deployment "web" is held at web-v7 in west by Application web.`,
			reports: map[string]Report{"east": and(done(2), has("web-v8")), "west": and(done(2), has("web-v7"))},
		},
		"they are held at two": {
			decision: at(2, "web-v10", "web-v7", "web-v9"), updated: 2, reason: reasonUpdated,
			wants: `Deployment "web" is held at web-v7 in west and at web-v9 in north by Application web.`,
			reports: map[string]Report{
				"east": and(done(2), has("web-v10")), "west": and(done(2), has("web-v7")), "north": and(done(2), has("web-v9")),
			},
		},
		"one is let go and has not told that it has the new one": {
			decision: at(2, "web-v8", "web-v8"), updated: 2, reason: reasonUpdated, wants: `Deployment "web" is progressing.`,
			reports: map[string]Report{"east": and(done(2), has("web-v8")), "west": and(done(2), has("web-v7"))},
		},
		"one reports none": {
			decision: at(2, "web-v8", "web-v8"), updated: 2, reason: reasonUpdated, wants: `Deployment "web" is progressing.`,
			reports: map[string]Report{"east": and(done(2), has("web-v8")), "west": done(2)},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := Deployment(web(int32(test.decision.Total()), observed), Input{Decision: test.decision, Reports: test.reports, Now: now})
			if got.UpdatedReplicas != test.updated || got.ObservedGeneration != 2 {
				t.Errorf("%d updated replicas of generation %d, want %d of 2", got.UpdatedReplicas, got.ObservedGeneration, test.updated)
			}
			c := find(got.Conditions, appsv1.DeploymentProgressing)
			if c == nil || c.Status != corev1.ConditionTrue || c.Reason != test.reason || c.Message != test.wants {
				t.Errorf("condition %+v, want %s: %s", c, test.reason, test.wants)
			}
		})
	}
}

func TestTheBreakdownTellsRevisions(t *testing.T) {
	kind, _ := ForResource(deploymentKind.resource)
	got := kind.BreakdownOf(map[string]Report{"west": and(done(2), has("web-v7"))})
	if want := (ClusterStatus{Replicas: 2, Ready: 2, Available: 2, Updated: 2, Generation: 2, Revision: "web-v7", Target: "eu"}); got["west"] != want {
		t.Errorf("breakdown %+v, want %+v", got["west"], want)
	}
	if last := kind.LastKnown(got["west"]); last.Revision != "web-v7" || last.Target != "eu" {
		t.Errorf("a silent cluster is remembered with revision %q of %q", last.Revision, last.Target)
	}
	left, err := ParseBreakdown(Leaving("", at(2, "web-v7"), nil, 0))
	if err != nil || left["east"].Revision != "web-v7" || left["east"].Target != "eu" {
		t.Errorf("a cluster that leaves is remembered as %+v (%v)", left["east"], err)
	}
}

func TestManyHeldClustersAreNotAllNamed(t *testing.T) {
	decision := placement.Decision{"a": {Revision: "web-v8"}}
	for i := range 12 {
		decision["b"+string(rune('a'+i))] = placement.Share{Revision: "web-v7"}
	}
	w := wholeOf(Input{Decision: decision}, 1, 1, 0)
	if got, want := w.holds(), "held at web-v7 in ba, bb, bc, bd, be, bf, bg, bh, bi, bj and 2 more by Application web"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// What waits counts as no rollout that has come to its end, whatever the clusters say that a release has come to.
func TestWhatAwaitsAReleaseHasNotRolledOut(t *testing.T) {
	const awaits = "waits for the first release of Application web"
	for name, test := range map[string]struct {
		decision      placement.Decision
		reports       map[string]Report
		status        corev1.ConditionStatus
		reason, wants string
	}{
		"everywhere": {status: corev1.ConditionFalse, reason: ReasonAwaitsRelease, wants: awaits},
		"in one cluster, while another has it": {
			decision: at(2, "web-v1"), reports: map[string]Report{"east": and(done(2), has("web-v1"))},
			status: corev1.ConditionTrue, reason: reasonUpdated, wants: `Deployment "web" ` + awaits + ".",
		},
	} {
		t.Run(name, func(t *testing.T) {
			in := web(2)
			got := Deployment(in, Input{Decision: test.decision, Reports: test.reports, Awaits: awaits, Unplaced: "it is being placed", Now: now})
			c := find(got.Conditions, appsv1.DeploymentProgressing)
			if c == nil || c.Status != test.status || c.Reason != test.reason || c.Message != test.wants {
				t.Errorf("%+v, want %s with %q", c, test.reason, test.wants)
			}
			if got.ObservedGeneration >= in.Generation {
				t.Errorf("generation %d of %d counts as observed", got.ObservedGeneration, in.Generation)
			}
		})
	}
}
