package projection

import (
	"fmt"
	"iter"
	"math"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1/validation"
	"github.com/manifold-dev/manifold/pkg/placement"
	"github.com/manifold-dev/manifold/pkg/placement/move"
)

// Demand is what a workload asks of the clusters.
type Demand struct {
	// Replicas is the number of what is divided: pods, of a Job those that it runs at a time.
	Replicas int32
	// Template is that of the pods.
	Template *corev1.PodTemplateSpec
	// Each is how many pods of Template each replica has; 0 counts as one. Beside are those that it has by further templates. Only custom
	// kinds have more than one pod of one template.
	Each   int32
	Beside []Pods
	// Problem is why nobody can read from the object what it asks for; nil if that is known.
	Problem error
	// Division says how far the workload may be divided.
	Division placement.Division
	// Ordinals says that the replicas have ordinals, of which each cluster gets a range.
	Ordinals bool
	// Claims tells that volume claims are made for the replicas, which stay when replicas leave a cluster.
	Claims bool
	// First is the ordinal of the first of numbered replicas.
	First int32
	// Takes says what the workload takes over when it is made.
	Takes placement.Takes
	// Rollout is what the workload's own strategy says of replacing its pods.
	Rollout move.Rollout
	// Only is the one cluster that the workload may run in, whatever its pin says; "" for any.
	Only string
	// Arrived is how many of the replicas are known to run, for a kind whose status is not broken down by cluster.
	Arrived int32
	// Whole is the reason why an object is not divided although others of its kind can be, as the end of a sentence.
	Whole string
	// Fixed tells that the workload stays where it was placed first: a pod that runs cannot be carried elsewhere.
	Fixed bool
	// Restarts tells that what is Fixed may start over elsewhere when nobody can ask its cluster any more, or its cluster is drained by force.
	Restarts bool
	// Unstarted tells of what Restarts that none of its pods has run yet, as far as its status tells.
	Unstarted bool
	// Finished tells that the workload has run to its end and asks for nothing any more.
	Finished bool
	// Once tells that the object is the pod itself: what may have begun somewhere begins nowhere else.
	Once bool
	// ClaimRequests are what the volume claims ask for that are made for each replica.
	ClaimRequests placement.Resources
}

// Pods are those that each replica has by one template.
type Pods struct {
	Template *corev1.PodTemplateSpec
	Each     int32
}

// Pods returns what pods each replica has, by template.
func (d Demand) Pods() iter.Seq[Pods] {
	return func(yield func(Pods) bool) {
		if d.Template == nil || !yield(Pods{d.Template, max(d.Each, 1)}) {
			return
		}
		for _, pods := range d.Beside {
			if !yield(pods) {
				return
			}
		}
	}
}

// PodsEach is how many pods each replica has.
func (d Demand) PodsEach() (sum int64) {
	for pods := range d.Pods() {
		sum += int64(pods.Each)
	}
	return sum
}

// Requests are what each replica asks for, with its volume claims.
func (d Demand) Requests() placement.Resources {
	out := d.podRequests()
	out.Add(d.ClaimRequests, 1)
	return out
}

// PriorityClass returns the one that the pods of a workload name, "" for none.
func (k Kind) PriorityClass(of Object) string {
	if template := k.Demand(of).Template; template != nil {
		return template.Spec.PriorityClassName
	}
	return ""
}

// podRequests are what the pods of each replica ask for.
func (d Demand) podRequests() placement.Resources {
	if len(d.Beside) == 0 && d.Each <= 1 {
		return placement.RequestsOf(d.Template)
	}
	out := placement.Resources{}
	for pods := range d.Pods() {
		for name, amount := range placement.RequestsOf(pods.Template) {
			if each := int64(pods.Each); amount > 0 && amount > (math.MaxInt64-out[name])/each {
				out[name] = math.MaxInt64 // more than anybody has
			} else {
				out[name] += amount * each
			}
		}
	}
	return out
}

// Demand reads what a workload asks of the clusters. It is empty for a kind that is no workload.
func (k Kind) Demand(in Object) Demand {
	if k.demand == nil {
		return Demand{}
	}
	return k.demand(in)
}

// MakesPods reports whether turning live into desired leads to pods that were not there, rather than to fewer of the same.
func (k Kind) MakesPods(desired, live Object) bool {
	want, have := k.Demand(desired), k.Demand(live)
	within := want.First >= have.First && want.First+want.Replicas <= have.First+have.Replicas
	if want.Ordinals && !within || want.Replicas > have.Replicas || want.Template == nil || have.Template == nil {
		return true
	}
	return !covers(want.Template, have.Template) || resumes(desired, live) || !slices.EqualFunc(want.Beside, have.Beside, func(a, b Pods) bool {
		return a.Each <= b.Each && covers(a.Template, b.Template)
	}) || want.Each > have.Each
}

// WorkloadOf reads what placement needs from a workload. The error is that of a pin that does not parse, or of an object that does not say what it
// asks for.
func (k Kind) WorkloadOf(in Object) (placement.Workload, error) {
	demand := k.Demand(in)
	if demand.Problem != nil {
		return placement.Workload{}, demand.Problem
	}
	w := placement.Workload{
		GVK:       k.GVK,
		Custom:    k.Custom,
		Namespace: in.GetNamespace(),
		Name:      in.GetName(),
		Labels:    in.GetLabels(),
		Replicas:  demand.Replicas,
		Division:  demand.Division,
		Ordinals:  demand.Ordinals,
		Takes:     demand.Takes,
		Whole:     demand.Whole,
		Awaits:    in.GetAnnotations()[v1alpha1.AnnotationAwaits] != "",
		Fixed:     demand.Fixed || demand.Finished,
		Once:      demand.Once,
		Restarts:  demand.Restarts && !demand.Finished,
		Unstarted: demand.Unstarted,
		Template:  demand.Template,
		Recreates: in.GetAnnotations()[v1alpha1.AnnotationVolumes] == v1alpha1.VolumesRecreate,
	}
	w.Never, _ = NamespaceRefusal(in.GetNamespace())
	// What is damaged is forgotten, and at worst found out again.
	w.Failures, _ = placement.ParseFailures(in.GetAnnotations()[v1alpha1.AnnotationPlacement])
	w.Refused = placement.ParseRefusals(in.GetAnnotations()[v1alpha1.AnnotationStatus])
	w.ClaimRequests = demand.ClaimRequests
	w.RunsIn = RunsIn(in)
	if demand.Template != nil {
		w.Requests = demand.podRequests()
	}
	for pods := range demand.Pods() {
		for _, volume := range pods.Template.Spec.Volumes {
			if claim := volume.PersistentVolumeClaim; claim != nil {
				w.VolumeClaims = append(w.VolumeClaims, claim.ClaimName)
			}
		}
	}
	for _, pods := range demand.Beside {
		w.Beside = append(w.Beside, pods.Template)
	}
	w.ClaimTemplates, w.First = k.ClaimTemplates(in), demand.First
	w.Claims = claimsMadeBy(in)
	if demand.Only != "" {
		w.Pin = &v1alpha1.Pin{Names: []string{demand.Only}}
		return w, nil
	}
	if text, ok := in.GetAnnotations()[v1alpha1.AnnotationClusters]; ok {
		pin, err := v1alpha1.ParsePin(text)
		if err != nil {
			return w, fmt.Errorf("annotation %s: %w", v1alpha1.AnnotationClusters, err)
		}
		w.Pin = &pin
	}
	w.Views = viewsOf(in, demand.Replicas)
	return w, nil
}

// viewsOf returns how many replicas each cluster is to run by its own view, nil if nobody has written any there. What nodes count has none that
// anybody says.
func viewsOf(in Object, otherwise int32) map[string]int32 {
	text := in.GetAnnotations()[v1alpha1.AnnotationViews]
	if text == "" {
		return nil
	}
	views, err := v1alpha1.ParseViews(text)
	if err != nil {
		return nil // it is Manifold's, and an object without is what its pin says
	}
	out := make(map[string]int32, len(views))
	for _, view := range views {
		out[view.Cluster] = ptr.Deref(view.Replicas, otherwise)
	}
	return out
}

// workloads are those of kinds that end in pods.
var workloads = slices.DeleteFunc(slices.Clone(kinds), func(k Kind) bool { return !k.Workload })

// Workloads returns the kinds that end in pods. The caller may not change it.
func Workloads() []Kind { return slices.Clip(workloads) }

// WorkloadKinds are the names of these, as policies list them.
func WorkloadKinds() validation.Workloads {
	var out validation.Workloads
	for _, kind := range workloads {
		out = append(out, kind.GVK.Kind)
	}
	slices.Sort(out)
	return out
}

// KindOf returns the kind of a typed object, which need not carry its type's name.
func KindOf(in Object) (Kind, bool) {
	for _, k := range kinds {
		if k.is(in) {
			return k, true
		}
	}
	return Kind{}, false
}
