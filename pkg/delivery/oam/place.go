package oam

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/manifold-dev/manifold/pkg/placement"
	"github.com/manifold-dev/manifold/pkg/placement/portion"
)

// Cluster is one that has joined, as far as it can be selected.
type Cluster struct {
	Name   string
	Labels map[string]string
}

// homeSelector is what the cluster of the object itself is recorded under.
const homeSelector = "home"

// String is what a selector is recorded under.
func (s ClusterSelector) String() string {
	var out []string
	if s.Name != "" {
		out = append(out, "name:"+s.Name)
	}
	for _, key := range slices.Sorted(maps.Keys(s.Labels)) {
		out = append(out, key+"="+s.Labels[key])
	}
	if len(out) == 0 {
		return homeSelector
	}
	return strings.Join(out, ",")
}

// matches reports whether a cluster is one that a selector selects.
func (s ClusterSelector) matches(c Cluster) bool {
	return (s.Name == "" || s.Name == c.Name) && labels.SelectorFromSet(s.Labels).Matches(labels.Set(c.Labels))
}

// Picker picks one cluster where a selector selects several.
type Picker struct {
	Clusters []Cluster
	// Home reports whether a cluster may be the one of the object itself, and Owner is what that is picked by.
	Home  func(cluster string) bool
	Owner string
	// Recorded is what was picked before.
	Recorded []PickStatus

	picked []PickStatus
}

// Pick returns the cluster of an entry, "" if none is selected. What was picked stays as long as it is selected.
func (p *Picker) Pick(component string, entry Entry) string {
	may, selector := entry.Selector.matches, entry.Selector.String()
	if entry.Home() {
		component = p.Owner // all parts of the object that are at home are in one cluster
		may = func(c Cluster) bool { return p.Home(c.Name) }
	}
	var candidates []string
	for _, cluster := range p.Clusters {
		if may(cluster) {
			candidates = append(candidates, cluster.Name)
		}
	}
	at := PickStatus{Component: component, Selector: selector}
	for _, recorded := range append(slices.Clone(p.picked), p.Recorded...) {
		if recorded.Component == component && recorded.Selector == selector && slices.Contains(candidates, recorded.Cluster) {
			at.Cluster = recorded.Cluster
			break
		}
	}
	if at.Cluster == "" {
		at.Cluster = rendezvous(component, candidates)
	}
	if at.Cluster != "" && entry.Selector.Name == "" && !slices.Contains(p.picked, at) {
		p.picked = append(p.picked, at)
	}
	return at.Cluster
}

// Picked is what was picked, for the next time.
func (p *Picker) Picked() []PickStatus {
	slices.SortFunc(p.picked, func(a, b PickStatus) int {
		return strings.Compare(a.Component+"\x00"+a.Selector, b.Component+"\x00"+b.Selector)
	})
	return p.picked
}

// rendezvous returns the candidate that a key belongs to. It changes only for the keys of a candidate that leaves, and for those which belong to one that
// comes.
func rendezvous(key string, candidates []string) string {
	out, most := "", uint64(0)
	for _, candidate := range slices.Sorted(slices.Values(candidates)) {
		sum := sha256.Sum256([]byte(key + "\x00" + candidate))
		if score := binary.BigEndian.Uint64(sum[:8]); out == "" || score > most {
			out, most = candidate, score
		}
	}
	return out
}

// Distribute says how many replicas each entry has of a workload that has so many: the number that it says, or its share by the largest remainder. No
// replica of those that are shared out is lost or added.
func Distribute(replicas int32, entries []Entry) []int32 {
	out, parts := make([]int32, len(entries)), make([]portion.Part, len(entries))
	for i, entry := range entries {
		parts[i] = portion.Part{Weight: entry.Weight, Capacity: placement.Unbounded}
	}
	portion.Among(int64(replicas), parts)
	for i, entry := range entries {
		out[i] = int32(parts[i].Share)
		if entry.Replicas >= 0 {
			out[i] = entry.Replicas
		}
	}
	return out
}

// Size is how many replicas of each workload each cluster has of a revision: by cluster, and by workload as in "Deployment/web".
type Size map[string]map[string]int32

// Total is the number of replicas in a cluster.
func (s Size) Total(cluster string) int32 {
	total := int32(0)
	for _, n := range s[cluster] {
		total += n
	}
	return total
}

// Sum is the number of replicas in all clusters.
func (s Size) Sum() int32 {
	total := int32(0)
	for cluster := range s {
		total += s.Total(cluster)
	}
	return total
}

// Equal reports whether both are the same in all. A cluster that has no replicas counts: its workloads are there.
func (s Size) Equal(other Size) bool {
	return maps.EqualFunc(s, other, maps.Equal[map[string]int32, map[string]int32])
}

// Grown is the larger of both everywhere.
func (s Size) Grown(other Size) Size {
	out := Size{}
	for _, of := range []Size{s, other} {
		for cluster, workloads := range of {
			if out[cluster] == nil {
				out[cluster] = map[string]int32{}
			}
			for workload, n := range workloads {
				out[cluster][workload] = max(out[cluster][workload], n)
			}
		}
	}
	return out
}

// Covers reports whether it has all that another one has.
func (s Size) Covers(other Size) bool { return s.Grown(other).Equal(s) }

// leaves reports whether a cluster has something that another size has nothing of.
func (s Size) leaves(other Size) bool {
	for cluster := range s {
		if _, stays := other[cluster]; !stays {
			return true
		}
	}
	return false
}

// Unplaced is a part that no cluster is there for.
type Unplaced struct {
	Selector string
	Replicas int32
}

// String says what is missing.
func (u Unplaced) String() string {
	if u.Selector == homeSelector {
		return "no cluster is there that may be the one of the object itself"
	}
	return fmt.Sprintf("no cluster matches %s", u.Selector)
}

// Place says where a revision runs, by the replicas of its workloads.
func Place(revision Revision, replicas map[string]int32, picker *Picker) (Size, []Unplaced) {
	size, shares := Size{}, map[string][]int32{}
	for workload, n := range replicas {
		shares[workload] = Distribute(n, revision.Entries)
	}
	var missing []Unplaced
	for i, entry := range revision.Entries {
		cluster, parts, total := picker.Pick(revision.Component(), entry), map[string]int32{}, int32(0)
		for workload := range replicas {
			parts[workload] = shares[workload][i]
			total += parts[workload]
		}
		if cluster == "" {
			missing = append(missing, Unplaced{entry.Selector.String(), total})
			continue
		}
		if size[cluster] == nil {
			size[cluster] = map[string]int32{}
		}
		for workload, n := range parts {
			size[cluster][workload] += n
		}
	}
	return size, missing
}
