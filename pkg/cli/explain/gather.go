package explain

import (
	"context"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/kubernetes"

	manifoldv1alpha1 "github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/generated/clientset/versioned"
)

// observed is everything that an explanation is made from.
type observed struct {
	object *unstructured.Unstructured
	// events are those of Manifold about the object.
	events []corev1.Event
	// hidden says what the user may not read, and therefore cannot be told.
	hidden string

	namespace       *corev1.Namespace
	clusters        []manifoldv1alpha1.Cluster
	policies        []manifoldv1alpha1.PlacementPolicy
	clusterPolicies []manifoldv1alpha1.ClusterPlacementPolicy
	// deployments are those of all namespaces, or only of the object's own if the user may not read the others.
	deployments []appsv1.Deployment
	// everywhere says that deployments are those of all namespaces.
	everywhere bool
}

// gatherer reads from the logical cluster.
type gatherer struct {
	client   kubernetes.Interface
	manifold versioned.Interface
}

// gather reads what the server decides by. What the user may not read is left out, so that people who own a namespace alone are
// told at least where their workload runs.
func (g gatherer) gather(ctx context.Context, object *unstructured.Unstructured) (*observed, error) {
	o := &observed{object: object}
	if _, placed := workloadKind(object.GroupVersionKind().GroupKind()); !placed {
		return o, nil
	}
	if err := g.events(ctx, o); err != nil {
		return nil, err
	}
	for _, read := range []func(context.Context, *observed) error{g.namespace, g.policies, g.clusters, g.deployments} {
		err := read(ctx, o)
		if apierrors.IsForbidden(err) {
			o.hidden = err.Error()
			return o, nil
		}
		if err != nil {
			return nil, err
		}
	}
	return o, nil
}

func (g gatherer) events(ctx context.Context, o *observed) error {
	list, err := g.client.CoreV1().Events(o.object.GetNamespace()).List(ctx, metav1.ListOptions{
		FieldSelector: fields.OneTermEqualSelector("involvedObject.uid", string(o.object.GetUID())).String(),
	})
	if apierrors.IsForbidden(err) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, e := range list.Items {
		if strings.HasPrefix(e.Source.Component, "manifold") || strings.HasPrefix(e.ReportingController, "manifold") {
			o.events = append(o.events, e)
		}
	}
	return nil
}

func (g gatherer) namespace(ctx context.Context, o *observed) (err error) {
	o.namespace, err = g.client.CoreV1().Namespaces().Get(ctx, o.object.GetNamespace(), metav1.GetOptions{})
	return err
}

func (g gatherer) policies(ctx context.Context, o *observed) error {
	own, err := g.manifold.ManifoldV1alpha1().PlacementPolicies(o.object.GetNamespace()).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	shared, err := g.manifold.ManifoldV1alpha1().ClusterPlacementPolicies().List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	o.policies, o.clusterPolicies = own.Items, shared.Items
	return nil
}

func (g gatherer) clusters(ctx context.Context, o *observed) error {
	list, err := g.manifold.ManifoldV1alpha1().Clusters().List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	o.clusters = list.Items
	return nil
}

func (g gatherer) deployments(ctx context.Context, o *observed) error {
	list, err := g.client.AppsV1().Deployments(metav1.NamespaceAll).List(ctx, metav1.ListOptions{})
	o.everywhere = err == nil
	if apierrors.IsForbidden(err) {
		list, err = g.client.AppsV1().Deployments(o.object.GetNamespace()).List(ctx, metav1.ListOptions{})
	}
	if err != nil {
		return err
	}
	o.deployments = list.Items
	return nil
}
