package projection

import (
	"bytes"
	"maps"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
)

// secret projects a Secret's type and content. Tokens of ServiceAccounts are signed by the logical cluster and worth nothing in
// another, so they stay.
var secret = row[corev1.Secret, *corev1.Secret]{
	resource:   corev1.SchemeGroupVersion.WithResource("secrets"),
	kind:       "Secret",
	namespaced: true,
	right:      "secrets that workloads need",
	delivered:  Selected,
	fill: func(in, out *corev1.Secret, _ Part) {
		out.Type = in.Type
		out.Data = cloneBytes(in.Data)
		if in.Immutable != nil {
			out.Immutable = ptr.To(*in.Immutable)
		}
	},
	refuse: func(in *corev1.Secret) string {
		if in.Type == corev1.SecretTypeServiceAccountToken {
			return "a token of a ServiceAccount is only good for the cluster that signed it"
		}
		return ""
	},
	carry: carrySecret,
	replace: func(desired, live *corev1.Secret) string {
		switch {
		case desired.Type != "" && desired.Type != live.Type:
			return "type"
		case !ptr.Deref(live.Immutable, false):
			return ""
		case !ptr.Deref(desired.Immutable, false):
			return "immutable"
		case !maps.EqualFunc(desired.Data, live.Data, bytes.Equal):
			return "data"
		}
		return ""
	},
}

// carrySecret has what a manifest writes as text among the data, as an API server does, and the type of the object, which never changes, where the
// manifest names none.
func carrySecret(in, out *corev1.Secret) {
	if out.Type == "" {
		out.Type = in.Type
	}
	if len(out.StringData) == 0 {
		return
	}
	data := make(map[string][]byte, len(out.Data)+len(out.StringData))
	maps.Copy(data, out.Data)
	for key, value := range out.StringData {
		data[key] = []byte(value)
	}
	out.Data, out.StringData = data, nil
}

func cloneBytes(in map[string][]byte) map[string][]byte {
	if in == nil {
		return nil
	}
	out := make(map[string][]byte, len(in))
	for key, value := range in {
		out[key] = bytes.Clone(value)
	}
	return out
}
