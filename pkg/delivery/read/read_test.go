package read

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/delivery"
	"github.com/manifold-dev/manifold/pkg/delivery/copies"
	"github.com/manifold-dev/manifold/pkg/delivery/planner"
)

func TestStages(t *testing.T) {
	for name, test := range map[string]struct {
		stage  v1alpha1.Stage
		with   string
		want   delivery.Stage
		undone string
		err    string
	}{
		"a canary":                   {stage: v1alpha1.Stage{Name: "K8S_CANARY_ROLLOUT"}, with: `{"replicas":"10%","perCluster":true,"createService":true,"suffix":"new"}`, want: delivery.Stage{Copy: &delivery.CopyOptions{Replicas: intstr.FromString("10%"), PerCluster: true, Service: true, Suffix: "new"}}},
		"a canary of one":            {stage: v1alpha1.Stage{Name: "K8S_CANARY_ROLLOUT"}, want: delivery.Stage{Copy: &delivery.CopyOptions{Replicas: intstr.FromInt32(1)}}},
		"a canary with patches":      {stage: v1alpha1.Stage{Name: "K8S_CANARY_ROLLOUT"}, with: `{"patches":[{"target":{"kind":"ConfigMap","name":"a"},"yamlOps":[{"path":"$.a","value":"b"}]}]}`, want: delivery.Stage{Copy: &delivery.CopyOptions{Replicas: intstr.FromInt32(1), Patches: []v1alpha1.VariantPatch{{Target: v1alpha1.VariantPatchTarget{Kind: "ConfigMap", Name: "a"}, YAMLOps: []v1alpha1.VariantPatchOp{{Path: "$.a", Value: "b"}}}}}}},
		"a baseline":                 {stage: v1alpha1.Stage{Name: "K8S_BASELINE_ROLLOUT"}, want: delivery.Stage{Copy: &delivery.CopyOptions{}}},
		"by the name of several":     {stage: v1alpha1.Stage{Name: "K8S_MULTI_SYNC"}, want: delivery.Stage{Name: "K8S_SYNC"}},
		"a primary with a Service":   {stage: v1alpha1.Stage{Name: "K8S_PRIMARY_ROLLOUT"}, with: `{"createService":true,"suffix":"p","prune":true,"addVariantLabelToSelector":true}`},
		"a suffix of nothing":        {stage: v1alpha1.Stage{Name: "K8S_PRIMARY_ROLLOUT"}, with: `{"suffix":"p"}`, undone: "stages[0].with.suffix is not honoured: it is for the name of the primary's own Service, and createService is not set"},
		"a sync that prunes":         {stage: v1alpha1.Stage{Name: "K8S_SYNC"}, with: `{"prune":true}`},
		"all traffic":                {stage: v1alpha1.Stage{Name: "K8S_TRAFFIC_ROUTING"}, with: `{"all":"canary"}`, want: delivery.Stage{Traffic: map[string]int32{"canary": 100}}},
		"shares of it":               {stage: v1alpha1.Stage{Name: "K8S_TRAFFIC_ROUTING"}, with: `{"canary":"20%","baseline":5}`, want: delivery.Stage{Traffic: map[string]int32{"canary": 20, "baseline": 5}}},
		"a wait":                     {stage: v1alpha1.Stage{Name: "WAIT"}, with: `{"duration":"5m"}`, want: delivery.Stage{Wait: 5 * time.Minute}},
		"an approval":                {stage: v1alpha1.Stage{Name: "WAIT_APPROVAL"}, with: `{"approvers":["group:sre"],"minApproverNum":2,"expiry":"1h","requireComment":true}`, want: delivery.Stage{Timeout: 6 * time.Hour, Approval: &delivery.Approval{Approvers: []string{"group:sre"}, Minimum: 2, Expiry: time.Hour, Comment: true}}},
		"an approval with a timeout": {stage: v1alpha1.Stage{Name: "WAIT_APPROVAL", Timeout: &metav1.Duration{Duration: time.Hour}}, want: delivery.Stage{Timeout: time.Hour, Approval: &delivery.Approval{}}},
		"an analysis": {stage: v1alpha1.Stage{Name: "ANALYSIS"},
			with: `{"duration":"10m","restartThreshold":3,"metrics":[{"strategy":"PREVIOUS","provider":"p","query":"q","interval":"1m","failureLimit":1,"skipOnNoData":true,"deviation":"HIGH"},{"provider":"p","query":"q","interval":"2m","expected":{"max":0.1}}],"https":[{"url":"u","expectedCode":200,"interval":"5s","failureLimit":2}]}`,
			want: delivery.Stage{Analysis: &delivery.Analysis{Duration: 10 * time.Minute, Metrics: []delivery.Metric{
				{Name: "metrics-0", Strategy: "PREVIOUS", Interval: time.Minute, FailureLimit: 1, SkipOnNoData: true, Deviation: "HIGH"},
				{Name: "metrics-1", Interval: 2 * time.Minute, Max: ptr.To(0.1)},
				{Name: "https-0", Strategy: "THRESHOLD", Interval: 5 * time.Second, FailureLimit: 2, Min: ptr.To(1.0)},
				{Name: "restarts", Strategy: "THRESHOLD", Interval: 30 * time.Second, Max: ptr.To(3.0)},
			}}}},
		"an analysis by Jobs": {stage: v1alpha1.Stage{Name: "ANALYSIS"},
			with: `{"jobs":[{"image":"a"},{"image":"a","initialDelay":"1s","interval":"1m","timeout":"2m","failureLimit":1}]}`,
			want: delivery.Stage{Analysis: &delivery.Analysis{Metrics: []delivery.Metric{
				{Name: "jobs-0", Job: &delivery.JobOptions{Timeout: time.Hour}},
				{Name: "jobs-1", Interval: time.Minute, FailureLimit: 1, Job: &delivery.JobOptions{Delay: time.Second, Timeout: 2 * time.Minute}},
			}}}},
		"a script":                  {stage: v1alpha1.Stage{Name: "SCRIPT_RUN"}, with: `{"image":"a","run":"b","onRollback":"c"}`, want: delivery.Stage{UndoesScript: true}},
		"a script that undoes none": {stage: v1alpha1.Stage{Name: "SCRIPT_RUN"}, with: `{"image":"a","run":"b"}`},
		"all that stages have": {stage: v1alpha1.Stage{
			Name: "K8S_SYNC", ID: "all", Targets: []string{"a"}, Waves: []v1alpha1.Wave{{MaxConcurrency: ptr.To(intstr.FromInt32(1)), Targets: []string{"a"}}}, Timeout: &metav1.Duration{Duration: time.Minute},
			SkipOn: &v1alpha1.SkipOn{CommitMessagePrefixes: []string{"x"}, Paths: []string{"y"}}, Failure: &v1alpha1.FailurePolicy{MaxFailures: 2, OnUnreachable: v1alpha1.UnreachableSkip, UnreachableSeconds: ptr.To(int32(60))},
		}, want: delivery.Stage{ID: "all", Targets: []string{"a"}, Waves: []delivery.Wave{{MaxConcurrency: ptr.To(intstr.FromInt32(1)), Targets: []string{"a"}}}, Timeout: time.Minute,
			SkipOn: delivery.SkipOn{Prefixes: []string{"x"}, Paths: []string{"y"}}, Failure: delivery.Failure{MaxFailures: 2, OnUnreachable: delivery.Skip, After: time.Minute}}},
		"an option that there is not": {stage: v1alpha1.Stage{Name: "WAIT"}, with: `{"durations":"5m"}`, err: "stages[0].with.durations"},
		"a stage that there is not":   {stage: v1alpha1.Stage{Name: "HOPE"}, err: "stages[0].with: Unsupported value"},
	} {
		t.Run(name, func(t *testing.T) {
			if test.with != "" {
				test.stage.With = &runtime.RawExtension{Raw: []byte(test.with)}
			}
			got, undone, errs := Stages([]v1alpha1.Stage{test.stage}, field.NewPath("stages"))
			if test.err != "" {
				if err := errs.ToAggregate(); err == nil || !strings.Contains(err.Error(), test.err) {
					t.Errorf("error %v, want one with %q", err, test.err)
				}
				return
			}
			if test.want.ID == "" {
				test.want.ID = "stage-0"
			}
			if test.want.Name == "" {
				test.want.Name = test.stage.Name
			}
			if diff := cmp.Diff([]delivery.Stage{test.want}, got); diff != "" || len(errs) > 0 {
				t.Errorf("%v (-want +got)\n%s", errs, diff)
			}
			if strings.Join(undone, " ") != test.undone {
				t.Errorf("not done: %v, want %s", undone, test.undone)
			}
		})
	}
}

// A stage that the API lets pass and the engine does not know would be found out when it is too late.
func TestTheEngineKnowsEveryStageOfTheAPI(t *testing.T) {
	for _, name := range v1alpha1.StageNames() {
		stages, _, errs := Stages([]v1alpha1.Stage{{Name: name}}, field.NewPath("stages"))
		if len(errs) > 0 {
			t.Fatal(errs.ToAggregate())
		}
		if err := planner.Check(delivery.Release{Stages: stages}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestOrders(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	failed := delivery.Status{Stages: []delivery.StageStatus{{ID: "a", Phase: delivery.Succeeded}, {ID: "b", Phase: delivery.Failed, Attempt: 1, End: at}}}
	none := func(change func(*delivery.Orders)) delivery.Orders {
		out := delivery.Orders{Skip: map[string]string{}, SkipAt: map[string]time.Time{}, SkipTargets: map[string]map[string]string{}, Retry: map[string]int32{}, RetryTargets: map[string][]string{}}
		if change != nil {
			change(&out)
		}
		return out
	}
	for name, test := range map[string]struct {
		requests []v1alpha1.ReleaseRequest
		status   delivery.Status
		want     delivery.Orders
	}{
		"none": {want: none(nil)},
		"approvals, in their order": {
			requests: []v1alpha1.ReleaseRequest{{Type: "Approve", Stage: "a", Attempt: 2, User: "jane", Groups: []string{"sre"}, Comment: "fine", Time: metav1.NewTime(at)}, {Type: "Approve", Stage: "a", User: "joe", Time: metav1.NewTime(at)}},
			want: none(func(o *delivery.Orders) {
				o.Approvals = []delivery.Assent{{Stage: "a", Attempt: 2, User: "jane", Groups: []string{"sre"}, Comment: "fine", Time: at}, {Stage: "a", User: "joe", Time: at}}
			}),
		},
		"a cancellation": {requests: []v1alpha1.ReleaseRequest{{Type: "Cancel", User: "jane", Rollback: true}}, want: none(func(o *delivery.Orders) { o.Cancel = &delivery.Cancel{By: "jane", Rollback: true} })},
		"a skip":         {requests: []v1alpha1.ReleaseRequest{{Type: "Skip", Stage: "a", User: "jane", Time: metav1.NewTime(at)}}, want: none(func(o *delivery.Orders) { o.Skip["a"], o.SkipAt["a"] = "jane", at })},
		"a skip of targets": {
			requests: []v1alpha1.ReleaseRequest{{Type: "Skip", Stage: "a", User: "jane", Targets: []string{"x", "y"}}},
			want:     none(func(o *delivery.Orders) { o.SkipTargets["a"] = map[string]string{"x": "jane", "y": "jane"} }),
		},
		"a retry of targets": {
			status: failed, requests: []v1alpha1.ReleaseRequest{{Type: "Retry", Stage: "b", Attempt: 2, Targets: []string{"x"}}},
			want: none(func(o *delivery.Orders) { o.Retry["b"], o.RetryTargets["b"] = 2, []string{"x"} }),
		},
		"a rollback": {requests: []v1alpha1.ReleaseRequest{{Type: "Rollback", User: "jane"}}, want: none(func(o *delivery.Orders) { o.Rollback = "jane" })},
		"a retry of the second attempt is the one that follows": {status: failed, requests: []v1alpha1.ReleaseRequest{{Type: "Retry", Stage: "b", Attempt: 2, User: "jane"}}, want: none(func(o *delivery.Orders) { o.Retry["b"], o.RetryTargets["b"] = 2, nil })},
		"a retry of the first has been":                         {status: failed, requests: []v1alpha1.ReleaseRequest{{Type: "Retry", Stage: "b", Attempt: 1, User: "jane"}}, want: none(func(o *delivery.Orders) { o.Retry["b"], o.RetryTargets["b"] = 1, nil })},
		"a retry without a stage is of what has failed":         {status: failed, requests: []v1alpha1.ReleaseRequest{{Type: "Retry", User: "jane", Time: metav1.NewTime(at)}}, want: none(func(o *delivery.Orders) { o.Retry["b"], o.RetryTargets["b"] = 2, nil })},
		"but not of what fails after it":                        {status: failed, requests: []v1alpha1.ReleaseRequest{{Type: "Retry", User: "jane", Time: metav1.NewTime(at.Add(-time.Second))}}, want: none(nil)},
		"a retry of what has not failed is none":                {status: failed, requests: []v1alpha1.ReleaseRequest{{Type: "Retry", Stage: "a", Attempt: 1, User: "jane"}}, want: none(nil)},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, Orders(test.requests, test.status)); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestWhatApplicationsSay(t *testing.T) {
	selector := &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}}
	want := []delivery.Target{{Name: "x", Cluster: "east"}, {Name: "y", Selector: selector}}
	if diff := cmp.Diff(want, Targets([]v1alpha1.Target{{Name: "x", Cluster: "east"}, {Name: "y", ClusterSelector: selector}})); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	for when, want := range map[v1alpha1.RollbackWhen]delivery.RollbackPolicy{"": {}, v1alpha1.RollbackAny: {}, v1alpha1.RollbackAll: {OnlyIfAllFail: true}, v1alpha1.RollbackNever: {Disabled: true}} {
		if got := Rollback(v1alpha1.Rollback{When: when}); got != want {
			t.Errorf("%q: %+v, want %+v", when, got, want)
		}
	}
	spec := v1alpha1.ApplicationSpec{
		VariantLabel: v1alpha1.VariantLabel{Key: "v", PrimaryValue: "p", CanaryValue: "c", BaselineValue: "b"}, Service: &v1alpha1.ServiceReference{Name: "web"},
		Workloads: []v1alpha1.WorkloadReference{{Kind: "StatefulSet", Name: "db"}}, Traffic: &v1alpha1.Traffic{Method: v1alpha1.TrafficService},
	}
	options := copies.Options{Label: "v", Values: map[string]string{"primary": "p", "canary": "c", "baseline": "b"}, Service: "web", Workloads: []string{"StatefulSet/db"}, Labelled: true}
	if diff := cmp.Diff(options, Copies(spec)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if spec.Traffic = nil; Copies(spec).Labelled {
		t.Error("pods behind one Service are told apart")
	}
}
