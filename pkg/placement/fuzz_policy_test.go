package placement

import (
	"encoding/json"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
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
		policy := &Policy{Kind: "ClusterPlacementPolicy", Name: "fuzzed"}
		if json.Unmarshal(data, &policy.Spec) != nil {
			return
		}
		clusters := []Cluster{
			cluster("c0", 4).in("r0", "z0").Cluster, cluster("c1", 3).in("r0", "z1").Cluster, cluster("c2", 9).in("r1", "z2").cordoned().Cluster,
			cluster("c3", 0).in("r1", "z3").Cluster,
		}
		req := deployment(int32(replicas)).on(shares("c1", int(current), "c2", int(current)/2)).Request
		req.Policy = policy
		s := NewSnapshot(clusters)
		got := Place(s, req)
		if problem := judgePlacement(clusters, req, got); problem != "" {
			t.Fatalf("%s: %s under %s", problem, got.Decision, policyText(policy))
		}
		found := Remedies(s, &req, got)
		for _, v := range got.Verdicts {
			if v.Share == nil && !v.Feasible && len(found[v.Cluster]) == 0 {
				t.Fatalf("no remedy for %s with %v under %s", v.Cluster, v.Reasons, policyText(policy))
			}
		}
	})
}

// FuzzTolerations asks for how long a taint is endured by policies that nobody has looked at.
func FuzzTolerations(f *testing.F) {
	f.Add([]byte(`[{"key":"a","operator":"Equal","value":"b","effect":"NoExecute","tolerationSeconds":7}]`), "a", "b", "NoExecute")
	f.Add([]byte(`[{"operator":"Exists"},{"operator":"Lt","tolerationSeconds":-9223372036854775808}]`), v1alpha1.TaintUnreachable, "", "NoExecute")
	f.Fuzz(func(t *testing.T, data []byte, key, value, effect string) {
		policy := &Policy{Kind: "ClusterPlacementPolicy", Name: "fuzzed"}
		if json.Unmarshal(data, &policy.Spec.Tolerations) != nil {
			return
		}
		c := cluster("c0", 1)
		c.taint(key, value, corev1.TaintEffect(effect))
		stay, forever := policy.Endures(&c.Taints[0], time.Minute)
		if stay < 0 || forever && stay != 0 {
			t.Fatalf("endures %v for %s, for ever: %t", c.Taints[0], stay, forever)
		}
		if tolerates, _ := policy.Tolerates(&c.Taints[0]); tolerates && policy.Untolerated(&c.Cluster) != nil {
			t.Fatalf("%v is tolerated, and keeps replicas away", c.Taints[0])
		}
	})
}
