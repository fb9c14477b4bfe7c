package text

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

func podSaying(said string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: "web", Labels: map[string]string{"a": said, said: "b"},
			OwnerReferences: []metav1.OwnerReference{{Name: said, Controller: ptr.To(true)}},
		},
		Spec: corev1.PodSpec{
			RuntimeClassName: ptr.To(said),
			Containers: []corev1.Container{{Args: []string{"x", said}, Resources: corev1.ResourceRequirements{
				Requests: corev1.ResourceList{corev1.ResourceName(said): resource.MustParse("1")},
			}}},
		},
		Status: corev1.PodStatus{
			Message: said, StartTime: ptr.To(metav1.Now()),
			ContainerStatuses: []corev1.ContainerStatus{{State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Message: said}}}},
		},
	}
}

func TestRepair(t *testing.T) {
	for name, test := range map[string]struct{ said, want string }{
		"bytes that are no UTF-8 are replaced":     {"a\xff\xfeb\xc3", "a\ufffdb\ufffd"},
		"what is valid stays, as odd as it may be": {"größe\x1b\u202e", "größe\x1b\u202e"},
	} {
		t.Run(name, func(t *testing.T) {
			got := podSaying(test.said)
			got.Status.StartTime = nil
			want := podSaying(test.want)
			want.Status.StartTime = nil
			Repair(got)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
	data := &corev1.Secret{Data: map[string][]byte{"k\xff": {0xff}}}
	Repair(data)
	if diff := cmp.Diff(map[string][]byte{"k\ufffd": {0xff}}, data.Data); diff != "" {
		t.Errorf("bytes are not texts (-want +got)\n%s", diff)
	}
	Repair((*corev1.Pod)(nil))
	Repair(nil)
}

func BenchmarkRepair(b *testing.B) {
	pod := podSaying("a text of some length that is valid, as nearly all are")
	for b.Loop() {
		Repair(pod)
	}
}
