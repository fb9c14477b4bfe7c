package manifold

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/registry/table"
)

func clusterColumns() rest.TableConvertor {
	columns := []table.Column[*v1alpha1.Cluster]{
		table.Text("Ready", "Whether the cluster answers and can take work: True, False, or Unknown when it is silent. What keeps its syncer "+
			"from working follows.", readiness),
		table.Text("Schedulable", "False when the cluster is cordoned, so that nothing new is placed there.", schedulable),
		table.Text("Version", "Version that the cluster's API server reports.", version),
		table.Text("Nodes", "Nodes that are ready and schedulable, of all.", nodes),
		table.Text("CPU", "Cores that pods of all owners request, of those that can be allocated.", func(c *v1alpha1.Cluster) string {
			return usage(c, corev1.ResourceCPU, cores)
		}),
		table.Text("Memory", "Memory that pods of all owners request, of that which can be allocated.", func(c *v1alpha1.Cluster) string {
			return usage(c, corev1.ResourceMemory, bytes)
		}),
		table.Age[*v1alpha1.Cluster](),
	}
	return table.New(append(columns, table.WhenWide(
		table.Text("Pods", "Pods of all owners, of those that nodes can run.", func(c *v1alpha1.Cluster) string {
			return usage(c, corev1.ResourcePods, cores)
		}),
		table.Text("Region", "Region that all nodes are in.", topology(corev1.LabelTopologyRegion)),
		table.Text("Zone", "Zone that all nodes are in.", topology(corev1.LabelTopologyZone)),
		table.Text("Network", "Network in which clusters reach the addresses of each other's pods.", func(c *v1alpha1.Cluster) string {
			return cmp.Or(c.Spec.Network, table.None)
		}),
		table.Text("Taints", "Taints that workloads must tolerate.", taints),
		table.Text("Reason", "Why the cluster is ready, or why not.", reason),
	)...)...)
}

func ready(cluster *v1alpha1.Cluster) *metav1.Condition {
	return meta.FindStatusCondition(cluster.Status.Conditions, v1alpha1.ClusterReady)
}

func readiness(cluster *v1alpha1.Cluster) string {
	condition := ready(cluster)
	if condition == nil {
		return string(metav1.ConditionUnknown)
	}
	if trouble := syncing(cluster); condition.Status == metav1.ConditionTrue && trouble != "" {
		return string(condition.Status) + "," + trouble
	}
	return string(condition.Status)
}

// syncing returns the reason why the cluster's syncer does not do all that it should, "" if it does or nothing is known.
func syncing(cluster *v1alpha1.Cluster) string {
	condition := meta.FindStatusCondition(cluster.Status.Conditions, v1alpha1.ClusterSyncerRunning)
	if condition == nil || condition.Reason == condition.Type {
		return ""
	}
	return condition.Reason
}

func reason(cluster *v1alpha1.Cluster) string {
	if condition := ready(cluster); condition != nil {
		return cmp.Or(condition.Reason, table.None)
	}
	return table.None
}

func schedulable(cluster *v1alpha1.Cluster) string {
	if cluster.Spec.Unschedulable {
		return string(metav1.ConditionFalse)
	}
	return string(metav1.ConditionTrue)
}

func version(cluster *v1alpha1.Cluster) string {
	return cmp.Or(cluster.Status.KubernetesVersion, table.Unknown)
}

// reported tells a cluster that has nothing from one that nothing is known of yet: every report has a version.
func reported(cluster *v1alpha1.Cluster) bool {
	return cluster.Status.KubernetesVersion != ""
}

func nodes(cluster *v1alpha1.Cluster) string {
	if !reported(cluster) {
		return table.Unknown
	}
	return fmt.Sprintf("%d/%d", cluster.Status.Nodes.Ready, cluster.Status.Nodes.Total)
}

func topology(label string) func(*v1alpha1.Cluster) string {
	return func(cluster *v1alpha1.Cluster) string {
		return cmp.Or(cluster.Status.Topology[label], table.None)
	}
}

func taints(cluster *v1alpha1.Cluster) string {
	var written []string
	for _, taint := range cluster.Spec.Taints {
		written = append(written, taint.ToString())
	}
	slices.Sort(written)
	return cmp.Or(strings.Join(written, ","), table.None)
}

// usage writes what is requested of a resource, of what is allocatable.
func usage(cluster *v1alpha1.Cluster, name corev1.ResourceName, format func(resource.Quantity) string) string {
	if !reported(cluster) {
		return table.Unknown
	}
	return format(cluster.Status.Requested[name]) + "/" + format(cluster.Status.Allocatable[name])
}

// cores writes a quantity as a plain number with at most two decimals.
func cores(quantity resource.Quantity) string {
	return decimal(quantity.AsApproximateFloat64(), 2)
}

// bytes writes a quantity in the largest binary unit that it fills, with at most one decimal.
func bytes(quantity resource.Quantity) string {
	value, unit := quantity.AsApproximateFloat64(), ""
	for _, larger := range []string{"Ki", "Mi", "Gi", "Ti", "Pi"} {
		if value < 1024 {
			break
		}
		value, unit = value/1024, larger
	}
	return decimal(value, 1) + unit
}

func decimal(value float64, places int) string {
	written := strconv.FormatFloat(value, 'f', places, 64)
	return strings.TrimSuffix(strings.TrimRight(written, "0"), ".")
}
