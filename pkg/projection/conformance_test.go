package projection

import (
	"errors"
	"fmt"
	"math/rand"
	"reflect"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/apitesting/fuzzer"
	metafuzzer "k8s.io/apimachinery/pkg/apis/meta/fuzzer"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/placement"
)

var east = Target{LogicalCluster: "2f6d5a1e-logical", Cluster: "east"}

// filled returns an object of the kind with every field set to something random, the same for the same seed, that is projectable.
func filled(kind Kind, seed int64) Object {
	codecs := serializer.NewCodecFactory(runtime.NewScheme())
	in := kind.New()
	fuzzer.FuzzerFor(metafuzzer.Funcs, rand.NewSource(seed), codecs).MaxDepth(12).Fill(in)
	in.GetObjectKind().SetGroupVersionKind(kind.GVK)
	in.SetName(fmt.Sprintf("web-%d", seed))
	in.SetNamespace("")
	if kind.Namespaced {
		in.SetNamespace("shop")
	}
	if secret, ok := in.(*corev1.Secret); ok {
		secret.Type = corev1.SecretTypeOpaque
		secret.StringData = nil // Written only, never read.
	}
	return in
}

// eachFilled runs a test on some random objects of every kind.
func eachFilled(t *testing.T, test func(t *testing.T, kind Kind, in Object)) {
	for _, kind := range Kinds() {
		t.Run(kind.GVK.Kind, func(t *testing.T) {
			for seed := range int64(20) {
				test(t, kind, filled(kind, seed))
			}
		})
	}
}

func project(t *testing.T, kind Kind, in Object, share placement.Share) Object {
	t.Helper()
	out, err := kind.Project(in, Part{Share: share}, east)
	if err != nil {
		t.Fatalf("Project(%s) = %v", in.GetName(), err)
	}
	return out
}

func TestProjectingLeavesTheInputAsItIs(t *testing.T) {
	eachFilled(t, func(t *testing.T, kind Kind, in Object) {
		before := in.DeepCopyObject()
		out := project(t, kind, in, placement.Share{Replicas: 3})
		if !reflect.DeepEqual(in, before) {
			t.Fatalf("Project changed its input %s", in.GetName())
		}
		// Nor is anything shared: filling the output with other values does not reach the input.
		scribble(reflect.ValueOf(out))
		if !reflect.DeepEqual(in, before) {
			t.Errorf("the projection of %s shares memory with it", in.GetName())
		}
	})
}

func TestEqualArgumentsGiveEqualProjections(t *testing.T) {
	eachFilled(t, func(t *testing.T, kind Kind, in Object) {
		share := placement.Share{Replicas: 3}
		one, two := project(t, kind, in, share), project(t, kind, in.DeepCopyObject().(Object), share)
		if !reflect.DeepEqual(one, two) {
			t.Errorf("two projections of %s differ:\n%+v\n%+v", in.GetName(), one, two)
		}
	})
}

func TestAListersObjectWithoutTypeProjectsAlike(t *testing.T) {
	eachFilled(t, func(t *testing.T, kind Kind, in Object) {
		want := project(t, kind, in, placement.Share{})
		in.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{})
		if got := project(t, kind, in, placement.Share{}); !reflect.DeepEqual(got, want) {
			t.Errorf("got %+v, want %+v", got, want)
		}
		if got := want.GetObjectKind().GroupVersionKind(); got != kind.GVK {
			t.Errorf("the projection is a %v, want %v", got, kind.GVK)
		}
	})
}

func TestProjectionsCarryTheOwnershipMarks(t *testing.T) {
	eachFilled(t, func(t *testing.T, kind Kind, in Object) {
		out := project(t, kind, in, placement.Share{})
		got, owned := OriginOf(out)
		want := Origin{LogicalCluster: east.LogicalCluster, Namespace: in.GetNamespace(), Name: in.GetName(), UID: in.GetUID()}
		if !owned || got != want {
			t.Errorf("origin = %+v, %t, want %+v", got, owned, want)
		}
		if _, ok := out.GetAnnotations()[v1alpha1.AnnotationNamespace]; ok != kind.Namespaced {
			t.Errorf("has a namespace annotation: %t, want %t", ok, kind.Namespaced)
		}
		if out.GetAnnotations()[v1alpha1.AnnotationProjection] == "" {
			t.Error("has no hash")
		}
	})
}

func TestNothingThatOnlyMeansSomethingUpstreamIsProjected(t *testing.T) {
	eachFilled(t, func(t *testing.T, kind Kind, in Object) {
		out := project(t, kind, in, placement.Share{})
		want := metav1.ObjectMeta{
			Name: in.GetName(), Namespace: in.GetNamespace(), Labels: out.GetLabels(), Annotations: out.GetAnnotations(),
		}
		meta := reflect.ValueOf(out).Elem().FieldByName("ObjectMeta").Interface()
		if !reflect.DeepEqual(meta, want) {
			t.Errorf("metadata = %+v, want %+v", meta, want)
		}
		if status := reflect.ValueOf(out).Elem().FieldByName("Status"); status.IsValid() && !status.IsZero() {
			t.Errorf("status = %+v, want none", status)
		}
	})
}

func TestProjectingAProjectionChangesNothing(t *testing.T) {
	eachFilled(t, func(t *testing.T, kind Kind, in Object) {
		share := placement.Share{Replicas: 3}
		once := project(t, kind, in, share)
		again := once.DeepCopyObject().(Object)
		again.SetUID(in.GetUID())
		if twice := project(t, kind, again, share); !reflect.DeepEqual(once, twice) {
			t.Errorf("projected twice: %+v\nwant: %+v", twice, once)
		}
	})
}

func TestAProjectionThatIsLiveNeedsNothing(t *testing.T) {
	eachFilled(t, func(t *testing.T, kind Kind, in Object) {
		desired := project(t, kind, in, placement.Share{Replicas: 3})
		live := desired.DeepCopyObject().(Object)
		live.SetUID("below")
		live.SetResourceVersion("7")
		live.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{})
		if got := kind.Plan(desired, live); got.Step != Nothing {
			t.Errorf("Plan = %+v, want %s", got, Nothing)
		}
	})
}

func TestTheHashTellsProjectionsApart(t *testing.T) {
	hash := func(o Object) string { return o.GetAnnotations()[v1alpha1.AnnotationProjection] }
	eachFilled(t, func(t *testing.T, kind Kind, in Object) {
		before := project(t, kind, in, placement.Share{Replicas: 3})
		changed := in.DeepCopyObject().(Object)
		changed.SetResourceVersion("8")
		changed.SetGeneration(9)
		changed.SetFinalizers(nil)
		if got := project(t, kind, changed, placement.Share{Replicas: 3}); hash(got) != hash(before) {
			t.Error("a change that is not projected changes the hash")
		}
		changed.SetAnnotations(map[string]string{"note": "other"})
		if got := project(t, kind, changed, placement.Share{Replicas: 3}); hash(got) == hash(before) {
			t.Error("a change that is projected does not change the hash")
		}
		// Of a workload that is never divided, the share may say nothing; of a Job, the whole decision says what it is of.
		_, whole := in.(*batchv1.Job)
		division := kind.Demand(in).Division
		divided := !whole && (division == placement.Divisible || division == placement.DivisibleByName)
		if got := project(t, kind, in, placement.Share{Replicas: 4}); !kind.Workload && hash(got) != hash(before) || divided && hash(got) == hash(before) {
			t.Errorf("another share leaves the hash as it is: %t", hash(got) == hash(before))
		}
	})
}

func TestAnObjectOfAnotherKindIsAnError(t *testing.T) {
	kind, _ := ForGVK(corev1.SchemeGroupVersion.WithKind("Secret"))
	if _, err := kind.Project(&appsv1.Deployment{}, Part{}, east); err == nil {
		t.Error("a Deployment projects as a Secret")
	}
}

func TestKindsAreFoundByTheirNames(t *testing.T) {
	for _, want := range Kinds() {
		if got, ok := ForGVK(want.GVK); !ok || got.GVK != want.GVK {
			t.Errorf("ForGVK(%v) = %v, %t", want.GVK, got.GVK, ok)
		}
		if got, ok := ForResource(want.Resource); !ok || got.Resource != want.Resource {
			t.Errorf("ForResource(%v) = %v, %t", want.Resource, got.Resource, ok)
		}
	}
	if _, ok := ForGVK(corev1.SchemeGroupVersion.WithKind("Node")); ok {
		t.Error("ForGVK finds a kind that is not projected")
	}
	if _, ok := ForResource(corev1.SchemeGroupVersion.WithResource("nodes")); ok {
		t.Error("ForResource finds a resource that is not projected")
	}
}

func TestNothingIsProjectedIntoRefusedNamespaces(t *testing.T) {
	for _, kind := range Kinds() {
		in := filled(kind, 1)
		if kind.Namespaced {
			in.SetNamespace("kube-system")
		} else {
			in.SetName("kube-system")
		}
		var refused *RefusedError
		if _, err := kind.Project(in, Part{Share: placement.Share{}}, east); !errors.As(err, &refused) || refused.Reason == "" {
			t.Errorf("project a %s to kube-system: %v, want a refusal with its reason", kind.GVK.Kind, err)
		}
	}
}

// scribble overwrites everything that can be reached through pointers, slices and maps.
func scribble(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			scribble(v.Elem())
		}
	case reflect.Struct:
		if v.Type() == quantityType {
			return
		}
		for i := range v.NumField() {
			if v.Field(i).CanSet() {
				scribble(v.Field(i))
			}
		}
	case reflect.Slice:
		for i := range v.Len() {
			scribble(v.Index(i))
		}
	case reflect.Map:
		for _, key := range v.MapKeys() {
			if value := v.MapIndex(key); value.Kind() == reflect.Slice {
				scribble(value)
			}
			v.SetMapIndex(key, reflect.Value{})
		}
	case reflect.String:
		v.SetString("scribbled")
	case reflect.Bool:
		v.SetBool(!v.Bool())
	case reflect.Int, reflect.Int32, reflect.Int64:
		v.SetInt(v.Int() + 1)
	case reflect.Uint8:
		v.SetUint(v.Uint() ^ 1)
	}
}
