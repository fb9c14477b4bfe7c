package hostile

import (
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/e2e/framework"
	"github.com/manifold-dev/manifold/e2e/framework/expect"
	"github.com/manifold-dev/manifold/e2e/framework/liar"
)

// TestAWithheldDeletionHoldsItsOwnAlone has west go on showing what it was told to delete, of every kind. What is in east too goes there.
func TestAWithheldDeletionHoldsItsOwnAlone(t *testing.T) {
	framework.Long(t)
	a := enter(t)
	west, east := a.Environment.Physical["west"], a.Environment.Physical["east"]
	a.create(deployment("both", 2, "east,west"))
	for _, of := range owned() {
		obj := manifest(of, "held", honestImage)
		selectOwn(of, obj)
		a.create(object{resource: of, manifest: pin(obj, "west").Object})
	}
	framework.Await(a.Logical, "both", "runs", expect.Available(2))
	framework.Await(a.Logical, "held", "runs", expect.Available(1))
	framework.Await(a.Logical, "held", "runs", func(s *appsv1.StatefulSet) bool { return s.Status.ReadyReplicas == 1 })
	framework.Await(a.Logical, "held", "runs", func(d *appsv1.DaemonSet) bool { return d.Status.NumberReady > 0 })
	framework.Await(a.Logical, "held", "runs", func(rc *corev1.ReplicationController) bool { return rc.Status.ReadyReplicas == 1 })
	for _, of := range customKinds() {
		a.awaitCopied(of, "held", "west")
	}
	a.custom(trinkets, "both", "east", "west")
	shown := map[resourceOf][]*unstructured.Unstructured{}
	for _, of := range mirrored(t) {
		for _, obj := range a.list(west, of, "") {
			if name := obj.GetName(); strings.HasPrefix(name, "held") || strings.HasPrefix(name, "both") {
				shown[of] = append(shown[of], obj.DeepCopy())
			}
		}
	}
	for _, of := range owned() {
		if len(shown[of]) == 0 {
			t.Errorf("west has no %s", of.Resource)
		}
	}
	stop := a.invent(shown)
	defer stop()
	var all []string
	for _, of := range owned() {
		all = append(all, of.GroupResource().String())
	}
	a.Logical.Kubectl("delete", "deployment,"+trinkets.GroupResource().String(), "both", "--wait=false")
	a.Logical.Kubectl("delete", strings.Join(all, ","), "held", "--wait=false")
	a.Logical.Poll("east has deleted it", func() error {
		if left := a.list(east, pods, "app=both"); len(left) > 0 {
			return fmt.Errorf("%d pods are left", len(left))
		}
		if left := a.list(east, trinkets, "app=both"); len(left) > 0 {
			return errors.New("its copy of the Trinket is left")
		}
		return nil
	})
	// What is made meanwhile is made, also in west.
	a.canary()
	// What west has, as far as anybody can tell, is not let go of above.
	for _, held := range []struct {
		of   resourceOf
		name string
	}{{trinkets, "both"}, {trinkets, "held"}, {flocks, "held"}} {
		if obj := a.getIn(a.Environment.Logical, held.of, a.Namespace, held.name); obj.GetDeletionTimestamp() == nil {
			t.Errorf("%s %s is not on its way out", held.of.Resource, held.name)
		}
	}
	stop()
	framework.AwaitGone[*appsv1.Deployment](a.Logical, "both")
	a.Logical.Poll("the Trinket is gone", func() error {
		if left := a.list(a.Environment.Logical, trinkets, "app=both"); len(left) > 0 {
			return errors.New("it is there")
		}
		return nil
	})
	a.Logical.Poll("all of it is gone, above and in west", func() error {
		for _, of := range owned() {
			for _, api := range []*framework.API{a.Environment.Logical, west} {
				if _, err := api.Dynamic.Resource(of).Namespace(a.Namespace).Get(a.Context(), "held", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
					return fmt.Errorf("%s has %s held: %v", api.Name, of.Resource, err)
				}
			}
		}
		return nil
	})
	a.unharmed()
}

// TestPromisesDrawNothing has west claim to be the largest cluster in the best region, and to have what others wait for. That it is not for want of
// being heard is what TestPromisesThatAreBelievedDrawWhatMayRunAnywhere shows.
func TestPromisesDrawNothing(t *testing.T) {
	framework.Long(t)
	a := enter(t)
	stop := a.west.Change(resource("", "v1", "nodes").GroupResource(), func(node *unstructured.Unstructured) bool {
		for _, field := range []string{"capacity", "allocatable"} {
			set(node, map[string]any{"cpu": "200000", "memory": "9223372036854775807", "pods": "2000000000", "nvidia.com/gpu": "999999"}, "status", field)
		}
		label(node, map[string]string{corev1.LabelTopologyRegion: "east", corev1.LabelTopologyZone: "east-1", "manifold.dev/cluster": "east"})
		return true
	})
	defer stop()
	a.Logical.Poll("west has lied about its nodes", func() error {
		west, err := a.Environment.Logical.Manifold.ManifoldV1alpha1().Clusters().Get(t.Context(), "west", metav1.GetOptions{})
		if err != nil {
			return err
		}
		if cpu := west.Status.Allocatable[corev1.ResourceCPU]; cpu.Value() < 1000 && cpu.Value() != 0 {
			return errors.New("its capacity is still the true one")
		}
		return nil
	})
	// What is pinned goes where it is pinned to, whatever is promised.
	a.create(deployment("pinned", 3, "east"))
	framework.Await(a.Logical, "pinned", "runs", expect.Available(3))
	for _, pod := range a.list(a.Environment.Logical, pods, "app=pinned") {
		if node, _, _ := unstructured.NestedString(pod.Object, "spec", "nodeName"); node != "east" {
			t.Errorf("pod %s runs in %s", pod.GetName(), node)
		}
	}
	stop()
	a.unharmed()
}

// TestPromisesThatAreBelievedDrawWhatMayRunAnywhere has west promise as much as a cluster may have that has grown, in the region of east. What may
// run anywhere is drawn by that, with what it needs and nothing else; what must not run in west is not, and what ran before stays where it is.
func TestPromisesThatAreBelievedDrawWhatMayRunAnywhere(t *testing.T) {
	framework.Long(t)
	a := enter(t)
	words := map[string]string{}
	for _, name := range []string{"needed", "kept", "unnamed"} {
		word, err := watchword()
		if err != nil {
			t.Fatal(err)
		}
		words[name] = word
		secret := manifest(secrets, name, honestImage)
		set(secret, map[string]any{"jewel": word}, "stringData")
		a.create(object{resource: secrets, manifest: secret.Object})
	}
	// By Capacity, as far as the labels of the Clusters say, which are not theirs to write.
	for name, spec := range map[string]map[string]any{
		"anywhere": {},
		"settled":  {},
		"eastern":  {"clusters": map[string]any{"labelSelector": map[string]any{"matchLabels": map[string]any{"cluster": "east"}}}},
	} {
		spec["priority"] = int64(2)
		spec["workloads"] = map[string]any{"labelSelector": map[string]any{"matchLabels": map[string]any{"app": name}}}
		spec["division"] = map[string]any{"type": "Divide", "by": "Capacity"}
		a.create(object{resource: placementPolicies, manifest: map[string]any{
			"apiVersion": "manifold.dev/v1alpha1", "kind": "PlacementPolicy", "metadata": map[string]any{"name": name}, "spec": spec,
		}})
	}
	const replicas = 6
	settled := manifest(deployments, "settled", honestImage)
	set(settled, int64(replicas), "spec", "replicas")
	a.create(object{resource: deployments, manifest: settled.Object})
	framework.Await(a.Logical, "settled", "runs", expect.Available(replicas))
	nodes := func(app string) map[string]int {
		out := map[string]int{}
		for _, pod := range a.podsOf(app) {
			out[pod.Spec.NodeName]++
		}
		return out
	}
	before := nodes("settled")
	if before["west"] == replicas {
		t.Fatal("before anything was promised, all run in west, so that there is nothing to draw")
	}
	stop := a.west.Change(resource("", "v1", "nodes").GroupResource(), func(node *unstructured.Unstructured) bool {
		for _, field := range []string{"capacity", "allocatable"} {
			set(node, map[string]any{"cpu": "300", "memory": "1Ti", "pods": "5000"}, "status", field)
		}
		label(node, map[string]string{corev1.LabelTopologyRegion: "east", corev1.LabelTopologyZone: "east-1", "cluster": "east", v1alpha1.LabelClusterName: "east"})
		return true
	})
	defer stop()
	a.Logical.Poll("west is believed to be large", func() error {
		west, err := a.Environment.Logical.Manifold.ManifoldV1alpha1().Clusters().Get(t.Context(), "west", metav1.GetOptions{})
		if err != nil {
			return err
		}
		if cpu := west.Status.Allocatable[corev1.ResourceCPU]; cpu.Value() < 300 {
			return fmt.Errorf("it has %s CPUs", cpu.String())
		}
		return nil
	})
	wanted := func(name, secret string) {
		obj := manifest(deployments, name, honestImage)
		set(obj, int64(replicas), "spec", "replicas")
		containers, _, _ := unstructured.NestedSlice(obj.Object, "spec", "template", "spec", "containers")
		containers[0].(map[string]any)["envFrom"] = envFrom(secret)
		set(obj, containers, "spec", "template", "spec", "containers")
		a.create(object{resource: deployments, manifest: obj.Object})
		framework.Await(a.Logical, name, "runs", expect.Available(replicas))
	}
	wanted("eastern", "kept")
	// Placement hears of what a Cluster says by a watch, so what is placed at once may still be placed by what west had before.
	a.Logical.Poll("the promise draws what may run anywhere, so that something was tried", func() error {
		a.Logical.Kubectl("delete", "deployment", "anywhere", "--ignore-not-found", "--cascade=foreground")
		wanted("anywhere", "needed")
		if drawn := nodes("anywhere")["west"]; drawn <= replicas/2 {
			return fmt.Errorf("west has %d of %d", drawn, replicas)
		}
		return nil
	})
	for _, pod := range a.podsOf("eastern") {
		if pod.Spec.NodeName != "east" {
			t.Errorf("pod %s runs in %s", pod.Name, pod.Spec.NodeName)
		}
	}
	a.canary()
	if after := nodes("settled"); !maps.Equal(after, before) {
		t.Errorf("of what ran before, %v run in each, and %v did", after, before)
	}
	for name, word := range words {
		if sent := len(a.west.Sent(liar.Holds(word))); (sent > 0) != (name == "needed") {
			t.Errorf("west was sent what is in Secret %s %d times", name, sent)
		}
	}
	west, err := a.Environment.Logical.Manifold.ManifoldV1alpha1().Clusters().Get(t.Context(), "west", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if west.Labels["cluster"] != "west" || west.Labels[corev1.LabelTopologyRegion] != "" {
		t.Errorf("Cluster west has labels %v", west.Labels)
	}
	a.unharmed()
	stop()
	a.unharmed()
}
