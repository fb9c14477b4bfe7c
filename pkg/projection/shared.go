package projection

import (
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
)

// In a namespace that clusters share, what an object names may be somebody else's. What can exist above is looked at before the object comes:
// what is not ours in the cluster holds it back. What cannot, since no object of that kind is ever projected, is refused here, and what pods
// need not have is left out unless it exists above, so that they do not come to use one that somebody makes later.

// strange returns what a finished projection into a namespace that clusters share names of which nobody can tell whose it is, "" for nothing.
func strange(out Object) string {
	switch out := out.(type) {
	case *corev1.PersistentVolumeClaim:
		if source := strangeSource(&out.Spec); source != "" {
			return source + " that it is made of"
		}
	case *appsv1.StatefulSet:
		for i := range out.Spec.VolumeClaimTemplates {
			template := &out.Spec.VolumeClaimTemplates[i]
			if source := strangeSource(&template.Spec); source != "" {
				return fmt.Sprintf("%s that claims by template %q are made of", source, template.Name)
			}
		}
	case *networkingv1.Ingress:
		for _, b := range ingressBackends(out) {
			if b.Resource != nil {
				return fmt.Sprintf("%s %q that it leads to", b.Resource.Kind, b.Resource.Name)
			}
		}
	}
	return ""
}

// strangePods does the same for pods.
func strangePods(pods *corev1.PodSpec) string {
	switch {
	case len(pods.ResourceClaims) > 0:
		return fmt.Sprintf("what resource claim %q of its pods names", pods.ResourceClaims[0].Name)
	case pods.SchedulingGroup != nil:
		return "the group that its pods are scheduled with"
	}
	for i := range pods.Volumes {
		volume := &pods.Volumes[i]
		if csi := volume.CSI; csi != nil && len(csi.VolumeAttributes) > 0 {
			return fmt.Sprintf("what volume %q names in csi.volumeAttributes, such as a SecretProviderClass,", volume.Name)
		}
		if flex := volume.FlexVolume; flex != nil && len(flex.Options) > 0 {
			return fmt.Sprintf("what volume %q names in flexVolume.options", volume.Name)
		}
		if claim := ephemeralClaim(volume); claim != nil {
			if source := strangeSource(claim); source != "" {
				return fmt.Sprintf("%s that volume %q is made of", source, volume.Name)
			}
		}
	}
	return ""
}

// strangeRefusal words what strange returns.
func strangeRefusal(namespace, what string) string {
	return fmt.Sprintf("in namespace %q, which clusters share with others, %s may be somebody else's: leave it out, or use another namespace", namespace, what)
}

// ephemeralClaim is what a volume asks for that lives and ends with its pod, nil for other volumes.
func ephemeralClaim(in *corev1.Volume) *corev1.PersistentVolumeClaimSpec {
	if in.Ephemeral == nil || in.Ephemeral.VolumeClaimTemplate == nil {
		return nil
	}
	return &in.Ephemeral.VolumeClaimTemplate.Spec
}

// strangeSource is what a claim has its content of, "" for nothing and for claims of the same namespace.
func strangeSource(in *corev1.PersistentVolumeClaimSpec) string {
	for _, source := range sourcesOf(in) {
		if !isClaim(source) {
			return fmt.Sprintf("%s %q", source.Kind, source.Name)
		}
	}
	return ""
}

func sourcesOf(in *corev1.PersistentVolumeClaimSpec) (out []corev1.TypedObjectReference) {
	if ref := in.DataSourceRef; ref != nil {
		out = append(out, *ref)
	}
	if ref := in.DataSource; ref != nil {
		out = append(out, corev1.TypedObjectReference{APIGroup: ref.APIGroup, Kind: ref.Kind, Name: ref.Name})
	}
	return out
}

func isClaim(source corev1.TypedObjectReference) bool {
	return ptr.Deref(source.APIGroup, "") == persistentVolumeClaim.resource.Group && source.Kind == persistentVolumeClaim.kind && ptr.Deref(source.Namespace, "") == ""
}

// Copied returns the claims of its namespace that an object has a cluster copy the content of. They are not brought for it: a copy of a claim that
// came a moment ago would be empty.
func (k Kind) Copied(in Object) []Reference {
	refs := references{namespace: in.GetNamespace()}
	of := func(spec *corev1.PersistentVolumeClaimSpec) {
		for _, source := range sourcesOf(spec) {
			if isClaim(source) {
				refs.add(persistentVolumeClaim.resource, source.Name, false)
			}
		}
	}
	if claim, ok := in.(*corev1.PersistentVolumeClaim); ok {
		of(&claim.Spec)
	}
	templates := claimsMadeBy(in)
	for i := range templates {
		of(&templates[i].Spec)
	}
	if k.demand != nil {
		for pods := range k.demand(in).Pods() {
			for i := range pods.Template.Spec.Volumes {
				if claim := ephemeralClaim(&pods.Template.Spec.Volumes[i]); claim != nil {
					of(claim)
				}
			}
		}
	}
	return refs.sorted()
}

// LeftOut returns what the projection of an object into a namespace that clusters share leaves out: Secrets and ConfigMaps that pods need not have,
// and that do not exist above. A pod, which cannot be changed, keeps what it was made with. Live is what the cluster holds, nil for nothing.
func (k Kind) LeftOut(desired, live Object, exists func(Reference) bool) []Reference {
	if !NamespaceShared(desired.GetNamespace()) || !leaves(k) {
		return nil
	}
	if made, ok := live.(*corev1.Pod); ok && made != nil {
		has := k.References(made)
		exists = func(ref Reference) bool {
			return slices.ContainsFunc(has, func(other Reference) bool { return other.Resource == ref.Resource && other.Name == ref.Name })
		}
	}
	return slices.DeleteFunc(k.References(desired), func(ref Reference) bool {
		return !ref.Optional || !leavable(ref.Resource) || OfEveryCluster(ref) || exists(ref)
	})
}

// leaves reports whether objects of a kind name what can be left out of their projections. A template in a custom resource is its operator's to
// read, and stays as it is.
func leaves(k Kind) bool {
	return k.Workload && !k.Custom || k.Resource == serviceAccount.resource
}

func leavable(resource schema.GroupVersionResource) bool {
	return resource == secret.resource || resource == configMap.resource
}

// leftOut is what a projection leaves out. Of what any use needs there is nothing in it, so that each use of the name goes.
type leftOut []Reference

// from takes it out of a projection.
func (l leftOut) from(k Kind, out Object) {
	if len(l) == 0 || !leaves(k) {
		return
	}
	if account, ok := out.(*corev1.ServiceAccount); ok {
		account.ImagePullSecrets = l.pullSecrets(account.ImagePullSecrets)
		return
	}
	_, pods := podsOf(k, out)
	pods.ImagePullSecrets = l.pullSecrets(pods.ImagePullSecrets)
	for _, c := range slices.Concat(pointers(pods.InitContainers), pointers(pods.Containers)) {
		l.container(c)
	}
	for i := range pods.Volumes {
		l.volume(&pods.Volumes[i].VolumeSource)
	}
}

func (l leftOut) secret(name string) bool    { return l.has(secret.resource, name) }
func (l leftOut) configMap(name string) bool { return l.has(configMap.resource, name) }

func (l leftOut) has(resource schema.GroupVersionResource, name string) bool {
	return slices.ContainsFunc(l, func(ref Reference) bool { return ref.Resource == resource && ref.Name == name })
}

func (l leftOut) pullSecrets(in []corev1.LocalObjectReference) []corev1.LocalObjectReference {
	return slices.DeleteFunc(in, func(ref corev1.LocalObjectReference) bool { return l.secret(ref.Name) })
}

func (l leftOut) container(c *corev1.Container) {
	c.EnvFrom = slices.DeleteFunc(c.EnvFrom, func(from corev1.EnvFromSource) bool {
		return from.SecretRef != nil && l.secret(from.SecretRef.Name) || from.ConfigMapRef != nil && l.configMap(from.ConfigMapRef.Name)
	})
	c.Env = slices.DeleteFunc(c.Env, func(env corev1.EnvVar) bool {
		from := env.ValueFrom
		return from != nil && (from.SecretKeyRef != nil && l.secret(from.SecretKeyRef.Name) ||
			from.ConfigMapKeyRef != nil && l.configMap(from.ConfigMapKeyRef.Name))
	})
}

// volume leaves a volume of what is left out empty, as a kubelet does that does not find it: containers mount it by its name.
func (l leftOut) volume(in *corev1.VolumeSource) {
	switch {
	case in.Secret != nil && l.secret(in.Secret.SecretName):
		*in = emptyVolume(in.Secret.DefaultMode)
	case in.ConfigMap != nil && l.configMap(in.ConfigMap.Name):
		*in = emptyVolume(in.ConfigMap.DefaultMode)
	case in.Projected != nil:
		for i, source := range in.Projected.Sources {
			if source.Secret != nil && l.secret(source.Secret.Name) || source.ConfigMap != nil && l.configMap(source.ConfigMap.Name) {
				in.Projected.Sources[i] = noFiles()
			}
		}
	}
}

func emptyVolume(mode *int32) corev1.VolumeSource {
	return corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{noFiles()}, DefaultMode: mode}}
}

// noFiles brings no files. Every API server takes it, and it is what it was after being stored, as a list without sources is not.
func noFiles() corev1.VolumeProjection {
	return corev1.VolumeProjection{DownwardAPI: &corev1.DownwardAPIProjection{}}
}
