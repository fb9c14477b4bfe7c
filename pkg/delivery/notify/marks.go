package notify

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
)

// Annotation holds, on an Application or a Release, which of its notices were told.
const Annotation = "delivery.manifold.dev/notified"

const (
	// fresh is how old what nobody was told of may be to be told at all: whoever comes to be notified is not told of all that was.
	fresh = 15 * time.Minute
	// giveUp is how long a notice is tried.
	giveUp = time.Hour
	// settle is how long after it was told something that comes and goes is not told again.
	settle = 5 * time.Minute
)

// mark is what is known of a notice.
type mark struct {
	// At is when it was first seen, in seconds.
	At int64 `json:"at"`
	// To are the names of the notifications that are still to be told.
	To []string `json:"to,omitempty"`
}

// marks are those of an object, by the notices' keys.
type marks map[string]mark

// readMarks reads the marks of an object. What cannot be read, since somebody else has written it, counts for nothing.
func readMarks(annotation string) marks {
	out := marks{}
	if err := json.Unmarshal([]byte(annotation), &out); err != nil || out == nil {
		return marks{}
	}
	return out
}

func (m marks) String() string {
	out, err := json.Marshal(m)
	if err != nil {
		return "{}" // numbers and names can always be written
	}
	return string(out)
}

// follow returns the marks that come after: of notices that are new, with whom to tell of them, and none of what there no longer is. It also
// returns when to look again, at the earliest, zero if only news can change anything.
func (m marks) follow(notices []notice, to []v1alpha1.Notification, now time.Time) (out marks, again time.Duration) {
	out = marks{}
	for _, n := range notices {
		key := n.key()
		known, seen := m[key]
		if !seen {
			known = mark{At: now.Unix()}
			if n.time.IsZero() || now.Sub(n.time) < fresh {
				known.To = wanting(to, n.event)
			}
		}
		known.To = slices.DeleteFunc(slices.Clone(known.To), func(name string) bool {
			return !slices.ContainsFunc(to, func(t v1alpha1.Notification) bool { return t.Name == name })
		})
		out[key] = known
	}
	for key, known := range m {
		if _, there := out[key]; there || strings.Contains(key, timed) {
			continue
		}
		left := settle - now.Sub(time.Unix(known.At, 0))
		if left <= 0 || left > settle {
			continue
		}
		out[key] = mark{At: known.At}
		if again == 0 || left < again {
			again = left
		}
	}
	return out, again
}

// wanting are the names of the notifications that are about an event.
func wanting(to []v1alpha1.Notification, event v1alpha1.NotificationEvent) []string {
	var out []string
	for i := range to {
		if len(to[i].Events) == 0 || slices.Contains(to[i].Events, event) {
			out = append(out, to[i].Name)
		}
	}
	return out
}
