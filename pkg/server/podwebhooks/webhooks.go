package podwebhooks

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	mutatingwebhook "k8s.io/apiserver/pkg/admission/plugin/webhook/mutating"
	validatingwebhook "k8s.io/apiserver/pkg/admission/plugin/webhook/validating"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	api "k8s.io/kubernetes/pkg/apis/core"

	"github.com/manifold-dev/manifold/pkg/projection"
)

// Webhooks are the webhooks of the logical cluster, for pods that are made elsewhere. Their plugins are those of the server itself.
type Webhooks struct {
	mutating   admission.MutationInterface
	validating admission.ValidationInterface
}

// Keep is an admission.DecoratorFunc that changes nothing: it takes hold of the plugins when the server makes its first chain, which is that of the
// built-in kinds.
func (p *Webhooks) Keep(plugin admission.Interface, name string) admission.Interface {
	switch {
	case name == mutatingwebhook.PluginName && p.mutating == nil:
		p.mutating, _ = plugin.(admission.MutationInterface)
	case name == validatingwebhook.PluginName && p.validating == nil:
		p.validating, _ = plugin.(admission.ValidationInterface)
	}
	return plugin
}

// Admit implements Admission. Webhooks see what they would on a single cluster: a pod without a name, if the API server is to choose
// one, that is checked with its name once it has been changed.
func (p *Webhooks) Admit(ctx context.Context, pod *corev1.Pod, controller schema.GroupVersionKind, named, dryRun bool,
) (before, after *corev1.Pod, err error) {
	object := &api.Pod{}
	if err := legacyscheme.Scheme.Convert(pod.DeepCopy(), object, nil); err != nil {
		return nil, nil, apierrors.NewInternalError(fmt.Errorf("convert the pod: %w", err))
	}
	if before, err = asV1(object); err != nil {
		return nil, nil, err
	}
	kind, known := projection.ForGVK(controller)
	if !known || kind.Creator == "" {
		return nil, nil, apierrors.NewInternalError(fmt.Errorf("nobody is known who makes pods for a %s", controller.Kind))
	}
	user := serviceaccount.UserInfo(metav1.NamespaceSystem, kind.Creator, "")
	interfaces := admission.NewObjectInterfacesFromScheme(legacyscheme.Scheme)
	attributes := func(name string) admission.Attributes {
		return admission.NewAttributesRecord(object, nil, corev1.SchemeGroupVersion.WithKind("Pod"), pod.Namespace, name,
			corev1.SchemeGroupVersion.WithResource("pods"), "", admission.Create, &metav1.CreateOptions{}, dryRun, user)
	}
	if p.mutating != nil {
		name := pod.Name
		if !named {
			object.Name, name = "", ""
		}
		a := attributes(name)
		if err := p.mutating.Admit(ctx, a, interfaces); err != nil {
			return nil, nil, err
		}
		if again := a.GetReinvocationContext(); again.ShouldReinvoke() {
			again.SetIsReinvoke()
			if err := p.mutating.Admit(ctx, a, interfaces); err != nil {
				return nil, nil, err
			}
		}
		if !named && object.Name == "" {
			object.Name = pod.Name
		}
	}
	if p.validating != nil {
		object.Status.Phase = api.PodPending
		if err := p.validating.Validate(ctx, attributes(object.Name), interfaces); err != nil {
			return nil, nil, err
		}
	}
	after, err = asV1(object)
	return before, after, err
}

func asV1(object *api.Pod) (*corev1.Pod, error) {
	out := &corev1.Pod{}
	if err := legacyscheme.Scheme.Convert(object.DeepCopy(), out, nil); err != nil { // they share memory otherwise
		return nil, apierrors.NewInternalError(fmt.Errorf("convert the pod: %w", err))
	}
	return out, nil
}
