package summary

import (
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/manifold-dev/manifold/pkg/placement"
)

// Object is a typed Kubernetes object, such as *appsv1.Deployment.
type Object interface {
	metav1.Object
	runtime.Object
}

// Input is what a summary is made from, beside the object itself.
type Input struct {
	// Decision says which clusters should hold which share of a workload. It is empty for other objects.
	Decision placement.Decision
	// Reports are those of the clusters that hold the object or should.
	Reports map[string]Report
	// Unplaced is the reason why the decision is empty, as placement words it. It is ignored otherwise.
	Unplaced string
	// Awaits says which release the workload awaits in clusters, which are none of Decision; "" if it awaits none.
	Awaits string
	// Move says how far the workload is on its way from cluster to cluster; "" if it is not.
	Move string
	// Now is the time of conditions that change.
	Now metav1.Time
}

// Report is what is known about one cluster's projection of an object.
type Report struct {
	// Generation is the generation of the object upstream that the status answers for: the cluster carries out the projection of
	// that generation, with the share that is decided now, and its controllers have seen it. Zero means none yet.
	Generation int64
	// Revision and Target name the revision that Live is made of, and whose manifests of it, "" for the object as it stands or as long as the
	// cluster's controllers have not seen it so.
	Revision, Target string
	// Lacks says what the cluster is to have of that revision beside Live and does not have, "" for nothing. One of the workloads of the revision tells it.
	Lacks string
	// Routes is the mark of what Live has otherwise than the object says, "" for nothing.
	Routes string
	// Begun is the generation of which the cluster carries out the projection, with whatever share it may have by now.
	Begun int64
	// Live is the object in the cluster, of the same Go type, nil if there is none yet. Of a silent cluster it may have no more than the
	// counters that the breakdown kept.
	Live Object
	// Stale tells that the cluster is silent, so that everything else is the last that was heard of it.
	Stale bool
	// Problem says why the cluster cannot hold the projection, such as a name that is taken there. It is for the user.
	Problem string
	// Waits says what the cluster waits for before it has what was decided; "" if for nothing. It is for the user.
	Waits string
	// Doubts say what the cluster reports that cannot be; Live is without it.
	Doubts []string
	// Leaves says that none of the workloads behind the addresses of the object is to run in the cluster any more, Asks that the last replicas of one
	// of them are to end once the addresses have left the status, and Withdrawal how far that is.
	Leaves, Asks bool
	Withdrawal   Withdrawal
	// Unserved says that nothing is ready in the cluster of what the addresses of the object lead to there, and Early that they are not shown until
	// something is.
	Unserved, Early bool
	// Refused tells of pods that the cluster does not let be made; nil if there are none.
	Refused *placement.Refusal
	// Unproxied is how many ready replicas requests do not get to yet, see ClusterStatus.
	Unproxied int32
	// Revisions are the hashes of the upstream templates that the cluster's ControllerRevisions of the object carry out, by their names.
	Revisions map[string]string
}

// current reports whether the report, however old, is about the given generation.
func (r Report) current(generation int64) bool { return r.Problem == "" && r.Generation >= generation }

// answers reports whether the cluster confirms the given generation now.
func (r Report) answers(generation int64) bool { return r.current(generation) && !r.Stale }

// live returns the object that a cluster reports as the type that it has, nil if there is none.
func live[P Object](r Report) P {
	typed, _ := r.Live.(P)
	return typed
}

// clustersOf returns the names of reporting clusters in order, which is what keeps sums and messages the same between passes.
func clustersOf(reports map[string]Report) []string { return slices.Sorted(maps.Keys(reports)) }
