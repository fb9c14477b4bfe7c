package routes

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/delivery"
	"github.com/manifold-dev/manifold/pkg/delivery/read"
	"github.com/manifold-dev/manifold/pkg/delivery/traffic"
	"github.com/manifold-dev/manifold/pkg/delivery/wanted"
)

// Maker makes what sends requests to an application.
func (r *Router) Maker(app *v1alpha1.Application) traffic.Maker {
	out := traffic.Maker{Namespace: app.Namespace, Name: app.Name, Traffic: app.Spec.Traffic}
	if of := app.Spec.Traffic; of != nil && of.NginxCanary && !of.Makes() {
		out.Ingress, _ = r.ingress(app.Namespace, of.Name) // what cannot be read is as good as not there
	}
	_, out.Subset = read.Copies(app.Spec).Selecting(delivery.Primary)
	return out
}

// IngressOf is what something is made of the Ingress that an application names.
func IngressOf(m traffic.Maker) any {
	if m.Ingress == nil {
		return nil
	}
	return m.Ingress.Object["spec"]
}

// Made makes the objects that send requests to an application, nil if none are ever made.
func Made(m traffic.Maker) func(delivery.Set, wanted.Front) ([]wanted.Route, error) {
	if !m.Makes() {
		return nil
	}
	return func(set delivery.Set, front wanted.Front) ([]wanted.Route, error) {
		made, err := m.Make(set, front.Name, front.Ports)
		var out []wanted.Route
		for _, of := range made {
			out = append(out, wanted.Route{Manifest: of.Object, Variant: of.Variant, Clusters: of.Clusters})
		}
		return out, err
	}
}

// Written names what users write themselves by which requests to an application are shared out, see wanted.Application. It has no kind where there is none.
func Written(of *v1alpha1.Traffic) wanted.Key {
	kind, is := traffic.Kinds[of.Method]
	if !is || of.Name == "" && !of.Finds() {
		return wanted.Key{}
	}
	return wanted.Key{Group: kind.Group, Kind: kind.Kind, Name: of.Name}
}

// ingress is an Ingress of a namespace, nil if it is not there.
func (r *Router) ingress(namespace, name string) (*unstructured.Unstructured, error) {
	found, _ := r.Store.Get(namespace, wanted.Key{Group: traffic.IngressKind.Group, Kind: traffic.IngressKind.Kind, Name: name})
	if found == nil {
		return nil, nil
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(found)
	if err != nil {
		return nil, err
	}
	out := &unstructured.Unstructured{Object: content}
	out.SetGroupVersionKind(traffic.IngressKind)
	return out, nil
}
