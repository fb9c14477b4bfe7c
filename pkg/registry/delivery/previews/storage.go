// Package previews answers what plugins say that a release of an application would change. Nothing of it is stored.
package previews

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	listers "github.com/manifold-dev/manifold/generated/listers/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/internal/text"
	"github.com/manifold-dev/manifold/pkg/delivery/plugins/planning"
	"github.com/manifold-dev/manifold/pkg/delivery/read"
)

const (
	// againAfter is how many seconds later those are to ask again for whom there was no place.
	againAfter = 5
	mostSaid   = 500
)

// Asker asks plugins. planning.Room is one.
type Asker interface {
	Preview(ctx context.Context, q planning.Question) ([]v1alpha1.PluginPreview, error)
}

// REST takes what is to be previewed, and answers with what plugins say.
type REST struct {
	Applications listers.ApplicationLister
	Revisions    listers.ApplicationRevisionLister
	// Known reports whether both have been read.
	Known func() bool
	// Asker is nil where this server runs no plugins.
	Asker Asker
}

var (
	_ rest.NamedCreater             = &REST{}
	_ rest.GroupVersionKindProvider = &REST{}
	_ rest.StorageMetadata          = &REST{}
)

// New returns an empty body to decode a request into.
func (r *REST) New() runtime.Object { return &v1alpha1.ApplicationPreview{} }

// Destroy does nothing.
func (r *REST) Destroy() {}

// GroupVersionKind is the kind of the body.
func (r *REST) GroupVersionKind(schema.GroupVersion) schema.GroupVersionKind {
	return v1alpha1.SchemeGroupVersion.WithKind("ApplicationPreview")
}

// ProducesMIMETypes leaves the media types as they are.
func (r *REST) ProducesMIMETypes(string) []string { return nil }

// ProducesObject is the body, with what plugins say.
func (r *REST) ProducesObject(verb string) any {
	if verb == http.MethodPost {
		return v1alpha1.ApplicationPreview{}
	}
	return nil
}

// Create asks the plugins of the application of this name.
func (r *REST) Create(ctx context.Context, name string, body runtime.Object, validate rest.ValidateObjectFunc, _ *metav1.CreateOptions) (runtime.Object, error) {
	asked, ok := body.(*v1alpha1.ApplicationPreview)
	if !ok {
		return nil, apierrors.NewInternalError(fmt.Errorf("a body is %T", body))
	}
	if asked.Name != "" && asked.Name != name {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("metadata.name is %q, but the request is about application %q", asked.Name, name))
	}
	if validate != nil {
		if err := validate(ctx, body.DeepCopyObject()); err != nil {
			return nil, err
		}
	}
	if !r.Known() {
		return nil, apierrors.NewServiceUnavailable("the applications of the logical cluster are being read, try again")
	}
	namespace := request.NamespaceValue(ctx)
	q, err := r.question(namespace, name, asked.Revision)
	if err != nil {
		return nil, err
	}
	out := &v1alpha1.ApplicationPreview{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Revision: q.Revision.Name}
	if q.Running != nil {
		out.Running = q.Running.Name
	}
	if len(q.Application.Spec.Plugins) == 0 {
		return out, nil
	}
	if r.Asker == nil {
		return nil, apierrors.NewServiceUnavailable("this server runs no plugins: an admin enables them by manifold start --plugins-dir")
	}
	out.Previews, err = r.Asker.Preview(ctx, q)
	if busy := (planning.BusyError{}); errors.As(err, &busy) {
		return nil, apierrors.NewTooManyRequests(busy.Why, againAfter)
	}
	if err != nil {
		return nil, apierrors.NewTimeoutError(text.Line(err.Error(), mostSaid), againAfter)
	}
	return out, nil
}

// question is what plugins are asked. A revision is one of the application.
func (r *REST) question(namespace, name, revision string) (q planning.Question, err error) {
	app, err := r.Applications.Applications(namespace).Get(name)
	if err != nil {
		return q, err
	}
	if revision == "" {
		revision = app.Status.LatestRevision
	}
	if revision == "" {
		return q, apierrors.NewConflict(v1alpha1.Resource("applications"), name, errors.New("it has no revision yet, which its conditions tell the reason of"))
	}
	q.Revision, err = r.Revisions.ApplicationRevisions(namespace).Get(revision)
	if err == nil && q.Revision.Spec.Application != name {
		err = apierrors.NewNotFound(v1alpha1.Resource("applicationrevisions"), revision)
	}
	if err != nil {
		return q, err
	}
	if live := app.Status.LiveRevision; live != "" {
		q.Running, err = r.Revisions.ApplicationRevisions(namespace).Get(live)
		if err != nil && !apierrors.IsNotFound(err) {
			return q, err
		}
	}
	counts := app.DeepCopy()
	counts.Spec = read.Spec(app.Spec, q.Revision)
	q.Application = counts
	return q, nil
}
