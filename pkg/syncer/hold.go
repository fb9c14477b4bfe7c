package syncer

import (
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/utils/ptr"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/placement"
	"github.com/manifold-dev/manifold/pkg/projection"
)

// hold returns the share that a cluster keeps beyond what was decided, because what is to replace it does not serve yet. More is false
// in the ordinary case: the share is what was decided, or more.
func (u *Upstream) hold(above, live projection.Object, cluster string) (share placement.Share, more bool) {
	// Only what keeps no identity may run more than once for the time of a move.
	d, ok := live.(*appsv1.Deployment)
	if !ok || d.Annotations[v1alpha1.AnnotationUID] != string(above.GetUID()) {
		return placement.Share{}, false
	}
	decision := DecisionOf(above)
	if len(decision) == 0 || ptr.Deref(d.Spec.Replicas, 1) <= decision[cluster].Replicas {
		return placement.Share{}, false
	}
	share, held := placement.Hold(decision, u.observed(d.Namespace, d.Name))[cluster]
	return share, held && share.Replicas > decision[cluster].Replicas
}

// observed returns what every connected cluster runs of a Deployment.
func (u *Upstream) observed(namespace, name string) map[string]placement.Observed {
	out := map[string]placement.Observed{}
	for _, s := range u.Syncers() {
		live, ok := s.below.get(Key{Resource: deploymentResource, Namespace: namespace, Name: name}).(*appsv1.Deployment)
		if !ok || live.DeletionTimestamp != nil {
			continue
		}
		out[s.cluster] = placement.Observed{Replicas: ptr.Deref(live.Spec.Replicas, 1), Available: live.Status.AvailableReplicas}
	}
	return out
}
