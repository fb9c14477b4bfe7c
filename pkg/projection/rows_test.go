package projection_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/google/go-cmp/cmp"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/internal/typed"
	"github.com/manifold-dev/manifold/pkg/clusters/rights"
	"github.com/manifold-dev/manifold/pkg/identity"
	"github.com/manifold-dev/manifold/pkg/placement/build"
	"github.com/manifold-dev/manifold/pkg/placement/decide"
	"github.com/manifold-dev/manifold/pkg/projection"
	"github.com/manifold-dev/manifold/pkg/summary"
)

// mayWrite reports whether Manifold may make, change and delete objects of a kind in a cluster. Secrets are read by another role.
func mayWrite(kind projection.Kind) bool {
	return slices.ContainsFunc(rights.Syncer(), func(r rights.Right) bool {
		return r.Group == kind.Resource.Group && slices.Contains(r.Resources, kind.Resource.Resource) &&
			slices.Contains(r.Verbs, "create") && slices.Contains(r.Verbs, "patch") && slices.Contains(r.Verbs, "delete")
	})
}

// policyFor lists a kind.
func policyFor(kind string) *v1alpha1.PlacementPolicy {
	return &v1alpha1.PlacementPolicy{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "one"},
		Spec:       v1alpha1.PlacementPolicySpec{Workloads: &v1alpha1.WorkloadSelector{Kinds: []string{kind}}},
	}
}

// selecting returns a workload of a kind, whose controllers take for their own what has the label app=web. A ReplicationController selects by labels alone.
func selecting(t *testing.T, kind projection.Kind) projection.Object {
	t.Helper()
	for _, selector := range []string{`{"matchLabels":{"app":"web"}}`, `{"app":"web"}`} {
		out := kind.New()
		if json.Unmarshal([]byte(`{"spec":{"selector":`+selector+`}}`), out) == nil {
			return out
		}
	}
	t.Fatal("it has no selector")
	return nil
}

// A kind is a row here. Whatever else has a table of kinds has the same.
func TestEveryRowIsKnownWhereverKindsMatter(t *testing.T) {
	client := fake.NewClientset()
	factory := informers.NewSharedInformerFactory(client, 0)
	for _, kind := range projection.Kinds() {
		t.Run(kind.GVK.Kind, func(t *testing.T) {
			if made, err := scheme.Scheme.New(kind.GVK); err != nil || cmp.Equal(made, nil) {
				t.Errorf("clients do not know it: %v", err)
			}
			if _, err := factory.ForResource(kind.Resource); err != nil {
				t.Errorf("it cannot be watched: %v", err)
			}
			if _, err := typed.REST(client, kind.Resource.GroupVersion()); err != nil {
				t.Errorf("it cannot be written: %v", err)
			}
			if !mayWrite(kind) || kind.Right == "" {
				t.Errorf("there is no right to it, or nothing that the right is for: %q", kind.Right)
			}
			listed := len(projection.WorkloadKinds().ValidatePlacementPolicy(policyFor(kind.GVK.Kind))) == 0
			if listed != kind.Workload {
				t.Errorf("policies may list it: %t", listed)
			}
			summarised, known := summary.ForResource(kind.Resource)
			if kind.Workload && kind.Resource != identity.Pods && (!known || !summarised.Breakdown) { // the status of a pod is that of its cluster
				t.Error("it has no row in pkg/summary with a breakdown")
			}
			if kind.Workload && kind.Delivered == projection.NotDelivered {
				t.Error("applications may not contain it")
			}
			if kind.Workload && kind.Resource != identity.Pods {
				want := &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
				if got := kind.Controls(selecting(t, kind)); !cmp.Equal(want, got) {
					t.Errorf("nobody knows which pods are its own: %v", got)
				}
				if kind.Creator == "" && kind.GVK.Kind != "Deployment" { // whose pods are those of its ReplicaSets
					t.Error("nobody knows who makes its pods")
				}
			}
			if kind.Workload || known {
				if _, err := typed.For(client, kind.Resource, "shop"); err != nil {
					t.Errorf("nobody can note on it what was decided: %v", err)
				}
			}
		})
	}
	for _, kind := range summary.Kinds() {
		if _, ok := projection.ForResource(kind.Resource); !ok {
			t.Errorf("%s are summarised, and never projected", kind.Resource.Resource)
		}
	}
	var grouped []string
	for _, group := range projection.WorkloadGroups() {
		for _, resource := range group.Resources {
			grouped = append(grouped, strings.TrimSuffix(resource+"."+group.Name, "."))
		}
	}
	want := []string{"pods", "replicationcontrollers", "daemonsets.apps", "deployments.apps", "replicasets.apps", "statefulsets.apps", "jobs.batch"}
	if diff := cmp.Diff(want, grouped); diff != "" {
		t.Errorf("workloads by group: %s", diff)
	}
}

// The one thing that is said about a new kind is where its objects have what their pods are made of. Everything else follows from the row.
func TestARowOfANewKindGoesTheWholeWay(t *testing.T) {
	kind := projection.Custom(schema.GroupVersionKind{Group: "apps.kruise.io", Version: "v1alpha1", Kind: "CloneSet"}, "clonesets",
		projection.PodPathsOf(&v1alpha1.CustomWorkload{
			PodTemplatePaths: []string{".spec.template"}, SpecReplicasPath: ".spec.replicas", StatusReplicasPath: ".status.replicas", Divisible: true,
		}))
	above := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
		"replicas": int64(6), "template": map[string]any{"spec": map[string]any{"containers": []any{
			map[string]any{"name": "serve", "resources": map[string]any{"requests": map[string]any{"cpu": "2"}}},
		}}},
	}}}
	above.SetGroupVersionKind(kind.GVK)
	above.SetNamespace("shop")
	above.SetName("web")
	above.SetUID("above")
	above.SetGeneration(3)

	w, err := kind.WorkloadOf(above)
	if err != nil {
		t.Fatal(err)
	}
	request := build.Deployment(0).DividedBy(v1alpha1.ByCapacity).Listing(kind.ListedAs())
	request.Workload = w
	result := decide.Place(build.Snapshot(build.Cluster("east", 8), build.Cluster("west", 4)), request.Request)
	if want := build.Shares("east", 4, "west", 2); !result.Decision.Equal(want) {
		t.Fatalf("decided: %s, want %s", result.Decision, want)
	}

	reports := map[string]summary.CustomReport{}
	for cluster, share := range result.Decision {
		desired, err := kind.Project(above, projection.Part{Share: share, Decision: result.Decision}, projection.Target{LogicalCluster: "logical", Cluster: cluster})
		if err != nil {
			t.Fatal(err)
		}
		if got, _, _ := unstructured.NestedInt64(desired.(*unstructured.Unstructured).Object, "spec", "replicas"); got != int64(share.Replicas) {
			t.Errorf("projected to %s: %d replicas, want %d", cluster, got, share.Replicas)
		}
		if action := kind.Plan(desired, nil); action.Step != projection.Create {
			t.Errorf("planned for %s: %s", cluster, action.Step)
		}
		live := desired.DeepCopyObject().(*unstructured.Unstructured)
		live.SetUID("below")
		live.SetGeneration(1)
		live.Object["status"] = map[string]any{"replicas": int64(share.Replicas), "phase": "Up", "observedGeneration": int64(1)}
		if action := kind.Plan(desired, live); action.Step != projection.Nothing {
			t.Errorf("planned for %s, which has it: %s", cluster, action.Step)
		}
		if count, told := kind.Arrived(live.Object["status"].(map[string]any)); !told || count != share.Replicas {
			t.Errorf("%d replicas have arrived in %s (%t)", count, cluster, told)
		}
		reports[cluster] = summary.CustomReport{Generation: 3, Live: live}
	}

	status := summary.CustomStatus(above, summary.CustomInput{Clusters: result.Decision.Clusters(), Reports: reports})
	if diff := cmp.Diff(map[string]any{"phase": "Up", "observedGeneration": int64(3)}, status); diff != "" {
		t.Errorf("summarised: %s", diff)
	}
}
