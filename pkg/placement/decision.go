// Package placement is about which clusters a workload runs on and how many replicas each of them gets: it holds the values that everybody
// talks in who asks, decides or carries out a decision.
//
// Everything here and in the rooms below is a function of values: no client, no lister, no clock. Equal arguments give equal results; the
// order in which clusters, policies or names are handed over does not matter, and no argument is changed. Only engine and controller, which
// gather the arguments and write the decisions, do more. The arrows between the rooms run one way, from the first to the last:
//
//	remedy, preempt   what would have to change, and whose room is taken
//	decide            the decision: it runs the stages below one after another
//	ordinals          which cluster gets which range of ordinals
//	divide            how many replicas each cluster gets
//	score             which cluster comes first
//	stuck             what clusters cannot run, and may have to leave them
//	rules             which policy applies, and which clusters may take replicas
//	portion           division by weights
//	move, handmade    the way from one decision to the next; volumes that were made by hand
//	placement         the values
//	words             reasons and notes, and their texts
package placement

import (
	"fmt"
	"maps"
	"slices"
)

// Share is what one cluster gets of a workload.
type Share struct {
	// Replicas is the number of replicas that the cluster runs.
	Replicas int32 `json:"replicas"`
	// Start is the ordinal of the first replica that the cluster runs, counted from 0 over all clusters, of a workload whose replicas
	// have ordinals; 0 for any other.
	Start int32 `json:"start,omitempty"`
	// Copy says that the cluster runs all of the workload, as do the others. Only what is DivisibleByName has copies, whose shares
	// stay what they are while the number of replicas changes.
	Copy bool `json:"copy,omitempty"`
	// Revision is the name of the ApplicationRevision whose content the cluster holds of the object; empty for the object as it stands. It
	// stays while replicas come and go, until delivery changes it.
	Revision string `json:"revision,omitempty"`
	// Target is the name of the target of that revision whose manifests count; empty without a revision.
	Target string `json:"target,omitempty"`
}

// Decision says which clusters run a workload, by name, and each one's share. An empty or nil decision means that the workload
// is not placed. A share of no replicas is a decision as well: the object exists there, scaled to nothing.
type Decision map[string]Share

// ParseDecision reads what String or Result.Annotation wrote. The empty string is the empty decision. Fields that it does not know are
// ignored, since a newer version may have written them, and so are clusters of which no more than a failure is remembered.
func ParseDecision(annotation string) (Decision, error) {
	if annotation == "" {
		return nil, nil
	}
	if d, ok := parseCanonical(annotation); ok {
		return d, nil
	}
	entries, err := parseEntries(annotation)
	if err != nil {
		return nil, err
	}
	d := Decision{}
	for name, e := range entries {
		switch {
		case e.Share != nil:
			d[name] = *e.Share
		case e.FullUntil.IsZero():
			d[name] = Share{}
		}
	}
	for _, name := range d.Clusters() {
		if name == "" {
			return nil, fmt.Errorf("parse placement %.100q: a cluster has no name", annotation)
		}
		if d[name].Replicas < 0 {
			return nil, fmt.Errorf("parse placement %.100q: cluster %q has %d replicas", annotation, name, d[name].Replicas)
		}
		if d[name].Start < 0 {
			return nil, fmt.Errorf("parse placement %.100q: the replicas of cluster %q start at %d", annotation, name, d[name].Start)
		}
	}
	return d, nil
}

// String is the decision as canonical JSON: equal decisions give the same bytes. The empty decision gives the empty string.
func (d Decision) String() string {
	return d.encode(d.Clusters())
}

// has reports whether a cluster has a share.
func (d Decision) has(cluster string) bool {
	_, has := d[cluster]
	return has
}

// Total is the number of replicas in all clusters.
func (d Decision) Total() int64 {
	var total int64
	for _, share := range d {
		total += int64(share.Replicas)
	}
	return total
}

// Clusters are the names of the clusters, sorted.
func (d Decision) Clusters() []string {
	names := slices.AppendSeq(make([]string, 0, len(d)), maps.Keys(d))
	slices.Sort(names)
	return names
}

// Equal reports whether both decisions name the same clusters with the same shares.
func (d Decision) Equal(other Decision) bool {
	return maps.Equal(d, other)
}
