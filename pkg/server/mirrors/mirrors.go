// Package mirrors keeps admission away from what clusters have admitted, and has what they report compared with what is known above.
package mirrors

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/kubernetes/pkg/api/legacyscheme"

	"github.com/manifold-dev/manifold/pkg/server/identity"
)

// Exempt keeps admission away from mirrors and from what Manifold notes on objects of users. Of mirrors, another API server has admitted
// the originals, a quota must not hide what runs, and a webhook would change the picture without changing the thing. Instead, what comes by the
// identity of a cluster is compared with what is decided and known above.
type Exempt struct {
	admission.Interface
	Checks Checks
}

// Checks return why a cluster may not write something, nil if it may. See guard.Guard.
type Checks interface {
	CreatePod(cluster string, pod *corev1.Pod) error
	UpdatePod(cluster string, pod, stored *corev1.Pod) error
	DeletePod(cluster string, stored *corev1.Pod) error
	CreateClaim(cluster string, claim *corev1.PersistentVolumeClaim) error
	UpdateClaim(cluster string, claim, stored *corev1.PersistentVolumeClaim) error
	DeleteClaim(cluster string, stored *corev1.PersistentVolumeClaim) error
	CreateEvent(cluster string, event *corev1.Event) error
	UpdateEvent(cluster string, event, stored *corev1.Event) error
}

// Completed gives a pod the defaults that it gets from every API server.
func Completed(pod *corev1.Pod) { legacyscheme.Scheme.Default(pod) }

// check compares a write by the identity of a cluster with what is known above.
func check(by Checks, cluster string, a admission.Attributes) error {
	var err error
	switch a.GetResource().Resource {
	case "pods":
		err = checked(a, cluster, by.CreatePod, by.UpdatePod, by.DeletePod)
	case "persistentvolumeclaims":
		err = checked(a, cluster, by.CreateClaim, by.UpdateClaim, by.DeleteClaim)
	case "events":
		err = checked(a, cluster, by.CreateEvent, by.UpdateEvent, nil)
	default:
		err = errors.New("it is none of its business")
	}
	if err != nil {
		return admission.NewForbidden(a, fmt.Errorf("cluster %q: %w", cluster, err))
	}
	return nil
}

// checked gives the objects of a request to the check for its operation, in the version that is read everywhere but in storage.
func checked[T any, P interface {
	*T
	runtime.Object
}](a admission.Attributes, cluster string, create func(string, P) error, update func(string, P, P) error, remove func(string, P) error) error {
	version := func(in runtime.Object) (P, error) {
		out := P(new(T))
		if in == nil {
			return nil, errors.New("the object is not known")
		}
		return out, legacyscheme.Scheme.Convert(in, out, nil)
	}
	if a.GetOperation() == admission.Delete {
		if remove == nil {
			return errors.New("it deletes none")
		}
		old, err := version(a.GetOldObject())
		if err != nil {
			return err
		}
		return remove(cluster, old)
	}
	object, err := version(a.GetObject())
	if err != nil {
		return err
	}
	if a.GetOperation() == admission.Create {
		return create(cluster, object)
	}
	old, err := version(a.GetOldObject())
	if err != nil {
		return err
	}
	return update(cluster, object, old)
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

func (e Exempt) exempt(a admission.Attributes) bool {
	if a.GetSubresource() != "" {
		return false
	}
	ours := identity.IsController(a.GetUserInfo()) && !identity.Delivers(a.GetUserInfo()) // what delivery writes is what users have written
	if ours && a.GetOperation() == admission.Update {
		// A decision, a finalizer or what Manifold has made itself, and nothing that a user wrote. The webhook to be asked may be in a pod which
		// needs that decision, or that a start ends well.
		return true
	}
	if !mirrorKinds[a.GetResource().GroupResource()] {
		return false
	}
	return e.reports(a) || ours
}

// reports reports whether the identity of a cluster writes a mirror.
func (e Exempt) reports(a admission.Attributes) bool {
	_, syncer := identity.SyncerCluster(a.GetUserInfo())
	return syncer && a.GetSubresource() == "" && mirrorKinds[a.GetResource().GroupResource()]
}

// Admit implements admission.MutationInterface.
func (e Exempt) Admit(ctx context.Context, a admission.Attributes, o admission.ObjectInterfaces) error {
	if mutating, ok := e.Interface.(admission.MutationInterface); ok && !e.exempt(a) {
		return mutating.Admit(ctx, a, o)
	}
	return nil
}

// Validate implements admission.ValidationInterface.
func (e Exempt) Validate(ctx context.Context, a admission.Attributes, o admission.ObjectInterfaces) error {
	if e.reports(a) {
		cluster, _ := identity.SyncerCluster(a.GetUserInfo())
		return check(e.Checks, cluster, a)
	}
	if validating, ok := e.Interface.(admission.ValidationInterface); ok && !e.exempt(a) {
		return validating.Validate(ctx, a, o)
	}
	return nil
}
