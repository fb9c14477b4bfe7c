package projection

import (
	"fmt"
	"math/rand"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"
)

func amounts(pairs ...string) corev1.ResourceList {
	out := corev1.ResourceList{}
	for i := 0; i < len(pairs); i += 2 {
		out[corev1.ResourceName(pairs[i])] = resource.MustParse(pairs[i+1])
	}
	return out
}

// asking completes a workload by what each of its pods asks for.
func asking(w Placed, requests ...string) Placed {
	template := &corev1.PodTemplateSpec{}
	template.Spec.Containers = []corev1.Container{{Resources: corev1.ResourceRequirements{Requests: amounts(requests...)}}}
	w.Demand.Template = template
	return w
}

func templated(w Placed, change func(*corev1.PodSpec)) Placed {
	w.Demand.Template = w.Demand.Template.DeepCopy()
	change(&w.Demand.Template.Spec)
	return w
}

func hard(t *testing.T, in corev1.ResourceQuotaSpec, part Part, cluster string) corev1.ResourceList {
	t.Helper()
	quota := &corev1.ResourceQuota{ObjectMeta: named("shop", "all"), Spec: in}
	out, err := kindOf(t, quota).Project(quota, part, Target{LogicalCluster: "logical", Cluster: cluster})
	if err != nil {
		t.Fatal(err)
	}
	return out.(*corev1.ResourceQuota).Spec.Hard
}

func TestAQuotaBoundsWhatControllersBelowMake(t *testing.T) {
	quota := corev1.ResourceQuotaSpec{Hard: amounts(
		"pods", "4", "count/pods", "40", "cpu", "2", "requests.memory", "1Gi", "limits.cpu", "4", "requests.nvidia.com/gpu", "2",
		"hugepages-2Mi", "4Mi", "persistentvolumeclaims", "3", "requests.storage", "10Gi", "fast.storageclass.storage.k8s.io/requests.storage", "5Gi",
		"services", "2", "count/deployments.apps", "1", "secrets", "9", "services.nodeports", "0")}
	want := quota.DeepCopy().Hard
	for _, above := range []corev1.ResourceName{"services", "count/deployments.apps", "secrets", "services.nodeports"} {
		delete(want, above)
	}
	if got := hard(t, quota, Part{Workloads: []Placed{running(map[string]int32{"east": 2})}}, "east"); !equality.Semantic.DeepEqual(got, want) {
		t.Errorf("one cluster has %v, want %v", got, want)
	}
	kind := kindOf(t, &corev1.ResourceQuota{})
	if !kind.General(&corev1.ResourceQuota{Spec: quota}) {
		t.Error("it does not go where its namespace runs something")
	}
	if kind.General(&corev1.ResourceQuota{Spec: corev1.ResourceQuotaSpec{Hard: amounts("services", "2", "count/jobs.batch", "1")}}) {
		t.Error("one that bounds nothing below goes there")
	}
}

func TestAQuotaIsDividedByWhatWorkloadsAskFor(t *testing.T) {
	type shares = map[string]int32
	defaults := &corev1.LimitRange{Spec: corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{
		{Type: corev1.LimitTypeContainer, DefaultRequest: amounts("cpu", "3"), Default: amounts("cpu", "3")},
		{Type: corev1.LimitTypePod, Max: amounts("cpu", "9")},
	}}}
	important := templated(running(shares{"east": 2}), func(s *corev1.PodSpec) { s.PriorityClassName = "high" })
	ending := templated(running(shares{"east": 2}), func(s *corev1.PodSpec) { s.ActiveDeadlineSeconds = ptr.To[int64](1) })
	scoped := func(scope corev1.ResourceQuotaScope, operator corev1.ScopeSelectorOperator, values ...string) *corev1.ScopeSelector {
		return &corev1.ScopeSelector{MatchExpressions: []corev1.ScopedResourceSelectorRequirement{{ScopeName: scope, Operator: operator, Values: values}}}
	}
	tests := map[string]struct {
		in         corev1.ResourceQuotaSpec
		workloads  []Placed
		defaults   []*corev1.LimitRange
		east, west corev1.ResourceList
	}{
		"pods by their number": {
			in:        corev1.ResourceQuotaSpec{Hard: amounts("pods", "7", "count/pods", "14")},
			workloads: []Placed{running(shares{"east": 2}), running(shares{"east": 1, "west": 4})},
			east:      amounts("pods", "3", "count/pods", "6"), west: amounts("pods", "4", "count/pods", "8"),
		},
		"amounts by what the pods ask for": {
			in:        corev1.ResourceQuotaSpec{Hard: amounts("requests.cpu", "10", "memory", "1Gi")},
			workloads: []Placed{asking(running(shares{"east": 1}), "cpu", "4", "memory", "64Mi"), asking(running(shares{"west": 10}), "cpu", "100m", "memory", "64Mi")},
			east:      amounts("requests.cpu", "8", "memory", "97612893"), west: amounts("requests.cpu", "2", "memory", "976128931"),
		},
		"what the defaults of the namespace make of it counts": {
			in:        corev1.ResourceQuotaSpec{Hard: amounts("cpu", "8", "limits.cpu", "9")},
			workloads: []Placed{asking(running(shares{"east": 1}), "cpu", "1"), asking(running(shares{"west": 1}))},
			defaults:  []*corev1.LimitRange{defaults},
			east:      amounts("cpu", "2", "limits.cpu", "4500m"), west: amounts("cpu", "6", "limits.cpu", "4500m"),
		},
		"what nobody asks for goes by the number of pods": {
			in:        corev1.ResourceQuotaSpec{Hard: amounts("requests.nvidia.com/gpu", "4")},
			workloads: []Placed{running(shares{"east": 3, "west": 1})},
			east:      amounts("requests.nvidia.com/gpu", "3"), west: amounts("requests.nvidia.com/gpu", "1"),
		},
		"without pods clusters count alike": {
			in:        corev1.ResourceQuotaSpec{Hard: amounts("pods", "4")},
			workloads: []Placed{running(shares{"east": 0}), running(shares{"west": 0})},
			east:      amounts("pods", "2"), west: amounts("pods", "2"),
		},
		"only pods that it counts": {
			in:        corev1.ResourceQuotaSpec{Hard: amounts("pods", "4"), ScopeSelector: scoped("PriorityClass", "In", "high")},
			workloads: []Placed{important, running(shares{"west": 6})},
			east:      amounts("pods", "4"), west: amounts("pods", "0"),
		},
		"only pods that it counts, by what they are not": {
			in:        corev1.ResourceQuotaSpec{Hard: amounts("pods", "4"), ScopeSelector: scoped("PriorityClass", "NotIn", "low")},
			workloads: []Placed{important, running(shares{"west": 2})},
			east:      amounts("pods", "2"), west: amounts("pods", "2"),
		},
		"only pods that end": {
			in:        corev1.ResourceQuotaSpec{Hard: amounts("pods", "4"), Scopes: []corev1.ResourceQuotaScope{"Terminating"}},
			workloads: []Placed{ending, running(shares{"west": 6})},
			east:      amounts("pods", "4"), west: amounts("pods", "0"),
		},
		"only pods that ask for something": {
			in:        corev1.ResourceQuotaSpec{Hard: amounts("pods", "4"), Scopes: []corev1.ResourceQuotaScope{"NotBestEffort"}},
			workloads: []Placed{asking(running(shares{"east": 2}), "cpu", "1"), running(shares{"west": 6})},
			east:      amounts("pods", "4"), west: amounts("pods", "0"),
		},
		"copies of a whole share it, as all of them count": {
			in:        corev1.ResourceQuotaSpec{Hard: amounts("pods", "4")},
			workloads: []Placed{copies(2, "east", "west")},
			east:      amounts("pods", "2"), west: amounts("pods", "2"),
		},
		"a cluster that others take over from gets nothing new": {
			in:        corev1.ResourceQuotaSpec{Hard: amounts("pods", "4")},
			workloads: []Placed{running(shares{"west": 2})},
			east:      amounts("pods", "0"), west: amounts("pods", "4"),
		},
		"claims are left to the logical cluster": {
			in:        corev1.ResourceQuotaSpec{Hard: amounts("pods", "4", "requests.storage", "4Gi")},
			workloads: []Placed{running(shares{"east": 1, "west": 1})},
			east:      amounts("pods", "2"), west: amounts("pods", "2"),
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			part := Part{Workloads: test.workloads, LimitRanges: test.defaults}
			for cluster, want := range map[string]corev1.ResourceList{"east": test.east, "west": test.west} {
				if got := hard(t, test.in, part, cluster); !equality.Semantic.DeepEqual(got, want) {
					t.Errorf("%s gets %v, want %v", cluster, got, want)
				}
			}
		})
	}
}

// TestClustersTogetherNeverGetMoreThanTheQuota also gives each cluster what its workloads ask for wherever the quota has it all.
func TestClustersTogetherNeverGetMoreThanTheQuota(t *testing.T) {
	random := rand.New(rand.NewSource(1))
	clusters := []string{"east", "north", "west"}
	for range 500 {
		var workloads []Placed
		asked, all := map[string]int64{}, int64(0)
		for range 1 + random.Intn(4) {
			shares := map[string]int32{}
			cpu := int64(random.Intn(3000))
			for _, cluster := range clusters[:1+random.Intn(3)] {
				shares[cluster] = int32(random.Intn(9))
				asked[cluster] += cpu * int64(shares[cluster])
				all += cpu * int64(shares[cluster])
			}
			workloads = append(workloads, asking(running(shares), "cpu", fmt.Sprintf("%dm", cpu)))
		}
		quota := resource.NewMilliQuantity(random.Int63n(20000), resource.DecimalSI)
		var sum int64
		for _, cluster := range clusters {
			got := hard(t, corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{"cpu": *quota}}, Part{Workloads: workloads}, cluster)["cpu"]
			sum += got.MilliValue()
			if quota.MilliValue() >= all && got.MilliValue() < asked[cluster] {
				t.Fatalf("%s gets %v of %v, want the %dm that its pods ask for", cluster, &got, quota, asked[cluster])
			}
		}
		if sum > quota.MilliValue() {
			t.Fatalf("the clusters get %dm of %v", sum, quota)
		}
	}
}

func TestAQuotaIsInForceOnceItHasBeenCounted(t *testing.T) {
	kind := kindOf(t, &corev1.ResourceQuota{})
	quota := &corev1.ResourceQuota{Spec: corev1.ResourceQuotaSpec{Hard: amounts("pods", "1")}}
	if kind.InForce(quota) {
		t.Error("one that nobody has counted is in force")
	}
	quota.Status.Hard = amounts("pods", "2")
	if kind.InForce(quota) {
		t.Error("one that was counted before it changed is in force")
	}
	quota.Status.Hard = amounts("pods", "1")
	if !kind.InForce(quota) {
		t.Error("one that was counted is not in force")
	}
}
