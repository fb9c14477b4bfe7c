package placement

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/e2e/framework"
	"github.com/manifold-dev/manifold/e2e/framework/expect"
	"github.com/manifold-dev/manifold/e2e/framework/manifests"
	"github.com/manifold-dev/manifold/pkg/placement"
)

// brief tolerates unschedulable pods for so short a time that a test can wait for it, and fills east before west.
const brief = `apiVersion: manifold.dev/v1alpha1
kind: PlacementPolicy
metadata:
  name: brief
spec:
  unschedulableTolerationSeconds: 1
  groups:
  - name: first
    names: [east]
  - name: second
    names: [west]
  division:
    type: Divide
    by: Packing
`

// inRegion has pods run on nodes of a region alone: those of the cluster of that name.
func inRegion(region string) func(*appsv1.Deployment) {
	return func(d *appsv1.Deployment) {
		d.Spec.Template.Spec.NodeSelector = map[string]string{corev1.LabelTopologyRegion: region}
	}
}

// awaitNote waits for an event about a Deployment that says something.
func awaitNote(s *framework.Scenario, name, says string) {
	s.Helper()
	framework.AwaitList(s.Logical, "", "an event says "+says, func(events []*corev1.Event) bool {
		return slices.ContainsFunc(events, func(e *corev1.Event) bool {
			return e.InvolvedObject.Name == name && strings.Contains(e.Message, says)
		})
	})
}

// TestWhatAClusterCannotScheduleGoesElsewhere has clusters whose nodes have room by their sum, and no node that a pod fits on.
func TestWhatAClusterCannotScheduleGoesElsewhere(t *testing.T) {
	framework.Long(t)
	s := undisturbed(t) // one of its workloads takes most of what east has
	s.Logical.Apply(brief)

	t.Run("no node of the cluster is selected", func(t *testing.T) {
		s := s.Subtest(t)
		s.Logical.Apply(manifests.Edited(manifests.Deployment("selects", 2), inRegion("west")))
		framework.Await(s.Logical, "selects", "goes where its nodes are", expect.PlacedOn(s, "west"))
		d := expect.RolledOut(s, "selects", 2)
		expect.Shares(s, "selects", placement.Decision{"west": {Replicas: 2}})
		failures, err := placement.ParseFailures(d.Annotations[v1alpha1.AnnotationPlacement])
		if err != nil || failures["east"].Times != 1 {
			t.Errorf("remembered are %v, %v, want one failure of east", failures, err)
		}
		expect.Says(t, s.Logical.CLI("explain", "deployment/selects"), "east", "could not run some of the pods recently")

		// Replicas that are added do not go back to where they could not run.
		s.Logical.Kubectl("scale", "deployment/selects", "--replicas=3")
		if got, want := framework.DecisionOf(s, framework.ReadDeployment(s, "selects")), (placement.Decision{"west": {Replicas: 3}}); !got.Equal(want) {
			t.Errorf("with one more placed on %s, want %s", got, want)
		}
		expect.RolledOut(s, "selects", 3)
	})
	t.Run("no node of the cluster has enough for one more", func(t *testing.T) {
		s := s.Subtest(t)
		// Three nodes of 32 processors have 96, and room for three of these.
		s.Logical.Apply(asking(manifests.Deployment("large", 4), "21"))
		want := placement.Decision{"east": {Replicas: 3}, "west": {Replicas: 1}}
		framework.Await(s.Logical, "large", "is divided as its nodes allow", func(d *appsv1.Deployment) bool { return framework.DecisionOf(s, d).Equal(want) })
		expect.RolledOut(s, "large", 4)
		expect.Shares(s, "large", want)
		s.Logical.Kubectl("delete", "deployment", "large")
	})
	t.Run("no node of any cluster is selected", func(t *testing.T) {
		s := s.Subtest(t)
		s.Logical.Apply(manifests.Edited(manifests.Deployment("nowhere", 1), inRegion("mars")))
		awaitNote(s, "nowhere", "1 replica is unschedulable on west (0/3 nodes are available")
		awaitNote(s, "nowhere", "and no other cluster can take them")
		framework.Await(s.Logical, "nowhere", "stays where it came last", expect.PlacedOn(s, "west"))
		// A rolling update to a template that fits brings it to run.
		s.Logical.Apply(manifests.Edited(manifests.Deployment("nowhere", 1), inRegion("west")))
		expect.RolledOut(s, "nowhere", 1)
	})
	t.Run("a Job and a StatefulSet go whole", func(t *testing.T) {
		s := s.Subtest(t)
		west := map[string]string{corev1.LabelTopologyRegion: "west"}
		s.Logical.Apply(manifests.Job("sums", 2, 2, func(job *batchv1.Job) { job.Spec.Template.Spec.NodeSelector = west }),
			manifests.Database("db", 2, func(set *appsv1.StatefulSet) { set.Spec.Template.Spec.NodeSelector = west }))
		framework.Await(s.Logical, "sums", "is complete", expect.JobIs(batchv1.JobComplete))
		framework.Await(s.Logical, "db", "runs", expect.SetAvailable(2))
		awaitNote(s, "sums", `moved off cluster "east", which has no node for some of the pods`)
		awaitNote(s, "db", `moved off cluster "east", which has no node for some of the pods`)
		framework.AwaitGone[*batchv1.Job](s.East, "sums")
		framework.AwaitGone[*appsv1.StatefulSet](s.East, "db")
	})
	t.Run("a pin is obeyed", func(t *testing.T) {
		s := s.Subtest(t)
		s.Logical.Apply(manifests.Pinned(manifests.Edited(manifests.Deployment("stays", 1), inRegion("west")), "east"))
		awaitNote(s, "stays", "1 replica is unschedulable on east")
		awaitNote(s, "stays", "where it is pinned")
		if got, want := framework.DecisionOf(s, framework.ReadDeployment(s, "stays")), (placement.Decision{"east": {Replicas: 1}}); !got.Equal(want) {
			t.Errorf("placed on %s, want %s", got, want)
		}
	})
}

// TestWhatHasAnIdentityGoesElsewhereBeforeItHasRun has pods that are no ordinary replicas.
func TestWhatHasAnIdentityGoesElsewhereBeforeItHasRun(t *testing.T) {
	framework.Long(t)
	s := suite.Scenario(t)
	s.Logical.Apply(brief, `apiVersion: manifold.dev/v1alpha1
kind: PlacementPolicy
metadata:
  name: ranges
spec:
  priority: 1
  workloads: {kinds: [StatefulSet], labelSelector: {matchLabels: {divided: "true"}}}
  unschedulableTolerationSeconds: 1
  division: {type: Divide, by: Weights, weights: {east: 2, west: 1}}
`)
	s.Disks(s.East, 0) // a class, and no volume
	s.Disks(s.West, 2)
	s.Logical.Apply(`apiVersion: v1
kind: Pod
metadata: {name: task}
spec:
  nodeSelector: {`+corev1.LabelTopologyRegion+`: west}
  terminationGracePeriodSeconds: 1
  containers: [{name: app, image: "app:1"}]
`, manifests.Database("db", 2, manifests.WithDisks(s)), manifests.Database("range", 3, func(set *appsv1.StatefulSet) {
		set.Labels = map[string]string{"divided": "true"}
		set.Spec.Template.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
				TopologyKey: corev1.LabelTopologyRegion, LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "range"}},
			}},
		}}
	}))
	uid := framework.Await(s.Logical, "task", "is there", func(*corev1.Pod) bool { return true }).UID

	t.Run("a bare pod", func(t *testing.T) {
		above := framework.Await(s.Logical, "task", "runs", expect.Ready)
		framework.AwaitGone[*corev1.Pod](s.East, "task")
		below := framework.Await(s.West, "task", "runs", expect.Ready)
		if above.UID != uid || above.Spec.NodeName != "west" || above.Annotations[v1alpha1.AnnotationPodUID] != string(below.UID) {
			t.Errorf("it is %s on %q as %v, want %s on west as %s", above.UID, above.Spec.NodeName, above.Annotations, uid, below.UID)
		}
		awaitNote(s, "task", `moved off cluster "east", which has no node for some of the pods`)
	})
	t.Run("a bare pod whose user chooses another cluster", func(t *testing.T) {
		waitsIn := func(cluster string) func(*corev1.Pod) bool {
			return func(p *corev1.Pod) bool { return p.Annotations[v1alpha1.AnnotationPodCluster] == cluster }
		}
		s.Logical.Apply(`apiVersion: v1
kind: Pod
metadata: {name: patient, annotations: {` + v1alpha1.AnnotationClusters + `: west}}
spec:
  nodeSelector: {` + corev1.LabelTopologyRegion + `: mars}
  containers: [{name: app, image: "app:1"}]
`)
		before := framework.Await(s.Logical, "patient", "waits in west", waitsIn("west"))
		s.Logical.Kubectl("annotate", "pod", "patient", v1alpha1.AnnotationClusters+"=east", "--overwrite")
		after := framework.Await(s.Logical, "patient", "waits in east", waitsIn("east"))
		framework.AwaitGone[*corev1.Pod](s.West, "patient")
		if after.UID != before.UID {
			t.Errorf("it is another pod above: %s, was %s", after.UID, before.UID)
		}
		s.Logical.Kubectl("delete", "pod", "patient")
		framework.AwaitGone[*corev1.Pod](s.East, "patient")
	})
	t.Run("a StatefulSet whose claims have no volume", func(t *testing.T) {
		framework.Await(s.Logical, "db", "runs", expect.SetAvailable(2))
		framework.AwaitGone[*appsv1.StatefulSet](s.East, "db")
		framework.Await(s.Logical, "data-db-1", "is bound", expect.Bound)
	})
	t.Run("the end of a range", func(t *testing.T) {
		// Of two in a region only one is scheduled. What is left of the three has no cluster of its own.
		awaitNote(s, "range", "1 replica is unschedulable on west")
		set := framework.Await(s.Logical, "range", "has two replicas that run", func(set *appsv1.StatefulSet) bool { return set.Status.ReadyReplicas == 2 })
		got, err := placement.ParseDecision(set.Annotations[v1alpha1.AnnotationPlacement])
		if want := (placement.Decision{"east": {Replicas: 1}, "west": {Replicas: 2, Start: 1}}); err != nil || !got.Equal(want) {
			t.Errorf("it is on %s, %v, want %s", got, err, want)
		}
	})
}

// TestWhatAClusterRefusesGoesElsewhere has an admin of a cluster bound what others may run there.
func TestWhatAClusterRefusesGoesElsewhere(t *testing.T) {
	s := suite.Scenario(t)
	s.Logical.Apply(brief, manifests.Deployment("web", 1))
	expect.RolledOut(s, "web", 1)
	s.East.Kubectl("create", "quota", "tight", "--hard=pods=1")
	framework.Await(s.East, "tight", "is in force", expect.Used(corev1.ResourcePods, "1"))
	s.Logical.Kubectl("scale", "deployment/web", "--replicas=3")
	s.Logical.Apply(manifests.Database("db", 2), manifests.Job("sums", 2, 2))
	expect.RolledOut(s, "web", 3)
	expect.Shares(s, "web", placement.Decision{"east": {Replicas: 1}, "west": {Replicas: 2}})
	awaitNote(s, "web", `moved off cluster "east", which refuses some of the pods (exceeded quota: tight, requested: pods=1, used: pods=1, limited: pods=1)`)
	expect.Says(t, s.Logical.CLI("explain", "deployment/web"), "east", "could not run some of the pods recently")
	framework.Await(s.Logical, "db", "runs", expect.SetAvailable(2))
	// By what the server decides, anybody may read who has logged in.
	expect.Says(t, s.Logical.Kubectl("get", "configmap", "manifold", "-n", "kube-public", "--as=jane", "--as-group=system:authenticated", "-o", "yaml"),
		"unschedulable-toleration: 2m0s")
	framework.Await(s.Logical, "sums", "is complete", expect.JobIs(batchv1.JobComplete))
	framework.AwaitGone[*appsv1.StatefulSet](s.East, "db")
	framework.AwaitGone[*batchv1.Job](s.East, "sums")

	// What every cluster refuses stays, and says so.
	s.West.Kubectl("create", "quota", "tight", "--hard=pods=4")
	s.Logical.Kubectl("scale", "deployment/web", "--replicas=4")
	awaitNote(s, "web", "1 replica is refused by west (exceeded quota: tight")
}

const classes = `apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata:
  name: e2e-urgent
value: 1000
`

// urgent lets what is labelled take room of lower priority; nothing waits for long.
const urgent = `apiVersion: manifold.dev/v1alpha1
kind: PlacementPolicy
metadata:
  name: urgent
spec:
  workloads:
    labelSelector:
      matchLabels: {urgent: "true"}
  preemptionPolicy: PreemptLowerPriority
---
apiVersion: manifold.dev/v1alpha1
kind: PlacementPolicy
metadata:
  name: patient
spec:
  priority: -1
  unschedulableTolerationSeconds: 1
  division:
    type: Divide
`

// TestHigherPriorityTakesRoomOfLower fills both clusters, and then wants room for something that matters more.
func TestHigherPriorityTakesRoomOfLower(t *testing.T) {
	framework.Long(t)
	s := undisturbed(t)
	for _, side := range []*framework.API{s.Environment.Logical, s.Environment.Physical["east"], s.Environment.Physical["west"]} {
		class := &schedulingv1.PriorityClass{}
		if err := yaml.UnmarshalStrict([]byte(classes), class); err != nil {
			t.Fatal(err)
		}
		client := side.Kube.SchedulingV1().PriorityClasses()
		if _, err := client.Create(s.Context(), class, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			ctx, cancel := framework.AfterTest()
			defer cancel()
			_ = client.Delete(ctx, class.Name, metav1.DeleteOptions{})
		})
	}
	s.Logical.Apply(urgent)
	other := map[string]string{"east": "west", "west": "east"}
	important := func(name string, change func(*appsv1.Deployment)) string {
		return manifests.Edited(asking(manifests.Deployment(name, 1), "20"), func(d *appsv1.Deployment) {
			d.Spec.Template.Spec.PriorityClassName = "e2e-urgent"
			change(d)
		})
	}
	// Each of the six nodes has 32 processors. One of them is left, in the cluster that is not wanted.
	s.Logical.Apply(asking(manifests.Deployment("batch", 5), "30"))
	full := "east"
	if framework.DecisionOf(s, expect.RolledOut(s, "batch", 5))["west"].Replicas == 3 {
		full = "west"
	}
	fewest := expect.WatchReady(s, "batch", 5)
	s.Logical.TryInput(manifests.Pinned(important("first", func(d *appsv1.Deployment) { d.Labels["urgent"] = "true" }), full), "apply", "-f", "-")
	expect.RolledOut(s, "first", 1)
	expect.Shares(s, "batch", placement.Decision{full: {Replicas: 2}, other[full]: {Replicas: 3}})
	awaitNote(s, "first", "waits for room on "+full+" until replicas of Deployment "+s.Namespace+"/batch, which has a lower priority, run elsewhere")
	awaitNote(s, "batch", "which makes room for Deployment "+s.Namespace+"/first, which has a higher priority")
	if few := fewest(); few < 5 {
		t.Errorf("once there were only %d ready pods of batch, want 5 at every moment", few)
	}
	s.Logical.Kubectl("delete", "deployment", "first", "--timeout=60s")
	s.Logical.Kubectl("scale", "deployment/batch", "--replicas=6")
	expect.RolledOut(s, "batch", 6)
	expect.Shares(s, "batch", placement.Decision{"east": {Replicas: 3}, "west": {Replicas: 3}})

	s.Logical.TryInput(important("polite", func(*appsv1.Deployment) {}), "apply", "-f", "-")
	awaitNote(s, "polite", "0/2 clusters can run it: 2 lack cpu (need 20, free ")
	s.Logical.Kubectl("delete", "deployment", "polite")

	web := important("web", func(d *appsv1.Deployment) { d.Labels["urgent"] = "true" })
	for _, name := range []string{"east", "west"} { // what is simulated goes by this
		framework.Await(s.Logical, name, "tells what its pods request", func(c *v1alpha1.Cluster) bool {
			requested := c.Status.Requested[corev1.ResourceCPU]
			return requested.Value() >= 90
		})
	}
	foreseen := simulated(s, web)
	s.Logical.Apply(web)
	d := expect.RolledOut(s, "web", 1)
	home := framework.DecisionOf(s, d).Clusters()[0]
	for how, says := range foreseen {
		expect.Says(t, says, "Placed:", "1 on "+home, "it takes room of lower priority on "+home+" (Deployment "+s.Namespace+"/batch)",
			"Preempted:", "takes the room of 1 replica of priority 0 on "+home)
		if t.Failed() {
			t.Logf("that is what is simulated %s", how)
		}
	}
	awaitNote(s, "web", "it takes room of lower priority on "+home+" (Deployment "+s.Namespace+"/batch)")
	awaitNote(s, "batch", "Deployment "+s.Namespace+"/web of priority 1000 takes the room of 1 replica of priority 0 on "+home)
	awaitNote(s, "batch", "of higher priority there: Deployment "+s.Namespace+"/web), and no other cluster can take them")

	// With one replica less, all have room again, and none that runs moves for that.
	s.Logical.Kubectl("scale", "deployment/batch", "--replicas=5")
	expect.RolledOut(s, "batch", 5)
	expect.Shares(s, "batch", placement.Decision{home: {Replicas: 2}, other[home]: {Replicas: 3}})
	s.Logical.Kubectl("delete", "deployment", "batch", "web", "--timeout=60s")
}

// simulated says where a manifest would run, by what the logical cluster holds, and by what kubectl writes of that to a file.
func simulated(s *framework.Scenario, manifest string) map[string]string {
	s.Helper()
	dir := s.T.TempDir()
	file, state := filepath.Join(dir, "manifest.yaml"), filepath.Join(dir, "state.yaml")
	held := s.Logical.Kubectl("get", "clusters,clusterplacementpolicies,placementpolicies,namespaces,priorityclasses,deployments", "-A", "-o", "yaml")
	for path, content := range map[string]string{file: manifest, state: held} {
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			s.T.Fatal(err)
		}
	}
	return map[string]string{
		"by the logical cluster": s.Logical.CLI("simulate", "-f", file),
		"by a file":              s.Logical.CLI("simulate", "-f", file, "--clusters", state),
	}
}
