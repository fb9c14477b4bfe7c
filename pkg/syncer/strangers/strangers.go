// Package strangers finds what others than Manifold run in a namespace of a cluster.
package strangers

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/internal/typed"
	"github.com/manifold-dev/manifold/pkg/identity"
	"github.com/manifold-dev/manifold/pkg/projection"
	"github.com/manifold-dev/manifold/pkg/syncer/physical"
)

// Finder finds what of a cluster is somebody else's.
type Finder struct {
	Client         kubernetes.Interface // of the cluster
	Below          *physical.Cluster
	LogicalCluster string
}

// In returns something of somebody else's that runs or serves in a namespace, "" if there is nothing. Pods stand for the workloads
// of kinds that the syncer may not list. What clusters put into every namespace by themselves, such as the bundles of certificates of a
// mesh, says nothing: with these alone, a namespace is empty.
func (f *Finder) In(ctx context.Context, namespace string) (string, error) {
	for _, pod := range f.Below.PodsIn(namespace) {
		if pod.DeletionTimestamp == nil && !f.toldByWorkload(pod) && pod.Labels[v1alpha1.LabelLogicalCluster] != f.LogicalCluster {
			return "Pod " + pod.Name, nil
		}
	}
	for _, kind := range projection.Kinds() {
		serves := kind.GVK == corev1.SchemeGroupVersion.WithKind("Service")
		if kind.Resource == identity.Pods || !kind.Workload && !serves {
			continue
		}
		name, err := f.strangerOf(ctx, kind, namespace)
		if err != nil || name != "" {
			return name, err
		}
	}
	return "", nil
}

// toldByWorkload reports whether a pod, which may be on its way out, says nothing that its workload does not.
func (f *Finder) toldByWorkload(pod *corev1.Pod) bool {
	owner := metav1.GetControllerOf(pod)
	if owner == nil {
		return false
	}
	kind, ok := projection.ForGVK(schema.FromAPIVersionAndKind(owner.APIVersion, owner.Kind))
	return ok && kind.Workload || owner.Kind == "ReplicaSet"
}

// strangerOf returns somebody else's object of a kind, "" if there is none.
func (f *Finder) strangerOf(ctx context.Context, kind projection.Kind, namespace string) (string, error) {
	client, err := typed.For(f.Client, kind.Resource, namespace)
	if err != nil {
		return "", err
	}
	list, err := client.List(ctx, metav1.ListOptions{LabelSelector: v1alpha1.LabelLogicalCluster + "!=" + f.LogicalCluster})
	if err != nil {
		return "", fmt.Errorf("list the %s of others in namespace %q: %w", kind.Resource.Resource, namespace, err)
	}
	found := ""
	err = meta.EachListItem(list, func(item runtime.Object) error {
		// What a controller made of something else is told by that.
		if o := item.(projection.Object); found == "" && !kind.Mirror(o) {
			found = kind.GVK.Kind + " " + o.GetName()
		}
		return nil
	})
	return found, err
}
