package pipeline

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/manifold-dev/manifold/pkg/cli/output"
	"github.com/manifold-dev/manifold/pkg/delivery/weave"
)

var update = flag.Bool("update", false, "rewrite the golden files")

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

func ago(d time.Duration) metav1.Time { return metav1.NewTime(noon.Add(-d)) }

// golden compares lines with a file of testdata.
func golden(t *testing.T, name string, lines []string) {
	t.Helper()
	got := strings.Join(lines, "\n") + "\n"
	file := filepath.Join("testdata", name+".txt")
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("what is shown has changed; go test ./pkg/cli/pipeline -update rewrites %s (-want +got):\n%s", file, diff)
	}
}

func release(version string, ready bool, message string) weave.WorkloadStatus {
	return weave.WorkloadStatus{Kind: "HelmRelease", Name: "podinfo", Version: version, LastAppliedRevision: version, Ready: ready, Message: message, Images: []string{"podinfo:" + version}}
}

func in(cluster string, workloads ...weave.WorkloadStatus) weave.TargetStatus {
	out := weave.TargetStatus{Kind: "GitopsCluster", Name: cluster, Namespace: "podinfo", Workloads: workloads, Ready: true}
	for _, w := range workloads {
		out.Ready = out.Ready && w.Ready
	}
	return out
}

// podinfo is on its way: dev runs the newest version in both of its targets, staging is half way there, and prod, where a person asks, is paused and old.
func podinfo() *weave.Pipeline {
	two := []weave.Target{{Namespace: "podinfo"}, {Namespace: "podinfo"}}
	return &weave.Pipeline{
		TypeMeta:   metav1.TypeMeta{APIVersion: "pipelines.weave.works/v1alpha1", Kind: "Pipeline"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "podinfo", CreationTimestamp: ago(48 * time.Hour)},
		Spec: weave.Spec{
			AppRef: &weave.AppReference{APIVersion: "helm.toolkit.fluxcd.io/v2", Kind: "HelmRelease", Name: "podinfo"},
			Environments: []weave.Environment{
				{Name: "dev", Targets: two}, {Name: "staging", Targets: two},
				{Name: "prod", Targets: two[:1], Promotion: &weave.Promotion{Manual: true, Strategy: weave.Strategy{
					PullRequest: &weave.PullRequest{Type: weave.ForgeGitHub, URL: "https://git.example/shop.git", BaseBranch: "main"},
				}}},
			},
			Promotion: &weave.Promotion{Strategy: weave.Strategy{Notification: &weave.Notification{}, SecretRef: &weave.SecretReference{Name: "hmac"}}},
		},
		Status: weave.Status{
			Conditions: []metav1.Condition{
				{Type: weave.ConditionReady, Status: metav1.ConditionFalse, Message: "staging: cluster \"eu\" is silent"},
				{Type: weave.ConditionPromoting, Status: metav1.ConditionTrue, Message: "6.1.8 is in staging, where 1 of 2 targets run it"},
			},
			Environments: map[string]*weave.EnvironmentStatus{
				"dev": {Targets: []weave.TargetStatus{in("dev-us", release("6.1.8", true, "")), in("dev-eu", release("6.1.8", true, ""))}},
				"staging": {
					Targets:   []weave.TargetStatus{in("us", release("6.1.8", false, "0 of 1 pods are ready")), {Kind: "GitopsCluster", Name: "eu", Namespace: "podinfo", Error: "cluster \"eu\" is silent", Workloads: []weave.WorkloadStatus{release("6.1.7", true, "")}}},
					Promotion: &weave.PromotionStatus{Revision: "6.1.8", Strategy: "notification", Phase: weave.PromotionStarted, At: ago(time.Minute)},
				},
				"prod": {
					Targets:       []weave.TargetStatus{in("prod", release("6.1.5", true, ""))},
					WaitingStatus: &weave.WaitingStatus{Revision: "6.1.7"},
					Asked:         &weave.Ask{Revision: "6.1.5", By: "bob", At: ago(3 * time.Hour), Message: "6.1.6 leaks"},
					Promotion:     &weave.PromotionStatus{Revision: "6.1.6", Strategy: "pull-request", Phase: weave.PromotionRevoked, Message: "it failed in staging", At: ago(4 * time.Hour)},
				},
			},
		},
	}
}

func TestShow(t *testing.T) {
	golden(t, "get", show(podinfo(), false, noon))
	golden(t, "wide", show(podinfo(), true, noon))
	p := podinfo()
	p.Status.Paused = &weave.Pause{By: "alice", At: ago(5 * time.Minute), Message: "release freeze"}
	golden(t, "paused", show(p, false, noon))
}

func TestANewPipelineIsShownBeforeAnythingIsKnownOfIt(t *testing.T) {
	p := podinfo()
	p.APIVersion, p.Spec.AppRef, p.Status = "pipelines.wego.weave.works/v1alpha1", nil, weave.Status{}
	golden(t, "new", show(p, true, noon))
}

func TestW33TheTriggersOfAPipeline(t *testing.T) {
	golden(t, "triggers", output.Table(triggers(podinfo(), []feed{{"source", "HelmRepository/podinfo", "oci://registry.example/charts"}, {"image automation", "podinfo", "writes to GitRepository/shop"}})))
}

func TestList(t *testing.T) {
	quiet := podinfo()
	quiet.APIVersion, quiet.Name, quiet.Namespace = "pipelines.wego.weave.works/v1alpha1", "web", "blog"
	quiet.Status = weave.Status{Paused: &weave.Pause{By: "alice"}}
	var items []unstructured.Unstructured
	for _, p := range []*weave.Pipeline{quiet, podinfo()} {
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(p)
		if err != nil {
			t.Fatal(err)
		}
		items = append(items, unstructured.Unstructured{Object: content})
	}
	golden(t, "list", rows(items, true, noon))
}

func TestNothingThatOthersHaveWrittenBreaksTheTable(t *testing.T) {
	const evil = "a\nb\x1b[2J\tc\r"
	p := podinfo()
	p.Spec.Environments[0].Name = "dev"
	of := p.Status.Environments["dev"]
	of.Targets[0].Workloads[0] = weave.WorkloadStatus{Kind: evil, Name: evil, Version: evil, Message: evil, Images: []string{evil}, LastAppliedRevision: evil}
	of.Targets[0].Error, of.Targets[0].Name, of.WaitingStatus = evil, evil, &weave.WaitingStatus{Revision: evil}
	of.Asked = &weave.Ask{Revision: evil, By: evil, Message: evil}
	of.Promotion = &weave.PromotionStatus{Revision: evil, Phase: evil, Message: evil, URL: evil}
	p.Status.Paused = &weave.Pause{By: evil, Message: evil}
	p.Spec.Promotion.Strategy.SecretRef.Name = evil
	p.Spec.Environments[2].Promotion.Strategy.PullRequest.URL = evil
	plain := len(show(podinfo(), true, noon))
	lines := append(show(p, true, noon), output.Table(triggers(p, []feed{{evil, evil, evil}}))...)
	for _, line := range lines {
		if strings.ContainsAny(line, "\n\r\t\x1b") {
			t.Errorf("a line is %q", line)
		}
	}
	if got := len(show(p, true, noon)); got > plain+6 {
		t.Errorf("%d lines, %d without what others have written", got, plain)
	}
}

func TestW5EnvironmentsAreShownInTheOrderOfTheList(t *testing.T) {
	p := &weave.Pipeline{}
	p.Status.Environments = map[string]*weave.EnvironmentStatus{}
	for _, name := range []string{"zulu", "alpha", "mike"} {
		p.Spec.Environments = append(p.Spec.Environments, weave.Environment{Name: name, Targets: []weave.Target{{Namespace: name}}})
		p.Status.Environments[name] = &weave.EnvironmentStatus{Targets: []weave.TargetStatus{{Namespace: name, Ready: true, Workloads: []weave.WorkloadStatus{release("1-of-"+name, true, "")}}}}
	}
	for what, lines := range map[string][]string{"one pipeline": show(p, false, noon), "each target": show(p, true, noon), "in a list": environments(p)} {
		got := strings.Join(lines, "\n")
		z, a, m := strings.Index(got, "1-of-zulu"), strings.Index(got, "1-of-alpha"), strings.Index(got, "1-of-mike")
		if z < 0 || z > a || a > m {
			t.Errorf("%s is shown as\n%s", what, got)
		}
	}
}

func TestARightThatIsLostIsAmongWhatIsWrong(t *testing.T) {
	p := podinfo()
	p.Status.Environments["prod"].Denied, p.Status.Environments["prod"].WebhookDenied = "ann has lost one", "joe has lost another"
	got := strings.Join(show(p, false, noon), "\n")
	for _, want := range []string{"! prod, promotion: ann has lost one", "! prod, calls of its webhooks: joe has lost another"} {
		if !strings.Contains(got, want) {
			t.Errorf("it lacks %q:\n%s", want, got)
		}
	}
}
