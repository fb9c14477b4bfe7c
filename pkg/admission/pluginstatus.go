package admission

import (
	"context"
	"errors"

	"k8s.io/apiserver/pkg/admission"

	delivery "github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
)

// pluginStatus keeps the statuses of plugins to the controller that runs them. They say which program runs, what it offers, and which restarts have
// been done: whoever wrote them could have stages go to a plugin that does not offer them.
type pluginStatus struct {
	*admission.Handler
}

var _ admission.ValidationInterface = &pluginStatus{}

// Validate refuses what others write.
func (*pluginStatus) Validate(_ context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	if a.GetResource().GroupResource() != delivery.Resource(delivery.ResourcePlugins) || a.GetSubresource() != "status" {
		return nil
	}
	if user := a.GetUserInfo(); user != nil && user.GetName() == v1alpha1.PluginsUser {
		return nil
	}
	return admission.NewForbidden(a, errors.New("Manifold alone writes the status of a plugin; \"manifold plugin restart\" has it started again"))
}
