package engine

import (
	"fmt"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/identity"
	"github.com/manifold-dev/manifold/pkg/placement"
	"github.com/manifold-dev/manifold/pkg/placement/decide"
)

// byLoose indexes, by their namespace, the objects that nobody controls: a controller below takes over those that its selector meets, if
// it is where they are.
const byLoose = "manifold.dev/loose"

// loose are the pods and ReplicaSets that nobody controls.
type loose struct {
	pods, replicaSets cache.Indexer
}

func newLoose(kube informers.SharedInformerFactory) (loose, error) {
	pods, sets := kube.Core().V1().Pods().Informer(), kube.Apps().V1().ReplicaSets().Informer()
	for _, informer := range []cache.SharedIndexInformer{pods, sets} {
		if err := informer.AddIndexers(cache.Indexers{byLoose: indexLoose}); err != nil {
			return loose{}, fmt.Errorf("index what nobody controls: %w", err)
		}
	}
	return loose{pods.GetIndexer(), sets.GetIndexer()}, nil
}

func indexLoose(obj any) ([]string, error) {
	o, ok := obj.(metav1.Object)
	if !ok || o.GetDeletionTimestamp() != nil || metav1.GetControllerOfNoCopy(o) != nil {
		return nil, nil
	}
	return []string{o.GetNamespace()}, nil
}

// metBy returns what a workload will take over, as it is made.
func (l loose) metBy(w placement.Workload) []decide.Loose {
	if w.Takes.Selector == nil {
		return nil
	}
	selector, err := metav1.LabelSelectorAsSelector(w.Takes.Selector)
	if err != nil || selector.Empty() {
		return nil // validation tells the user
	}
	from := l.pods
	if w.Takes.ReplicaSets {
		from = l.replicaSets
	}
	found, _ := from.ByIndex(byLoose, w.Namespace) // the index exists: newLoose made it
	var out []decide.Loose
	for _, obj := range found {
		o := obj.(metav1.Object)
		if selector.Matches(labels.Set(o.GetLabels())) {
			out = append(out, shares(w, o)...)
		}
	}
	return out
}

// shares are what an object that is taken over has in the clusters.
func shares(w placement.Workload, o metav1.Object) []decide.Loose {
	number := int64(0)
	if pod, ok := o.(*corev1.Pod); ok {
		if pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
			return nil
		}
		if w.Ordinals {
			var err error
			if number, err = strconv.ParseInt(strings.TrimPrefix(pod.Name, w.Name+"-"), 10, 32); err != nil || int32(number) < w.First {
				return nil
			}
		}
	}
	if cluster := o.GetAnnotations()[v1alpha1.AnnotationCluster]; cluster != "" {
		return []decide.Loose{{Cluster: cluster, Replicas: 1, Ordinal: int32(number) - w.First}}
	}
	var out []decide.Loose
	for cluster, share := range identity.WholeDecisionOf(o) {
		out = append(out, decide.Loose{Cluster: cluster, Replicas: share.Replicas, Ordinal: int32(number) - w.First})
	}
	return out
}
