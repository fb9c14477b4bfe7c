package pushes

import (
	"strings"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
)

// The folders of refs.
const (
	branches = "refs/heads/"
	tags     = "refs/tags/"
)

// follows reports whether a push to a ref may be news to an application: what it follows is that branch or tag, or may be. Nothing is news to one that
// names a commit.
func follows(app *v1alpha1.Application, ref string) bool {
	source := app.Spec.Source.Git
	branch, isBranch := strings.CutPrefix(ref, branches)
	tag, isTag := strings.CutPrefix(ref, tags)
	switch of := source.Ref; {
	case of == nil || *of == v1alpha1.GitRef{}:
		known := defaultBranch(app)
		return isBranch && (known == "" || known == ref)
	case of.Branch != "":
		return isBranch && branch == of.Branch
	case of.Tag != "":
		return isTag && tag == of.Tag
	case of.Semver != "":
		return isTag
	}
	return false
}

// defaultBranch is the branch that the repository put first when it was last read, as refs/heads/main; empty if that is not known.
func defaultBranch(app *v1alpha1.Application) string {
	read := app.Status.Source
	if read == nil || read.Origin == nil || read.Origin.URL != app.Spec.Source.Git.URL || !strings.HasPrefix(read.Origin.Ref, branches) {
		return ""
	}
	return read.Origin.Ref
}
