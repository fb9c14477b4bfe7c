package delivery

import (
	"errors"
	"strings"
	"testing"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/e2e/framework"
	"github.com/manifold-dev/manifold/e2e/framework/expect"
	"github.com/manifold-dev/manifold/pkg/delivery/source/git/gittest"
)

// user is somebody who may write Applications, and use one plugin.
const user = `
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: editor}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: edit}
subjects: [{kind: User, apiGroup: rbac.authorization.k8s.io, name: USER}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: use-terraform-USER}
rules: [{apiGroups: [delivery.manifold.dev], resources: [plugins], resourceNames: [terraform], verbs: [use]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: use-terraform-USER}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: use-terraform-USER}
subjects: [{kind: User, apiGroup: rbac.authorization.k8s.io, name: USER}]
`

// byPlugin is an application of a repository that a plugin alone delivers.
func byPlugin(url, plugin string, lines ...string) string {
	return strings.Join(append([]string{
		"apiVersion: delivery.manifold.dev/v1alpha1", "kind: Application", "metadata: {name: infra}", "spec:", "  source: {git: {url: '" + url + "', path: infra, interval: 10s}}",
		"  plugins: [{name: " + plugin + "}]", "  pluginsOnly: true",
	}, lines...), "\n") + "\n"
}

func TestWhoMayUseAPluginHasItDeliverFilesThatAreNoManifests(t *testing.T) {
	framework.Long(t)
	s := suite.Scenario(t)
	who := "pat-" + s.Namespace
	s.Logical.Apply(strings.ReplaceAll(user, "USER", who))
	t.Cleanup(func() {
		s.Logical.Try("delete", "clusterrole", "use-terraform-"+who)
		s.Logical.Try("delete", "clusterrolebinding", "use-terraform-"+who)
	})
	applies := func(manifest string) framework.Result {
		return s.Logical.TryInput(manifest, "apply", "-f", "-", "--as="+who)
	}
	s.Logical.Poll("somebody may write applications", func() error {
		return framework.Failure(s.Logical.Try("auth", "can-i", "create", "applications.delivery.manifold.dev", "--as="+who))
	})
	repository := gittest.New(t, "shop")
	repository.Commit("the first", map[string]string{"infra/main.tf": "resource {}\n"})
	url := repository.Serve()

	expect.Refused(t, applies(byPlugin(url, "ecs")), `spec.plugins[0].name: you need the right to "use" Plugin "ecs"`)
	s.Logical.Poll("who may use a plugin names it", func() error { return framework.Failure(applies(byPlugin(url, "terraform"))) })
	// Nothing is rendered, and a revision is the files of a commit.
	s.Logical.Poll("the revision is there", func() error {
		got := s.Logical.Try("get", "applicationrevision", "infra-v1", "-o", "jsonpath={.spec.content} {.spec.objects} {.spec.origin.path}")
		if len(got.Stdout) < 64 || !strings.HasSuffix(got.Stdout, "  infra") {
			return errors.New(got.String())
		}
		return nil
	})
	awaitRelease(s, "infra-v1", "waits for the plugin, and says so", func(release v1alpha1.Release) bool {
		return release.Status.Phase == v1alpha1.ReleasePending && strings.HasPrefix(release.Status.Message, "spec.plugins")
	})
	expect.Refused(t, applies(strings.Replace(byPlugin(url, "terraform"), "pluginsOnly: true", "pluginsOnly: false", 1)), "spec.pluginsOnly: Forbidden")

	// The files decide what is a new revision.
	repository.Commit("the second", map[string]string{"infra/main.tf": "resource { size = 2 }\n"})
	s.Logical.Poll("a change of the files is another revision", func() error {
		return framework.Failure(s.Logical.Try("get", "applicationrevision", "infra-v2"))
	})

	// Somebody who may write applications and use no plugin does not have one do other things by way of an application that names it.
	ann := strings.ReplaceAll(strings.Split(user, "---")[0], "USER", "ann-"+s.Namespace)
	s.Logical.Apply(strings.Replace(ann, "name: editor", "name: other-editor", 1))
	s.Logical.Poll("ann may write applications", func() error {
		return framework.Failure(s.Logical.Try("auth", "can-i", "update", "applications.delivery.manifold.dev", "--as=ann-"+s.Namespace))
	})
	patches := func(patch string) framework.Result {
		return s.Logical.Try("patch", "application", "infra", "--type=merge", "-p", patch, "--as=ann-"+s.Namespace)
	}
	expect.Refused(t, patches(`{"spec":{"source":{"git":{"path":"elsewhere"}}}}`), `spec.plugins[0].name: you need the right to "use" Plugin "terraform"`)
	if got := patches(`{"spec":{"suspend":true}}`); got.Code != 0 {
		t.Errorf("who may write it cannot stop it: %s", got)
	}
}
