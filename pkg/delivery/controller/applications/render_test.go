package applications

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/internal/work"
	"github.com/manifold-dev/manifold/pkg/delivery/controller/applications/sources"
	"github.com/manifold-dev/manifold/pkg/delivery/render"
)

// rendererFunc renders as a test says, by the folder of a target.
type rendererFunc func(ctx context.Context, folder string) (*render.Result, error)

func (f rendererFunc) Bundle(ctx context.Context, bundle *render.Bundle, _ render.Options) (*render.Result, error) {
	return f(ctx, bundle.Path)
}

func rendererOf(f rendererFunc) *renderer {
	return &renderer{confined: f, places: work.NewPlaces(2, 1), kinds: &kinds{mapper: kindsOfTests()}}
}

// planWith is one with so many targets, each with a folder of its own.
func planWith(targets int) *plan {
	p := &plan{app: ofGit("shop", "web", "https://git.example/web.git"), found: &sources.Found{
		Bundle: func(target v1alpha1.Target, _ render.Options) (*render.Bundle, error) {
			return &render.Bundle{Kind: render.Plain, Path: target.Path}, nil
		},
	}}
	for i := range targets {
		p.targets = append(p.targets, v1alpha1.Target{Name: fmt.Sprint("t", i), Path: fmt.Sprint("folder-", i)})
	}
	return p
}

func configured(words string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "settings", "namespace": "shop"}, "data": map[string]any{"words": words},
	}}
}

func TestTargetsAreRefusedThatHoldMoreTogetherThanARevision(t *testing.T) {
	runs := 0
	r := rendererOf(func(_ context.Context, folder string) (*render.Result, error) {
		runs++
		return &render.Result{Objects: []*unstructured.Unstructured{configured(folder + strings.Repeat("x", 8<<20))}}, nil
	})
	_, err := r.render(t.Context(), planWith(500))
	if !errors.Is(err, render.ErrTooLarge) || !strings.Contains(err.Error(), `target "t7"`) || runs != 8 {
		t.Errorf("error %v after %d targets, want %v that names t7 after 8", err, runs, render.ErrTooLarge)
	}
}

func TestTargetsWithEqualContentShareIt(t *testing.T) {
	content := strings.Repeat("x", 1<<20)
	r := rendererOf(func(context.Context, string) (*render.Result, error) {
		return &render.Result{
			Objects: []*unstructured.Unstructured{configured(content)}, Images: []render.Image{{Name: "nginx"}}, Chart: "web-1", Warnings: []string{"left out"},
		}, nil
	})
	got, err := r.render(t.Context(), planWith(100))
	if err != nil {
		t.Fatal(err)
	}
	if len(got.set.Contents) != 1 || len(got.set.Targets) != 100 || len(got.images) != 1 || len(got.charts) != 1 || len(got.warnings) != 1 {
		t.Errorf("%d contents of %d targets, images %v, charts %v, warnings %v, want each once of 100 targets", len(got.set.Contents), len(got.set.Targets), got.images, got.charts, got.warnings)
	}
}

func TestWhatNobodyActsUponInManifestsIsAWarning(t *testing.T) {
	r := rendererOf(func(context.Context, string) (*render.Result, error) {
		object := configured("blue")
		object.SetAnnotations(map[string]string{"pipecd.dev/sync-by-replace": "enabled", v1alpha1.AnnotationApplied: "x"})
		return &render.Result{Objects: []*unstructured.Unstructured{object}}, nil
	})
	got, err := r.render(t.Context(), planWith(1))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"ConfigMap shop/settings: metadata.annotations[delivery.manifold.dev/applied] is left out", "ConfigMap shop/settings: metadata.annotations[pipecd.dev/sync-by-replace] is not honoured",
	} {
		if !strings.Contains(strings.Join(got.warnings, "; "), want) {
			t.Errorf("warnings are %q, want %q", got.warnings, want)
		}
	}
}
