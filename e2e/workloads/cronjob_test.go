package workloads

import (
	"fmt"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/manifold-dev/manifold/e2e/framework"
	"github.com/manifold-dev/manifold/e2e/framework/expect"
	"github.com/manifold-dev/manifold/e2e/framework/manifests"
)

func TestAJobIsMadeOfACronJobByHand(t *testing.T) {
	framework.Long(t)
	s := suite.Scenario(t)
	s.Logical.Apply(manifests.CronJob("nightly", "", "  suspend: true\n"))
	s.Logical.Kubectl("create", "job", "now", "--from=cronjob/nightly")
	s.Logical.Kubectl("wait", "job/now", "--for=condition=complete", "--timeout=60s")
	job := framework.Await(s.Logical, "now", "is complete", expect.JobIs(batchv1.JobComplete))
	if owner := metav1.GetControllerOf(job); owner == nil || owner.Kind != "CronJob" {
		t.Errorf("it belongs to %v, want the CronJob", owner)
	}
	framework.Await(s.East, "now", "ran where the template says", expect.JobIs(batchv1.JobComplete))
	s.Logical.Kubectl("delete", "cronjob", "nightly", "--timeout=60s")
	for _, side := range []*framework.Side{s.Logical, s.East} {
		framework.AwaitGone[*batchv1.Job](side, "now")
		framework.AwaitList(side, "app=nightly", "the pods went along", count(0))
	}
}

// TestACronJobRunsAbove waits for the next minute.
func TestACronJobRunsAbove(t *testing.T) {
	s := suite.Scenario(t)
	const often = "  timeZone: Europe/Berlin\n  concurrencyPolicy: Forbid\n"
	s.Logical.Apply(manifests.CronJob("kept", "", often))
	s.Logical.Apply(manifests.CronJob("forgotten", "", often+"  successfulJobsHistoryLimit: 0\n"))
	s.Logical.Apply(manifests.CronJob("long", "stay", often))
	above := s.Logical.Within(2 * time.Minute)
	ran := func(c *batchv1.CronJob) bool { return c.Status.LastSuccessfulTime != nil && len(c.Status.Active) == 0 }

	framework.Await(above, "kept", "has run", ran)
	done := func(jobs []*batchv1.Job) bool { return len(jobs) > 0 && expect.JobIs(batchv1.JobComplete)(jobs[0]) }
	for _, side := range []*framework.Side{above, s.East} {
		framework.AwaitList(side, "app=kept", "its Job is kept", done)
	}
	framework.Await(above, "forgotten", "has run", ran)
	for _, side := range []*framework.Side{above, s.East} {
		framework.AwaitList(side, "app=forgotten", "its Job is gone", func(jobs []*batchv1.Job) bool { return len(jobs) == 0 })
		framework.AwaitList(side, "app=forgotten", "the pods went along", count(0))
	}
	framework.Await(above, "long", "has a Job that runs", func(c *batchv1.CronJob) bool { return len(c.Status.Active) == 1 })
	framework.AwaitList(above, "app=long", "its pod runs", expect.ReadyPods(1))
	letFinish(s.East, "app=long")
	framework.Await(above, "long", "has run", ran)
}

// TestCronJobsHeedWhatStillRuns waits for two minutes to begin.
func TestCronJobsHeedWhatStillRuns(t *testing.T) {
	framework.Long(t)
	s := suite.Scenario(t)
	for _, policy := range []string{"Replace", "Forbid", "Allow"} {
		s.Logical.Apply(manifests.CronJob(strings.ToLower(policy), "stay", "  concurrencyPolicy: "+policy+"\n"))
	}
	above, east := s.Logical.Within(3*time.Minute), s.East.Within(3*time.Minute)
	first := framework.AwaitList(above, "app=replace", "one Job runs", runningJobs(1))[0]
	framework.AwaitList(east, "app=replace", "its pod runs", expect.ReadyPods(1))

	framework.AwaitList(above, "app=replace", "another has taken its place", func(jobs []*batchv1.Job) bool {
		return runningJobs(1)(jobs) && jobs[0].Name != first.Name
	})
	framework.AwaitGone[*batchv1.Job](east, first.Name)
	framework.AwaitList(east, "app=replace", "the pod of the other runs alone", func(pods []*corev1.Pod) bool {
		return expect.ReadyPods(1)(pods) && pods[0].Labels[batchv1.JobNameLabel] != first.Name
	})
	framework.AwaitList(above, "app=allow", "two run beside each other", runningJobs(2))
	framework.AwaitList(east, "app=allow", "both pods run", expect.ReadyPods(2))
	s.Logical.Poll("it is told that one runs still", func() error {
		return framework.Contains(s.Logical.Kubectl("describe", "cronjob", "forbid"), "JobAlreadyActive")
	})
	framework.AwaitList(above, "app=forbid", "one runs", runningJobs(1))

	s.Logical.Kubectl("patch", "cronjob", "allow", "-p", `{"spec":{"suspend":true}}`)
	letFinish(s.East, "app=allow")
	framework.Await(above, "allow", "nothing runs", func(c *batchv1.CronJob) bool { return len(c.Status.Active) == 0 && c.Status.LastSuccessfulTime != nil })
	for _, side := range []*framework.Side{s.Logical, s.East} {
		framework.AwaitList(side, "app=allow", "what has run is kept", func(jobs []*batchv1.Job) bool { return len(jobs) == 2 })
	}
	s.Logical.Kubectl("delete", "cronjob", "--all", "--timeout=60s")
	for _, side := range []*framework.Side{s.Logical, s.East} {
		framework.AwaitList(side, "", "all Jobs went along", func(jobs []*batchv1.Job) bool { return len(jobs) == 0 })
		framework.AwaitList(side, "", "and all pods", count(0))
	}
}

// runningJobs claims that there are that many Jobs, that each runs a pod, and that none is about to go.
func runningJobs(n int) func([]*batchv1.Job) bool {
	return func(jobs []*batchv1.Job) bool {
		for _, job := range jobs {
			if job.Status.Active != 1 || job.DeletionTimestamp != nil {
				return false
			}
		}
		return len(jobs) == n
	}
}

// TestJobsOfOneNameFollowEachOther does what hooks of Helm do.
func TestJobsOfOneNameFollowEachOther(t *testing.T) {
	framework.Long(t)
	s := suite.Scenario(t)
	seen := map[string]bool{}
	for i := range 4 {
		image := fmt.Sprintf("migrate:%d", i)
		s.Logical.KubectlInput(manifests.Job("migrate", 1, 1, manifests.JobOn("east,west"), func(job *batchv1.Job) {
			job.Spec.Template.Spec.Containers[0].Image = image
		}), "create", "-f", "-")
		s.Logical.Kubectl("wait", "job/migrate", "--for=condition=complete", "--timeout=60s")
		job := framework.Await(s.Logical, "migrate", "is complete", expect.JobIs(batchv1.JobComplete))
		if seen[string(job.UID)] || job.Spec.Template.Spec.Containers[0].Image != image || job.Status.Succeeded != 1 {
			t.Errorf("the Job of %s is %+v", image, job.Status)
		}
		seen[string(job.UID)] = true
		pods := framework.AwaitList(s.Logical, "batch.kubernetes.io/job-name=migrate", "its pod is shown", func(pods []*corev1.Pod) bool {
			return len(pods) == 1 && pods[0].Status.Phase == corev1.PodSucceeded && pods[0].Spec.Containers[0].Image == image
		})
		expect.Says(t, s.Logical.Kubectl("logs", "job/migrate"), "started image "+image)
		s.Logical.Kubectl("delete", "job", "migrate", "--timeout=60s")
		framework.AwaitGone[*corev1.Pod](s.Logical, pods[0].Name)
	}
	for _, side := range []*framework.Side{s.East, s.West} {
		framework.AwaitGone[*batchv1.Job](side, "migrate")
	}
}
