package contents

import (
	"testing"

	"k8s.io/client-go/tools/cache"

	listers "github.com/manifold-dev/manifold/generated/listers/delivery/v1alpha1"
)

func TestAMomentLastsUntilARevisionChanges(t *testing.T) {
	store := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
	reader := New(listers.NewApplicationRevisionLister(store), nil)
	if _, known := reader.Moment(); known {
		t.Error("it is known although nobody follows the revisions")
	}
	version := "1"
	if err := reader.Follow(store, func() string { return version }); err != nil {
		t.Fatal(err)
	}
	head, _, _, _ := revision(t)
	last, _ := reader.Moment()
	for _, step := range []struct {
		name string
		do   func() error
	}{
		{"it comes", func() error { return store.Add(head) }},
		{"it changes", func() error { return store.Update(head.DeepCopy()) }},
		{"it goes", func() error { return store.Delete(head) }},
		{"the watch goes on", func() error { version = "2"; return nil }},
	} {
		if err := step.do(); err != nil {
			t.Fatal(err)
		}
		now, known := reader.Moment()
		if !known || now == last {
			t.Errorf("%s: it is the same moment as before", step.name)
		}
		if again, _ := reader.Moment(); again != now {
			t.Errorf("%s: it is another moment although nothing has changed", step.name)
		}
		last = now
	}
}
