package releases

import (
	"context"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
	testclock "k8s.io/utils/clock/testing"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/internal/work"
	"github.com/manifold-dev/manifold/pkg/delivery"
	"github.com/manifold-dev/manifold/pkg/delivery/stages"
)

// answers is a Measurer whose answers take what they take.
type answers func(app *v1alpha1.Application)

func (a answers) Measure(_ context.Context, app *v1alpha1.Application, _ *v1alpha1.Release, _ v1alpha1.Stage, _ string) (delivery.Measurement, error) {
	a(app)
	return delivery.Measurement{Values: []float64{1}}, nil
}

func measuringWorld(t *testing.T, clock *testclock.FakeClock, asked answers) func(namespace string, due ...stages.Measure) int {
	c := &Controller{Options: Options{Clock: clock, Measurer: asked}, asking: work.NewPlaces(2, 1)}
	c.queue = work.NewQueue[cache.ObjectName]("", time.Hour, time.Hour)
	t.Cleanup(c.queue.ShutDown)
	return func(namespace string, due ...stages.Measure) int {
		app := &v1alpha1.Application{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "web"}}
		release := &v1alpha1.Release{Status: v1alpha1.ReleaseStatus{Plan: &v1alpha1.ReleasePlan{}}}
		seen := &delivery.Observed{}
		c.measurements(t.Context(), situation{app: app, last: release}, due, seen, clock.Now())
		return len(seen.Measured["look"])
	}
}

func TestWhoAnswersSlowlyKeepsNoOtherNamespaceWaiting(t *testing.T) {
	clock := testclock.NewFakeClock(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	asked, answer := make(chan struct{}), make(chan struct{})
	measure := measuringWorld(t, clock, func(app *v1alpha1.Application) {
		if app.Namespace == "slow" {
			close(asked)
			<-answer
		}
	})
	due := stages.Measure{Stage: "look", Metric: "metrics-0", At: clock.Now()}
	done := make(chan int)
	go func() { done <- measure("slow", due) }()
	<-asked
	if got := measure("slow", due); got != 0 {
		t.Errorf("%d measurements of another application of the namespace, want none before there is a place", got)
	}
	if got := measure("shop", due); got != 1 {
		t.Errorf("%d measurements of another namespace, want 1", got)
	}
	close(answer)
	if got := <-done; got != 1 {
		t.Errorf("%d measurements of the slow one, want 1", got)
	}
}

func TestAStepAsksNoLongerThanItHasTimeToWriteWhatItFinds(t *testing.T) {
	clock := testclock.NewFakeClock(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	measure := measuringWorld(t, clock, func(*v1alpha1.Application) { clock.Step(15 * time.Second) })
	due := stages.Measure{Stage: "look", Metric: "metrics-0", At: clock.Now()}
	later := stages.Measure{Stage: "look", Metric: "metrics-9", At: clock.Now().Add(time.Hour)}
	if got := measure("shop", due, later, due, due, due); got != 2 {
		t.Errorf("%d measurements, want the 2 that began in time", got)
	}
}
