package syncer

import (
	"context"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/clusters/bounds"
	"github.com/manifold-dev/manifold/pkg/projection"
	"github.com/manifold-dev/manifold/pkg/syncer/physical"
)

// below is a physical cluster as its syncer sees it.
type below struct {
	*physical.Cluster

	client kubernetes.Interface
	budget *bounds.Budget
	owned  []watched // what carries our label
	all    []watched // what the controllers below make of it, which carries no label

	projected map[schema.GroupVersionResource]cache.SharedIndexInformer
	secrets   *secrets
	classes   classes
	volumes   *volumes
}

func newBelow(client kubernetes.Interface, logicalCluster string, budget *bounds.Budget) (*below, error) {
	b := &below{
		Cluster:   physical.New(),
		client:    client,
		budget:    budget,
		projected: map[schema.GroupVersionResource]cache.SharedIndexInformer{},
		secrets:   newSecrets(client, logicalCluster, budget),
		classes:   classes{},
		volumes:   newVolumes(),
	}
	var err error
	for _, kind := range projection.Kinds() {
		if kind.Resource == secretResource {
			b.Stores[kind.Resource] = b.secrets.store
			continue
		}
		selector := v1alpha1.LabelLogicalCluster + "=" + logicalCluster
		if made := kind.NotMadeThere(); made != "" {
			selector += "," + made
		}
		if b.projected[kind.Resource], err = b.watch(&b.owned, kind.Resource, selector, trimManagedFields); err != nil {
			return nil, err
		}
		b.Stores[kind.Resource] = b.projected[kind.Resource].GetIndexer()
	}
	b.Namespaces = b.projected[namespaceResource]
	for _, class := range projection.Classes() {
		if b.classes[class.Resource], err = b.watch(&b.all, class.Resource, "", trimManagedFields); err != nil {
			return nil, err
		}
	}
	for _, row := range []struct {
		informer *cache.SharedIndexInformer
		resource schema.GroupVersionResource
		trim     cache.TransformFunc
	}{
		{&b.ReplicaSets, appsv1.SchemeGroupVersion.WithResource("replicasets"), trimManagedFields},
		{&b.Revisions, appsv1.SchemeGroupVersion.WithResource("controllerrevisions"), trimRevision},
		{&b.Pods, podResource, b.trimPod},
		{&b.Claims, claimResource, trimManagedFields},
	} {
		if *row.informer, err = b.watch(&b.all, row.resource, "", row.trim); err != nil {
			return nil, err
		}
	}
	return b, b.Index()
}

// watched is an informer behind a gate of its own.
type watched struct {
	informers.SharedInformerFactory
	gate *bounds.Gate
}

// watch returns an informer of a resource that counts to the cluster's budget, and is started with others.
func (b *below) watch(with *[]watched, resource schema.GroupVersionResource, selector string, trim cache.TransformFunc) (cache.SharedIndexInformer, error) {
	gate := b.budget.Gate()
	factory := informers.NewSharedInformerFactoryWithOptions(b.client, 0, informers.WithTransform(gate.Transform(trim)),
		informers.WithTweakListOptions(func(o *metav1.ListOptions) {
			o.LabelSelector = selector
			gate.Tweak(o)
		}))
	generic, err := factory.ForResource(resource)
	if err != nil {
		return nil, fmt.Errorf("watch %s: %w", resource.Resource, err)
	}
	*with = append(*with, watched{factory, gate})
	return generic.Informer(), gate.Watch(generic.Informer())
}

// start runs the watches until ctx ends and waits for the first lists. Namespaces come first: they tell which pods may be ours.
func (b *below) start(ctx context.Context) error {
	if err := startTogether(ctx, b.owned); err != nil {
		return err
	}
	if err := b.secrets.start(ctx, b.Namespaces.GetIndexer().ListKeys()); err != nil {
		return err
	}
	return startTogether(ctx, b.all)
}

func startTogether(ctx context.Context, together []watched) error {
	for _, w := range together {
		w.StartWithContext(ctx)
	}
	for _, w := range together {
		for kind, ok := range w.WaitForCacheSync(ctx.Done()) {
			if !ok {
				return fmt.Errorf("list %v: %w", kind, context.Cause(ctx))
			}
		}
	}
	return nil
}

func (b *below) stop() {
	for _, w := range slices.Concat(b.owned, b.all) {
		w.Shutdown()
		w.gate.Close()
	}
	b.secrets.wait()
}

// holdsIn reports whether a namespace holds anything of ours.
func (b *below) holdsIn(namespace string) bool {
	if !b.secrets.seen(namespace) {
		return true // perhaps
	}
	for resource, store := range b.Stores {
		if resource == namespaceResource {
			continue
		}
		if found, _ := store.IndexKeys(cache.NamespaceIndex, namespace); len(found) > 0 {
			return true
		}
	}
	return false
}

// trimPod keeps of other people's pods only what capacity counts. They are most of a cluster.
func (b *below) trimPod(obj any) (any, error) {
	pod, ok := obj.(*corev1.Pod)
	if !ok {
		return obj, nil
	}
	if b.Ours(pod.Namespace) {
		return trimManagedFields(pod)
	}
	trimmed := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID, ResourceVersion: pod.ResourceVersion},
		Spec: corev1.PodSpec{
			NodeName: pod.Spec.NodeName, Priority: pod.Spec.Priority, Overhead: pod.Spec.Overhead, Resources: pod.Spec.Resources,
			Containers: resourcesOnly(pod.Spec.Containers), InitContainers: resourcesOnly(pod.Spec.InitContainers),
		},
		Status: corev1.PodStatus{
			Phase:              pod.Status.Phase,
			Resources:          pod.Status.Resources,
			AllocatedResources: pod.Status.AllocatedResources,
			ContainerStatuses:  grantedOnly(pod.Status.ContainerStatuses), InitContainerStatuses: grantedOnly(pod.Status.InitContainerStatuses),
		},
	}
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodResizePending {
			trimmed.Status.Conditions = []corev1.PodCondition{c}
		}
	}
	return trimmed, nil
}

func resourcesOnly(containers []corev1.Container) []corev1.Container {
	out := make([]corev1.Container, len(containers))
	for i, c := range containers {
		out[i] = corev1.Container{Name: c.Name, Resources: c.Resources, RestartPolicy: c.RestartPolicy}
	}
	return out
}

// grantedOnly keeps what a resize in place has been granted.
func grantedOnly(statuses []corev1.ContainerStatus) []corev1.ContainerStatus {
	var out []corev1.ContainerStatus
	for _, s := range statuses {
		if s.Resources != nil || s.AllocatedResources != nil {
			out = append(out, corev1.ContainerStatus{Name: s.Name, Resources: s.Resources, AllocatedResources: s.AllocatedResources})
		}
	}
	return out
}

// trimManagedFields drops the fields themselves and keeps who manages some: that we did is what an upgrade to apply asks for.
func trimManagedFields(obj any) (any, error) {
	accessor, err := meta.Accessor(obj)
	if err != nil {
		return obj, nil //nolint:nilerr // a tombstone has no metadata and needs no trimming
	}
	var kept []metav1.ManagedFieldsEntry
	for _, entry := range accessor.GetManagedFields() {
		if entry.Manager == v1alpha1.FieldManager {
			kept = append(kept, metav1.ManagedFieldsEntry{Manager: entry.Manager, Operation: entry.Operation, Subresource: entry.Subresource})
		}
	}
	accessor.SetManagedFields(kept)
	return obj, nil
}

// logWatchError keeps the ordinary end of a watch out of the log; that a cluster is silent is told by its Ready condition.
func logWatchError(ctx context.Context, _ *cache.Reflector, err error) {
	klog.FromContext(ctx).V(2).Info("Watch interrupted", "err", err)
}
