package access

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/e2e/framework"
	"github.com/manifold-dev/manifold/e2e/framework/expect"
	"github.com/manifold-dev/manifold/e2e/framework/manifests"
)

// In these tests the admin of a cluster says more of it than is so, by kubectl there, and whoever has got hold of the identity of its syncer
// does so in the logical cluster.

// marksOf are those that the logical cluster puts on what it has in a cluster.
func marksOf(s *framework.Scenario) (labels map[string]string) {
	s.Helper()
	system, err := s.Logical.Kube.CoreV1().Namespaces().Get(s.Context(), metav1.NamespaceSystem, metav1.GetOptions{})
	if err != nil {
		s.Fatal(err)
	}
	return map[string]string{v1alpha1.LabelLogicalCluster: string(system.UID)}
}

// encoded is an object as kubectl takes it.
func encoded(s *framework.Scenario, object any) string {
	s.Helper()
	out, err := json.Marshal(object)
	if err != nil {
		s.Fatal(err)
	}
	return string(out)
}

// forgedPod is one in a cluster that claims to be what a workload above has left behind, and would like to run elsewhere, with all that it asks for.
func forgedPod(s *framework.Scenario, name string) *corev1.Pod {
	s.Helper()
	labels := marksOf(s)
	labels[v1alpha1.LabelOrphan], labels["app"] = "true", "near"
	yes := true
	return &corev1.Pod{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: name, Labels: labels, Annotations: map[string]string{
			v1alpha1.AnnotationNamespace: s.Namespace, v1alpha1.AnnotationName: name, v1alpha1.AnnotationClusters: "east",
			v1alpha1.AnnotationPlacement: `{"east":{"replicas":1}}`,
		}},
		Spec: corev1.PodSpec{
			HostPID: true, NodeSelector: map[string]string{"no": "node"},
			Containers: []corev1.Container{{
				Name: "evil", Image: "evil:1", SecurityContext: &corev1.SecurityContext{Privileged: &yes},
				EnvFrom: []corev1.EnvFromSource{{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "stolen"}}}},
			}},
		},
	}
}

// nobodyHas checks that there is no pod of a name.
func nobodyHas(s *framework.Scenario, side *framework.Side, name string) {
	s.Helper()
	if _, err := side.Kube.CoreV1().Pods(s.Namespace).Get(s.Context(), name, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		s.Errorf("%s has pod %s (%v), want none", side.Name, name, err)
	}
}

// toldNotShown waits for the event that tells that something of a cluster is not shown.
func toldNotShown(s *framework.Scenario, pod string) {
	s.Helper()
	framework.AwaitList(s.Logical.In(metav1.NamespaceDefault), "", "an event tells that "+pod+" is not shown", func(events []*corev1.Event) bool {
		for _, e := range events {
			if e.Reason == "NotShown" && strings.Contains(e.Message, pod) && strings.Contains(e.Message, s.Namespace) && e.InvolvedObject.Name == "west" {
				return true
			}
		}
		return false
	})
}

func TestAForgedOrphanIsNotShownNorGivenAnything(t *testing.T) {
	framework.Long(t)
	s := suite.Scenario(t)
	s.Logical.KubectlInput(encoded(s, &corev1.Secret{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"}, ObjectMeta: metav1.ObjectMeta{Name: "stolen"},
		StringData: map[string]string{"key": "top secret"},
	}), "apply", "-f", "-")
	stop := framework.Watch([]*framework.Side{s.West}, func(now map[string][]*corev1.Secret) {
		for _, secret := range now["west"] {
			if secret.Name == "stolen" && len(secret.Data) > 0 {
				t.Errorf("west was given Secret stolen: %d keys", len(secret.Data))
			}
		}
	})
	defer stop()

	t.Run("in a namespace that is not placed there", func(t *testing.T) {
		s := s.Subtest(t)
		namespace := &corev1.Namespace{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"}, ObjectMeta: metav1.ObjectMeta{
			Name: s.Namespace, Labels: marksOf(s), Annotations: map[string]string{v1alpha1.AnnotationName: s.Namespace},
		}}
		s.West.KubectlInput(encoded(s, namespace), "create", "-f", "-")
		forged := encoded(s, forgedPod(s, "first-forged"))
		s.West.Poll("pods can be made", func() error { return framework.Failure(s.West.TryInput(forged, "create", "-f", "-")) })
		toldNotShown(s, "first-forged")
		nobodyHas(s, s.Logical, "first-forged")
		nobodyHas(s, s.East, "first-forged")
		s.West.Kubectl("delete", "pod", "first-forged", "--force", "--grace-period=0")
		s.West.Kubectl("delete", "namespace", s.Namespace)
	})
	t.Run("beside what is placed there", func(t *testing.T) {
		s := s.Subtest(t)
		// It needs a Secret by right, so that Manifold looks at those that west has there.
		s.Logical.Kubectl("create", "secret", "generic", "own", "--from-literal=key=own")
		s.Logical.Apply(manifests.Pinned(manifests.Edited(manifests.Deployment("near", 1), using("own", false)), "west"))
		expect.RolledOut(s, "near", 1)
		s.West.KubectlInput(encoded(s, forgedPod(s, "second-forged")), "create", "-f", "-")
		toldNotShown(s, "second-forged")
		nobodyHas(s, s.Logical, "second-forged")
		nobodyHas(s, s.East, "second-forged")
		s.West.Kubectl("delete", "pod", "second-forged", "--force", "--grace-period=0")
	})
	t.Run("a stub of a Secret, and a pod that names it", func(t *testing.T) {
		s := s.Subtest(t)
		above, err := s.Logical.Kube.CoreV1().Secrets(s.Namespace).Get(t.Context(), "stolen", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		set := framework.AwaitList(s.West, "app=near", "its ReplicaSet", func(sets []*appsv1.ReplicaSet) bool { return len(sets) == 1 })[0]
		pod := forgedPod(s, "near-zzzzz")
		pod.Annotations = nil
		pod.Labels = set.Spec.Template.Labels
		pod.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(set, appsv1.SchemeGroupVersion.WithKind("ReplicaSet"))}
		s.West.KubectlInput(encoded(s, pod), "create", "-f", "-")
		s.West.KubectlInput(encoded(s, &corev1.Secret{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"},
			ObjectMeta: metav1.ObjectMeta{Name: "stolen", Labels: marksOf(s), Annotations: map[string]string{
				v1alpha1.AnnotationNamespace: s.Namespace, v1alpha1.AnnotationName: "stolen", v1alpha1.AnnotationUID: string(above.UID),
			}},
		}), "create", "-f", "-")
		framework.AwaitGone[*corev1.Secret](s.West, "stolen") // nothing of ours is to be there by that name
	})
}

func TestWhatAClusterChangesOfAPodIsNotShown(t *testing.T) {
	framework.Long(t)
	s := suite.Scenario(t)
	s.Logical.Apply(manifests.Pinned(manifests.Deployment("web", 1), "west"), manifests.Pinned(manifests.Deployment("bank", 1), "east"), manifests.Pinned(manifests.Edited(manifests.Deployment("host", 1), func(d *appsv1.Deployment) {
		d.Spec.Template.Spec.HostNetwork = true
		d.Spec.Template.Spec.Containers[0].Resources.Limits = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}
	}), "west"))
	expect.RolledOut(s, "web", 1)
	// What the template asks for is shown, with what an API server makes of it.
	if got := framework.AwaitList(s.Logical, "app=host", "the pod is ready", expect.ReadyPods(1))[0]; !got.Spec.HostNetwork || got.Spec.Containers[0].Ports[0].HostPort == 0 {
		t.Errorf("the mirror has %+v, want the network of the host", got.Spec.Containers[0].Ports)
	}
	pod := framework.AwaitList(s.Logical, "app=web", "the pod is ready", expect.ReadyPods(1))[0]
	s.West.Kubectl("label", "pod", pod.Name, "role=admin", v1alpha1.LabelOrphan+"=true")
	s.West.Kubectl("set", "image", "pod/"+pod.Name, "web=evil:1")
	s.West.Kubectl("annotate", "pod", pod.Name, v1alpha1.AnnotationClusters+"=east", v1alpha1.AnnotationPlacement+`={"east":{"replicas":1}}`, "note=last")
	got := framework.Await(s.Logical, pod.Name, "shows what was changed last", func(p *corev1.Pod) bool { return p.Annotations["note"] == "last" })
	if got.Labels["role"] != "" || got.Labels["app"] != "web" || got.Spec.Containers[0].Image != "web:1" {
		t.Errorf("it has labels %v and image %s, want those of the template", got.Labels, got.Spec.Containers[0].Image)
	}
	for key := range got.Annotations {
		if strings.HasPrefix(key, "manifold.dev/") && key != v1alpha1.AnnotationCluster && key != v1alpha1.AnnotationNode {
			t.Errorf("it carries %s", key)
		}
	}
	// Its ReplicaSet lets it go, which nobody above has asked for.
	s.West.Kubectl("label", "pod", pod.Name, "app=bank", "--overwrite")
	framework.AwaitGone[*corev1.Pod](s.Logical, pod.Name)
	framework.AwaitList(s.Logical, "app=bank", "the others are none of its", expect.ReadyPods(1))
	framework.AwaitList(s.Logical, "app=web", "another has taken its place", expect.ReadyPods(1))
	s.West.Kubectl("delete", "pod", pod.Name)
}

func TestAStolenIdentityOfAClusterWritesNoMoreThanItsSyncer(t *testing.T) {
	s := suite.Scenario(t)
	s.Logical.Apply(manifests.Pinned(manifests.Deployment("web", 1), "east"), manifests.Pinned(manifests.Deployment("near", 1), "west"), manifests.BarePod("own", "east"))
	expect.RolledOut(s, "web", 1)
	expect.RolledOut(s, "near", 1)
	pod := framework.AwaitList(s.Logical, "app=web", "the pod is ready", expect.ReadyPods(1))[0]
	near := framework.AwaitList(s.Logical, "app=near", "the pod is ready", expect.ReadyPods(1))[0]
	own := framework.Await(s.Logical, "own", "runs", expect.Ready)
	d := framework.Await(s.Logical, "web", "is there", framework.Exists[*appsv1.Deployment])

	as := func(manifest any, args ...string) framework.Result {
		args = append([]string{"--as", v1alpha1.SyncerUserPrefix + "west"}, args...)
		if manifest == nil {
			return s.Logical.Try(args...)
		}
		return s.Logical.TryInput(encoded(s, manifest), args...)
	}
	mirror := func(of *corev1.Pod, change ...func(*corev1.Pod)) *corev1.Pod {
		out := of.DeepCopy()
		out.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}
		out.ManagedFields = nil
		for _, c := range change {
			c(out)
		}
		return out
	}
	fresh := func(p *corev1.Pod) {
		p.Name, p.ResourceVersion, p.UID = p.Name+"-forged", "", ""
		p.Annotations[v1alpha1.AnnotationCluster] = "west"
		p.Annotations[v1alpha1.AnnotationUID] = "0d9f3c1e-9c3b-4d9c-8f44-000000000001"
		p.Spec.NodeName = "west"
	}
	with := func(changes ...func(*corev1.Pod)) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			for _, c := range changes {
				c(p)
			}
		}
	}
	event := func(namespace string, about corev1.ObjectReference) *corev1.Event {
		return &corev1.Event{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Event"}, ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: "forged.west", Annotations: map[string]string{v1alpha1.AnnotationCluster: "west"},
		}, InvolvedObject: about, Source: corev1.EventSource{Component: "kubelet", Host: "node"}, Reason: "Forged", Message: "x"}
	}
	create := []string{"create", "--validate=false", "-f", "-"}
	replace := []string{"replace", "--validate=false", "-f", "-"}
	for name, test := range map[string]struct {
		manifest any
		args     []string
		want     string
	}{
		"a pod of what is elsewhere":       {mirror(pod, fresh), create, "Deployment web is not placed in cluster"},
		"a pod of nobody":                  {mirror(near, with(fresh, func(p *corev1.Pod) { p.OwnerReferences = nil })), create, "has one owner"},
		"a pod with labels of others":      {mirror(near, with(fresh, func(p *corev1.Pod) { p.Labels["app"] = "web" })), create, "metadata.labels"},
		"a pod with another image":         {mirror(near, with(fresh, func(p *corev1.Pod) { p.Spec.Containers[0].Image = "evil:1" })), create, "field Containers"},
		"a pod with a part of the host":    {mirror(near, with(fresh, func(p *corev1.Pod) { p.Spec.HostPID = true })), create, "field HostPID"},
		"a pod with the UID of a workload": {mirror(near, with(fresh, func(p *corev1.Pod) { p.Annotations[v1alpha1.AnnotationUID] = string(d.UID) })), create, "its UID is that of deployments"},
		"a pod with an owner's forged UID": {mirror(near, with(fresh, func(p *corev1.Pod) { p.OwnerReferences[0].UID = "forged" })), create, "has no ReplicaSet"},
		"a pod in kube-system":             {mirror(near, with(fresh, func(p *corev1.Pod) { p.Namespace = "kube-system" })), []string{"create", "--validate=false", "-n", "kube-system", "-f", "-"}, "forbidden"},
		"a pod of another cluster":         {mirror(pod, func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed }), replace, `forbidden`},
		"a pod of a user elsewhere":        {mirror(own, func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed }), replace, "forbidden"},
		"its own pod as a user's":          {mirror(near, func(p *corev1.Pod) { delete(p.Annotations, v1alpha1.AnnotationCluster); p.OwnerReferences = nil }), replace, "forbidden"},
		"the end of another's pod":         {nil, []string{"delete", "pod", pod.Name, "--wait=false"}, "forbidden"},
		"the end of a user's pod":          {nil, []string{"delete", "pod", "own", "--wait=false"}, "forbidden"},
		"the end of all pods":              {nil, []string{"delete", "pods", "--all", "--wait=false"}, "forbidden"},
		"a claim that nothing makes": {&corev1.PersistentVolumeClaim{
			TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "PersistentVolumeClaim"},
			ObjectMeta: metav1.ObjectMeta{Name: "forged", Annotations: map[string]string{v1alpha1.AnnotationCluster: "west", v1alpha1.AnnotationUID: "u"}},
		}, create, "no StatefulSet of the logical cluster"},
		"an event about what is elsewhere": {event(s.Namespace, corev1.ObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Namespace: s.Namespace, Name: "web", UID: d.UID}), create, "has no Deployment"},
		"an event in kube-system":          {event("kube-system", corev1.ObjectReference{Kind: "Pod", Namespace: "kube-system", Name: "x"}), []string{"create", "--validate=false", "-n", "kube-system", "-f", "-"}, "forbidden"},
		"Secrets":                          {nil, []string{"get", "secrets"}, "forbidden"},
		"pods":                             {nil, []string{"get", "pods"}, "forbidden"},
		"a Deployment":                     {nil, []string{"create", "deployment", "forged", "--image=evil:1"}, "forbidden"},
		"a command in a pod":               {nil, []string{"exec", near.Name, "--", "true"}, "forbidden"},
		"a token":                          {nil, []string{"create", "token", "default"}, "forbidden"},
		"the size of a workload":           {nil, []string{"scale", "deployment", "near", "--replicas=9"}, "forbidden"},
		"the name of another cluster":      {nil, []string{"--as-group", "system:masters-not", "delete", "pod", pod.Name, "--wait=false"}, "forbidden"},
	} {
		t.Run(name, func(t *testing.T) { expect.Refused(t, as(test.manifest, test.args...), test.want) })
	}
	for _, name := range []string{pod.Name, near.Name, "own"} {
		now, err := s.Logical.Kube.CoreV1().Pods(s.Namespace).Get(t.Context(), name, metav1.GetOptions{})
		if err != nil || now.DeletionTimestamp != nil || !expect.Ready(now) {
			t.Errorf("pod %s is %v (%v), want it as it was", name, now.Status.Phase, err)
		}
	}
	list, err := s.Logical.Kube.CoreV1().Pods(s.Namespace).List(t.Context(), metav1.ListOptions{})
	if err != nil || len(list.Items) != 3 {
		t.Errorf("there are %s (%v), want the three that were there", fmt.Sprint(len(list.Items), " pods"), err)
	}
}
