package projection

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
)

// defaultServiceAccount is the ServiceAccount of pods that name none. Every cluster makes it in every namespace.
const defaultServiceAccount = "default"

// serviceAccount leaves out the list of token Secrets, which every cluster keeps for itself.
var serviceAccount = row[corev1.ServiceAccount, *corev1.ServiceAccount]{
	resource:   corev1.SchemeGroupVersion.WithResource("serviceaccounts"),
	kind:       "ServiceAccount",
	namespaced: true,
	right:      rightBeside,
	delivered:  Selectable,
	fill: func(in, out *corev1.ServiceAccount, _ Part) {
		out.ImagePullSecrets = slices.Clone(in.ImagePullSecrets)
		if in.AutomountServiceAccountToken != nil {
			out.AutomountServiceAccountToken = ptr.To(*in.AutomountServiceAccountToken)
		}
	},
	references: func(in *corev1.ServiceAccount, r *references) { r.pullSecrets(in.ImagePullSecrets) },
	refuse: func(in *corev1.ServiceAccount) string {
		if in.Name == defaultServiceAccount && len(in.ImagePullSecrets) == 0 {
			return `every cluster has its own ServiceAccount "default", and this one names no imagePullSecrets`
		}
		return ""
	},
}

// OfEveryCluster reports whether a reference is to something that every cluster makes for itself, in every namespace.
func OfEveryCluster(ref Reference) bool {
	return ref.Resource == serviceAccount.resource && ref.Name == defaultServiceAccount ||
		ref.Resource == configMap.resource && ref.Name == rootCAConfigMap
}

// adoptable reports whether an unmarked object below may be taken over: only the ServiceAccount "default" that a cluster made in a
// namespace that is ours. In a shared namespace it belongs to the cluster's other users too.
func adoptable(desired Object) bool {
	_, ok := desired.(*corev1.ServiceAccount)
	return ok && desired.GetName() == defaultServiceAccount && !NamespaceShared(desired.GetNamespace())
}
