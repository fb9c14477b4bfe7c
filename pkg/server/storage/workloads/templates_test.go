package workloads

import (
	"cmp"
	"maps"
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/projection"
	"github.com/manifold-dev/manifold/pkg/server/storage/storagetest"
)

// marked returns an object of every kind with templates, with the label and annotation in every template and selector.
func marked(key, value string) map[string]projection.Object {
	pairs := map[string]string{key: value, "app": "web"}
	meta := metav1.ObjectMeta{Labels: pairs, Annotations: maps.Clone(pairs)}
	pods := corev1.PodSpec{Volumes: []corev1.Volume{{Name: "scratch", VolumeSource: corev1.VolumeSource{
		Ephemeral: &corev1.EphemeralVolumeSource{VolumeClaimTemplate: &corev1.PersistentVolumeClaimTemplate{ObjectMeta: meta}},
	}}}}
	template := corev1.PodTemplateSpec{ObjectMeta: meta, Spec: pods}
	selector := &metav1.LabelSelector{
		MatchLabels: pairs, MatchExpressions: []metav1.LabelSelectorRequirement{{Key: key, Operator: metav1.LabelSelectorOpExists}},
	}
	job := batchv1.JobSpec{Selector: selector, Template: template}
	return map[string]projection.Object{
		"Pod":                   &corev1.Pod{ObjectMeta: meta, Spec: pods},
		"Deployment":            &appsv1.Deployment{ObjectMeta: meta, Spec: appsv1.DeploymentSpec{Selector: selector, Template: template}},
		"DaemonSet":             &appsv1.DaemonSet{ObjectMeta: meta, Spec: appsv1.DaemonSetSpec{Selector: selector, Template: template}},
		"ReplicaSet":            &appsv1.ReplicaSet{ObjectMeta: meta, Spec: appsv1.ReplicaSetSpec{Selector: selector, Template: template}},
		"Job":                   &batchv1.Job{ObjectMeta: meta, Spec: job},
		"CronJob":               &batchv1.CronJob{ObjectMeta: meta, Spec: batchv1.CronJobSpec{JobTemplate: batchv1.JobTemplateSpec{ObjectMeta: meta, Spec: job}}},
		"ReplicationController": &corev1.ReplicationController{ObjectMeta: meta, Spec: corev1.ReplicationControllerSpec{Selector: pairs, Template: &template}},
		"StatefulSet": &appsv1.StatefulSet{ObjectMeta: meta, Spec: appsv1.StatefulSetSpec{
			Selector: selector, Template: template, VolumeClaimTemplates: []corev1.PersistentVolumeClaim{{ObjectMeta: meta}},
		}},
	}
}

func TestUsersWriteNoMarksIntoTemplates(t *testing.T) {
	const key = v1alpha1.LabelOrphan
	template := func(under string) []string {
		return []string{under + "template.metadata.labels[" + key + "]", under + "template.metadata.annotations[" + key + "]",
			under + "template.spec.volumes[0].ephemeral.volumeClaimTemplate.metadata.labels[" + key + "]",
			under + "template.spec.volumes[0].ephemeral.volumeClaimTemplate.metadata.annotations[" + key + "]"}
	}
	selected := func(under string) []string {
		return append([]string{under + "selector.matchLabels[" + key + "]", under + "selector.matchExpressions[0].key"}, template(under)...)
	}
	want := map[string][]string{
		"Pod": {"spec.volumes[0].ephemeral.volumeClaimTemplate.metadata.labels[" + key + "]",
			"spec.volumes[0].ephemeral.volumeClaimTemplate.metadata.annotations[" + key + "]"},
		"Deployment": selected("spec."), "DaemonSet": selected("spec."), "ReplicaSet": selected("spec."), "Job": selected("spec."),
		"ReplicationController": append([]string{"spec.selector[" + key + "]"}, template("spec.")...),
		"CronJob": append([]string{"spec.jobTemplate.metadata.labels[" + key + "]", "spec.jobTemplate.metadata.annotations[" + key + "]"},
			selected("spec.jobTemplate.spec.")...),
		"StatefulSet": append(selected("spec."), "spec.volumeClaimTemplates[0].metadata.labels["+key+"]",
			"spec.volumeClaimTemplates[0].metadata.annotations["+key+"]"),
	}
	jane, _ := storagetest.As(t, "jane")
	manifold, _ := storagetest.As(t, v1alpha1.SummaryUser)
	for name, obj := range marked(key, "true") {
		fields := func(old projection.Object) (out []string) {
			for _, err := range validateTemplates(jane, obj, old) {
				out = append(out, err.Field)
			}
			return out
		}
		if got := fields(nil); !slices.Equal(got, want[name]) {
			t.Errorf("%s is refused for %v, want %v", name, got, want[name])
		}
		if got := fields(marked(key, "true")[name]); len(got) > 0 {
			t.Errorf("a %s that was stored like that cannot be changed: %v", name, got)
		}
		if got, want := fields(marked(v1alpha1.AnnotationClusters, "east")[name]), want[name]; !slices.Equal(got, want) {
			t.Errorf("an update of a %s is refused for %v, want %v", name, got, want)
		}
		if errs := validateTemplates(manifold, obj, nil); len(errs) > 0 {
			t.Errorf("Manifold cannot write a %s that shows one below: %v", name, errs)
		}
	}
	for name, obj := range marked(v1alpha1.AnnotationClusters, "east") {
		if errs := validateTemplates(jane, obj, nil); len(errs) > 0 {
			t.Errorf("a %s is refused for a key that users write: %v", name, errs)
		}
	}
}

func TestAPodCallsOneOfTwoAPIs(t *testing.T) {
	const key = "metadata.annotations[" + v1alpha1.AnnotationAPI + "]"
	paths := map[string]string{"Pod": key, "CronJob": "spec.jobTemplate.spec.template." + key}
	jane, _ := storagetest.As(t, "jane")
	for name, obj := range marked(v1alpha1.AnnotationAPI, "both") {
		want := cmp.Or(paths[name], "spec.template."+key)
		errs := validateTemplates(jane, obj, nil)
		if len(errs) != 1 || errs[0].Field != want || errs[0].Type != field.ErrorTypeNotSupported {
			t.Errorf("%s is refused for %v, want %s", name, errs, want)
		}
		if errs := validateTemplates(jane, obj, obj); len(errs) > 0 {
			t.Errorf("a %s that was stored like that cannot be changed: %v", name, errs)
		}
		for _, value := range []string{v1alpha1.APILogical, v1alpha1.APICluster} {
			if errs := validateTemplates(jane, marked(v1alpha1.AnnotationAPI, value)[name], nil); len(errs) > 0 {
				t.Errorf("a %s that calls the API of the %s is refused: %v", name, value, errs)
			}
		}
	}
}
