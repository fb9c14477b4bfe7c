package placement

import (
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
)

// rules are what a policy says about the choice of clusters, read once for a decision. A pin stands in their stead.
type rules struct {
	policy      string
	names       map[string]struct{} // the only clusters that are chosen by name; nil if names do not matter
	selector    labels.Selector     // clusters that are chosen by label; nil if labels do not matter
	preferences []preference
	groups      []group
	company     []company
	keepers     map[string]string // by cluster a workload there whose own policy keeps it apart; nil if there is none anywhere
	aversion    map[string]int64  // by cluster how much the policies of others there would rather keep it apart
	spread      []v1alpha1.SpreadConstraint
	minClusters int64
	maxClusters int64 // 0 for any number
	returns     bool
}

// choice selects clusters. Both that are set must match.
type choice struct {
	names    map[string]struct{} // nil if names do not matter
	selector labels.Selector
}

type preference struct {
	choice
	weight int64
}

// group is a set of clusters, and what it may get.
type group struct {
	choice
	name  string
	limit int64
}

// readRules reads a policy for a workload of so many replicas. It says which field is wrong if one cannot be read.
func readRules(p *Policy, r *Request, replicas int64) (out rules, problem string) {
	if p == nil {
		return rules{}, ""
	}
	spec := &p.Spec
	out = rules{
		policy: p.String(), spread: spec.Spread, minClusters: int64(spec.MinClusters), maxClusters: max(0, int64(spec.MaxClusters)),
		returns: len(spec.Groups) > 0 && spec.Return == nil || spec.Return != nil && *spec.Return,
	}
	if spec.Clusters != nil {
		if len(spec.Clusters.Names) > 0 {
			out.names = setOf(spec.Clusters.Names)
		}
		selector, err := selectorOf(spec.Clusters.LabelSelector)
		if err != nil {
			return rules{}, "clusters.labelSelector: " + err.Error()
		}
		out.selector = selector
	}
	for i := range spec.Preferences {
		choice, err := choiceOf(&spec.Preferences[i].ClusterSelector)
		if err != nil {
			return rules{}, fmt.Sprintf("preferences[%d].labelSelector: %s", i, err)
		}
		out.preferences = append(out.preferences, preference{choice, int64(spec.Preferences[i].Weight)})
	}
	for i := range spec.Groups {
		g := &spec.Groups[i]
		choice, err := choiceOf(&g.ClusterSelector)
		if err != nil {
			return rules{}, fmt.Sprintf("groups[%d].labelSelector: %s", i, err)
		}
		limit, err := limitOf(g.Limit, replicas)
		if err != nil {
			return rules{}, fmt.Sprintf("groups[%d].limit: %s", i, err)
		}
		out.groups = append(out.groups, group{choice, g.Name, limit})
	}
	out.company, problem = companyOf(spec, r)
	return out, problem
}

// limitOf is the number of replicas that a group may get. Parts of a replica count as a whole one.
func limitOf(limit *intstr.IntOrString, replicas int64) (int64, error) {
	if limit == nil {
		return unbounded, nil
	}
	n, err := intstr.GetScaledValueFromIntOrPercent(limit, int(replicas), true)
	return max(0, int64(n)), err
}

func choiceOf(s *v1alpha1.ClusterSelector) (choice, error) {
	selector, err := selectorOf(s.LabelSelector)
	if len(s.Names) == 0 {
		return choice{nil, selector}, err
	}
	return choice{setOf(s.Names), selector}, err
}

func (s *choice) selects(c *Cluster) bool {
	if _, named := s.names[c.Name]; !named && s.names != nil {
		return false
	}
	return s.selector.Matches(labels.Set(c.Labels))
}

// groupOf is the number of the first group that selects the cluster; false if there are groups and none does.
func (r *rules) groupOf(c *Cluster) (int, bool) {
	if len(r.groups) == 0 {
		return 0, true
	}
	i := slices.IndexFunc(r.groups, func(g group) bool { return g.selects(c) })
	return i, i >= 0
}

// limit is what a group may get.
func (r *rules) limit(group int) int64 {
	if len(r.groups) == 0 {
		return unbounded
	}
	return r.groups[group].limit
}

// preferenceFor sums the weights of what prefers the cluster.
func (r *rules) preferenceFor(c *Cluster) (sum int64) {
	for i := range r.preferences {
		if r.preferences[i].selects(c) {
			sum += r.preferences[i].weight
		}
	}
	for i := range r.company {
		sum += r.company[i].weightOn(c.Name)
	}
	return sum - r.aversion[c.Name]
}

// strict tells whether a constraint rather leaves replicas unplaced than exceeds its skew.
func strict(s *v1alpha1.SpreadConstraint) bool { return s.WhenUnsatisfiable != v1alpha1.PlaceAnyway }

func (r *rules) spreadsStrictly() bool {
	return slices.ContainsFunc(r.spread, func(s v1alpha1.SpreadConstraint) bool { return strict(&s) })
}

// domain is the cluster's value of a label.
func (c *Cluster) domain(key string) (value string, has bool) {
	if value, has = c.Labels[key]; has {
		return value, true
	}
	if value, has = c.Topology[key]; has {
		return value, true
	}
	return c.Name, key == v1alpha1.LabelClusterName
}

func checkName(c *cycle, k *candidate) bool {
	if _, named := c.names[k.Name]; named {
		return false
	}
	if c.pinned {
		return k.refuse(Reason{Code: ReasonNotPinned})
	}
	return k.refuse(Reason{Code: ReasonNotSelected, Subject: c.policy})
}

func checkLabels(c *cycle, k *candidate) bool {
	if c.selector.Matches(labels.Set(k.Labels)) {
		return false
	}
	return k.refuse(Reason{Code: ReasonNotSelected, Subject: c.policy})
}

// checkGroup finds out which group the cluster belongs to.
func checkGroup(c *cycle, k *candidate) bool {
	group, found := c.groupOf(k.Cluster)
	k.group = group
	if !found {
		return k.refuse(Reason{Code: ReasonNoGroup, Subject: c.policy})
	}
	return false
}

// checkDomain keeps replicas away from clusters of which nobody knows where they are, when that matters.
func checkDomain(c *cycle, k *candidate) bool {
	for i := range c.spread {
		if _, has := k.domain(c.spread[i].TopologyKey); !has && strict(&c.spread[i]) {
			return k.refuse(Reason{Code: ReasonNoDomain, Subject: c.spread[i].TopologyKey + ", by which " + c.policy + " spreads"})
		}
	}
	return false
}

// selectorOf reads a selector for which unset means everything.
func selectorOf(selector *metav1.LabelSelector) (labels.Selector, error) {
	if selector == nil {
		return labels.Everything(), nil
	}
	return metav1.LabelSelectorAsSelector(selector)
}

// absent are the names of clusters that the pin or the policy wants and that have not joined, sorted.
func (r *rules) absent(find func(name string) *candidate) (names []string) {
	for name := range r.names {
		if find(name) == nil {
			names = append(names, name)
		}
	}
	for i := range r.groups {
		for name := range r.groups[i].names {
			if _, named := r.names[name]; (r.names == nil || named) && find(name) == nil {
				names = append(names, name)
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}
