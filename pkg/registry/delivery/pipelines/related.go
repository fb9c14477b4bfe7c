package pipelines

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/client-go/dynamic"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/delivery/weave"
	"github.com/manifold-dev/manifold/pkg/delivery/weave/versions"
)

// Alone returns the objects of Flux of a target that its cluster has by itself, and says what of them is not known, "" if all are.
type Alone func(ctx context.Context, p *weave.Pipeline, t weave.Target) (objects []*unstructured.Unstructured, problem string)

// Related returns what tells which objects belong to those of Flux that clusters have by themselves, by its path in the group. Client reads pipelines by rights of its
// own. A caller is told of those that he may get, as if they were in the namespace of the same name of the logical cluster.
func Related(client dynamic.Interface, authorizer authorizer.Authorizer, alone Alone) map[string]rest.Storage {
	return map[string]rest.Storage{v1alpha1.ResourcePipelines + "/" + v1alpha1.SubresourceRelated: &relatedREST{client, authorizer, alone}}
}

type relatedREST struct {
	client     dynamic.Interface
	authorizer authorizer.Authorizer
	alone      Alone
}

var (
	_ rest.Getter                   = &relatedREST{}
	_ rest.GroupVersionKindProvider = &relatedREST{}
	_ rest.StorageMetadata          = &relatedREST{}
)

// New returns an empty answer.
func (r *relatedREST) New() runtime.Object { return &v1alpha1.PipelineRelated{} }

// Destroy does nothing.
func (r *relatedREST) Destroy() {}

// GroupVersionKind is the kind of the answer.
func (r *relatedREST) GroupVersionKind(schema.GroupVersion) schema.GroupVersionKind {
	return v1alpha1.SchemeGroupVersion.WithKind("PipelineRelated")
}

// ProducesMIMETypes leaves the media types as they are.
func (r *relatedREST) ProducesMIMETypes(string) []string { return nil }

// ProducesObject is the answer.
func (r *relatedREST) ProducesObject(verb string) any {
	if verb == http.MethodGet {
		return r.New()
	}
	return nil
}

// Get tells of the pipelines of this name.
func (r *relatedREST) Get(ctx context.Context, name string, _ *metav1.GetOptions) (runtime.Object, error) {
	caller, ok := request.UserFrom(ctx)
	if !ok {
		return nil, apierrors.NewInternalError(errors.New("nobody is known to have asked"))
	}
	namespace := request.NamespaceValue(ctx)
	out := &v1alpha1.PipelineRelated{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	there := false
	for _, version := range weave.GroupVersions {
		resource := version.WithResource(weave.Resource)
		if !r.mayGet(ctx, caller, resource.GroupResource(), namespace, name) {
			continue
		}
		found, err := r.client.Resource(resource).Namespace(namespace).Get(ctx, name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return nil, about(name, err)
		}
		there = true
		p, err := weave.Read(found)
		if err != nil {
			return nil, apierrors.NewInternalError(err)
		}
		r.tell(ctx, caller, p, version.Group, out)
	}
	if !there {
		return nil, apierrors.NewNotFound(v1alpha1.Resource(v1alpha1.ResourcePipelines), name)
	}
	return out, nil
}

// tell adds what one pipeline shows.
func (r *relatedREST) tell(ctx context.Context, caller user.Info, p *weave.Pipeline, group string, out *v1alpha1.PipelineRelated) {
	for _, e := range p.Spec.Environments {
		for _, t := range e.Targets {
			objects, problem := r.alone(ctx, p, t)
			fails := func(message string) {
				out.Errors = append(out.Errors, v1alpha1.RelatedError{Group: group, Environment: e.Name, Cluster: t.Cluster(), Namespace: t.Namespace, Message: message})
			}
			if problem != "" {
				fails(problem)
			}
			var hidden []string
			for _, o := range objects {
				kind := o.GroupVersionKind().GroupKind()
				resource := versions.Custom[kind]
				if r.mayGet(ctx, caller, resource, t.Namespace, o.GetName()) {
					out.Workloads = append(out.Workloads, workload(o, group, e.Name, t.Cluster()))
				} else if !slices.Contains(hidden, resource.String()) {
					hidden = append(hidden, resource.String())
					fails(fmt.Sprintf("what belongs to %s is left out: you may not get them in namespace %q", resource, t.Namespace))
				}
			}
		}
	}
}

func (r *relatedREST) mayGet(ctx context.Context, caller user.Info, resource schema.GroupResource, namespace, name string) bool {
	decision, _, err := r.authorizer.Authorize(ctx, authorizer.AttributesRecord{
		User: caller, Verb: "get", ResourceRequest: true, APIGroup: resource.Group, APIVersion: "*", Resource: resource.Resource, Namespace: namespace, Name: name,
	})
	return err == nil && decision == authorizer.DecisionAllow
}

// workload is what belongs to an object of Flux, as it says itself.
func workload(o *unstructured.Unstructured, group, environment, cluster string) v1alpha1.RelatedWorkload {
	out := v1alpha1.RelatedWorkload{
		Group: group, Environment: environment, Cluster: cluster,
		Object:  related(versions.Reference{Kind: o.GroupVersionKind().GroupKind(), Namespace: o.GetNamespace(), Name: o.GetName()}),
		Sources: all(versions.SourcesOf(o)),
	}
	made, _ := versions.Inventory(o)
	out.More = len(made) > versions.MostRelated
	out.Made = all(made[:min(len(made), versions.MostRelated)])
	return out
}

func all(of []versions.Reference) (out []v1alpha1.RelatedObject) {
	for _, one := range of {
		out = append(out, related(one))
	}
	return out
}

func related(of versions.Reference) v1alpha1.RelatedObject {
	return v1alpha1.RelatedObject{APIGroup: of.Kind.Group, Kind: of.Kind.Kind, Namespace: of.Namespace, Name: of.Name}
}
