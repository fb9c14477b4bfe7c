package wanted

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	manifold "github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/delivery"
	"github.com/manifold-dev/manifold/pkg/delivery/copies"
)

// Route is an object that sends requests to the application, and is in no revision.
type Route struct {
	Manifest *unstructured.Unstructured
	// Variant is the one that it is about, v1alpha1.AllVariants for all of them.
	Variant  string
	Clusters []string
}

// among is the key of the route as it is among what is projected. It names nothing where the route has no name, and there is not exactly one of its kind.
func (k Key) among(projected []copies.Projected) Key {
	if k.Name != "" {
		return k
	}
	var found []string
	for _, p := range projected {
		if of := KeyOf(p.Object); p.Variant == delivery.Primary && of.Group == k.Group && of.Kind == k.Kind {
			found = append(found, of.Name)
		}
	}
	if len(found) != 1 {
		return Key{}
	}
	k.Name = found[0]
	return k
}

// routes are the objects that are made to send requests to the application, or why there are none although there are to be.
func (app Application) routes(set delivery.Set, fronts map[string]Front) ([]Object, error) {
	if app.Routes == nil || len(set.Clusters()) == 0 {
		return nil, nil
	}
	front, err := app.oneFront(fronts)
	if err != nil {
		return nil, err
	}
	routes, err := app.Routes(set, front)
	if err != nil {
		return nil, err
	}
	out := make([]Object, len(routes))
	for i, route := range routes {
		if out[i], err = app.sends(route); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// oneFront is the Service that is in front in all clusters.
func (app Application) oneFront(fronts map[string]Front) (Front, error) {
	var out Front
	first := ""
	for i, cluster := range slices.Sorted(maps.Keys(fronts)) {
		front := fronts[cluster]
		switch {
		case front.Problem != "":
			return out, errors.New(front.Problem)
		case i == 0:
			out, first = front, cluster
		case front.Name != out.Name || !slices.Equal(front.Ports, out.Ports):
			return out, field.Invalid(field.NewPath("traffic", "method"), app.Traffic,
				fmt.Sprintf("clusters %q and %q have Services in front that differ by name or ports, %s and %s, and all clusters get what is made from one object: write a route, and set name to its name",
					first, cluster, out.Name, front.Name))
		}
	}
	return out, nil
}

// sends makes of a route what is applied: with our marks and its owner. What is of a custom kind goes where it is sent, and an Ingress where its Services
// are. Clusters hold it as it stands.
func (app Application) sends(route Route) (Object, error) {
	m := route.Manifest.DeepCopy()
	out := Object{Key: KeyOf(m), Variant: route.Variant, Clusters: map[string]copies.Share{}, Manifest: m}
	for _, cluster := range route.Clusters {
		out.Clusters[cluster] = copies.Share{}
	}
	m.SetNamespace(app.Namespace)
	m.SetOwnerReferences([]metav1.OwnerReference{app.Owner()})
	m.SetLabels(map[string]string{v1alpha1.LabelApplication: app.Name})
	annotations := m.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[v1alpha1.AnnotationVariant] = route.Variant
	if out.Group != networkingv1.GroupName {
		annotations[manifold.AnnotationClusters] = strings.Join(slices.Sorted(slices.Values(route.Clusters)), ",")
	}
	m.SetAnnotations(annotations)
	var err error
	out.Hash, err = hash(m, "")
	return out, err
}
