package delivery

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/e2e/framework"
	"github.com/manifold-dev/manifold/e2e/framework/expect"
	"github.com/manifold-dev/manifold/e2e/framework/manifests"
)

// runsOf are the Jobs of an application's releases, by the names of their runs.
func runsOf(s *framework.Scenario) map[string]batchv1.Job {
	s.Helper()
	var all batchv1.JobList
	if err := json.Unmarshal([]byte(s.Logical.Kubectl("get", "jobs", "-l", v1alpha1.LabelApplication+"=web", "-o", "json")), &all); err != nil {
		s.Fatal(err)
	}
	out := map[string]batchv1.Job{}
	for _, job := range all.Items {
		out[job.Annotations["delivery.manifold.dev/script"]] = job
	}
	return out
}

// metric is one of a stage, by its name.
func metric(of v1alpha1.StageStatus, name string) v1alpha1.MetricStatus {
	for _, m := range of.Metrics {
		if m.Name == name {
			return m
		}
	}
	return v1alpha1.MetricStatus{}
}

// measuredByJobs are a stage that measures by Jobs, with further fields and options if they end in a comma, and a rollout.
func measuredByJobs(fields, options string, jobs ...string) []string {
	return []string{
		fmt.Sprintf("{name: ANALYSIS, id: measure, %s with: {%s jobs: [%s]}}", fields, options, strings.Join(jobs, ", ")), "{name: K8S_PRIMARY_ROLLOUT, id: primary}",
	}
}

func TestAReleaseIsMeasuredByJobs(t *testing.T) {
	framework.Long(t)
	s := suite.Scenario(t)
	s.Logical.Kubectl("create", "serviceaccount", "prober")
	stages := func(first string) []string {
		return measuredByJobs("", "duration: 40s,", first, `{image: "tools:1", args: [load, $(SR_DEPLOYMENT_ID)], interval: 1s}`)
	}
	releases(s, stages(`{image: "tools:1", run: smoke, env: {DEPTH: "3"}, serviceAccountName: prober, timeout: 1m, backoffLimit: 1}`))
	good := awaitPhase(s, "web-v2", v1alpha1.ReleaseSucceeded)
	measured := stage(good, "measure")
	if once, repeated := metric(measured, "jobs-0"), metric(measured, "jobs-1"); once.Checks != 1 || once.Failures != 0 || repeated.Checks < 2 || repeated.Failures != 0 {
		t.Errorf("measured is %+v", measured.Metrics)
	}
	runs := runsOf(s)
	smoke := runs["measure-0/jobs-0/0"]
	pod := smoke.Spec.Template.Spec
	if pod.ServiceAccountName != "prober" || variable(smoke, "DEPTH") != "3" || variable(smoke, "SR_DEPLOYMENT_ID") != good.Name || *smoke.Spec.ActiveDeadlineSeconds != 60 || *smoke.Spec.BackoffLimit != 1 {
		t.Errorf("it is measured by %+v", smoke.Spec)
	}
	if account := s.Logical.Kubectl("get", "pods", "-l", batchv1.JobNameLabel+"="+smoke.Name, "-o", "jsonpath={.items[*].spec.serviceAccountName}"); account != "prober" {
		t.Errorf("it is measured in a pod as %q", account)
	}
	s.Logical.Poll("of the Jobs that measure again and again the last ones are left", func() error {
		var numbers []string
		for name := range runsOf(s) {
			if strings.HasPrefix(name, "measure-0/jobs-1/") {
				numbers = append(numbers, name)
			}
		}
		if most := min(5, int(metric(measured, "jobs-1").Checks)); len(numbers) != most {
			return fmt.Errorf("%d are left, want %d: %v", len(numbers), most, numbers)
		}
		return nil
	})
	s.Logical.Poll("the log has what was measured", func() error {
		return framework.Contains(s.Logical.CLI("release", "logs", good.Name, "--stage", "measure"), "jobs-0: 1 measurements, 0 of them bad", "measurement 1 of jobs-0 has written", "measurement 2 of jobs-1 has written")
	})

	// What exits with 1 fails in stock clusters, too.
	s.Logical.Apply(stagedApp("web:3", stages(`{image: "tools:1", run: exit 1}`)))
	bad := awaitPhase(s, "web-v3", v1alpha1.ReleaseRolledBack)
	expect.Says(t, stage(bad, "measure").Message, "metric jobs-0 was bad 1 times, and may be 0 times: the Job has failed")
	expect.AwaitRuns(s, "web", map[string]string{"east": "1 of web:2"})
	awaitNoPods(s)
}

func TestAJobThatTakesTooLongIsABadMeasurement(t *testing.T) {
	framework.Long(t)
	s := suite.Scenario(t)
	releases(s, measuredByJobs("", "duration: 1m,", fmt.Sprintf(`{image: "%s", run: sleep 1000, timeout: 3s, interval: 1s, failureLimit: 1}`, stays)))
	failed := awaitPhase(s, "web-v2", v1alpha1.ReleaseRolledBack)
	expect.Says(t, stage(failed, "measure").Message, "metric jobs-0 was bad 2 times, and may be 1 times", "not ended within 3s")
	awaitNoPods(s)
}

func TestAJobThatMeasuresEndsWithItsStage(t *testing.T) {
	framework.Long(t)
	for name, test := range map[string]struct {
		fields, options string
		order           []string
		phase           v1alpha1.ReleasePhase
	}{
		"cancelled":    {options: "duration: 1h,", order: []string{"cancel"}, phase: v1alpha1.ReleaseCancelled},
		"skipped":      {order: []string{"skip", "--stage", "measure"}, phase: v1alpha1.ReleaseSucceeded},
		"rolled back":  {order: []string{"cancel", "--rollback"}, phase: v1alpha1.ReleaseRolledBack},
		"out of time":  {fields: "timeout: 6s,", phase: v1alpha1.ReleaseRolledBack},
		"failed alone": {options: `duration: 1m, https: [{url: "http://127.0.0.1:1", expectedCode: 200, interval: 4s}],`, phase: v1alpha1.ReleaseRolledBack},
	} {
		t.Run(name, func(t *testing.T) {
			s := suite.Scenario(t)
			releases(s, measuredByJobs(test.fields, test.options, fmt.Sprintf(`{image: "%s", run: sleep 1000}`, stays)))
			running := awaitStage(s, "web-v2", "measure", v1alpha1.StageRunning)
			s.Logical.Poll("its Job is there", func() error {
				if len(runsOf(s)) == 0 && len(test.order) > 0 {
					return errors.New("it is not")
				}
				return nil
			})
			if len(test.order) > 0 {
				s.Logical.CLI(append([]string{"release", test.order[0], running.Name}, test.order[1:]...)...)
			}
			awaitPhase(s, "web-v2", test.phase)
			awaitNoPods(s)
			s.Logical.Poll("no Job is left", func() error {
				if left := runsOf(s); len(left) > 0 {
					return fmt.Errorf("left are %v", left)
				}
				return nil
			})
		})
	}
}

// The Job ends while nobody looks.
func TestAMeasurementIsTakenOnceThoughTheServerIsKilled(t *testing.T) {
	framework.Long(t)
	s := suite.Fragile(t)
	releases(s, measuredByJobs("", "", fmt.Sprintf(`{image: "%s", run: measure}`, stays)))
	awaitStage(s, "web-v2", "measure", v1alpha1.StageRunning)
	const first = "measure-0/jobs-0/0"
	var pods string
	s.Logical.Poll("its pod runs", func() error {
		pods = s.Logical.Kubectl("get", "pods", "-l", batchv1.JobNameLabel, "-o", "jsonpath={.items[*].metadata.uid} {.items[*].status.phase}")
		if !strings.HasSuffix(pods, "Running") || len(strings.Fields(pods)) != 2 {
			return fmt.Errorf("pods are %q", pods)
		}
		return nil
	})
	job := runsOf(s)[first]
	if err := s.Environment.Manifold.Kill(); err != nil {
		t.Fatal(err)
	}
	for _, side := range []*framework.Side{s.East, s.West} {
		for _, name := range strings.Fields(side.Kubectl("get", "pods", "-l", batchv1.JobNameLabel, "-o", "name")) {
			side.Kubectl("annotate", name, manifests.OutcomeKey+"=complete")
			side.Kubectl("wait", name, "--for=jsonpath={.status.phase}=Succeeded", "--timeout=30s")
		}
	}
	if err := s.Environment.Manifold.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	good := awaitPhase(s, "web-v2", v1alpha1.ReleaseSucceeded)
	if got := metric(stage(good, "measure"), "jobs-0"); got.Checks != 1 || got.Failures != 0 {
		t.Errorf("measured is %+v", got)
	}
	all := runsOf(s)
	if got := all[first]; len(all) != 1 || got.UID != job.UID {
		t.Errorf("measured was by %s, and by %d Jobs, of which one is %s, in the end", job.UID, len(all), got.UID)
	}
	if got := strings.Fields(s.Logical.Kubectl("get", "pods", "-l", batchv1.JobNameLabel, "-o", "jsonpath={.items[*].metadata.uid}")); !slices.Equal(got, strings.Fields(pods)[:1]) {
		t.Errorf("it has run in pods %v, and was %s", got, pods)
	}
}
