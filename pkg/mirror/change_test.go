package mirror

import (
	"encoding/json"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/projection"
)

// asked is a pod as webhooks see it, of which its cluster has added a side container, a token and tolerations.
func asked() *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-1", Annotations: pairs{"note": "x"}}, Spec: *onNode()}
	pod.Spec.NodeName = ""
	webOwner().Pod(pod, nil)
	return pod
}

// inCluster is the same pod as its cluster is about to make it: with what the projection gives pods that call the logical cluster.
func inCluster() *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-1", Labels: pairs{"app": "web"}, Annotations: pairs{"note": "x", v1alpha1.AnnotationAPIAuthority: "PEM"}}, Spec: *onNode()}
	pod.Spec.NodeName = ""
	pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: projection.APIVolume, VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}})
	pod.Spec.Containers[0].Env = append([]corev1.EnvVar{{Name: "KUBERNETES_SERVICE_HOST", Value: "logical"}}, pod.Spec.Containers[0].Env...)
	return pod
}

func TestWhatWebhooksChangeReachesThePodAndItsMirror(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*corev1.Pod)
		check  func(below, shown *corev1.Pod) bool
		// anyway tells that a cluster may have changed that itself.
		anyway bool
	}{
		"a label": {
			func(p *corev1.Pod) { p.Labels["tier"] = "a" },
			func(below, shown *corev1.Pod) bool { return below.Labels["tier"] == "a" && shown.Labels["tier"] == "a" },
			false,
		},
		"a label taken off": {
			func(p *corev1.Pod) { delete(p.Labels, "app") },
			func(below, shown *corev1.Pod) bool { return below.Labels["app"] == "" && shown.Labels["app"] == "" },
			false,
		},
		"an annotation": {
			func(p *corev1.Pod) { p.Annotations["note"] = "y" },
			func(below, shown *corev1.Pod) bool {
				return below.Annotations["note"] == "y" && below.Annotations[v1alpha1.AnnotationAPIAuthority] == "PEM"
			},
			true,
		},
		"a finalizer": {
			func(p *corev1.Pod) { p.Finalizers = append(p.Finalizers, "example.com/held") },
			func(below, shown *corev1.Pod) bool { return len(below.Finalizers) == 1 && len(shown.Finalizers) == 1 },
			false,
		},
		"an image": {
			func(p *corev1.Pod) { p.Spec.Containers[0].Image = "registry/app:1" },
			func(below, shown *corev1.Pod) bool {
				return below.Spec.Containers[0].Image == "registry/app:1" && shown.Spec.Containers[0].Image == "registry/app:1"
			},
			false,
		},
		"a variable, beside those that the projection has given": {
			func(p *corev1.Pod) {
				p.Spec.Containers[0].Env = append(p.Spec.Containers[0].Env, corev1.EnvVar{Name: "ROLE", Value: "leader"})
			},
			func(below, shown *corev1.Pod) bool {
				return len(below.Spec.Containers[0].Env) == 4 && len(shown.Spec.Containers[0].Env) == 3
			},
			true,
		},
		"a container with privileges and a volume of the host": {
			func(p *corev1.Pod) {
				p.Spec.Volumes = append(p.Spec.Volumes, hostVolume("host"))
				p.Spec.Containers = append(p.Spec.Containers, corev1.Container{
					Name: "agent", Image: "agent:1", SecurityContext: &corev1.SecurityContext{Privileged: ptr.To(true)}, VolumeMounts: []corev1.VolumeMount{{Name: "host", MountPath: "/host"}},
				})
			},
			func(below, shown *corev1.Pod) bool {
				return len(below.Spec.Containers) == 3 && len(shown.Spec.Containers) == 3 && len(shown.Spec.Volumes) == 4 && *shown.Spec.Containers[2].SecurityContext.Privileged
			},
			false,
		},
		"a container that begins first": {
			func(p *corev1.Pod) {
				p.Spec.InitContainers = append([]corev1.Container{{Name: "first", Image: "first:1"}}, p.Spec.InitContainers...)
			},
			func(below, shown *corev1.Pod) bool {
				return below.Spec.InitContainers[0].Name == "first" && shown.Spec.InitContainers[0].Name == "first" && len(shown.Spec.InitContainers) == 2
			},
			true,
		},
		"something of each container, those of the cluster too": {
			func(p *corev1.Pod) {
				for i := range p.Spec.Containers {
					p.Spec.Containers[i].TerminationMessagePath = "/end"
				}
			},
			func(below, shown *corev1.Pod) bool {
				return below.Spec.Containers[1].Image == "mesh/proxy:3" && shown.Spec.Containers[1].Image == "mesh/proxy:3" && shown.Spec.Containers[1].TerminationMessagePath == "/end"
			},
			false,
		},
		"where it may run": {
			func(p *corev1.Pod) {
				p.Spec.NodeSelector["zone"] = "a"
				p.Spec.Tolerations = append(p.Spec.Tolerations, corev1.Toleration{Key: "gpu"})
			},
			func(below, shown *corev1.Pod) bool {
				return below.Spec.NodeSelector["zone"] == "a" && len(shown.Spec.Tolerations) == 3
			},
			false,
		},
		"a volume of the template taken out": {
			func(p *corev1.Pod) { p.Spec.Volumes = append(p.Spec.Volumes[:1:1], p.Spec.Volumes[2:]...) },
			func(below, shown *corev1.Pod) bool {
				return len(below.Spec.Volumes) == 3 && len(shown.Spec.Volumes) == 2
			},
			false,
		},
	} {
		t.Run(name, func(t *testing.T) {
			before := asked()
			after := before.DeepCopy()
			test.change(after)
			change, err := Change(before, after)
			if err != nil || len(change) == 0 {
				t.Fatalf("change %s: %v", change, err)
			}
			raw, err := json.Marshal(inCluster())
			if err != nil {
				t.Fatal(err)
			}
			if raw, err = ApplyChange(raw, change); err != nil {
				t.Fatal(err)
			}
			below := &corev1.Pod{}
			if err := json.Unmarshal(raw, below); err != nil {
				t.Fatal(err)
			}
			owner := webOwner()
			owner.Change = change
			shown := below.DeepCopy()
			shown.Annotations = pairs{v1alpha1.AnnotationCluster: "east", v1alpha1.AnnotationAdmitted: "proof"}
			owner.Pod(shown, nil)
			if err := owner.CheckPod(shown, nil, "east", nil); err != nil {
				t.Fatalf("it is not let be shown: %v", err)
			}
			if !test.check(below, shown) {
				t.Errorf("the pod is %s,\nshown as %s", asJSON(t, below), asJSON(t, shown))
			}
			again := shown.DeepCopy()
			webOwner().Pod(again, shown)
			if asJSON(t, again.Spec) != asJSON(t, shown.Spec) {
				t.Errorf("once it is stored, it is shown as %s,\nwas %s", asJSON(t, again.Spec), asJSON(t, shown.Spec))
			}
			stranger := shown.DeepCopy()
			delete(stranger.Annotations, v1alpha1.AnnotationAdmitted)
			if err := webOwner().CheckPod(stranger, nil, "east", nil); (err == nil) != test.anyway {
				t.Errorf("without a change that is proven it is refused with %v", err)
			}
			if err := webOwner().CheckPod(shown, nil, "east", nil); err == nil {
				t.Error("a proof that nobody has looked at is let be shown")
			}
		})
	}
}

func TestWhatNobodyHasChangedIsNoChange(t *testing.T) {
	if change, err := Change(asked(), asked()); change != nil || err != nil {
		t.Errorf("change %s, %v", change, err)
	}
}

func TestWhatWebhooksCannotChange(t *testing.T) {
	for want, change := range map[string]func(*corev1.Pod){
		"metadata.name":            func(p *corev1.Pod) { p.Name = "other" },
		"metadata.ownerReferences": func(p *corev1.Pod) { p.OwnerReferences = []metav1.OwnerReference{{Name: "x", UID: "y"}} },
		"metadata.finalizers":      func(p *corev1.Pod) { p.Finalizers = []string{v1alpha1.FinalizerProjection} },
		"spec.nodeName":            func(p *corev1.Pod) { p.Spec.NodeName = "node-1" },
		"spec.ephemeralContainers": func(p *corev1.Pod) { p.Spec.EphemeralContainers = make([]corev1.EphemeralContainer, 1) },
		v1alpha1.LabelOrphan:       func(p *corev1.Pod) { p.Labels[v1alpha1.LabelOrphan] = "true" },
		v1alpha1.AnnotationCluster: func(p *corev1.Pod) { p.Annotations[v1alpha1.AnnotationCluster] = "west" },
	} {
		after := asked()
		change(after)
		if _, err := Change(asked(), after); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("refused with %v, want %s in it", err, want)
		}
	}
}
