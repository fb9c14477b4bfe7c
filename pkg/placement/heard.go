package placement

import (
	"strings"
	"time"
)

// What clusters say of pods that do not come to run they say in prose alone. It is read here and nowhere else, when it comes in: what is
// decided is decided by what these functions return.

// CauseOf reads the message of a scheduler that finds no node for a pod. That a claim is missing is for somebody to mend, and then the claim is
// where the pod is.
func CauseOf(says string) Cause {
	switch {
	case strings.Contains(says, `persistentvolumeclaim "`) && strings.Contains(says, "not found"):
		return CauseNoClaim
	case strings.Contains(FirstSentence(says), "Insufficient ") || strings.Contains(FirstSentence(says), "Too many pods"):
		return CauseNoRoom
	}
	return CauseOther
}

// FirstSentence is what a scheduler says of the nodes, without what it says of preemption, which changes with every attempt.
func FirstSentence(message string) string {
	sentence, _, _ := strings.Cut(message, ". ")
	return strings.TrimSuffix(sentence, ".")
}

// RefusedByCluster reads the message of a controller that could not make a pod: what the API server says, without the name of the pod, and
// whether another cluster might admit it. What is wrong with the pod itself, or lacks above, is wrong everywhere.
func RefusedByCluster(message string) (says string, own bool) {
	if _, after, found := strings.Cut(message, " is forbidden: "); found {
		return after, !strings.Contains(after, "error looking up service account")
	}
	for _, start := range []string{"admission webhook ", "failed calling webhook "} {
		if i := strings.Index(message, start); i >= 0 {
			return message[i:], true
		}
	}
	return message, false
}

// RefusingQuota returns the name of the quota that a refusal is about; "" if it is about none.
func RefusingQuota(says string) string {
	for _, start := range []string{"exceeded quota: ", "failed quota: "} {
		if _, after, found := strings.Cut(says, start); found {
			name, _, _ := strings.Cut(after, ",")
			name, _, _ = strings.Cut(name, ":")
			return name
		}
	}
	return ""
}

// Waits notes since when, and with which message, the scheduler of the cluster finds no node for the pod.
func (p *Pod) Waits(since time.Time, says string) {
	p.Since, p.Says, p.Cause = since, says, CauseOf(says)
}
