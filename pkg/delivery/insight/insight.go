// Package insight measures how well an application is delivered, by its Releases: how often, how many of the changes fail, how long a commit takes
// to reach its targets, and how long a failure lasts.
package insight

import (
	"slices"
	"time"

	"github.com/aclements/go-moremath/stats"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
)

// Change is one Release that has ended and brought a change.
type Change struct {
	// Application is its name, with its namespace.
	Application string
	// Release is the name.
	Release string
	// Ended is when its outcome was certain.
	Ended time.Time
	// Failed says that it did not reach its targets, or was rolled back after it had.
	Failed bool
	// Lead is the time from the commit to the end. It is zero for a commit that is not known, that was released before, or that failed.
	Lead time.Duration
	// Restored is how long the failure lasted. It is zero while it lasts.
	Restored time.Duration
}

// Lasts reports whether the change has failed and nothing has put that right yet.
func (c *Change) Lasts() bool { return c.Failed && c.Restored == 0 }

// Changes are the changes of one application, in the order in which they ended. Committed tells when the commit was made that a revision
// comes from, zero if that is not known.
//
// Releases that somebody cancelled, or that a newer revision took the place of, say nothing about the change. Releases that roll back, that follow
// the clusters of a target, or that put drift right, bring none.
func Changes(releases []*v1alpha1.Release, committed func(revision string) time.Time) []Change {
	var ended []*v1alpha1.Release
	undone := map[string]time.Time{} // when releases were rolled back by later ones, by name
	for _, release := range releases {
		if release.Status.EndTime == nil || !release.Status.Phase.Ended() {
			continue
		}
		ended = append(ended, release)
		if of := release.Spec.RollbackOf; of != "" && release.Status.Phase == v1alpha1.ReleaseSucceeded {
			if at, ok := undone[of]; !ok || release.Status.EndTime.Time.Before(at) {
				undone[of] = release.Status.EndTime.Time
			}
		}
	}
	slices.SortStableFunc(ended, func(a, b *v1alpha1.Release) int { return a.Status.EndTime.Compare(b.Status.EndTime.Time) })

	var out []Change
	released := map[string]bool{} // revisions
	for i, release := range ended {
		if !brings(release) {
			continue
		}
		change := Change{
			Application: release.Namespace + "/" + release.Spec.Application, Release: release.Name, Ended: release.Status.EndTime.Time,
		}
		at, rolledBack := undone[release.Name]
		switch succeeded := release.Status.Phase == v1alpha1.ReleaseSucceeded; {
		case succeeded && rolledBack:
			change.Failed, change.Restored = true, max(at.Sub(change.Ended), time.Nanosecond)
		case succeeded:
			if commit := committed(release.Spec.Revision); !commit.IsZero() && !released[release.Spec.Revision] {
				change.Lead = max(change.Ended.Sub(commit), 0)
			}
		default:
			change.Failed, change.Restored = true, lasted(release, ended[i:])
		}
		released[release.Spec.Revision] = released[release.Spec.Revision] || release.Status.Phase == v1alpha1.ReleaseSucceeded
		out = append(out, change)
	}
	return out
}

// brings reports whether a release that has ended tells something about a change.
func brings(release *v1alpha1.Release) bool {
	switch release.Status.Phase {
	case v1alpha1.ReleaseSucceeded, v1alpha1.ReleaseFailed, v1alpha1.ReleaseRolledBack:
	default:
		return false
	}
	return release.Spec.RollbackOf == "" && release.Spec.TriggeredBy.Cause != v1alpha1.CauseDrift && !release.Follows()
}

// lasted is how long the failure of a release lasted: from its first stage that failed until it was rolled back, or else until a later release for all
// targets has succeeded. It is zero if that has not happened.
func lasted(release *v1alpha1.Release, later []*v1alpha1.Release) time.Duration {
	began := release.Status.EndTime.Time
	for i := range release.Status.Stages {
		if stage := &release.Status.Stages[i]; stage.Phase == v1alpha1.StageFailed && stage.EndTime != nil && stage.EndTime.Time.Before(began) {
			began = stage.EndTime.Time
		}
	}
	if release.Status.Phase == v1alpha1.ReleaseRolledBack {
		return max(release.Status.EndTime.Sub(began), time.Nanosecond)
	}
	for _, next := range later {
		if next != release && next.Status.Phase == v1alpha1.ReleaseSucceeded && next.Spec.Whole() {
			return max(next.Status.EndTime.Sub(began), time.Nanosecond)
		}
	}
	return 0
}

// Figures sum changes up.
type Figures struct {
	// Deployments is the number of changes.
	Deployments int `json:"deployments"`
	// PerDay is their number for each day of the time.
	PerDay float64 `json:"perDay"`
	// Failures is the number of those that failed.
	Failures int `json:"failures"`
	// FailureRate is their part of all, between 0 and 1. It is unset if there are none.
	FailureRate *float64 `json:"failureRate,omitempty"`
	// LeadTimeSeconds is the median time from commit to released. It is unset if no commit is known.
	LeadTimeSeconds *float64 `json:"leadTimeSeconds,omitempty"`
	// TimeToRestoreSeconds is the median time that failures lasted. It is unset if none has ended.
	TimeToRestoreSeconds *float64 `json:"timeToRestoreSeconds,omitempty"`
	// Unrestored is the number of failures that last.
	Unrestored int `json:"unrestored,omitempty"`
}

// Sum sums up the changes of a time that is as long as this.
func Sum(changes []Change, length time.Duration) Figures {
	var out Figures
	var leads, restores []float64
	for i := range changes {
		change := &changes[i]
		out.Deployments++
		if change.Failed {
			out.Failures++
		}
		if change.Lasts() {
			out.Unrestored++
		}
		if change.Lead > 0 {
			leads = append(leads, change.Lead.Seconds())
		}
		if change.Restored > 0 {
			restores = append(restores, change.Restored.Seconds())
		}
	}
	if days := length.Hours() / 24; days > 0 {
		out.PerDay = float64(out.Deployments) / days
	}
	if out.Deployments > 0 {
		rate := float64(out.Failures) / float64(out.Deployments)
		out.FailureRate = &rate
	}
	out.LeadTimeSeconds, out.TimeToRestoreSeconds = median(leads), median(restores)
	return out
}

func median(values []float64) *float64 {
	if len(values) == 0 {
		return nil
	}
	out := stats.Sample{Xs: values}.Quantile(0.5)
	return &out
}
