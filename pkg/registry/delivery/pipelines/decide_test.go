package pipelines

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/delivery/weave"
)

var noon = metav1.NewTime(time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC))

// podinfo goes from dev to prod: dev has verified 6.1.8 and runs it, staging is on its way to it and still runs 6.1.7 in one target, 6.1.8 waits for prod,
// which runs 6.1.5.
func podinfo() *weave.Pipeline {
	runs := func(versions ...string) (out []weave.TargetStatus) {
		for _, version := range versions {
			out = append(out, weave.TargetStatus{Namespace: "podinfo", Workloads: []weave.WorkloadStatus{{Kind: "HelmRelease", Name: "podinfo", Version: version, LastAppliedRevision: version}}})
		}
		return out
	}
	return &weave.Pipeline{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "podinfo"},
		Spec:       weave.Spec{Environments: []weave.Environment{{Name: "dev"}, {Name: "staging"}, {Name: "prod"}}},
		Status: weave.Status{Environments: map[string]*weave.EnvironmentStatus{
			"dev":     {Targets: runs("6.2.0"), Promotion: &weave.PromotionStatus{Revision: "6.1.8", Phase: weave.PromotionVerified}},
			"staging": {Targets: runs("6.1.7", "6.1.8"), Promotion: &weave.PromotionStatus{Revision: "6.1.9", Phase: weave.PromotionStarted}},
			"prod":    {Targets: runs("6.1.5"), WaitingStatus: &weave.WaitingStatus{Revision: "6.1.6"}},
		}},
	}
}

func paused() *weave.Pipeline {
	p := podinfo()
	p.Status.Paused = &weave.Pause{By: "alice", At: noon, Message: "freeze"}
	return p
}

func TestPromote(t *testing.T) {
	for name, test := range map[string]struct {
		pipeline              *weave.Pipeline
		environment, revision string
		message               string
		want, refusal         string
	}{
		"what waits is the default":                       {environment: "prod", want: "6.1.6"},
		"what waits, by its name":                         {environment: "prod", revision: "6.1.6", want: "6.1.6"},
		"what was verified before":                        {environment: "staging", revision: "6.1.8", want: "6.1.8"},
		"what another environment runs":                   {environment: "staging", revision: "6.1.5", want: "6.1.5"},
		"what one target of another runs":                 {environment: "prod", revision: "6.1.7", want: "6.1.7"},
		"what it runs itself, to stay there":              {environment: "prod", revision: "6.1.5", want: "6.1.5"},
		"an older one in the first environment":           {environment: "dev", revision: "6.1.5", want: "6.1.5"},
		"what is only begun before is not verified":       {environment: "prod", revision: "6.1.9", refusal: `revision: Invalid value: "6.1.9"`},
		"a version that nobody has seen":                  {environment: "prod", revision: "7.0.0", refusal: `or that another one runs: ["6.1.6" "6.2.0" "6.1.7" "6.1.8" "6.1.5"]`},
		"nothing waits":                                   {environment: "staging", refusal: `pipeline "podinfo": no version waits for environment "staging"; name one: ["6.1.8" `},
		"no environment":                                  {refusal: `environment: Required value: one of ["dev" "staging" "prod"]`},
		"an environment that there is not":                {environment: "qa", refusal: `environment: Not found: "qa"`},
		"a pipeline that is paused":                       {pipeline: paused(), environment: "prod", refusal: `pipeline "podinfo": it is paused by alice; resume it first`},
		"a message that nobody reads to an end":           {environment: "prod", message: strings.Repeat("a", longestMessage+1), refusal: "message: Too long"},
		"a pipeline of which nothing is known yet":        {pipeline: &weave.Pipeline{Spec: podinfo().Spec}, environment: "prod", revision: "6.1.6", refusal: "none is known yet"},
		"an environment of a pipeline without a status":   {pipeline: &weave.Pipeline{Spec: podinfo().Spec}, environment: "prod", refusal: "no version waits"},
		"a version that an order to a terminal stands in": {environment: "prod", revision: "\x1b[2J", refusal: `revision: Invalid value: "\x1b[2J"`},
	} {
		t.Run(name, func(t *testing.T) {
			p := test.pipeline
			if p == nil {
				p = podinfo()
			}
			forged := &v1alpha1.PipelineRecord{By: "the-boss"}
			body := &v1alpha1.PipelinePromotion{Environment: test.environment, Revision: test.revision, Message: test.message, Recorded: forged}
			got, err := promote(p, body, v1alpha1.PipelineRecord{By: "jane", At: noon})
			if test.refusal != "" {
				if err == nil || got != nil || !strings.Contains(err.Error(), test.refusal) {
					t.Fatalf("%v with %v, want a refusal: %s", err, got, test.refusal)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			asked := got["environments"].(map[string]any)[test.environment].(map[string]any)["asked"].(map[string]any)
			if asked["revision"] != test.want || asked["by"] != "jane" || asked["message"] != nil || body.Revision != test.want || body.Recorded.By != "jane" {
				t.Errorf("recorded %v and answered %+v, want %s by jane", asked, body, test.want)
			}
		})
	}
}

func TestWhoPausedFirstStaysWrittenDown(t *testing.T) {
	by := v1alpha1.PipelineRecord{By: "jane", At: noon}
	body := &v1alpha1.PipelinePause{Message: "holidays"}
	got, err := pause(podinfo(), body, by)
	if err != nil || got["paused"].(map[string]any)["by"] != "jane" || got["paused"].(map[string]any)["message"] != "holidays" || body.Recorded.By != "jane" {
		t.Errorf("recorded %v, answered %+v: %v; want jane with her message", got, body.Recorded, err)
	}
	body = &v1alpha1.PipelinePause{Message: "holidays"}
	if got, err = pause(paused(), body, by); err != nil || got != nil || body.Recorded.By != "alice" || body.Recorded.Message != "freeze" {
		t.Errorf("recorded %v, answered %+v: %v; want no change and alice", got, body.Recorded, err)
	}
	if _, err = pause(podinfo(), &v1alpha1.PipelinePause{Message: strings.Repeat("a", longestMessage+1)}, by); err == nil {
		t.Error("a message without an end was recorded")
	}
}

func TestAPauseEndsWhoeverBeganIt(t *testing.T) {
	body := &v1alpha1.PipelineResumption{Recorded: &v1alpha1.PipelineRecord{By: "the-boss"}}
	got, err := resume(paused(), body, v1alpha1.PipelineRecord{By: "jane", At: noon})
	if value, has := got["paused"]; err != nil || !has || value != nil || body.Recorded.By != "alice" {
		t.Errorf("recorded %v, answered %+v: %v; want the end of alice's pause", got, body.Recorded, err)
	}
	if got, err = resume(podinfo(), body, v1alpha1.PipelineRecord{By: "jane"}); err != nil || got != nil || body.Recorded != nil {
		t.Errorf("recorded %v, answered %+v: %v; want nothing of what is not paused", got, body.Recorded, err)
	}
}
