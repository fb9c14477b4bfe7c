package validation

import (
	"testing"

	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
)

func TestValidateChoice(t *testing.T) {
	divide := &v1alpha1.Division{Type: v1alpha1.Divide, By: v1alpha1.ByPacking}
	duplicate := &v1alpha1.Division{Type: v1alpha1.Duplicate}
	east := v1alpha1.ClusterSelector{Names: []string{"east"}}
	limit := func(value string) *intstr.IntOrString { return ptr.To(intstr.Parse(value)) }
	for name, test := range map[string]struct {
		spec v1alpha1.PlacementPolicySpec
		want []string
	}{
		"everything at once is fine": {spec: v1alpha1.PlacementPolicySpec{
			Preferences: []v1alpha1.ClusterPreference{{Weight: -5, ClusterSelector: east}, {Weight: 100}},
			Groups:      []v1alpha1.ClusterGroup{{Name: "own", Limit: limit("60%"), ClusterSelector: east}, {Name: "cloud", Limit: limit("3")}, {Name: "rest"}},
			MinClusters: 2, MaxClusters: 3,
			Spread: []v1alpha1.SpreadConstraint{
				{TopologyKey: "topology.kubernetes.io/region", MaxSkew: 2, WhenUnsatisfiable: v1alpha1.PlaceAnyway},
				{TopologyKey: v1alpha1.LabelClusterName, MaxSkew: 1, WhenUnsatisfiable: v1alpha1.DoNotPlace},
			},
			Affinity:     []v1alpha1.WorkloadAffinity{{Workloads: &v1alpha1.WorkloadSelector{LabelSelector: goodSelector}}},
			AntiAffinity: []v1alpha1.WorkloadAffinity{{NamespaceSelector: goodSelector, Weight: ptr.To[int32](100)}},
			Division:     divide,
		}},
		"preferences have a weight, and selectors that can be read": {
			spec: v1alpha1.PlacementPolicySpec{Preferences: []v1alpha1.ClusterPreference{
				{}, {Weight: 101}, {Weight: -101}, {Weight: 1, ClusterSelector: v1alpha1.ClusterSelector{Names: []string{"East"}}},
			}},
			want: []string{
				"spec.preferences[0].weight: Invalid value: 0", "spec.preferences[1].weight: Invalid value: 101",
				"spec.preferences[2].weight: Invalid value: -101", `spec.preferences[3].names[0]: Invalid value: "East"`,
			},
		},
		"groups have names of their own, and limits that let something in": {
			spec: v1alpha1.PlacementPolicySpec{Groups: []v1alpha1.ClusterGroup{
				{}, {Name: "a", Limit: limit("0")}, {Name: "a", Limit: limit("0%")}, {Name: "b", Limit: limit("many")},
				{Name: "c", Limit: limit("101%")}, {Name: "d", ClusterSelector: v1alpha1.ClusterSelector{LabelSelector: badSelector}},
			}},
			want: []string{
				"spec.groups[0].name: Required value", "spec.groups[1].limit: Invalid value: 0: must be at least 1",
				`spec.groups[2].name: Duplicate value: "a"`, `spec.groups[2].limit: Invalid value: "0%"`, `spec.groups[3].limit: Invalid value: "many"`,
				`spec.groups[4].limit: Invalid value: "101%"`, `spec.groups[5].labelSelector.matchLabels: Invalid value: "re gion"`,
				`spec.groups[5].labelSelector.matchExpressions[0].operator: Invalid value: "Is"`,
				`spec.groups[5].labelSelector.matchExpressions[1].values: Required value`,
			},
		},
		"copies do not overflow": {
			spec: v1alpha1.PlacementPolicySpec{Groups: []v1alpha1.ClusterGroup{{Name: "a"}}, Division: duplicate},
			want: []string{"spec.groups: Forbidden: may not be specified when division.type is Duplicate"},
		},
		"numbers of clusters are about a division": {
			spec: v1alpha1.PlacementPolicySpec{MinClusters: 1, MaxClusters: 1},
			want: []string{"spec.minClusters: Forbidden", "spec.maxClusters: Forbidden"},
		},
		"numbers of clusters are not negative": {
			spec: v1alpha1.PlacementPolicySpec{MinClusters: -1, MaxClusters: -1, Division: divide},
			want: []string{"spec.minClusters: Invalid value: -1", "spec.maxClusters: Invalid value: -1"},
		},
		"the least is not more than the most": {
			spec: v1alpha1.PlacementPolicySpec{MinClusters: 3, MaxClusters: 2, Division: divide},
			want: []string{"spec.minClusters: Invalid value: 3: must not be greater than maxClusters"},
		},
		"a spread has a label, a skew and an action": {
			spec: v1alpha1.PlacementPolicySpec{Division: divide, Spread: []v1alpha1.SpreadConstraint{
				{}, {TopologyKey: "zone", MaxSkew: 1, WhenUnsatisfiable: "Complain"}, {TopologyKey: "zone", MaxSkew: 1, WhenUnsatisfiable: v1alpha1.DoNotPlace},
			}},
			want: []string{
				"spec.spread[0].topologyKey: Required value", "spec.spread[0].maxSkew: Invalid value: 0", `spec.spread[0].whenUnsatisfiable: Unsupported value: ""`,
				`spec.spread[1].whenUnsatisfiable: Unsupported value: "Complain": supported values: "DoNotPlace", "PlaceAnyway"`,
				`spec.spread[2].topologyKey: Duplicate value: "zone"`,
			},
		},
		"only what is divided is spread": {
			spec: v1alpha1.PlacementPolicySpec{Division: duplicate, Spread: []v1alpha1.SpreadConstraint{
				{TopologyKey: "zone", MaxSkew: 1, WhenUnsatisfiable: v1alpha1.DoNotPlace},
			}},
			want: []string{"spec.spread: Forbidden: may only be specified when division.type is Divide"},
		},
		"what is spread has no least share": {
			spec: v1alpha1.PlacementPolicySpec{
				Division: &v1alpha1.Division{Type: v1alpha1.Divide, By: v1alpha1.ByEven, MinReplicas: 2},
				Spread:   []v1alpha1.SpreadConstraint{{TopologyKey: "zone", MaxSkew: 1, WhenUnsatisfiable: v1alpha1.DoNotPlace}},
			},
			want: []string{"spec.division.minReplicas: Forbidden: may not be combined with spread or groups"},
		},
		"affinity is not about custom resources": {
			spec: v1alpha1.PlacementPolicySpec{Affinity: []v1alpha1.WorkloadAffinity{
				{Workloads: &v1alpha1.WorkloadSelector{Kinds: []string{"Deployment", "Widget.example.com"}}},
			}},
			want: []string{`spec.affinity[0].workloads.kinds[1]: Unsupported value: "Widget.example.com"`},
		},
		"affinity selects by what can be read": {
			spec: v1alpha1.PlacementPolicySpec{
				Affinity:     []v1alpha1.WorkloadAffinity{{Workloads: &v1alpha1.WorkloadSelector{Kinds: []string{"Service"}}, Weight: ptr.To[int32](0)}},
				AntiAffinity: []v1alpha1.WorkloadAffinity{{Workloads: &v1alpha1.WorkloadSelector{}, Weight: ptr.To[int32](101)}},
			},
			want: []string{
				`spec.affinity[0].workloads.kinds[0]: Unsupported value: "Service"`, "spec.affinity[0].weight: Invalid value: 0",
				"spec.antiAffinity[0].weight: Invalid value: 101",
			},
		},
		"the least share is not negative": {
			spec: v1alpha1.PlacementPolicySpec{Division: &v1alpha1.Division{Type: v1alpha1.Divide, By: v1alpha1.ByEven, MinReplicas: -1}},
			want: []string{"spec.division.minReplicas: Invalid value: -1"},
		},
		"copies are whole": {
			spec: v1alpha1.PlacementPolicySpec{Division: &v1alpha1.Division{Type: v1alpha1.Duplicate, MinReplicas: 1}},
			want: []string{"spec.division.minReplicas: Forbidden"},
		},
	} {
		t.Run(name, func(t *testing.T) { checkSpec(t, test.spec, test.want) })
	}
}
