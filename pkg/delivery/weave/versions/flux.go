package versions

import (
	"slices"
	"strings"
	"time"

	"github.com/Masterminds/semver/v3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/manifold-dev/manifold/internal/text"
	"github.com/manifold-dev/manifold/pkg/delivery"
	"github.com/manifold-dev/manifold/pkg/delivery/weave"
)

const (
	conditionReady   = "Ready"
	conditionStalled = "Stalled"
	// mostEntries is how many entries of a list in a status are looked at.
	mostEntries = 32
)

// onTheWay are the reasons for which an object of Flux is not ready and has not failed either: it is being worked on, or waits for others.
var onTheWay = []string{"Progressing", "ProgressingWithRetry", "DependencyNotReady", "SourceNotReady", "ArtifactNotReady", "Suspended"}

// helmRelease is of the chart's version that it names. One that names a range is of the version that was tried last.
func helmRelease(o *unstructured.Unstructured) weave.WorkloadStatus {
	out := begin(HelmRelease.Kind, o)
	applied := textIn(o, "status", "lastAppliedRevision")
	if applied == "" {
		applied = deployedChart(o)
	}
	out.LastAppliedRevision = text.Line(applied, mostRevision)
	version := textIn(o, "spec", "chart", "spec", "version")
	if _, err := semver.StrictNewVersion(strings.TrimPrefix(version, "v")); err != nil {
		if version = textIn(o, "status", "lastAttemptedRevision"); version == "" {
			version = applied
		}
	}
	out.Version = text.Line(version, mostVersion)
	ready(&out, o)
	return out
}

// deployedChart is the version of the chart that is installed, as newer versions of the helm-controller say it.
func deployedChart(o *unstructured.Unstructured) string {
	for _, entry := range listIn(o, "status", "history") {
		if status, _ := entry["status"].(string); status == "deployed" {
			version, _ := entry["chartVersion"].(string)
			return version
		}
	}
	return ""
}

// kustomization is of the revision of its source that was tried last.
func kustomization(o *unstructured.Unstructured) weave.WorkloadStatus {
	out := begin(Kustomization.Kind, o)
	out.LastAppliedRevision = text.Line(textIn(o, "status", "lastAppliedRevision"), mostRevision)
	out.Version = text.Line(textIn(o, "status", "lastAttemptedRevision"), mostVersion)
	if out.Version == "" {
		out.Version = out.LastAppliedRevision
	}
	ready(&out, o)
	return out
}

// ready says by the conditions whether an object of Flux is ready, and what keeps it from that.
func ready(out *weave.WorkloadStatus, o *unstructured.Unstructured) {
	condition := conditionOf(o, conditionReady)
	observed, found, err := unstructured.NestedInt64(o.Object, "status", "observedGeneration")
	switch {
	case condition == nil:
		out.Message = "its controller has said nothing of it yet"
		return
	case !found || err != nil || observed < o.GetGeneration() || condition.ObservedGeneration != 0 && condition.ObservedGeneration < o.GetGeneration():
		out.Message = notTakenUp
		return
	}
	says(out, o, condition)
	if suspended, _, _ := unstructured.NestedBool(o.Object, "spec", "suspend"); suspended {
		out.Message = joined("it is suspended", out.Message)
	}
	out.Conditions = []metav1.Condition{*condition}
}

// joined is what is said of two things, of which the second may be nothing.
func joined(first, second string) string {
	if second != "" {
		first += "; " + second
	}
	return delivery.Said(first)
}

// says takes in what the condition Ready says of an object as it is now.
func says(out *weave.WorkloadStatus, o *unstructured.Unstructured, condition *metav1.Condition) {
	if condition.Status == metav1.ConditionTrue {
		out.Ready = true
		return
	}
	out.Message = delivery.Said(condition.Reason + ": " + condition.Message)
	stalled := conditionOf(o, conditionStalled)
	out.Failed = condition.Status == metav1.ConditionFalse && !slices.Contains(onTheWay, condition.Reason) || stalled != nil && stalled.Status == metav1.ConditionTrue
}

// conditionOf returns a condition as it is said, with everything bounded; nil if it is not said.
func conditionOf(o *unstructured.Unstructured, kind string) *metav1.Condition {
	for _, entry := range listIn(o, "status", "conditions") {
		if said, _ := entry["type"].(string); said != kind {
			continue
		}
		out := &metav1.Condition{Type: kind, Status: metav1.ConditionUnknown}
		if status, _ := entry["status"].(string); status == string(metav1.ConditionTrue) || status == string(metav1.ConditionFalse) {
			out.Status = metav1.ConditionStatus(status)
		}
		reason, _ := entry["reason"].(string)
		message, _ := entry["message"].(string)
		out.Reason, out.Message = text.Line(reason, mostName), delivery.Said(message)
		out.ObservedGeneration, _ = entry["observedGeneration"].(int64)
		if at, _ := entry["lastTransitionTime"].(string); at != "" {
			if parsed, err := time.Parse(time.RFC3339, at); err == nil {
				out.LastTransitionTime = metav1.NewTime(parsed)
			}
		}
		return out
	}
	return nil
}

// textIn returns a string of an object, "" where there is none.
func textIn(o *unstructured.Unstructured, path ...string) string {
	out, _, _ := unstructured.NestedString(o.Object, path...)
	return out
}

// listIn returns the first objects of a list.
func listIn(o *unstructured.Unstructured, path ...string) []map[string]any {
	found, _, _ := unstructured.NestedFieldNoCopy(o.Object, path...)
	entries, _ := found.([]any)
	var out []map[string]any
	for _, entry := range entries[:min(len(entries), mostEntries)] {
		if fields, is := entry.(map[string]any); is {
			out = append(out, fields)
		}
	}
	return out
}
