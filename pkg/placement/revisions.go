package placement

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation"

	delivery "github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/placement/words"
)

// Which revision a cluster holds is no part of a decision: whoever decides leaves it as it is, and delivery changes it, and no replicas.

// Held reports whether the decision names a revision for any cluster.
func (d Decision) Held() bool {
	for _, share := range d {
		if share.Revision != "" {
			return true
		}
	}
	return false
}

// Holding returns the decision with the revisions that clusters hold by the last one. A cluster that is new to the workload takes over what it
// comes in place of.
func (d Decision) Holding(last Decision) Decision {
	if !d.Held() && !last.Held() {
		return d
	}
	out, heir := make(Decision, len(d)), last.heir(d)
	for cluster, share := range d {
		from, had := last[cluster]
		if !had {
			from = heir
		}
		share.Revision, share.Target = from.Revision, from.Target
		out[cluster] = share
	}
	return out
}

// heir is what a cluster takes over that has no share by the last decision: of a cluster that leaves, else of one that gives up replicas, else
// of any. Where these hold several revisions it is the first, which every other one has replaced or is about to.
func (d Decision) heir(next Decision) Share {
	rank := func(cluster string) int {
		share, stays := next[cluster]
		switch {
		case !stays:
			return 0
		case share.Replicas < d[cluster].Replicas:
			return 1
		}
		return 2
	}
	held := slices.DeleteFunc(d.Clusters(), func(cluster string) bool { return d[cluster].Revision == "" })
	if len(held) == 0 {
		return Share{}
	}
	return d[slices.MinFunc(held, func(a, b string) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), compareRevisions(d[a].Revision, d[b].Revision), cmp.Compare(d[a].Target, d[b].Target))
	})]
}

// compareRevisions puts the revisions of an application in the order in which they were made.
func compareRevisions(a, b string) int {
	first, number, _ := delivery.ParseRevisionName(a)
	second, other, _ := delivery.ParseRevisionName(b)
	return cmp.Or(cmp.Compare(first, second), cmp.Compare(number, other), cmp.Compare(a, b))
}

// Releasing returns the decision with the revisions that said names for its clusters, and those of the last decision for all others. A
// cluster that said names without a revision holds the object as it stands. Of a workload that awaits a release, one that is new to it and that nobody
// speaks of takes over none.
func (d Decision) Releasing(last, said Decision, awaits bool) Decision {
	held := maps.Clone(last)
	if held == nil {
		held = Decision{}
	}
	for cluster := range d {
		if asked, named := said[cluster]; named {
			share := held[cluster]
			share.Revision, share.Target = asked.Revision, asked.Target
			held[cluster] = share
		} else if awaits {
			held[cluster] = held[cluster]
		}
	}
	return d.Holding(held)
}

// Release returns what is to be stored in place of an annotation with a decision; see Decision.Releasing. What it remembers besides stays.
func Release(annotation string, last, said Decision, awaits bool) (string, error) {
	decision, err := ParseDecision(annotation)
	if err != nil {
		return "", err
	}
	failures, err := ParseFailures(annotation)
	if err != nil {
		return "", err
	}
	return Result{Decision: decision.Releasing(last, said, awaits), Failures: failures}.Annotation(), nil
}

// CheckRevisions returns what is wrong with the revisions of a decision, nil if nothing is: names that no revision and no target can have.
func (d Decision) CheckRevisions() error {
	for _, cluster := range d.Clusters() {
		share := d[cluster]
		if problems := validation.IsDNS1123Subdomain(cluster); len(problems) > 0 {
			return fmt.Errorf("cluster %.100q: %s", cluster, problems[0])
		}
		switch _, _, named := delivery.ParseRevisionName(share.Revision); {
		case share.Revision == "" && share.Target != "":
			return fmt.Errorf("cluster %q: target %.100q of no revision", cluster, share.Target)
		case share.Revision == "":
		case !named || len(validation.IsDNS1123Subdomain(share.Revision)) > 0:
			return fmt.Errorf("cluster %q: %.100q is not the name of a revision, such as web-v7", cluster, share.Revision)
		case len(validation.IsDNS1123Label(share.Target)) > 0:
			return fmt.Errorf("cluster %q: %.100q is not the name of a target of revision %q", cluster, share.Target, share.Revision)
		}
	}
	return nil
}

// Settling returns the decision of a workload that awaits no release any more: a cluster that the last one has not come to takes over what a new
// cluster would. If none holds a revision, all hold the object as it stands.
func (d Decision) Settling() Decision {
	return d.Holding(d.Begun())
}

// Begun returns the shares of clusters that a release has come to: those that name a revision.
func (d Decision) Begun() Decision {
	out := Decision{}
	for cluster, share := range d {
		if share.Revision != "" {
			out[cluster] = share
		}
	}
	return out
}

// Hold has the result keep the revisions of the last decision. A cluster that is new to a workload which awaits a release takes over none.
func (r *Result) Hold(last Decision, awaits bool) {
	if !last.Held() {
		return
	}
	r.Decision = r.Decision.Holding(last)
	if awaits {
		for cluster, share := range r.Decision {
			if !last.has(cluster) {
				share.Revision, share.Target = "", ""
				r.Decision[cluster] = share
			}
		}
	}
	for i := range r.Verdicts {
		if v := &r.Verdicts[i]; v.Share != nil {
			share := r.Decision[v.Cluster]
			v.Share = &share
		}
	}
}

// HeldAt says which revisions clusters hold, and whose they are: "held at web-v7 in west by Application web"; "" if none holds any.
func (d Decision) HeldAt() string {
	clusters, applications := map[string][]string{}, map[string]bool{}
	for _, cluster := range d.Clusters() {
		if revision := d[cluster].Revision; revision != "" {
			application, _, _ := delivery.ParseRevisionName(revision)
			clusters[revision], applications[application] = append(clusters[revision], cluster), true
		}
	}
	if len(clusters) == 0 {
		return ""
	}
	var parts []string
	for i, revision := range slices.SortedFunc(maps.Keys(clusters), compareRevisions) {
		if i == mostRevisions {
			parts = append(parts, fmt.Sprintf("%d more revisions", len(clusters)-i))
			break
		}
		part := "at " + revision
		if holders := clusters[revision]; len(holders) < len(d) {
			part += " in " + words.Enumerate(bounded(holders))
		}
		parts = append(parts, part)
	}
	return "held " + words.Enumerate(parts) + " by Application " + words.Enumerate(bounded(slices.Sorted(maps.Keys(applications))))
}

// mostRevisions is how many revisions a message names. There are two in a release, and one more where a release came before another had ended.
const mostRevisions = 4

// bounded is the beginning of a list that may be long.
func bounded(names []string) []string {
	if len(names) <= words.NamedClusters {
		return names
	}
	return append(slices.Clone(names[:words.NamedClusters]), fmt.Sprintf("%d more", len(names)-words.NamedClusters))
}
