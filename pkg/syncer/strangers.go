package syncer

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
)

// stranger returns something of somebody else's that runs or serves in a namespace, "" if there is nothing. Pods stand for the workloads
// of kinds that the syncer may not list. What clusters put into every namespace by themselves, such as the bundles of certificates of a
// mesh, says nothing: with these alone, a namespace is empty.
func (s *Syncer) stranger(ctx context.Context, namespace string) (string, error) {
	for _, pod := range s.below.podsIn(namespace) {
		// Those of a ReplicaSet, which may be on their way out, are told by their Deployment.
		if owner := metav1.GetControllerOf(pod); pod.DeletionTimestamp == nil && (owner == nil || owner.Kind != "ReplicaSet") {
			return "Pod " + pod.Name, nil
		}
	}
	others := metav1.ListOptions{LabelSelector: v1alpha1.LabelLogicalCluster + "!=" + s.target.LogicalCluster, Limit: 1}
	deployments, err := s.client.AppsV1().Deployments(namespace).List(ctx, others)
	if err != nil {
		return "", fmt.Errorf("list the Deployments of others in namespace %q: %w", namespace, err)
	}
	for _, d := range deployments.Items {
		return "Deployment " + d.Name, nil
	}
	services, err := s.client.CoreV1().Services(namespace).List(ctx, others)
	if err != nil {
		return "", fmt.Errorf("list the Services of others in namespace %q: %w", namespace, err)
	}
	for _, service := range services.Items {
		return "Service " + service.Name, nil
	}
	return "", nil
}
