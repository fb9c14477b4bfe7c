package rewrite

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/manifold-dev/manifold/internal/imageref"
)

// setter is the key that Weave GitOps marks values by.
const setter = "$promotion"

// marked returns the values that markers of the environment stand behind. Files are parsed only if they could hold one.
func marked(files map[string][]byte, w Wanted, allowed *budget) ([]place, error) {
	var out []place
	for _, name := range slices.Sorted(maps.Keys(files)) {
		content := files[name]
		if !mayHold(name) || !inside(w.Path, name) || !bytes.Contains(content, []byte(setter)) || !bytes.Contains(content, []byte(w.marker())) {
			continue
		}
		documents, err := allowed.parse(name, content)
		switch {
		case errors.Is(err, ErrContent):
			return nil, err
		case err != nil:
			return nil, fmt.Errorf("%w: %s holds a marker of %s and is no YAML: %s", ErrContent, at(name, lineWith(content, w.marker())), w.marker(), shown(err.Error()))
		}
		for _, d := range documents {
			err := d.root.all(func(n *node) error {
				is, err := w.marks(name, content, n)
				if !is || err != nil {
					return err
				}
				want, err := w.behind(n)
				if err != nil {
					return fmt.Errorf("%w: %s", err, at(name, n.Line))
				}
				out = append(out, place{name, n, want})
				return nil
			})
			if err != nil {
				return nil, err
			}
		}
	}
	return out, nil
}

// lineWith is the first line with a text.
func lineWith(content []byte, text string) int {
	return bytes.Count(content[:max(0, bytes.Index(content, []byte(text)))], []byte{'\n'}) + 1
}

// marks reports whether a marker of the environment stands behind a node. One that stands anywhere else, or is spoilt, is an error: somebody meant it.
func (w Wanted) marks(name string, content []byte, n *node) (bool, error) {
	behind, below, _ := strings.Cut(n.LineComment, "\n")
	for _, comment := range []string{n.HeadComment, below, n.FootComment} {
		for line := range strings.Lines(comment) {
			if names, _ := w.names(line); names {
				return false, fmt.Errorf("%w: %s: the marker of %s stands behind no value; write it behind the one that says the version, in its line", ErrAmbiguous,
					at(name, lineWith(content, strings.TrimSpace(line))), w.marker())
			}
		}
	}
	names, spoilt := w.names(behind)
	switch {
	case spoilt:
		return false, fmt.Errorf("%w: %s: a marker is all of a comment: %s", ErrAmbiguous, at(name, n.Line), w.Comment())
	case !names:
		return false, nil
	case !n.scalar() || n.isKey || !followed(content, n):
		return false, fmt.Errorf("%w: %s: the marker of %s has to stand right behind one value", ErrAmbiguous, at(name, n.Line), w.marker())
	}
	return true, nil
}

// names reports whether a comment is a marker of the environment, or names it as one would and is none.
func (w Wanted) names(comment string) (names, spoilt bool) {
	if !strings.Contains(comment, setter) {
		return false, false
	}
	var read map[string]any
	text := strings.TrimSpace(strings.TrimLeft(strings.TrimSpace(comment), "#"))
	if err := json.Unmarshal([]byte(text), &read); err != nil {
		return false, strings.Contains(comment, `"`+w.marker()+`"`)
	}
	return read[setter] == w.marker(), false
}

// followed reports whether nothing but blanks stands between a value and its comment.
func followed(content []byte, n *node) bool {
	_, end, err := span(content, n)
	if err != nil {
		return n.Anchor != "" || n.Style != 0 // what is wrong with it is told when it is to change
	}
	rest, _, _ := bytes.Cut(content[end:], []byte{'\n'})
	rest = bytes.TrimLeft(rest, `"'`)
	blank := bytes.TrimLeft(rest, " \t")
	return len(blank) < len(rest) && bytes.HasPrefix(blank, []byte{'#'})
}

// behind returns what a marked value is to be.
func (w Wanted) behind(n *node) (string, error) {
	image, known, err := w.retagged(n.Value)
	switch {
	case err != nil:
		return "", err
	case known && (n.key == "image" || strings.ContainsAny(n.Value, ":/")):
		return image, nil
	case n.key == "image":
		return w.onlyImage(n)
	}
	for _, beside := range []string{"newName", "repository", "name"} {
		if n.parent == nil {
			break
		}
		if want, known := w.Images[n.parent.text(beside)]; known {
			return want, nil
		}
	}
	if want, ok := w.single(); ok {
		return want, nil
	}
	return "", fmt.Errorf("%w: the version is several tags, and the marked value does not say of which image it is one; write it behind the image itself, or behind a tag beside its repository",
		ErrAmbiguous)
}

// onlyImage returns a marked image with the version as its tag, where the version does not say which images it is about.
func (w Wanted) onlyImage(n *node) (string, error) {
	ref := imageref.Parse(n.Value)
	switch {
	case len(w.Images) > 0:
		return "", fmt.Errorf("%w: the version has no tag of the marked image %s", ErrAmbiguous, shown(ref.Name))
	case ref.Digest != "":
		return "", fmt.Errorf("%w: the image %s is pinned by its digest, and a promotion changes tags; leave the digest out", ErrContent, shown(ref.Name))
	case !tag.MatchString(w.Revision):
		return "", fmt.Errorf("%w: %s is no tag that the marked image %s could have", ErrAmbiguous, shown(w.Revision), shown(ref.Name))
	}
	return ref.Name + ":" + w.Revision, nil
}
