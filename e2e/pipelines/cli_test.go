package pipelines

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/e2e/framework"
)

// seen waits until the status of a pipeline says what an environment runs.
func seen(s *framework.Scenario, name, environment, version string) {
	s.Helper()
	s.Logical.Poll(fmt.Sprintf("%s shows %s in %s", name, version, environment), func() error {
		got := s.Logical.Try("get", pipelines, name, "-o", "jsonpath={.status.environments."+environment+".targets[0].workloads[*].version}")
		if err := framework.Failure(got); err != nil || got.Stdout == version {
			return err
		}
		return fmt.Errorf("it shows %q", got.Stdout)
	})
}

// twoEnvironments has the app web 1.1 in dev and 1.0 in prod, and a pipeline over both in which a person promotes.
func twoEnvironments(s *framework.Scenario) (prod string) {
	s.Helper()
	prod = namespace(s, "prod")
	s.Logical.Apply(deployed("web", "registry.example/web:1.1", "app: web"))
	s.Logical.In(prod).Apply(deployed("web", "registry.example/web:1.0", "app: web"))
	s.Logical.Apply(pipeline("web", "Deployment/web", "  promotion: {manual: true, strategy: {notification: {}}}\n",
		environment{"dev", []string{s.Namespace}}, environment{"prod", []string{prod}}))
	seen(s, "web", "dev", "1.1")
	seen(s, "web", "prod", "1.0")
	return prod
}

func contains(s *framework.Scenario, said string, wanted ...string) {
	s.Helper()
	for _, want := range wanted {
		if !strings.Contains(said, want) {
			s.Errorf("it lacks %q:\n%s", want, said)
		}
	}
}

// TestW19W20W21PipelinesAreMadeListedAndInspectedByCommands is what a user interface does in the document.
func TestW19W20W21PipelinesAreMadeListedAndInspectedByCommands(t *testing.T) {
	s := scenario(t)
	twoEnvironments(s)
	s.Logical.Apply(olderPipeline("labelled", "", environment{"dev", []string{s.Namespace}}))

	contains(s, s.Logical.CLI("pipeline", "list"), "NAME", "web", "labelled", "pipelines.weave.works", "pipelines.wego.weave.works", "dev 1.1, prod 1.0")
	contains(s, s.Logical.CLI("pipeline", "list", "-A"), "NAMESPACE", s.Namespace)
	contains(s, s.Logical.CLI("pipeline", "get", "web"), "WORKLOAD", "Deployment/web", "dev", "prod", "1.1", "1.0", "TRIGGER", "/approval/"+s.Namespace+"/web/prod/REVISION")
	contains(s, s.Logical.CLI("pipeline", "get", "web", "-o", "wide"), "registry.example/web:1.1")
	contains(s, s.Logical.CLI("pipeline", "get", "web", "-o", "json"), `"appRef"`)
	contains(s, s.Logical.Kubectl("describe", "pipeline", "web"), "Environments:", "1.1")
	if got := s.Logical.TryCLI("pipeline", "get", "none"); got.Code == 0 || !strings.Contains(got.Stderr, `there is no pipeline "none"`) {
		s.Errorf("a pipeline that there is not: %+v", got)
	}
}

// granted gives a user rights in the namespace by a manifest, since the subresources are in no discovery of kubectl's.
func granted(s *framework.Scenario, user, group string, verbs string, resources ...string) {
	s.Helper()
	s.Logical.Apply(fmt.Sprintf(`apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: %[1]s}
rules:
- {apiGroups: [%[2]q], resources: [%[3]s], verbs: [%[4]s]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: %[1]s}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: %[1]s}
subjects: [{kind: User, apiGroup: rbac.authorization.k8s.io, name: %[1]s}]
`, user, group, strings.Join(resources, ", "), verbs))
}

// TestW28WhoMayPromotePauseAndResumeIsPlainRBAC has a user for each right, who may do that and nothing else.
func TestW28WhoMayPromotePauseAndResumeIsPlainRBAC(t *testing.T) {
	s := scenario(t)
	twoEnvironments(s)
	users := []string{"promoter", "pauser", "resumer", "editor"}
	granted(s, "promoter", v1alpha1.GroupName, "create", "pipelines/promote")
	granted(s, "pauser", v1alpha1.GroupName, "create", "pipelines/pause")
	granted(s, "resumer", v1alpha1.GroupName, "create", "pipelines/resume")
	granted(s, "editor", "pipelines.weave.works", `"*"`, "pipelines", "pipelines/status")
	commands := []struct {
		by   string
		args []string
	}{
		{"promoter", []string{"promote", "web", "--to", "prod", "--revision", "1.1", "-m", "go"}},
		{"pauser", []string{"pause", "web", "-m", "freeze"}},
		{"resumer", []string{"resume", "web"}},
	}
	for _, command := range commands {
		args := append([]string{"pipeline"}, command.args...)
		s.Logical.Poll(command.by+" may", func() error { return framework.Failure(s.Logical.TryCLI(append(args, "--as="+command.by)...)) })
		for _, user := range users {
			if user == command.by {
				continue
			}
			if got := s.Logical.TryCLI(append(args, "--as="+user)...); got.Code == 0 || !strings.Contains(got.Stderr, "cannot create resource \"pipelines/"+command.args[0]+"\"") {
				s.Errorf("%s by %s: %+v, want it refused", command.args[0], user, got)
			}
		}
	}
	if by := s.Logical.Kubectl("get", pipelines, "web", "-o", "jsonpath={.status.environments.prod.asked.by} {.status.environments.prod.asked.revision}"); by != "promoter 1.1" {
		s.Errorf("asked by %q, want promoter for 1.1", by)
	}
	// Who may write the whole kind puts no words into the mouth of others.
	forged := `{"status":{"environments":{"prod":{"asked":{"revision":"1.1","by":"the-boss"}}},"paused":{"by":"the-boss"}}}`
	if got := s.Logical.Try("patch", pipelines, "web", "--type=merge", "--subresource=status", "-p", forged, "--as=editor"); got.Code == 0 || !strings.Contains(got.Stderr, "Manifold alone writes the status") {
		s.Errorf("the editor has written a status: %+v", got)
	}
	if got := s.Logical.Try("patch", pipelines, "web", "--type=merge", "-p", forged, "--as=editor"); strings.Contains(s.Logical.Kubectl("get", pipelines, "web", "-o", "json"), "the-boss") {
		s.Errorf("the editor has written a status by way of the object: %+v", got)
	}
}

func TestW28APauseIsOfWhoeverBeganItAndHoldsPromotions(t *testing.T) {
	framework.Long(t)
	s := scenario(t)
	twoEnvironments(s)
	contains(s, s.Logical.CLI("pipeline", "pause", "web", "-m", "freeze"), "pipeline/web paused")
	contains(s, s.Logical.CLI("pipeline", "get", "web"), "Paused:", "by manifold-admin", "freeze", "manifold pipeline resume web")
	if got := s.Logical.TryCLI("pipeline", "promote", "web", "--to", "prod", "--revision", "1.1"); got.Code == 0 || !strings.Contains(got.Stderr, "it is paused by manifold-admin") {
		s.Errorf("a promotion meanwhile: %+v", got)
	}
	contains(s, s.Logical.CLI("pipeline", "resume", "web"), "resumed", "manifold-admin")
	contains(s, s.Logical.CLI("pipeline", "resume", "web"), "was not paused")
	for args, want := range map[string]string{
		"--to qa --revision 1.1":       "environment: Not found",
		"--to prod --revision 7.0":     "revision: Invalid value",
		"--to prod --group tekton.dev": "--group must be one of",
		"--to prod --timeout 3s":       "--timeout is for --wait",
	} {
		if got := s.Logical.TryCLI(append([]string{"pipeline", "promote", "web"}, strings.Fields(args)...)...); got.Code == 0 || !strings.Contains(got.Stderr, want) {
			s.Errorf("%s: %+v, want %q", args, got, want)
		}
	}
}

// TestW34APromotionIsAskedForByPlainHTTP posts what any CI can, and finds Weave's kind meant by "kubectl get pipeline" although the group has a resource of the name.
func TestW34APromotionIsAskedForByPlainHTTP(t *testing.T) {
	s := scenario(t)
	twoEnvironments(s)
	path := "/apis/delivery.manifold.dev/v1alpha1/namespaces/" + s.Namespace + "/pipelines/web/promote"
	answer := s.Logical.KubectlInput(`{"apiVersion":"delivery.manifold.dev/v1alpha1","kind":"PipelinePromotion","environment":"prod","revision":"1.1","recorded":{"by":"the-boss","at":null}}`,
		"create", "--raw", path, "-f", "-")
	var got v1alpha1.PipelinePromotion
	if err := json.Unmarshal([]byte(answer), &got); err != nil || got.Recorded == nil || got.Recorded.By != "manifold-admin" || got.Group != "pipelines.weave.works" {
		s.Errorf("answered %s: %v", answer, err)
	}
	contains(s, s.Logical.Kubectl("get", "pipeline", "web", "-o", "yaml"), "apiVersion: pipelines.weave.works/v1alpha1")
	contains(s, s.Logical.Kubectl("delete", "pipeline", "web"), "deleted")
}

// TestW29W30AllVersionsAreAskedForAtOnce is about chart versions and image tags over all clusters.
func TestW29W30AllVersionsAreAskedForAtOnce(t *testing.T) {
	framework.Long(t)
	s := scenario(t)
	prod := namespace(s, "prod")
	s.Logical.Apply(strings.Replace(deployed("web", "registry.example/web:1.1", "app: web"), "metadata: {name", "metadata: {annotations: {manifold.dev/clusters: \"dev,prod\"}, name", 1))
	s.Logical.In(prod).Apply(deployed("web", "registry.example/web:1.0", "app: web"))
	var list v1alpha1.WorkloadVersionList
	s.Logical.Poll("both are told of", func() error {
		list = v1alpha1.WorkloadVersionList{}
		if err := json.Unmarshal([]byte(s.Logical.CLI("versions", "-A", "--image", "registry.example/web", "-o", "json")), &list); err != nil {
			return err
		}
		var told []string
		for _, v := range list.Items {
			for _, c := range v.Clusters {
				told = append(told, strings.TrimPrefix(v.Namespace, s.Namespace)+" "+c.Version)
			}
		}
		slices.Sort(told)
		if !slices.Contains(told, "-prod 1.0") || !slices.Contains(told, " 1.1") {
			return fmt.Errorf("told is %q", told)
		}
		return nil
	})
	contains(s, s.Logical.CLI("versions"), "Deployment/web", "1.1", "registry.example/web:1.1")
	contains(s, s.Logical.Kubectl("get", "workloadversions"), "web.deployment", "1.1")
}

func TestW39VersionsAreThoseThatTheCallerMayList(t *testing.T) {
	framework.Long(t)
	s := scenario(t)
	other := namespace(s, "other")
	s.Logical.Apply(deployed("web", "registry.example/mine:1.1", "app: web"))
	s.Logical.In(other).Apply(deployed("web", "registry.example/secret:1.0", "app: web"))
	s.Logical.Kubectl("create", "rolebinding", "reader", "--clusterrole=view", "--user=reader")
	s.Logical.Poll("the reader sees what is in the namespace", func() error {
		got := s.Logical.TryCLI("versions", "-A", "--as=reader")
		if err := framework.Failure(got); err != nil {
			return err
		}
		if strings.Contains(got.Stdout, other) || strings.Contains(got.Stdout, "secret") {
			s.Errorf("the reader is told of another namespace:\n%s", got.Stdout)
		}
		if !strings.Contains(got.Stdout, "registry.example/mine:1.1") {
			return errors.New(got.Stdout + got.Stderr)
		}
		return nil
	})
	if got := s.Logical.In(other).TryCLI("versions", "--as=reader"); strings.Contains(got.Stdout, "secret") || !strings.Contains(got.Stderr, "you may not list deployments.apps in this namespace") {
		s.Errorf("asked for the other namespace: %+v", got)
	}
}

// TestW32W33RelatedObjectsAndTriggers asks for what an app consists of in an environment, and for what starts the pipeline.
func TestW32W33RelatedObjectsAndTriggers(t *testing.T) {
	s := scenario(t)
	prod := twoEnvironments(s)
	contains(s, s.Logical.CLI("pipeline", "get", "web", "--related", "prod"), "Target: "+prod, "Deployment "+prod+"/web", "Pod web-")
	contains(s, s.Logical.CLI("pipeline", "get", "web"), "POST /promotion/"+s.Namespace+"/web/dev", "with reason Promote")
}
