// Package policies reads the policies that there are, finds those that may select a workload, and says which workloads one selects.
package policies

import (
	"fmt"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/lru"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	informers "github.com/manifold-dev/manifold/generated/informers/externalversions/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/placement"
	"github.com/manifold-dev/manifold/pkg/placement/rules"
	"github.com/manifold-dev/manifold/pkg/projection"
)

// mostRead bounds how many policies are remembered as they were read, those that were asked last.
const mostRead = 8192

// Reading reads policies, and remembers them: every decision asks those of its namespace, and reading a selector takes longer than matching it with the
// labels of hundreds of workloads.
type Reading struct {
	namespaced, wide cache.Indexer
	read             *lru.Cache
}

// read is what was read of an object of the informers' caches. These replace objects, and never change them.
type read struct {
	object any
	policy *rules.Policy
}

// Indexes over policies: by their namespace and the label that they select by, and by their namespace and what they say.
const (
	bySelected = "manifold.dev/selected"
	bySaying   = "manifold.dev/saying"
)

// What policies may say of workloads that most do not.
const (
	Overrides = "overrides"
	Moves     = "moves"
)

// indexed has policies indexed by an informer, which the caller starts afterwards.
func indexed(informer cache.SharedIndexInformer) (cache.Indexer, error) {
	missing := cache.Indexers{bySelected: indexSelected, bySaying: indexSaying}
	maps.DeleteFunc(missing, func(name string, _ cache.IndexFunc) bool { return informer.GetIndexer().GetIndexers()[name] != nil })
	if err := informer.AddIndexers(missing); err != nil {
		return nil, fmt.Errorf("index policies: %w", err)
	}
	return informer.GetIndexer(), nil
}

// New returns a reading of what these informers show, which the caller starts afterwards.
func New(own informers.Interface) (Reading, error) {
	namespaced, err := indexed(own.PlacementPolicies().Informer())
	if err != nil {
		return Reading{}, err
	}
	wide, err := indexed(own.ClusterPlacementPolicies().Informer())
	return newReading(namespaced, wide), err
}

func newReading(namespaced, wide cache.Indexer) Reading {
	return Reading{namespaced, wide, lru.New(mostRead)}
}

func indexSelected(obj any) ([]string, error) {
	spec, namespaces := specOf(obj)
	if spec == nil {
		return nil, nil
	}
	return []string{obj.(metav1.Object).GetNamespace() + "/" + selectedBy(spec, namespaces)}, nil
}

func indexSaying(obj any) (out []string, _ error) {
	spec, _ := specOf(obj)
	if spec == nil {
		return nil, nil
	}
	in := obj.(metav1.Object).GetNamespace()
	if len(spec.Overrides) > 0 {
		out = append(out, in+"/"+Overrides)
	}
	if spec.Move != nil {
		out = append(out, in+"/"+Moves)
	}
	return out, nil
}

// specOf returns what both kinds of policies have in common, and the selector of namespaces.
func specOf(obj any) (*v1alpha1.PlacementPolicySpec, *metav1.LabelSelector) {
	switch p := obj.(type) {
	case *v1alpha1.PlacementPolicy:
		return &p.Spec, nil
	case *v1alpha1.ClusterPlacementPolicy:
		return &p.Spec.PlacementPolicySpec, p.Spec.NamespaceSelector
	}
	return nil, nil
}

// selectedBy is a label that every workload has which a policy selects. It is "" if there is none, or if a selector cannot be read: then nobody knows which
// workloads are meant, and each of them hears of it.
func selectedBy(spec *v1alpha1.PlacementPolicySpec, namespaces *metav1.LabelSelector) string {
	if spec.Workloads == nil || spec.Workloads.LabelSelector == nil {
		return ""
	}
	of := spec.Workloads.LabelSelector
	for _, selector := range []*metav1.LabelSelector{of, namespaces} {
		if _, err := rules.SelectorOf(selector); err != nil {
			return ""
		}
	}
	if len(of.MatchLabels) == 0 {
		return ""
	}
	first := slices.Min(slices.Collect(maps.Keys(of.MatchLabels)))
	return label(first, of.MatchLabels[first])
}

func label(key, value string) string { return key + "=" + value }

func (r Reading) of(name cache.ObjectName, object any, policy func() *rules.Policy) *rules.Policy {
	if last, has := r.read.Get(name); has && last.(read).object == object {
		return last.(read).policy
	}
	out := policy()
	r.read.Add(name, read{object, out})
	return out
}

// one reads a policy of either kind.
func (r Reading) one(obj any) *rules.Policy {
	if p, namespaced := obj.(*v1alpha1.PlacementPolicy); namespaced {
		return r.of(cache.MetaObjectToName(p), p, func() *rules.Policy { return rules.PolicyOf(p) })
	}
	p := obj.(*v1alpha1.ClusterPlacementPolicy)
	return r.of(cache.MetaObjectToName(p), p, func() *rules.Policy { return rules.WidePolicyOf(p) })
}

// ForWorkload reads those that may select a workload of a namespace with these labels, in no order: a namespace may have a policy for each of a thousand
// applications.
func (r Reading) ForWorkload(namespace string, has map[string]string) (out []*rules.Policy) {
	for _, of := range []struct {
		indexer   cache.Indexer
		namespace string
	}{{r.namespaced, namespace}, {r.wide, metav1.NamespaceNone}} {
		read := func(by string) {
			found, _ := of.indexer.ByIndex(bySelected, of.namespace+"/"+by) // the index exists
			for _, obj := range found {
				out = append(out, r.one(obj))
			}
		}
		read("")
		for key, value := range has {
			read(label(key, value))
		}
	}
	return out
}

// All reads those of all namespaces, and those that are in none, in no order.
func (r Reading) All() []*rules.Policy {
	out := r.Wide()
	for _, obj := range r.namespaced.List() {
		out = append(out, r.one(obj))
	}
	return out
}

// Wide reads those that are in no namespace.
func (r Reading) Wide() (out []*rules.Policy) {
	for _, obj := range r.wide.List() {
		out = append(out, r.one(obj))
	}
	return out
}

// AnySays reports whether any policy for workloads of a namespace says such a thing, so that for most workloads none need be selected.
func (r Reading) AnySays(what, namespace string) bool {
	mine, _ := r.namespaced.IndexKeys(bySaying, namespace+"/"+what) // the index exists
	if len(mine) > 0 {
		return true
	}
	wide, _ := r.wide.IndexKeys(bySaying, metav1.NamespaceNone+"/"+what)
	return len(wide) > 0
}

// Concerned returns which workloads of its namespace a policy has a part in the decision about. The second result says that it may have one in those
// about any others: it keeps them apart from its own.
func Concerned(p *v1alpha1.PlacementPolicy) (concerns func(projection.Kind, projection.Object) bool, others bool) {
	policy := rules.PolicyOf(p)
	return func(kind projection.Kind, o projection.Object) bool {
		return policy.Concerns(&placement.Workload{GVK: kind.GVK, Namespace: o.GetNamespace(), Labels: o.GetLabels()})
	}, len(p.Spec.AntiAffinity) > 0
}

// SelectedBy returns which workloads any of some policies selects, be they for one namespace or for several, or may select: of one that cannot be read, and
// of a namespace whose labels are not known yet, nobody can tell. LabelsOf returns the labels of a namespace, as far as they are known.
func SelectedBy(labelsOf func(namespace string) (map[string]string, bool), policies ...metav1.Object) func(projection.Kind, projection.Object) bool {
	var read []*rules.Policy
	for _, policy := range policies {
		switch p := policy.(type) {
		case *v1alpha1.PlacementPolicy:
			read = append(read, rules.PolicyOf(p))
		case *v1alpha1.ClusterPlacementPolicy:
			read = append(read, rules.WidePolicyOf(p))
		}
	}
	return func(kind projection.Kind, o projection.Object) bool {
		w := placement.Workload{GVK: kind.GVK, Namespace: o.GetNamespace(), Labels: o.GetLabels()}
		var known bool
		w.NamespaceLabels, known = labelsOf(w.Namespace)
		return !known || slices.ContainsFunc(read, func(p *rules.Policy) bool { return p.Concerns(&w) })
	}
}
