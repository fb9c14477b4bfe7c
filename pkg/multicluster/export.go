package multicluster

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	mcs "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/internal/text"
	"github.com/manifold-dev/manifold/pkg/identity"
	"github.com/manifold-dev/manifold/pkg/projection"
)

// The kinds of the API. Any version of them that is served will do.
var (
	ExportKind = schema.GroupKind{Group: mcs.GroupName, Kind: mcs.ServiceExportKindName}
	ImportKind = schema.GroupKind{Group: mcs.GroupName, Kind: mcs.ServiceImportKindName}
)

const (
	// Finalizer is held by a ServiceExport as long as anything of it may be on its Service.
	Finalizer = "multicluster.manifold.dev/export"
	// FieldManager is who annotates the Services that are exported, and takes the annotation away again.
	FieldManager = "manifold-multicluster"
	// mostSaid bounds the message of a condition.
	mostSaid = 1024
	// mostNamed is how many clusters a message names.
	mostNamed = 10
)

// Export is what is known of a Service that is exported.
type Export struct {
	Namespace, Name string
	// Service is nil if there is none.
	Service *corev1.Service
	// Sources are the clusters that have pods of it, by name. Those that are Alone share no network with others.
	Sources, Alone []string
	// Networked reports whether there are clusters that share a network at all.
	Networked bool
	// Trouble is what could not be done about it, "" if all could.
	Trouble string
	// Unshown is how many of its slices are more than are shown.
	Unshown int
	// Theirs is nil unless clusters carry out the export themselves: what each of them says of the import.
	Theirs map[string]Theirs
}

// Refusal is why a Service cannot be exported.
type Refusal struct {
	Reason  mcs.ServiceExportConditionReason
	Message string
}

// reasonRefused is why nothing is exported that goes to no cluster at all.
const reasonRefused mcs.ServiceExportConditionReason = "Refused"

// Refuse returns why the Service cannot be exported, nil if it can.
func (e Export) Refuse() *Refusal {
	if why, refused := projection.NamespaceRefusal(e.Namespace); refused {
		return &Refusal{reasonRefused, why}
	}
	switch {
	case e.Service == nil:
		return &Refusal{mcs.ServiceExportReasonNoService, fmt.Sprintf("there is no Service %s in namespace %s: make one of this name", e.Name, e.Namespace)}
	case !projection.Lives(e.Service):
		return &Refusal{mcs.ServiceExportReasonNoService, fmt.Sprintf("Service %s is being deleted", e.Name)}
	case e.Service.Spec.Type == corev1.ServiceTypeExternalName:
		return &Refusal{mcs.ServiceExportReasonInvalidServiceType, "a Service of type ExternalName is a name of something outside, and is in every cluster as it is"}
	}
	kind, _ := projection.ForResource(identity.Services)
	if goes, why := kind.Projectable(e.Service); !goes {
		return &Refusal{reasonRefused, why}
	}
	return nil
}

// chosen returns what the Service itself says of where it leads, "" if nothing.
func (e Export) chosen() v1alpha1.Traffic {
	return v1alpha1.Traffic(e.Service.Annotations[v1alpha1.AnnotationTraffic])
}

// Annotates reports whether the export is to say on the Service that it leads to all of its pods: where it has a choice, and nothing is said there.
func (e Export) Annotates() bool {
	_, said := e.Service.Annotations[v1alpha1.AnnotationTraffic]
	return !said && len(e.Service.Spec.Selector) > 0
}

// Conditions returns those of the ServiceExport, for the generation that was looked at. The time is whoever's who stores them.
func (e Export) Conditions(generation int64) []metav1.Condition {
	valid := condition(string(mcs.ServiceExportConditionValid), metav1.ConditionTrue, string(mcs.ServiceExportReasonValid), "")
	ready := condition(string(mcs.ServiceExportConditionReady), metav1.ConditionFalse, string(mcs.ServiceExportReasonPending), "")
	if refusal := e.Refuse(); refusal != nil {
		valid = condition(valid.Type, metav1.ConditionFalse, string(refusal.Reason), refusal.Message)
		ready.Message = "it cannot be exported, see the condition Valid"
		if e.Trouble != "" {
			ready.Reason, ready.Message = string(mcs.ServiceExportReasonFailed), e.Trouble
		}
	} else {
		ready = e.ready(ready)
	}
	out := []metav1.Condition{valid, ready, condition(string(mcs.ServiceExportConditionConflict), metav1.ConditionFalse, string(mcs.ServiceExportReasonNoConflicts),
		"what all clusters export is the one Service of the logical cluster")}
	for i := range out {
		out[i].ObservedGeneration = generation
		out[i].Message = text.Line(out[i].Message, mostSaid)
	}
	return out
}

// Leaving is the condition of a ServiceExport that is deleted and cannot go.
func Leaving(generation int64, why string) metav1.Condition {
	out := condition(string(mcs.ServiceExportConditionReady), metav1.ConditionFalse, string(mcs.ServiceExportReasonFailed), text.Line(why, mostSaid))
	out.ObservedGeneration = generation
	return out
}

// ready says whether clusters that have none of its pods reach the Service.
func (e Export) ready(out metav1.Condition) metav1.Condition {
	alone := fmt.Sprintf("spec.network of cluster %s is empty, so it and the others do not reach each other's pods", named(e.Alone))
	switch {
	case e.Trouble != "":
		out.Reason, out.Message = string(mcs.ServiceExportReasonFailed), e.Trouble
	case len(e.Service.Spec.Selector) > 0 && e.chosen() == v1alpha1.TrafficLocal:
		out.Reason = string(mcs.ServiceExportReasonFailed)
		out.Message = fmt.Sprintf("annotation %s: %s of the Service keeps each cluster to its own pods: remove it, or have it say %s or %s",
			v1alpha1.AnnotationTraffic, v1alpha1.TrafficLocal, v1alpha1.TrafficGlobal, v1alpha1.TrafficPreferLocal)
	case len(e.Service.Spec.Selector) > 0 && !e.Networked:
		out.Message = "no clusters share a network: set spec.network of those that reach each other's pods"
	case len(e.Alone) > 0 && len(e.Alone) == len(e.Sources):
		out.Message = alone
	default:
		out.Status, out.Reason = metav1.ConditionTrue, string(mcs.ServiceExportReasonExported)
		out.Message = e.exported()
		if len(e.Alone) > 0 {
			out.Message += "; " + alone
		}
	}
	return out
}

// exported says what is reached, and by whom.
func (e Export) exported() string {
	if len(e.Service.Spec.Selector) == 0 {
		return fmt.Sprintf("it has no selector, so every cluster that runs anything of namespace %s has it with the endpoints that are written for it", e.Namespace)
	}
	out := fmt.Sprintf("every cluster of their network that runs anything of namespace %s reaches its pods in %s", e.Namespace, named(e.Sources))
	if len(e.Sources) == 0 {
		out = "no cluster has pods of it yet"
	}
	if chosen := e.chosen(); chosen != "" && chosen != v1alpha1.TrafficGlobal {
		out += fmt.Sprintf("; the Service says itself that it leads to them as %s", chosen)
	}
	if e.Unshown > 0 {
		out += fmt.Sprintf("; %d further EndpointSlices are not shown", e.Unshown)
	}
	return out
}

func named(clusters []string) string {
	if rest := len(clusters) - mostNamed; rest > 0 {
		return fmt.Sprintf("%s and %d more", named(clusters[:mostNamed]), rest)
	}
	quoted := slices.Clone(clusters)
	for i, name := range quoted {
		quoted[i] = fmt.Sprintf("%q", name)
	}
	return strings.Join(quoted, ", ")
}

func condition(kind string, status metav1.ConditionStatus, reason, message string) metav1.Condition {
	return metav1.Condition{Type: kind, Status: status, Reason: reason, Message: message}
}
