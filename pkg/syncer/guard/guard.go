package guard

import (
	"errors"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/identity"
	"github.com/manifold-dev/manifold/pkg/mirror"
	"github.com/manifold-dev/manifold/pkg/projection"
	"github.com/manifold-dev/manifold/pkg/syncer/logical"
)

// Guard says what the identity of a cluster may write to the logical cluster, as the node authorizer and NodeRestriction do for nodes: what
// the cluster runs by decision, under the owner and in the shape that are known above. The syncer of a cluster asks the same questions before it
// writes, so it is refused nothing; whoever else comes by its identity can do no more than it.
type Guard struct {
	// Cluster is what is known above, and Synced reports whether all of it has been read.
	*logical.Cluster
	Synced func() bool
	// NeededIn reports whether a cluster has to do with an object that goes where workloads need it, or is sent there by itself.
	NeededIn func(kind projection.Kind, above projection.Object, cluster string) bool
	// Complete gives a pod the defaults that it gets on its way to storage. It may be nil.
	Complete func(*corev1.Pod)
}

// ErrNotSeen is returned as long as the caches are empty.
var ErrNotSeen = errors.New("the logical cluster has not been read yet")

// Open returns why nothing of a cluster is shown in a namespace, nil if something may be.
func (g Guard) Open(namespace string) error {
	if !g.Synced() {
		return ErrNotSeen
	}
	if reason, refused := projection.NamespaceRefusal(namespace); refused {
		return errors.New(reason)
	}
	if _, err := g.Namespaces.Get(namespace); err != nil {
		return fmt.Errorf("there is no namespace %q", namespace)
	}
	return nil
}

// CreatePod returns why a cluster may not have a pod shown, nil if it may.
func (g Guard) CreatePod(cluster string, pod *corev1.Pod) error {
	if err := g.Open(pod.Namespace); err != nil {
		return err
	}
	if identity.ShownFrom(pod) != cluster {
		return fmt.Errorf("it is not marked as a pod of cluster %q", cluster)
	}
	if len(pod.OwnerReferences) != 1 {
		return errors.New("a new mirror has one owner, its controller")
	}
	owner, err := g.podOwner(cluster, pod, nil)
	if err != nil {
		return err
	}
	return owner.CheckPod(pod, nil, cluster, g.Complete)
}

// UpdatePod returns why a cluster may not write pod over stored, nil if it may.
func (g Guard) UpdatePod(cluster string, pod, stored *corev1.Pod) error {
	if !g.Synced() {
		return ErrNotSeen
	}
	if pod.UID != stored.UID || !pod.CreationTimestamp.Equal(&stored.CreationTimestamp) {
		return errors.New("its UID or creation time is that of another pod")
	}
	switch identity.ShownFrom(stored) {
	case "":
		return g.reportsPod(cluster, pod, stored)
	case cluster:
	default:
		return fmt.Errorf("it mirrors a pod of cluster %q", identity.ShownFrom(stored))
	}
	if identity.ShownFrom(pod) == "" {
		return g.takesOver(cluster, pod, stored)
	}
	if err := sameOwnersAbove(pod, stored); err != nil {
		return err
	}
	owner, err := g.podOwner(cluster, pod, stored)
	if err != nil {
		return err
	}
	return owner.CheckPod(pod, stored, cluster, g.Complete)
}

// DeletePod returns why a cluster may not take a pod away, nil if it may: its mirrors, and pods of users that were there.
func (g Guard) DeletePod(cluster string, stored *corev1.Pod) error {
	switch showing := identity.ShownFrom(stored); {
	case showing == cluster:
		return nil
	case showing != "":
		return fmt.Errorf("it mirrors a pod of cluster %q", showing)
	case !identity.Concerns(stored, cluster):
		return fmt.Errorf("it is not in cluster %q", cluster)
	case stored.DeletionTimestamp == nil && stored.Annotations[v1alpha1.AnnotationPodUID] == "":
		return fmt.Errorf("cluster %q has never had it", cluster)
	}
	return nil
}

// podOwner finds what controls a mirror above. One that is stored may keep the controller that it has, also when that is gone or runs nowhere
// any more: it shows what is left of it.
func (g Guard) podOwner(cluster string, pod, stored *corev1.Pod) (mirror.Owner, error) {
	ref := logical.ControllerOf(pod)
	controller, decider, found := g.Controller(pod.Namespace, ref)
	if stored != nil {
		had := logical.ControllerOf(stored)
		switch {
		case ref == nil && had == nil, ref != nil && had != nil && equality.Semantic.DeepEqual(*ref, *had):
			if !found {
				return mirror.Owner{Object: &corev1.Pod{}, Template: &corev1.PodTemplateSpec{}, Revision: stored.Labels[appsv1.ControllerRevisionHashLabelKey]}, nil
			}
			return g.OwnerOf(controller, decider, cluster, logical.RevisionLabel(pod), false), nil
		}
	}
	switch {
	case ref == nil:
		return mirror.Owner{}, errors.New("it has no controller, and the logical cluster has no record that it was released")
	case !found:
		return mirror.Owner{}, fmt.Errorf("the logical cluster has no %s %s with UID %s", ref.Kind, ref.Name, ref.UID)
	}
	if err := g.MayShow(cluster, pod, controller, decider); err != nil {
		return mirror.Owner{}, err
	}
	owner := g.OwnerOf(controller, decider, cluster, logical.RevisionLabel(pod), stored == nil)
	if stored == nil {
		owner.Change = g.Admitted(cluster, pod, decider)
	}
	return owner, nil
}

// MayShow returns why a pod of a cluster cannot be shown as one that a controller above has there, nil if it can.
func (g Guard) MayShow(cluster string, pod *corev1.Pod, controller, decider identity.Workload) error {
	if err := g.MayHave(cluster, pod, controller, decider); err != nil {
		return err
	}
	return g.uidFree(identity.Pods, pod)
}

// MayHave returns why a controller above can have no such pod in a cluster, whatever its UID is there.
func (g Guard) MayHave(cluster string, pod *corev1.Pod, controller, decider identity.Workload) error {
	if !identity.Involves(decider.Object, cluster) {
		return fmt.Errorf("%s %s is not placed in cluster %q", decider.Kind.GVK.Kind, decider.GetName(), cluster)
	}
	if controller.Kind.Demand(controller.Object).Template == nil {
		return fmt.Errorf("%s %s has no template", controller.Kind.GVK.Kind, controller.GetName())
	}
	if err := g.Versions.MayRun(cluster, controller, decider); err != nil {
		return err
	}
	return g.named(cluster, pod, controller)
}

// named returns why a controller does not have a pod of that name in a cluster: the replicas of a StatefulSet have their names to themselves,
// and each ordinal is one cluster's.
func (g Guard) named(cluster string, pod metav1.Object, controller identity.Workload) error {
	sets, _ := projection.ForResource(identity.StatefulSets)
	set, ordinal, numbered := projection.CutOrdinal(pod.GetName())
	if controller.Kind.Resource != identity.StatefulSets {
		if !numbered {
			return nil
		}
		above := g.Get(identity.Key{Resource: identity.StatefulSets, Namespace: pod.GetNamespace(), Name: set})
		if above == nil {
			return nil
		}
		if demand := sets.Demand(above); ordinal >= demand.First && ordinal < demand.First+demand.Replicas {
			return fmt.Errorf("its name is that of a replica of StatefulSet %s", set)
		}
		return nil
	}
	if !numbered || set != controller.GetName() {
		return fmt.Errorf("StatefulSet %s has no replica of that name", controller.GetName())
	}
	return g.ordinalOf(cluster, controller, ordinal)
}

// ordinalOf returns why a cluster does not run an ordinal of a StatefulSet: it is not to by decision, and did not before. An ordinal that is
// nobody's yet would be taken when the StatefulSet grows to it.
func (g Guard) ordinalOf(cluster string, set identity.Workload, ordinal int32) error {
	decision := identity.DecisionOf(set)
	if share, decided := decision[cluster]; decided && identity.OrdinalsOf(set, share).Contains(ordinal) {
		return nil
	}
	if had, ok := identity.ReportedOrdinals(set, cluster); ok && had.Contains(ordinal) {
		return nil // it is about to leave
	}
	for other, share := range decision {
		if other != cluster && identity.OrdinalsOf(set, share).Contains(ordinal) {
			return fmt.Errorf("ordinal %d of StatefulSet %s belongs to cluster %q", ordinal, set.GetName(), other)
		}
	}
	return fmt.Errorf("no cluster should run ordinal %d of StatefulSet %s", ordinal, set.GetName())
}

// sameOwnersAbove returns why the owners of a mirror that are known above alone are not those that it has.
func sameOwnersAbove(pod, stored *corev1.Pod) error {
	above := func(of *corev1.Pod) []metav1.OwnerReference {
		return slices.DeleteFunc(slices.Clone(of.OwnerReferences), projection.ControlsPods)
	}
	if !equality.Semantic.DeepEqual(above(pod), above(stored)) {
		return errors.New("metadata.ownerReferences: a cluster may change only the controller")
	}
	return nil
}

// reportsPod returns why an update is not what a cluster may say of a pod that a user has made.
func (g Guard) reportsPod(cluster string, pod, stored *corev1.Pod) error {
	if identity.ShownFrom(pod) != "" {
		return errors.New("it is not a mirror")
	}
	if !identity.Concerns(stored, cluster) {
		return fmt.Errorf("it is not placed in cluster %q", cluster)
	}
	if err := sameOwnersAbove(pod, stored); err != nil {
		return err
	}
	if ref, had := logical.ControllerOf(pod), logical.ControllerOf(stored); ref != nil && !equality.Semantic.DeepEqual(ref, had) {
		_, decider, found := g.Controller(pod.Namespace, ref)
		if !found || !identity.Involves(decider.Object, cluster) {
			return fmt.Errorf("metadata.ownerReferences: there is no %s %s with UID %s that is placed in cluster %q", ref.Kind, ref.Name, ref.UID, cluster)
		}
	}
	return mirror.CheckReport(pod, stored, cluster)
}

// takesOver returns why the mirror of a pod cannot become a pod of its own.
func (g Guard) takesOver(cluster string, pod, stored *corev1.Pod) error {
	template, ok := g.Released(stored)
	if !ok {
		return errors.New("the logical cluster has no record that its controller released it")
	}
	if logical.ControllerOf(pod) != nil {
		return errors.New("metadata.ownerReferences: a released pod has no controller")
	}
	if err := sameOwnersAbove(pod, stored); err != nil {
		return err
	}
	return mirror.CheckTakenOver(pod, stored, template, cluster)
}

// uidFree returns why an object that a cluster has made cannot have its UID above: something else has it, for which the garbage collector
// would take it.
func (g Guard) uidFree(resource schema.GroupVersionResource, obj metav1.Object) error {
	uid := obj.GetUID()
	if uid == "" || len(uid) > maxUID {
		return fmt.Errorf("%.100q is not a UID", uid)
	}
	for of := range g.Stores {
		for _, other := range g.WithUID(of, uid) {
			name := cache.MetaObjectToName(other)
			if of != resource || name != (cache.ObjectName{Namespace: obj.GetNamespace(), Name: obj.GetName()}) {
				return fmt.Errorf("its UID is that of %s %s", of.Resource, name)
			}
		}
	}
	return nil
}

// maxUID bounds UIDs: those that API servers give out have 36 characters.
const maxUID = 64
