package releases

import (
	"errors"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/ptr"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	manifold "github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
)

// filed has the file of a revision say how it is delivered.
func (w *world) filed(revision string, how v1alpha1.RevisionDelivery) {
	w.Helper()
	found, err := w.ours.Delivery().V1alpha1().ApplicationRevisions().Lister().ApplicationRevisions("shop").Get(revision)
	if err != nil {
		w.Fatal(err)
	}
	found = found.DeepCopy()
	found.Spec.Delivery = &how
	w.add(w.ours.Delivery().V1alpha1().ApplicationRevisions().Informer(), found)
}

// pinOf is where a Deployment is pinned to, and the policy that it follows.
func (w *world) pinOf(deployment string) string {
	obj, exists, _ := w.informer(appsv1.SchemeGroupVersion.WithResource("deployments")).GetIndexer().GetByKey("shop/" + deployment)
	if !exists {
		return "it is not there"
	}
	of := obj.(*appsv1.Deployment)
	return strings.TrimSpace(of.Annotations[manifold.AnnotationClusters] + " " + of.Labels[v1alpha1.LabelPlacement])
}

// byFile is a world whose application says nothing itself. The file of web-v1, which runs, says that it goes to both clusters, and heals drift. Those of web-v2
// and web-v3 say nothing.
func (w *world) byFile(change func(*v1alpha1.Application)) {
	w.Helper()
	w.given(func(app *v1alpha1.Application) {
		app.Spec.ProgressDeadlineSeconds = ptr.To(int32(20))
		if change != nil {
			change(app)
		}
	})
	w.revise(1, both, deploymentOf("one"))
	w.filed("web-v1", v1alpha1.RevisionDelivery{
		Targets: []v1alpha1.Target{{Name: "east", Cluster: "east"}, {Name: "west", Cluster: "west"}}, Drift: &v1alpha1.Drift{Heal: true},
	})
	w.revise(2, []string{v1alpha1.DefaultTarget}, deploymentOf("two"))
	w.revise(3, []string{v1alpha1.DefaultTarget}, deploymentOf("three"))
	w.asks("web-a", "web-v1", nil)
	w.until("web-a", v1alpha1.ReleaseSucceeded)
	w.settled()
}

// isAsByFile fails unless web-v1 runs as its file says, after a release.
func (w *world) isAsByFile(release string) {
	w.Helper()
	if got, want := w.runs("web"), "east:10xone west:10xone"; got != want {
		w.Errorf("runs %s, want %s", got, want)
	}
	if got, want := w.pinOf("web"), "east,west web-primary"; got != want {
		w.Errorf("it is pinned to %q, want %q", got, want)
	}
	status := w.release(release).Status
	if status.DeliveryRevision != "web-v1" || status.BeforeDeliveryRevision != "web-v1" {
		w.Errorf("it is delivered as %s says, and was as %s said", status.DeliveryRevision, status.BeforeDeliveryRevision)
	}
	app, err := w.ours.Delivery().V1alpha1().Applications().Lister().Applications("shop").Get("web")
	if err != nil {
		w.Fatal(err)
	}
	if drift := w.revisions.effective(app, w.release(release)).Spec.Drift; drift == nil || !drift.Heal {
		w.Errorf("of drift counts %+v", drift)
	}
	w.settled()
}

// What was there before comes back as its own file says, not as the file of what has failed does.
func TestARollbackGoesByTheFileOfBefore(t *testing.T) {
	agree := pipeline(stage(v1alpha1.StageWaitApproval, "agree", ""), stage(v1alpha1.StageSync, "sync", ""))
	staged := func(release *v1alpha1.Release) { release.Spec.Strategy = v1alpha1.StrategyPipeline }
	for name, test := range map[string]struct {
		change func(*v1alpha1.Application)
		do     func(w *world)
	}{
		"a release that fails is taken back": {do: func(w *world) {
			w.broken["two"] = true
			w.asks("web-b", "web-v2", nil)
			w.until("web-b", v1alpha1.ReleaseRolledBack)
		}},
		"one that has succeeded is, too": {do: func(w *world) {
			w.asks("web-b", "web-v2", nil)
			w.until("web-b", v1alpha1.ReleaseSucceeded)
			if got := w.runs("web") + " " + w.pinOf("web"); got != "east:10xtwo " {
				w.Errorf("runs %s", got)
			}
			w.request("web-b", v1alpha1.ReleaseRequest{Type: v1alpha1.RequestRollback})
			w.until("web-b", v1alpha1.ReleaseRolledBack)
		}},
		"so is one that has brought nothing yet": {change: agree, do: func(w *world) {
			w.asks("web-b", "web-v2", staged)
			w.waits("web-b", "agree")
			w.request("web-b", v1alpha1.ReleaseRequest{Type: v1alpha1.RequestCancel, Rollback: true})
			w.until("web-b", v1alpha1.ReleaseRolledBack)
		}},
		"one that cannot begin changes nothing": {
			change: pipeline(stage(v1alpha1.StageCanaryRollout, "canary", ""), stage(v1alpha1.StageTrafficRouting, "route", `{"canary":10}`)),
			do: func(w *world) {
				w.asks("web-b", "web-v2", staged)
				w.until("web-b", v1alpha1.ReleaseFailed)
			},
		},
		"nor does one that the server refuses": {do: func(w *world) {
			w.unfit["Deployment/web"] = apierrors.NewForbidden(appsv1.Resource("deployments"), "web", errors.New("no"))
			w.asks("web-b", "web-v2", nil)
			w.until("web-b", v1alpha1.ReleaseFailed)
			delete(w.unfit, "Deployment/web")
		}},
		"one that is taken back after that goes by it, too": {do: func(w *world) {
			w.broken["two"], w.broken["three"] = true, true
			w.asks("web-c", "web-v3", nil)
			w.until("web-c", v1alpha1.ReleaseRolledBack)
			w.asks("web-b", "web-v2", nil)
			w.until("web-b", v1alpha1.ReleaseRolledBack)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			each(t, func(t *testing.T, w *world) {
				w.byFile(test.change)
				test.do(w)
				w.isAsByFile("web-b")
			})
		})
	}
}

// What is left as it is after a failure goes on by the file of what has failed.
func TestWhatIsNotTakenBackIsDeliveredByItsOwnFile(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		w.byFile(func(app *v1alpha1.Application) { app.Spec.Rollback.When = v1alpha1.RollbackNever })
		w.broken["two"] = true
		w.asks("web-b", "web-v2", nil)
		release := w.until("web-b", v1alpha1.ReleaseFailed)
		if got, want := w.runs("web"), "east:10xtwo"; got != want || w.pinOf("web") != "" || release.Status.DeliveryRevision != "web-v2" {
			t.Errorf("runs %s, want %s; it is pinned to %q and delivered as %s says", got, want, w.pinOf("web"), release.Status.DeliveryRevision)
		}
		w.settled()
	})
}
