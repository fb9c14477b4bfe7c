package releases

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	manifold "github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/delivery/controller/objects"
	"github.com/manifold-dev/manifold/pkg/delivery/traffic"
	"github.com/manifold-dev/manifold/pkg/identity"
	"github.com/manifold-dev/manifold/pkg/placement"
	"github.com/manifold-dev/manifold/pkg/summary"
)

var (
	gizmoKind     = schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Gizmo"}
	gizmoResource = gizmoKind.GroupVersion().WithResource("gizmos")
)

// gizmos are objects of a custom kind, and what is known of them by watch.
type gizmos struct {
	whole map[string]*unstructured.Unstructured
	known cache.Indexer
	// undecided says that nothing is decided about them, although a policy sends them to clusters, undefined that nobody knows the kind, and problems why
	// clusters refuse them.
	undecided, undefined bool
	problems             map[string]string
	// sizes are those that clusters have.
	sizes map[string]int64
	// state is what clusters say of their condition Ready, "" for nothing.
	state string
	// front is the route that there is, nil for none.
	front func() *unstructured.Unstructured
}

func newGizmos() *gizmos {
	return &gizmos{whole: map[string]*unstructured.Unstructured{}, known: cache.NewIndexer(cache.MetaNamespaceKeyFunc, objects.Indexers()), problems: map[string]string{}, sizes: map[string]int64{}}
}

// filled is an informer that a test has filled.
type filled struct{ cache.SharedIndexInformer }

func (filled) HasSynced() bool { return true }

func (*gizmos) Follow(func(before, after *metav1.PartialObjectMetadata)) {}

func (g *gizmos) Resource(kind schema.GroupKind) (schema.GroupVersionResource, bool) {
	if resource, is := fronted[kind]; is {
		return resource, true
	}
	return gizmoResource, kind == gizmoKind.GroupKind() && !g.undefined
}

// fronted are the kinds of routes.
var fronted = map[schema.GroupKind]schema.GroupVersionResource{
	traffic.HTTPRouteKind.GroupKind():      traffic.HTTPRouteKind.GroupVersion().WithResource("httproutes"),
	traffic.VirtualServiceKind.GroupKind(): traffic.VirtualServiceKind.GroupVersion().WithResource("virtualservices"),
}

// sharesOut reports whether a resource is that of routes.
func sharesOut(resource schema.GroupVersionResource) bool {
	return slices.Contains(slices.Collect(maps.Values(fronted)), resource)
}

// frontData is the metadata of the route, nil if there is none.
func (g *gizmos) frontData() *metav1.PartialObjectMetadata {
	front := g.front()
	if front == nil {
		return nil
	}
	out := &metav1.PartialObjectMetadata{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(front.DeepCopy().Object, out); err != nil {
		panic(err)
	}
	return out
}

func (g *gizmos) Get(kind schema.GroupKind, namespace, name string) (*metav1.PartialObjectMetadata, bool) {
	if _, is := fronted[kind]; is {
		if front := g.frontData(); front != nil && front.GroupVersionKind().GroupKind() == kind && front.Namespace == namespace && front.Name == name {
			return front, true
		}
		return nil, true
	}
	if kind != gizmoKind.GroupKind() || g.undefined {
		return nil, false
	}
	found, there, _ := g.known.GetByKey(namespace + "/" + name)
	if !there {
		return nil, true
	}
	return found.(*metav1.PartialObjectMetadata), true
}

func (g *gizmos) Indexed(index, value string, show func(schema.GroupKind, *metav1.PartialObjectMetadata)) {
	if front := g.frontData(); front != nil && front.Namespace+"/"+front.Labels[v1alpha1.LabelApplication] == value {
		show(front.GroupVersionKind().GroupKind(), front)
	}
	found, _ := g.known.ByIndex(index, value)
	for _, obj := range found {
		if !g.undefined {
			show(gizmoKind.GroupKind(), obj.(*metav1.PartialObjectMetadata))
		}
	}
}

func (g *gizmos) Awaited(_ schema.GroupKind, object *metav1.PartialObjectMetadata) bool {
	return g.undecided && len(identity.DecisionOf(object)) == 0
}

func (g *gizmos) remove(name string) {
	if found := g.whole[name]; found != nil {
		delete(g.whole, name)
		_ = g.known.Delete(&metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}})
	}
}

// keepGizmo keeps an object, of which the watch shows the metadata.
func (w *world) keepGizmo(object *unstructured.Unstructured) {
	w.Helper()
	object.SetResourceVersion(w.next())
	metadata := &metav1.PartialObjectMetadata{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, metadata); err != nil {
		w.Fatal(err)
	}
	w.gizmos.whole[object.GetName()] = object
	if err := w.gizmos.known.Update(metadata); err != nil {
		w.Fatal(err)
	}
}

// applyGizmo is what the server does.
func (w *world) applyGizmo(in *unstructured.Unstructured, dryRun, compared bool) (bool, runtime.Object, error) {
	key := "Gizmo/" + in.GetName()
	in.SetGeneration(1)
	if before := w.gizmos.whole[in.GetName()]; before != nil {
		in.SetUID(before.GetUID())
		in.SetGeneration(before.GetGeneration())
		if fmt.Sprint(before.Object["spec"]) != fmt.Sprint(in.Object["spec"]) {
			in.SetGeneration(before.GetGeneration() + 1)
		}
		for _, kept := range []string{manifold.AnnotationPlacement, manifold.AnnotationStatus} {
			w.annotate(in, kept, before.GetAnnotations()[kept])
		}
	} else if !dryRun {
		in.SetUID(types.UID("uid-" + in.GetName() + w.next()))
	}
	switch {
	case dryRun && compared:
		w.tried = append(w.tried, key)
		return true, in, w.unfit[key]
	case dryRun:
		w.trials = append(w.trials, key)
		return true, in, w.unfit[key]
	}
	w.writes = append(w.writes, key)
	w.keepGizmo(in.DeepCopy())
	in.SetResourceVersion(w.gizmos.whole[in.GetName()].GetResourceVersion())
	return true, in, nil
}

// carryGizmos places those that are pinned, and has the clusters take them up.
func (w *world) carryGizmos() {
	for _, gizmo := range w.gizmos.whole {
		pin := gizmo.GetAnnotations()[manifold.AnnotationClusters]
		if pin == "" || w.gizmos.undecided {
			continue
		}
		decision, reported := placement.Decision{}, identity.CopiesOf(gizmo)
		for _, cluster := range strings.Split(pin, ",") {
			decision[cluster] = placement.Share{Replicas: 1}
			if w.dead[cluster] {
				continue
			}
			if problem := w.gizmos.problems[cluster]; problem != "" {
				reported[cluster] = summary.CustomCluster{Generation: reported[cluster].Generation, Problem: problem}
				continue
			}
			hold, err := w.customHolds.In(gizmoKind.GroupKind(), gizmo, cluster)
			if err != nil || hold.Absent {
				continue // it is left as it is
			}
			now := summary.CustomCluster{Generation: gizmo.GetGeneration(), Content: hold.Revision.String()}
			size, _, _ := unstructured.NestedInt64(gizmo.Object, "spec", "size")
			if hold.Content != nil {
				size, _, _ = unstructured.NestedInt64(hold.Content.Object, "spec", "size")
			}
			w.gizmos.sizes[cluster] = size
			if w.gizmos.state != "" {
				now.State, now.Unready = "Ready="+w.gizmos.state, w.gizmos.state != "True"
			}
			reported[cluster] = now
		}
		annotations := gizmo.GetAnnotations()
		if annotations[manifold.AnnotationPlacement] == decision.String() && annotations[manifold.AnnotationStatus] == reported.String() {
			continue
		}
		changed := gizmo.DeepCopy()
		w.annotate(changed, manifold.AnnotationPlacement, decision.String())
		w.annotate(changed, manifold.AnnotationStatus, reported.String())
		w.keepGizmo(changed)
	}
}

// editGizmo has a user change the one that is there.
func (w *world) editGizmo(size int64) {
	w.Helper()
	changed := w.gizmos.whole["one"].DeepCopy()
	changed.SetGeneration(changed.GetGeneration() + 1)
	if err := unstructured.SetNestedField(changed.Object, size, "spec", "size"); err != nil {
		w.Fatal(err)
	}
	w.keepGizmo(changed)
}

func gizmoOf(size int, pin string) string {
	annotations := ""
	if pin != "" {
		annotations = fmt.Sprintf(`,"annotations":{"manifold.dev/clusters":%q}`, pin)
	}
	return fmt.Sprintf(`{"apiVersion":"example.com/v1","kind":"Gizmo","metadata":{"name":"one"%s},"spec":{"size":%d}}`, annotations, size)
}

// firstGizmo releases an application with a Gizmo.
func (w *world) firstGizmo(change func(*v1alpha1.Application), pin string) {
	w.Helper()
	w.given(change, both...)
	w.revise(1, both, settings, gizmoOf(1, pin))
	w.asks("web-a", "web-v1", nil)
	w.until("web-a", v1alpha1.ReleaseSucceeded)
	w.settled()
}

func TestObjectsOfCustomKindsThatNoRevisionHasAreDeleted(t *testing.T) {
	for name, test := range map[string]struct {
		prune, restart, theirs, want bool
	}{
		"with prune":            {prune: true, want: true},
		"by another controller": {prune: true, restart: true, want: true},
		"but not without":       {},
		"nor somebody else's":   {prune: true, theirs: true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, both...)
			w.firstGizmo(func(app *v1alpha1.Application) { app.Spec.Prune = ptr.To(test.prune) }, "")
			if test.theirs {
				other := w.gizmos.whole["one"].DeepCopy()
				other.SetOwnerReferences(nil)
				w.keepGizmo(other)
			}
			if test.restart {
				w.restart()
			}
			w.revise(2, both, settings)
			w.asks("web-b", "web-v2", nil)
			w.until("web-b", v1alpha1.ReleaseSucceeded)
			w.settled()
			if got := w.gizmos.whole["one"] == nil; got != test.want {
				t.Errorf("it is gone: %t, want %t", got, test.want)
			}
		})
	}
}

func TestTheDriftOfObjectsOfCustomKinds(t *testing.T) {
	const sizeDrift = "Gizmo/one: /spec/size is to be 1, and 7 was found"
	size := func(w *world) int64 {
		got, _, _ := unstructured.NestedInt64(w.gizmos.whole["one"].Object, "spec", "size")
		return got
	}
	t.Run("there is none after a release, and the server is asked once", func(t *testing.T) {
		w := newWorld(t, both...)
		w.firstGizmo(nil, "east,west")
		w.step()
		if got := w.drifted(); got != "" || len(w.tried) > 1 {
			t.Errorf("drift is %q, and the server was asked about %v", got, w.tried)
		}
		w.tried = nil
		w.gizmos.state = "True" // what clusters report is no change
		w.step()
		w.step()
		if got := w.drifted(); got != "" || len(w.tried) > 0 {
			t.Errorf("after a report drift is %q, and the server was asked about %v", got, w.tried)
		}
	})
	t.Run("what somebody changes is shown and left", func(t *testing.T) {
		w := newWorld(t, both...)
		w.firstGizmo(nil, "")
		w.writes = nil
		w.editGizmo(7)
		w.step()
		w.step()
		if got := w.drifted(); got != sizeDrift+" in the logical cluster alone" || len(w.writes) > 0 {
			t.Errorf("drift is %q, and written is %v", got, w.writes)
		}
		w.editGizmo(1)
		w.step()
		if got := w.drifted(); got != "" {
			t.Errorf("once it is changed back, drift is %q", got)
		}
	})
	t.Run("what somebody changes is shown of the clusters that have it as it stands", func(t *testing.T) {
		w := newWorld(t, both...)
		w.given(nil, both...)
		w.reviseEach(1, nil, map[string][]string{"east": {settings, gizmoOf(1, "east,west")}, "west": {settings, gizmoOf(2, "east,west")}})
		w.asks("web-a", "web-v1", nil)
		w.until("web-a", v1alpha1.ReleaseSucceeded)
		w.settled()
		w.editGizmo(7)
		w.step()
		if got := w.drifted(); got != sizeDrift+" in east" {
			t.Errorf("drift is %q, want that of east, while west is held at what its own target says", got)
		}
	})
	t.Run("is put back", func(t *testing.T) {
		w := newWorld(t, both...)
		w.firstGizmo(heals, "")
		w.writes = nil
		w.editGizmo(7)
		w.step()
		w.step()
		if got := w.drifted(); got != "" || strings.Join(w.writes, " ") != "Gizmo/one" || size(w) != 1 {
			t.Errorf("drift is %q, written is %v, and the size %d", got, w.writes, size(w))
		}
	})
	t.Run("what is ignored stays when the rest is put back", func(t *testing.T) {
		w := newWorld(t, both...)
		w.given(func(app *v1alpha1.Application) {
			heals(app)
			app.Spec.Drift.Ignore = []v1alpha1.DriftIgnore{{Kind: "Gizmo", JSONPointers: []string{"/spec/size"}}}
		}, both...)
		w.revise(1, both, `{"apiVersion":"example.com/v1","kind":"Gizmo","metadata":{"name":"one"},"spec":{"size":1,"colour":"blue"}}`)
		w.asks("web-a", "web-v1", nil)
		w.until("web-a", v1alpha1.ReleaseSucceeded)
		w.editGizmo(7)
		w.step()
		if got := w.drifted(); got != "" {
			t.Errorf("drift of what is ignored is %q", got)
		}
		changed := w.gizmos.whole["one"].DeepCopy()
		changed.SetGeneration(changed.GetGeneration() + 1)
		_ = unstructured.SetNestedField(changed.Object, "red", "spec", "colour")
		w.keepGizmo(changed)
		w.step()
		w.step()
		if colour, _, _ := unstructured.NestedString(w.gizmos.whole["one"].Object, "spec", "colour"); colour != "blue" || size(w) != 7 {
			t.Errorf("put back is colour %s with size %d, want blue with 7", colour, size(w))
		}
	})
	t.Run("one that somebody deletes is shown", func(t *testing.T) {
		w := newWorld(t, both...)
		w.firstGizmo(nil, "")
		w.writes = nil
		w.gizmos.remove("one")
		w.step()
		if got := w.drifted(); got != "Gizmo/one is not there any more in east,west" || len(w.writes) > 0 {
			t.Errorf("drift is %q, and written is %v", got, w.writes)
		}
	})
	t.Run("one that may not be read cannot be compared", func(t *testing.T) {
		w := newWorld(t, both...)
		w.firstGizmo(nil, "")
		w.unfit["Gizmo/one"] = apierrors.NewForbidden(gizmoResource.GroupResource(), "one", errors.New("no right to patch"))
		w.editGizmo(7)
		w.step()
		if found, _ := w.Drift.Of("app"); len(found) != 1 || !strings.Contains(found[0].Unclear, "no right to patch") {
			t.Errorf("drift is %+v", found)
		}
	})
}

// A kind that nobody knows any more, or not yet, keeps nothing from being released.
func TestObjectsOfAKindThatIsNotKnownYetAreTakenAsTheyWereWritten(t *testing.T) {
	w := newWorld(t, both...)
	w.gizmos.undefined = true
	w.firstGizmo(nil, "")
	w.gizmos.undefined = false
	w.step()
	if got := w.drifted(); got != "" || len(w.writes) > 0 {
		t.Errorf("drift is %q, and written is %v", got, w.writes)
	}
}
