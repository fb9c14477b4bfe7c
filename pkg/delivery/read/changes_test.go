package read

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
)

func TestChangesOfManifests(t *testing.T) {
	stage := func(name, with string, targets ...string) v1alpha1.Stage {
		return v1alpha1.Stage{Name: name, Targets: targets, With: &runtime.RawExtension{Raw: []byte(with)}}
	}
	two := []v1alpha1.Target{{Name: "hoge"}, {Name: "fuga"}}
	for name, test := range map[string]struct {
		targets []v1alpha1.Target
		stages  []v1alpha1.Stage
		want    Changes
	}{
		"without a pipeline there are none": {},
		"nor of stages that ask for none":   {stages: []v1alpha1.Stage{stage("K8S_SYNC", "{}"), stage("K8S_PRIMARY_ROLLOUT", `{"suffix":"a"}`), stage("K8S_CANARY_ROLLOUT", `{"createService":true}`)}},
		"selectors, by a sync":              {stages: []v1alpha1.Stage{stage("K8S_SYNC", `{"addVariantLabelToSelector":true}`)}, want: Changes{Selects: true}},
		"selectors, by one rollout of two": {
			stages: []v1alpha1.Stage{stage("K8S_MULTI_PRIMARY_ROLLOUT", `{"addVariantLabelToSelector":true}`), stage("K8S_PRIMARY_ROLLOUT", "{}")}, want: Changes{Selects: true},
		},
		"a Service where placement decides": {stages: []v1alpha1.Stage{stage("K8S_PRIMARY_ROLLOUT", `{"createService":true}`)}, want: Changes{Services: map[string][]string{"default": {"primary"}}}},
		"Services of all targets, and of one": {
			targets: two, stages: []v1alpha1.Stage{stage("K8S_PRIMARY_ROLLOUT", `{"createService":true}`), stage("K8S_PRIMARY_ROLLOUT", `{"createService":true,"suffix":"stable"}`, "fuga"), stage("K8S_PRIMARY_ROLLOUT", `{"createService":true}`, "hoge")},
			want: Changes{Services: map[string][]string{"hoge": {"primary"}, "fuga": {"primary", "stable"}}},
		},
		"none of a stage that cannot be read": {stages: []v1alpha1.Stage{stage("HOPE", `{"createService":true}`)}},
	} {
		t.Run(name, func(t *testing.T) {
			spec := v1alpha1.ApplicationSpec{Targets: test.targets}
			if test.stages != nil {
				spec.Pipeline = &v1alpha1.Pipeline{Stages: test.stages}
			}
			if diff := cmp.Diff(test.want, ChangesOf(spec)); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}
