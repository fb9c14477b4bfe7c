package v1alpha1

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"
)

func TestDecodeOptions(t *testing.T) {
	for name, test := range map[string]struct {
		stage, with string
		want        any
		errs        []string
	}{
		"no options are the empty ones":        {stage: StageSync, want: &SyncOptions{}},
		"null is no options":                   {stage: StageCanaryClean, with: "null", want: &CleanOptions{}},
		"a stage with MULTI has the same ones": {stage: "K8S_MULTI_SYNC", with: `{"prune":true}`, want: &SyncOptions{Prune: true}},
		"replicas are a part or a number": {
			stage: StageCanaryRollout, with: `{"replicas":"10%","createService":true}`,
			want: &CanaryRolloutOptions{Replicas: ptr.To(intstr.FromString("10%")), CreateService: true},
		},
		"percentages are written either way": {
			stage: StageTrafficRouting, with: `{"primary":"90%","canary":10}`,
			want: &TrafficRoutingOptions{Primary: ptr.To(Percentage(90)), Canary: ptr.To(Percentage(10))},
		},
		"durations are read": {stage: StageWait, with: `{"duration":"90s"}`, want: &WaitOptions{Duration: metav1.Duration{Duration: 90 * time.Second}}},
		"an unknown field is named by its path": {
			stage: StageAnalysis, with: `{"duration":"1m","metrics":[{"query":"up","intervall":"10s"}]}`,
			errs: []string{`with.metrics[0].intervall: Invalid value: "": unknown field "metrics[0].intervall": ANALYSIS has no such option`},
		},
		"a field that is there twice is named": {
			stage: StageSync, with: `{"prune":true,"prune":false}`, errs: []string{`with.prune: Invalid value: "": duplicate field`},
		},
		"case counts": {stage: StageSync, with: `{"Prune":true}`, errs: []string{`with.Prune: Invalid value: "": unknown field "Prune"`}},
		"a stage without options takes none": {
			stage: StageBaselineClean, with: `{"replicas":1}`, errs: []string{`with.replicas: Invalid value: "": unknown field`},
		},
		"a value of another type is named": {
			stage: StageCanaryRollout, with: `{"createService":"yes"}`, errs: []string{`with.createService: Invalid value: "string": must be of type bool`},
		},
		"a percentage that is no whole number": {
			stage: StageTrafficRouting, with: `{"canary":"a tenth"}`, errs: []string{`with: Invalid value: "": "a tenth" is not a percentage`},
		},
		"options that are no object":  {stage: StageWait, with: `["10s"]`, errs: []string{`with: Invalid value: "[\"10s\"]": must be an object`}},
		"a stage that there is not":   {stage: "K8S_MAGIC", errs: []string{`with: Unsupported value: "K8S_MAGIC"`}},
		"MULTI is for clusters alone": {stage: "K8S_MULTI_WAIT", errs: []string{`with: Unsupported value: "K8S_MULTI_WAIT"`}},
	} {
		t.Run(name, func(t *testing.T) {
			stage := &Stage{Name: test.stage}
			if test.with != "" {
				stage.With = &runtime.RawExtension{Raw: []byte(test.with)}
			}
			got, errs := DecodeOptions(stage, field.NewPath("with"))
			var texts []string
			for _, err := range errs {
				texts = append(texts, err.Error())
			}
			if !slices.EqualFunc(texts, test.errs, strings.HasPrefix) {
				t.Fatalf("refusals %q, want %q or longer ones", texts, test.errs)
			}
			if test.want != nil && !reflect.DeepEqual(got, test.want) {
				t.Errorf("got %+v, want %+v", got, test.want)
			}
		})
	}
}

func TestStageNamesHaveMultiOnlyWhereClustersChange(t *testing.T) {
	names := StageNames()
	for name, want := range map[string]bool{
		"K8S_SYNC": true, "K8S_MULTI_SYNC": true, "K8S_MULTI_TRAFFIC_ROUTING": true, "WAIT": true, "K8S_MULTI_WAIT": false, "ROLLBACK": false,
	} {
		if got := slices.Contains(names, name); got != want {
			t.Errorf("%s is a name of a stage: %t, want %t", name, got, want)
		}
	}
	if got := CanonicalStageName("K8S_MULTI_CANARY_CLEAN"); got != StageCanaryClean {
		t.Errorf("K8S_MULTI_CANARY_CLEAN stands for %s, want %s", got, StageCanaryClean)
	}
}

func FuzzDecodeOptions(f *testing.F) {
	f.Add("WAIT", `{"duration":"1m"}`)
	f.Add("K8S_TRAFFIC_ROUTING", `{"canary":"10%"}`)
	f.Fuzz(func(t *testing.T, name, with string) {
		stage := &Stage{Name: name, With: &runtime.RawExtension{Raw: []byte(with)}}
		if options, errs := DecodeOptions(stage, field.NewPath("with")); options == nil && len(errs) == 0 {
			t.Errorf("%s with %q has neither options nor refusals", name, with)
		}
	})
}
