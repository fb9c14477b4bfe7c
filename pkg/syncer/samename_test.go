package syncer

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
)

func TestTwoClustersChooseTheSameNameForAPod(t *testing.T) {
	for name, test := range map[string]struct {
		change func(pod, other, mirror *corev1.Pod)
		want   []string // what the second cluster is asked for
	}{
		"the second is made anew": {func(_, _, _ *corev1.Pod) {}, []string{"delete"}},
		"not while it is going": {func(pod, _, _ *corev1.Pod) {
			pod.DeletionTimestamp = &metav1.Time{}
		}, nil},
		"not when it has ended": {func(pod, _, _ *corev1.Pod) { pod.Status.Phase = corev1.PodFailed }, nil},
		"not when the first is going": {func(_, other, _ *corev1.Pod) {
			other.DeletionTimestamp = &metav1.Time{}
		}, nil},
		"not when the first is another one by now": {func(_, other, _ *corev1.Pod) { other.UID = "another" }, nil},
		"not when its mirror is going":             {func(_, _, mirror *corev1.Pod) { mirror.DeletionTimestamp = &metav1.Time{} }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFamily()
			f.pod.UID = "of-east"
			other, mirror := f.pod.DeepCopy(), f.shown("west")
			other.UID, mirror.UID = "of-west", "of-west"
			test.change(f.pod, other, mirror)
			u := newUpstream(t, f.above, f.mirrored, namespace("shop"), mirror)
			east := attach(t, u, "east", f.projected, f.replicaSet, f.pod)
			attach(t, u, "west", other)
			if err := east.client.(*fake.Clientset).Tracker().Add(f.pod); err != nil {
				t.Fatal(err)
			}
			if err := east.pods.Sync(t.Context(), podName); err != errNotYet {
				t.Errorf("error %v, want to look again", err)
			}
			var got []string
			for _, action := range east.client.(*fake.Clientset).Actions() {
				got = append(got, action.GetVerb())
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("the cluster was asked to %v, want %v", got, test.want)
			}
			if told := len(east.events.Events); told != len(test.want) {
				t.Errorf("%d events, want %d", told, len(test.want))
			}
			if len(east.above.Actions()) > 0 {
				t.Errorf("writes above: %v", east.above.Actions())
			}
		})
	}
}

func TestAPodWithANumberIsNotMadeAnew(t *testing.T) {
	e := newEstate(`{"east":{"replicas":2}}`)
	pod := &corev1.Pod{ObjectMeta: objectMeta("web-1")}
	pod.OwnerReferences = controlledBy(e.projected, "StatefulSet")
	other, f := pod.DeepCopy(), newFamily()
	other.UID = "of-west"
	mirror := f.shown("west")
	mirror.UID = "of-west"
	u := newUpstream(t, e.above, namespace("shop"), mirror)
	east := attach(t, u, "east", e.projected, pod)
	attach(t, u, "west", other)
	if err := east.pods.Sync(t.Context(), podName); err != errNotYet || len(east.client.(*fake.Clientset).Actions()) > 0 {
		t.Errorf("error %v, asked for %v; want it to wait", err, east.client.(*fake.Clientset).Actions())
	}
}
