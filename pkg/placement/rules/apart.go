package rules

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/placement"
)

// KeepApart tells each of the others the antiAffinity of its own policy, if that may be about the workload. Whoever is kept apart from
// another one keeps apart from it as well: which of the two comes first may not matter.
func KeepApart(w *placement.Workload, others []placement.Other, policies []*Policy) {
	keepers, _ := keepersFrom(w, policies)
	if len(keepers) == 0 {
		return
	}
	for i := range others {
		o := &others[i]
		other := workloadOf(o)
		if o.Pinned || isSame(o, w) || !slices.ContainsFunc(keepers, func(k *Policy) bool { return k.surelySelects(&other) }) {
			continue
		}
		if policy, err := Select(other, policies); err == nil && policy != nil {
			o.Apart = policy.Spec.AntiAffinity
		}
	}
}

// KeptApart reports whether the antiAffinity of any policy may be about the workload, and if so, whether those whose policy it is may be in
// other namespaces.
func KeptApart(w *placement.Workload, policies []*Policy) (kept, allNamespaces bool) {
	keepers, allNamespaces := keepersFrom(w, policies)
	return len(keepers) > 0, allNamespaces
}

// keepersFrom are the policies with antiAffinity that is about the workload. It does not count for pinned ones, and custom resources are
// nothing that it could be about.
func keepersFrom(w *placement.Workload, policies []*Policy) (keepers []*Policy, allNamespaces bool) {
	if w.IsPinned() || w.Custom {
		return nil, false
	}
	self := otherOf(w)
	for _, p := range policies {
		// Without a namespaceSelector, that of a ClusterPlacementPolicy is about workloads of the same namespace.
		namespace, about := cmp.Or(p.policy.Namespace, w.Namespace), false
		for i := range p.policy.Spec.AntiAffinity {
			term, err := readTerm(&p.policy.Spec.AntiAffinity[i])
			if err == nil && term.concerns(&self, namespace) {
				about, allNamespaces = true, allNamespaces || term.namespaces != nil
			}
		}
		if about {
			keepers = append(keepers, p)
		}
	}
	return keepers, allNamespaces
}

// surelySelects reports whether the policy could be that of a workload.
func (p *Policy) surelySelects(w *placement.Workload) bool {
	selects, err := p.selects(w)
	return err == nil && selects
}

// workloadOf is what policies select of another workload by.
func workloadOf(o *placement.Other) placement.Workload {
	return placement.Workload{
		GVK: schema.GroupVersionKind{Group: o.Group, Kind: o.Kind}, Namespace: o.Namespace, Name: o.Name,
		Labels: o.Labels, NamespaceLabels: o.NamespaceLabels,
	}
}

// isSame reports whether the other one is the workload itself.
func isSame(o *placement.Other, w *placement.Workload) bool {
	return o.Namespace == w.Namespace && o.Name == w.Name && o.Kind == w.GVK.Kind
}

// otherOf is how others see the workload.
func otherOf(w *placement.Workload) placement.Other {
	return placement.Other{
		Kind: w.GVK.Kind, Group: w.GVK.Group, Namespace: w.Namespace, Name: w.Name, Labels: w.Labels, NamespaceLabels: w.NamespaceLabels,
	}
}

// shun finds out where others run that are to be kept apart from the workload by their own policies.
func (r *Rules) shun(request *placement.Request) {
	self := otherOf(&request.Workload)
	read := map[*v1alpha1.WorkloadAffinity]*term{} // that of a policy is the same for all who are under it
	for i := range request.Others {
		o := &request.Others[i]
		if isSame(o, &request.Workload) {
			continue
		}
		for j := range o.Apart {
			at := &o.Apart[j]
			t, known := read[at]
			if !known {
				t, _ = readTerm(at) // one that cannot be read keeps nobody apart
				read[at] = t
			}
			if t != nil && t.concerns(&self, o.Namespace) {
				r.keepOff(o, t.weight)
			}
		}
	}
}

// keepOff keeps the workload off the clusters of another one, or has them come last.
func (r *Rules) keepOff(o *placement.Other, weight int64) {
	if r.keepers == nil {
		r.keepers, r.aversion = map[string]string{}, map[string]int64{}
	}
	name := o.Kind + " " + o.Namespace + "/" + o.Name
	for _, cluster := range o.Clusters {
		if weight > 0 {
			r.aversion[cluster] += weight
		} else if first, known := r.keepers[cluster]; !known || name < first {
			r.keepers[cluster] = name
		}
	}
}

// term is a rule of affinity or antiAffinity that was read.
type term struct {
	kinds      []string
	selector   labels.Selector
	namespaces labels.Selector // nil for the namespace of the workload whose rule it is
	weight     int64           // 0 for a requirement
}

func readTerm(t *v1alpha1.WorkloadAffinity) (*term, error) {
	out := &term{selector: labels.Everything()}
	if t.Weight != nil {
		out.weight = int64(*t.Weight)
	}
	var err error
	if t.NamespaceSelector != nil {
		if out.namespaces, err = SelectorOf(t.NamespaceSelector); err != nil {
			return nil, wrap("namespaceSelector", err)
		}
	}
	if t.Workloads != nil {
		out.kinds = t.Workloads.Kinds
		if out.selector, err = SelectorOf(t.Workloads.LabelSelector); err != nil {
			return nil, wrap("workloads.labelSelector", err)
		}
	}
	return out, nil
}

// concerns reports whether the rule of a workload in this namespace is about another one.
func (t *term) concerns(o *placement.Other, namespace string) bool {
	if t.namespaces == nil && o.Namespace != namespace || t.namespaces != nil && !t.namespaces.Matches(labels.Set(o.NamespaceLabels)) {
		return false
	}
	return (len(t.kinds) == 0 || slices.Contains(t.kinds, o.Kind)) && t.selector.Matches(labels.Set(o.Labels))
}
