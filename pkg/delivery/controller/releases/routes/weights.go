package routes

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1/validation"
	manifold "github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/delivery"
	"github.com/manifold-dev/manifold/pkg/delivery/controller/objects"
	"github.com/manifold-dev/manifold/pkg/delivery/traffic"
	"github.com/manifold-dev/manifold/pkg/delivery/wanted"
	"github.com/manifold-dev/manifold/pkg/identity"
	"github.com/manifold-dev/manifold/pkg/projection"
)

// findRoute reads what shares out requests: the object that the application names, or the one that is made for it.
func (s *sharer) findRoute(ctx context.Context, of *v1alpha1.Traffic) error {
	served, routes := traffic.Kinds[of.Method]
	if !routes {
		return nil
	}
	if lost := validation.LostTraffic(of); lost != nil {
		s.out.everywhere = lost.Error()
		return nil
	}
	kind := served.GroupKind()
	name, path := NameOf(s.App), pathOf(of)
	if of.Finds() {
		names := s.among(kind)
		var err error
		if name, err = traffic.Only(kind, names); err != nil {
			s.absent, s.out.everywhere = len(names) == 0, err.Error()
			return nil
		}
	}
	s.key = wanted.Key{Group: kind.Group, Kind: kind.Kind, Name: name}
	if why := cmp.Or(s.Wanted.Unrouted, s.Failures[s.key]); why != "" {
		s.out.everywhere = why
		return nil
	}
	route, known, err := s.router.Find(ctx, kind, s.App.Namespace, name)
	switch {
	case errors.Is(err, errNoReader):
		s.out.everywhere = err.Error()
	case err != nil:
		return fmt.Errorf("read %s %s/%s: %w", kind.Kind, s.App.Namespace, name, err)
	case !known:
		s.out.everywhere = Unserved(kind)
	case route == nil && of.Makes():
		s.unmade = fmt.Sprintf("there is no %s %q yet", kind.Kind, name)
	case route == nil:
		s.absent = true
		s.out.everywhere = fmt.Sprintf("%s: there is no %s %q in namespace %q", path, kind.Kind, name, s.App.Namespace)
	case of.Makes() && !objects.Owned(route, s.Owner):
		s.out.everywhere = fmt.Sprintf("%s: %s %q of namespace %q was made by somebody else, and stays as it is: set spec.traffic.name to share out requests by it, or delete it",
			path, kind.Kind, name, s.App.Namespace)
	default:
		s.route, s.weights = route, projection.Routes{}
	}
	return nil
}

// pathOf is the field that says which route shares out requests.
func pathOf(of *v1alpha1.Traffic) string {
	switch {
	case of.Makes():
		return "spec.traffic.host"
	case of.Finds():
		return "spec.traffic"
	}
	return "spec.traffic.name"
}

// among returns the names of the routes of a kind that are among the manifests of what runs.
func (s *sharer) among(kind schema.GroupKind) (names []string) {
	for _, object := range s.Wanted.Objects {
		if object.Group == kind.Group && object.Kind == kind.Kind && object.Variant == delivery.Primary {
			names = append(names, object.Name)
		}
	}
	return names
}

// routeIn is the route as a cluster is to hold it, or why that is not known. Where the route is among the manifests, a cluster that is held at another revision
// holds what that says of it, and shares are made for nothing else.
func (s *sharer) routeIn(cluster string) (route *unstructured.Unstructured, why string) {
	manifest, is := s.manifest()
	share := manifest.Clusters[cluster]
	if !is || s.router.Held == nil || share.Revision == "" {
		return s.route, ""
	}
	route, err := s.router.Held(s.route, identity.Revision{Name: share.Revision, Target: share.Target})
	if err != nil {
		return nil, err.Error()
	}
	return route, ""
}

// manifest is the route as it is among the manifests, if it is.
func (s *sharer) manifest() (object wanted.Object, is bool) {
	i := slices.IndexFunc(s.Wanted.Objects, func(object wanted.Object) bool { return object.Key == s.key && object.Variant == delivery.Primary })
	if i < 0 {
		return wanted.Object{}, false
	}
	return s.Wanted.Objects[i], true
}

// findBeside finds the Ingress by which nginx gives a canary its share.
func (s *sharer) findBeside(of *v1alpha1.Traffic) {
	if !of.NginxCanary {
		return
	}
	for _, object := range s.Wanted.Objects {
		if object.Variant != delivery.Canary || object.Group != traffic.IngressKind.Group || object.Kind != traffic.IngressKind.Kind {
			continue
		}
		found, _ := s.router.Store.Get(s.App.Namespace, object.Key)
		if why := s.Failures[object.Key]; why != "" {
			s.out.everywhere = cmp.Or(s.out.everywhere, why)
		} else if found != nil && objects.Owned(found, s.Owner) {
			s.beside, s.parts = found, projection.Routes{}
		}
	}
}

// weighBeside has the Ingress beside the one in front get the share of the canary. That one stays as it is.
func (s *sharer) weighBeside(of *v1alpha1.Traffic, cluster, front string, shares map[string]int32) {
	if s.route != nil {
		route, why := s.routeIn(cluster)
		if why != "" {
			s.stay(cluster, why)
			return
		}
		s.weights[cluster] = traffic.Others(route, s.backends(of, front, nil), projection.RoutesOf(s.route)[cluster])
	}
	fields, err := traffic.NginxWeight(shares, delivery.Canary)
	switch {
	case err != nil:
		s.stay(cluster, "spec."+err.Error())
	case s.beside != nil:
		s.parts[cluster] = fields
	case len(fields) > 0:
		s.out.stuck[cluster], s.out.waits[cluster] = true, "the Ingress of the canary is not there yet"
	}
}

// keep has a cluster send requests as it does.
func (s *sharer) keep(cluster string) (otherwise bool) {
	if s.route != nil {
		if fields := projection.RoutesOf(s.route)[cluster]; len(fields) > 0 {
			s.weights[cluster], otherwise = fields, true
		}
	}
	if s.beside != nil {
		if fields := projection.RoutesOf(s.beside)[cluster]; len(fields) > 0 {
			s.parts[cluster], otherwise = fields, true
		}
	}
	return otherwise
}

// stay has the route send requests in a cluster as it does, and says why.
func (s *sharer) stay(cluster, why string) {
	s.out.problems[cluster] = why
	if s.keep(cluster) {
		s.out.stuck[cluster] = true
	}
}

// elsewhere leaves to others what they have set in clusters that the application does not run in.
func (s *sharer) elsewhere(of *v1alpha1.Traffic) {
	if s.route == nil {
		return
	}
	front := ""
	for _, cluster := range slices.Sorted(maps.Keys(s.Wanted.Fronts)) {
		front = cmp.Or(front, s.Wanted.Fronts[cluster].Name)
	}
	for cluster, fields := range projection.RoutesOf(s.route) {
		if slices.Contains(s.Set.Clusters(), cluster) {
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
	if !s.goes(of, cluster) {
		if manifest, _ := s.manifest(); !of.Makes() && !sends(manifest, cluster) {
			s.out.problems[cluster] = s.away(of)
			return
		}
		s.out.stuck[cluster], s.out.waits[cluster] = true, fmt.Sprintf("%s %s is not placed there yet: see manifold explain", s.route.GetKind(), s.route.GetName())
	}
	fields, why := s.weightsIn(of, cluster, front, shares)
	if why != "" {
		s.stay(cluster, why)
		return
	}
	if len(fields) > 0 {
		s.weights[cluster] = fields
	}
}

// goes reports whether the route goes to a cluster. An Ingress goes where its Services are.
func (s *sharer) goes(of *v1alpha1.Traffic, cluster string) bool {
	_, placed := identity.DecisionOf(s.route)[cluster]
	return placed || of.Method == v1alpha1.TrafficIngress
}

// sends reports whether an object is sent to a cluster by the pin that it is applied with.
func sends(object wanted.Object, cluster string) bool {
	_, has := object.Clusters[cluster]
	return object.Pinned && has
}

// away says that the route does not go to a cluster, and what to do.
func (s *sharer) away(of *v1alpha1.Traffic) string {
	return fmt.Sprintf("%s: %s %s does not go to the cluster: pin it there by its annotation %s", pathOf(of), s.route.GetKind(), s.route.GetName(), manifold.AnnotationClusters)
}

// weightsIn are what a cluster holds of the route otherwise, or why it cannot share out requests so.
func (s *sharer) weightsIn(of *v1alpha1.Traffic, cluster, front string, shares map[string]int32) (fields projection.Fields, why string) {
	route, why := s.routeIn(cluster)
	if why != "" {
		return nil, why
	}
	fields, err := traffic.Weights(route, s.backends(of, front, shares), projection.RoutesOf(s.route)[cluster])
	if err != nil {
		return nil, pathOf(of) + ": " + err.Error()
	}
	return fields, ""
}
