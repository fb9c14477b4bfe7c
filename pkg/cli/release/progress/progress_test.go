package progress

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// now is the time at which everything here is looked at.
var now = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

func ago(d time.Duration) *metav1.Time { return ptr.To(metav1.NewTime(now.Add(-d))) }

func release(status v1alpha1.ReleaseStatus) *v1alpha1.Release {
	return &v1alpha1.Release{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-x2f"},
		Spec: v1alpha1.ReleaseSpec{Application: "web", Revision: "web-v8", TriggeredBy: v1alpha1.ReleaseTrigger{
			Cause: v1alpha1.CauseCommand, User: "alice", Message: "try it",
		}},
		Status: status,
	}
}

// stage is one with the defaults of a pipeline.
func stage(id, name string, phase v1alpha1.StagePhase, targets ...v1alpha1.StageTargetStatus) v1alpha1.StageStatus {
	s := v1alpha1.StageStatus{ID: id, Name: name, Phase: phase, Attempt: 1, Targets: targets}
	if phase != v1alpha1.StageNotStarted {
		s.StartTime = ago(2 * time.Minute)
	}
	if phase.Ended() {
		s.EndTime = ago(90 * time.Second)
	}
	return s
}

func target(name, cluster string, phase v1alpha1.TargetPhase, ready int32, message string) v1alpha1.StageTargetStatus {
	t := v1alpha1.StageTargetStatus{Name: name, Cluster: cluster, Phase: phase, Replicas: 3, Ready: ready, Message: message}
	if phase != v1alpha1.TargetPending {
		t.StartTime = ago(110 * time.Second)
	}
	return t
}

// hostile is what somebody says who wants to be obeyed or to fill the screen.
var hostile = "\x1b[2Jready\tyes\n✓ done" + strings.Repeat(" really", 200)

func running() *v1alpha1.Release {
	agree := stage("agree", v1alpha1.StageWaitApproval, v1alpha1.StageRunning)
	agree.Message, agree.Approvers = "waiting for 1 more approval", []string{"alice"}
	looked := stage("look", v1alpha1.StageAnalysis, v1alpha1.StageSucceeded)
	looked.Metrics = []v1alpha1.MetricStatus{{Name: "metrics-0", Checks: 3, Failures: 1, Message: "0.2 is more than 0.1"}}
	return release(v1alpha1.ReleaseStatus{
		Phase: v1alpha1.ReleaseRunning, StartTime: ago(3 * time.Minute), Message: "stage agree waits for approval",
		Plan: &v1alpha1.ReleasePlan{Strategy: v1alpha1.StrategyPipeline, Reason: "the pod template of Deployment web has changed"},
		Stages: []v1alpha1.StageStatus{
			stage("canary", v1alpha1.StageCanaryRollout, v1alpha1.StageSucceeded, target("hoge", "hoge", v1alpha1.TargetSucceeded, 3, "")),
			looked, agree,
			stage("rollout", v1alpha1.StagePrimaryRollout, v1alpha1.StageNotStarted),
		},
	})
}

func failed() *v1alpha1.Release {
	wave := target("eu", "west", v1alpha1.TargetPending, 0, "")
	wave.Wave = 1
	rollout := stage("rollout", v1alpha1.StagePrimaryRollout, v1alpha1.StageFailed,
		target("hoge", "hoge", v1alpha1.TargetSucceeded, 3, ""), target("eu", "east", v1alpha1.TargetFailed, 1, hostile),
		target("eu", "north", v1alpha1.TargetUnreachable, 0, "silent for 40s"), wave)
	rollout.Message, rollout.Attempt = "1 of 4 clusters has failed", 2
	r := release(v1alpha1.ReleaseStatus{
		Phase: v1alpha1.ReleaseRolledBack, StartTime: ago(3 * time.Minute), EndTime: ago(time.Minute), Message: "stage rollout failed",
		Plan: &v1alpha1.ReleasePlan{Strategy: v1alpha1.StrategyQuickSync},
		Stages: []v1alpha1.StageStatus{rollout, stage(v1alpha1.RollbackStageID, v1alpha1.StageRollback, v1alpha1.StageSucceeded,
			target("hoge", "hoge", v1alpha1.TargetSucceeded, 3, ""))},
	})
	r.Spec.Targets, r.Spec.RollbackOf = []string{"hoge", "eu"}, "web-old"
	r.Spec.TriggeredBy = v1alpha1.ReleaseTrigger{Cause: v1alpha1.CausePin, User: "system:manifold:controller:delivery"}
	return r
}

// wide has more clusters than fit on a screen.
func wide() *v1alpha1.Release {
	var targets []v1alpha1.StageTargetStatus
	for i := range 30 {
		t := target("all", fmt.Sprintf("c%02d", i), v1alpha1.TargetSucceeded, 3, "")
		switch {
		case i == 12:
			t.Phase, t.Message = v1alpha1.TargetFailed, "ImagePullBackOff"
		case i > 20:
			t = target("all", t.Cluster, v1alpha1.TargetPending, 0, "")
		}
		targets = append(targets, t)
	}
	return release(v1alpha1.ReleaseStatus{Phase: v1alpha1.ReleaseRunning, StartTime: ago(time.Minute), Stages: []v1alpha1.StageStatus{
		stage("rollout", v1alpha1.StagePrimaryRollout, v1alpha1.StageRunning, targets...),
	}})
}

func TestLines(t *testing.T) {
	for name, test := range map[string]struct {
		release *v1alpha1.Release
		rows    int
	}{
		"pending": {release: release(v1alpha1.ReleaseStatus{})},
		"running": {release: running()},
		"failed":  {release: failed()},
		"wide":    {release: wide(), rows: 23},
		"narrow":  {release: failed(), rows: 9},
	} {
		t.Run(name, func(t *testing.T) {
			lines := Lines(test.release, now, test.rows)
			if test.rows > 0 && len(lines) > test.rows {
				t.Errorf("%d lines, want %d at most", len(lines), test.rows)
			}
			golden(t, name, strings.Join(lines, "\n")+"\n")
		})
	}
}

// golden compares a text with the one in testdata.
func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name+".txt")
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestChanges(t *testing.T) {
	begun := running()
	begun.Status.Stages = begun.Status.Stages[:1]
	begun.Status.Stages[0] = stage("canary", v1alpha1.StageCanaryRollout, v1alpha1.StageRunning, target("hoge", "hoge", v1alpha1.TargetRunning, 1, "1 of 3 pods is ready"))
	retried := failed()
	retried.Status.Stages[0].Phase, retried.Status.Stages[0].Attempt = v1alpha1.StageRunning, 3
	for name, test := range map[string]struct {
		before, after *v1alpha1.Release
		want          []string
	}{
		"a release that nobody has looked at": {after: release(v1alpha1.ReleaseStatus{Phase: v1alpha1.ReleasePending}), want: []string{"release web-x2f Pending"}},
		"nothing new":                         {before: running(), after: running()},
		"its beginning": {before: release(v1alpha1.ReleaseStatus{Phase: v1alpha1.ReleasePending}), after: begun, want: []string{
			"release web-x2f Running: stage agree waits for approval",
			"… stage canary K8S_CANARY_ROLLOUT Running",
			"… stage canary, hoge Running, 1/3 ready: 1 of 3 pods is ready",
		}},
		"stages that end and begin": {before: begun, after: running(), want: []string{
			"✓ stage canary, hoge Succeeded, 3/3 ready",
			"✓ stage canary K8S_CANARY_ROLLOUT Succeeded after 30s",
			"✓ stage look ANALYSIS Succeeded after 30s: metrics-0: 1 of 3 checks failed: 0.2 is more than 0.1",
			"… stage agree WAIT_APPROVAL Running: waiting for 1 more approval; approved by alice",
		}},
		"another attempt": {before: failed(), after: retried, want: []string{
			"… stage rollout K8S_PRIMARY_ROLLOUT Running (attempt 3): 1 of 4 clusters has failed",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, Changes(test.before, test.after)); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestOutcome(t *testing.T) {
	many := wide()
	many.Status.Phase, many.Status.Stages[0].Phase = v1alpha1.ReleaseFailed, v1alpha1.StageFailed
	for i := range many.Status.Stages[0].Targets[:8] {
		many.Status.Stages[0].Targets[i].Phase = v1alpha1.TargetFailed
	}
	brief := failed()
	brief.Status.Stages[0].Targets[1].Message = "ImagePullBackOff"
	for name, test := range map[string]struct {
		release *v1alpha1.Release
		want    string
	}{
		"success is no error": {release: release(v1alpha1.ReleaseStatus{Phase: v1alpha1.ReleaseSucceeded})},
		"one that another has taken the place of": {
			release: release(v1alpha1.ReleaseStatus{Phase: v1alpha1.ReleaseSuperseded, Message: "web-x3a is newer"}),
			want:    "release web-x2f of web-v8: Superseded: web-x3a is newer",
		},
		"the stage and the clusters are named": {release: brief, want: `release web-x2f of web-v8: RolledBack: stage rollout failed
stage rollout K8S_PRIMARY_ROLLOUT failed: 1 of 4 clusters has failed
  eu in east: Failed: ImagePullBackOff
  eu in north: Unreachable: silent for 40s`},
		"not all of many are": {release: many, want: `release web-x2f of web-v8: Failed
stage rollout K8S_PRIMARY_ROLLOUT failed
  all in c00: Failed
  all in c01: Failed
  all in c02: Failed
  all in c03: Failed
  all in c04: Failed
  and 4 more: manifold release get web-x2f -n shop`},
	} {
		t.Run(name, func(t *testing.T) {
			got := ""
			if err := Outcome(test.release); err != nil {
				got = err.Error()
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestWhoHasApprovedIsToldOnce(t *testing.T) {
	for name, test := range map[string]struct {
		message   string
		approvers []string
		want      string
	}{
		"nobody yet":              {message: "waiting for approval: 0 of 1", want: "waiting for approval: 0 of 1"},
		"one of two":              {message: "waiting for approval: 1 of 2", approvers: []string{"alice"}, want: "waiting for approval: 1 of 2; approved by alice"},
		"as the message has it":   {message: "approved by alice, bob", approvers: []string{"alice", "bob"}, want: "approved by alice, bob"},
		"without another message": {approvers: []string{"alice"}, want: "approved by alice"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := stageMessage(&v1alpha1.StageStatus{Message: test.message, Approvers: test.approvers}); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}
