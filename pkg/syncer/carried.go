package syncer

import (
	"context"
	"fmt"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/internal/typed"
	"github.com/manifold-dev/manifold/pkg/identity"
	"github.com/manifold-dev/manifold/pkg/placement/handmade"
	"github.com/manifold-dev/manifold/pkg/projection"
	"github.com/manifold-dev/manifold/pkg/summary"
	"github.com/manifold-dev/manifold/pkg/syncer/steps"
	"github.com/manifold-dev/manifold/pkg/syncer/writer"
)

// A PersistentVolume that was made by hand in the logical cluster goes along with the claim that it is for: the one whose UID it names, as the
// choice is noted. It comes before the claim, and goes after it. Nothing here may lose data:
//
//  1. Below, a volume has the reclaim policy Retain, whatever it has above: a claim that leaves this cluster may only move to another one.
//  2. When its claim is gone for good, the volume is noted above as released, and the user wants its data deleted, it gets the policy Delete, and
//     the cluster does what it does for that policy.
//  3. What we delete is an object of ours with the policy Retain, by its UID, when no claim of the cluster is bound to it.

const volumeKind = "PersistentVolume"

var volumeResource = corev1.SchemeGroupVersion.WithResource("persistentvolumes")

func volumeKey(name string) identity.Key { return identity.Key{Resource: volumeResource, Name: name} }

// byClaim indexes volumes of the logical cluster by the claim that they are for.
const byClaim = "manifold.dev/claim"

func indexClaim(obj any) ([]string, error) {
	if volume, ok := obj.(*corev1.PersistentVolume); ok && volume.Spec.ClaimRef != nil {
		return []string{volume.Spec.ClaimRef.Namespace + "/" + volume.Spec.ClaimRef.Name}, nil
	}
	return nil, nil
}

// volume returns a PersistentVolume of the logical cluster, or nil.
func (u *Upstream) volume(name string) *corev1.PersistentVolume {
	obj, _, _ := u.volumes.GetByKey(name) // reading a cache cannot fail
	volume, _ := obj.(*corev1.PersistentVolume)
	return volume
}

// volumesOf returns those that are for a claim of that name, or were.
func (u *Upstream) volumesOf(claim cache.ObjectName) []*corev1.PersistentVolume {
	found, _ := u.volumes.ByIndex(byClaim, claim.String()) // the index exists: NewUpstream made it
	out := make([]*corev1.PersistentVolume, 0, len(found))
	for _, obj := range found {
		out = append(out, obj.(*corev1.PersistentVolume))
	}
	return out
}

// ClaimOf returns the claim that a volume of the logical cluster is bound to above, nil if it is bound to none or that is gone.
func (u *Upstream) ClaimOf(volume *corev1.PersistentVolume) *corev1.PersistentVolumeClaim {
	ref := volume.Spec.ClaimRef
	if ref == nil || ref.UID == "" {
		return nil
	}
	claim, _ := u.Get(identity.Key{Resource: claimResource, Namespace: ref.Namespace, Name: ref.Name}).(*corev1.PersistentVolumeClaim)
	if claim == nil || claim.UID != ref.UID {
		return nil
	}
	return claim
}

// ClaimGoesTo reports whether a claim is to be in a cluster, or is shown from there.
func (u *Upstream) ClaimGoesTo(claim *corev1.PersistentVolumeClaim, cluster string) bool {
	kind, _ := projection.ForResource(claimResource)
	if kind.Mirror(claim) {
		return identity.ShownFrom(claim) == cluster
	}
	return u.wanted(kind, claim, cluster)
}

// volumeHandler looks again at volumes of the logical cluster that change, and at the claims that wait for them.
func (u *Upstream) volumeHandler() cache.ResourceEventHandler {
	look := func(obj any) {
		volume, ok := untombed(obj).(*corev1.PersistentVolume)
		if !ok {
			return
		}
		for _, s := range u.Syncers() {
			s.enqueue(volumeKey(volume.Name))
		}
	}
	return cache.ResourceEventHandlerFuncs{AddFunc: look, UpdateFunc: func(_, obj any) { look(obj) }, DeleteFunc: look}
}

// enqueueVolumesOf looks again at the volumes of the logical cluster that are for a claim.
func (s *Syncer) enqueueVolumesOf(claim cache.ObjectName) {
	for _, volume := range s.Upstream.volumesOf(claim) {
		s.enqueue(volumeKey(volume.Name))
	}
}

// tellVolumesOf tells that a claim has changed that a volume may be bound to.
func (s *Syncer) tellVolumesOf(claim *corev1.PersistentVolumeClaim) {
	for _, volume := range s.Upstream.volumesOf(cache.MetaObjectToName(claim)) {
		s.volumeChanged(volume.Name)
	}
}

// claimLooked has the volume of a claim looked at along with it, which may be wanted here by now, or no longer.
func (s *Syncer) claimLooked(claim cache.ObjectName) {
	s.enqueueVolumesOf(claim)
	if s.ClaimWanted != nil && s.takesVolumes() {
		s.ClaimWanted(claim)
	}
}

// volumes are those of ours in a cluster. They are watched as long as its admin lets them in.
type volumes struct {
	// poke tells that this may have changed.
	poke chan struct{}

	mu     sync.Mutex
	store  cache.Store // nil while they are not watched
	synced func() bool
	// denied tells that the cluster does not let us read them, although its admin is said to.
	denied bool
}

func newVolumes() *volumes { return &volumes{poke: make(chan struct{}, 1)} }

// changed has it looked at again whether volumes are let in.
func (v *volumes) changed() {
	select {
	case v.poke <- struct{}{}:
	default:
	}
}

// get returns the volume of ours of that name, nil if there is none. It is not known as long as they have not been seen.
func (v *volumes) get(name string) (live *corev1.PersistentVolume, known bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.store == nil || !v.synced() {
		return nil, false
	}
	obj, _, _ := v.store.GetByKey(name) // reading a cache cannot fail
	live, _ = obj.(*corev1.PersistentVolume)
	return live, true
}

// names are those of all that are there.
func (v *volumes) names() []string {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.store == nil {
		return nil
	}
	return v.store.ListKeys()
}

func (v *volumes) set(store cache.Store, synced func() bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.store, v.synced, v.denied = store, synced, false
}

// deny notes whether the cluster lets us read them, and reports whether that is news.
func (v *volumes) deny(denied bool) (news bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	news = v.denied != denied
	v.denied = denied
	return news
}

// isDenied reports whether the cluster does not let us read them.
func (v *volumes) isDenied() bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.denied
}

// takesVolumes reports whether the admin of the cluster lets volumes of the logical cluster in.
func (s *Syncer) takesVolumes() bool { return s.Allows != nil && s.Allows(s.cluster).Volumes }

// followVolumes watches the volumes of ours whenever they are let in, until ctx ends.
func (s *Syncer) followVolumes(ctx context.Context) error {
	for {
		if s.takesVolumes() {
			if err := s.watchVolumes(ctx); err != nil {
				return err
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-s.below.volumes.poke:
		}
	}
}

// watchVolumes does so until they are not let in any more. Those that are there by then stay: there is no right to touch them.
func (s *Syncer) watchVolumes(ctx context.Context) error {
	var with []watched
	informer, err := s.below.watch(&with, volumeResource, v1alpha1.LabelLogicalCluster+"="+s.target.LogicalCluster, trimManagedFields)
	if err != nil {
		return err
	}
	look := func(obj any) {
		if live, ok := untombed(obj).(*corev1.PersistentVolume); ok {
			s.enqueue(volumeKey(live.Name))
			s.volumeChanged(live.Name)
		}
	}
	registration, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: look, UpdateFunc: func(_, obj any) { look(obj) }, DeleteFunc: look,
	})
	if err == nil {
		err = informer.SetWatchErrorHandlerWithContext(func(ctx context.Context, r *cache.Reflector, err error) {
			logWatchError(ctx, r, err)
			if apierrors.IsForbidden(err) && s.below.volumes.deny(true) {
				s.enqueueVolumes()
			}
		})
	}
	if err != nil {
		return fmt.Errorf("watch PersistentVolumes: %w", err)
	}
	ctx, stop := context.WithCancel(ctx)
	defer func() {
		stop()
		s.below.volumes.set(nil, nil)
		with[0].Shutdown()
		with[0].gate.Close()
	}()
	s.below.volumes.set(informer.GetStore(), registration.HasSynced)
	with[0].StartWithContext(ctx)
	seen := registration.HasSyncedChecker().Done()
	for s.takesVolumes() {
		select {
		case <-ctx.Done():
			return nil
		case <-s.below.volumes.poke:
		case <-seen:
			seen = nil
			s.below.volumes.deny(false)
			s.enqueueVolumes()
		}
	}
	return nil
}

// enqueueVolumes looks at all volumes of the logical cluster, and those that are here.
func (s *Syncer) enqueueVolumes() {
	for _, name := range append(s.Upstream.volumes.ListKeys(), s.below.volumes.names()...) {
		s.enqueue(volumeKey(name))
		s.volumeChanged(name)
	}
}

func (s *Syncer) volumeChanged(name string) {
	if s.VolumeChanged != nil {
		s.VolumeChanged(name)
	}
}

// carried is what comes of a volume in a cluster: gathered, and then carried out.
type carried struct {
	// above is the volume of the logical cluster, below that of the cluster, which carries our mark; nil if there is none.
	above, below *corev1.PersistentVolume
	// mine tells that the one below is the projection of the one above, and not of an earlier one of that name.
	mine bool
	// claimed tells that the claim is there above which the volume is bound to, wanted that it is to be in this cluster.
	claimed, wanted bool
	// going tells that this claim is being deleted: what becomes of the data is decided once it is gone.
	going bool
	// held tells that a claim of the cluster has the volume.
	held bool
	// stranger tells that the name of the claim is somebody else's here.
	stranger bool
}

func (s *Syncer) gatherVolume(name string) (c carried, known bool) {
	c = carried{above: s.Upstream.volume(name)}
	c.below, known = s.below.volumes.get(name)
	c.mine = c.below != nil && c.above != nil && s.isProjection(c.below, c.above)
	if c.above != nil && c.above.Spec.ClaimRef != nil {
		claim := s.Upstream.ClaimOf(c.above)
		c.claimed = claim != nil
		leaving, _ := s.Leaving(s.cluster)
		c.going = c.claimed && !leaving && claim.DeletionTimestamp != nil
		c.wanted = c.claimed && !leaving && s.takesVolumes() && claim.DeletionTimestamp == nil && s.Upstream.ClaimGoesTo(claim, s.cluster)
		live := s.below.Claim(cache.ObjectName{Namespace: c.above.Spec.ClaimRef.Namespace, Name: c.above.Spec.ClaimRef.Name})
		c.stranger = live != nil && c.claimed && !s.isClaim(live, claim)
	}
	if c.below != nil && c.below.Spec.ClaimRef != nil {
		ref := c.below.Spec.ClaimRef
		live := s.below.Claim(cache.ObjectName{Namespace: ref.Namespace, Name: ref.Name})
		// One of a claim that is being deleted, which may be bound this very moment, counts as well.
		c.held = live != nil && (live.UID == ref.UID || live.Spec.VolumeName == c.below.Name)
	}
	return c, known
}

// isClaim reports whether a claim of the cluster is the projection of one above, or what that shows.
func (s *Syncer) isClaim(live, above *corev1.PersistentVolumeClaim) bool {
	if identity.ShownFrom(above) == s.cluster {
		return live.UID == above.UID
	}
	return s.isProjection(live, above)
}

// syncVolume brings a volume in line that goes along with a claim, or did.
func (s *Syncer) syncVolume(ctx context.Context, key identity.Key) error {
	if s.givenUp() {
		return nil
	}
	c, known := s.gatherVolume(key.Name)
	if !known {
		if c.wanted && s.below.volumes.isDenied() {
			s.tellVolume(key, c.above, steps.ReasonNotApplied, "the credential may not read PersistentVolumes there; joining again grants that: "+handmade.LetVolumesIn(s.cluster, s.Allows(s.cluster)))
		}
		return nil // they are looked at when they have been seen
	}
	err := s.actVolume(ctx, c)
	var problem, reason string
	switch conflict, is := err.(*writer.ConflictError); { //nolint:errorlint // nobody wraps it
	case err == nil:
	case is:
		reason, problem = steps.ReasonConflict, conflict.Reason
	case writer.Passes(err):
		return err
	default:
		reason, problem = steps.ReasonNotApplied, summary.Text(err.Error())
	}
	s.tellVolume(key, c.above, reason, problem)
	if problem != "" {
		s.queue.AddAfter(key, steps.ConflictRetry)
	}
	return nil
}

// tellVolume notes what keeps a volume from the cluster, or that nothing does, and tells who waits for it.
func (s *Syncer) tellVolume(key identity.Key, above *corev1.PersistentVolume, reason, problem string) {
	if s.stateOf(key).problem == problem {
		s.wakeWaiting(key)
		return
	}
	s.setState(key, state{problem: problem})
	if problem != "" && above != nil {
		s.Recorder.Eventf(above, corev1.EventTypeWarning, reason, "cluster %q: %s", s.cluster, problem)
	}
	s.volumeChanged(key.Name)
}

func (s *Syncer) actVolume(ctx context.Context, c carried) error {
	leaving, manner := s.Leaving(s.cluster)
	switch {
	case c.below != nil && leaving && manner == v1alpha1.RemoveOrphan:
		patch := map[string]any{"metadata": map[string]any{"uid": c.below.UID, "labels": map[string]any{v1alpha1.LabelLogicalCluster: nil}}}
		return s.patchVolume(ctx, c.below.Name, patch)
	case c.below == nil:
		return s.bringVolume(ctx, c)
	case c.below.DeletionTimestamp != nil:
		return nil // the watch tells when it is gone
	case c.mine && c.wanted && !c.held && spent(c.below):
		return s.removeVolume(ctx, c.below) // and make it anew, for the claim that it is for now
	case c.mine && c.wanted:
		return s.applyVolume(ctx, c.above, c.below)
	case c.held || c.mine && c.going:
		return s.retainVolume(ctx, c.below)
	case s.reclaims(c):
		return s.reclaimVolume(ctx, c.below)
	}
	return s.removeVolume(ctx, c.below)
}

// bringVolume has a volume come that is not there, if it is wanted.
func (s *Syncer) bringVolume(ctx context.Context, c carried) error {
	switch {
	case !c.wanted:
		return nil
	case c.stranger:
		ref := c.above.Spec.ClaimRef
		return &writer.ConflictError{Reason: fmt.Sprintf("its claim %s/%s is the name of a claim there that is not ours", ref.Namespace, ref.Name)}
	case c.above.DeletionTimestamp != nil:
		return nil
	}
	return s.makeVolume(ctx, c.above)
}

// spent reports whether a volume of a cluster has been given up by a claim there, after which none can have it.
func spent(live *corev1.PersistentVolume) bool {
	return live.Status.Phase == corev1.VolumeReleased || live.Status.Phase == corev1.VolumeFailed
}

// reclaims reports whether the cluster is to do away with the data of a volume. That it was released here is on record above.
func (s *Syncer) reclaims(c carried) bool {
	if !c.mine || c.claimed || c.above.Spec.PersistentVolumeReclaimPolicy != corev1.PersistentVolumeReclaimDelete {
		return false
	}
	ref := c.above.Spec.ClaimRef
	return ref != nil && ref.UID != "" && c.below.Status.Phase != corev1.VolumeAvailable && c.below.Status.Phase != corev1.VolumePending
}

// makeVolume makes a volume where there is none of that name, whoever's.
func (s *Syncer) makeVolume(ctx context.Context, above *corev1.PersistentVolume) error {
	found, err := s.client.CoreV1().PersistentVolumes().Get(ctx, above.Name, metav1.GetOptions{})
	switch {
	case err == nil && s.isProjection(found, above):
		return errNotYet // the watch is about to show it
	case err == nil:
		return &writer.ConflictError{Reason: fmt.Sprintf("the cluster has a %s %s already, which is not ours: rename one of them, or use that one by making none here",
			volumeKind, above.Name)}
	case !apierrors.IsNotFound(err):
		return err
	}
	klog.FromContext(ctx).V(2).Info("Carrying a PersistentVolume", "name", above.Name)
	desired, err := projection.CarriedVolume(above, corev1.PersistentVolumeReclaimRetain, s.target)
	if err != nil {
		return err
	}
	// By apply, so that what is left out later goes, and without force, so that what somebody else has just made is not taken over.
	return s.writeVolume(ctx, desired, "", false)
}

// applyVolume brings a volume of ours to what it should be.
func (s *Syncer) applyVolume(ctx context.Context, above, live *corev1.PersistentVolume) error {
	desired, err := projection.CarriedVolume(above, corev1.PersistentVolumeReclaimRetain, s.target)
	if err != nil || projection.CarriesVolume(desired, live) {
		return err
	}
	return s.writeVolume(ctx, desired, live.UID, true)
}

func (s *Syncer) writeVolume(ctx context.Context, desired *corev1.PersistentVolume, uid types.UID, force bool) error {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(desired)
	if err != nil {
		return fmt.Errorf("encode the projection: %w", err)
	}
	delete(content, "status")
	metadata := content["metadata"].(map[string]any)
	delete(metadata, "creationTimestamp")
	if uid != "" {
		metadata["uid"] = string(uid)
	}
	body, err := json.Marshal(content)
	if err != nil {
		return fmt.Errorf("encode the projection: %w", err)
	}
	_, err = s.client.CoreV1().PersistentVolumes().Patch(ctx, desired.Name, types.ApplyPatchType, body,
		metav1.PatchOptions{FieldManager: v1alpha1.FieldManager, Force: ptr.To(force)})
	return err
}

// retainVolume has the data of a volume outlive its claim here.
func (s *Syncer) retainVolume(ctx context.Context, live *corev1.PersistentVolume) error {
	return s.setPolicy(ctx, live, corev1.PersistentVolumeReclaimRetain)
}

// reclaimVolume has the cluster do away with a volume that its claim has released, and with its data.
func (s *Syncer) reclaimVolume(ctx context.Context, live *corev1.PersistentVolume) error {
	above := s.Upstream.volume(live.Name)
	if above == nil || !summary.HoldersOf(above)[s.cluster].Released() {
		s.volumeChanged(live.Name)
		return nil // that it is released is on its way to the record, which wakes us
	}
	return s.setPolicy(ctx, live, corev1.PersistentVolumeReclaimDelete)
}

func (s *Syncer) setPolicy(ctx context.Context, live *corev1.PersistentVolume, policy corev1.PersistentVolumeReclaimPolicy) error {
	if live.Spec.PersistentVolumeReclaimPolicy == policy {
		return nil
	}
	return s.patchVolume(ctx, live.Name, map[string]any{
		"metadata": map[string]any{"uid": live.UID}, "spec": map[string]any{"persistentVolumeReclaimPolicy": policy},
	})
}

func (s *Syncer) patchVolume(ctx context.Context, name string, change map[string]any) error {
	patch, err := json.Marshal(change)
	if err != nil {
		return err
	}
	_, err = s.client.CoreV1().PersistentVolumes().Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: v1alpha1.FieldManager})
	return typed.IgnoreGone(err)
}

// removeVolume takes a volume away whose data stays.
func (s *Syncer) removeVolume(ctx context.Context, live *corev1.PersistentVolume) error {
	if live.Spec.PersistentVolumeReclaimPolicy != corev1.PersistentVolumeReclaimRetain {
		return s.retainVolume(ctx, live) // the watch tells when it has that
	}
	klog.FromContext(ctx).V(2).Info("Removing a PersistentVolume", "name", live.Name)
	preconditions := metav1.NewUIDPreconditions(string(live.UID))
	preconditions.ResourceVersion = ptr.To(live.ResourceVersion)
	return typed.IgnoreGone(s.client.CoreV1().PersistentVolumes().Delete(ctx, live.Name, metav1.DeleteOptions{Preconditions: preconditions}))
}

// awaitsVolume reports whether a claim waits for the volume of the logical cluster that it is for, and the problem if that cannot come.
func (s *Syncer) awaitsVolume(key identity.Key, above projection.Object) (waits bool, problem string) {
	s.unwait(key)
	if !s.takesVolumes() {
		return false, ""
	}
	meant := s.Upstream.volumesOf(cache.ObjectName{Namespace: key.Namespace, Name: key.Name})
	chosen := slices.ContainsFunc(meant, func(v *corev1.PersistentVolume) bool { return v.Spec.ClaimRef.UID == above.GetUID() })
	for _, volume := range meant {
		if uid := volume.Spec.ClaimRef.UID; (uid != "" || chosen) && uid != above.GetUID() || volume.DeletionTimestamp != nil {
			continue
		}
		if live, known := s.below.volumes.get(volume.Name); known && live != nil && s.isProjection(live, volume) {
			continue
		}
		st := s.await(volumeKey(volume.Name), key)
		if st.problem == "" {
			s.enqueue(volumeKey(volume.Name))
		}
		return true, st.problem
	}
	return false, ""
}

// Volume returns what the cluster has of a PersistentVolume of the logical cluster. It may speak of those alone that it was given: recorded are the
// clusters of which that is on record. Known is false as long as it has not been seen what is there.
func (s *Syncer) Volume(above *corev1.PersistentVolume, recorded bool) (report summary.VolumeReport, concerned, known bool) {
	c, known := s.gatherVolume(above.Name)
	if concerned = recorded || c.wanted; !concerned || !known {
		return report, concerned, known
	}
	if c.mine {
		var uid types.UID
		if claim := s.Upstream.ClaimOf(above); claim != nil {
			live := s.below.Claim(cache.MetaObjectToName(claim))
			if live != nil && s.isClaim(live, claim) {
				uid = live.UID
			}
		}
		report = summary.SaneVolume(c.below, uid)
	}
	report.Problem = s.stateOf(volumeKey(above.Name)).problem
	return report, true, true
}
