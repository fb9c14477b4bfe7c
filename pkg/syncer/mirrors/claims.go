package mirrors

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/internal/work"
	"github.com/manifold-dev/manifold/pkg/identity"
	"github.com/manifold-dev/manifold/pkg/mirror"
	"github.com/manifold-dev/manifold/pkg/projection"
	"github.com/manifold-dev/manifold/pkg/records"
)

// claimWorkers is how many mirrors of one cluster's volume claims are written at a time.
const claimWorkers = 4

// Claims shows the volume claims that controllers in a cluster have made for what is of the logical cluster.
type Claims struct {
	Options
	frame[*corev1.PersistentVolumeClaim]
	owners *Owners
	pods   *Pods
}

// NewClaims returns the mirrors of a cluster's claims. Those of a pod wait for it to be shown.
func NewClaims(pods *Pods) *Claims {
	o := pods.Options
	return &Claims{
		Options: o, owners: pods.owners, pods: pods,
		frame: newFrame("volumes-"+o.Cluster, o.Above, o.Above.Stores[identity.Claims],
			func(namespace string) client[*corev1.PersistentVolumeClaim] {
				return o.Writer.CoreV1().PersistentVolumeClaims(namespace)
			}, mirror.SameClaim),
	}
}

// Run shows what is to be looked at until ctx ends.
func (c *Claims) Run(ctx context.Context) { work.Run(ctx, c.Queue, claimWorkers, c.Sync) }

// LookAt has a volume claim of the cluster looked at: at once, unless it is about to be bound.
func (c *Claims) LookAt(claim *corev1.PersistentVolumeClaim) {
	c.lookAt(claim, claim.Status.Phase == corev1.ClaimPending)
}

// LookAtClaimsOf has the claims looked at that templates of a workload stand for.
func (c *Claims) LookAtClaimsOf(kind projection.Kind, of projection.Object) {
	if len(kind.ClaimTemplates(of)) == 0 {
		return
	}
	for _, claim := range c.Below.ClaimsNamedAfter(of.GetNamespace(), of.GetName()) {
		c.Look(cache.MetaObjectToName(claim))
	}
}

// LookAtEphemeral has the claims looked at that a pod's own volumes are made of. They wait for the pod to be shown.
func (c *Claims) LookAtEphemeral(pod *corev1.Pod) {
	for i := range pod.Spec.Volumes {
		if volume := &pod.Spec.Volumes[i]; volume.Ephemeral != nil {
			c.Look(cache.ObjectName{Namespace: pod.Namespace, Name: pod.Name + "-" + volume.Name})
		}
	}
}

// Sync brings the mirror of one volume claim in line with the claim. Nothing here deletes a claim: it holds somebody's data, and goes
// when its cluster or a user of the logical cluster says so.
func (c *Claims) Sync(ctx context.Context, name cache.ObjectName) error {
	shown, live := c.Named(name), c.made(name)
	switch {
	case c.GivenUp():
		return nil // whoever removes the cluster removes its mirrors
	case shown != nil && identity.ShownFrom(shown) == "":
		return nil // the user's own, of that name
	case shown != nil && identity.ShownFrom(shown) == c.Cluster:
		if live == nil || live.UID != shown.UID {
			return c.drop(ctx, shown)
		}
		owners, _ := c.OwnersOf(live)
		return c.show(ctx, live, owners, shown)
	case live == nil:
		return nil
	}
	owners, ours := c.OwnersOf(live)
	switch home := c.Above.HomeOf(name.Namespace, name.Name); {
	case !ours, home != "" && home != c.Cluster:
		return nil
	case shown == nil:
		return c.show(ctx, live, owners, nil)
	case home == c.Cluster:
		// The claim of another cluster, which the pod does not use any more. When its mirror is gone, we are woken.
		return c.drop(ctx, shown)
	}
	return nil
}

// made returns a claim that a controller in the cluster has made, or nil.
func (c *Claims) made(name cache.ObjectName) *corev1.PersistentVolumeClaim {
	live := c.Below.Claim(name)
	if live == nil {
		return nil
	}
	if _, projected := projection.OriginOf(live); projected {
		return nil
	}
	return live
}

// show writes the mirror of a claim that has these owners; stored is the mirror as it is, or nil.
func (c *Claims) show(ctx context.Context, live *corev1.PersistentVolumeClaim, owners []metav1.OwnerReference, stored *corev1.PersistentVolumeClaim) error {
	if stored != nil && stored.DeletionTimestamp != nil && live.DeletionTimestamp == nil {
		return c.drop(ctx, stored) // and show it anew: it is not being deleted
	}
	want, err := c.showable(mirror.ShowClaim(live, c.Cluster, owners), stored)
	if err != nil {
		if c.Queue.NumRequeues(cache.MetaObjectToName(live)) == brokenTries {
			c.tellNotShown("volume claim", live, nil, err)
		}
		return ErrNotYet
	}
	return c.write(ctx, want, stored)
}

// showable makes a mirror what may be shown of a claim; stored is the mirror as it is, or nil. The error says why there can be none: the API
// server would refuse it, see package guard.
func (c *Claims) showable(out, stored *corev1.PersistentVolumeClaim) (*corev1.PersistentVolumeClaim, error) {
	if stored != nil {
		mirror.Claim{}.Claim(out, stored)
		return out, nil
	}
	known, err := c.Guard.ClaimFor(c.Cluster, out)
	if err != nil {
		return nil, err
	}
	known.Claim(out, nil)
	return out, nil
}

func (c *Claims) write(ctx context.Context, want, have *corev1.PersistentVolumeClaim) error {
	deleting := want.DeletionTimestamp != nil
	want.DeletionTimestamp, want.DeletionGracePeriodSeconds = nil, nil
	if have != nil {
		mirror.KeepAbove(want, have)
	}
	stored, err := c.put(ctx, want, have)
	if err != nil || stored == nil {
		return err
	}
	if deleting && stored.DeletionTimestamp == nil {
		return c.remove(ctx, stored, nil)
	}
	return nil
}

// drop takes a mirror away and leaves the claim alone.
func (c *Claims) drop(ctx context.Context, mirror *corev1.PersistentVolumeClaim) error {
	if err := records.DropClaim(ctx, c.Writer, mirror); err != nil {
		return err
	}
	c.Gone(mirror)
	return nil
}

// OwnersOf returns what owns the mirror of a claim above, and reports whether the claim is one that is made for a workload of ours.
func (c *Claims) OwnersOf(claim *corev1.PersistentVolumeClaim) (owners []metav1.OwnerReference, ours bool) {
	for _, ref := range claim.OwnerReferences {
		uid, ok := c.ownerAbove(claim.Namespace, ref)
		if !ok || !projection.OwnsClaims(ref) {
			continue
		}
		ours = true
		ref.UID = uid
		owners = append(owners, ref)
	}
	return owners, ours || c.madeForSet(claim)
}

// ownerAbove finds what stands above for the owner of a claim: a pod or a workload of ours. One that goes above gets no more dependents:
// it may be about to leave them behind.
func (c *Claims) ownerAbove(namespace string, ref metav1.OwnerReference) (types.UID, bool) {
	gvk := schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind)
	kind, ok := projection.ForGVK(gvk)
	if !ok || !kind.Workload {
		return "", false
	}
	if kind.Resource == identity.Pods {
		pod := c.pods.Named(cache.ObjectName{Namespace: namespace, Name: ref.Name})
		if pod == nil || pod.UID != ref.UID && pod.Annotations[v1alpha1.AnnotationPodUID] != string(ref.UID) {
			return "", false
		}
		return pod.UID, true
	}
	live := c.Below.Get(identity.Key{Resource: kind.Resource, Namespace: namespace, Name: ref.Name})
	if live == nil || live.GetUID() != ref.UID {
		return "", false
	}
	own := c.owners.Projected(kind.Resource, live, nil)
	if own == nil || !kind.Lives(own.Above.Object) {
		return "", false
	}
	return own.Above.GetUID(), true
}

// madeForSet reports whether a claim has the name and the labels that a StatefulSet of ours gives its claims, also one that has just gone.
func (c *Claims) madeForSet(claim *corev1.PersistentVolumeClaim) bool {
	kind, _ := projection.ForResource(identity.StatefulSets)
	for _, name := range projection.SetsOfClaim(claim.Name) {
		set, ok := c.Below.Get(identity.Key{Resource: identity.StatefulSets, Namespace: claim.Namespace, Name: name}).(*appsv1.StatefulSet)
		if !ok {
			set = c.Above.Departing(claim.Namespace, name)
		}
		if set == nil || set.Spec.Selector == nil {
			continue
		}
		if _, made := kind.ClaimOrdinal(set, claim.Name); made && labels.SelectorFromSet(set.Spec.Selector.MatchLabels).Matches(labels.Set(claim.Labels)) {
			return true
		}
	}
	return false
}

// Yields reports whether an object that is not marked as ours becomes so: a claim that a controller made for a StatefulSet of ours, while the
// user's own claim of that name was on its way. On a single cluster they would be one.
func (c *Claims) Yields(live projection.Object) bool {
	claim, ok := live.(*corev1.PersistentVolumeClaim)
	if !ok {
		return false
	}
	_, owned := projection.OriginOf(claim)
	return !owned && claim.DeletionTimestamp == nil && c.madeForSet(claim)
}

// Shows reports whether a mirror above shows the claim of the cluster that ref is about.
func (c *Claims) Shows(ref corev1.ObjectReference) bool {
	mirror := c.Named(cache.ObjectName{Namespace: ref.Namespace, Name: ref.Name})
	return mirror != nil && mirror.UID == ref.UID && identity.ShownFrom(mirror) == c.Cluster
}
