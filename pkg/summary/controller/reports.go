package controller

import (
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/clusters/health"
	"github.com/manifold-dev/manifold/pkg/identity"
	"github.com/manifold-dev/manifold/pkg/placement"
	"github.com/manifold-dev/manifold/pkg/projection"
	"github.com/manifold-dev/manifold/pkg/summary"
)

// gathered is what is known of the clusters that have, or should have, a share of a workload.
type gathered struct {
	reports map[string]summary.Report
	// held reports whether any of them may still hold a projection: a silent cluster that held one does, as far as anybody knows.
	held bool
	// pending tells that a cluster which should answer has not been asked yet, as after a start. Its syncer wakes us.
	pending bool
	// unasked are clusters that cannot be asked and are to have no share, and had one when they were last heard of.
	unasked []string
}

func (c *Controller) gather(kind summary.Kind, key identity.Key, in summary.Object) gathered {
	decision := identity.DecisionOf(in)
	// The annotation is ours; if it is damaged, what it said of silent clusters is lost, and no more.
	last, _ := summary.ParseBreakdown(in.GetAnnotations()[v1alpha1.AnnotationStatus])
	out := gathered{reports: map[string]summary.Report{}}

	clusters, _ := c.clusters.List(labels.Everything())
	for _, cluster := range clusters {
		if cluster.Annotations[v1alpha1.AnnotationRemove] != "" && cluster.DeletionTimestamp != nil {
			continue // given up
		}
		_, decided := decision[cluster.Name]
		s, running := c.Reports.Reporter(cluster.Name)
		if running {
			report, known := s.Report(key, in)
			if known {
				report.Stale = silent(cluster)
				holds := report.Live != nil
				if holds || decided || report.Problem != "" {
					out.reports[cluster.Name] = report
				}
				out.held = out.held || holds
				continue
			}
			if s.Expects(key) && s.Concerns(key, in) {
				out.held, out.pending = true, true
			}
		}
		if before, reported := last[cluster.Name]; reported || decided {
			out.reports[cluster.Name] = kind.LastKnown(before)
			out.held = true
			out.pending = out.pending || answers(cluster)
			if !decided {
				out.unasked = append(out.unasked, cluster.Name)
			}
		}
	}
	return out
}

// answers reports whether a cluster was ready when it was last heard.
func answers(c *v1alpha1.Cluster) bool {
	return meta.IsStatusConditionTrue(c.Status.Conditions, v1alpha1.ClusterReady)
}

// silent reports whether what a cluster reported last may be out of date.
func silent(c *v1alpha1.Cluster) bool {
	return health.Silent(meta.FindStatusCondition(c.Status.Conditions, v1alpha1.ClusterReady))
}

// unplaced is why a workload runs nowhere, in the words of the event, or "".
func (c *Controller) unplaced(key identity.Key, in summary.Object, decision placement.Decision) string {
	if len(decision) > 0 {
		return ""
	}
	kind, _ := projection.ForResource(key.Resource)
	w, err := kind.WorkloadOf(in)
	if err != nil {
		return err.Error()
	}
	decided, ready := c.Engine.Decide(w, nil)
	if !ready || len(decided.Decision) > 0 {
		return "it is being placed"
	}
	return decided.Message()
}

// otherReports are those of the clusters that hold, or should hold, an object that follows workloads. Complete is false as long as a cluster
// that may hold it could not be asked: until then it keeps the status that it has, but for addresses that leave it. What a cluster holds that is
// not to have it says nothing.
func (c *Controller) otherReports(key identity.Key, in summary.Object) (reports map[string]summary.Report, complete bool) {
	reports, complete = map[string]summary.Report{}, true
	clusters, _ := c.clusters.List(labels.Everything())
	for _, cluster := range clusters {
		var report summary.Report
		s, known := c.Reports.Reporter(cluster.Name)
		if known {
			report, known = s.Report(key, in)
		}
		switch {
		case !known && !awayFor(cluster, in) && c.Reports.MayHave(key, in, cluster.Name):
			complete = false
		case known && (report.Live != nil || report.Problem != ""):
			report.Stale = silent(cluster)
			reports[cluster.Name] = report
		}
	}
	return reports, complete
}

// awayFor reports whether a cluster cannot hold an object, because nobody has been able to give it one since before the object was made.
func awayFor(c *v1alpha1.Cluster, in summary.Object) bool {
	made := in.GetCreationTimestamp().Time
	for _, needed := range []string{v1alpha1.ClusterReady, v1alpha1.ClusterSyncerRunning} {
		condition := meta.FindStatusCondition(c.Status.Conditions, needed)
		if condition != nil && condition.Status != metav1.ConditionTrue && condition.LastTransitionTime.Time.Before(made) {
			return true
		}
	}
	return false
}

// enqueueConcerned looks again at every object that names a cluster in its decision or breakdown.
func (c *Controller) enqueueConcerned(cluster string) {
	name := `"` + cluster + `"`
	for resource, store := range c.stores {
		for _, obj := range store.List() {
			o := obj.(summary.Object)
			annotations := o.GetAnnotations()
			if strings.Contains(annotations[v1alpha1.AnnotationPlacement], name) || strings.Contains(annotations[v1alpha1.AnnotationStatus], name) {
				c.queue.AddFor(cluster, task{Key: identity.Key{Resource: resource, Namespace: o.GetNamespace(), Name: o.GetName()}}, 0)
			}
		}
	}
}
