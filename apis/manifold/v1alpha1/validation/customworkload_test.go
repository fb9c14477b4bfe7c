package validation

import (
	"strings"
	"testing"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
)

func TestValidateCustomWorkloads(t *testing.T) {
	rollout := func(change func(*v1alpha1.CustomWorkload)) []v1alpha1.CustomWorkload {
		w := v1alpha1.CustomWorkload{
			Kind: "Rollout.argoproj.io", PodTemplatePaths: []string{".spec.template"},
			SpecReplicasPath: ".spec.replicas", StatusReplicasPath: ".status.replicas",
		}
		change(&w)
		return []v1alpha1.CustomWorkload{w}
	}
	for name, test := range map[string]struct {
		described []v1alpha1.CustomWorkload
		want      []string
	}{
		"one template and its replicas": {described: rollout(func(*v1alpha1.CustomWorkload) {})},
		"several templates and how many pods they make together": {described: []v1alpha1.CustomWorkload{{
			Kind: "LeaderWorkerSet.leaderworkerset.x-k8s.io", Divisible: true, SpecReplicasPath: ".spec.replicas",
			PodTemplatePaths:   []string{".spec.leaderWorkerTemplate.leaderTemplate", ".spec.leaderWorkerTemplate.workerTemplate"},
			PodsPerReplicaPath: ".spec.leaderWorkerTemplate.size",
		}}},
		"no kind": {rollout(func(w *v1alpha1.CustomWorkload) { w.Kind = "" }), []string{"spec.customWorkloads[0].kind"}},
		"a built-in kind": {
			rollout(func(w *v1alpha1.CustomWorkload) { w.Kind = "Deployment" }), []string{"spec.customWorkloads[0].kind"},
		},
		"a kind without its group": {
			rollout(func(w *v1alpha1.CustomWorkload) { w.Kind = "Rollout" }), []string{"spec.customWorkloads[0].kind"},
		},
		"a kind twice": {
			append(rollout(func(*v1alpha1.CustomWorkload) {}), rollout(func(*v1alpha1.CustomWorkload) {})...), []string{"spec.customWorkloads[1].kind"},
		},
		"no template": {
			rollout(func(w *v1alpha1.CustomWorkload) { w.PodTemplatePaths = nil }), []string{"spec.customWorkloads[0].podTemplatePaths"},
		},
		"a template twice": {
			rollout(func(w *v1alpha1.CustomWorkload) { w.PodTemplatePaths = []string{".spec.a", ".spec.a"} }),
			[]string{"spec.customWorkloads[0].podTemplatePaths[1]"},
		},
		"more templates than anybody has": {
			rollout(func(w *v1alpha1.CustomWorkload) {
				w.PodTemplatePaths = strings.Split(strings.Repeat(".spec.t ", 16)+".spec.t", " ")
				for i := range w.PodTemplatePaths {
					w.PodTemplatePaths[i] += strings.Repeat("x", i)
				}
			}), []string{"spec.customWorkloads[0].podTemplatePaths"},
		},
		"a path that does not begin with a dot": {
			rollout(func(w *v1alpha1.CustomWorkload) { w.PodTemplatePaths = []string{"spec.template"} }),
			[]string{"spec.customWorkloads[0].podTemplatePaths[0]"},
		},
		"a path with a list": {
			rollout(func(w *v1alpha1.CustomWorkload) { w.PodTemplatePaths = []string{".spec.jobs[0].template"} }),
			[]string{"spec.customWorkloads[0].podTemplatePaths[0]"},
		},
		"a template in the metadata": {
			rollout(func(w *v1alpha1.CustomWorkload) { w.PodTemplatePaths = []string{".metadata.annotations"} }),
			[]string{"spec.customWorkloads[0].podTemplatePaths[0]"},
		},
		"the whole spec": {
			rollout(func(w *v1alpha1.CustomWorkload) { w.PodTemplatePaths = []string{".spec"} }), []string{"spec.customWorkloads[0].podTemplatePaths[0]"},
		},
		"a path without end": {
			rollout(func(w *v1alpha1.CustomWorkload) { w.PodTemplatePaths = []string{".spec" + strings.Repeat(".a", 300)} }),
			[]string{"spec.customWorkloads[0].podTemplatePaths[0]"},
		},
		"replicas that the status has": {
			rollout(func(w *v1alpha1.CustomWorkload) { w.SpecReplicasPath = ".status.replicas" }), []string{"spec.customWorkloads[0].specReplicasPath"},
		},
		"replicas that the spec has as those that are there": {
			rollout(func(w *v1alpha1.CustomWorkload) { w.StatusReplicasPath = ".spec.replicas" }), []string{"spec.customWorkloads[0].statusReplicasPath"},
		},
		"a size with a star": {
			rollout(func(w *v1alpha1.CustomWorkload) { w.PodsPerReplicaPath = ".spec.*" }), []string{"spec.customWorkloads[0].podsPerReplicaPath"},
		},
		"what may be divided by nothing": {
			rollout(func(w *v1alpha1.CustomWorkload) { w.Divisible, w.SpecReplicasPath = true, "" }), []string{"spec.customWorkloads[0].specReplicasPath"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			wide := clusterPolicy(v1alpha1.ClusterPlacementPolicySpec{CustomWorkloads: test.described})
			check(t, builtIn.ValidateClusterPlacementPolicy(wide), test.want)
			check(t, builtIn.ValidateClusterPlacementPolicyUpdate(wide, clusterPolicy(v1alpha1.ClusterPlacementPolicySpec{})), test.want)
		})
	}
}
