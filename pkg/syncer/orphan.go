package syncer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/internal/typed"
	"github.com/manifold-dev/manifold/pkg/identity"
	"github.com/manifold-dev/manifold/pkg/mirror"
	"github.com/manifold-dev/manifold/pkg/projection"
	"github.com/manifold-dev/manifold/pkg/syncer/writer"
)

// An object that is deleted without what it owns leaves pods behind, or ReplicaSets, that go on running. From then on they are workloads
// like those that a user makes: placed where they are, and projected. What they need stays with them, whoever takes them over next finds
// them, and they go with their namespace. The order is what makes that safe, however often we are interrupted:
//
//  1. What the object owns in the cluster gets our marks, and a label that it is an orphan.
//  2. The logical cluster comes to show it as an object that is not a mirror: pods are reported so by their syncer, ReplicaSets become so
//     when the garbage collector takes off the reference to their Deployment; see storage.placedStrategy.
//  3. Only then the object is deleted below, without what it owns. A projection to the orphan takes the label away.

// orphanWorkers bounds how many orphans of one object are marked at a time.
const orphanWorkers = 8

var replicaSetResource = appsv1.SchemeGroupVersion.WithResource("replicasets")

// abandon sees to it that what an object owns in this cluster outlives it. The error is errNotYet until the logical cluster shows all of it
// as its own; what happens there wakes us.
func (s *Syncer) abandon(ctx context.Context, kind projection.Kind, live projection.Object) error {
	owned := s.ownedBy(kind, live)
	errs := make([]error, len(owned))
	workqueue.ParallelizeUntil(ctx, orphanWorkers, len(owned), func(i int) { errs[i] = s.markOrphan(ctx, owned[i].Kind, owned[i].Object) })
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if s.Upstream.NamespaceGoes(live.GetNamespace()) {
		return nil
	}
	for _, orphan := range owned {
		if !s.shownAsOwn(orphan) {
			return errNotYet
		}
	}
	return nil
}

// ownedBy returns what an object below controls and what does not end anyway: the ReplicaSets of a Deployment, else its pods.
func (s *Syncer) ownedBy(kind projection.Kind, live projection.Object) []identity.Workload {
	var out []identity.Workload
	if kind.Resource == deploymentResource {
		set, _ := projection.ForResource(replicaSetResource)
		for _, rs := range s.below.ReplicaSetsOf(live.GetNamespace(), live.GetName()) {
			if metav1.IsControlledBy(rs, live) && rs.DeletionTimestamp == nil {
				out = append(out, identity.Workload{Kind: set, Object: rs})
			}
		}
		return out
	}
	pod, _ := projection.ForResource(podResource)
	for _, p := range s.below.PodsOf(kind.GVK.Kind, live.GetNamespace(), live.GetName()) {
		if metav1.IsControlledBy(p, live) && p.DeletionTimestamp == nil {
			out = append(out, identity.Workload{Kind: pod, Object: p})
		}
	}
	return out
}

// shownAsOwn reports whether the logical cluster has an orphan as an object of its own. One whose name has another there is never shown, and
// old ReplicaSets of which it keeps no history need not be.
func (s *Syncer) shownAsOwn(orphan identity.Workload) bool {
	if orphan.Kind.Resource == podResource {
		above, err := s.mirrorNamed(cache.MetaObjectToName(orphan.Object))
		if err != nil || above == nil {
			return false
		}
		return identity.ShownFrom(above) == "" || identity.ShownFrom(above) != s.cluster
	}
	above := s.Upstream.Get(orphan.Key())
	if above == nil {
		return orphan.Kind.Demand(orphan.Object).Replicas == 0
	}
	return !orphan.Kind.Mirror(above)
}

// markOrphan makes an object below ours that outlives its owner.
func (s *Syncer) markOrphan(ctx context.Context, kind projection.Kind, live projection.Object) error {
	if origin, owned := projection.OriginOf(live); owned && (origin.LogicalCluster != s.target.LogicalCluster || kind.Resource == podResource ||
		projection.Orphaned(live)) {
		return nil // it is marked, or never to be
	}
	return s.mark(ctx, kind, live, live.GetUID())
}

// mark writes our marks on an orphan.
func (s *Syncer) mark(ctx context.Context, kind projection.Kind, live projection.Object, above types.UID) error {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid":    live.GetUID(),
		"labels": map[string]any{v1alpha1.LabelLogicalCluster: s.target.LogicalCluster, v1alpha1.LabelOrphan: "true"},
		"annotations": map[string]any{
			v1alpha1.AnnotationNamespace: live.GetNamespace(), v1alpha1.AnnotationName: live.GetName(), v1alpha1.AnnotationUID: above,
		},
	}})
	if err != nil {
		return fmt.Errorf("encode a patch: %w", err)
	}
	client, err := typed.For(s.client, kind.Resource, live.GetNamespace())
	if err != nil {
		return err
	}
	_, err = client.Patch(ctx, live.GetName(), types.MergePatchType, patch, metav1.PatchOptions{FieldManager: v1alpha1.FieldManager})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil // it has gone, or another has its name
	}
	return err
}

// settleOrphan reports whether an object below is an orphan that the logical cluster does not have as its own yet. A ReplicaSet gets its marks
// a second time: the controller of its Deployment has written its own annotations over them for as long as it was there.
func (s *Syncer) settleOrphan(ctx context.Context, kind projection.Kind, above, live projection.Object) (waits bool, err error) {
	if live == nil || !projection.Orphaned(live) {
		return false, nil
	}
	shown := above != nil && !kind.Mirror(above)
	if kind.Resource == podResource {
		if !shown {
			s.podQueue.Add(cache.MetaObjectToName(live))
		}
		return !shown, nil
	}
	switch origin, _ := projection.OriginOf(live); {
	case metav1.GetControllerOf(live) != nil:
		return true, nil // of what is being deleted, or of who has come after it
	case above == nil:
		return false, nil // it was deleted meanwhile
	case !shown:
		return true, nil
	case origin.Name != live.GetName() || origin.UID != above.GetUID():
		return true, s.mark(ctx, kind, live, above.GetUID())
	}
	return false, nil
}

// takeOver has the logical cluster show an orphaned pod as one that somebody made there, under the name and the UID that it has. It is what
// the mirror showed of it, without what the cluster has added: only what came from above may ever be made of it elsewhere.
func (s *Syncer) takeOver(ctx context.Context, pod, stored *corev1.Pod, template *corev1.PodSpec) error {
	if template == nil && stored.Spec.NodeName == "" {
		return s.refuse(pod, errNoRecord)
	}
	want := s.mirror(pod, mirrorOwner{references: ownedStill(stored.OwnerReferences, mirrorOwner{})})
	mirror.TakenOver(want, stored, template, s.cluster)
	if err := s.writeMirror(ctx, want, stored); err != nil {
		return err
	}
	if own := s.ownerOf(pod); own != nil {
		s.enqueue(own.above.Key())
	}
	return nil
}

// errNoRecord is why a pod that nobody controls in its cluster is not shown.
var errNoRecord = errors.New("nobody controls it there, and nothing above says that it goes on running without its controller")

// letGoOf is for a pod that is shown and that nobody controls in its cluster any more. Its owner has let go of it, because its labels were
// changed above, or has gone and left it to others: then it runs on, and its user deletes it. What above says nothing of is none of ours.
func (s *Syncer) letGoOf(ctx context.Context, pod, stored *corev1.Pod) error {
	if _, ok := s.Upstream.Released(stored); ok {
		kind, _ := projection.ForResource(podResource)
		return s.markOrphan(ctx, kind, pod)
	}
	if s.podQueue.NumRequeues(cache.MetaObjectToName(pod)) < writer.BrokenTries {
		return errNotYet // what was written above comes by another watch
	}
	s.tellRefused(pod, errNoRecord)
	return s.deleteMirror(ctx, stored, 0)
}

// orphanOwner returns what a pod below belongs to whose ReplicaSet outlives its Deployment.
func (s *Syncer) orphanOwner(rs *appsv1.ReplicaSet) *ownership {
	kind, _ := projection.ForResource(replicaSetResource)
	above := s.Upstream.Get(identity.KeyOf(kind, rs))
	if above == nil {
		return nil
	}
	return &ownership{above: identity.Workload{Kind: kind, Object: above}}
}
