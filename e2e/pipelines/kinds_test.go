package pipelines

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/manifold-dev/manifold/e2e/framework"
	"github.com/manifold-dev/manifold/e2e/framework/expect"
	"github.com/manifold-dev/manifold/e2e/framework/manifests"
)

// story is the manifest of the document's first story, but for its namespaces.
func story(app string) string {
	return fmt.Sprintf(`
apiVersion: pipelines.wego.weave.works/v1alpha1
kind: Pipeline
metadata:
  name: podinfo
spec:
  environments:
    - name: dev
      targets:
        - namespace: %[1]s
          clusterRef:
            kind: GitopsCluster
            name: dev
    - name: prod
      targets:
        - namespace: %[1]s
          clusterRef:
            kind: GitopsCluster
            name: prod
`, app)
}

// taken applies what is to be taken as it is. The server may hear of namespaces that were made just now a moment later.
func taken(s *framework.Scenario, manifest string) {
	s.Helper()
	s.Logical.Poll("it is taken without a warning", func() error {
		if result := s.Logical.TryInput(manifest, "apply", "-f", "-"); result.Code != 0 || strings.Contains(result.Stderr, "Warning") {
			return fmt.Errorf("%s", result)
		}
		return nil
	})
}

func TestW1ThePipelineOfTheDocumentIsAppliedAsItIsWritten(t *testing.T) {
	s := scenario(t)
	taken(s, story(namespace(s, "podinfo")))
	if got := s.Logical.Kubectl("get", older, "podinfo", "-o", "jsonpath={.spec.environments[*].name}"); got != "dev prod" {
		t.Errorf("W05: the order of its environments is %q", got)
	}
	expect.Says(t, s.Logical.Kubectl("get", older), "NAME", "READY", "PROMOTING", "podinfo")
	for _, test := range []struct{ path, says string }{
		{"spec.environments", "in this order"}, {"spec.environments.targets.clusterRef.kind", "GitopsCluster or Cluster"},
		{"spec.promotion.strategy.pull-request.secretRef", "must have the right to get it"}, {"status.environments.targets.workloads", "what the target runs"},
	} {
		s.Logical.Poll(test.path+" is explained", func() error {
			explained := s.Logical.Try("explain", "pipelines."+test.path, "--api-version=pipelines.wego.weave.works/v1alpha1")
			return framework.Contains(strings.Join(strings.Fields(explained.Stdout), " "), test.says)
		})
	}
	if result := s.Logical.Try("explain", "pipelines.spec.appRef", "--api-version=pipelines.wego.weave.works/v1alpha1"); result.Code == 0 {
		t.Errorf("the older group has an appRef: %s", result)
	}
}

func TestW2WhatIsMandatoryIsAskedForByPath(t *testing.T) {
	s := scenario(t)
	ns := namespace(s, "web")
	good := pipeline("web", "Deployment/web", "", environment{"dev", []string{"dev/" + ns}})
	s.Logical.KubectlInput(good, "apply", "--dry-run=server", "-f", "-")
	for left, path := range map[string]string{
		"  appRef: {apiVersion: apps/v1, kind: Deployment, name: web}\n": "spec.appRef: Required value",
		"apiVersion: apps/v1, ": "spec.appRef.apiVersion: Required value",
		"kind: Deployment, ":    "spec.appRef.kind: Required value",
		", name: web}\n  env":   "spec.appRef.name: Required value",
		"name: dev\n    ":       "spec.environments[0].name: Required value",
		"namespace: " + ns:      "spec.environments[0].targets[0].namespace: Required value",
		"kind: GitopsCluster, ": "spec.environments[0].targets[0].clusterRef.kind: Required value",
		", name: dev}":          "spec.environments[0].targets[0].clusterRef.name: Required value",
	} {
		instead := ""
		switch left {
		case ", name: web}\n  env":
			instead = "}\n  env"
		case ", name: dev}":
			instead = "}"
		case "namespace: " + ns:
			instead = "# nothing"
		}
		manifest := strings.Replace(good, left, instead, 1)
		if manifest == good {
			t.Fatalf("there is no %q in\n%s", left, good)
		}
		expect.Refused(t, s.Logical.TryInput(manifest, "apply", "--dry-run=server", "-f", "-"), path)
	}
	cut := good[:strings.Index(good, "  environments:")]
	expect.Refused(t, s.Logical.TryInput(cut, "apply", "--dry-run=server", "-f", "-"), "spec.environments: Required value")
}

func TestW3W4W5W6W7W8TargetsAreWhatTheyAreSaidToBe(t *testing.T) {
	s := scenario(t)
	first, second := namespace(s, "a"), namespace(s, "b")
	for name, environments := range map[string][]environment{
		"w3-no-cluster":      {{"dev", []string{first}}},
		"w4-a-cluster":       {{"dev", []string{"dev/" + first}}},
		"w6-one-environment": {{"only", []string{"prod/" + second}}},
		"w7-several-targets": {{"dev", []string{"dev/" + first, "prod/" + first}}, {"prod", []string{"prod/" + second}}},
		"w8-two-namespaces":  {{"dev", []string{"dev/" + first, "dev/" + second, first}}},
	} {
		for _, manifest := range []string{pipeline(name, "Deployment/web", "", environments...), olderPipeline(name, "", environments...)} {
			taken(s, manifest)
		}
	}
	expect.Says(t, s.Logical.Kubectl("get", pipelines), "APP", "web")
}

func TestBadInputIsRefusedByPath(t *testing.T) {
	s := scenario(t)
	ns := namespace(s, "web")
	dev := environment{"dev", []string{ns}}
	strategy := func(text string) string {
		return pipeline("web", "Deployment/web", "  promotion: {strategy: {"+text+"}}\n", dev)
	}
	for want, manifest := range map[string]string{
		"spec.environments: Duplicate value":                                            pipeline("web", "Deployment/web", "", dev, dev),
		"spec.environments[0].targets[1]: Duplicate value":                              pipeline("web", "Deployment/web", "", environment{"dev", []string{"dev/" + ns, "dev/" + ns}}),
		"spec.environments[0].targets: Invalid value":                                   strings.Replace(pipeline("web", "Deployment/web", "", environment{"dev", nil}), "targets:", "targets: []", 1),
		`spec.appRef.kind: Unsupported value: "Secret.apps"`:                            pipeline("web", "Secret/web", "", dev),
		`spec.environments[0].targets[0].clusterRef.kind: Unsupported value: "Machine"`: strings.Replace(pipeline("web", "Deployment/web", "", environment{"dev", []string{"dev/" + ns}}), "GitopsCluster", "Machine", 1),
		"spec.promotion.strategy: Invalid value: exactly one of":                        strategy("notification: {}, direct: {serviceAccountName: promoter}"),
		"spec.promotion.strategy.pull-request.url: Invalid value":                       strategy("pull-request: {type: gitea, url: 'https://token@git.example.com/a/b', baseBranch: main, secretRef: {name: token}}"),
		"spec.promotion.strategy.pull-request.path: Invalid value":                      strategy("pull-request: {type: gitea, url: 'https://git.example.com/a/b', path: ../../etc, baseBranch: main, secretRef: {name: token}}"),
		`metadata.name: Invalid value`:                                                  olderPipeline(strings.Repeat("a", 64), "", dev),
	} {
		expect.Refused(t, s.Logical.TryInput(manifest, "apply", "--dry-run=server", "-f", "-"), want)
	}
}

// TestW40WhatTheDocumentHasRejectedIsNoPipeline is about labels alone, lists of releases, and ConfigMaps.
func TestW40WhatTheDocumentHasRejectedIsNoPipeline(t *testing.T) {
	s := scenario(t)
	dev := environment{"dev", []string{s.Namespace}}
	for field, manifest := range map[string]string{
		"spec.environments[0].releaseRefs": strings.Replace(pipeline("web", "Deployment/web", "", dev), "    targets:\n", "    releaseRefs: [{kind: HelmRelease, name: web}]\n    targets:\n", 1),
		"spec.stages":                      olderPipeline("web", "  stages: [{name: dev, order: 1}]\n", dev),
	} {
		expect.Refused(t, s.Logical.TryInput(manifest, "apply", "--dry-run=server", "-f", "-"), `unknown field "`+field+`"`)
	}
	expect.Refused(t, s.Logical.TryInput("apiVersion: pipelines.wego.weave.works/v1alpha1\nkind: Pipeline\nmetadata: {name: labels}\nspec: {}\n", "apply", "--dry-run=server", "-f", "-"),
		"spec.environments: Required value")

	labels := "pipelines.weave.works/pipeline: alone, pipelines.wego.weave.works/pipeline: alone, pipelines.weave.works/environment: dev"
	s.Logical.Apply(deployed("web", "registry.example/web:1.0", labels),
		"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: alone, labels: {"+labels+"}}\ndata: {environments: '[{name: dev, targets: [{namespace: "+s.Namespace+"}]}]'}\n")
	s.Logical.Apply(olderPipeline("other", "", dev))
	shows(s, older, "other", "dev", "")
	if got := s.Logical.Kubectl("get", pipelines+","+older, "-o", "name"); strings.TrimSpace(got) != "pipeline.pipelines.wego.weave.works/other" {
		t.Errorf("there are pipelines: %s", got)
	}
	if got := s.Logical.CLI("pipeline", "list"); strings.Contains(got, "alone") {
		t.Errorf("a pipeline is made of labels or of a ConfigMap:\n%s", got)
	}
}

func TestW14ALabelThatNamesNoPipelineChangesNothing(t *testing.T) {
	s := scenario(t)
	labelled := manifests.Deployment("web", 1)
	for _, label := range []string{"pipelines.weave.works/pipeline: nothing", "pipelines.wego.weave.works/pipeline: nothing"} {
		labelled = strings.Replace(labelled, "    app: web\n", "    app: web\n    "+label+"\n", 1)
	}
	taken(s, labelled)
	framework.Await(s.Logical, "web", "it runs as any other", func(d *appsv1.Deployment) bool { return d.Status.ReadyReplicas == 1 })
	if got := s.Logical.Kubectl("get", pipelines+","+older, "-o", "name"); got != "" {
		t.Errorf("there are pipelines: %s", got)
	}
}

func TestW15TargetsThatAreNotThereAreTakenWithAWarning(t *testing.T) {
	framework.Long(t)
	s := scenario(t)
	result := s.Logical.TryInput(pipeline("early", "Deployment/web", "", environment{"dev", []string{s.Namespace + "-later", "mars/" + s.Namespace}}), "apply", "-f", "-")
	if result.Code != 0 {
		t.Fatal(result)
	}
	expect.Says(t, result.Stderr, `Warning: spec.environments[0].targets[0].namespace: there is no namespace "`+s.Namespace+`-later"`,
		`Warning: spec.environments[0].targets[1].clusterRef.name: no cluster has joined as "mars"`)
}

// allowed makes a user with ClusterRoles in namespaces, given as "ROLE NAMESPACE", and returns the flags by which kubectl is him.
func allowed(s *framework.Scenario, user, probe string, roles ...string) []string {
	s.Helper()
	flags := []string{"--as=" + user + "-of-" + s.Namespace}
	for i, text := range roles {
		role, namespace, _ := strings.Cut(text, " ")
		s.Logical.In(namespace).Kubectl("create", "rolebinding", fmt.Sprintf("%s-%d", user, i), "--clusterrole="+role, "--user="+user+"-of-"+s.Namespace)
	}
	verb, resource, _ := strings.Cut(probe, " ")
	s.Logical.Poll(user+" has the roles", func() error {
		return framework.Failure(s.Logical.Try(append([]string{"auth", "can-i", verb, resource}, flags...)...))
	})
	return flags
}

func TestW13OpsDefinePipelinesAndAppTeamsAddWorkloads(t *testing.T) {
	s := scenario(t)
	team, other := namespace(s, "team"), namespace(s, "other")
	ops := allowed(s, "ops", "create "+pipelines, "manifold-pipelines-targets "+team, "manifold-pipelines-edit "+s.Namespace)
	app := allowed(s, "app", "get "+pipelines, "edit "+team, "view "+s.Namespace)
	apply := func(side *framework.Side, manifest string, flags []string) framework.Result {
		return side.TryInput(manifest, append([]string{"apply", "-f", "-"}, flags...)...)
	}
	over := func(targets ...string) string {
		return pipeline("web", "Deployment/web", "", environment{"dev", targets})
	}
	for _, manifest := range []string{over(team, "dev/"+team), olderPipeline("web", "", environment{"dev", []string{team}})} {
		if result := apply(s.Logical, manifest, ops); result.Code != 0 {
			t.Errorf("ops cannot define: %s", result)
		}
		expect.Refused(t, apply(s.Logical, strings.Replace(manifest, "name: web}\n", "name: mine}\n", 1), app), "cannot create resource \"pipelines\"")
		expect.Refused(t, apply(s.Logical, strings.Replace(manifest, "name: dev\n", "name: test\n", 1), app), "cannot patch resource \"pipelines\"")
	}
	expect.Refused(t, s.Logical.Try(append([]string{"delete", pipelines, "web"}, app...)...), "cannot delete resource \"pipelines\"")
	workload := strings.Replace(manifests.Deployment("web", 1), "    app: web\n", "    app: web\n    pipelines.weave.works/pipeline: web\n", 1)
	if result := apply(s.Logical.In(team), workload, app); result.Code != 0 {
		t.Errorf("the team cannot add a workload: %s", result)
	}
	expect.Refused(t, apply(s.Logical.In(team), strings.Replace(workload, "name: web\n", "name: more\n", 1), ops), "cannot create resource \"deployments\"")

	// What ops may not see they cannot have a pipeline show: not at first, not later, and not as another app.
	const refusal = `you need the right to "list" deployments.apps in namespace "`
	expect.Refused(t, apply(s.Logical, strings.Replace(over(other), "name: web}\n", "name: spy}\n", 1), ops), "Forbidden", "spec.environments[0].targets[0].namespace: "+refusal+other)
	expect.Refused(t, apply(s.Logical, over(team, "dev/"+other), ops), "spec.environments[0].targets[1].namespace: "+refusal+other)
	s.Logical.Apply(over(team, "dev/"+other))
	if result := apply(s.Logical, over(team, "dev/"+other)+"  promotion: {strategy: {notification: {}}}\n", ops); result.Code != 0 {
		t.Errorf("ops cannot change the rest of one that others have extended: %s", result)
	}
	expect.Refused(t, apply(s.Logical, strings.Replace(over(team, "dev/"+other), "name: web}\n  env", "name: vault}\n  env", 1), ops), "spec.environments[0].targets[1].namespace: "+refusal+other)
	expect.Refused(t, apply(s.Logical, over(team, "prod/"+other), ops), "spec.environments[0].targets[1].namespace: "+refusal+other)
}

func TestW13NobodyPromotesByWhatHeMayNotUse(t *testing.T) {
	s := scenario(t)
	team := namespace(s, "team")
	s.Logical.Kubectl("create", "serviceaccount", "admin")
	s.Logical.Kubectl("create", "secret", "generic", "token", "--from-literal=token=hidden")
	ops := allowed(s, "ops", "create "+pipelines, "manifold-pipelines-targets "+team, "manifold-pipelines-edit "+s.Namespace)
	apply := func(more string) framework.Result {
		return s.Logical.TryInput(pipeline("web", "Deployment/web", more, environment{"dev", []string{team}}), append([]string{"apply", "-f", "-"}, ops...)...)
	}
	expect.Refused(t, apply("  promotion: {strategy: {direct: {serviceAccountName: admin}}}\n"),
		`spec.promotion.strategy.direct.serviceAccountName: you need the right to "impersonate" serviceaccounts "admin"`)
	expect.Refused(t, apply("  promotion: {strategy: {pull-request: {type: gitea, url: 'https://evil.example.com/a/b', baseBranch: main, secretRef: {name: token}}}}\n"),
		`spec.promotion.strategy.pull-request.secretRef.name: you need the right to "get" secrets "token"`)
	expect.Refused(t, apply("  promotion: {strategy: {notification: {}, secretRef: {name: token}}}\n"),
		`spec.promotion.strategy.secretRef.name: you need the right to "get" secrets "token"`)
	if result := apply("  promotion: {strategy: {notification: {}}}\n"); result.Code != 0 {
		t.Errorf("what takes no right is refused: %s", result)
	}
	// Who has asked is written in the status, which nobody but Manifold writes.
	forged := `{"status": {"environments": {"dev": {"asked": {"revision": "2", "by": "admin", "at": "2026-01-01T00:00:00Z"}}}}}`
	expect.Refused(t, s.Logical.Try(append([]string{"patch", pipelines, "web", "--subresource=status", "--type=merge", "-p", forged}, ops...)...), "resource \"pipelines/status\"")
	for _, verb := range []string{"patch", "update"} {
		if result := s.Logical.Try(append([]string{"auth", "can-i", verb, pipelines, "--subresource=status"}, ops...)...); result.Code == 0 {
			t.Errorf("who defines pipelines may %s their status: %s", verb, result)
		}
	}
	s.Logical.Try(append([]string{"patch", pipelines, "web", "--type=merge", "-p", forged}, ops...)...)
	if got := s.Logical.Kubectl("get", pipelines, "web", "-o", "jsonpath={.status.environments.dev.asked}"); got != "" {
		t.Errorf("the status tells that somebody has asked for %s", got)
	}
}

// Who has asked for a promotion is told by the status. The status of what is in a cluster is what its admin writes.
func TestAPipelineGoesToNoCluster(t *testing.T) {
	s := scenario(t)
	cluster := s.Side("dev")
	cluster.Kubectl("apply", "-k", definitions)
	t.Cleanup(func() {
		s.Environment.CleanupIn(t, s.Environment.Physical["dev"], "delete", "-k", definitions, "--wait=false")
	})
	pinned := strings.Replace(pipeline("web", "Deployment/web", "", environment{"dev", []string{s.Namespace}}), "metadata: {name: web}",
		"metadata: {name: web, annotations: {manifold.dev/clusters: dev}}", 1)
	s.Logical.Apply(pinned)
	framework.AwaitList(s.Logical, "", "an event says why it goes nowhere", func(events []*corev1.Event) bool {
		return slices.ContainsFunc(events, func(e *corev1.Event) bool {
			return e.InvolvedObject.Kind == "Pipeline" && strings.Contains(e.Message, "Manifold carries out Pipeline itself")
		})
	})
	if got := cluster.Try("get", pipelines, "web"); got.Code == 0 {
		t.Errorf("the cluster has it: %s", got)
	}
}

// view is a GitopsCluster as Weave's manifests have it.
func view(name string) string {
	return "apiVersion: gitops.weave.works/v1alpha1\nkind: GitopsCluster\nmetadata: {name: " + name + "}\nspec: {secretRef: {name: " + name + "-kubeconfig}}\n"
}

func TestW4AGitopsClusterIsAViewOfTheClusterOfItsName(t *testing.T) {
	s := scenario(t)
	s.Logical.Kubectl("create", "secret", "generic", "dev-kubeconfig", "--from-literal=value=hidden")
	s.Logical.Apply(view("dev"), view("mars"), "apiVersion: gitops.weave.works/v1alpha1\nkind: GitopsCluster\nmetadata: {name: prod}\n")
	shows := func(name, condition, want string) {
		t.Helper()
		s.Logical.Poll(fmt.Sprintf("%s of %s is %s", condition, name, want), func() error {
			path := fmt.Sprintf(`jsonpath={.status.conditions[?(@.type=="%s")].status} {.status.conditions[?(@.type=="%s")].reason}`, condition, condition)
			if got := s.Logical.Kubectl("get", gitopsClusters, name, "-o", path); got != want {
				return fmt.Errorf("it is %q", got)
			}
			return nil
		})
	}
	shows("dev", "Ready", "True ClusterReady")
	shows("dev", "ClusterConnectivity", "True ClusterConnectionSucceeded")
	shows("prod", "Ready", "True ClusterReady")
	shows("mars", "Ready", "False ClusterNotJoined")
	expect.Says(t, s.Logical.Kubectl("get", gitopsClusters), "READY", "STATUS", `cluster "dev" is ready`, `no cluster has joined as "mars"`)
	if got := s.Logical.Kubectl("get", gitopsClusters, "-o", "yaml"); strings.Contains(got, "hidden") || strings.Contains(got, "127.0.0.1") {
		t.Errorf("it shows a credential or an address:\n%s", got)
	}
	// It shows how a Cluster is, so it is for who may see that.
	ops := allowed(s, "ops", "create "+gitopsClusters, "edit "+s.Namespace)
	spy := strings.Replace(view("dev"), "name: dev}", "name: prod}", 1)
	s.Logical.Kubectl("delete", gitopsClusters, "prod")
	expect.Refused(t, s.Logical.TryInput(spy, append([]string{"create", "-f", "-"}, ops...)...), `metadata.name: you need the right to "get" clusters.manifold.dev "prod"`)
}

func TestAGitopsClusterFollowsAClusterThatJoinsAndLeaves(t *testing.T) {
	framework.Long(t)
	beside.Take(t)
	e := framework.StartOwn(t, framework.Options{Clusters: []string{"late"}, KeepApart: true})
	s := framework.NewScenario(t, e)
	s.Logical.Kubectl("apply", "-k", definitions)
	served(s, gitopsClusters)
	s.Logical.Apply(view("late"))
	becomes := func(want string) {
		t.Helper()
		s.Logical.Poll("it is "+want, func() error {
			if got := s.Logical.Kubectl("get", gitopsClusters, "late", "-o", `jsonpath={.status.conditions[?(@.type=="Ready")].reason}`); got != want {
				return fmt.Errorf("it is %q", got)
			}
			return nil
		})
	}
	becomes("ClusterNotJoined")
	if err := e.Join(t.Context(), "late"); err != nil {
		t.Fatal(err)
	}
	becomes("ClusterReady")
	s.Logical.CLI("cluster", "remove", "late", "--cluster-kubeconfig", s.Side("late").Kubeconfig, "--timeout=60s")
	becomes("ClusterNotJoined")
}
