package pods

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	api "k8s.io/kubernetes/pkg/apis/core"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/projection"
	"github.com/manifold-dev/manifold/pkg/server/storage/below"
	"github.com/manifold-dev/manifold/pkg/server/storage/builtin"
)

// debugNames sees to it that containers for debugging use nothing in a cluster that is not the logical cluster's. Those that a pod is made with
// are seen to before it is; these come later.
type debugNames map[string]rest.Getter

// debugNamesOf returns the kinds that a container can use by name. A volume of the pod it can only use as the pod has it.
func debugNamesOf(storage map[string]rest.Storage) (debugNames, error) {
	out := debugNames{}
	for _, resource := range []string{"configmaps", "secrets"} {
		getter, err := builtin.Lookup[rest.Getter](storage, resource)
		if err != nil {
			return nil, err
		}
		out[resource] = getter
	}
	return out, nil
}

// check refuses containers of want that name what the pod does not name yet and its cluster does not have of the logical cluster.
func (d debugNames) check(ctx context.Context, connection *below.Connection, old, want *api.Pod) error {
	added, err := namedAnew(old, want)
	if err != nil {
		return err
	}
	for _, ref := range added {
		ours, err := d.ours(ctx, connection, ref)
		if err != nil {
			return err
		}
		if !ours {
			kind, _ := projection.ForResource(ref.Resource)
			return apierrors.NewInvalid(api.Kind("Pod"), want.Name, field.ErrorList{field.Forbidden(field.NewPath("spec", "ephemeralContainers"),
				fmt.Sprintf("%s %q of the logical cluster is not in cluster %q: name what the pod names, or annotate it with %s=%s first",
					kind.GVK.Kind, ref.Name, clusterOf(old), v1alpha1.AnnotationClusters, clusterOf(old)))})
		}
	}
	return nil
}

// namedAnew returns what the containers for debugging of want name and the pod does not otherwise.
func namedAnew(old, want *api.Pod) ([]projection.Reference, error) {
	pod, debugged := &corev1.Pod{}, &corev1.Pod{}
	if err := legacyscheme.Scheme.Convert(old, pod, nil); err != nil {
		return nil, fmt.Errorf("read pod %s/%s: %w", old.Namespace, old.Name, err)
	}
	if err := legacyscheme.Scheme.Convert(want, debugged, nil); err != nil {
		return nil, fmt.Errorf("read pod %s/%s: %w", want.Namespace, want.Name, err)
	}
	pod.Spec.EphemeralContainers = nil
	named := projection.References(pod)
	return slices.DeleteFunc(projection.References(debugged), func(ref projection.Reference) bool {
		return slices.ContainsFunc(named, func(n projection.Reference) bool { return n.Resource == ref.Resource && n.Name == ref.Name })
	}), nil
}

// ours reports whether what a cluster has under a name is what the logical cluster has put there, or nothing where that may be.
func (d debugNames) ours(ctx context.Context, connection *below.Connection, ref projection.Reference) (bool, error) {
	getter, ok := d[ref.Resource.Resource]
	if !ok || projection.OfEveryCluster(ref) {
		return ok, nil
	}
	var live metav1.Object
	var err error
	switch ref.Resource.Resource {
	case "secrets":
		live, err = connection.Client.CoreV1().Secrets(ref.Namespace).Get(ctx, ref.Name, metav1.GetOptions{})
	default:
		live, err = connection.Client.CoreV1().ConfigMaps(ref.Namespace).Get(ctx, ref.Name, metav1.GetOptions{})
	}
	switch {
	case apierrors.IsNotFound(err):
		return ref.Optional, nil
	case apierrors.IsForbidden(err): // what is not ours may not be readable
		return false, nil
	case err != nil:
		return false, err
	}
	above, err := getter.Get(ctx, ref.Name, &metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	origin, marked := projection.OriginOf(live)
	return marked && origin.UID == above.(metav1.Object).GetUID(), nil
}
