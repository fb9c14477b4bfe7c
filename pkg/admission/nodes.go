package admission

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apiserver/pkg/admission"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
)

// nodes keeps Nodes what they are in a logical cluster: mirrors of clusters.
type nodes struct {
	*admission.Handler
}

var _ admission.ValidationInterface = &nodes{}

// Validate refuses every write but Manifold's own, and names the command that does what the user meant.
func (*nodes) Validate(_ context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	if a.GetResource().GroupResource() != corev1.Resource("nodes") || a.GetUserInfo().GetName() == v1alpha1.ClustersUser {
		return nil
	}
	name := a.GetName()
	switch a.GetOperation() {
	case admission.Create:
		return admission.NewForbidden(a, fmt.Errorf(
			"nodes of a logical cluster mirror its clusters: use \"manifold cluster join NAME\" to add one"))
	case admission.Delete:
		return admission.NewForbidden(a, fmt.Errorf(
			"node %q mirrors cluster %q: use \"manifold cluster remove %s\" to remove it", name, name, name))
	}
	return admission.NewForbidden(a, fmt.Errorf(
		"node %q mirrors cluster %q and is read-only: use \"manifold cluster cordon %s\" or \"uncordon\" to keep workloads away, "+
			"\"manifold cluster drain %s\" to move them off, or edit the Cluster %q for labels and taints", name, name, name, name, name))
}
