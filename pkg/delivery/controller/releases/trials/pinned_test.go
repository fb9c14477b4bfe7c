package trials

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clocktesting "k8s.io/utils/clock/testing"

	manifold "github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/delivery"
	"github.com/manifold-dev/manifold/pkg/delivery/controller/objects"
	"github.com/manifold-dev/manifold/pkg/delivery/wanted"
)

// A policy may keep a namespace off a cluster. What several targets have in common is tried once, and not as the first of them alone has it.
func TestWhatIsPinnedIsTriedInAllClustersThatItWillBeIn(t *testing.T) {
	deployment := func(name, image string) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": map[string]any{"name": name},
			"spec": map[string]any{"template": map[string]any{"metadata": map[string]any{"annotations": map[string]any{"image": image}}}}}}
	}
	mesh := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "networking.istio.io/v1", "kind": "VirtualService", "metadata": map[string]any{"name": "mesh"}}}
	pins := map[string]string{}
	var mu sync.Mutex
	trial := Trial{
		Application: wanted.Application{Namespace: "shop", Name: "web", Pinned: true, Route: wanted.Key{Group: "networking.istio.io", Kind: "VirtualService", Name: "mesh"}},
		Release:     delivery.Release{Revision: delivery.Revision{Name: "web-v1", Hash: "h"}},
		Contents: func(part delivery.Part) ([]*unstructured.Unstructured, error) {
			out := []*unstructured.Unstructured{settings("a"), deployment("same", "1"), deployment("other", part.Target)}
			if part.Target == "east" {
				out = append(out, deployment("alone", "1"))
			}
			return append(out, mesh), nil
		},
		Hash:    func(delivery.Part) string { return "" },
		Memory:  &Memory{},
		Clock:   clocktesting.NewFakePassiveClock(time.Now()),
		Present: func(wanted.Key) metav1.Object { return nil },
		Server: func(_ context.Context, object wanted.Object) (objects.Trial, error) {
			pin := object.Manifest.GetAnnotations()[manifold.AnnotationClusters]
			mu.Lock()
			defer mu.Unlock()
			pins[object.Name] += pin + ";"
			if strings.Contains(pin, "west") {
				return objects.Trial{}, &objects.RefusedError{Key: object.Key, Err: errors.New("not in west")}
			}
			return objects.Trial{}, &objects.RefusedError{Key: object.Key, Err: errors.New("in east alone")}
		},
	}
	places := []delivery.Place{{Target: "east", Cluster: "east"}, {Target: "west", Cluster: "west"}}
	if refused, err := trial.Run(t.Context(), places); err != nil || !strings.Contains(refused, `target "east": ConfigMap/a: in east alone; target "east": Deployment/same: not in west`) {
		t.Errorf("refused %q, not known %v", refused, err)
	}
	clear(pins)
	trial.Memory.Forget()
	trial.Server = func(_ context.Context, object wanted.Object) (objects.Trial, error) {
		mu.Lock()
		defer mu.Unlock()
		pins[object.Name] += object.Manifest.GetAnnotations()[manifold.AnnotationClusters] + ";"
		return objects.Trial{Admitted: object.Manifest.DeepCopy()}, nil
	}
	if refused, err := trial.Run(t.Context(), places); refused != "" || err != nil {
		t.Errorf("refused %q, not known %v", refused, err)
	}
	if refused, err := trial.Run(t.Context(), append(places, delivery.Place{Target: "west", Cluster: "far-west"})); refused != "" || err != nil {
		t.Errorf("refused %q, not known %v", refused, err)
	}
	if want := "east,west;east,far-west,west;"; pins["same"] != want {
		t.Errorf("once there are more clusters it is tried in %q, want %q", pins["same"], want)
	}
	clear(pins)
	trial.Memory.Forget()
	if refused, err := trial.Run(t.Context(), places); refused != "" || err != nil {
		t.Errorf("refused %q, not known %v", refused, err)
	}
	for name, want := range map[string]string{"same": "east,west;", "other": "east,west;east,west;", "alone": "east;", "a": ";", "mesh": "east,west;east,west;"} {
		if pins[name] != want {
			t.Errorf("%s is tried in %q, want %q", name, pins[name], want)
		}
	}
}
