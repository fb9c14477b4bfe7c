package routes

import (
	"cmp"
	"context"
	"fmt"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	manifold "github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/delivery"
	"github.com/manifold-dev/manifold/pkg/delivery/read"
	"github.com/manifold-dev/manifold/pkg/delivery/traffic"
)

// Lack is what keeps requests from being shared out. The zero value is nothing.
type Lack struct {
	// Absent says that there is no route, neither in the logical cluster nor among the manifests.
	Absent bool
	// Refused says what never passes by itself, and Awaits what may come about without another revision.
	Refused, Awaits string
}

// Foresee says what would keep clusters from sharing out requests as an application's set says, before anything of that set has to be there. What is made is
// as good as there, and clusters without the primary are left out: nothing is in front of them yet. Wanted is what the primary alone stands for.
func (r *Router) Foresee(ctx context.Context, app Application, clusters []string) (Lack, error) {
	of := app.App.Spec.Traffic
	if _, routes := traffic.Kinds[of.Method]; !routes || of.Makes() {
		return Lack{}, nil
	}
	s := sharer{
		Application: app, router: r,
		options: read.Copies(app.App.Spec), suffixes: suffixesOf(app.Set, app.Plan),
	}
	if err := s.findRoute(ctx, of); err != nil {
		return Lack{}, err
	}
	if manifest, is := s.manifest(); s.absent && is { // it is applied with what it is among
		s.route, s.absent, s.out.everywhere = manifest.Manifest, false, ""
	}
	switch why := s.out.everywhere; {
	case s.absent:
		return Lack{Absent: true, Awaits: why}, nil
	case why != "":
		return Lack{Refused: why}, nil
	}
	var out Lack
	for _, cluster := range clusters {
		refused, awaits := s.foresee(of, cluster)
		if refused != "" {
			refused = fmt.Sprintf("cluster %q: %s", cluster, refused)
		}
		if awaits != "" {
			awaits = fmt.Sprintf("cluster %q: %s", cluster, awaits)
		}
		out.Refused, out.Awaits = cmp.Or(out.Refused, refused), cmp.Or(out.Awaits, awaits)
	}
	return out, nil
}

// foresee does that for one cluster.
func (s *sharer) foresee(of *v1alpha1.Traffic, cluster string) (refused, awaits string) {
	shares, front := s.Set.Shares(cluster), s.Wanted.Fronts[cluster]
	switch _, runs := s.Set.Part(delivery.Primary, cluster); {
	case !runs || leaving(shares):
		return "", ""
	case front.Problem != "":
		return "spec." + front.Problem, ""
	}
	if refused, awaits := s.reaches(of, cluster); refused != "" || awaits != "" {
		return refused, awaits
	}
	route, unknown := s.routeIn(cluster)
	switch {
	case unknown != "": // by then it may be
		return "", ""
	case of.NginxCanary:
		if _, err := traffic.NginxCanary(route, s.backends(of, front.Name, nil), delivery.Canary); err != nil {
			return fmt.Sprintf("%s: Ingress %s: %s", pathOf(of), route.GetName(), err), ""
		}
		return "", ""
	}
	_, why := s.weightsIn(of, cluster, front.Name, shares)
	return why, ""
}

// reaches says why the route would not go to a cluster that has it in front. A cluster gets what is among the manifests only as its own target has it.
func (s *sharer) reaches(of *v1alpha1.Traffic, cluster string) (refused, awaits string) {
	if of.Method == v1alpha1.TrafficIngress {
		return "", ""
	}
	manifest, among := s.manifest()
	if !among {
		if s.goes(of, cluster) {
			return "", ""
		}
		return "", s.away(of)
	}
	if _, has := manifest.Clusters[cluster]; !has {
		return fmt.Sprintf("%s: %s %s is among the manifests of other targets alone, so the cluster does not get it: have it among those of this one as well",
			pathOf(of), s.route.GetKind(), s.route.GetName()), ""
	}
	text, pinned := manifest.Manifest.GetAnnotations()[manifold.AnnotationClusters]
	pin, err := manifold.ParsePin(text)
	switch {
	case s.goes(of, cluster), pinned && err == nil && pin.Selects(cluster):
		return "", ""
	case pinned:
		return s.away(of), ""
	}
	return "", s.away(of)
}
