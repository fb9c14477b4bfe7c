package automation

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
)

var start = time.Date(2026, 1, 2, 3, 0, 0, 0, time.UTC)

func at(minute int) metav1.Time {
	return metav1.NewTime(start.Add(time.Duration(minute) * time.Minute))
}

func application(change ...func(*v1alpha1.Application)) *v1alpha1.Application {
	app := &v1alpha1.Application{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "app"}}
	v1alpha1.SetObjectDefaults_Application(app)
	for _, c := range change {
		c(app)
	}
	return app
}

func pinned(revision string) func(*v1alpha1.Application) {
	return func(app *v1alpha1.Application) { app.Spec.Revision = revision }
}

func manual(app *v1alpha1.Application) { app.Spec.Trigger.Mode = v1alpha1.TriggerManual }
func revisionOnly(app *v1alpha1.Application) {
	app.Annotations = map[string]string{v1alpha1.AnnotationRolloutTemplate: "true"}
}
func suspended(app *v1alpha1.Application) { app.Spec.Suspend = true }

// revisions are web-v1 and so on, made one each ten minutes.
func revisions(n int) (out []*v1alpha1.ApplicationRevision) {
	for i := 1; i <= n; i++ {
		out = append(out, &v1alpha1.ApplicationRevision{
			ObjectMeta: metav1.ObjectMeta{Name: v1alpha1.RevisionName("web", int64(i)), CreationTimestamp: at(10 * i)},
			Spec:       v1alpha1.ApplicationRevisionSpec{Application: "web", Number: int64(i), Hash: fmt.Sprint("hash-", i)},
		})
	}
	return out
}

// release was made at a minute. Its end, if it has any, is a minute later.
func release(name string, minute int, revision int64, cause v1alpha1.ReleaseCause, phase v1alpha1.ReleasePhase, change ...func(*v1alpha1.Release)) *v1alpha1.Release {
	out := &v1alpha1.Release{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: "uid-of-release", CreationTimestamp: at(minute)},
		Spec:       v1alpha1.ReleaseSpec{Application: "web", Revision: v1alpha1.RevisionName("web", revision), TriggeredBy: v1alpha1.ReleaseTrigger{Cause: cause}},
		Status:     v1alpha1.ReleaseStatus{Phase: phase},
	}
	if cause != v1alpha1.CauseCommand {
		out.Annotations = map[string]string{v1alpha1.AnnotationTargets: Fingerprint(nil)}
	}
	if phase != v1alpha1.ReleasePending {
		out.Status.StartTime = ptr.To(at(minute))
	}
	if phase.Ended() {
		out.Status.EndTime = ptr.To(at(minute + 1))
	}
	for _, c := range change {
		c(out)
	}
	return out
}

func partial(r *v1alpha1.Release) { r.Spec.Targets = []string{"east"} }

func before(revision string) func(*v1alpha1.Release) {
	return func(r *v1alpha1.Release) { r.Status.BeforeRevision = revision }
}

func begunAs(sequence int64) func(*v1alpha1.Release) {
	return func(r *v1alpha1.Release) { r.Status.Sequence = sequence }
}

func neverBegun(r *v1alpha1.Release) { r.Status.StartTime = nil }

func asking(requests ...v1alpha1.ReleaseRequest) func(*v1alpha1.Release) {
	return func(r *v1alpha1.Release) { r.Status.Requests = requests }
}

const (
	auto    = v1alpha1.CauseRevision
	pin     = v1alpha1.CausePin
	command = v1alpha1.CauseCommand
)

func TestWhatAutomationReleases(t *testing.T) {
	east := []v1alpha1.Target{{Name: "east", Cluster: "east"}}
	for name, test := range map[string]struct {
		app       *v1alpha1.Application
		targets   []v1alpha1.Target
		revisions int
		releases  []*v1alpha1.Release
		want      string
		cause     v1alpha1.ReleaseCause
		says      string
	}{
		"nothing while there is no revision": {app: application()},
		"the first revision":                 {app: application(), revisions: 1, want: "web-v1", cause: auto},
		"the newest of several":              {app: application(), revisions: 3, want: "web-v3", cause: auto},
		"nothing twice":                      {app: application(), revisions: 1, releases: []*v1alpha1.Release{release("a", 11, 1, auto, v1alpha1.ReleaseRunning)}},
		"nothing again that has failed":      {app: application(), revisions: 1, releases: []*v1alpha1.Release{release("a", 11, 1, auto, v1alpha1.ReleaseRolledBack)}},
		"what is newer than what has failed": {
			app: application(), revisions: 2, releases: []*v1alpha1.Release{release("a", 11, 1, auto, v1alpha1.ReleaseFailed)}, want: "web-v2", cause: auto,
		},
		"nothing while it is suspended":         {app: application(suspended), revisions: 1},
		"nothing where it is left to somebody":  {app: application(manual), revisions: 1},
		"what it is pinned to":                  {app: application(pinned("web-v1")), revisions: 3, want: "web-v1", cause: pin},
		"what it is pinned to, also by hand":    {app: application(manual, pinned("web-v2")), revisions: 3, want: "web-v2", cause: pin},
		"nothing while it is pinned and runs":   {app: application(pinned("web-v1")), revisions: 3, releases: []*v1alpha1.Release{release("a", 11, 1, auto, v1alpha1.ReleaseSucceeded)}},
		"nothing it is pinned to that is gone":  {app: application(pinned("web-v7")), revisions: 3, says: "there is no revision web-v7"},
		"the newest once the pin is taken away": {app: application(), revisions: 3, releases: []*v1alpha1.Release{release("a", 31, 1, pin, v1alpha1.ReleaseSucceeded)}, want: "web-v3", cause: auto},
		"nothing that somebody has released": {
			app: application(), revisions: 1, releases: []*v1alpha1.Release{release("a", 11, 1, command, v1alpha1.ReleaseRunning)},
		},
		"nothing while somebody's choice is as new as all revisions": {
			app: application(), revisions: 2, releases: []*v1alpha1.Release{release("a", 21, 2, auto, v1alpha1.ReleaseSucceeded), release("b", 25, 1, command, v1alpha1.ReleaseSucceeded)},
		},
		"a revision that is newer than somebody's choice": {
			app: application(), revisions: 3, releases: []*v1alpha1.Release{release("a", 21, 2, auto, v1alpha1.ReleaseSucceeded), release("b", 25, 1, command, v1alpha1.ReleaseSucceeded)},
			want: "web-v3", cause: auto,
		},
		"the newest, whatever somebody does with some targets": {
			app: application(), revisions: 2, releases: []*v1alpha1.Release{release("b", 25, 1, command, v1alpha1.ReleaseSucceeded, partial)}, want: "web-v2", cause: auto,
		},
		"the newest, if what somebody chose was cancelled": {
			app: application(), revisions: 2, releases: []*v1alpha1.Release{release("b", 25, 1, command, v1alpha1.ReleaseCancelled)}, want: "web-v2", cause: auto,
		},
		"the same to other targets": {
			app: application(), targets: east, revisions: 1, releases: []*v1alpha1.Release{release("a", 11, 1, auto, v1alpha1.ReleaseSucceeded)}, want: "web-v1", cause: v1alpha1.CauseTargets,
		},
	} {
		t.Run(name, func(t *testing.T) {
			state := State{Application: test.app, Targets: test.targets, Revisions: revisions(test.revisions), Releases: test.releases}
			got, says := state.Next()
			if !strings.Contains(says, test.says) || test.says == "" && says != "" {
				t.Errorf("it says %q, want %q", says, test.says)
			}
			switch {
			case got == nil && test.want == "":
				return
			case got == nil || got.Spec.Revision != test.want || got.Spec.TriggeredBy.Cause != test.cause:
				t.Fatalf("released is %+v, want %s for %s", got, test.want, test.cause)
			}
			again, _ := state.Next()
			if again.Name != got.Name {
				t.Errorf("the same has names %s and %s: a restart makes two releases", got.Name, again.Name)
			}
			got.CreationTimestamp, got.Status.Phase = at(100), v1alpha1.ReleasePending
			state.Releases = append(state.Releases, got)
			if more, _ := state.Next(); more != nil {
				t.Errorf("after %s there is %+v: it never ends", got.Name, more.Spec)
			}
		})
	}
}

func TestWhatIsWanted(t *testing.T) {
	const done, back = v1alpha1.ReleaseSucceeded, v1alpha1.ReleaseRolledBack
	takeBack, cancel := v1alpha1.ReleaseRequest{Type: v1alpha1.RequestRollback}, v1alpha1.ReleaseRequest{Type: v1alpha1.RequestCancel}
	undo := v1alpha1.ReleaseRequest{Type: v1alpha1.RequestCancel, Rollback: true}
	for name, test := range map[string]struct {
		app      *v1alpha1.Application
		releases []*v1alpha1.Release
		want     string
	}{
		"nothing while nobody has said":     {app: application(manual)},
		"K20 nothing of revisions alone":    {app: application(revisionOnly)},
		"what somebody has released last":   {app: application(manual), releases: []*v1alpha1.Release{release("a", 21, 1, command, done), release("b", 22, 2, command, done)}, want: "web-v2"},
		"what somebody has gone back to":    {app: application(manual), releases: []*v1alpha1.Release{release("a", 21, 2, command, done), release("b", 22, 1, command, done)}, want: "web-v1"},
		"the same, while automation is on":  {app: application(), releases: []*v1alpha1.Release{release("a", 21, 2, command, done), release("b", 22, 1, command, done)}, want: "web-v1"},
		"what is pinned, whoever goes back": {app: application(manual, pinned("web-v2")), releases: []*v1alpha1.Release{release("b", 22, 1, command, done)}, want: "web-v2"},
		"what somebody has gone back to within the second, by names that say otherwise": {
			app: application(manual), want: "web-v1",
			releases: []*v1alpha1.Release{release("z", 21, 2, command, done, begunAs(2)), release("a", 21, 1, command, done, begunAs(3))},
		},
		"what waits, after what has begun within the second": {
			app: application(manual), want: "web-v1",
			releases: []*v1alpha1.Release{release("z", 21, 2, command, done, begunAs(2)), release("a", 21, 1, command, v1alpha1.ReleasePending)},
		},
		"what was there before what somebody has taken back": {
			app: application(manual), releases: []*v1alpha1.Release{release("b", 22, 2, command, back, before("web-v1"), asking(takeBack))}, want: "web-v1",
		},
		"the same, while it is being taken back": {
			app: application(manual), want: "web-v1",
			releases: []*v1alpha1.Release{release("b", 22, 2, command, v1alpha1.ReleaseRollingBack, before("web-v1"), asking(takeBack))},
		},
		"what was there before what somebody has cancelled with all that it did": {
			app: application(manual), releases: []*v1alpha1.Release{release("b", 22, 2, command, back, before("web-v1"), asking(undo))}, want: "web-v1",
		},
		"the same, while automation is on, which does not begin anew": {
			app: application(), releases: []*v1alpha1.Release{release("b", 22, 2, command, back, before("web-v1"), asking(takeBack))}, want: "web-v1",
		},
		"what has failed and was put back without being asked": {
			app: application(manual), releases: []*v1alpha1.Release{release("b", 22, 2, command, back, before("web-v1"), asking(cancel))}, want: "web-v2",
		},
		"what somebody has promoted": {app: application(), releases: []*v1alpha1.Release{release("b", 22, 1, v1alpha1.CausePromotion, done)}, want: "web-v1"},
		"not what has failed because there is no such revision": {
			app: application(manual), want: "web-v2",
			releases: []*v1alpha1.Release{release("b", 21, 2, command, done, begunAs(1)), release("c", 22, 1, command, v1alpha1.ReleaseFailed, neverBegun)},
		},
		"what has begun and failed": {
			app: application(manual), want: "web-v1",
			releases: []*v1alpha1.Release{release("b", 21, 2, command, done, begunAs(1)), release("c", 22, 1, command, v1alpha1.ReleaseFailed, begunAs(2))},
		},
		"what cannot be taken back": {
			app: application(manual), releases: []*v1alpha1.Release{release("b", 22, 2, command, v1alpha1.ReleaseFailed, before("web-v1"), asking(takeBack))}, want: "web-v2",
		},
		"what somebody has taken back, if nothing was there before": {
			app: application(manual), releases: []*v1alpha1.Release{release("b", 22, 2, command, back, asking(takeBack))}, want: "web-v2",
		},
	} {
		t.Run(name, func(t *testing.T) {
			state := State{Application: test.app, Revisions: revisions(2), Releases: test.releases}
			if got, _ := state.Wanted(); got != test.want {
				t.Errorf("wanted is %q, want %q", got, test.want)
			}
			slices.Reverse(state.Releases)
			if got, _ := state.Wanted(); got != test.want {
				t.Errorf("in another order wanted is %q, want %q", got, test.want)
			}
			if next, _ := state.Next(); next != nil && test.app.Spec.Revision == "" {
				t.Errorf("automation releases %s against it", next.Spec.Revision)
			}
		})
	}
}

// A time of the API tells no more than the second, and a revision may be made in the one in which somebody goes back.
func TestWhatIsMadeInTheSameSecondIsInTheOrderInWhichItWasMade(t *testing.T) {
	for name, test := range map[string]struct {
		revision, release int // milliseconds within the second, -1 for what was made before that was told
		want              string
	}{
		"a revision that came after somebody went back":  {revision: 700, release: 300, want: "web-v2"},
		"a revision that somebody went back from":        {revision: 300, release: 700, want: "web-v1"},
		"somebody's word, where nothing more is known":   {revision: -1, release: -1, want: "web-v1"},
		"somebody's word, where it is known of one only": {revision: 700, release: -1, want: "web-v1"},
	} {
		all, back := revisions(2), release("back", 20, 1, command, v1alpha1.ReleaseSucceeded)
		for object, milliseconds := range map[metav1.Object]int{all[1]: test.revision, back: test.release} {
			if milliseconds >= 0 {
				v1alpha1.SetMade(object, at(20).Add(time.Duration(milliseconds)*time.Millisecond))
			}
		}
		state := State{Application: application(), Revisions: all, Releases: []*v1alpha1.Release{back}}
		if got, _ := state.Wanted(); got != test.want {
			t.Errorf("%s: wanted is %s, want %s", name, got, test.want)
		}
		if next, _ := state.Next(); (next != nil) != (test.want == "web-v2") {
			t.Errorf("%s: released is %v", name, next)
		}
	}
}

func TestTargetsThatComeAndGoAndComeAgain(t *testing.T) {
	east, both := []v1alpha1.Target{{Name: "a", Cluster: "east"}}, []v1alpha1.Target{{Name: "a", Cluster: "east"}, {Name: "b", Cluster: "west"}}
	state := State{Application: application(), Revisions: revisions(1)}
	names := map[string]bool{}
	for i, targets := range [][]v1alpha1.Target{east, both, east, both} {
		state.Targets = targets
		got, _ := state.Next()
		if got == nil || names[got.Name] {
			t.Fatalf("step %d: release %v, want a new one", i, got)
		}
		names[got.Name] = true
		got.CreationTimestamp, got.UID, got.Status = at(20+i), "uid", v1alpha1.ReleaseStatus{Phase: v1alpha1.ReleaseSucceeded, EndTime: ptr.To(at(20 + i))}
		state.Releases = append(state.Releases, got)
	}
}

func TestWhatIsLive(t *testing.T) {
	for name, test := range map[string]struct {
		releases []*v1alpha1.Release
		want     string
	}{
		"what was known, if no release tells": {nil, "web-v9"},
		"what was last released with success": {[]*v1alpha1.Release{release("a", 1, 1, auto, v1alpha1.ReleaseSucceeded), release("b", 5, 2, auto, v1alpha1.ReleaseSucceeded)}, "web-v2"},
		"not what is on its way":              {[]*v1alpha1.Release{release("a", 1, 1, auto, v1alpha1.ReleaseSucceeded), release("b", 5, 2, auto, v1alpha1.ReleaseRunning)}, "web-v1"},
		"not what has failed":                 {[]*v1alpha1.Release{release("a", 1, 1, auto, v1alpha1.ReleaseSucceeded), release("b", 5, 2, auto, v1alpha1.ReleaseFailed)}, "web-v1"},
		"what was put back":                   {[]*v1alpha1.Release{release("b", 5, 2, auto, v1alpha1.ReleaseRolledBack, before("web-v1"))}, "web-v1"},
		"not what only some targets have":     {[]*v1alpha1.Release{release("a", 1, 1, auto, v1alpha1.ReleaseSucceeded), release("b", 5, 2, command, v1alpha1.ReleaseSucceeded, partial)}, "web-v1"},
	} {
		state := State{Application: application(func(app *v1alpha1.Application) { app.Status.LiveRevision = "web-v9" }), Releases: test.releases}
		if got := state.Live(); got != test.want {
			t.Errorf("%s: live is %s, want %s", name, got, test.want)
		}
	}
}

func TestHistory(t *testing.T) {
	few := func(app *v1alpha1.Application) {
		app.Spec.ReleaseHistoryLimit, app.Spec.RevisionHistoryLimit = ptr.To(int32(0)), ptr.To(int32(1))
	}
	delivered := func(r *v1alpha1.Release) {
		r.Status.DeliveryRevision, r.Status.BeforeDeliveryRevision = "web-v2", "web-v3"
	}
	state := State{
		Application: application(few, pinned("web-v2")), Revisions: revisions(9),
		Releases: []*v1alpha1.Release{
			release("first", 1, 1, auto, v1alpha1.ReleaseSucceeded), release("second", 2, 3, command, v1alpha1.ReleaseFailed), release("third", 3, 4, auto, v1alpha1.ReleaseSucceeded),
			release("fourth", 4, 5, auto, v1alpha1.ReleaseFailed, before("web-v4")), release("fifth", 5, 6, command, v1alpha1.ReleaseRunning, delivered),
		},
	}
	var releases, spent []string
	for _, r := range state.SpentReleases(nil) {
		releases = append(releases, r.Name)
	}
	for _, r := range state.SpentRevisions(map[string]bool{"web-v7": true}) {
		spent = append(spent, r.Name)
	}
	if got, want := strings.Join(releases, " "), "first second"; got != want {
		t.Errorf("releases that may go are %q, want %q: the last success, what automation did last and what runs stay", got, want)
	}
	if got, want := strings.Join(spent, " "), ""; got != want {
		t.Errorf("revisions that may go are %q, want %q: one that nobody uses is kept", got, want)
	}
	state.Releases = state.Releases[2:]
	state.Application.Spec.Revision = ""
	spent = nil
	for _, r := range state.SpentRevisions(nil) {
		spent = append(spent, r.Name)
	}
	if got, want := strings.Join(spent, " "), "web-v1 web-v7"; got != want {
		t.Errorf("revisions that may go are %q, want %q: those whose files count stay", got, want)
	}
}

// sized are revisions of which each has so many parts.
func sized(n, parts int) State {
	state := State{Revisions: revisions(n), Parts: map[int64]int{}}
	for _, revision := range state.Revisions {
		state.Parts[revision.Spec.Number] = parts
	}
	return state
}

func TestHistoryIsBoundedByWhatItHolds(t *testing.T) {
	many := func(app *v1alpha1.Application) {
		app.Spec.ReleaseHistoryLimit, app.Spec.RevisionHistoryLimit = ptr.To(int32(100)), ptr.To(int32(100))
	}
	ended := func(revisions ...int64) (out []*v1alpha1.Release) {
		for i, revision := range revisions {
			out = append(out, release(fmt.Sprint("of-", revision), i+1, revision, auto, v1alpha1.ReleaseSucceeded))
		}
		return out
	}
	for name, test := range map[string]struct {
		parts               int
		releases            []*v1alpha1.Release
		named               map[string]bool
		spent, spentOfThose string
	}{
		"small ones are all kept":                             {parts: 0},
		"the oldest that nobody uses go":                      {parts: 60, spent: "web-v1 web-v2 web-v3 web-v4"},
		"what is named stays, and others go for it":           {parts: 60, named: map[string]bool{"web-v1": true, "web-v2": true}, spent: "web-v3 web-v4 web-v5 web-v6"},
		"what releases use stays, and others go for it":       {parts: 60, releases: ended(2, 4, 6, 8), spent: "web-v1 web-v3 web-v5 web-v7"},
		"releases go whose revisions are too many":            {parts: 60, releases: ended(1, 2, 3, 5, 6, 8), spent: "web-v4 web-v7", spentOfThose: "of-1 of-2"},
		"releases of what objects name stay, it goes no more": {parts: 60, releases: ended(1, 2, 3, 5, 6, 8), named: map[string]bool{"web-v1": true}, spent: "web-v4 web-v7", spentOfThose: "of-2 of-3"},
		"what is in use is kept, whatever it holds":           {parts: 300, releases: ended(8), spent: "web-v1 web-v2 web-v3 web-v4 web-v5 web-v6 web-v7"},
	} {
		t.Run(name, func(t *testing.T) {
			state := sized(8, test.parts)
			state.Application, state.Releases = application(many), test.releases
			var spent, releases []string
			for _, r := range state.SpentRevisions(test.named) {
				spent = append(spent, r.Name)
			}
			for _, r := range state.SpentReleases(test.named) {
				releases = append(releases, r.Name)
			}
			if got := strings.Join(spent, " "); got != test.spent {
				t.Errorf("revisions that may go are %q, want %q", got, test.spent)
			}
			if got := strings.Join(releases, " "); got != test.spentOfThose {
				t.Errorf("releases that may go are %q, want %q", got, test.spentOfThose)
			}
		})
	}
}
