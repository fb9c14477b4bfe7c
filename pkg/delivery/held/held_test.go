package held

import (
	"errors"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"

	delivery "github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	listers "github.com/manifold-dev/manifold/generated/listers/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/delivery/contents"
	"github.com/manifold-dev/manifold/pkg/projection"
)

// webAtSeven is a Deployment that west is to hold at web-v7, and east at a revision that there is not.
func webAtSeven() *appsv1.Deployment {
	return &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "uid", Annotations: map[string]string{
		v1alpha1.AnnotationPlacement: `{"east":{"replicas":1,"revision":"web-v8","target":"eu"},"west":{"replicas":1,"revision":"web-v7","target":"eu"}}`,
	}}, Spec: appsv1.DeploymentSpec{Replicas: ptr.To[int32](2), MinReadySeconds: 9}}
}

// versions has the revision web-v7. Completed counts how many objects were given defaults.
func versions(t *testing.T, completed *int) *Versions {
	t.Helper()
	raw := []byte(`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web"},"spec":{"minReadySeconds":7}}`)
	hash, err := delivery.HashManifest(raw)
	if err != nil {
		t.Fatal(err)
	}
	seven := &delivery.ApplicationRevision{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-v7", UID: "seven"}}
	seven.Spec.Objects = []delivery.RevisionObject{{Hash: hash, Manifest: &runtime.RawExtension{Raw: raw}}}
	seven.Spec.Targets = []delivery.RevisionTarget{{Name: "eu", Hash: delivery.HashObjects([]string{hash}), Objects: []string{hash}}}
	seven.Spec.Hash = delivery.HashRevision(seven.Spec.Targets)
	revisions := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
	if err := revisions.Add(seven); err != nil {
		t.Fatal(err)
	}
	return New(contents.New(listers.NewApplicationRevisionLister(revisions), nil), func(object runtime.Object) {
		*completed++
		object.(*appsv1.Deployment).Spec.RevisionHistoryLimit = ptr.To[int32](10)
	})
}

func TestAVersionHasTheDefaultsOfTheServer(t *testing.T) {
	completed, above := 0, webAtSeven()
	kind, _ := projection.KindOf(above)
	v := versions(t, &completed)
	for range 3 {
		got, err := v.In(kind, above, "west")
		if err != nil {
			t.Fatal(err)
		}
		spec := got.Object.(*appsv1.Deployment).Spec
		if spec.MinReadySeconds != 7 || ptr.Deref(spec.RevisionHistoryLimit, 0) != 10 || *spec.Replicas != 2 {
			t.Errorf("spec %+v, want the revision's with defaults, scaled as above", spec)
		}
		if got.Mark() != "web-v7@"+got.Hash || got.Revision.Target != "eu" {
			t.Errorf("marked as %q, of %+v", got.Mark(), got.Revision)
		}
	}
	if completed != 1 {
		t.Errorf("defaults were added %d times, want once for a manifest", completed)
	}
	if all, complete := v.All(kind, above); len(all) != 1 || complete {
		t.Errorf("%d versions, complete: %t, want the one that can be read", len(all), complete)
	}
}

func TestWhatCannotBeReadIsAnErrorThatNamesAll(t *testing.T) {
	above := webAtSeven()
	kind, _ := projection.KindOf(above)
	custom := kind
	custom.Custom = true
	completed := 0
	for name, test := range map[string]struct {
		versions *Versions
		kind     projection.Kind
		wants    string
	}{
		"a revision that there is not": {versions(t, &completed), kind, "is not there"},
		"nobody reads any":             {nil, kind, "revisions are not read here"},
		"an object of a custom kind":   {versions(t, &completed), custom, "custom kinds"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := test.versions.In(test.kind, above, "east")
			if !errors.Is(err, ErrUnreadable) {
				t.Fatalf("error %v, want %v", err, ErrUnreadable)
			}
			for _, want := range []string{`cluster "east"`, "Deployment shop/web", `"web-v8"`, `Application "web"`, `"eu"`, test.wants} {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("error %q does not say %s", err, want)
				}
			}
		})
	}
	plain := webAtSeven()
	plain.Annotations = nil
	var none *Versions
	if got, err := none.In(kind, plain, "east"); err != nil || got.Object != projection.Object(plain) || got.Mark() != "" {
		t.Errorf("%+v (%v), want the object as it stands", got, err)
	}
}
