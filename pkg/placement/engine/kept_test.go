package engine

import (
	"maps"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/placement"
)

// claim is one with an annotation.
func claim(name, key, value string) *corev1.PersistentVolumeClaim {
	return &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, Annotations: map[string]string{key: value}}}
}

func TestKeptOf(t *testing.T) {
	going := claim("data-db-3", v1alpha1.AnnotationCluster, "east")
	going.DeletionTimestamp, going.Finalizers = &metav1.Time{Time: start}, []string{"x"}
	elsewhere := claim("data-db-2", v1alpha1.AnnotationCluster, "east")
	elsewhere.Namespace = "other"
	objects := []runtime.Object{
		claim("data-db-1", v1alpha1.AnnotationCluster, "west"),
		claim("log-db-1", v1alpha1.AnnotationCluster, "east"),
		claim("data-db-2", v1alpha1.AnnotationStatus, `{"west":{},"north":{}}`),
		claim("data-db-0", v1alpha1.AnnotationCluster, "west"),
		claim("data-db-4", "note", "nowhere yet"),
		claim("data-web-5", v1alpha1.AnnotationCluster, "west"),
		going, elsewhere,
	}
	e := newEngine(t, objects...)
	w := placement.Workload{Namespace: "shop", Name: "db", ClaimTemplates: []string{"data", "log"}, First: 1}
	if got, want := e.keptOf(w), map[int32]string{0: "east", 1: "north"}; !maps.Equal(got, want) {
		t.Errorf("kept %v, want %v", got, want)
	}
	if got := e.keptOf(placement.Workload{Namespace: "shop", Name: "db"}); got != nil {
		t.Errorf("without templates %v are kept", got)
	}
}

func TestVolumesOfAMirroredClaimAreWhereItIs(t *testing.T) {
	e := newEngine(t, claim("data-db-0", v1alpha1.AnnotationCluster, "west"))
	got := e.volumesOf(placement.Workload{Namespace: "shop", Name: "backup", VolumeClaims: []string{"data-db-0", "missing"}})
	if want := map[string]bool{"west": true}; !maps.Equal(got, want) {
		t.Errorf("volumes in %v, want %v", got, want)
	}
}
