package progress

import (
	"fmt"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
)

// Outcome says how a release has ended: an error, if not with success, that names the stages that failed, the clusters in which they did, and
// what was said there.
func Outcome(release *v1alpha1.Release) error {
	phase := Phase(release)
	if phase == v1alpha1.ReleaseSucceeded {
		return nil
	}
	return fmt.Errorf("release %s of %s: %s%s%s", release.Name, release.Spec.Revision, phase, about(release.Status.Message), failures(release))
}

// mostFailures is how many clusters are named of those that have failed.
const mostFailures = 5

func failures(release *v1alpha1.Release) string {
	told, more, out := 0, 0, ""
	for i := range release.Status.Stages {
		stage := &release.Status.Stages[i]
		if stage.Phase != v1alpha1.StageFailed {
			continue
		}
		out += fmt.Sprintf("\nstage %s failed%s", stageTitle(stage), about(stage.Message))
		for j := range stage.Targets {
			target := &stage.Targets[j]
			switch {
			case target.Phase != v1alpha1.TargetFailed && target.Phase != v1alpha1.TargetUnreachable:
			case told == mostFailures:
				more++
			default:
				out += fmt.Sprintf("\n  %s: %s%s", targetTitle(target), target.Phase, about(target.Message))
				told++
			}
		}
	}
	if more > 0 {
		out += fmt.Sprintf("\n  and %d more: manifold release get %s -n %s", more, release.Name, release.Namespace)
	}
	return out
}

// Waiting returns the stage that waits for somebody to approve, nil if none does.
func Waiting(release *v1alpha1.Release) *v1alpha1.StageStatus {
	for i := range release.Status.Stages {
		if stage := &release.Status.Stages[i]; stage.Phase == v1alpha1.StageRunning && release.Status.Plan.WaitsForApproval(stage) {
			return stage
		}
	}
	return nil
}

// Advice says what can be done about a release that goes no further by itself, "" if nothing has to be.
func Advice(release *v1alpha1.Release) string {
	of := release.Name + " -n " + release.Namespace
	switch {
	case Waiting(release) != nil:
		return "To agree that it goes on: manifold release approve " + of
	case Phase(release) == v1alpha1.ReleaseFailed:
		return "To begin the failed stage once more: manifold release retry " + of
	}
	return ""
}
