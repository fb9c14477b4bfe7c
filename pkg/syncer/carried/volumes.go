// Package carried has PersistentVolumes that were made by hand in the logical cluster come into one cluster, and go from there.
//
// A PersistentVolume that was made by hand in the logical cluster goes along with the claim that it is for: the one whose UID it names, as the
// choice is noted. It comes before the claim, and goes after it. Nothing here may lose data:
//
//  1. Below, a volume has the reclaim policy Retain, whatever it has above: a claim that leaves this cluster may only move to another one.
//  2. When its claim is gone for good, the volume is noted above as released, and the user wants its data deleted, it gets the policy Delete, and
//     the cluster does what it does for that policy.
//  3. What we delete is an object of ours with the policy Retain, by its UID, when no claim of the cluster is bound to it.
package carried

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	storage "k8s.io/component-helpers/storage/volume"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/internal/caches"
	"github.com/manifold-dev/manifold/pkg/identity"
	"github.com/manifold-dev/manifold/pkg/placement/handmade"
	"github.com/manifold-dev/manifold/pkg/projection"
	"github.com/manifold-dev/manifold/pkg/summary"
	"github.com/manifold-dev/manifold/pkg/syncer/physical"
	"github.com/manifold-dev/manifold/pkg/syncer/states"
	"github.com/manifold-dev/manifold/pkg/syncer/steps"
	"github.com/manifold-dev/manifold/pkg/syncer/terms"
	"github.com/manifold-dev/manifold/pkg/syncer/trust"
	"github.com/manifold-dev/manifold/pkg/syncer/writer"
)

// Key names a PersistentVolume.
func Key(name string) identity.Key { return identity.Key{Resource: identity.Volumes, Name: name} }

// Above is what is asked of the logical cluster.
type Above interface {
	// Volume returns a PersistentVolume, or nil, and VolumeNames the names of all.
	Volume(name string) *corev1.PersistentVolume
	VolumeNames() []string
	// VolumesOf returns those that are for a claim of that name, or were.
	VolumesOf(claim cache.ObjectName) []*corev1.PersistentVolume
	// ClaimOf returns the claim that a volume is bound to, nil if it is bound to none or that is gone.
	ClaimOf(volume *corev1.PersistentVolume) *corev1.PersistentVolumeClaim
	// ClaimGoesTo reports whether a claim is to be in a cluster, or is shown from there.
	ClaimGoesTo(claim *corev1.PersistentVolumeClaim, cluster string) bool
}

// Options say what the volumes of a cluster work with.
type Options struct {
	*trust.Cluster
	Above   Above
	Client  kubernetes.Interface // of the cluster
	Watcher physical.Watcher
	Terms   terms.Terms
	Queue   *steps.Queue[identity.Key]
	// Recorder writes the events that tell users what keeps a volume from the cluster.
	Recorder record.EventRecorder
	// Changed is told of volumes of the logical cluster of which the cluster may have something new to tell, and Wanted of claims that are to be
	// somewhere. They return at once, and may be nil.
	Changed func(name string)
	Wanted  func(claim cache.ObjectName)
}

// Volumes are those of one cluster that go along with claims.
type Volumes struct {
	Options
	held *held
}

// New returns the volumes of a cluster, of which nothing is known until Run has seen it.
func New(o Options) *Volumes {
	return &Volumes{Options: o, held: &held{poke: make(chan struct{}, 1)}}
}

// Names are those of all that the cluster has of ours.
func (v *Volumes) Names() []string { return v.held.names() }

// TermsChanged has it looked at again whether the admin of the cluster lets volumes in.
func (v *Volumes) TermsChanged() { v.held.changed() }

// LookAt looks again at a volume.
func (v *Volumes) LookAt(name string) { v.Queue.Add(Key(name)) }

// LookAtHeld looks again at all that the cluster has of ours.
func (v *Volumes) LookAtHeld() {
	for _, name := range v.held.names() {
		v.LookAt(name)
	}
}

// LookAtThoseOf looks again at the volumes of the logical cluster that are for a claim.
func (v *Volumes) LookAtThoseOf(claim cache.ObjectName) {
	for _, volume := range v.Above.VolumesOf(claim) {
		v.LookAt(volume.Name)
	}
}

// TellOf tells that a claim has changed that a volume may be bound to.
func (v *Volumes) TellOf(claim *corev1.PersistentVolumeClaim) {
	for _, volume := range v.Above.VolumesOf(cache.MetaObjectToName(claim)) {
		v.tellChanged(volume.Name)
	}
}

// ClaimLooked has the volume of a claim looked at along with it, which may be wanted here by now, or no longer.
func (v *Volumes) ClaimLooked(claim cache.ObjectName) {
	v.LookAtThoseOf(claim)
	if v.Wanted != nil && v.Terms.Allows().Volumes {
		v.Wanted(claim)
	}
}

// Run watches the volumes of ours whenever they are let in, until ctx ends.
func (v *Volumes) Run(ctx context.Context) error {
	for {
		if v.Terms.Allows().Volumes {
			if err := v.watch(ctx); err != nil {
				return err
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-v.held.poke:
		}
	}
}

// watch watches them until they are not let in any more. Those that are there by then stay: there is no right to touch them.
func (v *Volumes) watch(ctx context.Context) error {
	watch, err := v.Watcher.Watch(identity.Volumes, v1alpha1.LabelLogicalCluster+"="+v.LogicalCluster, physical.TrimManagedFields)
	if err != nil {
		return err
	}
	informer := watch.Informer
	look := func(obj any) {
		if live, ok := caches.Last(obj).(*corev1.PersistentVolume); ok {
			v.LookAt(live.Name)
			v.tellChanged(live.Name)
		}
	}
	registration, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: look, UpdateFunc: func(_, obj any) { look(obj) }, DeleteFunc: look,
	})
	if err == nil {
		err = informer.SetWatchErrorHandlerWithContext(func(ctx context.Context, r *cache.Reflector, err error) {
			physical.LogWatchError(ctx, r, err)
			if apierrors.IsForbidden(err) && v.held.deny(true) {
				v.lookAtAll()
			}
		})
	}
	if err != nil {
		return fmt.Errorf("watch PersistentVolumes: %w", err)
	}
	ctx, stop := context.WithCancel(ctx)
	defer func() {
		stop()
		v.held.set(nil, nil)
		watch.Stop()
	}()
	v.held.set(informer.GetStore(), registration.HasSynced)
	watch.Start(ctx)
	seen := registration.HasSyncedChecker().Done()
	for v.Terms.Allows().Volumes {
		select {
		case <-ctx.Done():
			return nil
		case <-v.held.poke:
		case <-seen:
			seen = nil
			v.held.deny(false)
			v.lookAtAll()
		}
	}
	return nil
}

// lookAtAll looks at all volumes of the logical cluster, and those that are here.
func (v *Volumes) lookAtAll() {
	for _, name := range append(v.Above.VolumeNames(), v.held.names()...) {
		v.LookAt(name)
		v.tellChanged(name)
	}
}

func (v *Volumes) tellChanged(name string) {
	if v.Changed != nil {
		v.Changed(name)
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

func (v *Volumes) gather(name string) (c carried, known bool) {
	c = carried{above: v.Above.Volume(name)}
	c.below, known = v.held.get(name)
	c.mine = c.below != nil && c.above != nil && v.IsProjection(c.below, c.above)
	if c.above != nil && c.above.Spec.ClaimRef != nil {
		claim := v.Above.ClaimOf(c.above)
		c.claimed = claim != nil
		leaving := v.Terms.Leaves()
		c.going = c.claimed && !leaving && claim.DeletionTimestamp != nil
		c.wanted = c.claimed && !leaving && v.Terms.Allows().Volumes && claim.DeletionTimestamp == nil && v.Above.ClaimGoesTo(claim, v.Name)
		live := v.Below.Claim(cache.ObjectName{Namespace: c.above.Spec.ClaimRef.Namespace, Name: c.above.Spec.ClaimRef.Name})
		c.stranger = live != nil && c.claimed && !v.isClaim(live, claim)
	}
	if c.below != nil && c.below.Spec.ClaimRef != nil {
		ref := c.below.Spec.ClaimRef
		live := v.Below.Claim(cache.ObjectName{Namespace: ref.Namespace, Name: ref.Name})
		// One of a claim that is being deleted, which may be bound this very moment, counts as well.
		c.held = live != nil && (live.UID == ref.UID || live.Spec.VolumeName == c.below.Name)
	}
	return c, known
}

// isClaim reports whether a claim of the cluster is the projection of one above, or what that shows.
func (v *Volumes) isClaim(live, above *corev1.PersistentVolumeClaim) bool {
	if identity.ShownFrom(above) == v.Name {
		return live.UID == above.UID
	}
	return v.IsProjection(live, above)
}

// Sync brings a volume in line that goes along with a claim, or did.
func (v *Volumes) Sync(ctx context.Context, key identity.Key) error {
	if v.Terms.GivenUp() {
		return nil
	}
	c, known := v.gather(key.Name)
	if !known {
		if c.wanted && v.held.isDenied() {
			v.tell(key, c.above, steps.ReasonNotApplied, "the credential may not read PersistentVolumes there; to grant it, join again: "+handmade.LetVolumesIn(v.Name, v.Terms.Allows()))
		}
		return nil // they are looked at when they have been seen
	}
	err := v.act(ctx, c)
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
	v.tell(key, c.above, reason, problem)
	if problem != "" {
		v.Queue.AddAfter(key, steps.ConflictRetry)
	}
	return nil
}

// tell notes what keeps a volume from the cluster, or that nothing does, and tells who waits for it.
func (v *Volumes) tell(key identity.Key, above *corev1.PersistentVolume, reason, problem string) {
	if _, news := v.States.Done(key, states.State{Problem: problem}); !news {
		return
	}
	if problem != "" && above != nil {
		steps.Warn(v.Recorder, above, v.Name, reason, problem)
	}
	v.tellChanged(key.Name)
}

// Awaits reports whether a claim waits for the volume of the logical cluster that it is for, and the problem if that cannot come.
func (v *Volumes) Awaits(key identity.Key, above projection.Object) (waits bool, problem string) {
	v.States.Unwait(key)
	if !v.Terms.Allows().Volumes {
		return false, ""
	}
	meant := v.Above.VolumesOf(cache.ObjectName{Namespace: key.Namespace, Name: key.Name})
	chosen := slices.ContainsFunc(meant, func(v *corev1.PersistentVolume) bool { return v.Spec.ClaimRef.UID == above.GetUID() })
	for _, volume := range meant {
		if uid := volume.Spec.ClaimRef.UID; (uid != "" || chosen) && uid != above.GetUID() || volume.DeletionTimestamp != nil {
			continue
		}
		if live, known := v.held.get(volume.Name); known && live != nil && v.IsProjection(live, volume) {
			continue
		}
		st := v.States.Await(Key(volume.Name), key)
		if st.Problem == "" {
			v.LookAt(volume.Name)
		}
		return true, st.Problem
	}
	return false, ""
}

// Serve reports whether claims of a namespace may get volumes of a class that were made by hand and come along with them: one is free, or is for a
// claim there.
func (v *Volumes) Serve(class, namespace string) bool {
	return v.Terms.Allows().Volumes && slices.ContainsFunc(v.Above.VolumeNames(), func(name string) bool {
		volume := v.Above.Volume(name)
		return volume != nil && storage.GetPersistentVolumeClass(volume) == class && (volume.Spec.ClaimRef == nil || volume.Spec.ClaimRef.Namespace == namespace)
	})
}

// Report returns what the cluster has of a PersistentVolume of the logical cluster. It may speak of those alone that it was given: recorded are the
// clusters of which that is on record. Known is false as long as it has not been seen what is there.
func (v *Volumes) Report(above *corev1.PersistentVolume, recorded bool) (report summary.VolumeReport, concerned, known bool) {
	c, known := v.gather(above.Name)
	if concerned = recorded || c.wanted; !concerned || !known {
		return report, concerned, known
	}
	if c.mine {
		report = summary.SaneVolume(c.below, v.given(above, c.below))
	}
	report.Problem = v.States.Of(Key(above.Name)).Problem
	return report, true, true
}

// given is what the cluster was given of a volume, of which it has this.
func (v *Volumes) given(above, live *corev1.PersistentVolume) summary.GivenVolume {
	desired, err := projection.CarriedVolume(above, corev1.PersistentVolumeReclaimRetain, v.Target())
	out := summary.GivenVolume{For: above.Spec.ClaimRef, Current: err == nil && projection.HashOf(desired) == projection.HashOf(live)}
	if claim := v.Above.ClaimOf(above); claim != nil {
		if below := v.Below.Claim(cache.MetaObjectToName(claim)); below != nil && v.isClaim(below, claim) {
			out.Claim = below.UID
		}
	}
	return out
}
