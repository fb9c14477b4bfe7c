package projection

import (
	"fmt"
	"math/rand"
	"testing"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/manifold-dev/manifold/pkg/placement"
)

// running is a workload of as many replicas as its shares have together.
func running(shares map[string]int32) Placed {
	p := Placed{Demand: Demand{Template: &corev1.PodTemplateSpec{}}, Decision: placement.Decision{}}
	for cluster, replicas := range shares {
		p.Demand.Replicas += replicas
		p.Decision[cluster] = placement.Share{Replicas: replicas}
	}
	return p
}

// copies is a workload that every one of the clusters runs whole.
func copies(replicas int32, clusters ...string) Placed {
	p := running(nil)
	p.Demand.Replicas = replicas
	for _, cluster := range clusters {
		p.Decision[cluster] = placement.Share{Replicas: replicas}
	}
	return p
}

func budget(t *testing.T, spec policyv1.PodDisruptionBudgetSpec, cluster string, workloads ...Placed) policyv1.PodDisruptionBudgetSpec {
	t.Helper()
	in := &policyv1.PodDisruptionBudget{ObjectMeta: named("shop", "web"), Spec: spec}
	out, err := kindOf(t, in).Project(in, Part{Workloads: workloads}, Target{LogicalCluster: "logical", Cluster: cluster})
	if err != nil {
		t.Fatal(err)
	}
	return out.(*policyv1.PodDisruptionBudget).Spec
}

func TestADisruptionBudgetIsDividedWithItsWorkloads(t *testing.T) {
	type shares = map[string]int32
	minimum := func(v intstr.IntOrString) policyv1.PodDisruptionBudgetSpec {
		return policyv1.PodDisruptionBudgetSpec{MinAvailable: &v}
	}
	maximum := func(v intstr.IntOrString) policyv1.PodDisruptionBudgetSpec {
		return policyv1.PodDisruptionBudgetSpec{MaxUnavailable: &v}
	}
	number, percent := intstr.FromInt32, intstr.FromString
	tests := map[string]struct {
		in         policyv1.PodDisruptionBudgetSpec
		workloads  []Placed
		east, west string
	}{
		"one cluster has it whole":                  {minimum(number(2)), []Placed{running(shares{"east": 3})}, "2", "2"},
		"and has the percentage that was asked for": {maximum(percent("30%")), []Placed{running(shares{"east": 3})}, "30%", "0"},
		"pods that stay available are divided":      {minimum(number(4)), []Placed{running(shares{"east": 2, "west": 4})}, "1", "3"},
		"pods that may be missing are divided":      {maximum(number(3)), []Placed{running(shares{"east": 2, "west": 4})}, "1", "2"},
		"one pod that may be missing is in one cluster": {
			maximum(number(1)), []Placed{running(shares{"east": 3, "west": 3})}, "1", "0",
		},
		"a percentage is one of all replicas": {minimum(percent("50%")), []Placed{running(shares{"east": 1, "west": 1})}, "1", "0"},
		"and is rounded up once":              {maximum(percent("30%")), []Placed{running(shares{"east": 1, "west": 1})}, "1", "0"},
		"several workloads count together": {
			maximum(number(4)), []Placed{running(shares{"east": 2}), running(shares{"east": 1, "west": 1})}, "3", "1",
		},
		"more than there are keep everything": {minimum(number(10)), []Placed{running(shares{"east": 2, "west": 3})}, "4", "6"},
		"a share of nothing guards nothing":   {minimum(number(2)), []Placed{running(shares{"east": 3, "west": 0})}, "2", "0"},
		"copies of a whole have a budget each": {
			minimum(number(2)), []Placed{copies(3, "east", "west")}, "2", "2",
		},
		"copies beside others are counted together": {
			maximum(number(4)), []Placed{copies(2, "east", "west"), running(shares{"west": 4})}, "1", "3",
		},
		"without replicas each cluster keeps what must stay": {minimum(number(2)), []Placed{running(shares{"east": 0, "west": 0}), running(shares{"west": 0})}, "2", "2"},
		"without replicas nothing may be missing":            {maximum(number(2)), []Placed{running(shares{"east": 0}), running(shares{"west": 0})}, "0", "0"},
		"a cluster that others take over from keeps what must stay": {
			minimum(number(2)), []Placed{running(shares{"west": 3})}, "2", "2",
		},
		"a cluster that others take over from spares nothing": {
			maximum(percent("50%")), []Placed{running(shares{"west": 3})}, "0", "50%",
		},
		"a bare budget stays bare": {policyv1.PodDisruptionBudgetSpec{}, []Placed{running(shares{"east": 1, "west": 1})}, "", ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			for cluster, want := range map[string]string{"east": test.east, "west": test.west} {
				spec, got := budget(t, test.in, cluster, test.workloads...), ""
				for _, v := range []*intstr.IntOrString{spec.MinAvailable, spec.MaxUnavailable} {
					if v != nil {
						got += v.String()
					}
				}
				if got != want {
					t.Errorf("%s gets %q, want %q", cluster, got, want)
				}
			}
		})
	}
}

// disruptions is how many pods a disruption controller lets go, of which all are healthy.
func disruptions(t *testing.T, spec policyv1.PodDisruptionBudgetSpec, pods int32) int32 {
	t.Helper()
	scaled := func(v intstr.IntOrString) int32 {
		n, err := intstr.GetScaledValueFromIntOrPercent(&v, int(pods), true)
		if err != nil {
			t.Fatal(err)
		}
		return int32(n)
	}
	if spec.MinAvailable != nil {
		return max(0, pods-scaled(*spec.MinAvailable))
	}
	return min(pods, scaled(*spec.MaxUnavailable))
}

// TestClustersTogetherAllowNoMoreThanTheWhole compares with the disruption controller's own arithmetic, on healthy pods.
func TestClustersTogetherAllowNoMoreThanTheWhole(t *testing.T) {
	random := rand.New(rand.NewSource(1))
	clusters := []string{"east", "north", "west"}
	for range 2000 {
		var workloads []Placed
		var replicas int32
		pods := map[string]int32{}
		for range 1 + random.Intn(3) {
			shares := map[string]int32{}
			for _, cluster := range clusters[:1+random.Intn(3)] {
				shares[cluster] = int32(random.Intn(8))
				pods[cluster] += shares[cluster]
				replicas += shares[cluster]
			}
			if w := running(shares); !w.copied() {
				workloads = append(workloads, w)
				continue
			}
			for cluster, n := range shares {
				pods[cluster] -= n
				replicas -= n
			}
		}
		value := ptr.To(intstr.FromInt32(int32(random.Intn(12))))
		if random.Intn(2) == 0 {
			value = ptr.To(intstr.FromString(fmt.Sprintf("%d%%", random.Intn(101))))
		}
		whole := policyv1.PodDisruptionBudgetSpec{MinAvailable: value}
		if random.Intn(2) == 0 {
			whole = policyv1.PodDisruptionBudgetSpec{MaxUnavailable: value}
		}
		var got int32
		for cluster, n := range pods {
			got += disruptions(t, budget(t, whole, cluster, workloads...), n)
		}
		if want := disruptions(t, whole, replicas); got > want {
			t.Fatalf("%v over %v allows %d, want at most %d", value, pods, got, want)
		}
	}
}
