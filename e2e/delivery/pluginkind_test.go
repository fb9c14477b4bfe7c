package delivery

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/manifold-dev/manifold/e2e/framework"
	"github.com/manifold-dev/manifold/e2e/framework/expect"
)

// pluginManifest is a plugin whose program nobody runs: this server was started without --plugins-dir.
func pluginManifest(name string) string {
	return fmt.Sprintf(`
apiVersion: delivery.manifold.dev/v1alpha1
kind: Plugin
metadata: {name: %s}
spec:
  url: file:///opt/plugins/wait
  sha256: %s
  config: {a: {b: [1, two]}}
  deployTargets: [{name: dev_1, config: {kubeConfigPath: /etc/kubeconfig}}]
`, name, strings.Repeat("0a", 32))
}

// removed takes a plugin, which is in no namespace, away at the end of a test.
func removed(s *framework.Scenario, name string) string {
	s.T.Cleanup(func() { s.Logical.Try("delete", "plugin", name, "--ignore-not-found") })
	return name
}

// A plugin is a program that runs on the server's own host.
func TestNoRightInANamespaceMakesAPluginRun(t *testing.T) {
	s := suite.Scenario(t)
	name := removed(s, "plugin-rights")
	s.Logical.Apply(pluginManifest(name))
	everywhere := "plugin-rights-edit"
	s.Logical.Kubectl("create", "clusterrolebinding", everywhere, "--clusterrole=edit", "--user=edith")
	t.Cleanup(func() { s.Logical.Try("delete", "clusterrolebinding", everywhere) })
	for user, role := range map[string]string{"adam": "admin", "edith": "edit", "vera": "view"} {
		who := given(s, user, role, "get applications")
		for _, verb := range []string{"create", "update", "patch", "delete", "deletecollection", "get", "list", "watch"} {
			for _, resource := range []string{"plugins.delivery.manifold.dev", "plugins.delivery.manifold.dev/status"} {
				if got := who.may(verb + " " + resource); got.Code == 0 {
					t.Errorf("who has the role %s may %s %s", role, verb, resource)
				}
			}
		}
		expect.Refused(t, s.Logical.TryInput(pluginManifest("plugin-"+user), append([]string{"create", "-f", "-"}, who.flags...)...), "cannot create resource")
		expect.Refused(t, who.try("annotate", "plugin", name, "delivery.manifold.dev/restart-at=now"), "forbidden")
		expect.Refused(t, s.Logical.TryCLI(append([]string{"plugin", "restart", name}, who.flags...)...), "cannot patch resource")
	}

	s.Logical.Kubectl("create", "clusterrolebinding", "plugin-rights-view", "--clusterrole=manifold-plugins-view", "--user=vera")
	t.Cleanup(func() { s.Logical.Try("delete", "clusterrolebinding", "plugin-rights-view") })
	s.Logical.Poll("who is given the role sees plugins", func() error {
		return framework.Failure(s.Logical.TryCLI("plugin", "list", name, "--as=vera"))
	})
	expect.Refused(t, s.Logical.TryCLI("plugin", "restart", name, "--as=vera"), "cannot patch resource")

	// Nor does an administrator say what a plugin offers.
	expect.Refused(t, s.Logical.Try("patch", "plugin", name, "--subresource=status", "--type=merge", "-p", `{"status":{"stages":["K8S_SYNC"]}}`),
		"Manifold alone writes the status of a plugin")
}

func TestPluginsExplainThemselvesAndRefuseWhatCannotBeByPath(t *testing.T) {
	framework.Long(t)
	s := suite.Scenario(t)
	for path, want := range map[string]string{
		"plugin.spec.sha256":                        "A program whose checksum is another one is never run",
		"plugin.spec.deployTargets.clusterSelector": "Each of them is then a place of its own",
		"plug.status.restartedFor":                  "that the plugin was last restarted for",
	} {
		if got := strings.Join(strings.Fields(s.Logical.Kubectl("explain", path)), " "); !strings.Contains(got, want) {
			t.Errorf("explain %s does not say %q:\n%s", path, want, got)
		}
	}
	manifest := pluginManifest("plugin-refused")
	for name, test := range map[string]struct{ old, with, want string }{
		"no checksum":                  {strings.Repeat("0a", 32), `""`, "spec.sha256: Required value"},
		"credentials in an address":    {"file:///opt/plugins/wait", "https://me:hunter2@example.com/wait", "spec.url: Forbidden"},
		"a list for a config":          {"config: {a: {b: [1, two]}}", "config: [a]", `spec.config: Invalid value: "": must be an object`},
		"a target twice":               {"deployTargets: [", "deployTargets: [{name: dev_1}, ", `spec.deployTargets[1].name: Duplicate value: "dev_1"`},
		"a field that there isn't":     {"deployTargets", "deployTarget", `unknown field "spec.deployTarget"`},
		"a limit that nothing fits in": {"config:", "limits: {memory: 1Mi}\n  config:", `spec.limits.memory: Invalid value: "1Mi"`},
	} {
		t.Run(name, func(t *testing.T) {
			got := s.Subtest(t).Logical.TryInput(strings.Replace(manifest, test.old, test.with, 1), "create", "-f", "-", "--dry-run=server")
			expect.Refused(t, got, test.want)
		})
	}
}

func TestPluginsAreImportedShownAndRestarted(t *testing.T) {
	framework.Long(t)
	s := suite.Scenario(t)
	folder := t.TempDir()
	program, file := filepath.Join(folder, "wait"), filepath.Join(folder, "piped.yaml")
	const name = "plugin-imported"
	write := func(path, content string) {
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(program, "#!/bin/sh\n")
	write(file, "apiVersion: pipecd.dev/v1beta1\nkind: Piped\nspec:\n  projectID: shop\n  plugin:\n  - {name: "+name+", port: 7001, sourceURL: "+program+
		", config: {a: 1}, deployTargets: [{name: dev, labels: {env: dev}, config: {masterURL: 'http://cluster-dev'}}]}\n")
	removed(s, name)

	printed := s.Logical.TryCLI("plugin", "import", file)
	expect.Says(t, printed.Stderr, "Warning: spec.projectID is not honoured", "has the SHA-256 a8076d3d28d21e02012b20eaf7dbf75409a6277134439025f282e368e3305abf")
	s.Logical.KubectlInput(printed.Stdout, "create", "--dry-run=server", "-f", "-")
	expect.Says(t, s.Logical.CLI("plugin", "import", file, "--apply", "--dry-run"), "plugin/"+name+" imported (server dry run)")
	if got := s.Logical.Try("get", "plugin", name); got.Code == 0 {
		t.Fatalf("a trial has made it: %s", got)
	}
	expect.Says(t, s.Logical.CLI("plugin", "import", file, "--apply"), "plugin/"+name+" imported")
	expect.Says(t, s.Logical.Kubectl("get", "plugin", name, "-o", "jsonpath={.spec.deployTargets} {.spec.port} {.spec.logLevel} {.metadata.generation}"),
		`[{"config":{"masterURL":"http://cluster-dev"},"labels":{"env":"dev"},"name":"dev"}] 7001 info 1`)
	s.Logical.CLI("plugin", "import", file, "--apply")
	expect.Says(t, s.Logical.Kubectl("get", "plugin", name, "-o", "jsonpath={.metadata.generation}"), "1")

	restart := s.Logical.TryCLI("plugin", "restart", name)
	expect.Says(t, restart.Stdout, "plugin/"+name+" is asked to restart")
	expect.Says(t, restart.Stderr, "is not ready: ")
	asked := s.Logical.Kubectl("get", "plugin", name, "-o", `jsonpath={.metadata.annotations.delivery\.manifold\.dev/restart-at}`)
	expect.Says(t, s.Logical.CLI("plugin", "get", name), "Ready: ", "a restart, by ", asked)

	expect.Says(t, strings.Join(strings.Fields(s.Logical.CLI("plugin", "list", name)), " "), "NAME READY STAGES RESTARTS LAST ERROR AGE "+name)
	got := s.Logical.TryCLI("plugin", "restart", name, "--wait", "--timeout", "1s")
	if got.Code != 1 || !strings.Contains(got.Stderr, "has not restarted after 1s") {
		t.Errorf("a restart that nobody does: %s", got)
	}
}
