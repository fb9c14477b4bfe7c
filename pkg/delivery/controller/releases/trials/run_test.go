package trials

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/manifold-dev/manifold/pkg/delivery"
	"github.com/manifold-dev/manifold/pkg/delivery/contents"
	"github.com/manifold-dev/manifold/pkg/delivery/controller/objects"
	"github.com/manifold-dev/manifold/pkg/delivery/wanted"
)

func settings(name string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": name}}}
}

// What is refused ends a release, and what is not known keeps it waiting: the two are never one another.
func TestATrialTellsRefusalsFromWhatIsNotKnown(t *testing.T) {
	refused := &objects.RefusedError{Key: wanted.Key{Kind: "ConfigMap", Name: "a"}, Err: errors.New("nobody may")}
	for name, test := range map[string]struct {
		holds   []string
		reads   error
		answer  error
		refused string
		unknown error
		asked   int
	}{
		"what is taken":                        {holds: []string{"a", "b"}, asked: 2},
		"what is refused, of each target":      {holds: []string{"a"}, answer: refused, refused: `target "east": ConfigMap/a: nobody may`, asked: 1},
		"no more than a few of the refusals":   {holds: []string{"a", "b", "c", "d"}, answer: refused, refused: strings.Repeat(`; target "east": ConfigMap/a: nobody may`, mostRefusals)[2:], asked: mostRefusals},
		"what nobody answers":                  {holds: []string{"a", "b"}, answer: context.DeadlineExceeded, unknown: context.DeadlineExceeded, asked: 1},
		"what may come yet":                    {reads: fmt.Errorf("chunk 2: %w", contents.ErrMissing), unknown: contents.ErrMissing},
		"what will never be what was released": {reads: errors.New("it has been made anew"), refused: "it has been made anew"},
	} {
		t.Run(name, func(t *testing.T) {
			var asked atomic.Int32
			trial := Trial{
				Application: wanted.Application{Namespace: "shop", Name: "web", Pinned: true},
				Release:     delivery.Release{Revision: delivery.Revision{Name: "web-v1", Hash: "h"}},
				Contents: func(delivery.Part) ([]*unstructured.Unstructured, error) {
					var out []*unstructured.Unstructured
					for _, name := range test.holds {
						out = append(out, settings(name))
					}
					return out, test.reads
				},
				Hash:    func(delivery.Part) string { return "" },
				Memory:  &Memory{},
				Clock:   clocktesting.NewFakePassiveClock(time.Now()),
				Present: func(wanted.Key) metav1.Object { return nil },
				Server: func(context.Context, wanted.Object) (objects.Trial, error) {
					asked.Add(1)
					return objects.Trial{}, test.answer
				},
			}
			// Both targets have the same, so that nothing is asked twice.
			places := []delivery.Place{{Target: "east", Cluster: "east"}, {Target: "east", Cluster: "far-east"}, {Target: "west", Cluster: "west"}}
			got, err := trial.Run(t.Context(), places)
			if !strings.HasSuffix(got, test.refused) || (got == "") != (test.refused == "") || !errors.Is(err, test.unknown) {
				t.Errorf("refused %q, not known %v", got, err)
			}
			if got := int(asked.Load()); got < test.asked || got > len(test.holds) {
				t.Errorf("asked %d times, want %d, and none about the same twice", got, test.asked)
			}
		})
	}
}

// Delivery has the right to the kinds of ClusterRole "edit" and to HTTPRoutes. For others it takes somebody who has it, whom users name.
func TestWhoMayWriteACustomKindIsToBeNamed(t *testing.T) {
	manifest := func(apiVersion, kind string) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{"apiVersion": apiVersion, "kind": kind, "metadata": map[string]any{"name": "web"}}}
	}
	const advice = ": name a ServiceAccount that may write it in spec.serviceAccountName"
	for name, test := range map[string]struct {
		object *unstructured.Unstructured
		rights bool
		want   string
	}{
		"a VirtualService":              {object: manifest("networking.istio.io/v1", "VirtualService"), want: `virtualservice "web" is forbidden: no` + advice},
		"one that somebody is to write": {object: manifest("networking.istio.io/v1", "VirtualService"), rights: true, want: `virtualservice "web" is forbidden: no`},
		"an HTTPRoute":                  {object: manifest("gateway.networking.k8s.io/v1", "HTTPRoute"), want: `httproute "web" is forbidden: no`},
		"what is of a quota":            {object: manifest("v1", "ConfigMap"), want: `configmap "web" is forbidden: no`},
	} {
		key := wanted.KeyOf(test.object)
		trial := Trial{Application: wanted.Application{Rights: test.rights}, Present: func(wanted.Key) metav1.Object { return nil }}
		trial.Server = func(context.Context, wanted.Object) (objects.Trial, error) {
			return objects.Trial{}, &objects.RefusedError{Key: key, Err: apierrors.NewForbidden(schema.GroupResource{Resource: strings.ToLower(key.Kind)}, "web", errors.New("no"))}
		}
		refused, err := trial.try(t.Context(), wanted.Object{Key: key, Manifest: test.object})
		if err != nil || refused != key.String()+": "+test.want {
			t.Errorf("%s: refused %q, %v, want %q", name, refused, err, test.want)
		}
	}
}

// What another object of the revision brings is missed by the server alone, until it is applied.
func TestAPodWhoseServiceAccountComesWithItIsNotTried(t *testing.T) {
	pod := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Pod", "metadata": map[string]any{"name": "once"},
		"spec": map[string]any{"serviceAccountName": "robot"}}}
	object := wanted.Object{Key: wanted.KeyOf(pod), Manifest: pod}
	account := wanted.Object{Key: wanted.Key{Kind: "ServiceAccount", Name: "robot"}}
	if !needsAccount(object, []wanted.Object{object, account}) {
		t.Error("a pod is tried before its ServiceAccount is there")
	}
	if needsAccount(object, []wanted.Object{object}) {
		t.Error("a pod is not tried although nothing of its revision is missing")
	}
}

// The kind of an object may be defined by another one of the revision, which is applied first.
func TestAnObjectIsNotTriedBeforeItsKindIsDefinedThatComesWithIt(t *testing.T) {
	star := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "example.com/v1", "kind": "Star", "metadata": map[string]any{"name": "sun"}}}
	definition := func(kind string) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
			"metadata": map[string]any{"name": "stars.example.com"}, "spec": map[string]any{"group": "example.com", "names": map[string]any{"kind": kind}}}}
	}
	for name, test := range map[string]struct {
		holds []*unstructured.Unstructured
		waits bool
	}{
		"it comes with it":      {holds: []*unstructured.Unstructured{definition("Star"), star}},
		"nobody brings it":      {holds: []*unstructured.Unstructured{star}, waits: true},
		"another one does come": {holds: []*unstructured.Unstructured{definition("Planet"), star}, waits: true},
	} {
		trial := Trial{
			Application: wanted.Application{Namespace: "shop", Name: "web", Pinned: true, Rights: true},
			Release:     delivery.Release{Revision: delivery.Revision{Name: "web-v1", Hash: "h"}},
			Contents:    func(delivery.Part) ([]*unstructured.Unstructured, error) { return test.holds, nil },
			Memory:      &Memory{}, Clock: clocktesting.NewFakePassiveClock(time.Now()),
			Hash:    func(delivery.Part) string { return "" },
			Present: func(wanted.Key) metav1.Object { return nil },
			Server: func(_ context.Context, object wanted.Object) (objects.Trial, error) {
				if object.Kind == "Star" {
					return objects.Trial{}, &objects.UndefinedError{Key: object.Key, Kind: object.Manifest.GroupVersionKind()}
				}
				return objects.Trial{}, nil
			},
		}
		refused, err := trial.Run(t.Context(), []delivery.Place{{Target: "east", Cluster: "east"}})
		if refused != "" || (err != nil) != test.waits {
			t.Errorf("%s: refused %q, not known %v; want it to wait: %t", name, refused, err, test.waits)
		}
	}
}

// An application may have thousands of objects, and others are waiting.
func TestATrialOfManyObjectsGoesOnWhereItStopped(t *testing.T) {
	clock, asked, holds := clocktesting.NewFakePassiveClock(time.Now()), map[string]int{}, 1_000
	var mu sync.Mutex
	trial := Trial{
		Application: wanted.Application{Namespace: "shop", Name: "web", Pinned: true},
		Release:     delivery.Release{Revision: delivery.Revision{Name: "web-v1", Hash: "h"}},
		Contents: func(delivery.Part) ([]*unstructured.Unstructured, error) {
			var out []*unstructured.Unstructured
			for i := range holds {
				out = append(out, settings(fmt.Sprint("a", i)))
			}
			return out, nil
		},
		Hash:    func(delivery.Part) string { return "" },
		Present: func(wanted.Key) metav1.Object { return nil },
		UID:     "first", Memory: &Memory{}, Clock: clock,
		Server: func(_ context.Context, object wanted.Object) (objects.Trial, error) {
			mu.Lock()
			defer mu.Unlock()
			asked[object.Name]++
			clock.SetTime(clock.Now().Add(100 * time.Millisecond))
			return objects.Trial{Admitted: object.Manifest.DeepCopy()}, nil
		},
	}
	places := []delivery.Place{{Target: "east", Cluster: "east"}}
	steps := 0
	for {
		begin := clock.Now()
		refused, err := trial.Run(t.Context(), places)
		if took := clock.Since(begin); took > atATime+time.Second {
			t.Errorf("a step takes %s", took)
		}
		if steps++; refused != "" || err != nil && !errors.Is(err, ErrUnfinished) || steps > 100 {
			t.Fatalf("step %d: refused %q, not known %v", steps, refused, err)
		}
		if err == nil {
			break
		}
		if want := fmt.Sprintf("%d objects so far", len(asked)); !strings.Contains(err.Error(), want) {
			t.Errorf("step %d: %v, want %s", steps, err, want)
		}
	}
	if steps != 10 || len(asked) != holds || asked["a0"] != 1 || asked["a999"] != 1 {
		t.Errorf("%d objects are asked about in %d steps, the first of them %d times", len(asked), steps, asked["a0"])
	}
	holds = 1
	for name, test := range map[string]struct {
		change func()
		want   int
	}{
		"what was admitted a moment ago is not asked about again": {func() {}, 1},
		"another release is":          {func() { trial.UID = "second" }, 2},
		"and what is no longer fresh": {func() { clock.SetTime(clock.Now().Add(fresh)) }, 2},
		"and once all is known":       {func() { trial.Memory.Forget() }, 2},
	} {
		t.Run(name, func(t *testing.T) {
			clear(asked)
			trial.Memory.Forget()
			for range 2 {
				if _, err := trial.Run(t.Context(), places); err != nil {
					t.Fatal(err)
				}
				if asked["a0"] == 1 {
					test.change()
				}
			}
			if asked["a0"] != test.want {
				t.Errorf("it is asked about %d times, want %d", asked["a0"], test.want)
			}
		})
	}
}
