package manifold

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/registry/table"
)

// all stands where nothing is selected, which selects everything.
const all = "<all>"

func placementPolicyColumns() rest.TableConvertor {
	spec := func(policy *v1alpha1.PlacementPolicy) *v1alpha1.PlacementPolicySpec { return &policy.Spec }
	status := func(policy *v1alpha1.PlacementPolicy) *v1alpha1.PlacementPolicyStatus { return &policy.Status }
	return table.New(policyColumns(spec, status)...)
}

func clusterPlacementPolicyColumns() rest.TableConvertor {
	spec := func(policy *v1alpha1.ClusterPlacementPolicy) *v1alpha1.PlacementPolicySpec {
		return &policy.Spec.PlacementPolicySpec
	}
	status := func(policy *v1alpha1.ClusterPlacementPolicy) *v1alpha1.PlacementPolicyStatus { return &policy.Status }
	namespaces := table.Text("Namespaces", "Labels of the namespaces whose workloads the policy is about.",
		func(policy *v1alpha1.ClusterPlacementPolicy) string {
			return selection(nil, policy.Spec.NamespaceSelector)
		})
	return table.New(append(policyColumns(spec, status), table.WhenWide(namespaces)...)...)
}

// policyColumns are the columns that both kinds of policy have.
func policyColumns[T runtime.Object](
	spec func(T) *v1alpha1.PlacementPolicySpec, status func(T) *v1alpha1.PlacementPolicyStatus,
) []table.Column[T] {
	columns := []table.Column[T]{
		table.Text("Clusters", "Names and labels of the clusters where workloads may run, and the groups that are filled one after the other.", func(policy T) string {
			return clusters(spec(policy))
		}),
		table.Text("Division", "How replicas are shared out: Whole puts all of a workload on one cluster, KeepTogether all of a namespace.",
			func(policy T) string { return division(spec(policy)) }),
		table.Number("Priority", "The highest priority wins among the policies of the same scope that select a workload.",
			func(policy T) int64 { return int64(spec(policy).Priority) }),
		table.Number("Placing", "Number of workloads that follow the policy.",
			func(policy T) int64 { return int64(status(policy).Workloads) }),
		table.Number("Unplaced", "Number of these of which replicas have no cluster.",
			func(policy T) int64 { return int64(status(policy).Unplaced) }),
		table.Age[T](),
	}
	return append(columns, table.WhenWide(
		table.Text("Workloads", "Kinds and labels of the workloads that the policy is about.", func(policy T) string {
			return workloads(spec(policy).Workloads)
		}),
	)...)
}

func clusters(spec *v1alpha1.PlacementPolicySpec) string {
	selected := all
	if spec.Clusters != nil {
		selected = selection(spec.Clusters.Names, spec.Clusters.LabelSelector)
	}
	if len(spec.Groups) == 0 {
		return selected
	}
	var groups []string
	for _, group := range spec.Groups {
		text := group.Name
		if group.Limit != nil {
			text += "(" + group.Limit.String() + ")"
		}
		groups = append(groups, text)
	}
	text := strings.Join(groups, ">")
	if selected != all {
		text = selected + ": " + text
	}
	return text
}

func workloads(selector *v1alpha1.WorkloadSelector) string {
	if selector == nil {
		return all
	}
	return selection(selector.Kinds, selector.LabelSelector)
}

// selection writes names and labels that must both match. An empty label selector selects everything, as no selector does.
func selection(names []string, labels *metav1.LabelSelector) string {
	var parts []string
	if len(names) > 0 {
		parts = append(parts, strings.Join(slices.Sorted(slices.Values(names)), ","))
	}
	if labels != nil && len(labels.MatchLabels)+len(labels.MatchExpressions) > 0 {
		parts = append(parts, metav1.FormatLabelSelector(labels))
	}
	return cmp.Or(strings.Join(parts, " & "), all)
}

func division(spec *v1alpha1.PlacementPolicySpec) string {
	switch division := spec.Division; {
	case spec.KeepTogether:
		return "KeepTogether"
	case division == nil:
		return "Whole"
	case division.By == v1alpha1.ByWeights:
		return fmt.Sprintf("%s/%s(%s)", division.Type, division.By, weights(division.Weights))
	case division.By != "":
		return fmt.Sprintf("%s/%s", division.Type, division.By)
	default:
		return string(division.Type)
	}
}

func weights(weights map[string]int32) string {
	var written []string
	for _, name := range slices.Sorted(maps.Keys(weights)) {
		written = append(written, fmt.Sprintf("%s=%d", name, weights[name]))
	}
	return strings.Join(written, ",")
}
