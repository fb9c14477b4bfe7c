// Package held says what an object of the logical cluster is in a cluster that is held at a revision of an application, or that holds it as it was
// written through the view of the cluster.
//
// Everybody who asks what a cluster is to hold asks here: who projects the object, who finds out what it needs there, who checks what the cluster
// shows of it, and who explains it.
package held

import (
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/lru"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/delivery/contents"
	"github.com/manifold-dev/manifold/pkg/identity"
	"github.com/manifold-dev/manifold/pkg/projection"
)

// ErrUnreadable is wrapped by every error about content that cannot be had. A cluster keeps what it has meanwhile.
var ErrUnreadable = errors.New("the content of a revision cannot be read")

// mostDecoded bounds how many manifests are kept as typed objects.
const mostDecoded = 1024

// Versions are objects of the logical cluster at the revisions that clusters hold. A nil one knows objects as they stand alone.
type Versions struct {
	reader *contents.Reader
	// complete gives a typed object the defaults that the API server of the logical cluster gives it. It may be nil.
	complete func(runtime.Object)
	// decoded are typed objects with their defaults, by what they are made of.
	decoded *lru.Cache
}

// New returns the versions of objects whose content is in the revisions that reader reads.
func New(reader *contents.Reader, complete func(runtime.Object)) *Versions {
	return &Versions{reader: reader, complete: complete, decoded: lru.New(mostDecoded)}
}

// Version is an object of the logical cluster as a cluster is to hold it. It may be read only.
type Version struct {
	projection.Object
	// Revision is the one that the object stands at, the zero value for the object as it stands, and Hash that of its manifest.
	Revision identity.Revision
	Hash     string
}

// Mark is what a projection of the version is marked with, "" for the object as it stands.
func (v Version) Mark() string {
	if v.Revision == (identity.Revision{}) {
		return ""
	}
	return projection.RevisionMark(v.Revision.Name, v.Hash)
}

// In returns an object as a cluster is to hold it. The error wraps ErrUnreadable.
func (v *Versions) In(kind projection.Kind, above projection.Object, cluster string) (Version, error) {
	version, err := v.At(kind, above, identity.RevisionIn(above, cluster))
	if err != nil {
		return Version{}, fmt.Errorf("cluster %q: %w", cluster, err)
	}
	return version, nil
}

// At returns an object as it is at a revision. The error wraps ErrUnreadable.
func (v *Versions) At(kind projection.Kind, above projection.Object, at identity.Revision) (Version, error) {
	if at == (identity.Revision{}) {
		return Version{Object: above}, nil
	}
	found, err := v.find(kind, above, at)
	if err != nil {
		return Version{}, err
	}
	content, err := v.typed(kind, found)
	if err != nil {
		return Version{}, unreadable(kind, above, at, err)
	}
	object, err := kind.As(above, content)
	if err != nil {
		return Version{}, unreadable(kind, above, at, err)
	}
	if at.OfView() {
		object.SetManagedFields(content.GetManagedFields()) // which tell what its writer has chosen
	}
	return Version{Object: object, Revision: at, Hash: found.Hash}, nil
}

// HashAt returns the hash of the manifest that a revision has of an object. The error wraps ErrUnreadable.
func (v *Versions) HashAt(kind projection.Kind, above projection.Object, at identity.Revision) (string, error) {
	if name, viewed := at.ViewContent(); viewed {
		return name, nil // also of one that another has replaced
	}
	found, err := v.find(kind, above, at)
	return found.Hash, err
}

// Contents returns the manifests that a revision has for a target. The objects are shared. The error wraps ErrUnreadable.
func (v *Versions) Contents(namespace string, at identity.Revision) ([]contents.Content, error) {
	if v == nil || v.reader == nil {
		return nil, fmt.Errorf("revisions are not read here: %w", ErrUnreadable)
	}
	found, err := v.reader.Contents(namespace, at.Name, at.Target)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnreadable, err)
	}
	return found, nil
}

// find returns what a revision has of an object.
func (v *Versions) find(kind projection.Kind, above projection.Object, at identity.Revision) (contents.Content, error) {
	if kind.Custom {
		return contents.Content{}, unreadable(kind, above, at, errors.New("objects of custom kinds cannot be held"))
	}
	if name, viewed := at.ViewContent(); viewed {
		content, err := viewContent(above, name)
		if err != nil {
			return contents.Content{}, unreadable(kind, above, at, err)
		}
		return content, nil
	}
	if v == nil || v.reader == nil {
		return contents.Content{}, unreadable(kind, above, at, errors.New("revisions are not read here"))
	}
	found, err := v.reader.Find(above.GetNamespace(), at.Name, at.Target, kind.GVK.GroupKind(), above.GetName())
	if err != nil {
		return contents.Content{}, unreadable(kind, above, at, err)
	}
	return found, nil
}

// viewContent returns what was written through the view of a cluster, which the object carries itself.
func viewContent(above projection.Object, name string) (contents.Content, error) {
	all, err := identity.ContentsOf(above)
	if err != nil {
		return contents.Content{}, err
	}
	manifest, err := all.Get(name)
	if err != nil {
		return contents.Content{}, err
	}
	out := &unstructured.Unstructured{}
	if err := out.UnmarshalJSON(manifest); err != nil {
		return contents.Content{}, fmt.Errorf("read content %q of a view: %w", name, err)
	}
	return contents.Content{Object: out, Hash: name}, nil
}

// unreadable says what was to be held at what, and why it cannot be.
func unreadable(kind projection.Kind, above projection.Object, at identity.Revision, err error) error {
	if _, viewed := at.ViewContent(); viewed {
		return fmt.Errorf("%s %s/%s is to be held as it was written through the view of cluster %q: %w: %w",
			kind.GVK.Kind, above.GetNamespace(), above.GetName(), at.Target, ErrUnreadable, err)
	}
	application, _, _ := v1alpha1.ParseRevisionName(at.Name)
	return fmt.Errorf("%s %s/%s is to be held at revision %q of Application %q, target %q: %w: %w",
		kind.GVK.Kind, above.GetNamespace(), above.GetName(), at.Name, application, at.Target, ErrUnreadable, err)
}

// All returns the versions of an object that clusters hold or are to hold, in no order. What cannot be read is left out, and complete is false then.
func (v *Versions) All(kind projection.Kind, above projection.Object) (versions []Version, complete bool) {
	complete = true
	for _, revision := range identity.RevisionsOf(above) {
		version, err := v.At(kind, above, revision)
		if err != nil {
			complete = false
			continue
		}
		versions = append(versions, version)
	}
	return versions, complete
}

// madeOf is what a typed object is made of. The hash of a manifest tells all of its content.
type madeOf struct {
	kind string
	hash string
}

// typed returns a manifest as an object of its kind, with defaults. It is shared.
func (v *Versions) typed(kind projection.Kind, of contents.Content) (projection.Object, error) {
	key := madeOf{kind.Resource.String(), of.Hash}
	if v == nil {
		return kind.Content(of.Object)
	}
	if known, ok := v.decoded.Get(key); ok {
		return known.(projection.Object), nil
	}
	out, err := kind.Content(of.Object)
	if err != nil {
		return nil, err
	}
	if _, custom := out.(*unstructured.Unstructured); v.complete != nil && !custom {
		v.complete(out)
	}
	v.decoded.Add(key, out)
	return out, nil
}
