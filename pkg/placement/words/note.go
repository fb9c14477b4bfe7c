package words

import (
	"fmt"
	"slices"
	"strings"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
)

// NoteCode says what a Note is about.
type NoteCode string

// What is worth an event about a workload that is placed. Behind each is what the fields of the Note are.
const (
	NoteProblem       NoteCode = "Problem"       // Subject is why nothing, or nothing else, is decided
	NoteNotJoined     NoteCode = "NotJoined"     // Parts are clusters that the pin or the policy names
	NoteWhole         NoteCode = "Whole"         // the one Part is where it runs, and why no more of it does
	NoteOneCopy       NoteCode = "OneCopy"       // Subject is the policy
	NoteIndivisible   NoteCode = "Indivisible"   // Subject is why
	NoteNotTogether   NoteCode = "NotTogether"   // Subject is the namespace, the one Part its cluster; Replicas of Of are elsewhere
	NoteNotEverywhere NoteCode = "NotEverywhere" // Parts are the chosen clusters without a copy, of Of
	NoteOverflow      NoteCode = "Overflow"      // Parts are groups behind the first one
	NoteFewClusters   NoteCode = "FewClusters"   // Subject is the policy, which asks for Of clusters, and Replicas of them are used
	NoteBounded       NoteCode = "Bounded"       // Parts are groups at their limits, Skews labels with the skew that is allowed
	NoteNoRoom        NoteCode = "NoRoom"        // Parts wait for room
	NoteAwaitsVolumes NoteCode = "AwaitsVolumes" // Parts wait for the clusters that have their volumes
	NoteTied          NoteCode = "Tied"          // Parts are clusters that should be left
	NoteStays         NoteCode = "Stays"         // Parts should leave, and no other cluster can take them
	NoteStarted       NoteCode = "Started"       // Parts should leave, and may not since they have started
	NoteStuck         NoteCode = "Stuck"         // Parts cannot be scheduled, or are refused, and stay because of Because
	NoteDisplaced     NoteCode = "Displaced"     // Parts should make room for what their Subjects name
	NoteAwaitsRoom    NoteCode = "AwaitsRoom"    // the one Part waits until the workloads in Names run elsewhere
	NotePreempts      NoteCode = "Preempts"      // Parts are clusters where it takes the room of what their Subjects name
)

// Because says why replicas stay where they are.
type Because string

// Why replicas stay where they are.
const (
	BecausePinned    Because = "Pinned"
	BecauseStarted   Because = "Started"
	BecauseOwnCopies Because = "OwnCopies"
	BecauseVolumes   Because = "Volumes"
	BecauseOrdinals  Because = "Ordinals"
	BecauseNoOther   Because = "NoOtherCluster"
	BecauseFull      Because = "Full"
	BecauseRunning   Because = "Running"
)

var becauseTexts = map[Because]string{
	BecausePinned:    ", where it is pinned",
	BecauseStarted:   ", where it was started",
	BecauseOwnCopies: ", as each cluster has its own",
	BecauseVolumes:   ", where their volumes are",
	BecauseOrdinals:  ", and its ordinals stay where they are",
	BecauseNoOther:   ", and no other cluster can take them",
	BecauseFull:      ": no more fit there",
	BecauseRunning:   ": they stay where they run",
}

// Note is something about a decision that a person would be surprised to find out by looking. Whoever decides anything by it reads the code;
// String makes the text, which is a whole clause.
type Note struct {
	Code         NoteCode
	Subject      string
	Names        []string
	Parts, Skews []Part
	More         int // parts that are only counted
	Replicas, Of int64
	Because      Because
}

// Part is one of the clusters, or groups, that a Note is about.
type Part struct {
	Name     string
	Replicas int64
	Reason   Reason
	Subject  string
}

// String is the note as a clause.
func (n Note) String() string {
	if text, known := noteTexts[n.Code]; known {
		return text(n)
	}
	return string(n.Code)
}

// MarshalText has JSON show a note as its text.
func (n Note) MarshalText() ([]byte, error) { return []byte(n.String()), nil }

// Texts are the notes as clauses.
func Texts(notes []Note) []string {
	out := make([]string, 0, len(notes))
	for _, n := range notes {
		out = append(out, n.String())
	}
	return out
}

// TiedAdvice says what to do about a workload that stays where its volumes are.
const TiedAdvice = "to start with new volumes elsewhere, set its annotation " + v1alpha1.AnnotationVolumes + "=" + v1alpha1.VolumesRecreate

var noteTexts = map[NoteCode]func(Note) string{
	NoteProblem:   func(n Note) string { return n.Subject },
	NoteNotJoined: func(n Note) string { return Tally(n.Parts) },
	NoteWhole: func(n Note) string {
		return fmt.Sprintf("it runs whole on %s, which %s", n.Parts[0].Name, n.Parts[0].Reason)
	},
	NoteOneCopy: func(n Note) string {
		return fmt.Sprintf("it runs once, although %s asks for a copy in each cluster: two replicas would have the same ordinal", n.Subject)
	},
	NoteIndivisible: func(n Note) string { return "it is not divided: " + n.Subject },
	NoteNotTogether: func(n Note) string {
		home, why := n.Parts[0], becauseTexts[n.Because]
		if home.Reason.Code != "" {
			why = ": it " + home.Reason.String()
		}
		return fmt.Sprintf("namespace %q is kept together on %s, but %d of %d replicas are not there%s", n.Subject, home.Name, n.Replicas, n.Of, why)
	},
	NoteNotEverywhere: func(n Note) string {
		return fmt.Sprintf("not on %d of %d chosen clusters: %s", len(n.Parts), n.Of, Tally(n.Parts))
	},
	NoteOverflow: func(n Note) string {
		return "beyond the first group: " + prose(n.Parts, func(p Part) string { return fmt.Sprintf("%d in group %q", p.Replicas, p.Name) })
	},
	NoteFewClusters: func(n Note) string {
		return fmt.Sprintf("on %d clusters, although %s asks for at least %d", n.Replicas, n.Subject, n.Of)
	},
	NoteBounded: func(n Note) string {
		var texts []string
		for _, p := range n.Parts {
			texts = append(texts, fmt.Sprintf("group %q is at its limit of %d", p.Name, p.Replicas))
		}
		for _, p := range n.Skews {
			texts = append(texts, fmt.Sprintf("values of %s may differ by %d replicas at most", p.Name, p.Replicas))
		}
		return strings.Join(texts, ", ")
	},
	NoteNoRoom: func(n Note) string { return "waiting for room: " + onClusters(n) },
	NoteAwaitsVolumes: func(n Note) string {
		return "these replicas wait where their volumes are: " + prose(n.Parts, func(p Part) string {
			return fmt.Sprintf("%d for %s, which %s", p.Replicas, p.Name, p.Reason)
		})
	},
	NoteTied: func(n Note) string {
		return fmt.Sprintf("it stays on %s because its volumes cannot move; %s", prose(n.Parts, func(p Part) string { return p.Name }), TiedAdvice)
	},
	NoteStays:   func(n Note) string { return "staying until another cluster can take them: " + onClusters(n) },
	NoteStarted: func(n Note) string { return "staying where it was started: " + onClusters(n) },
	NoteStuck:   func(n Note) string { return prose(n.Parts, Part.stuck) + becauseTexts[n.Because] },
	NoteDisplaced: func(n Note) string {
		return "these should make room for workloads of higher priority, but no other cluster can take them: " + prose(n.Parts, func(p Part) string {
			return fmt.Sprintf("%d on %s for %s", p.Replicas, p.Name, p.Subject)
		})
	},
	NoteAwaitsRoom: func(n Note) string {
		replicas, has := fmt.Sprintf("%d replicas wait", n.Parts[0].Replicas), "has"
		if n.Parts[0].Replicas == 1 {
			replicas = "1 replica waits"
		}
		if len(n.Names) > 1 {
			has = "have"
		}
		return fmt.Sprintf("%s for room on %s until replicas of %s, which %s a lower priority, run elsewhere",
			replicas, n.Parts[0].Name, Few(n.Names), has)
	},
	NotePreempts: func(n Note) string {
		return "it takes room of lower priority " + prose(n.Parts, func(p Part) string {
			if p.Subject == "" {
				return "on " + p.Name
			}
			return fmt.Sprintf("on %s (%s)", p.Name, p.Subject)
		})
	},
}

// stuck says how many replicas stay where they cannot run.
func (p Part) stuck() string {
	replicas, are := fmt.Sprintf("%d replicas", p.Replicas), "are"
	if p.Replicas == 1 {
		replicas, are = "1 replica", "is"
	}
	if p.Reason.Code == ReasonRefused {
		return fmt.Sprintf("%s %s refused by %s (%s)", replicas, are, p.Name, p.says())
	}
	return fmt.Sprintf("%s %s unschedulable on %s (%s)", replicas, are, p.Name, p.says())
}

// says is what the cluster says of what is stuck, and who comes before that.
func (p Part) says() string {
	if p.Subject == "" {
		return p.Reason.Detail
	}
	return p.Reason.Detail + "; of higher priority there: " + p.Subject
}

// NamedClusters is how many clusters a message names before it only counts them; an event's message is at most 1024 bytes long.
const NamedClusters = 8

// onClusters lists replicas with their clusters: "3 on east and 2 on west".
func onClusters(n Note) string {
	texts := make([]string, 0, len(n.Parts)+1)
	for _, p := range n.Parts {
		texts = append(texts, fmt.Sprintf("%d on %s", p.Replicas, p.Name))
	}
	if n.More > 0 {
		texts = append(texts, fmt.Sprintf("%d more clusters", n.More))
	}
	return Enumerate(texts)
}

func prose(parts []Part, text func(Part) string) string {
	texts := make([]string, 0, len(parts))
	for _, p := range parts {
		texts = append(texts, text(p))
	}
	return Enumerate(texts)
}

// namedWorkloads is how many workloads a note names before it only counts them.
const namedWorkloads = 3

// Few names a few of several workloads.
func Few(names []string) string {
	if len(names) > namedWorkloads {
		return Enumerate(append(slices.Clone(names[:namedWorkloads]), "others"))
	}
	return Enumerate(names)
}

// Enumerate joins texts as prose does: "a", "a and b", "a, b and c".
func Enumerate(texts []string) string {
	if len(texts) < 2 {
		return strings.Join(texts, "")
	}
	last := len(texts) - 1
	return strings.Join(texts[:last], ", ") + " and " + texts[last]
}
