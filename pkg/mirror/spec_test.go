package mirror

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/manifold-dev/manifold/pkg/projection"
)

// templateSpec is that of a pod template with something in most fields in which clusters have no say.
func templateSpec() *corev1.PodSpec {
	return &corev1.PodSpec{
		Volumes: []corev1.Volume{
			{Name: "data", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
			{Name: "tls", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "tls"}}},
		},
		InitContainers: []corev1.Container{{Name: "init", Image: "init:1"}},
		Containers: []corev1.Container{{
			Name: "app", Image: "app:1", Command: []string{"serve"},
			Env: []corev1.EnvVar{
				{Name: "MODE", Value: "fast"},
				{Name: "PASSWORD", ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{
					LocalObjectReference: corev1.LocalObjectReference{Name: "password"}, Key: "p",
				}}},
			},
			VolumeMounts: []corev1.VolumeMount{{Name: "data", MountPath: "/data"}},
		}},
		NodeSelector: map[string]string{"disk": "ssd"},
		Tolerations:  []corev1.Toleration{{Key: "mine", Operator: corev1.TolerationOpExists}},
	}
}

// onNode is an honest pod of the template: what an API server, a scheduler and the webhook of a mesh make of it.
func onNode(change ...func(*corev1.PodSpec)) *corev1.PodSpec {
	out := templateSpec()
	out.NodeName = "east"
	out.ServiceAccountName, out.DeprecatedServiceAccount = "default", "default"
	out.Priority, out.PreemptionPolicy = ptr.To[int32](0), ptr.To(corev1.PreemptLowerPriority)
	out.EnableServiceLinks = ptr.To(true)
	out.Tolerations = append(out.Tolerations, corev1.Toleration{Key: corev1.TaintNodeNotReady, Operator: corev1.TolerationOpExists})
	out.Volumes = append(out.Volumes, corev1.Volume{Name: "kube-api-access-x7k2p", VolumeSource: corev1.VolumeSource{
		Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{
			{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Path: "token"}},
			{ConfigMap: &corev1.ConfigMapProjection{LocalObjectReference: corev1.LocalObjectReference{Name: rootCA}}},
		}},
	}})
	out.Containers[0].VolumeMounts = append(out.Containers[0].VolumeMounts, corev1.VolumeMount{
		Name: "kube-api-access-x7k2p", MountPath: "/var/run/secrets/kubernetes.io/serviceaccount", ReadOnly: true,
	})
	out.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m")}
	out.Containers = append(out.Containers, corev1.Container{
		Name: "proxy", Image: "mesh/proxy:3", Env: []corev1.EnvVar{{Name: "LEVEL", Value: "info"}},
		SecurityContext: &corev1.SecurityContext{RunAsUser: ptr.To[int64](1337)},
	})
	for _, c := range change {
		c(out)
	}
	return out
}

func secretVolume(name, secret string) corev1.Volume {
	return corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: secret}}}
}

func hostVolume(name string) corev1.Volume {
	return corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/"}}}
}

func fromSecret(name string) corev1.EnvVar {
	return corev1.EnvVar{Name: name, ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{Key: "k"}}}
}

func TestWhatIsShownOfASpec(t *testing.T) {
	same := func(*corev1.PodSpec) {}
	for name, test := range map[string]struct {
		pod, want func(*corev1.PodSpec)
	}{
		"an honest pod, with the sidecar of a webhook": {same, same},
		"a pod that waits for a node": {
			func(s *corev1.PodSpec) { s.NodeName = "" }, func(s *corev1.PodSpec) { s.NodeName = "" },
		},
		"resources that were changed in place": {
			func(s *corev1.PodSpec) {
				s.Containers[0].Resources.Requests[corev1.ResourceCPU] = resource.MustParse("2")
			},
			func(s *corev1.PodSpec) {
				s.Containers[0].Resources.Requests[corev1.ResourceCPU] = resource.MustParse("2")
			},
		},
		"a container for debugging": {
			func(s *corev1.PodSpec) {
				s.EphemeralContainers = []corev1.EphemeralContainer{{EphemeralContainerCommon: corev1.EphemeralContainerCommon{
					Name: "debug", Image: "busybox", EnvFrom: []corev1.EnvFromSource{{SecretRef: &corev1.SecretEnvSource{}}},
				}}}
			},
			func(s *corev1.PodSpec) {
				s.EphemeralContainers = []corev1.EphemeralContainer{{EphemeralContainerCommon: corev1.EphemeralContainerCommon{Name: "debug", Image: "busybox"}}}
			},
		},
		"the priority class that is the cluster's default": {
			func(s *corev1.PodSpec) { s.PriorityClassName = "normal" }, func(s *corev1.PodSpec) { s.PriorityClassName = "normal" },
		},
		"not a class of the system": {
			func(s *corev1.PodSpec) { s.PriorityClassName = "system-node-critical" }, same,
		},
		"not another image of a container of the template": {
			func(s *corev1.PodSpec) { s.Containers[0].Image = "evil:1" }, same,
		},
		"nor another command": {
			func(s *corev1.PodSpec) { s.Containers[0].Command = []string{"sh"} }, same,
		},
		"nor other values of its variables": {
			func(s *corev1.PodSpec) { s.Containers[0].Env[0].Value = "slow" }, same,
		},
		"nor the lack of a container": {
			func(s *corev1.PodSpec) { s.InitContainers = nil }, same,
		},
		"no part of the host": {
			func(s *corev1.PodSpec) { s.HostNetwork, s.HostPID, s.HostIPC = true, true, true }, same,
		},
		"no privileges of a container of the template": {
			func(s *corev1.PodSpec) {
				s.Containers[0].SecurityContext = &corev1.SecurityContext{Privileged: ptr.To(true)}
			}, same,
		},
		"nor of one that is added": {
			func(s *corev1.PodSpec) { s.Containers[1].SecurityContext.Privileged = ptr.To(true) }, same,
		},
		"nor ports of the host of one": {
			func(s *corev1.PodSpec) {
				s.Containers[1].Ports = []corev1.ContainerPort{{ContainerPort: 80, HostPort: 80, HostIP: "10.0.0.1"}}
			},
			func(s *corev1.PodSpec) { s.Containers[1].Ports = []corev1.ContainerPort{{ContainerPort: 80}} },
		},
		"no ServiceAccount but the template's": {
			func(s *corev1.PodSpec) { s.ServiceAccountName, s.DeprecatedServiceAccount = "admin", "admin" }, same,
		},
		"no pull secrets but the template's": {
			func(s *corev1.PodSpec) { s.ImagePullSecrets = []corev1.LocalObjectReference{{Name: "registry"}} }, same,
		},
		"no volume of the host, nor a mount of it": {
			func(s *corev1.PodSpec) {
				s.Volumes = append(s.Volumes, hostVolume("root"))
				s.Containers[0].VolumeMounts = append(s.Containers[0].VolumeMounts, corev1.VolumeMount{Name: "root", MountPath: "/host"})
				s.Containers[1].VolumeMounts = append(s.Containers[1].VolumeMounts, corev1.VolumeMount{Name: "root", MountPath: "/host"})
			}, func(s *corev1.PodSpec) { s.Containers[1].VolumeMounts = []corev1.VolumeMount{} },
		},
		"no volume of a Secret that the template does not name": {
			func(s *corev1.PodSpec) { s.Volumes = append(s.Volumes, secretVolume("s", "strangers")) }, same,
		},
		"not another source of a volume of the template": {
			func(s *corev1.PodSpec) { s.Volumes[0] = hostVolume("data") }, same,
		},
		"not a Secret in a volume that is named like that of the token": {
			func(s *corev1.PodSpec) {
				s.Volumes = append(s.Volumes, corev1.Volume{Name: "kube-api-access-more", VolumeSource: corev1.VolumeSource{
					Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{{Secret: &corev1.SecretProjection{}}}},
				}})
			}, same,
		},
		"a variable that is added, without the Secret that it is from": {
			func(s *corev1.PodSpec) { s.Containers[0].Env = append(s.Containers[0].Env, fromSecret("STOLEN")) },
			func(s *corev1.PodSpec) {
				s.Containers[0].Env = append(s.Containers[0].Env, corev1.EnvVar{Name: "STOLEN"})
			},
		},
		"not a second container of a name": {
			func(s *corev1.PodSpec) {
				s.Containers = append(s.Containers, corev1.Container{Name: "app", Image: "evil:1"})
			}, same,
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, want := Spec(onNode(test.pod), templateSpec()), onNode(test.want)
			if !equality.Semantic.DeepEqual(&got, want) {
				t.Errorf("shows %s\nwant  %s", asJSON(t, got), asJSON(t, want))
			}
			if again := Spec(&got, templateSpec()); !equality.Semantic.DeepEqual(again, got) {
				t.Errorf("shows of itself %s\nwant  %s", asJSON(t, again), asJSON(t, got))
			}
			if later := Spec(&got, &got); !equality.Semantic.DeepEqual(later, got) {
				t.Errorf("shows of itself as it is stored %s\nwant  %s", asJSON(t, later), asJSON(t, got))
			}
		})
	}
}

func asJSON(t *testing.T, in any) string {
	t.Helper()
	out, err := json.Marshal(in)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

func TestWhatIsLeftWithoutWhatAClusterHasAdded(t *testing.T) {
	shown := Spec(onNode(func(s *corev1.PodSpec) {
		s.EphemeralContainers = []corev1.EphemeralContainer{{}}
		s.Containers[0].Env = append(s.Containers[0].Env, corev1.EnvVar{Name: "ADDED", Value: "x"})
	}), templateSpec())
	got := Bare(&shown, templateSpec())
	want := onNode()
	want.Volumes, want.Containers = templateSpec().Volumes, want.Containers[:1]
	want.Containers[0].VolumeMounts = templateSpec().Containers[0].VolumeMounts
	if !equality.Semantic.DeepEqual(&got, want) {
		t.Errorf("left are %s\nwant     %s", asJSON(t, got), asJSON(t, want))
	}
	if got := Bare(&shown, nil); len(got.Containers) != 2 || len(got.EphemeralContainers) > 0 {
		t.Errorf("of a template that nobody knows are left %s, want all but what is for debugging", asJSON(t, got))
	}
}

// FuzzSpec has a cluster say anything at all about a pod.
func FuzzSpec(f *testing.F) {
	for _, seed := range []*corev1.PodSpec{
		onNode(), {}, templateSpec(),
		onNode(func(s *corev1.PodSpec) {
			s.HostPID, s.ServiceAccountName = true, "admin"
			s.Volumes = []corev1.Volume{hostVolume("data"), secretVolume("more", "more")}
			s.Containers[1].EnvFrom = []corev1.EnvFromSource{{SecretRef: &corev1.SecretEnvSource{}}}
		}),
	} {
		data, err := json.Marshal(seed)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var pod corev1.PodSpec
		if json.Unmarshal(data, &pod) != nil {
			return
		}
		base := templateSpec()
		got := Spec(&pod, base)
		if again := Spec(&got, base); !equality.Semantic.DeepEqual(again, got) {
			t.Errorf("shows of itself %s, want %s", asJSON(t, again), asJSON(t, got))
		}
		if got.HostNetwork || got.HostPID || got.HostIPC || got.ServiceAccountName != defaultServiceAccount || got.HostUsers != nil {
			t.Errorf("shows parts of the host or an account: %s", asJSON(t, got))
		}
		for _, c := range slices.Concat(got.InitContainers, got.Containers) {
			if c.SecurityContext != nil && ptr.Deref(c.SecurityContext.Privileged, false) || len(c.EnvFrom) > 0 {
				t.Errorf("shows container %s", asJSON(t, c))
			}
			if c.Name == "app" && c.Image != "app:1" {
				t.Errorf("shows image %s of the template's container", c.Image)
			}
		}
		want := fmt.Sprint(projection.References(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{}, Spec: *base}))
		for _, ref := range projection.References(&corev1.Pod{Spec: got}) {
			if ref.Name != rootCA && !slices.ContainsFunc(projection.References(&corev1.Pod{Spec: *base}), func(r projection.Reference) bool {
				return r.Resource == ref.Resource && r.Name == ref.Name
			}) {
				t.Errorf("refers to %s %s, want no more than %s", ref.Resource.Resource, ref.Name, want)
			}
		}
		bare := Bare(&got, base)
		if len(bare.Containers) != len(base.Containers) || len(bare.Volumes) != len(base.Volumes) || len(bare.EphemeralContainers) > 0 {
			t.Errorf("without additions it is %s", asJSON(t, bare))
		}
	})
}
