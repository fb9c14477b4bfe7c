package mirrors

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/internal/typed"
	"github.com/manifold-dev/manifold/pkg/identity"
	"github.com/manifold-dev/manifold/pkg/mirror"
	"github.com/manifold-dev/manifold/pkg/projection"
)

// An object that is deleted without what it owns leaves pods behind, or ReplicaSets, that go on running. From then on they are workloads
// like those that a user makes: placed where they are, and projected. What they need stays with them, whoever takes them over next finds
// them, and they go with their namespace. The order is what makes that safe, however often we are interrupted:
//
//  1. What the object owns in the cluster gets our marks, and a label that it is an orphan.
//  2. The logical cluster comes to show it as an object that is not a mirror: pods are reported so by their syncer, ReplicaSets become so
//     when the garbage collector takes off the reference to their Deployment; see workloads.placedStrategy.
//  3. Only then the object is deleted below, without what it owns. A projection to the orphan takes the label away.

// orphanWorkers bounds how many orphans of one object are marked at a time.
const orphanWorkers = 8

// Orphans sees to what outlives its owner in a cluster.
type Orphans struct {
	Options
	pods *Pods
}

// NewOrphans returns what sees to the orphans of a cluster, which pods come to show.
func NewOrphans(pods *Pods) *Orphans { return &Orphans{pods.Options, pods} }

// Abandon sees to it that what an object owns in this cluster outlives it. The error is ErrNotYet until the logical cluster shows all of it
// as its own; what happens there wakes us.
func (o *Orphans) Abandon(ctx context.Context, kind projection.Kind, live projection.Object) error {
	owned := o.ownedBy(kind, live)
	errs := make([]error, len(owned))
	workqueue.ParallelizeUntil(ctx, orphanWorkers, len(owned), func(i int) { errs[i] = o.markOrphan(ctx, owned[i].Kind, owned[i].Object) })
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if o.Above.NamespaceGoes(live.GetNamespace()) {
		return nil
	}
	for _, orphan := range owned {
		if !o.shownAsOwn(orphan) {
			return ErrNotYet
		}
	}
	return nil
}

// ownedBy returns what an object below controls and what does not end anyway: the ReplicaSets of a Deployment, else its pods.
func (o *Orphans) ownedBy(kind projection.Kind, live projection.Object) []identity.Workload {
	var out []identity.Workload
	if kind.Resource == identity.Deployments {
		set, _ := projection.ForResource(identity.ReplicaSets)
		for _, rs := range o.Below.ReplicaSetsOf(live.GetNamespace(), live.GetName()) {
			if metav1.IsControlledBy(rs, live) && rs.DeletionTimestamp == nil {
				out = append(out, identity.Workload{Kind: set, Object: rs})
			}
		}
		return out
	}
	pod, _ := projection.ForResource(identity.Pods)
	for _, p := range o.Below.PodsOf(kind.GVK.Kind, live.GetNamespace(), live.GetName()) {
		if metav1.IsControlledBy(p, live) && p.DeletionTimestamp == nil {
			out = append(out, identity.Workload{Kind: pod, Object: p})
		}
	}
	return out
}

// shownAsOwn reports whether the logical cluster has an orphan as an object of its own. One whose name has another there is never shown, and
// old ReplicaSets of which it keeps no history need not be.
func (o *Orphans) shownAsOwn(orphan identity.Workload) bool {
	if orphan.Kind.Resource == identity.Pods {
		above := o.pods.Named(cache.MetaObjectToName(orphan.Object))
		return above != nil && identity.ShownFrom(above) != o.Cluster
	}
	above := o.Above.Get(orphan.Key())
	if above == nil {
		return orphan.Kind.Demand(orphan.Object).Replicas == 0
	}
	return !orphan.Kind.Mirror(above)
}

// markOrphan makes an object below ours that outlives its owner.
func (o Options) markOrphan(ctx context.Context, kind projection.Kind, live projection.Object) error {
	if origin, owned := projection.OriginOf(live); owned && (origin.LogicalCluster != o.Above.LogicalCluster || kind.Resource == identity.Pods ||
		projection.Orphaned(live)) {
		return nil // it is marked, or never to be
	}
	return o.mark(ctx, kind, live, live.GetUID())
}

// mark writes our marks on an orphan.
func (o Options) mark(ctx context.Context, kind projection.Kind, live projection.Object, above types.UID) error {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid":    live.GetUID(),
		"labels": map[string]any{v1alpha1.LabelLogicalCluster: o.Above.LogicalCluster, v1alpha1.LabelOrphan: "true"},
		"annotations": map[string]any{
			v1alpha1.AnnotationNamespace: live.GetNamespace(), v1alpha1.AnnotationName: live.GetName(), v1alpha1.AnnotationUID: above,
		},
	}})
	if err != nil {
		return fmt.Errorf("encode a patch: %w", err)
	}
	client, err := typed.For(o.Client, kind.Resource, live.GetNamespace())
	if err != nil {
		return err
	}
	_, err = client.Patch(ctx, live.GetName(), types.MergePatchType, patch, metav1.PatchOptions{FieldManager: v1alpha1.FieldManager})
	return typed.IgnoreGone(err)
}

// Orphan says what is to be done about an object below that outlives its owner.
type Orphan int

const (
	// NoOrphan is an object like any other, for one that the logical cluster has as its own as well.
	NoOrphan Orphan = iota
	// OrphanUnshown is a pod that the logical cluster does not have as its own yet.
	OrphanUnshown
	// OrphanWaits is a ReplicaSet that its Deployment still has, here or above.
	OrphanWaits
	// OrphanOverwritten is a ReplicaSet that is to get its marks a second time: the controller of its Deployment has written its own annotations
	// over them for as long as it was there.
	OrphanOverwritten
)

// Look says what is to be done about an object below, if it outlives its owner.
func (o *Orphans) Look(kind projection.Kind, above, live projection.Object) Orphan {
	if live == nil || !projection.Orphaned(live) {
		return NoOrphan
	}
	shown := above != nil && !kind.Mirror(above)
	if kind.Resource == identity.Pods {
		if shown {
			return NoOrphan
		}
		return OrphanUnshown
	}
	switch origin, _ := projection.OriginOf(live); {
	case metav1.GetControllerOf(live) != nil:
		return OrphanWaits // of what is being deleted, or of who has come after it
	case above == nil:
		return NoOrphan // it was deleted meanwhile
	case !shown:
		return OrphanWaits
	case origin.Name != live.GetName() || origin.UID != above.GetUID():
		return OrphanOverwritten
	}
	return NoOrphan
}

// Show has the logical cluster show a pod that outlives its owner.
func (o *Orphans) Show(pod projection.Object) { o.pods.Look(cache.MetaObjectToName(pod)) }

// Mark writes our marks on a ReplicaSet that outlives its owner.
func (o *Orphans) Mark(ctx context.Context, kind projection.Kind, above, live projection.Object) error {
	return o.mark(ctx, kind, live, above.GetUID())
}

// takeOver has the logical cluster show an orphaned pod as one that somebody made there, under the name and the UID that it has. It is what
// the mirror showed of it, without what the cluster has added: only what came from above may ever be made of it elsewhere.
func (p *Pods) takeOver(ctx context.Context, pod, stored *corev1.Pod, template *corev1.PodSpec) error {
	if template == nil && stored.Spec.NodeName == "" {
		return p.refuse(pod, errNoRecord)
	}
	want := mirror.ShowPod(pod, p.Cluster, mirror.OwnersOf(stored.OwnerReferences, nil, false), nil)
	mirror.TakenOver(want, stored, template, p.Cluster)
	if err := p.write(ctx, want, stored); err != nil {
		return err
	}
	if own := p.owners.Of(pod); own != nil {
		p.Enqueue(own.Above.Key())
	}
	return nil
}

// errNoRecord is why a pod that nobody controls in its cluster is not shown.
var errNoRecord = errors.New("it has no controller there, and the logical cluster has no record that it should run without one")

// letGoOf is for a pod that is shown and that nobody controls in its cluster any more. Its owner has let go of it, because its labels were
// changed above, or has gone and left it to others: then it runs on, and its user deletes it. What above says nothing of is none of ours.
func (p *Pods) letGoOf(ctx context.Context, pod, stored *corev1.Pod) error {
	if _, ok := p.Above.Released(stored); ok {
		kind, _ := projection.ForResource(identity.Pods)
		return p.markOrphan(ctx, kind, pod)
	}
	if p.Queue.NumRequeues(cache.MetaObjectToName(pod)) < brokenTries {
		return ErrNotYet // what was written above comes by another watch
	}
	p.tellRefused(pod, errNoRecord)
	return p.end(ctx, stored, 0)
}
