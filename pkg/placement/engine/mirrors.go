package engine

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/placement"
	"github.com/manifold-dev/manifold/pkg/projection"
)

const (
	// byUnschedulable indexes, by their namespace, the pods that no node of their cluster can run. Most namespaces have none.
	byUnschedulable = "manifold.dev/unschedulable"
	// byMaker indexes mirrors of pods, and of ReplicaSets, by their controller.
	byMaker = "manifold.dev/maker"
)

// mirrors are the pods of the clusters, as their mirrors show them.
type mirrors struct {
	pods, replicaSets cache.Indexer
}

func newMirrors(kube informers.SharedInformerFactory) (mirrors, error) {
	pods, sets := kube.Core().V1().Pods().Informer(), kube.Apps().V1().ReplicaSets().Informer()
	if err := pods.AddIndexers(cache.Indexers{byUnschedulable: indexUnschedulable, byMaker: indexMaker}); err != nil {
		return mirrors{}, fmt.Errorf("index pods: %w", err)
	}
	if err := sets.AddIndexers(cache.Indexers{byMaker: indexMaker}); err != nil {
		return mirrors{}, fmt.Errorf("index ReplicaSets: %w", err)
	}
	return mirrors{pods.GetIndexer(), sets.GetIndexer()}, nil
}

func indexUnschedulable(obj any) ([]string, error) {
	if pod, ok := obj.(*corev1.Pod); ok && UnschedulableSince(pod) != nil {
		return []string{pod.Namespace}, nil
	}
	return nil, nil
}

func indexMaker(obj any) ([]string, error) {
	o, ok := obj.(metav1.Object)
	if !ok {
		return nil, nil
	}
	if ref := metav1.GetControllerOfNoCopy(o); ref != nil {
		return []string{makerKey(o.GetNamespace(), ref.Kind, ref.Name)}, nil
	}
	return nil, nil
}

func makerKey(namespace, kind, name string) string { return namespace + "/" + kind + "/" + name }

// UnschedulableSince returns the condition of a pod that no node of its cluster can run; nil for any other pod, also for one that is in no
// cluster yet. One that stops others for its sake has a node, and waits for them to end.
func UnschedulableSince(pod *corev1.Pod) *corev1.PodCondition {
	if clusterHaving(pod) == "" || !alive(pod) || pod.Status.NominatedNodeName != "" {
		return nil
	}
	return projection.Unscheduled(pod)
}

// clusterHaving is the cluster that has a pod which is mirrored, or one that a user made and that waits there to be scheduled; "" for any other.
func clusterHaving(pod *corev1.Pod) string {
	return cmp.Or(pod.Annotations[v1alpha1.AnnotationCluster], pod.Annotations[v1alpha1.AnnotationPodCluster])
}

// alive reports whether a pod has not ended and is not about to.
func alive(pod *corev1.Pod) bool {
	return pod.DeletionTimestamp == nil && pod.Status.Phase != corev1.PodSucceeded && pod.Status.Phase != corev1.PodFailed
}

// of returns the pods of a workload where any of its namespace cannot be scheduled, or a cluster refuses to have some made, and nothing
// otherwise.
func (m mirrors) of(w placement.Workload, current placement.Decision) []placement.Pod {
	if len(current) == 0 || w.Custom || w.Division == placement.Everywhere || w.Template == nil {
		return nil
	}
	// The indexes exist: newMirrors made them.
	if any, _ := m.pods.IndexKeys(byUnschedulable, w.Namespace); len(any) == 0 && len(w.Refused) == 0 {
		return nil
	}
	if w.Once {
		return m.itself(w)
	}
	out := m.madeBy(nil, w, makerKey(w.Namespace, w.GVK.Kind, w.Name), false)
	sets, _ := m.replicaSets.ByIndex(byMaker, makerKey(w.Namespace, w.GVK.Kind, w.Name))
	if len(sets) == 0 {
		return out
	}
	hash := projection.TemplateHash(w.Template)
	for _, obj := range sets {
		set := obj.(metav1.Object)
		carries := set.GetLabels()[appsv1.DefaultDeploymentUniqueLabelKey]
		out = m.madeBy(out, w, makerKey(w.Namespace, "ReplicaSet", set.GetName()), carries != "" && carries != hash)
	}
	return out
}

// itself returns the pod that is its own workload, if it waits in a cluster.
func (m mirrors) itself(w placement.Workload) []placement.Pod {
	obj, exists, err := m.pods.GetByKey(w.Namespace + "/" + w.Name)
	if err != nil || !exists {
		return nil
	}
	pod := obj.(*corev1.Pod)
	condition := UnschedulableSince(pod)
	if condition == nil {
		return nil
	}
	waits := placement.Pod{Cluster: clusterHaving(pod)}
	waits.Waits(condition.LastTransitionTime.Time, condition.Message)
	return []placement.Pod{waits}
}

// madeBy adds the pods of one controller.
func (m mirrors) madeBy(out []placement.Pod, w placement.Workload, maker string, outdated bool) []placement.Pod {
	found, _ := m.pods.ByIndex(byMaker, maker)
	for _, obj := range found {
		pod := obj.(*corev1.Pod)
		cluster := pod.Annotations[v1alpha1.AnnotationCluster]
		if cluster == "" || !alive(pod) {
			continue
		}
		next := placement.Pod{Cluster: cluster}
		if w.Ordinals {
			ordinal, err := strconv.ParseInt(strings.TrimPrefix(pod.Name, w.Name+"-"), 10, 32)
			if err != nil {
				continue // it stands for no replica
			}
			next.Ordinal = int32(ordinal) - w.First
		}
		if condition := UnschedulableSince(pod); condition != nil {
			next.Outdated = outdated
			next.Waits(condition.LastTransitionTime.Time, condition.Message)
		}
		out = append(out, next)
	}
	return out
}
