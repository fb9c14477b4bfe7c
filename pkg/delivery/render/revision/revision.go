// Package revision lays out what has been rendered as an ApplicationRevision has it: each manifest once, in chunks that can be stored, and by the
// hashes of the API.
package revision

import (
	"bytes"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/json"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/delivery/render"
)

// Set is what several targets have, each content once.
type Set struct {
	// Contents are all contents, in the order of targets by name and of objects in each.
	Contents []Content
	// Targets are for each target the places of its contents among them, in the order in which they are to be applied.
	Targets map[string][]int
	// Hash is that of all targets together, see v1alpha1.HashRevision: sets with the same hash are the same.
	Hash string
}

// Content is an object as JSON with sorted keys.
type Content struct {
	Object render.ObjectName
	JSON   []byte
	// Hash is what the object goes by in a revision, see v1alpha1.HashManifest.
	Hash string
}

// Split makes a set of what targets have been rendered to.
func Split(targets map[string][]*unstructured.Unstructured) (*Set, error) {
	out := &Set{Targets: make(map[string][]int, len(targets))}
	places := map[string]int{}
	hashed := make([]v1alpha1.RevisionTarget, 0, len(targets))
	for _, target := range slices.Sorted(maps.Keys(targets)) {
		out.Targets[target] = []int{}
		var hashes []string
		for _, object := range targets[target] {
			content, err := contentOf(object)
			if err != nil {
				return nil, fmt.Errorf("target %q: %s: %w", target, render.NameOf(object), err)
			}
			place, known := places[content.Hash]
			if !known {
				place = len(out.Contents)
				places[content.Hash] = place
				out.Contents = append(out.Contents, content)
			}
			out.Targets[target] = append(out.Targets[target], place)
			hashes = append(hashes, content.Hash)
		}
		hashed = append(hashed, v1alpha1.RevisionTarget{Name: target, Hash: v1alpha1.HashObjects(hashes)})
	}
	out.Hash = v1alpha1.HashRevision(hashed)
	return out, nil
}

func contentOf(object *unstructured.Unstructured) (Content, error) {
	asJSON, err := json.Marshal(object.Object)
	if err != nil {
		return Content{}, err
	}
	hash, err := v1alpha1.HashManifest(asJSON)
	return Content{Object: render.NameOf(object), JSON: bytes.TrimSpace(asJSON), Hash: hash}, err
}

// Chunks divides contents, in their order, into as few runs as hold at most most bytes of JSON each. Overhead is what each content takes beside
// its JSON. One that is too large by itself is an error that names it.
func Chunks(contents []Content, most, overhead int) ([][]Content, error) {
	var out [][]Content
	size := most + 1
	for i := range contents {
		takes := len(contents[i].JSON) + overhead
		if takes > most {
			return nil, fmt.Errorf("%w: %s has %d bytes, and %d are allowed for an object", render.ErrTooLarge, contents[i].Object, takes, most)
		}
		if size+takes > most {
			out = append(out, nil)
			size = 0
		}
		out[len(out)-1] = append(out[len(out)-1], contents[i])
		size += takes
	}
	return out, nil
}
