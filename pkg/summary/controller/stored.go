package controller

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
)

// byController indexes ReplicaSets by the UID of what controls them.
const byController = "manifold.dev/controller"

// replicaSets are those of the logical cluster: mirrors, and those that are workloads themselves.
type replicaSets struct {
	client kubernetes.Interface
	// watched are those that the watch has shown, with our own writes that it has not shown yet.
	watched cache.MutationCache
}

// newReplicaSets indexes what the informer has. Whoever handles its events tells watched of them.
func newReplicaSets(o Options) (*replicaSets, error) {
	informer := o.Kube.Apps().V1().ReplicaSets().Informer()
	if err := informer.AddIndexers(cache.Indexers{byController: indexController}); err != nil {
		return nil, fmt.Errorf("index ReplicaSets: %w", err)
	}
	return &replicaSets{client: o.Client, watched: cache.NewIntegerResourceVersionMutationCacheWithOptions(klog.Background(), informer.GetStore(),
		cache.MutationCacheOptions{TTL: remember, MaxCacheSize: remembered, Indexer: informer.GetIndexer(), IncludeAdds: true})}, nil
}

func indexController(obj any) ([]string, error) {
	rs, ok := obj.(*appsv1.ReplicaSet)
	if !ok {
		return nil, nil
	}
	if ref := metav1.GetControllerOfNoCopy(rs); ref != nil {
		return []string{string(ref.UID)}, nil
	}
	return nil, nil
}

// of returns the mirrored ReplicaSets of a Deployment by name.
func (r *replicaSets) of(d *appsv1.Deployment) map[string]*appsv1.ReplicaSet {
	found, _ := r.watched.ByIndex(byController, string(d.UID)) // the index exists: newReplicaSets made it
	out := make(map[string]*appsv1.ReplicaSet, len(found))
	for _, obj := range found {
		rs := obj.(*appsv1.ReplicaSet)
		out[rs.Name] = rs
	}
	return out
}

// named returns a ReplicaSet above as the watch or our own last write shows it, or nil.
func (r *replicaSets) named(namespace, name string) (*appsv1.ReplicaSet, error) {
	obj, exists, err := r.watched.GetByKey(namespace + "/" + name)
	if err != nil || !exists {
		return nil, err
	}
	return obj.(*appsv1.ReplicaSet), nil
}

// taken reports whether there is a ReplicaSet of the name.
func (r *replicaSets) taken(namespace, name string) bool {
	_, exists, err := r.watched.GetByKey(namespace + "/" + name)
	return err == nil && exists
}

// write stores a ReplicaSet, nil for have if there is none, unless it is as it should be.
func (r *replicaSets) write(ctx context.Context, want, have *appsv1.ReplicaSet) error {
	client := r.client.AppsV1().ReplicaSets(want.Namespace)
	var written *appsv1.ReplicaSet
	var err error
	switch {
	case have == nil:
		written, err = client.Create(ctx, want, metav1.CreateOptions{FieldManager: v1alpha1.FieldManager})
	case equality.Semantic.DeepEqual(want, have):
		return nil
	default:
		written, err = client.Update(ctx, want, metav1.UpdateOptions{FieldManager: v1alpha1.FieldManager})
	}
	if apierrors.IsNotFound(err) {
		return nil // deleted meanwhile; its watch wakes us
	}
	if err != nil {
		return err
	}
	r.watched.Mutation(written)
	return nil
}

// delete removes a ReplicaSet unless it is another one by now.
func (r *replicaSets) delete(ctx context.Context, rs *appsv1.ReplicaSet) error {
	err := r.client.AppsV1().ReplicaSets(rs.Namespace).Delete(ctx, rs.Name, metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(rs.UID))})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return err
}
