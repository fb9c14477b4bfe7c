package decide_test

import (
	"encoding/json"
	"testing"

	"github.com/manifold-dev/manifold/pkg/placement"
	"github.com/manifold-dev/manifold/pkg/placement/build"
	"github.com/manifold-dev/manifold/pkg/placement/decide"
	"github.com/manifold-dev/manifold/pkg/placement/remedy"
)

// FuzzPolicy decides by policies that nobody has looked at: one may be stored by a version that knows other rules. Whatever it says, there
// is a decision whose shares are in range, add up, and grow nowhere that nothing new may go, and a remedy for everybody else.
func FuzzPolicy(f *testing.F) {
	for _, seed := range []string{
		`{}`, `{"keepTogether":true}`, `{"division":{"type":"Duplicate"}}`, `{"division":{"type":"Divide","by":"Even","minReplicas":3}}`,
		`{"division":{"type":"Divide","by":"Weights","weights":{"c0":3,"c1":-1}}}`, `{"division":{"type":"Divide","by":"Packing"},"minClusters":-1,"maxClusters":2}`,
		`{"division":{"type":"?"}}`, `{"clusters":{"names":["c0","c9"],"labelSelector":{"matchExpressions":[{"key":"a","operator":"?"}]}}}`,
		`{"division":{"type":"Divide"},"spread":[{"topologyKey":"region","maxSkew":-2},{"topologyKey":"zone","maxSkew":1,"whenUnsatisfiable":"PlaceAnyway"}]}`,
		`{"groups":[{"name":"a","names":["c0"],"limit":"50%"},{"name":"b","limit":2},{"limit":"x%"}],"return":true}`,
		`{"preferences":[{"weight":-5,"names":["c1"]}],"tolerations":[{"operator":"Exists","effect":"NoExecute","tolerationSeconds":-1}]}`,
		`{"affinity":[{"workloads":{"kinds":["Deployment"]},"weight":1}],"antiAffinity":[{"namespaceSelector":{}}]}`,
	} {
		f.Add([]byte(seed), uint8(5), uint8(2))
	}
	f.Fuzz(func(t *testing.T, data []byte, replicas, current uint8) {
		policy := &placement.Policy{Kind: "ClusterPlacementPolicy", Name: "fuzzed"}
		if json.Unmarshal(data, &policy.Spec) != nil {
			return
		}
		clusters := []placement.Cluster{
			build.Cluster("c0", 4).In("r0", "z0").Cluster, build.Cluster("c1", 3).In("r0", "z1").Cluster, build.Cluster("c2", 9).In("r1", "z2").Cordoned().Cluster,
			build.Cluster("c3", 0).In("r1", "z3").Cluster,
		}
		req := build.Deployment(int32(replicas)).On(build.Shares("c1", int(current), "c2", int(current)/2)).Request
		req.Policy = policy
		s := placement.NewSnapshot(clusters)
		got := decide.Place(s, req)
		if problem := judgePlacement(clusters, req, got); problem != "" {
			t.Fatalf("%s: %s under %s", problem, got.Decision, policyText(policy))
		}
		found := remedy.For(s, &req, got)
		for _, v := range got.Verdicts {
			if v.Share == nil && !v.Feasible && len(found[v.Cluster]) == 0 {
				t.Fatalf("no remedy for %s with %v under %s", v.Cluster, v.Reasons, policyText(policy))
			}
		}
	})
}
