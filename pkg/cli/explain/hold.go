package explain

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	manifoldv1alpha1 "github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/cli/output"
	"github.com/manifold-dev/manifold/pkg/identity"
	"github.com/manifold-dev/manifold/pkg/placement"
	"github.com/manifold-dev/manifold/pkg/projection"
)

// held is what one cluster holds of a workload.
type held struct {
	above   projection.Object
	kind    string
	cluster string
	share   placement.Share
	// everywhere tells that nobody asks for a number.
	everywhere bool
	// shared tells that the object goes where it is needed, and has no replicas.
	shared    bool
	overrides projection.Overrides
	// callsLogical tells that the pods call the logical cluster.
	callsLogical bool
	// revision is the one that the cluster is held at, the zero value for none.
	revision identity.Revision
	// projected is the object in the cluster, once it holds what was decided.
	projected projection.Object
	// problem says why there is none.
	problem string
	// routable says that the cluster may hold fields of the object otherwise than it says, and routes which those are.
	routable bool
	routes   projection.Fields
}

// hold finds out what a cluster holds of an object by its decision, by the functions that the syncer calls.
func (g gatherer) hold(ctx context.Context, object *unstructured.Unstructured, cluster string) (*held, error) {
	kind, ok := projection.ForGVK(object.GroupVersionKind())
	switch {
	case ok && !kind.Workload && identity.Viewed(object):
		return g.viewed(ctx, kind, object, cluster)
	case projection.Routable(object.GroupVersionKind().GroupKind()):
		return g.routed(ctx, object, cluster)
	case !ok || !kind.Workload:
		return nil, errors.New("only workloads of built-in kinds have overrides, and only Services, Ingresses, HTTPRoutes and VirtualServices may differ from cluster to cluster")
	}
	typed := kind.New()
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, typed); err != nil {
		return nil, err
	}
	if kind.Mirror(typed) {
		return nil, errors.New(unplaced(object))
	}
	decision, err := placement.ParseDecision(object.GetAnnotations()[manifoldv1alpha1.AnnotationPlacement])
	if err != nil {
		return nil, err
	}
	share, placed := decision[cluster]
	if !placed {
		return nil, errors.New(elsewhere(decision))
	}
	if identity.AwaitsIn(typed, cluster) {
		return nil, errors.New("the cluster has nothing of it: it " + identity.Awaits(typed))
	}
	version, err := g.at(ctx, kind, typed, cluster)
	if err != nil {
		return nil, err
	}
	typed = version.Object
	system, err := g.client.CoreV1().Namespaces().Get(ctx, metav1.NamespaceSystem, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	h := &held{above: typed, kind: kind.GVK.Kind, cluster: cluster, share: share, revision: version.Revision, everywhere: kind.Demand(typed).Division == placement.Everywhere}
	err = g.ask(ctx, func(k known) error {
		var err error
		h.overrides, err = k.Overrides(kind, typed, cluster)
		return err
	})
	if err != nil {
		return nil, err
	}
	api, err := g.api(ctx, kind.Demand(typed).Template, typed.GetNamespace())
	if err != nil {
		return nil, err
	}
	h.callsLogical = api != nil
	part := projection.Part{API: api, Revision: version.Mark(), Share: share, Decision: decision, Overrides: h.overrides}
	target := projection.Target{LogicalCluster: string(system.UID), Cluster: cluster}
	h.projected, err = kind.Project(typed, part, target)
	if err == nil {
		if part.LeftOut = kind.LeftOut(h.projected, nil, g.exists(ctx)); len(part.LeftOut) > 0 {
			h.projected, err = kind.Project(typed, part, target)
		}
	}
	if err != nil {
		h.projected, h.problem = nil, err.Error()
	}
	return h, nil
}

// viewed finds out what a cluster holds of an object that goes where it is needed, and that several clusters hold as it was written through their views.
func (g gatherer) viewed(ctx context.Context, kind projection.Kind, object *unstructured.Unstructured, cluster string) (*held, error) {
	if views := identity.ViewsOf(object); views.Index(cluster) < 0 {
		return nil, fmt.Errorf("clusters %s alone hold it, each as it was written through its own view", strings.Join(views.Clusters(), ", "))
	}
	typed := kind.New()
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, typed); err != nil {
		return nil, err
	}
	version, err := g.at(ctx, kind, typed, cluster)
	if err != nil {
		return nil, err
	}
	system, err := g.client.CoreV1().Namespaces().Get(ctx, metav1.NamespaceSystem, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	h := &held{above: version.Object, kind: kind.GVK.Kind, cluster: cluster, revision: version.Revision, shared: true}
	h.projected, err = kind.Project(version.Object, projection.Part{Revision: version.Mark()}, projection.Target{LogicalCluster: string(system.UID), Cluster: cluster})
	if err != nil {
		h.projected, h.problem = nil, err.Error()
	}
	return h, nil
}

// exists reports whether a Secret or ConfigMap exists. What the user may not read is taken to.
func (g gatherer) exists(ctx context.Context) func(projection.Reference) bool {
	return func(ref projection.Reference) (is bool) {
		var err error
		switch key := identity.KeyOfReference(ref); key.Resource {
		case identity.Secrets:
			_, err = g.client.CoreV1().Secrets(key.Namespace).Get(ctx, key.Name, metav1.GetOptions{})
		case identity.ConfigMaps:
			_, err = g.client.CoreV1().ConfigMaps(key.Namespace).Get(ctx, key.Name, metav1.GetOptions{})
		}
		return !apierrors.IsNotFound(err)
	}
}

// print writes the object in the cluster as json or yaml, or its overrides as a text for people.
func (h *held) print(out io.Writer, format output.Format) error {
	if format != "" && h.projected == nil {
		return errors.New(h.problem)
	}
	return format.Print(out, h.projected, h.text)
}

// elsewhere says where an object is that is not in the cluster that was asked for.
func elsewhere(decision placement.Decision) string {
	if len(decision) == 0 {
		return "it is not placed on any cluster"
	}
	return "it is not placed there, but on " + strings.Join(decision.Clusters(), ", ")
}

// replicas says how many the cluster is to run.
func (h *held) replicas() string {
	switch {
	case h.shared:
		return "held there"
	case h.everywhere:
		return "as many replicas as its nodes say"
	case h.share.Replicas == 1:
		return "1 replica"
	}
	return fmt.Sprintf("%d replicas", h.share.Replicas)
}

func (h *held) text(out io.Writer) error {
	if h.routable {
		return h.routesText(out)
	}
	fmt.Fprintf(out, "%s %s/%s in cluster %s: %s\n\n", h.kind, h.above.GetNamespace(), h.above.GetName(), h.cluster, h.replicas())
	if h.revision.OfView() {
		fmt.Fprint(out, "It is held as it was written through the view of the cluster.\n\n")
	} else if h.revision.Name != "" {
		fmt.Fprintf(out, "It is held at revision %s, with its manifests for target %s.\n\n", h.revision.Name, h.revision.Target)
	}
	if h.problem != "" {
		fmt.Fprintf(out, "It cannot be applied: %s.\n\n", h.problem)
	}
	if h.callsLogical {
		fmt.Fprint(out, "Its pods call the API of the logical cluster.\n\n")
	}
	if h.shared {
		return nil
	}
	if len(h.overrides.Items) == 0 {
		_, err := fmt.Fprintln(out, "No policy overrides anything there.")
		return err
	}
	fmt.Fprintf(out, "%s overrides:\n\n", h.overrides.Policy)
	for _, item := range h.overrides.Items {
		text, err := yaml.Marshal(item.Override)
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "# overrides[%d]\n%s", item.Index, text)
	}
	return nil
}
