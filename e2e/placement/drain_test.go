package placement

import (
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/e2e/framework"
	"github.com/manifold-dev/manifold/e2e/framework/expect"
	"github.com/manifold-dev/manifold/e2e/framework/manifests"
	"github.com/manifold-dev/manifold/pkg/placement"
)

// drained waits until the drain of a cluster says so, with that in its message.
func drained(s *framework.Scenario, cluster, reason, message string) {
	s.Helper()
	framework.Await(s.Logical, cluster, "tells of its drain: "+reason, func(c *v1alpha1.Cluster) bool {
		condition := meta.FindStatusCondition(c.Status.Conditions, v1alpha1.ClusterDrained)
		return condition != nil && condition.Reason == reason && strings.Contains(condition.Message, message)
	})
}

func undrain(s *framework.Scenario, cluster string) {
	s.Helper()
	s.Cleanup(func() { s.Environment.CleanupCLI(s.T, "cluster", "uncordon", cluster) })
}

func TestADrainMovesEverythingOffWithoutAnOutage(t *testing.T) {
	s := suite.Fragile(t)
	undrain(s, "west")
	s.Logical.Apply(manifests.Pinned(manifests.Deployment("web", 4), "west"), manifests.Deployment("free", 2), manifests.Pinned(manifests.Deployment("both", 4), "east,west"))
	for name, replicas := range map[string]int32{"web": 4, "free": 2, "both": 4} {
		expect.RolledOut(s, name, replicas)
	}
	fewest := expect.WatchReady(s, "both", 4)

	// What may run nowhere else stays, and is told as soon as all else is gone: nobody waits an hour for it.
	r := s.Logical.TryCLI("cluster", "drain", "west", "--timeout", "1h")
	expect.Refused(t, r, `cluster "west" cannot be emptied`,
		"Deployment "+s.Namespace+`/web: pinned to "west" by annotation manifold.dev/clusters: unpin it or pin it elsewhere`,
		"manifold cluster uncordon west")
	drained(s, "west", v1alpha1.ReasonStuck, "1 cannot move: Deployment "+s.Namespace+"/web")
	expect.Shares(s, "both", placement.Decision{"east": {Replicas: 4}})
	expect.RolledOut(s, "web", 4)
	if few := fewest(); few < 4 {
		t.Errorf("once there were only %d ready pods in all clusters, want 4 at every moment", few)
	}
	expect.Says(t, s.Logical.Kubectl("get", "nodes", "west"), "SchedulingDisabled")

	// Once it may, it goes, and the drain ends.
	fewest = expect.WatchReady(s, "web", 4)
	s.Logical.Kubectl("annotate", "deployment", "web", v1alpha1.AnnotationClusters+"=east,west", "--overwrite")
	expect.Says(t, s.Logical.CLI("cluster", "drain", "west"), "cluster/west drained")
	if few := fewest(); few < 4 {
		t.Errorf("once there were only %d ready pods in all clusters, want 4 at every moment", few)
	}
	for _, name := range []string{"web", "both"} {
		expect.Shares(s, name, placement.Decision{"east": {Replicas: 4}})
		expect.RolledOut(s, name, 4)
		if left := framework.PodUIDs(s, s.West, name); len(left) > 0 {
			t.Errorf("west is drained and still has %d pods of %s", len(left), name)
		}
	}
	framework.AwaitList(s.Logical, "", "an event says what moved and why", func(events []*corev1.Event) bool {
		for _, e := range events {
			if e.Reason == "Placed" && strings.Contains(e.Message, `moved off cluster "west", which is being emptied`) {
				return true
			}
		}
		return false
	})

	// Afterwards the cluster is as it was, and nothing comes back by itself.
	expect.Says(t, s.Logical.CLI("cluster", "uncordon", "west"), "cluster/west uncordoned")
	framework.Await(s.Logical, "west", "is not being drained any more", func(c *v1alpha1.Cluster) bool {
		return !c.Spec.Unschedulable && len(c.Spec.Taints) == 0 && meta.FindStatusCondition(c.Status.Conditions, v1alpha1.ClusterDrained) == nil
	})
	s.Logical.Kubectl("scale", "deployment/web", "--replicas=8")
	framework.Await(s.Logical, "web", "uses the cluster again", expect.PlacedOn(s, "east", "west"))
	expect.RolledOut(s, "web", 8)
}

func TestADrainLetsJobsEndUnlessItIsForced(t *testing.T) {
	framework.Long(t)
	s := suite.Fragile(t)
	undrain(s, "west")
	s.Logical.Apply(manifests.Job("sums", 1, 1, manifests.JobOn("west"), manifests.Outcome("stay")))
	framework.Await(s.Logical, "sums", "has started", func(j *batchv1.Job) bool { return j.Status.Active == 1 && j.Status.StartTime != nil })
	s.Logical.Kubectl("annotate", "job", "sums", v1alpha1.AnnotationClusters+"-")

	expect.Says(t, s.Logical.CLI("cluster", "drain", "west", "--wait=false"), "cluster/west is being drained")
	drained(s, "west", v1alpha1.ReasonWaiting, "Job "+s.Namespace+"/sums: it has started, so it is not moved")
	expect.Refused(t, s.Logical.TryCLI("move", "job/sums", "--to", "east"), "a Job stays in the cluster where it was started")

	expect.Says(t, s.Logical.CLI("cluster", "drain", "west", "--force"), "cluster/west drained")
	framework.AwaitList(s.East, "job-name=sums", "the job starts over elsewhere", func(pods []*corev1.Pod) bool {
		return len(pods) == 1 && pods[0].Status.Phase == corev1.PodRunning
	})
	framework.Await(s.Logical, "sums", "is shown to run once", func(j *batchv1.Job) bool { return j.Status.Active == 1 && j.Status.Failed == 0 })
}

func TestADrainLeavesWhatHasVolumesUnlessItsUserGivesThemUp(t *testing.T) {
	framework.Long(t)
	s := suite.Fragile(t)
	undrain(s, "west")
	s.Disks(s.East, 1)
	s.Disks(s.West, 1)
	s.Logical.Apply(manifests.Database("db", 1, manifests.SetOn("west"), manifests.WithDisks(s)))
	expect.SetRolledOut(s, "db", 1)
	framework.Await(s.Logical, "data-db-0", "is bound", expect.Bound)
	s.Logical.Kubectl("annotate", "statefulset", "db", v1alpha1.AnnotationClusters+"-")

	expect.Says(t, s.Logical.CLI("cluster", "drain", "west", "--wait=false"), "cluster/west is being drained")
	drained(s, "west", v1alpha1.ReasonStuck, "StatefulSet "+s.Namespace+"/db: its volumes cannot move; to start with new volumes elsewhere, "+
		"set its annotation manifold.dev/volumes=recreate")
	expect.SetRolledOut(s, "db", 1)

	s.Logical.Kubectl("annotate", "statefulset", "db", v1alpha1.AnnotationVolumes+"="+v1alpha1.VolumesRecreate)
	expect.Says(t, s.Logical.CLI("cluster", "drain", "west"), "cluster/west drained")
	expect.Pods(s.East, "app=db", manifests.Ordinals("db", 0, 1))
	framework.Await(s.West, "data-db-0", "is left where it is", expect.Bound)
}

func TestMoveTellsItsStepsAndEndsWhenAllIsThere(t *testing.T) {
	s := suite.Scenario(t)
	s.Logical.Apply(manifests.Pinned(manifests.Deployment("web", 3), "east"))
	expect.RolledOut(s, "web", 3)
	fewest := expect.WatchReady(s, "web", 3)
	r := s.Logical.TryCLI("move", "deployment/web", "--to", "west")
	if few := fewest(); r.Code != 0 || few < 3 {
		t.Errorf("%d ready pods at the fewest, want 3; %s", few, r)
	}
	expect.Says(t, r.Stdout, "deployment/web moved")
	expect.Says(t, r.Stderr, "3 of 3 available in west")
	if strings.Contains(r.Stderr, "deprecated") {
		t.Errorf("the user who moves a workload is told of kinds that nobody asked for: %s", r)
	}
	expect.Shares(s, "web", placement.Decision{"west": {Replicas: 3}})
	// The Deployment has left east by then. Its pods are the garbage collector's there.
	expect.Pods(s.East, "app=web", nil)
	expect.Refused(t, s.Logical.TryCLI("move", "deployment/web", "--to", "east,"), "--to:")
	expect.Refused(t, s.Logical.TryCLI("move", "configmap/kube-root-ca.crt", "--to", "east"), "it is no workload")
}
