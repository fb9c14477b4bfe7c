package controller

import (
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/placement"
	placementcontroller "github.com/manifold-dev/manifold/pkg/placement/controller"
	"github.com/manifold-dev/manifold/pkg/summary"
	"github.com/manifold-dev/manifold/pkg/syncer"
)

// gathered is what is known of the clusters that have, or should have, a share of a Deployment.
type gathered struct {
	reports map[string]summary.Report
	// held tells whether any of them may still hold a projection: a silent cluster that held one does, as far as anybody knows.
	held bool
	// pending tells that a cluster which should answer has not been asked yet, as after a start. Its syncer wakes us.
	pending bool
}

func (c *Controller) gather(d *appsv1.Deployment) gathered {
	decision := syncer.DecisionOf(d)
	// The annotation is ours; if it is damaged, what it said of silent clusters is lost, and no more.
	last, _ := summary.ParseBreakdown(d.Annotations[v1alpha1.AnnotationStatus])
	out := gathered{reports: map[string]summary.Report{}}

	clusters, _ := c.clusters.List(labels.Everything())
	for _, cluster := range clusters {
		if cluster.Annotations[v1alpha1.AnnotationRemove] != "" && cluster.DeletionTimestamp != nil {
			continue // given up
		}
		_, decided := decision[cluster.Name]
		s, running := c.Upstream.Syncer(cluster.Name)
		if running {
			report, holds, known := s.Deployment(d)
			if known {
				report.Stale = silent(cluster)
				if holds || decided || report.Problem != "" {
					out.reports[cluster.Name] = report
				}
				out.held = out.held || holds
				continue
			}
		}
		if before, reported := last[cluster.Name]; reported || decided {
			out.reports[cluster.Name] = lastKnown(before)
			out.held = true
			out.pending = out.pending || answers(cluster)
		}
	}
	return out
}

// answers tells whether a cluster was ready when it was last heard.
func answers(c *v1alpha1.Cluster) bool {
	return meta.IsStatusConditionTrue(c.Status.Conditions, v1alpha1.ClusterReady)
}

// silent tells whether what a cluster reported last may be out of date.
func silent(c *v1alpha1.Cluster) bool {
	ready := meta.FindStatusCondition(c.Status.Conditions, v1alpha1.ClusterReady)
	return ready != nil && ready.Status == metav1.ConditionUnknown
}

// lastKnown is the report of a cluster that nobody can ask, as the breakdown kept it.
func lastKnown(before summary.ClusterStatus) summary.Report {
	return summary.Report{
		Generation: before.Generation,
		Stale:      true,
		Problem:    before.Problem,
		Deployment: &appsv1.DeploymentStatus{
			Replicas:          before.Replicas,
			ReadyReplicas:     before.Ready,
			AvailableReplicas: before.Available,
			UpdatedReplicas:   before.Updated,
		},
	}
}

// unplaced is why a Deployment runs nowhere, in the words of the event, or "".
func (c *Controller) unplaced(d *appsv1.Deployment, decision placement.Decision) string {
	if len(decision) > 0 {
		return ""
	}
	w, err := placementcontroller.WorkloadOf(d)
	if err != nil {
		return err.Error()
	}
	result, ready := c.Engine.Place(w, nil)
	if !ready || len(result.Decision) > 0 {
		return "it is being placed"
	}
	return result.Message()
}

func (c *Controller) serviceReports(s *corev1.Service) map[string]summary.Report {
	reports := map[string]summary.Report{}
	clusters, _ := c.clusters.List(labels.Everything())
	for _, cluster := range clusters {
		running, ok := c.Upstream.Syncer(cluster.Name)
		if !ok {
			continue
		}
		if report, known := running.Service(s); known && (report.Service != nil || report.Problem != "") {
			report.Stale = silent(cluster)
			reports[cluster.Name] = report
		}
	}
	return reports
}

// complete tells whether every joined cluster could be asked. Until then a Service keeps the status that it has.
func (c *Controller) complete() bool {
	clusters, _ := c.clusters.List(labels.Everything())
	for _, cluster := range clusters {
		if s, ok := c.Upstream.Syncer(cluster.Name); !ok || !s.HasSynced() {
			return false
		}
	}
	return true
}

// enqueueConcerned looks again at every Deployment that names a cluster in its decision or breakdown.
func (c *Controller) enqueueConcerned(cluster string) {
	name := `"` + cluster + `"`
	list, _ := c.deployments.List(labels.Everything())
	for _, d := range list {
		if strings.Contains(d.Annotations[v1alpha1.AnnotationPlacement], name) || strings.Contains(d.Annotations[v1alpha1.AnnotationStatus], name) {
			c.queue.Add(deploymentKey(d))
		}
	}
}
