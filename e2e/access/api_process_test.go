package access

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/manifold-dev/manifold/e2e/framework"
	"github.com/manifold-dev/manifold/e2e/framework/expect"
	"github.com/manifold-dev/manifold/e2e/framework/manifests"
	"github.com/manifold-dev/manifold/hack/stock/tools"
)

// inFiles runs a program where the files of a pod are, as the kernel does for a container: nobody else sees them there.
const inFiles = `mount -t tmpfs tmpfs "$(realpath /var/run)" && mkdir /var/run/secrets && cp -r "$1"/var/run/secrets/. /var/run/secrets/ && shift && exec "$@"`

// kubectl runs the stock kubectl as a process of the pod: with its environment and its files, and nothing else.
func (p inPod) kubectl(s *framework.Scenario, args ...string) (output string, err error) {
	s.Helper()
	root, err := tools.Root()
	if err != nil {
		s.Fatal(err)
	}
	program := append([]string{filepath.Join(tools.BinDir(root), tools.Kubectl), "--cache-dir", filepath.Join(p.root, "cache")}, args...)
	cmd := exec.CommandContext(s.Context(), "unshare", append([]string{"--mount", "--map-root-user", "sh", "-ec", inFiles, "sh", p.root}, program...)...)
	cmd.Env = []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "HOME=" + p.root}
	for name, value := range p.env {
		cmd.Env = append(cmd.Env, name+"="+value)
	}
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// TestAProcessInAPodFindsTheLogicalCluster runs a client that reads what all client libraries read, and is told nothing else.
func TestAProcessInAPodFindsTheLogicalCluster(t *testing.T) {
	if out, err := exec.CommandContext(t.Context(), "unshare", "--mount", "--map-root-user", "true").CombinedOutput(); err != nil {
		t.Skipf("this machine gives a process no files of its own: %v %s", err, out)
	}
	s := suite.Scenario(t)
	s.Logical.Apply(operatorAccount, operatorRights, operatedBy("operator"), manifests.Pinned(manifests.Deployment("web", 2), "east,west"))
	expect.RolledOut(s, "web", 2)
	side, pod := podBelow(s, "operator")
	process := enter(s, side, pod)
	answers := func(want string, args ...string) {
		t.Helper()
		if out, err := process.kubectl(s, args...); err != nil || !strings.Contains(out, want) {
			t.Errorf("kubectl %s in the pod: %v, %s; want %q", strings.Join(args, " "), err, out, want)
		}
	}
	answers("system:serviceaccount:"+s.Namespace+":operator", "auth", "whoami")
	// The namespace is its own without being named, and both clusters are in what it sees.
	out, err := process.kubectl(s, "get", "pods", "-l", "app=web", "-o", "wide")
	if err != nil || !strings.Contains(out, " east ") || !strings.Contains(out, " west ") {
		t.Errorf("it sees the pods: %v\n%s", err, out)
	}
	answers("deployment.apps/made created", "create", "deployment", "made", "--image=made:1")
	framework.Await(s.Logical, "made", "runs", func(d *appsv1.Deployment) bool { return expect.Available(1)(d) })
	if out, err := process.kubectl(s, "get", "secrets"); err == nil || !strings.Contains(out, "Forbidden") {
		t.Errorf("it lists Secrets: %v, %s", err, out)
	}

	// Its life is that of its pod.
	s.Logical.Kubectl("delete", "pod", pod.Name, "--wait=false")
	framework.AwaitGone[*corev1.Pod](s.Logical, pod.Name)
	s.Logical.Poll("the token is refused", func() error {
		if out, err := process.kubectl(s, "get", "pods"); err == nil || !strings.Contains(out, "Unauthorized") {
			return fmt.Errorf("it is answered: %v, %s", err, out)
		}
		return nil
	})
}
