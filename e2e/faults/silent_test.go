package faults

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/e2e/framework"
	"github.com/manifold-dev/manifold/e2e/framework/expect"
	"github.com/manifold-dev/manifold/e2e/framework/manifests"
	"github.com/manifold-dev/manifold/e2e/framework/membership"
	"github.com/manifold-dev/manifold/hack/stock"
)

// outage is what runs while cluster "west" is silent.
type outage struct {
	*framework.Scenario
	// doomed is another scenario, whose namespace is deleted meanwhile.
	doomed *framework.Scenario
	pods   map[string][]types.UID

	mu sync.Mutex
	// wrong is guarded by mu: what was seen that must not be.
	wrong []string
}

// begin starts what is to be looked at through the outage, while all is well.
func begin(t *testing.T) *outage {
	t.Helper()
	s := suite.Fragile(t)
	o := &outage{Scenario: s, doomed: framework.NewScenario(t, s.Environment), pods: map[string][]types.UID{}}
	s.Logical.Kubectl("create", "configmap", "settings", "--from-literal=color=blue")
	s.Logical.Apply(
		manifests.Pinned(manifests.Deployment("both", 6), "east,west"), manifests.Pinned(manifests.Deployment("near", 2), "east"), manifests.Pinned(manifests.Deployment("far", 2), "west"),
		manifests.Pinned(manifests.Deployment("grown", 2), "west"), manifests.Pinned(manifests.Deployment("going", 1), "west"),
		manifests.Pinned(manifests.Edited(manifests.Deployment("kept", 3), func(d *appsv1.Deployment) {
			d.Spec.Template.Spec.Containers[0].EnvFrom = []corev1.EnvFromSource{
				{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "settings"}}},
			}
		}), "west"))
	o.doomed.Logical.Apply(quick(manifests.Pinned(manifests.Deployment("web", 2), "west")))
	for name, replicas := range map[string]int32{"both": 6, "near": 2, "far": 2, "grown": 2, "going": 1, "kept": 3} {
		expect.RolledOut(s, name, replicas)
		o.pods[name] = framework.PodUIDs(s, s.West, name)
	}
	expect.RolledOut(o.doomed, "web", 2)
	return o
}

func (o *outage) see(format string, args ...any) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.wrong = append(o.wrong, fmt.Sprintf(format, args...))
}

// look watches above, from now on until stop, that nothing moves or goes because of the silence, and that nothing is said to be done
// which the silent cluster has not done.
func (o *outage) look() (stop func()) {
	placed := map[string]string{}
	for _, name := range []string{"both", "far", "kept"} {
		placed[name] = framework.ReadDeployment(o.Scenario, name).Annotations[v1alpha1.AnnotationPlacement]
	}
	observed := map[string]int64{}
	for name := range placed {
		observed[name] = framework.ReadDeployment(o.Scenario, name).Generation
	}
	deployments := framework.Watch([]*framework.Side{o.Logical}, func(now map[string][]*appsv1.Deployment) {
		if now["logical"] == nil {
			return
		}
		for _, d := range now["logical"] {
			want, checked := placed[d.Name]
			if !checked {
				continue
			}
			if got := d.Annotations[v1alpha1.AnnotationPlacement]; got != want {
				o.see("%s was placed on %s and is on %s", d.Name, want, got)
			}
			if d.Status.ObservedGeneration > observed[d.Name] {
				o.see("generation %d of %s is said to be observed everywhere", d.Status.ObservedGeneration, d.Name)
			}
		}
	})
	begun := false
	pods := framework.Watch([]*framework.Side{o.Logical}, func(now map[string][]*corev1.Pod) {
		for _, name := range []string{"far", "kept", "both", "grown"} {
			var got []types.UID
			for _, pod := range now["logical"] {
				if pod.Labels["app"] == name && pod.Spec.NodeName == "west" && pod.DeletionTimestamp == nil {
					got = append(got, pod.UID)
				}
			}
			slices.Sort(got)
			if same := slices.Equal(got, o.pods[name]); begun && !same {
				o.see("the pods of %s in west are shown as %v, want %v", name, got, o.pods[name])
			}
		}
		count := 0
		for _, name := range []string{"far", "kept", "both", "grown", "going"} {
			count += len(o.pods[name])
		}
		begun = begun || len(now["logical"]) >= count
	})
	return func() {
		deployments()
		pods()
		o.mu.Lock()
		defer o.mu.Unlock()
		slices.Sort(o.wrong)
		for _, wrong := range slices.Compact(o.wrong) {
			o.Error(wrong)
		}
	}
}

// awaitSilence waits until the cluster is told to be silent, in words.
func (o *outage) awaitSilence() {
	o.Helper()
	c := framework.Await(o.Logical, "west", "is silent", membership.Readiness(metav1.ConditionUnknown))
	ready := meta.FindStatusCondition(c.Status.Conditions, v1alpha1.ClusterReady)
	expect.Says(o.T, ready.Message, "does not answer", "https://127.0.0.1:", `"west"`)
	if ready.Reason != "Unreachable" {
		o.Errorf("the reason is %q, want Unreachable", ready.Reason)
	}
	framework.Await(o.Logical, "west", "is shown as silent", func(n *corev1.Node) bool {
		return slices.ContainsFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool {
			return c.Type == corev1.NodeReady && c.Status == corev1.ConditionUnknown
		})
	})
	expect.Says(o.T, o.Logical.Kubectl("get", "nodes", "west"), "NotReady")
	for line := range strings.Lines(o.Logical.CLI("cluster", "list")) {
		if fields := strings.Fields(line); fields[0] == "west" && fields[1] != "Unknown" || fields[0] == "east" && fields[1] != "True" {
			o.Errorf("the list says %q", line)
		}
	}
}

// change changes what the silent cluster runs, and deletes things that it has.
func (o *outage) change() {
	o.Helper()
	o.Logical.Kubectl("set", "image", "deployment/both", "web=web:2")
	o.Logical.Kubectl("scale", "deployment/grown", "--replicas=4")
	o.Logical.Kubectl("patch", "configmap", "settings", "-p", `{"data":{"color":"green"}}`)
	o.Logical.Kubectl("delete", "deployment", "going", "--wait=false")
	o.Logical.Kubectl("delete", "namespace", o.doomed.Namespace, "--wait=false")
	framework.Await(o.East, "both", "has the new image", func(d *appsv1.Deployment) bool {
		return framework.ImageOf(d) == "web:2" && expect.Available(*d.Spec.Replicas)(d)
	})
	if r := o.Logical.Try("rollout", "status", "deployment/both", "--timeout=2s"); r.Code == 0 {
		o.Errorf("it reads as rolled out: %s", r)
	}
}

// work does what works elsewhere: everything.
func (o *outage) work(name string) {
	o.Helper()
	o.Logical.Apply(manifests.Pinned(manifests.Deployment(name, 2), "east"))
	expect.RolledOut(o.Scenario, name, 2)
	replicas := *framework.ReadDeployment(o.Scenario, "near").Spec.Replicas + 1
	o.Logical.Kubectl("scale", "deployment/near", fmt.Sprintf("--replicas=%d", replicas))
	expect.RolledOut(o.Scenario, "near", replicas)
	o.Logical.Kubectl("logs", "deployment/near")
	expect.Says(o.T, o.Logical.Kubectl("exec", "deployment/near", "--", "echo", "hello"), "hello")
	o.Logical.Kubectl("delete", "deployment", name, "--timeout=60s")
	framework.AwaitGone[*appsv1.Deployment](o.East, name)
}

// place checks that nothing new goes where nobody answers.
func (o *outage) place(name string) {
	o.Helper()
	o.Logical.Apply(manifests.Pinned(manifests.Deployment(name, 2), "*"))
	framework.Await(o.Logical, name, "is placed where somebody answers", expect.PlacedOn(o.Scenario, "east"))
	expect.RolledOut(o.Scenario, name, 2)
}

// waiting checks that what was deleted waits for the cluster that has it.
func (o *outage) waiting() {
	o.Helper()
	framework.Await(o.Logical, "going", "is being deleted", func(d *appsv1.Deployment) bool { return d.DeletionTimestamp != nil })
	framework.Await(o.doomed.Logical, "web", "is being deleted", func(d *appsv1.Deployment) bool { return d.DeletionTimestamp != nil })
	framework.Await(o.doomed.Logical, o.doomed.Namespace, "says what it waits for", func(n *corev1.Namespace) bool {
		return slices.ContainsFunc(n.Status.Conditions, func(c corev1.NamespaceCondition) bool {
			return c.Type == corev1.NamespaceFinalizersRemaining && c.Status == corev1.ConditionTrue &&
				strings.Contains(c.Message, v1alpha1.FinalizerProjection)
		})
	})
}

// converge waits until everything is as it should be after the cluster has returned.
func (o *outage) converge() {
	o.Helper()
	framework.Await(o.Logical, "west", "is ready", membership.Readiness(metav1.ConditionTrue))
	expect.RolledOut(o.Scenario, "grown", 4)
	framework.Await(o.West, "both", "has the image that was set meanwhile", func(d *appsv1.Deployment) bool { return framework.ImageOf(d) == "web:2" })
	expect.RolledOut(o.Scenario, "both", 6)
	framework.Await(o.West, "settings", "has the content that was set meanwhile", func(m *corev1.ConfigMap) bool { return m.Data["color"] == "green" })
	framework.AwaitGone[*appsv1.Deployment](o.Logical, "going")
	framework.AwaitGone[*appsv1.Deployment](o.West, "going")
	framework.AwaitGone[*corev1.Namespace](o.doomed.Logical, o.doomed.Namespace)
	framework.AwaitGone[*corev1.Namespace](o.doomed.West, o.doomed.Namespace)
	for _, name := range []string{"far", "kept"} {
		expect.RolledOut(o.Scenario, name, int32(len(o.pods[name])))
		if got := framework.PodUIDs(o.Scenario, o.West, name); !slices.Equal(got, o.pods[name]) {
			o.Errorf("the pods of %s were %v and are %v", name, o.pods[name], got)
		}
	}
	got := framework.PodUIDs(o.Scenario, o.West, "grown")
	for _, uid := range o.pods["grown"] {
		if !slices.Contains(got, uid) {
			o.Errorf("the pods of grown were %v and are %v", o.pods["grown"], got)
		}
	}
	o.Logical.Kubectl("logs", "deployment/far")
}

func TestAClusterThatHaltsLeavesEverythingElseWorking(t *testing.T) {
	o := begin(t)
	west := o.Environment.Clusters["west"]
	stop := o.look()
	t.Cleanup(func() { _ = west.ResumeAll() })
	if err := west.PauseAll(); err != nil {
		t.Fatal(err)
	}
	o.work("before") // Nobody has noticed yet.
	o.change()
	o.awaitSilence()
	o.work("during")
	o.place("all")
	o.waiting()
	stop()
	if err := west.ResumeAll(); err != nil {
		t.Fatal(err)
	}
	o.converge()
}

func TestAClusterThatCrashesIsSpared(t *testing.T) {
	framework.Long(t)
	o := begin(t)
	west := o.Environment.Clusters["west"]
	stop := o.look()
	if err := west.Kill(stock.APIServer); err != nil {
		t.Fatal(err)
	}
	restored := false
	t.Cleanup(func() {
		if !restored {
			restore(o.Scenario, west)
		}
	})
	o.change()
	o.awaitSilence()
	stop()

	// A manifold that starts meanwhile has never heard the cluster, and must not take that for an empty one.
	if err := o.Environment.Manifold.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := o.Environment.Manifold.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	stop = o.look()
	o.work("after")
	o.place("all")
	o.awaitSilence()
	o.waiting()
	stop()
	if err := revive(t.Context(), west); err != nil {
		t.Fatal(err)
	}
	restored = true
	o.converge()
}

// quick has the pods of a Deployment end at once. Kubernetes waits for half of the time that pods may take before it looks again at a
// namespace that is deleted.
func quick(manifest string) string {
	return manifests.Edited(manifest, func(d *appsv1.Deployment) { d.Spec.Template.Spec.TerminationGracePeriodSeconds = new(int64) })
}
