// Package routes has the requests to an application shared out over what a release runs of it: it says what clusters are to hold otherwise of the
// Services and routes that do that, writes it, and tells of each cluster whether it does so yet, or what keeps it from that.
package routes

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/delivery"
	"github.com/manifold-dev/manifold/pkg/delivery/controller/objects"
	"github.com/manifold-dev/manifold/pkg/delivery/observe"
	"github.com/manifold-dev/manifold/pkg/delivery/traffic"
	"github.com/manifold-dev/manifold/pkg/delivery/wanted"
	"github.com/manifold-dev/manifold/pkg/identity"
)

// Reader reads the HTTPRoutes and VirtualServices of the logical cluster, see objects.Routes.
type Reader interface {
	Watch(ctx context.Context, changed func(namespace string))
	Get(ctx context.Context, kind schema.GroupKind, namespace, name string) (route *unstructured.Unstructured, known bool, err error)
}

// Router has requests shared out.
type Router struct {
	// Store has the objects of applications, and Carrier writes them.
	Store   *objects.Store
	Carrier *objects.Carrier
	// Reader may be nil: nothing is shared out by HTTPRoutes and VirtualServices then.
	Reader Reader
	// Held returns a route as clusters hold it that are held at a revision. The error wraps held.ErrUnreadable. It may be nil: all of them hold routes as
	// they stand then.
	Held func(route *unstructured.Unstructured, at identity.Revision) (*unstructured.Unstructured, error)
}

// Application is what is known of one whose requests are shared out.
type Application struct {
	App   *v1alpha1.Application
	Owner objects.Owner
	// Set is what it is to run, Plan that of the release that says so, and Wanted what the set stands for.
	Set     delivery.Set
	Plan    *v1alpha1.ReleasePlan
	Wanted  wanted.Wanted
	Present []observe.Present
	// Failures say why objects were refused that are wanted as they are now.
	Failures map[wanted.Key]string
}

// Refused remembers why what clusters are to hold otherwise was refused.
type Refused struct{ why map[string]string }

// ByServices reports whether an application's requests are shared out over Services, each variant with one of its own.
func ByServices(of *v1alpha1.Traffic) bool {
	if of == nil {
		return false
	}
	_, is := traffic.Kinds[of.Method]
	return is && !of.Subsets
}

// NameOf is the name of what shares out requests: the one that the application names, or that of what is made for it.
func NameOf(app *v1alpha1.Application) string { return cmp.Or(app.Spec.Traffic.Name, app.Name) }

// Unserved says that the logical cluster does not have a kind by which requests are to be shared out.
func Unserved(kind schema.GroupKind) string {
	return fmt.Sprintf("spec.traffic.method: the logical cluster has no kind %s: install its definition first", kind)
}

var errNoReader = errors.New("nothing in this server reads routes")

// Find reads a route, nil if it is not there. Known is false where the logical cluster has no such kind.
func (r *Router) Find(ctx context.Context, kind schema.GroupKind, namespace, name string) (route *unstructured.Unstructured, known bool, err error) {
	if kind == traffic.IngressKind.GroupKind() {
		route, err := r.ingress(namespace, name)
		return route, true, err
	}
	if r.Reader == nil {
		return nil, false, errNoReader
	}
	return r.Reader.Get(ctx, kind, namespace, name)
}

// Write writes what clusters are to hold otherwise, where it is not so already. What was refused is remembered, and news says that something was.
func (r *Router) Write(ctx context.Context, as objects.Account, sharing Sharing, refused *Refused) (news bool, err error) {
	for _, object := range sharing.objects {
		text, key := object.want.String(), refusedAs(object)
		if object.present.GetAnnotations()[v1alpha1.AnnotationRoutes] == text || refused.why[key] != "" {
			continue
		}
		err := r.Carrier.Route(ctx, as, object.kind, object.present, text)
		if refusal := new(objects.RefusedError); errors.As(err, &refusal) {
			refused.why = map[string]string{key: delivery.Said("share out requests: " + err.Error())}
			news = true
			continue
		}
		if err != nil {
			return news, err
		}
	}
	return news, nil
}

// refusedAs tells what was refused from what is tried anew.
func refusedAs(object routed) string {
	return object.kind.Kind + "/" + object.present.GetName() + "/" + object.present.GetResourceVersion() + "/" + object.want.String()
}
