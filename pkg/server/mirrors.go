package server

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"

	"github.com/manifold-dev/manifold/pkg/server/storage"
)

// exemptMirrors keeps admission away from mirrors and from what Manifold notes on objects of users. Of mirrors, another API server has admitted the originals, a quota must not hide what runs, and
// a webhook would change the picture without changing the thing.
type exemptMirrors struct {
	admission.Interface
}

var mirrorKinds = map[schema.GroupResource]bool{
	{Resource: "pods"}:                           true,
	{Resource: "persistentvolumeclaims"}:         true,
	{Resource: "events"}:                         true,
	{Group: "events.k8s.io", Resource: "events"}: true,
	{Group: "apps", Resource: "replicasets"}:     true,
	// Not a mirror in the narrow sense, but what a controller inside the server would write: it keeps what was admitted before.
	{Group: "apps", Resource: "controllerrevisions"}: true,
}

func (e exemptMirrors) exempt(a admission.Attributes) bool {
	if a.GetSubresource() != "" {
		return false
	}
	if storage.IsController(a.GetUserInfo()) && a.GetOperation() == admission.Update {
		// A decision or a finalizer, and nothing that a user wrote. The webhook to be asked may be in a pod which needs that decision.
		return true
	}
	if !mirrorKinds[a.GetResource().GroupResource()] {
		return false
	}
	_, syncer := storage.SyncerCluster(a.GetUserInfo())
	return syncer || storage.IsController(a.GetUserInfo())
}

// Admit implements admission.MutationInterface.
func (e exemptMirrors) Admit(ctx context.Context, a admission.Attributes, o admission.ObjectInterfaces) error {
	if mutating, ok := e.Interface.(admission.MutationInterface); ok && !e.exempt(a) {
		return mutating.Admit(ctx, a, o)
	}
	return nil
}

// Validate implements admission.ValidationInterface.
func (e exemptMirrors) Validate(ctx context.Context, a admission.Attributes, o admission.ObjectInterfaces) error {
	if validating, ok := e.Interface.(admission.ValidationInterface); ok && !e.exempt(a) {
		return validating.Validate(ctx, a, o)
	}
	return nil
}
