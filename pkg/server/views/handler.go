package views

import (
	"context"
	"fmt"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/handlers/responsewriters"
	"k8s.io/apiserver/pkg/endpoints/request"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
)

// Objects are the objects that views change.
type Objects interface {
	// Viewed reports whether objects of a resource may be one cluster's alone, and so be written through its view.
	Viewed(resource schema.GroupVersionResource) bool
	// Check returns why an object does not count in the view of the context: NotFound if the cluster has no part of it, or Forbidden where it is to be
	// written and is not that cluster's alone.
	Check(ctx context.Context, resource schema.GroupVersionResource, subresource, name string, write bool) error
}

// Options is what a Handler asks.
type Options struct {
	// Cluster returns a cluster that has joined, nil if there is none of that name.
	Cluster    func(name string) *v1alpha1.Cluster
	Authorizer authorizer.UnconditionalAuthorizer
	Serializer runtime.NegotiatedSerializer
	// LongRunning reports whether a request goes on until somebody ends it.
	LongRunning request.LongRunningRequestCheck
	Objects     Objects
	// Ends ends requests whose cluster goes.
	Ends *Ends
}

// Handler lets requests through a view that may, and all others as they are. It belongs at the inside of the stock chain.
type Handler struct {
	Options
	next http.Handler
}

// New returns a handler before next.
func New(o Options, next http.Handler) *Handler { return &Handler{o, next} }

// ServeHTTP implements http.Handler.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	name, ok := From(r.Context())
	if !ok {
		h.next.ServeHTTP(w, r)
		return
	}
	ctx := r.Context()
	info, _ := request.RequestInfoFrom(ctx)
	who, known := request.UserFrom(ctx)
	if info == nil || !known {
		http.Error(w, "a request without a user has no view", http.StatusInternalServerError)
		return
	}
	fail := func(err error) {
		responsewriters.ErrorNegotiated(err, h.Serializer, schema.GroupVersion{Group: info.APIGroup, Version: info.APIVersion}, w, r)
	}
	if err := h.allowed(ctx, who, name); err != nil {
		fail(err)
		return
	}
	cluster := h.Cluster(name)
	if cluster == nil {
		fail(apierrors.NewNotFound(v1alpha1.Resource("clusters"), name))
		return
	}
	if err := h.refuse(ctx, cluster, info); err != nil {
		fail(err)
		return
	}
	if h.LongRunning(r, info) {
		// A cluster that has gone meanwhile was taken off before or after this, and either is noticed.
		until, end := h.Ends.Context(ctx, name)
		defer end()
		if still := h.Cluster(name); still == nil || still.UID != cluster.UID {
			fail(apierrors.NewNotFound(v1alpha1.Resource("clusters"), name))
			return
		}
		r = r.WithContext(until)
	}
	h.next.ServeHTTP(w, r)
}

// allowed asks for the right to use the view, before anything tells whether there is such a cluster.
func (h *Handler) allowed(ctx context.Context, who user.Info, cluster string) error {
	decision, reason, err := h.Authorizer.Authorize(ctx, authorizer.AttributesRecord{
		User: who, Verb: v1alpha1.VerbUse, ResourceRequest: true, Name: cluster,
		APIGroup: v1alpha1.GroupName, APIVersion: v1alpha1.SchemeGroupVersion.Version, Resource: "clusters", Subresource: v1alpha1.SubresourceView,
	})
	if decision == authorizer.DecisionAllow {
		return nil
	}
	detail := fmt.Sprintf("user %q may not %q the view of the cluster (resource clusters/%s of %s)", who.GetName(), v1alpha1.VerbUse, v1alpha1.SubresourceView, v1alpha1.GroupName)
	switch {
	case err != nil:
		detail += ": " + err.Error()
	case reason != "":
		detail += ": " + reason
	}
	return apierrors.NewForbidden(v1alpha1.Resource("clusters/"+v1alpha1.SubresourceView), cluster, fmt.Errorf("%s", detail))
}

// refuse returns why a request is not answered in the view of a cluster, nil if it is.
func (h *Handler) refuse(ctx context.Context, cluster *v1alpha1.Cluster, info *request.RequestInfo) error {
	if !info.IsResourceRequest {
		if info.Verb == "get" || info.Verb == "head" {
			return nil
		}
		return apierrors.NewForbidden(schema.GroupResource{}, "", fmt.Errorf("the view of cluster %q answers no %s of %s", cluster.Name, info.Verb, info.Path))
	}
	resource := schema.GroupVersionResource{Group: info.APIGroup, Version: info.APIVersion, Resource: info.Resource}
	if refusal := h.refusal(cluster, info, resource); refusal != "" {
		return apierrors.NewForbidden(qualified(resource.GroupResource(), info.Subresource), info.Name, fmt.Errorf("%s", refusal))
	}
	if info.Subresource == "" || info.Name == "" || !h.Objects.Viewed(resource) {
		return nil // the storage sees to it, with the object that it reads
	}
	return h.Objects.Check(request.WithNamespace(ctx, info.Namespace), resource, info.Subresource, info.Name, writes(info.Verb))
}

// refusal says why nothing of the sort is done through a view, "" where it depends on the object.
func (h *Handler) refusal(cluster *v1alpha1.Cluster, info *request.RequestInfo, resource schema.GroupVersionResource) string {
	plain := fmt.Sprintf("; do it at the logical cluster itself, by the same address without %s", v1alpha1.ViewPath(cluster.Name))
	switch {
	case info.Subresource == "proxy" && info.Resource != "pods":
		return fmt.Sprintf("%s/proxy may lead to any cluster", info.Resource) + plain
	case !writes(info.Verb), asksOnly(info):
		return ""
	case info.Subresource == "token":
		return "tokens that are made here would be good elsewhere" + plain
	case !h.Objects.Viewed(resource):
		return fmt.Sprintf("%s are not one cluster's: nothing of them is written through the view of cluster %q", resource.GroupResource(), cluster.Name) + plain
	case info.Verb == "deletecollection":
		return fmt.Sprintf("the view of cluster %q deletes objects one by one: name each", cluster.Name)
	case cluster.DeletionTimestamp != nil && info.Verb != "delete":
		return fmt.Sprintf("cluster %q is being removed, so nothing is sent there any more", cluster.Name)
	}
	return ""
}

// writes reports whether a verb may change anything.
func writes(verb string) bool {
	switch verb {
	case "get", "list", "watch":
		return false
	}
	return true
}

// asksOnly reports whether a request creates an object that is a question, and is not stored.
func asksOnly(info *request.RequestInfo) bool {
	switch info.APIGroup {
	case "authorization.k8s.io":
		return info.Verb == "create"
	case "authentication.k8s.io":
		return info.Verb == "create" && info.Resource == "selfsubjectreviews"
	}
	return false
}

// qualified is a resource with its subresource.
func qualified(resource schema.GroupResource, subresource string) schema.GroupResource {
	if subresource != "" {
		resource.Resource += "/" + subresource
	}
	return resource
}
