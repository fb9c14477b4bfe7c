package projection

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	delivery "github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
)

// annotationDomain is the prefix of every label and annotation that is Manifold's own.
const annotationDomain = "manifold.dev/"

// deploymentDomain is the prefix of the annotations that a Deployment controller keeps its revisions in. Each cluster has its own.
const deploymentDomain = "deployment.kubernetes.io/"

// Origin is what the marks of an object in a cluster say about where it comes from.
type Origin struct {
	// LogicalCluster is the identity of the logical cluster that owns the object.
	LogicalCluster string
	// Namespace and Name are those of the object upstream. Namespace is empty for a cluster-scoped object.
	Namespace, Name string
	// UID is that of the object upstream.
	UID types.UID
}

// OriginOf reads the marks of an object in a cluster. It returns false for an object without the ownership label, which is not
// Manifold's and never to be touched.
func OriginOf(live metav1.Object) (Origin, bool) {
	logicalCluster := live.GetLabels()[v1alpha1.LabelLogicalCluster]
	if logicalCluster == "" {
		return Origin{}, false
	}
	annotations := live.GetAnnotations()
	return Origin{
		LogicalCluster: logicalCluster,
		Namespace:      annotations[v1alpha1.AnnotationNamespace],
		Name:           annotations[v1alpha1.AnnotationName],
		UID:            types.UID(annotations[v1alpha1.AnnotationUID]),
	}, true
}

// own gives out the name, the labels and the annotations of in that users care about, and the ownership marks.
func own(in, out Object, to Target) {
	out.SetName(in.GetName())
	out.SetNamespace(in.GetNamespace())

	labels := make(map[string]string, len(in.GetLabels())+1)
	for key, value := range in.GetLabels() {
		if keepLabel(key) {
			labels[key] = value
		}
	}
	labels[v1alpha1.LabelLogicalCluster] = to.LogicalCluster
	out.SetLabels(labels)

	annotations := make(map[string]string, len(in.GetAnnotations())+5)
	for key, value := range in.GetAnnotations() {
		if keepAnnotation(key) {
			annotations[key] = value
		}
	}
	if in.GetNamespace() != "" {
		annotations[v1alpha1.AnnotationNamespace] = in.GetNamespace()
	}
	annotations[v1alpha1.AnnotationName] = in.GetName()
	annotations[v1alpha1.AnnotationUID] = string(in.GetUID())
	out.SetAnnotations(annotations)
}

// keepLabel reports whether a label of the user means something below. Every API server sets the one on namespaces itself.
func keepLabel(key string) bool {
	return key != corev1.LabelMetadataName && !strings.HasPrefix(key, annotationDomain)
}

// keepAnnotation reports whether an annotation of the user means something below. What kubectl applied last describes the object
// upstream, and may hold more than the projection. What a release applied last changes with each wave, for all clusters.
func keepAnnotation(key string) bool {
	return key != corev1.LastAppliedConfigAnnotation && key != delivery.AnnotationRevision && key != delivery.AnnotationApplied &&
		key != delivery.AnnotationContent &&
		!strings.HasPrefix(key, annotationDomain) &&
		!strings.HasPrefix(key, deploymentDomain)
}

// SameAnnotations reports whether two versions of an object have the same annotations, as far as they are projected.
func SameAnnotations(before, after metav1.Object) bool {
	return keepsAnnotations(before.GetAnnotations(), after.GetAnnotations()) && keepsAnnotations(after.GetAnnotations(), before.GetAnnotations())
}

// keepsAnnotations reports whether everything in one that is projected is in the other.
func keepsAnnotations(one, other map[string]string) bool {
	for key, value := range one {
		if got, ok := other[key]; (!ok || got != value) && keepAnnotation(key) {
			return false
		}
	}
	return true
}

// seal marks a finished projection with its own hash, so that the object below tells which projection it carries out.
func seal(out Object) error {
	// encoding/json sorts the keys of maps, so equal objects give equal bytes.
	data, err := json.Marshal(out)
	if err != nil {
		return fmt.Errorf("encode it for its hash: %w", err)
	}
	sum := sha256.Sum256(data)
	// 64 bits are plenty to tell an object from its own earlier states.
	annotations := out.GetAnnotations() // of an unstructured object a copy
	annotations[v1alpha1.AnnotationProjection] = hex.EncodeToString(sum[:8])
	out.SetAnnotations(annotations)
	return nil
}

// HashOf returns the hash by which a projection is told from another one, as it carries it.
func HashOf(projected Object) string {
	return projected.GetAnnotations()[v1alpha1.AnnotationProjection]
}
