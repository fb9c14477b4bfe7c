package tree

import (
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/kubernetes/scheme"
	metadatafake "k8s.io/client-go/metadata/fake"
	clienttesting "k8s.io/client-go/testing"

	manifoldv1alpha1 "github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
)

// served makes a gatherer that finds the objects, of Secrets and ConfigMaps the metadata.
func served(t *testing.T, from objects) (gatherer, *dynamicfake.FakeDynamicClient) {
	t.Helper()
	all := runtime.NewScheme()
	if err := scheme.AddToScheme(all); err != nil {
		t.Fatal(err)
	}
	if err := manifoldv1alpha1.AddToScheme(all); err != nil {
		t.Fatal(err)
	}
	metadataScheme := metadatafake.NewTestScheme()
	if err := metav1.AddMetaToScheme(metadataScheme); err != nil {
		t.Fatal(err)
	}
	var whole, parts []runtime.Object
	for _, obj := range from.others {
		switch o := obj.(type) {
		case *corev1.Secret:
			parts = append(parts, &metav1.PartialObjectMetadata{TypeMeta: o.TypeMeta, ObjectMeta: o.ObjectMeta})
		case *corev1.ConfigMap:
			parts = append(parts, &metav1.PartialObjectMetadata{TypeMeta: o.TypeMeta, ObjectMeta: o.ObjectMeta})
		default:
			whole = append(whole, obj)
		}
	}
	for i := range from.clusters {
		whole = append(whole, &from.clusters[i])
	}
	for i := range from.events {
		event := from.events[i]
		event.Namespace, event.Name = "shop", event.Reason+string(rune('a'+i))
		whole = append(whole, &event)
	}
	client := dynamicfake.NewSimpleDynamicClient(all, whole...)
	return gatherer{dynamic: client, metadata: metadatafake.NewSimpleMetadataClient(metadataScheme, parts...)}, client
}

func asRead(t *testing.T, obj any) *unstructured.Unstructured {
	t.Helper()
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	if err != nil {
		t.Fatal(err)
	}
	return &unstructured.Unstructured{Object: content}
}

func drawn(t *testing.T, from objects) string {
	t.Helper()
	var out strings.Builder
	if err := grow(from, false).print(&out, "", widest); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func TestWhatIsGatheredMakesTheWholeTree(t *testing.T) {
	from := shop()
	g, _ := served(t, from)
	got, err := g.gather(t.Context(), asRead(t, from.root))
	if err != nil {
		t.Fatal(err)
	}
	if want, got := drawn(t, from), drawn(t, got); got != want {
		t.Errorf("read from a server, the tree is\n%s\nwant\n%s", got, want)
	}
}

func TestWhatTheUserMayNotReadIsLeftOut(t *testing.T) {
	from := shop()
	g, client := served(t, from)
	client.PrependReactor("list", "clusters", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewForbidden(manifoldv1alpha1.Resource("clusters"), "", errors.New("only admins may look"))
	})
	got, err := g.gather(t.Context(), asRead(t, from.root))
	if err != nil {
		t.Fatal(err)
	}
	if got.hidden[clusterResource] == "" {
		t.Errorf("hidden is %v, want it to tell of clusters", got.hidden)
	}
	if text := drawn(t, got); !strings.Contains(text, "in east") || strings.Contains(text, "has not joined") {
		t.Errorf("without the right to see clusters, the tree is\n%s", text)
	}
}

func TestWhatCannotBeReadIsAnError(t *testing.T) {
	from := shop()
	g, client := served(t, from)
	broken := errors.New("the connection is broken")
	client.PrependReactor("list", "services", func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, broken })
	if _, err := g.gather(t.Context(), asRead(t, from.root)); !errors.Is(err, broken) {
		t.Errorf("gather: %v, want that the connection is broken", err)
	}
}

func TestAKindThatNobodyKnowsMayBeTheRoot(t *testing.T) {
	from := operated()
	g, _ := served(t, objects{})
	got, err := g.gather(t.Context(), from.root.(*unstructured.Unstructured))
	if err != nil {
		t.Fatal(err)
	}
	if gvk := got.root.GetObjectKind().GroupVersionKind(); gvk != (schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Shop"}) {
		t.Errorf("the root is a %s", gvk)
	}
}
