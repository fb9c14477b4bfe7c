package placement

import (
	"fmt"
	"slices"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
)

// Other is another workload, as far as affinity is about it.
type Other struct {
	Kind, Group     string
	Namespace, Name string
	// Labels are the workload's own, NamespaceLabels its namespace's.
	Labels          map[string]string
	NamespaceLabels map[string]string
	// Clusters are the names of those where it is.
	Clusters []string
	// Pinned tells that the user chose where, so that its policy does not keep it apart from anybody.
	Pinned bool
	// Apart is the antiAffinity of its policy, as far as that may be about the workload that is placed; see KeepApart.
	Apart []v1alpha1.WorkloadAffinity
}

// company is one term of affinity or antiAffinity, with where those run that it is about.
type company struct {
	apart    bool  // antiAffinity
	weight   int64 // 0 for a requirement
	clusters map[string]bool
	text     string // how the term names whom it is about
	anywhere bool   // a requirement that the workload itself fulfils wherever it starts
}

// NeedsOthers tells whether decisions under the policy depend on where other workloads run, and if so, whether those of all
// namespaces count.
func (p *Policy) NeedsOthers() (needs, allNamespaces bool) {
	if p == nil {
		return false, false
	}
	for _, term := range append(slices.Clone(p.Spec.Affinity), p.Spec.AntiAffinity...) {
		needs = true
		allNamespaces = allNamespaces || term.NamespaceSelector != nil
	}
	return needs, allNamespaces
}

func companyOf(spec *v1alpha1.PlacementPolicySpec, r *Request) (out []company, problem string) {
	for _, list := range []struct {
		field string
		apart bool
		terms []v1alpha1.WorkloadAffinity
	}{{"affinity", false, spec.Affinity}, {"antiAffinity", true, spec.AntiAffinity}} {
		for i := range list.terms {
			c, err := readCompany(&list.terms[i], r)
			if err != nil {
				return nil, fmt.Sprintf("%s[%d].%s", list.field, i, err)
			}
			c.apart = list.apart
			out = append(out, c)
		}
	}
	return out, ""
}

func readCompany(affinity *v1alpha1.WorkloadAffinity, r *Request) (company, error) {
	w := &r.Workload
	c := company{clusters: map[string]bool{}, text: "other workloads"}
	t, err := readTerm(affinity)
	if err != nil {
		return c, err
	}
	c.weight = t.weight
	if text := t.selector.String(); text != "" {
		c.text = "workloads labelled " + text
	}
	for i := range r.Others {
		o := &r.Others[i]
		if o.is(w) || !t.concerns(o, w.Namespace) {
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
func (c *company) weightOn(cluster string) int64 {
	switch {
	case !c.clusters[cluster]:
		return 0
	case c.apart:
		return -c.weight
	default:
		return c.weight
	}
}

// checkCompany keeps new replicas from where required company lacks or forbidden company is. What runs stays: workloads that follow
// each other would never come to rest.
func checkCompany(c *cycle, k *candidate) bool {
	for i := range c.company {
		term := &c.company[i]
		switch here := term.clusters[k.Name]; {
		case term.weight != 0:
		case term.apart && here:
			return k.refuse(Reason{Code: ReasonCompany, Subject: term.text})
		case !term.apart && !here && !term.anywhere:
			return k.refuse(Reason{Code: ReasonNoCompany, Subject: term.text})
		}
	}
	return false
}
