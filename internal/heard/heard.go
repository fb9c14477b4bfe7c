// Package heard reads what Kubernetes says in prose alone: its schedulers, its admission and its authorization have no codes for it. It is read here
// and nowhere else, when it comes in; what is decided is decided by what these functions return. Package upstream beside it has Kubernetes say it.
package heard

import (
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// LacksClaim reports whether a scheduler finds no node for a pod because a volume claim is missing.
func LacksClaim(says string) bool {
	return strings.Contains(says, `persistentvolumeclaim "`) && strings.Contains(says, "not found")
}

// LacksRoom reports whether a scheduler finds no node for a pod because some have too little left.
func LacksRoom(says string) bool {
	nodes := FirstSentence(says)
	return strings.Contains(nodes, "Insufficient ") || strings.Contains(nodes, "Too many pods")
}

// FirstSentence is what a scheduler says of the nodes, without what it says of preemption, which changes with every attempt.
func FirstSentence(message string) string {
	sentence, _, _ := strings.Cut(message, ". ")
	return strings.TrimSuffix(sentence, ".")
}

// Refusal reads the message of a controller that could not make a pod: what the API server says, without the name of the pod, and whether another
// cluster might admit it. What is wrong with the pod itself, or lacks above, is wrong everywhere.
func Refusal(message string) (says string, own bool) {
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

// quotas is how refusals begin that are about a ResourceQuota.
var quotas = []string{"exceeded quota: ", "failed quota: "}

// Quota returns the name of the quota that a refusal is about; "" if it is about none.
func Quota(says string) string {
	for _, start := range quotas {
		if _, after, found := strings.Cut(says, start); found {
			name, _, _ := strings.Cut(after, ",")
			name, _, _ = strings.Cut(name, ":")
			return name
		}
	}
	return ""
}

// ByQuota reports whether an object was refused for a quota alone, which is the last to be asked.
func ByQuota(err error) bool {
	if !apierrors.IsForbidden(err) {
		return false
	}
	_, reason, found := strings.Cut(err.Error(), " is forbidden: ")
	return found && (strings.HasPrefix(reason, quotas[0]) || strings.HasPrefix(reason, quotas[1]))
}

// ByLimitRange reports whether a refusal is by a LimitRange.
func ByLimitRange(says string) bool { return strings.Contains(says, " usage per ") }

// ByPodSecurity reports whether a refusal is by the level of pod security of a namespace.
func ByPodSecurity(says string) bool { return strings.Contains(says, "violates PodSecurity") }

// LacksRight reports whether a request was refused by authorization, and not by a rule about objects.
func LacksRight(err error) bool {
	return apierrors.IsForbidden(err) && strings.Contains(err.Error(), "cannot ")
}

// LacksEndpoints reports whether the API server cannot pass a request on since a Service has no pods that serve.
func LacksEndpoints(says string) bool {
	return strings.HasPrefix(says, "no endpoints available for service")
}

// Unreached reports whether the API server has got no answer from what it chose among those that serve a Service, and whether it could not even connect
// to that, so that nothing of the request has come there.
func Unreached(says string) (unreached, unsent bool) {
	why, unreached := strings.CutPrefix(says, "error trying to reach service: ")
	// The second is what it says of a proxy that it has been told to connect through.
	return unreached, unreached && (strings.HasPrefix(why, "dial ") || strings.HasPrefix(why, "proxy error from "))
}
