//go:build !race

package upstream

import (
	"math/rand"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/apitesting/fuzzer"
	metafuzzer "k8s.io/apimachinery/pkg/apis/meta/fuzzer"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	_ "k8s.io/kubernetes/pkg/apis/apps/install"
	_ "k8s.io/kubernetes/pkg/apis/batch/install"
	_ "k8s.io/kubernetes/pkg/apis/core/install"
	_ "k8s.io/kubernetes/pkg/apis/discovery/install"
	_ "k8s.io/kubernetes/pkg/apis/networking/install"
	_ "k8s.io/kubernetes/pkg/apis/policy/install"
	"k8s.io/utils/ptr"

	"github.com/manifold-dev/manifold/pkg/placement"
	"github.com/manifold-dev/manifold/pkg/projection"
)

// TestDefaultsOfAClusterAreNoDrift gives projections the defaults of an API server, which a cluster may have other ones of than the
// logical cluster.
func TestDefaultsOfAClusterAreNoDrift(t *testing.T) {
	codecs := serializer.NewCodecFactory(legacyscheme.Scheme)
	for _, kind := range projection.Kinds() {
		t.Run(kind.GVK.Kind, func(t *testing.T) {
			for seed := range int64(50) {
				in := kind.New()
				fuzzer.FuzzerFor(metafuzzer.Funcs, rand.NewSource(seed), codecs).MaxDepth(12).Fill(in)
				in.SetNamespace("")
				if kind.Namespaced {
					in.SetNamespace("shop")
				}
				// What the logical cluster stores has gone through its own defaults, which also round.
				legacyscheme.Scheme.Default(in)
				noDriftByDefaults(t, kind, in)
			}
		})
	}
	t.Run("a plain Deployment", func(t *testing.T) {
		in := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}}
		in.Spec.Replicas = ptr.To[int32](2)
		in.Spec.Template.Spec.Containers = []corev1.Container{{
			Name: "web", Image: "web:1", Ports: []corev1.ContainerPort{{ContainerPort: 80}},
			ReadinessProbe: &corev1.Probe{ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{}}},
			Env: []corev1.EnvVar{{
				Name: "NODE", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "spec.nodeName"}},
			}},
		}}
		in.Spec.Template.Spec.Volumes = []corev1.Volume{{VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{
			Sources: []corev1.VolumeProjection{{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Path: "token"}}},
		}}}}
		kind, _ := projection.ForGVK(appsv1.SchemeGroupVersion.WithKind("Deployment"))
		noDriftByDefaults(t, kind, in)
	})
	t.Run("a plain Service", func(t *testing.T) {
		in := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}}
		in.Spec.Ports = []corev1.ServicePort{{Port: 80}}
		kind, _ := projection.ForGVK(corev1.SchemeGroupVersion.WithKind("Service"))
		noDriftByDefaults(t, kind, in)
	})
}

func noDriftByDefaults(t *testing.T, kind projection.Kind, in projection.Object) {
	t.Helper()
	if ok, _ := kind.Projectable(in); !ok {
		return
	}
	desired, err := kind.Project(in, projection.Part{Share: placement.Share{Replicas: 2}}, projection.Target{LogicalCluster: "logical", Cluster: "east"})
	if err != nil {
		t.Fatal(err)
	}
	live := desired.DeepCopyObject().(projection.Object)
	legacyscheme.Scheme.Default(live)
	if got := kind.Plan(desired, live); got.Step != projection.Nothing {
		t.Errorf("%s with its defaults: Plan = %+v, want %s", in.GetName(), got, projection.Nothing)
	}
}
