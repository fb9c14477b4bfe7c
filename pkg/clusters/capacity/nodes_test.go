package capacity

import (
	"math/rand/v2"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
)

type nodeOption func(*corev1.Node)

func node(options ...nodeOption) *corev1.Node {
	n := &corev1.Node{}
	n.Status.Capacity = list("cpu", "4", "memory", "8Gi", "pods", "110")
	n.Status.Allocatable = list("cpu", "3500m", "memory", "7Gi", "pods", "110")
	n.Status.Conditions = []corev1.NodeCondition{
		{Type: corev1.NodeMemoryPressure, Status: corev1.ConditionFalse},
		{Type: corev1.NodeReady, Status: corev1.ConditionTrue},
	}
	n.Status.NodeInfo.OperatingSystem, n.Status.NodeInfo.Architecture = "linux", "amd64"
	for _, option := range options {
		option(n)
	}
	return n
}

func notReady(n *corev1.Node) { n.Status.Conditions[1].Status = corev1.ConditionUnknown }
func cordoned(n *corev1.Node) { n.Spec.Unschedulable = true }
func arm(n *corev1.Node)      { n.Status.NodeInfo.Architecture = "arm64" }
func silent(n *corev1.Node)   { n.Status.Conditions = nil }
func leaving(n *corev1.Node)  { n.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)} }

func in(region, zone string) nodeOption {
	return func(n *corev1.Node) {
		n.Labels = map[string]string{corev1.LabelTopologyRegion: region, corev1.LabelTopologyZone: zone, "other": "label"}
	}
}

func TestSumNodes(t *testing.T) {
	linux := corev1.NodeSystemInfo{OperatingSystem: "linux", Architecture: "amd64"}
	for name, test := range map[string]struct {
		nodes []*corev1.Node
		want  Nodes
	}{
		"a cluster without nodes has room for nothing": {
			want: Nodes{Capacity: list("cpu", "0", "memory", "0", "pods", "0"), Allocatable: list("cpu", "0", "memory", "0", "pods", "0")},
		},
		"ready nodes add up": {
			nodes: []*corev1.Node{node(), node()},
			want: Nodes{Count: v1alpha1.NodeCount{Total: 2, Ready: 2}, Info: linux,
				Capacity:    list("cpu", "8", "memory", "16Gi", "pods", "220"),
				Allocatable: list("cpu", "7", "memory", "14Gi", "pods", "220")},
		},
		"nodes that are not ready, cordoned, silent or leaving have capacity but nothing to allocate": {
			nodes: []*corev1.Node{node(), node(notReady), node(cordoned), node(silent), node(leaving)},
			want: Nodes{Count: v1alpha1.NodeCount{Total: 5, Ready: 1}, Info: linux,
				Capacity:    list("cpu", "20", "memory", "40Gi", "pods", "550"),
				Allocatable: list("cpu", "3500m", "memory", "7Gi", "pods", "110")},
		},
		"with all nodes down there are zeros, not gaps": {
			nodes: []*corev1.Node{node(notReady)},
			want: Nodes{Count: v1alpha1.NodeCount{Total: 1}, Info: linux,
				Capacity:    list("cpu", "4", "memory", "8Gi", "pods", "110"),
				Allocatable: list("cpu", "0", "memory", "0", "pods", "0")},
		},
		"labels and systems that all nodes share remain": {
			nodes: []*corev1.Node{node(in("eu", "a")), node(in("eu", "b")), node(in("eu", "a"), arm)},
			want: Nodes{Count: v1alpha1.NodeCount{Total: 3, Ready: 3}, Info: corev1.NodeSystemInfo{OperatingSystem: "linux"},
				Topology:    map[string]string{corev1.LabelTopologyRegion: "eu"},
				Capacity:    list("cpu", "12", "memory", "24Gi", "pods", "330"),
				Allocatable: list("cpu", "10500m", "memory", "21Gi", "pods", "330")},
		},
		"a label that one node lacks is not shared": {
			nodes: []*corev1.Node{node(in("eu", "a")), node()},
			want: Nodes{Count: v1alpha1.NodeCount{Total: 2, Ready: 2}, Info: linux,
				Capacity:    list("cpu", "8", "memory", "16Gi", "pods", "220"),
				Allocatable: list("cpu", "7", "memory", "14Gi", "pods", "220")},
		},
	} {
		t.Run(name, func(t *testing.T) {
			before := make([]*corev1.Node, len(test.nodes))
			trimmed := make([]*corev1.Node, len(test.nodes))
			for i, n := range test.nodes {
				before[i] = n.DeepCopy()
				short, err := TrimNode(n)
				if err != nil {
					t.Fatal(err)
				}
				trimmed[i] = short.(*corev1.Node)
			}
			for range 3 {
				if got := SumNodes(test.nodes); !equality.Semantic.DeepEqual(got, test.want) {
					t.Errorf("got  %+v\nwant %+v", got, test.want)
				}
				rand.Shuffle(len(test.nodes), func(i, j int) {
					test.nodes[i], test.nodes[j] = test.nodes[j], test.nodes[i]
					before[i], before[j] = before[j], before[i]
				})
			}
			if !equality.Semantic.DeepEqual(test.nodes, before) {
				t.Error("the nodes were changed")
			}
			if got := SumNodes(trimmed); !equality.Semantic.DeepEqual(got, test.want) {
				t.Errorf("trimmed nodes count differently:\ngot  %+v\nwant %+v", got, test.want)
			}
		})
	}
}

func TestTrimNodeDropsWhatIsLarge(t *testing.T) {
	n := node(in("eu", "a"))
	n.Name = "node-1"
	n.Annotations = map[string]string{"a": "b"}
	n.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "kubelet"}}
	n.Status.Images = []corev1.ContainerImage{{SizeBytes: 1}}
	got, err := TrimNode(n)
	if err != nil {
		t.Fatal(err)
	}
	trimmed := got.(*corev1.Node)
	if trimmed.Name != "node-1" || trimmed.Annotations != nil || trimmed.ManagedFields != nil || trimmed.Status.Images != nil {
		t.Errorf("got %+v", trimmed)
	}
	if len(n.Status.Images) != 1 {
		t.Error("the node that was given was changed")
	}
	if other, err := TrimNode("not a node"); err != nil || other != "not a node" {
		t.Errorf("what is not a node became %v, %v", other, err)
	}
}

func TestBound(t *testing.T) {
	for name, test := range map[string]struct{ list, limits, want corev1.ResourceList }{
		"without limits nothing changes":      {list: list("cpu", "4"), want: list("cpu", "4")},
		"a limit below bounds":                {list: list("cpu", "4", "memory", "8Gi"), limits: list("cpu", "2"), want: list("cpu", "2", "memory", "8Gi")},
		"a limit above does not":              {list: list("cpu", "4"), limits: list("cpu", "8"), want: list("cpu", "4")},
		"a limit of what is not there adds 0": {list: list("cpu", "4"), limits: list("memory", "1Gi"), want: list("cpu", "4")},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Bound(test.list, test.limits); !equality.Semantic.DeepEqual(got, test.want) {
				t.Errorf("got %v, want %v", got, test.want)
			}
		})
	}
}

func TestOnly(t *testing.T) {
	got := Only(list("cpu", "1", "example.com/license", "2"), list("cpu", "4", "memory", "8Gi"))
	if want := list("cpu", "1", "memory", "0"); !equality.Semantic.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
