package releases

import (
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
)

const patches = `"patches":[{"target":{"kind":"Deployment","name":"web"},"yamlOps":[{"path":"$.spec.template.spec.containers[0].image","value":"patched"}]}]`

// A patched canary is that from its first pod to its end, whoever takes the release on, and the primary is not.
func TestACanaryIsPatched(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		w.first(pipeline(
			stage(v1alpha1.StageCanaryRollout, "canary", `{"replicas":"10%",`+patches+`}`), stage(v1alpha1.StageWaitApproval, "agree", ""),
			stage(v1alpha1.StagePrimaryRollout, "primary", ""), stage(v1alpha1.StageCanaryClean, "clean", ""),
		))
		w.revise(2, both, deploymentOf("two"))
		w.asks("web-b", "web-v2", nil)
		w.waits("web-b", "agree")
		if got, want := w.runs("web")+"; "+w.runs("web-canary"), "east:10xone west:10xone; east:1xpatched west:1xpatched"; got != want {
			t.Errorf("runs %s, want %s", got, want)
		}
		if !slices.Contains(w.trials, "Deployment/web-canary") {
			t.Errorf("tried are %v, want the patched canary as well", w.trials)
		}
		w.request("web-b", v1alpha1.ReleaseRequest{Type: v1alpha1.RequestApprove, Stage: "agree", Attempt: 1})
		w.until("web-b", v1alpha1.ReleaseSucceeded)
		if got := w.runs("web") + "; " + w.runs("web-canary"); got != "east:10xtwo west:10xtwo; " {
			t.Errorf("runs %s", got)
		}
	})
}

func TestACanaryThatCannotBePatchedKeepsTheReleaseFromBeginning(t *testing.T) {
	invalid := apierrors.NewInvalid(appsv1.SchemeGroupVersion.WithKind("Deployment").GroupKind(), "web-canary", field.ErrorList{field.Required(field.NewPath("spec", "template"), "")})
	for name, test := range map[string]struct {
		with   string
		answer error
		says   string
	}{
		"a field that there is not": {
			with: `{"patches":[{"target":{"kind":"Deployment","name":"web"},"yamlOps":[{"path":"$.spec.paused","value":"true"}]}]}`,
			says: `target "east": spec.pipeline.stages[0].with: canary of web-v2 in cluster "east": patches[0].yamlOps[0].path: Invalid value: "$.spec.paused": there is no $.spec.paused`,
		},
		"what the server does not take": {with: `{` + patches + `}`, answer: invalid, says: `target "east": Deployment/web-canary: Deployment.apps "web-canary" is invalid: spec.template: Required value`},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, both...)
			w.first(pipeline(stage(v1alpha1.StageCanaryRollout, "canary", test.with), stage(v1alpha1.StagePrimaryRollout, "primary", ""), stage(v1alpha1.StageCanaryClean, "clean", "")))
			w.unfit["Deployment/web-canary"] = test.answer
			w.revise(2, both, deploymentOf("two"))
			writes := len(w.writes)
			w.asks("web-b", "web-v2", nil)
			release := w.until("web-b", v1alpha1.ReleaseFailed)
			if !strings.Contains(release.Status.Message, test.says) {
				t.Errorf("says %q, want %q", release.Status.Message, test.says)
			}
			if got := w.runs("web"); got != "east:10xone west:10xone" || len(w.writes) > writes {
				t.Errorf("runs %s, written are %v", got, w.writes[writes:])
			}
		})
	}
}

// Each cluster runs a copy of what its own target has, and no other.
func TestCopiesOfTargetsThatDifferAreSeveral(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		w.given(pipeline(
			stage(v1alpha1.StageCanaryRollout, "canary", `{"replicas":"10%"}`), stage(v1alpha1.StageBaselineRollout, "baseline", ""),
			stage(v1alpha1.StageWaitApproval, "agree", ""), stage(v1alpha1.StagePrimaryRollout, "primary", ""),
			stage(v1alpha1.StageCanaryClean, "clean", ""), stage(v1alpha1.StageBaselineClean, "tidy", ""),
		), both...)
		w.reviseEach(1, nil, map[string][]string{"east": {deploymentOf("one-east")}, "west": {deploymentOf("one-west")}})
		w.asks("web-a", "web-v1", nil)
		w.until("web-a", v1alpha1.ReleaseSucceeded)
		w.reviseEach(2, nil, map[string][]string{"east": {deploymentOf("two-east")}, "west": {deploymentOf("two-west")}})
		w.asks("web-b", "web-v2", nil)
		w.waits("web-b", "agree")
		for name, want := range map[string]string{
			"web": "east:10xone-east west:10xone-west", "web-canary": "east:1xtwo-east", "web-canary-west": "west:1xtwo-west",
			"web-baseline": "east:1xone-east", "web-baseline-west": "west:1xone-west",
		} {
			if got := w.runs(name); got != want {
				t.Errorf("%s runs %s, want %s", name, got, want)
			}
		}
		w.request("web-b", v1alpha1.ReleaseRequest{Type: v1alpha1.RequestApprove, Stage: "agree", Attempt: 1})
		w.until("web-b", v1alpha1.ReleaseSucceeded)
		for range lives { // the last one may have died before it wrote what follows
			w.step()
		}
		if got := w.runs("web") + ";" + w.runs("web-canary") + w.runs("web-canary-west") + w.runs("web-baseline") + w.runs("web-baseline-west"); got != "east:10xtwo-east west:10xtwo-west;" {
			t.Errorf("in the end runs %s", got)
		}
	})
}

// The Service of a copy has one name in all clusters, so all have the same.
func TestACopyThatWouldDifferFromTargetToTargetIsRefused(t *testing.T) {
	canary := func(targets ...string) v1alpha1.Stage {
		out := stage(v1alpha1.StageCanaryRollout, "", `{"replicas":1,"createService":true}`)
		out.Targets = targets
		return out
	}
	clean, baseline := stage(v1alpha1.StageCanaryClean, "", ""), stage(v1alpha1.StageBaselineRollout, "", `{"replicas":1,"createService":true}`)
	primary := stage(v1alpha1.StagePrimaryRollout, "", "")
	service := func(port string) string {
		return `{"apiVersion":"v1","kind":"Service","metadata":{"name":"web"},"spec":{"selector":{"app":"web"},"ports":[{"port":` + port + `}]}}`
	}
	each := func(image string) map[string][]string {
		return map[string][]string{"east": {deploymentOf(image), service("80")}, "west": {deploymentOf(image), service("8080")}}
	}
	same := map[string][]string{
		"east": {deploymentOf("one"), service("80")}, "west": {strings.Replace(deploymentOf("one"), `"replicas":10`, `"replicas":3`, 1), service("80")},
	}
	for name, test := range map[string]struct {
		before, after map[string][]string
		stages        []v1alpha1.Stage
		says          string
	}{
		"in the targets of a stage": {
			before: each("one"), after: each("two"), stages: []v1alpha1.Stage{canary(), primary, clean},
			says: `spec.pipeline.stages[0].targets: the canary has Service/web-canary, which is not the same for target "west" as for target "east"`,
		},
		"in those of two stages": {
			before: each("one"), after: each("two"), stages: []v1alpha1.Stage{canary("east"), canary("west"), primary, clean}, says: "spec.pipeline.stages[1].targets: the canary has",
		},
		"of what ran before":                    {before: each("one"), after: same, stages: []v1alpha1.Stage{baseline, primary, stage(v1alpha1.StageBaselineClean, "", "")}, says: "spec.pipeline.stages[0].targets: the baseline has Service/web-baseline"},
		"but not one after the other":           {before: each("one"), after: each("two"), stages: []v1alpha1.Stage{canary("east"), clean, canary("west"), clean, primary}},
		"nor of what differs in replicas alone": {before: same, after: same, stages: []v1alpha1.Stage{canary(), baseline, primary, clean, stage(v1alpha1.StageBaselineClean, "", "")}},
		"nor where there is nothing to copy": {
			before: map[string][]string{"east": {deploymentOf("one"), service("80")}, "west": {settings}},
			after:  map[string][]string{"east": {deploymentOf("two"), service("80")}, "west": {settings}},
			stages: []v1alpha1.Stage{stage(v1alpha1.StageCanaryRollout, "", `{`+patches+`}`), baseline, primary, clean, stage(v1alpha1.StageBaselineClean, "", "")},
		},
		"nor where one target alone gets a copy": {before: each("one"), after: each("two"), stages: []v1alpha1.Stage{canary("east"), primary, clean}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, both...)
			w.given(pipeline(test.stages...), both...)
			w.reviseEach(1, nil, test.before)
			w.asks("web-a", "web-v1", nil)
			w.until("web-a", v1alpha1.ReleaseSucceeded)
			w.reviseEach(2, nil, test.after)
			w.asks("web-b", "web-v2", func(release *v1alpha1.Release) { release.Spec.Strategy = v1alpha1.StrategyPipeline })
			if test.says == "" {
				w.until("web-b", v1alpha1.ReleaseSucceeded)
				return
			}
			writes := len(w.writes)
			if got := w.until("web-b", v1alpha1.ReleaseFailed).Status.Message; !strings.Contains(got, test.says) || len(w.writes) > writes {
				t.Errorf("says %q, want %q; written are %v", got, test.says, w.writes[writes:])
			}
		})
	}
}

// The selector of what is there cannot be changed, which is to be found out before the first cluster gets anything.
func TestAnotherSelectorIsRefusedBeforeAnythingIsApplied(t *testing.T) {
	w := newWorld(t, both...)
	w.first(pipeline(stage(v1alpha1.StagePrimaryRollout, "primary", `{"addVariantLabelToSelector":true}`)))
	selecting := strings.ReplaceAll(deploymentOf("two"), `{"app":"web"}`, `{"app":"web","delivery.manifold.dev/variant":"primary"}`)
	w.revise(2, both, selecting)
	w.asks("web-b", "web-v2", nil)
	release := w.until("web-b", v1alpha1.ReleaseFailed)
	if want := `Deployment/web: spec.selector.matchLabels[delivery.manifold.dev/variant]: the revision has it as "primary"`; !strings.Contains(release.Status.Message, want) {
		t.Errorf("says %q, want %q", release.Status.Message, want)
	}
	if got := w.runs("web"); got != "east:10xone west:10xone" {
		t.Errorf("runs %s", got)
	}

	w = newWorld(t, both...)
	w.given(nil, both...)
	w.revise(1, both, selecting)
	w.asks("web-a", "web-v1", nil)
	w.until("web-a", v1alpha1.ReleaseSucceeded)
	w.revise(2, both, strings.ReplaceAll(selecting, "two", "three"))
	w.asks("web-b", "web-v2", nil)
	w.until("web-b", v1alpha1.ReleaseSucceeded)
	if got := w.runs("web"); got != "east:10xthree west:10xthree" {
		t.Errorf("with the same selector runs %s", got)
	}
}

// Queries and scripts see the labels of the file, and those of the Application before them.
func TestLabelsOfTheFileComeWithTheRevision(t *testing.T) {
	app, revision := &v1alpha1.Application{}, &v1alpha1.ApplicationRevision{}
	app.Labels = map[string]string{"env": "stg", "own": "a"}
	revision.Spec.Delivery = &v1alpha1.RevisionDelivery{Labels: map[string]string{"env": "prd", "team": "b"}}
	if got := effective(app, revision).Labels; got["env"] != "stg" || got["own"] != "a" || got["team"] != "b" || len(app.Labels) != 2 {
		t.Errorf("labels are %v, and those of the application %v", got, app.Labels)
	}
}
