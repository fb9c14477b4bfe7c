package mirrors

import (
	"context"
	"slices"
	"strconv"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/internal/typed"
	"github.com/manifold-dev/manifold/internal/work"
	"github.com/manifold-dev/manifold/pkg/identity"
	"github.com/manifold-dev/manifold/pkg/mirror"
	"github.com/manifold-dev/manifold/pkg/projection"
	"github.com/manifold-dev/manifold/pkg/syncer/logical"
)

// podWorkers is how many mirrors of pods of one cluster are written at a time.
const podWorkers = 8

// Pods shows the pods of a cluster: those that controllers there have made as mirrors, and the status of those that users have made.
type Pods struct {
	Options
	frame[*corev1.Pod]
	owners *Owners
	// left are the pods of users, by their UIDs above, that were deleted here because they are to run elsewhere.
	left sync.Map

	mu sync.Mutex
	// awaited counts the pods of workloads whose status waits for them to be shown.
	awaited map[identity.Key]int
}

// NewPods returns the mirrors of a cluster's pods. Nothing is shown until Run.
func NewPods(o Options) *Pods {
	return &Pods{
		Options: o, owners: &Owners{o}, awaited: map[identity.Key]int{},
		frame: newFrame("pods-"+o.Cluster, o.Above, o.Above.Stores[identity.Pods],
			func(namespace string) client[*corev1.Pod] { return o.Writer.CoreV1().Pods(namespace) }, mirror.SamePod),
	}
}

// Run shows what is to be looked at until ctx ends.
func (p *Pods) Run(ctx context.Context) { work.Run(ctx, p.Queue, podWorkers, p.Sync) }

// LookAt has a pod looked at: at once, unless it only just begins.
func (p *Pods) LookAt(pod *corev1.Pod) { p.lookAt(pod, beginning(pod)) }

// beginning reports whether a pod is expected to move on by itself in a moment. A pod that could not be scheduled is not.
func beginning(pod *corev1.Pod) bool {
	if pod.Status.Phase != corev1.PodPending {
		return false
	}
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse {
			return false
		}
	}
	return true
}

// LookAtAll has all pods looked at that are here or shown: whether they are to be led to has changed.
func (p *Pods) LookAtAll() {
	for _, obj := range p.Below.Pods.GetStore().List() {
		if pod := obj.(*corev1.Pod); p.Below.Ours(pod.Namespace) {
			p.Look(cache.MetaObjectToName(pod))
		}
	}
	for _, mirror := range p.Above.MirrorsOf(p.Cluster) {
		p.Look(cache.MetaObjectToName(mirror))
	}
}

// LookAtPodsOf has the pods of a workload looked at again.
func (p *Pods) LookAtPodsOf(kind projection.Kind, namespace, name string) {
	if kind.Resource != identity.Deployments {
		for _, pod := range p.Below.PodsOf(kind.GVK.Kind, namespace, name) {
			p.LookAt(pod)
		}
		return
	}
	for _, rs := range p.Below.ReplicaSetsOf(namespace, name) {
		for _, pod := range p.Below.PodsOf("ReplicaSet", namespace, rs.Name) {
			p.LookAt(pod)
		}
	}
}

// Sync brings what is shown of one pod in line with the pod, and tells those who wait for it to be shown.
func (p *Pods) Sync(ctx context.Context, name cache.ObjectName) error {
	err := p.sync(ctx, name)
	if err == nil {
		p.tellShown(name)
	}
	return err
}

func (p *Pods) sync(ctx context.Context, name cache.ObjectName) error {
	if p.GivenUp() {
		return nil // whoever removes the cluster removes its mirrors
	}
	shown, pod := p.Named(name), p.Below.Pod(name)
	switch {
	case shown == nil && pod == nil:
		return nil
	case shown == nil:
		return p.begin(ctx, pod)
	}
	switch from := identity.ShownFrom(shown); {
	case from == "":
		return p.syncOwn(ctx, shown, pod)
	case from != p.Cluster && (pod == nil || p.owners.OfMirror(pod) == nil):
		return nil // that of another cluster; ours has none
	case from != p.Cluster:
		return p.makeAnew(ctx, pod, shown) // two clusters chose the same name
	case pod == nil || pod.UID != shown.UID:
		return p.end(ctx, shown, 0)
	}
	return p.keep(ctx, pod, shown)
}

// begin shows a pod that is not shown yet.
func (p *Pods) begin(ctx context.Context, pod *corev1.Pod) error {
	if p.lost(pod) {
		return nil
	}
	if owner := p.owners.OfMirror(pod); owner != nil {
		return p.show(ctx, pod, *owner, nil)
	}
	if projection.Orphaned(pod) {
		return p.refuse(pod, errNoRecord)
	}
	return nil // the owner's mirror comes first; its watch wakes us
}

// keep brings the mirror of a pod in line with it, or takes the mirror away.
func (p *Pods) keep(ctx context.Context, pod, shown *corev1.Pod) error {
	if projection.Orphaned(pod) && pod.DeletionTimestamp == nil {
		if template, ok := p.Above.Released(shown); ok {
			return p.takeOver(ctx, pod, shown, template)
		}
	}
	if p.lost(pod) {
		return p.end(ctx, shown, 0)
	}
	if owner := p.owners.OfMirror(pod); owner != nil {
		return p.show(ctx, pod, *owner, shown)
	}
	switch {
	case pod.DeletionTimestamp != nil:
		// What it belonged to may be gone before it is, above as below.
		return p.show(ctx, pod, Owner{References: shown.OwnerReferences, Labels: mirror.OwnerLabels(shown)}, shown)
	case metav1.GetControllerOf(pod) == nil:
		return p.letGoOf(ctx, pod, shown)
	case p.owners.Of(pod) == nil:
		if gone, err := p.controllerGone(ctx, pod); gone || err != nil {
			return err // the garbage collector of the cluster is about to decide about it
		}
		return p.end(ctx, shown, 0) // no longer a pod of ours
	}
	return nil
}

// lost reports whether a pod may run, but nobody hears of it, and its workload runs elsewhere, perhaps under the same names.
func (p *Pods) lost(pod *corev1.Pod) bool {
	own := p.owners.Of(pod)
	return own != nil && p.Lost(own.Above)
}

// show writes the mirror of a pod that has this owner; stored is the mirror as it is, or nil.
func (p *Pods) show(ctx context.Context, pod *corev1.Pod, owner Owner, stored *corev1.Pod) error {
	want, err := p.Showable(pod, owner, stored)
	if err != nil {
		return p.refuse(pod, err)
	}
	if stored == nil || !mirror.SamePod(want, stored) {
		p.tellAddresses(pod, pod) // the mirror has its UID
	}
	p.unheard(want, stored)
	return p.write(ctx, want, stored)
}

// unheard has what is shown of a pod say that it is not ready, as long as the cluster is silent.
func (p *Pods) unheard(want, stored *corev1.Pod) {
	if p.Unheard != nil && p.Unheard() {
		mirror.Unheard(want, stored, time.Now())
	}
}

// controllerGone reports whether what controls an object below, or what controls that, is not there any more. The cluster is asked: what is
// not in our caches may only be none of ours.
func (p *Pods) controllerGone(ctx context.Context, of metav1.Object) (bool, error) {
	ref := metav1.GetControllerOf(of)
	if ref == nil {
		return false, nil
	}
	kind, ok := projection.ForGVK(schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind))
	if !ok {
		return false, nil
	}
	client, err := typed.For(p.Client, kind.Resource, of.GetNamespace())
	if err != nil {
		return false, err
	}
	list, err := client.List(ctx, metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector(metav1.ObjectNameField, ref.Name).String()})
	if err != nil {
		return false, err
	}
	var controller metav1.Object
	_ = meta.EachListItem(list, func(item runtime.Object) error {
		if found, err := meta.Accessor(item); err == nil && found.GetUID() == ref.UID {
			controller = found
		}
		return nil
	})
	if controller == nil {
		return true, nil
	}
	return p.controllerGone(ctx, controller)
}

func (p *Pods) write(ctx context.Context, want, have *corev1.Pod) error {
	deleting := want.DeletionTimestamp
	grace := ptr.Deref(want.DeletionGracePeriodSeconds, 0)
	want.DeletionTimestamp, want.DeletionGracePeriodSeconds = nil, nil
	if deleting != nil && want.Generation > 1 && (have == nil || have.DeletionTimestamp == nil) {
		want.Generation-- // the deletion that follows counts
		metav1.SetMetaDataAnnotation(&want.ObjectMeta, v1alpha1.AnnotationGeneration, strconv.FormatInt(want.Generation, 10))
	}
	stored, err := p.put(ctx, want, have)
	if err != nil || stored == nil {
		return err
	}
	if deleting != nil && stored.DeletionTimestamp == nil {
		// An update cannot mark an object as being deleted; only a deletion with a grace period can.
		return p.end(ctx, stored, max(grace, 1))
	}
	return nil
}

// end deletes what is shown of a pod, within a time of grace in seconds.
func (p *Pods) end(ctx context.Context, stored *corev1.Pod, grace int64) error {
	if err := p.remove(ctx, stored, &grace); err != nil {
		return err
	}
	p.Gone(stored)
	return nil
}

// Showable returns the mirror of a pod that has this owner; stored is the mirror as it is, or nil. The error says why there can be none: the
// API server would refuse it, see package guard.
func (p *Pods) Showable(pod *corev1.Pod, owner Owner, stored *corev1.Pod) (*corev1.Pod, error) {
	of := mirror.Owner{Object: &corev1.Pod{}, Template: &corev1.PodTemplateSpec{}}
	if stored != nil {
		owner.References = mirror.OwnersOf(stored.OwnerReferences, owner.References, owner.Ending)
		of.Revision = logical.RevisionLabel(stored)
	}
	out := mirror.ShowPod(pod, p.Cluster, owner.References, owner.Labels)
	out.Finalizers = slices.Clone(pod.Finalizers)
	if owner.Controller.Object != nil {
		if stored == nil || !metav1.IsControlledBy(stored, owner.Controller) {
			if err := p.Guard.MayShow(p.Cluster, pod, owner.Controller, owner.Decider); err != nil {
				return nil, err
			}
		}
		of = p.Above.OwnerOf(owner.Controller, owner.Decider, p.Cluster, logical.RevisionLabel(out), stored == nil)
		if stored == nil {
			of.Change = p.Above.Admitted(p.Cluster, pod, owner.Decider)
		}
	}
	of.Pod(out, stored)
	if of.Change != nil { // the API server looks at it, and does not store it
		metav1.SetMetaDataAnnotation(&out.ObjectMeta, v1alpha1.AnnotationAdmitted, pod.Annotations[v1alpha1.AnnotationAdmitted])
	}
	return out, nil
}

// refuse is for a pod that cannot be shown. The caches may be behind for a moment, and what is decided may change, so it is looked at again;
// what goes on is told once.
func (p *Pods) refuse(pod *corev1.Pod, why error) error {
	if p.Queue.NumRequeues(cache.MetaObjectToName(pod)) == brokenTries {
		p.tellRefused(pod, why)
	}
	return ErrNotYet
}

// tellRefused tells of a pod that is not shown, and of the workload above that it claims to belong to.
func (p *Pods) tellRefused(pod *corev1.Pod, why error) {
	var to projection.Object
	if own := p.owners.Of(pod); own != nil {
		to = own.Above.Object
	}
	p.tellNotShown("pod", pod, to, why)
}
