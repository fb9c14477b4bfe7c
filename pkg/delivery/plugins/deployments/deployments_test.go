package deployments

import (
	"regexp"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/utils/ptr"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/delivery/plugins/wire/model"
)

var path = regexp.MustCompile(`^[^/].+$`)

// Plugins refuse a deployment that lacks any of this.
func demanded(t *testing.T, of *model.Deployment) {
	t.Helper()
	commit := of.GetTrigger().GetCommit()
	for name, there := range map[string]bool{
		"id": of.Id != "", "application_id": of.ApplicationId != "", "application_name": of.ApplicationName != "", "piped_id": of.PipedId != "", "project_id": of.ProjectId != "",
		"git_path.repo.id": of.GetGitPath().GetRepo().GetId() != "", "git_path.path": path.MatchString(of.GetGitPath().GetPath()),
		"trigger.timestamp": of.GetTrigger().GetTimestamp() > 0, "commit.hash": commit.GetHash() != "", "commit.message": commit.GetMessage() != "",
		"commit.author": commit.GetAuthor() != "", "commit.branch": commit.GetBranch() != "", "commit.created_at": commit.GetCreatedAt() > 0,
		"created_at": of.CreatedAt > 0, "updated_at": of.UpdatedAt > 0,
	} {
		if !there {
			t.Errorf("%s is not as plugins demand it: %v", name, of)
		}
	}
	for name, value := range map[string]string{"id": of.Id, "application_id": of.ApplicationId, "piped_id": of.PipedId, "commit": commit.GetHash()} {
		if errs := validation.IsValidLabelValue(value); len(errs) > 0 {
			t.Errorf("%s %q is no value of a label: %v", name, value, errs)
		}
	}
	for _, stage := range of.Stages {
		if stage.Id == "" || stage.Name == "" || stage.CreatedAt <= 0 || stage.UpdatedAt <= 0 {
			t.Errorf("stage %v is not as plugins demand it", stage)
		}
	}
}

func TestADeploymentNamesTheApplicationFile(t *testing.T) {
	for want, git := range map[string]*v1alpha1.GitSource{
		"app.pipecd.yaml": nil, "prd.pipecd.yaml": {URL: "https://git.example/shop.git", Pipecd: &v1alpha1.PipecdConfig{File: "prd.pipecd.yaml"}},
	} {
		app := &v1alpha1.Application{Spec: v1alpha1.ApplicationSpec{Source: v1alpha1.Source{Git: git}}}
		got := Of(Release{Application: app, Release: &v1alpha1.Release{}, Revision: &v1alpha1.ApplicationRevision{}, Running: &v1alpha1.ApplicationRevision{}})
		if got.GetGitPath().GetConfigFilename() != want || got.GetRunningConfigFilename() != want {
			t.Errorf("it is %q, and %q runs, want %q", got.GetGitPath().GetConfigFilename(), got.GetRunningConfigFilename(), want)
		}
	}
}

func TestADeploymentHasWhatPluginsDemand(t *testing.T) {
	now := metav1.NewTime(time.Unix(1_700_000_000, 0))
	for name, origin := range map[string]*v1alpha1.Origin{
		"without commits":                nil,
		"with nothing but a hash":        {Commit: strings.Repeat("a", 40)},
		"in the root of a repository":    {URL: "https://git.example/shop.git", Commit: strings.Repeat("a", 40), Path: "/", Message: "m", Author: "a", Ref: "main", Time: &now},
		"in a folder of a single letter": {Commit: strings.Repeat("a", 40), Path: "w"},
	} {
		t.Run(name, func(t *testing.T) {
			app := &v1alpha1.Application{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "w"}}
			release := &v1alpha1.Release{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "w-x", UID: "1-2"}}
			revision := &v1alpha1.ApplicationRevision{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "w-v1"}}
			revision.Spec.Hash, revision.Spec.Origin = strings.Repeat("0", 64), origin
			plan := &v1alpha1.ReleasePlan{Strategy: v1alpha1.StrategyPipeline, Stages: []v1alpha1.Stage{{Name: "A"}, {Name: "B", ID: "b"}, {Name: "C", Planned: &v1alpha1.PlannedStage{Rollback: true}}}}
			demanded(t, Of(Release{Application: app, Release: release, Revision: revision, Plan: plan}))
			release.CreationTimestamp, revision.CreationTimestamp = now, now
			demanded(t, Of(Release{Application: app, Release: release, Revision: revision, Running: revision}))
		})
	}
}

func TestStagesAreToldAsTheyAre(t *testing.T) {
	start, end := metav1.NewTime(time.Unix(100, 0)), metav1.NewTime(time.Unix(200, 0))
	release := &v1alpha1.Release{ObjectMeta: metav1.ObjectMeta{Name: "w-x", CreationTimestamp: start}, Status: v1alpha1.ReleaseStatus{
		Phase: v1alpha1.ReleaseRollingBack,
		Stages: []v1alpha1.StageStatus{
			{ID: "stage-0", Phase: v1alpha1.StageFailed, Attempt: 2, StartTime: &start, EndTime: &end, Message: "no"},
			{ID: "back", Phase: v1alpha1.StageRunning, Attempt: 1, StartTime: &end},
		},
	}}
	plan := &v1alpha1.ReleasePlan{
		Plugins: []v1alpha1.PlannedPlugin{{Name: "toy", DeployTargets: []string{"dev"}}, {Name: "wait"}},
		Stages: []v1alpha1.Stage{
			{Name: "A", Plugin: "toy", Planned: &v1alpha1.PlannedStage{Operation: v1alpha1.PluginApprove, Approvers: []string{"jane"}, Metadata: map[string]string{"a": "b"}}},
			{Name: "WAIT"},
			{Name: "UNDO", ID: "back", Plugin: "toy", Planned: &v1alpha1.PlannedStage{Rollback: true}},
		},
	}
	got := Of(Release{
		Application: &v1alpha1.Application{}, Release: release, Revision: &v1alpha1.ApplicationRevision{ObjectMeta: metav1.ObjectMeta{Name: "w-v1"}}, Plan: plan,
	})
	if got.Status != model.DeploymentStatus_DEPLOYMENT_ROLLING_BACK || len(got.DeployTargetsByPlugin) != 1 || got.DeployTargetsByPlugin["toy"].DeployTargets[0] != "dev" {
		t.Errorf("deployment %v", got)
	}
	a, wait, back := got.Stages[0], got.Stages[1], got.Stages[2]
	if a.Status != model.StageStatus_STAGE_FAILURE || a.RetriedCount != 1 || a.UpdatedAt != 100 || a.CompletedAt != 200 ||
		a.AvailableOperation != model.ManualOperation_MANUAL_OPERATION_APPROVE || ptr.Deref(&a.AuthorizedOperators[0], "") != "jane" || a.Metadata["a"] != "b" {
		t.Errorf("the stage that failed is %v", a)
	}
	if wait.Index != 1 || wait.Requires[0] != "stage-0" || wait.Status != model.StageStatus_STAGE_NOT_STARTED_YET {
		t.Errorf("the one after it is %v", wait)
	}
	if !back.Rollback || back.Index != 0 || back.Status != model.StageStatus_STAGE_RUNNING || back.Requires[0] != "stage-1" {
		t.Errorf("the one that takes back is %v", back)
	}
}

func TestAPluginFindsItsTargetsByHowItKnowsItself(t *testing.T) {
	plan := &v1alpha1.ReleasePlan{Plugins: []v1alpha1.PlannedPlugin{{Name: "k8s-plugin", DeployTargets: []string{"dev"}}, {Name: "toy", DeployTargets: []string{"here"}}}}
	r := Release{Plan: plan, Plugin: "k8s-plugin", Called: "k8s_plugin"}
	if got := r.targets(); len(got) != 2 || got["k8s_plugin"] == nil || got["toy"] == nil {
		t.Errorf("targets are %v", got)
	}
	r.Called = ""
	if got := r.targets(); got["k8s-plugin"] == nil {
		t.Errorf("without another name, targets are %v", got)
	}
}
