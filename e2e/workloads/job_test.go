package workloads

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/e2e/framework"
	"github.com/manifold-dev/manifold/e2e/framework/expect"
	"github.com/manifold-dev/manifold/e2e/framework/manifests"
	"github.com/manifold-dev/manifold/pkg/summary"
)

func paused(job *batchv1.Job) { job.Spec.Suspend = ptr.To(true) }

func count(want int) func([]*corev1.Pod) bool {
	return func(pods []*corev1.Pod) bool { return len(pods) == want }
}

func runs(active int32) func(*batchv1.Job) bool {
	return func(job *batchv1.Job) bool {
		return job.Status.Active == active && ptr.Deref(job.Status.Ready, 0) == active
	}
}

// letFinish has the pods of a side that were to stay complete.
func letFinish(side *framework.Side, selector string) {
	side.Kubectl("annotate", "pods", "-l", selector, manifests.OutcomeKey+"-")
}

func TestAJobRunsToItsEnd(t *testing.T) {
	s := suite.Scenario(t)
	s.Logical.Apply(manifests.Job("sums", 3, 2, manifests.JobOn("east")))
	s.Logical.Kubectl("wait", "job/sums", "--for=condition=complete", "--timeout=60s")
	job := framework.Await(s.Logical, "sums", "is complete", expect.JobIs(batchv1.JobComplete))
	if job.Status.Succeeded != 3 || job.Status.Active != 0 || job.Status.Failed != 0 || job.Status.StartTime == nil || job.Status.CompletionTime == nil {
		t.Errorf("status %+v, want three pods that succeeded, and when", job.Status)
	}
	if c := expect.JobCondition(job, batchv1.JobComplete); c.Reason != batchv1.JobReasonCompletionsReached || !expect.JobIs(batchv1.JobSuccessCriteriaMet)(job) {
		t.Errorf("conditions %+v, want those of the Job controller", job.Status.Conditions)
	}
	expect.Says(t, s.Logical.Kubectl("get", "job", "sums"), "Complete", "3/3")
	expect.Says(t, s.Logical.Kubectl("describe", "job", "sums"), "3 Succeeded / 0 Failed", "SuccessfulCreate", "Completed")

	// The pods stay to be looked at, also by what selects them by the labels that the logical cluster has made.
	pods := framework.AwaitList(s.Logical, "batch.kubernetes.io/controller-uid="+string(job.UID), "the pods have succeeded", func(pods []*corev1.Pod) bool {
		return len(pods) == 3 && !slices.ContainsFunc(pods, func(p *corev1.Pod) bool { return p.Status.Phase != corev1.PodSucceeded })
	})
	for _, pod := range pods {
		if owner := metav1.GetControllerOf(pod); owner == nil || owner.UID != job.UID || len(pod.Finalizers) > 0 {
			t.Errorf("pod %s belongs to %v and has finalizers %v, want the Job and none", pod.Name, owner, pod.Finalizers)
		}
	}
	expect.Says(t, s.Logical.Kubectl("logs", "job/sums"), "sum")

	s.Logical.Kubectl("delete", "job", "sums", "--timeout=60s")
	for _, side := range []*framework.Side{s.Logical, s.East} {
		framework.AwaitGone[*batchv1.Job](side, "sums")
		framework.AwaitList(side, "app=sums", "the pods went along", count(0))
	}
}

func TestAJobThatFailsSaysSo(t *testing.T) {
	s := suite.Scenario(t)
	s.Logical.Apply(manifests.Job("sums", 1, 1, manifests.JobOn("east"), manifests.Outcome("fail"), manifests.Retries(0)))
	s.Logical.Kubectl("wait", "job/sums", "--for=condition=failed", "--timeout=60s")
	job := framework.Await(s.Logical, "sums", "has failed", expect.JobIs(batchv1.JobFailed))
	if c := expect.JobCondition(job, batchv1.JobFailed); c.Reason != batchv1.JobReasonBackoffLimitExceeded || c.Message != "Job has reached the specified backoff limit" {
		t.Errorf("condition %+v, want the Job controller's", c)
	}
	if job.Status.Failed != 1 || job.Status.CompletionTime != nil {
		t.Errorf("status %+v, want one failed pod and no time of completion", job.Status)
	}
	expect.Says(t, s.Logical.Kubectl("get", "pods"), "Error")
	expect.Says(t, s.Logical.Kubectl("describe", "job", "sums"), "BackoffLimitExceeded", "1 Failed")
}

func TestADeadlineEndsAJob(t *testing.T) {
	s := suite.Scenario(t)
	s.Logical.Apply(manifests.Job("sums", 1, 1, manifests.JobOn("east"), manifests.Outcome("stay"), func(job *batchv1.Job) { job.Spec.ActiveDeadlineSeconds = ptr.To[int64](1) }))
	s.Logical.Kubectl("wait", "job/sums", "--for=condition=failed", "--timeout=60s")
	job := framework.Await(s.Logical, "sums", "has failed", expect.JobIs(batchv1.JobFailed))
	if c := expect.JobCondition(job, batchv1.JobFailed); c.Reason != batchv1.JobReasonDeadlineExceeded {
		t.Errorf("condition %+v, want its deadline exceeded", c)
	}
}

func TestASuspendedJobWaits(t *testing.T) {
	framework.Long(t)
	s := suite.Scenario(t)
	s.Logical.Apply(manifests.Job("sums", 2, 2, manifests.JobOn("east"), paused))
	framework.Await(s.Logical, "sums", "is suspended", expect.JobIs(batchv1.JobSuspended))
	below := framework.Await(s.East, "sums", "is suspended", expect.JobIs(batchv1.JobSuspended))
	// What schedules Jobs says where their pods may run before it lets them.
	s.Logical.Kubectl("patch", "job", "sums", "-p",
		`{"spec":{"template":{"metadata":{"labels":{"queue":"night"}},"spec":{"tolerations":[{"key":"night","operator":"Exists"}]}}}}`)
	framework.Await(s.East, "sums", "has the toleration", func(job *batchv1.Job) bool {
		return job.UID == below.UID && slices.ContainsFunc(job.Spec.Template.Spec.Tolerations, func(t corev1.Toleration) bool { return t.Key == "night" })
	})
	s.Logical.Kubectl("patch", "job", "sums", "-p", `{"spec":{"suspend":false}}`)
	s.Logical.Kubectl("wait", "job/sums", "--for=condition=complete", "--timeout=60s")
	framework.AwaitList(s.Logical, "queue=night", "the pods are of the new template", count(2))
	job := framework.Await(s.Logical, "sums", "was resumed", expect.JobIs(batchv1.JobComplete))
	if c := expect.JobCondition(job, batchv1.JobSuspended); c.Status != corev1.ConditionFalse || c.Reason != "JobResumed" {
		t.Errorf("condition %+v, want it resumed", c)
	}
}

func TestAJobThatRunsIsSuspendedScaledAndResumed(t *testing.T) {
	framework.Long(t)
	s := suite.Scenario(t)
	s.Logical.Apply(manifests.Job("sums", 6, 1, manifests.JobOn("east"), manifests.Outcome("stay")))
	framework.Await(s.Logical, "sums", "runs", runs(1))
	below := framework.Await(s.East, "sums", "runs", runs(1))
	for _, parallelism := range []int32{3, 2} {
		s.Logical.Kubectl("patch", "job", "sums", "-p", fmt.Sprintf(`{"spec":{"parallelism":%d}}`, parallelism))
		framework.Await(s.Logical, "sums", fmt.Sprintf("has %d pods", parallelism), runs(parallelism))
	}
	s.Logical.Kubectl("patch", "job", "sums", "-p", `{"spec":{"suspend":true}}`)
	framework.Await(s.Logical, "sums", "is suspended", func(job *batchv1.Job) bool {
		return expect.JobIs(batchv1.JobSuspended)(job) && runs(0)(job) && job.Status.StartTime == nil
	})
	framework.AwaitList(s.Logical, "app=sums", "there are no pods", count(0))
	s.Logical.Kubectl("patch", "job", "sums", "-p", `{"spec":{"suspend":false}}`)
	framework.Await(s.Logical, "sums", "runs again", func(job *batchv1.Job) bool { return runs(2)(job) && job.Status.StartTime != nil })
	framework.Await(s.East, "sums", "is still the same", func(job *batchv1.Job) bool { return job.UID == below.UID })

	// It has started, and stays where it is.
	if result := s.Logical.Try("annotate", "job", "sums", v1alpha1.AnnotationClusters+"=west", "--overwrite"); !strings.Contains(result.Stderr, "stays where it was started") {
		t.Errorf("nobody says that the Job does not move: %s", result)
	}
	job := framework.Await(s.Logical, "sums", "is there", framework.Exists[*batchv1.Job])
	if got := framework.DecisionOf(s, job); len(got) != 1 || got["east"].Replicas == 0 {
		t.Errorf("a Job that has started is placed on %s", got)
	}
}

func TestAJobMadeAnewRunsAgain(t *testing.T) {
	framework.Long(t)
	s := suite.Scenario(t)
	first := manifests.Job("sums", 1, 1, manifests.JobOn("east"))
	s.Logical.Apply(first)
	s.Logical.Kubectl("wait", "job/sums", "--for=condition=complete", "--timeout=60s")
	before := framework.Await(s.East, "sums", "is complete", expect.JobIs(batchv1.JobComplete))
	s.Logical.KubectlInput(manifests.Job("sums", 2, 2, manifests.JobOn("east")), "replace", "--force", "-f", "-")
	s.Logical.Kubectl("wait", "job/sums", "--for=condition=complete", "--timeout=60s")
	framework.Await(s.East, "sums", "is another one", func(job *batchv1.Job) bool { return job.UID != before.UID && job.Status.Succeeded == 2 })
	framework.AwaitList(s.Logical, "app=sums", "its pods alone are there", count(2))
}

func TestEveryWayOfDeletingAJobEnds(t *testing.T) {
	framework.Long(t)
	s := suite.Scenario(t)
	for _, test := range []struct {
		how  []string
		left int
	}{
		{how: []string{"delete", "job", "sums", "--cascade=foreground"}},
		{how: []string{"delete", "job", "sums", "--cascade=background"}},
		// The stock default of the API itself, which many programs ask for without knowing, leaves the pods.
		{how: []string{"delete", "--raw", "/apis/batch/v1/namespaces/" + s.Namespace + "/jobs/sums"}, left: 2},
	} {
		s.Logical.Apply(manifests.Job("sums", 2, 2, manifests.JobOn("east"), manifests.Outcome("stay")))
		framework.Await(s.Logical, "sums", "runs", runs(2))
		framework.AwaitList(s.Logical, "app=sums", "the pods run", expect.ReadyPods(2))
		s.Logical.Kubectl(test.how...)
		for _, side := range []*framework.Side{s.Logical, s.East} {
			framework.AwaitGone[*batchv1.Job](side, "sums")
			framework.AwaitList(side, "app=sums", fmt.Sprintf("%d pods are left", test.left), func(pods []*corev1.Pod) bool {
				return len(pods) == test.left && !slices.ContainsFunc(pods, func(p *corev1.Pod) bool { return len(p.OwnerReferences) > 0 })
			})
		}
	}
}

func TestAFinishedJobGoesWhenItsTimeIsOver(t *testing.T) {
	framework.Long(t)
	s := suite.Scenario(t)
	s.Logical.Apply(manifests.Job("sums", 1, 1, manifests.JobOn("east"), func(job *batchv1.Job) { job.Spec.TTLSecondsAfterFinished = ptr.To[int32](1) }))
	framework.Await(s.East, "sums", "has no time of its own", func(job *batchv1.Job) bool { return job.Spec.TTLSecondsAfterFinished == nil })
	for _, side := range []*framework.Side{s.Logical, s.East} {
		framework.AwaitGone[*batchv1.Job](side, "sums")
		framework.AwaitList(side, "app=sums", "the pods went along", count(0))
	}
}

func TestAFinishedJobIsNotBegunAnew(t *testing.T) {
	framework.Long(t)
	s := suite.Scenario(t)
	s.Logical.Apply(manifests.Job("sums", 1, 1, manifests.JobOn("east")))
	s.Logical.Kubectl("wait", "job/sums", "--for=condition=complete", "--timeout=60s")
	above := framework.Await(s.Logical, "sums", "is complete", expect.JobIs(batchv1.JobComplete))
	s.East.Kubectl("delete", "job", "sums", "--timeout=60s")
	framework.AwaitList(s.Logical, "app=sums", "the pods are gone, as they are below", count(0))
	// Whatever is projected after it has come by it.
	s.Logical.Kubectl("annotate", "job", "sums", "note=read")
	s.Logical.Apply(manifests.Job("later", 1, 1, manifests.JobOn("east")))
	s.Logical.Kubectl("wait", "job/later", "--for=condition=complete", "--timeout=60s")
	if result := s.East.Try("get", "job", "sums"); result.Code == 0 {
		t.Errorf("the cluster has the finished Job again: %s", result.Stdout)
	}
	framework.Await(s.Logical, "sums", "is as complete as it was", func(job *batchv1.Job) bool {
		return job.Annotations["note"] == "read" && job.Status.Succeeded == 1 && job.Status.CompletionTime.Equal(above.Status.CompletionTime)
	})
}

func TestAJobOfAnotherControllerStaysAbove(t *testing.T) {
	s := suite.Scenario(t)
	s.Logical.Apply(manifests.Job("theirs", 1, 1, manifests.JobOn("east"), func(job *batchv1.Job) { job.Spec.ManagedBy = ptr.To("example.com/queue") }))
	s.Logical.Apply(manifests.Job("ours", 1, 1, manifests.JobOn("east")))
	s.Logical.Kubectl("wait", "job/ours", "--for=condition=complete", "--timeout=60s")
	if result := s.East.Try("get", "job", "theirs"); result.Code == 0 {
		t.Errorf("the cluster has it: %s", result.Stdout)
	}
	s.Logical.Kubectl("label", "job", "theirs", "seen=yes")
	job := framework.Await(s.Logical, "theirs", "is theirs to change", func(job *batchv1.Job) bool { return job.Labels["seen"] == "yes" })
	if len(job.Finalizers) > 0 || job.Annotations[v1alpha1.AnnotationPlacement] != "" || job.Annotations[v1alpha1.AnnotationStatus] != "" {
		t.Errorf("finalizers %v and annotations %v, want none of ours", job.Finalizers, job.Annotations)
	}
	// Its own controller says how it fares.
	s.Logical.Kubectl("patch", "job", "theirs", "--subresource=status", "--type=merge", "-p", `{"status":{"active":1}}`)
	s.Logical.Kubectl("delete", "job", "theirs", "--timeout=60s")
}

func TestAPolicyDividesJobsByName(t *testing.T) {
	framework.Long(t)
	s := suite.Scenario(t)
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
    by: Weights
    weights: {east: 3, west: 1}
`)
	s.Logical.Poll("the policy is followed", func() error {
		got := s.Logical.KubectlInput(manifests.Job("probe", 4, 4), "apply", "--dry-run=server", "-f", "-", "-o", "jsonpath={.metadata.annotations['manifold\\.dev/placement']}")
		if got != `{"east":{"replicas":3},"west":{"replicas":1}}` {
			return fmt.Errorf("placed on %q", got)
		}
		return nil
	})
	sides := map[string]*framework.Side{"east": s.East, "west": s.West}

	t.Run("it is complete when every part is", func(t *testing.T) {
		s := s.Subtest(t)
		s.Logical.Apply(manifests.Job("sums", 10, 4, manifests.Outcome("stay")))
		framework.Await(s.Logical, "sums", "runs", runs(4))
		for cluster, want := range map[string][2]int32{"east": {8, 3}, "west": {2, 1}} {
			framework.Await(sides[cluster], "sums", fmt.Sprintf("has %d completions at %d", want[0], want[1]), func(job *batchv1.Job) bool {
				return *job.Spec.Completions == want[0] && *job.Spec.Parallelism == want[1]
			})
		}
		s.Logical.Kubectl("patch", "job", "sums", "-p", `{"spec":{"parallelism":8}}`)
		framework.Await(s.West, "sums", "has its part of more pods", runs(2))
		framework.Await(s.East, "sums", "has its part of more pods", runs(6))
		framework.Await(s.Logical, "sums", "runs", runs(8))
		letFinish(s.West, "app=sums")
		framework.Await(s.West, "sums", "is complete", expect.JobIs(batchv1.JobComplete))
		job := framework.Await(s.Logical, "sums", "has two completions", func(job *batchv1.Job) bool { return job.Status.Succeeded == 2 })
		if expect.JobIs(batchv1.JobComplete)(job) || expect.JobIs(batchv1.JobSuccessCriteriaMet)(job) {
			t.Errorf("it says that it is complete: %+v", job.Status)
		}
		for done := int32(0); done < 8; done = min(8, done+6) {
			framework.Await(s.East, "sums", "works on what is left", runs(min(6, 8-done)))
			letFinish(s.East, "app=sums")
			framework.Await(s.East, "sums", "gets on", func(job *batchv1.Job) bool { return job.Status.Succeeded == min(8, done+6) })
		}
		s.Logical.Kubectl("wait", "job/sums", "--for=condition=complete", "--timeout=60s")
		job = framework.Await(s.Logical, "sums", "is complete", expect.JobIs(batchv1.JobComplete))
		if job.Status.Succeeded != 10 || job.Status.Active != 0 {
			t.Errorf("status %+v, want ten completions", job.Status)
		}
		breakdown, err := summary.ParseBreakdown(job.Annotations[v1alpha1.AnnotationStatus])
		if err != nil || breakdown["east"].Succeeded != 8 || breakdown["west"].Ended != "Complete" {
			t.Errorf("breakdown %v, %v, want eight completions of east, and west complete", breakdown, err)
		}
	})
	t.Run("it fails when one part does, and all of it ends", func(t *testing.T) {
		s := s.Subtest(t)
		s.Logical.Apply(manifests.Job("broken", 8, 4, manifests.Outcome("stay"), manifests.Retries(1)))
		framework.Await(s.Logical, "broken", "runs", runs(4))
		s.West.Kubectl("annotate", "pods", "-l", "app=broken", manifests.OutcomeKey+"=fail", "--overwrite")
		framework.Await(s.West, "broken", "has failed once", func(job *batchv1.Job) bool { return job.Status.Failed == 1 })
		s.East.Kubectl("annotate", "pods", "-l", "app=broken", manifests.OutcomeKey+"=fail", "--overwrite")
		s.Logical.Kubectl("wait", "job/broken", "--for=condition=failed", "--timeout=60s")
		job := framework.Await(s.Logical, "broken", "has failed", expect.JobIs(batchv1.JobFailed))
		if c := expect.JobCondition(job, batchv1.JobFailed); c.Reason != batchv1.JobReasonBackoffLimitExceeded {
			t.Errorf("condition %+v, want the limit exceeded", c)
		}
		for _, side := range sides {
			framework.Await(side, "broken", "has ended", expect.JobIs(batchv1.JobFailed))
			framework.AwaitList(side, "app=broken", "nothing runs", func(pods []*corev1.Pod) bool {
				return !slices.ContainsFunc(pods, func(p *corev1.Pod) bool { return p.Status.Phase == corev1.PodRunning })
			})
		}
	})
	t.Run("an Indexed Job stays whole and says why", func(t *testing.T) {
		s := s.Subtest(t)
		s.Logical.Apply(manifests.Job("indexed", 4, 4, func(job *batchv1.Job) { job.Spec.CompletionMode = ptr.To(batchv1.IndexedCompletion) }))
		s.Logical.Kubectl("wait", "job/indexed", "--for=condition=complete", "--timeout=60s")
		job := framework.Await(s.Logical, "indexed", "is complete", expect.JobIs(batchv1.JobComplete))
		if job.Status.CompletedIndexes != "0-3" || len(framework.DecisionOf(s, job)) != 1 {
			t.Errorf("indexes %q on %s, want all in one cluster", job.Status.CompletedIndexes, framework.DecisionOf(s, job))
		}
		expect.Says(t, s.Logical.CLI("explain", "job/indexed"), "it is not divided", "counts its indexes from 0")
	})
}

func TestAPolicyRunsAJobInEveryCluster(t *testing.T) {
	framework.Long(t)
	s := suite.Scenario(t)
	s.Logical.Apply(`
apiVersion: manifold.dev/v1alpha1
kind: PlacementPolicy
metadata:
  name: everywhere
spec:
  workloads:
    kinds: [Job]
  division:
    type: Duplicate
`)
	s.Logical.Poll("the policy is followed", func() error {
		got := s.Logical.KubectlInput(manifests.Job("probe", 2, 2), "apply", "--dry-run=server", "-f", "-", "-o", "jsonpath={.metadata.annotations['manifold\\.dev/placement']}")
		if strings.Count(got, `"replicas":2`) != 2 {
			return fmt.Errorf("placed on %q", got)
		}
		return nil
	})
	s.Logical.Apply(manifests.Job("sums", 3, 2))
	s.Logical.Kubectl("wait", "job/sums", "--for=condition=complete", "--timeout=60s")
	for _, side := range []*framework.Side{s.East, s.West} {
		framework.Await(side, "sums", "ran whole", func(job *batchv1.Job) bool {
			return expect.JobIs(batchv1.JobComplete)(job) && job.Status.Succeeded == 3
		})
	}
	if job := framework.Await(s.Logical, "sums", "is complete", expect.JobIs(batchv1.JobComplete)); job.Status.Succeeded != 3 {
		t.Errorf("%d completions, want the three that were asked for", job.Status.Succeeded)
	}
}
