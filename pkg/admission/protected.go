package admission

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/warning"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/projection"
)

// protected warns of what nothing carries out in a namespace that belongs to every cluster. Workloads are warned of where they are placed, which
// also is where those of controllers are.
type protected struct {
	*admission.Handler
}

var _ admission.ValidationInterface = &protected{}

// actBelow are the kinds that do nothing in the logical cluster. Others, such as ConfigMaps, are read there, and need no cluster.
var actBelow = map[schema.GroupResource]bool{
	{Resource: "persistentvolumeclaims"}:                      true,
	{Resource: "services"}:                                    true,
	{Group: "networking.k8s.io", Resource: "ingresses"}:       true,
	{Group: "networking.k8s.io", Resource: "networkpolicies"}: true,
}

// Validate warns, and refuses nothing.
func (*protected) Validate(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	reason, refused := projection.NamespaceRefusal(a.GetNamespace())
	if !refused || a.GetSubresource() != "" {
		return nil
	}
	_, pinned := annotationOf(a.GetObject(), v1alpha1.AnnotationClusters)
	if kind, known := projection.ForResource(a.GetResource()); known && kind.Workload || !pinned && !actBelow[a.GetResource().GroupResource()] {
		return nil
	}
	warning.AddWarning(ctx, "", fmt.Sprintf("%s %q is not sent to any cluster: %s", a.GetKind().Kind, a.GetName(), reason))
	return nil
}
