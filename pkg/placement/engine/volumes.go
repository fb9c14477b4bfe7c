package engine

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/ptr"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/identity"
	"github.com/manifold-dev/manifold/pkg/placement"
	"github.com/manifold-dev/manifold/pkg/projection"
	"github.com/manifold-dev/manifold/pkg/summary"
)

// addVolumes adds where the volumes of a workload are. Those of shared storage count for nothing: they are everywhere. A user who wants new
// volumes elsewhere makes what runs free to go.
func (e *Engine) addVolumes(w *placement.Workload, current placement.Decision) {
	w.VolumesIn, w.Kept = e.volumesOf(*w), e.keptOf(*w)
	switch {
	case !w.Recreates:
		w.Tied = e.tiedOf(*w, current)
	case len(current) > 0:
		w.VolumesIn = nil
	}
}

// volumesOf returns the clusters that have the volumes of a workload's claims, nil if there are no volumes yet. A claim that several
// clusters have bound gives the choice between them.
func (e *Engine) volumesOf(w placement.Workload) map[string]bool {
	var out map[string]bool
	for _, name := range w.VolumeClaims {
		claim, err := e.claims.PersistentVolumeClaims(w.Namespace).Get(name)
		if err != nil {
			continue // the pods wait for it, wherever they are
		}
		clusters := clustersOf(claim)
		if !bound(claim) {
			home := identity.WholeDecisionOf(claim) // where it waits for nobody
			clusters = slices.DeleteFunc(clusters, func(cluster string) bool { _, waits := home[cluster]; return waits })
		}
		if len(clusters) == 0 || e.shared(claim) {
			continue
		}
		has := make(map[string]bool, len(clusters))
		for _, cluster := range clusters {
			if out == nil || out[cluster] {
				has[cluster] = true
			}
		}
		out = has
	}
	return out
}

// claimsIn returns where those claims of a namespace are that nothing uses, for a namespace without workloads: the first of these follows them.
func (e *Engine) claimsIn(w placement.Workload) placement.Neighbours {
	out := placement.Neighbours{}
	all, _ := e.claims.PersistentVolumeClaims(w.Namespace).List(labels.Everything()) // listing from a cache cannot fail
	for _, claim := range all {
		if claim.DeletionTimestamp == nil {
			out.Add(identity.WholeDecisionOf(claim))
		}
	}
	return out
}

// keptOf returns by number which cluster has the volumes of claims that templates of a workload stand for.
func (e *Engine) keptOf(w placement.Workload) map[int32]string {
	var out map[int32]string
	e.eachBound(w, func(number int32, clusters []string) {
		if out == nil {
			out = map[int32]string{}
		}
		// Should the claims of one replica be in several clusters, the first by name has it, whatever the order of the list.
		if have, ok := out[number]; !ok || clusters[0] < have {
			out[number] = clusters[0]
		}
	})
	return out
}

// tiedOf returns the clusters that run a replica of a workload which has data there.
func (e *Engine) tiedOf(w placement.Workload, current placement.Decision) map[string]bool {
	var out map[string]bool
	e.eachBound(w, func(number int32, clusters []string) {
		for _, cluster := range clusters {
			if share, runs := current[cluster]; runs && number >= share.Start && number < share.Start+share.Replicas {
				if out == nil {
					out = map[string]bool{}
				}
				out[cluster] = true
			}
		}
	})
	return out
}

// eachBound hands over, for each claim that templates of a workload stand for and that has a volume, the number of the replica and the
// clusters that have it. A claim without one, which waits for a pod to be scheduled, keeps nothing anywhere.
func (e *Engine) eachBound(w placement.Workload, do func(number int32, clusters []string)) {
	if len(w.ClaimTemplates) == 0 {
		return
	}
	all, _ := e.claims.PersistentVolumeClaims(w.Namespace).List(labels.Everything()) // listing from a cache cannot fail
	for _, claim := range all {
		ordinal, ok := projection.NumberedClaim(claim.Name, w.Name, w.ClaimTemplates)
		clusters := clustersOf(claim)
		if ok && ordinal >= w.First && len(clusters) > 0 && claim.DeletionTimestamp == nil && bound(claim) && !e.shared(claim) {
			do(ordinal-w.First, clusters)
		}
	}
}

// bound reports whether a claim has a volume, or is about to get one: the scheduler has chosen a node for it.
func bound(claim *corev1.PersistentVolumeClaim) bool {
	return claim.Spec.VolumeName != "" || claim.Status.Phase == corev1.ClaimBound || claim.Annotations[selectedNode] != ""
}

// selectedNode is what a scheduler writes on a claim whose volume is to be made for a node.
const selectedNode = "volume.kubernetes.io/selected-node"

// shared reports whether a claim leads to the same data in every cluster, by the word of who wrote its class.
func (e *Engine) shared(claim *corev1.PersistentVolumeClaim) bool {
	class, err := e.storage.Get(ptr.Deref(claim.Spec.StorageClassName, ""))
	return err == nil && class.Annotations[v1alpha1.AnnotationSharedStorage] == "true"
}

// clustersOf returns the clusters that have a claim, sorted: the one that a mirror shows, or those that hold the user's own.
func clustersOf(claim *corev1.PersistentVolumeClaim) []string {
	if cluster := claim.Annotations[v1alpha1.AnnotationCluster]; cluster != "" {
		return []string{cluster}
	}
	breakdown, err := summary.ParseBreakdown(claim.Annotations[v1alpha1.AnnotationStatus])
	if err != nil {
		return nil
	}
	return slices.Sorted(maps.Keys(breakdown))
}
