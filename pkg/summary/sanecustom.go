package summary

import (
	"slices"

	"github.com/manifold-dev/manifold/internal/text"
	"github.com/manifold-dev/manifold/pkg/projection"
)

const (
	// mostCustomStatus is how many bytes of a status count, as JSON without its punctuation. The object above has to hold it beside what its user
	// wrote, and etcd takes 1.5 MiB.
	mostCustomStatus = 256 << 10
	// mostCustomConditions is how many conditions an object of a custom kind has at most. Nobody here knows how many its operator means to tell.
	mostCustomConditions = 64
	// mostType, mostStatus and mostTime are how many bytes of the type of such a condition count, of its status and of its times.
	mostType, mostStatus, mostTime = 316, 32, 64
	// mostMessage is how many bytes the message of a condition may have in a status that is whole, as in any condition of Kubernetes.
	mostMessage = 32 << 10
	// mostJoined is how many bytes of what all clusters say in one condition count.
	mostJoined = 4 << 10
)

// saneCustom returns a copy of the status of a custom object, nil for none, as it may be shown: what a terminal would obey is written out, and the words
// of conditions are as short as those of other objects. Nobody here knows what the rest means, so it stays as it is, or goes: of a status that is too
// large, or nested too deep, only conditions and the observed generation are left, and it is not whole.
func saneCustom(status map[string]any) (sane map[string]any, whole bool) {
	if status == nil {
		return nil, true
	}
	left := mostCustomStatus
	if whole = takes(status, &left) && !projection.Deeper(status, projection.DeepestContent); whole {
		sane = cleaned(status).(map[string]any)
	} else {
		sane = map[string]any{}
		if observed, ok := status["observedGeneration"].(int64); ok {
			sane["observedGeneration"] = observed
		}
	}
	if isConditions(status["conditions"]) {
		conditions := []any{}
		for _, c := range conditionsOf(status) {
			if c = saneCondition(c, whole); c != nil && len(conditions) < mostCustomConditions {
				conditions = append(conditions, c)
			}
		}
		sane["conditions"] = conditions
	}
	return sane, whole
}

// saneCondition returns a condition as it may be, nil for one whose type cannot be. Whole tells to keep fields that nobody here knows.
func saneCondition(c map[string]any, whole bool) map[string]any {
	of := c["type"].(string)
	if text.Line(of, mostType) != of {
		return nil
	}
	out := map[string]any{}
	if whole {
		out = cleaned(c).(map[string]any)
	} else if observed, ok := c["observedGeneration"].(int64); ok {
		out["observedGeneration"] = observed
	}
	for key, most := range map[string]int{
		"type": mostType, "status": mostStatus, "reason": mostReason, "message": mostText, "lastTransitionTime": mostTime, "lastUpdateTime": mostTime,
	} {
		if said, ok := c[key].(string); ok && !(whole && key == "message" && len(text.Escape(said)) <= mostMessage) {
			out[key] = text.Line(text.WithoutTokens(said), most)
		}
	}
	return out
}

// takes reports whether a value fits into so many bytes, and takes them.
func takes(value any, left *int) bool {
	*left -= 8 // what a number takes, or the punctuation
	switch value := value.(type) {
	case string:
		*left -= len(value)
	case map[string]any:
		for key, inner := range value {
			if *left -= len(key); !takes(inner, left) {
				return false
			}
		}
	case []any:
		for _, inner := range value {
			if !takes(inner, left) {
				return false
			}
		}
	}
	return *left >= 0
}

// cleaned returns a copy of a value in which no text has anything that a terminal would obey.
func cleaned(value any) any {
	switch value := value.(type) {
	case string:
		return text.Escape(text.WithoutTokens(value))
	case map[string]any:
		out := make(map[string]any, len(value))
		for key, inner := range value {
			out[text.Escape(key)] = cleaned(inner)
		}
		return out
	case []any:
		out := make([]any, len(value))
		for i, inner := range value {
			out[i] = cleaned(inner)
		}
		return out
	}
	return value // numbers, truth values and null
}

// fewTypes returns no more types of conditions than an object may have: those that most clusters tell of, so that none crowds out what the others say.
func fewTypes[C any](types []string, byType map[string]map[string]C) []string {
	if len(types) <= mostCustomConditions {
		return types
	}
	slices.SortStableFunc(types, func(a, b string) int { return len(byType[b]) - len(byType[a]) })
	return types[:mostCustomConditions]
}
