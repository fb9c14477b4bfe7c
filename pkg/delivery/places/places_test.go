package places

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/manifold-dev/manifold/pkg/delivery"
)

func TestResolve(t *testing.T) {
	clusters := map[string]delivery.Cluster{"a": {Labels: map[string]string{"region": "eu"}}, "b": {Labels: map[string]string{"region": "eu"}}, "c": {Labels: map[string]string{"region": "us"}}}
	one := func(name, cluster string) delivery.Target { return delivery.Target{Name: name, Cluster: cluster} }
	some := func(name string, labels map[string]string) delivery.Target {
		return delivery.Target{Name: name, Selector: &metav1.LabelSelector{MatchLabels: labels}}
	}
	for name, test := range map[string]struct {
		targets []delivery.Target
		want    string // target/cluster
		err     string
	}{
		"in the order of the targets":               {targets: []delivery.Target{one("x", "c"), one("y", "a")}, want: "x/c y/a"},
		"those that a selector matches, by name":    {targets: []delivery.Target{some("eu", map[string]string{"region": "eu"})}, want: "eu/a eu/b"},
		"what is named is not selected":             {targets: []delivery.Target{some("eu", map[string]string{"region": "eu"}), one("x", "a")}, want: "eu/b x/a"},
		"the first selector has it":                 {targets: []delivery.Target{some("eu", map[string]string{"region": "eu"}), some("all", nil)}, want: "eu/a eu/b all/c"},
		"a selector may match nothing":              {targets: []delivery.Target{one("x", "a"), some("none", map[string]string{"region": "mars"})}, want: "x/a"},
		"but something has to":                      {targets: []delivery.Target{some("none", map[string]string{"region": "mars"})}, err: "none of the targets"},
		"a cluster that is not there":               {targets: []delivery.Target{one("x", "z")}, err: `target "x": there is no cluster "z"`},
		"a cluster that two name":                   {targets: []delivery.Target{one("x", "a"), one("y", "a")}, err: `target "y": cluster "a" is that of target "x"`},
		"a selector that is none":                   {targets: []delivery.Target{{Name: "x", Selector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Like"}}}}}, err: `target "x": clusterSelector`},
		"an application without targets is nowhere": {err: "none of the targets"},
	} {
		t.Run(name, func(t *testing.T) {
			places, err := Resolve(test.targets, clusters)
			if test.err != "" {
				if err == nil || !strings.Contains(err.Error(), test.err) {
					t.Errorf("error %v, want one with %q", err, test.err)
				}
				return
			}
			var got []string
			for _, place := range places {
				got = append(got, place.Target+"/"+place.Cluster)
			}
			if err != nil || strings.Join(got, " ") != test.want {
				t.Errorf("%v, %v, want %s", got, err, test.want)
			}
		})
	}
}
