package workloads

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	identities "github.com/manifold-dev/manifold/pkg/identity"
	"github.com/manifold-dev/manifold/pkg/moves"
)

// Fleets tell how a workload stands in all clusters at the moment. They answer from caches.
type Fleets interface {
	Standing(w identities.Workload) moves.Standing
}

// fleetREST is the subresource by which users read how a workload stands: what each cluster runs of it, is to hold now, and waits for. Who may read it
// is said by rights to the subresource. Nothing can be written there.
type fleetREST struct {
	reader
	workloads rest.Storage
	get       rest.Getter
	fleets    Fleets
}

var (
	_ rest.Getter          = &fleetREST{}
	_ rest.StorageMetadata = &fleetREST{}
)

// addFleet adds the subresource to a resource.
func addFleet(storage map[string]rest.Storage, resource string, reader reader, fleets Fleets) error {
	get, ok := storage[resource].(rest.Getter)
	if !ok {
		return fmt.Errorf("storage of %s is a %T, which reads nothing", resource, storage[resource])
	}
	storage[resource+"/"+v1alpha1.SubresourceFleet] = &fleetREST{reader: reader, workloads: storage[resource], get: get, fleets: fleets}
	return nil
}

// New returns an empty workload: what is read has no kind of its own.
func (r *fleetREST) New() runtime.Object { return r.workloads.New() }

// Destroy does nothing: the store belongs to the workloads.
func (r *fleetREST) Destroy() {}

// ProducesMIMETypes is JSON alone.
func (r *fleetREST) ProducesMIMETypes(string) []string { return []string{runtime.ContentTypeJSON} }

// ProducesObject is a document.
func (r *fleetREST) ProducesObject(string) any { return "" }

// Get returns how the workload of this name stands.
func (r *fleetREST) Get(ctx context.Context, name string, options *metav1.GetOptions) (runtime.Object, error) {
	found, err := r.get.Get(ctx, name, options)
	if err != nil {
		return nil, err
	}
	above, err := r.versioned(found)
	if err != nil {
		return nil, err
	}
	body, err := json.Marshal(r.fleets.Standing(identities.Workload{Kind: r.kind, Object: above}))
	if err != nil {
		return nil, fmt.Errorf("write how %s %s/%s stands: %w", r.kind.GVK.Kind, above.GetNamespace(), name, err)
	}
	return document(body), nil
}

// document is JSON that is answered as it is.
type document []byte

var _ rest.ResourceStreamer = document(nil)

// GetObjectKind returns none.
func (d document) GetObjectKind() schema.ObjectKind { return schema.EmptyObjectKind }

// DeepCopyObject returns the document itself, which nobody changes.
func (d document) DeepCopyObject() runtime.Object { return d }

// InputStream returns the document.
func (d document) InputStream(context.Context, string, string) (io.ReadCloser, bool, string, error) {
	return io.NopCloser(bytes.NewReader(d)), false, runtime.ContentTypeJSON, nil
}
