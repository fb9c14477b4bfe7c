package caches

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
)

func TestObjectsAreFoundAsWhatTheyAre(t *testing.T) {
	indexer := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
	if err := indexer.Add(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}}); err != nil {
		t.Fatal(err)
	}
	if got := Named[*corev1.Pod](indexer, "shop/web"); got == nil || got.Name != "web" {
		t.Errorf("found %v, want the pod", got)
	}
	if got := Named[*corev1.Pod](indexer, "shop/other"); got != nil {
		t.Errorf("found %v, want nothing", got)
	}
	if got := Named[metav1.Object](indexer, "shop/other"); got != nil {
		t.Errorf("found %v, want nothing", got)
	}
	for namespace, want := range map[string]int{"shop": 1, "bank": 0} {
		if got := Indexed[*corev1.Pod](indexer, cache.NamespaceIndex, namespace); len(got) != want {
			t.Errorf("%d pods in %s, want %d", len(got), namespace, want)
		}
	}
	if got := All[*corev1.Pod](indexer); len(got) != 1 {
		t.Errorf("%d pods, want all", len(got))
	}
}
