package custom

import (
	"errors"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/record"

	"github.com/manifold-dev/manifold/internal/work"
	"github.com/manifold-dev/manifold/pkg/syncer/steps"
)

// A webhook below that cannot be called is answered like a storage that fails for a moment.
func TestErrorInsideAClusterIsToldWhenItLasts(t *testing.T) {
	events := record.NewFakeRecorder(10)
	l := &loop{
		Controller: &Controller{Options: Options{Recorder: events}, queue: work.NewQueue[Key]("custom", firstRetry, lastRetry)},
		cluster:    "east",
		queue:      steps.NewQueue[Key]("custom-east", nil),
		states:     map[Key]state{},
	}
	t.Cleanup(l.queue.ShutDown)
	t.Cleanup(l.Controller.queue.ShutDown)
	key := Key{schema.GroupResource{Group: "example.com", Resource: "widgets"}, "shop", "a"}
	widgets := kind{versions: []string{"v1"}, name: "Widget", resource: key.Resource}
	above := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "a"}}
	broken := apierrors.NewInternalError(errors.New("failed calling webhook"))
	for range 3 {
		if err := l.failed(widgets, key, above, broken); err == nil {
			t.Fatal("the step is not tried again")
		}
		l.queue.AddRateLimited(key)
	}
	if problem := l.stateOf(key).problem; problem != "" {
		t.Errorf("problem %q after a moment", problem)
	}
	for range 10 {
		_ = l.failed(widgets, key, above, broken)
		l.queue.AddRateLimited(key)
	}
	if got, want := l.stateOf(key).problem, broken.Error(); got != want {
		t.Errorf("problem %q, want %q", got, want)
	}
	if got, want := <-events.Events, `Warning ProjectionFailed cluster "east": `+broken.Error(); got != want {
		t.Errorf("event %q, want %q", got, want)
	}
}
