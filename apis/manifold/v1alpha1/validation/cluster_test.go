package validation

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
)

// check compares refusals by "field: kind of error", or by a longer beginning where the text matters.
func check(t *testing.T, got field.ErrorList, want []string) {
	t.Helper()
	var texts []string
	for _, err := range got {
		texts = append(texts, err.Error())
	}
	matches := slices.EqualFunc(texts, want, strings.HasPrefix)
	if !matches {
		t.Errorf("refusals:\n  %s\nwant these, or longer ones:\n  %s", strings.Join(texts, "\n  "), strings.Join(want, "\n  "))
	}
}

func cluster(name string, spec v1alpha1.ClusterSpec) *v1alpha1.Cluster {
	return &v1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name, ResourceVersion: "1"}, Spec: spec}
}

func connection(namespace, name string) v1alpha1.ClusterConnection {
	return v1alpha1.ClusterConnection{SecretRef: &v1alpha1.SecretReference{Namespace: namespace, Name: name}}
}

func taint(key, value string, effect corev1.TaintEffect) corev1.Taint {
	return corev1.Taint{Key: key, Value: value, Effect: effect}
}

func quantities(namesAndValues ...string) corev1.ResourceList {
	list := corev1.ResourceList{}
	for pair := range slices.Chunk(namesAndValues, 2) {
		list[corev1.ResourceName(pair[0])] = resource.MustParse(pair[1])
	}
	return list
}

func TestValidateClusterName(t *testing.T) {
	for name, test := range map[string]struct {
		cluster string
		want    []string
	}{
		"a DNS label":                {cluster: "eu-west-1"},
		"a label of 63 characters":   {cluster: strings.Repeat("a", 63)},
		"a label of 64 characters":   {cluster: strings.Repeat("a", 64), want: []string{"metadata.name: Invalid value"}},
		"a dot":                      {cluster: "eu.west", want: []string{"metadata.name: Invalid value"}},
		"capital letters":            {cluster: "East", want: []string{"metadata.name: Invalid value"}},
		"the star that pins use":     {cluster: "*", want: []string{"metadata.name: Invalid value"}},
		"the comma that pins use":    {cluster: "east,west", want: []string{"metadata.name: Invalid value"}},
		"a name that is left empty":  {cluster: "", want: []string{"metadata.name: Required value"}},
		"a dash at the end of names": {cluster: "east-", want: []string{"metadata.name: Invalid value"}},
	} {
		t.Run(name, func(t *testing.T) {
			check(t, ValidateCluster(cluster(test.cluster, v1alpha1.ClusterSpec{})), test.want)
		})
	}
}

func TestTheNetworkOfAClusterIsALabelAndItsRangesAreOfPods(t *testing.T) {
	for name, test := range map[string]struct {
		network string
		cidrs   []string
		want    []string
	}{
		"nothing":                    {},
		"a network":                  {network: "mesh"},
		"a network with ranges":      {network: "mesh", cidrs: []string{"10.1.0.0/16", "fd00:1::/48"}},
		"ranges before the network":  {cidrs: []string{"10.1.0.0/16"}},
		"a network with a dot":       {network: "mesh.eu", want: []string{"spec.network: Invalid value"}},
		"no range":                   {cidrs: []string{"10.1.0.0"}, want: []string{"spec.podCIDRs[0]: Invalid value"}},
		"a range that begins inside": {cidrs: []string{"10.1.0.0/16", "10.2.0.1/16"}, want: []string{"spec.podCIDRs[1]: Invalid value: \"10.2.0.1/16\": must begin with the first address of the range: 10.2.0.0/16"}},
		"everything":                 {cidrs: []string{"0.0.0.0/0"}, want: []string{"spec.podCIDRs[0]: Invalid value"}},
		"the machine itself":         {cidrs: []string{"127.0.0.0/8"}, want: []string{"spec.podCIDRs[0]: Invalid value"}},
		"the link":                   {cidrs: []string{"169.254.0.0/16", "fe80::/10"}, want: []string{"spec.podCIDRs[0]: Invalid value", "spec.podCIDRs[1]: Invalid value"}},
		"one within another":         {cidrs: []string{"10.0.0.0/8", "10.2.0.0/16"}, want: []string{"spec.podCIDRs[1]: Invalid value: \"10.2.0.0/16\": overlaps 10.0.0.0/8"}},
		"more than anybody has":      {cidrs: make([]string, 65), want: []string{"spec.podCIDRs: Too many"}},
	} {
		t.Run(name, func(t *testing.T) {
			check(t, ValidateCluster(cluster("east", v1alpha1.ClusterSpec{Network: test.network, PodCIDRs: test.cidrs})), test.want)
		})
	}
}

func TestValidateClusterSpec(t *testing.T) {
	for name, test := range map[string]struct {
		spec v1alpha1.ClusterSpec
		want []string
	}{
		"a cluster that nothing is known of yet is fine": {},
		"a complete spec is fine": {spec: v1alpha1.ClusterSpec{
			Connection: connection("manifold-system", "cluster-east"),
			Taints: []corev1.Taint{
				taint("manifold.dev/unreachable", "", corev1.TaintEffectNoExecute),
				taint("manifold.dev/unreachable", "", corev1.TaintEffectNoSchedule),
				taint("spot", "true", corev1.TaintEffectPreferNoSchedule),
			},
			Allows: v1alpha1.ClusterAllows{PodSecurity: v1alpha1.PodSecurityRestricted},
			Limits: quantities("cpu", "4", "memory", "8Gi", "pods", "0", "ephemeral-storage", "1Ti",
				"hugepages-2Mi", "1Gi", "nvidia.com/gpu", "2"),
		}},
		"a level of Pod Security is one of two": {
			spec: v1alpha1.ClusterSpec{Allows: v1alpha1.ClusterAllows{PodSecurity: "privileged"}},
			want: []string{`spec.allows.podSecurity: Unsupported value: "privileged": supported values: "baseline", "restricted"`},
		},
		"a Secret needs a namespace and a name": {
			spec: v1alpha1.ClusterSpec{Connection: connection("", "")},
			want: []string{
				"spec.connection.secretRef.namespace: Required value",
				"spec.connection.secretRef.name: Required value",
			},
		},
		"a Secret needs names that can exist": {
			spec: v1alpha1.ClusterSpec{Connection: connection("kube.system", "Cluster")},
			want: []string{
				`spec.connection.secretRef.namespace: Invalid value: "kube.system"`,
				`spec.connection.secretRef.name: Invalid value: "Cluster"`,
			},
		},
		"a taint needs a key and an effect": {
			spec: v1alpha1.ClusterSpec{Taints: []corev1.Taint{{}}},
			want: []string{"spec.taints[0].key: Required value", "spec.taints[0].effect: Required value"},
		},
		"a taint's key is a qualified name": {
			spec: v1alpha1.ClusterSpec{Taints: []corev1.Taint{taint("a/b/c", "", corev1.TaintEffectNoSchedule)}},
			want: []string{`spec.taints[0].key: Invalid value: "a/b/c"`},
		},
		"a taint's value is a label value": {
			spec: v1alpha1.ClusterSpec{Taints: []corev1.Taint{taint("spot", "not a label", corev1.TaintEffectNoSchedule)}},
			want: []string{`spec.taints[0].value: Invalid value: "not a label"`},
		},
		"a taint's effect is one of three": {
			spec: v1alpha1.ClusterSpec{Taints: []corev1.Taint{taint("spot", "", "Evict")}},
			want: []string{
				`spec.taints[0].effect: Unsupported value: "Evict": supported values: "NoSchedule", "PreferNoSchedule", "NoExecute"`,
			},
		},
		"a taint may not repeat with another value": {
			spec: v1alpha1.ClusterSpec{Taints: []corev1.Taint{
				taint("spot", "a", corev1.TaintEffectNoSchedule), taint("spot", "b", corev1.TaintEffectNoSchedule),
			}},
			want: []string{`spec.taints[1]: Duplicate value: "spot:NoSchedule"`},
		},
		"a limit may not be negative": {
			spec: v1alpha1.ClusterSpec{Limits: quantities("memory", "-1Gi", "cpu", "-1")},
			want: []string{
				`spec.limits[cpu]: Invalid value: "-1": must not be negative`,
				`spec.limits[memory]: Invalid value: "-1Gi": must not be negative`,
			},
		},
		"a limit names a resource that pods can request": {
			spec: v1alpha1.ClusterSpec{Limits: quantities("cores", "4", "Memory Size", "1Gi")},
			want: []string{
				`spec.limits[Memory Size]: Invalid value: "Memory Size"`,
				`spec.limits[cores]: Invalid value: "cores": must be cpu, memory, ephemeral-storage, pods`,
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			check(t, ValidateCluster(cluster("east", test.spec)), test.want)
			check(t, ValidateClusterUpdate(cluster("east", test.spec), cluster("east", v1alpha1.ClusterSpec{})), test.want)
		})
	}
}

func TestValidateClusterUpdateKeepsTheIdentity(t *testing.T) {
	old, renamed := cluster("east", v1alpha1.ClusterSpec{}), cluster("west", v1alpha1.ClusterSpec{})
	old.UID, renamed.UID = "1", "1"
	check(t, ValidateClusterUpdate(renamed, old), []string{`metadata.name: Invalid value: "west": field is immutable`})
}

func TestValidateClusterStatusUpdate(t *testing.T) {
	ready := metav1.Condition{
		Type: v1alpha1.ClusterReady, Status: metav1.ConditionTrue, Reason: "Healthy", LastTransitionTime: metav1.Now(),
	}
	reasonless := ready
	reasonless.Reason = ""
	for name, test := range map[string]struct {
		status v1alpha1.ClusterStatus
		want   []string
	}{
		"an empty report is fine": {},
		"a complete report is fine": {status: v1alpha1.ClusterStatus{
			Conditions:  []metav1.Condition{ready},
			Nodes:       v1alpha1.NodeCount{Total: 3, Ready: 3},
			Capacity:    quantities("cpu", "12"),
			Allocatable: quantities("cpu", "11", "vendor-thing", "1"),
			Requested:   quantities("cpu", "0"),
		}},
		"a condition needs a reason": {
			status: v1alpha1.ClusterStatus{Conditions: []metav1.Condition{reasonless}},
			want:   []string{"status.conditions[0].reason: Required value"},
		},
		"there are no fewer than no nodes": {
			status: v1alpha1.ClusterStatus{Nodes: v1alpha1.NodeCount{Total: -1, Ready: -1}},
			want:   []string{"status.nodes.total: Invalid value: -1", "status.nodes.ready: Invalid value: -1"},
		},
		"no more nodes are ready than there are": {
			status: v1alpha1.ClusterStatus{Nodes: v1alpha1.NodeCount{Total: 2, Ready: 3}},
			want:   []string{"status.nodes.ready: Invalid value: 3: must not be more than total"},
		},
		"resources are not negative": {
			status: v1alpha1.ClusterStatus{
				Capacity: quantities("cpu", "-1"), Allocatable: quantities("cpu", "-2"), Requested: quantities("cpu", "-3"),
			},
			want: []string{
				`status.capacity[cpu]: Invalid value: "-1"`,
				`status.allocatable[cpu]: Invalid value: "-2"`,
				`status.requested[cpu]: Invalid value: "-3"`,
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			old, reported := cluster("east", v1alpha1.ClusterSpec{}), cluster("east", v1alpha1.ClusterSpec{})
			reported.Status = test.status
			check(t, ValidateClusterStatusUpdate(reported, old), test.want)
		})
	}
}
