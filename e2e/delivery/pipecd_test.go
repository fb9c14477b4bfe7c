package delivery

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/e2e/framework"
	"github.com/manifold-dev/manifold/e2e/framework/expect"
	"github.com/manifold-dev/manifold/pkg/delivery/source/git/gittest"
)

// prd is where the microservice is in its repository, as PipeCD's own document has it.
const prd = "microservice-a/prd"

// pipecdFile is an application file of two clusters, each with a folder of its own.
const pipecdFile = `apiVersion: pipecd.dev/v1beta1
kind: KubernetesApp
spec:
  name: web
  labels:
    env: prd
    team: product
  quickSync:
    prune: true
    multiTarget:
      - provider:
          name: east
        resourceDir: ./cluster-hoge
      - provider:
          name: west
        resourceDir: ./cluster-fuga
  service:
    name: web
  pipeline:
    stages:
      - name: K8S_MULTI_CANARY_ROLLOUT
        id: canary
        with:
          replicas: 1
          patches:
            - target:
                kind: Deployment
                name: web
              yamlOps:
                - op: yaml-replace
                  path: $.spec.template.spec.containers[0].image
                  value: web:patched
          multiTarget:
            - provider:
                name: east
              resourceDir: ./cluster-hoge
      - name: WAIT_APPROVAL
        id: agree
      - name: K8S_MULTI_PRIMARY_ROLLOUT
        id: primary
        with:
          createService: true
          multiTarget:
            - provider:
                name: east
              resourceDir: ./cluster-hoge
            - provider:
                name: west
              resourceDir: ./cluster-fuga
      - name: K8S_MULTI_CANARY_CLEAN
        id: clean
`

func serviceFile(name string) string {
	return fmt.Sprintf("apiVersion: v1\nkind: Service\nmetadata: {name: %s}\nspec: {selector: {app: web}, ports: [{port: 80}]}\n", name)
}

// microservice are the files of a repository: a base, and an overlay for each cluster, which runs an image of its own.
func microservice(file, version string) map[string]string {
	overlay := func(cluster string) string {
		return fmt.Sprintf("resources: [../base]\nimages: [{name: web, newTag: %s-%s}]\n", version, cluster)
	}
	return map[string]string{
		prd + "/app.pipecd.yaml":                 file,
		prd + "/kustomization.yaml":              "resources: [base]\n",
		prd + "/base/kustomization.yaml":         "resources: [deployment.yaml, service.yaml, old.yaml]\n",
		prd + "/base/deployment.yaml":            webDeployment("web:0", 1),
		prd + "/base/service.yaml":               serviceFile("web"),
		prd + "/base/old.yaml":                   serviceFile("web-old"),
		prd + "/cluster-hoge/kustomization.yaml": overlay("hoge"),
		prd + "/cluster-fuga/kustomization.yaml": overlay("fuga"),
	}
}

// fromRepository is an application that says nothing itself but where the repository is.
func fromRepository(url, ref string) string {
	return fmt.Sprintf(`
apiVersion: delivery.manifold.dev/v1alpha1
kind: Application
metadata: {name: web}
spec:
  source: {git: {url: %s, path: %s, interval: 1h, ref: {%s}}}
`, url, prd, ref)
}

// refresh has the repository asked at once.
func refresh(s *framework.Scenario) {
	s.Helper()
	s.Logical.Kubectl("annotate", "--overwrite", "application", "web", v1alpha1.AnnotationRefresh+"="+time.Now().Format(time.RFC3339Nano))
}

// selectorIn is how a Service of a cluster selects pods, as JSON, or that there is none.
func selectorIn(side *framework.Side, name string) string {
	result := side.Try("get", "service", name, "-o", "jsonpath={.spec.selector}")
	switch {
	case strings.Contains(result.Stderr, "NotFound"):
		return "none"
	case framework.Failure(result) != nil:
		return framework.Failure(result).Error()
	}
	return result.Stdout
}

// awaitSelectors waits until both clusters have a Service that selects pods in a way.
func awaitSelectors(s *framework.Scenario, name, want string) {
	s.Helper()
	s.Logical.Poll("the clusters select by "+want+" for Service "+name, func() error {
		for _, cluster := range []string{"east", "west"} {
			if got := selectorIn(s.Side(cluster), name); got != want {
				return fmt.Errorf("cluster %s: %s", cluster, got)
			}
		}
		return nil
	})
}

func TestAPipeCDFileIsReadFromARepository(t *testing.T) {
	s := suite.Scenario(t)
	patient := *s
	patient.Logical = s.Logical.Within(2 * time.Minute)
	r := gittest.New(t, "shop")
	r.Commit("the first", microservice(pipecdFile, "1"))
	r.Git("tag", "v1.0.0")
	r.Git("branch", "live")
	s.Logical.Apply(fromRepository(r.Serve(), "branch: live"))
	first := awaitPhase(&patient, "web-v1", v1alpha1.ReleaseSucceeded)
	if len(first.Status.Stages) != 1 || first.Status.Stages[0].Name != v1alpha1.StageSync || len(first.Status.Stages[0].Targets) != 2 {
		t.Errorf("the first release went by %+v, want a sync to both targets", first.Status.Stages)
	}
	expect.AwaitRuns(s, "web", map[string]string{"east": "1 of web:1-hoge", "west": "1 of web:1-fuga"})
	awaitSelectors(s, "web-old", `{"app":"web"}`)
	awaitSelectors(s, "web-primary", `{"app":"web","pipecd.dev/variant":"primary"}`)
	awaitApp(s, "all of the file is honoured", func(app v1alpha1.Application) error {
		if !meta.IsStatusConditionTrue(app.Status.Conditions, v1alpha1.ApplicationHonoured) {
			return fmt.Errorf("conditions are %+v", app.Status.Conditions)
		}
		return nil
	})

	// What is on another branch does not count.
	r.Commit("the second", microservice(pipecdFile, "2"))
	refresh(s)
	r.Git("branch", "--force", "live", "main")
	refresh(s)
	waiting := awaitStage(&patient, "web-v2", "agree", v1alpha1.StageRunning)
	expect.AwaitRuns(s, "web", map[string]string{"east": "1 of web:1-hoge", "west": "1 of web:1-fuga"})
	expect.AwaitRuns(s, "web-canary", map[string]string{"east": "1 of web:patched", "west": "nothing"})
	approve(s, waiting)
	released := awaitPhase(&patient, "web-v2", v1alpha1.ReleaseSucceeded)
	if got := stage(released, "primary"); got.Name != v1alpha1.StagePrimaryRollout || len(got.Targets) != 2 {
		t.Errorf("the rollout was %+v, want one to both targets", got)
	}
	expect.AwaitRuns(s, "web", map[string]string{"east": "1 of web:2-hoge", "west": "1 of web:2-fuga"})
	expect.AwaitRuns(s, "web-canary", map[string]string{"east": "nothing", "west": "nothing"})

	// A Service that is gone from the base goes from the clusters, and no pod is made anew by that, so there is nothing to agree to.
	r.Git("rm", "--quiet", prd+"/base/old.yaml")
	r.Commit("the third", map[string]string{prd + "/base/kustomization.yaml": "resources: [deployment.yaml, service.yaml]\n"})
	r.Git("branch", "--force", "live", "main")
	refresh(s)
	awaitPhase(&patient, "web-v3", v1alpha1.ReleaseSucceeded)
	awaitSelectors(s, "web-old", "none")
	expect.Refused(t, s.Logical.Try("get", "service", "web-old"), "NotFound")
	expect.AwaitRuns(s, "web", map[string]string{"east": "1 of web:2-hoge", "west": "1 of web:2-fuga"})

	s.Logical.Kubectl("patch", "application", "web", "--type=merge", "-p", `{"spec":{"source":{"git":{"ref":{"branch":null,"tag":"v1.0.0"}}}}}`)
	approve(s, awaitStage(&patient, "web-v4", "agree", v1alpha1.StageRunning))
	awaitPhase(&patient, "web-v4", v1alpha1.ReleaseSucceeded)
	expect.AwaitRuns(s, "web", map[string]string{"east": "1 of web:1-hoge", "west": "1 of web:1-fuga"})
	awaitSelectors(s, "web-old", `{"app":"web"}`)
}

func TestAPipeCDFileIsImportedByTheCommand(t *testing.T) {
	framework.Long(t)
	s := suite.Scenario(t)
	patient := *s
	patient.Logical = s.Logical.Within(2 * time.Minute)
	r := gittest.New(t, "shop")
	r.Commit("the first", microservice(pipecdFile, "1"))
	said := s.Logical.CLI("app", "import", filepath.Join(r.Dir, prd), "--git-url", r.Serve(), "--git-path", prd, "--git-branch", "main", "--strict", "--apply")
	expect.Says(t, said, "application/web imported")
	awaitPhase(&patient, "web-v1", v1alpha1.ReleaseSucceeded)
	expect.AwaitRuns(s, "web", map[string]string{"east": "1 of web:1-hoge", "west": "1 of web:1-fuga"})
	app := awaitApp(s, "it says what the file says", func(app v1alpha1.Application) error {
		if !meta.IsStatusConditionTrue(app.Status.Conditions, v1alpha1.ApplicationHonoured) {
			return fmt.Errorf("conditions are %+v", app.Status.Conditions)
		}
		return nil
	})
	if app.Labels["env"] != "prd" || app.Labels["team"] != "product" || len(app.Spec.Targets) != 2 || app.Spec.Prune != nil {
		t.Errorf("it has labels %v and %+v", app.Labels, app.Spec)
	}

	// The Application comes before the file, and says so once the file says something else.
	r.Commit("another way", map[string]string{prd + "/app.pipecd.yaml": strings.Replace(pipecdFile, "replicas: 1\n", "replicas: 2\n", 1)})
	refresh(s)
	awaitTold(s, v1alpha1.ApplicationHonoured, "pipeline of app.pipecd.yaml is not honoured: spec.pipeline of the Application says otherwise")
}

func TestAProviderThatThereIsNotFailsBeforeAnythingIsApplied(t *testing.T) {
	framework.Long(t)
	s := suite.Scenario(t)
	r := gittest.New(t, "shop")
	file, _, _ := strings.Cut(pipecdFile, "  service:")
	r.Commit("the first", microservice(strings.Replace(file, "name: west", "name: mars", 1), "1"))
	s.Logical.Apply(fromRepository(r.Serve(), "branch: main"))
	failed := awaitPhase(s, "web-v1", v1alpha1.ReleaseFailed)
	expect.Says(t, failed.Status.Message, `target "mars": there is no cluster "mars"`)
	expect.Refused(t, s.Logical.Try("get", "deployment", "web"), "NotFound")
	if got := expect.Runs(s, "east", "web"); got != "nothing" {
		t.Errorf("cluster east runs %s", got)
	}
}

// A pipeline leaves what is gone from git, unless a stage says otherwise. The next release without the pipeline deletes it.
func TestAQuickSyncPrunesAndAPipelineDoesNot(t *testing.T) {
	s := suite.Scenario(t)
	patient := *s
	patient.Logical = s.Logical.Within(2 * time.Minute)
	file, _, _ := strings.Cut(pipecdFile, "  service:")
	file += "  pipeline:\n    stages:\n      - name: K8S_PRIMARY_ROLLOUT\n"
	r := gittest.New(t, "shop")
	r.Commit("the first", microservice(file, "1"))
	s.Logical.Apply(fromRepository(r.Serve(), "branch: main"))
	awaitPhase(&patient, "web-v1", v1alpha1.ReleaseSucceeded)
	awaitSelectors(s, "web-old", `{"app":"web"}`)

	r.Git("rm", "--quiet", prd+"/base/old.yaml")
	second := microservice(file, "2")
	delete(second, prd+"/base/old.yaml")
	second[prd+"/base/kustomization.yaml"] = "resources: [deployment.yaml, service.yaml]\n"
	r.Commit("the second", second)
	refresh(s)
	released := awaitPhase(&patient, "web-v2", v1alpha1.ReleaseSucceeded)
	if released.Status.Plan.Strategy != v1alpha1.StrategyPipeline || released.Status.Plan.Prune {
		t.Errorf("the release went by %s and prunes: %t, want a pipeline that does not", released.Status.Plan.Strategy, released.Status.Plan.Prune)
	}
	expect.AwaitRuns(s, "web", map[string]string{"east": "1 of web:2-hoge", "west": "1 of web:2-fuga"})
	awaitSelectors(s, "web-old", `{"app":"web"}`)

	r.Commit("the third", map[string]string{prd + "/base/service.yaml": strings.Replace(serviceFile("web"), "port: 80", "port: 81", 1)})
	refresh(s)
	awaitPhase(&patient, "web-v3", v1alpha1.ReleaseSucceeded)
	awaitSelectors(s, "web-old", "none")
	expect.Refused(t, s.Logical.Try("get", "service", "web-old"), "NotFound")
}

func TestAFileNamesNoTargetsButThoseOfItsApplication(t *testing.T) {
	s := suite.Scenario(t)
	patient := *s
	patient.Logical = s.Logical.Within(2 * time.Minute)
	r := gittest.New(t, "shop")
	file, _, _ := strings.Cut(pipecdFile, "  service:")
	r.Commit("the first", microservice(file, "1"))
	s.Logical.Apply(fromRepository(r.Serve(), "branch: main") + "  targets: [{name: first, cluster: east}]\n")
	awaitTold(s, v1alpha1.ApplicationRendered, `spec.quickSync.multiTarget[1]: Invalid value: "west": is none of spec.targets of the Application, which has first`)
	expect.Refused(t, s.Logical.Try("get", "deployment", "web"), "NotFound")
	if got := s.Logical.Kubectl("get", "releases,applicationrevisions", "-o", "name"); strings.TrimSpace(got) != "" {
		t.Errorf("there are %s", got)
	}
	if got := expect.Runs(s, "east", "web"); got != "nothing" {
		t.Errorf("cluster east runs %s", got)
	}

	// The folders are for the file to say.
	s.Logical.Kubectl("patch", "application", "web", "--type=merge", "-p", `{"spec":{"targets":[{"name":"first","cluster":"east"},{"name":"west","cluster":"west"}]}}`)
	awaitPhase(&patient, "web-v1", v1alpha1.ReleaseSucceeded)
	expect.AwaitRuns(s, "web", map[string]string{"east": "1 of web:1-hoge", "west": "1 of web:1-fuga"})
}

func TestAFileOfAnotherNameIsRead(t *testing.T) {
	s := suite.Scenario(t)
	patient := *s
	patient.Logical = s.Logical.Within(2 * time.Minute)
	const file = `apiVersion: pipecd.dev/v1beta1
kind: KubernetesApp
spec:
  name: web
  input: {manifests: [deployment.yaml]}
  quickSync: {multiTarget: [{provider: {name: east}}]}
`
	r := gittest.New(t, "shop")
	r.Commit("the first", map[string]string{
		prd + "/prd.pipecd.yaml": file, prd + "/dev.pipecd.yaml": file,
		prd + "/deployment.yaml": webDeployment("web:1", 1), prd + "/other.yaml": serviceFile("other"),
	})
	url := r.Serve()
	expect.Refused(t, s.Logical.TryCLI("app", "import", filepath.Join(r.Dir, prd), "--git-url", url, "--git-path", prd), "name one of the files that there are: dev.pipecd.yaml, prd.pipecd.yaml")
	said := s.Logical.CLI("app", "import", filepath.Join(r.Dir, prd, "prd.pipecd.yaml"), "--git-url", url, "--git-path", prd, "--git-branch", "main", "--strict", "--apply")
	expect.Says(t, said, "application/web imported")
	awaitPhase(&patient, "web-v1", v1alpha1.ReleaseSucceeded)
	expect.AwaitRuns(s, "web", map[string]string{"east": "1 of web:1", "west": "nothing"})
	expect.Refused(t, s.Logical.Try("get", "service", "other"), "NotFound")
	awaitApp(s, "all of the file is honoured", func(app v1alpha1.Application) error {
		if !meta.IsStatusConditionTrue(app.Status.Conditions, v1alpha1.ApplicationHonoured) {
			return fmt.Errorf("conditions are %+v", app.Status.Conditions)
		}
		return nil
	})
	s.Logical.Kubectl("patch", "application", "web", "--type=merge", "-p", `{"spec":{"source":{"git":{"pipecd":null}}}}`)
	awaitTold(s, v1alpha1.ApplicationHonoured, "prd.pipecd.yaml is not honoured: the application file is app.pipecd.yaml, unless spec.source.git.pipecd.file names another one")
}

func TestNamesOfPipedAreForTheApplicationToSay(t *testing.T) {
	framework.Long(t)
	s := suite.Scenario(t)
	r := gittest.New(t, "shop")
	file := strings.Replace(pipecdFile, "      - name: WAIT_APPROVAL\n", `      - name: ANALYSIS
        with:
          duration: 10s
          metrics: [{provider: prom, query: up, interval: 5s, expected: {min: 1}}]
      - name: WAIT_APPROVAL
`, 1)
	r.Commit("the first", microservice(file, "1"))
	url, folder := r.Serve(), filepath.Join(r.Dir, prd)
	expect.Refused(t, s.Logical.TryCLI("app", "import", folder, "--git-url", url, "--git-path", prd), "--analysis-provider prom=URL")
	expect.Says(t, s.Logical.CLI("app", "import", folder, "--git-url", url, "--git-path", prd, "--analysis-provider", "prom=https://prometheus.example"), "provider: https://prometheus.example")
	s.Logical.Apply(fromRepository(url, "branch: main"))
	awaitTold(s, v1alpha1.ApplicationRendered, "set spec.source.git.pipecd.analysisProviders[prom] of the Application")
	s.Logical.Kubectl("patch", "application", "web", "--type=merge", "-p", `{"spec":{"source":{"git":{"pipecd":{"analysisProviders":{"prom":"https://prometheus.example"}}}}}}`)
	awaitRevision(s, 1)
}

// A baseline is of the revision that runs, and has the number of the canary in every cluster. What one target has otherwise than the first, its copies have too.
func TestABaselineRunsBesideTheCanaryInEveryCluster(t *testing.T) {
	framework.Long(t)
	s := suite.Scenario(t)
	app := func(image string) string {
		return strings.Replace(stagedApp(image, []string{
			"{name: K8S_MULTI_CANARY_ROLLOUT, id: canary, with: {replicas: 1, perCluster: true}}", "{name: K8S_MULTI_BASELINE_ROLLOUT, id: baseline}", "{name: WAIT_APPROVAL, id: agree}",
			"{name: K8S_MULTI_BASELINE_CLEAN, id: compared}", "{name: WAIT_APPROVAL, id: go}", "{name: K8S_MULTI_PRIMARY_ROLLOUT, id: primary}", "{name: K8S_MULTI_CANARY_CLEAN, id: clean}",
		}), "targets: [{name: first, cluster: east}]", `targets: [{name: first, cluster: east}, {name: second, cluster: west, patches: [{target: {kind: Deployment},
    patch: '[{"op": "add", "path": "/spec/template/spec/hostname", "value": "of-the-second"}]'}]}]`, 1)
	}
	s.Logical.Apply(app("web:1"))
	awaitPhase(s, "web-v1", v1alpha1.ReleaseSucceeded)
	s.Logical.Apply(app("web:2"))
	copies := func(name, of string) {
		s.Helper()
		expect.AwaitRuns(s, name, map[string]string{"east": of, "west": "nothing"})
		expect.AwaitRuns(s, name+"-second", map[string]string{"east": "nothing", "west": of})
	}
	both := func(of string) map[string]string { return map[string]string{"east": of, "west": of} }

	waiting := awaitStage(s, "web-v2", "agree", v1alpha1.StageRunning)
	expect.AwaitRuns(s, "web", both("1 of web:1"))
	copies("web-baseline", "1 of web:1")
	copies("web-canary", "1 of web:2")
	if got := framework.Await(s.West, "web-canary-second", "is there", framework.Exists[*appsv1.Deployment]).Spec.Template.Spec.Hostname; got != "of-the-second" {
		t.Errorf("the canary in west has the hostname %q", got)
	}
	for _, target := range stage(waiting, "baseline").Targets {
		if target.Phase != v1alpha1.TargetSucceeded || target.Revision != "web-v1" {
			t.Errorf("in cluster %s the baseline is %s of %s", target.Cluster, target.Phase, target.Revision)
		}
	}

	s.Logical.CLI("release", "approve", waiting.Name, "--stage", "agree")
	waiting = awaitStage(s, "web-v2", "go", v1alpha1.StageRunning)
	copies("web-baseline", "nothing")
	copies("web-canary", "1 of web:2")
	expect.AwaitRuns(s, "web", both("1 of web:1"))

	s.Logical.CLI("release", "approve", waiting.Name, "--stage", "go")
	awaitPhase(s, "web-v2", v1alpha1.ReleaseSucceeded)
	expect.AwaitRuns(s, "web", both("1 of web:2"))
	copies("web-canary", "nothing")
}
