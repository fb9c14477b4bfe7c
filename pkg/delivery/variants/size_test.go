package variants

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// web is how many pods of one workload the clusters have.
func web(replicas ...int32) map[string]map[string]int32 {
	out := map[string]map[string]int32{}
	for i, n := range replicas {
		out[fmt.Sprintf("c%d", i)] = map[string]int32{"Deployment/web": n}
	}
	return out
}

func TestSizesOfCopies(t *testing.T) {
	percent := func(n int) intstr.IntOrString { return intstr.FromString(fmt.Sprintf("%d%%", n)) }
	for name, test := range map[string]struct {
		size    Size
		primary map[string]map[string]int32
		want    map[string]map[string]int32
		err     string
	}{
		"rule 4: 10 % of 3 pods in each of 5 clusters are 2": {size: Size{Replicas: percent(10)}, primary: web(3, 3, 3, 3, 3), want: web(1, 1)},
		"and one in each if each counts by itself":           {size: Size{Replicas: percent(10), PerCluster: true}, primary: web(3, 3, 3, 3, 3), want: web(1, 1, 1, 1, 1)},
		"the largest remainder comes first":                  {size: Size{Replicas: percent(20)}, primary: web(2, 9, 4), want: map[string]map[string]int32{"c1": {"Deployment/web": 2}, "c2": {"Deployment/web": 1}}},
		"a number is that of all together":                   {size: Size{Replicas: intstr.FromInt32(2)}, primary: web(3, 3, 3), want: web(1, 1)},
		"or of each":                                         {size: Size{Replicas: intstr.FromInt32(2), PerCluster: true}, primary: web(3, 3, 3), want: web(2, 2, 2)},
		"there is at least one":                              {size: Size{Replicas: percent(1)}, primary: web(1, 1), want: web(1)},
		"there is at least one, whatever was written":        {size: Size{Replicas: intstr.FromInt32(0)}, primary: web(5), want: web(1)},
		"all are as many as there are":                       {size: Size{Replicas: percent(100)}, primary: web(3, 4), want: web(3, 4)},
		"nothing is copied of nothing":                       {size: Size{Replicas: percent(50)}, primary: web(0, 0), want: web()},
		"a cluster without pods gets none":                   {size: Size{Replicas: percent(100), PerCluster: true}, primary: web(3, 0), want: web(3)},
		"every workload counts by itself": {
			size:    Size{Replicas: percent(50)},
			primary: map[string]map[string]int32{"c0": {"Deployment/api": 2, "Deployment/web": 8}, "c1": {"Deployment/web": 4}},
			want:    map[string]map[string]int32{"c0": {"Deployment/api": 1, "Deployment/web": 4}, "c1": {"Deployment/web": 2}},
		},
		"what is no number is refused":     {size: Size{Replicas: intstr.FromString("many")}, primary: web(3), err: `replicas "many"`},
		"a negative number is refused":     {size: Size{Replicas: intstr.FromInt32(-1)}, primary: web(3), err: `replicas "-1"`},
		"more than anybody has is refused": {size: Size{Replicas: percent(math.MaxInt32)}, primary: web(3), err: "from 0 to"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := test.size.Divide(test.primary)
			if test.err != "" {
				if err == nil || !strings.Contains(err.Error(), test.err) {
					t.Errorf("error %v, want one with %q", err, test.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

// Over all clusters together a copy has exactly its percentage, rounded up, and no cluster is further than one pod from its own part.
func TestRandomSizesAreExact(t *testing.T) {
	for seed := range uint64(2000) {
		r := rand.New(rand.NewPCG(seed, 2))
		percent, primary, total := 1+r.IntN(100), map[string]map[string]int32{}, int32(0)
		for i := range 1 + r.IntN(8) {
			n := r.Int32N(20)
			primary[fmt.Sprintf("c%d", i)] = map[string]int32{"Deployment/web": n}
			total += n
		}
		got, err := Size{Replicas: intstr.FromString(fmt.Sprintf("%d%%", percent))}.Divide(primary)
		if err != nil {
			t.Fatal(err)
		}
		want, sum := int32(math.Ceil(float64(percent)*float64(total)/100)), int32(0)
		for cluster, workloads := range primary {
			n := got[cluster]["Deployment/web"]
			sum += n
			if exact := float64(want) * float64(workloads["Deployment/web"]) / float64(max(1, total)); math.Abs(float64(n)-exact) >= 1 {
				t.Errorf("seed %d: %s has %d, its part is %g", seed, cluster, n, exact)
			}
		}
		if sum != want {
			t.Errorf("seed %d: %d %% of %d are %d, want %d", seed, percent, total, sum, want)
		}
	}
}
