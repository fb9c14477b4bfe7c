package admission

import (
	"context"
	"errors"
	"fmt"
	"io"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/warning"

	delivery "github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/delivery/contained"
	"github.com/manifold-dev/manifold/pkg/delivery/governed"
	"github.com/manifold-dev/manifold/pkg/identity"
)

// GatePlugin holds what an Application selects, and nothing runs of, until a release lets it go. It comes after webhooks, which may add the labels that
// are selected by.
const GatePlugin = "ManifoldGate"

// Applications are those of the logical cluster.
type Applications interface {
	// Known reports whether all are known that there are.
	Known() bool
	// In returns those of a namespace.
	In(namespace string) []*delivery.Application
}

// RegisterGate makes GatePlugin known.
func RegisterGate(plugins *admission.Plugins, applications Applications) {
	plugins.Register(GatePlugin, func(io.Reader) (admission.Interface, error) { return newGate(applications), nil })
}

// gate says in an object which release it awaits. It says so anew in each write, whatever the writer has there: that is nobody's to say but delivery's, which
// takes it away.
type gate struct {
	*admission.Handler
	applications Applications
}

var _ admission.MutationInterface = &gate{}

func newGate(applications Applications) *gate {
	out := &gate{admission.NewHandler(admission.Create, admission.Update), applications}
	out.SetReadyFunc(applications.Known)
	return out
}

// Admit implements admission.MutationInterface.
func (g *gate) Admit(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	kind, governable := governed.KindOf(a.GetResource())
	if !governable || a.GetSubresource() != "" && a.GetSubresource() != "status" || writesAlone(a.GetUserInfo()) {
		return nil
	}
	obj, err := meta.Accessor(a.GetObject())
	if err != nil {
		return err
	}
	var old metav1.Object = &metav1.ObjectMeta{}
	if a.GetOperation() == admission.Update {
		if old, err = meta.Accessor(a.GetOldObject()); err != nil {
			return err
		}
	}
	was, next := identity.AwaitedBy(old), ""
	switch {
	case a.GetSubresource() != "":
		next = was
	case delivers(a.GetUserInfo()):
		if was != "" { // what it makes itself is released, or made by a release
			next = identity.AwaitedBy(obj)
		}
	case !g.WaitForReady():
		return admission.NewForbidden(a, errors.New("the Applications are not known yet, of which one may select it: try again"))
	default:
		next = awaited(g.applications.In(a.GetNamespace()), kind, a.GetOperation() == admission.Create, obj, old)
	}
	if next != "" && was == "" {
		warning.AddWarning(ctx, "", fmt.Sprintf("%s %q %s", a.GetKind().Kind, obj.GetName(), saying(next, a.GetNamespace())))
	}
	setAwaited(obj, next)
	return nil
}

// writesAlone reports whether somebody is a part of the server or of Manifold whose objects are no user's, and no release's.
func writesAlone(u user.Info) bool {
	return isManifold(u) && !delivers(u) || u != nil && u.GetName() == user.APIServerUser
}

// saying says what an object waits for that does from now on.
func saying(application, namespace string) string {
	return identity.Awaits(&metav1.ObjectMeta{Namespace: namespace, Annotations: map[string]string{v1alpha1.AnnotationAwaits: application}})
}

// awaited returns the Application whose release an object awaits that users write: one that selects the object, if that is new, or awaits one already, or
// comes to be selected while nothing of it runs.
func awaited(applications []*delivery.Application, kind contained.Kind, isNew bool, obj, old metav1.Object) string {
	by := governed.By(applications, kind, obj)
	switch {
	case by == nil:
		return ""
	case isNew, identity.AwaitedBy(old) != "":
		return by.Name
	case kind.Workload && runsNowhere(old) && governed.By(applications, kind, old) == nil:
		return by.Name
	}
	return ""
}

// runsNowhere reports whether a workload has no place, and no cluster reports any of it. Of what stands beside workloads nobody knows that.
func runsNowhere(workload metav1.Object) bool {
	annotations := workload.GetAnnotations()
	return annotations[v1alpha1.AnnotationPlacement] == "" && annotations[v1alpha1.AnnotationStatus] == ""
}

func setAwaited(obj metav1.Object, application string) {
	if value, has := obj.GetAnnotations()[v1alpha1.AnnotationAwaits]; value == application && has == (application != "") {
		return
	}
	annotations := copied(obj.GetAnnotations())
	if annotations[v1alpha1.AnnotationAwaits] = application; application == "" {
		delete(annotations, v1alpha1.AnnotationAwaits)
	}
	obj.SetAnnotations(annotations)
}
