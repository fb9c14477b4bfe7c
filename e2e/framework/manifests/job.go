package manifests

import (
	"fmt"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
)

// Job is a Job of so many completions, at so many at a time.
func Job(name string, completions, parallelism int32, edits ...func(*batchv1.Job)) string {
	job := batchv1.Job{
		TypeMeta:   metav1.TypeMeta{APIVersion: "batch/v1", Kind: "Job"},
		ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{}},
		Spec: batchv1.JobSpec{
			Completions: &completions, Parallelism: &parallelism,
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": name}, Annotations: map[string]string{}},
				Spec: corev1.PodSpec{
					RestartPolicy: corev1.RestartPolicyNever, TerminationGracePeriodSeconds: ptr.To[int64](1),
					Containers: []corev1.Container{{Name: "sum", Image: "sum:1"}},
				},
			},
		},
	}
	for _, edit := range edits {
		edit(&job)
	}
	data, err := yaml.Marshal(&job)
	if err != nil {
		panic(err)
	}
	return string(data)
}

// JobOn pins a Job.
func JobOn(clusters string) func(*batchv1.Job) {
	return func(job *batchv1.Job) { job.Annotations[v1alpha1.AnnotationClusters] = clusters }
}

// Outcome says what becomes of the pods: "fail" or "stay".
func Outcome(of string) func(*batchv1.Job) {
	return func(job *batchv1.Job) { job.Spec.Template.Annotations[OutcomeKey] = of }
}

// OutcomeKey is what stock clusters make of a Job's pod otherwise than to complete it: see hack/stock/kwok.yaml.
const OutcomeKey = "kwok.x-k8s.io/outcome"

// Retries is how many pods of a Job may fail before it does.
func Retries(n int32) func(*batchv1.Job) {
	return func(job *batchv1.Job) { job.Spec.BackoffLimit = &n }
}

// CronJob is a CronJob whose Jobs run in cluster east. Further fields of its spec follow.
func CronJob(name, outcome, further string) string {
	return fmt.Sprintf(`
apiVersion: batch/v1
kind: CronJob
metadata:
  name: %[1]s
spec:
  schedule: "* * * * *"
  jobTemplate:
    metadata:
      annotations:
        %[2]s: east
    spec:
      template:
        metadata:
          labels:
            app: %[1]s
          annotations:
            %[3]s: "%[4]s"
        spec:
          restartPolicy: Never
          terminationGracePeriodSeconds: 1
          containers:
          - name: sum
            image: sum:1
%[5]s`, name, v1alpha1.AnnotationClusters, OutcomeKey, outcome, further)
}
