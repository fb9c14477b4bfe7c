package placement

import (
	"fmt"
	"maps"
	"slices"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
)

// Pods cannot be made without their PriorityClass and their RuntimeClass, which are each cluster's own.

// class is one that the pods of a workload name.
type class struct {
	kind, name string
}

func (c class) String() string { return c.kind + " " + c.name }

// namesClasses reports whether a workload, by its pods or by itself, names any class.
func namesClasses(w *Workload) bool {
	return w.StorageClass != "" || w.Template != nil && (w.Template.Spec.PriorityClassName != "" || w.runtimeClass() != "")
}

// runtimeClass is the RuntimeClass that the pods of a workload name, "" if none.
func (w *Workload) runtimeClass() string {
	if name := w.Template.Spec.RuntimeClassName; name != nil {
		return *name
	}
	return ""
}

// Lacks returns the class that the pods of a workload name and that a cluster does not have, such as "PriorityClass high"; "" if there is none, or
// if that is not known.
func (c *Cluster) Lacks(w *Workload) string {
	if !namesClasses(w) || c.Classes == nil {
		return ""
	}
	if name := w.StorageClass; name != "" &&
		!slices.ContainsFunc(c.Classes.StorageClasses, func(s v1alpha1.ClusterStorageClass) bool { return s.Name == name }) {
		return class{"StorageClass", name}.String()
	}
	if w.Template == nil {
		return ""
	}
	if name := w.Template.Spec.PriorityClassName; name != "" && !c.offersPriority(name, w.Brings) {
		return class{"PriorityClass", name}.String()
	}
	if name := w.runtimeClass(); name != "" && !has(c.Classes.RuntimeClasses, name) {
		return class{"RuntimeClass", name}.String()
	}
	return ""
}

// offersPriority reports whether pods of a PriorityClass can be made in a cluster, which has it or lets it come along.
func (c *Cluster) offersPriority(name string, brings *int32) bool {
	most := c.Allows.PriorityClassesUpTo
	return has(c.Classes.PriorityClasses, name) || brings != nil && most != nil && *brings <= *most
}

func has(sorted []string, name string) bool {
	_, found := slices.BinarySearch(sorted, name)
	return found
}

// checkClass keeps workloads away from clusters in which no pod of theirs could be made.
func checkClass(c *cycle, k *candidate) bool {
	lacking := k.Lacks(&c.request.Workload)
	return lacking != "" && k.refuse(Reason{Code: ReasonNoClass, Subject: lacking})
}

// WithoutClass returns what clusters refuse that lack a class of the workload, beside what they say themselves: all pods of its share that they do
// not have. Those that run need no class any more.
func (s Snapshot) WithoutClass(w *Workload, current Decision) map[string]Refusal {
	out, copied := w.Refused, false
	for name, share := range current {
		at, joined := s.places[name]
		if !joined {
			continue
		}
		lacking := s.clusters[at].Lacks(w)
		if lacking == "" || share.Replicas == 0 {
			continue
		}
		if !copied {
			copied, out = true, maps.Clone(w.Refused)
		}
		if out == nil {
			out = map[string]Refusal{}
		}
		out[name] = Refusal{Pods: share.Replicas, Says: fmt.Sprintf("it has no %s", lacking)}
	}
	return out
}

// offer says how a cluster comes to have a class.
func (p patient) offer() string {
	text := fmt.Sprintf("create %s in the cluster, or name another one", p.reason.Subject)
	brings := p.Workload.Brings
	if brings == nil || p.reason.Subject != (class{"PriorityClass", p.Workload.Template.Spec.PriorityClassName}).String() {
		return text
	}
	return fmt.Sprintf("%s, or let it come along: %s --allow-priority-classes=%d", text, JoinAgain(p.name, p.cluster.Allows), *brings)
}
