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
func Select(
	w placement.Workload, namespaced []v1alpha1.PlacementPolicy, cluster []v1alpha1.ClusterPlacementPolicy,
) (*placement.Policy, error) {
	for _, c := range contenders(&w, namespaced, cluster) {
		selects, err := c.selects(&w)
		if err != nil {
			return nil, fmt.Errorf("select %s %s/%s by %s: %w", w.GVK.Kind, w.Namespace, w.Name, c.policy.String(), err)
		}
		if selects {
			return &c.policy, nil
		}
	}
	return nil, nil
}

// contender is a policy before it is known whether it selects the workload.
type contender struct {
	policy            placement.Policy
	created           time.Time
	namespaceSelector *metav1.LabelSelector
	// described are the kinds of custom resources that it describes.
	described []v1alpha1.CustomWorkload
}

// contenders are all policies that could select the workload, the one that wins over all others first.
func contenders(w *placement.Workload, namespaced []v1alpha1.PlacementPolicy, cluster []v1alpha1.ClusterPlacementPolicy) []contender {
	out := make([]contender, 0, len(namespaced)+len(cluster))
	for i := range namespaced {
		if p := &namespaced[i]; p.Namespace == w.Namespace {
			out = append(out, contenderOf(p))
		}
	}
	for i := range cluster {
		out = append(out, wideContenderOf(&cluster[i]))
	}
	slices.SortFunc(out, func(a, b contender) int {
		return cmp.Or(
			-cmp.Compare(a.policy.Kind, b.policy.Kind), // PlacementPolicy before ClusterPlacementPolicy
			-cmp.Compare(a.policy.Spec.Priority, b.policy.Spec.Priority),
			a.created.Compare(b.created),
			cmp.Compare(a.policy.Name, b.policy.Name),
		)
	})
	return out
}

func contenderOf(p *v1alpha1.PlacementPolicy) contender {
	return contender{
		policy:  placement.Policy{Kind: "PlacementPolicy", Namespace: p.Namespace, Name: p.Name, Spec: p.Spec, Drain: drainOf(p.Annotations)},
		created: p.CreationTimestamp.Time,
	}
}

func wideContenderOf(p *v1alpha1.ClusterPlacementPolicy) contender {
	return contender{
		policy:            placement.Policy{Kind: "ClusterPlacementPolicy", Name: p.Name, Spec: p.Spec.PlacementPolicySpec, Drain: drainOf(p.Annotations)},
		created:           p.CreationTimestamp.Time,
		namespaceSelector: p.Spec.NamespaceSelector,
		described:         p.Spec.CustomWorkloads,
	}
}

// drainOf reads what the annotations of a policy say of how long to drain, nil if nothing.
func drainOf(annotations map[string]string) *time.Duration {
	if drain, said := v1alpha1.DrainOf(annotations); said {
		return &drain
	}
	return nil
}

func (c *contender) selects(w *placement.Workload) (bool, error) {
	if ok, err := matches(c.namespaceSelector, w.NamespaceLabels); err != nil || !ok {
		return false, wrap("namespaceSelector", err)
	}
	workloads := c.policy.Spec.Workloads
	if workloads == nil {
		return !w.Custom, nil
	}
	if (w.Custom || len(workloads.Kinds) > 0) && !slices.Contains(workloads.Kinds, w.ListedAs()) {
		return false, nil
	}
	ok, err := matches(workloads.LabelSelector, w.Labels)
	return ok, wrap("workloads.labelSelector", err)
}

func matches(selector *metav1.LabelSelector, set map[string]string) (bool, error) {
	s, err := SelectorOf(selector)
	if err != nil {
		return false, err
	}
	return s.Matches(labels.Set(set)), nil
}

func wrap(field string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", field, err)
}
