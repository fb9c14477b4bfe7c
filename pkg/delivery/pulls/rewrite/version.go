package rewrite

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/manifold-dev/manifold/internal/imageref"
)

var (
	// word is what the version of a chart and the name of a revision are made of. None of it ends a value or a comment in YAML, quoted or not.
	word = regexp.MustCompile(`^[A-Za-z0-9_](?:[A-Za-z0-9._+@:/-]{0,253}[A-Za-z0-9_])?$`)
	// tag is a tag of an image.
	tag = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9._-]{0,127}$`)
	// several separates the tags of a version of several images.
	several = ","
)

func (w Wanted) validate() error {
	if w.Revision == "" && len(w.Images) == 0 {
		return fmt.Errorf("%w: it is empty", ErrVersion)
	}
	for _, part := range strings.Split(w.Revision, several) {
		if part != "" && !word.MatchString(strings.TrimSpace(part)) {
			return fmt.Errorf("%w: %q holds characters that no version has, or is too long", ErrVersion, shown(w.Revision))
		}
	}
	for _, repository := range slices.Sorted(maps.Keys(w.Images)) {
		if !tag.MatchString(w.Images[repository]) {
			return fmt.Errorf("%w: %q is no tag of the image %s; a promotion goes by tags", ErrVersion, shown(w.Images[repository]), shown(repository))
		}
	}
	return nil
}

// single returns the version where it is one word: the revision, or the tag that all images have.
func (w Wanted) single() (string, bool) {
	if w.Revision != "" && !strings.Contains(w.Revision, several) {
		return w.Revision, true
	}
	tags := slices.Compact(slices.Sorted(maps.Values(w.Images)))
	if len(tags) == 1 {
		return tags[0], true
	}
	return "", false
}

// retagged returns an image with the tag that the version has for it, and whether it has one. Repositories are compared as they are written.
func (w Wanted) retagged(image string) (string, bool, error) {
	ref := imageref.Parse(image)
	want, known := w.Images[ref.Name]
	switch {
	case !known:
		return "", false, nil
	case ref.Digest != "":
		return "", true, fmt.Errorf("%w: the image %s is pinned by its digest, and a promotion changes tags; leave the digest out", ErrContent, shown(ref.Name))
	}
	return ref.Name + ":" + want, true, nil
}
