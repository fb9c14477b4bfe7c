package projection

import (
	"cmp"
	"path"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
)

// APIVolume is the name of the volume by which pods have a token for the logical cluster. Mirrors do not show it.
const APIVolume = tokenVolume + "manifold"

const (
	// apiPath is where client libraries look for the token, the authority and the namespace.
	apiPath = "/var/run/secrets/kubernetes.io/serviceaccount"
	// apiTokenSeconds is what API servers ask for in the volume that they add by themselves.
	apiTokenSeconds = 3607
	tokenFile       = "token"
	authorityFile   = "ca.crt"
	namespaceFile   = "namespace"
)

// apiVariables are by which client libraries know where the API server is.
var apiVariables = []string{"KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT", "KUBERNETES_SERVICE_PORT_HTTPS"}

// APIVariable reports whether a variable is one by which client libraries know where the API server is.
func APIVariable(name string) bool { return slices.Contains(apiVariables, name) }

// API is how pods reach the API of the logical cluster.
type API struct {
	// Host and Port are where it is served.
	Host, Port string
	// Authority is the certificate authority in PEM.
	Authority string
	// Token tells that the pods have a token without asking for it, as pods on any cluster have.
	Token bool
}

// CallsAPI reports whether pods call the logical cluster and not the one that they run in: as the annotations of their template say or, where
// these say nothing, if their ServiceAccount has been given rights. Those without a token do not: see HasToken.
func CallsAPI(annotations map[string]string, granted func() bool) bool {
	switch annotations[v1alpha1.AnnotationAPI] {
	case v1alpha1.APILogical:
		return true
	case v1alpha1.APICluster:
		return false
	}
	return granted()
}

// AccountOf returns the name of the ServiceAccount that pods run as.
func AccountOf(pods *corev1.PodSpec) string { return accountOf(pods) }

// MountsToken reports whether pods have a token without asking for it. account is their ServiceAccount, nil if there is none yet.
func MountsToken(pods *corev1.PodSpec, account *corev1.ServiceAccount) bool {
	if pods.AutomountServiceAccountToken != nil || account == nil {
		return ptr.Deref(pods.AutomountServiceAccountToken, true)
	}
	return ptr.Deref(account.AutomountServiceAccountToken, true)
}

// HasToken reports whether pods have a token of their ServiceAccount for an API server: without asking for it, or because they ask for it by a volume.
func HasToken(pods *corev1.PodSpec, account *corev1.ServiceAccount) bool {
	return MountsToken(pods, account) || slices.ContainsFunc(pods.Volumes, func(v corev1.Volume) bool {
		return v.Projected != nil && slices.ContainsFunc(v.Projected.Sources, func(source corev1.VolumeProjection) bool {
			return source.ServiceAccountToken != nil && source.ServiceAccountToken.Audience == ""
		})
	})
}

// Grantee is a ServiceAccount that a binding gives rights, or all of a namespace if it has no Name.
type Grantee struct {
	Namespace, Name string
}

const (
	accountUser   = "system:serviceaccount:"
	accountsGroup = "system:serviceaccounts:"
)

// Grantees returns the ServiceAccounts that a binding with these subjects gives rights. The group of the ServiceAccounts of all namespaces is none:
// bindings that every API server has name it.
//
// Of a RoleBinding, which is in a namespace, only those of its own count. Whoever may bind in one namespace could have the pods of all others
// replaced otherwise, by rights that nobody there has asked for.
func Grantees(namespace string, subjects []rbacv1.Subject) []Grantee {
	var out []Grantee
	for _, s := range subjects {
		var to Grantee
		switch s.Kind {
		case rbacv1.ServiceAccountKind:
			to = Grantee{cmp.Or(s.Namespace, namespace), s.Name} // a RoleBinding may leave its own out
		case rbacv1.UserKind:
			rest, ok := strings.CutPrefix(s.Name, accountUser)
			if to.Namespace, to.Name, _ = strings.Cut(rest, ":"); !ok || to.Name == "" {
				continue
			}
		case rbacv1.GroupKind:
			rest, ok := strings.CutPrefix(s.Name, accountsGroup)
			if to.Namespace = rest; !ok {
				continue
			}
		default:
			continue
		}
		if to.Namespace == "" || namespace != "" && to.Namespace != namespace || slices.Contains(out, to) {
			continue
		}
		out = append(out, to)
	}
	return out
}

// Grants reports whether a binding, which is in the namespace that is given or in none, gives a ServiceAccount rights, itself or with all of its
// namespace.
func Grants(namespace string, subjects []rbacv1.Subject, account Grantee) bool {
	return slices.ContainsFunc(Grantees(namespace, subjects), func(to Grantee) bool { return to == account || to == Grantee{Namespace: account.Namespace} })
}

// audiences begins the audience of every token that is made for a logical cluster.
const audiences = "https://" + v1alpha1.GroupName + "/"

// Audience is that of the tokens which pods in a cluster have for the logical cluster. It is of no use for the API server of the cluster itself,
// nor for another logical cluster or by way of another cluster.
func (t Target) Audience() string { return audiences + t.LogicalCluster + "/" + t.Cluster }

// TargetOf returns what an audience names; false if it is none of a logical cluster.
func TargetOf(audience string) (Target, bool) {
	rest, ok := strings.CutPrefix(audience, audiences)
	if !ok {
		return Target{}, false
	}
	logical, cluster, _ := strings.Cut(rest, "/")
	return Target{LogicalCluster: logical, Cluster: cluster}, true
}

// GivenAPI returns how an object in a cluster was given the API of the logical cluster, as far as that is its template's to keep: whether it was, and
// whether its pods have a token without asking for it.
func (k Kind) GivenAPI(live Object) (given, token bool) {
	if k.demand == nil || isNil(live) {
		return false, false
	}
	meta, pods := podMeta(k, live)
	_, given = meta.GetAnnotations()[v1alpha1.AnnotationAPIAuthority]
	return given, given && slices.ContainsFunc(pods.Volumes, func(v corev1.Volume) bool { return v.Name == APIVolume })
}

// KeepsTemplate reports whether an object in a cluster carries out the template of the one above, as far as it tells.
func (k Kind) KeepsTemplate(above, live Object) bool {
	template, hash := k.Demand(above).Template, live.GetAnnotations()[v1alpha1.AnnotationTemplate]
	return template != nil && (hash == "" || hash == TemplateHash(template))
}

// podMeta is podsOf with the metadata of the pod itself for a pod.
func podMeta(k Kind, of Object) (metav1.Object, *corev1.PodSpec) {
	meta, pods := podsOf(k, of)
	if meta == nil {
		return of, pods
	}
	return meta, pods
}

// give has pods call the logical cluster. It may be nil, which gives nothing.
func (a *API) give(pods *corev1.PodSpec, to Target) {
	if a == nil {
		return
	}
	for i := range pods.Volumes {
		if projected := pods.Volumes[i].Projected; projected != nil {
			redirect(projected, to)
		}
	}
	containers := slices.Concat(pointers(pods.InitContainers), pointers(pods.Containers))
	for _, c := range containers {
		c.Env = a.variables(c.Env)
	}
	pods.AutomountServiceAccountToken = ptr.To(false)
	if !a.Token {
		return
	}
	if !slices.ContainsFunc(pods.Volumes, func(v corev1.Volume) bool { return v.Name == APIVolume }) {
		pods.Volumes = append(pods.Volumes, apiVolume(to))
	}
	for _, c := range containers {
		if !slices.ContainsFunc(c.VolumeMounts, func(m corev1.VolumeMount) bool { return path.Clean(m.MountPath) == apiPath }) {
			c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: APIVolume, ReadOnly: true, MountPath: apiPath})
		}
	}
}

// tell gives the pods the authority, where their files take it from.
func (a *API) tell(of metav1.Object) {
	if a == nil {
		return
	}
	annotations := of.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[v1alpha1.AnnotationAPIAuthority] = a.Authority
	of.SetAnnotations(annotations)
}

// variables puts those that env lacks in front of it: others may refer to them.
func (a *API) variables(env []corev1.EnvVar) []corev1.EnvVar {
	var out []corev1.EnvVar
	for _, name := range apiVariables {
		value := a.Port
		if name == apiVariables[0] {
			value = a.Host
		}
		if !slices.ContainsFunc(env, func(v corev1.EnvVar) bool { return v.Name == name }) {
			out = append(out, corev1.EnvVar{Name: name, Value: value})
		}
	}
	return append(out, env...)
}

func apiVolume(to Target) corev1.Volume {
	return corev1.Volume{Name: APIVolume, VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{
		Sources: []corev1.VolumeProjection{
			{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{
				Audience: to.Audience(), ExpirationSeconds: ptr.To[int64](apiTokenSeconds), Path: tokenFile,
			}},
			{DownwardAPI: &corev1.DownwardAPIProjection{Items: []corev1.DownwardAPIVolumeFile{authorityAt(authorityFile)}}},
			{DownwardAPI: &corev1.DownwardAPIProjection{Items: []corev1.DownwardAPIVolumeFile{
				{Path: namespaceFile, FieldRef: &corev1.ObjectFieldSelector{APIVersion: "v1", FieldPath: "metadata.namespace"}},
			}}},
		},
		DefaultMode: ptr.To(corev1.ProjectedVolumeSourceDefaultMode),
	}}}
}

// authorityAt is the file that has the authority of the logical cluster.
func authorityAt(file string) corev1.DownwardAPIVolumeFile {
	return corev1.DownwardAPIVolumeFile{Path: file, FieldRef: &corev1.ObjectFieldSelector{
		APIVersion: "v1", FieldPath: "metadata.annotations['" + v1alpha1.AnnotationAPIAuthority + "']",
	}}
}

// redirect makes of a volume of the user's own, with a token for the API server and its authority, one for the logical cluster.
func redirect(volume *corev1.ProjectedVolumeSource, to Target) {
	for i := range volume.Sources {
		source := &volume.Sources[i]
		if token := source.ServiceAccountToken; token != nil && token.Audience == "" {
			token.Audience = to.Audience()
		}
		if source.ConfigMap != nil && source.ConfigMap.Name == rootCAConfigMap {
			source.DownwardAPI, source.ConfigMap = &corev1.DownwardAPIProjection{Items: authorityFor(source.ConfigMap.Items)}, nil
		}
	}
}

// authorityFor are the files that have the authority as these items of a ConfigMap would; no items stand for all that it has.
func authorityFor(items []corev1.KeyToPath) []corev1.DownwardAPIVolumeFile {
	if len(items) == 0 {
		return []corev1.DownwardAPIVolumeFile{authorityAt(authorityFile)}
	}
	var out []corev1.DownwardAPIVolumeFile
	for _, item := range items {
		if item.Key == authorityFile {
			file := authorityAt(item.Path)
			file.Mode = item.Mode
			out = append(out, file)
		}
	}
	return out
}

// callsLogical reports whether a token is for a logical cluster, so that it is worth nothing to the API server of the cluster.
func callsLogical(token *corev1.ServiceAccountTokenProjection) bool {
	_, ok := TargetOf(token.Audience)
	return ok
}

// keepAPI gives a pod, which cannot be changed, the way to the API that it was made with.
func keepAPI(desired, live *corev1.Pod) {
	if authority, given := live.Annotations[v1alpha1.AnnotationAPIAuthority]; given {
		metav1.SetMetaDataAnnotation(&desired.ObjectMeta, v1alpha1.AnnotationAPIAuthority, authority)
	}
	was := slices.Concat(pointers(live.Spec.InitContainers), pointers(live.Spec.Containers))
	for _, c := range slices.Concat(pointers(desired.Spec.InitContainers), pointers(desired.Spec.Containers)) {
		i := slices.IndexFunc(was, func(w *corev1.Container) bool { return w.Name == c.Name })
		if i < 0 {
			continue
		}
		for j := range c.Env {
			k := slices.IndexFunc(was[i].Env, func(v corev1.EnvVar) bool { return v.Name == c.Env[j].Name })
			if k >= 0 && APIVariable(c.Env[j].Name) {
				was[i].Env[k].DeepCopyInto(&c.Env[j])
			}
		}
	}
}
