package versions

import (
	"strings"
	"testing"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
)

func TestAnApplicationIsOfAVersionThatMeansTheSameInEveryNamespace(t *testing.T) {
	first, second, third := strings.Repeat("1", 40), strings.Repeat("2", 40), strings.Repeat("3", 40)
	at := func(commit string) *v1alpha1.ApplicationRevision {
		return &v1alpha1.ApplicationRevision{Spec: v1alpha1.ApplicationRevisionSpec{Origin: &v1alpha1.Origin{Commit: commit}}}
	}
	of := func(images ...v1alpha1.RevisionImage) *v1alpha1.ApplicationRevision {
		return &v1alpha1.ApplicationRevision{Spec: v1alpha1.ApplicationRevisionSpec{Images: images}}
	}
	from := func(pin, seen string) func(*v1alpha1.Application) {
		return func(app *v1alpha1.Application) {
			app.Spec.Source.Git = &v1alpha1.GitSource{Ref: &v1alpha1.GitRef{Commit: pin}}
			app.Status.Source = &v1alpha1.SourceStatus{Origin: &v1alpha1.Origin{Commit: seen}}
		}
	}
	for name, test := range map[string]struct {
		change        func(*v1alpha1.Application)
		revisions     map[string]*v1alpha1.ApplicationRevision
		version, last string
		unready       bool
		images        string
	}{
		"that of the commits": {
			revisions: map[string]*v1alpha1.ApplicationRevision{"web-v1": at(first), "web-v2": at(second)}, version: second, last: first,
		},
		"that which it is pinned to, also if it changed nothing": {
			change: from(third, third), revisions: map[string]*v1alpha1.ApplicationRevision{"web-v1": at(first), "web-v2": at(second)}, version: third, last: first,
		},
		"not that which it is pinned to and has not read": {
			change: from(third, second), revisions: map[string]*v1alpha1.ApplicationRevision{"web-v1": at(first), "web-v2": at(second)}, version: second, last: first,
		},
		"the tags of its images where there is no repository": {
			revisions: map[string]*v1alpha1.ApplicationRevision{
				"web-v1": of(v1alpha1.RevisionImage{Name: "web", Tag: "1.0"}),
				"web-v2": of(v1alpha1.RevisionImage{Name: "web", Tag: "1.1"}, v1alpha1.RevisionImage{Name: "db", Tag: "7"}),
			},
			version: "1.1,7", last: "1.0", images: "web:1.1 db:7",
		},
		"none as long as a revision is not known": {
			revisions: map[string]*v1alpha1.ApplicationRevision{"web-v1": at(first)}, version: "web-v2", last: first, unready: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			app := &v1alpha1.Application{}
			app.Name, app.Status.LatestRevision, app.Status.WantedRevision, app.Status.LiveRevision = "web", "web-v2", "web-v2", "web-v1"
			if test.change != nil {
				test.change(app)
			}
			said, _ := Of(app)
			said.Ready = true
			Released(&said, app, func(name string) *v1alpha1.ApplicationRevision { return test.revisions[name] })
			if said.Version != test.version || said.LastAppliedRevision != test.last || said.Ready == test.unready || strings.Join(said.Images, " ") != test.images {
				t.Errorf("got %+v", said)
			}
		})
	}
}
