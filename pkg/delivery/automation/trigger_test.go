package automation

import (
	"strings"
	"testing"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
)

// shared counts what is in its folder, and what is shared.
func shared(app *v1alpha1.Application) {
	app.Spec.Source.Git = &v1alpha1.GitSource{URL: "https://git.example/shop.git", Path: "web"}
	app.Spec.Trigger.Paths = []string{"shared/**"}
}

// changing has each revision but the first change a file.
func changing(files ...string) []*v1alpha1.ApplicationRevision {
	out := revisions(len(files) + 1)
	for i, file := range files {
		out[i+1].Spec.Changes = &v1alpha1.RevisionChanges{Since: out[i].Name, Files: []string{file}}
	}
	return out
}

func TestWhatIsNotReleasedByItself(t *testing.T) {
	first := release("a", 11, 1, auto, v1alpha1.ReleaseSucceeded)
	for name, test := range map[string]struct {
		app       *v1alpha1.Application
		revisions []*v1alpha1.ApplicationRevision
		releases  []*v1alpha1.Release
		want      string
		next      bool
		passed    string
	}{
		"a revision of a file that does not count": {
			app: application(shared), revisions: changing("lib/a"), releases: []*v1alpha1.Release{first}, want: "web-v1", passed: "web-v2",
		},
		"one of a file that does is": {
			app: application(shared), revisions: changing("shared/a"), releases: []*v1alpha1.Release{first}, want: "web-v2", next: true,
		},
		"with one that is, all before it are": {
			app: application(shared), revisions: changing("lib/a", "web/b"), releases: []*v1alpha1.Release{first}, want: "web-v3", next: true,
		},
		"the newest that is, whatever comes after": {
			app: application(shared), revisions: changing("web/b", "lib/a"), releases: []*v1alpha1.Release{first}, want: "web-v2", next: true, passed: "web-v3",
		},
		"nothing goes back behind what somebody has released": {
			app: application(shared), revisions: changing("lib/a", "lib/b"), releases: []*v1alpha1.Release{first, release("b", 25, 2, command, v1alpha1.ReleaseSucceeded)},
			want: "web-v2", passed: "web-v3",
		},
		"nothing goes back behind what was released before files were named": {
			app: application(shared), revisions: changing("lib/a"), releases: []*v1alpha1.Release{first, release("b", 21, 2, auto, v1alpha1.ReleaseSucceeded)}, want: "web-v2",
		},
		"a pin says what is released": {
			app: application(shared, pinned("web-v2")), revisions: changing("lib/a"), releases: []*v1alpha1.Release{first}, want: "web-v2", next: true,
		},
		"nothing is, where the one that was is gone": {
			app: application(shared), revisions: changing("lib/a")[1:], passed: "web-v2",
		},
		"the file beside the manifests names files as well": {
			app: application(func(app *v1alpha1.Application) { shared(app); app.Spec.Trigger.Paths = nil }), releases: []*v1alpha1.Release{first}, want: "web-v1", passed: "web-v2",
			revisions: func() []*v1alpha1.ApplicationRevision {
				out := changing("lib/a")
				out[1].Spec.Delivery = &v1alpha1.RevisionDelivery{Trigger: &v1alpha1.RevisionTrigger{Paths: []string{"shared/**"}}}
				return out
			}(),
		},
	} {
		t.Run(name, func(t *testing.T) {
			state := State{Application: test.app, Revisions: test.revisions, Releases: test.releases}
			if got, _ := state.Wanted(); got != test.want {
				t.Errorf("wanted is %q, want %q", got, test.want)
			}
			if next, _ := state.Next(); (next != nil) != test.next || next != nil && next.Spec.Revision != test.want {
				t.Errorf("automation releases %+v", next)
			}
			passed := state.Passed()
			if test.passed == "" && passed != nil || test.passed != "" && (passed == nil || passed.Name != test.passed) {
				t.Fatalf("passed over is %v, want %q", passed, test.passed)
			}
			if passed != nil && !strings.Contains(Untriggered(test.app, passed), "manifold app sync web --revision "+test.passed) {
				t.Errorf("it says %q", Untriggered(test.app, passed))
			}
		})
	}
}
