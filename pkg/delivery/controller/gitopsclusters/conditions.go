package gitopsclusters

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	manifold "github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/clusters/health"
)

// Conditions of a GitopsCluster, and the reasons that Weave GitOps gives for the second one.
const (
	conditionReady        = "Ready"
	conditionConnectivity = "ClusterConnectivity"

	reasonConnected    = "ClusterConnectionSucceeded"
	reasonNotConnected = "ClusterConnectionFailed"
	reasonNotJoined    = "ClusterNotJoined"
	reasonNotHeard     = "ClusterNotHeard"
)

// unproven are the reasons of clusters that are not ready since nobody who proves to be the cluster has answered.
var unproven = []string{
	health.ReasonUnauthorized, health.ReasonDifferentCluster, health.ReasonInvalidCredential, health.ReasonUnreachable,
}

// conditions tell of the Cluster of a name, nil if there is none. They repeat its reasons and not its messages: these name addresses and what somebody answered
// there, which is for those who may see Clusters.
func conditions(name string, cluster *manifold.Cluster) []metav1.Condition {
	if cluster == nil {
		said := fmt.Sprintf("no cluster has joined as %q: run \"manifold cluster join %s\"", name, name)
		return []metav1.Condition{
			{Type: conditionReady, Status: metav1.ConditionFalse, Reason: reasonNotJoined, Message: said},
			{Type: conditionConnectivity, Status: metav1.ConditionFalse, Reason: reasonNotJoined, Message: said},
		}
	}
	ready := meta.FindStatusCondition(cluster.Status.Conditions, manifold.ClusterReady)
	if ready == nil {
		said := fmt.Sprintf("cluster %q has not been heard of yet", name)
		return []metav1.Condition{
			{Type: conditionReady, Status: metav1.ConditionUnknown, Reason: reasonNotHeard, Message: said},
			{Type: conditionConnectivity, Status: metav1.ConditionUnknown, Reason: reasonNotHeard, Message: said},
		}
	}
	more := fmt.Sprintf("; \"kubectl describe cluster %s\" tells more", name)
	shown := metav1.Condition{Type: conditionReady, Status: ready.Status, Reason: ready.Reason, Message: fmt.Sprintf("cluster %q is ready", name)}
	switch ready.Status {
	case metav1.ConditionFalse:
		shown.Message = fmt.Sprintf("cluster %q is not ready", name) + more
	case metav1.ConditionUnknown:
		shown.Message = fmt.Sprintf("cluster %q has not answered for long", name) + more
	}
	reached := metav1.Condition{Type: conditionConnectivity, Status: metav1.ConditionTrue, Reason: reasonConnected, Message: fmt.Sprintf("cluster %q answers", name)}
	if ready.Status == metav1.ConditionUnknown || meta.IsStatusConditionFalse(cluster.Status.Conditions, manifold.ClusterAnswering) ||
		ready.Status == metav1.ConditionFalse && slices.Contains(unproven, ready.Reason) {
		reached.Status, reached.Reason, reached.Message = metav1.ConditionFalse, reasonNotConnected, fmt.Sprintf("cluster %q does not answer, or not as itself", name)+more
	}
	return []metav1.Condition{shown, reached}
}
