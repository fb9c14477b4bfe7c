package explain

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	manifoldv1alpha1 "github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/cli/verdict"
	"github.com/manifold-dev/manifold/pkg/identity"
	"github.com/manifold-dev/manifold/pkg/moves"
	"github.com/manifold-dev/manifold/pkg/placement"
	"github.com/manifold-dev/manifold/pkg/placement/move"
	"github.com/manifold-dev/manifold/pkg/summary"
)

// Report explains one object. It is what -o json and -o yaml print.
type Report struct {
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	// Note says why there is nothing, or not everything, to explain.
	Note string `json:"note,omitempty"`
	// Replicas is the number asked for.
	Replicas *int32 `json:"replicas,omitempty"`
	// Everywhere tells that the nodes of each cluster say how many replicas there are, and nobody asks for a number.
	Everywhere bool `json:"everywhere,omitempty"`
	// Whole tells that each cluster of the decision has all of the object, which is of a custom kind that no policy describes.
	Whole bool `json:"whole,omitempty"`
	// Requests are what each replica asks for, of a custom kind that a policy describes: CPU in thousandths.
	Requests placement.Resources `json:"requests,omitempty"`
	// Decision is the one that is in force; none if the object is not placed.
	Decision placement.Decision `json:"decision,omitempty"`
	// Move says how far it is on its way from cluster to cluster; "" if it is not.
	Move string `json:"move,omitempty"`
	// Held says which revisions clusters hold of an Application, and of which; "" if each has the object as it stands.
	Held string `json:"held,omitempty"`
	// Awaits says which release lets the object go where no cluster is to have anything of it before; "" if it awaits none.
	Awaits string `json:"awaits,omitempty"`
	// Pin is the user's choice of clusters, and PinnedBy the kind of object that carries it.
	Pin      string `json:"pin,omitempty"`
	PinnedBy string `json:"pinnedBy,omitempty"`
	// Policy is the policy that applies and Strategy the way in which it hands out replicas.
	Policy   string             `json:"policy,omitempty"`
	Strategy placement.Strategy `json:"strategy,omitempty"`
	// Message is what a decision made now says, in one sentence.
	Message string `json:"message,omitempty"`
	// Due is a decision made now, if it differs from the one that is in force.
	Due placement.Decision `json:"due,omitempty"`
	// Live tells that members are as the server sees them now, and not as they were recorded last.
	Live bool `json:"live,omitempty"`
	// Clusters are those that have joined or that are asked for, by name.
	Clusters []Cluster `json:"clusters,omitempty"`
	// Service is where a Service is, and where it leads.
	Service *Service `json:"service,omitempty"`
	// Events are those of Manifold about the object, the oldest first.
	Events []Event `json:"events,omitempty"`

	// firstOrdinal is that of the first replica, where they have ordinals.
	firstOrdinal int32
	// ordinals tells that the replicas of the members have ordinals.
	ordinals bool
	// custom tells that the clusters have copies of a custom resource.
	custom bool
}

// Cluster explains one cluster's part.
type Cluster struct {
	Name string `json:"name"`
	// Share is what the decision in force gives it; nil if nothing.
	Share *placement.Share `json:"share,omitempty"`
	// Status is what it reports; nil if nothing is known.
	Status *summary.ClusterStatus `json:"status,omitempty"`
	// Member is what else is known of the cluster while the workload is on its way to what was decided, as what decides its next step sees it;
	// nil while nothing is. Next is that step: what the cluster is to hold now, and what it waits for; nil if it is not known.
	Member *moves.Member `json:"member,omitempty"`
	Next   *moves.Step   `json:"next,omitempty"`
	// State is how an object of a custom kind fares there, in its own words.
	State string `json:"state,omitempty"`
	// Verdict is what a decision made now finds out about it; nil if the user may not know.
	Verdict *placement.Verdict `json:"verdict,omitempty"`
	// Why is the verdict's reasons in words.
	Why []string `json:"why,omitempty"`
	// Remedies say what would have to change, all of it, so that it gets some of the object, or more while replicas wait.
	Remedies []string `json:"remedies,omitempty"`
}

// Event is one event.
type Event struct {
	Last    metav1.Time `json:"last"`
	Type    string      `json:"type"`
	Reason  string      `json:"reason"`
	Message string      `json:"message"`
}

// explain makes the report. It reads its argument alone.
func explain(o *observed) (*Report, error) {
	r := &Report{Kind: o.object.GetKind(), Namespace: o.object.GetNamespace(), Name: o.object.GetName(), Events: events(o.events)}
	r.Held = identity.WholeDecisionOf(o.object).HeldAt()
	r.Awaits = identity.Awaits(o.object)
	views := identity.ViewsOf(o.object)
	if len(views) > 0 {
		r.Held = fmt.Sprintf("held as it was written through the view of each cluster, %s: the object says what %s holds", strings.Join(views.Clusters(), ", "), views[0].Cluster)
	}
	if o.replicas == nil {
		r.Note, r.Service = unplaced(o.object), o.service
		if o.custom {
			r.Note = stays(o.object)
		}
		return r, nil
	}
	breakdown, err := summary.ParseBreakdown(o.object.GetAnnotations()[manifoldv1alpha1.AnnotationStatus])
	if err != nil {
		return nil, err
	}
	r.Replicas, r.Everywhere, r.Decision, r.firstOrdinal = o.replicas, o.everywhere, o.decision, o.firstOrdinal
	r.Whole, r.Requests, r.custom = o.opaque, o.requests, o.custom
	switch {
	case o.everywhere:
		nodes := observedBy(nil, breakdown)
		r.Move = move.Progress(move.ByNodes(o.decision, nodes), nodes)
	case !o.custom:
		r.Move = move.Progress(o.decision, observedBy(o.decision, breakdown))
	}
	r.Pin, r.PinnedBy = pinOf(o)
	var verdicts []placement.Verdict
	if o.result == nil {
		r.Note = "the reasons cannot be shown: " + o.hidden
	} else {
		r.Policy, r.Strategy, r.Message = o.result.Policy.String(), o.result.Strategy, o.result.Message()
		if !o.result.Decision.Equal(o.decision) {
			r.Due = o.result.Decision
		}
		verdicts = o.result.Verdicts
	}
	r.Clusters = clusters(o.decision, breakdown, verdicts)
	for i := range r.Clusters {
		c := &r.Clusters[i]
		if view, has := views.Of(c.Name); has && c.Share != nil {
			at, share := identity.RevisionOf(view), *c.Share
			share.Revision, share.Target = at.Name, at.Target
			c.Share = &share
		}
	}
	for i := range r.Clusters {
		r.Clusters[i].Remedies = o.remedies[r.Clusters[i].Name]
	}
	r.addMembers(o)
	if o.custom {
		return r, r.addStates(o.object.GetAnnotations()[manifoldv1alpha1.AnnotationStatus])
	}
	return r, nil
}

// observedBy is what clusters run by the breakdown. That does not tell replicas that are to leave from those that a rollout has beside
// the others, so of a cluster that is to keep some it is the first only while another one has fewer than it should.
func observedBy(decision placement.Decision, breakdown summary.Breakdown) map[string]move.Observed {
	fewer := false
	for cluster, share := range decision {
		fewer = fewer || breakdown[cluster].Replicas < share.Replicas
	}
	out := map[string]move.Observed{}
	for cluster, status := range breakdown {
		o := move.Observed{Replicas: status.Replicas, Available: status.Available, Silent: status.Stale}
		if share, decided := decision[cluster]; decided && !fewer {
			o.Replicas = min(o.Replicas, share.Replicas)
		}
		out[cluster] = o
	}
	return out
}

// addMembers adds what is known of each cluster on the way to what was decided.
func (r *Report) addMembers(o *observed) {
	waits := slices.ContainsFunc(r.Clusters, func(c Cluster) bool { return c.Status != nil && c.Status.Waits != "" })
	if r.Live = o.standing != nil; r.Live {
		for _, step := range o.standing.Steps {
			waits = waits || step.Held || step.Paced
		}
	}
	if o.fleet.Rests() && r.Move == "" && !waits {
		return
	}
	r.ordinals = o.fleet.Ordinals
	for i := range r.Clusters {
		name := r.Clusters[i].Name
		m, has := o.fleet.Members[name]
		if !has {
			continue
		}
		r.Clusters[i].Member = &m
		if !r.Live {
			continue
		}
		if step, has := o.standing.Steps[name]; has {
			r.Clusters[i].Next = &step
		}
	}
}

// addStates adds how an object of a custom kind fares in each cluster.
func (r *Report) addStates(annotation string) error {
	breakdown, err := summary.ParseCustomBreakdown(annotation)
	if err != nil {
		return err
	}
	for i := range r.Clusters {
		r.Clusters[i].State = breakdown[r.Clusters[i].Name].State
	}
	return nil
}

// pinOf returns the pin in force and the kind of object that carries it. The workload's own wins over its namespace's.
func pinOf(o *observed) (pin, by string) {
	if pin, pinned := o.object.GetAnnotations()[manifoldv1alpha1.AnnotationClusters]; pinned {
		return pin, o.object.GetKind()
	}
	if o.namespace == nil {
		return "", ""
	}
	if pin, pinned := o.namespace.Annotations[manifoldv1alpha1.AnnotationClusters]; pinned {
		return pin, "Namespace"
	}
	return "", ""
}

// clusters joins what is decided, reported and found out, by name.
func clusters(decision placement.Decision, breakdown summary.Breakdown, verdicts []placement.Verdict) []Cluster {
	found := map[string]placement.Verdict{}
	names := decision.Clusters()
	for name := range breakdown {
		names = append(names, name)
	}
	for _, v := range verdicts {
		found[v.Cluster] = v
		names = append(names, v.Cluster)
	}
	slices.Sort(names)
	names = slices.Compact(names)

	out := make([]Cluster, 0, len(names))
	for _, name := range names {
		c := Cluster{Name: name}
		if share, ok := decision[name]; ok {
			c.Share = &share
		}
		if status, ok := breakdown[name]; ok {
			c.Status = &status
		}
		if v, ok := found[name]; ok {
			c.Verdict, c.Why = &v, verdict.Why(v)
		}
		out = append(out, c)
	}
	return out
}

func events(from []corev1.Event) []Event {
	out := make([]Event, 0, len(from))
	for _, e := range from {
		out = append(out, Event{Last: lastSeen(e), Type: e.Type, Reason: e.Reason, Message: e.Message})
	}
	slices.SortStableFunc(out, func(a, b Event) int { return a.Last.Compare(b.Last.Time) })
	return out
}

func lastSeen(e corev1.Event) metav1.Time {
	switch {
	case e.Series != nil:
		return metav1.NewTime(e.Series.LastObservedTime.Time)
	case !e.LastTimestamp.IsZero():
		return e.LastTimestamp
	default:
		return metav1.NewTime(e.EventTime.Time)
	}
}
