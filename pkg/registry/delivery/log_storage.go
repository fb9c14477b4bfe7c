package delivery

import (
	"context"
	"fmt"
	"io"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/registry/group"
)

// logREST is the log of a release, as text.
type logREST struct{ releases, parts *group.REST }

var (
	_ rest.GetterWithOptions = &logREST{}
	_ rest.StorageMetadata   = &logREST{}
)

// New returns an empty release: the log is one's own.
func (r *logREST) New() runtime.Object { return &v1alpha1.Release{} }

// Destroy does nothing: the stores belong to releases and logs.
func (r *logREST) Destroy() {}

// ProducesMIMETypes is plain text.
func (r *logREST) ProducesMIMETypes(string) []string { return []string{"text/plain"} }

// ProducesObject is a text.
func (r *logREST) ProducesObject(string) any { return "" }

// NewGetOptions returns what is read from the query of a request.
func (r *logREST) NewGetOptions() (runtime.Object, bool, string) {
	return &v1alpha1.ReleaseLogOptions{}, false, ""
}

// Get returns the log of the release of this name, to be read.
func (r *logREST) Get(ctx context.Context, name string, options runtime.Object) (runtime.Object, error) {
	wanted, ok := options.(*v1alpha1.ReleaseLogOptions)
	if !ok {
		return nil, apierrors.NewInternalError(fmt.Errorf("options of a log are %T", options))
	}
	found, err := r.releases.Get(ctx, name, &metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	return &logText{release: found.(*v1alpha1.Release), parts: r.parts, options: *wanted}, nil
}

// logText is the log of a release, or the part of it that is wanted.
type logText struct {
	release *v1alpha1.Release
	parts   *group.REST
	options v1alpha1.ReleaseLogOptions
}

var _ rest.ResourceStreamer = &logText{}

// GetObjectKind returns none.
func (t *logText) GetObjectKind() schema.ObjectKind { return schema.EmptyObjectKind }

// DeepCopyObject returns the log itself, which nobody changes.
func (t *logText) DeepCopyObject() runtime.Object { return t }

// InputStream returns the log as it is written, and goes on while the context lasts if it is to be followed.
func (t *logText) InputStream(ctx context.Context, _, _ string) (io.ReadCloser, bool, string, error) {
	ctx, cancel := context.WithCancel(ctx)
	reader, writer := io.Pipe()
	f := &follower{logText: t, out: writer}
	// It ends with the request: either the context does, or who reads closes the pipe.
	go func() {
		defer cancel()
		_ = writer.CloseWithError(f.run(ctx))
	}()
	return &closing{reader, cancel}, t.options.Follow, "text/plain", nil
}

// closing also ends what writes.
type closing struct {
	*io.PipeReader
	cancel context.CancelFunc
}

// Close ends reading and writing.
func (c *closing) Close() error {
	c.cancel()
	return c.PipeReader.Close()
}
