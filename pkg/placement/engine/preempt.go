package engine

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	schedulinglisters "k8s.io/client-go/listers/scheduling/v1"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/clusters"
	"github.com/manifold-dev/manifold/pkg/placement"
)

// place decides, and where there is no room and the policy allows it, decides again with the room of what has a lower priority.
func (e *Engine) place(snapshot placement.Snapshot, request placement.Request, joined []*v1alpha1.Cluster) placement.Result {
	for _, stuck := range request.Stuck {
		if placement.LacksResources(stuck.Says) {
			request.Workload.Priority, _ = e.priorities.of(request.Workload.Template)
			request.Rivals = e.rivals()
			break
		}
	}
	result := placement.Place(snapshot, request)
	if !request.Policy.MayPreempt() || !result.LacksRoom(snapshot, &request) {
		return result
	}
	priority, preempts := e.priorities.of(request.Workload.Template)
	if !preempts {
		return result
	}
	request.Workload.Priority, request.Lower = priority, e.lower(joined)
	result, taken := placement.Preempt(snapshot, request, result)
	if len(taken) > 0 {
		result.Notes = append(result.Notes, placement.RemarkTaken(taken, priority, e.rivals()))
	}
	return result
}

// lower returns what runs on clusters by priority.
func (e *Engine) lower(joined []*v1alpha1.Cluster) map[string]placement.Lower {
	if e.levels == nil {
		return nil
	}
	out := make(map[string]placement.Lower, len(joined))
	for _, c := range joined {
		lower := placement.Lower{Levels: e.levels(c.Name)}
		if len(c.Spec.Limits) > 0 {
			live, _ := e.view.requested(c.Name)
			_, room := clusters.ForPlacement(c, live)
			lower.Beyond = e.ledger.beyond(c.Name, room)
		}
		out[c.Name] = lower
	}
	return out
}

// rivals returns all workloads that are placed.
func (e *Engine) rivals() []placement.Rival {
	values, otherwise := e.priorities.values()
	var out []placement.Rival
	for _, entry := range e.ledger.classed() {
		priority, known := values[entry.class]
		if !known {
			priority = otherwise
		}
		out = append(out, placement.Rival{Name: entry.name, Priority: priority, Requests: entry.requests, Decision: entry.decision})
	}
	return out
}

// priorities resolves PriorityClasses, as admission does for pods.
type priorities struct {
	classes schedulinglisters.PriorityClassLister
}

// of returns the priority of pods that are made from a template, and whether they may stop others. A class that is not there counts like
// none: no pod can be made of it anyway.
func (p priorities) of(template *corev1.PodTemplateSpec) (priority int32, preempts bool) {
	preempts = true
	never := func(policy *corev1.PreemptionPolicy) bool { return policy != nil && *policy == corev1.PreemptNever }
	name := ""
	if template != nil {
		name, preempts = template.Spec.PriorityClassName, !never(template.Spec.PreemptionPolicy)
	}
	if class, err := p.classes.Get(name); name != "" && err == nil {
		return class.Value, preempts && !never(class.PreemptionPolicy)
	}
	_, priority = p.values()
	return priority, preempts
}

// values returns the priority of each class, and that of pods which name none: the lowest of the global defaults, of which there should be
// no more than one, and 0 without any.
func (p priorities) values() (byName map[string]int32, otherwise int32) {
	all, _ := p.classes.List(labels.Everything()) // listing from a cache cannot fail
	byName, found := make(map[string]int32, len(all)), false
	for _, class := range all {
		byName[class.Name] = class.Value
		if class.GlobalDefault && (!found || class.Value < otherwise) {
			otherwise, found = class.Value, true
		}
	}
	return byName, otherwise
}
