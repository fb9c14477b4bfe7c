package workloads

import (
	"context"

	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/kubernetes/pkg/apis/apps"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
)

// rolledBack returns what reports whether a decision that somebody writes on a Deployment is that of one of its ReplicaSets. "kubectl rollout
// undo" replaces the annotations by those of the ReplicaSet that it goes back to, decision included, so its user has not written that by hand.
// It is only asked about a decision that is not kept, and answers from the watch cache.
func rolledBack(replicaSets rest.Lister) func(ctx context.Context, deployment runtime.Object, decision string) bool {
	return func(ctx context.Context, deployment runtime.Object, decision string) bool {
		found, err := replicaSets.List(ctx, &metainternalversion.ListOptions{ResourceVersion: "0"})
		list, ok := found.(*apps.ReplicaSetList)
		if err != nil || !ok {
			return false
		}
		owner := deployment.(metav1.Object)
		for i := range list.Items {
			r := &list.Items[i]
			if metav1.IsControlledBy(r, owner) && r.Annotations[v1alpha1.AnnotationPlacement] == decision {
				return true
			}
		}
		return false
	}
}
