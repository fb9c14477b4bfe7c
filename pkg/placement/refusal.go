package placement

import (
	"encoding/json"
	"strings"
	"time"
)

// Refusal tells that a cluster does not let pods be made, for a reason that is its own, such as a quota that is used up there.
type Refusal struct {
	// Pods is how many are missing for that.
	Pods int32 `json:"pods"`
	// Since is when the cluster began to refuse them.
	Since time.Time `json:"since"`
	// Says is what it says.
	Says string `json:"says"`
}

// refusedKey tells that a status by cluster tells of refusals.
const refusedKey = `"refused"`

// ParseRefusals reads from the status by cluster, as the annotation manifold.dev/status has it, which clusters refuse pods. What is damaged
// is forgotten: it is written anew with the next status.
func ParseRefusals(breakdown string) map[string]Refusal {
	if !strings.Contains(breakdown, refusedKey) {
		return nil
	}
	var entries map[string]struct {
		Refused *Refusal `json:"refused"`
	}
	if err := json.Unmarshal([]byte(breakdown), &entries); err != nil {
		return nil
	}
	var out map[string]Refusal
	for cluster, e := range entries {
		if e.Refused == nil {
			continue
		}
		if out == nil {
			out = map[string]Refusal{}
		}
		out[cluster] = *e.Refused
	}
	return out
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

// RefusingQuota returns the name of the quota that a refusal tells of; "" if it tells of none.
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
