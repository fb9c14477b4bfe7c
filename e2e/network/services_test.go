package network

import (
	"maps"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/e2e/framework"
	"github.com/manifold-dev/manifold/e2e/framework/expect"
	"github.com/manifold-dev/manifold/e2e/framework/manifests"
)

// elsewhere selects the slices of a Service that lead to other clusters.
func elsewhere(service string) string {
	return discoveryv1.LabelServiceName + "=" + service + "," + discoveryv1.LabelManagedBy + "=" + v1alpha1.EndpointSlicesManager
}

// led writes where slices lead: addresses, sorted, with a "~" before those on standby.
func led(found []*discoveryv1.EndpointSlice) string {
	var out []string
	for _, slice := range found {
		for _, endpoint := range slice.Endpoints {
			standby := ""
			if !*endpoint.Conditions.Ready && *endpoint.Conditions.Serving && *endpoint.Conditions.Terminating {
				standby = "~"
			}
			out = append(out, standby+endpoint.Addresses[0])
		}
	}
	slices.Sort(out)
	return strings.Join(out, " ")
}

// leads waits until a cluster is led to these addresses of a Service in the others.
func leads(side *framework.Side, service, claim string, want ...string) {
	slices.Sort(want)
	framework.AwaitList(side, elsewhere(service), claim+": "+strings.Join(want, " "), func(found []*discoveryv1.EndpointSlice) bool {
		return led(found) == strings.Join(want, " ")
	})
}

// addressesOf waits for so many ready pods of an app in a cluster, and returns their addresses.
func addressesOf(side *framework.Side, app string, count int) []string {
	var out []string
	for _, pod := range framework.AwaitList(side, "app="+app, "its pods are ready", expect.ReadyPods(count)) {
		out = append(out, pod.Status.PodIP)
	}
	return out
}

func standby(addresses []string) []string {
	var out []string
	for _, address := range addresses {
		out = append(out, "~"+address)
	}
	return out
}

func ofType(want corev1.ServiceType) func(*corev1.Service) bool {
	return func(s *corev1.Service) bool {
		return s.Spec.Type == want && (s.Spec.Ports[0].NodePort != 0) == (want == corev1.ServiceTypeNodePort)
	}
}

const dbService = `apiVersion: v1
kind: Service
metadata: {name: db}
spec:
  type: NodePort
  selector: {app: db}
  ports: [{name: sql, port: 5432}]
`

func TestAServiceIsOneServiceInAllClustersOfANetwork(t *testing.T) {
	s := framework.NewScenario(t, meshed.Get(t))
	s.Logical.Apply(dbService, manifests.Pinned(manifests.Deployment("db", 2), "west"))
	expect.RolledOut(s, "db", 2)
	framework.Await(s.West, "db", "is on the nodes where its pods are", ofType(corev1.ServiceTypeNodePort))
	if found := s.East.Try("get", "namespace", s.Namespace); found.Code == 0 {
		t.Errorf("east knows of a namespace that it runs nothing of: %s", found)
	}
	west := addressesOf(s.West, "db", 2)

	s.Logical.Apply(manifests.Pinned(manifests.Deployment("api", 1), "east"))
	framework.Await(s.East, "db", "is to be reached from inside", ofType(corev1.ServiceTypeClusterIP))
	leads(s.East, "db", "it leads to west", west...)
	for _, slice := range framework.AwaitList(s.East, elsewhere("db"), "there is one", func(found []*discoveryv1.EndpointSlice) bool { return len(found) == 1 }) {
		for _, endpoint := range slice.Endpoints {
			if endpoint.NodeName != nil || endpoint.TargetRef != nil {
				t.Errorf("it names things of west: %+v", endpoint)
			}
		}
		s.East.Kubectl("patch", "endpointslice", slice.Name, "--type=json", "-p", `[{"op":"replace","path":"/endpoints/0/addresses/0","value":"192.0.2.66"}]`)
		leads(s.East, "db", "it is put back", west...)
		s.East.Kubectl("delete", "endpointslice", slice.Name)
		leads(s.East, "db", "it is made again", west...)
	}

	s.Logical.Kubectl("annotate", "deployment", "db", v1alpha1.AnnotationClusters+"=east,west", "--overwrite")
	s.Logical.Kubectl("scale", "deployment", "db", "--replicas=4")
	share := framework.DecisionOf(s, expect.RolledOut(s, "db", 4))
	east := addressesOf(s.East, "db", int(share["east"].Replicas))
	west = addressesOf(s.West, "db", int(share["west"].Replicas))
	framework.Await(s.East, "db", "is on the nodes there too", ofType(corev1.ServiceTypeNodePort))
	leads(s.East, "db", "the others are on standby", standby(west)...)
	leads(s.West, "db", "the others are on standby", standby(east)...)

	s.Logical.Kubectl("annotate", "service", "db", v1alpha1.AnnotationTraffic+"=Global")
	leads(s.East, "db", "it leads to all", west...)
	leads(s.West, "db", "it leads to all", east...)
	s.Logical.Kubectl("annotate", "service", "db", v1alpha1.AnnotationTraffic+"=Local", "--overwrite")
	leads(s.East, "db", "it leads nowhere else")
	leads(s.West, "db", "it leads nowhere else")
	expect.Refused(t, s.Logical.Try("annotate", "service", "db", v1alpha1.AnnotationTraffic+"=Nearby", "--overwrite"),
		"metadata.annotations[manifold.dev/traffic]", `"Nearby"`, `"PreferLocal"`)
	s.Logical.Kubectl("annotate", "service", "db", v1alpha1.AnnotationTraffic+"-")
	leads(s.East, "db", "the others are on standby again", standby(west)...)

	s.Logical.Kubectl("annotate", "deployment", "db", v1alpha1.AnnotationClusters+"=west", "--overwrite")
	expect.RolledOut(s, "db", 4)
	framework.AwaitList(s.East, "app=db", "they have gone", expect.Nothing[*corev1.Pod])
	leads(s.East, "db", "it leads to west when its own are gone", addressesOf(s.West, "db", 4)...)
	framework.Await(s.East, "db", "is to be reached from inside alone again", ofType(corev1.ServiceTypeClusterIP))
	leads(s.West, "db", "all of it is there")

	s.Logical.Kubectl("delete", "service", "db")
	framework.AwaitGone[*corev1.Service](s.East, "db")
	leads(s.East, "db", "nothing is left of it")
}

// peers is the Service by which the replicas of a StatefulSet find each other.
const peers = `apiVersion: v1
kind: Service
metadata: {name: db-peers}
spec:
  clusterIP: None
  selector: {app: db}
  ports: [{name: sql, port: 5432}]
`

func TestOrdinalsAreFoundInAllClustersOfANetwork(t *testing.T) {
	s := framework.NewScenario(t, meshed.Get(t))
	set, _, _ := strings.Cut(manifests.Database("db", 4, manifests.SetOn("east,west")), "---")
	s.Logical.Apply(manifests.Dividing, peers, set)
	framework.Await(s.Logical, "db", "is there", expect.SetAvailable(4))
	for _, side := range []*framework.Side{s.East, s.West} {
		framework.AwaitList(side, discoveryv1.LabelServiceName+"=db-peers", "each ordinal has its name, once, and is ready", func(found []*discoveryv1.EndpointSlice) bool {
			var names []string
			for _, slice := range found {
				for _, endpoint := range slice.Endpoints {
					if endpoint.Hostname != nil && *endpoint.Conditions.Ready {
						names = append(names, *endpoint.Hostname)
					}
				}
			}
			slices.Sort(names)
			return slices.Equal(names, manifests.Ordinals("db", 0, 4))
		})
	}
	// kube-proxy leaves slices alone that have this label, and cluster DNS reads them.
	framework.AwaitList(s.East, elsewhere("db-peers"), "it is for names alone", func(found []*discoveryv1.EndpointSlice) bool {
		return len(found) == 1 && slices.Contains(slices.Collect(maps.Keys(found[0].Labels)), corev1.IsHeadlessService)
	})
}

func TestWhatASilentClusterHasIsTakenOutOfTheOthersUntilItReturns(t *testing.T) {
	s := framework.NewScenario(t, meshed.Get(t))
	s.Logical.Apply(dbService, manifests.Pinned(manifests.Deployment("db", 1), "west"), manifests.Pinned(manifests.Deployment("api", 1), "east"))
	expect.RolledOut(s, "db", 1)
	west := addressesOf(s.West, "db", 1)
	leads(s.East, "db", "it leads to west", west...)

	cluster := s.Environment.Clusters["west"]
	if err := cluster.PauseAll(); err != nil {
		t.Fatal(err)
	}
	resumed := false
	resume := func() {
		if !resumed {
			resumed = true
			if err := cluster.ResumeAll(); err != nil {
				t.Error(err)
			}
		}
	}
	t.Cleanup(resume)
	// Not before the silence counts: what happens first is seen in one look at both.
	framework.AwaitList(s.East, elsewhere("db"), "they are taken out", func(found []*discoveryv1.EndpointSlice) bool {
		if led(found) != "" {
			return false
		}
		if ready := s.Logical.Kubectl("get", "cluster", "west", "-o", `jsonpath={.status.conditions[?(@.type=="Ready")].status}`); ready == "True" {
			t.Errorf("west is %s, and taken out", ready)
		}
		return true
	})
	// The logical cluster leads nobody there either, and goes on showing what it knows of the pods.
	above := func(claim string, ready bool) {
		framework.AwaitList(s.Logical, discoveryv1.LabelServiceName+"=db", claim, func(found []*discoveryv1.EndpointSlice) bool {
			return len(found) == 1 && len(found[0].Endpoints) == 1 && *found[0].Endpoints[0].Conditions.Ready == ready
		})
	}
	above("it leads to no pod of a silent cluster", false)
	framework.AwaitList(s.Logical, "app=db", "the pod says why", func(pods []*corev1.Pod) bool {
		return len(pods) == 1 && pods[0].Status.Phase == corev1.PodRunning && slices.ContainsFunc(pods[0].Status.Conditions, func(c corev1.PodCondition) bool {
			return c.Type == corev1.PodReady && c.Status == corev1.ConditionFalse && c.Reason == "ClusterSilent"
		})
	})
	resume()
	leads(s.East.Within(2*framework.Deadline), "db", "it is back", west...)
	above("it leads to the pod of a cluster that has returned", true)

	s.Logical.Kubectl("patch", "cluster", "west", "--type=merge", "-p", `{"spec":{"network":null}}`)
	t.Cleanup(func() {
		s.Environment.Cleanup(t, "patch", "cluster", "west", "--type=merge", "-p", `{"spec":{"network":"mesh"}}`)
	})
	leads(s.East, "db", "it is in no network any more")
	s.Logical.Kubectl("patch", "cluster", "west", "--type=merge", "-p", `{"spec":{"network":"mesh","podCIDRs":["192.0.2.0/24"]}}`)
	s.Logical.Kubectl("scale", "deployment", "db", "--replicas=2")
	expect.RolledOut(s, "db", 2)
	leads(s.East, "db", "its pods are not where its admin says that they are")
	s.Logical.Kubectl("patch", "cluster", "west", "--type=merge", "-p", `{"spec":{"podCIDRs":null}}`)
	leads(s.East, "db", "it is back in the network", addressesOf(s.West, "db", 2)...)
	expect.Refused(t, s.Logical.Try("patch", "cluster", "west", "--type=merge", "-p", `{"spec":{"network":"No Label","podCIDRs":["0.0.0.0/0"]}}`),
		"spec.network", "spec.podCIDRs[0]")
}
