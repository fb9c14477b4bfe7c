package measure

import (
	"time"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
)

// earlier is the time in the last release that has succeeded at which this stage had gone on for as long as it has now. It reports whether there
// was none. Of a stage that was shorter then it is the end.
func (m *Measurer) earlier(l look) (then time.Time, first bool, err error) {
	releases, err := m.Releases.Releases(l.app.Namespace).List(labels.Everything())
	if err != nil {
		return time.Time{}, false, err
	}
	var last *v1alpha1.Release
	for _, release := range releases {
		if before(release, l) && (last == nil || last.Status.EndTime.Before(release.Status.EndTime)) {
			last = release
		}
	}
	if last == nil {
		return time.Time{}, true, nil
	}
	stage := stageOf(last, l.stage.ID)
	then = stage.StartTime.Add(l.now.Sub(l.status.StartTime.Time))
	if then.After(stage.EndTime.Time) {
		then = stage.EndTime.Time
	}
	return then, false, nil
}

// before reports whether a release is one that a look can be compared with: it has succeeded before this one began, and was measured in the
// same stage.
func before(release *v1alpha1.Release, l look) bool {
	if release.Spec.Application != l.app.Name || release.UID == l.release.UID || release.Status.Phase != v1alpha1.ReleaseSucceeded {
		return false
	}
	if end := release.Status.EndTime; end == nil || l.status.StartTime.Before(end) {
		return false
	}
	stage := stageOf(release, l.stage.ID)
	return stage != nil && stage.Name == v1alpha1.StageAnalysis && stage.Phase == v1alpha1.StageSucceeded && stage.StartTime != nil && stage.EndTime != nil
}
