package projection

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/google/go-cmp/cmp"

	"github.com/manifold-dev/manifold/pkg/placement"
)

func TestAPodOfAWorkloadIsWhatItsControllerWouldAskFor(t *testing.T) {
	set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "db"}}
	set.Spec.Template.Labels = map[string]string{"app": "db"}
	set.Spec.Template.Spec.Containers = []corev1.Container{{Name: "db", VolumeMounts: []corev1.VolumeMount{{Name: "data"}}}}
	set.Spec.VolumeClaimTemplates = []corev1.PersistentVolumeClaim{{ObjectMeta: metav1.ObjectMeta{Name: "data"}}}
	kind := kindOf(t, set)
	want := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "db", Labels: map[string]string{"app": "db"}},
		Spec: corev1.PodSpec{
			Containers: set.Spec.Template.Spec.Containers,
			Volumes: []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{
				PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data-db-0"}}}},
		},
	}
	if diff := cmp.Diff(want, kind.PodOf(set)); diff != "" {
		t.Error(diff)
	}
	if len(set.Spec.Template.Spec.Volumes) > 0 {
		t.Error("the workload was changed")
	}
	lone := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "lone", Labels: map[string]string{"app": "lone"}}}
	pods := kindOf(t, lone)
	out := project(t, pods, lone, placement.Share{Replicas: 1})
	if got := pods.PodOf(out); len(got.Labels) != 1 || len(got.Annotations) > 0 {
		t.Errorf("labels %v, annotations %v, want the user's alone", got.Labels, got.Annotations)
	}
	if got := kindOf(t, &corev1.Secret{}).PodOf(&corev1.Secret{}); got != nil {
		t.Errorf("a Secret leads to %v", got)
	}
}

func TestWhatMakesPods(t *testing.T) {
	deployment := func(replicas int32, image string) Object {
		d := &appsv1.Deployment{Spec: appsv1.DeploymentSpec{Replicas: &replicas}}
		d.Spec.Template.Spec.Containers = []corev1.Container{{Name: "app", Image: image}}
		return d
	}
	set := func(start, replicas int32) Object {
		return &appsv1.StatefulSet{Spec: appsv1.StatefulSetSpec{Replicas: &replicas, Ordinals: &appsv1.StatefulSetOrdinals{Start: start}}}
	}
	job := func(suspended bool) Object { return &batchv1.Job{Spec: batchv1.JobSpec{Suspend: ptr.To(suspended)}} }
	for name, test := range map[string]struct {
		desired, live Object
		want          bool
	}{
		"as many of the same":          {deployment(2, "a"), deployment(2, "a"), false},
		"fewer of the same":            {deployment(1, "a"), deployment(2, "a"), false},
		"more of the same":             {deployment(3, "a"), deployment(2, "a"), true},
		"fewer of others":              {deployment(1, "b"), deployment(2, "a"), true},
		"the end of a range":           {set(0, 1), set(0, 3), false},
		"the beginning of a range":     {set(1, 2), set(0, 3), false},
		"as many with other ordinals":  {set(1, 3), set(0, 3), true},
		"a Job that goes on":           {job(false), job(true), true},
		"a Job that is suspended":      {job(true), job(false), false},
		"a Job that stays what it was": {job(false), job(false), false},
		"a DaemonSet of another template": {
			&appsv1.DaemonSet{Spec: appsv1.DaemonSetSpec{Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{HostPID: true}}}}, &appsv1.DaemonSet{}, true,
		},
	} {
		if got := kindOf(t, test.live).MakesPods(test.desired, test.live); got != test.want {
			t.Errorf("%s: makes pods: %t, want %t", name, got, test.want)
		}
	}
}
