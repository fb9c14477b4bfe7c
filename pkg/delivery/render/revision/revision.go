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
	// Contents are all contents, in the order in which targets were added, and of objects in each.
	Contents []Content
	// Targets are for each target the places of its contents among them, in the order in which they are to be applied.
	Targets map[string][]int
	// Hash is that of all targets together, and of Content, see v1alpha1.HashWithContent: sets with the same hash are the same.
	Hash string
	// Content is the hash of the files that plugins deliver, empty if none does.
	Content string
}

// Content is an object as JSON with sorted keys.
type Content struct {
	Object render.ObjectName
	JSON   []byte
	// Hash is what the object goes by in a revision, see v1alpha1.HashManifest.
	Hash string
}

// Builder makes a set of what targets are rendered to, one after the other: what targets have in common is kept once, and nothing beyond what a revision
// may hold.
type Builder struct {
	set    Set
	places map[string]int
	hashed map[string]v1alpha1.RevisionTarget
	size   int
}

// NewBuilder returns one that has no target yet.
func NewBuilder() *Builder {
	return &Builder{set: Set{Targets: map[string][]int{}}, places: map[string]int{}, hashed: map[string]v1alpha1.RevisionTarget{}}
}

// Add adds a target, and does not keep its objects.
func (b *Builder) Add(target string, objects []*unstructured.Unstructured) error {
	places, hashes := make([]int, 0, len(objects)), make([]string, 0, len(objects))
	for _, object := range objects {
		content, err := contentOf(object)
		if err != nil {
			return fmt.Errorf("target %q: %w: %s: %w", target, render.ErrInvalid, render.NameOf(object), err)
		}
		place, known := b.places[content.Hash]
		if !known {
			if b.size += len(content.JSON) + overhead; b.size > mostHeld {
				return fmt.Errorf("target %q: %w: its manifests and those of the targets before it have over %d MiB, which is what a revision may hold; "+
					"let targets share manifests, or divide the application", target, render.ErrTooLarge, mostHeld>>20)
			}
			place = len(b.set.Contents)
			b.places[content.Hash] = place
			b.set.Contents = append(b.set.Contents, content)
		}
		places, hashes = append(places, place), append(hashes, content.Hash)
	}
	b.set.Targets[target] = places
	b.hashed[target] = v1alpha1.RevisionTarget{Name: target, Hash: v1alpha1.HashObjects(hashes)}
	return nil
}

// AddLike adds a target that has what another one has, which is there already.
func (b *Builder) AddLike(target, like string) {
	b.set.Targets[target] = b.set.Targets[like]
	b.hashed[target] = v1alpha1.RevisionTarget{Name: target, Hash: b.hashed[like].Hash}
}

// Set is what has been added. Nothing is added afterwards.
func (b *Builder) Set() *Set {
	hashed := make([]v1alpha1.RevisionTarget, 0, len(b.hashed))
	for _, target := range slices.Sorted(maps.Keys(b.hashed)) {
		hashed = append(hashed, b.hashed[target])
	}
	b.set.Hash = v1alpha1.HashRevision(hashed)
	return &b.set
}

// With is the same set, to which files belong that have this hash.
func (s *Set) With(content string) *Set {
	out := *s
	out.Content, out.Hash = content, v1alpha1.HashWithContent(s.Hash, content)
	return &out
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
