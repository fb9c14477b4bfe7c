package copies

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/identity"
	"github.com/manifold-dev/manifold/pkg/placement"
	"github.com/manifold-dev/manifold/pkg/projection"
	"github.com/manifold-dev/manifold/pkg/summary"
)

// Gathered is what is known of the clusters that have, or are to have, a copy of an object.
type Gathered struct {
	Reports map[string]summary.CustomReport
	// versions are those in which the copies are that are to be there, and left those of the others.
	versions, left []string
	// Held reports whether any of them may still have a copy: a silent cluster that had one does, as far as anybody knows.
	Held bool
	// Pending tells that a cluster which should answer has not been asked yet, as after a start. Its loop wakes us.
	Pending bool
}

// Gather asks the clusters that have, or are to have, a copy of an object.
func (a *Loops) Gather(key Key, o *metav1.PartialObjectMetadata) Gathered {
	out, decision := Gathered{Reports: map[string]summary.CustomReport{}}, identity.DecisionOf(o)
	last := identity.CopiesOf(o)
	for _, name := range identity.CopiedTo(o) {
		cluster, err := a.Clusters.Get(name)
		if err != nil {
			continue // gone
		}
		seen := a.report(name, key)
		if seen.Live != nil {
			if origin, _ := projection.OriginOf(seen.Live); origin.UID != o.UID {
				seen.Live, seen.Generation, seen.Routes, seen.Content = nil, 0, "", "" // it is of an earlier object, or somebody says so
			}
		}
		_, decided := decision[name]
		out.add(cluster, seen, last[name], decided && projection.Lives(o))
	}
	return out
}

// add adds what is known of one cluster. A cluster that is decided is to have a copy.
func (g *Gathered) add(cluster *v1alpha1.Cluster, seen sighting, last summary.CustomCluster, decided bool) {
	if cluster.DeletionTimestamp != nil && cluster.Annotations[v1alpha1.AnnotationRemove] == v1alpha1.RemoveForce {
		return // given up
	}
	ready := Readiness(cluster)
	report := seen.CustomReport
	switch {
	case !seen.known:
		// A copy that was ever there is there as far as anybody knows.
		g.Held = true
		g.Pending = g.Pending || ready == metav1.ConditionTrue
		report = lastKnown(last)
	case seen.blind:
		// What cannot be seen is there if it ever was.
		report.Generation, report.Routes, report.Content = last.Generation, last.Routes, last.Content
		g.Held = g.Held || last.Generation > 0
	case report.Live == nil && !decided && report.Problem == "":
		return // there is nothing
	default:
		g.Held = g.Held || report.Live != nil
		g.Pending = g.Pending || decided && report.Live != nil && !seen.compared
	}
	report.Stale = !seen.known || ready != metav1.ConditionTrue && ready != metav1.ConditionFalse
	g.Reports[cluster.Name] = report
	switch version := versionOf(report.Live); {
	case version == "":
	case decided:
		g.versions = append(g.versions, version)
	default:
		g.left = append(g.left, version)
	}
}

// Turn names the clusters that have an object, or are to have it, "" for none: whoever works on objects takes those of some clusters after those of
// others in turn. The object may be nil.
func Turn(o *metav1.PartialObjectMetadata) string {
	if o == nil {
		return ""
	}
	return strings.Join(identity.CopiedTo(o), ",")
}

// Version is the one in which all copies are that are to be there or, as long as none is, all others: what these say may still count, as the addresses
// of a Gateway do. It is "" if they are in several, or nowhere.
func (g *Gathered) Version() string {
	versions := g.versions
	if len(versions) == 0 {
		versions = g.left
	}
	if len(versions) == 0 || slices.ContainsFunc(versions, func(v string) bool { return v != versions[0] }) {
		return ""
	}
	return versions[0]
}

// Unknown reports whether there is no telling what the one cluster of a decision says, as of a silent one after a start.
func (g *Gathered) Unknown(decision placement.Decision) bool {
	if len(decision) != 1 {
		return false
	}
	only := g.Reports[decision.Clusters()[0]]
	return only.Stale && only.Live == nil
}

// lastKnown is the report of a cluster that nobody can ask, as the breakdown kept it.
func lastKnown(last summary.CustomCluster) summary.CustomReport {
	out := summary.CustomReport{Generation: last.Generation, Routes: last.Routes, Content: last.Content, Problem: last.Problem, Stale: true}
	if last.Status != nil {
		out.Live = &unstructured.Unstructured{Object: map[string]any{"status": last.Status}}
	}
	return out
}

func versionOf(o *unstructured.Unstructured) string {
	if o == nil {
		return ""
	}
	return o.GroupVersionKind().Version
}

// Readiness is the status of a cluster's Ready condition, Unknown for one that is silent.
func Readiness(c *v1alpha1.Cluster) metav1.ConditionStatus {
	if ready := meta.FindStatusCondition(c.Status.Conditions, v1alpha1.ClusterReady); ready != nil {
		return ready.Status
	}
	return ""
}
