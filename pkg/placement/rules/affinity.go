package rules

import (
	"fmt"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/placement"
)

// affinity is one term of affinity or antiAffinity, with where those run that it is about.
type affinity struct {
	apart    bool  // antiAffinity
	weight   int64 // 0 for a requirement
	clusters map[string]bool
	text     string // how the term names whom it is about
	anywhere bool   // a requirement that the workload itself fulfils wherever it starts
}

func affinitiesOf(spec *v1alpha1.PlacementPolicySpec, r *placement.Request) (out []affinity, problem string) {
	for _, list := range []struct {
		field string
		apart bool
		terms []v1alpha1.WorkloadAffinity
	}{{"affinity", false, spec.Affinity}, {"antiAffinity", true, spec.AntiAffinity}} {
		for i := range list.terms {
			c, err := readAffinity(&list.terms[i], r)
			if err != nil {
				return nil, fmt.Sprintf("%s[%d].%s", list.field, i, err)
			}
			c.apart = list.apart
			out = append(out, c)
		}
	}
	return out, ""
}

func readAffinity(spec *v1alpha1.WorkloadAffinity, r *placement.Request) (affinity, error) {
	w := &r.Workload
	c := affinity{clusters: map[string]bool{}, text: "other workloads"}
	t, err := readTerm(spec)
	if err != nil {
		return c, err
	}
	c.weight = t.weight
	if text := t.selector.String(); text != "" {
		c.text = "workloads labelled " + text
	}
	for i := range r.Others {
		o := &r.Others[i]
		if isSame(o, w) || !t.concerns(o, w.Namespace) {
			continue
		}
		for _, cluster := range o.Clusters {
			c.clusters[cluster] = true
		}
	}
	self := otherOf(w)
	c.anywhere = len(c.clusters) == 0 && t.concerns(&self, w.Namespace)
	return c, nil
}

// weightOn is what the term adds to the preference for a cluster; 0 for a requirement.
func (c *affinity) weightOn(cluster string) int64 {
	switch {
	case !c.clusters[cluster]:
		return 0
	case c.apart:
		return -c.weight
	default:
		return c.weight
	}
}
