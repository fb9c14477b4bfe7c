// Package volumes looks after the PersistentVolumes that are made by hand in the logical cluster: it notes which claim each is for, as the stock
// controller does, which clusters have it, and what came of it. Nobody else writes that, so that no two claims get one volume.
package volumes

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	appslisters "k8s.io/client-go/listers/apps/v1"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/util/workqueue"
	storage "k8s.io/component-helpers/storage/volume"
	"k8s.io/utils/ptr"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/generated/informers/externalversions"
	listers "github.com/manifold-dev/manifold/generated/listers/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/internal/caches"
	"github.com/manifold-dev/manifold/internal/work"
	"github.com/manifold-dev/manifold/pkg/identity"
	"github.com/manifold-dev/manifold/pkg/placement/handmade"
	"github.com/manifold-dev/manifold/pkg/projection"
	"github.com/manifold-dev/manifold/pkg/records"
	"github.com/manifold-dev/manifold/pkg/summary"
	"github.com/manifold-dev/manifold/pkg/syncer"
)

// reasonDoubted is that of the event about what a cluster said of a volume that cannot be.
const reasonDoubted = "NotBelieved"

// Options say what a Controller works with.
type Options struct {
	Upstream *syncer.Upstream
	Kube     informers.SharedInformerFactory
	Manifold externalversions.SharedInformerFactory
	// Client writes as Manifold itself.
	Client   kubernetes.Interface
	Recorder record.EventRecorder
}

// Controller keeps the volumes of the logical cluster current. What it works on goes through one worker: choices follow one another.
type Controller struct {
	Options
	volumes  corelisters.PersistentVolumeLister
	claims   corelisters.PersistentVolumeClaimLister
	sets     appslisters.StatefulSetLister
	clusters listers.ClusterLister
	queue    workqueue.TypedRateLimitingInterface[item]
	synced   []cache.InformerSynced

	mu sync.Mutex
	// chosen are the volumes of claims that were chosen and that the watch does not show yet.
	chosen map[types.UID]string
	// doubted is what was told last of each volume that a cluster said and that cannot be.
	doubted records.Texts[types.UID]
}

// item is a volume, or a claim, which has a namespace.
type item = cache.ObjectName

// New registers with the informers, which the caller starts afterwards.
func New(o Options) (*Controller, error) {
	core, clusters := o.Kube.Core().V1(), o.Manifold.Manifold().V1alpha1().Clusters()
	c := &Controller{
		Options: o, volumes: core.PersistentVolumes().Lister(), claims: core.PersistentVolumeClaims().Lister(),
		sets: o.Kube.Apps().V1().StatefulSets().Lister(), clusters: clusters.Lister(),
		queue:  work.NewQueue[item](o.Upstream.Queues.Of("volumes"), 20*time.Millisecond, 10*time.Second),
		chosen: map[types.UID]string{},
	}
	for _, watch := range []struct {
		informer cache.SharedIndexInformer
		handler  cache.ResourceEventHandler
	}{
		{core.PersistentVolumes().Informer(), each(c.volumeSeen)},
		{core.PersistentVolumeClaims().Informer(), each(c.claimSeen)},
		{o.Kube.Apps().V1().StatefulSets().Informer(), cache.ResourceEventHandlerFuncs{}},
		{clusters.Informer(), c.clusterHandler()},
	} {
		registration, err := watch.informer.AddEventHandler(watch.handler)
		if err != nil {
			return nil, fmt.Errorf("watch what volumes depend on: %w", err)
		}
		c.synced = append(c.synced, registration.HasSynced)
	}
	c.synced = append(c.synced, o.Upstream.HasSynced)
	return c, nil
}

// each hands over every object that comes, changes or goes.
func each[T any](look func(T)) cache.ResourceEventHandler {
	handle := func(obj any) {
		obj = caches.Last(obj)
		if o, ok := obj.(T); ok {
			look(o)
		}
	}
	return cache.ResourceEventHandlerFuncs{AddFunc: handle, UpdateFunc: func(_, obj any) { handle(obj) }, DeleteFunc: handle}
}

// volumeSeen looks at a volume, and if it is for nobody, at the claims that may get it.
func (c *Controller) volumeSeen(volume *corev1.PersistentVolume) {
	c.Changed(volume.Name)
	switch ref := volume.Spec.ClaimRef; {
	case ref != nil:
		c.queue.Add(item{Namespace: ref.Namespace, Name: ref.Name})
	case volume.DeletionTimestamp == nil:
		c.enqueueClaims()
	}
}

// claimSeen looks at a claim, and at the volumes that are for it.
func (c *Controller) claimSeen(claim *corev1.PersistentVolumeClaim) {
	c.ClaimWanted(cache.MetaObjectToName(claim))
	all, _ := c.volumes.List(labels.Everything()) // listing from a cache cannot fail
	for _, volume := range all {
		if ref := volume.Spec.ClaimRef; ref != nil && ref.Namespace == claim.Namespace && ref.Name == claim.Name {
			c.Changed(volume.Name)
		}
	}
}

// clusterHandler looks at everything again when a cluster takes volumes, or does not any more, or makes those of other classes.
func (c *Controller) clusterHandler() cache.ResourceEventHandler {
	all := func(any) {
		volumes, _ := c.volumes.List(labels.Everything())
		for _, volume := range volumes {
			c.Changed(volume.Name)
		}
		c.enqueueClaims()
	}
	return cache.ResourceEventHandlerFuncs{
		AddFunc: all, DeleteFunc: all,
		UpdateFunc: func(old, obj any) {
			before, after := old.(*v1alpha1.Cluster), obj.(*v1alpha1.Cluster)
			if before.Spec.Allows.Volumes != after.Spec.Allows.Volumes || !equality.Semantic.DeepEqual(before.Status.Classes, after.Status.Classes) {
				all(obj)
			}
		},
	}
}

// enqueueClaims looks at the claims that have no volume, if there is any volume.
func (c *Controller) enqueueClaims() {
	if volumes, _ := c.volumes.List(labels.Everything()); len(volumes) == 0 {
		return
	}
	all, _ := c.claims.List(labels.Everything())
	for _, claim := range all {
		if claim.Status.Phase != corev1.ClaimBound {
			c.queue.Add(cache.MetaObjectToName(claim))
		}
	}
}

// Changed looks at a volume again of which a cluster may have something new to tell.
func (c *Controller) Changed(volume string) { c.queue.Add(item{Name: volume}) }

// ClaimWanted looks at a claim again that is to be in a cluster.
func (c *Controller) ClaimWanted(claim cache.ObjectName) { c.queue.Add(claim) }

// Run looks after volumes until ctx ends.
func (c *Controller) Run(ctx context.Context) error {
	if !cache.WaitForCacheSync(ctx.Done(), c.synced...) {
		return ctx.Err()
	}
	work.Run(ctx, c.queue, 1, func(ctx context.Context, name item) error {
		var err error
		if name.Namespace == "" {
			err = c.sync(ctx, name.Name)
		} else {
			err = c.choose(ctx, name)
		}
		return err
	})
	return nil
}

func (c *Controller) shelf() handmade.Shelf {
	volumes, _ := c.volumes.List(labels.Everything()) // listing from a cache cannot fail
	clusters, _ := c.clusters.List(labels.Everything())
	return handmade.Shelf{Volumes: volumes, Clusters: clusters}
}

// choose notes which volume a claim gets.
func (c *Controller) choose(ctx context.Context, name cache.ObjectName) error {
	shelf := c.shelf()
	if len(shelf.Volumes) == 0 || !shelf.Open() {
		return nil
	}
	claim, err := c.claims.PersistentVolumeClaims(name.Namespace).Get(name.Name)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil || claim.DeletionTimestamp != nil || claim.Status.Phase == corev1.ClaimBound {
		return err
	}
	asks := c.asks(claim)
	if asks == nil {
		return nil
	}
	in := c.destinations(claim, shelf.Clusters)
	if len(in) == 0 && shelf.WaitsForPod(asks) || handmade.ClosedTo(in, shelf.Clusters) {
		return nil
	}
	volume, _ := shelf.VolumeFor(asks)
	if volume == nil || volume.DeletionTimestamp != nil || c.underway(claim.UID, volume.Name) {
		return nil
	}
	next, changed, err := storage.GetBindVolumeToClaim(volume, typed(claim))
	if err != nil || !changed {
		return err
	}
	// The version that was looked at is the precondition: nobody else has given it away meanwhile.
	if _, err := c.Client.CoreV1().PersistentVolumes().Update(ctx, next, metav1.UpdateOptions{FieldManager: v1alpha1.FieldManager}); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.chosen[claim.UID] = volume.Name
	return nil
}

// typed is a claim that says what it is, of which a reference can be made.
func typed(claim *corev1.PersistentVolumeClaim) *corev1.PersistentVolumeClaim {
	out := claim.DeepCopy()
	out.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("PersistentVolumeClaim"))
	return out
}

// underway reports whether another volume was given to a claim and the watch does not show it yet.
func (c *Controller) underway(claim types.UID, volume string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	name, chosen := c.chosen[claim]
	if !chosen {
		return false
	}
	shown, err := c.volumes.Get(name)
	if err != nil || shown.Spec.ClaimRef != nil && shown.Spec.ClaimRef.UID == claim {
		delete(c.chosen, claim)
		return false
	}
	return name != volume
}

// asks is what a claim asks for. What a cluster shows of a claim that it has made for a StatefulSet does not count: only what the set says.
func (c *Controller) asks(claim *corev1.PersistentVolumeClaim) *corev1.PersistentVolumeClaim {
	if claim.Annotations[v1alpha1.AnnotationCluster] == "" {
		return claim
	}
	for _, name := range projection.SetsOfClaim(claim.Name) {
		set, err := c.sets.StatefulSets(claim.Namespace).Get(name)
		if err != nil {
			continue
		}
		if out := projection.ClaimOfSet(set, claim.Name); out != nil {
			out.UID = claim.UID
			return out
		}
	}
	return nil // for a pod, which brings no volume
}

// destinations are the clusters that have a claim or are to have it.
func (c *Controller) destinations(claim *corev1.PersistentVolumeClaim, joined []*v1alpha1.Cluster) []string {
	var out []string
	breakdown := identity.BreakdownOf(claim)
	for _, cluster := range joined {
		if _, has := breakdown[cluster.Name]; has || c.Upstream.Demand.ClaimGoesTo(claim, cluster.Name) {
			out = append(out, cluster.Name)
		}
	}
	return out
}

// sync notes what has become of a volume.
func (c *Controller) sync(ctx context.Context, name string) error {
	volume, err := c.volumes.Get(name)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	claim := c.Upstream.ClaimOf(volume)
	if claim != nil && c.elsewhere(volume, claim) {
		return c.release(ctx, volume)
	}
	before := summary.HoldersOf(volume)
	reports, silent := c.reports(volume, before)
	holders := holdersOf(before, reports, silent)
	if gone, err := c.reclaimed(ctx, volume, claim, before, reports); gone || err != nil {
		return err
	}
	if next := holders.String(); next != volume.Annotations[v1alpha1.AnnotationStatus] {
		changed := volume.DeepCopy()
		if metav1.SetMetaDataAnnotation(&changed.ObjectMeta, v1alpha1.AnnotationStatus, next); next == "" {
			delete(changed.Annotations, v1alpha1.AnnotationStatus)
		}
		// The watch shows it, and then comes the status.
		_, err := c.Client.CoreV1().PersistentVolumes().Update(ctx, changed, metav1.UpdateOptions{FieldManager: v1alpha1.FieldManager})
		return err
	}
	c.tellDoubts(volume, reports)
	status := summary.PersistentVolume(volume, claim != nil, reports)
	if equality.Semantic.DeepEqual(status, volume.Status) {
		return nil
	}
	next := volume.DeepCopy()
	next.Status = status
	_, err = c.Client.CoreV1().PersistentVolumes().UpdateStatus(ctx, next, metav1.UpdateOptions{FieldManager: v1alpha1.FieldManager})
	return err
}

// reports are what clusters say of a volume that have it by the record or are to have it, and silent are those that cannot be asked.
func (c *Controller) reports(volume *corev1.PersistentVolume, before summary.VolumeHolders) (reports map[string]summary.VolumeReport, silent map[string]bool) {
	reports, silent = map[string]summary.VolumeReport{}, map[string]bool{}
	for _, s := range c.Upstream.Syncers() {
		_, recorded := before[s.Cluster()]
		report, concerned, known := s.Volume(volume, recorded)
		switch {
		case concerned && known:
			reports[s.Cluster()] = report
		case concerned:
			silent[s.Cluster()] = true
		}
	}
	for cluster := range before {
		if _, asked := reports[cluster]; asked {
			continue
		}
		if joined, err := c.clusters.Get(cluster); err == nil && joined.Spec.Allows.Volumes {
			silent[cluster] = true
		}
	}
	return reports, silent
}

// holdersOf is the record: who has a volume, with what those said last that are silent.
func holdersOf(before summary.VolumeHolders, reports map[string]summary.VolumeReport, silent map[string]bool) summary.VolumeHolders {
	out := summary.VolumeHolders{}
	for cluster, report := range reports {
		if report.Phase != "" {
			out[cluster] = summary.VolumeHolder{Phase: report.Phase}
		}
	}
	for cluster := range silent {
		if holder, had := before[cluster]; had {
			out[cluster] = holder
		}
	}
	return out
}

// reclaimed deletes a volume whose data is gone, as its user wants it when the claim is.
func (c *Controller) reclaimed(ctx context.Context, volume *corev1.PersistentVolume, claim *corev1.PersistentVolumeClaim, before summary.VolumeHolders,
	reports map[string]summary.VolumeReport,
) (bool, error) {
	if claim != nil || volume.Spec.ClaimRef == nil || volume.Spec.ClaimRef.UID == "" || volume.DeletionTimestamp != nil ||
		volume.Spec.PersistentVolumeReclaimPolicy != corev1.PersistentVolumeReclaimDelete {
		return false, nil
	}
	gone := func(cluster string) bool {
		report, asked := reports[cluster]
		return asked && report.Phase == ""
	}
	if !before.Reclaimed(gone) {
		return false, nil
	}
	preconditions := metav1.NewUIDPreconditions(string(volume.UID))
	preconditions.ResourceVersion = ptr.To(volume.ResourceVersion)
	err := c.Client.CoreV1().PersistentVolumes().Delete(ctx, volume.Name, metav1.DeleteOptions{Preconditions: preconditions})
	if apierrors.IsNotFound(err) {
		err = nil
	}
	return err == nil, err
}

// elsewhere reports whether a claim got another volume than the one that was chosen for it: its cluster had one of its own.
func (c *Controller) elsewhere(volume *corev1.PersistentVolume, claim *corev1.PersistentVolumeClaim) bool {
	return metav1.HasAnnotation(volume.ObjectMeta, storage.AnnBoundByController) && volume.Status.Phase != corev1.VolumeBound &&
		claim.Status.Phase == corev1.ClaimBound && claim.Spec.VolumeName != "" && claim.Spec.VolumeName != volume.Name
}

// release gives back a volume that was chosen in vain.
func (c *Controller) release(ctx context.Context, volume *corev1.PersistentVolume) error {
	next := volume.DeepCopy()
	next.Spec.ClaimRef = nil
	delete(next.Annotations, storage.AnnBoundByController)
	_, err := c.Client.CoreV1().PersistentVolumes().Update(ctx, next, metav1.UpdateOptions{FieldManager: v1alpha1.FieldManager})
	return err
}

// tellDoubts tells of what clusters said that cannot be, once.
func (c *Controller) tellDoubts(volume *corev1.PersistentVolume, reports map[string]summary.VolumeReport) {
	var text string
	for _, cluster := range slices.Sorted(maps.Keys(reports)) {
		for _, doubt := range reports[cluster].Doubts {
			text += fmt.Sprintf("cluster %q says something of it that does not count: %s; ", cluster, doubt)
		}
	}
	if c.doubted.News(volume.UID, text) {
		c.Recorder.Event(volume, corev1.EventTypeWarning, reasonDoubted, text[:len(text)-2])
	}
}
