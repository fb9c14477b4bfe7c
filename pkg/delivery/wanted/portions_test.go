package wanted

import (
	"maps"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	manifold "github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/delivery"
)

// sized is a workload with some replicas, none for a negative number.
func sized(kind string, replicas int64) *unstructured.Unstructured {
	out := web()
	out.SetKind(kind)
	if err := unstructured.SetNestedField(out.Object, replicas, "spec", "replicas"); err != nil {
		panic(err)
	}
	if replicas < 0 {
		unstructured.RemoveNestedField(out.Object, "spec", "replicas")
	}
	return out
}

func TestClustersHaveTheReplicasOfTheirOwnTargets(t *testing.T) {
	autoscaler := object("autoscaling/v2", "HorizontalPodAutoscaler", "web", map[string]any{
		"spec": map[string]any{"scaleTargetRef": map[string]any{"kind": "Deployment", "name": "web"}},
	})
	set := func(east, west string) delivery.Set {
		return delivery.Set{delivery.Primary: {Clusters: map[string]delivery.Part{
			"east": {Revision: delivery.Revision{Name: east}, Target: "eu"}, "west": {Revision: delivery.Revision{Name: west}, Target: "us"},
		}}}
	}
	weighted := set("web-v2", "web-v2")
	for cluster, part := range weighted[delivery.Primary].Clusters {
		part.Weight = ptr.To(int32(50))
		weighted[delivery.Primary].Clusters[cluster] = part
	}
	for name, test := range map[string]struct {
		app Application
		set delivery.Set
		// contents are by revision and target.
		contents map[string][]*unstructured.Unstructured
		// want are the parts of clusters, nil if each has the number of the object, which is sum.
		want map[string]int32
		sum  int64
	}{
		"all say the same": {
			set: set("web-v2", "web-v2"), contents: map[string][]*unstructured.Unstructured{"web-v2/eu": {sized("Deployment", 3)}, "web-v2/us": {sized("Deployment", 3)}}, sum: 3,
		},
		"each says its own": {
			set: set("web-v2", "web-v2"), contents: map[string][]*unstructured.Unstructured{"web-v2/eu": {sized("Deployment", 2)}, "web-v2/us": {sized("Deployment", 6)}},
			want: map[string]int32{"east": 2, "west": 6}, sum: 8,
		},
		"one says nothing, which is one": {
			set: set("web-v2", "web-v2"), contents: map[string][]*unstructured.Unstructured{"web-v2/eu": {sized("Deployment", -1)}, "web-v2/us": {sized("Deployment", 6)}},
			want: map[string]int32{"east": 1, "west": 6}, sum: 7,
		},
		"one says that there are to be none": {
			set: set("web-v2", "web-v2"), contents: map[string][]*unstructured.Unstructured{"web-v2/eu": {sized("Deployment", 0)}, "web-v2/us": {sized("Deployment", 6)}},
			want: map[string]int32{"west": 6}, sum: 6,
		},
		"half way each has what its own revision says": {
			set: set("web-v2", "web-v1"), contents: map[string][]*unstructured.Unstructured{
				"web-v1/eu": {sized("Deployment", 1)}, "web-v1/us": {sized("Deployment", 5)}, "web-v2/eu": {sized("Deployment", 2)}, "web-v2/us": {sized("Deployment", 6)},
			},
			want: map[string]int32{"east": 2, "west": 5}, sum: 7,
		},
		"another revision alone is no reason": {
			set: set("web-v2", "web-v1"), contents: map[string][]*unstructured.Unstructured{
				"web-v1/eu": {sized("Deployment", 3)}, "web-v1/us": {sized("Deployment", 3)}, "web-v2/eu": {sized("Deployment", 4)}, "web-v2/us": {sized("Deployment", 4)},
			},
			sum: 4,
		},
		"an autoscaler sets it": {
			set: set("web-v2", "web-v2"), contents: map[string][]*unstructured.Unstructured{"web-v2/eu": {sized("Deployment", 2), autoscaler}, "web-v2/us": {sized("Deployment", 6), autoscaler}},
		},
		"weights divide it": {
			set: weighted, contents: map[string][]*unstructured.Unstructured{"web-v2/eu": {sized("Deployment", 2)}, "web-v2/us": {sized("Deployment", 6)}},
			want: map[string]int32{"east": 5000, "west": 5000}, sum: 2,
		},
		"numbered pods cannot be divided so": {
			set: set("web-v2", "web-v2"), contents: map[string][]*unstructured.Unstructured{"web-v2/eu": {sized("StatefulSet", 2)}, "web-v2/us": {sized("StatefulSet", 6)}}, sum: 2,
		},
	} {
		t.Run(name, func(t *testing.T) {
			app := Application{Namespace: "shop", Name: "web", UID: "app", Pinned: true, Targets: func(delivery.Revision) []string { return []string{"eu", "us"} }}
			made, err := Make(app, test.set, "web-v2", func(part delivery.Part) ([]*unstructured.Unstructured, error) {
				return test.contents[part.Revision.Name+"/"+part.Target], nil
			})
			if err != nil || len(made.Policies) != 1 {
				t.Fatalf("%d policies, %v", len(made.Policies), err)
			}
			policy, object := made.Policies[0], made.Objects[0]
			if got := policy.Spec.Division; !maps.Equal(got.Weights, test.want) || (got.Type == manifold.Divide) != (test.want != nil) {
				t.Errorf("it is divided by %+v, want %v", got, test.want)
			}
			if got, _, _ := unstructured.NestedInt64(object.Manifest.Object, "spec", "replicas"); got != test.sum {
				t.Errorf("it has %d replicas, want %d", got, test.sum)
			}
			if got := object.Manifest.GetLabels()[v1alpha1.LabelPlacement]; got != policy.Name {
				t.Errorf("it follows %q, and the policy is %q", got, policy.Name)
			}
		})
	}
}
