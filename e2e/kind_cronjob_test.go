package e2e

import (
	"fmt"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/manifold-dev/manifold/e2e/framework"
)

// cron is a CronJob whose Jobs run in cluster east. Further fields of its spec follow.
func cron(name, outcome, further string) string {
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
%[5]s`, name, pinKey, outcomeKey, outcome, further)
}

func TestAJobIsMadeOfACronJobByHand(t *testing.T) {
	s := scenario(t)
	s.Logical.Apply(cron("nightly", "", "  suspend: true\n"))
	s.Logical.Kubectl("create", "job", "now", "--from=cronjob/nightly")
	s.Logical.Kubectl("wait", "job/now", "--for=condition=complete", "--timeout=60s")
	job := framework.Await(s.Logical, "now", "is complete", jobIs(batchv1.JobComplete))
	if owner := metav1.GetControllerOf(job); owner == nil || owner.Kind != "CronJob" {
		t.Errorf("it belongs to %v, want the CronJob", owner)
	}
	framework.Await(s.East, "now", "ran where the template says", jobIs(batchv1.JobComplete))
	s.Logical.Kubectl("delete", "cronjob", "nightly", "--timeout=60s")
	for _, side := range []*framework.Side{s.Logical, s.East} {
		framework.AwaitGone[*batchv1.Job](side, "now")
		framework.AwaitList(side, "app=nightly", "the pods went along", count(0))
	}
}

// TestACronJobRunsAbove waits for the next minute.
func TestACronJobRunsAbove(t *testing.T) {
	s := scenario(t)
	const often = "  timeZone: Europe/Berlin\n  concurrencyPolicy: Forbid\n"
	s.Logical.Apply(cron("kept", "", often))
	s.Logical.Apply(cron("forgotten", "", often+"  successfulJobsHistoryLimit: 0\n"))
	s.Logical.Apply(cron("long", "stay", often))
	above := s.Logical.Within(2 * time.Minute)
	ran := func(c *batchv1.CronJob) bool { return c.Status.LastSuccessfulTime != nil && len(c.Status.Active) == 0 }

	framework.Await(above, "kept", "has run", ran)
	done := func(jobs []*batchv1.Job) bool { return len(jobs) > 0 && jobIs(batchv1.JobComplete)(jobs[0]) }
	for _, side := range []*framework.Side{above, s.East} {
		framework.AwaitList(side, "app=kept", "its Job is kept", done)
	}
	framework.Await(above, "forgotten", "has run", ran)
	for _, side := range []*framework.Side{above, s.East} {
		framework.AwaitList(side, "app=forgotten", "its Job is gone", func(jobs []*batchv1.Job) bool { return len(jobs) == 0 })
		framework.AwaitList(side, "app=forgotten", "the pods went along", count(0))
	}
	framework.Await(above, "long", "has a Job that runs", func(c *batchv1.CronJob) bool { return len(c.Status.Active) == 1 })
	framework.AwaitList(above, "app=long", "its pod runs", readyPods(1))
	letFinish(s.East, "app=long")
	framework.Await(above, "long", "has run", ran)
}
