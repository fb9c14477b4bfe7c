package projection

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
)

// namespace projects labels and annotations only: the finalizer in the spec belongs to each API server.
var namespace = row[corev1.Namespace, *corev1.Namespace]{
	resource: corev1.SchemeGroupVersion.WithResource("namespaces"),
	kind:     "Namespace",
	right:    "namespaces of the same name as upstream",
	ends:     true,
	fill: func(_, out *corev1.Namespace, part Part) {
		if part.PodWebhooks != "" {
			metav1.SetMetaDataLabel(&out.ObjectMeta, v1alpha1.LabelPodWebhooks, part.PodWebhooks)
		}
	},
	refuse: func(in *corev1.Namespace) string {
		if reason, refused := NamespaceRefusal(in.Name); refused {
			return reason
		}
		if NamespaceShared(in.Name) {
			return fmt.Sprintf("namespace %q exists in every cluster and is used as it is", in.Name)
		}
		return ""
	},
}

// NamespaceRefusal reports whether nothing may be projected into the namespace of that name, and why.
func NamespaceRefusal(name string) (reason string, refused bool) {
	switch {
	case name == v1alpha1.SystemNamespace:
		return fmt.Sprintf("namespace %q belongs to Manifold, use another namespace", name), true
	case slices.Contains(v1alpha1.ProtectedNamespaces(), name):
		return fmt.Sprintf("namespace %q belongs to Kubernetes in every cluster, use another namespace", name), true
	}
	return "", false
}

// NamespaceShared reports whether the namespace of that name exists in every cluster and is used there although nobody made it for
// the logical cluster. It is never created, changed, owned or deleted below. Each object in it still needs its own marks.
func NamespaceShared(name string) bool { return name == metav1.NamespaceDefault }
