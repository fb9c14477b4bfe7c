package releases

import (
	"strings"
	"testing"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
)

func TestWhatWillNeverBeReleasedKeepsNobodyWaiting(t *testing.T) {
	for name, test := range map[string]struct {
		revision, says string
		phase          v1alpha1.ReleasePhase
	}{
		"a revision that is gone":      {"web-v2", "spec.revision: ApplicationRevision web-v2 is gone, and no other one will be called so; the newest of Application web is web-v3", v1alpha1.ReleaseFailed},
		"a name that no revision has":  {"webv2", "spec.revision: no revision of Application web is called webv2", v1alpha1.ReleaseFailed},
		"a revision of somebody else":  {"other-v1", "spec.revision: no revision of Application web is called other-v1", v1alpha1.ReleaseFailed},
		"a revision that may come yet": {"web-v4", "there is no ApplicationRevision web-v4", v1alpha1.ReleasePending},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, both...)
			w.first(nil)
			w.revise(3, both, deploymentOf("three"))
			w.change(func(app *v1alpha1.Application) { app.Status.LastRevisionNumber = 3 })
			w.asks("web-b", test.revision, nil)
			w.asks("web-c", "web-v3", nil)
			w.until("web-c", v1alpha1.ReleaseSucceeded)
			release := w.release("web-b")
			if release.Status.Phase != test.phase || !strings.HasPrefix(release.Status.Message, test.says) {
				t.Errorf("%s: %q", release.Status.Phase, release.Status.Message)
			}
			if got, want := w.runs("web"), "east:10xthree west:10xthree"; got != want {
				t.Errorf("runs %s, want %s", got, want)
			}
			w.settled()
			if test.phase != v1alpha1.ReleasePending {
				return
			}
			w.revise(4, both, deploymentOf("four"))
			w.until("web-b", v1alpha1.ReleaseSucceeded)
		})
	}
}

// Rule 9.
func TestWhatIsPromotedIsNotSupersededByAutomation(t *testing.T) {
	w := newWorld(t, both...)
	w.first(func(app *v1alpha1.Application) { app.Spec.Trigger.Concurrency = v1alpha1.ConcurrencySupersede })
	w.revise(2, both, deploymentOf("two"))
	w.revise(3, both, deploymentOf("three"))
	cause := func(cause v1alpha1.ReleaseCause) func(*v1alpha1.Release) {
		return func(release *v1alpha1.Release) { release.Spec.TriggeredBy.Cause = cause }
	}
	w.asks("web-b", "web-v2", cause(v1alpha1.CausePromotion))
	w.asks("web-c", "web-v3", cause(v1alpha1.CauseRevision))
	w.until("web-b", v1alpha1.ReleaseSucceeded)
	w.until("web-c", v1alpha1.ReleaseSucceeded)
}
