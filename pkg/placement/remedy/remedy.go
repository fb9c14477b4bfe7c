// Package remedy says what would have to change so that a cluster gets something of a workload.
package remedy

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/placement"
	"github.com/manifold-dev/manifold/pkg/placement/handmade"
	"github.com/manifold-dev/manifold/pkg/placement/rules"
	"github.com/manifold-dev/manifold/pkg/placement/words"
)

// For says, for each cluster that gets nothing of a workload, or no more although replicas wait, what would have to change so that it
// does: in whole clauses, all of which have to come true. It is for people, who decide which of them they want.
func For(s placement.Snapshot, r *placement.Request, result placement.Result) map[string][]string {
	out := map[string][]string{}
	for i := range result.Verdicts {
		v := &result.Verdicts[i]
		if v.Share != nil && result.Unplaced == 0 {
			continue
		}
		for _, reason := range v.Reasons {
			find, any := remedies[reason.Code]
			if !any {
				continue
			}
			p := patient{Request: r, name: v.Cluster, reason: reason, fits: v.Fits}
			if at, joined := s.Index(v.Cluster); joined {
				p.cluster = s.Clusters()[at]
			}
			if text := find(p); text != "" {
				out[v.Cluster] = append(out[v.Cluster], text)
			}
		}
		if text := unchosen(r, v, result); text != "" {
			out[v.Cluster] = append(out[v.Cluster], text)
		}
	}
	return out
}

// unchosen is what would have to change where nothing speaks against a cluster.
func unchosen(r *placement.Request, v *placement.Verdict, result placement.Result) string {
	switch {
	case !v.Feasible || v.Share != nil || len(v.Reasons) > 0:
		return ""
	case result.Strategy == placement.Whole || result.Strategy == placement.Together:
		return fmt.Sprintf("pin it there: %s=%s; another cluster comes first, where it runs, where more of its namespace is, or with a higher score",
			v1alpha1.AnnotationClusters, v.Cluster)
	case r.Workload.Replicas <= int32(len(result.Decision)):
		return "ask for more replicas: each has a cluster"
	default:
		return fmt.Sprintf("prefer it in %s: there is room enough where the score is higher", policyField(r, "spec.preferences"))
	}
}

// patient is a cluster with one of the reasons why it gets nothing.
type patient struct {
	*placement.Request
	name    string
	cluster *placement.Cluster // nil for one that has not joined
	reason  words.Reason
	fits    int64
}

// policyField names a field of the workload's policy, or of one that there could be.
func policyField(r *placement.Request, path string) string {
	if r.Policy == nil {
		return path + " of a policy"
	}
	return path + " of " + r.Policy.String()
}

// remedies say for each reason what would have to change.
var remedies = map[words.ReasonCode]func(patient) string{
	words.ReasonNotJoined: func(p patient) string { return "manifold cluster join " + p.name },
	words.ReasonNotPinned: func(p patient) string {
		names := append(slices.Clone(p.Workload.Pin.Names), p.name)
		slices.Sort(names)
		return fmt.Sprintf("pin it there too: %s=%s", v1alpha1.AnnotationClusters, strings.Join(slices.Compact(names), ","))
	},
	words.ReasonNotSelected: patient.selected,
	words.ReasonNoWeight: func(p patient) string {
		return "give it a weight in " + policyField(p.Request, "spec.division.weights")
	},
	words.ReasonNoGroup:  func(p patient) string { return "add it to one of " + policyField(p.Request, "spec.groups") },
	words.ReasonNoDomain: patient.label,
	words.ReasonAntiAffinity: func(p patient) string {
		return fmt.Sprintf("move %s away, or change %s", p.reason.Subject, policyField(p.Request, "spec.antiAffinity"))
	},
	words.ReasonAffinity: func(p patient) string {
		return fmt.Sprintf("run %s there first, or change %s", p.reason.Subject, policyField(p.Request, "spec.affinity"))
	},
	words.ReasonAntiAffinityOfOthers: func(p patient) string {
		return fmt.Sprintf("move %s away, or change spec.antiAffinity of its policy", p.reason.Subject)
	},
	words.ReasonBeyondMax: func(p patient) string {
		if p.Policy != nil && p.Policy.Spec.MaxClusters > 0 {
			return fmt.Sprintf("raise %s above %d", policyField(p.Request, "spec.maxClusters"), p.Policy.Spec.MaxClusters)
		}
		return "lower " + policyField(p.Request, "spec.division.minReplicas") + ", or ask for more replicas"
	},
	words.ReasonTooSmall: func(p patient) string {
		return fmt.Sprintf("make room for more than %d replicas, or lower %s", p.fits, policyField(p.Request, "spec.division.minReplicas"))
	},
	words.ReasonEvicted:       patient.end,
	words.ReasonLost:          patient.answer,
	words.ReasonUnreachable:   patient.answer,
	words.ReasonNotReady:      patient.answer,
	words.ReasonInvalidPolicy: func(p patient) string { return "correct " + p.reason.Subject },
	words.ReasonCordoned:      func(p patient) string { return "manifold cluster uncordon " + p.name },
	words.ReasonTainted: func(p patient) string {
		return fmt.Sprintf("take the taint %s off the cluster, or tolerate it in %s", p.reason.Subject, policyField(p.Request, "spec.tolerations"))
	},
	words.ReasonNotServed:  func(p patient) string { return "have the cluster serve " + p.reason.Subject },
	words.ReasonNoClass:    patient.offer,
	words.ReasonNoNodes:    func(patient) string { return "add a node that is ready" },
	words.ReasonLacks:      patient.provide,
	words.ReasonNoVolume:   patient.follow,
	words.ReasonNoHandMade: patient.letIn,
	words.ReasonOutOfReach: func(p patient) string {
		return fmt.Sprintf("change spec.nodeAffinity of PersistentVolume %s, if the cluster can reach it", p.reason.Subject)
	},
	words.ReasonDisplaced: func(p patient) string {
		return fmt.Sprintf("give its pods a PriorityClass that is not below that of %s, or make room for both", p.reason.Subject)
	},
	words.ReasonUnschedulable: func(patient) string {
		return "give it nodes that its scheduler can use for the pods"
	},
	words.ReasonLeftUnschedulable: func(patient) string {
		return "have it run the pods, by nodes that its scheduler can use for them, or by a greater quota; after a while it is tried again"
	},
	words.ReasonRefused: func(patient) string {
		return "have it admit the pods, as by a greater quota there"
	},
}

// selected says how a cluster that a policy does not select would be selected.
func (p patient) selected() string {
	chosen := p.Policy.Spec.Clusters // or nothing would have been selected by it
	if len(chosen.Names) > 0 && !slices.Contains(chosen.Names, p.name) {
		return "add it to " + policyField(p.Request, "spec.clusters.names")
	}
	selector, err := rules.SelectorOf(chosen.LabelSelector)
	if err != nil {
		return "correct " + policyField(p.Request, "spec.clusters.labelSelector")
	}
	var changes []string
	requirements, _ := selector.Requirements()
	for _, requirement := range requirements {
		if !requirement.Matches(labels.Set(p.cluster.Labels)) {
			changes = append(changes, fulfil(requirement))
		}
	}
	return fmt.Sprintf("%s, or change %s", words.Enumerate(changes), policyField(p.Request, "spec.clusters.labelSelector"))
}

// fulfil says what to do about a cluster's labels so that they meet a requirement.
func fulfil(r labels.Requirement) string {
	values := r.ValuesUnsorted()
	slices.Sort(values)
	switch r.Operator() {
	case selection.In, selection.Equals, selection.DoubleEquals:
		text := fmt.Sprintf("label the cluster %s=%s", r.Key(), values[0])
		if len(values) > 1 {
			text += " (or " + strings.Join(values[1:], ", ") + ")"
		}
		return text
	case selection.Exists:
		return "give the cluster a label " + r.Key()
	case selection.NotIn, selection.NotEquals:
		return fmt.Sprintf("give the cluster another label %s than %s", r.Key(), strings.Join(values, ", "))
	case selection.DoesNotExist:
		return "take the label " + r.Key() + " off the cluster"
	}
	return "label the cluster so that " + r.String() + " is true"
}

// label says which label of the spread a cluster lacks.
func (p patient) label() string {
	for i := range p.Policy.Spec.Spread {
		spread := &p.Policy.Spec.Spread[i]
		if _, has := rules.DomainIn(p.cluster, spread.TopologyKey); !has && rules.Strict(spread) {
			return fmt.Sprintf("give the cluster a label %s, or change %s", spread.TopologyKey, policyField(p.Request, "spec.spread"))
		}
	}
	return ""
}

// end says how a cluster ceases to be one that is left.
func (p patient) end() string {
	for i := range p.cluster.Taints {
		switch taint := &p.cluster.Taints[i]; {
		case taint.Key == v1alpha1.TaintDrain:
			return fmt.Sprintf("manifold cluster uncordon %s, which ends its drain", p.name)
		case taint.Effect == corev1.TaintEffectNoExecute && !rules.RepeatsReady(taint):
			return fmt.Sprintf("take the taint {%s: %s} off the cluster, or tolerate it in %s", taint.Key, taint.Value, policyField(p.Request, "spec.tolerations"))
		}
	}
	return "none: the cluster is being removed"
}

func (p patient) answer() string {
	return fmt.Sprintf("have the cluster answer and be ready; kubectl describe cluster %s says what is the matter", p.name)
}

// provide says how much of a resource is missing for one more replica, and whether it is a limit that withholds it.
func (p patient) provide() string {
	name := corev1.ResourceName(p.reason.Subject)
	missing := p.reason.Need - p.reason.Free
	withheld := p.cluster.Withheld.Of(name)
	if placement.CountsClaims(name) {
		withheld = missing // by nothing else
	}
	if withheld <= 0 {
		return fmt.Sprintf("%s more %s for one more replica", words.Quantity(name, missing), name)
	}
	text := fmt.Sprintf("raise spec.limits[%s] of cluster %s to %s for one more replica", name, p.name, words.Quantity(name, p.cluster.Limits.Of(name)+missing))
	if missing > withheld {
		text += fmt.Sprintf(", and %s more %s", words.Quantity(name, missing-withheld), name)
	}
	return text
}

// follow says where the volumes are that the workload uses.
func (p patient) follow() string {
	var places []string
	for _, name := range slices.Sorted(maps.Keys(p.Workload.VolumesIn)) {
		if p.Workload.VolumesIn[name] {
			places = append(places, name)
		}
	}
	for _, name := range p.Workload.Kept {
		if !slices.Contains(places, name) {
			places = append(places, name)
		}
	}
	slices.Sort(places)
	if len(places) == 0 {
		return "its volumes have to be there"
	}
	return "its volumes have to be there; they are in " + words.Enumerate(places)
}

// letIn says how a volume gets to a cluster that takes none.
func (p patient) letIn() string {
	return fmt.Sprintf("let PersistentVolume %s go there along with its claim: %s", p.reason.Subject, handmade.LetVolumesIn(p.name, p.cluster.Allows))
}

// offer says how a cluster comes to have a class.
func (p patient) offer() string {
	text := fmt.Sprintf("create %s in the cluster, or name another one", p.reason.Subject)
	brings := p.Workload.Brings
	if brings == nil || !rules.LacksPriorityClass(p.cluster, &p.Workload) {
		return text
	}
	return fmt.Sprintf("%s, or let it come along: %s --allow-priority-classes=%d", text, handmade.JoinAgain(p.name, p.cluster.Allows), *brings)
}
