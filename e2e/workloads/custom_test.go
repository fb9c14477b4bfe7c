package workloads

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/e2e/framework"
	"github.com/manifold-dev/manifold/e2e/framework/expect"
)

// customKind is a kind of custom resources that one test defines for itself, after testdata/gizmos.yaml.
type customKind struct {
	plural, kind string
}

func (k customKind) resource() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "custom.e2e.example.com", Version: "v1", Resource: k.plural}
}

// definition is the manifest of the definition, as changed by pairs of old and new texts.
func (k customKind) definition(t *testing.T, changes ...string) string {
	t.Helper()
	text, err := os.ReadFile("testdata/gizmos.yaml")
	if err != nil {
		t.Fatal(err)
	}
	changes = append([]string{"gizmos", k.plural, "gizmo", strings.ToLower(k.kind), "Gizmo", k.kind}, changes...)
	return strings.NewReplacer(changes...).Replace(string(text))
}

// define makes the definition on a side until the test ends.
func (k customKind) define(s *framework.Scenario, side *framework.Side, changes ...string) {
	s.Helper()
	definition := k.definition(s.T, changes...)
	side.Apply(definition)
	s.Cleanup(func() {
		s.Environment.CleanupIn(s.T, side.API, "delete", "crd", k.plural+".custom.e2e.example.com", "--wait=false", "--ignore-not-found")
	})
	side.Established(definition)
}

// manifest is an object, pinned unless the pin is "".
func (k customKind) manifest(name, pin, spec string) string {
	annotations := ""
	if pin != "" {
		annotations = fmt.Sprintf("\n  annotations: {%s: %q}", v1alpha1.AnnotationClusters, pin)
	}
	return fmt.Sprintf("apiVersion: custom.e2e.example.com/v1\nkind: %s\nmetadata:\n  name: %s%s\nspec: %s\n", k.kind, name, annotations, spec)
}

// make creates an object, once the API server has begun to serve the kind.
func (k customKind) make(side *framework.Side, manifest string) {
	side.Poll("the new kind can be created", func() error { return framework.Failure(side.TryInput(manifest, "apply", "-f", "-")) })
}

// await waits until the object is as claimed.
func (k customKind) await(side *framework.Side, name, claim string, is func(*unstructured.Unstructured) bool) *unstructured.Unstructured {
	var found *unstructured.Unstructured
	side.Poll(k.kind+" "+name+" "+claim, func() error {
		var err error
		found, err = side.Dynamic.Resource(k.resource()).Namespace(side.Namespace).Get(side.Context(), name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if !is(found) {
			text, _ := found.MarshalJSON()
			return fmt.Errorf("it is %s", text)
		}
		return nil
	})
	return found
}

func (k customKind) awaitGone(side *framework.Side, name string) {
	side.Poll(k.kind+" "+name+" is gone", func() error {
		_, err := side.Dynamic.Resource(k.resource()).Namespace(side.Namespace).Get(side.Context(), name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("got it with error %v", err)
	})
}

// say sets the status of an object in a cluster, as its operator there would.
func (k customKind) say(s *framework.Scenario, side *framework.Side, name, status string) {
	s.Helper()
	_, err := side.Dynamic.Resource(k.resource()).Namespace(side.Namespace).
		Patch(s.Context(), name, types.MergePatchType, []byte(`{"status":`+status+`}`), metav1.PatchOptions{}, "status")
	if err != nil {
		s.Fatal(err)
	}
}

// allow lets Manifold manage the kind in a cluster.
func (k customKind) allow(s *framework.Scenario, cluster string) {
	s.Helper()
	s.Logical.CLI("cluster", "join", cluster, "--cluster-kubeconfig", s.Environment.Clusters[cluster].Kubeconfig(),
		"--allow-kind", k.plural+".custom.e2e.example.com")
}

func exists(*unstructured.Unstructured) bool { return true }

func nested(o *unstructured.Unstructured, path ...string) string {
	value, found, err := unstructured.NestedFieldNoCopy(o.Object, path...)
	if err != nil || !found {
		return ""
	}
	return fmt.Sprint(value)
}

func hasFinalizer(o *unstructured.Unstructured) bool {
	for _, f := range o.GetFinalizers() {
		if f == v1alpha1.FinalizerProjection {
			return true
		}
	}
	return false
}

func awaitEventAbout(s *framework.Scenario, name, reason string, want ...string) {
	s.Helper()
	framework.AwaitList(s.Logical, "", fmt.Sprintf("an event %s about %s says %q", reason, name, want), func(events []*corev1.Event) bool {
		for _, e := range framework.EventsAbout(events, name, reason) {
			all := true
			for _, phrase := range want {
				all = all && strings.Contains(e.Message, phrase)
			}
			if all {
				return true
			}
		}
		return false
	})
}

func TestCustomResourcesGoWhereTheyArePinned(t *testing.T) {
	framework.Long(t)
	s := suite.Scenario(t)
	k := customKind{"gizmos", "Gizmo"}
	for _, side := range []*framework.Side{s.Logical, s.East, s.West} {
		k.define(s, side)
	}
	s.Logical.Kubectl("annotate", "namespace", s.Namespace, v1alpha1.AnnotationClusters+"=east")
	k.make(s.Logical, k.manifest("plain", "", "{size: 1}"))
	k.make(s.Logical, k.manifest("one", "east", "{size: 1, future: {deep: [1, 2.5, {x: z}]}}"))

	t.Run("without the right to manage the kind there, the reason and the command are told", func(t *testing.T) {
		s := s.Subtest(t)
		want := "cluster join east --cluster-kubeconfig FILE --allow-kind gizmos.custom.e2e.example.com"
		awaitEventAbout(s, "one", "ProjectionFailed", "east", want)
		k.await(s.Logical, "one", "tells of it", func(o *unstructured.Unstructured) bool {
			return strings.Contains(o.GetAnnotations()[v1alpha1.AnnotationStatus], want)
		})
		expect.Says(t, s.Logical.CLI("explain", "gizmo/one"), want, "Placed:", "east")
		s.Logical.Kubectl("delete", "gizmo", "one", "--timeout=30s") // which waits for nothing that never was there
		k.make(s.Logical, k.manifest("one", "east", "{size: 1, future: {deep: [1, 2.5, {x: z}]}}"))
	})
	k.allow(s, "east")
	k.allow(s, "west")
	t.Run("it goes down whole, and what means something above alone does not", func(t *testing.T) {
		s := s.Subtest(t)
		k.await(s.Logical, "one", "is held", hasFinalizer)
		below := k.await(s.East.Within(2*time.Minute), "one", "is there", exists)
		if got := nested(below, "spec"); got != "map[future:map[deep:[1 2.5 map[x:z]]] size:1]" {
			t.Errorf("its spec is %s", got)
		}
		if len(below.GetFinalizers())+len(below.GetOwnerReferences()) > 0 || below.GetLabels()[v1alpha1.LabelLogicalCluster] == "" {
			t.Errorf("its metadata is %v", below.Object["metadata"])
		}
		k.await(s.Logical, "one", "shows that there is nothing the matter", func(o *unstructured.Unstructured) bool {
			return o.GetAnnotations()[v1alpha1.AnnotationStatus] == `{"east":{"generation":1}}` &&
				o.GetAnnotations()[v1alpha1.AnnotationPlacement] == `{"east":{"replicas":1}}`
		})
		expect.Refused(t, s.East.Try("get", "gizmo", "plain"), "NotFound")
		expect.Says(t, s.Logical.CLI("explain", "gizmo/plain"), "stays in the logical cluster", "Gizmo.custom.e2e.example.com")
	})
	t.Run("the status of the one cluster comes back as it is", func(t *testing.T) {
		s := s.Subtest(t)
		below := k.await(s.East, "one", "is there", exists)
		k.say(s, s.East, "one", fmt.Sprintf(`{"phase":"Up","future":{"a":[1]},"observedGeneration":%d,"conditions":[{"type":"Ready","status":"True"}]}`, below.GetGeneration()))
		k.await(s.Logical, "one", "shows the status", func(o *unstructured.Unstructured) bool {
			return nested(o, "status") == "map[conditions:[map[status:True type:Ready]] future:map[a:[1]] observedGeneration:1 phase:Up]"
		})
		s.Logical.Kubectl("wait", "--for=condition=Ready", "gizmo/one", "--timeout=10s")
		expect.Says(t, s.Logical.CLI("explain", "gizmo/one"), "Ready")
		s.Logical.Kubectl("patch", "gizmo", "one", "--type=merge", "-p", `{"spec":{"size":2}}`)
		k.await(s.East, "one", "has the new size", func(o *unstructured.Unstructured) bool { return nested(o, "spec", "size") == "2" })
		// Nobody below has looked at the change.
		k.await(s.Logical, "one", "does not claim that it was observed", func(o *unstructured.Unstructured) bool {
			return nested(o, "status", "observedGeneration") == "1" && strings.Contains(o.GetAnnotations()[v1alpha1.AnnotationStatus], `"generation":2`)
		})
	})
	t.Run("a change below is put back, and what others add is left", func(t *testing.T) {
		s := s.Subtest(t)
		s.East.Kubectl("patch", "gizmo", "one", "--type=merge", "-p", `{"spec":{"size":7,"theirs":"kept"}}`)
		k.await(s.East, "one", "is put back", func(o *unstructured.Unstructured) bool {
			return nested(o, "spec", "size") == "2" && nested(o, "spec", "theirs") == "kept"
		})
		s.East.Kubectl("delete", "gizmo", "one")
		k.await(s.East, "one", "is made again", func(o *unstructured.Unstructured) bool { return nested(o, "spec", "size") == "2" })
		s.Logical.Kubectl("patch", "gizmo", "one", "--type=json", "-p", `[{"op":"remove","path":"/spec/future"}]`)
		k.await(s.East, "one", "loses the field", func(o *unstructured.Unstructured) bool { return nested(o, "spec", "future") == "" })
		// What is written about that would be in the way of who replaces it next: a custom resource is only updated as it was read.
		k.await(s.Logical, "one", "shows that it was carried out", func(o *unstructured.Unstructured) bool {
			return strings.Contains(o.GetAnnotations()[v1alpha1.AnnotationStatus], fmt.Sprintf(`"generation":%d`, o.GetGeneration()))
		})
	})
	t.Run("users cannot take away or write what is Manifold's", func(t *testing.T) {
		s := s.Subtest(t)
		r := s.Logical.TryInput(k.manifest("one", "east", "{size: 3}"), "replace", "-f", "-")
		if r.Code != 0 {
			t.Fatal(r)
		}
		k.await(s.Logical, "one", "still has what is Manifold's", func(o *unstructured.Unstructured) bool {
			return hasFinalizer(o) && o.GetAnnotations()[v1alpha1.AnnotationPlacement] == `{"east":{"replicas":1}}`
		})
		r = s.Logical.Try("annotate", "gizmo", "one", v1alpha1.AnnotationPlacement+"={}", "--overwrite")
		expect.Says(t, r.Stderr, "only Manifold writes this")
		expect.Refused(t, s.Logical.Try("annotate", "gizmo", "one", v1alpha1.AnnotationClusters+"=,", "--overwrite"), "metadata.annotations[manifold.dev/clusters]")
	})
	t.Run("several clusters have a copy each, and the status tells what they agree on", func(t *testing.T) {
		s := s.Subtest(t)
		s.Logical.Kubectl("annotate", "gizmo", "one", v1alpha1.AnnotationClusters+"=*", "--overwrite")
		k.await(s.West.Within(2*time.Minute), "one", "is there", func(o *unstructured.Unstructured) bool { return nested(o, "spec", "size") == "3" })
		k.say(s, s.East, "one", `{"phase":"Up","address":"10.0.0.1","conditions":[{"type":"Ready","status":"True"}]}`)
		k.say(s, s.West, "one", `{"phase":"Up","address":"10.1.0.1","conditions":[{"type":"Ready","status":"False","reason":"NoDisk"}]}`)
		o := k.await(s.Logical, "one", "shows what both say", func(o *unstructured.Unstructured) bool {
			return nested(o, "status", "phase") == "Up" && strings.Contains(nested(o, "status", "conditions"), "ClustersDiffer") &&
				strings.Contains(o.GetAnnotations()[v1alpha1.AnnotationStatus], "NoDisk") // which is written right after
		})
		if nested(o, "status", "address") != "" {
			t.Errorf("the address of one cluster is shown as that of both: %v", o.Object["status"])
		}
		expect.Says(t, o.GetAnnotations()[v1alpha1.AnnotationStatus], `"address":"10.0.0.1"`, `"address":"10.1.0.1"`, `"state":"Ready=False (NoDisk)"`)
		expect.Says(t, s.Logical.CLI("explain", "gizmo/one"), "Placed:", "east, west", "Ready=False (NoDisk)")
	})
	t.Run("it moves by the command that moves workloads", func(t *testing.T) {
		s := s.Subtest(t)
		expect.Says(t, s.Logical.CLI("move", "gizmo/one", "--to", "west"), "gizmo/one moved")
		k.awaitGone(s.East, "one")
	})
	t.Run("unpinned it stays above, as if it had never left", func(t *testing.T) {
		s := s.Subtest(t)
		s.Logical.Kubectl("annotate", "gizmo", "one", v1alpha1.AnnotationClusters+"-")
		k.awaitGone(s.East, "one")
		k.awaitGone(s.West, "one")
		o := k.await(s.Logical, "one", "is let go", func(o *unstructured.Unstructured) bool { return !hasFinalizer(o) })
		if nested(o, "status") != "" || o.GetAnnotations()[v1alpha1.AnnotationPlacement]+o.GetAnnotations()[v1alpha1.AnnotationStatus] != "" {
			t.Errorf("it still shows what came from below: %v", o.Object)
		}
	})
	t.Run("a taken name is told and never overwritten", func(t *testing.T) {
		s := s.Subtest(t)
		s.West.KubectlInput(k.manifest("taken", "", "{size: 9}"), "create", "-f", "-")
		s.Logical.Apply(k.manifest("taken", "west", "{size: 1}"))
		awaitEventAbout(s, "taken", "NameTaken", "west", "already has a Gizmo "+s.Namespace+"/taken that Manifold does not own")
		k.await(s.West, "taken", "is left alone", func(o *unstructured.Unstructured) bool {
			return nested(o, "spec", "size") == "9" && o.GetLabels()[v1alpha1.LabelLogicalCluster] == ""
		})
		s.West.Kubectl("delete", "gizmo", "taken")
		k.await(s.West, "taken", "is ours", func(o *unstructured.Unstructured) bool { return nested(o, "spec", "size") == "1" })
		s.Logical.Kubectl("delete", "gizmo", "taken", "--timeout=60s")
		k.awaitGone(s.West, "taken")
	})
	t.Run("a policy that lists the kind sends it", func(t *testing.T) {
		s := s.Subtest(t)
		s.Logical.Apply(`
apiVersion: manifold.dev/v1alpha1
kind: PlacementPolicy
metadata:
  name: gizmos
spec:
  workloads:
    kinds: [Gizmo.custom.e2e.example.com]
    labelSelector: {matchLabels: {sent: "yes"}}
  division: {type: Duplicate}
`)
		s.Logical.Kubectl("annotate", "namespace", s.Namespace, v1alpha1.AnnotationClusters+"-")
		s.Logical.Kubectl("label", "gizmo", "plain", "sent=yes")
		k.await(s.East, "plain", "is there", exists)
		k.await(s.West, "plain", "is there", exists)
		expect.Says(t, s.Logical.CLI("explain", "gizmo/plain"), "PlacementPolicy "+s.Namespace+"/gizmos")
		s.Logical.Kubectl("delete", "placementpolicy", "gizmos")
		k.awaitGone(s.East, "plain")
		k.awaitGone(s.West, "plain")
		k.await(s.Logical, "plain", "is let go", func(o *unstructured.Unstructured) bool { return !hasFinalizer(o) })
	})
	t.Run("a namespace goes with what is pinned in it", func(t *testing.T) {
		s := s.Subtest(t)
		name := s.Namespace + "-more"
		s.Logical.Kubectl("create", "namespace", name)
		s.Logical.In(name).Apply(k.manifest("one", "east,west", "{size: 1}"))
		k.await(s.East.In(name), "one", "is there", exists)
		k.await(s.West.In(name), "one", "is there", exists)
		s.Logical.Kubectl("delete", "namespace", name, "--timeout=60s")
		framework.AwaitGone[*corev1.Namespace](s.East, name)
		framework.AwaitGone[*corev1.Namespace](s.West, name)
	})
	t.Run("a definition that is deleted takes its objects along", func(t *testing.T) {
		s := s.Subtest(t)
		s.Logical.Apply(k.manifest("last", "east", "{size: 1}"))
		k.await(s.East, "last", "is there", exists)
		s.Logical.Kubectl("delete", "crd", "gizmos.custom.e2e.example.com", "--timeout=60s")
		k.awaitGone(s.East, "last")
	})
}

func TestACustomResourceWaitsForAClusterThatServesItsKind(t *testing.T) {
	s := suite.Scenario(t)
	k := customKind{"gadgets", "Gadget"}
	// Above there is one version more, which is the preferred one.
	k.define(s, s.Logical, "  - name: v1\n", "  - name: v2\n    served: true\n    storage: true\n    subresources:\n      status: {}\n"+
		"    schema:\n      openAPIV3Schema:\n        type: object\n        x-kubernetes-preserve-unknown-fields: true\n  - name: v1\n",
		"    storage: true\n    subresources", "    storage: false\n    subresources")
	k.define(s, s.West)
	k.allow(s, "east")
	k.allow(s, "west")
	k.make(s.Logical, k.manifest("one", "east,west", "{size: 1}"))
	k.await(s.West.Within(2*time.Minute), "one", "is there in the version that both serve", exists)
	awaitEventAbout(s, "one", "PlacementNote", "does not serve Gadget.v2.custom.e2e.example.com")
	expect.Says(t, s.Logical.CLI("explain", "gadget/one"), "does not serve Gadget.v2.custom.e2e.example.com")
	k.define(s, s.East)
	k.await(s.East.Within(2*time.Minute), "one", "is there once its definition is", exists)
}

func TestADependentGoesWhereItIsPinnedItself(t *testing.T) {
	framework.Long(t)
	s := suite.Scenario(t)
	s.Logical.Kubectl("create", "configmap", "settings", "--from-literal=COLOR=blue")
	s.Logical.Kubectl("annotate", "configmap", "settings", v1alpha1.AnnotationClusters+"=east,west")
	for _, side := range []*framework.Side{s.East, s.West} {
		framework.Await(side, "settings", "is there", func(m *corev1.ConfigMap) bool { return m.Data["COLOR"] == "blue" })
	}
	s.Logical.Kubectl("annotate", "configmap", "settings", v1alpha1.AnnotationClusters+"=west", "--overwrite")
	framework.AwaitGone[*corev1.ConfigMap](s.East, "settings")
	framework.Await(s.West, "settings", "is still there", framework.Exists[*corev1.ConfigMap])
	s.Logical.Kubectl("annotate", "configmap", "settings", v1alpha1.AnnotationClusters+"-")
	framework.AwaitGone[*corev1.ConfigMap](s.West, "settings")
	expect.Refused(t, s.Logical.Try("annotate", "configmap", "settings", v1alpha1.AnnotationClusters+"=,"), "metadata.annotations[manifold.dev/clusters]")
}

// TestACustomResourceWithoutAStatusSubresource is about a kind whose generation counts what its status says.
func TestACustomResourceWithoutAStatusSubresource(t *testing.T) {
	framework.Long(t)
	s := suite.Scenario(t)
	k := customKind{"springs", "Spring"}
	for _, side := range []*framework.Side{s.Logical, s.East} {
		k.define(s, side, "    subresources:\n      status: {}\n", "")
	}
	k.allow(s, "east")
	k.make(s.Logical, k.manifest("one", "east", "{size: 1}"))
	k.await(s.East.Within(2*time.Minute), "one", "is there", exists)
	s.East.Kubectl("patch", "spring", "one", "--type=merge", "-p", `{"status":{"phase":"Up","observedGeneration":1}}`)
	shown := func(o *unstructured.Unstructured) bool {
		return nested(o, "status") == "map[observedGeneration:1 phase:Up]" &&
			o.GetAnnotations()[v1alpha1.AnnotationStatus] == fmt.Sprintf(`{"east":{"generation":%d,"state":"Up"}}`, o.GetGeneration())
	}
	o := k.await(s.Logical, "one", "shows the status, and settles", shown)
	s.Logical.Apply(k.manifest("two", "east", "{size: 1}"))
	k.await(s.East, "two", "is there later", exists)
	if later := k.await(s.Logical, "one", "is there", shown); later.GetResourceVersion() != o.GetResourceVersion() {
		t.Errorf("it was written on and on: version %s, then %s", o.GetResourceVersion(), later.GetResourceVersion())
	}
	s.Logical.Kubectl("patch", "spring", "one", "--type=merge", "-p", `{"spec":{"size":2}}`)
	below := k.await(s.East, "one", "has the new size, and its own status", func(o *unstructured.Unstructured) bool { return nested(o, "spec", "size") == "2" })
	if nested(below, "status", "phase") != "Up" {
		t.Errorf("the status below is %v", below.Object["status"])
	}
}

// TestAStatusThatTheLogicalClusterDoesNotTakeIsTold is about a definition that wants more of a status than several clusters agree on.
func TestAStatusThatTheLogicalClusterDoesNotTakeIsTold(t *testing.T) {
	framework.Long(t)
	s := suite.Scenario(t)
	k := customKind{"levers", "Lever"}
	k.define(s, s.Logical, "          status:\n            type: object\n",
		"          status:\n            type: object\n            required: [address]\n            properties: {address: {type: string}}\n")
	for _, side := range []*framework.Side{s.East, s.West} {
		k.define(s, side)
	}
	k.allow(s, "east")
	k.allow(s, "west")
	k.make(s.Logical, k.manifest("one", "east,west", "{size: 1}"))
	for _, side := range []*framework.Side{s.East, s.West} {
		k.await(side.Within(2*time.Minute), "one", "is there", exists)
		k.say(s, side, "one", `{"phase":"Up","address":"`+side.Name+`"}`)
	}
	awaitEventAbout(s, "one", "StatusRefused", "status.address", v1alpha1.AnnotationStatus)
	k.await(s.Logical, "one", "tells each status all the same", func(o *unstructured.Unstructured) bool {
		return strings.Contains(o.GetAnnotations()[v1alpha1.AnnotationStatus], `"address":"west"`)
	})
	s.Logical.Kubectl("annotate", "lever", "one", v1alpha1.AnnotationClusters+"=west", "--overwrite")
	k.await(s.Logical, "one", "shows the status of the one cluster", func(o *unstructured.Unstructured) bool {
		return nested(o, "status") == "map[address:west phase:Up]"
	})
}
