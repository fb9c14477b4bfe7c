package watched

import (
	"context"
	"fmt"
	"slices"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/metadata/fake"
	"k8s.io/client-go/metadata/metadatainformer"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"

	"golang.org/x/sync/errgroup"

	"github.com/google/go-cmp/cmp"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/projection"
	"github.com/manifold-dev/manifold/pkg/syncer/copies"
)

var (
	gizmos = schema.GroupResource{Group: "example.com", Resource: "gizmos"}
	one    = copies.Key{Resource: gizmos, Namespace: "shop", Name: "one"}
)

// definition is that of gizmos in these versions, of which the first is stored.
func definition(versions ...string) *apiextensionsv1.CustomResourceDefinition {
	out := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: gizmos.String()}}
	out.Spec.Group, out.Spec.Scope = gizmos.Group, apiextensionsv1.NamespaceScoped
	for i, version := range versions {
		out.Spec.Versions = append(out.Spec.Versions, apiextensionsv1.CustomResourceDefinitionVersion{Name: version, Served: true, Storage: i == 0})
	}
	out.Status.AcceptedNames = apiextensionsv1.CustomResourceDefinitionNames{Plural: gizmos.Resource, Kind: "Gizmo"}
	out.Status.Conditions = []apiextensionsv1.CustomResourceDefinitionCondition{
		{Type: apiextensionsv1.Established, Status: apiextensionsv1.ConditionTrue},
	}
	return out
}

// gizmo is an object that is placed, unless the decision is "".
func gizmo(version, decision string) *metav1.PartialObjectMetadata {
	out := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "one", UID: "u1", ResourceVersion: version}}
	out.SetGroupVersionKind(gizmos.WithVersion("v1").GroupVersion().WithKind("Gizmo"))
	if decision != "" {
		out.Annotations = map[string]string{v1alpha1.AnnotationPlacement: decision}
	}
	return out
}

// registry is one whose metadata are a fake client's. What it tells of objects comes in one channel, in order, and of kinds in another.
type registry struct {
	*Kinds
	client        *fake.FakeMetadataClient
	ctx           context.Context
	end           context.CancelFunc
	group         *errgroup.Group
	objects, kind chan string
}

func (r *registry) Look(key copies.Key, clusters ...string) {
	r.objects <- fmt.Sprintf("look at %s in %v", key.Name, clusters)
}
func (r *registry) LookEverywhere(key copies.Key) {
	r.objects <- fmt.Sprintf("look at %s everywhere", key.Name)
}
func (r *registry) LookAtKind(resource schema.GroupResource) { r.kind <- resource.Resource }

func newRegistry(t *testing.T, objects ...runtime.Object) *registry {
	t.Helper()
	known := fake.NewTestScheme()
	if err := metav1.AddMetaToScheme(known); err != nil {
		t.Fatal(err)
	}
	r := &registry{
		client: fake.NewSimpleMetadataClient(known, objects...), group: &errgroup.Group{},
		objects: make(chan string, 100), kind: make(chan string, 100),
	}
	revision := func(o *metav1.PartialObjectMetadata) string {
		if o == nil {
			return "nothing"
		}
		return o.ResourceVersion
	}
	r.Kinds = New(Options{
		Metadata: metadatainformer.NewSharedInformerFactory(r.client, 0), Loops: r,
		Indexers: cache.Indexers{"uid": func(obj any) ([]string, error) { return []string{string(obj.(metav1.Object).GetUID())}, nil }},
		Changed: func(key copies.Key, before, after *metav1.PartialObjectMetadata) {
			r.objects <- fmt.Sprintf("%s was %s and is %s", key.Name, revision(before), revision(after))
		},
		Again: func(key copies.Key) { r.objects <- key.Name + " again" },
	})
	r.ctx, r.end = context.WithCancel(t.Context())
	t.Cleanup(func() {
		r.end()
		r.Close()
		_ = r.group.Wait()
	})
	return r
}

// define takes a definition into account.
func (r *registry) define(t *testing.T, versions ...string) {
	t.Helper()
	crd := definition(versions...)
	k, served := copies.KindOf(crd)
	if !served {
		t.Fatal("the kind is not served")
	}
	if err := r.Define(r.ctx, r.group, k, crd); err != nil {
		t.Fatal(err)
	}
}

// hears waits for what is told of objects next.
func (r *registry) hears(t *testing.T, want ...string) {
	t.Helper()
	got := make([]string, 0, len(want))
	for range want {
		got = append(got, <-r.objects)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func (r *registry) concern(t *testing.T, want map[string][]copies.Key) {
	t.Helper()
	for _, cluster := range []string{"east", "west"} {
		if got := r.Concerns(cluster); !slices.Equal(got, want[cluster]) {
			t.Errorf("%s is concerned by %v, want %v", cluster, got, want[cluster])
		}
	}
}

func TestObjectsOfADefinedKindAreWatched(t *testing.T) {
	r := newRegistry(t, gizmo("1", `{"east":{"replicas":1}}`))
	if _, _, known := r.Get(one); known {
		t.Error("an object of a kind that nobody has defined is known")
	}
	r.define(t, "v1")
	r.hears(t, "look at one in [east]", "one was nothing and is 1")
	r.concern(t, map[string][]copies.Key{"east": {one}})
	<-r.kind
	r.hears(t, "one again") // once all are known
	k, o, known := r.Get(one)
	if k.Name != "Gizmo" || o == nil || o.UID != "u1" || !known {
		t.Errorf("it is %v of kind %q, known: %t", o, k.Name, known)
	}
	if _, o, known = r.Get(copies.Key{Resource: gizmos, Namespace: "shop", Name: "two"}); o != nil || !known {
		t.Errorf("what there is not is %v, known: %t", o, known)
	}

	objects := r.client.Resource(gizmos.WithVersion("v1")).Namespace("shop").(fake.MetadataClient)
	if _, err := objects.UpdateFake(gizmo("2", `{"west":{"replicas":1}}`), metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	r.hears(t, "look at one in [west east]", "one was 1 and is 2") // also where it was
	r.concern(t, map[string][]copies.Key{"west": {one}})
	for namespace, want := range map[string]int{metav1.NamespaceAll: 1, "shop": 1, "other": 0} {
		got := 0
		r.Each(gizmos, namespace, func(*metav1.PartialObjectMetadata) { got++ })
		if got != want {
			t.Errorf("namespace %q has %d objects, want %d", namespace, got, want)
		}
	}
	if _, err := objects.UpdateFake(gizmo("3", ""), metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	r.hears(t, "look at one in [west]", "one was 2 and is 3")
	r.concern(t, nil)
	r.Note(gizmos, gizmo("4", `{"east":{"replicas":1}}`))
	r.hears(t, "look at one in [east]")
	if err := objects.Delete(r.ctx, "one", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	r.hears(t, "one was 3 and is nothing", "look at one everywhere")
	r.concern(t, nil)
}

func TestKindsAndTheirObjectsAreFound(t *testing.T) {
	r := newRegistry(t, gizmo("1", ""))
	kind := schema.GroupKind{Group: "example.com", Kind: "Gizmo"}
	if _, defined := r.Named(kind); defined {
		t.Error("a kind that nobody has defined is found")
	}
	r.define(t, "v1beta1", "v1")
	r.hears(t, "look at one in []", "one was nothing and is 1")
	if k, _ := r.Named(kind); k.Resource != gizmos {
		t.Errorf("found is %v", k)
	}
	if _, defined := r.Named(schema.GroupKind{Group: "example.org", Kind: "Gizmo"}); defined {
		t.Error("one of another group is found")
	}
	shown := func(value string) (out []string) {
		r.Indexed("uid", value, func(k copies.Kind, o *metav1.PartialObjectMetadata) { out = append(out, k.Name+"/"+o.Name) })
		return out
	}
	if got := shown("u1"); !slices.Equal(got, []string{"Gizmo/one"}) {
		t.Errorf("shown are %v", got)
	}
	if got := shown("u2"); len(got) > 0 {
		t.Errorf("shown are %v, which are others", got)
	}
	r.Undefine(gizmos)
	if got := shown("u1"); len(got) > 0 {
		t.Errorf("of a kind that is gone %v are shown", got)
	}
	r.define(t, "v1beta1", "v1") // by an informer that may have been used before
	r.hears(t, "look at one in []", "one was nothing and is 1")
	if got := shown("u1"); !slices.Equal(got, []string{"Gizmo/one"}) {
		t.Errorf("once it is defined again, shown are %v", got)
	}
}

func TestADefinitionThatChanges(t *testing.T) {
	for name, test := range map[string]struct {
		first, next []string
		again       bool // everybody looks again at what is known
		anew        bool // the objects are read anew
	}{
		"that says the same changes nothing":        {first: []string{"v1"}, next: []string{"v1"}},
		"with an older version has all look again":  {first: []string{"v1"}, next: []string{"v1", "v1beta1"}, again: true},
		"with a newer version has the objects read": {first: []string{"v1beta1"}, next: []string{"v1beta1", "v1"}, anew: true},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRegistry(t)
			r.define(t, test.first...)
			<-r.kind
			r.Note(gizmos, gizmo("1", `{"east":{"replicas":1}}`))
			r.hears(t, "look at one in [east]")
			before := r.kinds[gizmos]
			r.define(t, test.next...)
			after := r.kinds[gizmos]
			if got := len(r.kind) > 0; got != test.again && !test.anew {
				t.Errorf("all look again: %t, want %t", got, test.again)
			}
			if test.again {
				r.hears(t, "one again")
			}
			if got := before.handler != after.handler; got != test.anew {
				t.Errorf("the objects are read anew: %t, want %t", got, test.anew)
			}
			select {
			case <-before.stop:
				if !test.anew {
					t.Error("the watch has ended")
				}
			default:
				if test.anew {
					t.Error("the watch before goes on")
				}
			}
			if got := r.Definitions()["Gizmo.example.com"]; got == nil || len(got.Spec.Versions) != len(test.next) {
				t.Errorf("its definition is %v", got)
			}
		})
	}
}

func TestAKindIsReadAsItIsDescribed(t *testing.T) {
	paths := projection.PodPathsOf(&v1alpha1.CustomWorkload{PodTemplatePaths: []string{".spec.template"}})
	other := projection.PodPathsOf(&v1alpha1.CustomWorkload{PodTemplatePaths: []string{".spec.other"}})
	r := newRegistry(t)
	if _, changed := r.Describe(gizmos, paths); changed {
		t.Error("a kind that nobody has defined is described")
	}
	r.define(t, "v1")
	for _, step := range []struct {
		name    string
		stored  string
		paths   *projection.PodPaths
		changed bool
	}{
		{"nobody describes it", "v1", nil, false},
		{"somebody does", "v1", paths, true},
		{"it is described the same", "v1", paths, false},
		{"otherwise", "v1", other, true},
		{"in another version", "v1beta1", other, true},
		{"no more", "v1beta1", nil, true},
		{"no more, as before", "v1", nil, false},
	} {
		r.define(t, step.stored)
		k, changed := r.Describe(gizmos, step.paths)
		if changed != step.changed || changed && (!k.Paths.Same(step.paths) || k.Versions[0] != step.stored) {
			t.Errorf("%s: changed %t, to %v", step.name, changed, k)
		}
		if k, defined := r.Kind(gizmos); !defined || !k.Paths.Same(step.paths) {
			t.Errorf("%s: it is kept as %v", step.name, k)
		}
	}
}

func TestAKindThatIsGone(t *testing.T) {
	r := newRegistry(t)
	handler := r.DefinitionHandler(r.ctx, r.group, func() { r.objects <- "defined" }, r.Undefine)
	handler.OnAdd(definition("v1"), true)
	r.hears(t, "defined")
	<-r.kind
	r.Note(gizmos, gizmo("1", `{"east":{"replicas":1}}`))
	r.hears(t, "look at one in [east]")
	handler.OnDelete(definition("v1"))
	<-r.kind
	r.concern(t, nil)
	if _, defined := r.Kind(gizmos); defined || len(r.All()) > 0 || len(r.Definitions()) > 0 {
		t.Error("it is defined still")
	}
	r.Note(gizmos, gizmo("2", `{"east":{"replicas":1}}`))
	r.concern(t, nil)

	handler.OnAdd(definition("v1"), false)
	r.hears(t, "defined")
	<-r.kind
	notServed := definition("v1")
	notServed.Spec.Versions[0].Served = false
	handler.OnUpdate(nil, notServed)
	<-r.kind
	if _, defined := r.Kind(gizmos); defined {
		t.Error("one that is not served is defined")
	}
	handler.OnAdd(definition("v1"), false)
	<-r.kind
	if got := r.Close(); len(got) != 1 || got[0].Resource != gizmos || len(r.All()) > 0 {
		t.Errorf("%v were closed, and %v stay", got, r.All())
	}
	r.end()
	handler.OnAdd(definition("v1"), false)
	if len(r.All()) > 0 {
		t.Error("a kind is defined after the end")
	}
}

// The definition may go while somebody waits for the objects.
func TestAKindThatIsGoneBeforeItIsRead(t *testing.T) {
	r := newRegistry(t)
	reading := make(chan struct{})
	r.client.PrependReactor("list", gizmos.Resource, func(clienttesting.Action) (bool, runtime.Object, error) {
		<-reading
		return false, nil, nil
	})
	r.define(t, "v1")
	r.Undefine(gizmos)
	if err := r.group.Wait(); err != nil { // nobody waits any more, though the list goes on
		t.Error(err)
	}
	close(reading)
	<-r.kind // that it is gone
	r.LookAgain(gizmos)
	if len(r.kind) > 0 {
		t.Error("clusters look at a kind that is gone")
	}
}
