// Package rules finds out which policy a workload is under, what pin and policy say, and which clusters may take replicas by that: a table of
// filters goes over all clusters, and notes a reason for each that may not.
package rules

import (
	"cmp"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/placement"
)

// Rules are what a pin or a policy says, read once for a decision.
type Rules struct {
	Strategy    placement.Strategy
	problem     string           // what is wrong with the policy, if anything
	pinned      bool             // the choice is the user's pin, not the policy's
	Least       int64            // what a cluster gets at least, unless it gets nothing; 1 if nobody asks for more
	weights     map[string]int32 // of a division by weights
	Policy      string
	names       map[string]struct{} // the only clusters that are chosen by name; nil if names do not matter
	selector    labels.Selector     // clusters that are chosen by label; nil if labels do not matter
	preferences []preference
	Groups      []group
	affinities  []affinity
	keepers     map[string]string // by cluster a workload there whose own policy keeps it apart; nil if there is none anywhere
	aversion    map[string]int64  // by cluster how much the policies of others there would rather keep it apart
	Spread      []v1alpha1.SpreadConstraint
	MinClusters int64
	MaxClusters int64 // 0 for any number
	Returns     bool
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
	Name  string
	Limit int64
}

// Read reads pin and policy for a workload of so many replicas.
func Read(r *placement.Request, replicas int64) (out Rules) {
	strategy, unknown := strategyOf(r)
	problem := ""
	if w := &r.Workload; w.IsPinned() {
		out.pinned = true
		if pin := w.Pin; !pin.All {
			out.names = setOf(pin.Names)
		}
	} else {
		out, problem = readPolicy(r.Policy, r, replicas)
		out.shun(r)
	}
	out.Strategy, out.problem, out.Least = strategy, cmp.Or(problem, unknown), leastOf(r.Policy, replicas)
	if strategy == placement.ByWeights {
		out.weights = r.Policy.Spec.Division.Weights
	}
	return out
}

// leastOf is the smallest share that the policy allows. A workload of fewer replicas goes whole to one cluster. What is spread or
// goes by groups has no least: each could undo for ever what the other one did.
func leastOf(p *placement.Policy, replicas int64) int64 {
	if p == nil || p.Spec.Division == nil || len(p.Spec.Spread)+len(p.Spec.Groups) > 0 {
		return 1
	}
	return max(1, min(int64(p.Spec.Division.MinReplicas), replicas))
}

func setOf(names []string) map[string]struct{} {
	set := make(map[string]struct{}, len(names))
	for _, name := range names {
		set[name] = struct{}{}
	}
	return set
}

// readPolicy reads a policy for a workload of so many replicas. It says which field is wrong if one cannot be read.
func readPolicy(p *placement.Policy, r *placement.Request, replicas int64) (out Rules, problem string) {
	if p == nil {
		return Rules{}, ""
	}
	spec := &p.Spec
	out = Rules{
		Policy: p.String(), Spread: spec.Spread, MinClusters: int64(spec.MinClusters), MaxClusters: max(0, int64(spec.MaxClusters)),
		Returns: len(spec.Groups) > 0 && spec.Return == nil || spec.Return != nil && *spec.Return,
	}
	if spec.Clusters != nil {
		if len(spec.Clusters.Names) > 0 {
			out.names = setOf(spec.Clusters.Names)
		}
		selector, err := SelectorOf(spec.Clusters.LabelSelector)
		if err != nil {
			return Rules{}, "clusters.labelSelector: " + err.Error()
		}
		out.selector = selector
	}
	for i := range spec.Preferences {
		choice, err := choiceOf(&spec.Preferences[i].ClusterSelector)
		if err != nil {
			return Rules{}, fmt.Sprintf("preferences[%d].labelSelector: %s", i, err)
		}
		out.preferences = append(out.preferences, preference{choice, int64(spec.Preferences[i].Weight)})
	}
	for i := range spec.Groups {
		g := &spec.Groups[i]
		choice, err := choiceOf(&g.ClusterSelector)
		if err != nil {
			return Rules{}, fmt.Sprintf("groups[%d].labelSelector: %s", i, err)
		}
		limit, err := limitOf(g.Limit, replicas)
		if err != nil {
			return Rules{}, fmt.Sprintf("groups[%d].limit: %s", i, err)
		}
		out.Groups = append(out.Groups, group{choice, g.Name, limit})
	}
	out.affinities, problem = affinitiesOf(spec, r)
	return out, problem
}

// limitOf is the number of replicas that a group may get. Parts of a replica count as a whole one.
func limitOf(limit *intstr.IntOrString, replicas int64) (int64, error) {
	if limit == nil {
		return placement.Unbounded, nil
	}
	n, err := intstr.GetScaledValueFromIntOrPercent(limit, int(replicas), true)
	return max(0, int64(n)), err
}

func choiceOf(s *v1alpha1.ClusterSelector) (choice, error) {
	selector, err := SelectorOf(s.LabelSelector)
	if len(s.Names) == 0 {
		return choice{nil, selector}, err
	}
	return choice{setOf(s.Names), selector}, err
}

func (s *choice) selects(c *placement.Cluster) bool {
	if _, named := s.names[c.Name]; !named && s.names != nil {
		return false
	}
	return s.selector.Matches(labels.Set(c.Labels))
}

// groupOf is the number of the first group that selects the cluster; false if there are groups and none does.
func (r *Rules) groupOf(c *placement.Cluster) (int, bool) {
	if len(r.Groups) == 0 {
		return 0, true
	}
	i := slices.IndexFunc(r.Groups, func(g group) bool { return g.selects(c) })
	return i, i >= 0
}

// WeightOf is the weight of a cluster in a division by weights.
func (r *Rules) WeightOf(cluster string) int64 { return int64(r.weights[cluster]) }

// Limit is what a group may get.
func (r *Rules) Limit(group int) int64 {
	if len(r.Groups) == 0 {
		return placement.Unbounded
	}
	return r.Groups[group].Limit
}

// PreferenceFor sums the weights of what prefers the cluster.
func (r *Rules) PreferenceFor(c *placement.Cluster) (sum int64) {
	for i := range r.preferences {
		if r.preferences[i].selects(c) {
			sum += r.preferences[i].weight
		}
	}
	for i := range r.affinities {
		sum += r.affinities[i].weightOn(c.Name)
	}
	return sum - r.aversion[c.Name]
}

// Strict reports whether a constraint rather leaves replicas unplaced than exceeds its skew.
func Strict(s *v1alpha1.SpreadConstraint) bool { return s.WhenUnsatisfiable != v1alpha1.PlaceAnyway }

// SpreadsStrictly reports whether any constraint rather leaves replicas unplaced than exceeds its skew.
func (r *Rules) SpreadsStrictly() bool {
	return slices.ContainsFunc(r.Spread, func(s v1alpha1.SpreadConstraint) bool { return Strict(&s) })
}

// DomainIn is the cluster's value of a label.
func DomainIn(c *placement.Cluster, key string) (value string, has bool) {
	if value, has = c.Labels[key]; has {
		return value, true
	}
	if value, has = c.Topology[key]; has {
		return value, true
	}
	return c.Name, key == v1alpha1.LabelClusterName
}

// SelectorOf reads a selector for which unset means everything.
func SelectorOf(selector *metav1.LabelSelector) (labels.Selector, error) {
	if selector == nil {
		return labels.Everything(), nil
	}
	return metav1.LabelSelectorAsSelector(selector)
}

// Absent are the names of clusters that the pin or the policy wants and that have not joined, sorted.
func (r *Rules) Absent(joined func(name string) bool) (names []string) {
	for name := range r.names {
		if !joined(name) {
			names = append(names, name)
		}
	}
	for i := range r.Groups {
		for name := range r.Groups[i].names {
			if _, named := r.names[name]; (r.names == nil || named) && !joined(name) {
				names = append(names, name)
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}
