package syncer

import (
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/manifold-dev/manifold/pkg/identity"
	"github.com/manifold-dev/manifold/pkg/projection"
	"github.com/manifold-dev/manifold/pkg/summary"
)

// Report tells what the cluster has of an object. Report.Live is nil if it holds no projection of it that counts. Known is false until the
// syncer has seen everything that the cluster holds and has looked at this object once.
func (s *Syncer) Report(key identity.Key, above projection.Object) (report summary.Report, known bool) {
	kind, summarised := summary.ForResource(key.Resource)
	if !summarised || !s.HasSynced() || s.Expects(key) {
		return report, false
	}
	projected, _ := projection.ForResource(key.Resource)
	live, st := s.below.Get(key), s.stateOf(key)
	if live == nil && st.problem == "" && !projected.Workload || !s.concerned(projected, above) {
		return report, true
	}
	report.Problem, report.Waits = s.problem(key, above, st), st.reason
	if !s.isProjection(live, above) {
		return report, true
	}
	report.Live, report.Doubts = s.sane(kind, key, above, live)
	live = report.Live.(projection.Object)
	report.Refused = s.refusal(kind, live)
	if kind.KeepsHistory() {
		report.Revisions = s.below.TemplatesOf(live, projected)
	}
	if st.hash != "" && st.uid == above.GetUID() && st.hash == hashOf(live) && kind.Observed(live) {
		if report.Begun = st.generation; !st.held {
			report.Generation = st.generation
		}
	}
	return report, true
}

// sane returns what the cluster reports of an object without what cannot be, and what that was.
func (s *Syncer) sane(kind summary.Kind, key identity.Key, above, live projection.Object) (summary.Object, []string) {
	bounds := summary.Bounds{Now: metav1.Now()}
	if projected, _ := projection.ForResource(key.Resource); projected.Workload {
		bounds.Replicas = s.Most(key.Resource, above)
	}
	sane, doubts := kind.Sane(above, live, bounds)
	if kind.Breakdown {
		s.settleTold(key, kind.Counts(live).Replicas)
	}
	return sane, doubts
}

// Settled reports whether what the cluster reports of an object is what it will report until somebody changes something, or there is a
// problem that keeps it from getting there. Of what is being deleted that is nothing: nobody waits for less.
func (s *Syncer) Settled(key identity.Key) bool {
	live := s.below.Get(key)
	if s.Upstream.Goes(key) {
		return live == nil
	}
	switch st := s.stateOf(key); {
	case st.problem != "":
		return true
	case st.held: // the next step of a move will change it
		return false
	}
	return live != nil && settled(key, live)
}

// Goes reports whether an object of the logical cluster is on its way out of all clusters.
func (u *Upstream) Goes(key identity.Key) bool {
	kind, projected := projection.ForResource(key.Resource)
	above := u.Get(key)
	return projected && above != nil && !kind.Lives(above)
}

// problem is the first reason why the cluster cannot run a workload: its own, or that of something it needs.
func (s *Syncer) problem(key identity.Key, above projection.Object, own state) string {
	kind, _ := projection.ForResource(key.Resource)
	if own.problem != "" || !kind.Workload {
		return own.problem
	}
	s.mu.Lock()
	none := s.problems == 0
	s.mu.Unlock()
	if none { // as almost always, and this is asked of every cluster
		return ""
	}
	if _, placed := identity.DecisionOf(above)[s.cluster]; !placed {
		return ""
	}
	for _, key := range s.Upstream.dependents(identity.Workload{Kind: kind, Object: above}) {
		if problem := s.stateOf(key).problem; problem != "" {
			return problem
		}
	}
	return ""
}

// ReplicaSets returns the ReplicaSets that the cluster has for a Deployment, by the name of the one above that shows them.
func (s *Syncer) ReplicaSets(above *appsv1.Deployment) map[string][]*appsv1.ReplicaSet {
	kind, _ := projection.ForResource(deploymentResource)
	projected := s.projectionOf(kind, above)
	if projected == nil {
		return nil
	}
	out := map[string][]*appsv1.ReplicaSet{}
	for _, rs := range s.below.ReplicaSetsOf(above.Namespace, above.Name) {
		if !metav1.IsControlledBy(rs, projected) {
			continue
		}
		if name := s.owners.ShownAs(rs, above.Name); name != "" {
			out[name] = append(out[name], rs)
		}
	}
	return out
}

// Owned is the number of objects of ours that the cluster holds.
func (s *Syncer) Owned() int {
	owned := s.below.secrets.unseen() + len(s.broughtPriorities()) + len(s.below.volumes.names())
	for _, store := range s.below.Stores {
		owned += len(store.ListKeys())
	}
	return owned
}

// Resync looks again at everything that the cluster holds of ours.
func (s *Syncer) Resync() {
	for _, kind := range projection.Kinds() {
		for _, obj := range s.below.Stores[kind.Resource].List() {
			s.enqueue(identity.KeyOf(kind, obj.(projection.Object)))
		}
	}
	for _, class := range s.broughtPriorities() {
		s.enqueue(priorityKey(class.Name))
	}
	for _, name := range s.below.volumes.names() {
		s.enqueue(volumeKey(name))
	}
}

// HasSynced reports whether the syncer has seen all that its cluster holds.
func (s *Syncer) HasSynced() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.synced
}

// Cluster is the name of the cluster.
func (s *Syncer) Cluster() string { return s.cluster }

// AwaitShown counts the pods of a workload that the cluster says more of than is shown above. If there are any, Changed is called when they are.
func (s *Syncer) AwaitShown(key identity.Key) int { return s.pods.AwaitShown(key) }
