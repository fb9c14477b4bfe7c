package pods

import (
	"context"
	"fmt"

	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	api "k8s.io/kubernetes/pkg/apis/core"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/server/storage/below"
)

// evictBelow evicts a pod in its cluster, once the budget of the logical cluster has allowed it. The cluster may have a part of that
// budget only, by which this pod could not go though another cluster spares one: what stands in the way of the whole alone decides, so
// the pod is deleted then. A budget of the cluster's own is heeded.
func evictBelow(ctx context.Context, connection *below.Connection, pod *api.Pod, options metav1.DeleteOptions) error {
	ctx, cancel := context.WithTimeout(ctx, below.Timeout)
	defer cancel()
	// The UID is the same below; a resource version means nothing there and was compared above.
	options.Preconditions = metav1.NewUIDPreconditions(string(pod.UID))
	refused := connection.Client.PolicyV1().Evictions(pod.Namespace).Evict(ctx, &policyv1.Eviction{
		ObjectMeta:    metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name},
		DeleteOptions: &options,
	})
	if !apierrors.IsTooManyRequests(refused) && !apierrors.IsInternalError(refused) {
		return refused
	}
	own, parts, err := budgetsBelow(ctx, connection, pod)
	switch {
	case err != nil, parts == 0, len(own) > 1, len(own) == 1 && apierrors.IsTooManyRequests(refused):
		return refused
	case len(own) == 1 && own[0].Status.DisruptionsAllowed <= 0:
		return refusedBy(own[0])
	}
	// Beside a part, the endpoint there cannot tell what the cluster's own budget allows, as it takes but one for each pod.
	return connection.Client.CoreV1().Pods(pod.Namespace).Delete(ctx, pod.Name, options)
}

// budgetsBelow returns the budgets of the cluster's own that guard a pod, and how many projections do.
func budgetsBelow(ctx context.Context, connection *below.Connection, pod *api.Pod) (own []*policyv1.PodDisruptionBudget, parts int, err error) {
	list, err := connection.Client.PolicyV1().PodDisruptionBudgets(pod.Namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, 0, err
	}
	for i := range list.Items {
		budget := &list.Items[i]
		selector, err := metav1.LabelSelectorAsSelector(budget.Spec.Selector)
		switch {
		case err != nil || !selector.Matches(labels.Set(pod.Labels)):
		case budget.Labels[v1alpha1.LabelLogicalCluster] == "":
			own = append(own, budget)
		default:
			parts++
		}
	}
	return own, parts, nil
}

// refusedBy is the error by which clients know that a budget does not allow an eviction.
func refusedBy(budget *policyv1.PodDisruptionBudget) error {
	out := apierrors.NewTooManyRequests("Cannot evict pod as it would violate the pod's disruption budget.", 0)
	out.ErrStatus.Details.Causes = append(out.ErrStatus.Details.Causes, metav1.StatusCause{
		Type: policyv1.DisruptionBudgetCause,
		Message: fmt.Sprintf("The disruption budget %s needs %d healthy pods and has %d currently",
			budget.Name, budget.Status.DesiredHealthy, budget.Status.CurrentHealthy),
	})
	return out
}
