package explain

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	manifoldv1alpha1 "github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/internal/text"
	"github.com/manifold-dev/manifold/pkg/placement"
	"github.com/manifold-dev/manifold/pkg/projection"
)

// routed finds out what a cluster holds of an object by which requests are shared out, by the functions that the syncer calls.
func (g gatherer) routed(ctx context.Context, object *unstructured.Unstructured, cluster string) (*held, error) {
	decision, err := placement.ParseDecision(object.GetAnnotations()[manifoldv1alpha1.AnnotationPlacement])
	if err != nil {
		return nil, err
	}
	kind, builtIn := projection.ForGVK(object.GroupVersionKind())
	above, mark := projection.Object(object), ""
	if builtIn {
		typed := kind.New()
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, typed); err != nil {
			return nil, err
		}
		version, err := g.at(ctx, kind, typed, cluster)
		if err != nil {
			return nil, err
		}
		above, mark = version.Object, version.Mark()
	} else {
		if _, placed := decision[cluster]; !placed {
			return nil, errors.New(elsewhere(decision))
		}
		resource, _ := meta.UnsafeGuessKindToResource(object.GroupVersionKind())
		kind = projection.Custom(object.GroupVersionKind(), resource.Resource, nil)
	}
	system, err := g.client.CoreV1().Namespaces().Get(ctx, metav1.NamespaceSystem, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	h := &held{above: above, kind: kind.GVK.Kind, cluster: cluster, routable: true}
	part := projection.Part{Revision: mark, Share: decision[cluster], Decision: decision}
	if part.Inward, err = g.inward(ctx, object, cluster); err != nil {
		return nil, err
	}
	if h.projected, err = kind.Project(above, part, projection.Target{LogicalCluster: string(system.UID), Cluster: cluster}); err != nil {
		return nil, err
	}
	if projection.RouteMark(h.projected) != "" { // what was said for fields that have changed since is not held
		h.routes = projection.RoutesOf(object)[cluster]
	}
	return h, nil
}

// routesText says what the cluster holds otherwise.
func (h *held) routesText(out io.Writer) error {
	if len(h.routes) == 0 {
		_, err := fmt.Fprintf(out, "%s %s/%s is the same in cluster %s as here: see it with -o yaml.\n", h.kind, h.above.GetNamespace(), h.above.GetName(), h.cluster)
		return err
	}
	fmt.Fprintf(out, "%s %s/%s is the same in cluster %s as here, except for these fields, by which requests are shared out:\n\n", h.kind, h.above.GetNamespace(), h.above.GetName(), h.cluster)
	for _, pointer := range slices.Sorted(maps.Keys(h.routes)) {
		is, err := json.Marshal(h.routes[pointer].Is)
		if err != nil {
			return err
		}
		const longest = 1024
		fmt.Fprintf(out, "%s: %s\n", text.Line(pointer, longest), text.Line(string(is), longest))
	}
	return nil
}
