// Package pipelines records what people ask of Pipelines of Weave GitOps: that a version be promoted, or that nothing is.
//
// Pipelines are custom resources, whose statuses nobody but Manifold writes. What is asked is posted to subresources of our own group, so that RBAC
// can tell who may, and the server writes down who did.
package pipelines

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/audit"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/client-go/dynamic"
	"k8s.io/utils/clock"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/delivery/weave"
)

// attempts are made to write to a pipeline that others write to at the same time. Each is made to what it is by then.
const attempts = 10

// What the audit log tells of a request beside what it has of every one.
const (
	auditPipeline = v1alpha1.GroupName + "/pipeline"
	auditChange   = v1alpha1.GroupName + "/pipeline-status"
)

// Storage returns what is served, by its path in the group. Client writes by rights of its own; whoever asks has been let in by then.
func Storage(client dynamic.Interface, clock clock.PassiveClock) map[string]rest.Storage {
	out := map[string]rest.Storage{v1alpha1.ResourcePipelines: parentREST{}}
	for name, row := range map[string]askREST{
		v1alpha1.SubresourcePromote: {
			kind: "PipelinePromotion", body: func() runtime.Object { return &v1alpha1.PipelinePromotion{} }, decide: promote,
			group: func(body runtime.Object) *string { return &body.(*v1alpha1.PipelinePromotion).Group },
		},
		v1alpha1.SubresourcePause: {
			kind: "PipelinePause", body: func() runtime.Object { return &v1alpha1.PipelinePause{} }, decide: pause,
			group: func(body runtime.Object) *string { return &body.(*v1alpha1.PipelinePause).Group },
		},
		v1alpha1.SubresourceResume: {
			kind: "PipelineResumption", body: func() runtime.Object { return &v1alpha1.PipelineResumption{} }, decide: resume,
			group: func(body runtime.Object) *string { return &body.(*v1alpha1.PipelineResumption).Group },
		},
	} {
		row.client, row.clock = client, clock
		out[v1alpha1.ResourcePipelines+"/"+name] = &row
	}
	return out
}

// parentREST is what the subresources belong to. It has no verbs, and no kind in discovery: "kubectl get pipelines" is to mean those of Weave, and
// clients leave a resource without a kind out.
type parentREST struct{}

var (
	_ rest.Scoper               = parentREST{}
	_ rest.SingularNameProvider = parentREST{}
	_ rest.KindProvider         = parentREST{}
)

// New returns an object of a kind that the group has. The API installer asks for one.
func (parentREST) New() runtime.Object { return &v1alpha1.PipelinePromotion{} }

// Destroy does nothing.
func (parentREST) Destroy() {}

// NamespaceScoped reports that pipelines are in namespaces.
func (parentREST) NamespaceScoped() bool { return true }

// GetSingularName returns the name of one.
func (parentREST) GetSingularName() string { return "pipeline" }

// Kind is none.
func (parentREST) Kind() string { return "" }

// askREST takes what people ask of a pipeline.
type askREST struct {
	client dynamic.Interface
	clock  clock.PassiveClock
	kind   string
	body   func() runtime.Object
	// group is the field of a body that names the group of the pipeline.
	group func(body runtime.Object) *string
	// decide returns what changes, and completes the body. It refuses what makes no sense.
	decide func(p *weave.Pipeline, body runtime.Object, by v1alpha1.PipelineRecord) (change, error)
}

var (
	_ rest.NamedCreater             = &askREST{}
	_ rest.GroupVersionKindProvider = &askREST{}
	_ rest.StorageMetadata          = &askREST{}
)

// New returns an empty body to decode a request into.
func (r *askREST) New() runtime.Object { return r.body() }

// Destroy does nothing.
func (r *askREST) Destroy() {}

// GroupVersionKind is the kind of the body.
func (r *askREST) GroupVersionKind(schema.GroupVersion) schema.GroupVersionKind {
	return v1alpha1.SchemeGroupVersion.WithKind(r.kind)
}

// ProducesMIMETypes leaves the media types as they are.
func (r *askREST) ProducesMIMETypes(string) []string { return nil }

// ProducesObject is the body, with what was recorded.
func (r *askREST) ProducesObject(verb string) any {
	if verb == http.MethodPost {
		return r.body()
	}
	return nil
}

// Create records what is asked of the pipeline of this name, and returns the body with what was recorded.
func (r *askREST) Create(
	ctx context.Context, name string, body runtime.Object, validate rest.ValidateObjectFunc, options *metav1.CreateOptions,
) (runtime.Object, error) {
	caller, ok := request.UserFrom(ctx)
	if !ok || caller.GetName() == "" {
		return nil, apierrors.NewInternalError(errors.New("nobody is known to have asked"))
	}
	written, ok := body.(metav1.Object)
	if !ok {
		return nil, apierrors.NewInternalError(fmt.Errorf("a body is %T", body))
	}
	if written.GetName() != "" && written.GetName() != name {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("metadata.name is %q, but the request is about pipeline %q", written.GetName(), name))
	}
	if validate != nil {
		if err := validate(ctx, body.DeepCopyObject()); err != nil {
			return nil, err
		}
	}
	namespace := request.NamespaceValue(ctx)
	resource, err := r.find(ctx, namespace, name, *r.group(body))
	if err != nil {
		return nil, err
	}
	by := v1alpha1.PipelineRecord{By: caller.GetName(), At: moment(metav1.NewTime(r.clock.Now().UTC()))}
	done, err := r.record(ctx, resource, namespace, name, body, by, options.DryRun)
	if err != nil {
		return nil, err
	}
	answer, ok := done.(metav1.Object)
	if !ok {
		return nil, apierrors.NewInternalError(fmt.Errorf("an answer is %T", done))
	}
	*r.group(done) = resource.Group
	answer.SetName(name)
	answer.SetNamespace(namespace)
	return done, nil
}

// record writes down what is asked. It is decided anew as often as somebody else has written meanwhile.
func (r *askREST) record(
	ctx context.Context, resource schema.GroupVersionResource, namespace, name string, body runtime.Object, by v1alpha1.PipelineRecord, dryRun []string,
) (runtime.Object, error) {
	client := r.client.Resource(resource).Namespace(namespace)
	var last error
	for range attempts {
		found, err := client.Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return nil, about(name, err)
		}
		p, err := weave.Read(found)
		if err != nil {
			return nil, apierrors.NewInternalError(err)
		}
		done := body.DeepCopyObject()
		decided, err := r.decide(p, done, by)
		if err != nil || decided == nil {
			return done, err
		}
		patch, err := json.Marshal(map[string]any{
			"metadata": map[string]any{"uid": p.UID, "resourceVersion": p.ResourceVersion}, "status": decided,
		})
		if err != nil {
			return nil, apierrors.NewInternalError(err)
		}
		stored, err := client.Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{DryRun: dryRun}, "status")
		if err == nil {
			if lost := lacks(stored.Object, map[string]any{"status": map[string]any(decided)}); lost != "" {
				return nil, conflict(p, "its definition keeps no %s, so nobody would know that it was asked: define the kind by \"kubectl apply -k config/crds/weave\"", lost)
			}
			said, _ := json.Marshal(decided)
			audit.AddAuditAnnotation(ctx, auditPipeline, resource.GroupResource().String()+"/"+name)
			audit.AddAuditAnnotation(ctx, auditChange, string(said))
			return done, nil
		}
		if !apierrors.IsConflict(err) {
			return nil, about(name, err)
		}
		last = err
	}
	return nil, fmt.Errorf("record what is asked of pipeline %q, %d times: %w", name, attempts, last)
}

// find returns the resource whose pipeline is meant.
func (r *askREST) find(ctx context.Context, namespace, name, group string) (schema.GroupVersionResource, error) {
	var found []schema.GroupVersionResource
	known := make([]string, 0, len(weave.GroupVersions))
	for _, version := range weave.GroupVersions {
		known = append(known, version.Group)
		if group != "" && group != version.Group {
			continue
		}
		resource := version.WithResource(weave.Resource)
		_, err := r.client.Resource(resource).Namespace(namespace).Get(ctx, name, metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err): // also where the group is not served
		case err != nil:
			return schema.GroupVersionResource{}, about(name, err)
		default:
			found = append(found, resource)
		}
	}
	path := field.NewPath("group")
	switch {
	case group != "" && !slices.Contains(known, group):
		return schema.GroupVersionResource{}, apierrors.NewInvalid(v1alpha1.Kind(r.kind), name, field.ErrorList{field.NotSupported(path, group, known)})
	case len(found) == 0:
		return schema.GroupVersionResource{}, apierrors.NewNotFound(v1alpha1.Resource(v1alpha1.ResourcePipelines), name)
	case len(found) > 1:
		return schema.GroupVersionResource{}, apierrors.NewInvalid(v1alpha1.Kind(r.kind), name, field.ErrorList{
			field.Required(path, fmt.Sprintf("each of %q has a pipeline %q in namespace %q", known, name, namespace)),
		})
	}
	return found[0], nil
}

// about says of which pipeline an error is. What the caller is told keeps its reason.
func about(name string, err error) error {
	var status *apierrors.StatusError
	if errors.As(err, &status) && (apierrors.IsNotFound(err) || apierrors.IsInvalid(err) || apierrors.IsTooManyRequests(err) || apierrors.IsServiceUnavailable(err)) {
		return err
	}
	return apierrors.NewInternalError(fmt.Errorf("pipeline %q: %w", name, err))
}

// lacks returns the path of a field that was written and is not there, "" if all are: who has defined the kind says which fields are kept.
func lacks(stored, written map[string]any) string {
	for _, key := range slices.Sorted(maps.Keys(written)) {
		value, has := stored[key]
		within, isObject := written[key].(map[string]any)
		switch {
		case written[key] == nil:
		case !has:
			return key
		case isObject:
			into, _ := value.(map[string]any)
			if lost := lacks(into, within); lost != "" {
				return key + "." + lost
			}
		}
	}
	return ""
}
