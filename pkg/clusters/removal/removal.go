// Package removal lets clusters go: it holds a deleted Cluster until its workloads have moved off and nothing of ours is left there, and
// tells meanwhile what it waits for.
package removal

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/ptr"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/generated/clientset/versioned"
	"github.com/manifold-dev/manifold/generated/informers/externalversions"
	listers "github.com/manifold-dev/manifold/generated/listers/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/internal/work"
	"github.com/manifold-dev/manifold/pkg/clusters/health"
	"github.com/manifold-dev/manifold/pkg/records"
)

const (
	// ConditionRemoved is the condition type that tells what a deleted Cluster still waits for.
	ConditionRemoved = "Removed"

	reasonDraining = "Draining"
	reasonCleaning = "Cleaning"
	reasonSilent   = "Unreachable"

	// namedWorkloads is how many workloads a message names before it only counts them.
	namedWorkloads = 3
	// look is how often a removal is looked at besides the changes that wake it: what is ours below is seen through another cache.
	look = time.Second
)

// Upstream is the logical cluster.
type Upstream interface {
	// HasSynced reports whether all of it is known.
	HasSynced() bool
	// Placed returns the names of the workloads that are to run in a cluster.
	Placed(cluster string) []string
	// MirrorsOf and ClaimMirrorsOf return what shows the pods and the volume claims of a cluster.
	MirrorsOf(cluster string) []*corev1.Pod
	ClaimMirrorsOf(cluster string) []*corev1.PersistentVolumeClaim
	// BoundTo returns the pods of users that a cluster has. Leaves reports whether some of these are to run elsewhere.
	BoundTo(cluster string) []*corev1.Pod
	Leaves(cluster string) bool
}

// Options say what a Controller works with.
type Options struct {
	Upstream Upstream
	// Queues are the names of the queues.
	Queues work.Names
	// Left looks again at all that a cluster holds of ours, and counts it. It returns false if nobody can say what is there.
	Left func(cluster string) (count int, known bool)
	// Custom tells of what is of no projected kind. It may be nil.
	Custom   Custom
	Kube     informers.SharedInformerFactory
	Manifold externalversions.SharedInformerFactory
	// Client and Clusters write as Manifold itself.
	Client   kubernetes.Interface
	Clusters versioned.Interface
}

// Custom tells what of other kinds a cluster has.
type Custom interface {
	// Placed returns the names of what is to be in a cluster.
	Placed(cluster string) []string
	// Owned is the number of objects of ours that a cluster has, or may have.
	Owned(cluster string) int
}

// Controller removes clusters.
type Controller struct {
	Options
	clusters listers.ClusterLister
	queue    workqueue.TypedRateLimitingInterface[string]
	synced   []cache.InformerSynced
}

// New registers with the informers, which the caller starts afterwards.
func New(o Options) (*Controller, error) {
	c := &Controller{
		Options:  o,
		clusters: o.Manifold.Manifold().V1alpha1().Clusters().Lister(),
		queue:    work.NewQueue[string](o.Queues.Of("removal"), 100*time.Millisecond, 10*time.Second),
	}
	wake := func(obj any) {
		if cluster := obj.(*v1alpha1.Cluster); cluster.DeletionTimestamp != nil {
			c.queue.Add(cluster.Name)
		}
	}
	registration, err := o.Manifold.Manifold().V1alpha1().Clusters().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: wake, UpdateFunc: func(_, obj any) { wake(obj) },
	})
	if err != nil {
		return nil, fmt.Errorf("watch clusters: %w", err)
	}
	c.synced = []cache.InformerSynced{registration.HasSynced, o.Upstream.HasSynced}
	return c, nil
}

// Run removes clusters until ctx ends.
func (c *Controller) Run(ctx context.Context) error {
	if !cache.WaitForCacheSync(ctx.Done(), c.synced...) {
		return ctx.Err()
	}
	work.Run(ctx, c.queue, 1, func(ctx context.Context, name string) error {
		again, err := c.sync(ctx, name)
		if again && err == nil {
			c.queue.AddAfter(name, look)
		}
		return err
	})
	return nil
}

// sync does what can be done now for one cluster, and reports whether there is more to come.
func (c *Controller) sync(ctx context.Context, name string) (again bool, err error) {
	cluster, err := c.clusters.Get(name)
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil || cluster.DeletionTimestamp == nil || !slices.Contains(cluster.Finalizers, v1alpha1.FinalizerCluster) {
		return false, err
	}
	if wait := c.waitsFor(cluster); wait != nil {
		return true, c.tell(ctx, cluster, *wait)
	}
	if claims := c.Upstream.ClaimMirrorsOf(name); len(claims) > 0 {
		return true, c.dropClaims(ctx, claims)
	}
	if mirrors := c.Upstream.MirrorsOf(name); len(mirrors) > 0 {
		// Looked at again, since a syncer that has not heard of this may have written one meanwhile.
		return true, c.deletePods(ctx, mirrors)
	}
	if cluster.Annotations[v1alpha1.AnnotationRemove] == "" && c.Upstream.Leaves(name) {
		return true, nil // its syncer is about to let go of them
	}
	// A pod is bound to its cluster for good, as to a node, and nobody else would end those that are being deleted.
	if pods := c.Upstream.BoundTo(name); len(pods) > 0 {
		return true, c.deletePods(ctx, pods)
	}
	return false, c.release(ctx, cluster)
}

// waitsFor returns what a removal waits for, or nil if for nothing.
func (c *Controller) waitsFor(cluster *v1alpha1.Cluster) *metav1.Condition {
	if cluster.Annotations[v1alpha1.AnnotationRemove] == v1alpha1.RemoveForce {
		return nil
	}
	condition := &metav1.Condition{Type: ConditionRemoved, Status: metav1.ConditionFalse}
	if placed := c.placed(cluster.Name); len(placed) > 0 && cluster.Annotations[v1alpha1.AnnotationRemove] == "" {
		condition.Reason = reasonDraining
		condition.Message = "workloads that fit nowhere else, or are being replaced, still run here: " + enumerate(placed)
		return condition
	}
	left, known := 0, false
	if !silent(cluster) {
		left, known = c.Left(cluster.Name)
	}
	if !known {
		if cluster.Status.UID == "" {
			return nil // it never joined: nothing can be ours there
		}
		condition.Reason = reasonSilent
		condition.Message = fmt.Sprintf("the cluster cannot be reached to remove Manifold's objects from it; if it is gone for good: "+
			"manifold cluster remove %s --force", cluster.Name)
		return condition
	}
	if left += c.owned(cluster.Name); left > 0 {
		condition.Reason = reasonCleaning
		condition.Message = fmt.Sprintf("%d objects of Manifold are still there", left)
		return condition
	}
	return nil
}

// silent reports whether a cluster cannot be asked, so that what is known of it is of before.
func silent(cluster *v1alpha1.Cluster) bool {
	return health.Silent(meta.FindStatusCondition(cluster.Status.Conditions, v1alpha1.ClusterReady))
}

func (c *Controller) placed(cluster string) []string {
	out := c.Upstream.Placed(cluster)
	if c.Custom != nil {
		out = append(out, c.Custom.Placed(cluster)...)
	}
	return out
}

func (c *Controller) owned(cluster string) int {
	if c.Custom == nil {
		return 0
	}
	return c.Custom.Owned(cluster)
}

func enumerate(names []string) string {
	if len(names) <= namedWorkloads {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:namedWorkloads], ", "), len(names)-namedWorkloads)
}

func (c *Controller) tell(ctx context.Context, cluster *v1alpha1.Cluster, condition metav1.Condition) error {
	next := cluster.DeepCopy()
	meta.SetStatusCondition(&next.Status.Conditions, condition)
	if equality.Semantic.DeepEqual(cluster.Status, next.Status) {
		return nil
	}
	_, err := c.Clusters.ManifoldV1alpha1().Clusters().UpdateStatus(ctx, next, metav1.UpdateOptions{FieldManager: v1alpha1.FieldManager})
	return err
}

// deletePods removes pods that no syncer will remove any more, and with them what kept their namespaces from ending.
func (c *Controller) deletePods(ctx context.Context, pods []*corev1.Pod) error {
	for _, pod := range pods {
		err := c.Client.CoreV1().Pods(pod.Namespace).Delete(ctx, pod.Name, metav1.DeleteOptions{
			GracePeriodSeconds: ptr.To[int64](0), Preconditions: metav1.NewUIDPreconditions(string(pod.UID)),
		})
		if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
			return fmt.Errorf("delete pod %s/%s, whose cluster goes: %w", pod.Namespace, pod.Name, err)
		}
	}
	return nil
}

// dropClaims does the same for volume claims.
func (c *Controller) dropClaims(ctx context.Context, claims []*corev1.PersistentVolumeClaim) error {
	for _, claim := range claims {
		if err := records.DropClaim(ctx, c.Client, claim); err != nil {
			return fmt.Errorf("delete the mirror of claim %s/%s: %w", claim.Namespace, claim.Name, err)
		}
	}
	return nil
}

func (c *Controller) release(ctx context.Context, cluster *v1alpha1.Cluster) error {
	rest := slices.DeleteFunc(slices.Clone(cluster.Finalizers), func(f string) bool { return f == v1alpha1.FinalizerCluster })
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": cluster.UID, "resourceVersion": cluster.ResourceVersion, "finalizers": rest,
	}})
	if err != nil {
		return err
	}
	_, err = c.Clusters.ManifoldV1alpha1().Clusters().Patch(ctx, cluster.Name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: v1alpha1.FieldManager})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}
