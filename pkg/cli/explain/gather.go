package explain

import (
	"context"
	"errors"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"

	manifoldv1alpha1 "github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/generated/clientset/versioned"
	"github.com/manifold-dev/manifold/pkg/cli/target"
	"github.com/manifold-dev/manifold/pkg/identity"
	"github.com/manifold-dev/manifold/pkg/moves"
	"github.com/manifold-dev/manifold/pkg/placement"
	"github.com/manifold-dev/manifold/pkg/placement/engine"
)

// observed is everything that an explanation is made from.
type observed struct {
	object *unstructured.Unstructured
	// decision is the one in force.
	decision placement.Decision
	// replicas is the number asked for; nil for an object of a kind that is not placed.
	replicas *int32
	// firstOrdinal is that of the first replica, where they have ordinals.
	firstOrdinal int32
	// everywhere tells that nobody asks for a number: the nodes say.
	everywhere bool
	// custom tells that it is of a custom kind, and opaque that nobody has described what its pods ask for, so that each cluster has all of it.
	custom, opaque bool
	// requests are those of one replica of a custom kind that is described.
	requests placement.Resources
	// events are those of Manifold about the object.
	events []corev1.Event
	// namespace is the object's; nil if the user may not read it.
	namespace *corev1.Namespace
	// result is a decision made now; nil if it cannot be told.
	result *placement.Result
	// remedies say by cluster what would have to change.
	remedies map[string][]string
	// hidden says why there is no result.
	hidden string
	// service is where a Service is and leads; nil for everything else, and if the user may not read it.
	service *Service
	// fleet is the workload in all clusters, as the server sees it now if standing is set, and else as it is recorded; it has no members for an
	// object of a custom kind.
	fleet    moves.Fleet
	standing *moves.Standing
}

// gatherer reads from the logical cluster.
type gatherer struct {
	client   kubernetes.Interface
	manifold versioned.Interface
	// fleet asks the server how a workload stands at this moment. It may be nil.
	fleet func(ctx context.Context, w identity.Workload) ([]byte, error)
	// versions returns the versions in which a kind is served. It may be nil.
	versions func(schema.GroupKind) []string
}

// gather reads what there is to say about the object. What the user may not read is left out, so that people who own a namespace
// alone are told at least where their workload runs.
func (g gatherer) gather(ctx context.Context, object *unstructured.Unstructured) (*observed, error) {
	o := &observed{object: object}
	of, err := g.described(ctx, object)
	if err != nil {
		return nil, err
	}
	builtIn, err := typed(object)
	if err != nil {
		return nil, err
	}
	w, first, placed, err := read(object, builtIn, g.served(object), of)
	if err != nil {
		return o, err
	}
	if !placed {
		return o, g.gatherUnplaced(ctx, o)
	}
	o.everywhere, o.custom, o.opaque = w.Division == placement.Everywhere, w.Custom, w.Opaque()
	if w.Custom {
		o.requests = w.Requests
	}
	current, err := placement.ParseDecision(object.GetAnnotations()[manifoldv1alpha1.AnnotationPlacement])
	if err != nil {
		return nil, err
	}
	o.replicas, o.decision, o.firstOrdinal = &w.Replicas, current, first
	if o.events, err = g.events(ctx, object); err != nil {
		return nil, err
	}
	o.namespace, err = g.client.CoreV1().Namespaces().Get(ctx, object.GetNamespace(), metav1.GetOptions{})
	if err != nil && !apierrors.IsForbidden(err) {
		return nil, err
	}
	err = g.decide(ctx, o, w, builtIn)
	switch {
	case errors.Is(err, errStays):
		o.replicas = nil
	case apierrors.IsForbidden(err):
		o.hidden = err.Error()
		if builtIn != nil {
			o.fleet = new(moves.Fleets).Recorded(*builtIn) // without what only the clusters' own objects say
		}
	case err != nil:
		return nil, err
	}
	if builtIn == nil {
		return o, nil
	}
	if o.standing, err = g.standing(ctx, *builtIn); err == nil && o.standing != nil {
		o.fleet = o.standing.Fleet
	}
	return o, err
}

// gatherUnplaced reads what there is to say about an object that nothing is decided about.
func (g gatherer) gatherUnplaced(ctx context.Context, o *observed) (err error) {
	if o.object.GroupVersionKind().GroupKind() == claims {
		if o.events, err = g.events(ctx, o.object); err != nil {
			return err
		}
	}
	if !isService(o.object) {
		return nil
	}
	if o.service, err = g.service(ctx, o.object); apierrors.IsForbidden(err) {
		return nil // where its pods are, they say themselves
	}
	return err
}

func (g gatherer) served(object *unstructured.Unstructured) []string {
	if g.versions == nil {
		return nil
	}
	return g.versions(object.GroupVersionKind().GroupKind())
}

// described returns how a policy describes the kind of an object, nil if none does. Who may not see the policies is not told of decisions either.
func (g gatherer) described(ctx context.Context, object *unstructured.Unstructured) (*engine.Description, error) {
	gvk := object.GroupVersionKind()
	if !target.IsCustom(gvk.Group) {
		return nil, nil
	}
	policies, err := g.manifold.ManifoldV1alpha1().ClusterPlacementPolicies().List(ctx, metav1.ListOptions{})
	if apierrors.IsForbidden(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if of := engine.Described(policies.Items)[gvk.Kind+"."+gvk.Group]; len(of) > 0 {
		return &of[0], nil
	}
	return nil, nil
}

func (g gatherer) events(ctx context.Context, object *unstructured.Unstructured) ([]corev1.Event, error) {
	list, err := g.client.CoreV1().Events(object.GetNamespace()).List(ctx, metav1.ListOptions{
		FieldSelector: fields.OneTermEqualSelector("involvedObject.uid", string(object.GetUID())).String(),
	})
	if apierrors.IsForbidden(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var own []corev1.Event
	for _, e := range list.Items {
		if strings.HasPrefix(e.Source.Component, "manifold") || strings.HasPrefix(e.ReportingController, "manifold") {
			own = append(own, e)
		}
	}
	return own, nil
}
