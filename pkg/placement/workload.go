package placement

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
)

// Workload is what a decision needs to know about the object that is placed.
type Workload struct {
	GVK schema.GroupVersionKind
	// Versions are further versions of the kind in which a cluster may have the object, beside that of GVK.
	Versions []string
	// Custom is true if the object is a custom resource: a policy has to list its kind as KIND.GROUP in order to select it. See Opaque.
	Custom    bool
	Namespace string
	Name      string
	// Labels are the workload's own, NamespaceLabels its namespace's. Policies select by them.
	Labels          map[string]string
	NamespaceLabels map[string]string
	// Replicas is the number of replicas asked for; a negative number counts as 0.
	Replicas int32
	// Requests are those of one replica, see RequestsOf.
	Requests Resources
	// ClaimRequests are those of the volume claims that are made for one replica. What a cluster has of that is not known, so they count only
	// where its limits bound them.
	ClaimRequests Resources
	// Division says how far the replicas may be divided over clusters.
	Division Division
	// Ordinals says that each replica has an ordinal of its own, from 0 on, so that every cluster gets one range of them, see Share.Start,
	// and keeps it.
	Ordinals bool
	// Takes says what the workload takes over when it is made.
	Takes Takes
	// Whole is the reason why the workload is Indivisible although others of its kind are not, as the end of a sentence; "" if it has no
	// reason of its own.
	Whole string
	// Never is the reason why no cluster may have the workload, whatever it has, in words for the user; "" if there is none.
	Never string
	// Awaits is true if a cluster has nothing of the workload before a release comes to it. One that is new to the workload then holds no revision.
	Awaits bool
	// Fixed is true if a decision, once made, is never made anew.
	Fixed bool
	// Once is true if nothing of it may run twice, so that what a silent cluster may have begun is waited for.
	Once bool
	// RunsIn is the cluster that it is known to run in, whatever was decided last; "" if there is none. It is known of bare pods alone.
	RunsIn string
	// Restarts is true if what is Fixed may yet start over elsewhere: when it loses its cluster, or is forced off it. See Request.
	Restarts bool
	// Unstarted is true if nothing of what Restarts has run yet, as far as its status tells.
	Unstarted bool
	// Template is what the pods are made of; nil if that is not known. It is the object's own and must not be changed.
	Template *corev1.PodTemplateSpec
	// Beside are the templates of further pods that each replica has, as those of Template.
	Beside []*corev1.PodTemplateSpec
	// Priority is that of its pods.
	Priority int32
	// StorageClass is the class that a volume claim names, which is decided about like a workload; "" for none.
	StorageClass string
	// HandMade are the PersistentVolumes of the logical cluster that go along with its claims. They must not be changed.
	HandMade []*corev1.PersistentVolume
	// Brings is the value of the PriorityClass that its pods name, if that is one of the logical cluster which may go along with them.
	Brings *int32
	// Failures are what is remembered of clusters that could not schedule replicas, or refused them.
	Failures Failures
	// Refused says which clusters refuse pods of the workload now.
	Refused map[string]Refusal
	// VolumeClaims names the claims, of the workload's namespace, that its pods use.
	VolumeClaims []string
	// VolumesIn are the clusters that have the volumes of these claims; nil while none is bound to any.
	VolumesIn map[string]bool
	// ClaimTemplates are those by which volume claims are made for replicas with ordinals, First is the ordinal of the first one.
	ClaimTemplates []string
	First          int32
	// Claims are these templates themselves, which must not be changed.
	Claims []corev1.PersistentVolumeClaim
	// Kept has by ordinal which cluster has the volumes of a replica, which outlive it.
	Kept map[int32]string
	// Recreates is true if the user wants new volumes where the workload goes, rather than have it stay where they are.
	Recreates bool
	// Tied are the clusters where replicas run that have volumes there which cannot follow: the workload does not leave them.
	Tied map[string]bool
	// Pin is the user's choice of clusters; nil leaves it to the policy. A pin of its own, if any, or else its namespace's.
	Pin *v1alpha1.Pin
	// Views has how many replicas each cluster is to run by its own view, where several clusters hold the workload each as it was written through
	// its view. None of them takes any of another then. Nil for any other workload.
	Views map[string]int32
	// Repinned is true if the user has just chosen other clusters: then replicas are divided anew, where otherwise those that run
	// stay.
	Repinned bool
}

// Takes says what a workload takes over that nobody controls, wherever it finds it.
type Takes struct {
	// Selector meets the labels of what is taken over; nil if nothing is.
	Selector *metav1.LabelSelector
	// ReplicaSets is true if it is ReplicaSets, not pods.
	ReplicaSets bool
}

// Division says how far a workload may be divided over clusters.
type Division string

const (
	// Indivisible workloads go to one cluster whole, whatever policy says. It is the zero value.
	Indivisible Division = ""
	// DivisibleByName are those that only a policy which lists their kind divides. To have several clusters to choose from is not to
	// want to run in all of them, for what keeps its identity or its progress in one place.
	DivisibleByName Division = "ByName"
	// Divisible workloads are divided where several clusters are chosen for them.
	Divisible Division = "Divisible"
	// Everywhere workloads run in each cluster that is chosen for them, and make of that what the cluster's nodes give.
	Everywhere Division = "Everywhere"
)

// Neighbours tell where the other workloads of a workload's namespace are, as weights by cluster. A policy that keeps namespaces
// together prefers the cluster with the highest.
type Neighbours map[string]int64

// Add counts one more workload of the namespace: its replicas, and at least 1 for each cluster that has a share. It may be
// called on a map that was made, not on nil.
func (n Neighbours) Add(d Decision) {
	for name, share := range d {
		n[name] += WeightOf(share.Replicas)
	}
}

// Remove takes off what Add counted.
func (n Neighbours) Remove(d Decision) {
	for name, share := range d {
		if n[name] -= WeightOf(share.Replicas); n[name] == 0 {
			delete(n, name)
		}
	}
}

// WeightOf is what so many replicas of a workload in a cluster count.
func WeightOf(replicas int32) int64 { return max(1, int64(replicas)) }

// Home is the cluster that has most of the neighbours; "" if there are none.
func (n Neighbours) Home() string {
	var home string
	for name, weight := range n {
		if home == "" || cmp.Or(cmp.Compare(weight, n[home]), cmp.Compare(home, name)) > 0 {
			home = name
		}
	}
	return home
}

// Needed are the resources that are really needed, by name.
func (r Resources) Needed() []Need {
	out := make([]Need, 0, len(r))
	for name, amount := range r {
		if amount > 0 {
			out = append(out, Need{Name: name, Amount: amount})
		}
	}
	slices.SortFunc(out, func(a, b Need) int { return cmp.Compare(a.Name, b.Name) })
	return out
}

// ListedAs is how a policy names the workload's kind. A custom kind may have the name of another one.
func (w *Workload) ListedAs() string {
	if w.Custom {
		return w.GVK.Kind + "." + w.GVK.Group
	}
	return w.GVK.Kind
}

// Opaque reports whether nobody knows what becomes of the object: it is a custom resource whose kind is not described. It needs no node and no
// room, what is chosen for it has a whole copy each, and what a second copy would do nobody can say.
func (w *Workload) Opaque() bool { return w.Custom && w.Template == nil }

// KindNames are the names of the kind in each version that will do.
func (w *Workload) KindNames() []string {
	out := []string{KindName(w.GVK)}
	for _, version := range w.Versions {
		out = append(out, KindName(w.GVK.GroupKind().WithVersion(version)))
	}
	return out
}

// PinnedToOne reports whether the user chose a single cluster.
func (w *Workload) PinnedToOne() bool {
	return w.IsPinned() && !w.Pin.All && !slices.ContainsFunc(w.Pin.Names, func(name string) bool { return name != w.Pin.Names[0] })
}

// IsPinned reports whether the user chose any cluster.
func (w *Workload) IsPinned() bool {
	return w.Pin != nil && (w.Pin.All || len(w.Pin.Names) > 0)
}
