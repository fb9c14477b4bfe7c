package decide_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/placement"
	"github.com/manifold-dev/manifold/pkg/placement/build"
	"github.com/manifold-dev/manifold/pkg/placement/decide"
	"github.com/manifold-dev/manifold/pkg/placement/rules"
)

// randomChoice makes any mix of clusters in regions, and a division under any mix of rules about the choice of clusters.
func randomChoice(r *rand.Rand) ([]placement.Cluster, placement.Request) {
	var clusters []placement.Cluster
	req := build.Deployment(r.Int32N(14))
	req.Current = placement.Decision{}
	for i := range 1 + r.IntN(6) {
		name := fmt.Sprintf("c%d", i)
		b := build.Cluster(name, r.Int64N(9)-1).In(fmt.Sprintf("r%d", r.IntN(3)), fmt.Sprintf("z%d", r.IntN(4)))
		b.Unschedulable = r.IntN(7) == 0
		if r.IntN(9) == 0 {
			b.Ready = metav1.ConditionUnknown
		}
		if r.IntN(9) == 0 {
			b.Topology = nil
		}
		clusters = append(clusters, b.Cluster)
		if r.IntN(2) == 0 {
			req.Current[name] = placement.Share{Replicas: r.Int32N(6)}
		}
	}
	switch r.IntN(6) {
	case 0:
		req.Weighing(map[string]int32{"c0": r.Int32N(4), "c1": 2, "c3": 7, "c4": 1})
	case 1:
		req.DividedBy(v1alpha1.ByPacking)
	case 2:
		req.DividedBy(v1alpha1.ByCapacity)
	case 3:
		req.Under(func(s *v1alpha1.PlacementPolicySpec) { s.KeepTogether = r.IntN(2) == 0 })
	default:
		req.DividedBy(v1alpha1.ByEven)
	}
	divides := req.Policy.Spec.Division != nil
	if divides && r.IntN(3) == 0 {
		req.AtLeast(r.Int32N(5))
	}
	if divides && r.IntN(3) == 0 {
		req.OnClusters(r.Int32N(4), r.Int32N(4))
	}
	if divides && r.IntN(2) == 0 {
		action := v1alpha1.DoNotPlace
		if r.IntN(3) == 0 {
			action = v1alpha1.PlaceAnyway
		}
		req.SpreadBy("region", 1+r.Int32N(3), action)
		if r.IntN(3) == 0 {
			req.SpreadBy("zone", 1+r.Int32N(2), action)
		}
	}
	if r.IntN(3) == 0 {
		limits := []string{"", "", "2", "50%", "4"}
		req.Group(limits[r.IntN(5)], "c0", "c1").Group(limits[r.IntN(5)], "c2", "c3", "c5").Group(limits[r.IntN(5)], "c4")
	}
	if r.IntN(3) == 0 {
		req.Preferring(1+r.Int32N(3), "c1", "c4").Preferring(-2, "c0")
	}
	if r.IntN(3) == 0 {
		req.Returning(r.IntN(2) == 0)
	}
	if r.IntN(6) == 0 {
		req.Leaving("c1")
	}
	return clusters, req.Request
}

func TestChoiceKeepsItsPromises(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 10))
	for range 20000 {
		clusters, req := randomChoice(r)
		got := decide.Place(placement.NewSnapshot(clusters), req)
		problem := judgePlacement(clusters, req, got)
		if problem == "" {
			problem = judgeChoice(clusters, req, got)
		}
		say := func() string {
			return fmt.Sprintf("clusters %+v\ncurrent %s replicas %d evict %v\npolicy %+v\nresult %s %q", clusters, req.Current, req.Workload.Replicas,
				req.Evict, policyText(req.Policy), got.Decision, got.Message())
		}
		if problem != "" {
			t.Fatalf("%s\n%s", problem, say())
		}
		r.Shuffle(len(clusters), func(i, j int) { clusters[i], clusters[j] = clusters[j], clusters[i] })
		if other := decide.Place(placement.NewSnapshot(clusters), req); other.Message() != got.Message() || !other.Decision.Equal(got.Decision) {
			t.Fatalf("the order of clusters matters: %q\n%s", other.Message(), say())
		}
		rounds := 1
		if settlesByAndBy(clusters, req, got) {
			rounds = len(clusters) + 1
		}
		room, last := used(clusters, req, got.Decision), got.Decision
		for ; ; rounds-- {
			settled := req
			settled.Current = last
			again := decide.Place(placement.NewSnapshot(room), settled).Decision
			if again.Equal(last) {
				break
			}
			if rounds <= 1 {
				t.Fatalf("placing again moves something: to %s\n%s", again, say())
			}
			room, last = used(room, settled, again), again
		}
	}
}

// settlesByAndBy reports whether a decision may be followed by another one: what leaves one cluster makes room, or ends a reason, that the
// choice of clusters depended on. What is divided or spread without such a choice is settled at once.
func settlesByAndBy(clusters []placement.Cluster, req placement.Request, got placement.Result) bool {
	spec := &req.Policy.Spec
	return got.Strategy == placement.ByPacking || got.Strategy == placement.Together || len(spec.Groups) > 0 || spec.MinClusters > 0 || spec.MaxClusters > 0 ||
		req.Policy.Spec.Division != nil && len(req.Policy.Spec.Spread)+len(req.Policy.Spec.Groups) == 0 && req.Policy.Spec.Division.MinReplicas > 1 || slices.ContainsFunc(clusters, func(c placement.Cluster) bool {
		return req.Current[c.Name].Replicas > 0 && (c.Unschedulable || c.Ready != metav1.ConditionTrue || req.Evict[c.Name])
	})
}

func policyText(p *placement.Policy) string {
	s := p.Spec
	text := fmt.Sprintf("together %t min %d max %d spread %+v preferences %+v", s.KeepTogether, s.MinClusters, s.MaxClusters, s.Spread, s.Preferences)
	if s.Division != nil {
		text += fmt.Sprintf(" division %+v", *s.Division)
	}
	for _, g := range s.Groups {
		text += fmt.Sprintf(" group %s limit %s %v", g.Name, g.Limit, g.Names)
	}
	if s.Return != nil {
		text += fmt.Sprintf(" return %t", *s.Return)
	}
	return text
}

// judgeChoice checks the rules of the policy where nothing had to stay: what cannot leave may exceed all of them.
func judgeChoice(clusters []placement.Cluster, req placement.Request, got placement.Result) string {
	spec := &req.Policy.Spec
	inGroup, inRegion := map[int]int64{}, map[string]int64{}
	stuck := false
	for _, c := range clusters {
		share, current := got.Decision[c.Name].Replicas, req.Current[c.Name].Replicas
		frozen := c.Unschedulable || c.Ready != metav1.ConditionTrue
		v := verdictOn(got, c.Name)
		stuck = stuck || share > 0 && current > 0 && (frozen || !v.Feasible) || req.Evict[c.Name] && current > 0
		if share > 0 && v.Feasible {
			inRegion[c.Topology["region"]] += int64(share)
		} else if v.Feasible {
			inRegion[c.Topology["region"]] += 0
		}
		for i, g := range spec.Groups {
			for _, name := range g.Names {
				if name == c.Name {
					inGroup[i] += int64(share)
				}
			}
		}
	}
	if stuck {
		return ""
	}
	read := rules.Read(&req, int64(req.Workload.Replicas))
	for i, sum := range inGroup {
		held := int64(0)
		for _, name := range spec.Groups[i].Names {
			held += int64(req.Current[name].Replicas)
		}
		if sum > max(read.Limit(i), held) || sum > read.Limit(i) && got.Unplaced > 0 && held <= read.Limit(i) {
			return fmt.Sprintf("group %d has %d, above its limit of %d", i, sum, read.Limit(i))
		}
	}
	if spec.Division == nil {
		return ""
	}
	if most := int(spec.MaxClusters); most > 0 && len(got.Decision) > most {
		return "too many clusters"
	}
	least := int32(read.Least)
	for name, share := range got.Decision {
		if share.Replicas > 0 && share.Replicas < least && share.Replicas > req.Current[name].Replicas {
			return "a share that is too small grew on " + name
		}
	}
	if len(spec.Spread) > 0 && spec.Spread[0].WhenUnsatisfiable == v1alpha1.DoNotPlace && len(spec.Groups) == 0 && least < 2 {
		low, high := int64(placement.Unbounded), int64(0)
		for _, n := range inRegion {
			low, high = min(low, n), max(high, n)
		}
		if len(req.Current) == 0 && len(inRegion) > 0 && high-low > int64(spec.Spread[0].MaxSkew) {
			return fmt.Sprintf("the skew is %d", high-low)
		}
	}
	return ""
}

func FuzzPlace(f *testing.F) {
	f.Add(uint64(1), uint64(2))
	f.Fuzz(func(t *testing.T, one, two uint64) {
		clusters, req := randomChoice(rand.New(rand.NewPCG(one, two)))
		got := decide.Place(placement.NewSnapshot(clusters), req)
		if problem := judgePlacement(clusters, req, got); problem != "" {
			t.Fatalf("%s: %s under %s", problem, got.Decision, policyText(req.Policy))
		}
	})
}
