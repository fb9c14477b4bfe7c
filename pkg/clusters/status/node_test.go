package status

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/clusters/capacity"
)

func eastCluster() *v1alpha1.Cluster {
	cluster := &v1alpha1.Cluster{Status: fullStatus()}
	cluster.Name, cluster.UID = "east", "object-uid"
	return cluster
}

var linuxNodes = &capacity.Nodes{Info: corev1.NodeSystemInfo{
	OperatingSystem: "linux", Architecture: "arm64", ContainerRuntimeVersion: "containerd://2.1.0", KernelVersion: "6.12"}}

func TestMirrorNodeOfAReadyCluster(t *testing.T) {
	cluster := eastCluster()
	want := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name: "east",
			Labels: map[string]string{
				"manifold.dev/cluster": "east", "node-role.kubernetes.io/cluster": "", "kubernetes.io/hostname": "east",
				"kubernetes.io/os": "linux", "kubernetes.io/arch": "arm64", "topology.kubernetes.io/region": "eu",
			},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "manifold.dev/v1alpha1", Kind: "Cluster", Name: "east", UID: "object-uid"}},
		},
		Spec: corev1.NodeSpec{ProviderID: "manifold://east", Taints: []corev1.Taint{}},
		Status: corev1.NodeStatus{
			Capacity:    cluster.Status.Capacity,
			Allocatable: cluster.Status.Allocatable,
			Conditions: []corev1.NodeCondition{{
				Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "ClusterReady",
				LastHeartbeatTime: metav1.NewTime(noon), LastTransitionTime: metav1.NewTime(noon),
			}},
			Addresses: []corev1.NodeAddress{{Type: corev1.NodeHostName, Address: "east"}},
			NodeInfo: corev1.NodeSystemInfo{
				SystemUUID: "uid-1", KubeletVersion: "v1.37.1", OSImage: "manifold cluster", KernelVersion: "6.12",
				ContainerRuntimeVersion: "containerd://2.1.0", OperatingSystem: "linux", Architecture: "arm64",
			},
		},
	}
	if diff := cmp.Diff(want, Node(cluster, linuxNodes, nil)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestMirrorNode(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*v1alpha1.Cluster)
		check  func(*corev1.Node) any
		want   any
	}{
		"a cordoned cluster is an unschedulable node": {
			change: func(c *v1alpha1.Cluster) { c.Spec.Unschedulable = true },
			check:  func(n *corev1.Node) any { return n.Spec.Unschedulable }, want: true,
		},
		"a limit makes the node smaller": {
			change: func(c *v1alpha1.Cluster) { c.Spec.Limits = resources("cpu", "1") },
			check:  func(n *corev1.Node) any { return n.Status.Allocatable.Cpu().String() }, want: "1",
		},
		"a cluster that has not been heard is a node of unknown state": {
			change: func(c *v1alpha1.Cluster) { c.Status = v1alpha1.ClusterStatus{} },
			check:  func(n *corev1.Node) any { return n.Status.Conditions[0].Status }, want: corev1.ConditionUnknown,
		},
		"a silent cluster is a tainted node": {
			change: func(c *v1alpha1.Cluster) {
				c.Status.Conditions = []metav1.Condition{readyCondition("Unknown", "Unreachable", noon)}
			},
			check: func(n *corev1.Node) any { return n.Spec.Taints[0].Key }, want: v1alpha1.TaintUnreachable,
		},
		"a label that the cluster has lost goes": {
			change: func(c *v1alpha1.Cluster) { c.Status.Topology = nil },
			check:  func(n *corev1.Node) any { _, has := n.Labels[corev1.LabelTopologyRegion]; return has }, want: false,
		},
		"labels of others stay": {
			change: func(*v1alpha1.Cluster) {},
			check:  func(n *corev1.Node) any { return n.Labels["team"] }, want: "red",
		},
	} {
		t.Run(name, func(t *testing.T) {
			last := Node(eastCluster(), linuxNodes, nil)
			last.Labels["team"] = "red"
			cluster := eastCluster()
			test.change(cluster)
			got := Node(cluster, nil, last)
			if diff := cmp.Diff(test.want, test.check(got)); diff != "" {
				t.Error(diff)
			}
			if got.Status.NodeInfo.ContainerRuntimeVersion != "containerd://2.1.0" {
				t.Error("what was known of the nodes was lost, as they could not be seen")
			}
			if again := Node(cluster, nil, got); !SameObject(got, again) || !SameStatus(got, again) {
				t.Errorf("a second time it changed again:\n%s", cmp.Diff(got, again))
			}
		})
	}
}
