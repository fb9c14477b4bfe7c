package copies

import (
	"maps"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/projection"
)

// made is a projection with what it was made of.
type made struct {
	desired *unstructured.Unstructured
	// above is the metadata of the object, and content the hash of the manifest, if it was made of that of a revision.
	above   *metav1.PartialObjectMetadata
	content string
	// accepted is the generation at which the cluster has made of desired what it makes of it: it may drop fields that it does not know, or
	// a webhook may change them, and applying it again would come to the same.
	accepted int64
}

// serves reports whether it is the projection in a version of what the cluster is to hold now.
func (m made) serves(version schema.GroupVersionKind, above *metav1.PartialObjectMetadata, content string) bool {
	return m.desired != nil && m.desired.GroupVersionKind() == version && m.content == content && sameProjection(m.above, above)
}

// sameProjection reports whether two versions of an object give the same projection.
func sameProjection(before, after *metav1.PartialObjectMetadata) bool {
	return before != nil && before.UID == after.UID && before.Generation == after.Generation && maps.Equal(before.Labels, after.Labels) &&
		projection.SameAnnotations(before, after) &&
		before.Annotations[v1alpha1.AnnotationPlacement] == after.Annotations[v1alpha1.AnnotationPlacement]
}

// memory has the projections that a cluster holds: an object is read whole only when it may give another one. The zero value is empty.
type memory struct {
	mu    sync.Mutex
	byKey map[Key]made
}

func (m *memory) of(key Key) made {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.byKey[key]
}

func (m *memory) note(key Key, last made) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.byKey == nil {
		m.byKey = map[Key]made{}
	}
	m.byKey[key] = last
}

func (m *memory) forget(key Key) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.byKey, key)
}
