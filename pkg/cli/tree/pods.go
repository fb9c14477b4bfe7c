package tree

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/utils/ptr"

	manifoldv1alpha1 "github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/projection"
)

// pods shows each pod, or one node for those of a cluster.
func (g *grower) pods(in []*corev1.Pod) []*Node {
	slices.SortFunc(in, func(a, b *corev1.Pod) int {
		return cmp.Or(cmp.Compare(projection.ClusterOf(a), projection.ClusterOf(b)), cmp.Compare(a.Name, b.Name))
	})
	var out []*Node
	for len(in) > 0 {
		cluster := projection.ClusterOf(in[0])
		there := in
		if end := slices.IndexFunc(in, func(p *corev1.Pod) bool { return projection.ClusterOf(p) != cluster }); end > 0 {
			there = in[:end]
		}
		in = in[len(there):]
		var nodes []*Node
		for _, pod := range there {
			nodes = append(nodes, g.part(pod))
		}
		if !g.all && len(nodes) > 1 {
			nodes = []*Node{together(nodes)}
		}
		out = append(out, nodes...)
	}
	return out
}

// together makes one node of the pods of a cluster. It counts what they say, the most frequent first, and names a pod for each thing
// that is wrong.
func together(pods []*Node) *Node {
	out := &Node{Kind: pods[0].Kind, Count: len(pods), Relation: pods[0].Relation, Clusters: pods[0].Clusters, Health: Healthy, Ready: &Ready{}}
	counts, examples := map[string]int{}, map[string]*Node{}
	for _, pod := range pods {
		out.Health = worse(out.Health, pod.Health)
		if pod.Ready != nil {
			out.Ready.Of++
			if pod.Health == Healthy {
				out.Ready.Ready++
			}
		}
		counts[pod.Status]++
		if examples[pod.Status] == nil {
			examples[pod.Status] = pod
		}
	}
	if out.Ready.Of == 0 {
		out.Ready = nil // all have ended
	}
	var words []string
	for _, status := range slices.SortedFunc(maps.Keys(counts), func(a, b string) int {
		return cmp.Or(counts[b]-counts[a], cmp.Compare(a, b))
	}) {
		words = append(words, fmt.Sprintf("%d %s", counts[status], status))
		for _, problem := range examples[status].Problems {
			out.Problems = append(out.Problems, examples[status].Name+": "+problem)
		}
	}
	out.Status = strings.Join(words, ", ")
	return out
}

// judgePod tells how a pod fares by the words of kubectl get.
func (n *Node) judgePod(pod *corev1.Pod) {
	n.Status = string(cmp.Or(pod.Status.Phase, corev1.PodPending))
	if pod.Status.Reason != "" {
		n.Status = pod.Status.Reason
	}
	if pod.Status.Phase == corev1.PodSucceeded {
		return
	}
	n.Ready = &Ready{Of: int32(len(pod.Spec.Containers))}
	for _, c := range pod.Status.ContainerStatuses {
		if c.Ready {
			n.Ready.Ready++
		}
	}
	n.Health = Progressing
	switch {
	case pod.Status.Phase == corev1.PodFailed:
		n.Health = Degraded
		n.problem(pod.Status.Message)
	case podReady(pod):
		n.Health = Healthy
	}
	if trouble, found := troubleOf(pod); found {
		n.Status = trouble.reason
		if trouble.bad {
			n.Health = Degraded
			n.problem(trouble.message)
		}
	}
}

// trouble is why a pod does not serve.
type trouble struct {
	reason, message string
	// bad tells that it does not pass by itself.
	bad bool
}

// troubleOf returns the first thing that keeps a pod from serving.
func troubleOf(pod *corev1.Pod) (trouble, bool) {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse && c.Reason != "" {
			return trouble{reason: c.Reason, message: c.Message, bad: c.Reason == corev1.PodReasonUnschedulable}, true
		}
	}
	for _, c := range pod.Status.InitContainerStatuses {
		if t, found := containerTrouble(c); found && !c.Ready {
			t.reason = "Init:" + t.reason
			return t, true
		}
	}
	for _, c := range pod.Status.ContainerStatuses {
		if t, found := containerTrouble(c); found {
			return t, true
		}
	}
	return trouble{}, false
}

func containerTrouble(c corev1.ContainerStatus) (trouble, bool) {
	switch w, t := c.State.Waiting, c.State.Terminated; {
	case w != nil && w.Reason != "":
		starting := w.Reason == "ContainerCreating" || w.Reason == "PodInitializing"
		return trouble{reason: w.Reason, message: cmp.Or(w.Message, lastEnd(c)), bad: !starting}, true
	case t != nil && t.ExitCode != 0:
		return trouble{reason: cmp.Or(t.Reason, "Error"), message: ended(c.Name, t), bad: true}, true
	}
	return trouble{}, false
}

// lastEnd says how a container ended that is to be started again.
func lastEnd(c corev1.ContainerStatus) string {
	if t := c.LastTerminationState.Terminated; t != nil {
		return ended(c.Name, t)
	}
	return ""
}

func ended(container string, t *corev1.ContainerStateTerminated) string {
	text := fmt.Sprintf("container %q ended with code %d", container, t.ExitCode)
	if t.Message != "" {
		text += ": " + t.Message
	}
	return text
}

func podReady(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

// shownFrom returns the clusters that an object shows something of: a pod its own, a slice of endpoints those of its pods, what owns pods
// those of these.
func shownFrom(x *index, obj projection.Object) []string {
	switch o := obj.(type) {
	case *corev1.Pod:
		if cluster := projection.ClusterOf(o); cluster != "" {
			return []string{cluster}
		}
	case *corev1.PersistentVolumeClaim:
		return []string{o.Annotations[manifoldv1alpha1.AnnotationCluster]}
	case *discoveryv1.EndpointSlice:
		var out []string
		for _, endpoint := range o.Endpoints {
			if node := ptr.Deref(endpoint.NodeName, ""); node != "" {
				out = append(out, node)
			}
		}
		return out
	default:
		var out []string
		for _, child := range x.owned(obj) {
			if pod, ok := child.(*corev1.Pod); ok && projection.ClusterOf(pod) != "" {
				out = append(out, projection.ClusterOf(pod))
			}
		}
		return out
	}
	return nil
}
