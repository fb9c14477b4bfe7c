package custom

import (
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/metadata/fake"
	"k8s.io/client-go/metadata/metadatainformer"

	"golang.org/x/sync/errgroup"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/custom/watched"
)

// Who asks whether the clusters have an object must not take one that is on its way to them for one that stays.
func TestAnObjectIsAwaitedThatGoesToClustersAndIsNotDecidedAbout(t *testing.T) {
	listed := &v1alpha1.WorkloadSelector{Kinds: []string{"Gizmo.example.com"}, LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"sent": "yes"}}}
	c, _, _ := decider(t, "", listed)
	known := fake.NewTestScheme()
	if err := metav1.AddMetaToScheme(known); err != nil {
		t.Fatal(err)
	}
	c.watched = watched.New(watched.Options{
		Metadata: metadatainformer.NewSharedInformerFactory(fake.NewSimpleMetadataClient(known), 0), Loops: c.loops, Changed: c.changed, Again: c.queue.Add,
	})
	kind, group := schema.GroupKind{Group: "example.com", Kind: "Gizmo"}, &errgroup.Group{}
	if c.Objects().Awaited(kind, &metav1.PartialObjectMetadata{}) {
		t.Error("one of a kind that nobody has defined is awaited")
	}
	if err := c.watched.Define(t.Context(), group, gizmos, &apiextensionsv1.CustomResourceDefinition{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		c.watched.Close()
		_ = group.Wait()
	})
	now := metav1.Now()
	for name, test := range map[string]struct {
		is   metav1.ObjectMeta
		want bool
	}{
		"what nobody sends anywhere stays": {},
		"what is pinned goes":              {is: metav1.ObjectMeta{Annotations: map[string]string{v1alpha1.AnnotationClusters: "east"}}, want: true},
		"so does what a policy selects":    {is: metav1.ObjectMeta{Labels: map[string]string{"sent": "yes"}}, want: true},
		"what is decided about is not awaited": {is: metav1.ObjectMeta{Annotations: map[string]string{
			v1alpha1.AnnotationClusters: "east", v1alpha1.AnnotationPlacement: `{"east":{"replicas":1}}`,
		}}},
		"nor what is being deleted":             {is: metav1.ObjectMeta{DeletionTimestamp: &now, Annotations: map[string]string{v1alpha1.AnnotationClusters: "east"}}},
		"a pin that nobody can read may be one": {is: metav1.ObjectMeta{Annotations: map[string]string{v1alpha1.AnnotationClusters: ","}}, want: true},
	} {
		t.Run(name, func(t *testing.T) {
			test.is.Namespace, test.is.Name = "shop", "one"
			if got := c.Objects().Awaited(kind, &metav1.PartialObjectMetadata{ObjectMeta: test.is}); got != test.want {
				t.Errorf("awaited: %t, want %t", got, test.want)
			}
		})
	}
}
