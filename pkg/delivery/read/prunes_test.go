package read

import (
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
)

func TestPrunes(t *testing.T) {
	for name, test := range map[string]struct {
		own, file       *bool
		quick, pipeline bool
	}{
		"nobody says so":                         {},
		"the application says so":                {own: ptr.To(true), quick: true, pipeline: true},
		"the file says so":                       {file: ptr.To(true), quick: true},
		"the application does not, and is first": {own: ptr.To(false), file: ptr.To(true)},
		"the file does not, and is second":       {own: ptr.To(true), file: ptr.To(false), quick: true, pipeline: true},
	} {
		t.Run(name, func(t *testing.T) {
			spec, file := v1alpha1.ApplicationSpec{Prune: test.own}, &v1alpha1.RevisionDelivery{Prune: test.file}
			if test.file == nil {
				file = nil
			}
			if got := Prunes(spec, file, v1alpha1.StrategyQuickSync); got != test.quick {
				t.Errorf("a quick sync prunes: %t, want %t", got, test.quick)
			}
			if got := Prunes(spec, file, v1alpha1.StrategyPipeline); got != test.pipeline {
				t.Errorf("a pipeline prunes: %t, want %t", got, test.pipeline)
			}
		})
	}
}

func TestStagePrunes(t *testing.T) {
	for name, want := range map[string]bool{v1alpha1.StageSync: true, v1alpha1.StagePrimaryRollout: true, "K8S_MULTI_PRIMARY_ROLLOUT": true, v1alpha1.StageCanaryClean: false} {
		stage := &v1alpha1.Stage{Name: name, With: &runtime.RawExtension{Raw: []byte(`{"prune":true}`)}}
		if got := StagePrunes(stage); got != want {
			t.Errorf("%s prunes: %t, want %t", name, got, want)
		}
		if StagePrunes(&v1alpha1.Stage{Name: name}) {
			t.Errorf("%s prunes without being told to", name)
		}
	}
}
