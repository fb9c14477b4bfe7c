package validation

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
)

// builtIn are the kinds that end in pods.
var builtIn = Workloads{"DaemonSet", "Deployment", "Job", "Pod", "ReplicaSet", "ReplicationController", "StatefulSet"}

func policy(spec v1alpha1.PlacementPolicySpec) *v1alpha1.PlacementPolicy {
	return &v1alpha1.PlacementPolicy{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "policy", ResourceVersion: "1"},
		Spec:       spec,
	}
}

func clusterPolicy(spec v1alpha1.ClusterPlacementPolicySpec) *v1alpha1.ClusterPlacementPolicy {
	return &v1alpha1.ClusterPlacementPolicy{ObjectMeta: metav1.ObjectMeta{Name: "policy", ResourceVersion: "1"}, Spec: spec}
}

// checkSpec runs a spec through both kinds of policy, on create and on update.
func checkSpec(t *testing.T, spec v1alpha1.PlacementPolicySpec, want []string) {
	t.Helper()
	wide := v1alpha1.ClusterPlacementPolicySpec{PlacementPolicySpec: spec}
	check(t, builtIn.ValidatePlacementPolicy(policy(spec)), want)
	check(t, builtIn.ValidatePlacementPolicyUpdate(policy(spec), policy(v1alpha1.PlacementPolicySpec{})), want)
	check(t, builtIn.ValidateClusterPlacementPolicy(clusterPolicy(wide)), want)
	check(t, builtIn.ValidateClusterPlacementPolicyUpdate(clusterPolicy(wide), clusterPolicy(v1alpha1.ClusterPlacementPolicySpec{})), want)
}

var (
	goodSelector = &metav1.LabelSelector{
		MatchLabels: map[string]string{"region": "eu"},
		MatchExpressions: []metav1.LabelSelectorRequirement{
			{Key: "tier", Operator: metav1.LabelSelectorOpIn, Values: []string{"a"}},
		},
	}
	badSelector = &metav1.LabelSelector{
		MatchLabels: map[string]string{"re gion": "eu"},
		MatchExpressions: []metav1.LabelSelectorRequirement{
			{Key: "tier", Operator: "Is"},
			{Key: "tier", Operator: metav1.LabelSelectorOpIn},
		},
	}
)

func TestValidatePolicySelectors(t *testing.T) {
	for name, test := range map[string]struct {
		spec v1alpha1.PlacementPolicySpec
		want []string
	}{
		"an empty policy is fine, it selects everything": {},
		"selectors of every sort are fine": {spec: v1alpha1.PlacementPolicySpec{
			Workloads: &v1alpha1.WorkloadSelector{Kinds: []string{"Deployment", "StatefulSet"}, LabelSelector: goodSelector},
			Clusters:  &v1alpha1.ClusterSelector{Names: []string{"east", "west"}, LabelSelector: goodSelector},
			Priority:  -5,
		}},
		"an invalid workload selector is refused": {
			spec: v1alpha1.PlacementPolicySpec{Workloads: &v1alpha1.WorkloadSelector{LabelSelector: badSelector}},
			want: []string{
				`spec.workloads.labelSelector.matchLabels: Invalid value: "re gion"`,
				`spec.workloads.labelSelector.matchExpressions[0].operator: Invalid value: "Is"`,
				`spec.workloads.labelSelector.matchExpressions[1].values: Required value`,
			},
		},
		"an invalid cluster selector is refused": {
			spec: v1alpha1.PlacementPolicySpec{Clusters: &v1alpha1.ClusterSelector{LabelSelector: badSelector}},
			want: []string{
				`spec.clusters.labelSelector.matchLabels: Invalid value: "re gion"`,
				`spec.clusters.labelSelector.matchExpressions[0].operator: Invalid value: "Is"`,
				`spec.clusters.labelSelector.matchExpressions[1].values: Required value`,
			},
		},
		"kinds that are not workloads are refused": {
			spec: v1alpha1.PlacementPolicySpec{
				Workloads: &v1alpha1.WorkloadSelector{Kinds: []string{"deployment", "Deployment", ""}},
			},
			want: []string{
				`spec.workloads.kinds[0]: Unsupported value: "deployment": supported values: "DaemonSet", "Deployment", "Job"`,
				`spec.workloads.kinds[2]: Unsupported value: ""`,
			},
		},
		"custom kinds are written with their group": {
			spec: v1alpha1.PlacementPolicySpec{Workloads: &v1alpha1.WorkloadSelector{
				Kinds: []string{"Widget.example.com", "Widget", "widget.example.com", "Widget.example", "Widget.example.com.", "Job.volcano.sh"},
			}},
			want: []string{
				`spec.workloads.kinds[1]: Unsupported value: "Widget"`,
				`spec.workloads.kinds[2]: Unsupported value: "widget.example.com"`,
				`spec.workloads.kinds[3]: Unsupported value: "Widget.example"`,
				`spec.workloads.kinds[4]: Unsupported value: "Widget.example.com."`,
			},
		},
		"kinds may not repeat": {
			spec: v1alpha1.PlacementPolicySpec{Workloads: &v1alpha1.WorkloadSelector{Kinds: []string{"Job", "Pod", "Job"}}},
			want: []string{`spec.workloads.kinds[2]: Duplicate value: "Job"`},
		},
		"clusters are named by names that can exist, once": {
			spec: v1alpha1.PlacementPolicySpec{Clusters: &v1alpha1.ClusterSelector{Names: []string{"east", "East", "", "east"}}},
			want: []string{
				`spec.clusters.names[3]: Duplicate value: "east"`,
				`spec.clusters.names[1]: Invalid value: "East"`,
				`spec.clusters.names[2]: Required value`,
			},
		},
	} {
		t.Run(name, func(t *testing.T) { checkSpec(t, test.spec, test.want) })
	}
}

func TestValidateDivision(t *testing.T) {
	weights := map[string]int32{"east": 1, "west": 0}
	for name, test := range map[string]struct {
		division     v1alpha1.Division
		keepTogether bool
		want         []string
	}{
		"divide evenly":          {division: v1alpha1.Division{Type: v1alpha1.Divide, By: v1alpha1.ByEven}},
		"divide by capacity":     {division: v1alpha1.Division{Type: v1alpha1.Divide, By: v1alpha1.ByCapacity}},
		"divide by weights":      {division: v1alpha1.Division{Type: v1alpha1.Divide, By: v1alpha1.ByWeights, Weights: weights}},
		"duplicate":              {division: v1alpha1.Division{Type: v1alpha1.Duplicate}},
		"a type that is missing": {want: []string{"spec.division.type: Required value: must be Divide or Duplicate"}},
		"a type that is not known": {
			division: v1alpha1.Division{Type: "Halve"},
			want:     []string{`spec.division.type: Unsupported value: "Halve": supported values: "Divide", "Duplicate"`},
		},
		"a measure that is missing": {
			division: v1alpha1.Division{Type: v1alpha1.Divide},
			want:     []string{`spec.division.by: Unsupported value: ""`},
		},
		"a measure that is not known": {
			division: v1alpha1.Division{Type: v1alpha1.Divide, By: "Cost"},
			want:     []string{`spec.division.by: Unsupported value: "Cost": supported values: "Capacity", "Even", "Packing", "Weights"`},
		},
		"duplicate with a measure and weights": {
			division: v1alpha1.Division{Type: v1alpha1.Duplicate, By: v1alpha1.ByEven, Weights: weights},
			want:     []string{"spec.division.by: Forbidden", "spec.division.weights: Forbidden"},
		},
		"weights for another measure": {
			division: v1alpha1.Division{Type: v1alpha1.Divide, By: v1alpha1.ByEven, Weights: weights},
			want:     []string{"spec.division.weights: Forbidden: may only be specified when by is Weights"},
		},
		"weights that are missing": {
			division: v1alpha1.Division{Type: v1alpha1.Divide, By: v1alpha1.ByWeights},
			want:     []string{"spec.division.weights: Required value"},
		},
		"weights below 0": {
			division: v1alpha1.Division{
				Type: v1alpha1.Divide, By: v1alpha1.ByWeights, Weights: map[string]int32{"west": -2, "east": -1, "north": 1},
			},
			want: []string{
				"spec.division.weights[east]: Invalid value: -1: must not be negative",
				"spec.division.weights[west]: Invalid value: -2: must not be negative",
			},
		},
		"weights of which none is above 0": {
			division: v1alpha1.Division{
				Type: v1alpha1.Divide, By: v1alpha1.ByWeights, Weights: map[string]int32{"east": 0, "west": 0},
			},
			want: []string{"spec.division.weights: Invalid value"},
		},
		"weights for names that cannot exist": {
			division: v1alpha1.Division{Type: v1alpha1.Divide, By: v1alpha1.ByWeights, Weights: map[string]int32{"East": 1}},
			want:     []string{`spec.division.weights[East]: Invalid value: "East"`},
		},
		"a division of what stays together": {
			division: v1alpha1.Division{Type: v1alpha1.Duplicate}, keepTogether: true,
			want: []string{"spec.keepTogether: Forbidden: may not be combined with division"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			checkSpec(t, v1alpha1.PlacementPolicySpec{KeepTogether: test.keepTogether, Division: &test.division}, test.want)
		})
	}
}

func TestValidateNamespaceSelector(t *testing.T) {
	check(t, builtIn.ValidateClusterPlacementPolicy(clusterPolicy(v1alpha1.ClusterPlacementPolicySpec{NamespaceSelector: goodSelector})), nil)
	bad := clusterPolicy(v1alpha1.ClusterPlacementPolicySpec{NamespaceSelector: badSelector})
	check(t, builtIn.ValidateClusterPlacementPolicy(bad), []string{
		`spec.namespaceSelector.matchLabels: Invalid value: "re gion"`,
		`spec.namespaceSelector.matchExpressions[0].operator: Invalid value: "Is"`,
		`spec.namespaceSelector.matchExpressions[1].values: Required value`,
	})
}

func TestValidatePolicyScope(t *testing.T) {
	lost := policy(v1alpha1.PlacementPolicySpec{})
	lost.Namespace = ""
	check(t, builtIn.ValidatePlacementPolicy(lost), []string{"metadata.namespace: Required value"})

	housed := clusterPolicy(v1alpha1.ClusterPlacementPolicySpec{})
	housed.Namespace = "shop"
	check(t, builtIn.ValidateClusterPlacementPolicy(housed), []string{"metadata.namespace: Forbidden"})
}
