package manifold

import (
	"context"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	metav1apply "k8s.io/client-go/applyconfigurations/meta/v1"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	apply "github.com/manifold-dev/manifold/generated/applyconfiguration/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/generated/clientset/versioned"
)

func connect(t *testing.T) (context.Context, *rest.Config, versioned.Interface) {
	t.Helper()
	config := api.Serve(t)
	client, err := versioned.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return t.Context(), config, client
}

func must[T any](t *testing.T) func(T, error) T {
	return func(value T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return value
	}
}

func TestDiscovery(t *testing.T) {
	_, config, _ := connect(t)
	client := must[*discovery.DiscoveryClient](t)(discovery.NewDiscoveryClientForConfig(config))
	list := must[*metav1.APIResourceList](t)(client.ServerResourcesForGroupVersion("manifold.dev/v1alpha1"))

	var got []string
	for _, resource := range list.APIResources {
		got = append(got, strings.Join([]string{
			resource.Name, resource.SingularName, resource.Kind,
			strings.Join(resource.ShortNames, ","), strings.Join(resource.Categories, ","),
			map[bool]string{true: "namespaced", false: "global"}[resource.Namespaced],
		}, " "))
	}
	want := []string{
		"clusterplacementpolicies clusterplacementpolicy ClusterPlacementPolicy cpp manifold global",
		"clusterplacementpolicies/status  ClusterPlacementPolicy   global",
		"clusters cluster Cluster mcl manifold global",
		"clusters/status  Cluster   global",
		"placementpolicies placementpolicy PlacementPolicy pp manifold namespaced",
		"placementpolicies/status  PlacementPolicy   namespaced",
	}
	if !slices.Equal(got, want) {
		t.Errorf("discovered\n  %s\nwant\n  %s", strings.Join(got, "\n  "), strings.Join(want, "\n  "))
	}
}

func TestExplainFindsTheFields(t *testing.T) {
	_, config, _ := connect(t)
	client := must[*discovery.DiscoveryClient](t)(discovery.NewDiscoveryClientForConfig(config))
	paths, err := client.OpenAPIV3().Paths()
	if err != nil {
		t.Fatal(err)
	}
	document := string(must[[]byte](t)(paths["apis/manifold.dev/v1alpha1"].Schema("application/json")))
	for _, want := range []string{
		"unschedulable keeps new replicas away.",
		`"x-kubernetes-list-map-keys":["type"]`,
		`{"group":"manifold.dev","kind":"Cluster","version":"v1alpha1"}`,
		`"#/components/schemas/io.k8s.api.core.v1.Taint"`,
		"Possible enum values",
	} {
		if !strings.Contains(document, want) {
			t.Errorf("the OpenAPI document has no %s", want)
		}
	}
}

func TestClusterGenerationCountsSpecsAlone(t *testing.T) {
	ctx, _, client := connect(t)
	clusters := client.ManifoldV1alpha1().Clusters()
	cluster := must[*v1alpha1.Cluster](t)(clusters.Create(ctx, &v1alpha1.Cluster{
		ObjectMeta: metav1.ObjectMeta{Name: "east", Generation: 7},
		Status:     v1alpha1.ClusterStatus{KubernetesVersion: "v0.0.1"},
	}, metav1.CreateOptions{}))
	if cluster.Generation != 1 || cluster.Status.KubernetesVersion != "" {
		t.Errorf("created with generation %d and version %q, want 1 and none", cluster.Generation, cluster.Status.KubernetesVersion)
	}

	cluster.Labels = map[string]string{"region": "eu"}
	cluster = must[*v1alpha1.Cluster](t)(clusters.Update(ctx, cluster, metav1.UpdateOptions{}))
	if cluster.Generation != 1 || cluster.Labels["region"] != "eu" {
		t.Errorf("a new label left generation %d and labels %v, want 1 and the label", cluster.Generation, cluster.Labels)
	}

	cluster.Spec.Unschedulable = true
	cluster.Status.KubernetesVersion = "v0.0.2"
	cluster = must[*v1alpha1.Cluster](t)(clusters.Update(ctx, cluster, metav1.UpdateOptions{}))
	if cluster.Generation != 2 || !cluster.Spec.Unschedulable || cluster.Status.KubernetesVersion != "" {
		t.Errorf("an update left generation %d, spec %+v, status %+v, want 2 and only the spec changed",
			cluster.Generation, cluster.Spec, cluster.Status)
	}
}

func TestClusterStatusUpdateChangesTheStatusAlone(t *testing.T) {
	ctx, _, client := connect(t)
	clusters := client.ManifoldV1alpha1().Clusters()
	cluster := must[*v1alpha1.Cluster](t)(clusters.Create(ctx, &v1alpha1.Cluster{
		ObjectMeta: metav1.ObjectMeta{Name: "east", Labels: map[string]string{"region": "eu"}},
	}, metav1.CreateOptions{}))

	cluster.Labels["region"] = "us"
	cluster.Spec.Unschedulable = true
	cluster.Status.Nodes = v1alpha1.NodeCount{Total: 3, Ready: 2}
	got := must[*v1alpha1.Cluster](t)(clusters.UpdateStatus(ctx, cluster, metav1.UpdateOptions{}))
	if got.Labels["region"] != "eu" || got.Spec.Unschedulable || got.Generation != 1 || got.Status.Nodes.Total != 3 {
		t.Errorf("labels %v, spec %+v, generation %d, nodes %+v; want only the nodes changed",
			got.Labels, got.Spec, got.Generation, got.Status.Nodes)
	}

	got.Status.Nodes.Ready = 4
	_, err := clusters.UpdateStatus(ctx, got, metav1.UpdateOptions{})
	if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "status.nodes.ready") {
		t.Errorf("4 of 3 nodes ready: %v, want a refusal of status.nodes.ready", err)
	}
}

func TestServerSideApplyKeepsOwnersApart(t *testing.T) {
	ctx, _, client := connect(t)
	clusters := client.ManifoldV1alpha1().Clusters()
	admin := metav1.ApplyOptions{FieldManager: "admin"}
	joined := apply.Cluster("east").WithSpec(apply.ClusterSpec().
		WithConnection(apply.ClusterConnection().
			WithSecretRef(apply.SecretReference().WithNamespace("manifold-system").WithName("cluster-east"))).
		WithLimits(corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("4")}))
	must[*v1alpha1.Cluster](t)(clusters.Apply(ctx, joined, admin))

	reported := apply.Cluster("east").WithStatus(apply.ClusterStatus().WithConditions(metav1apply.Condition().
		WithType(v1alpha1.ClusterReady).WithStatus(metav1.ConditionTrue).WithReason("Healthy").WithMessage("").
		WithLastTransitionTime(metav1.Now())))
	must[*v1alpha1.Cluster](t)(clusters.ApplyStatus(ctx, reported, metav1.ApplyOptions{FieldManager: "prober"}))

	cordoned := apply.Cluster("east").WithSpec(apply.ClusterSpec().WithUnschedulable(true))
	got := must[*v1alpha1.Cluster](t)(clusters.Apply(ctx, cordoned, metav1.ApplyOptions{FieldManager: "cordon"}))
	if got.Spec.Connection.SecretRef == nil || len(got.Status.Conditions) != 1 || !got.Spec.Unschedulable {
		t.Errorf("one manager's apply took away another's fields: %+v %+v", got.Spec, got.Status)
	}

	extracted, err := apply.ExtractCluster(got, "cordon")
	if err != nil {
		t.Fatal(err)
	}
	if extracted.Spec == nil || extracted.Spec.Unschedulable == nil || extracted.Spec.Connection != nil {
		t.Errorf("cordon owns %+v, want unschedulable alone", extracted.Spec)
	}

	stolen := apply.Cluster("east").WithSpec(apply.ClusterSpec().
		WithLimits(corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("8")}))
	_, err = clusters.Apply(ctx, stolen, metav1.ApplyOptions{FieldManager: "other"})
	if !apierrors.IsConflict(err) || !strings.Contains(err.Error(), ".spec.limits.cpu") {
		t.Errorf("applying another manager's limit: %v, want a conflict over .spec.limits.cpu", err)
	}
}

func TestRefusalsNameTheField(t *testing.T) {
	ctx, _, client := connect(t)
	_, err := client.ManifoldV1alpha1().PlacementPolicies("shop").Create(ctx, &v1alpha1.PlacementPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: "split"},
		Spec: v1alpha1.PlacementPolicySpec{Division: &v1alpha1.Division{
			Type: v1alpha1.Divide, By: v1alpha1.ByWeights, Weights: map[string]int32{"east": -1, "west": 1},
		}},
	}, metav1.CreateOptions{})
	if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "spec.division.weights[east]") {
		t.Errorf("a negative weight: %v, want a refusal of spec.division.weights[east]", err)
	}

	manifest := []byte(`{"metadata":{"name":"default"},"spec":{"keepTogehter":true}}`)
	err = client.ManifoldV1alpha1().RESTClient().Post().Resource("clusterplacementpolicies").
		Param("fieldValidation", "Strict").Body(manifest).Do(ctx).Error()
	if err == nil || !strings.Contains(err.Error(), `unknown field "spec.keepTogehter"`) {
		t.Errorf("an unknown field: %v, want a refusal of spec.keepTogehter", err)
	}
}

func TestPolicyCanChangeFromDivideToDuplicate(t *testing.T) {
	ctx, _, client := connect(t)
	policies := client.ManifoldV1alpha1().PlacementPolicies("shop")
	policy := must[*v1alpha1.PlacementPolicy](t)(policies.Create(ctx, &v1alpha1.PlacementPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: "split"},
		Spec:       v1alpha1.PlacementPolicySpec{Division: &v1alpha1.Division{Type: v1alpha1.Divide}},
	}, metav1.CreateOptions{}))
	if policy.Spec.Division.By != v1alpha1.ByCapacity || policy.Generation != 1 {
		t.Errorf("created %+v, generation %d, want by Capacity and 1", policy.Spec.Division, policy.Generation)
	}

	patch := []byte(`{"spec":{"division":{"type":"Duplicate"}}}`)
	policy = must[*v1alpha1.PlacementPolicy](t)(policies.Patch(ctx, "split", types.MergePatchType, patch, metav1.PatchOptions{}))
	if policy.Spec.Division.By != "" || policy.Generation != 2 {
		t.Errorf("patched to %+v, generation %d, want no measure and 2", policy.Spec.Division, policy.Generation)
	}

	patch = []byte(`{"spec":{"division":{"by":"Even"}}}`)
	_, err := policies.Patch(ctx, "split", types.MergePatchType, patch, metav1.PatchOptions{})
	if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "spec.division.by") {
		t.Errorf("a measure of one's own for Duplicate: %v, want a refusal of spec.division.by", err)
	}
}

// The namespace controller empties namespaces through a metadata client, which prefers protobuf.
func TestNamespacesCanBeEmptied(t *testing.T) {
	ctx, config, client := connect(t)
	policies := client.ManifoldV1alpha1().PlacementPolicies("shop")
	for _, name := range []string{"one", "two"} {
		policy := &v1alpha1.PlacementPolicy{ObjectMeta: metav1.ObjectMeta{Name: name}}
		must[*v1alpha1.PlacementPolicy](t)(policies.Create(ctx, policy, metav1.CreateOptions{}))
	}
	generic := must[metadata.Interface](t)(metadata.NewForConfig(config)).
		Resource(v1alpha1.SchemeGroupVersion.WithResource("placementpolicies")).Namespace("shop")
	list := must[*metav1.PartialObjectMetadataList](t)(generic.List(ctx, metav1.ListOptions{}))
	if len(list.Items) != 2 {
		t.Errorf("the metadata client lists %d policies, want 2", len(list.Items))
	}
	if err := generic.DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{}); err != nil {
		t.Errorf("delete all policies of the namespace: %v", err)
	}
	left := must[*v1alpha1.PlacementPolicyList](t)(policies.List(ctx, metav1.ListOptions{}))
	if len(left.Items) != 0 {
		t.Errorf("%d policies are left", len(left.Items))
	}
}
