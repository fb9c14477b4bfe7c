package mirror

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/manifold-dev/manifold/pkg/projection"
)

const (
	defaultServiceAccount = "default"
	// tokenVolume is how the API server of a cluster begins the name of the volume by which a pod reaches it.
	tokenVolume = "kube-api-access-"
	// systemClasses is how the names of the priority classes begin that admission keeps for kube-system.
	systemClasses = "system-"
)

// Spec returns what the mirror of a pod shows of its spec: base, which is the template of a pod that is new and else the mirror as it is
// stored, with what the pod's cluster has a say in:
//
//   - the node, tolerations that are added, gates, priority (where the template names no class, by one that is not the system's), overhead
//   - resources of containers, which defaults, autoscalers and resizes change, and when images are pulled
//   - containers, volumes, variables and mounts that base does not have, without what would give them any authority, and without those by which
//     the projection has pods call the logical cluster
//   - containers for debugging
//
// In everything else base is shown, whatever the pod has. A field that a later version of Kubernetes brings is base's. The spec of a mirror
// is its own image: Spec(Spec(pod, base), base) is Spec(pod, base).
func Spec(pod, base *corev1.PodSpec) corev1.PodSpec {
	out := *base.DeepCopy()
	out.NodeName = pod.NodeName
	if out.ServiceAccountName == "" {
		out.ServiceAccountName = defaultServiceAccount
	}
	out.DeprecatedServiceAccount = out.ServiceAccountName
	out.Volumes = merged(pod.Volumes, out.Volumes, volumeName, sameVolume, addedVolume)
	volumes := namesOf(out.Volumes, volumeName)
	container := func(pod, base corev1.Container) corev1.Container { return sameContainer(pod, base, volumes) }
	added := func(c corev1.Container) (corev1.Container, bool) { return addedContainer(c, volumes), true }
	out.InitContainers = merged(pod.InitContainers, out.InitContainers, containerName, container, added)
	out.Containers = merged(pod.Containers, out.Containers, containerName, container, added)
	out.EphemeralContainers = ephemeral(pod.EphemeralContainers)
	out.Tolerations = withAll(pod.Tolerations, out.Tolerations)
	out.ReadinessGates = withAll(pod.ReadinessGates, out.ReadinessGates)
	out.SchedulingGates = slices.Clone(pod.SchedulingGates)
	out.Resources = pod.Resources.DeepCopy()
	out.Overhead = pod.Overhead.DeepCopy()
	out.Priority, out.PreemptionPolicy = clone(pod.Priority), clone(pod.PreemptionPolicy)
	if out.PriorityClassName == "" && !strings.HasPrefix(pod.PriorityClassName, systemClasses) {
		out.PriorityClassName = pod.PriorityClassName
	}
	if out.EnableServiceLinks == nil {
		out.EnableServiceLinks = clone(pod.EnableServiceLinks)
	}
	return out
}

// Bare returns the spec of a mirror without what its cluster has added to the template. A nil template is one that nobody knows any more; then
// all stays but what Spec shows without authority anyway.
func Bare(spec *corev1.PodSpec, template *corev1.PodSpec) corev1.PodSpec {
	out := *spec.DeepCopy()
	out.EphemeralContainers = nil
	if template == nil {
		return out
	}
	out.Volumes = only(out.Volumes, template.Volumes, volumeName)
	out.InitContainers = bareContainers(out.InitContainers, template.InitContainers)
	out.Containers = bareContainers(out.Containers, template.Containers)
	out.ReadinessGates = slices.Clone(template.ReadinessGates)
	return out
}

func bareContainers(in, template []corev1.Container) []corev1.Container {
	out := only(in, template, containerName)
	for i := range out {
		like := template[slices.IndexFunc(template, func(c corev1.Container) bool { return c.Name == out[i].Name })]
		out[i].Env = only(out[i].Env, like.Env, envName)
		out[i].VolumeMounts = only(out[i].VolumeMounts, like.VolumeMounts, mountPath)
	}
	return out
}

// merged goes by the order of pod: what base has too is made of both, what base does not have is added if it may be, and what pod lacks is
// base's. A second one of a name is left out.
func merged[T any](pod, base []T, name func(T) string, same func(pod, base T) T, added func(T) (T, bool)) []T {
	var out []T
	seen := map[string]bool{}
	for _, have := range pod {
		key := name(have)
		if seen[key] {
			continue
		}
		seen[key] = true
		if i := slices.IndexFunc(base, func(b T) bool { return name(b) == key }); i >= 0 {
			out = append(out, same(have, base[i]))
		} else if extra, ok := added(have); ok {
			out = append(out, extra)
		}
	}
	for _, b := range base {
		if !seen[name(b)] {
			seen[name(b)] = true
			out = append(out, same(b, b))
		}
	}
	return out
}

// withAll returns what pod has, with what base has besides.
func withAll[T any](pod, base []T) []T {
	out := slices.Clone(pod)
	for _, b := range base {
		if !slices.ContainsFunc(out, func(p T) bool { return equality.Semantic.DeepEqual(p, b) }) {
			out = append(out, b)
		}
	}
	return out
}

// only returns what of in has a name that is in template.
func only[T any](in, template []T, name func(T) string) []T {
	names := namesOf(template, name)
	return slices.DeleteFunc(slices.Clone(in), func(t T) bool { return !names[name(t)] })
}

func namesOf[T any](in []T, name func(T) string) map[string]bool {
	out := make(map[string]bool, len(in))
	for _, t := range in {
		out[name(t)] = true
	}
	return out
}

func clone[T any](in *T) *T {
	if in == nil {
		return nil
	}
	out := *in
	return &out
}

func volumeName(v corev1.Volume) string       { return v.Name }
func containerName(c corev1.Container) string { return c.Name }
func envName(e corev1.EnvVar) string          { return e.Name }
func mountPath(m corev1.VolumeMount) string   { return m.MountPath }

func sameVolume(_, base corev1.Volume) corev1.Volume { return base }

// addedVolume keeps of the volumes that a cluster adds those that lead to nothing of the namespace or the host, and the one of the token, which
// every pod has.
func addedVolume(v corev1.Volume) (corev1.Volume, bool) {
	switch {
	case v.Name == projection.APIVolume:
		return corev1.Volume{}, false
	case v.EmptyDir != nil:
		return corev1.Volume{Name: v.Name, VolumeSource: corev1.VolumeSource{EmptyDir: v.EmptyDir}}, true
	case v.DownwardAPI != nil:
		return corev1.Volume{Name: v.Name, VolumeSource: corev1.VolumeSource{DownwardAPI: v.DownwardAPI}}, true
	case v.Projected != nil && strings.HasPrefix(v.Name, tokenVolume) && projectsToken(v.Projected):
		return corev1.Volume{Name: v.Name, VolumeSource: corev1.VolumeSource{Projected: v.Projected}}, true
	}
	return corev1.Volume{}, false
}

// rootCA is the ConfigMap that every cluster has in each namespace by itself.
const rootCA = "kube-root-ca.crt"

// projectsToken reports whether a volume has nothing but what the ServiceAccount admission of a cluster puts into it.
func projectsToken(in *corev1.ProjectedVolumeSource) bool {
	return !slices.ContainsFunc(in.Sources, func(p corev1.VolumeProjection) bool {
		return p.Secret != nil || p.ClusterTrustBundle != nil || p.PodCertificate != nil || p.ConfigMap != nil && p.ConfigMap.Name != rootCA
	})
}

// sameContainer is a container of base in what the cluster has a say in.
func sameContainer(pod, base corev1.Container, volumes map[string]bool) corev1.Container {
	out := base
	claims := base.Resources.Claims
	out.Resources = *pod.Resources.DeepCopy()
	out.Resources.Claims = claims
	out.ResizePolicy = slices.Clone(pod.ResizePolicy)
	if pod.ImagePullPolicy != "" {
		out.ImagePullPolicy = pod.ImagePullPolicy
	}
	out.Env = merged(pod.Env, base.Env, envName, func(_, base corev1.EnvVar) corev1.EnvVar { return base },
		func(e corev1.EnvVar) (corev1.EnvVar, bool) {
			if projection.APIVariable(e.Name) {
				return corev1.EnvVar{}, false
			}
			return addedVariable(e)
		})
	out.VolumeMounts = merged(pod.VolumeMounts, base.VolumeMounts, mountPath,
		func(_, base corev1.VolumeMount) corev1.VolumeMount { return base },
		func(m corev1.VolumeMount) (corev1.VolumeMount, bool) { return m, volumes[m.Name] })
	return out
}

// addedVariable shows a variable without where its value comes from, unless that is the pod itself.
func addedVariable(e corev1.EnvVar) (corev1.EnvVar, bool) {
	if from := e.ValueFrom; from != nil && (from.SecretKeyRef != nil || from.ConfigMapKeyRef != nil || from.FileKeyRef != nil) {
		e.ValueFrom = nil
	}
	return e, true
}

// addedContainer shows a container that a cluster has added without privileges, ports of the host and references.
func addedContainer(in corev1.Container, volumes map[string]bool) corev1.Container {
	out := *in.DeepCopy()
	out.EnvFrom, out.VolumeDevices, out.Resources.Claims = nil, nil, nil
	for i := range out.Env {
		out.Env[i], _ = addedVariable(out.Env[i])
	}
	for i := range out.Ports {
		out.Ports[i].HostPort, out.Ports[i].HostIP = 0, ""
	}
	out.VolumeMounts = slices.DeleteFunc(out.VolumeMounts, func(m corev1.VolumeMount) bool { return !volumes[m.Name] })
	out.SecurityContext = unprivileged(out.SecurityContext)
	return out
}

// unprivileged takes off what breaks out of a container.
func unprivileged(in *corev1.SecurityContext) *corev1.SecurityContext {
	if in != nil {
		in.Privileged, in.ProcMount = nil, nil
	}
	return in
}

// ephemeral shows the containers for debugging as they are, but for references: users add them by a request of its own, which is admitted
// above.
func ephemeral(in []corev1.EphemeralContainer) []corev1.EphemeralContainer {
	if len(in) == 0 {
		return nil
	}
	out := make([]corev1.EphemeralContainer, len(in))
	for i := range in {
		in[i].DeepCopyInto(&out[i])
		out[i].EnvFrom = nil
		for j := range out[i].Env {
			out[i].Env[j], _ = addedVariable(out[i].Env[j])
		}
	}
	return out
}
