// Package verdict writes what a decision has found out, in the same words for every command that tells of decisions.
package verdict

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/manifold-dev/manifold/pkg/placement"
)

// Text says what keeps replicas away from a cluster, or how many more would fit, and how it ranks among the others.
func Text(v placement.Verdict) string {
	rank := rank(v)
	if why := Why(v); len(why) > 0 {
		return strings.Join(why, ", ") + inParentheses(rank) // without a score, as it may take nothing
	}
	replicas := fmt.Sprintf("%d more replicas", v.Fits)
	if v.Fits == 1 {
		replicas = "1 more replica"
	}
	return "has room for " + replicas + inParentheses(append(rank, fmt.Sprintf("score %d", v.Score)))
}

// Why is the reasons in words.
func Why(v placement.Verdict) (why []string) {
	for _, reason := range v.Reasons {
		why = append(why, reason.String())
	}
	return why
}

// rank says how the policy ranks a cluster among the others.
func rank(v placement.Verdict) (parts []string) {
	if v.Group != "" {
		parts = append(parts, "group "+v.Group)
	}
	if v.Preference != 0 {
		parts = append(parts, fmt.Sprintf("preference %d", v.Preference))
	}
	return parts
}

func inParentheses(parts []string) string {
	if len(parts) == 0 {
		return ""
	}
	return " (" + strings.Join(parts, ", ") + ")"
}

// Remedies writes what would have to change so that other clusters get some of a workload too, as a table of its own.
func Remedies(out io.Writer, clusters []string, remedies map[string][]string) {
	header := "\nCLUSTER\tTO RUN IT THERE, OR MORE OF IT\n"
	for _, name := range clusters {
		if texts := remedies[name]; len(texts) > 0 {
			fmt.Fprintf(out, "%s%s\t%s\n", header, name, strings.Join(texts, "; and "))
			header = ""
		}
	}
}

// Share is a cluster's part as a column shows it. Of what is everywhere, nobody asks for a number.
func Share(share *placement.Share, everywhere bool) string {
	switch {
	case share == nil:
		return "-"
	case everywhere:
		return "all"
	}
	return fmt.Sprint(share.Replicas)
}

// Shares lists the parts of a decision: "3 on east, 2 on west", or the names alone. Of replicas that are divided by their ordinals, of which
// the first one has the number given, it says which ones.
func Shares(d placement.Decision, names bool, first int32) string {
	if names {
		return strings.Join(d.Clusters(), ", ")
	}
	ranged := slices.ContainsFunc(d.Clusters(), func(name string) bool { return d[name].Start > 0 })
	var shares []string
	for _, name := range d.Clusters() {
		share := d[name]
		text := fmt.Sprintf("%d on %s", share.Replicas, name)
		if from := first + share.Start; ranged && share.Replicas == 1 {
			text += fmt.Sprintf(" (ordinal %d)", from)
		} else if ranged && share.Replicas > 1 {
			text += fmt.Sprintf(" (ordinals %d-%d)", from, from+share.Replicas-1)
		}
		shares = append(shares, text)
	}
	return strings.Join(shares, ", ")
}

// Sentence makes a clause a sentence. The clause may begin with a number.
func Sentence(clause string) string {
	return strings.ToUpper(clause[:1]) + clause[1:] + "."
}
