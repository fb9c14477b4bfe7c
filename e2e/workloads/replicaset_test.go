package workloads

import (
	"fmt"
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/e2e/framework"
	"github.com/manifold-dev/manifold/e2e/framework/expect"
	"github.com/manifold-dev/manifold/e2e/framework/manifests"
)

// replicaSet is the manifest of a ReplicaSet that no Deployment controls, pinned unless clusters is "".
func replicaSet(name string, replicas int32, clusters string, change ...func(*appsv1.ReplicaSet)) string {
	labels := map[string]string{"app": name}
	rs := &appsv1.ReplicaSet{
		TypeMeta:   metav1.TypeMeta{APIVersion: "apps/v1", Kind: "ReplicaSet"},
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels},
		Spec: appsv1.ReplicaSetSpec{
			Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Image: "web:1"}}},
			},
		},
	}
	if clusters != "" {
		rs.Annotations = map[string]string{v1alpha1.AnnotationClusters: clusters}
	}
	for _, c := range change {
		c(rs)
	}
	return manifest(rs)
}

// replicationController is the manifest of a ReplicationController, pinned.
func replicationController(name string, replicas int32, clusters string) string {
	labels := map[string]string{"app": name}
	return manifest(&corev1.ReplicationController{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ReplicationController"},
		ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{v1alpha1.AnnotationClusters: clusters}},
		Spec: corev1.ReplicationControllerSpec{
			Replicas: &replicas, Selector: labels,
			Template: &corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Image: "web:1"}}},
			},
		},
	})
}

func manifest(o any) string {
	data, err := yaml.Marshal(o)
	if err != nil {
		panic(err) // It is the test's own.
	}
	return string(data)
}

// serving claims that a ReplicaSet has that many replicas, and that they serve.
func serving(replicas int32) func(*appsv1.ReplicaSet) bool {
	return func(rs *appsv1.ReplicaSet) bool {
		s := rs.Status
		return s.ObservedGeneration >= rs.Generation && s.Replicas == replicas && s.FullyLabeledReplicas == replicas &&
			s.ReadyReplicas == replicas && s.AvailableReplicas == replicas
	}
}

// ownedBy claims that every pod belongs to the object, and that all are ready.
func ownedBy(owner metav1.Object, count int) func([]*corev1.Pod) bool {
	return func(pods []*corev1.Pod) bool {
		return expect.ReadyPods(count)(pods) && !slices.ContainsFunc(pods, func(p *corev1.Pod) bool { return !metav1.IsControlledBy(p, owner) })
	}
}

func TestAPlainReplicaSetIsDividedAndScaled(t *testing.T) {
	s := suite.Scenario(t)
	s.Logical.Apply(replicaSet("web", 4, "east,west"))
	rs := framework.Await(s.Logical, "web", "serves", serving(4))
	if got := framework.DecisionOf(s, rs); got.Total() != 4 || len(got) != 2 {
		t.Errorf("divided into %s, want 4 over both clusters", got)
	}
	framework.AwaitList(s.Logical, "app=web", "its pods are shown as its own", ownedBy(rs, 4))
	expect.Says(t, s.Logical.Kubectl("get", "replicaset", "web", "--no-headers"), "web   4     4     4")
	expect.Says(t, s.Logical.Kubectl("describe", "replicaset", "web"), "4 current / 4 desired", "SuccessfulCreate")
	expect.Says(t, s.Logical.CLI("explain", "replicaset/web"), "4 asked for", "Capacity")

	for _, replicas := range []int32{7, 1, 0, 3} {
		s.Logical.Kubectl("scale", "replicaset", "web", fmt.Sprintf("--replicas=%d", replicas))
		// The same request has divided it.
		rs, err := s.Logical.Kube.AppsV1().ReplicaSets(s.Namespace).Get(t.Context(), "web", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if got := framework.DecisionOf(s, rs); got.Total() != int64(replicas) {
			t.Errorf("scaled to %d it is divided into %s", replicas, got)
		}
		framework.Await(s.Logical, "web", "serves as scaled", serving(replicas))
	}
	s.Logical.Kubectl("annotate", "replicaset", "web", v1alpha1.AnnotationClusters+"=west", "--overwrite")
	framework.Await(s.West, "web", "has all", serving(3))
	framework.AwaitGone[*appsv1.ReplicaSet](s.East, "web")
	framework.Await(s.Logical, "web", "serves from there", serving(3))

	s.Logical.Kubectl("delete", "replicaset", "web", "--timeout=60s")
	framework.AwaitGone[*appsv1.ReplicaSet](s.West, "web")
	framework.AwaitList(s.Logical, "app=web", "no pod is left", func(pods []*corev1.Pod) bool { return len(pods) == 0 })
}

func TestAReplicationControllerIsDividedAndScaled(t *testing.T) {
	framework.Long(t)
	serves := func(replicas int32) func(*corev1.ReplicationController) bool {
		return func(rc *corev1.ReplicationController) bool {
			s := rc.Status
			return s.ObservedGeneration >= rc.Generation && s.Replicas == replicas && s.ReadyReplicas == replicas && s.AvailableReplicas == replicas
		}
	}
	s := suite.Scenario(t)
	s.Logical.Apply(replicationController("web", 3, "east,west"))
	rc := framework.Await(s.Logical, "web", "serves", serves(3))
	if got := framework.DecisionOf(s, rc); got.Total() != 3 || len(got) != 2 {
		t.Errorf("divided into %s, want 3 over both clusters", got)
	}
	framework.AwaitList(s.Logical, "app=web", "its pods are shown as its own", ownedBy(rc, 3))
	s.Logical.Kubectl("scale", "replicationcontroller", "web", "--replicas=6", "--current-replicas=3")
	rc, err := s.Logical.Kube.CoreV1().ReplicationControllers(s.Namespace).Get(t.Context(), "web", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if got := framework.DecisionOf(s, rc); got.Total() != 6 {
		t.Errorf("scaled to 6 it is divided into %s", got)
	}
	framework.Await(s.Logical, "web", "serves as scaled", serves(6))
	s.Logical.Kubectl("delete", "replicationcontroller", "web", "--timeout=60s")
	for _, side := range []*framework.Side{s.East, s.West} {
		framework.AwaitGone[*corev1.ReplicationController](side, "web")
	}
}

func TestAReplicaSetOfACustomControllerIsPlaced(t *testing.T) {
	framework.Long(t)
	s := suite.Scenario(t)
	s.Logical.Kubectl("create", "configmap", "rollout")
	owner, err := s.Logical.Kube.CoreV1().ConfigMaps(s.Namespace).Get(t.Context(), "rollout", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	s.Logical.Apply(replicaSet("web", 2, "east", func(rs *appsv1.ReplicaSet) {
		rs.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(owner, corev1.SchemeGroupVersion.WithKind("ConfigMap"))}
	}))
	framework.Await(s.Logical, "web", "serves", serving(2))
	framework.Await(s.East, "web", "is where it was placed", serving(2))
}

func TestReplicasThatAClusterRefusesAreToldByTheirReplicaSet(t *testing.T) {
	s := suite.Scenario(t)
	expect.NamespaceIn(s, s.East)
	s.East.Kubectl("create", "quota", "none", "--hard=pods=1")
	s.Logical.Apply(replicaSet("web", 2, "east"))
	rs := framework.Await(s.Logical, "web", "tells that pods cannot be made", func(rs *appsv1.ReplicaSet) bool {
		return len(rs.Status.Conditions) == 1 && rs.Status.Conditions[0].Type == appsv1.ReplicaSetReplicaFailure
	})
	expect.Says(t, rs.Status.Conditions[0].Message, "east", "exceeded quota: none")
	s.East.Kubectl("delete", "quota", "none")
	s.Logical.Kubectl("scale", "replicaset", "web", "--replicas=3")
	rs = framework.Await(s.Logical, "web", "serves", serving(3))
	if len(rs.Status.Conditions) > 0 {
		t.Errorf("it still tells %+v", rs.Status.Conditions)
	}
}

// A Deployment's controller takes over what its selector meets. It runs below, and above it shows as it would on one cluster.
func TestADeploymentTakesOverAReplicaSet(t *testing.T) {
	framework.Long(t)
	s := suite.Scenario(t)
	s.Logical.Apply(replicaSet("old", 3, "east", func(rs *appsv1.ReplicaSet) {
		rs.Labels = map[string]string{"app": "web", "track": "old"}
		rs.Annotations["deployment.kubernetes.io/revision"] = "41"
		rs.Spec.Selector.MatchLabels, rs.Spec.Template.Labels = rs.Labels, rs.Labels
	}))
	before := framework.Await(s.Logical, "old", "serves", serving(3))
	s.Logical.Apply(manifests.Pinned(manifests.Deployment("web", 2), "east"))
	d := expect.RolledOut(s, "web", 2)
	after := framework.Await(s.Logical, "old", "belongs to the Deployment, and is old", func(rs *appsv1.ReplicaSet) bool {
		return metav1.IsControlledBy(rs, d) && *rs.Spec.Replicas == 0 && rs.Status.Replicas == 0
	})
	if after.UID != before.UID || len(after.Finalizers) > 0 {
		t.Errorf("it is %+v, want the one that it was, held by nobody", after.ObjectMeta)
	}
	if got := d.Annotations["deployment.kubernetes.io/revision"]; got != "42" {
		t.Errorf("the Deployment is at revision %q, want the one after that of the ReplicaSet", got)
	}
	framework.AwaitList(s.Logical, "app=web", "the new pods are left", expect.ReadyPods(2))

	// Going back to it is a matter of the Deployment alone.
	s.Logical.Kubectl("rollout", "undo", "deployment/web", "--to-revision=41")
	s.Logical.Kubectl("rollout", "status", "deployment/web", "--timeout=60s")
	framework.Await(s.Logical, "old", "is in use again", func(rs *appsv1.ReplicaSet) bool { return *rs.Spec.Replicas == 2 && rs.Status.AvailableReplicas == 2 })
	old := framework.Await(s.Logical, "old", "has another revision", func(rs *appsv1.ReplicaSet) bool {
		return rs.Annotations["deployment.kubernetes.io/revision"] == "43"
	})
	framework.AwaitList(s.Logical, "app=web", "its pods are shown as its own", ownedBy(old, 2))

	s.Logical.Kubectl("delete", "deployment", "web", "--timeout=60s")
	framework.AwaitGone[*appsv1.ReplicaSet](s.Logical, "old")
	framework.AwaitGone[*appsv1.ReplicaSet](s.East, "old")
	framework.AwaitList(s.Logical, "app=web", "no pod is left", func(pods []*corev1.Pod) bool { return len(pods) == 0 })
}

func TestAReplicaSetTakesOverAPodAndLetsItGo(t *testing.T) {
	framework.Long(t)
	s := suite.Scenario(t)
	expect.NamespaceIn(s, s.East)
	s.Logical.Kubectl("annotate", "namespace", s.Namespace, v1alpha1.AnnotationClusters+"=east")
	s.Logical.Kubectl("run", "web", "--image=web:1", "--labels=app=web")
	framework.Await(s.Logical, "web", "is ready", expect.Ready)
	s.Logical.Apply(replicaSet("web", 1, ""))
	rs := framework.Await(s.Logical, "web", "has what it asks for", serving(1))
	framework.AwaitList(s.Logical, "app=web", "the pod that was there is the one", ownedBy(rs, 1))
	s.Logical.Kubectl("label", "pod", "web", "app=other", "--overwrite")
	framework.Await(s.Logical, "web", "is let go", func(pod *corev1.Pod) bool { return expect.Ready(pod) && metav1.GetControllerOf(pod) == nil })
	framework.AwaitList(s.Logical, "app=web", "there is another in its place", ownedBy(rs, 1))
	s.Logical.Kubectl("delete", "replicaset", "web", "--timeout=60s")
	framework.AwaitList(s.Logical, "app=web", "what it has goes with it", func(pods []*corev1.Pod) bool { return len(pods) == 0 })
	framework.Await(s.Logical, "web", "stays", expect.Ready)
}
