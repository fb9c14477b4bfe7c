package placement

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Share is what one cluster gets of a workload.
type Share struct {
	// Replicas is the number of replicas that the cluster runs.
	Replicas int32 `json:"replicas"`
	// Start is the number of the first replica that the cluster runs, counted from 0 over all clusters, of a workload whose replicas
	// are numbered; 0 for any other.
	Start int32 `json:"start,omitempty"`
	// Copy tells that the cluster runs all of the workload, as do the others. It is told only of what is DivisibleByName, whose shares
	// stay what they are while the number of replicas changes.
	Copy bool `json:"copy,omitempty"`
}

// Decision says which clusters run a workload, by name, and each one's share. An empty or nil decision means that the workload
// is not placed. A share of no replicas is a decision as well: the object exists there, scaled to nothing.
type Decision map[string]Share

// fullUntil tells that an annotation remembers failures.
const fullUntil = `"fullUntil"`

// ParseDecision reads what String or Result.Annotation wrote. The empty string is the empty decision. Fields that it does not know are
// ignored, since a newer version may have written them, and so are clusters of which no more than a failure is remembered.
func ParseDecision(annotation string) (Decision, error) {
	if annotation == "" {
		return nil, nil
	}
	if d, ok := parseCanonical(annotation); ok {
		return d, nil
	}
	var d Decision
	if strings.Contains(annotation, fullUntil) {
		entries, err := parseEntries(annotation)
		if err != nil {
			return nil, err
		}
		d = Decision{}
		for name, e := range entries {
			if e.Share != nil {
				d[name] = *e.Share
			}
		}
	} else if err := json.Unmarshal([]byte(annotation), &d); err != nil {
		return nil, fmt.Errorf("parse placement %.100q: %w", annotation, err)
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

// has tells whether a cluster has a share.
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

// Equal tells whether both decisions name the same clusters with the same shares.
func (d Decision) Equal(other Decision) bool {
	return maps.Equal(d, other)
}
