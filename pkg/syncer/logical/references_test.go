package logical

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"

	delivery "github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	deliverylisters "github.com/manifold-dev/manifold/generated/listers/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/delivery/contents"
	"github.com/manifold-dev/manifold/pkg/delivery/held"
	"github.com/manifold-dev/manifold/pkg/identity"
	"github.com/manifold-dev/manifold/pkg/placement"
	"github.com/manifold-dev/manifold/pkg/projection"
	"github.com/manifold-dev/manifold/pkg/summary"
)

// heldWorld is a logical cluster with the revisions of an application.
type heldWorld struct {
	testing.TB
	*Cluster
	kind      projection.Kind
	revisions cache.Indexer
	made      int
}

func newHeldWorld(t testing.TB) *heldWorld {
	byNamespace := cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc}
	revisions, secrets := cache.NewIndexer(cache.MetaNamespaceKeyFunc, byNamespace), cache.NewIndexer(cache.MetaNamespaceKeyFunc, byNamespace)
	reader := contents.New(deliverylisters.NewApplicationRevisionLister(revisions), corelisters.NewSecretLister(secrets))
	if err := reader.Follow(revisions, nil); err != nil {
		t.Fatal(err)
	}
	c, err := New(informers.NewSharedInformerFactory(fake.NewClientset(), 0), Options{Versions: held.New(reader, nil)})
	if err != nil {
		t.Fatal(err)
	}
	kind, _ := projection.ForResource(identity.Deployments)
	return &heldWorld{TB: t, Cluster: c, kind: kind, revisions: revisions}
}

// deployment uses a ConfigMap.
func (w *heldWorld) deployment(name, uses string) *appsv1.Deployment {
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: types.UID(name)}}
	d.Spec.Template.Spec.Containers = []corev1.Container{{Name: "main", EnvFrom: []corev1.EnvFromSource{{ConfigMapRef: &corev1.ConfigMapEnvSource{
		LocalObjectReference: corev1.LocalObjectReference{Name: uses},
	}}}}}
	return d
}

// at holds a Deployment at revisions, each "" for none.
func (w *heldWorld) at(d *appsv1.Deployment, decided, reported map[string]string) *appsv1.Deployment {
	decision, breakdown := placement.Decision{}, summary.Breakdown{}
	for cluster, revision := range decided {
		decision[cluster] = placement.Share{Replicas: 1, Revision: revision}
		if revision != "" {
			decision[cluster] = placement.Share{Replicas: 1, Revision: revision, Target: "eu"}
		}
	}
	for cluster, revision := range reported {
		breakdown[cluster] = summary.ClusterStatus{Revision: revision, Target: "eu"}
	}
	status, err := json.Marshal(breakdown)
	if err != nil {
		w.Fatal(err)
	}
	d.Annotations = map[string]string{v1alpha1.AnnotationPlacement: decision.String(), v1alpha1.AnnotationStatus: string(status)}
	return d
}

// release makes a revision anew. What is in chunks is not there yet.
func (w *heldWorld) release(name string, chunked bool, objects ...*appsv1.Deployment) (chunk *delivery.ApplicationRevision) {
	w.made++
	out := &delivery.ApplicationRevision{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: types.UID(fmt.Sprint(name, w.made))}}
	target := delivery.RevisionTarget{Name: "eu"}
	var holds []delivery.RevisionObject
	for _, object := range objects {
		object.SetGroupVersionKind(w.kind.GVK)
		raw, err := json.Marshal(object)
		if err != nil {
			w.Fatal(err)
		}
		hash, err := delivery.HashManifest(raw)
		if err != nil {
			w.Fatal(err)
		}
		holds = append(holds, delivery.RevisionObject{Hash: hash, Manifest: &runtime.RawExtension{Raw: raw}})
		target.Objects = append(target.Objects, hash)
	}
	target.Hash = delivery.HashObjects(target.Objects)
	out.Spec.Targets = []delivery.RevisionTarget{target}
	out.Spec.Hash = delivery.HashRevision(out.Spec.Targets)
	if chunked {
		chunk = &delivery.ApplicationRevision{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: fmt.Sprint(name, "-chunk-", w.made), UID: types.UID(fmt.Sprint(w.made))}}
		chunk.Spec.ChunkOf, chunk.Spec.Objects = name, holds
		out.Spec.Chunks = []delivery.RevisionChunk{{Name: chunk.Name, Hash: target.Hash}}
	} else {
		out.Spec.Objects = holds
	}
	if err := w.revisions.Add(out); err != nil {
		w.Fatal(err)
	}
	return chunk
}

// scan finds out what ReferringIn and UnreadIn say by looking at everything.
func (w *heldWorld) scan(key identity.Key, cluster string) (referring, unread []string) {
	for _, obj := range w.Stores[w.kind.Resource].List() {
		above := obj.(*appsv1.Deployment)
		refers := func(of []projection.Object) bool {
			return slices.ContainsFunc(of, func(version projection.Object) bool { return keysOf(w.kind.References(version))[key] })
		}
		if refers(w.Versions.For(w.kind, above, cluster)) {
			referring = append(referring, above.Name)
		}
		if _, complete := w.Versions.All(w.kind, above); !complete {
			unread = append(unread, above.Name)
		}
	}
	slices.Sort(referring)
	slices.Sort(unread)
	return referring, unread
}

func namesOf(objects []projection.Object) []string {
	var out []string
	for _, object := range objects {
		out = append(out, object.GetName())
	}
	slices.Sort(out)
	return out
}

func (w *heldWorld) check(what string) {
	w.Helper()
	for _, uses := range []string{"a", "b", "c"} {
		key := identity.Key{Resource: identity.ConfigMaps, Namespace: "shop", Name: uses}
		for _, cluster := range []string{"", "east", "west", "north"} {
			referring, unread := w.scan(key, cluster)
			if got := namesOf(w.Versions.ReferringIn(w.kind.Resource, key, cluster)); !slices.Equal(got, referring) {
				w.Fatalf("%s: to %s refer in %q %v, want %v", what, uses, cluster, got, referring)
			}
			got := namesOf(w.Versions.UnreadIn(w.kind.Resource, "shop"))
			if missing := slices.DeleteFunc(unread, func(name string) bool { return slices.Contains(got, name) }); len(missing) > 0 {
				w.Fatalf("%s: unread are %v, and %v besides", what, got, missing)
			}
		}
	}
}

// Whatever comes and goes in whatever order, the index is what a look at everything would find.
func TestWhatIsHeldIsFoundByWhatItRefersTo(t *testing.T) {
	for seed := range uint64(20) {
		w, random := newHeldWorld(t), rand.New(rand.NewPCG(seed, 1))
		store := w.Stores[w.kind.Resource]
		one := func(of ...string) string { return of[random.IntN(len(of))] }
		some := func() map[string]string {
			out := map[string]string{}
			for _, cluster := range []string{"east", "west"} {
				if random.IntN(3) > 0 {
					out[cluster] = one("", "web-v1", "web-v2", "web-v3")
				}
			}
			return out
		}
		reported := func() map[string]string {
			out := some()
			maps.DeleteFunc(out, func(_, revision string) bool { return revision == "" || random.IntN(2) == 0 })
			return out
		}
		chunks := map[string]*delivery.ApplicationRevision{}
		for step := range 150 {
			name, revision := one("x", "y", "z"), one("web-v1", "web-v2", "web-v3")
			what := fmt.Sprintf("seed %d, step %d", seed, step)
			var err error
			switch random.IntN(7) {
			case 0, 1:
				err = store.Update(w.at(w.deployment(name, one("a", "b", "c")), some(), reported()))
			case 2:
				err = store.Delete(w.deployment(name, ""))
			case 3:
				chunks[revision] = w.release(revision, random.IntN(2) == 0, w.deployment("x", one("a", "b", "c")), w.deployment(one("y", "z"), one("a", "b", "c")))
			case 4:
				if chunks[revision] != nil {
					err = w.revisions.Add(chunks[revision])
				}
			case 5:
				err = w.revisions.Delete(&delivery.ApplicationRevision{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: revision}})
			case 6: // as when a watch begins anew
				left := slices.DeleteFunc(store.List(), func(obj any) bool { return obj.(*appsv1.Deployment).Name == name })
				err = store.Replace(left, "")
			}
			if err != nil {
				t.Fatal(err)
			}
			if random.IntN(3) > 0 {
				w.check(what)
			}
		}
		w.check("in the end")
	}
}

// To find who needs one object takes no look at the others.
func BenchmarkReferringAmongManyThatAreHeld(b *testing.B) {
	w := newHeldWorld(b)
	var all []*appsv1.Deployment
	for i := range 2000 {
		all = append(all, w.deployment(fmt.Sprint("web-", i), fmt.Sprint("settings-", i)))
	}
	w.release("web-v1", false, all...)
	for _, d := range all {
		if err := w.Stores[w.kind.Resource].Add(w.at(d.DeepCopy(), map[string]string{"east": "web-v1"}, nil)); err != nil {
			b.Fatal(err)
		}
	}
	w.Versions.UnreadIn(w.kind.Resource, "shop") // reads all of them once
	for i := 0; b.Loop(); i++ {
		key := identity.Key{Resource: identity.ConfigMaps, Namespace: "shop", Name: fmt.Sprint("settings-", i%2000)}
		if got := w.Versions.ReferringIn(w.kind.Resource, key, "east"); len(got) != 1 {
			b.Fatalf("%d refer to it, want one", len(got))
		}
	}
}
