// Package reporting tells what a cluster has of an object, as far as that counts, for the statuses of the logical cluster.
package reporting

import (
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/identity"
	"github.com/manifold-dev/manifold/pkg/projection"
	"github.com/manifold-dev/manifold/pkg/summary"
	"github.com/manifold-dev/manifold/pkg/summary/reports"
	"github.com/manifold-dev/manifold/pkg/syncer/logical"
	"github.com/manifold-dev/manifold/pkg/syncer/mirrors"
	"github.com/manifold-dev/manifold/pkg/syncer/states"
	"github.com/manifold-dev/manifold/pkg/syncer/trust"
)

// Options say what is asked about a cluster for reports.
type Options struct {
	*trust.Cluster
	Above  *logical.Cluster
	Owners *mirrors.Owners
	Pods   *mirrors.Pods
	// Synced reports whether everything that the cluster holds has been seen.
	Synced func() bool
	// Inward reports whether the cluster has an object for what runs there alone, and tells nothing of it: no address there leads to it.
	Inward func(kind projection.Kind, above, live projection.Object) bool
	// Dependents returns what a workload needs beside it.
	Dependents func(w identity.Workload) []identity.Key
	// Takes reports whether the cluster is to have an object that follows workloads.
	Takes func(kind projection.Kind, above projection.Object) bool
	// Leaving reports whether none of the workloads behind the addresses of an object is to run in the cluster any more, and whether the last replicas
	// of one of them are to end once the addresses have left the status.
	Leaving func(kind projection.Kind, above projection.Object) (leaves, asks bool)
	// Unserved reports whether nothing is ready in the cluster of what the addresses of an object lead to.
	Unserved func(kind projection.Kind, above projection.Object) bool
	// Unproxied counts, of so many replicas of a workload that are ready, those that requests do not get to everywhere in the cluster yet, if anybody waits
	// for that.
	Unproxied func(w identity.Workload, ready int32) int32
	// Goes reports whether an object of the logical cluster is on its way out of all clusters.
	Goes func(key identity.Key) bool
	// Changed tells that there is something new to report of an object.
	Changed func(key identity.Key, urgent bool)
}

// Reporter tells what a cluster has.
type Reporter struct {
	Options
	refusals refusals
	beside   *beside
}

var _ reports.Reporter = (*Reporter)(nil)

// New returns what tells of a cluster.
func New(o Options) *Reporter {
	return &Reporter{Options: o, refusals: refusals{byUID: map[types.UID]refused{}}, beside: newBeside(&o)}
}

// Cluster implements reports.Reporter.
func (r *Reporter) Cluster() string { return r.Name }

// ForgetRefusal forgets what was told of pods that could not be made for an object which is gone.
func (r *Reporter) ForgetRefusal(uid types.UID) { r.refusals.forget(uid) }

// Looked has a workload tell anew what the cluster lacks beside it, after this was looked at for an object. Rewritten says that it has something else of
// that than before.
func (r *Reporter) Looked(key identity.Key, rewritten bool) {
	if rewritten {
		r.beside.written(key)
	}
	for _, workload := range r.beside.looked(key) {
		r.Changed(workload, true) // a stage may wait for it
	}
}

// Report tells what the cluster has of an object. Report.Live is nil if it holds no projection of it that counts. Known is false until the
// syncer has seen everything that the cluster holds and has looked at this object once.
func (r *Reporter) Report(key identity.Key, above projection.Object) (report summary.Report, known bool) {
	kind, summarised := summary.ForResource(key.Resource)
	if !summarised || !r.Synced() || r.Expects(key) {
		return report, false
	}
	projected, _ := projection.ForResource(key.Resource)
	live, st := r.Below.Get(key), r.States.Of(key)
	if live == nil && st.Problem == "" && !projected.Workload || !r.Concerned(projected, above) {
		return report, true
	}
	report.Problem, report.Waits = r.problem(key, above, st), st.Reason
	if !r.IsProjection(live, above) || r.Inward(projected, above, live) {
		return report, true
	}
	report.Live, report.Doubts = r.sane(kind, key, above, live)
	live = report.Live.(projection.Object)
	report.Refused = r.Refused(kind, live)
	if projected.Workload && kind.Breakdown {
		report.Unproxied = r.Unproxied(identity.Workload{Kind: projected, Object: above}, kind.Counts(live).Ready)
	}
	if len(kind.Addresses(live)) > 0 {
		report.Leaves, report.Asks = r.Leaving(projected, above)
		report.Unserved = r.Unserved(projected, above)
	}
	if kind.KeepsHistory() {
		report.Revisions = r.Below.TemplatesOf(live, projected)
	}
	if st.Hash != "" && st.UID == above.GetUID() && st.Hash == projection.HashOf(live) && kind.Observed(live) {
		if report.Begun = st.Generation; !st.Held {
			report.Generation = st.Generation
		}
		r.tellRevision(projected, key, above, live, &report)
		report.Routes = projection.RouteMark(live)
	}
	return report, true
}

// sane returns what the cluster reports of an object without what cannot be, and what that was.
func (r *Reporter) sane(kind summary.Kind, key identity.Key, above, live projection.Object) (summary.Object, []string) {
	bounds := summary.Bounds{Now: metav1.Now()}
	if projected, _ := projection.ForResource(key.Resource); projected.Workload {
		bounds.Replicas = r.Options.Cluster.Most(key.Resource, above)
	}
	sane, doubts := kind.Sane(above, live, bounds)
	if kind.Breakdown {
		r.States.SettleReplicas(key, kind.Counts(live).Replicas)
	}
	return sane, doubts
}

// Concerns reports whether this cluster has an object, is to have it or is leaving it, by the record of the logical cluster.
func (r *Reporter) Concerns(key identity.Key, above projection.Object) bool {
	kind, _ := projection.ForResource(key.Resource)
	return r.Concerned(kind, above)
}

// Most is the largest number of replicas of an object that what this cluster was told explains.
func (r *Reporter) Most(resource schema.GroupVersionResource, above projection.Object) int32 {
	return r.Options.Cluster.Most(resource, above)
}

// Settled reports whether what the cluster reports of an object is what it will report until somebody changes something, or there is a
// problem that keeps it from getting there. Of what is being deleted that is nothing: nobody waits for less.
func (r *Reporter) Settled(key identity.Key) bool {
	live := r.Below.Get(key)
	if r.Goes(key) {
		return live == nil
	}
	switch st := r.States.Of(key); {
	case st.Problem != "":
		return true
	case st.Held: // the next step of a move will change it
		return false
	}
	return live != nil && Settled(key, live)
}

// problem is the first reason why the cluster cannot run a workload: its own, or that of something it needs.
func (r *Reporter) problem(key identity.Key, above projection.Object, own states.State) string {
	kind, _ := projection.ForResource(key.Resource)
	if own.Problem != "" || !kind.Workload {
		return own.Problem
	}
	if !r.States.Problems() { // as almost always, and this is asked of every cluster
		return ""
	}
	if _, placed := identity.DecisionOf(above)[r.Name]; !placed {
		return ""
	}
	for _, key := range r.Dependents(identity.Workload{Kind: kind, Object: above}) {
		if problem := r.States.Of(key).Problem; problem != "" {
			return problem
		}
	}
	return ""
}

// ReplicaSets returns the ReplicaSets that the cluster has for a Deployment, by the name of the one above that shows them.
func (r *Reporter) ReplicaSets(above *appsv1.Deployment) map[string][]*appsv1.ReplicaSet {
	kind, _ := projection.ForResource(identity.Deployments)
	projected := r.ProjectionOf(kind, above)
	if projected == nil {
		return nil
	}
	out := map[string][]*appsv1.ReplicaSet{}
	for _, rs := range r.Below.ReplicaSetsOf(above.Namespace, above.Name) {
		if !metav1.IsControlledBy(rs, projected) {
			continue
		}
		if name := r.Owners.ShownAs(rs, above.Name); name != "" {
			out[name] = append(out[name], rs)
		}
	}
	return out
}

// Expects reports whether an object that was there at the start is still to be looked at.
func (r *Reporter) Expects(key identity.Key) bool { return r.States.Expects(key) }

// AwaitShown counts the pods of a workload that the cluster says more of than is shown above. If there are any, Changed is called when they are.
func (r *Reporter) AwaitShown(key identity.Key) int { return r.Pods.AwaitShown(key) }

func Settled(key identity.Key, live projection.Object) bool {
	kind, ok := summary.ForResource(key.Resource)
	return !ok || kind.Settled(live)
}

// Summarised reports whether objects of the kind have a status that is made of those of all clusters.
func Summarised(kind projection.Kind) bool {
	_, ok := summary.ForResource(kind.Resource)
	return ok
}

// Adopter returns the reference to the workload above whose controller has taken over the projection of another one in the cluster, or
// nil. The projection may carry the marks of what took it over by now: the controller of a Deployment copies them. One that is being
// deleted takes nothing over.
func (r *Reporter) Adopter(key identity.Key, above projection.Object) *metav1.OwnerReference {
	var by *identity.Workload
	if live := r.Below.Get(key); live != nil {
		by = r.Owners.Adopter(live)
		marked := live.GetAnnotations()[v1alpha1.AnnotationUID]
		if by != nil && marked != string(above.GetUID()) && marked != string(by.GetUID()) {
			return nil
		}
	} else {
		by = r.Owners.Maker(key)
	}
	if by == nil || by.GetDeletionTimestamp() != nil {
		return nil
	}
	return metav1.NewControllerRef(by.Object, by.Kind.GVK)
}

// TemplatesInUse returns the hashes of the upstream templates that the pods of an object carry out in the cluster.
func (r *Reporter) TemplatesInUse(key identity.Key) map[string]bool {
	kind, _ := projection.ForResource(key.Resource)
	live := r.Below.Get(key)
	if live == nil {
		return nil
	}
	out := map[string]bool{}
	for _, pod := range r.Below.PodsOf(kind.GVK.Kind, key.Namespace, key.Name) {
		if revision := r.Below.RevisionOf(pod, live, kind); revision != nil {
			out[revision.Annotations[v1alpha1.AnnotationTemplate]] = true
		}
	}
	return out
}
