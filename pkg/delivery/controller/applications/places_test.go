package applications

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/cache"
	testclock "k8s.io/utils/clock/testing"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/delivery/render"
	"github.com/manifold-dev/manifold/pkg/delivery/source/git"
)

// hosts are repositories of which that of one namespace does not answer before it is told to.
type hosts struct {
	asked  chan string
	answer chan struct{}
}

func (h hosts) Resolve(_ context.Context, request git.Request) (git.Revision, error) {
	h.asked <- request.URL
	if request.URL == "https://slow.example/web.git" {
		<-h.answer
	}
	return git.Revision{}, git.ErrNoRepository
}

func (hosts) Fetch(context.Context, git.Request, git.Revision) (*git.Checkout, error) {
	return nil, git.ErrNoRepository
}

func ofGit(namespace, name, url string) *v1alpha1.Application {
	app := &v1alpha1.Application{}
	app.Namespace, app.Name = namespace, name
	app.UID = "uid-of-web"
	app.Spec.Source.Git = &v1alpha1.GitSource{URL: url}
	v1alpha1.SetObjectDefaults_Application(app)
	return app
}

func TestARepositoryThatDoesNotAnswerKeepsNoOtherNamespaceWaiting(t *testing.T) {
	h := hosts{make(chan string, 100), make(chan struct{})}
	w := newWorld(t, h, ofGit("shop", "web", "https://git.example/web.git"))
	for i := range callersOf + 1 {
		if err := w.own.Delivery().V1alpha1().Applications().Informer().GetIndexer().Add(ofGit("slow", fmt.Sprint("web-", i), "https://slow.example/web.git")); err != nil {
			t.Fatal(err)
		}
	}
	done := make(chan error)
	for i := range callersOf {
		go func() { done <- w.read(t.Context(), cache.NewObjectName("slow", fmt.Sprint("web-", i))) }()
	}
	for range callersOf {
		<-h.asked
	}
	if err := w.read(t.Context(), cache.NewObjectName("slow", fmt.Sprint("web-", callersOf))); err != nil || len(h.asked) != 0 {
		t.Errorf("error %v, and %d calls, want none before there is a place", err, len(h.asked))
	}
	if err := w.read(t.Context(), cache.NewObjectName("slow", "web-0")); err != nil || len(h.asked) != 0 {
		t.Errorf("error %v, and %d calls for an application that is being looked at", err, len(h.asked))
	}
	if err := w.read(t.Context(), web); err != nil || len(h.asked) != 1 {
		t.Errorf("error %v, and %d calls for another namespace, want 1", err, len(h.asked))
	}
	close(h.answer)
	for range callersOf {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

func TestANamespaceRendersOneApplicationAtATime(t *testing.T) {
	var r *renderer
	others := 0
	r = rendererOf(func(_ context.Context, folder string) (*render.Result, error) {
		if _, ok := r.places.Take("shop"); ok {
			others++
		}
		return &render.Result{Objects: []*unstructured.Unstructured{configured(folder)}}, nil
	})
	free, _ := r.places.Take("shop")
	if _, err := r.render(t.Context(), planWith(2)); err != errBusy || !retriable(err) {
		t.Errorf("error %v, want %v, which may be gone the next time", err, errBusy)
	}
	free()
	if _, err := r.render(t.Context(), planWith(2)); err != nil || others > 0 {
		t.Errorf("error %v, and %d places for other applications of the namespace between targets", err, others)
	}
	if _, ok := r.places.Take("shop"); !ok {
		t.Error("the place is not given back")
	}
}

func TestAnApplicationOfManyTargetsIsNotRenderedForEver(t *testing.T) {
	app := ofGit("shop", "web", "https://git.example/web.git")
	app.Spec.Source = v1alpha1.Source{Inline: inline(configMap("blue")).Spec.Source.Inline}
	for i := range 3 {
		app.Spec.Targets = append(app.Spec.Targets, v1alpha1.Target{Name: fmt.Sprint("t", i), Cluster: "east", Patches: []v1alpha1.Patch{{Patch: fmt.Sprint("{", i, "}")}}})
	}
	w := newWorld(t, nil, app)
	clock := testclock.NewFakeClock(time.Now())
	w.reader.clock = clock
	runs := 0
	w.reader.renderer.confined = rendererFunc(func(ctx context.Context, _ string) (*render.Result, error) {
		if deadline, ok := ctx.Deadline(); !ok || time.Until(deadline) > mostLooking {
			t.Errorf("the deadline is %s (%t), want one within %s", deadline, ok, mostLooking)
		}
		if runs++; runs%2 == 0 {
			return nil, fmt.Errorf("render: %w", context.DeadlineExceeded)
		}
		return &render.Result{Objects: []*unstructured.Unstructured{configured("x")}}, nil
	})
	got := w.turn()
	if message := says(got, v1alpha1.ApplicationRendered); !strings.Contains(message, `TooLarge: takes too long: 1 of 3 targets were rendered within 1m15s, and target "t1" not`) {
		t.Errorf("condition Rendered says %q, want how far it has come", message)
	}
	if runs != 2 || w.queues.nearby.NumRequeues(web) != 0 {
		t.Errorf("%d renderings in three looks, and %d quick retries, want one try", runs, w.queues.nearby.NumRequeues(web))
	}
	clock.Step(rest)
	if w.turn(); runs != 4 {
		t.Errorf("%d renderings after a rest, want a second try", runs)
	}
	w.change(func(spec *v1alpha1.ApplicationSpec) { spec.Targets[0].Patches[0].Patch = "{}" })
	if w.turn(); runs != 6 {
		t.Errorf("%d renderings after a change, want a third try", runs)
	}
}
