package engine

import (
	"maps"
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
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
	going := boundClaim("data-db-3", "east", "")
	going.DeletionTimestamp, going.Finalizers = &metav1.Time{Time: start}, []string{"x"}
	elsewhere := boundClaim("data-db-2", "east", "")
	elsewhere.Namespace = "other"
	both, chosen := claim("data-db-2", v1alpha1.AnnotationStatus, `{"west":{},"north":{}}`), claim("data-db-6", v1alpha1.AnnotationCluster, "east")
	both.Status.Phase, chosen.Annotations["volume.kubernetes.io/selected-node"] = corev1.ClaimBound, "node-1"
	objects := []runtime.Object{
		boundClaim("data-db-1", "west", ""), boundClaim("log-db-1", "east", ""),
		both, chosen,
		boundClaim("data-db-0", "west", ""),
		claim("data-db-5", v1alpha1.AnnotationCluster, "west"), // waits for a pod that is scheduled
		claim("data-db-4", "note", "nowhere yet"),
		boundClaim("data-web-5", "west", ""),
		going, elsewhere,
	}
	e := newEngine(t, objects...)
	w := placement.Workload{Namespace: "shop", Name: "db", ClaimTemplates: []string{"data", "log"}, First: 1}
	if got, want := e.keptOf(w), map[int32]string{0: "east", 1: "north", 5: "east"}; !maps.Equal(got, want) {
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

// boundClaim is one that a cluster has bound, of a class.
func boundClaim(name, cluster, class string) *corev1.PersistentVolumeClaim {
	c := claim(name, v1alpha1.AnnotationCluster, cluster)
	c.Spec.VolumeName, c.Spec.StorageClassName = "volume-of-"+name, &class
	return c
}

func TestTiedOf(t *testing.T) {
	shared := &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "shared", Annotations: map[string]string{v1alpha1.AnnotationSharedStorage: "true"}}}
	database := placement.Workload{Namespace: "shop", Name: "db", ClaimTemplates: []string{"data"}}
	recreated, web := database, placement.Workload{Namespace: "shop", Name: "web", VolumeClaims: []string{"files"}}
	recreated.Recreates = true
	rewritten := web
	rewritten.Recreates = true
	east := placement.Decision{"east": {Replicas: 2}}
	for name, test := range map[string]struct {
		workload  placement.Workload
		claim     *corev1.PersistentVolumeClaim
		current   placement.Decision
		tied      bool // to east
		volumesIn bool // east
	}{
		"a bound claim ties the replica":         {database, boundClaim("data-db-1", "east", "fast"), east, true, false},
		"one that is not bound does not":         {database, claim("data-db-1", v1alpha1.AnnotationCluster, "east"), east, false, false},
		"nor one of a replica that is not there": {database, boundClaim("data-db-2", "east", "fast"), east, false, false},
		"nor one that was left behind elsewhere": {database, boundClaim("data-db-1", "west", "fast"), east, false, false},
		"nor one before it is placed":            {database, boundClaim("data-db-1", "east", "fast"), nil, false, false},
		"nor one of shared storage":              {database, boundClaim("data-db-1", "east", "shared"), east, false, false},
		"nor one that the user gives up":         {recreated, boundClaim("data-db-1", "east", "fast"), east, false, false},
		"ranges count from where they start": {
			database, boundClaim("data-db-4", "east", "fast"), placement.Decision{"east": {Start: 3, Replicas: 2}, "west": {Replicas: 3}}, true, false,
		},
		"what is named is where it is": {web, boundClaim("files", "east", "fast"), east, false, true},
		"unless its storage is shared": {web, boundClaim("files", "east", "shared"), east, false, false},
		"or the user gives it up":      {rewritten, boundClaim("files", "east", "fast"), east, false, false},
		"but not before anything runs": {rewritten, boundClaim("files", "east", "fast"), nil, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			e := newEngine(t, shared, test.claim)
			w := test.workload
			e.addVolumes(&w, test.current)
			if w.Tied["east"] != test.tied || w.VolumesIn["east"] != test.volumesIn {
				t.Errorf("tied to %v, volumes in %v, want east: %t and %t", w.Tied, w.VolumesIn, test.tied, test.volumesIn)
			}
		})
	}
}
