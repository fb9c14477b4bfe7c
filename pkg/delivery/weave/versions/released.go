package versions

import (
	"fmt"
	"slices"
	"strings"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/internal/text"
	"github.com/manifold-dev/manifold/pkg/delivery/weave"
)

// Released has what is said of an application say versions in the place of revisions: these are numbered in each namespace anew, so that web-v3 of one
// environment has nothing to do with web-v3 of the next. The version is the commit that the revision was made of, and the tags of its images where the
// application comes from no repository. One that is pinned to a commit is of that commit, also where it changed nothing. Revision returns a revision of the
// application's namespace, nil if it is not known; what is said of it is then not known either.
func Released(said *weave.WorkloadStatus, app *v1alpha1.Application, revision func(name string) *v1alpha1.ApplicationRevision) {
	said.Version = released(said, app, said.Version, revision)
	said.LastAppliedRevision = released(said, app, said.LastAppliedRevision, revision)
}

func released(said *weave.WorkloadStatus, app *v1alpha1.Application, name string, revision func(string) *v1alpha1.ApplicationRevision) string {
	if name == "" {
		return ""
	}
	if commit := pinned(app); commit != "" && name == app.Status.LatestRevision {
		return commit
	}
	of := revision(name)
	if of == nil {
		said.Ready, said.Failed, said.Message = false, false, fmt.Sprintf("revision %s is not known yet", name)
		return name
	}
	if origin := of.Spec.Origin; origin != nil && origin.Commit != "" {
		return text.Line(origin.Commit, mostVersion)
	}
	var tags []string
	for _, image := range of.Spec.Images[:min(len(of.Spec.Images), mostImages)] {
		if tag := Tag(imageOf(image)); !slices.Contains(tags, tag) {
			tags = append(tags, tag)
		}
		if full := imageOf(image); len(said.Images) < mostImages && !slices.Contains(said.Images, full) && name == said.Version {
			said.Images = append(said.Images, full)
		}
	}
	if len(tags) == 0 {
		return name
	}
	return text.Line(strings.Join(tags, ","), mostVersion)
}

// pinned is the commit that an application is pinned to, if that is what was read last.
func pinned(app *v1alpha1.Application) string {
	git, source := app.Spec.Source.Git, app.Status.Source
	if git == nil || git.Ref == nil || git.Ref.Commit == "" || source == nil || source.Origin == nil || source.Origin.Commit != git.Ref.Commit {
		return ""
	}
	return git.Ref.Commit
}

func imageOf(image v1alpha1.RevisionImage) string {
	out := image.Name
	if image.Tag != "" {
		out += ":" + image.Tag
	}
	if image.Digest != "" {
		out += "@" + image.Digest
	}
	return text.Line(out, mostImage)
}
