package delivery

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/endpoints/request"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/utils/clock"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/registry/group"
)

// requestREST takes what people ask of a release by posting a body to one of its subresources, and answers with the release. Who asks is who
// has logged in: the body does not say it.
type requestREST struct {
	store *genericregistry.Store
	clock clock.PassiveClock
	kind  string
	body  func() runtime.Object
	// read returns what a body asks for.
	read func(body runtime.Object) v1alpha1.ReleaseRequest
}

var (
	_ rest.NamedCreater             = &requestREST{}
	_ rest.GroupVersionKindProvider = &requestREST{}
	_ rest.StorageMetadata          = &requestREST{}
)

// requestStores makes the subresources of releases that people ask by.
func requestStores(releases *group.REST, base group.Strategy, clock clock.PassiveClock) map[string]rest.Storage {
	store := *releases.Store
	store.CreateStrategy, store.DeleteStrategy = nil, nil
	store.UpdateStrategy, store.ResetFieldsStrategy = requestStrategy{releaseStrategy{base}}, nil
	stores := map[string]rest.Storage{}
	for name, row := range map[string]requestREST{
		"approve": {
			kind: "ReleaseApproval", body: func() runtime.Object { return &v1alpha1.ReleaseApproval{} },
			read: func(body runtime.Object) v1alpha1.ReleaseRequest {
				b := body.(*v1alpha1.ReleaseApproval)
				return v1alpha1.ReleaseRequest{Type: v1alpha1.RequestApprove, Stage: b.Stage, Comment: b.Comment}
			},
		},
		"cancel": {
			kind: "ReleaseCancellation", body: func() runtime.Object { return &v1alpha1.ReleaseCancellation{} },
			read: func(body runtime.Object) v1alpha1.ReleaseRequest {
				b := body.(*v1alpha1.ReleaseCancellation)
				return v1alpha1.ReleaseRequest{Type: v1alpha1.RequestCancel, Rollback: b.Rollback, Comment: b.Comment}
			},
		},
		"skip": {
			kind: "ReleaseSkip", body: func() runtime.Object { return &v1alpha1.ReleaseSkip{} },
			read: func(body runtime.Object) v1alpha1.ReleaseRequest {
				b := body.(*v1alpha1.ReleaseSkip)
				return v1alpha1.ReleaseRequest{Type: v1alpha1.RequestSkip, Stage: b.Stage, Targets: b.Targets, Comment: b.Comment}
			},
		},
		"retry": {
			kind: "ReleaseRetry", body: func() runtime.Object { return &v1alpha1.ReleaseRetry{} },
			read: func(body runtime.Object) v1alpha1.ReleaseRequest {
				b := body.(*v1alpha1.ReleaseRetry)
				return v1alpha1.ReleaseRequest{Type: v1alpha1.RequestRetry, Stage: b.Stage, Targets: b.Targets, Comment: b.Comment}
			},
		},
		"rollback": {
			kind: "ReleaseRollback", body: func() runtime.Object { return &v1alpha1.ReleaseRollback{} },
			read: func(body runtime.Object) v1alpha1.ReleaseRequest {
				b := body.(*v1alpha1.ReleaseRollback)
				return v1alpha1.ReleaseRequest{Type: v1alpha1.RequestRollback, Comment: b.Comment}
			},
		},
	} {
		row.store, row.clock = &store, clock
		stores[name] = &row
	}
	return stores
}

// New returns an empty body to decode a request into.
func (r *requestREST) New() runtime.Object { return r.body() }

// Destroy does nothing: the store belongs to the releases.
func (r *requestREST) Destroy() {}

// GroupVersionKind is the kind of the body.
func (r *requestREST) GroupVersionKind(schema.GroupVersion) schema.GroupVersionKind {
	return v1alpha1.SchemeGroupVersion.WithKind(r.kind)
}

// ProducesMIMETypes leaves the media types as they are.
func (r *requestREST) ProducesMIMETypes(string) []string { return nil }

// ProducesObject is the release.
func (r *requestREST) ProducesObject(verb string) any {
	if verb == http.MethodPost {
		return v1alpha1.Release{}
	}
	return nil
}

// Create records what is asked of the release of this name, and returns the release.
func (r *requestREST) Create(
	ctx context.Context, name string, body runtime.Object, validate rest.ValidateObjectFunc, options *metav1.CreateOptions,
) (runtime.Object, error) {
	caller, ok := request.UserFrom(ctx)
	if !ok || caller.GetName() == "" {
		return nil, apierrors.NewInternalError(errors.New("nobody is known to have asked"))
	}
	if written, ok := body.(metav1.Object); ok && written.GetName() != "" && written.GetName() != name {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("metadata.name is %q, but the request is about release %q", written.GetName(), name))
	}
	if validate != nil {
		if err := validate(ctx, body.DeepCopyObject()); err != nil {
			return nil, err
		}
	}
	asked := r.read(body)
	asked.User, asked.Groups, asked.Time = caller.GetName(), caller.GetGroups(), stamp(r.clock.Now())
	change := rest.DefaultUpdatedObjectInfo(nil, func(ctx context.Context, _, old runtime.Object) (runtime.Object, error) {
		release := old.(*v1alpha1.Release).DeepCopy()
		if err := r.overtaken(ctx, release, asked.Type); err != nil {
			return nil, err
		}
		return release, record(release, asked)
	})
	release, _, err := r.store.Update(ctx, name, change, nil, rest.ValidateAllObjectUpdateFunc, false, &metav1.UpdateOptions{DryRun: options.DryRun})
	return release, err
}

// overtaken refuses to retry a release, or to take it back, after another one has begun: that one says what runs now, and nobody goes on with earlier ones.
func (r *requestREST) overtaken(ctx context.Context, release *v1alpha1.Release, asked v1alpha1.RequestType) error {
	if asked != v1alpha1.RequestRetry && asked != v1alpha1.RequestRollback || release.Status.Sequence == 0 {
		return nil
	}
	found, err := r.store.List(ctx, &metainternalversion.ListOptions{LabelSelector: labels.SelectorFromSet(labels.Set{v1alpha1.LabelApplication: release.Spec.Application})})
	if err != nil {
		return fmt.Errorf("look for releases after %q: %w", release.Name, err)
	}
	list, ok := found.(*v1alpha1.ReleaseList)
	if !ok {
		return apierrors.NewInternalError(fmt.Errorf("a list of releases is %T", found))
	}
	return notNewest(release, list.Items, asked)
}
