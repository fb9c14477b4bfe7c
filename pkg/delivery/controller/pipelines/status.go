package pipelines

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/manifold-dev/manifold/internal/text"
	"github.com/manifold-dev/manifold/pkg/delivery/weave"
)

// Reasons of the condition Ready.
const (
	reasonShown      = "TargetsShown"
	reasonUnreadable = "TargetUnreadable"
	reasonSilent     = "ClusterSilent"
	reasonDenied     = "AuthorLacksRight"
	reasonInvalid    = "Invalid"
)

// Bounds of what is told: of a target, of all of them, in bytes, and of the message of the condition. etcd takes objects of 1.5 MiB.
const (
	mostWorkloads = 50
	mostBytes     = 512 << 10
	mostSaid      = 1024
)

// told is what is told of a pipeline.
type told struct {
	environments map[string][]weave.TargetStatus
	// denials are by environment, and so is what there is none of.
	denials  map[string]denial
	targets  int
	troubles []trouble
	// invalid says why nothing can be told, "" if something can.
	invalid string
}

// trouble is a target that cannot be read.
type trouble struct {
	environment string
	target      weave.TargetStatus
	silent      bool
}

func (t trouble) String() string {
	where := fmt.Sprintf("namespace %q", t.target.Namespace)
	if t.target.Name != "" {
		where += fmt.Sprintf(" of cluster %q", t.target.Name)
	}
	return fmt.Sprintf("environment %q, %s: %s", t.environment, where, t.target.Error)
}

func refused(why string) told { return told{invalid: "spec: " + why} }

// condition is Ready.
func (t told) condition(generation int64) metav1.Condition {
	out := metav1.Condition{Type: weave.ConditionReady, ObservedGeneration: generation, Status: metav1.ConditionFalse}
	worst := slices.IndexFunc(t.troubles, func(of trouble) bool { return !of.silent })
	switch {
	case t.invalid != "":
		out.Reason, out.Message = reasonInvalid, t.invalid
	case len(t.troubles) == 0:
		out.Status, out.Reason, out.Message = metav1.ConditionTrue, reasonShown, fmt.Sprintf("what runs in all targets is known, of which there are %d", t.targets)
	case worst < 0:
		out.Status, out.Reason, out.Message = metav1.ConditionUnknown, reasonSilent, t.troubles[0].String()
	default:
		out.Reason, out.Message = reasonUnreadable, t.troubles[worst].String()
		if t.troubles[worst].target.Denied {
			out.Reason = reasonDenied
		}
	}
	if more := len(t.troubles) - 1; more > 0 {
		out.Message += fmt.Sprintf("; and %d more", more)
	}
	out.Message = text.Line(out.Message, mostSaid)
	return out
}

// change is the patch by which a pipeline comes to tell that, nil if it does. It has what differs alone: others write other fields of the status.
func (t told) change(p *weave.Pipeline, now time.Time) map[string]any {
	status, metadata := map[string]any{}, map[string]any{"uid": p.UID}
	if environments := t.changed(p); len(environments) > 0 {
		status["environments"] = environments
	}
	if t.invalid == "" && p.Status.ObservedGeneration != p.Generation {
		status["observedGeneration"] = p.Generation
	}
	conditions, condition := slices.Clone(p.Status.Conditions), t.condition(p.Generation)
	condition.LastTransitionTime = metav1.NewTime(now)
	if meta.SetStatusCondition(&conditions, condition) {
		// The list goes as a whole, and others have conditions in it.
		status["conditions"], metadata["resourceVersion"] = conditions, p.ResourceVersion
	}
	if len(status) == 0 {
		return nil
	}
	return map[string]any{"metadata": metadata, "status": status}
}

// changed is what differs of the environments. Those that are gone go with all that was told of them.
func (t told) changed(p *weave.Pipeline) map[string]any {
	out := map[string]any{}
	if t.invalid != "" {
		return out
	}
	for name, targets := range t.environments {
		last := p.Status.Environments[name]
		if last == nil {
			last = &weave.EnvironmentStatus{}
		}
		differs := map[string]any{}
		if !equality.Semantic.DeepEqual(last.Targets, targets) {
			differs["targets"] = targets
		}
		denied := t.denials[name]
		for field, of := range map[string]struct{ was, is string }{"denied": {last.Denied, denied.promotion}, "webhookDenied": {last.WebhookDenied, denied.webhook}} {
			switch {
			case of.was == of.is:
			case of.is == "":
				differs[field] = nil
			default:
				differs[field] = of.is
			}
		}
		if len(differs) > 0 {
			out[name] = differs
		}
	}
	for name := range p.Status.Environments {
		if _, stays := t.environments[name]; !stays {
			out[name] = nil
		}
	}
	return out
}

// fit leaves out workloads until what is told has room in a status, and tells how many are left out. A target counts all of its workloads as it did.
func fit(environments map[string][]weave.TargetStatus) {
	for most := mostWorkloads; ; most /= 2 {
		for _, of := range environments {
			for i := range of {
				cut(&of[i], most)
			}
		}
		if stored, err := json.Marshal(environments); most == 0 || err == nil && len(stored) <= mostBytes {
			return
		}
	}
}

// cut leaves out all but some workloads of a target. Those that are not ready stay sooner.
func cut(target *weave.TargetStatus, most int) {
	if len(target.Workloads) <= most {
		return
	}
	var unready, ready []weave.WorkloadStatus
	for _, w := range target.Workloads {
		if w.Ready {
			ready = append(ready, w)
		} else {
			unready = append(unready, w)
		}
	}
	target.MoreWorkloads += int32(len(target.Workloads) - most) //nolint:gosec // there are not so many
	target.Workloads = append(unready, ready...)[:most]
}
