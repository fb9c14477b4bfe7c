package placement

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
)

// Snapshot is an immutable view of the joined clusters. NewSnapshot makes one; it may be shared between goroutines.
type Snapshot struct {
	clusters []*Cluster     // by name
	places   map[string]int // of clusters, by name
}

// NewSnapshot takes the clusters in any order. Their maps and slices belong to the snapshot from then on. Of several clusters of
// one name the first counts.
func NewSnapshot(clusters []Cluster) Snapshot {
	own := slices.Clone(clusters)
	sorted := make([]*Cluster, len(own))
	for i := range own {
		own[i].sortKinds()
		sorted[i] = &own[i]
	}
	slices.SortStableFunc(sorted, func(a, b *Cluster) int { return strings.Compare(a.Name, b.Name) })
	return snapshotOf(slices.CompactFunc(sorted, func(a, b *Cluster) bool { return a.Name == b.Name }))
}

// snapshotOf is a snapshot of clusters that are sorted by name.
func snapshotOf(clusters []*Cluster) Snapshot {
	places := make(map[string]int, len(clusters))
	for i, c := range clusters {
		places[c.Name] = i
	}
	return Snapshot{clusters, places}
}

// With returns a snapshot in which these clusters, which belong to it from then on, have taken the place of those of their names, without
// those that are gone. Observe made them, or they were in a snapshot. The cost of a few is small, however many others there are.
func (s Snapshot) With(changed []Cluster, gone map[string]bool) Snapshot {
	if len(changed) == 0 && len(gone) == 0 {
		return s
	}
	out := slices.Clone(s.clusters)
	for i := range changed {
		if at, known := s.places[changed[i].Name]; known {
			out[at] = &changed[i]
		} else {
			out = append(out, &changed[i])
		}
	}
	if len(out) == len(s.clusters) && len(gone) == 0 {
		return Snapshot{out, s.places}
	}
	out = slices.DeleteFunc(out, func(c *Cluster) bool { return gone[c.Name] })
	slices.SortFunc(out, func(a, b *Cluster) int { return strings.Compare(a.Name, b.Name) })
	return snapshotOf(out)
}

// Less returns a snapshot with so much less room by cluster. What is lacking already does not become more.
func (s Snapshot) Less(taken map[string]Resources) Snapshot {
	var changed []Cluster
	for _, c := range s.clusters {
		less := taken[c.Name]
		if len(less) == 0 || len(c.Free) == 0 {
			continue
		}
		out := *c
		out.Free = slices.Clone(c.Free)
		for i := range out.Free {
			free := &out.Free[i]
			free.Value = max(min(free.Value, 0), free.Value-max(0, less[free.Name]))
		}
		changed = append(changed, out)
	}
	return s.With(changed, nil)
}

func (f *Facts) sortKinds() {
	if !slices.IsSorted(f.Kinds) {
		f.Kinds = slices.Sorted(slices.Values(f.Kinds))
	}
}

// Clusters are the clusters by name. Callers must not change them.
func (s Snapshot) Clusters() []*Cluster { return s.clusters }

// Index is the place of a cluster among Clusters.
func (s Snapshot) Index(name string) (at int, joined bool) {
	at, joined = s.places[name]
	return at, joined
}

// Cluster is what a decision needs to know about one cluster.
type Cluster struct {
	*Facts
	// Free is what may still be requested there: limits applied, and everything that runs there or is on its way taken off,
	// the workload's own current share included. Nil or empty means that the cluster has no ready node, as far as is known.
	Free Amounts
	// Withheld is what limits keep back of what the cluster has. Free is without that already.
	Withheld Amounts
	// Lent is the part of Free that others have; nil in an ordinary snapshot.
	Lent *Lent
}

// Facts are what is known of a cluster whatever is decided. Snapshots share them while only the load of the cluster changes, as that of each
// of a thousand may do with one decision.
type Facts struct {
	Name   string
	Labels map[string]string
	// Topology holds labels that all of the cluster's nodes have in common. Spread constraints know them beside Labels.
	Topology map[string]string
	// Unschedulable keeps new replicas away (cordoned).
	Unschedulable bool
	// Taints with effect NoSchedule or NoExecute keep new replicas away unless the policy tolerates them; those with
	// PreferNoSchedule make other clusters come first.
	Taints []corev1.Taint
	// Ready is the status of the Ready condition; "" counts as Unknown.
	Ready metav1.ConditionStatus
	// ReadySince is since when Ready has been that, and Joined when the cluster became known.
	ReadySince, Joined time.Time
	// ReadyMessage is the condition's message. It is printed in reasons, so it must not change from one probe to the next.
	ReadyMessage string
	// Limits are those of the cluster's spec.
	Limits Amounts
	// Kinds are the kinds that the cluster serves, as KindName writes them. Empty means not known yet, and bounds nothing.
	Kinds []string
	// Classes are those that the cluster has of its own. Nil means not known yet, and bounds nothing.
	Classes *v1alpha1.ClusterClasses
	// Allows is what workloads may bring along.
	Allows v1alpha1.ClusterAllows
}

// Load is what the logical cluster itself knows about the use of a cluster.
type Load struct {
	// Assumed is what decisions put there that the cluster's own status does not count yet. It closes the gap between a decision
	// and the pods that follow from it, so that a burst of workloads does not land on one cluster.
	Assumed Amounts
	// Placed is what all decisions together put there, Assumed included. Limits are held against it. Nil means not known: then
	// limits are held against all that is requested there, whoever asked.
	Placed Amounts
}

// Observe makes the Cluster for a snapshot. What is free is the allocatable amount less what is requested and assumed, and at
// most what the limits leave. A limit on a resource that the cluster does not have adds nothing, but for what volume claims ask for.
func Observe(c *v1alpha1.Cluster, load Load) Cluster {
	room := RoomOf(c)
	facts := Facts{
		Name:          c.Name,
		Labels:        c.Labels,
		Topology:      c.Status.Topology,
		Unschedulable: c.Spec.Unschedulable,
		Taints:        c.Spec.Taints,
		Ready:         metav1.ConditionUnknown,
		Joined:        c.CreationTimestamp.Time,
		Limits:        room.limits,
		Kinds:         c.Status.Kinds,
		Classes:       c.Status.Classes,
		Allows:        c.Spec.Allows,
	}
	facts.sortKinds()
	if ready := meta.FindStatusCondition(c.Status.Conditions, v1alpha1.ClusterReady); ready != nil {
		facts.Ready, facts.ReadySince, facts.ReadyMessage = ready.Status, ready.LastTransitionTime.Time, ready.Message
	}
	return Cluster{Facts: &facts, Free: room.Free(load), Withheld: room.Withheld(load)}
}

// Room is what a cluster itself says about what it has, so that only the load has to be taken off when that changes.
type Room struct{ allocatable, requested, limits Amounts }

// RoomOf reads the room of a cluster.
func RoomOf(c *v1alpha1.Cluster) Room {
	amounts := func(list corev1.ResourceList) Amounts { return ResourcesOf(list).Amounts() }
	return Room{amounts(c.Status.Allocatable), amounts(c.Status.Requested), amounts(c.Spec.Limits)}
}

// Free is what a load leaves; see Cluster.
func (r Room) Free(load Load) Amounts {
	if len(r.allocatable) == 0 {
		return nil
	}
	free := make(Amounts, len(r.allocatable))
	for i, all := range r.allocatable {
		free[i] = Amount{all.Name, all.Value - r.requested.Of(all.Name) - load.Assumed.Of(all.Name)}
	}
	for _, kept := range r.Withheld(load) {
		free.Add(kept.Name, -kept.Value) // each is allocatable, so none is new
	}
	for _, limit := range r.limits {
		if CountsClaims(limit.Name) && !r.allocatable.Has(limit.Name) {
			free = append(free, Amount{limit.Name, limit.Value - load.Placed.Of(limit.Name)})
		}
	}
	return free
}

// Withheld is what limits keep back of what a load leaves.
func (r Room) Withheld(load Load) (out Amounts) {
	for _, limit := range r.limits {
		used := r.requested.Of(limit.Name) + load.Assumed.Of(limit.Name)
		free := r.allocatable.Of(limit.Name) - used
		if load.Placed != nil {
			used = load.Placed.Of(limit.Name)
		}
		if more := free - (limit.Value - used); more > 0 && r.allocatable.Has(limit.Name) {
			out = append(out, Amount{limit.Name, more})
		}
	}
	return out
}

// Beyond is how much more could be free than a load leaves if nothing else were requested there, for the resources that limits bound.
func (r Room) Beyond(load Load) Resources {
	out := Resources{}
	free := r.Free(load)
	for _, limit := range r.limits {
		if load.Placed != nil {
			out[limit.Name] = max(0, limit.Value-load.Placed.Of(limit.Name)-free.Of(limit.Name))
		}
	}
	return out
}

// KindName writes a kind as Cluster.status.kinds does: "Deployment.v1.apps", and "Pod.v1" for the core group.
func KindName(gvk schema.GroupVersionKind) string {
	if gvk.Group == "" {
		return gvk.Kind + "." + gvk.Version
	}
	return gvk.Kind + "." + gvk.Version + "." + gvk.Group
}

// Serves reports whether the cluster serves a kind, as far as is known.
func (c *Cluster) Serves(kind string) bool {
	if len(c.Kinds) == 0 {
		return true
	}
	_, found := slices.BinarySearch(c.Kinds, kind)
	return found
}

// Lent is room that others have.
type Lent struct {
	Own   Amounts   // what is free without it
	Extra Resources // what all of it requests
}

// String shows the facts as well, which are behind a pointer.
func (c Cluster) String() string {
	return fmt.Sprintf("{%+v free %v withheld %v}", *c.Facts, c.Free, c.Withheld)
}
