package expect

import (
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/manifold-dev/manifold/e2e/framework"
)

// Available claims that the whole Deployment is rolled out with that many replicas, as "kubectl rollout status" understands it.
func Available(replicas int32) func(*appsv1.Deployment) bool {
	return func(d *appsv1.Deployment) bool {
		s := d.Status
		return s.ObservedGeneration >= d.Generation && s.Replicas == replicas && s.UpdatedReplicas == replicas &&
			s.ReadyReplicas == replicas && s.AvailableReplicas == replicas
	}
}

// RolledOut waits until the Deployment is rolled out with that many replicas, and returns it.
func RolledOut(s *framework.Scenario, name string, replicas int32) *appsv1.Deployment {
	s.Helper()
	return framework.Await(s.Logical, name, "is rolled out", Available(replicas))
}

// SetAvailable claims that all replicas are updated and ready, as "kubectl rollout status" understands it.
func SetAvailable(replicas int32) func(*appsv1.StatefulSet) bool {
	return func(set *appsv1.StatefulSet) bool {
		s := set.Status
		return s.ObservedGeneration >= set.Generation && s.Replicas == replicas && s.ReadyReplicas == replicas &&
			s.AvailableReplicas == replicas && s.UpdatedReplicas == replicas && s.CurrentReplicas == replicas &&
			s.CurrentRevision == s.UpdateRevision
	}
}

// SetRolledOut waits until the StatefulSet is rolled out with that many replicas, and returns it.
func SetRolledOut(s *framework.Scenario, name string, replicas int32) *appsv1.StatefulSet {
	s.Helper()
	return framework.Await(s.Logical, name, "is rolled out", SetAvailable(replicas))
}

// JobCondition returns the condition of that type, or an empty one.
func JobCondition(job *batchv1.Job, of batchv1.JobConditionType) batchv1.JobCondition {
	for _, c := range job.Status.Conditions {
		if c.Type == of {
			return c
		}
	}
	return batchv1.JobCondition{}
}

// JobIs claims that a Job has a condition.
func JobIs(of batchv1.JobConditionType) func(*batchv1.Job) bool {
	return func(job *batchv1.Job) bool { return JobCondition(job, of).Status == corev1.ConditionTrue }
}
