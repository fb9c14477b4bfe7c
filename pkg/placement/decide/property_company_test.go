//go:build !race

// Nothing here has a goroutine of its own, and tens of thousands of random clusters take five times as long with the race detector.

package decide_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/placement"
	"github.com/manifold-dev/manifold/pkg/placement/build"
	"github.com/manifold-dev/manifold/pkg/placement/decide"
)

// randomCompany is a random choice among clusters where others run, some of which the workload is near to or apart from, by its own policy or
// by theirs.
func randomCompany(r *rand.Rand) ([]placement.Cluster, placement.Request) {
	clusters, req := randomChoice(r)
	apps := []string{"a", "b", "c"}
	req.Workload.Labels = map[string]string{"app": apps[r.IntN(3)]}
	term := func() v1alpha1.WorkloadAffinity {
		t := v1alpha1.WorkloadAffinity{Workloads: &v1alpha1.WorkloadSelector{LabelSelector: build.Labelled("app", apps[r.IntN(3)])}}
		if r.IntN(3) == 0 {
			weight := 1 + r.Int32N(9)
			t.Weight = &weight
		}
		return t
	}
	terms := func() (out []v1alpha1.WorkloadAffinity) {
		for range r.IntN(3) {
			out = append(out, term())
		}
		return out
	}
	req.Policy.Spec.Affinity, req.Policy.Spec.AntiAffinity = terms(), terms()
	for i := range r.IntN(5) {
		o := placement.Other{
			Kind: "Deployment", Group: "apps", Namespace: []string{"shop", "shop", "bank"}[r.IntN(3)], Name: fmt.Sprint("other-", i),
			Labels: map[string]string{"app": apps[r.IntN(3)]}, Apart: terms(),
		}
		for _, c := range clusters {
			if r.IntN(3) == 0 {
				o.Clusters = append(o.Clusters, c.Name)
			}
		}
		req.Others = append(req.Others, o)
	}
	return clusters, req
}

// judgeCompany checks that nothing comes to where it may not.
func judgeCompany(req placement.Request, got placement.Result) string {
	about := func(t v1alpha1.WorkloadAffinity, labels map[string]string) bool {
		return t.Weight == nil && t.Workloads.LabelSelector.MatchLabels["app"] == labels["app"]
	}
	for cluster, share := range got.Decision {
		if share.Replicas <= req.Current[cluster].Replicas {
			continue
		}
		for _, t := range req.Policy.Spec.Affinity {
			near, anywhere := false, false
			for _, o := range req.Others {
				if o.Namespace == "shop" && about(t, o.Labels) {
					near, anywhere = near || slices.Contains(o.Clusters, cluster), anywhere || len(o.Clusters) > 0
				}
			}
			if t.Weight == nil && !near && (anywhere || !about(t, req.Workload.Labels)) {
				return "it comes to " + cluster + ", where those are not that it is to be near to"
			}
		}
		for _, o := range req.Others {
			if o.Namespace != "shop" || !slices.Contains(o.Clusters, cluster) {
				continue
			}
			if slices.ContainsFunc(req.Policy.Spec.AntiAffinity, func(t v1alpha1.WorkloadAffinity) bool { return about(t, o.Labels) }) {
				return fmt.Sprintf("it comes to %s, where %s is that it is to be apart from", cluster, o.Name)
			}
			if slices.ContainsFunc(o.Apart, func(t v1alpha1.WorkloadAffinity) bool { return about(t, req.Workload.Labels) }) {
				return fmt.Sprintf("it comes to %s, where %s is that is to be apart from it", cluster, o.Name)
			}
		}
	}
	return ""
}

func TestCompanyKeepsItsPromises(t *testing.T) {
	r := rand.New(rand.NewPCG(11, 12))
	for range 20000 {
		clusters, req := randomCompany(r)
		got := decide.Place(placement.NewSnapshot(clusters), req)
		problem := judgePlacement(clusters, req, got)
		if problem == "" {
			problem = judgeChoice(clusters, req, got)
		}
		if problem == "" {
			problem = judgeCompany(req, got)
		}
		say := func() string {
			return fmt.Sprintf("clusters %+v\ncurrent %s replicas %d evict %v\npolicy %+v\nnear %+v apart %+v others %+v\nresult %s %q", clusters, req.Current,
				req.Workload.Replicas, req.Evict, policyText(req.Policy), req.Policy.Spec.Affinity, req.Policy.Spec.AntiAffinity, req.Others,
				got.Decision, got.Message())
		}
		if problem != "" {
			t.Fatalf("%s\n%s", problem, say())
		}
		r.Shuffle(len(req.Others), func(i, j int) { req.Others[i], req.Others[j] = req.Others[j], req.Others[i] })
		if other := decide.Place(placement.NewSnapshot(clusters), req); other.Message() != got.Message() || !other.Decision.Equal(got.Decision) {
			t.Fatalf("the order of others matters: %q\n%s", other.Message(), say())
		}
		room, last := used(clusters, req, got.Decision), got.Decision
		for rounds := len(clusters) + 1; ; rounds-- {
			settled := req
			settled.Current = last
			again := decide.Place(placement.NewSnapshot(room), settled).Decision
			if again.Equal(last) {
				break
			}
			if rounds == 0 {
				t.Fatalf("placing again moves something: to %s\n%s", again, say())
			}
			room, last = used(room, settled, again), again
		}
	}
}
