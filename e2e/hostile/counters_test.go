package hostile

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/manifold-dev/manifold/e2e/framework"
	"github.com/manifold-dev/manifold/e2e/framework/expect"
	"github.com/manifold-dev/manifold/e2e/framework/liar"
	"github.com/manifold-dev/manifold/pkg/summary"
)

// shares are objects of every kind that has a status above, of which west has a part by right.
func (a *arena) shares() []resourceOf {
	a.Helper()
	out := []resourceOf{deployments, statefulSets, daemonSets, controllers, replicaSets, jobs, services, ingresses, claims, budgets, quotas}
	for _, kind := range summary.Kinds() {
		found := false
		for _, of := range out {
			found = found || of == kind.Resource
		}
		if !found {
			a.Fatalf("%s have a status above and are not tried here: add them", kind.Resource.Resource)
		}
	}
	for _, of := range out {
		obj := manifest(of, "lies", honestImage)
		selectOwn(of, obj)
		switch of {
		case jobs:
			set(obj, false, "spec", "suspend")
		case services, ingresses, claims, budgets, quotas: // these follow
		default:
			pin(obj, "east,west")
		}
		if of == claims {
			pin(obj, "west")
		}
		if _, divided, _ := unstructured.NestedFieldNoCopy(obj.Object, "spec", "replicas"); divided {
			set(obj, int64(2), "spec", "replicas")
		}
		if of == jobs {
			pin(obj, "west")
		}
		if of == services || of == budgets {
			field := []string{"spec", "selector"}
			if of == budgets {
				field = append(field, "matchLabels")
			}
			set(obj, map[string]any{"app": estateName, "kind": deployments.Resource}, field...)
		}
		a.create(object{resource: of, manifest: obj.Object})
	}
	framework.Await(a.Logical, "lies", "runs", expect.Available(2))
	framework.Await(a.Logical, "lies", "runs", func(s *appsv1.StatefulSet) bool { return s.Status.ReadyReplicas == 2 })
	framework.Await(a.Logical, "lies", "runs", func(d *appsv1.DaemonSet) bool { return d.Status.NumberReady >= 2 })
	framework.Await(a.Logical, "lies", "runs", func(rs *appsv1.ReplicaSet) bool { return rs.Status.ReadyReplicas == 2 })
	framework.Await(a.Logical, "lies", "runs", func(rc *corev1.ReplicationController) bool { return rc.Status.ReadyReplicas == 2 })
	return out
}

// TestCountersStayWithinWhatWasAsked has west say of what it runs by right that it has as many of it as numbers go, or less than none, since
// ever or to come.
func TestCountersStayWithinWhatWasAsked(t *testing.T) {
	framework.Long(t)
	a := enter(t)
	kinds := a.shares()
	// lie returns an object as west has it, with a status in which every number is another, and every field is there.
	lie := func(number int64) func(*unstructured.Unstructured) bool {
		return func(obj *unstructured.Unstructured) bool {
			if obj.GetNamespace() != a.Namespace || obj.GetName() != "lies" {
				return true
			}
			status, _ := obj.Object["status"].(map[string]any)
			if status == nil {
				status = map[string]any{}
			}
			for _, field := range counters[obj.GetKind()] {
				status[field] = int64(0)
			}
			status = inflated(status, number).(map[string]any)
			delete(status, "loadBalancer")
			obj.Object["status"] = status
			return true
		}
	}
	for _, number := range []int64{2147483647, -1, -2147483648, 1000} {
		t.Run(fmt.Sprint(number), func(t *testing.T) {
			a := a.within(t)
			var stops []func()
			for _, of := range kinds {
				stops = append(stops, a.west.Change(of.GroupResource(), lie(number)))
			}
			defer func() {
				for _, stop := range stops {
					stop()
				}
			}()
			a.told(a.Logical, "an event names who is doubted", func(e *corev1.Event) bool {
				return e.Reason == "ReportDoubted" && strings.Contains(e.Message, `"west"`) && strings.Contains(e.Message, fmt.Sprint(number))
			})
			a.unharmed()
			for _, of := range kinds {
				obj := a.getIn(a.Environment.Logical, of, a.Namespace, "lies")
				if status, found := obj.Object["status"].(map[string]any); found {
					a.modest(of, status)
				}
				if text := obj.GetAnnotations()["manifold.dev/status"]; text != "" {
					breakdown, err := summary.ParseBreakdown(text)
					if err != nil {
						t.Fatal(err)
					}
					for cluster, said := range breakdown {
						for _, n := range []int32{said.Replicas, said.Ready, said.Available, said.Updated, said.Succeeded} {
							if n < 0 || int64(n) > mostOf(of, "replicas") {
								t.Errorf("%s: of cluster %s it says %+v", of.Resource, cluster, said)
							}
						}
					}
				}
			}
		})
	}
	framework.Await(a.Logical, "lies", "is as it was", expect.Available(2))
	framework.Await(a.Logical, "lies", "is as it was", func(s *appsv1.StatefulSet) bool { return s.Status.ReadyReplicas == 2 })
	a.unharmed()
}

// mostOf is what no counter exceeds here: what was asked for, and what goes beyond it in a rollout, in both clusters. Nothing above says how many
// nodes a cluster has, or how many pods have failed there or are ending: of these, a million in each cluster can be.
func mostOf(of resourceOf, field string) int64 {
	if of == daemonSets || strings.HasPrefix(field, "terminating") || field == "failed" || field == "collisionCount" {
		return 2 << 20
	}
	return 20
}

// counters are fields that a status may leave out.
var counters = map[string][]string{
	"Deployment":            {"replicas", "readyReplicas", "availableReplicas", "updatedReplicas", "unavailableReplicas", "terminatingReplicas"},
	"ReplicaSet":            {"replicas", "readyReplicas", "availableReplicas", "fullyLabeledReplicas", "terminatingReplicas"},
	"StatefulSet":           {"replicas", "readyReplicas", "availableReplicas", "updatedReplicas", "currentReplicas", "collisionCount"},
	"ReplicationController": {"replicas", "readyReplicas", "availableReplicas", "fullyLabeledReplicas"},
	"DaemonSet": {"desiredNumberScheduled", "currentNumberScheduled", "numberReady", "numberAvailable", "numberUnavailable", "numberMisscheduled",
		"updatedNumberScheduled", "collisionCount"},
	"Job":                 {"active", "ready", "succeeded", "failed", "terminating"},
	"PodDisruptionBudget": {"currentHealthy", "desiredHealthy", "disruptionsAllowed", "expectedPods"},
}

// modest checks that no number of a status goes beyond what was asked for.
func (a *arena) modest(of resourceOf, status map[string]any) {
	a.Helper()
	for field, value := range status {
		if field == "observedGeneration" {
			continue
		}
		if n, ok := value.(int64); ok && (n < 0 || n > mostOf(of, field)) {
			a.Errorf("%s: the status says %s is %d", of.Resource, field, n)
		}
	}
}

// TestWhatIsDeletedStaysDeleted has west go on showing, and show anew, what was deleted above: the object, its revisions and its pods, under
// their UIDs, while another of the name runs elsewhere.
func TestWhatIsDeletedStaysDeleted(t *testing.T) {
	a := enter(t)
	a.create(deployment("ghost", 1, "west"))
	ghostSet := pin(manifest(statefulSets, "ghosts", honestImage), "west")
	a.create(object{resource: statefulSets, manifest: ghostSet.Object})
	a.create(object{resource: services, manifest: manifest(services, "ghost", honestImage).Object})
	framework.Await(a.Logical, "ghost", "runs", expect.Available(1))
	framework.Await(a.Logical, "ghosts", "runs", func(s *appsv1.StatefulSet) bool { return s.Status.ReadyReplicas == 1 })
	framework.Await(a.Logical.In(a.Namespace), "ghost", "is there", framework.Exists[*corev1.Service])
	west := a.Environment.Physical["west"]
	a.Logical.Poll("the Service is in west", func() error {
		_, err := west.Kube.CoreV1().Services(a.Namespace).Get(a.Context(), "ghost", metav1.GetOptions{})
		return err
	})
	ghosts := map[resourceOf][]*unstructured.Unstructured{}
	for _, of := range []resourceOf{deployments, replicaSets, statefulSets, revisions, pods, services} {
		for _, obj := range a.list(west, of, "") {
			if strings.HasPrefix(obj.GetName(), "ghost") {
				ghosts[of] = append(ghosts[of], obj.DeepCopy())
			}
		}
		if len(ghosts[of]) == 0 {
			t.Fatalf("west has no %s of them", of.Resource)
		}
	}
	a.Logical.Kubectl("delete", "deployment/ghost", "statefulset/ghosts", "service/ghost", "--timeout=60s")
	framework.AwaitGone[*appsv1.Deployment](a.Logical, "ghost")
	// Others of their names are in east.
	second := deployment("ghost", 1, "east")
	a.create(second)
	framework.Await(a.Logical, "ghost", "runs", expect.Available(1))
	others := a.podsOf("ghost")
	stop := a.invent(ghosts)
	defer stop()
	a.Logical.Poll("west is told to delete them again", func() error {
		if len(a.asked(func(sent liar.Sent) bool {
			return sent.Method == "DELETE" && strings.HasSuffix(strings.Split(sent.Path, "?")[0], "/deployments/ghost")
		})) < 2 {
			return errors.New("it was not")
		}
		return nil
	})
	a.unharmed()
	a.onlyThese(others)
	for _, name := range []string{"ghosts"} {
		framework.AwaitGone[*appsv1.StatefulSet](a.Logical, name)
	}
	stop()
	a.unharmed()
	a.onlyThese(others)
}

// onlyThese checks that the pods of an app are those that there were, and that its Deployment counts them alone.
func (a *arena) onlyThese(want []*corev1.Pod) {
	a.Helper()
	app := want[0].Labels["app"]
	got := a.podsOf(app)
	if len(got) != len(want) || got[0].UID != want[0].UID || got[0].Spec.NodeName != "east" || got[0].DeletionTimestamp != nil {
		a.Errorf("%d pods of %s are shown, the first %s in %s, want %s in east", len(got), app, got[0].UID, got[0].Spec.NodeName, want[0].UID)
	}
	d := a.getIn(a.Environment.Logical, deployments, a.Namespace, app)
	if text := d.GetAnnotations()["manifold.dev/status"]; strings.Contains(text, "west") {
		a.Errorf("Deployment %s is said to be %s", app, text)
	}
}
