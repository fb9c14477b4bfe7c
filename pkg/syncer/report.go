package syncer

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/projection"
	"github.com/manifold-dev/manifold/pkg/summary"
)

// Deployment reports what the cluster has of a Deployment, and whether it holds a projection of it. Known is false until the syncer has
// seen everything that the cluster holds.
func (s *Syncer) Deployment(above *appsv1.Deployment) (report summary.Report, holds, known bool) {
	key := Key{Resource: deploymentResource, Namespace: above.Namespace, Name: above.Name}
	if !s.HasSynced() {
		return report, false, false
	}
	st := s.stateOf(key)
	report.Problem = s.problem(above, st)
	live, ok := s.below.get(key).(*appsv1.Deployment)
	if !ok {
		return report, false, true
	}
	report.Deployment = &live.Status
	if st.hash != "" && st.uid == above.UID && st.hash == hashOf(live) && live.Status.ObservedGeneration >= live.Generation {
		report.Generation = st.generation
	}
	return report, true, true
}

// Settled tells whether what the cluster reports of an object is what it will report until somebody changes something, or there is a
// problem that keeps it from getting there.
func (s *Syncer) Settled(key Key) bool {
	if s.stateOf(key).problem != "" {
		return true
	}
	live := s.below.get(key)
	return live != nil && settled(live)
}

// problem is the first reason why the cluster cannot run a workload: its own, or that of something it needs.
func (s *Syncer) problem(above *appsv1.Deployment, own state) string {
	if own.problem != "" {
		return own.problem
	}
	if _, placed := DecisionOf(above)[s.cluster]; !placed {
		return ""
	}
	s.mu.Lock()
	none := s.problems == 0
	s.mu.Unlock()
	if none {
		return ""
	}
	for _, key := range s.Upstream.dependents(above) {
		if problem := s.stateOf(key).problem; problem != "" {
			return problem
		}
	}
	return ""
}

// ReplicaSets returns the ReplicaSets that the cluster has for a Deployment, by the hash of the upstream template that they carry out.
func (s *Syncer) ReplicaSets(above *appsv1.Deployment) map[string][]*appsv1.ReplicaSet {
	out := map[string][]*appsv1.ReplicaSet{}
	for _, rs := range s.below.replicaSetsOf(above.Namespace, above.Name) {
		projected := s.below.deploymentOf(rs)
		if projected == nil || projected.Annotations[v1alpha1.AnnotationUID] != string(above.UID) {
			continue
		}
		if hash := rs.Annotations[v1alpha1.AnnotationTemplate]; hash != "" {
			out[hash] = append(out[hash], rs)
		}
	}
	return out
}

// Service reports what the cluster has of a Service.
func (s *Syncer) Service(above *corev1.Service) (report summary.Report, known bool) {
	key := Key{Resource: serviceResource, Namespace: above.Namespace, Name: above.Name}
	if !s.HasSynced() {
		return report, false
	}
	report.Problem = s.stateOf(key).problem
	if live, ok := s.below.get(key).(*corev1.Service); ok {
		report.Service = &live.Status
	}
	return report, true
}

// Owned is the number of objects of ours that the cluster holds.
func (s *Syncer) Owned() int {
	owned := 0
	for _, store := range s.below.stores {
		owned += len(store.ListKeys())
	}
	return owned
}

// Resync looks again at everything that the cluster holds of ours.
func (s *Syncer) Resync() {
	for _, kind := range projection.Kinds() {
		for _, obj := range s.below.stores[kind.Resource].List() {
			s.enqueue(keyOf(kind, obj.(projection.Object)))
		}
	}
}

// HasSynced tells whether the syncer has seen all that its cluster holds.
func (s *Syncer) HasSynced() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.synced
}

// Cluster is the name of the cluster.
func (s *Syncer) Cluster() string { return s.cluster }
