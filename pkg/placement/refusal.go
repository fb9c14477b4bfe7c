package placement

import (
	"encoding/json"
	"strings"
	"time"
)

// Refusal says that a cluster does not let pods be made, for a reason that is its own, such as a quota that is used up there.
type Refusal struct {
	// Pods is how many are missing for that.
	Pods int32 `json:"pods"`
	// Since is when the cluster began to refuse them.
	Since time.Time `json:"since"`
	// Says is what it says.
	Says string `json:"says"`
}

// refusedKey is in every status by cluster that has refusals, so that the many others need not be parsed.
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
