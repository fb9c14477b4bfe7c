package routes

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	manifold "github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/delivery"
	"github.com/manifold-dev/manifold/pkg/delivery/copies"
	"github.com/manifold-dev/manifold/pkg/delivery/observe"
	"github.com/manifold-dev/manifold/pkg/delivery/read"
	"github.com/manifold-dev/manifold/pkg/delivery/routing"
	"github.com/manifold-dev/manifold/pkg/delivery/traffic"
	"github.com/manifold-dev/manifold/pkg/delivery/wanted"
	"github.com/manifold-dev/manifold/pkg/identity"
	"github.com/manifold-dev/manifold/pkg/projection"
	"github.com/manifold-dev/manifold/pkg/summary"
)

var serviceKind = corev1.SchemeGroupVersion.WithKind("Service")

// Sharing is how the requests to an application are shared out in clusters.
type Sharing struct {
	// objects do that, each with what clusters are to hold of it otherwise than it says.
	objects []routed
	// everywhere is what keeps all clusters from sharing out requests, and problems what keeps some.
	everywhere string
	problems   map[string]string
	// stuck are the clusters that go on as they do, although something else is wanted, and waits says of some what they wait for.
	stuck map[string]bool
	waits map[string]string
}

type routed struct {
	kind    schema.GroupVersionKind
	present metav1.Object
	want    projection.Routes
}

// Share says how the requests to an application are to be shared out.
func (r *Router) Share(ctx context.Context, app Application, refused Refused) (Sharing, error) {
	s := sharer{
		Application: app, router: r, out: Sharing{problems: map[string]string{}, stuck: map[string]bool{}, waits: map[string]string{}},
		services: map[string]projection.Routes{}, busy: lingering(app.Present),
	}
	for _, p := range s.Present {
		// What is there is taken away where it is no longer wanted.
		if p.Kind == serviceKind.Kind && p.Group == "" && p.Object.GetAnnotations()[v1alpha1.AnnotationRoutes] != "" {
			s.services[p.Name] = projection.Routes{}
		}
	}
	if of := s.App.Spec.Traffic; of != nil {
		if err := s.findRoute(ctx, of); err != nil {
			return s.out, err
		}
		s.options, s.suffixes = read.Copies(s.App.Spec), suffixesOf(s.Set, s.Plan)
		s.findBeside(of)
		for _, cluster := range s.Set.Clusters() {
			s.cluster(of, cluster)
		}
		s.elsewhere(of)
	}
	for _, name := range slices.Sorted(maps.Keys(s.services)) {
		if present := s.service(name); present != nil {
			s.out.objects = append(s.out.objects, routed{serviceKind, present, s.services[name]})
		}
	}
	if s.route != nil {
		s.out.objects = append(s.out.objects, routed{s.route.GroupVersionKind(), s.route, s.weights})
	}
	if s.beside != nil {
		s.out.objects = append(s.out.objects, routed{traffic.IngressKind, s.beside, s.parts})
	}
	for _, object := range s.out.objects {
		if why := refused.why[refusedAs(object)]; why != "" {
			s.out.everywhere = why
		}
	}
	return s.out, nil
}

// sharer gathers what clusters are to hold of the objects that share out requests.
type sharer struct {
	Application
	router   *Router
	out      Sharing
	options  copies.Options
	suffixes map[string]string
	services map[string]projection.Routes
	// key names what shares out requests, and absent says that there is no such object.
	key     wanted.Key
	absent  bool
	route   *unstructured.Unstructured
	weights projection.Routes
	// unmade says that the route which is made is not there yet.
	unmade string
	// beside is the Ingress by which nginx gives a canary its share, nil if there is none, and parts are what clusters hold of it otherwise.
	beside metav1.Object
	parts  projection.Routes
	// busy are the clusters that have anything of a copy.
	busy map[string]bool
}

// service is a Service of the application's namespace, nil if it is not there.
func (s *sharer) service(name string) *corev1.Service {
	found, _ := s.router.Store.Get(s.App.Namespace, wanted.Key{Kind: serviceKind.Kind, Name: name})
	service, _ := found.(*corev1.Service)
	return service
}

// cluster says what a cluster holds otherwise. A Service in front that led to copies as well would send them requests that nobody has shared out, so it
// leads to the primary alone for as long as the cluster has any.
func (s *sharer) cluster(of *v1alpha1.Traffic, cluster string) {
	front, why := s.front(cluster)
	if why != "" {
		s.stay(cluster, why)
		return
	}
	shares := s.Set.Shares(cluster)
	if leaving(shares) {
		s.asIs(cluster, front.GetName())
		return
	}
	part, runs := s.Set.Part(delivery.Primary, cluster)
	if runs && !s.Wanted.Labelled[cluster] {
		label, value := s.options.Selecting(delivery.Primary)
		s.stay(cluster, fmt.Sprintf("spec.traffic: the pods of %s, which runs there, have no label %s=%s that tells them from those of copies: "+
			"release it with strategy QuickSync first", part.Revision.Name, label, value))
		return
	}
	if (len(shares) > 1 || s.busy[cluster]) && !of.Subsets {
		s.narrow(of, cluster, front.GetName(), front.Spec.Selector, shares)
	}
	switch {
	case s.unmade != "":
		s.out.stuck[cluster], s.out.waits[cluster] = true, s.unmade
	case of.NginxCanary:
		s.weighBeside(of, cluster, front.GetName(), shares)
	case s.route != nil:
		s.weigh(of, cluster, front.GetName(), shares)
	}
}

// leaving reports whether nothing of what a cluster runs is to get requests, as the application is about to leave it.
func leaving(shares map[string]int32) bool {
	for _, share := range shares {
		if share > 0 {
			return false
		}
	}
	return true
}

// asIs has a cluster go on as it does: requests that still come there are better served than refused, until those who send them have heard that they
// are to go elsewhere.
func (s *sharer) asIs(cluster, front string) {
	if fields := projection.RoutesOf(s.service(front))[cluster]; len(fields) > 0 {
		s.lead(front, cluster, fields)
	}
	s.keep(cluster)
}

// front is the Service in front of the application in a cluster, or why there is none.
func (s *sharer) front(cluster string) (service *corev1.Service, why string) {
	front := s.Wanted.Fronts[cluster]
	if front.Problem != "" || front.Name == "" {
		return nil, "spec." + front.Problem
	}
	if service = s.service(front.Name); service == nil {
		return nil, fmt.Sprintf("spec.service.name: there is no Service %q in namespace %q yet", front.Name, s.App.Namespace)
	}
	return service, ""
}

// narrow has the Service in front lead to one variant alone.
func (s *sharer) narrow(of *v1alpha1.Traffic, cluster, front string, selector map[string]string, shares map[string]int32) {
	variant, why := leadsTo(of.Method, shares)
	if why != "" {
		s.out.problems[cluster] = why
		if fields := projection.RoutesOf(s.service(front))[cluster]; len(fields) > 0 { // it goes on as it does
			s.lead(front, cluster, fields)
			s.out.stuck[cluster] = true
		}
		return
	}
	if variant == "" { // it leads to all, which the cluster has to prove as well
		s.lead(front, cluster, nil)
		return
	}
	label, value := s.options.Selecting(variant)
	fields, err := traffic.Selects(front, selector, label, value)
	if err != nil {
		s.out.problems[cluster] = err.Error()
		return
	}
	s.lead(front, cluster, fields)
}

// lead has a cluster hold a Service otherwise.
func (s *sharer) lead(front, cluster string, fields projection.Fields) {
	if s.services[front] == nil {
		s.services[front] = projection.Routes{}
	}
	s.services[front][cluster] = fields
}

// leadsTo is the variant that the Service in front leads to alone, "" if it leads to all of them, or why it can do neither.
func leadsTo(method v1alpha1.TrafficMethod, shares map[string]int32) (variant, why string) {
	chosen := traffic.Chosen(shares)
	switch method {
	case v1alpha1.TrafficService:
		if chosen == "" {
			return "", "spec.traffic.method: a Service leads to one variant, which gets everything"
		}
		return chosen, ""
	case v1alpha1.TrafficReplicas:
		if err := routing.ByPods(shares); err != nil {
			return "", "spec.traffic.method: " + err.Error()
		}
		return chosen, ""
	}
	return delivery.Primary, ""
}

// suffixesOf are what the names of the copies of variants end in, also of those that are gone.
func suffixesOf(set delivery.Set, plan *v1alpha1.ReleasePlan) map[string]string {
	out := map[string]string{delivery.Canary: delivery.Canary, delivery.Baseline: delivery.Baseline}
	if plan != nil {
		stages, _, _ := read.Stages(plan.Stages, nil)
		for _, stage := range stages {
			switch {
			case stage.Copy == nil || stage.Copy.Suffix == "":
			case stage.Name == delivery.StageCanaryRollout:
				out[delivery.Canary] = stage.Copy.Suffix
			case stage.Name == delivery.StageBaselineRollout:
				out[delivery.Baseline] = stage.Copy.Suffix
			}
		}
	}
	for name, variant := range set {
		if variant.Suffix != "" {
			out[name] = variant.Suffix
		}
	}
	return out
}

// lingering are the clusters that have, or may have, pods of a copy.
func lingering(present []observe.Present) map[string]bool {
	out := map[string]bool{}
	for _, p := range present {
		if variant := p.Object.GetAnnotations()[v1alpha1.AnnotationVariant]; !p.Workload || variant == "" || variant == delivery.Primary {
			continue
		}
		for cluster := range identity.DecisionOf(p.Object) {
			out[cluster] = true
		}
		for cluster := range identity.BreakdownOf(p.Object) {
			out[cluster] = true
		}
	}
	return out
}

// In says how a cluster shares out requests: it does as is wanted once it reports of every object that it holds it so. Where there is nothing that does it,
// nothing has to be waited for.
func (s Sharing) In(cluster string) observe.Routing {
	out := observe.Routing{InForce: !s.stuck[cluster], Problem: cmp.Or(s.everywhere, s.problems[cluster]), Waits: s.waits[cluster]}
	for _, object := range s.objects {
		want := object.want[cluster].Mark()
		if projection.RoutesOf(object.present)[cluster].Mark() != want || object.reported(cluster) != want {
			out.InForce, out.Waits = false, cmp.Or(out.Waits, object.refusedBy(cluster))
		}
	}
	return out
}

// builtIn reports whether an object is of a kind whose clusters are told of as those of built-in kinds are.
func (r routed) builtIn() bool { return r.kind == serviceKind || r.kind == traffic.IngressKind }

// reported is the mark of what a cluster says that it holds otherwise.
func (r routed) reported(cluster string) string {
	if r.builtIn() {
		return identity.BreakdownOf(r.present)[cluster].Routes
	}
	all, err := summary.ParseCustomBreakdown(r.present.GetAnnotations()[manifold.AnnotationStatus])
	if err != nil {
		return "" // it is written anew
	}
	return all[cluster].Routes
}

// refusedBy says why a cluster cannot hold an object, "" if nothing is known to keep it from that.
func (r routed) refusedBy(cluster string) string {
	if r.builtIn() {
		return ""
	}
	all, err := summary.ParseCustomBreakdown(r.present.GetAnnotations()[manifold.AnnotationStatus])
	if err != nil || all[cluster].Problem == "" {
		return ""
	}
	return fmt.Sprintf("%s %s: %s", r.kind.Kind, r.present.GetName(), all[cluster].Problem)
}
