package v1alpha1

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
)

func installed(t *testing.T) *runtime.Scheme {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := Install(scheme); err != nil {
		t.Fatal(err)
	}
	return scheme
}

func TestTheServedVersionIsTheFirstAnswer(t *testing.T) {
	scheme := installed(t)
	for _, object := range kinds() {
		got, _, err := scheme.ObjectKinds(object)
		if err != nil {
			t.Fatal(err)
		}
		internal := schema.GroupVersion{Group: GroupName, Version: runtime.APIVersionInternal}
		if len(got) != 2 || got[0].GroupVersion() != SchemeGroupVersion || got[1].GroupVersion() != internal {
			t.Errorf("%T is registered as %v, want %s before %s", object, got, SchemeGroupVersion, internal)
		}
	}
}

func TestInternalVersionIsTheSameObject(t *testing.T) {
	scheme := installed(t)
	cluster := &Cluster{ObjectMeta: metav1.ObjectMeta{Name: "east"}}
	got, err := scheme.UnsafeConvertToVersion(cluster, schema.GroupVersion{Group: GroupName, Version: runtime.APIVersionInternal})
	if err != nil {
		t.Fatal(err)
	}
	if got != runtime.Object(cluster) {
		t.Errorf("conversion to the internal version made another object: %#v", got)
	}
}

func TestStorageCodecWritesTheServedVersion(t *testing.T) {
	codecs := serializer.NewCodecFactory(installed(t))
	codec := codecs.LegacyCodec(SchemeGroupVersion)
	data, err := runtime.Encode(codec, &PlacementPolicy{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "split"},
		Spec:       PlacementPolicySpec{Division: &Division{Type: Divide}},
	})
	if err != nil {
		t.Fatal(err)
	}
	want := `{"kind":"PlacementPolicy","apiVersion":"manifold.dev/v1alpha1",` +
		`"metadata":{"name":"split","namespace":"shop"},"spec":{"division":{"type":"Divide"}},"status":{"workloads":0,"unplaced":0}}` + "\n"
	if string(data) != want {
		t.Errorf("stored %s, want %s", data, want)
	}
	object, err := runtime.Decode(codec, data)
	if err != nil {
		t.Fatal(err)
	}
	if got := object.(*PlacementPolicy).Spec.Division.By; got != ByCapacity {
		t.Errorf("by = %q after reading, want the default %q", got, ByCapacity)
	}
}

func TestGroupsOfOurOwn(t *testing.T) {
	for group, want := range map[string]bool{
		"manifold.dev": true, "delivery.manifold.dev": true, "": false, "apps": false, "example.com": false, "notmanifold.dev": false,
		"manifold.dev.example.com": false,
	} {
		if got := IsOwnGroup(group); got != want {
			t.Errorf("IsOwnGroup(%q) = %t, want %t", group, got, want)
		}
	}
}
