package described

import (
	"context"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/tools/cache"

	"golang.org/x/sync/errgroup"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/projection"
	"github.com/manifold-dev/manifold/pkg/syncer/copies"
)

var gizmos = copies.Kind{
	Resource: schema.GroupResource{Group: "example.com", Resource: "gizmos"}, Name: "Gizmo", Versions: []string{"v1"},
	Paths: projection.PodPathsOf(&v1alpha1.CustomWorkload{PodTemplatePaths: []string{".spec.template"}, SpecReplicasPath: ".spec.replicas"}),
}

func gizmo(name string, replicas int64) *unstructured.Unstructured {
	out := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
		"replicas": replicas, "template": map[string]any{"spec": map[string]any{"containers": []any{map[string]any{"name": "serve"}}}},
	}}}
	out.SetGroupVersionKind(gizmos.GVK())
	out.SetNamespace("shop")
	out.SetName(name)
	return out
}

func TestObjectsOfADescribedKindAreReadAsWorkloads(t *testing.T) {
	resource := gizmos.Resource.WithVersion("v1")
	client := fake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), map[schema.GroupVersionResource]string{resource: "GizmoList"},
		gizmo("one", 3))
	changed, synced := make(chan copies.Key, 10), make(chan struct{}, 10)
	var followed, left int
	kinds := New(Options{
		Client: client, Indexers: func(projection.Kind) cache.Indexers { return cache.Indexers{} },
		Followers: []Follower{func(kind projection.Kind, _ cache.SharedIndexInformer) (func(), error) {
			if kind.Resource != resource || !kind.Custom {
				t.Errorf("%v is followed", kind.Resource)
			}
			followed++
			return func() { left++ }, nil
		}},
		Changed: func(key copies.Key) { changed <- key }, Synced: func() { synced <- struct{}{} },
	})
	ctx, cancel := context.WithCancel(t.Context())
	group := &errgroup.Group{}
	t.Cleanup(func() {
		cancel()
		_ = group.Wait()
	})
	if !kinds.Known() {
		t.Error("without kinds there is something to wait for")
	}
	if err := kinds.Set(ctx, group, gizmos); err != nil {
		t.Fatal(err)
	}
	one := copies.Key{Resource: gizmos.Resource, Namespace: "shop", Name: "one"}
	if got := <-changed; got != one {
		t.Errorf("%v has changed", got)
	}
	<-synced
	row := gizmos.Row("v1")
	if found := kinds.Get(one); found == nil || row.Demand(found).Replicas != 3 || !kinds.Known() {
		t.Errorf("it is read as %+v, and all are known: %t", found, kinds.Known())
	}
	if _, err := client.Resource(resource).Namespace("shop").Update(ctx, gizmo("one", -1), metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	<-changed
	if found := kinds.Get(one); found == nil || row.Demand(found).Problem == nil {
		t.Errorf("with wrong replicas it is read as %+v", found)
	}

	plain := gizmos
	plain.Paths = nil
	if err := kinds.Set(ctx, group, plain); err != nil {
		t.Fatal(err)
	}
	if kinds.Get(one) != nil || followed != 1 || left != 1 {
		t.Errorf("described no more, it is read still (%v), or followed %d times and left %d times", kinds.Get(one), followed, left)
	}
	if err := kinds.Set(ctx, group, gizmos); err != nil {
		t.Fatal(err)
	}
	<-synced
	kinds.Drop(gizmos.Resource)
	kinds.Drop(gizmos.Resource)
	if kinds.Get(one) != nil || followed != 2 || left != 2 {
		t.Errorf("dropped, it is followed %d times and left %d times", followed, left)
	}
}
