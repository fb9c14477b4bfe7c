package status

import (
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/internal/text"
	"github.com/manifold-dev/manifold/pkg/clusters/health"
)

// Reasons of the SyncerRunning condition, beside those of the Ready condition.
const (
	reasonSyncerRunning = "SyncerRunning"
	reasonSyncerFailed  = "SyncerFailed"
	reasonNotConnected  = "NotConnected"
	reasonRightsMissing = "RightsMissing"
	reasonRightsExcess  = "RightsExcess"
)

const (
	// rightsNamed bounds how many missing rights a condition names.
	rightsNamed = 12
	// longestError bounds what a condition tells of an error, in which a cluster may have its say.
	longestError = 500
)

// Syncer is what is known of the syncer of a cluster.
type Syncer struct {
	// Connected reports whether there is a connection to the cluster, and Heard whether the cluster has been heard, if only to refuse one.
	Connected, Heard bool
	// Current reports whether the syncer has seen what the cluster has. One that has failed has to read it again.
	Current bool
	// Missing are rights that syncing takes and the credential lacks.
	Missing []string
	// Exceeded is by what the cluster went beyond a bound of late, nil if it did not.
	Exceeded error
	// Surplus is what the credential may do and need not, and Untold the right that telling whose requests are takes, if that is missing.
	Surplus, Untold string
	// Failed is how the syncer ended last, nil if it did not.
	Failed error
	// JoinAgain is the command that brings the rights in the cluster up to date.
	JoinAgain string
}

// Condition says whether the syncer runs, nil if that is not known.
func (s Syncer) Condition() *metav1.Condition {
	no := func(reason, message string) *metav1.Condition {
		return &metav1.Condition{Type: v1alpha1.ClusterSyncerRunning, Status: metav1.ConditionFalse, Reason: reason, Message: message}
	}
	switch {
	case !s.Connected && s.Heard:
		return no(reasonNotConnected, "there is no connection to the cluster; see the condition "+v1alpha1.ClusterReady)
	case !s.Connected:
		return nil
	case s.Current:
		reason, but := s.flaw()
		return &metav1.Condition{
			Type: v1alpha1.ClusterSyncerRunning, Status: metav1.ConditionTrue, Reason: reason, Message: "the syncer is running" + but,
		}
	case len(s.Missing) > 0:
		return no(reasonRightsMissing, "the syncer waits for rights: "+s.lacksRights())
	case s.Exceeded != nil:
		return no(health.ReasonBounds, "the syncer cannot run, and tries again every minute: "+s.Exceeded.Error())
	case s.Failed != nil:
		return no(reasonSyncerFailed, "the syncer stopped and will be started again: "+text.Line(s.Failed.Error(), longestError))
	}
	return nil
}

// flaw says what is wrong with a syncer that runs.
func (s Syncer) flaw() (reason, but string) {
	switch {
	case len(s.Missing) > 0:
		return reasonRightsMissing, ", but " + s.lacksRights()
	case s.Exceeded != nil:
		return health.ReasonBounds, ", but not with all: " + s.Exceeded.Error()
	case s.Surplus != "":
		return reasonRightsExcess, fmt.Sprintf(", but the credential has more rights than it needs: it may %s; to take it away, join again: %s",
			s.Surplus, s.JoinAgain)
	case s.Untold != "":
		return reasonSyncerRunning, ", but the cluster's audit log cannot name the users behind requests: " + s.lacks(s.Untold)
	}
	return reasonSyncerRunning, ""
}

// lacksRights says which rights are missing and how the cluster grants them.
func (s Syncer) lacksRights() string {
	named := s.Missing
	more := ""
	if len(named) > rightsNamed {
		named, more = named[:rightsNamed], fmt.Sprintf(" and %d more", len(s.Missing)-rightsNamed)
	}
	return s.lacks(strings.Join(named, "; ") + more)
}

// lacks says how a cluster grants what is missing.
func (s Syncer) lacks(what string) string {
	return fmt.Sprintf("the credential may not %s; to grant it, join again: %s", what, s.JoinAgain)
}
