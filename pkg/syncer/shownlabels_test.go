package syncer

import (
	"maps"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/placement"
	"github.com/manifold-dev/manifold/pkg/projection"
)

// shownPod is the mirror of a pod in a cluster, with the label app=db and these.
func shownPod(name, cluster string, labels map[string]string) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: objectMeta(name), Status: corev1.PodStatus{Phase: corev1.PodRunning}}
	pod.Annotations = map[string]string{v1alpha1.AnnotationCluster: cluster}
	pod.Labels = map[string]string{"app": "db"}
	maps.Copy(pod.Labels, labels)
	return pod
}

var leader = map[string]string{"role": "master"}

func TestWhatSelectsPodsByLabelsOfTheirOwnGoesWhereTheyAre(t *testing.T) {
	over := shownPod("db-1", "west", leader)
	over.Status.Phase = corev1.PodFailed
	elsewhere := shownPod("db-1", "west", leader)
	elsewhere.Namespace = "bank"
	for name, test := range map[string]struct {
		objects []projection.Object
		of      projection.Object
		want    []string
	}{
		"a Service": {
			objects: []projection.Object{shownPod("db-0", "east", nil), shownPod("db-1", "west", leader)},
			of:      service("db", leader), want: []string{"west"},
		},
		"not one that selects none":       {objects: []projection.Object{shownPod("db-1", "west", nil)}, of: service("db", leader)},
		"not by a pod that has ended":     {objects: []projection.Object{over}, of: service("db", leader)},
		"not by one of another namespace": {objects: []projection.Object{elsewhere}, of: service("db", leader)},
		"what leads to the Service": {
			objects: []projection.Object{shownPod("db-1", "west", leader), service("db", leader)},
			of:      ingress("db", "db"), want: []string{"west"},
		},
		"what leads to it needs": {
			objects: []projection.Object{shownPod("db-1", "west", leader), service("db", leader), ingress("db", "db")},
			of:      secret("db-tls"), want: []string{"west"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			u := newUpstream(t, append(test.objects, test.of, deployment("web", ""))...)
			kind, _ := projection.ForResource(resourceOf(test.of))
			var got []string
			for _, cluster := range []string{"east", "west"} {
				attach(t, u, cluster)
				if _, wanted := u.Demand.Part(kind, test.of, cluster); wanted {
					got = append(got, cluster)
				}
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("wanted in %v, want %v", got, test.want)
			}
		})
	}
}

func TestABudgetForPodsWithLabelsOfTheirOwnIsDividedByThem(t *testing.T) {
	budget := &policyv1.PodDisruptionBudget{ObjectMeta: objectMeta("db")}
	budget.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"role": "replica"}}
	budget.Spec.MinAvailable = ptr.To(intstr.FromInt32(3))
	replica := map[string]string{"role": "replica"}
	u := newUpstream(t, budget,
		shownPod("db-0", "east", leader), shownPod("db-1", "east", replica), shownPod("db-2", "west", replica), shownPod("db-3", "west", replica))
	kind, _ := projection.ForResource(resourceOf(budget))
	for _, cluster := range []string{"east", "west"} {
		attach(t, u, cluster)
	}
	part, wanted := u.Demand.Part(kind, budget, "west")
	want := placement.Decision{"east": {Replicas: 1}, "west": {Replicas: 2}}
	if !wanted || len(part.Workloads) != 1 || !maps.Equal(part.Workloads[0].Decision, want) {
		t.Errorf("part %+v, want one by %v", part, want)
	}
}

func TestALabelOfAMirrorWakesWhatSelectsIt(t *testing.T) {
	before, after := shownPod("db-0", "east", nil), shownPod("db-0", "east", leader)
	own := shownPod("once", "", leader)
	delete(own.Annotations, v1alpha1.AnnotationCluster)
	budget := &policyv1.PodDisruptionBudget{ObjectMeta: objectMeta("leader")}
	budget.Spec.Selector = &metav1.LabelSelector{MatchLabels: leader}
	below := budget.DeepCopy()
	below.Labels = map[string]string{v1alpha1.LabelLogicalCluster: logicalCluster}
	all := []string{"ingresses shop/db", "poddisruptionbudgets shop/leader", "secrets shop/db-tls", "services shop/leader"}
	for name, test := range map[string]struct {
		before, after *corev1.Pod
		want, west    []string
	}{
		"when it comes":               {before, after, all, all[1:2]},
		"when it goes":                {after, before, all, all[1:2]},
		"not while it stays":          {after, after.DeepCopy(), nil, nil},
		"not that of a pod by itself": {own, own.DeepCopy(), nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			u := newUpstream(t, service("leader", leader), service("all", map[string]string{"app": "db"}), ingress("db", "leader"), budget)
			east, west := attach(t, u, "east"), attach(t, u, "west", below)
			u.router.Pods().OnUpdate(test.before, test.after)
			if got := east.enqueued(); !slices.Equal(got, test.want) {
				t.Errorf("looked at %v, want %v", got, test.want)
			}
			if got := west.enqueued(); !slices.Equal(got, test.west) {
				t.Errorf("looked at %v in the other cluster, want %v", got, test.west)
			}
		})
	}
}
