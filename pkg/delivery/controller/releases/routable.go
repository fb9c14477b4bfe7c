package releases

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/tools/cache"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1/validation"
	manifold "github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/internal/text"
	"github.com/manifold-dev/manifold/pkg/delivery"
	"github.com/manifold-dev/manifold/pkg/delivery/contents"
	"github.com/manifold-dev/manifold/pkg/delivery/controller/releases/routes"
	"github.com/manifold-dev/manifold/pkg/delivery/copies"
	"github.com/manifold-dev/manifold/pkg/delivery/held"
	"github.com/manifold-dev/manifold/pkg/delivery/read"
	"github.com/manifold-dev/manifold/pkg/delivery/traffic"
	"github.com/manifold-dev/manifold/pkg/identity"
	"github.com/manifold-dev/manifold/pkg/projection"
)

// carriedOut refuses stages that nobody carries out. It would be a lie to let them succeed. Rendered are the manifests of the release, by target.
func carriedOut(of *v1alpha1.Traffic, planned []v1alpha1.Stage, rendered map[string][]*unstructured.Unstructured) error {
	i := slices.IndexFunc(planned, routesTraffic)
	switch {
	case i < 0:
		return nil
	case of == nil:
		return fmt.Errorf("stage %s: %w", planned[i].ID, field.Required(field.NewPath("spec", "traffic"), "a stage routes traffic"))
	}
	if lost := validation.LostTraffic(of); lost != nil {
		return fmt.Errorf("stage %s: %w", planned[i].ID, lost)
	}
	if of.Finds() {
		kind := traffic.Kinds[of.Method].GroupKind()
		if _, err := traffic.Only(kind, traffic.Among(kind, rendered)); err != nil {
			return fmt.Errorf("stage %s: %w", planned[i].ID, err)
		}
	}
	return nil
}

func routesTraffic(stage v1alpha1.Stage) bool {
	return stage.Plugin == "" && v1alpha1.CanonicalStageName(stage.Name) == v1alpha1.StageTrafficRouting
}

// served returns a waitError where the logical cluster, or a cluster that the release comes to, does not know the kind by which requests are to be shared
// out. All that a cluster is known to serve it says itself. A release that shares out none needs the kind only where the route is among its manifests.
func (c *Controller) served(
	ctx context.Context, app *v1alpha1.Application, plan *v1alpha1.ReleasePlan, revision delivery.Revision, places []delivery.Place,
) error {
	of := app.Spec.Traffic
	if of == nil {
		return nil
	}
	needs, routed := traffic.Kinds[of.Method]
	if !routed || needs == traffic.IngressKind {
		return nil
	}
	kind := needs.GroupKind()
	if of.Makes() || slices.ContainsFunc(plan.Stages, routesTraffic) {
		_, known, err := c.router.Find(ctx, kind, app.Namespace, routes.NameOf(app))
		if err != nil {
			return waitError{fmt.Sprintf("read %s %s/%s: %s", kind.Kind, app.Namespace, routes.NameOf(app), err)}
		}
		if !known {
			c.queue.AddAfter(cache.MetaObjectToName(app), trialAgain)
			return waitError{routes.Unserved(kind)}
		}
	} else {
		places = slices.DeleteFunc(slices.Clone(places), func(place delivery.Place) bool {
			route := c.revisions.brought(app, revision, place.Target)
			return route == nil || route.GetAnnotations()[manifold.AnnotationClusters] != ""
		})
	}
	lack := c.clusters.without(kind, places)
	if len(lack) == 0 {
		return nil
	}
	for i, cluster := range lack {
		lack[i] = strconv.Quote(cluster)
	}
	c.queue.AddAfter(cache.MetaObjectToName(app), trialAgain)
	return waitError{fmt.Sprintf("spec.traffic.method: kind %s is not served by cluster %s: install its definition there, or take the cluster out of the targets",
		kind, text.Line(strings.Join(lack, ", "), mostNames))}
}

// heldRoute is a route as clusters hold it that are held at a revision: as it stands where that says the same of it.
func heldRoute(reader *contents.Reader, versions *held.Versions) func(*unstructured.Unstructured, identity.Revision) (*unstructured.Unstructured, error) {
	return func(route *unstructured.Unstructured, at identity.Revision) (*unstructured.Unstructured, error) {
		kind := route.GroupVersionKind().GroupKind()
		builtIn, is := projection.ForGVK(route.GroupVersionKind())
		if !is {
			return held.CustomAt(reader, kind, route, at)
		}
		above := builtIn.New()
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(route.Object, above); err != nil {
			return nil, fmt.Errorf("read %s %s/%s: %w", kind.Kind, route.GetNamespace(), route.GetName(), err)
		}
		version, err := versions.At(builtIn, above, at)
		if err != nil {
			return nil, err
		}
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(version.Object)
		if err != nil {
			return nil, err
		}
		out := &unstructured.Unstructured{Object: content}
		out.SetGroupVersionKind(builtIn.GVK)
		return out, nil
	}
}

// tellable refuses a release that shares out requests while what runs cannot be told from copies of it, before anything is changed.
func (r revisions) tellable(app *v1alpha1.Application, plan *v1alpha1.ReleasePlan, current delivery.Set) error {
	options := read.Copies(app.Spec)
	if !slices.ContainsFunc(plan.Stages, routesTraffic) || !options.Labelled {
		return nil
	}
	contents := r.contentsIn(app.Namespace)
	for _, cluster := range slices.Sorted(maps.Keys(current[delivery.Primary].Clusters)) {
		part, _ := current.Part(delivery.Primary, cluster)
		found, err := contents(part)
		if err != nil {
			return waitError{err.Error()}
		}
		if !copies.Labels(found, options) {
			label, value := options.Selecting(delivery.Primary)
			return fmt.Errorf("spec.traffic: the pods of %s, which runs in cluster %q, have no label %s=%s that tells them from those of copies: release with strategy QuickSync first",
				part.Revision.Name, cluster, label, value)
		}
	}
	return nil
}
