package bounds

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"
)

func pod(name string, bytes int) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}, Status: corev1.PodStatus{Message: strings.Repeat("x", bytes)}}
}

// watched is an informer that is driven by hand: what a gate is told of, and a store.
type watched struct {
	cache.SharedIndexInformer
	store   cache.Store
	handler cache.ResourceEventHandler
}

func (w *watched) GetStore() cache.Store { return w.store }
func (w *watched) AddEventHandler(h cache.ResourceEventHandler) (cache.ResourceEventHandlerRegistration, error) {
	w.handler = h
	return nil, nil
}

// sees has the informer see an object, as it does: the transform first, then the store, then the handler.
func (w *watched) sees(g *Gate, object any) error {
	object, err := g.Transform(nil)(object)
	if err != nil {
		return err
	}
	if err := w.store.Add(object); err != nil {
		return err
	}
	w.handler.OnAdd(object, false)
	return nil
}

func (w *watched) loses(t *testing.T, object any) {
	t.Helper()
	if err := w.store.Delete(object); err != nil {
		t.Fatal(err)
	}
	w.handler.OnDelete(object)
}

func newWatched(t *testing.T, b *Budget) (*Gate, *watched) {
	t.Helper()
	g, w := b.Gate(), &watched{store: cache.NewStore(cache.DeletionHandlingMetaNamespaceKeyFunc)}
	if err := g.Watch(w); err != nil {
		t.Fatal(err)
	}
	return g, w
}

func TestBudget(t *testing.T) {
	for name, test := range map[string]struct {
		objects, bytes int64
		pods           []*corev1.Pod
		want           int // how many are kept
		says           string
	}{
		"what fits is kept":                      {objects: 2, bytes: 10_000, pods: []*corev1.Pod{pod("a", 0), pod("b", 0)}, want: 2},
		"no more objects":                        {objects: 2, pods: []*corev1.Pod{pod("a", 0), pod("b", 0), pod("c", 0)}, want: 2, says: "more than 2 objects"},
		"no more bytes":                          {bytes: 4096, pods: []*corev1.Pod{pod("a", 3000), pod("b", 3000)}, want: 1, says: "more than 4Ki"},
		"one object seen again counts once":      {objects: 1, bytes: 2048, pods: []*corev1.Pod{pod("a", 1000), pod("a", 1000), pod("a", 1200)}, want: 1},
		"one that grows too much is refused":     {bytes: 2048, pods: []*corev1.Pod{pod("a", 1000), pod("a", 3000)}, want: 1, says: "more than 2Ki"},
		"without bounds all are kept":            {pods: []*corev1.Pod{pod("a", 1<<20), pod("b", 1<<20)}, want: 2},
		"one that shrinks is kept though others": {bytes: 3000, pods: []*corev1.Pod{pod("a", 2000), pod("b", 2000), pod("a", 1000)}, want: 1, says: "more than"},
	} {
		t.Run(name, func(t *testing.T) {
			var told error
			b := NewBudget(test.objects, test.bytes, func(err error) { told = err })
			g, w := newWatched(t, b)
			for _, p := range test.pods {
				if err := w.sees(g, p); err != nil && !errors.Is(err, told) {
					t.Errorf("refused with %v, and told %v", err, told)
				}
			}
			if got := len(w.store.List()); got != test.want {
				t.Errorf("%d are kept, want %d", got, test.want)
			}
			if (told != nil) != (test.says != "") || told != nil && !strings.Contains(told.Error(), test.says) {
				t.Errorf("told %v, want %q", told, test.says)
			}
			if objects, _ := b.Used(); test.objects+test.bytes > 0 && objects != int64(test.want) {
				t.Errorf("%d count, want %d", objects, test.want)
			}
		})
	}
}

func TestABudgetGetsBackWhatIsGone(t *testing.T) {
	b := NewBudget(2, 0, func(error) {})
	g, w := newWatched(t, b)
	other, otherWatch := newWatched(t, b)
	a, c := pod("a", 0), pod("c", 0)
	steps := []struct {
		name string
		do   func() error
		want int64
		full bool
	}{
		{"both gates take from it", func() error { return errors.Join(w.sees(g, a), otherWatch.sees(other, pod("b", 0))) }, 2, false},
		{"it is full", func() error { return w.sees(g, c) }, 2, true},
		{"a deletion makes room", func() error { w.loses(t, a); return w.sees(g, c) }, 2, false},
		{"one that is back before its deletion is told of counts", func() error {
			w.handler.OnDelete(c)
			return nil
		}, 2, false},
		{"a tombstone needs no room", func() error {
			_, err := g.Transform(nil)(cache.DeletedFinalStateUnknown{Key: "shop/z", Obj: pod("z", 0)})
			return err
		}, 2, false},
		{"a gate that closes gives all back", func() error { other.Close(); return nil }, 1, false},
		{"and takes no more", func() error { return otherWatch.sees(other, pod("d", 0)) }, 1, false},
	}
	for _, step := range steps {
		err := step.do()
		if got, _ := b.Used(); got != step.want || (err != nil) != step.full {
			t.Errorf("%s: %d objects count and %v, want %d and full %t", step.name, got, err, step.want, step.full)
		}
	}
}

// An informer that begins again and again keeps nothing of what it has seen in vain, and what it sees counts as long as it goes on.
func TestAnEndlessBeginningIsBounded(t *testing.T) {
	b := NewBudget(10, 0, func(error) {})
	g, _ := newWatched(t, b)
	stream := &metav1.ListOptions{AllowWatchBookmarks: true, SendInitialEvents: ptr.To(true)}
	for range 3 {
		g.Tweak(stream)
		kept := 0
		for i := range 100 {
			if _, err := g.Transform(nil)(pod(fmt.Sprint(i), 0)); err == nil {
				kept++
			}
		}
		if kept != 10 {
			t.Errorf("%d objects pass, want 10", kept)
		}
	}
	if stream.Limit != 0 {
		t.Error("a stream has no pages")
	}
}

func TestListsComeInPages(t *testing.T) {
	g, w := newWatched(t, NewBudget(0, 1<<20, nil))
	list := func(o metav1.ListOptions) metav1.ListOptions {
		g.Tweak(&o)
		return o
	}
	for _, step := range []struct {
		name      string
		ask, want metav1.ListOptions
		seen      bool // something of the list is kept
	}{
		{"a first list", metav1.ListOptions{Limit: 500, ResourceVersion: "0"}, metav1.ListOptions{Limit: 500}, false},
		{"one that is tried again", metav1.ListOptions{Limit: 500, ResourceVersion: "0"}, metav1.ListOptions{Limit: 250}, false},
		{"and a further page", metav1.ListOptions{Limit: 500, Continue: "x"}, metav1.ListOptions{Limit: 250, Continue: "x"}, false},
		{"the whole after the pages have expired", metav1.ListOptions{ResourceVersion: "7"}, metav1.ListOptions{ResourceVersion: "7"}, true},
		{"one after it got through", metav1.ListOptions{ResourceVersion: "7"}, metav1.ListOptions{Limit: 500}, false},
		{"a watch", metav1.ListOptions{ResourceVersion: "7", AllowWatchBookmarks: true}, metav1.ListOptions{ResourceVersion: "7", AllowWatchBookmarks: true}, false},
	} {
		if got := list(step.ask); got != step.want {
			t.Errorf("%s asks for %+v, want %+v", step.name, got, step.want)
		}
		if step.seen {
			if err := w.sees(g, pod("a", 0)); err != nil {
				t.Fatal(err)
			}
		}
	}
	for range 20 {
		list(metav1.ListOptions{})
	}
	if got := list(metav1.ListOptions{}).Limit; got != smallestPage {
		t.Errorf("the smallest page has %d, want %d", got, smallestPage)
	}
}

func TestTransform(t *testing.T) {
	g := NewBudget(0, 0, nil).Gate()
	got, err := g.Transform(func(obj any) (any, error) {
		obj.(*corev1.Pod).Spec = corev1.PodSpec{}
		return obj, nil
	})(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "a", Labels: map[string]string{"k": "v\xff"}}, Spec: corev1.PodSpec{NodeName: "n"}})
	if err != nil {
		t.Fatal(err)
	}
	if p := got.(*corev1.Pod); p.Spec.NodeName != "" || p.Labels["k"] != "v\ufffd" {
		t.Errorf("got %+v, want it trimmed and in valid UTF-8", p)
	}
	if _, err := g.Transform(func(any) (any, error) { return nil, errors.New("no") })(pod("a", 0)); err == nil {
		t.Error("what cannot be trimmed passes")
	}
}

func TestSize(t *testing.T) {
	long := strings.Repeat("x", 10_000)
	for name, object := range map[string]any{
		"a typed object": pod("a", 10_000),
		"one of a custom kind": &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": "a"},
			"spec": map[string]any{"list": []any{long, int64(1), nil, true}}}},
		"metadata": &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{"a": long}}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := size(object); got < 10_000 || got > 11_000 {
				t.Errorf("%d bytes, want some 10,000", got)
			}
		})
	}
}
