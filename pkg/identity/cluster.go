package identity

import (
	"cmp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/placement"
	"github.com/manifold-dev/manifold/pkg/projection"
	"github.com/manifold-dev/manifold/pkg/summary"
)

// ShownFrom returns the cluster whose pod or claim a mirror shows, "" for an object that is no mirror.
func ShownFrom(obj metav1.Object) string { return obj.GetAnnotations()[v1alpha1.AnnotationCluster] }

// PodIn returns the cluster that has a pod which a user made; "" if none is known to.
func PodIn(above *corev1.Pod) string {
	return cmp.Or(projection.RunsIn(above), above.Annotations[v1alpha1.AnnotationPodCluster])
}

// Concerns reports whether a pod that a user made is a cluster's to report.
func Concerns(above *corev1.Pod, cluster string) bool {
	if in := PodIn(above); in != "" {
		return in == cluster
	}
	_, placed := DecisionOf(above)[cluster]
	return placed
}

// Involves reports whether a workload above runs in a cluster, or does still: its decision or its breakdown names the cluster.
func Involves(above projection.Object, cluster string) bool {
	if pod, ok := above.(*corev1.Pod); ok { // it has no breakdown
		return Concerns(pod, cluster)
	}
	if _, decided := DecisionOf(above)[cluster]; decided {
		return true
	}
	if !strings.Contains(above.GetAnnotations()[v1alpha1.AnnotationStatus], `"`+cluster+`"`) {
		return false // as almost always, and without parsing
	}
	_, named := BreakdownOf(above)[cluster]
	return named
}

// Recorded reports whether an object says of itself that a cluster is to have it, has it, or is leaving it. Users cannot write what is read here.
func Recorded(above projection.Object, cluster string) bool {
	_, decided := DecisionOf(above)[cluster]
	return decided || Involves(above, cluster)
}

// OrdinalsOf returns the ordinals of a share.
func OrdinalsOf(w Workload, share placement.Share) placement.Range {
	return share.Ordinals(w.Kind.Demand(w.Object).First)
}

// OrdinalsIn returns the ordinals that a projection asks for.
func OrdinalsIn(kind projection.Kind, projected projection.Object) placement.Range {
	demand := kind.Demand(projected)
	return placement.Range{Start: demand.First, End: demand.First + demand.Replicas}
}

// ReportedOrdinals returns the ordinals of a StatefulSet that a cluster runs by the breakdown, false if that does not name the cluster.
func ReportedOrdinals(set Workload, cluster string) (placement.Range, bool) {
	status, named := BreakdownOf(set)[cluster]
	return placement.Range{Start: status.Start, End: status.Start + status.Replicas}, named
}

// CopiesOf reads the breakdown that an object of a custom kind carries. One that does not parse counts as none.
func CopiesOf(above projection.Object) summary.CustomBreakdown {
	breakdown, err := summary.ParseCustomBreakdown(above.GetAnnotations()[v1alpha1.AnnotationStatus])
	if err != nil {
		return nil
	}
	return breakdown
}

// CopiedTo returns the clusters that have, or are to have, a copy of an object of a custom kind, as far as it tells. They are sorted.
func CopiedTo(above projection.Object) []string {
	return slices.Compact(slices.Sorted(slices.Values(append(DecisionOf(above).Clusters(), CopiesOf(above).Clusters()...))))
}
