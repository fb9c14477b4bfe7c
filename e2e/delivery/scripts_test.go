package delivery

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/e2e/framework"
	"github.com/manifold-dev/manifold/e2e/framework/expect"
	"github.com/manifold-dev/manifold/e2e/framework/manifests"
)

// jobs are those of the scripts of an application, by what they run.
func jobs(s *framework.Scenario) map[string]batchv1.Job {
	s.Helper()
	var all batchv1.JobList
	if err := json.Unmarshal([]byte(s.Logical.Kubectl("get", "jobs", "-l", v1alpha1.LabelApplication+"=web", "-o", "json")), &all); err != nil {
		s.Fatal(err)
	}
	out := map[string]batchv1.Job{}
	for _, job := range all.Items {
		out[job.Spec.Template.Spec.Containers[0].Command[2]] = job
	}
	return out
}

func variable(job batchv1.Job, name string) string {
	for _, of := range job.Spec.Template.Spec.Containers[0].Env {
		if of.Name == name {
			return of.Value
		}
	}
	return ""
}

func TestScriptsRunInJobsAndAreTakenBack(t *testing.T) {
	s := suite.Scenario(t)
	s.Logical.Kubectl("create", "serviceaccount", "migrator")
	releases(s, []string{
		`{name: SCRIPT_RUN, id: migrate, with: {image: "tools:1", run: migrate up, onRollback: migrate down, env: {DB: shop}, serviceAccountName: migrator}}`,
		"{name: K8S_PRIMARY_ROLLOUT, id: primary}",
		// What exits with 1 fails in stock clusters, too.
		`{name: SCRIPT_RUN, id: check, with: {image: "tools:1", run: exit 1}}`,
	})
	failed := awaitPhase(s, "web-v2", v1alpha1.ReleaseRolledBack)
	for id, want := range map[string]v1alpha1.StagePhase{
		"migrate": v1alpha1.StageSucceeded, "primary": v1alpha1.StageSucceeded, "check": v1alpha1.StageFailed, "rollback": v1alpha1.StageSucceeded,
		"rollback-migrate": v1alpha1.StageSucceeded,
	} {
		if got := stage(failed, id); got.Phase != want {
			t.Errorf("stage %s is %s, want %s: %s", id, got.Phase, want, got.Message)
		}
	}
	expect.AwaitRuns(s, "web", map[string]string{"east": "1 of web:1"})
	got := jobs(s)
	if len(got) != 3 {
		t.Fatalf("there are %d jobs, want three: %v", len(got), got)
	}
	for script, undoes := range map[string]string{"migrate up": "false", "migrate down": "true"} {
		job := got[script]
		if pod := job.Spec.Template.Spec; pod.ServiceAccountName != "migrator" || variable(job, "DB") != "shop" || variable(job, "SR_IS_ROLLBACK") != undoes {
			t.Errorf("%q runs as %q with %v", script, pod.ServiceAccountName, pod.Containers[0].Env)
		}
		pods := s.Logical.Kubectl("get", "pods", "-l", batchv1.JobNameLabel+"="+job.Name, "-o", "jsonpath={.items[*].spec.serviceAccountName}")
		if pods != "migrator" {
			t.Errorf("%q has run in a pod as %q", script, pods)
		}
	}
	s.Logical.Poll("the log has what scripts have written", func() error {
		return framework.Contains(s.Logical.CLI("release", "logs", failed.Name, "--stage", "check"), "the script has failed", "the script has written")
	})
}

// stays is an image whose containers do not end in stock clusters.
const stays = "registry.example/pause:1"

// awaitNoPods waits until no pod of a script is left, here and in clusters.
func awaitNoPods(s *framework.Scenario) {
	s.Helper()
	for _, side := range []*framework.Side{s.Logical, s.East, s.West} {
		side.Poll("no pod of a script is left", func() error {
			var pods corev1.PodList
			result := side.Try("get", "pods", "-l", batchv1.JobNameLabel, "-o", "json")
			if err := framework.Failure(result); err != nil {
				return err
			}
			if err := json.Unmarshal([]byte(result.Stdout), &pods); err != nil {
				return err
			}
			for _, pod := range pods.Items {
				if pod.Status.Phase != corev1.PodFailed && pod.Status.Phase != corev1.PodSucceeded {
					return fmt.Errorf("%s is %s", pod.Name, pod.Status.Phase)
				}
			}
			return nil
		})
	}
}

func TestAScriptThatTakesTooLongIsEnded(t *testing.T) {
	framework.Long(t)
	s := suite.Scenario(t)
	releases(s, []string{fmt.Sprintf(`{name: SCRIPT_RUN, id: sleep, timeout: 5s, with: {image: "%s", run: sleep 1000}}`, stays), "{name: K8S_PRIMARY_ROLLOUT, id: primary}"})
	failed := awaitPhase(s, "web-v2", v1alpha1.ReleaseRolledBack)
	expect.Says(t, stage(failed, "sleep").Message, "not ended within 5s")
	awaitNoPods(s)
}

func TestAScriptEndsWithTheReleaseThatIsCancelled(t *testing.T) {
	framework.Long(t)
	s := suite.Scenario(t)
	releases(s, []string{fmt.Sprintf(`{name: SCRIPT_RUN, id: sleep, with: {image: "%s", run: sleep 1000, onRollback: wake}}`, stays), "{name: K8S_PRIMARY_ROLLOUT, id: primary}"})
	running := awaitStage(s, "web-v2", "sleep", v1alpha1.StageRunning)
	s.Logical.Poll("its pod runs", func() error {
		return framework.Contains(s.Logical.Kubectl("get", "pods", "-l", batchv1.JobNameLabel), "Running")
	})
	s.Logical.CLI("release", "cancel", running.Name)
	cancelled := awaitPhase(s, "web-v2", v1alpha1.ReleaseCancelled)
	expect.Says(t, stage(cancelled, "sleep").Message, "cancelled by")
	awaitNoPods(s)
	if got := jobs(s); len(got) != 0 {
		t.Errorf("jobs are left: %v", got)
	}
	expect.AwaitRuns(s, "web", map[string]string{"east": "1 of web:1"})
	if !strings.Contains(s.Logical.CLI("release", "logs", running.Name), "cancelled by") {
		t.Error("the log does not tell that the script was cancelled")
	}
}

func TestTheLogHasWhatAScriptHasWritten(t *testing.T) {
	framework.Long(t)
	s := suite.Scenario(t)
	releases(s, []string{fmt.Sprintf(`{name: SCRIPT_RUN, id: talk, with: {image: "%s", run: talk}}`, stays), "{name: K8S_PRIMARY_ROLLOUT, id: primary}"})
	running := awaitStage(s, "web-v2", "talk", v1alpha1.StageRunning)
	var pod string
	s.Logical.Poll("its pod runs", func() error {
		found := strings.Fields(s.Logical.Kubectl("get", "pods", "-l", batchv1.JobNameLabel, "-o", `jsonpath={.items[*].metadata.name} {.items[*].status.phase}`))
		if len(found) != 2 || found[1] != "Running" {
			return fmt.Errorf("pods are %v", found)
		}
		pod = found[0]
		return nil
	})
	s.Logical.KubectlInput("first \x1b[31mred\nat last\n", "attach", "-i", "-q", pod)
	for _, side := range []*framework.Side{s.East, s.West} {
		if name := side.Kubectl("get", "pods", "-l", batchv1.JobNameLabel, "-o", "name"); name != "" {
			side.Kubectl("annotate", strings.TrimSpace(name), manifests.OutcomeKey+"=complete")
		}
	}
	ended := awaitPhase(s, "web-v2", v1alpha1.ReleaseSucceeded)
	expect.Says(t, stage(ended, "talk").Message, "at last")
	s.Logical.Poll("the log has it", func() error {
		return framework.Contains(s.Logical.CLI("release", "logs", running.Name, "--stage", "talk"), "| first ^[[31mred", "| at last", "the script has written 3 lines")
	})
}
