package workloads

import (
	"testing"

	batchv1 "k8s.io/api/batch/v1"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/e2e/framework"
	"github.com/manifold-dev/manifold/e2e/framework/expect"
	"github.com/manifold-dev/manifold/e2e/framework/manifests"
	"github.com/manifold-dev/manifold/e2e/framework/membership"
	"github.com/manifold-dev/manifold/pkg/summary"
)

func TestARemovedClusterIsLeftWhenItsJobsHaveEnded(t *testing.T) {
	framework.Long(t)
	s := suite.Fragile(t)
	membership.Join(s, "north")
	north := s.Side("north")
	s.Logical.Apply(manifests.Job("past", 1, 1, manifests.JobOn("north")), manifests.Job("sums", 2, 2, manifests.JobOn("north"), manifests.Outcome("stay")))
	past := framework.Await(s.Logical, "past", "is complete", expect.JobIs(batchv1.JobComplete))
	framework.Await(s.Logical, "sums", "runs", runs(2))

	expect.Refused(t, s.Logical.TryCLI("cluster", "remove", "north", "--timeout=3s"), "is not removed", "Job "+s.Namespace+"/sums")
	framework.Await(s.Logical, "sums", "runs on", runs(2))
	letFinish(north, "app=sums")
	s.Logical.Kubectl("wait", "job/sums", "--for=condition=complete", "--timeout=60s")
	expect.Says(t, s.Logical.CLI("cluster", "remove", "north", "--cluster-kubeconfig", north.Kubeconfig, "--timeout=60s"), "cluster/north removed")

	framework.Await(s.Logical, "past", "is as complete as it was", func(job *batchv1.Job) bool {
		return expect.JobIs(batchv1.JobComplete)(job) && job.Status.CompletionTime.Equal(past.Status.CompletionTime) && job.Status.Succeeded == 1
	})
	for _, name := range []string{"past", "sums"} {
		s.Logical.Kubectl("delete", "job", name, "--timeout=60s")
	}
}

func TestASilentClusterNeitherCompletesNorFailsAJob(t *testing.T) {
	s := suite.Fragile(t)
	s.Logical.Apply(`
apiVersion: manifold.dev/v1alpha1
kind: PlacementPolicy
metadata:
  name: jobs
spec:
  workloads:
    kinds: [Job]
  division:
    type: Divide
    by: Even
`)
	s.Logical.Poll("the policy is followed", func() error {
		return framework.Failure(s.Logical.TryInput(manifests.Job("probe", 2, 2), "apply", "--dry-run=server", "-f", "-"))
	})
	s.Logical.Apply(manifests.Job("sums", 4, 2, manifests.Outcome("stay")))
	job := framework.Await(s.Logical, "sums", "runs", runs(2))
	if len(framework.DecisionOf(s, job)) != 2 {
		t.Fatalf("it is not divided: %s", framework.DecisionOf(s, job))
	}
	west := s.Environment.Clusters["west"]
	if err := west.PauseAll(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = west.ResumeAll() })
	silent := func(job *batchv1.Job) bool {
		breakdown, err := summary.ParseBreakdown(job.Annotations[v1alpha1.AnnotationStatus])
		return err == nil && breakdown["west"].Stale
	}
	framework.Await(s.Logical, "sums", "is told to be silent in west", silent)
	for done := int32(1); done <= 2; done++ {
		framework.Await(s.East, "sums", "works on its part", runs(1))
		letFinish(s.East, "app=sums")
		framework.Await(s.Logical, "sums", "gets on in east", func(job *batchv1.Job) bool { return job.Status.Succeeded == done })
	}
	framework.Await(s.East, "sums", "is complete", expect.JobIs(batchv1.JobComplete))
	job = framework.Await(s.Logical, "sums", "counts west as last heard", func(job *batchv1.Job) bool { return silent(job) && job.Status.Active == 1 })
	if expect.JobIs(batchv1.JobComplete)(job) || expect.JobIs(batchv1.JobFailed)(job) || expect.JobIs(batchv1.JobFailureTarget)(job) || expect.JobIs(batchv1.JobSuccessCriteriaMet)(job) {
		t.Errorf("conditions %+v, want none of an end", job.Status.Conditions)
	}
	if err := west.ResumeAll(); err != nil {
		t.Fatal(err)
	}
	for done := int32(1); done <= 2; done++ {
		framework.Await(s.West, "sums", "works on its part", runs(1))
		letFinish(s.West, "app=sums")
		framework.Await(s.West, "sums", "gets on", func(job *batchv1.Job) bool { return job.Status.Succeeded == done })
	}
	s.Logical.Kubectl("wait", "job/sums", "--for=condition=complete", "--timeout=60s")
}
