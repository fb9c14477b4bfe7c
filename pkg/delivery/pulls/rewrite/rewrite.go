// Package rewrite changes manifests so that an environment gets a version: the values alone that say which one, and not a byte beside them.
//
// A value is found by a marker, a comment behind it as Weave GitOps reads them:
//
//	version: 6.2.0 # {"$promotion": "default:podinfo:prod"}
//
// Where no file has one for the environment, the values are those that the app is known to say its version by, of the manifests of its kind and name in the
// namespaces of the targets. What is not certain is refused, with file and line: a place that is wrong is another environment's.
package rewrite

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/manifold-dev/manifold/internal/text"
)

// Wanted says what is to reach which environment.
type Wanted struct {
	// Namespace, Pipeline and Environment are what markers name.
	Namespace, Pipeline, Environment string
	// Path is the folder that manifests are looked for in, all of them if it is empty.
	Path string
	// Kind and Name are those of the app, Namespaces those of the environment's targets.
	Kind, Name string
	Namespaces []string
	// Revision is the version in one word, unless it is several tags, separated by commas. Images are tags by the repositories of images.
	Revision string
	Images   map[string]string
}

// marker is what the markers of the environment name.
func (w Wanted) marker() string { return w.Namespace + ":" + w.Pipeline + ":" + w.Environment }

// Comment is the comment that marks a value.
func (w Wanted) Comment() string { return fmt.Sprintf(`# {"$promotion": %q}`, w.marker()) }

// Why a version cannot be written.
var (
	// ErrMissing says that no place is known to take the version.
	ErrMissing = errors.New("no place for the version is found")
	// ErrAmbiguous says that it is not clear which place is to take it.
	ErrAmbiguous = errors.New("the place for the version is not clear")
	// ErrContent says that a file cannot be changed.
	ErrContent = errors.New("the repository cannot be changed")
	// ErrVersion says that the version is none that a manifest could say.
	ErrVersion = errors.New("the version cannot be written")
)

// Result is what is to become of the files.
type Result struct {
	// Files are the new contents of those that change, by their paths.
	Files map[string][]byte
	// Changes are the values that change, in the order of files and lines.
	Changes []Change
	// Places is how many values say the version, whether they change or not.
	Places int
}

// Change is a value that changes.
type Change struct {
	File     string
	Line     int
	Old, New string
}

// String returns the change as people are told it.
func (c Change) String() string {
	return fmt.Sprintf("%s: %s -> %s", at(c.File, c.Line), shown(c.Old), shown(c.New))
}

// place is a value that is to say the version.
type place struct {
	file string
	node *node
	want string
}

// mayHold reports whether a file may hold manifests, by its name.
func mayHold(name string) bool {
	switch path.Ext(name) {
	case ".yaml", ".yml":
		return true
	}
	return path.Base(name) == "Kustomization"
}

// Reads reports whether a file has a part in what is found, by its name: the manifests below the path, and all kustomizations, which tell whose those are.
func (w Wanted) Reads(name string) bool {
	return isOverlay(name) || mayHold(name) && inside(w.Path, name)
}

// Rewrite returns what is to become of files, which are by their paths from the root of the repository. Those that are no manifests may be among them.
func Rewrite(files map[string][]byte, wanted Wanted) (result Result, err error) {
	defer func() { // the parser reads what others have written
		if r := recover(); r != nil {
			result, err = Result{}, fmt.Errorf("%w: a file cannot be parsed: %s", ErrContent, shown(fmt.Sprint(r)))
		}
	}()
	if err := wanted.validate(); err != nil {
		return Result{}, err
	}
	allowed := &budget{bytes: mostBytes, weight: mostWeight}
	places, err := marked(files, wanted, allowed)
	if err == nil && len(places) == 0 {
		places, err = found(files, wanted, allowed)
	}
	if err != nil {
		return Result{}, err
	}
	return write(files, places)
}

// write changes the places that do not say their version yet.
func write(files map[string][]byte, places []place) (Result, error) {
	byFile := map[string][]place{}
	for _, p := range places {
		byFile[p.file] = append(byFile[p.file], p)
	}
	out := Result{Files: map[string][]byte{}, Places: len(places)}
	for _, name := range slices.Sorted(maps.Keys(byFile)) {
		content, changes, err := change(name, files[name], byFile[name])
		if err != nil {
			return Result{}, err
		}
		if len(changes) > 0 {
			out.Files[name] = content
			out.Changes = append(out.Changes, changes...)
		}
	}
	return out, nil
}

// change writes the values of one file, from its end, so that what was measured before stays true.
func change(name string, content []byte, places []place) ([]byte, []Change, error) {
	slices.SortFunc(places, func(a, b place) int {
		return cmp.Or(cmp.Compare(b.node.Line, a.node.Line), cmp.Compare(b.node.Column, a.node.Column))
	})
	out, wanted := bytes.Clone(content), map[int]string{}
	var changes []Change
	for _, p := range places {
		if before, twice := wanted[p.node.index]; twice {
			if before != p.want {
				return nil, nil, fmt.Errorf("%w: %s: it would have to be both %s and %s", ErrAmbiguous, at(name, p.node.Line), shown(before), shown(p.want))
			}
			continue
		}
		wanted[p.node.index] = p.want
		if p.node.Value == p.want {
			continue
		}
		start, end, err := span(content, p.node)
		if err != nil {
			return nil, nil, fmt.Errorf("%w: %s: %w", ErrContent, at(name, p.node.Line), err)
		}
		out = slices.Concat(out[:start], written(p.node, p.want), out[end:])
		changes = append(changes, Change{File: name, Line: p.node.Line, Old: p.node.Value, New: p.want})
	}
	slices.Reverse(changes)
	if len(changes) > 0 {
		if err := verify(content, out, wanted); err != nil {
			return nil, nil, fmt.Errorf("%w: %s: %w", ErrContent, at(name, changes[0].Line), err)
		}
	}
	return out, changes, nil
}

// at names a line of a file.
func at(name string, line int) string {
	return fmt.Sprintf("%s:%d", text.Line(name, mostNamed), line)
}

// shown is a text of others as it can be told.
func shown(s string) string { return text.Line(s, mostShown) }

const (
	// mostNamed bounds the path of a file in what is told, and mostShown a value, in bytes.
	mostNamed = 300
	mostShown = 200
	// mostListed bounds how many places an error lists.
	mostListed = 5
)

// listed joins places for an error.
func listed(places []string) string {
	if more := len(places) - mostListed; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(places[:mostListed], ", "), more)
	}
	return strings.Join(places, ", ")
}

// inside reports whether a file is in a folder.
func inside(folder, file string) bool {
	folder = path.Clean("/" + folder)
	return folder == "/" || strings.HasPrefix(path.Clean("/"+file), folder+"/")
}
