// Package health decides whether a cluster is well: it asks the cluster's API server, and turns what it heard, and for how long it
// has heard nothing, into the Ready condition.
package health

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
)

// Reasons of the Ready condition.
const (
	// ReasonReady: the cluster answers, accepts the credential and reports that it is ready.
	ReasonReady = "ClusterReady"
	// ReasonNotReady: the cluster answers that it is not ready, or with an error of its own.
	ReasonNotReady = "NotReady"
	// ReasonUnauthorized: the cluster does not know the credential.
	ReasonUnauthorized = "Unauthorized"
	// ReasonForbidden: the cluster knows the credential, but its rights do not even suffice for the probe.
	ReasonForbidden = "Forbidden"
	// ReasonDifferentCluster: another cluster than the one that joined answers at the address.
	ReasonDifferentCluster = "DifferentCluster"
	// ReasonDuplicate: the same physical cluster has joined under another name before.
	ReasonDuplicate = "DuplicateCluster"
	// ReasonInvalidCredential: there is no usable credential, or it does not fit the server that answers.
	ReasonInvalidCredential = "InvalidCredential"
	// ReasonUnreachable: nothing has been heard for longer than the grace period.
	ReasonUnreachable = "Unreachable"
	// ReasonFenced: the cluster answers again, and has not given up yet what runs elsewhere by now.
	ReasonFenced = "Fenced"
	// ReasonBounds: the cluster sends or holds more than the server takes from one cluster.
	ReasonBounds = "BoundsExceeded"
)

// Report is the outcome of one attempt to hear from a cluster.
type Report struct {
	// Reason is one of the reasons of the Ready condition. Unreachable means that nothing was heard this time, which makes the
	// condition Unknown only after the grace period.
	Reason string
	// Message tells a person what was tried, at which address, and what to do. It is the same for the same finding.
	Message string
	// UID is that of the cluster's kube-system namespace, if it was read.
	UID string
	// Void tells that there was an answer which says nothing of the cluster: a server without its storage has none, and a load balancer
	// answers for a server that is not there. If that lasts, it is silence like any other.
	Void bool
}

// Heard reports whether the cluster answered.
func (r Report) Heard() bool {
	return !r.Void && r.Reason != ReasonUnreachable && r.Reason != ReasonInvalidCredential
}

// OK reports whether all is well.
func (r Report) OK() bool { return r.Reason == ReasonReady }

// History is what is known about a cluster's health.
type History struct {
	// Last is the report of the last attempt, nil before the first has ended.
	Last *Report
	// LastHeard is when the cluster answered last, or when it was first tried if it never did: time that nobody listened is not
	// the cluster's silence.
	LastHeard time.Time
	// Ever reports whether the cluster has answered since LastHeard was first set.
	Ever bool
}

// Record returns the history after one more report.
func (h History) Record(r Report, now time.Time) History {
	next := History{Last: &r, LastHeard: h.LastHeard, Ever: h.Ever}
	if r.Heard() {
		next.LastHeard, next.Ever = now, true
	}
	if next.LastHeard.IsZero() {
		next.LastHeard = now
	}
	return next
}

// Ready returns the Ready condition for a history, or last, the condition so far, as long as there is nothing to say against it.
// last is nil for a cluster that has none yet. The condition has no times; the caller sets them as it stores it. again is how long
// it takes until silence may change the answer, zero if it cannot.
func Ready(last *metav1.Condition, h History, grace time.Duration, now time.Time) (ready *metav1.Condition, again time.Duration) {
	if h.Last == nil {
		return last, 0
	}
	left := grace - now.Sub(h.LastHeard)
	// Grace is for a cluster that was well, or at least answered. One that had trouble before we first tried gets the news at once.
	first := !h.Ever && (last == nil || last.Status != metav1.ConditionTrue)
	switch {
	case h.Last.Void && left > 0 && (last == nil || last.Status != metav1.ConditionUnknown):
		return condition(*h.Last), left
	case h.Last.Void:
		silent := *h.Last
		silent.Reason = ReasonUnreachable
		return condition(silent), 0
	case h.Last.Reason == ReasonUnreachable && left > 0 && !first:
		return last, left
	}
	return condition(*h.Last), 0
}

// Silent tells by the Ready condition of a cluster, nil if it has none, whether nobody can ask it what runs there: what is known of that is
// the last that was heard. One that says that it is not ready can be asked.
func Silent(ready *metav1.Condition) bool {
	return ready != nil && (ready.Status == metav1.ConditionUnknown || ready.Status == metav1.ConditionFalse && ready.Reason != ReasonNotReady)
}

// Unheard reports whether a cluster has not answered for its grace period, or has only just begun to again: nobody knows what runs there. One that refuses
// the credential is there, and so are its pods.
func Unheard(cluster *v1alpha1.Cluster) bool {
	return meta.IsStatusConditionPresentAndEqual(cluster.Status.Conditions, v1alpha1.ClusterReady, metav1.ConditionUnknown)
}

func condition(r Report) *metav1.Condition {
	status := metav1.ConditionFalse
	switch r.Reason {
	case ReasonReady:
		status = metav1.ConditionTrue
	case ReasonUnreachable:
		status = metav1.ConditionUnknown
	}
	return &metav1.Condition{Type: v1alpha1.ClusterReady, Status: status, Reason: r.Reason, Message: r.Message}
}

// Different reports that another cluster answers at the address than the one that joined.
func Different(name, host string, want, got string) Report {
	return Report{
		Reason: ReasonDifferentCluster,
		UID:    got,
		Message: fmt.Sprintf("another cluster answers at %s: the UID of its kube-system namespace is %s, that of cluster %q is %s; "+
			"correct the address, or remove cluster %q and join the new one", host, got, name, want, name),
	}
}

// Duplicate reports that the physical cluster is registered under another name already.
func Duplicate(host, uid, other string) Report {
	return Report{
		Reason:  ReasonDuplicate,
		UID:     uid,
		Message: fmt.Sprintf("the cluster at %s has joined as %q already; remove one of the two", host, other),
	}
}

// InvalidCredential reports that a cluster cannot even be tried.
func InvalidCredential(err error) Report {
	return Report{Reason: ReasonInvalidCredential, Message: err.Error()}
}
