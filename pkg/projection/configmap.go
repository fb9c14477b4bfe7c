package projection

import (
	"bytes"
	"maps"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
)

// rootCAConfigMap holds the certificate of a cluster's own API server. Every cluster makes it in every namespace.
const rootCAConfigMap = "kube-root-ca.crt"

// configMap projects the content.
var configMap = row[corev1.ConfigMap, *corev1.ConfigMap]{
	resource:   corev1.SchemeGroupVersion.WithResource("configmaps"),
	kind:       "ConfigMap",
	namespaced: true,
	right:      rightBeside,
	delivered:  Selected,
	fill: func(in, out *corev1.ConfigMap, _ Part) {
		out.Data = maps.Clone(in.Data)
		out.BinaryData = cloneBytes(in.BinaryData)
		if in.Immutable != nil {
			out.Immutable = ptr.To(*in.Immutable)
		}
	},
	refuse: func(in *corev1.ConfigMap) string {
		if in.Name == rootCAConfigMap {
			return "every cluster publishes its own certificate authority under this name"
		}
		return ""
	},
	replace: func(desired, live *corev1.ConfigMap) string {
		switch {
		case !ptr.Deref(live.Immutable, false):
			return ""
		case !ptr.Deref(desired.Immutable, false):
			return "immutable"
		case !maps.Equal(desired.Data, live.Data):
			return "data"
		case !maps.EqualFunc(desired.BinaryData, live.BinaryData, bytes.Equal):
			return "binaryData"
		}
		return ""
	},
}
