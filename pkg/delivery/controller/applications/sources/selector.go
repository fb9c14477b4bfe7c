package sources

import (
	"context"
	"errors"
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/delivery/manifests"
	"github.com/manifold-dev/manifold/pkg/delivery/render/revision"
)

// ErrSelector says that a selector can select nothing: of a kind that there is not, or because nothing fits.
var ErrSelector = errors.New("nothing can be selected")

// selectable are the kinds that a selector may name, those that it selects if it names none first.
var selectable = []struct {
	gvk      schema.GroupVersionKind
	resource string
	unasked  bool
}{
	{appsv1.SchemeGroupVersion.WithKind("Deployment"), "deployments", true},
	{appsv1.SchemeGroupVersion.WithKind("StatefulSet"), "statefulsets", true},
	{appsv1.SchemeGroupVersion.WithKind("DaemonSet"), "daemonsets", true},
	{appsv1.SchemeGroupVersion.WithKind("ReplicaSet"), "replicasets", true},
	{batchv1.SchemeGroupVersion.WithKind("Job"), "jobs", true},
	{corev1.SchemeGroupVersion.WithKind("ReplicationController"), "replicationcontrollers", true},
	{corev1.SchemeGroupVersion.WithKind("Service"), "services", true},
	{corev1.SchemeGroupVersion.WithKind("ConfigMap"), "configmaps", true},
	{corev1.SchemeGroupVersion.WithKind("Secret"), "secrets", true},
	{networkingv1.SchemeGroupVersion.WithKind("Ingress"), "ingresses", true},
	{autoscalingv2.SchemeGroupVersion.WithKind("HorizontalPodAutoscaler"), "horizontalpodautoscalers", true},
	{batchv1.SchemeGroupVersion.WithKind("CronJob"), "cronjobs", false},
	{corev1.SchemeGroupVersion.WithKind("PersistentVolumeClaim"), "persistentvolumeclaims", false},
	{corev1.SchemeGroupVersion.WithKind("ServiceAccount"), "serviceaccounts", false},
	{networkingv1.SchemeGroupVersion.WithKind("NetworkPolicy"), "networkpolicies", false},
	{policyv1.SchemeGroupVersion.WithKind("PodDisruptionBudget"), "poddisruptionbudgets", false},
}

// Selector reads objects that users have applied, out of the caches of the logical cluster.
type Selector struct {
	kinds []selected
}

// selected is a kind and the cache of its objects.
type selected struct {
	gvk      schema.GroupVersionKind
	unasked  bool
	informer cache.SharedIndexInformer
}

// NewSelector registers with the informers of all kinds that can be selected, which the caller starts afterwards.
func NewSelector(kube informers.SharedInformerFactory) (*Selector, error) {
	out := &Selector{}
	for _, kind := range selectable {
		generic, err := kube.ForResource(kind.gvk.GroupVersion().WithResource(kind.resource))
		if err != nil {
			return nil, fmt.Errorf("watch %s: %w", kind.resource, err)
		}
		out.kinds = append(out.kinds, selected{kind.gvk, kind.unasked, generic.Informer()})
	}
	return out, nil
}

// Informers are those of all kinds that can be selected.
func (s *Selector) Informers() (out []cache.SharedIndexInformer) {
	for _, kind := range s.kinds {
		out = append(out, kind.informer)
	}
	return out
}

// Read implements Source.
func (s *Selector) Read(_ context.Context, app *v1alpha1.Application) (*Found, error) {
	of := app.Spec.Source.Selector
	selector, err := metav1.LabelSelectorAsSelector(&of.LabelSelector)
	if err != nil {
		return nil, fmt.Errorf("%w: spec.source.selector: %w", ErrSelector, err)
	}
	kinds, err := s.of(of.Kinds)
	if err != nil {
		return nil, err
	}
	files := map[string][]byte{}
	for _, kind := range kinds {
		if err := kind.read(app, selector, files); err != nil {
			return nil, err
		}
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("%w: spec.source.selector: no object of namespace %s has the labels %s", ErrSelector, app.Namespace, selector)
	}
	return plain(files), nil
}

// of are the kinds of these names.
func (s *Selector) of(names []string) ([]selected, error) {
	var out []selected
	if len(names) == 0 {
		for _, kind := range s.kinds {
			if kind.unasked {
				out = append(out, kind)
			}
		}
		return out, nil
	}
	for i, name := range names {
		found := false
		for _, kind := range s.kinds {
			if name == kind.gvk.Kind || name == kind.gvk.Kind+"."+kind.gvk.Group {
				out, found = append(out, kind), true
			}
		}
		if !found {
			return nil, fmt.Errorf("%w: spec.source.selector.kinds[%d]: %s is not a kind that can be selected; %s are", ErrSelector, i, name, s)
		}
	}
	return out, nil
}

// String lists the kinds.
func (s *Selector) String() string {
	var out []string
	for _, kind := range s.kinds {
		out = append(out, kind.gvk.Kind)
	}
	return strings.Join(out, ", ")
}

// read puts the manifests of the objects that are selected into files.
func (k selected) read(app *v1alpha1.Application, selector labels.Selector, files map[string][]byte) error {
	var failed error
	err := cache.ListAllByNamespace(k.informer.GetIndexer(), app.Namespace, selector, func(obj any) {
		if object, ok := obj.(metav1.Object); !ok || !counts(object) {
			return
		}
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
		if err != nil {
			failed = fmt.Errorf("read %s: %w", k.gvk.Kind, err)
			return
		}
		object := &unstructured.Unstructured{Object: content}
		object.SetGroupVersionKind(k.gvk)
		text, err := manifests.FromLive(object).MarshalJSON()
		if err != nil {
			failed = fmt.Errorf("write %s %s: %w", k.gvk.Kind, object.GetName(), err)
			return
		}
		files[k.gvk.Kind+" "+object.GetName()] = text
	})
	return errors.Join(err, failed)
}

// counts reports whether an object is a user's own: no controller has made it, it is no copy for a variant, and it stays.
func counts(object metav1.Object) bool {
	if secret, ok := object.(*corev1.Secret); ok && (secret.Type == revision.SecretType || secret.Type == corev1.SecretTypeServiceAccountToken) {
		return false
	}
	owner := metav1.GetControllerOfNoCopy(object)
	variant := object.GetAnnotations()[v1alpha1.AnnotationVariant]
	return object.GetDeletionTimestamp() == nil && (owner == nil || owner.Kind == "Application") && (variant == "" || variant == v1alpha1.VariantPrimary)
}
