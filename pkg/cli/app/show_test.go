package app

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// now is the time at which everything here is looked at.
var now = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

func ago(d time.Duration) metav1.Time { return metav1.NewTime(now.Add(-d)) }

// hostile is what somebody says who wants to be obeyed or to fill the screen.
var hostile = "\x1b[2Jall\tis\nwell" + strings.Repeat(" really", 200)

func application(spec v1alpha1.ApplicationSpec, status v1alpha1.ApplicationStatus) *v1alpha1.Application {
	return &v1alpha1.Application{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "web", Generation: 3}, Spec: spec, Status: status}
}

func cluster(name, revision, live string, sync v1alpha1.SyncStatus, health v1alpha1.HealthStatus, message string) v1alpha1.TargetClusterStatus {
	return v1alpha1.TargetClusterStatus{Name: name, Revision: revision, LiveRevision: live, Sync: sync, Health: health, Message: message}
}

func running(c v1alpha1.TargetClusterStatus, ready, of int32) v1alpha1.TargetClusterStatus {
	c.Ready, c.Replicas = ready, of
	return c
}

func origin(number byte, message string) *v1alpha1.Origin {
	return &v1alpha1.Origin{
		Commit: strings.Repeat(string(number), 40), Author: "Alice <alice@example.com>", Message: message, Time: ptr.To(ago(2 * time.Hour)),
	}
}

// busy is an application in the middle of a release, with all that may be wrong.
func busy() *v1alpha1.Application {
	return application(v1alpha1.ApplicationSpec{
		Source:   v1alpha1.Source{Git: &v1alpha1.GitSource{URL: "https://git.example/shop.git", Path: "web/prd", Ref: &v1alpha1.GitRef{Branch: "main"}}},
		Revision: "web-v8", Suspend: true,
	}, v1alpha1.ApplicationStatus{
		ObservedGeneration: 2, Source: &v1alpha1.SourceStatus{Origin: origin('a', "Fix the cart\n\nIt was broken."+hostile)},
		LatestRevision: "web-v9", WantedRevision: "web-v8", LiveRevision: "web-v7", Release: "web-x2f", ReleasePhase: v1alpha1.ReleaseRunning,
		Sync: v1alpha1.OutOfSync, Health: v1alpha1.Degraded,
		Conditions: []metav1.Condition{
			{Type: v1alpha1.ApplicationSourceReady, Status: metav1.ConditionTrue, Reason: "Fetched"},
			{Type: v1alpha1.ApplicationRendered, Status: metav1.ConditionFalse, Reason: "NotAllowed", Message: hostile},
			{Type: v1alpha1.ApplicationReleased, Status: metav1.ConditionUnknown},
		},
		Variants: []v1alpha1.Variant{
			{Name: v1alpha1.VariantPrimary, Revision: "web-v7", Clusters: []v1alpha1.VariantCluster{{Cluster: "east"}, {Cluster: "west"}}, Traffic: ptr.To(int32(90))},
			{Name: v1alpha1.VariantCanary, Revision: "web-v8", Traffic: ptr.To(int32(10)), Clusters: []v1alpha1.VariantCluster{
				{Cluster: "east", Ready: 1, Workloads: map[string]int32{"Deployment/web": 2}},
			}},
		},
		Targets: []v1alpha1.TargetStatus{
			{Name: "eu", Clusters: []v1alpha1.TargetClusterStatus{
				running(cluster("east", "web-v8", "web-v8", v1alpha1.Synced, v1alpha1.Healthy, ""), 5, 5),
				running(cluster("west", "web-v8", "web-v7", v1alpha1.OutOfSync, v1alpha1.Degraded, hostile), 2, 3),
			}},
			{Name: "hoge", LiveRevision: "web-v7", Clusters: []v1alpha1.TargetClusterStatus{cluster("hoge", "web-v7", "web-v7", "", "", "")}},
			{Name: "mars", Sync: v1alpha1.SyncUnknown, Health: v1alpha1.HealthUnknown, Message: "no cluster matches"},
		},
		DriftCount: 4,
		Drift: []v1alpha1.FieldDrift{
			{Group: "apps", Kind: "Deployment", Name: "web", Path: "/spec/replicas", Wanted: "2", Found: hostile, Clusters: []string{"east", "west"}},
			{Kind: "ConfigMap", Name: "settings", Clusters: []string{"west"}},
			{Kind: "Service", Name: "web", Path: "/spec/type", Wanted: `"ClusterIP"`, Found: `"NodePort"`},
		},
	})
}

func TestShow(t *testing.T) {
	inline := v1alpha1.Source{Inline: &v1alpha1.InlineSource{Objects: make([]runtime.RawExtension, 2)}}
	wanted := map[string]*v1alpha1.Origin{"busy": origin('b', "What ran before")}
	for name, test := range map[string]*v1alpha1.Application{
		"new":  application(v1alpha1.ApplicationSpec{Source: inline}, v1alpha1.ApplicationStatus{}),
		"busy": busy(),
		"plugins": application(v1alpha1.ApplicationSpec{
			Source: inline, PluginsOnly: true, Plugins: []v1alpha1.ApplicationPlugin{{Name: "terraform"}, {Name: "waits"}},
		}, v1alpha1.ApplicationStatus{
			ObservedGeneration: 3, LatestRevision: "web-v1", WantedRevision: "web-v1", LiveRevision: "web-v1", Sync: v1alpha1.OutOfSync, Health: v1alpha1.Degraded,
			Plugins: []v1alpha1.PluginTargetStatus{
				{Plugin: "terraform", DeployTarget: "dev", Sync: v1alpha1.Synced, Health: v1alpha1.Healthy, ResourceCount: 12},
				{Plugin: "terraform", DeployTarget: "prod", Sync: v1alpha1.OutOfSync, Health: v1alpha1.Degraded, ResourceCount: 12, Message: hostile,
					DifferenceCount: 4, Differences: []v1alpha1.PluginDifference{{Type: "bucket", Name: "logs", Kind: v1alpha1.PluginMissing}, {Name: hostile, Kind: v1alpha1.PluginChanged}}},
			},
		}),
		"fine": application(v1alpha1.ApplicationSpec{
			Source: v1alpha1.Source{Selector: &v1alpha1.ObjectSelector{LabelSelector: metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}}},
		}, v1alpha1.ApplicationStatus{
			ObservedGeneration: 3, LatestRevision: "web-v1", WantedRevision: "web-v1", LiveRevision: "web-v1", Release: "web-abc",
			ReleasePhase: v1alpha1.ReleaseSucceeded, Sync: v1alpha1.Synced, Health: v1alpha1.Healthy,
			Conditions: []metav1.Condition{{Type: v1alpha1.ApplicationReleased, Status: metav1.ConditionTrue}},
			Variants:   []v1alpha1.Variant{{Name: v1alpha1.VariantPrimary, Revision: "web-v1"}},
			Targets: []v1alpha1.TargetStatus{{Name: "default", Clusters: []v1alpha1.TargetClusterStatus{
				cluster("east", "web-v1", "web-v1", v1alpha1.Synced, v1alpha1.Healthy, ""),
			}}},
		}),
	} {
		t.Run(name, func(t *testing.T) { golden(t, "get-"+name, strings.Join(show(test, wanted[name], now), "\n")+"\n") })
	}
}

// golden compares a text with the one in testdata.
func golden(t *testing.T, name, got string) {
	t.Helper()
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
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestWhatDoesNotFitIsCounted(t *testing.T) {
	lines := []string{"a", "b", "c", "d"}
	for name, test := range map[string]struct {
		rows int
		want []string
	}{
		"all fit":    {4, lines},
		"some fit":   {3, []string{"a", "b", "... and 2 more lines"}},
		"hardly one": {1, []string{"... and 4 more lines"}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, fitting(lines, test.rows)); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}
