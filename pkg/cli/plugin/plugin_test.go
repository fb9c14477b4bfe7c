package plugin

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	ktesting "k8s.io/client-go/testing"
	clocktesting "k8s.io/utils/clock/testing"
	utilexec "k8s.io/utils/exec"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/generated/clientset/versioned/fake"
	"github.com/manifold-dev/manifold/pkg/cli/output"
	"github.com/manifold-dev/manifold/pkg/delivery/plugins/fetch"
)

var now = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func wait() *v1alpha1.Plugin {
	return &v1alpha1.Plugin{
		ObjectMeta: metav1.ObjectMeta{Name: "wait"},
		Spec:       v1alpha1.PluginSpec{URL: "file:///opt/plugins/wait", Sha256: strings.Repeat("0a", 32), Config: &runtime.RawExtension{Raw: []byte(`{"password":"hunter2"}`)}},
	}
}

func condition(status metav1.ConditionStatus, reason, message string) []metav1.Condition {
	return []metav1.Condition{{Type: v1alpha1.PluginReady, Status: status, Reason: reason, Message: message}}
}

func TestAPluginIsShown(t *testing.T) {
	answering := wait()
	answering.Status = v1alpha1.PluginStatus{
		Stages: []string{"WAIT", "WAIT_LONG"}, Services: []string{"Deployment"}, Targets: []string{"east", "west"}, Restarts: 2, StartTime: &metav1.Time{Time: now.Add(-time.Hour)},
		LastError: "exit status 1:\n\x1b[2Jcannot listen", LastErrorTime: &metav1.Time{Time: now.Add(-2 * time.Hour)}, Conditions: condition(metav1.ConditionTrue, "Answering", ""),
	}
	failing := wait()
	failing.Annotations = map[string]string{v1alpha1.AnnotationRestartAt: "2026-01-02T03:04:00Z", v1alpha1.AnnotationAskedBy: "the-boss"}
	failing.Status.RestartAsked = &v1alpha1.PluginAsked{For: "2026-01-02T03:04:00Z", By: "alice"}
	renamed := wait()
	renamed.Spec.PipecdName, renamed.Spec.InstallTools, renamed.Spec.SecretRef = "Wait", true, &v1alpha1.PluginSecretReference{Name: "login"}
	renamed.Annotations = map[string]string{v1alpha1.AnnotationRestartAt: "now", v1alpha1.AnnotationRefetchAt: "then"}
	renamed.Status.RestartedFor, renamed.Status.RestartAsked = "now", &v1alpha1.PluginAsked{For: "now", By: "\x1b[2Jalice", Time: metav1.NewTime(now)}
	renamed.Status.RefetchedFor = "then" // before anybody was written down
	failing.Status.Conditions = condition(metav1.ConditionFalse, "ChecksumDiffers", "asked for is 0a0a")
	for name, test := range map[string]struct {
		plugin *v1alpha1.Plugin
		want   string
	}{
		"one that answers": {answering, `
Name:        wait
Program:     file:///opt/plugins/wait
SHA-256:     0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a
Ready:       True, Answering
Stages:      WAIT, WAIT_LONG
Services:    Deployment
Targets:     east, west
Process:     started 60m ago, restarted 2 times
Last error:  120m ago: exit status 1: ^[[2Jcannot listen
`},
		"one that does not, and is to restart": {failing, `
Name:       wait
Program:    file:///opt/plugins/wait
SHA-256:    0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a
Ready:      False, ChecksumDiffers: asked for is 0a0a
Stages:     -
Services:   -
Targets:    -
Asked for:  a restart, by alice at 2026-01-02T03:04:00Z
`},
		"one with all that it may have": {renamed, `
Name:      wait
In files:  Wait
Program:   file:///opt/plugins/wait
Login:     Secret manifold-system/login
SHA-256:   0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a
Ready:     Unknown
Stages:    -
Services:  -
Targets:   -
Tools:     it may install those that it asks for
Done:      a restart, for which ^[[2Jalice has asked at ` + now.UTC().Format(time.RFC3339) + `
`},
		"one that is new": {wait(), `
Name:      wait
Program:   file:///opt/plugins/wait
SHA-256:   0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a
Ready:     Unknown
Stages:    -
Services:  -
Targets:   -
`},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(strings.TrimPrefix(test.want, "\n"), strings.Join(show(test.plugin, now), "\n")+"\n"); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// asked is what a restart has written down.
const asked = "2026-01-02T03:04:05.000000Z"

func restarting(client *fake.Clientset) (*RestartOptions, func() (string, string)) {
	streams, _, out, errOut := genericiooptions.NewTestIOStreams()
	return &RestartOptions{IOStreams: streams, logical: logical{client}, Name: "wait", clock: clocktesting.NewFakePassiveClock(now)},
		func() (string, string) { return out.String(), errOut.String() }
}

func TestARestartIsAskedForByTheTime(t *testing.T) {
	plugin := wait()
	plugin.Annotations = map[string]string{"team": "shop"}
	plugin.Status.Conditions = condition(metav1.ConditionTrue, "Answering", "")
	client := fake.NewSimpleClientset(plugin)
	o, said := restarting(client)
	o.Refetch = true
	if err := o.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if out, errOut := said(); out != "plugin/wait is asked to restart\n" || errOut != "" {
		t.Errorf("it says %q and %q", out, errOut)
	}
	got, err := client.DeliveryV1alpha1().Plugins().Get(t.Context(), "wait", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"team": "shop", v1alpha1.AnnotationRestartAt: asked, v1alpha1.AnnotationRefetchAt: asked}
	if diff := cmp.Diff(want, got.Annotations); diff != "" {
		t.Error(diff)
	}
}

func TestWhatMayKeepARestartIsWarnedOf(t *testing.T) {
	suspended, elsewhere := wait(), wait()
	suspended.Spec.Suspend = true
	elsewhere.Status.Conditions = condition(metav1.ConditionFalse, "HostDisabled", "this server runs no plugins")
	for name, test := range map[string]struct {
		plugin *v1alpha1.Plugin
		want   string
	}{
		"of one that is suspended":   {suspended, "is suspended"},
		"of a server that runs none": {elsewhere, "plugin wait is not ready: False, HostDisabled: this server runs no plugins"},
		"of one that is new":         {wait(), "plugin wait is not ready: Unknown"},
	} {
		t.Run(name, func(t *testing.T) {
			o, said := restarting(fake.NewSimpleClientset(test.plugin))
			if err := o.Run(t.Context()); err != nil {
				t.Fatal(err)
			}
			if _, errOut := said(); !strings.Contains(errOut, test.want) {
				t.Errorf("it warns of %q, want %q in it", errOut, test.want)
			}
		})
	}
	o, _ := restarting(fake.NewSimpleClientset())
	if err := o.Run(t.Context()); err == nil || !strings.Contains(err.Error(), `"wait" not found`) {
		t.Errorf("of one that there is not: %v", err)
	}
}

func TestARestartIsWaitedForUntilTheNewProcessAnswers(t *testing.T) {
	plugin := wait()
	plugin.Status.Conditions = condition(metav1.ConditionTrue, "Answering", "")
	client := fake.NewSimpleClientset(plugin)
	o, said := restarting(client)
	o.Wait = true
	// The controller writes each time that the command has shown how it is: it stops the old process, and then the new one answers.
	next := []v1alpha1.PluginStatus{
		{RestartedFor: asked, Conditions: condition(metav1.ConditionFalse, "Starting", "")},
		{RestartedFor: asked, Conditions: condition(metav1.ConditionTrue, "Answering", "")},
	}
	shown := o.ErrOut
	o.ErrOut = writer(func(said []byte) (int, error) {
		if strings.HasPrefix(string(said), "plugin/wait: ") && len(next) > 0 {
			changed := wait()
			changed.Status, next = next[0], next[1:]
			if _, err := client.DeliveryV1alpha1().Plugins().Update(t.Context(), changed, metav1.UpdateOptions{}); err != nil {
				t.Error(err)
			}
		}
		return shown.Write(said)
	})
	if err := o.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if out, errOut := said(); out != "plugin/wait restarted\n" || errOut != "plugin/wait is asked to restart\nplugin/wait: True, Answering\nplugin/wait: False, Starting\n" {
		t.Errorf("it says %q and %q", out, errOut)
	}
}

type writer func([]byte) (int, error)

func (w writer) Write(said []byte) (int, error) { return w(said) }

func TestARestartThatTakesTooLongIsAnError(t *testing.T) {
	plugin := wait()
	plugin.Status = v1alpha1.PluginStatus{RestartedFor: "2025-01-02T03:04:05.000000Z", Conditions: condition(metav1.ConditionFalse, "Exited", "exit status 1")}
	o, _ := restarting(fake.NewSimpleClientset(plugin))
	o.Wait, o.Timeout = true, 2*time.Second
	err := o.Run(t.Context())
	if want := "plugin wait has not restarted after 2s (ready is False, Exited: exit status 1): manifold plugin get wait"; err == nil || err.Error() != want {
		t.Errorf("it says %v, want %s", err, want)
	}
	o.Wait = false
	if o.Validate() == nil {
		t.Error("a time to wait without waiting is taken")
	}
}

const config = `apiVersion: pipecd.dev/v1beta1
kind: Piped
spec:
  plugins:
  - {name: wait, url: "file:///opt/plugins/wait", port: 7001}
  - name: k8s
    url: oci://registry.example/plugins/k8s:v1
    deployTargets: [{name: dev, labels: {env: dev}, config: {kubeConfigPath: /etc/kubeconfig}}]
`

// pinned tells checksums without fetching anything.
func pinned(_ context.Context, url string, _ fetch.Options) (fetch.File, error) {
	if strings.HasPrefix(url, "oci:") {
		return fetch.File{}, errors.New("no route to host")
	}
	return fetch.File{Sha256: strings.Repeat("0b", 32)}, nil
}

func importing(t *testing.T, content string) (o *ImportOptions, out, errOut func() string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "piped.yaml")
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	streams, _, stdout, stderr := genericiooptions.NewTestIOStreams()
	return &ImportOptions{IOStreams: streams, File: path, Output: output.YAML, Checksums: map[string]string{"k8s": strings.Repeat("0c", 32)}, pin: pinned}, stdout.String, stderr.String
}

func TestPluginsArePrintedForKubectl(t *testing.T) {
	o, out, errOut := importing(t, config)
	if err := o.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	want := `apiVersion: delivery.manifold.dev/v1alpha1
kind: Plugin
metadata:
  name: wait
spec:
  port: 7001
  sha256: ` + strings.Repeat("0b", 32) + `
  url: file:///opt/plugins/wait
---
apiVersion: delivery.manifold.dev/v1alpha1
kind: Plugin
metadata:
  name: k8s
spec:
  deployTargets:
  - config:
      kubeConfigPath: /etc/kubeconfig
    labels:
      env: dev
    name: dev
  sha256: ` + strings.Repeat("0c", 32) + `
  url: oci://registry.example/plugins/k8s:v1
`
	if diff := cmp.Diff(want, out()); diff != "" {
		t.Error(diff)
	}
	if want := "plugin/wait: what has come has the SHA-256 " + strings.Repeat("0b", 32) + "; compare it with what the publisher says\n"; errOut() != want {
		t.Errorf("it says %q, want %q", errOut(), want)
	}
	o, out, _ = importing(t, config)
	o.Output = output.JSON
	if err := o.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	var list struct {
		Kind  string
		Items []v1alpha1.Plugin
	}
	if err := json.Unmarshal([]byte(out()), &list); err != nil || list.Kind != "List" || len(list.Items) != 2 || list.Items[1].Name != "k8s" {
		t.Errorf("as JSON it is %s (%v)", out(), err)
	}
}

func TestWhatCannotBeImportedMakesNothing(t *testing.T) {
	lossy := config + "  git: {username: me}\n"
	for name, test := range map[string]struct {
		content string
		change  func(*ImportOptions)
		want    string
		code    int
	}{
		"a file that is wrong":             {content: strings.Replace(config, "port", "prot", 1), want: "spec.plugins[0].prot: Invalid value: there is no such field"},
		"what is not honoured, strictly":   {content: lossy, change: func(o *ImportOptions) { o.Strict = true }, want: "error: 1 fields of ", code: 2},
		"a program that cannot be fetched": {content: config, change: func(o *ImportOptions) { o.Checksums = nil }, want: `plugin "k8s": make the checksum of its program, which --sha256 k8s=CHECKSUM says as well: no route to host`},
		"a checksum that is none":          {content: config, change: func(o *ImportOptions) { o.Checksums["k8s"] = "abc" }, want: `plugin "k8s" is not valid: spec.sha256: Invalid value: "abc"`},
		"a checksum of no plugin":          {content: config, change: func(o *ImportOptions) { o.Checksums["k9s"] = "abc" }, want: "--sha256 k9s=...: the file has no plugin of the name"},
		"a file that is not there":         {content: config, change: func(o *ImportOptions) { o.File += "x" }, want: "no such file"},
	} {
		t.Run(name, func(t *testing.T) {
			o, out, _ := importing(t, test.content)
			client := fake.NewSimpleClientset()
			o.logical, o.Apply = logical{client}, true
			if test.change != nil {
				test.change(o)
			}
			err := o.Run(t.Context())
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("it says %v, want %q in it", err, test.want)
			}
			var exit utilexec.CodeExitError
			if errors.As(err, &exit) != (test.code != 0) || exit.Code != test.code {
				t.Errorf("exit code %d, want %d", exit.Code, test.code)
			}
			if out() != "" || len(client.Actions()) > 0 {
				t.Errorf("it prints %q and does %v", out(), client.Actions())
			}
		})
	}
	o, _, errOut := importing(t, lossy)
	if err := o.Run(t.Context()); err != nil || !strings.Contains(errOut(), "Warning: spec.git is not honoured: ") {
		t.Errorf("without --strict: %v, and it warns of %q", err, errOut())
	}
}

func TestPluginsAreAppliedByTheServer(t *testing.T) {
	o, out, _ := importing(t, config)
	client := fake.NewSimpleClientset()
	var applied []ktesting.PatchActionImpl
	client.PrependReactor("patch", "plugins", func(action ktesting.Action) (bool, runtime.Object, error) {
		patch := action.(ktesting.PatchActionImpl)
		applied = append(applied, patch)
		if patch.Name == "wait" {
			return true, nil, errors.New("somebody else owns spec.url")
		}
		return true, &v1alpha1.Plugin{}, nil
	})
	o.logical, o.Apply, o.DryRun = logical{client}, true, true
	err := o.Run(t.Context())
	if err == nil || !strings.Contains(err.Error(), `plugin "wait": somebody else owns spec.url`) {
		t.Errorf("it says %v", err)
	}
	if out() != "plugin/k8s imported (server dry run)\n" {
		t.Errorf("it prints %q", out())
	}
	if len(applied) != 2 {
		t.Fatalf("it has applied %v", applied)
	}
	for _, patch := range applied {
		if options := patch.PatchOptions; patch.PatchType != types.ApplyPatchType || options.FieldManager != importManager || *options.Force || len(options.DryRun) != 1 ||
			strings.Contains(string(patch.Patch), "status") {
			t.Errorf("%s was applied with %+v", patch.Patch, options)
		}
	}
	o.Apply = false
	if o.Validate() == nil {
		t.Error("a trial without --apply is taken")
	}
}
