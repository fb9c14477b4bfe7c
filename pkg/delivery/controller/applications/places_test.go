package applications

import (
	"context"
	"fmt"
	"testing"

	"k8s.io/client-go/tools/cache"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/delivery/controller/applications/sources"
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

func TestANamespaceRendersOneThingAtATime(t *testing.T) {
	w := newWorld(t, nil)
	free, _ := w.reader.renderer.places.Take("shop")
	p := &plan{app: ofGit("shop", "web", "https://git.example/web.git"), found: &sources.Found{}}
	_, err := w.reader.renderer.run(t.Context(), p, &render.Bundle{Kind: render.Plain, Path: "."}, render.Options{Namespace: "shop"})
	if err != errBusy || !retriable(err) {
		t.Errorf("error %v, want %v, which may be gone the next time", err, errBusy)
	}
	free()
	if _, err := w.reader.renderer.run(t.Context(), p, &render.Bundle{Kind: render.Plain, Path: "."}, render.Options{Namespace: "shop"}); err != nil {
		t.Error(err)
	}
}
