package read

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/delivery"
)

func TestAStatusIsReadAsItWasWritten(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	web := map[string]int32{"Deployment/web": 2}
	set := delivery.Set{
		delivery.Primary: {Clusters: map[string]delivery.Part{"east": {Revision: delivery.Revision{Name: "web-v1", Hash: "a"}, Target: "eu", Traffic: 90, Routed: true}, "west": {Revision: delivery.Revision{Name: "web-v2", Hash: "b"}, Target: "us", Traffic: 100}}},
		delivery.Canary:  {Suffix: "new", Service: true, Patches: []v1alpha1.VariantPatch{{YAMLOps: []v1alpha1.VariantPatchOp{{Path: "$.a", Value: "b"}}}}, Clusters: map[string]delivery.Part{"east": {Revision: delivery.Revision{Name: "web-v2", Hash: "b"}, Target: "eu", Replicas: web, Traffic: 10, Routed: true}}},
	}
	full := delivery.Status{
		Phase: delivery.Running, Message: "a", Start: at, Targets: []delivery.Place{{Target: "eu", Cluster: "east"}, {Target: "eu", Cluster: "north"}, {Target: "us", Cluster: "west"}},
		Before: &set, Set: set, Edits: map[string]int64{"east": 3},
		Stages: []delivery.StageStatus{
			{ID: "a", Name: delivery.StageCanaryRollout, Phase: delivery.Running, Message: "b", Start: at, Attempt: 2, Targets: []delivery.TargetStatus{
				{Place: delivery.Place{Target: "eu", Cluster: "east"}, Phase: delivery.Running, Message: "c", Revision: "web-v2", Ready: true, Wave: 1, Start: at, Replicas: web, Pods: 1, Shares: map[string]int32{"canary": 10}, Progress: 7, Progressed: at, ReadySeen: at, Drained: at},
				{Place: delivery.Place{Target: "eu", Cluster: "north"}, Phase: delivery.Running, Silent: true, Start: at},
				{Place: delivery.Place{Target: "us", Cluster: "west"}, Phase: delivery.NotStarted, Silent: true},
				{Place: delivery.Place{Target: "us", Cluster: "south"}, Phase: delivery.NotStarted},
				{Place: delivery.Place{Target: "us", Cluster: "far"}, Phase: delivery.Failed, Start: at, End: at},
			}},
			{ID: "b", Name: delivery.StageAnalysis, Phase: delivery.Failed, Start: at, End: at, Metrics: map[string]delivery.MetricStatus{"metrics-0": {Checks: 3, Failures: 1, Last: at, Message: "d"}}},
			{ID: "c", Name: delivery.StageApproval, Phase: delivery.NotStarted, Approvers: []string{"jane"}},
		},
	}
	but := func(change func(*delivery.Status)) delivery.Status {
		out := full.Clone()
		change(&out)
		return out
	}
	back := func(phase delivery.Phase) []delivery.StageStatus {
		return []delivery.StageStatus{{ID: "rollback", Name: delivery.StageRollback, Phase: phase, Start: at, End: at}}
	}
	for name, test := range map[string]struct {
		status delivery.Status
		phase  v1alpha1.ReleasePhase
	}{
		"on its way":       {status: full, phase: v1alpha1.ReleaseRunning},
		"it has not begun": {status: delivery.Status{Phase: delivery.NotStarted, Set: delivery.Set{}}, phase: v1alpha1.ReleasePending},
		"a first one":      {status: but(func(s *delivery.Status) { s.Before = nil }), phase: v1alpha1.ReleaseRunning},
		"it has succeeded": {status: but(func(s *delivery.Status) { s.Phase, s.End = delivery.Succeeded, at }), phase: v1alpha1.ReleaseSucceeded},
		"it has failed":    {status: but(func(s *delivery.Status) { s.Phase, s.End = delivery.Failed, at }), phase: v1alpha1.ReleaseFailed},
		"it is rolled back": {status: but(func(s *delivery.Status) {
			s.Phase, s.Ending, s.Stages = delivery.RollingBack, delivery.Failed, back(delivery.Running)
		}), phase: v1alpha1.ReleaseRollingBack},
		"it was, since it had failed": {status: but(func(s *delivery.Status) {
			s.Phase, s.Ending, s.RolledBack, s.Stages = delivery.Failed, delivery.Failed, delivery.Succeeded, back(delivery.Succeeded)
		}), phase: v1alpha1.ReleaseRolledBack},
		"it was, since it was cancelled": {status: but(func(s *delivery.Status) {
			s.Phase, s.Ending, s.RolledBack, s.Stages = delivery.Cancelled, delivery.Cancelled, delivery.Succeeded, back(delivery.Succeeded)
		}), phase: v1alpha1.ReleaseRolledBack},
		"it could not be": {status: but(func(s *delivery.Status) {
			s.Phase, s.Ending, s.RolledBack, s.Stages = delivery.Failed, delivery.Failed, delivery.Failed, back(delivery.Failed)
		}), phase: v1alpha1.ReleaseFailed},
		"it was cancelled": {status: but(func(s *delivery.Status) { s.Phase, s.End = delivery.Cancelled, at }), phase: v1alpha1.ReleaseCancelled},
	} {
		t.Run(name, func(t *testing.T) {
			var written v1alpha1.ReleaseStatus
			Write(test.status, &written)
			if written.Phase != test.phase {
				t.Errorf("the phase is %s, want %s", written.Phase, test.phase)
			}
			if diff := cmp.Diff(test.status, Status(written)); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestWriteLeavesTheRestAlone(t *testing.T) {
	into := v1alpha1.ReleaseStatus{
		Plan:       &v1alpha1.ReleasePlan{Strategy: v1alpha1.StrategyPipeline, Targets: []v1alpha1.ResolvedTarget{{Name: "eu", Weight: ptr.To(int32(30))}}},
		Requests:   []v1alpha1.ReleaseRequest{{Type: v1alpha1.RequestCancel, User: "jane"}},
		Conditions: []metav1.Condition{{Type: v1alpha1.ReleaseComplete}}, BeforeRevision: "web-v1", ObservedGeneration: 2,
		Stages: []v1alpha1.StageStatus{{ID: "a", Metadata: map[string]string{"b": "c"}}},
	}
	Write(delivery.Status{Targets: []delivery.Place{{Target: "eu", Cluster: "east"}}, Stages: []delivery.StageStatus{{ID: "a"}}}, &into)
	if into.Plan.Strategy != v1alpha1.StrategyPipeline || *into.Plan.Targets[0].Weight != 30 || len(into.Plan.Targets[0].Clusters) != 1 || len(into.Requests) != 1 ||
		len(into.Conditions) != 1 || into.BeforeRevision != "web-v1" || into.ObservedGeneration != 2 || into.Stages[0].Metadata["b"] != "c" {
		t.Errorf("%+v", into)
	}
}

func TestPhasesThatOthersWrite(t *testing.T) {
	for phase, want := range map[v1alpha1.ReleasePhase]delivery.Phase{"": delivery.NotStarted, v1alpha1.ReleasePending: delivery.NotStarted, v1alpha1.ReleaseSuperseded: delivery.Cancelled} {
		if got := Status(v1alpha1.ReleaseStatus{Phase: phase}).Phase; got != want {
			t.Errorf("%q is %s, want %s", phase, got, want)
		}
	}
}

func TestWhatPluginsCouldNotTakeBackIsNotTakenBack(t *testing.T) {
	of := func(phase v1alpha1.StagePhase) v1alpha1.ReleaseStatus {
		return v1alpha1.ReleaseStatus{
			Phase: v1alpha1.ReleaseFailed, EndsAs: v1alpha1.ReleaseFailed,
			Plan:   &v1alpha1.ReleasePlan{Stages: []v1alpha1.Stage{{ID: "copy", Plugin: "toy"}, {ID: "undo", Plugin: "toy", Planned: &v1alpha1.PlannedStage{Rollback: true}}}},
			Stages: []v1alpha1.StageStatus{{ID: "copy", Name: "TOY", Phase: v1alpha1.StageFailed}, {ID: "rollback", Name: v1alpha1.StageRollback, Phase: v1alpha1.StageSucceeded}, {ID: "undo", Name: "TOY", Phase: phase}},
		}
	}
	for phase, want := range map[v1alpha1.StagePhase]delivery.Phase{
		v1alpha1.StageSucceeded: delivery.Succeeded, v1alpha1.StageSkipped: delivery.Succeeded, v1alpha1.StageFailed: delivery.Failed, v1alpha1.StageCancelled: delivery.Failed,
	} {
		if got := Status(of(phase)).RolledBack; got != want {
			t.Errorf("%s: %s, want %s", phase, got, want)
		}
	}
	forward := of(v1alpha1.StageSucceeded)
	forward.Phase, forward.Plan.Stages[1].Planned = v1alpha1.ReleaseSucceeded, nil
	forward.Stages = []v1alpha1.StageStatus{{ID: "undo", Name: v1alpha1.StageRollback, Phase: v1alpha1.StageSucceeded}}
	if got := Status(forward).RolledBack; got != "" {
		t.Errorf("a stage that is only called so counts as %s", got)
	}
}
