package appdeployments

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	manifold "github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/delivery"
	"github.com/manifold-dev/manifold/pkg/delivery/controller/objects"
	"github.com/manifold-dev/manifold/pkg/delivery/oam"
	"github.com/manifold-dev/manifold/pkg/delivery/observe"
	"github.com/manifold-dev/manifold/pkg/delivery/wanted"
	"github.com/manifold-dev/manifold/pkg/projection"
	"github.com/manifold-dev/manifold/pkg/summary"
)

// routes are how requests are shared out.
type routes struct {
	// rules are the objects of the rules, with the Service in front, and hosts those for the hosts of revisions, by variant.
	rules []wanted.Object
	hosts map[string][]wanted.Object
	// shares are what clusters hold otherwise than VirtualServices say, by their names.
	shares map[string]projection.Routes
	// held says why the rules stay as they are in force, "" if they are as the spec says. waits is what keeps clusters from doing as the spec says.
	held, waits string
	// undone says by path what of the spec is not done.
	undone []string
}

// route says how requests are to be shared out.
func (r *run) route() (routes, error) {
	out := routes{hosts: map[string][]wanted.Object{}}
	backends, byName := r.backends()
	spec := r.spec
	if out.held = r.unroutable(backends); out.held != "" {
		spec.Rules = nil
	}
	made, err := oam.Render(r.key.Name, spec, backends)
	if err != nil {
		return out, fmt.Errorf("share out requests: %w", err)
	}
	out.shares, out.undone = made.Shares, made.Undone
	if front := r.front(); front != nil {
		made.Rules = append(made.Rules, front)
	}
	for _, object := range made.Rules {
		finished, err := r.app.Beside(oam.Routes, object)
		if err != nil {
			return out, err
		}
		out.rules = append(out.rules, finished)
	}
	for name, hosts := range made.Hosts {
		for _, object := range hosts {
			finished, err := r.app.Beside(byName[name], object)
			if err != nil {
				return out, err
			}
			out.hosts[byName[name]] = append(out.hosts[byName[name]], finished)
		}
	}
	if out.waits = out.held; out.waits == "" {
		out.waits = r.unforced(out)
	}
	return out, nil
}

// backends are where the requests to revisions go, by their names, and their variants.
func (r *run) backends() (map[string]oam.Backend, map[string]string) {
	out, byName := map[string]oam.Backend{}, map[string]string{}
	for _, revision := range r.spec.Revisions {
		variant := revision.Variant
		byName[revision.Name] = variant
		front := r.fronts[variant]
		if front == nil {
			continue
		}
		ordered := r.object.Status.Ordered[variant]
		backend := oam.Backend{
			Service: revision.Service(), Port: oam.PortOf(front), Clusters: slices.Sorted(maps.Keys(r.sizes[variant].Grown(ordered))), Ready: r.capacity(variant, r.sizes[variant]),
		}
		if len(backend.Ready) == 0 { // what it leaves serves until what it goes to does
			backend.Ready = r.capacity(variant, ordered)
		}
		out[revision.Name] = backend
	}
	return out, byName
}

// capacity is how many replicas a revision has in the clusters in which requests get to it. It goes by what is ordered, so that a pod which comes or goes
// changes nothing.
func (r *run) capacity(variant string, size oam.Size) map[string]int32 {
	out := map[string]int32{}
	for cluster := range size {
		if total := size.Total(cluster); total > 0 && r.endpoints(variant, cluster) > 0 {
			out[cluster] = total
		}
	}
	return out
}

// unroutable says why requests cannot be shared out as the rules say, "" if they can.
func (r *run) unroutable(backends map[string]oam.Backend) string {
	for _, name := range r.spec.Named() {
		backend, has := backends[name]
		i := slices.IndexFunc(r.spec.Revisions, func(revision oam.Revision) bool { return revision.Name == name })
		variant := r.spec.Revisions[i].Variant
		switch why, unknown := r.unknown[variant]; {
		case unknown:
			return fmt.Sprintf("requests stay where they go: revision %s is not known: %s", name, why)
		case !has:
			return fmt.Sprintf("requests stay where they go: no Service leads to the pods of revision %s (%s)", name, r.spec.Revisions[i].Reference())
		case len(backend.Ready) == 0:
			return fmt.Sprintf("requests stay where they go until pods of revision %s are ready, and get them", name)
		}
	}
	return ""
}

// unforced says which object that shares out requests is not in force as it is wanted, "" if all are.
func (r *run) unforced(of routes) string {
	for _, object := range of.rules {
		if why := r.memory.of(oam.Routes).Failures()[object.Key]; why != "" {
			return why
		}
		present, known := r.store.Get(r.key.Namespace, object.Key)
		if !known || present == nil || !object.Applied(present) {
			return fmt.Sprintf("%s is about to be applied", object.Key)
		}
		if object.Group != virtualService.Group {
			continue
		}
		all, _ := summary.ParseCustomBreakdown(present.GetAnnotations()[manifold.AnnotationStatus]) // what cannot be read is written anew
		for _, cluster := range strings.Split(object.Manifest.GetAnnotations()[manifold.AnnotationClusters], ",") {
			reported := all[cluster]
			switch {
			case cluster == "", r.left(cluster):
			case reported.Problem != "":
				return fmt.Sprintf("cluster %q does not take %s: %s", cluster, object.Key, delivery.Said(reported.Problem))
			case reported.Stale, reported.Generation < present.GetGeneration(), reported.Routes != of.shares[object.Name][cluster].Mark():
				return fmt.Sprintf("cluster %q has not taken up %s yet", cluster, object.Key)
			}
		}
	}
	return ""
}

// left reports whether a cluster that is to run nothing any more does not answer. It has the rules and what it runs taken from it when it is back, and nobody waits
// for it until then.
func (r *run) left(cluster string) bool {
	for _, size := range r.sizes {
		if size.Total(cluster) > 0 {
			return false
		}
	}
	i := slices.IndexFunc(r.clusters, func(c *manifold.Cluster) bool { return c.Name == cluster })
	return i < 0 || observe.Silent(r.clusters[i])
}

// virtualService is the kind by whose weights requests are shared out.
var virtualService = wanted.Key{Group: "networking.istio.io", Kind: "VirtualService"}

// share has clusters hold VirtualServices otherwise where they do not have all revisions.
func (r *run) share(ctx context.Context) error {
	var errs []error
	for _, object := range r.routes.rules {
		present, _ := r.store.Get(r.key.Namespace, object.Key)
		text := r.routes.shares[object.Name].String()
		if object.Kind != virtualService.Kind || present == nil || !object.Applied(present) || present.GetAnnotations()[v1alpha1.AnnotationRoutes] == text {
			continue
		}
		err := r.carrier.Route(ctx, objects.Account{Namespace: r.key.Namespace}, object.Manifest.GroupVersionKind(), present, text)
		if refusal := new(objects.RefusedError); errors.As(err, &refusal) {
			err = fmt.Errorf("share out requests in each cluster: %w", err)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}
