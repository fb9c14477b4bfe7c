package engine

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/placement"
)

// loosePod is one labelled app=web that nobody controls: a mirror of one in a cluster, or one that is placed.
func loosePod(name, mirrors, decision string, change ...func(*corev1.Pod)) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: "shop", Name: name, Labels: map[string]string{"app": "web"}, Annotations: map[string]string{},
	}}
	if mirrors != "" {
		pod.Annotations[v1alpha1.AnnotationCluster] = mirrors
	}
	if decision != "" {
		pod.Annotations[v1alpha1.AnnotationPlacement] = decision
	}
	for _, c := range change {
		c(pod)
	}
	return pod
}

// What a workload will take over is where it runs: its controllers find it in no other cluster.
func TestANewWorkloadGoesWhereWhatItTakesOverIs(t *testing.T) {
	const inWest = `{"west":{"replicas":1}}`
	controlled := func(pod *corev1.Pod) {
		pod.OwnerReferences = []metav1.OwnerReference{{Kind: "ReplicaSet", Name: "other", UID: "other", Controller: ptr.To(true)}}
	}
	labelled := func(pod *corev1.Pod) { pod.Labels = map[string]string{"app": "other"} }
	finished := func(pod *corev1.Pod) { pod.Status.Phase = corev1.PodSucceeded }
	set := &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{
		Namespace: "shop", Name: "web-1", Labels: map[string]string{"app": "web"},
		Annotations: map[string]string{v1alpha1.AnnotationPlacement: `{"west":{"replicas":2}}`},
	}}
	for name, test := range map[string]struct {
		there    []runtime.Object
		sets     bool
		numbered bool
		want     placement.Decision
	}{
		"nothing is there":                 {nil, false, false, placement.Decision{"east": {Replicas: 3}}},
		"pods that are placed":             {[]runtime.Object{loosePod("a", "", inWest)}, false, false, placement.Decision{"west": {Replicas: 3}}},
		"mirrors":                          {[]runtime.Object{loosePod("a", "west", "")}, false, false, placement.Decision{"west": {Replicas: 3}}},
		"numbered ones":                    {[]runtime.Object{loosePod("web-2", "west", "")}, false, true, placement.Decision{"west": {Replicas: 3}}},
		"not one of another name":          {[]runtime.Object{loosePod("db-2", "west", "")}, false, true, placement.Decision{"east": {Replicas: 3}}},
		"not one that somebody controls":   {[]runtime.Object{loosePod("a", "west", "", controlled)}, false, false, placement.Decision{"east": {Replicas: 3}}},
		"not one that the selector misses": {[]runtime.Object{loosePod("a", "west", "", labelled)}, false, false, placement.Decision{"east": {Replicas: 3}}},
		"not one that has ended":           {[]runtime.Object{loosePod("a", "west", "", finished)}, false, false, placement.Decision{"east": {Replicas: 3}}},
		"ReplicaSets":                      {[]runtime.Object{set}, true, false, placement.Decision{"west": {Replicas: 3}}},
		"not pods, for who takes sets":     {[]runtime.Object{loosePod("a", "west", "")}, true, false, placement.Decision{"east": {Replicas: 3}}},
	} {
		t.Run(name, func(t *testing.T) {
			e := newEngine(t, append(test.there, joined("east", 100), joined("west", 50), namespace(""), together())...)
			w := workload("web", 3)
			if test.numbered {
				w.Ordinals, w.Division = true, placement.DivisibleByName
			}
			w.Takes = placement.Takes{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}, ReplicaSets: test.sets}
			got, ready := e.Place(w, nil)
			if !ready || !got.Decision.Equal(test.want) {
				t.Errorf("placed as %s (%t), want %s", got.Decision, ready, test.want)
			}
		})
	}
}
