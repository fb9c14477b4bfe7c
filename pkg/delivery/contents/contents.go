// Package contents reads what ApplicationRevisions hold. A revision is believed as far as its hashes prove it: wherever a manifest was kept, in
// its head, in a chunk or in a Secret, it is the one that was rendered, or an error.
package contents

import (
	"errors"
	"fmt"
	"sync/atomic"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	corelisters "k8s.io/client-go/listers/core/v1"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	listers "github.com/manifold-dev/manifold/generated/listers/delivery/v1alpha1"
)

var (
	// ErrMissing is wrapped by errors about what is not there: the revision, a chunk of it, or a Secret that it names. It may come.
	ErrMissing = errors.New("is not there")
	// ErrAbsent is wrapped by errors about what a revision that is there does not have: the target, or the object in the target. It will not come.
	ErrAbsent = errors.New("is not in the revision")
	// ErrMismatch is wrapped by errors about what is not what the hashes of the revision say.
	ErrMismatch = errors.New("is not what the revision was made of")
)

// Content is an object as it was rendered.
type Content struct {
	Object *unstructured.Unstructured
	// Hash is what the object goes by in its revision, see v1alpha1.HashManifest.
	Hash string
}

// Reader reads revisions by way of listers. It keeps what it has proven and decoded, up to a bound.
type Reader struct {
	revisions listers.ApplicationRevisionLister
	secrets   corelisters.SecretLister
	decoded   *decoded

	// followed says that changes counts what happens to revisions. It and version are set before anything is read.
	followed bool
	version  func() string
	changes  atomic.Uint64
}

// New returns a reader of the revisions and Secrets that the listers have.
func New(revisions listers.ApplicationRevisionLister, secrets corelisters.SecretLister) *Reader {
	return &Reader{revisions: revisions, secrets: secrets, decoded: newDecoded(mostDecoded)}
}

// Objects returns what a revision has for a target, in the order in which it is to be applied. The caller may change the objects.
func (r *Reader) Objects(namespace, revision, target string) ([]*unstructured.Unstructured, error) {
	found, err := r.Contents(namespace, revision, target)
	if err != nil {
		return nil, err
	}
	out := make([]*unstructured.Unstructured, 0, len(found))
	for _, content := range found {
		out = append(out, content.Object.DeepCopy())
	}
	return out, nil
}

// Object returns one object that a revision has for a target. The caller may change it.
func (r *Reader) Object(namespace, revision, target string, gk schema.GroupKind, name string) (*unstructured.Unstructured, error) {
	found, err := r.Find(namespace, revision, target, gk, name)
	if err != nil {
		return nil, err
	}
	return found.Object.DeepCopy(), nil
}

// Contents is Objects with hashes. The objects are shared, and are not to be changed.
func (r *Reader) Contents(namespace, revision, target string) ([]Content, error) {
	of, known, err := r.read(namespace, revision, target)
	if err != nil {
		return nil, err
	}
	out := make([]Content, 0, len(of.hashes))
	for _, hash := range of.hashes {
		content, err := known.get(hash)
		if err != nil {
			return nil, about(namespace, revision, err)
		}
		out = append(out, content)
	}
	return out, nil
}

// Find is Object with its hash. The object is shared, and is not to be changed. It is found although others of the target are missing.
func (r *Reader) Find(namespace, revision, target string, gk schema.GroupKind, name string) (Content, error) {
	of, known, err := r.read(namespace, revision, target)
	if err != nil {
		return Content{}, err
	}
	// A manifest that names no namespace is for that of its Application.
	for _, in := range []string{namespace, ""} {
		if hash, found := of.byName[objectName{gk, in, name}]; found {
			return known.contents[hash], nil
		}
	}
	for _, hash := range of.hashes {
		if _, err := known.get(hash); err != nil {
			return Content{}, about(namespace, revision, fmt.Errorf("%s %q may be in what cannot be read: %w", gk.Kind, name, err))
		}
	}
	return Content{}, about(namespace, revision, fmt.Errorf("%s %q %w for target %q", gk.Kind, name, ErrAbsent, target))
}

// read returns what a revision has for a target, and what is known of that.
func (r *Reader) read(namespace, revision, name string) (*target, *known, error) {
	head, err := r.head(namespace, revision)
	if err != nil {
		return nil, nil, about(namespace, revision, err)
	}
	before := r.decoded.get(head.UID)
	if of := before.targets[name]; of != nil && of.whole {
		return of, before, nil
	}
	hashes, err := hashesOf(head, name)
	if err != nil {
		return nil, nil, about(namespace, revision, err)
	}
	after := before.with(r.load(head, before.lacking(hashes)))
	after.index(name, hashes)
	r.decoded.put(head.UID, after)
	return after.targets[name], after, nil
}

// head returns a revision, which is none of its chunks.
func (r *Reader) head(namespace, revision string) (*v1alpha1.ApplicationRevision, error) {
	head, err := r.revisions.ApplicationRevisions(namespace).Get(revision)
	if apierrors.IsNotFound(err) {
		return nil, ErrMissing
	}
	if err != nil {
		return nil, err
	}
	if head.IsChunk() {
		return nil, fmt.Errorf("it is a chunk of %q, which %w", head.Spec.ChunkOf, ErrMismatch)
	}
	return head, nil
}

// hashesOf returns the hashes of what a revision has for a target, once they are proven by the hash of the revision.
func hashesOf(head *v1alpha1.ApplicationRevision, target string) ([]string, error) {
	if v1alpha1.HashWithContent(v1alpha1.HashRevision(head.Spec.Targets), head.Spec.Content) != head.Spec.Hash {
		return nil, fmt.Errorf("its list of targets %w", ErrMismatch)
	}
	for i := range head.Spec.Targets {
		found := &head.Spec.Targets[i]
		if found.Name != target {
			continue
		}
		objects := v1alpha1.ObjectsOf(head.Spec.Targets, i)
		if v1alpha1.HashObjects(objects) != found.Hash {
			return nil, fmt.Errorf("its list of objects for target %q %w", target, ErrMismatch)
		}
		return objects, nil
	}
	return nil, fmt.Errorf("target %q %w", target, ErrAbsent)
}

// about says which revision an error is about.
func about(namespace, revision string, err error) error {
	return fmt.Errorf("revision %s/%s: %w", namespace, revision, err)
}
