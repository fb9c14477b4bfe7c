package held

import (
	"errors"
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	delivery "github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/generated/clientset/versioned/fake"
	"github.com/manifold-dev/manifold/generated/informers/externalversions"
	"github.com/manifold-dev/manifold/pkg/delivery/contents"
)

// filled is an informer that a test fills.
type filled struct {
	cache.SharedIndexInformer
	synced bool
}

func (f filled) HasSynced() bool { return f.synced }

// revisionOf is a revision that has for each target a Gizmo of a size, or nothing if that is 0.
func revisionOf(t *testing.T, number int64, sizes map[string]int) *delivery.ApplicationRevision {
	t.Helper()
	name := delivery.RevisionName("web", number)
	out := &delivery.ApplicationRevision{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: types.UID("uid-" + name)}}
	for target, size := range sizes {
		of := delivery.RevisionTarget{Name: target}
		if size > 0 {
			raw := fmt.Appendf(nil, `{"apiVersion":"example.com/v1","kind":"Gizmo","metadata":{"name":"one"},"spec":{"size":%d}}`, size)
			hash, err := delivery.HashManifest(raw)
			if err != nil {
				t.Fatal(err)
			}
			out.Spec.Objects = append(out.Spec.Objects, delivery.RevisionObject{Hash: hash, Manifest: &runtime.RawExtension{Raw: raw}})
			of.Objects = []string{hash}
		}
		of.Hash = delivery.HashObjects(of.Objects)
		out.Spec.Targets = append(out.Spec.Targets, of)
	}
	out.Spec.Hash = delivery.HashRevision(out.Spec.Targets)
	return out
}

func TestWhatAClusterHoldsOfAnObjectOfACustomKind(t *testing.T) {
	kind := schema.GroupKind{Group: "example.com", Kind: "Gizmo"}
	for name, test := range map[string]struct {
		// stands is what the object says that it is made of, and west what the last release says that west is to hold.
		stands, west string
		target       string
		change       func(app *delivery.Application, above *metav1.ObjectMeta)
		unknown      bool
		size         int64
		older        bool
		absent       bool
		nobody       bool
		want         error
	}{
		"what the object stands at is it":                       {stands: "web-v2/one", west: "web-v2", target: "one"},
		"an older revision is read":                             {stands: "web-v2/one", west: "web-v1", target: "one", size: 1, older: true},
		"that of another target as well":                        {stands: "web-v2/one", west: "web-v2", target: "two", size: 5},
		"one that says the same is the object itself":           {stands: "web-v3/one", west: "web-v2", target: "one", older: true},
		"one that has nothing of it":                            {stands: "web-v3/one", west: "web-v3", target: "two", absent: true},
		"a newer one is not taken before the object is applied": {stands: "web-v1/one", west: "web-v2", target: "one", want: ErrNotYet},
		"one that is gone cannot be read":                       {stands: "web-v9/one", west: "web-v8", target: "one", want: ErrUnreadable},
		"before releases are known nobody knows":                {stands: "web-v2/one", west: "web-v1", target: "one", unknown: true, want: ErrNotYet},
		"an object that no release has made is nobody's":        {west: "web-v1", target: "one", nobody: true},
		"nor is one of another application of that name": {
			stands: "web-v2/one", west: "web-v1", target: "one", nobody: true,
			change: func(app *delivery.Application, _ *metav1.ObjectMeta) { app.UID = "another" },
		},
		"nor one whose application goes": {
			stands: "web-v2/one", west: "web-v1", target: "one", nobody: true,
			change: func(app *delivery.Application, _ *metav1.ObjectMeta) { app.DeletionTimestamp = &metav1.Time{} },
		},
		"one in a cluster that the release comes to yet": {stands: "web-v2/one", target: "one", nobody: true, absent: true},
		"nor one in a cluster that no release is about":  {stands: "web-v2/one", nobody: true},
	} {
		t.Run(name, func(t *testing.T) {
			own := externalversions.NewSharedInformerFactory(fake.NewClientset(), 0).Delivery().V1alpha1()
			reader := contents.New(own.ApplicationRevisions().Lister(), nil)
			applications, releases := own.Applications().Informer(), own.Releases().Informer()
			c, err := NewCustoms(reader, filled{applications, true}, filled{releases, !test.unknown})
			if err != nil {
				t.Fatal(err)
			}
			for number, sizes := range map[int64]map[string]int{1: {"one": 1}, 2: {"one": 2, "two": 5}, 3: {"one": 2, "two": 0}} {
				if err := own.ApplicationRevisions().Informer().GetIndexer().Add(revisionOf(t, number, sizes)); err != nil {
					t.Fatal(err)
				}
			}
			app := &delivery.Application{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "app"}}
			above := metav1.ObjectMeta{
				Namespace: "shop", Name: "one", Labels: map[string]string{delivery.LabelApplication: "web"}, Annotations: map[string]string{delivery.AnnotationContent: test.stands},
				OwnerReferences: []metav1.OwnerReference{{UID: "app"}},
			}
			if test.change != nil {
				test.change(app, &above)
			}
			if err := applications.GetIndexer().Add(app); err != nil {
				t.Fatal(err)
			}
			for sequence, revision := range map[int64]string{1: "web-v7", 2: test.west} { // the last one counts
				release := &delivery.Release{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: fmt.Sprintf("web-%d", sequence)}, Spec: delivery.ReleaseSpec{Application: "web"}}
				release.Status.Sequence = sequence
				if test.target != "" {
					release.Status.Plan = &delivery.ReleasePlan{Targets: []delivery.ResolvedTarget{{Name: test.target, Clusters: []string{"west"}}}}
				}
				if revision != "" {
					release.Status.Variants = []delivery.Variant{{Name: delivery.VariantPrimary, Clusters: []delivery.VariantCluster{{Cluster: "west", Target: test.target, Revision: revision}}}}
				}
				if err := releases.GetIndexer().Add(release); err != nil {
					t.Fatal(err)
				}
			}
			got, err := c.In(kind, &metav1.PartialObjectMetadata{ObjectMeta: above}, "west")
			if !errors.Is(err, test.want) {
				t.Fatalf("error %v, want %v", err, test.want)
			}
			if err != nil {
				return
			}
			size := int64(0)
			if got.Content != nil {
				size, _, _ = unstructured.NestedInt64(got.Content.Object, "spec", "size")
			}
			if size != test.size || got.Older != test.older || got.Absent != test.absent || (got.Revision.Name == "") != test.nobody || !test.nobody && got.Revision.Name != test.west {
				t.Errorf("%+v with size %d", got, size)
			}
		})
	}
}
