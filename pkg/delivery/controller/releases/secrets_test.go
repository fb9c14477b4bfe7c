package releases

import (
	"strings"
	"testing"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
)

// A revision may have been made of a file before anybody asked whose Secrets it names, or for an Application that has said something else then.
func TestAReleaseHasNoSecretSentWhereItsApplicationDoesNotSay(t *testing.T) {
	w := newWorld(t, both...)
	w.given(nil, both...)
	w.revise(1, both, deploymentOf("one"))
	revision, err := w.ours.Delivery().V1alpha1().ApplicationRevisions().Lister().ApplicationRevisions("shop").Get("web-v1")
	if err != nil {
		t.Fatal(err)
	}
	revision = revision.DeepCopy()
	revision.Spec.Delivery = &v1alpha1.RevisionDelivery{Planner: &v1alpha1.Planner{AlwaysUsePipeline: true}, Pipeline: &v1alpha1.Pipeline{Stages: []v1alpha1.Stage{
		stage(v1alpha1.StageSync, "sync", ""),
		stage(v1alpha1.StageAnalysis, "measure", `{"duration":"1m","metrics":[{"provider":"https://prom.example","query":"up","interval":"1m","expected":{"max":1},"secretRef":{"name":"crown"}}]}`),
	}}}
	w.add(w.ours.Delivery().V1alpha1().ApplicationRevisions().Informer(), revision)

	w.asks("web-a", "web-v1", nil)
	failed := w.until("web-a", v1alpha1.ReleaseFailed)
	const refused = `spec.pipeline.stages[1].with.metrics[0].secretRef.name: Forbidden: the Application does not say itself that Secret "crown" is for queries to "https://prom.example"`
	if !strings.Contains(failed.Status.Message, refused) || failed.Status.Plan != nil || w.runs("web") != "" {
		t.Errorf("it says %q, with plan %+v, and runs %q", failed.Status.Message, failed.Status.Plan, w.runs("web"))
	}

	// What has no such stage goes its way, such as the way back to an old revision.
	w.asks("web-b", "web-v1", func(release *v1alpha1.Release) { release.Spec.Strategy = v1alpha1.StrategyQuickSync })
	w.until("web-b", v1alpha1.ReleaseSucceeded)

	w.change(func(app *v1alpha1.Application) {
		app.Spec.Source = v1alpha1.Source{Git: &v1alpha1.GitSource{URL: "https://git.example/shop.git", Pipecd: &v1alpha1.PipecdConfig{
			AnalysisProviders: map[string]string{"prom": "https://prom.example"}, AnalysisSecrets: map[string]string{"prom": "crown"},
		}}}
	})
	w.asks("web-c", "web-v1", nil)
	if running := w.until("web-c", v1alpha1.ReleaseRunning); running.Status.Plan == nil || len(running.Status.Plan.Stages) != 2 {
		t.Errorf("what the Application says is planned as %+v", running.Status.Plan)
	}
}
