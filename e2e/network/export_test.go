package network

import (
	"fmt"
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

const dbExport = `apiVersion: multicluster.x-k8s.io/v1beta1
kind: ServiceExport
metadata: {name: db}
spec:
  exportedLabels: {team: shop}
`

// define makes the kinds of the Multi-Cluster Services API known, as the docs say.
func define(s *framework.Scenario, sides ...*framework.Side) {
	s.Helper()
	for _, side := range sides {
		side.Kubectl("apply", "-k", "../../config/crds/mcs")
		side.Poll("the definitions are established", func() error {
			return framework.Failure(side.Try("wait", "--for=condition=Established", "--timeout=20s",
				"crd/serviceexports.multicluster.x-k8s.io", "crd/serviceimports.multicluster.x-k8s.io"))
		})
	}
}

// awaitSaid waits until what kubectl prints of an object is as wanted.
func awaitSaid(side *framework.Side, claim, object, path, want string) {
	side.Poll(claim, func() error {
		result := side.Try("get", object, "-o", "jsonpath="+path)
		if err := framework.Failure(result); err != nil {
			return err
		}
		if got := strings.TrimSpace(result.Stdout); got != want {
			return fmt.Errorf("%s of %s is %q, want %q", path, object, got, want)
		}
		return nil
	})
}

// imported waits for the slices of the ServiceImport, by cluster.
func imported(side *framework.Side, claim string, want map[string][]string) {
	framework.AwaitList(side, "multicluster.kubernetes.io/service-name=db", claim, func(found []*discoveryv1.EndpointSlice) bool {
		got := map[string][]string{}
		for _, slice := range found {
			cluster := slice.Labels["multicluster.kubernetes.io/source-cluster"]
			for _, endpoint := range slice.Endpoints {
				got[cluster] = append(got[cluster], endpoint.Addresses...)
			}
		}
		if len(got) != len(want) {
			return false
		}
		for cluster, addresses := range want {
			slices.Sort(got[cluster])
			if !slices.Equal(got[cluster], slices.Sorted(slices.Values(addresses))) {
				return false
			}
		}
		return true
	})
}

const readyOfExport = `{.status.conditions[?(@.type=="Ready")].status}`

func TestAnExportedServiceIsReachedEverywhereAndImported(t *testing.T) {
	s := framework.NewScenario(t, meshed.Get(t))
	define(s, s.Logical)
	s.Logical.Kubectl("annotate", "namespace", s.Namespace, v1alpha1.AnnotationTraffic+"=Local")
	s.Logical.Apply(dbService, manifests.Pinned(manifests.Deployment("db", 2), "west"), manifests.Pinned(manifests.Deployment("api", 1), "east"))
	expect.RolledOut(s, "db", 2)
	expect.RolledOut(s, "api", 1)
	west := addressesOf(s.West, "db", 2)
	if found := s.East.Try("get", "service", "db"); found.Code == 0 {
		t.Errorf("east has a Service that is to stay where its pods are: %s", found.Stdout)
	}

	s.Logical.Apply(dbExport)
	awaitSaid(s.Logical, "it is exported", "serviceexport/db", readyOfExport, "True")
	framework.Await(s.East, "db", "is to be reached from inside", ofType(corev1.ServiceTypeClusterIP))
	leads(s.East, "db", "it leads to west", west...)
	imported(s.Logical, "its slices tell of west", map[string][]string{"west": west})
	address := s.Logical.Kubectl("get", "service", "db", "-o", "jsonpath={.spec.clusterIP}")
	for path, want := range map[string]string{
		"{.spec.type}": "ClusterSetIP", "{.spec.ips[*]}": address, "{.spec.ports[*].name} {.spec.ports[*].port}": "sql 5432",
		"{.status.clusters[*].cluster}": "west", "{.metadata.labels.team}": "shop", readyOfExport: "True",
	} {
		awaitSaid(s.Logical, "the import tells it", "serviceimport/db", path, want)
	}
	for kind, want := range map[string]string{"Valid": "True Valid", "Conflict": "False NoConflicts"} {
		awaitSaid(s.Logical, "the export tells it", "serviceexport/db", fmt.Sprintf(`{range .status.conditions[?(@.type==%q)]}{.status} {.reason}{end}`, kind), want)
	}
	s.Logical.Kubectl("patch", "serviceimport", "db", "--type=merge", "-p", `{"spec":{"type":"Headless","ips":[]}}`)
	awaitSaid(s.Logical, "it is put back", "serviceimport/db", "{.spec.type} {.spec.ips[*]}", "ClusterSetIP "+address)

	s.Logical.Kubectl("annotate", "deployment", "db", v1alpha1.AnnotationClusters+"=east,west", "--overwrite")
	s.Logical.Kubectl("scale", "deployment", "db", "--replicas=4")
	share := framework.DecisionOf(s, expect.RolledOut(s, "db", 4))
	east := addressesOf(s.East, "db", int(share["east"].Replicas))
	west = addressesOf(s.West, "db", int(share["west"].Replicas))
	leads(s.East, "db", "it leads to all", west...)
	leads(s.West, "db", "it leads to all", east...)
	imported(s.Logical, "its slices tell of both", map[string][]string{"east": east, "west": west})
	awaitSaid(s.Logical, "it comes from both", "serviceimport/db", "{.status.clusters[*].cluster}", "east west")

	s.Logical.Kubectl("annotate", "service", "db", v1alpha1.AnnotationTraffic+"=Local", "--overwrite")
	awaitSaid(s.Logical, "what the Service says itself counts, and is told", "serviceexport/db", readyOfExport, "False")
	leads(s.East, "db", "it leads nowhere else")
	s.Logical.Kubectl("annotate", "service", "db", v1alpha1.AnnotationTraffic+"-")
	leads(s.East, "db", "it leads to all again", west...)
	awaitSaid(s.Logical, "it is told", "serviceexport/db", readyOfExport, "True")

	s.Logical.Kubectl("delete", "serviceexport", "db")
	leads(s.East, "db", "it leads nowhere else any more")
	imported(s.Logical, "no slice is left", nil)
	s.Logical.Poll("the import is gone", func() error {
		if found := s.Logical.Try("get", "serviceimport", "db"); found.Code == 0 {
			return fmt.Errorf("there is %s", found.Stdout)
		}
		return nil
	})
	if said := s.Logical.Kubectl("get", "service", "db", "-o", "jsonpath={.metadata.annotations}"); strings.Contains(said, v1alpha1.AnnotationTraffic) {
		t.Errorf("the Service is left with %s", said)
	}
}

// Clusters that run an implementation of the API themselves have the definitions, and what is pinned to them is theirs to carry out. What they import is shown.
func TestAnExportThatIsPinnedIsCarriedOutByTheCluster(t *testing.T) {
	s := framework.NewScenario(t, meshed.Get(t))
	define(s, s.Logical, s.East)
	join := func(kinds ...string) {
		s.Helper()
		args := []string{"cluster", "join", "east", "--cluster-kubeconfig", s.Environment.Clusters["east"].Kubeconfig()}
		for _, kind := range kinds {
			args = append(args, "--allow-kind", kind+".multicluster.x-k8s.io")
		}
		s.Logical.CLI(args...)
	}
	join("serviceexports")
	s.Logical.Apply(dbService, manifests.Pinned(manifests.Deployment("db", 1), "east"))
	expect.RolledOut(s, "db", 1)
	s.Logical.Apply(dbExport)
	awaitSaid(s.Logical, "it is exported here", "serviceexport/db", readyOfExport, "True")
	if found := s.East.Try("get", "serviceexport", "db"); found.Code == 0 {
		t.Errorf("the implementation in east was told: %s", found.Stdout)
	}
	s.Logical.Kubectl("annotate", "serviceexport", "db", v1alpha1.AnnotationClusters+"=east")
	s.East.Poll("it is in east", func() error { return framework.Failure(s.East.Try("get", "serviceexport", "db")) })
	s.Logical.Poll("where the Service leads is for the implementation to say", func() error {
		if said := s.Logical.Kubectl("get", "service", "db", "-o", "jsonpath={.metadata.annotations}"); strings.Contains(said, v1alpha1.AnnotationTraffic) {
			return fmt.Errorf("the Service has %s", said)
		}
		return nil
	})
	says := func(claim, want string) {
		s.Helper()
		s.Logical.Poll(claim, func() error {
			return framework.Contains(s.Logical.Kubectl("get", "serviceimport", "db", "-o", `jsonpath={range .status.conditions[?(@.type=="Ready")]}{.status} {.message}{end}`), want)
		})
	}
	says("that it may not be seen is told", "join again with --allow-kind serviceimports.multicluster.x-k8s.io")
	join("serviceimports")
	says("nobody has imported it yet", `cluster "east": its implementation of the API has made no ServiceImport yet`)
	imported(s.Logical, "its slices tell of east", map[string][]string{"east": addressesOf(s.East, "db", 1)})

	// What the implementation in east does.
	const theirs = `apiVersion: multicluster.x-k8s.io/v1beta1
kind: ServiceImport
metadata: {name: db}
spec: {type: ClusterSetIP, ips: [241.0.0.7], ports: [{name: sql, port: PORT, protocol: TCP}]}
`
	s.East.Apply(strings.Replace(theirs, "PORT", "22", 1))
	says("one that is not the Service is told", `cluster "east": its ServiceImport has no port 5432/TCP`)
	s.East.Apply(strings.Replace(theirs, "PORT", "5432", 1))
	says("it is imported there", "True")
	for path, want := range map[string]string{"{.spec.type}": "ClusterSetIP", "{.spec.ips[*]}": "241.0.0.7", "{.spec.ports[*].port}": "5432", "{.status.clusters[*].cluster}": "east"} {
		awaitSaid(s.Logical, "the import tells it", "serviceimport/db", path, want)
	}
	s.East.Kubectl("patch", "serviceexport", "db", "--subresource=status", "--type=merge", "-p",
		`{"status":{"conditions":[{"type":"Ready","status":"True","reason":"Theirs","message":"","lastTransitionTime":"2026-01-01T00:00:00Z"}]}}`)
	awaitSaid(s.Logical, "its status is that of the implementation", "serviceexport/db", "{.status.conditions[*].reason}", "Theirs")
	s.Logical.Kubectl("delete", "serviceexport", "db")
	s.East.Poll("it is gone from east", func() error {
		if found := s.East.Try("get", "serviceexport", "db"); found.Code == 0 {
			return fmt.Errorf("there is %s", found.Stdout)
		}
		return nil
	})
	s.Logical.Poll("the import is gone here", func() error {
		if found := s.Logical.Try("get", "serviceimport", "db"); found.Code == 0 {
			return fmt.Errorf("there is %s", found.Stdout)
		}
		return nil
	})
	imported(s.Logical, "and so are its slices", nil)
	if found := s.East.Try("get", "serviceimport", "db"); found.Code != 0 {
		t.Errorf("what the implementation made there is gone: %s", found.Stderr)
	}
}

// Where clusters run an implementation of the API, an export is made wherever the Service has pods, and goes with them.
func TestAnExportThatClustersCarryOutFollowsItsPods(t *testing.T) {
	s := framework.NewScenario(t, meshed.Get(t))
	define(s, s.Logical, s.East, s.West)
	for _, cluster := range []string{"east", "west"} {
		s.Logical.CLI("cluster", "join", cluster, "--cluster-kubeconfig", s.Environment.Clusters[cluster].Kubeconfig(),
			"--allow-kind", "serviceexports.multicluster.x-k8s.io", "--allow-kind", "serviceimports.multicluster.x-k8s.io")
	}
	s.Logical.Apply(dbService, manifests.Pinned(manifests.Deployment("db", 1), "west"))
	expect.RolledOut(s, "db", 1)
	expect.Refused(t, s.Logical.TryInput(strings.Replace(dbExport, "{name: db}", "{name: db, annotations: {manifold.dev/exported-by: east}}", 1), "apply", "-f", "-"),
		"metadata.annotations[manifold.dev/exported-by]", `"east"`, `"clusters"`)
	s.Logical.Apply(strings.Replace(dbExport, "{name: db}", "{name: db, annotations: {manifold.dev/exported-by: clusters}}", 1))
	exported := func(side, other *framework.Side, claim string) {
		s.Helper()
		side.Poll(claim, func() error {
			if there := side.Try("get", "serviceexport", "db"); there.Code != 0 {
				return framework.Failure(there)
			}
			if found := other.Try("get", "serviceexport", "db"); found.Code == 0 {
				return fmt.Errorf("the other cluster has %s", found.Stdout)
			}
			return nil
		})
	}
	exported(s.West, s.East, "it is exported in west, where the pods are")
	imported(s.Logical, "its endpoints are shown", map[string][]string{"west": addressesOf(s.West, "db", 1)})
	s.Logical.Kubectl("annotate", "deployment", "db", v1alpha1.AnnotationClusters+"=east", "--overwrite")
	framework.AwaitList(s.West, "app=db", "the pods have moved", expect.Nothing[*corev1.Pod])
	exported(s.East, s.West, "it is exported in east, where they are now")
	imported(s.Logical, "its endpoints are those", map[string][]string{"east": addressesOf(s.East, "db", 1)})
}
