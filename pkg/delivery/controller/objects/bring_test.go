package objects

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/informers"
	kubefake "k8s.io/client-go/kubernetes/fake"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	ourfake "github.com/manifold-dev/manifold/generated/clientset/versioned/fake"
	"github.com/manifold-dev/manifold/pkg/delivery"
	"github.com/manifold-dev/manifold/pkg/delivery/observe"
	"github.com/manifold-dev/manifold/pkg/delivery/wanted"
)

// someWanted are objects of a kind that an application wants.
func someWanted(kind string, count int) []wanted.Object {
	var out []wanted.Object
	for i := range count {
		manifest := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": kind, "metadata": map[string]any{
			"name": fmt.Sprint(i), "annotations": map[string]any{}, "labels": map[string]any{v1alpha1.LabelApplication: "web"},
		}}}
		out = append(out, wanted.Object{Key: wanted.Key{Kind: kind, Name: fmt.Sprint(i)}, Variant: delivery.Primary, Manifest: manifest, Hash: "h"})
	}
	return out
}

// server is a logical cluster that notes what is asked of it. Unlike fake clients it takes several requests at a time.
type server struct {
	mu       sync.Mutex
	requests []string
	// answer is asked about each request. It may be nil.
	answer func(request string) error
}

// served is a kind of objects of a server.
type served struct {
	dynamic.NamespaceableResourceInterface
	*server
	resource string
}

func (s *server) Resource(resource schema.GroupVersionResource) dynamic.NamespaceableResourceInterface {
	return served{server: s, resource: resource.Resource}
}

func (s served) Namespace(string) dynamic.ResourceInterface { return s }

func (s served) Get(context.Context, string, metav1.GetOptions, ...string) (*unstructured.Unstructured, error) {
	return nil, apierrors.NewNotFound(schema.GroupResource{Resource: s.resource}, "it")
}

func (s served) Apply(_ context.Context, name string, _ *unstructured.Unstructured, _ metav1.ApplyOptions, _ ...string) (*unstructured.Unstructured, error) {
	return &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"resourceVersion": "1"}}}, s.ask("apply " + s.resource + "/" + name)
}

func (s served) Delete(_ context.Context, name string, _ metav1.DeleteOptions, _ ...string) error {
	return s.ask("delete " + s.resource + "/" + name)
}

func (s *server) ask(request string) error {
	s.mu.Lock()
	s.requests = append(s.requests, request)
	s.mu.Unlock()
	if s.answer == nil {
		return nil
	}
	return s.answer(request)
}

func (s *server) carrier(t *testing.T) *Carrier {
	t.Helper()
	store, err := NewStore(informers.NewSharedInformerFactory(kubefake.NewClientset(), 0), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	return &Carrier{Writer: NewWriter(store, func(Account) (dynamic.Interface, error) { return s, nil }, newScopes()), Manifold: ourfake.NewClientset()}
}

func (s *server) asked() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.requests)
}

func orderOf(objects ...wanted.Object) Order {
	return Order{Account: Account{Namespace: "shop"}, Owner: Owner{Namespace: "shop", Name: "web", UID: "app"}, Wanted: wanted.Wanted{Objects: objects}}
}

func TestObjectsOfOneKindAreThereBeforeThoseOfTheNext(t *testing.T) {
	s := &server{}
	order := orderOf(slices.Concat(someWanted("Secret", 20), someWanted("ConfigMap", 30), someWanted("Service", 5))...)
	done, err := s.carrier(t).Bring(t.Context(), order, &Memory{})
	if err != nil || !done {
		t.Fatalf("done %t, error %v", done, err)
	}
	got := s.asked()
	if len(got) != 55 {
		t.Fatalf("%d objects are written, want 55", len(got))
	}
	for i, request := range got {
		want := "apply services/"
		if i < 20 {
			want = "apply secrets/"
		} else if i < 50 {
			want = "apply configmaps/"
		}
		if !strings.HasPrefix(request, want) {
			t.Errorf("request %d is %q, want %q", i, request, want)
		}
	}
	slices.Sort(got)
	if once := slices.Compact(slices.Clone(got)); len(once) != len(got) {
		t.Errorf("%d objects are written in %d requests", len(once), len(got))
	}
}

func TestObjectsOfOneKindAreWrittenSideBySide(t *testing.T) {
	var all sync.WaitGroup
	all.Add(writers)
	s := &server{answer: func(string) error {
		all.Done()
		all.Wait() // none is answered before as many as may be are asked for
		return nil
	}}
	if done, err := s.carrier(t).Bring(t.Context(), orderOf(someWanted("ConfigMap", writers)...), &Memory{}); err != nil || !done {
		t.Errorf("done %t, error %v", done, err)
	}
}

func TestWhatComesAfterAFailureIsNotBegun(t *testing.T) {
	refused := apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, "3", errors.New("nobody may"))
	for name, test := range map[string]struct {
		answer error
		ends   bool
		// fails says that it is an error, which is tried again at once.
		fails bool
	}{
		"what is refused":         {answer: refused},
		"what nobody answers":     {answer: errors.New("nobody answers"), fails: true},
		"whoever asks has no use": {ends: true, fails: true},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, end := context.WithCancel(t.Context())
			defer end()
			s := &server{}
			s.answer = func(request string) error {
				if !strings.HasSuffix(request, "/3") {
					return nil
				}
				if test.ends {
					end()
				}
				return test.answer
			}
			c, memory := s.carrier(t), &Memory{}
			order := orderOf(slices.Concat(someWanted("ConfigMap", 100), someWanted("Service", 1))...)
			done, err := c.Bring(ctx, order, memory)
			if done || (err != nil) != test.fails {
				t.Fatalf("done %t, error %v", done, err)
			}
			if slices.Contains(s.asked(), "apply services/0") {
				t.Error("what may need it is written")
			}
			if test.fails {
				return
			}
			if why := memory.Failures()[wanted.Key{Kind: "ConfigMap", Name: "3"}]; !strings.Contains(why, "nobody may") {
				t.Errorf("the failure is %q", why)
			}
			first := len(s.asked())
			if done, err := c.Bring(t.Context(), order, memory); done || err != nil || slices.Contains(s.asked()[first:], "apply configmaps/3") {
				t.Errorf("the next time: done %t, error %v, and written are %v", done, err, s.asked()[first:])
			}
		})
	}
}

func TestALargeApplicationIsWrittenInSeveralTurns(t *testing.T) {
	s, memory := &server{}, &Memory{}
	c := s.carrier(t)
	order := orderOf(slices.Concat(someWanted("ConfigMap", 25), someWanted("Service", 10))...)
	order.AtOnce = 10
	var turns []int
	for range 4 {
		before := len(s.asked())
		done, err := c.Bring(t.Context(), order, memory)
		if err != nil {
			t.Fatal(err)
		}
		turns = append(turns, len(s.asked())-before)
		if done == memory.Unfinished() {
			t.Errorf("after %v it is done: %t, and unfinished: %t", turns, done, memory.Unfinished())
		}
		// The watch shows what was written.
		for _, key := range []string{"configmaps", "services"} {
			for _, request := range s.asked() {
				if name, is := strings.CutPrefix(request, "apply "+key+"/"); is {
					c.show(t, key, name)
				}
			}
		}
	}
	if want := []int{10, 10, 10, 5}; !slices.Equal(turns, want) {
		t.Errorf("%v are written at a time, want %v", turns, want)
	}
}

// show has the store know an object that was written.
func (c *Carrier) show(t *testing.T, resource, name string) {
	t.Helper()
	meta := of(name, true)
	var err error
	if resource == "services" {
		err = c.store.kinds[schema.GroupKind{Kind: "Service"}].informer.GetIndexer().Update(&corev1.Service{ObjectMeta: meta})
	} else {
		err = c.store.kinds[schema.GroupKind{Kind: "ConfigMap"}].informer.GetIndexer().Update(&corev1.ConfigMap{ObjectMeta: meta})
	}
	if err != nil {
		t.Fatal(err)
	}
}

func TestAllThatIsNotWantedIsDeleted(t *testing.T) {
	s := &server{}
	order := Order{Account: Account{Namespace: "shop"}, Owner: Owner{Namespace: "shop", Name: "web", UID: "app"}, Prunes: true}
	for i := range 50 {
		order.Present = append(order.Present, observe.Present{
			Key: wanted.Key{Kind: "ConfigMap", Name: fmt.Sprint(i)}, Object: &corev1.ConfigMap{ObjectMeta: of(fmt.Sprint(i), true)},
		})
	}
	if err := s.carrier(t).prune(t.Context(), order); err != nil {
		t.Fatal(err)
	}
	got := s.asked()
	slices.Sort(got)
	if once := slices.Compact(got); len(once) != 50 || once[0] != "delete configmaps/0" {
		t.Errorf("deleted are %v", once)
	}
	s.answer = func(string) error { return errors.New("nobody answers") }
	if err := s.carrier(t).prune(t.Context(), order); err == nil || !strings.Contains(err.Error(), "which is no longer wanted: ") {
		t.Errorf("error %v", err)
	}
}
