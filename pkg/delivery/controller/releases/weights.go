package releases

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1/validation"
	manifold "github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/delivery"
	"github.com/manifold-dev/manifold/pkg/delivery/traffic"
	"github.com/manifold-dev/manifold/pkg/identity"
	"github.com/manifold-dev/manifold/pkg/projection"
)

// findRoute reads the HTTPRoute or VirtualService that the application names.
func (s *sharer) findRoute(ctx context.Context, of *v1alpha1.Traffic) error {
	kind, routes := routeKinds[of.Method]
	undone := validation.UndoneTraffic(of)
	switch {
	case undone != nil:
		s.out.everywhere = undone.Error()
		return nil
	case !routes:
		return nil
	case s.Routes == nil:
		s.out.everywhere = "nothing in this server reads routes"
		return nil
	}
	route, known, err := s.Routes.Get(ctx, kind, s.app.Namespace, of.Name)
	switch {
	case err != nil:
		return fmt.Errorf("read %s %s/%s: %w", kind.Kind, s.app.Namespace, of.Name, err)
	case !known:
		s.out.everywhere = fmt.Sprintf("spec.traffic.method: the logical cluster has no kind %s: install its definition first", kind)
	case route == nil:
		s.out.everywhere = fmt.Sprintf("spec.traffic.name: there is no %s %q in namespace %q", kind.Kind, of.Name, s.app.Namespace)
	default:
		s.route, s.weights = route, projection.Routes{}
	}
	return nil
}

// stay has the route send requests in a cluster as it does, and says why.
func (s *sharer) stay(cluster, why string) {
	s.out.problems[cluster] = why
	if s.route == nil {
		return
	}
	if fields := projection.RoutesOf(s.route)[cluster]; len(fields) > 0 {
		s.weights[cluster], s.out.stuck[cluster] = fields, true
	}
}

// elsewhere leaves to others what they have set in clusters that the application does not run in.
func (s *sharer) elsewhere(of *v1alpha1.Traffic) {
	if s.route == nil {
		return
	}
	front := ""
	for _, cluster := range slices.Sorted(maps.Keys(s.wanted.Fronts)) {
		front = cmp.Or(front, s.wanted.Fronts[cluster].Name)
	}
	for cluster, fields := range projection.RoutesOf(s.route) {
		if slices.Contains(s.set.Clusters(), cluster) {
			continue
		}
		if others := traffic.Others(s.route, s.backends(of, front, nil), fields); len(others) > 0 {
			s.weights[cluster] = others
		}
	}
}

// backends are where the requests of each variant go.
func (s *sharer) backends(of *v1alpha1.Traffic, front string, shares map[string]int32) traffic.Backends {
	out := traffic.Backends{Shares: shares, Services: traffic.Services(front, s.suffixes), Service: front, Routes: of.Routes}
	if of.Subsets {
		out.Subsets = map[string]string{}
		for _, variant := range []string{delivery.Primary, delivery.Canary, delivery.Baseline} {
			_, out.Subsets[variant] = s.options.Selecting(variant) // as PipeCD calls them, and by its default as variants are called
		}
	}
	return out
}

// weigh has the route send each variant its share.
func (s *sharer) weigh(of *v1alpha1.Traffic, cluster, front string, shares map[string]int32) {
	if _, placed := identity.DecisionOf(s.route)[cluster]; !placed {
		s.out.problems[cluster] = fmt.Sprintf("spec.traffic.name: %s %s does not go to the cluster: pin it there by its annotation %s",
			s.route.GetKind(), s.route.GetName(), manifold.AnnotationClusters)
		return
	}
	fields, err := traffic.Weights(s.route, s.backends(of, front, shares), projection.RoutesOf(s.route)[cluster])
	if err != nil {
		s.stay(cluster, "spec.traffic.name: "+err.Error())
		return
	}
	if len(fields) > 0 {
		s.weights[cluster] = fields
	}
}
