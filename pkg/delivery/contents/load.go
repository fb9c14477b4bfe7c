package contents

import (
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
)

// loaded is what came of reading some manifests.
type loaded struct {
	contents map[string]Content
	// errs are those of manifests that could not be read, by their hashes.
	errs map[string]error
	// size is that of the manifests as JSON.
	size int
}

// load reads manifests of a revision, from the head and from its chunks as far as they are needed.
func (r *Reader) load(head *v1alpha1.ApplicationRevision, hashes sets.Set[string]) loaded {
	out := loaded{contents: map[string]Content{}, errs: map[string]error{}}
	if hashes.Len() == 0 {
		return out
	}
	wanted := hashes.Clone()
	r.take(&out, head, wanted)
	var unread error
	for i := range head.Spec.Chunks {
		if wanted.Len() == 0 {
			break
		}
		chunk, err := r.chunk(head, &head.Spec.Chunks[i])
		if err != nil {
			unread = errors.Join(unread, err)
			continue
		}
		r.take(&out, chunk, wanted)
	}
	if unread == nil {
		unread = fmt.Errorf("its list of chunks %w", ErrMismatch)
	}
	for hash := range wanted {
		out.errs[hash] = unread
	}
	return out
}

// take reads what one object holds of what is wanted.
func (r *Reader) take(out *loaded, in *v1alpha1.ApplicationRevision, wanted sets.Set[string]) {
	for i := range in.Spec.Objects {
		object := &in.Spec.Objects[i]
		if !wanted.Has(object.Hash) {
			continue
		}
		wanted.Delete(object.Hash)
		content, size, err := r.decode(in.Namespace, object)
		if err != nil {
			out.errs[object.Hash] = err
			continue
		}
		out.contents[object.Hash] = content
		out.size += size
	}
}

// chunk returns a chunk of a revision, proven by what the head says of it.
func (r *Reader) chunk(head *v1alpha1.ApplicationRevision, of *v1alpha1.RevisionChunk) (*v1alpha1.ApplicationRevision, error) {
	chunk, err := r.revisions.ApplicationRevisions(head.Namespace).Get(of.Name)
	if apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("its chunk %q %w", of.Name, ErrMissing)
	}
	if err != nil {
		return nil, fmt.Errorf("its chunk %q: %w", of.Name, err)
	}
	hashes := make([]string, 0, len(chunk.Spec.Objects))
	for i := range chunk.Spec.Objects {
		hashes = append(hashes, chunk.Spec.Objects[i].Hash)
	}
	if chunk.Spec.ChunkOf != head.Name || v1alpha1.HashObjects(hashes) != of.Hash {
		return nil, fmt.Errorf("its chunk %q %w", of.Name, ErrMismatch)
	}
	return chunk, nil
}

// decode returns a manifest, proven by its hash, and its size.
func (r *Reader) decode(namespace string, of *v1alpha1.RevisionObject) (Content, int, error) {
	manifest, from, err := r.manifest(namespace, of)
	if err != nil {
		return Content{}, 0, err
	}
	hash, err := v1alpha1.HashManifest(manifest)
	if err != nil || hash != of.Hash {
		// The error of the decoder is left out: it would quote what is in the manifest, which may be a Secret's.
		return Content{}, 0, fmt.Errorf("%s %w", from, ErrMismatch)
	}
	object := &unstructured.Unstructured{}
	if err := object.UnmarshalJSON(manifest); err != nil || object.GetName() == "" {
		return Content{}, 0, fmt.Errorf("%s is no object: %w", from, ErrMismatch)
	}
	return Content{Object: object, Hash: hash}, len(manifest), nil
}

// manifest returns a manifest from where it is kept, and in words where that is.
func (r *Reader) manifest(namespace string, of *v1alpha1.RevisionObject) (manifest []byte, from string, err error) {
	ref := of.SecretKeyRef
	if ref == nil {
		from = fmt.Sprintf("its manifest %.12s", of.Hash)
		if of.Manifest == nil {
			return nil, from, fmt.Errorf("%s %w", from, ErrMismatch)
		}
		return of.Manifest.Raw, from, nil
	}
	from = fmt.Sprintf("key %q of Secret %q", ref.Key, ref.Name)
	secret, err := r.secrets.Secrets(namespace).Get(ref.Name)
	if apierrors.IsNotFound(err) {
		return nil, from, fmt.Errorf("its Secret %q %w", ref.Name, ErrMissing)
	}
	if err != nil {
		return nil, from, fmt.Errorf("its Secret %q: %w", ref.Name, err)
	}
	manifest, ok := secret.Data[ref.Key]
	if !ok {
		return nil, from, fmt.Errorf("%s %w", from, ErrMissing)
	}
	return manifest, from, nil
}
