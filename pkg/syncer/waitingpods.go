package syncer

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/manifold-dev/manifold/pkg/identity"
	"github.com/manifold-dev/manifold/pkg/projection"
	"github.com/manifold-dev/manifold/pkg/syncer/writer"
)

// A pod that a user made and that waits in a cluster without a node for it may be decided to run elsewhere. It must never run in both:
//
//  1. Its cluster deletes it exactly as it was looked at, without a node. If the scheduler is faster, nothing is deleted, the pod above
//     gets its node, and placement takes the decision back.
//  2. When it is gone, the syncer takes its UID off the pod above.
//  3. Only then the new cluster makes it: as long as the pod above has a UID below, it counts as made.

// leave has a pod that goes elsewhere leave the cluster, unless it has a node by now.
func (s *Syncer) leave(ctx context.Context, kind projection.Kind, above, live projection.Object) error {
	pod := live.(*corev1.Pod)
	switch {
	case pod.Spec.NodeName != "":
		s.pods.Look(cache.MetaObjectToName(pod)) // it runs here, which is reported
		return nil
	case pod.DeletionTimestamp != nil:
		return nil // the watch tells when it is gone
	}
	s.pods.Leave(above.GetUID())
	err := s.writer(kind, live.GetNamespace()).Delete(ctx, live, writer.Deletion{Unchanged: true})
	if err != nil {
		s.pods.Stay(above.GetUID())
	}
	return err
}

// ended has looked at what waits for a projection to be gone: a pod above, and routes of Gateways, which stay as long as the cluster shows a workload behind
// them. That is longer than until the workload was deleted there.
func (s *Syncer) ended(key identity.Key, kind projection.Kind, above projection.Object) {
	if key.Resource == podResource && above != nil {
		s.pods.Look(cache.ObjectName{Namespace: key.Namespace, Name: key.Name})
	}
	if told := s.Upstream.outside.GatewaysChanged; told != nil && kind.Workload {
		told(s.cluster)
	}
}
