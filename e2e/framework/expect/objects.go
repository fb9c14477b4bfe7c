package expect

import corev1 "k8s.io/api/core/v1"

// Bound reports whether a claim has its volume.
func Bound(c *corev1.PersistentVolumeClaim) bool { return c.Status.Phase == corev1.ClaimBound }

// Used claims that a quota has counted so much of a resource.
func Used(of corev1.ResourceName, amount string) func(*corev1.ResourceQuota) bool {
	return func(q *corev1.ResourceQuota) bool {
		have, ok := q.Status.Used[of]
		return ok && have.String() == amount
	}
}

// Nothing claims that there is no object.
func Nothing[T any](objects []T) bool { return len(objects) == 0 }
