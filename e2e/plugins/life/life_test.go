package life

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/e2e/framework"
	"github.com/manifold-dev/manifold/hack/stock"
	"github.com/manifold-dev/manifold/hack/stock/tools"
)

var (
	built       sync.Once
	program     string
	checksum    string
	errNotBuilt error
)

// rogue returns the program of the tests' plugins, and its checksum. It is kept beside the plugins, since each test has a folder of its own.
func rogue(t *testing.T) (path, sum string) {
	t.Helper()
	built.Do(func() {
		content, err := os.ReadFile(framework.RoguePlugin(t))
		if err != nil {
			errNotBuilt = err
			return
		}
		program, checksum = filepath.Join(filepath.Dir(dir), "rogue"), sumOf(content)
		errNotBuilt = os.WriteFile(program, content, 0o755)
	})
	if errNotBuilt != nil {
		t.Fatal(errNotBuilt)
	}
	return program, checksum
}

func sumOf(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}

func sumOfFile(t *testing.T, path string) string {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return sumOf(content)
}

// add applies a plugin with a configuration and further lines of its spec, and takes it away when the test ends.
func add(s *framework.Scenario, name, config string, more ...string) {
	s.Helper()
	path, sum := rogue(s.T)
	apply(s, name, path, sum, append([]string{"  gracePeriodSeconds: 2", "  config: " + config}, more...)...)
}

// apply applies a plugin with further lines of its spec, and takes it away when the test ends.
func apply(s *framework.Scenario, name, path, sum string, lines ...string) {
	s.Helper()
	s.Logical.Apply(fmt.Sprintf(`
apiVersion: delivery.manifold.dev/v1alpha1
kind: Plugin
metadata: {name: %s}
spec:
  url: file://%s
  sha256: "%s"
%s
`, name, path, sum, strings.Join(lines, "\n")))
	removeAtEnd(s, name)
}

// removeAtEnd takes a plugin away when the test ends, before others ask for its port or its name.
func removeAtEnd(s *framework.Scenario, name string) {
	s.T.Cleanup(func() { s.Environment.Cleanup(s.T, "delete", "plugin", name, "--ignore-not-found") })
}

func read(s *framework.Scenario, name string) (v1alpha1.Plugin, error) {
	var out v1alpha1.Plugin
	result := s.Logical.Try("get", "plugin", name, "-o", "json")
	if result.Code != 0 {
		return out, errors.New(result.String())
	}
	return out, json.Unmarshal([]byte(result.Stdout), &out)
}

// await waits until a plugin shows something.
func await(s *framework.Scenario, name, what string, holds func(of v1alpha1.PluginStatus, ready bool, reason, message string) bool) v1alpha1.PluginStatus {
	s.Helper()
	var got v1alpha1.Plugin
	s.Logical.Poll(fmt.Sprintf("plugin %s %s", name, what), func() error {
		var err error
		if got, err = read(s, name); err != nil {
			return err
		}
		ready := meta.FindStatusCondition(got.Status.Conditions, v1alpha1.PluginReady)
		if ready == nil {
			return errors.New("it shows nothing")
		}
		if !holds(got.Status, ready.Status == "True", ready.Reason, ready.Message) {
			return fmt.Errorf("it shows %+v", got.Status)
		}
		return nil
	})
	return got.Status
}

func awaitReady(s *framework.Scenario, name string, incarnation int64) (of v1alpha1.PluginStatus, pid int) {
	s.Helper()
	said := ""
	of = await(s, name, fmt.Sprintf("is ready, started for the %d. time or later", incarnation), func(of v1alpha1.PluginStatus, ready bool, _, message string) bool {
		said = message
		return ready && of.Incarnation >= incarnation
	})
	if _, err := fmt.Sscanf(said, "process %d", &pid); err != nil {
		s.Fatalf("it says %q: %v", said, err)
	}
	return of, pid
}

// lives reports whether a process runs, and has not merely not been asked about.
func lives(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err == nil && !strings.Contains(string(stat), ") Z ")
}

// children are the processes that belong to the user of a process.
func children(s *framework.Scenario, pid int) (out []int) {
	s.Helper()
	owner := userOf(pid)
	folders, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		s.Fatal(err)
	}
	for _, folder := range folders {
		var other int
		if _, err := fmt.Sscanf(filepath.Base(folder), "%d", &other); err == nil && other != pid && userOf(other) == owner {
			out = append(out, other)
		}
	}
	return out
}

func userOf(pid int) uint32 {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(status), "\nUid:")
	var user uint32
	_, _ = fmt.Sscan(rest, &user)
	return user
}

// needsRoot is for what only root can give plugins.
func needsRoot(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("plugins have users of their own only where the server is root")
	}
}

func TestAPluginIsReadyAndIsBackWhenItIsKilledOrHangs(t *testing.T) {
	s := framework.NewScenario(t, shared.Get(t))
	add(s, "good", "{stages: [GOOD_SYNC]}")
	of, pid := awaitReady(s, "good", 1)
	if !slices.Equal(of.Stages, []string{"GOOD_SYNC"}) || !slices.Equal(of.Services, []string{"Deployment"}) || of.Restarts != 0 {
		t.Errorf("it shows %+v", of)
	}
	if user := userOf(pid); os.Geteuid() == 0 && (user < 59000 || user > 59999) {
		t.Errorf("it runs as user %d", user)
	}
	environment, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(environment), "KUBECONFIG") || !strings.Contains(string(environment), "HOME="+filepath.Join(dir, "homes", "good")) {
		t.Errorf("its environment is %q", environment)
	}
	for _, signal := range []syscall.Signal{syscall.SIGKILL, syscall.SIGSTOP} {
		before, pid := awaitReady(s, "good", 1)
		begun := time.Now()
		if err := syscall.Kill(pid, signal); err != nil {
			t.Fatal(err)
		}
		await(s, "good", "is noticed", func(of v1alpha1.PluginStatus, ready bool, _, _ string) bool {
			return !ready || of.Incarnation > before.Incarnation
		})
		noticed := time.Since(begun)
		awaitReady(s, "good", before.Incarnation+1)
		t.Logf("signal %v: noticed after %s, back after %s", signal, noticed, time.Since(begun))
		if noticed > 6*time.Second || time.Since(begun) > 15*time.Second { // a second for kubectl
			t.Errorf("signal %v: noticed after %s, back after %s", signal, noticed, time.Since(begun))
		}
	}
	after, _ := awaitReady(s, "good", 3)
	if after.Restarts != 2 || after.LastError == "" {
		t.Errorf("it shows %+v", after)
	}
	s.Logical.Poll("events tell of it", func() error {
		return framework.Contains(s.Logical.Kubectl("get", "events", "--namespace=default", "--field-selector=involvedObject.kind=Plugin,involvedObject.name=good"),
			"Restarted", "SIGKILL", "has not answered for", "Answering")
	})
	log, err := os.ReadFile(filepath.Join(dir, "logs", "good.log"))
	if err != nil || !strings.Contains(string(log), "manifold: was ended by signal SIGKILL") {
		t.Errorf("its log has %q, %v", log, err)
	}

	s.Logical.Kubectl("annotate", "plugin", "good", v1alpha1.AnnotationRestartAt+"=now")
	await(s, "good", "is restarted as asked", func(of v1alpha1.PluginStatus, ready bool, _, _ string) bool { return ready && of.RestartedFor == "now" })
	if got, _ := awaitReady(s, "good", 4); got.Restarts != 2 {
		t.Errorf("a restart that was asked for counts as a failure: %+v", got)
	}
	_, pid = awaitReady(s, "good", 4)
	s.Logical.Kubectl("delete", "plugin", "good")
	s.Logical.Poll("its process and its folder go", func() error {
		if _, err := os.Stat(filepath.Join(dir, "homes", "good")); lives(pid) || !os.IsNotExist(err) {
			return fmt.Errorf("process %d runs: %t; its folder: %v", pid, lives(pid), err)
		}
		return nil
	})
}

func TestAServerThatIsKilledLeavesNoPluginBehind(t *testing.T) {
	needsRoot(t)
	s := framework.NewScenario(t, shared.Get(t))
	port, err := stock.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	add(s, "forks", "{behaviour: forks}", fmt.Sprintf("  port: %d", port))
	before, pid := awaitReady(s, "forks", 1)
	family := children(s, pid)
	if len(family) < 3 {
		t.Fatalf("it has started %v", family)
	}
	if err := s.Environment.Manifold.Kill(); err != nil {
		t.Fatal(err)
	}
	begun := time.Now()
	if err := s.Environment.Manifold.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	ready := time.Now()
	after, next := awaitReady(s, "forks", before.Incarnation+1)
	t.Logf("the server was back after %s, the plugin %s later", ready.Sub(begun), time.Since(ready))
	if next == pid || after.Restarts != before.Restarts {
		t.Errorf("process %d of before, %d of now, %+v", pid, next, after)
	}
	for _, old := range append(family, pid) {
		if lives(old) {
			t.Errorf("process %d outlives its server", old)
		}
	}
	conn, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", port))
	if err != nil {
		t.Fatalf("nobody listens on the port: %v", err)
	}
	conn.Close()

	// A server that is asked to end takes its plugins along.
	family = children(s, next)
	if err := s.Environment.Manifold.Terminate(); err != nil {
		t.Error(err)
	}
	for _, old := range append(family, next) {
		if lives(old) {
			t.Errorf("process %d outlives a server that was asked to end", old)
		}
	}
	if err := s.Environment.Manifold.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func TestPluginsThatMisbehaveHarmNobody(t *testing.T) {
	s := framework.NewScenario(t, shared.Get(t))
	add(s, "honest", "{stages: [HONEST_SYNC]}")
	awaitReady(s, "honest", 1)
	path, _ := rogue(t)
	apply(s, "changed", path, sumOf([]byte("another program")))
	add(s, "exits", "{behaviour: exits}")
	add(s, "huge", "{behaviour: huge, bytes: 104857600}")
	add(s, "other-protocol", "{behaviour: other-protocol}")
	add(s, "leaks", "{behaviour: leaks, bytes: 4294967296}")
	add(s, "floods", "{behaviour: floods, stages: [FLOODS_SYNC]}")
	add(s, "names", `{stages: ["no name"]}`)
	add(s, "same", "{stages: [HONEST_SYNC, WAIT]}")
	for name, want := range map[string]string{
		"changed":        "the checksum differs",
		"exits":          "exited with code 0, which nobody has asked it to",
		"huge":           "larger than max",
		"other-protocol": "on port",
		"leaks":          "the process ",
		"names":          `"no name" is no name of a stage`,
	} {
		await(s, name, "says what is wrong", func(of v1alpha1.PluginStatus, _ bool, _, _ string) bool { return strings.Contains(of.LastError, want) })
	}
	if of := await(s, "changed", "is not run", func(_ v1alpha1.PluginStatus, ready bool, reason, _ string) bool {
		return !ready && reason == v1alpha1.PluginReasonChecksumDiffers
	}); of.Incarnation != 0 {
		t.Errorf("it was started %d times", of.Incarnation)
	}
	await(s, "exits", "is told to be in a loop", func(_ v1alpha1.PluginStatus, _ bool, reason, _ string) bool {
		return reason == v1alpha1.PluginReasonCrashLoop
	})
	awaitReady(s, "floods", 1)
	awaitReady(s, "same", 1)
	await(s, "honest", "shows that another one offers its stage", func(of v1alpha1.PluginStatus, ready bool, _, _ string) bool {
		distinct := meta.FindStatusCondition(of.Conditions, v1alpha1.PluginStagesDistinct)
		return ready && distinct != nil && distinct.Status == "False" && strings.Contains(distinct.Message, "HONEST_SYNC is also offered by same")
	})
	of, pid := awaitReady(s, "honest", 1)
	if of.Restarts != 0 || of.Incarnation != 1 {
		t.Errorf("the honest one shows %+v", of)
	}
	if os.Geteuid() == 0 {
		for _, other := range []string{"floods", "same"} {
			if _, process := awaitReady(s, other, 1); userOf(process) == userOf(pid) {
				t.Errorf("%s and honest are both user %d", other, userOf(pid))
			}
		}
	}
	logs, err := filepath.Glob(filepath.Join(dir, "logs", "floods*"))
	if err != nil || len(logs) == 0 || len(logs) > 3 {
		t.Errorf("the logs of the one that floods are %v, %v", logs, err)
	}
}

// A server without a folder for plugins runs none, and says so.
func TestWhereNoPluginsRunTheySaySo(t *testing.T) {
	s := framework.NewScenario(t, shared.Get(t))
	add(s, "idle", "{stages: [IDLE_SYNC]}")
	awaitReady(s, "idle", 1)
	restart := func(args ...string) {
		t.Helper()
		s.Environment.Manifold.SetArgs(args...)
		if err := s.Environment.Manifold.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	restart()
	await(s, "idle", "says that none are run", func(of v1alpha1.PluginStatus, ready bool, reason, message string) bool {
		return !ready && reason == v1alpha1.PluginReasonHostDisabled && strings.Contains(message, "--plugins-dir") && len(of.Stages) == 0
	})
	restart(runs...)
	awaitReady(s, "idle", 2)
}

// Plugins of PipeCD are made with its SDK.
func TestAPluginOfTheSDKBecomesReady(t *testing.T) {
	s := framework.NewScenario(t, shared.Get(t))
	sdkPlugin(s, "toy", tools.ToyPlugin, "  logLevel: debug", "  deployTargets: [{name: here, config: {folder: /tmp}}]")
	of, _ := awaitReady(s, "toy", 1)
	if !slices.Contains(of.Stages, "TOY_SYNC") || !slices.Equal(of.Services, []string{"Deployment", "LiveState", "PlanPreview"}) || !slices.Equal(of.Targets, []string{"here"}) {
		t.Errorf("it shows %+v", of)
	}
}
