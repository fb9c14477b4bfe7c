package pods

import (
	"context"
	"maps"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"
	api "k8s.io/kubernetes/pkg/apis/core"

	"github.com/manifold-dev/manifold/pkg/server/storage/metadata"
)

// The labels of a mirror are those that its owner above gives its pods, and those that users have written above: never what its cluster says,
// since by its labels a pod is served from, fenced, and told from those of others. So what a user writes is stored by the same request that
// changes the pod in its cluster, and before: the controller there may let go of the pod by its new labels at once, and whether it is right
// to is read from the mirror.

// recordLabels stores the labels that a request gives to a mirrored pod, and returns the mirror as it is stored then, or nil if there was
// nothing to store.
func (r *podChangeREST) recordLabels(ctx context.Context, old, want *api.Pod, options *metav1.UpdateOptions) (*api.Pod, error) {
	if r.subresource != "" || !mirrored(old) || maps.Equal(old.Labels, want.Labels) {
		return nil, nil
	}
	stored, err := r.storeMirror(ctx, want, func(pod *api.Pod) { metadata.Relabel(pod, old, want) }, options)
	if err != nil {
		return nil, err
	}
	want.ResourceVersion = stored.ResourceVersion
	return stored, nil
}

// unrecordLabels takes back what recordLabels has stored, as the cluster refuses it. The user is told of that.
func (r *podChangeREST) unrecordLabels(ctx context.Context, old, want *api.Pod, options *metav1.UpdateOptions) {
	_, err := r.storeMirror(context.WithoutCancel(ctx), want, func(pod *api.Pod) { metadata.Relabel(pod, old, want) }, options)
	if err != nil {
		klog.FromContext(ctx).Error(err, "Labels of a mirror that its cluster refuses could not be taken back", "pod", klog.KObj(want))
	}
}
