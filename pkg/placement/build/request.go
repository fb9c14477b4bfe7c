// Package build makes clusters, snapshots and requests for the tests of placement and its rooms. Amounts of CPU are in cores.
package build

import (
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/placement"
)

// RequestBuilder is a request that is changed word by word.
type RequestBuilder struct{ placement.Request }

// Deployment asks for so many replicas of one core each.
func Deployment(replicas int32) *RequestBuilder {
	return &RequestBuilder{placement.Request{Workload: placement.Workload{
		GVK:       schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"},
		Namespace: "shop", Name: "web",
		Replicas: replicas,
		Requests: placement.Resources{corev1.ResourceCPU: 1000, corev1.ResourcePods: 1},
		Division: placement.Divisible,
	}}}
}

func StatefulSet(replicas int32) *RequestBuilder {
	b := Deployment(replicas)
	b.Workload.GVK.Kind = "StatefulSet"
	b.Workload.Division = placement.Indivisible
	return b
}

func (b *RequestBuilder) Needing(name corev1.ResourceName, amount int64) *RequestBuilder {
	b.Workload.Requests[name] = amount
	return b
}

func (b *RequestBuilder) Pinned(names ...string) *RequestBuilder {
	b.Workload.Pin = &v1alpha1.Pin{Names: names}
	return b
}

// Repinned says that the pin is not the one that the last decision was made for.
func (b *RequestBuilder) Repinned() *RequestBuilder {
	b.Workload.Repinned = true
	return b
}

func (b *RequestBuilder) PinnedToAll() *RequestBuilder {
	b.Workload.Pin = &v1alpha1.Pin{All: true}
	return b
}

// On is the last decision.
func (b *RequestBuilder) On(d placement.Decision) *RequestBuilder {
	b.Current = d
	return b
}

func (b *RequestBuilder) Near(n placement.Neighbours) *RequestBuilder {
	b.Neighbours = n
	return b
}

func (b *RequestBuilder) Leaving(names ...string) *RequestBuilder {
	b.Evict = map[string]bool{}
	for _, name := range names {
		b.Evict[name] = true
	}
	return b
}

func (b *RequestBuilder) Under(change func(*v1alpha1.PlacementPolicySpec)) *RequestBuilder {
	if b.Policy == nil {
		b.Policy = &placement.Policy{Kind: "ClusterPlacementPolicy", Name: "rule"}
	}
	change(&b.Policy.Spec)
	return b
}

func (b *RequestBuilder) KeptTogether() *RequestBuilder {
	return b.Under(func(s *v1alpha1.PlacementPolicySpec) { s.KeepTogether = true })
}

func (b *RequestBuilder) Duplicated() *RequestBuilder {
	return b.Under(func(s *v1alpha1.PlacementPolicySpec) {
		s.Division = &v1alpha1.Division{Type: v1alpha1.Duplicate}
	})
}

func (b *RequestBuilder) DividedBy(by v1alpha1.DivisionBy) *RequestBuilder {
	return b.Under(func(s *v1alpha1.PlacementPolicySpec) {
		s.Division = &v1alpha1.Division{Type: v1alpha1.Divide, By: by}
	})
}

func (b *RequestBuilder) Weighing(weights map[string]int32) *RequestBuilder {
	b.DividedBy(v1alpha1.ByWeights).Policy.Spec.Division.Weights = weights
	return b
}

func (b *RequestBuilder) Selecting(names ...string) *RequestBuilder {
	return b.Under(func(s *v1alpha1.PlacementPolicySpec) { s.Clusters = &v1alpha1.ClusterSelector{Names: names} })
}

func (b *RequestBuilder) SelectingLabel(key, value string) *RequestBuilder {
	return b.Under(func(s *v1alpha1.PlacementPolicySpec) {
		s.Clusters = &v1alpha1.ClusterSelector{LabelSelector: metav1.AddLabelToSelector(&metav1.LabelSelector{}, key, value)}
	})
}

// Shares is a short way to write a decision.
func Shares(pairs ...any) placement.Decision {
	d := placement.Decision{}
	for i := 0; i < len(pairs); i += 2 {
		d[pairs[i].(string)] = placement.Share{Replicas: int32(pairs[i+1].(int))}
	}
	return d
}

// Claiming has each replica ask for so many claims.
func (b *RequestBuilder) Claiming(claims int64) *RequestBuilder {
	b.Workload.ClaimRequests = placement.Resources{corev1.ResourcePersistentVolumeClaims: claims, corev1.ResourceRequestsStorage: claims << 30}
	return b
}

// Classed has the pods name a PriorityClass.
func (b *RequestBuilder) Classed(priority string) *RequestBuilder {
	b.Workload.Template = &corev1.PodTemplateSpec{Spec: corev1.PodSpec{PriorityClassName: priority}}
	return b
}

func (b *RequestBuilder) Bringing(value int32) *RequestBuilder {
	b.Workload.Brings = &value
	return b
}

// Carrying has the workload use a volume that was made by hand.
func (b *RequestBuilder) Carrying(volume *VolumeBuilder) *RequestBuilder {
	b.Workload.HandMade = append(b.Workload.HandMade, &volume.PersistentVolume)
	return b
}

// Keeping says which cluster has the claims of the replicas, by ordinal.
func (b *RequestBuilder) Keeping(clusters ...string) *RequestBuilder {
	b.Workload.Kept = map[int32]string{}
	for number, cluster := range clusters {
		if cluster != "" {
			b.Workload.Kept[int32(number)] = cluster
		}
	}
	return b
}

// Tied says in which clusters replicas run that have volumes there.
func (b *RequestBuilder) Tied(clusters ...string) *RequestBuilder {
	b.Workload.Tied = map[string]bool{}
	for _, cluster := range clusters {
		b.Workload.Tied[cluster] = true
	}
	return b
}

// Losing names clusters that nobody can ask any more.
func (b *RequestBuilder) Losing(clusters ...string) *RequestBuilder {
	b.Lost = map[string]bool{}
	for _, cluster := range clusters {
		b.Lost[cluster] = true
	}
	return b
}

func (b *RequestBuilder) UsingVolumesIn(cluster string) *RequestBuilder {
	b.Workload.VolumesIn = map[string]bool{cluster: true}
	return b
}

// MakingWay has the workload keep so many replicas in a cluster.
func (b *RequestBuilder) MakingWay(cluster string, keep int32) *RequestBuilder {
	b.Displaced = map[string]placement.Displaced{cluster: {Keep: keep, By: Stronger}}
	return b
}

func named(names ...string) v1alpha1.ClusterSelector { return v1alpha1.ClusterSelector{Names: names} }

func (b *RequestBuilder) Preferring(weight int32, names ...string) *RequestBuilder {
	return b.Under(func(s *v1alpha1.PlacementPolicySpec) {
		s.Preferences = append(s.Preferences, v1alpha1.ClusterPreference{Weight: weight, ClusterSelector: named(names...)})
	})
}

// Group adds a group; a limit of "" is none.
func (b *RequestBuilder) Group(limit string, names ...string) *RequestBuilder {
	return b.Under(func(s *v1alpha1.PlacementPolicySpec) {
		g := v1alpha1.ClusterGroup{Name: names[0] + "-group", ClusterSelector: named(names...)}
		if limit != "" {
			parsed := intstr.Parse(limit)
			g.Limit = &parsed
		}
		s.Groups = append(s.Groups, g)
	})
}

func (b *RequestBuilder) Returning(returns bool) *RequestBuilder {
	return b.Under(func(s *v1alpha1.PlacementPolicySpec) { s.Return = &returns })
}

func (b *RequestBuilder) OnClusters(least, most int32) *RequestBuilder {
	return b.Under(func(s *v1alpha1.PlacementPolicySpec) { s.MinClusters, s.MaxClusters = least, most })
}

func (b *RequestBuilder) AtLeast(replicas int32) *RequestBuilder {
	b.Policy.Spec.Division.MinReplicas = replicas
	return b
}

func (b *RequestBuilder) SpreadBy(key string, skew int32, action v1alpha1.UnsatisfiableAction) *RequestBuilder {
	return b.Under(func(s *v1alpha1.PlacementPolicySpec) {
		s.Spread = append(s.Spread, v1alpha1.SpreadConstraint{TopologyKey: key, MaxSkew: skew, WhenUnsatisfiable: action})
	})
}

// Gizmo is an object of a custom kind.
func Gizmo() *RequestBuilder {
	b := Deployment(1)
	b.Workload.GVK.Group, b.Workload.GVK.Version, b.Workload.GVK.Kind = "example.com", "v1", "Gizmo"
	b.Workload.Division, b.Workload.Custom, b.Workload.Requests = placement.Indivisible, true, nil
	return b
}

// Rollout is an object of a custom kind that is described: it asks for replicas of one core each.
func Rollout(replicas int32) *RequestBuilder {
	b := Deployment(replicas)
	b.Workload.GVK.Group, b.Workload.GVK.Version, b.Workload.GVK.Kind = "example.com", "v1", "Rollout"
	b.Workload.Division, b.Workload.Custom, b.Workload.Template = placement.Indivisible, true, &corev1.PodTemplateSpec{}
	return b
}

// Divisible lets replicas of a custom kind be divided.
func (b *RequestBuilder) Divisible() *RequestBuilder {
	b.Workload.Division = placement.DivisibleByName
	return b
}

// Listing has the policy list kinds.
func (b *RequestBuilder) Listing(kinds ...string) *RequestBuilder {
	return b.Under(func(s *v1alpha1.PlacementPolicySpec) { s.Workloads = &v1alpha1.WorkloadSelector{Kinds: kinds} })
}

// DaemonSet asks for a pod of one core on each node.
func DaemonSet() *RequestBuilder {
	b := Deployment(0)
	b.Workload.GVK.Kind = "DaemonSet"
	b.Workload.Division = placement.Everywhere
	return b
}

// Job is what a policy divides that lists its kind.
func Job(replicas int32) *RequestBuilder {
	b := Deployment(replicas)
	b.Workload.GVK.Group, b.Workload.GVK.Kind = "batch", "Job"
	b.Workload.Division = placement.DivisibleByName
	return b
}

func (b *RequestBuilder) Fixed() *RequestBuilder {
	b.Workload.Fixed = true
	return b
}

// Whole gives a reason not to be divided.
func (b *RequestBuilder) Whole(why string) *RequestBuilder {
	b.Workload.Division, b.Workload.Whole = placement.Indivisible, why
	return b
}

// Copied marks all shares of a decision as whole.
func Copied(d placement.Decision) placement.Decision {
	for name, share := range d {
		share.Copy = true
		d[name] = share
	}
	return d
}

// Held names the revisions that clusters hold by a decision, as pairs of a cluster and a revision.
func Held(d placement.Decision, pairs ...string) placement.Decision {
	out := maps.Clone(d)
	for i := 0; i < len(pairs); i += 2 {
		share := out[pairs[i]]
		share.Revision, share.Target = pairs[i+1], "eu"
		out[pairs[i]] = share
	}
	return out
}

func Labelled(key, value string) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: map[string]string{key: value}}
}

// Urgent is a request of priority 100 under a policy that lets it preempt.
func (b *RequestBuilder) Urgent() *RequestBuilder {
	b.Workload.Priority = 100
	b.Lower = map[string]placement.Lower{}
	return b.Under(func(s *v1alpha1.PlacementPolicySpec) { s.PreemptionPolicy = corev1.PreemptLowerPriority })
}

// Above says that pods of one priority, so many, request so many cores of a cluster.
func (b *RequestBuilder) Above(cluster string, priority int32, pods, cores int64) *RequestBuilder {
	lower := b.Lower[cluster]
	lower.Levels = append(lower.Levels, placement.Level{Priority: priority, Requests: placement.Resources{corev1.ResourceCPU: cores * 1000, corev1.ResourcePods: pods}})
	b.Lower[cluster] = lower
	return b
}

func (b *RequestBuilder) Beyond(cluster string, cores int64) *RequestBuilder {
	lower := b.Lower[cluster]
	lower.Beyond = placement.Resources{corev1.ResourceCPU: cores * 1000}
	b.Lower[cluster] = lower
	return b
}

// Database asks for so many replicas with ordinals of one core each, which a policy that lists their kind divides.
func Database(replicas int32) *RequestBuilder {
	b := StatefulSet(replicas)
	b.Workload.Division, b.Workload.Ordinals = placement.DivisibleByName, true
	return b
}

func (b *RequestBuilder) ByName() *RequestBuilder {
	return b.Under(func(s *v1alpha1.PlacementPolicySpec) {
		s.Workloads = &v1alpha1.WorkloadSelector{Kinds: []string{"Deployment", "Job", "StatefulSet"}}
	})
}

// Ranges is a short way to write a decision about replicas with ordinals: cluster, first, count.
func Ranges(triples ...any) placement.Decision {
	d := placement.Decision{}
	for i := 0; i < len(triples); i += 3 {
		d[triples[i].(string)] = placement.Share{Start: int32(triples[i+1].(int)), Replicas: int32(triples[i+2].(int))}
	}
	return d
}

func (b *RequestBuilder) Tolerating(tolerations ...corev1.Toleration) *RequestBuilder {
	return b.Under(func(s *v1alpha1.PlacementPolicySpec) { s.Tolerations = tolerations })
}

// TolerateFor tolerates a NoExecute taint for so many seconds; below 0 means for ever.
func TolerateFor(key string, seconds int64) corev1.Toleration {
	t := corev1.Toleration{Key: key, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute}
	if seconds >= 0 {
		t.TolerationSeconds = &seconds
	}
	return t
}

// StuckOn is a short way to say what clusters cannot schedule.
func (b *RequestBuilder) StuckOn(pairs ...any) *RequestBuilder {
	b.Now, b.Tolerated, b.Stuck = Noon, TwoMinutes, map[string]placement.Stuck{}
	for i := 0; i < len(pairs); i += 2 {
		name, replicas := pairs[i].(string), int32(pairs[i+1].(int))
		b.Stuck[name] = placement.Stuck{Replicas: replicas, Idle: replicas == b.Current[name].Replicas, Says: SelectsNone}
		if b.Workload.Ordinals {
			b.Stuck[name] = placement.Stuck{Replicas: replicas, Tail: replicas, Says: SelectsNone}
		}
	}
	return b
}

// Failed remembers that a cluster has failed, and that it counts as full for so long.
func (b *RequestBuilder) Failed(cluster string, times int32, still time.Duration) *RequestBuilder {
	b.Now, b.Tolerated = Noon, TwoMinutes
	b.Workload.Failures = placement.Failures{cluster: {Until: Noon.Add(still), Times: times}}
	return b
}
