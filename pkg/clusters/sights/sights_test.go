package sights

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"
	testclock "k8s.io/utils/clock/testing"
)

const label = "example.com/pipeline"

var (
	deployments = appsv1.SchemeGroupVersion.WithResource("deployments")
	labelled    = Wish{Resource: deployments, Namespace: "shop", Label: label}
	named       = Wish{Resource: deployments, Namespace: "shop", Name: "web"}
)

func deployment(namespace, name string, labels map[string]string) *unstructured.Unstructured {
	out := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"secret": "x"}}}
	out.SetGroupVersionKind(appsv1.SchemeGroupVersion.WithKind("Deployment"))
	out.SetNamespace(namespace)
	out.SetName(name)
	out.SetLabels(labels)
	return out
}

// world is a cluster and what is seen of it.
type world struct {
	*testing.T
	*Sights
	client *dynamicfake.FakeDynamicClient
	clock  *testclock.FakeClock

	mu   sync.Mutex
	told []string
}

func newWorld(t *testing.T, objects ...runtime.Object) *world {
	w := &world{T: t, client: dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), map[schema.GroupVersionResource]string{deployments: "DeploymentList"}, objects...)}
	w.clock = testclock.NewFakeClock(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	w.Sights = New(Options{
		Clock: w.clock, For: "pipelines", Grant: "--allow-pipelines",
		Trim: func(o *unstructured.Unstructured) *unstructured.Unstructured {
			out := o.DeepCopy()
			delete(out.Object, "spec")
			return out
		},
		Changed: func(cluster string, wish Wish, before, after *unstructured.Unstructured) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.told = append(w.told, fmt.Sprintf("%s %s: %t %t", cluster, wish, before != nil, after != nil))
		},
	})
	return w
}

// connect runs the sights of a cluster until the test ends, or what it returns is called.
func (w *world) connect(cluster string) (end func()) {
	ctx, cancel := context.WithCancel(w.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := w.run(ctx, cluster, w.client); err != nil {
			w.Errorf("run: %v", err)
		}
	}()
	end = func() { cancel(); <-done }
	w.Cleanup(end)
	return end
}

// eventually waits until something holds.
func (w *world) eventually(what string, holds func() bool) {
	w.Helper()
	if err := wait.PollUntilContextTimeout(w.Context(), 5*time.Millisecond, 10*time.Second, true, func(context.Context) (bool, error) { return holds(), nil }); err != nil {
		w.Fatalf("%s: %v", what, err)
	}
}

func (w *world) shows(wish Wish, want ...string) {
	w.Helper()
	w.eventually(fmt.Sprintf("%s shows %v", wish, want), func() bool {
		seen := w.Look("east", wish)
		var got []string
		for _, o := range seen.Objects {
			got = append(got, o.GetName())
			if _, has := o.Object["spec"]; has {
				w.Fatalf("%s is not trimmed", o.GetName())
			}
		}
		slices.Sort(got)
		return seen.Known && slices.Equal(got, want)
	})
}

func (w *world) watches() (out []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.Sights.mu.Lock()
	defer w.Sights.mu.Unlock()
	if c := w.live["east"]; c != nil {
		for wish := range c.watches {
			out = append(out, wish.String())
		}
	}
	slices.Sort(out)
	return out
}

// requests are those of a verb that the cluster has been sent.
func (w *world) requests(verb string) (out int) {
	for _, action := range w.client.Actions() {
		if action.GetVerb() == verb {
			out++
		}
	}
	return out
}

func TestW37AWatchIsSharedAndLookingAsksNobody(t *testing.T) {
	w := newWorld(t, deployment("shop", "web", map[string]string{label: "podinfo"}), deployment("shop", "other", nil), deployment("bank", "web", map[string]string{label: "podinfo"}))
	w.Want("one", map[string][]Wish{"east": {labelled}})
	w.Want("two", map[string][]Wish{"east": {labelled, named}, "west": {named}})
	w.connect("east")
	w.shows(labelled, "web")
	w.shows(named, "web")
	if got := w.watches(); len(got) != 2 {
		t.Errorf("watched are %v", got)
	}
	w.eventually("both are watched", func() bool { return w.requests("watch") >= 2 })
	before := len(w.client.Actions())
	for range 100 {
		w.Look("east", labelled)
		w.Want("one", map[string][]Wish{"east": {labelled}})
	}
	if after := len(w.client.Actions()); after != before || w.requests("watch") > 2 {
		t.Errorf("there were %d requests, and are %d, %d of them watches", before, after, w.requests("watch"))
	}
}

func TestChangesAreToldAndAWatchEndsWhenNobodyNeedsIt(t *testing.T) {
	w := newWorld(t)
	w.connect("east")
	w.Want("one", map[string][]Wish{"east": {labelled}})
	w.shows(labelled)
	w.eventually("it is watched", func() bool { return w.requests("watch") > 0 })
	objects := w.client.Resource(deployments).Namespace("shop")
	if _, err := objects.Create(t.Context(), deployment("shop", "web", map[string]string{label: "podinfo"}), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	w.shows(labelled, "web")
	if err := objects.Delete(t.Context(), "web", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	w.shows(labelled)
	of := "east " + labelled.String()
	w.eventually("all is told", func() bool {
		w.mu.Lock()
		defer w.mu.Unlock()
		return slices.Contains(w.told, of+": false false") && slices.Contains(w.told, of+": false true") && slices.Contains(w.told, of+": true false")
	})
	w.Want("two", map[string][]Wish{"east": {labelled}})
	w.Want("one", nil)
	if got := w.watches(); len(got) != 1 {
		t.Errorf("somebody wants it, and watched are %v", got)
	}
	w.Want("two", map[string][]Wish{"west": {labelled}})
	if got := w.watches(); len(got) != 0 {
		t.Errorf("nobody wants it, and watched are %v", got)
	}
}

func TestAClusterIsWatchedAgainAfterItsConnectionWasMadeAnew(t *testing.T) {
	w := newWorld(t, deployment("shop", "web", nil))
	w.Want("one", map[string][]Wish{"east": {named}})
	end := w.connect("east")
	w.shows(named, "web")
	end()
	if seen := w.Look("east", named); seen.Known || len(seen.Objects) > 0 {
		t.Errorf("without a connection, %v is known", seen)
	}
	w.connect("east")
	w.shows(named, "web")
}

func TestWhatAClusterRefusesIsSaid(t *testing.T) {
	w := newWorld(t)
	refuse := func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewForbidden(deployments.GroupResource(), "", fmt.Errorf("no"))
	}
	w.client.PrependReactor("list", "*", refuse)
	w.connect("east")
	w.Want("one", map[string][]Wish{"east": {labelled}})
	w.eventually("it says what is missing", func() bool { return strings.Contains(w.Look("east", labelled).Problem, "--allow-pipelines") })
}

func TestThereAreSoManyWatchesToAClusterAndNoMore(t *testing.T) {
	w := newWorld(t)
	w.connect("east")
	w.eventually("it is connected", func() bool {
		w.Sights.mu.Lock()
		defer w.Sights.mu.Unlock()
		return w.live["east"] != nil
	})
	for i := range mostWatches {
		w.Want(fmt.Sprint(i), map[string][]Wish{"east": {{Resource: deployments, Namespace: "shop", Name: fmt.Sprintf("web-%04d", i)}}})
	}
	w.Want("late", map[string][]Wish{"east": {named}})
	if problem := w.Look("east", named).Problem; !strings.Contains(problem, fmt.Sprint(mostWatches)) || len(w.watches()) != mostWatches {
		t.Errorf("%d are watched, and one more says %q", len(w.watches()), problem)
	}
	w.Want("7", nil)
	w.shows(named)
}

func TestAClusterThatSendsTooMuchIsNotKept(t *testing.T) {
	large := deployment("shop", "web", map[string]string{label: "podinfo"})
	large.SetAnnotations(map[string]string{"large": strings.Repeat("x", mostBytes)})
	w := newWorld(t, large)
	w.connect("east")
	w.Want("one", map[string][]Wish{"east": {labelled}})
	w.eventually("it says that it is too much", func() bool { return strings.Contains(w.Look("east", labelled).Problem, "not enough") })
	w.Sights.mu.Lock()
	objects, bytes := w.live["east"].budget.Used()
	w.Sights.mu.Unlock()
	if objects > 0 || bytes > 0 {
		t.Errorf("%d objects of %d bytes are kept", objects, bytes)
	}
	large.SetAnnotations(nil)
	if _, err := w.client.Resource(deployments).Namespace("shop").Update(t.Context(), large, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	w.Want("one", map[string][]Wish{"east": {labelled}})
	if w.Look("east", labelled).Problem == "" {
		t.Error("it is tried again at once")
	}
	w.clock.Step(tryAgain)
	w.Want("one", map[string][]Wish{"east": {labelled}})
	w.shows(labelled, "web")
}

func TestNothingIsLeftOfWhoWantsNothing(t *testing.T) {
	w := newWorld(t)
	w.Want("one", map[string][]Wish{"east": {labelled, named}})
	w.Want("one", nil)
	if len(w.wanted) > 0 || len(w.wishes) > 0 {
		t.Errorf("left are %v and %v", slices.Collect(maps.Keys(w.wanted)), w.wishes)
	}
}
