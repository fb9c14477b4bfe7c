package rules

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/placement"
)

// Select finds the policy that the workload is under: one of its own namespace if any selects it, else one for several
// namespaces; among these the highest priority, then the oldest, then the first by name. It returns nil if none selects the
// workload. If a policy that would come before all others has a selector that cannot be read, nobody knows which one should win:
// that is an error, which names it.
func Select(w placement.Workload, policies []*Policy) (*placement.Policy, error) {
	// The first of those that select it is looked for without sorting them all: a namespace may have a thousand.
	var first *Policy
	var problem error
	for _, p := range policies {
		if first != nil && first.compare(p) <= 0 {
			continue
		}
		if selects, err := p.selects(&w); selects || err != nil {
			first, problem = p, err
		}
	}
	switch {
	case problem != nil:
		return nil, fmt.Errorf("select %s %s/%s by %s: %w", w.GVK.Kind, w.Namespace, w.Name, first.policy.String(), problem)
	case first == nil:
		return nil, nil
	}
	return &first.policy, nil
}

// Policy is a policy whose selectors have been read. Decisions share it, so nothing of it may be changed.
type Policy struct {
	policy  placement.Policy
	created time.Time
	// described are the kinds of custom resources that it describes.
	described []v1alpha1.CustomWorkload
	// namespaces and labels are the selectors, or say why they cannot be read.
	namespaces, labels selector
}

// selector is one that was read, or why it cannot be.
type selector struct {
	labels.Selector
	err error
}

func readSelector(of *metav1.LabelSelector, field string) selector {
	read, err := SelectorOf(of)
	return selector{read, wrap(field, err)}
}

func (s selector) matches(set map[string]string) (bool, error) {
	if s.err != nil {
		return false, s.err
	}
	return s.Matches(labels.Set(set)), nil
}

// PolicyOf reads a policy for workloads of its namespace.
func PolicyOf(p *v1alpha1.PlacementPolicy) *Policy {
	return policyOf("PlacementPolicy", p, &p.Spec, nil)
}

// WidePolicyOf reads a policy for workloads of several namespaces.
func WidePolicyOf(p *v1alpha1.ClusterPlacementPolicy) *Policy {
	out := policyOf("ClusterPlacementPolicy", p, &p.Spec.PlacementPolicySpec, p.Spec.NamespaceSelector)
	out.described = p.Spec.CustomWorkloads
	return out
}

func policyOf(kind string, p metav1.Object, spec *v1alpha1.PlacementPolicySpec, namespaces *metav1.LabelSelector) *Policy {
	out := &Policy{
		policy:     placement.Policy{Kind: kind, Namespace: p.GetNamespace(), Name: p.GetName(), Spec: *spec, Drain: drainOf(p.GetAnnotations())},
		created:    p.GetCreationTimestamp().Time,
		namespaces: readSelector(namespaces, "namespaceSelector"),
	}
	if spec.Workloads != nil {
		out.labels = readSelector(spec.Workloads.LabelSelector, "workloads.labelSelector")
	}
	return out
}

// drainOf reads what the annotations of a policy say of how long to drain, nil if nothing.
func drainOf(annotations map[string]string) *time.Duration {
	if drain, said := v1alpha1.DrainOf(annotations); said {
		return &drain
	}
	return nil
}

// compare is negative if a policy wins over another one where both select a workload.
func (p *Policy) compare(other *Policy) int {
	return cmp.Or(
		-cmp.Compare(p.policy.Kind, other.policy.Kind), // PlacementPolicy before ClusterPlacementPolicy
		-cmp.Compare(p.policy.Spec.Priority, other.policy.Spec.Priority),
		p.created.Compare(other.created),
		cmp.Compare(p.policy.Name, other.policy.Name),
	)
}

func (p *Policy) selects(w *placement.Workload) (bool, error) {
	if p.policy.Namespace != "" && p.policy.Namespace != w.Namespace {
		return false, nil
	}
	if ok, err := p.namespaces.matches(w.NamespaceLabels); err != nil || !ok {
		return false, err
	}
	workloads := p.policy.Spec.Workloads
	if workloads == nil {
		return !w.Custom, nil
	}
	if (w.Custom || len(workloads.Kinds) > 0) && !slices.Contains(workloads.Kinds, w.ListedAs()) {
		return false, nil
	}
	return p.labels.matches(w.Labels)
}

// Concerns reports whether a policy has a part in what is decided about a workload: it selects it, or cannot be read, so that nobody knows. Those which
// its antiAffinity is about are not meant.
func (p *Policy) Concerns(w *placement.Workload) bool {
	selects, err := p.selects(w)
	return selects || err != nil
}

func wrap(field string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", field, err)
}
