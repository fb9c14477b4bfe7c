package views

import (
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/kubernetes/pkg/apis/batch"
	_ "k8s.io/kubernetes/pkg/apis/batch/install" // what is seen is converted
)

func cronJob(name string, pairs ...string) *batch.CronJob {
	out := &batch.CronJob{ObjectMeta: annotated(pairs...), Spec: batch.CronJobSpec{Schedule: "* * * * *"}}
	out.Name = name
	return out
}

func TestTheJobsOfACronJobRunWhereItWasWritten(t *testing.T) {
	s, m := stored(t, "cronjobs", cronJob("common"), cronJob("theirs", view, "west", pin, "west"))
	m.list = func() runtime.Object { return &batch.CronJobList{} }
	east := seenBy(t, "east")
	if _, err := s.Create(east, cronJob("tick"), all, nil); err != nil {
		t.Fatal(err)
	}
	pinned := func() string {
		got := m.objects["tick"].(*batch.CronJob)
		return got.Annotations[view] + " " + got.Spec.JobTemplate.Annotations[pin]
	}
	if pinned() != "east east" {
		t.Errorf("it is stored as of %s", pinned())
	}
	if _, err := update(east, s, "tick", func(obj runtime.Object) {
		cron := obj.(*batch.CronJob)
		cron.Spec.Schedule, cron.Spec.JobTemplate.Annotations, cron.Annotations = "@hourly", nil, nil
	}); err != nil || pinned() != "east east" || m.objects["tick"].(*batch.CronJob).Spec.Schedule != "@hourly" {
		t.Errorf("changed, it is stored as of %s, %v", pinned(), err)
	}
	away := func(obj runtime.Object) {
		metav1.SetMetaDataAnnotation(&obj.(*batch.CronJob).Spec.JobTemplate.ObjectMeta, pin, "west")
	}
	if _, err := update(east, s, "tick", away); !apierrors.IsInvalid(err) {
		t.Errorf("its Jobs are pinned elsewhere: %v", err)
	}
	made := cronJob("away")
	away(made)
	if _, err := s.Create(east, made, all, nil); !apierrors.IsInvalid(err) || m.objects["away"] != nil {
		t.Errorf("one is made whose Jobs are pinned elsewhere: %v", err)
	}
	if _, err := update(east, s, "common", func(runtime.Object) {}); !apierrors.IsForbidden(err) {
		t.Errorf("what all share is changed: %v", err)
	}
	for name, want := range map[string]func(error) bool{"theirs": apierrors.IsNotFound, "common": apierrors.IsForbidden} {
		if _, _, err := s.Delete(east, name, all, nil); !want(err) {
			t.Errorf("%s is deleted: %v", name, err)
		}
		if _, err := s.Create(east, cronJob(name), all, nil); !apierrors.IsAlreadyExists(err) {
			t.Errorf("%s is made: %v", name, err)
		}
	}
	if _, _, err := s.Delete(east, "tick", all, nil); err != nil || m.objects["tick"] != nil {
		t.Errorf("it is not deleted: %v", err)
	}
}
