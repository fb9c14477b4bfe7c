package releases

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/utils/ptr"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	manifold "github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/identity"
)

func TestRequestsAreSharedOutByNumbersOfPods(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		w.begun(sharedOut(v1alpha1.TrafficReplicas, `{"canary":20}`, `{"primary":100}`))
		w.waits("web-b", "there")
		w.holds("primary") // the canary gets nothing before it has grown
		w.waits("web-b", "agree")
		w.holds("<nil>") // the Service leads to all pods
		if got := w.runs("web") + "; " + w.runs("web-canary"); got != "east:10xone west:10xone; east:3xtwo west:3xtwo" {
			t.Errorf("runs %s", got)
		}
		if got := w.phase("there").Targets[1].Message; got != "canary 3 of 13 pods: 23%" {
			t.Errorf("what is there is said to be %q", got)
		}
		w.settled()
		w.agreed()
		w.waits("web-b", "clean")
		w.holds("primary")
		w.until("web-b", v1alpha1.ReleaseSucceeded)
		w.step()
		w.holds("<nil>")
		if got := w.runs("web") + "; " + w.runs("web-canary"); got != "east:10xtwo west:10xtwo; " {
			t.Errorf("runs %s", got)
		}
		w.settled()
	})
}

func TestARollbackTakesBackNumbersOfPods(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		w.begun(sharedOut(v1alpha1.TrafficReplicas, `{"canary":50}`, `{"primary":100}`))
		w.waits("web-b", "agree")
		w.request("web-b", v1alpha1.ReleaseRequest{Type: v1alpha1.RequestRollback})
		w.step()
		w.step()
		w.holds("primary")
		if got := w.runs("web-canary"); got != "east:10xtwo west:10xtwo" {
			t.Errorf("while it drains the canary has %s", got)
		}
		w.until("web-b", v1alpha1.ReleaseRolledBack)
		w.step()
		w.holds("<nil>")
		if got := w.runs("web") + "; " + w.runs("web-canary"); got != "east:10xone west:10xone; " {
			t.Errorf("runs %s", got)
		}
		w.settled()
	})
}

// A cluster whose Service still leads to the primary alone does not share out requests, whatever the numbers are.
func TestNumbersOfPodsCountOnceTheServiceLeadsToAll(t *testing.T) {
	w := newWorld(t, both...)
	w.begun(func(app *v1alpha1.Application) {
		sharedOut(v1alpha1.TrafficReplicas, `{"canary":20}`, `{"primary":100}`)(app)
		app.Spec.ProgressDeadlineSeconds = ptr.To(int32(3600))
	})
	w.waits("web-b", "there")
	w.deaf["west"] = true
	for range 30 {
		w.step()
	}
	stage := w.phase("there")
	if stage.Phase != v1alpha1.StageRunning || stage.Targets[0].Phase != v1alpha1.TargetSucceeded || !strings.Contains(stage.Targets[1].Message, `waiting for cluster "west" to send`) {
		t.Errorf("%+v", stage)
	}
	w.deaf["west"] = false
	w.waits("web-b", "agree")
}

func TestCopiesFollowAnAutoscalerOfThePrimary(t *testing.T) {
	w := newWorld(t, both...)
	w.begun(sharedOut(v1alpha1.TrafficReplicas, `{"canary":20}`, `{"primary":100}`))
	w.waits("web-b", "agree")
	informer := w.informer(appsv1.SchemeGroupVersion.WithResource("deployments"))
	found, _, _ := informer.GetIndexer().GetByKey("shop/web")
	deployment := found.(*appsv1.Deployment).DeepCopy()
	decision := identity.DecisionOf(deployment)
	share := decision["west"]
	share.Replicas = 16
	decision["west"] = share
	deployment.Annotations[manifold.AnnotationPlacement] = decision.String()
	w.add(informer, deployment)
	for range 4 {
		w.step()
	}
	if got := w.runs("web-canary"); got != "east:3xtwo west:4xtwo" {
		t.Errorf("beside 10 and 16 pods the canary has %s", got)
	}
	w.settled()
}
