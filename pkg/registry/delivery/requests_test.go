package delivery

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
)

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

// waiting is a release whose stages have these phases: a rollout, an approval that alice, bob and the group sre may give, and a script.
func waiting(phase v1alpha1.ReleasePhase, phases ...v1alpha1.StagePhase) *v1alpha1.Release {
	release := &v1alpha1.Release{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-x2f"},
		Status: v1alpha1.ReleaseStatus{Phase: phase, Plan: &v1alpha1.ReleasePlan{
			Targets: []v1alpha1.ResolvedTarget{{Name: "east", Clusters: []string{"east"}}, {Name: "west", Clusters: []string{"west"}}},
			Stages: []v1alpha1.Stage{
				{Name: v1alpha1.StagePrimaryRollout, ID: "rollout"},
				{Name: v1alpha1.StageWaitApproval, ID: "agree", With: &runtime.RawExtension{Raw: []byte(`{"approvers":["alice","user:bob","group:sre"],"expiry":"1h"}`)}},
				{Name: v1alpha1.StageScriptRun, ID: "script"},
			},
		}},
	}
	for i, stage := range release.Status.Plan.Stages {
		release.Status.Stages = append(release.Status.Stages, v1alpha1.StageStatus{ID: stage.ID, Name: stage.Name, Phase: phases[i], Attempt: 2})
	}
	return release
}

// approving is a release that waits for approval.
func approving() *v1alpha1.Release {
	return waiting(v1alpha1.ReleaseRunning, v1alpha1.StageSucceeded, v1alpha1.StageRunning, v1alpha1.StageNotStarted)
}

// leaving is one that leaves a cluster of a target that the application has no more.
func leaving() *v1alpha1.Release {
	release := approving()
	release.Status.Stages[0].Targets = []v1alpha1.StageTargetStatus{{Name: "north", Cluster: "north", Retired: true}}
	return release
}

// nowhere is one that has failed before it came to any target.
func nowhere() *v1alpha1.Release {
	release := broken()
	release.Status.Plan.Targets = nil
	return release
}

func broken() *v1alpha1.Release {
	return waiting(v1alpha1.ReleaseFailed, v1alpha1.StageFailed, v1alpha1.StageNotStarted, v1alpha1.StageNotStarted)
}

// played is a release whose stages plugins run: one that waits for alice, one that may be left out, and one that takes back.
func played(phase v1alpha1.ReleasePhase, phases ...v1alpha1.StagePhase) *v1alpha1.Release {
	release := waiting(phase, phases...)
	for i, planned := range []*v1alpha1.PlannedStage{
		{Operation: v1alpha1.PluginApprove, Approvers: []string{"alice"}}, {Operation: v1alpha1.PluginSkip}, {Rollback: true},
	} {
		stage, of := &release.Status.Plan.Stages[i], &release.Status.Stages[i]
		stage.Plugin, stage.With, stage.Planned = "toy", nil, planned
		stage.ID, stage.Name = []string{"ask", "play", "undo"}[i], []string{"TOY_ASK", v1alpha1.StageWaitApproval, "TOY_UNDO"}[i]
		of.ID, of.Name = stage.ID, stage.Name
	}
	return release
}

func asking() *v1alpha1.Release {
	return played(v1alpha1.ReleaseRunning, v1alpha1.StageRunning, v1alpha1.StageNotStarted, v1alpha1.StageNotStarted)
}

func playing() *v1alpha1.Release {
	return played(v1alpha1.ReleaseRunning, v1alpha1.StageSucceeded, v1alpha1.StageRunning, v1alpha1.StageNotStarted)
}

func undoing() *v1alpha1.Release {
	return played(v1alpha1.ReleaseRollingBack, v1alpha1.StageSucceeded, v1alpha1.StageFailed, v1alpha1.StageRunning)
}

// unplaced is one that has come to a plugin and to no cluster.
func unplaced() *v1alpha1.Release {
	release := played(v1alpha1.ReleaseFailed, v1alpha1.StageFailed, v1alpha1.StageNotStarted, v1alpha1.StageNotStarted)
	release.Status.Plan.Targets, release.Status.Stages[0].StartTime = nil, &metav1.Time{Time: noon}
	return release
}

func in(phase v1alpha1.ReleasePhase) *v1alpha1.Release {
	return waiting(phase, v1alpha1.StageSucceeded, v1alpha1.StageSucceeded, v1alpha1.StageSucceeded)
}

func TestRecord(t *testing.T) {
	const approve, cancel, skip, retry, rollback = v1alpha1.RequestApprove, v1alpha1.RequestCancel, v1alpha1.RequestSkip, v1alpha1.RequestRetry, v1alpha1.RequestRollback
	for name, test := range map[string]struct {
		release *v1alpha1.Release
		asked   v1alpha1.ReleaseRequest
		want    string // the stage and attempt that are recorded
		refusal string
	}{
		"an approver by name":         {release: approving(), asked: v1alpha1.ReleaseRequest{Type: approve, User: "alice"}, want: "agree 2"},
		"an approver as a user":       {release: approving(), asked: v1alpha1.ReleaseRequest{Type: approve, User: "bob", Stage: "agree"}, want: "agree 2"},
		"an approver by their group":  {release: approving(), asked: v1alpha1.ReleaseRequest{Type: approve, User: "carol", Groups: []string{"dev", "sre"}}, want: "agree 2"},
		"somebody else":               {release: approving(), asked: v1alpha1.ReleaseRequest{Type: approve, User: "mallory", Groups: []string{"dev"}}, refusal: `"mallory" is not among the approvers of stage agree`},
		"a user called like a group":  {release: approving(), asked: v1alpha1.ReleaseRequest{Type: approve, User: "sre"}, refusal: "is not among the approvers"},
		"a user called like an entry": {release: approving(), asked: v1alpha1.ReleaseRequest{Type: approve, User: "group:sre"}, refusal: "is not among the approvers"},
		"a group called like a user":  {release: approving(), asked: v1alpha1.ReleaseRequest{Type: approve, User: "carol", Groups: []string{"alice"}}, refusal: "is not among the approvers"},
		"a stage that is no approval": {release: approving(), asked: v1alpha1.ReleaseRequest{Type: approve, User: "alice", Stage: "rollout"}, refusal: "stage rollout (K8S_PRIMARY_ROLLOUT, Succeeded) is not one that waits for approval"},
		"a stage that there isn't":    {release: approving(), asked: v1alpha1.ReleaseRequest{Type: approve, User: "alice", Stage: "lunch"}, refusal: `stage: Not found: "lunch"`},
		"an approval ahead of time":   {release: broken(), asked: v1alpha1.ReleaseRequest{Type: approve, User: "alice", Stage: "agree"}, refusal: "stage agree (WAIT_APPROVAL, NotStarted) is not one that waits for approval"},
		"nothing to approve":          {release: broken(), asked: v1alpha1.ReleaseRequest{Type: approve, User: "alice"}, refusal: "no stage waits for approval"},

		"a stage of a plugin by whom it names":      {release: asking(), asked: v1alpha1.ReleaseRequest{Type: approve, User: "alice"}, want: "ask 2"},
		"and by nobody else":                        {release: asking(), asked: v1alpha1.ReleaseRequest{Type: approve, User: "mallory"}, refusal: `"mallory" is not among the approvers of stage ask`},
		"one that does not ask, whatever its name":  {release: playing(), asked: v1alpha1.ReleaseRequest{Type: approve, User: "alice"}, refusal: "no stage waits for approval"},
		"one that a plugin runs may be skipped":     {release: playing(), asked: v1alpha1.ReleaseRequest{Type: skip, Stage: "play"}, want: "play 2"},
		"but not in one target":                     {release: playing(), asked: v1alpha1.ReleaseRequest{Type: skip, Stage: "play", Targets: []string{"east"}}, refusal: "targets: Forbidden"},
		"nor one that asks people":                  {release: asking(), asked: v1alpha1.ReleaseRequest{Type: skip, Stage: "ask"}, refusal: "TOY_ASK cannot be skipped"},
		"one that takes back may be, while it does": {release: undoing(), asked: v1alpha1.ReleaseRequest{Type: skip, Stage: "undo"}, want: "undo 2"},
		"another one may not then":                  {release: undoing(), asked: v1alpha1.ReleaseRequest{Type: skip, Stage: "play"}, refusal: "it goes through no stages any more, it is RollingBack"},
		"what a plugin has begun is taken back":     {release: unplaced(), asked: v1alpha1.ReleaseRequest{Type: rollback}, want: " 0"},

		"a release on its way is cancelled":   {release: approving(), asked: v1alpha1.ReleaseRequest{Type: cancel, User: "dave"}, want: " 0"},
		"a release that waits is cancelled":   {release: in(v1alpha1.ReleasePending), asked: v1alpha1.ReleaseRequest{Type: cancel, User: "dave"}, want: " 0"},
		"a release that has ended is not":     {release: in(v1alpha1.ReleaseSucceeded), asked: v1alpha1.ReleaseRequest{Type: cancel}, refusal: "it cannot be cancelled any more, it is Succeeded"},
		"a release that is taken back is not": {release: in(v1alpha1.ReleaseRollingBack), asked: v1alpha1.ReleaseRequest{Type: cancel}, refusal: "it is RollingBack"},

		"a stage that is to come is skipped":   {release: approving(), asked: v1alpha1.ReleaseRequest{Type: skip, Stage: "script"}, want: "script 2"},
		"a target of it is skipped":            {release: approving(), asked: v1alpha1.ReleaseRequest{Type: skip, Stage: "script", Targets: []string{"east"}}, want: "script 2"},
		"a target that there isn't":            {release: approving(), asked: v1alpha1.ReleaseRequest{Type: skip, Stage: "script", Targets: []string{"east", "mars"}}, refusal: `targets[1]: Not found: "mars"`},
		"a cluster that is left is skipped":    {release: leaving(), asked: v1alpha1.ReleaseRequest{Type: skip, Stage: "script", Targets: []string{"north"}}, want: "script 2"},
		"an approval is not skipped":           {release: approving(), asked: v1alpha1.ReleaseRequest{Type: skip, Stage: "agree"}, refusal: "WAIT_APPROVAL cannot be skipped"},
		"a stage that is done is not":          {release: approving(), asked: v1alpha1.ReleaseRequest{Type: skip, Stage: "rollout"}, refusal: "is not one that is still to be done"},
		"no stage at all":                      {release: approving(), asked: v1alpha1.ReleaseRequest{Type: skip}, refusal: "stage: Required value"},
		"a stage of a release that has failed": {release: broken(), asked: v1alpha1.ReleaseRequest{Type: skip, Stage: "script"}, refusal: "it goes through no stages any more, it is Failed"},

		"the stage that failed is retried":  {release: broken(), asked: v1alpha1.ReleaseRequest{Type: retry}, want: "rollout 2"},
		"some targets of it are":            {release: broken(), asked: v1alpha1.ReleaseRequest{Type: retry, Stage: "rollout", Targets: []string{"west"}}, want: "rollout 2"},
		"a stage that did not fail is not":  {release: broken(), asked: v1alpha1.ReleaseRequest{Type: retry, Stage: "agree"}, refusal: "is not one that has failed"},
		"nothing has failed":                {release: approving(), asked: v1alpha1.ReleaseRequest{Type: retry}, refusal: "no stage has failed"},
		"what is superseded is not retried": {release: in(v1alpha1.ReleaseSuperseded), asked: v1alpha1.ReleaseRequest{Type: retry}, refusal: "nothing of it can be retried, it is Superseded"},

		"a release that runs is taken back":     {release: approving(), asked: v1alpha1.ReleaseRequest{Type: rollback}, want: " 0"},
		"a release that has succeeded is":       {release: in(v1alpha1.ReleaseSucceeded), asked: v1alpha1.ReleaseRequest{Type: rollback}, want: " 0"},
		"a release that has not begun is not":   {release: in(v1alpha1.ReleasePending), asked: v1alpha1.ReleaseRequest{Type: rollback}, refusal: "it has not begun"},
		"a release that came nowhere is not":    {release: nowhere(), asked: v1alpha1.ReleaseRequest{Type: rollback}, refusal: "it has come to no cluster"},
		"a release that was taken back is not":  {release: in(v1alpha1.ReleaseRolledBack), asked: v1alpha1.ReleaseRequest{Type: rollback}, refusal: "it cannot be taken back, it is RolledBack"},
		"a comment that nobody reads to an end": {release: approving(), asked: v1alpha1.ReleaseRequest{Type: cancel, Comment: strings.Repeat("a", 4097)}, refusal: "comment: Too long"},
	} {
		t.Run(name, func(t *testing.T) {
			test.asked.Time = stamp(noon)
			err := record(test.release, test.asked)
			if test.refusal != "" {
				if err == nil || !strings.Contains(err.Error(), test.refusal) || len(test.release.Status.Requests) > 0 {
					t.Errorf("%v with %d requests recorded, want a refusal: %s", err, len(test.release.Status.Requests), test.refusal)
				}
				return
			}
			if err != nil || len(test.release.Status.Requests) != 1 {
				t.Fatalf("%v with %d requests recorded, want one", err, len(test.release.Status.Requests))
			}
			got := test.release.Status.Requests[0]
			if about := fmt.Sprintf("%s %d", got.Stage, got.Attempt); about != test.want || got.User != test.asked.User || got.Type != test.asked.Type {
				t.Errorf("recorded %+v, want %s by %s about %q", got, test.asked.Type, test.asked.User, test.want)
			}
		})
	}
}

func TestCommentsAreAskedForWhereTheStageSaysSo(t *testing.T) {
	release := approving()
	release.Status.Plan.Stages[1].With.Raw = []byte(`{"requireComment":true}`)
	asked := v1alpha1.ReleaseRequest{Type: v1alpha1.RequestApprove, User: "anybody"}
	if err := record(release, asked); err == nil || !strings.Contains(err.Error(), "comment: Required value") {
		t.Errorf("no comment: %v, want a refusal", err)
	}
	asked.Comment = "looks good"
	if err := record(release, asked); err != nil {
		t.Errorf("a comment: %v", err)
	}
}

func TestAPlanThatCannotBeReadLetsNobodyApprove(t *testing.T) {
	asked := v1alpha1.ReleaseRequest{Type: v1alpha1.RequestApprove, User: "alice"}
	for name, change := range map[string]func(*v1alpha1.ReleaseStatus){
		"there is none":                    func(s *v1alpha1.ReleaseStatus) { s.Plan = nil },
		"it does not have the stage":       func(s *v1alpha1.ReleaseStatus) { s.Plan.Stages = s.Plan.Stages[:1] },
		"the stage is another one in it":   func(s *v1alpha1.ReleaseStatus) { s.Plan.Stages[1].Name = v1alpha1.StageWait },
		"the stage has options unheard of": func(s *v1alpha1.ReleaseStatus) { s.Plan.Stages[1].With.Raw = []byte(`{"approver":["alice"]}`) },
	} {
		t.Run(name, func(t *testing.T) {
			release := approving()
			change(&release.Status)
			if err := record(release, asked); err == nil || !strings.Contains(err.Error(), "its plan does not say who may approve stage agree") {
				t.Errorf("got %v, want a refusal", err)
			}
		})
	}
}

func TestEachUserApprovesOnce(t *testing.T) {
	release := approving()
	by := func(user string, at time.Time) {
		t.Helper()
		if err := record(release, v1alpha1.ReleaseRequest{Type: v1alpha1.RequestApprove, User: user, Time: stamp(at)}); err != nil {
			t.Fatal(err)
		}
	}
	by("alice", noon)
	by("alice", noon.Add(59*time.Minute))
	by("bob", noon.Add(59*time.Minute))
	if got := len(release.Status.Requests); got != 2 {
		t.Errorf("%d approvals are recorded, want one of each user", got)
	}
	by("alice", noon.Add(time.Hour))
	if got := len(release.Status.Requests); got != 3 {
		t.Errorf("%d approvals are recorded, want another one of alice, whose first has expired", got)
	}
	release.Status.Stages[1].Attempt++
	by("bob", noon.Add(time.Hour))
	if got := len(release.Status.Requests); got != 4 {
		t.Errorf("%d approvals are recorded, want another one of bob for the next attempt", got)
	}
}

func TestReleasesRecordOnlySoMuch(t *testing.T) {
	release := approving()
	release.Status.Requests = make([]v1alpha1.ReleaseRequest, mostRequests)
	if err := record(release, v1alpha1.ReleaseRequest{Type: v1alpha1.RequestCancel, User: "mallory"}); err == nil {
		t.Error("more was recorded than a release can hold")
	}
	release = approving()
	groups := make([]string, mostGroups+1)
	if err := record(release, v1alpha1.ReleaseRequest{Type: v1alpha1.RequestCancel, User: "mallory", Groups: groups}); err != nil || len(release.Status.Requests[0].Groups) != mostGroups {
		t.Errorf("%v with %d groups recorded, want %d", err, len(release.Status.Requests[0].Groups), mostGroups)
	}

	release, groups[mostGroups] = approving(), "sre" // by which the approval counts
	if err := record(release, v1alpha1.ReleaseRequest{Type: v1alpha1.RequestApprove, User: "carol", Groups: groups}); err != nil {
		t.Fatal(err)
	}
	if of := release.Status.Requests[0].Groups; len(of) != mostGroups || !slices.Contains(of, "sre") || groups[mostGroups] != "sre" {
		t.Errorf("%d groups are recorded, want %d with sre among them, and the caller's as they were", len(of), mostGroups)
	}
}
