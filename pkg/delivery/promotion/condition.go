package promotion

import (
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/manifold-dev/manifold/internal/text"
	"github.com/manifold-dev/manifold/pkg/delivery/weave"
)

// kind is how far an environment is, from what needs no word to what says most of where the newest version is.
type kind struct {
	reason string
	status metav1.ConditionStatus
}

// Reasons of the condition Promoting.
var (
	settled   = kind{"Settled", metav1.ConditionFalse}
	unmoved   = kind{"NotPromoted", metav1.ConditionFalse}
	unknown   = kind{"Unknown", metav1.ConditionUnknown}
	blocked   = kind{"NotVerified", metav1.ConditionFalse}
	holding   = kind{"Held", metav1.ConditionFalse}
	paused    = kind{"Paused", metav1.ConditionFalse}
	waiting   = kind{"Waiting", metav1.ConditionTrue}
	promoting = kind{"Promoting", metav1.ConditionTrue}
	verifying = kind{"Verifying", metav1.ConditionTrue}
	failing   = kind{"Failed", metav1.ConditionTrue}
	refused   = kind{"Refused", metav1.ConditionFalse}
	denied    = kind{"Denied", metav1.ConditionFalse}
)

// note says how far an environment is.
type note struct {
	environment string
	kind        kind
	says        string
}

// mostSaid bounds the message of the condition.
const mostSaid = 1024

// condition tells of all environments, with the reason of the first that is not settled.
func condition(p *weave.Pipeline, now time.Time, notes []note) metav1.Condition {
	is := settled
	var said []string
	for _, n := range notes {
		if is == settled {
			is = n.kind
		}
		if n.environment != "" {
			n.says = n.environment + ": " + n.says
		}
		said = append(said, n.says)
	}
	if who := p.Status.Paused; who != nil && is != paused {
		said = append([]string{"paused by " + who.By}, said...)
		is = paused
	}
	return metav1.Condition{
		Type: weave.ConditionPromoting, Status: is.status, Reason: is.reason, Message: text.Line(strings.Join(said, "; "), mostSaid),
		ObservedGeneration: p.Generation, LastTransitionTime: metav1.NewTime(now),
	}
}

// words say what an environment runs.
func (o Observed) words() string {
	switch {
	case o.State == Verified:
		return "runs " + o.Revision
	case o.Revision != "":
		return "runs " + o.Revision + "; " + o.Message
	}
	return o.Message
}
