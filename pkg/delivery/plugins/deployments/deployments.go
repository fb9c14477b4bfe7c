// Package deployments describes releases in the words of PipeCD, as plugins read them. It is pure.
package deployments

import (
	"cmp"
	"errors"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/internal/text"
	"github.com/manifold-dev/manifold/pkg/delivery/plugins/wire/model"
)

// Piped is the agent that plugins are told of: there is one, this server.
const Piped = "manifold"

// ErrFiles is wrapped by errors about files of a revision that no other attempt will give to a plugin.
var ErrFiles = errors.New("the files cannot be given to plugins")

const (
	// longestHash bounds what stands for a commit where there is none. Plugins put commits into values of labels.
	longestHash = 40
	mostText    = 500
)

// Release is what a deployment is made of.
type Release struct {
	Application *v1alpha1.Application
	Release     *v1alpha1.Release
	Revision    *v1alpha1.ApplicationRevision
	// Running is the revision that was released with success before, nil if there is none.
	Running *v1alpha1.ApplicationRevision
	// Plan is how the release goes, as far as that is known. It may be nil.
	Plan *v1alpha1.ReleasePlan
	// Plugin is who is told, and Called how it knows itself, if that is not its name.
	Plugin, Called string
}

// Of describes a release. Everything in it that plugins demand is there, be it made up: not every source has commits.
func Of(r Release) *model.Deployment {
	app, release := r.Application, r.Release
	made := seconds(&release.CreationTimestamp, time.Time{})
	out := &model.Deployment{
		Id: ID(release), ApplicationId: ApplicationID(app), ApplicationName: app.Name, PipedId: Piped, ProjectId: app.Namespace,
		GitPath: gitPath(app, r.Revision), Labels: app.Labels,
		Trigger: &model.DeploymentTrigger{Commit: commit(r.Revision, made), Timestamp: made},
		Status:  model.DeploymentStatus_DEPLOYMENT_PENDING, CreatedAt: made, UpdatedAt: made,
	}
	if by := release.Spec.TriggeredBy; by.ByPerson() {
		out.Trigger.Commander = by.User
	}
	if r.Running != nil {
		out.RunningCommitHash, out.RunningConfigFilename = Commit(r.Running), app.Spec.Source.Git.ApplicationFile()
	}
	if r.Plan == nil {
		return out
	}
	out.Status, out.StatusReason = status(release.Status.Phase), text.Line(release.Status.Message, mostText)
	out.Trigger.SyncStrategy, out.Trigger.StrategySummary = strategy(r.Plan.Strategy), r.Plan.Reason
	out.DeployTargetsByPlugin = r.targets()
	for _, version := range r.Plan.Versions {
		out.Versions = append(out.Versions, &model.ArtifactVersion{
			Kind: model.ArtifactVersion_Kind(model.ArtifactVersion_Kind_value[version.Kind]), Name: version.Name, Version: version.Version, Url: version.URL,
		})
	}
	out.Stages = stages(r.Plan.Stages, release, made)
	return out
}

// ID is what plugins know a release by. They put it into values of labels.
func ID(release *v1alpha1.Release) string { return cmp.Or(string(release.UID), release.Name) }

// ApplicationID is what plugins know an application by.
func ApplicationID(app *v1alpha1.Application) string { return cmp.Or(string(app.UID), app.Name) }

// Commit is what plugins know a revision by: its commit, or its hash where there are no commits.
func Commit(revision *v1alpha1.ApplicationRevision) string {
	if origin := revision.Spec.Origin; origin != nil && origin.Commit != "" {
		return origin.Commit
	}
	hash := cmp.Or(revision.Spec.Hash, revision.Name)
	return hash[:min(len(hash), longestHash)]
}

func commit(revision *v1alpha1.ApplicationRevision, made int64) *model.Commit {
	out := &model.Commit{
		Hash: Commit(revision), Message: "revision " + revision.Name, Author: Piped, Branch: "none", CreatedAt: seconds(&revision.CreationTimestamp, time.Unix(made, 0)),
	}
	if origin := revision.Spec.Origin; origin != nil {
		out.Message, out.Author, out.Branch = cmp.Or(origin.Message, out.Message), cmp.Or(origin.Author, out.Author), cmp.Or(origin.Ref, out.Branch)
		out.CreatedAt = seconds(origin.Time, time.Unix(out.CreatedAt, 0))
	}
	return out
}

// gitPath is where files come from. A path has at least two characters and does not begin with a slash.
func gitPath(app *v1alpha1.Application, revision *v1alpha1.ApplicationRevision) *model.ApplicationGitPath {
	out := &model.ApplicationGitPath{Repo: &model.ApplicationGitRepository{Id: app.Namespace}, Path: app.Name, ConfigFilename: app.Spec.Source.Git.ApplicationFile()}
	if origin := revision.Spec.Origin; origin != nil {
		out.Repo.Remote, out.Repo.Branch = origin.URL, origin.Ref
		out.Path = cmp.Or(strings.Trim(origin.Path, "/"), out.Path)
	}
	if len(out.Path) < 2 {
		out.Path = "./" + out.Path
	}
	return out
}

// targets are the deploy targets of each plugin that has some. Whoever is told finds its own by how it knows itself.
func (r *Release) targets() map[string]*model.DeployTargets {
	out := map[string]*model.DeployTargets{}
	for _, plugin := range r.Plan.Plugins {
		name := plugin.Name
		if name == r.Plugin {
			name = cmp.Or(r.Called, name)
		}
		if len(plugin.DeployTargets) > 0 {
			out[name] = &model.DeployTargets{DeployTargets: plugin.DeployTargets}
		}
	}
	return out
}

func stages(planned []v1alpha1.Stage, release *v1alpha1.Release, made int64) []*model.PipelineStage {
	var out []*model.PipelineStage
	before := ""
	for i := range planned {
		stage := Stage(&planned[i], i, release)
		if before != "" {
			stage.Requires = []string{before}
		}
		if !stage.Rollback {
			before = stage.Id
		}
		out = append(out, stage)
	}
	return out
}

// Stage describes the stage at a position of a release's plan.
func Stage(stage *v1alpha1.Stage, position int, release *v1alpha1.Release) *model.PipelineStage {
	made := seconds(&release.CreationTimestamp, time.Time{})
	out := &model.PipelineStage{
		Id: v1alpha1.StageID(stage, position), Name: stage.Name, Desc: stage.Desc, Index: int32(position), CreatedAt: made, UpdatedAt: made,
		AvailableOperation: model.ManualOperation_MANUAL_OPERATION_NONE,
	}
	if planned := stage.Planned; planned != nil {
		out.Index, out.Rollback, out.Metadata, out.AuthorizedOperators = planned.Index, planned.Rollback, planned.Metadata, planned.Approvers
		switch planned.Operation {
		case v1alpha1.PluginSkip:
			out.AvailableOperation = model.ManualOperation_MANUAL_OPERATION_SKIP
		case v1alpha1.PluginApprove:
			out.AvailableOperation = model.ManualOperation_MANUAL_OPERATION_APPROVE
		}
	}
	for i := range release.Status.Stages {
		of := &release.Status.Stages[i]
		if of.ID != out.Id {
			continue
		}
		out.Status, out.StatusReason, out.RetriedCount = stagePhases[of.Phase], text.Line(of.Message, mostText), max(0, of.Attempt-1)
		out.UpdatedAt = seconds(of.StartTime, time.Unix(made, 0))
		if of.EndTime != nil {
			out.CompletedAt = of.EndTime.Unix()
		}
	}
	return out
}

var stagePhases = map[v1alpha1.StagePhase]model.StageStatus{
	v1alpha1.StageRunning: model.StageStatus_STAGE_RUNNING, v1alpha1.StageSucceeded: model.StageStatus_STAGE_SUCCESS,
	v1alpha1.StageFailed: model.StageStatus_STAGE_FAILURE, v1alpha1.StageCancelled: model.StageStatus_STAGE_CANCELLED,
	v1alpha1.StageSkipped: model.StageStatus_STAGE_SKIPPED, v1alpha1.StageExited: model.StageStatus_STAGE_EXITED,
}

func status(phase v1alpha1.ReleasePhase) model.DeploymentStatus {
	switch phase {
	case v1alpha1.ReleaseRunning:
		return model.DeploymentStatus_DEPLOYMENT_RUNNING
	case v1alpha1.ReleaseRollingBack:
		return model.DeploymentStatus_DEPLOYMENT_ROLLING_BACK
	case v1alpha1.ReleaseSucceeded:
		return model.DeploymentStatus_DEPLOYMENT_SUCCESS
	case v1alpha1.ReleaseFailed, v1alpha1.ReleaseRolledBack:
		return model.DeploymentStatus_DEPLOYMENT_FAILURE
	case v1alpha1.ReleaseCancelled, v1alpha1.ReleaseSuperseded:
		return model.DeploymentStatus_DEPLOYMENT_CANCELLED
	}
	return model.DeploymentStatus_DEPLOYMENT_PLANNED
}

func strategy(of v1alpha1.ReleaseStrategy) model.SyncStrategy {
	switch of {
	case v1alpha1.StrategyPipeline:
		return model.SyncStrategy_PIPELINE
	case v1alpha1.StrategyQuickSync:
		return model.SyncStrategy_QUICK_SYNC
	}
	return model.SyncStrategy_AUTO
}

// seconds is a time as plugins read it. They refuse zero.
func seconds(at *metav1.Time, otherwise time.Time) int64 {
	if at.IsZero() {
		return max(1, otherwise.Unix())
	}
	return max(1, at.Unix())
}
