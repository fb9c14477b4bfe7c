package admission

import (
	"context"
	"errors"

	"k8s.io/apiserver/pkg/admission"
)

// pipelineStatus keeps the statuses of pipelines to the controllers of this server. They say who has asked for a promotion, and what was verified before it:
// whoever wrote them could put words into the mouths of others, and promote what no environment has passed, whatever rights to promote he has.
type pipelineStatus struct {
	*admission.Handler
}

var _ admission.ValidationInterface = &pipelineStatus{}

// Validate refuses what others write.
func (*pipelineStatus) Validate(_ context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	if !isPipeline(a.GetResource().GroupResource()) || a.GetSubresource() != "status" || isManifold(a.GetUserInfo()) {
		return nil
	}
	return admission.NewForbidden(a, errors.New(
		"Manifold alone writes the status of a pipeline; ask for a promotion or a pause by \"manifold pipeline\", or the subresources promote, pause and resume in delivery.manifold.dev"))
}
