package controller

import (
	"context"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/identity"
	"github.com/manifold-dev/manifold/pkg/projection"
	"github.com/manifold-dev/manifold/pkg/summary"
)

// forgetLost takes away the mirrors of a workload's pods in clusters that it has given up and that nobody can ask: they may run, but
// nobody hears of them, and others run in their stead. A cluster's syncer does that as long as it knows its cluster. After a start it has to
// meet it first, which may have been lost for good.
func (c *Controller) forgetLost(ctx context.Context, key identity.Key, in summary.Object, unasked []string) error {
	lost := c.lostTo(key, in, unasked)
	if len(lost) == 0 {
		return nil
	}
	owners := c.ownersOfPods(in)
	pods, err := c.Kube.Core().V1().Pods().Lister().Pods(key.Namespace).List(labels.Everything())
	if err != nil {
		return err
	}
	for _, pod := range pods {
		owner := metav1.GetControllerOfNoCopy(pod)
		if owner == nil || !slices.Contains(owners, owner.UID) || !slices.Contains(lost, pod.Annotations[v1alpha1.AnnotationCluster]) {
			continue
		}
		err := c.Client.CoreV1().Pods(pod.Namespace).Delete(ctx, pod.Name, metav1.DeleteOptions{
			GracePeriodSeconds: ptr.To[int64](0), Preconditions: metav1.NewUIDPreconditions(string(pod.UID)),
		})
		if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
			return fmt.Errorf("delete the mirror of pod %s/%s, which was lost with cluster %q: %w",
				pod.Namespace, pod.Name, pod.Annotations[v1alpha1.AnnotationCluster], err)
		}
	}
	return nil
}

// lostTo returns those of the clusters that a workload has given up because they are silent.
func (c *Controller) lostTo(key identity.Key, in summary.Object, unasked []string) []string {
	if len(unasked) == 0 {
		return nil
	}
	kind, _ := projection.ForResource(key.Resource)
	w, err := kind.WorkloadOf(in)
	if err != nil {
		return nil // a pin that does not parse gives up nothing
	}
	return slices.DeleteFunc(slices.Clone(unasked), func(cluster string) bool { return !c.Engine.Lost(w, cluster) })
}

// ownersOfPods are the UIDs of what controls the mirrors of a workload's pods: itself, or its ReplicaSets.
func (c *Controller) ownersOfPods(in summary.Object) []types.UID {
	d, ok := in.(*appsv1.Deployment)
	if !ok {
		return []types.UID{in.GetUID()}
	}
	var out []types.UID
	for _, rs := range c.replicaSets.of(d) {
		out = append(out, rs.UID)
	}
	return out
}
