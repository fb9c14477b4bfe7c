package state

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/utils/ptr"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
)

// sharing are a primary in east and west and a canary in west, as a release says that they are.
func sharing(primary, canary int32) []v1alpha1.Variant {
	return []v1alpha1.Variant{
		{Name: v1alpha1.VariantCanary, Clusters: []v1alpha1.VariantCluster{{Cluster: "west", Revision: "web-v2", Traffic: &canary}}},
		{Name: v1alpha1.VariantPrimary, Clusters: []v1alpha1.VariantCluster{
			{Cluster: "east", Revision: "web-v1", Traffic: ptr.To(int32(100))}, {Cluster: "west", Revision: "web-v1", Traffic: &primary},
		}},
	}
}

func TestVariantsTellWhatIsThere(t *testing.T) {
	of := func(name string, ready ...int32) Workload {
		out := Workload{Name: name, Clusters: map[string]Part{}}
		for i, cluster := range []string{"west", "east"}[:len(ready)] {
			out.Clusters[cluster] = Part{Wanted: ready[i], Ready: ready[i]}
		}
		return out
	}
	for name, test := range map[string]struct {
		variants []v1alpha1.Variant
		sharing  Sharing
		want     string
	}{
		"weights are what was set":        {variants: sharing(80, 20), sharing: Sharing{Routed: true}, want: "canary web-v2 5%: west 3 20%; primary web-v1 95%: east 30 100% west 12 80%"},
		"numbers of pods what they are":   {variants: sharing(75, 25), sharing: Sharing{Routed: true, ByPods: true}, want: "canary web-v2 4%: west 3 17%; primary web-v1 96%: east 30 100% west 12 83%"},
		"one variant has all its pods":    {variants: sharing(0, 100), sharing: Sharing{Routed: true, ByPods: true}, want: "canary web-v2 25%: west 3 100%; primary web-v1 75%: east 30 100% west 12 0%"},
		"nobody shares out requests":      {variants: sharing(100, 0), want: "canary web-v2 -: west 3 0%; primary web-v1 -: east 30 100% west 12 100%"},
		"a silent cluster has none ready": {variants: sharing(80, 20), sharing: Sharing{Routed: true, ByPods: true, Silent: map[string]bool{"west": true}}, want: "canary web-v2 5%: west 0 20%; primary web-v1 95%: east 30 100% west 0 80%"},
	} {
		t.Run(name, func(t *testing.T) {
			test.sharing.Behind = map[string]bool{"Deployment web": true, "Deployment web-canary": true}
			test.sharing.Workloads = map[string][]Workload{
				v1alpha1.VariantPrimary: {of("Deployment web", 10, 30), of("Deployment worker", 2)},
				v1alpha1.VariantCanary:  {of("Deployment web-canary", 2), of("Deployment worker-canary", 1)},
			}
			var got []string
			for _, variant := range Variants(test.variants, test.sharing) {
				share := "-"
				if variant.Traffic != nil {
					share = fmt.Sprintf("%d%%", *variant.Traffic)
				}
				out := fmt.Sprintf("%s %s %s:", variant.Name, variant.Revision, share)
				for _, c := range variant.Clusters {
					out += fmt.Sprintf(" %s %d %d%%", c.Cluster, c.Ready, *c.Traffic)
				}
				got = append(got, out)
			}
			if got := strings.Join(got, "; "); got != test.want {
				t.Errorf("%s, want %s", got, test.want)
			}
		})
	}
	mixed := sharing(80, 20)
	mixed[1].Clusters[0].Revision = "web-v2"
	if got := Variants(mixed, Sharing{})[1].Revision; got != "" {
		t.Errorf("clusters run different revisions, and the variant is said to be of %s", got)
	}
}
