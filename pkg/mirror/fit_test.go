package mirror

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
)

// talkative is a pod of which everything that a cluster may choose has so many bytes.
func talkative(bytes int) *corev1.Pod {
	said := strings.Repeat("ä", bytes/2)
	state := corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Message: said, Reason: said}}
	ended := corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Message: said, Reason: said}}
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", Annotations: map[string]string{
			"long": said, "short": "x", v1alpha1.AnnotationCluster: "east",
		}},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: "app:1"}}},
		Status: corev1.PodStatus{
			Phase: corev1.PodRunning, Message: said, Reason: said, PodIP: "10.0.0.1",
			Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Message: said, Reason: said}},
			ContainerStatuses: []corev1.ContainerStatus{
				{Name: "app", Ready: true, Image: said, ImageID: said, ContainerID: said, State: state, LastTerminationState: ended},
				{Name: "other"},
			},
		},
	}
	return p
}

func TestFitPod(t *testing.T) {
	modest := talkative(200)
	fitPod(modest)
	if diff := cmp.Diff(talkative(200), modest); diff != "" {
		t.Errorf("a pod that is no longer than others is cut (-want +got)\n%s", diff)
	}
	long := talkative(100_000)
	fitPod(long)
	if got := long.Size(); got > mostMirror {
		t.Errorf("the mirror has %d bytes, more than %d", got, mostMirror)
	}
	want := talkative(mostMessage)
	delete(want.Annotations, "long")
	want.Status.ContainerStatuses = want.Status.ContainerStatuses[:1]
	if diff := cmp.Diff(want, long); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	again := long.DeepCopy()
	fitPod(again)
	if diff := cmp.Diff(long, again); diff != "" {
		t.Errorf("what has been cut is cut again (-want +got)\n%s", diff)
	}
}

func TestFitPodCutsLists(t *testing.T) {
	p := talkative(10)
	for i := range 100_000 {
		p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{Type: corev1.PodConditionType(fmt.Sprint(i))})
		p.Status.PodIPs = append(p.Status.PodIPs, corev1.PodIP{IP: "10.0.0.1"})
		p.Status.HostIPs = append(p.Status.HostIPs, corev1.HostIP{IP: "10.0.0.1"})
		p.Status.InitContainerStatuses = append(p.Status.InitContainerStatuses, corev1.ContainerStatus{Name: "x"})
		p.Status.EphemeralContainerStatuses = append(p.Status.EphemeralContainerStatuses, corev1.ContainerStatus{Name: "x"})
		p.Status.ResourceClaimStatuses = append(p.Status.ResourceClaimStatuses, corev1.PodResourceClaimStatus{Name: "x"})
		p.Status.ContainerStatuses[0].VolumeMounts = append(p.Status.ContainerStatuses[0].VolumeMounts, corev1.VolumeMountStatus{Name: "x"})
	}
	fitPod(p)
	if got := p.Size(); got > mostMirror {
		t.Errorf("the mirror has %d bytes, more than %d", got, mostMirror)
	}
}

func TestFitClaim(t *testing.T) {
	said := strings.Repeat("x", 100_000)
	claim := func(said string) *corev1.PersistentVolumeClaim {
		return &corev1.PersistentVolumeClaim{
			ObjectMeta: metav1.ObjectMeta{Name: "data", Annotations: map[string]string{"long": said, v1alpha1.AnnotationUID: "1"}},
			Status:     corev1.PersistentVolumeClaimStatus{Conditions: []corev1.PersistentVolumeClaimCondition{{Message: said, Reason: said}}},
		}
	}
	got, want := claim(said), claim(said[:mostMessage])
	delete(want.Annotations, "long")
	fitClaim(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func FuzzFitPod(f *testing.F) {
	f.Add("said", "key", 10)
	f.Add("\xff\u00e4", "manifold.dev/x", 200_000)
	f.Fuzz(func(t *testing.T, said, key string, times int) {
		said = strings.Repeat(said, max(0, min(times, 1<<20/max(1, len(said)))))
		p := talkative(10)
		p.Annotations[key], p.Status.Message, p.Status.ContainerStatuses[0].Image = said, said, said
		before := p.Size()
		fitPod(p)
		if after := p.Size(); after > before || after > mostMirror && !strings.HasPrefix(key, v1alpha1.GroupName+"/") {
			t.Errorf("%d bytes became %d", before, after)
		}
		if p.Annotations[v1alpha1.AnnotationCluster] == "" {
			t.Error("our own annotation is gone")
		}
	})
}
