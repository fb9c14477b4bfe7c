package syncer

import (
	"context"
	"maps"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/identity"
	"github.com/manifold-dev/manifold/pkg/mirror"
	"github.com/manifold-dev/manifold/pkg/projection"
	"github.com/manifold-dev/manifold/pkg/syncer/writer"
)

const (
	// claimWorkers is how many mirrors of one cluster's volume claims are written at a time.
	claimWorkers = 4
	// inUse is the finalizer that keeps a claim as long as pods use it. The stock controller above adds it to every claim that lacks it.
	inUse = "kubernetes.io/pvc-protection"
)

// enqueueClaim has a volume claim of the cluster looked at: at once, unless it is about to be bound.
func (s *Syncer) enqueueClaim(claim *corev1.PersistentVolumeClaim) {
	name := cache.MetaObjectToName(claim)
	if claim.DeletionTimestamp == nil && claim.Status.Phase == corev1.ClaimPending {
		s.claimQueue.AddAfter(name, pendingDelay)
		return
	}
	s.claimQueue.Add(name)
}

// enqueueClaimsOf has the claims looked at that templates of a workload stand for.
func (s *Syncer) enqueueClaimsOf(kind projection.Kind, of projection.Object) {
	if len(kind.ClaimTemplates(of)) == 0 {
		return
	}
	for _, claim := range s.below.ClaimsNamedAfter(of.GetNamespace(), of.GetName()) {
		s.claimQueue.Add(cache.MetaObjectToName(claim))
	}
}

// enqueueEphemeral has the claims looked at that a pod's own volumes are made of. They wait for the pod to be shown.
func (s *Syncer) enqueueEphemeral(pod *corev1.Pod) {
	for i := range pod.Spec.Volumes {
		if volume := &pod.Spec.Volumes[i]; volume.Ephemeral != nil {
			s.claimQueue.Add(cache.ObjectName{Namespace: pod.Namespace, Name: pod.Name + "-" + volume.Name})
		}
	}
}

// claimHandler looks at claims of the cluster that change.
func (s *Syncer) claimHandler() cache.ResourceEventHandler {
	look := func(obj any) {
		if claim, ok := untombed(obj).(*corev1.PersistentVolumeClaim); ok && s.below.Ours(claim.Namespace) {
			s.enqueueClaim(claim)
			s.enqueueVolumesOf(cache.MetaObjectToName(claim))
			s.tellVolumesOf(claim)
		}
	}
	return cache.ResourceEventHandlerFuncs{
		AddFunc: look,
		UpdateFunc: func(old, obj any) {
			if old.(*corev1.PersistentVolumeClaim).ResourceVersion != obj.(*corev1.PersistentVolumeClaim).ResourceVersion {
				look(obj)
			}
		},
		DeleteFunc: func(obj any) {
			if claim, ok := untombed(obj).(*corev1.PersistentVolumeClaim); ok {
				s.claimQueue.Add(cache.MetaObjectToName(claim))
				s.enqueueVolumesOf(cache.MetaObjectToName(claim))
			}
		},
	}
}

// claimHandler has syncers look at mirrors of claims that others delete, and at claims whose name is free again.
func (u *Upstream) claimHandler() cache.ResourceEventHandler {
	shown := func(obj any) {
		claim := obj.(*corev1.PersistentVolumeClaim)
		s, ok := u.Syncer(identity.ShownFrom(claim))
		if !ok {
			return
		}
		s.claimMirrors.OnAddOrUpdate(claim)
		s.enqueueVolumesOf(cache.MetaObjectToName(claim))
		if claim.DeletionTimestamp != nil {
			s.claimQueue.Add(cache.MetaObjectToName(claim))
		}
	}
	return cache.ResourceEventHandlerFuncs{
		AddFunc:    shown,
		UpdateFunc: func(_, obj any) { shown(obj) },
		DeleteFunc: func(obj any) {
			claim, ok := untombed(obj).(*corev1.PersistentVolumeClaim)
			if !ok {
				return
			}
			for _, s := range u.Syncers() {
				s.claimMirrors.OnDelete(claim)
				s.enqueueVolumesOf(cache.MetaObjectToName(claim))
				s.claimQueue.Add(cache.MetaObjectToName(claim))
			}
		},
	}
}

// syncClaim brings the mirror of one volume claim in line with the claim. Nothing here deletes a claim: it holds somebody's data, and goes
// when its cluster or a user of the logical cluster says so.
func (s *Syncer) syncClaim(ctx context.Context, name cache.ObjectName) error {
	mirror, err := s.claimMirrorNamed(name)
	if err != nil || s.givenUp() {
		return err // whoever removes the cluster removes its mirrors
	}
	live := s.below.Claim(name)
	if live != nil {
		if _, projected := projection.OriginOf(live); projected {
			live = nil
		}
	}
	showing := ""
	if mirror != nil {
		if showing = identity.ShownFrom(mirror); showing == "" {
			return nil // the user's own, of that name
		}
	}
	if live == nil || showing == s.cluster && live.UID != mirror.UID {
		if showing == s.cluster {
			return s.dropClaim(ctx, mirror)
		}
		return nil
	}
	owners, ours := s.claimOwners(live)
	if !ours && showing != s.cluster {
		return nil
	}
	switch home := s.Upstream.HomeOf(name.Namespace, name.Name); {
	case showing == s.cluster:
	case home != "" && home != s.cluster:
		return nil
	case showing != "":
		// The claim of another cluster, which the pod does not use any more. When its mirror is gone, we are woken.
		if home == s.cluster {
			return s.dropClaim(ctx, mirror)
		}
		return nil
	}
	if mirror != nil && mirror.DeletionTimestamp != nil && live.DeletionTimestamp == nil {
		return s.dropClaim(ctx, mirror) // and show it anew: it is not being deleted
	}
	want, err := s.showableClaim(s.claimMirror(live, owners), mirror)
	if err != nil {
		if s.claimQueue.NumRequeues(name) == writer.BrokenTries {
			s.tellNotShown("volume claim", live, nil, err)
		}
		return errNotYet
	}
	return s.writeClaim(ctx, want, mirror)
}

// showableClaim makes a mirror what may be shown of a claim; stored is the mirror as it is, or nil. The error says why there can be none: the API
// server would refuse it, see Guard.
func (s *Syncer) showableClaim(out, stored *corev1.PersistentVolumeClaim) (*corev1.PersistentVolumeClaim, error) {
	if stored != nil {
		mirror.Claim{}.Claim(out, stored)
		return out, nil
	}
	known, err := s.Upstream.Guard(nil).ClaimFor(s.cluster, out)
	if err != nil {
		return nil, err
	}
	known.Claim(out, nil)
	return out, nil
}

// claimMirrorNamed returns a claim above as the watch or our own last write shows it, or nil.
func (s *Syncer) claimMirrorNamed(name cache.ObjectName) (*corev1.PersistentVolumeClaim, error) {
	obj, exists, err := s.claimMirrors.GetByKey(name.String())
	if err != nil || !exists {
		return nil, err
	}
	return obj.(*corev1.PersistentVolumeClaim), nil
}

func (s *Syncer) writeClaim(ctx context.Context, want, have *corev1.PersistentVolumeClaim) error {
	claims := s.above.CoreV1().PersistentVolumeClaims(want.Namespace)
	deleting := want.DeletionTimestamp != nil
	want.DeletionTimestamp, want.DeletionGracePeriodSeconds = nil, nil
	if have == nil {
		if s.Upstream.NamespaceGoes(want.Namespace) {
			return nil
		}
		written, err := claims.Create(ctx, want, metav1.CreateOptions{FieldManager: v1alpha1.FieldManager})
		if apierrors.IsAlreadyExists(err) {
			return errNotYet
		}
		if err != nil {
			return err
		}
		s.claimMirrors.Mutation(written)
		have = written
	} else if keepAbove(want, have); !sameClaim(want, have) {
		want.ResourceVersion = have.ResourceVersion
		written, err := claims.Update(ctx, want, metav1.UpdateOptions{FieldManager: v1alpha1.FieldManager})
		if err != nil {
			return err
		}
		s.claimMirrors.Mutation(written)
		have = written
	}
	if deleting && have.DeletionTimestamp == nil {
		return ignoreGone(claims.Delete(ctx, have.Name, metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(have.UID))}))
	}
	return nil
}

// dropClaim takes a mirror away and leaves the claim alone.
func (s *Syncer) dropClaim(ctx context.Context, mirror *corev1.PersistentVolumeClaim) error {
	if err := DropClaim(ctx, s.above, mirror); err != nil {
		return err
	}
	s.claimMirrors.OnDelete(mirror)
	return nil
}

// DropClaim takes the mirror of a claim away. It is held by finalizers, as the claim is, and only loses them once it is marked as being
// deleted: before, the stock controller would give it one back.
func DropClaim(ctx context.Context, client kubernetes.Interface, mirror *corev1.PersistentVolumeClaim) error {
	claims := client.CoreV1().PersistentVolumeClaims(mirror.Namespace)
	if mirror.DeletionTimestamp == nil {
		err := claims.Delete(ctx, mirror.Name, metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(mirror.UID))})
		if err != nil {
			return ignoreGone(err)
		}
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": mirror.UID, "finalizers": nil}})
	if err != nil {
		return err
	}
	_, err = claims.Patch(ctx, mirror.Name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: v1alpha1.FieldManager})
	return ignoreGone(err)
}

// ignoreGone passes over that an object is gone, or another one has its name.
func ignoreGone(err error) error {
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return err
}

// claimOwners returns what owns the mirror of a claim above, and reports whether the claim is one that is made for a workload of ours.
func (s *Syncer) claimOwners(claim *corev1.PersistentVolumeClaim) (owners []metav1.OwnerReference, ours bool) {
	for _, ref := range claim.OwnerReferences {
		uid, ok := s.ownerAbove(claim.Namespace, ref)
		if !ok || !projection.OwnsClaims(ref) {
			continue
		}
		ours = true
		ref.UID = uid
		owners = append(owners, ref)
	}
	return owners, ours || s.madeForSet(claim)
}

// ownerAbove finds what stands above for the owner of a claim: a pod or a workload of ours. One that goes above gets no more dependents:
// it may be about to leave them behind.
func (s *Syncer) ownerAbove(namespace string, ref metav1.OwnerReference) (types.UID, bool) {
	gvk := schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind)
	kind, ok := projection.ForGVK(gvk)
	if !ok || !kind.Workload {
		return "", false
	}
	if kind.Resource == podResource {
		pod, err := s.mirrorNamed(cache.ObjectName{Namespace: namespace, Name: ref.Name})
		if err != nil || pod == nil || pod.UID != ref.UID && pod.Annotations[v1alpha1.AnnotationPodUID] != string(ref.UID) {
			return "", false
		}
		return pod.UID, true
	}
	live := s.below.Get(identity.Key{Resource: kind.Resource, Namespace: namespace, Name: ref.Name})
	if live == nil || live.GetUID() != ref.UID {
		return "", false
	}
	own := s.owner(kind.Resource, live, nil)
	if own == nil || !kind.Lives(own.above.Object) {
		return "", false
	}
	return own.above.GetUID(), true
}

// madeForSet reports whether a claim has the name and the labels that a StatefulSet of ours gives its claims.
func (s *Syncer) madeForSet(claim *corev1.PersistentVolumeClaim) bool {
	kind, _ := projection.ForResource(statefulSetResource)
	for _, name := range projection.SetsOfClaim(claim.Name) {
		set, ok := s.below.Get(identity.Key{Resource: statefulSetResource, Namespace: claim.Namespace, Name: name}).(*appsv1.StatefulSet)
		if !ok || set.Spec.Selector == nil {
			continue
		}
		if _, made := kind.ClaimOrdinal(set, claim.Name); made && labels.SelectorFromSet(set.Spec.Selector.MatchLabels).Matches(labels.Set(claim.Labels)) {
			return true
		}
	}
	return false
}

// yields reports whether an object that is not marked as ours becomes so: a claim that a controller made for a StatefulSet of ours, while the
// user's own claim of that name was on its way. On a single cluster they would be one.
func (s *Syncer) yields(live projection.Object) bool {
	claim, ok := live.(*corev1.PersistentVolumeClaim)
	if !ok {
		return false
	}
	_, owned := projection.OriginOf(claim)
	return !owned && claim.DeletionTimestamp == nil && s.madeForSet(claim)
}

// claimMirror returns what the logical cluster shows of a claim. Our finalizer holds it there until the claim is gone.
func (s *Syncer) claimMirror(claim *corev1.PersistentVolumeClaim, owners []metav1.OwnerReference) *corev1.PersistentVolumeClaim {
	out := claim.DeepCopy()
	out.ResourceVersion, out.UID, out.ManagedFields = "", "", nil
	out.CreationTimestamp, out.OwnerReferences = metav1.Time{}, owners
	out.Labels, out.Annotations = mirror.Unreserved(out.Labels), mirror.Unreserved(out.Annotations)
	for _, finalizer := range []string{inUse, v1alpha1.FinalizerProjection} {
		if !slices.Contains(out.Finalizers, finalizer) {
			out.Finalizers = append(out.Finalizers, finalizer)
		}
	}
	// The API server moves these two to where they belong.
	metav1.SetMetaDataAnnotation(&out.ObjectMeta, v1alpha1.AnnotationUID, string(claim.UID))
	metav1.SetMetaDataAnnotation(&out.ObjectMeta, v1alpha1.AnnotationCreated, claim.CreationTimestamp.UTC().Format(time.RFC3339))
	metav1.SetMetaDataAnnotation(&out.ObjectMeta, v1alpha1.AnnotationCluster, s.cluster)
	fitClaim(out)
	return out
}

// keepAbove gives want what is not the cluster's to say: whether any pod uses the claim, which is about the pods above, owners that only
// the logical cluster knows, and no finalizer that a claim which is being deleted cannot get any more.
func keepAbove(want, have *corev1.PersistentVolumeClaim) {
	isUse := func(c corev1.PersistentVolumeClaimCondition) bool {
		return c.Type == corev1.PersistentVolumeClaimUnused
	}
	want.Status.Conditions = slices.DeleteFunc(want.Status.Conditions, isUse)
	if i := slices.IndexFunc(have.Status.Conditions, isUse); i >= 0 {
		want.Status.Conditions = append(want.Status.Conditions, have.Status.Conditions[i])
	}
	want.OwnerReferences = append(mirror.Told(want.OwnerReferences), mirror.Above(have.OwnerReferences)...)
	if have.DeletionTimestamp != nil {
		want.Finalizers = slices.DeleteFunc(want.Finalizers, func(f string) bool { return !slices.Contains(have.Finalizers, f) })
	}
}

// sameClaim reports whether writing want over have would change nothing.
func sameClaim(want, have *corev1.PersistentVolumeClaim) bool {
	annotations := maps.Clone(want.Annotations)
	delete(annotations, v1alpha1.AnnotationUID)
	delete(annotations, v1alpha1.AnnotationCreated)
	return maps.Equal(want.Labels, have.Labels) && maps.Equal(annotations, have.Annotations) &&
		slices.Equal(slices.Sorted(slices.Values(want.Finalizers)), slices.Sorted(slices.Values(have.Finalizers))) &&
		equality.Semantic.DeepEqual(want.OwnerReferences, have.OwnerReferences) &&
		equality.Semantic.DeepEqual(want.Spec, have.Spec) &&
		sameClaimStatus(want.Status, have.Status)
}

// sameClaimStatus compares conditions in any order.
func sameClaimStatus(want, have corev1.PersistentVolumeClaimStatus) bool {
	sorted := func(in []corev1.PersistentVolumeClaimCondition) []corev1.PersistentVolumeClaimCondition {
		out := slices.Clone(in)
		slices.SortFunc(out, func(a, b corev1.PersistentVolumeClaimCondition) int {
			switch {
			case a.Type < b.Type:
				return -1
			case a.Type > b.Type:
				return 1
			}
			return 0
		})
		return out
	}
	want.Conditions, have.Conditions = sorted(want.Conditions), sorted(have.Conditions)
	return equality.Semantic.DeepEqual(want, have)
}

// showsClaim reports whether a mirror above shows the claim of the cluster that ref is about.
func (s *Syncer) showsClaim(ref corev1.ObjectReference) bool {
	mirror, err := s.claimMirrorNamed(cache.ObjectName{Namespace: ref.Namespace, Name: ref.Name})
	return err == nil && mirror != nil && mirror.UID == ref.UID && identity.ShownFrom(mirror) == s.cluster
}
