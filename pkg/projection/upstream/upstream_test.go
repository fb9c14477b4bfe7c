//go:build !race

// Package upstream compares projection with the Kubernetes code that it stands in for. It is a package of its own since a pure package
// may not import k8s.io/kubernetes, not even for its tests to be quick to build with the race detector.
package upstream

import (
	"fmt"
	"math/rand"
	"reflect"
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/apitesting/fuzzer"
	metafuzzer "k8s.io/apimachinery/pkg/apis/meta/fuzzer"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	podutil "k8s.io/kubernetes/pkg/api/v1/pod"
	"k8s.io/kubernetes/pkg/controller"

	"github.com/manifold-dev/manifold/pkg/projection"
)

// stored returns a Deployment as it comes out of storage, with random content.
func stored(t *testing.T, seed int64) *appsv1.Deployment {
	t.Helper()
	codecs := serializer.NewCodecFactory(runtime.NewScheme())
	var in, out appsv1.Deployment
	fuzzer.FuzzerFor(metafuzzer.Funcs, rand.NewSource(seed), codecs).MaxDepth(15).Fill(&in)
	data, err := in.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	if err := out.Unmarshal(data); err != nil {
		t.Fatal(err)
	}
	return &out
}

func TestTemplateHashIsTheDeploymentControllers(t *testing.T) {
	seen := map[string]bool{}
	for seed := range int64(100) {
		template := &stored(t, seed).Spec.Template
		want := controller.ComputeHash(template, nil)
		if got := projection.TemplateHash(template); got != want {
			t.Errorf("seed %d: TemplateHash = %q, want %q", seed, got, want)
		}
		seen[want] = true
		for _, collisions := range []int32{1, 300} {
			if got, want := projection.CollidedHash(template, collisions), controller.ComputeHash(template, &collisions); got != want {
				t.Errorf("seed %d: after %d collisions the hash is %q, want %q", seed, collisions, got, want)
			}
		}
	}
	if len(seen) < 90 {
		t.Errorf("only %d of 100 templates differ", len(seen))
	}
}

// populated returns a pod spec in which everything that can be set is set, each string to something of its own, with one volume for each
// volume type.
func populated() corev1.PodSpec {
	var out corev1.PodSpec
	n := 0
	populate(reflect.ValueOf(&out).Elem(), &n, 0)
	var all corev1.VolumeSource
	populate(reflect.ValueOf(&all).Elem(), &n, 0)
	out.Volumes = []corev1.Volume{{VolumeSource: all}}
	return valid(out)
}

// valid gives every volume one source, as the API demands, by making several of those with more.
func valid(in corev1.PodSpec) corev1.PodSpec {
	var volumes []corev1.Volume
	for _, volume := range in.Volumes {
		sources := reflect.ValueOf(volume.VolumeSource)
		for i := range sources.NumField() {
			var one corev1.VolumeSource
			reflect.ValueOf(&one).Elem().Field(i).Set(sources.Field(i))
			volumes = append(volumes, corev1.Volume{VolumeSource: one})
		}
	}
	in.Volumes = volumes
	return in
}

func populate(v reflect.Value, n *int, depth int) {
	if depth > 12 || !v.CanSet() {
		return
	}
	switch v.Kind() {
	case reflect.String:
		*n++
		v.SetString(fmt.Sprintf("%s-%d", v.Type().Name(), *n))
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		populate(v.Elem(), n, depth+1)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		populate(v.Index(0), n, depth+1)
	case reflect.Struct:
		for i := range v.NumField() {
			populate(v.Field(i), n, depth+1)
		}
	}
}

func TestNoReferenceOfAPodIsForgotten(t *testing.T) {
	specs := map[string]corev1.PodSpec{"everything set": populated()}
	for seed := range int64(100) {
		specs[fmt.Sprintf("random %d", seed)] = valid(stored(t, seed).Spec.Template.Spec)
	}
	most := 0
	for name, spec := range specs {
		t.Run(name, func(t *testing.T) {
			var wantSecrets, wantConfigMaps []string
			gather := func(into *[]string) podutil.Visitor {
				return func(name string) bool { *into = append(*into, name); return true }
			}
			podutil.VisitPodSecretNames(&corev1.Pod{Spec: spec}, gather(&wantSecrets))
			podutil.VisitPodConfigmapNames(&corev1.Pod{Spec: spec}, gather(&wantConfigMaps))

			got := map[string][]string{}
			in := &appsv1.Deployment{Spec: appsv1.DeploymentSpec{Template: corev1.PodTemplateSpec{Spec: spec}}}
			for _, ref := range projection.References(in) {
				got[ref.Resource.Resource] = append(got[ref.Resource.Resource], ref.Name)
			}
			if want := unique(wantSecrets); !slices.Equal(got["secrets"], want) {
				t.Errorf("Secrets = %v, want %v", got["secrets"], want)
			}
			if want := unique(wantConfigMaps); !slices.Equal(got["configmaps"], want) {
				t.Errorf("ConfigMaps = %v, want %v", got["configmaps"], want)
			}
			most = max(most, len(got["secrets"]))
		})
	}
	if most < 18 {
		t.Errorf("no pod names more than %d Secrets, so this compares too little", most)
	}
}

func unique(names []string) []string {
	slices.Sort(names)
	return slices.Compact(names)
}
