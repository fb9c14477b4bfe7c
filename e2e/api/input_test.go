package api

import (
	"cmp"
	"fmt"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/e2e/framework"
	"github.com/manifold-dev/manifold/e2e/framework/expect"
	"github.com/manifold-dev/manifold/e2e/framework/manifests"
)

// TestWhatKubernetesRefusesIsRefusedInItsWords asks a stock cluster too.
func TestWhatKubernetesRefusesIsRefusedInItsWords(t *testing.T) {
	s := suite.Scenario(t)
	expect.NamespaceIn(s, s.East)
	web := manifests.Deployment("web", 1)
	for name, manifest := range map[string]string{
		"a negative number of replicas": manifests.Edited(web, func(d *appsv1.Deployment) { *d.Spec.Replicas = -1 }),
		"a selector that misses":        manifests.Edited(web, func(d *appsv1.Deployment) { d.Spec.Selector.MatchLabels["app"] = "other" }),
		"no container":                  manifests.Edited(web, func(d *appsv1.Deployment) { d.Spec.Template.Spec.Containers = nil }),
		"a name that cannot be":         strings.Replace(web, "name: web\n", "name: Web_1\n", 1),
		"an unknown field":              strings.Replace(web, "  replicas: 1\n", "  replicas: 1\n  replica: 2\n", 1),
		"a wrong type":                  strings.Replace(web, "replicas: 1", "replicas: one", 1),
		"no such kind":                  strings.Replace(web, "kind: Deployment", "kind: Deployments", 1),
		"a bad amount":                  strings.Replace(web, "cpu: 10m", "cpu: much", 1),
		"a Service without ports":       "apiVersion: v1\nkind: Service\nmetadata:\n  name: web\nspec:\n  selector: {app: web}\n",
		"a ConfigMap with a bad key":    "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: web\ndata:\n  \"a b\": c\n",
	} {
		t.Run(name, func(t *testing.T) {
			s := s.Subtest(t)
			above, stock := s.Logical.TryInput(manifest, "create", "-f", "-"), s.East.TryInput(manifest, "create", "-f", "-")
			if above.Code == 0 || above.Code != stock.Code || above.Stderr != stock.Stderr {
				t.Errorf("the logical cluster does not answer as a stock one:\n%s\n%s", above, stock)
			}
		})
	}
}

func TestABadPinIsRefusedWithItsPath(t *testing.T) {
	s := suite.Scenario(t)
	s.Logical.Apply(manifests.Pinned(manifests.Deployment("good", 1), "east"))
	for pin, want := range map[string]string{
		"":           "names no cluster",
		"  ":         "names no cluster",
		"east,":      "entry 2: is blank",
		",":          "entry 1: is blank",
		"East":       `"East" is not a cluster name`,
		"east;west":  `"east;west" is not a cluster name`,
		"*,east":     `"*" stands for all clusters and may not be combined with names`,
		"east west":  `"east west" is not a cluster name`,
		"-east":      `"-east" is not a cluster name`,
		"all/of/you": `"all/of/you" is not a cluster name`,
	} {
		t.Run(fmt.Sprintf("%q", pin), func(t *testing.T) {
			s := s.Subtest(t)
			path := "metadata.annotations[manifold.dev/clusters]: Invalid value"
			expect.Refused(t, s.Logical.TryInput(manifests.Pinned(manifests.Deployment("web", 1), pin), "create", "-f", "-"), `The Deployment "web" is invalid`, path, want)
			expect.Refused(t, s.Logical.Try("annotate", "deployment", "good", v1alpha1.AnnotationClusters+"="+pin, "--overwrite"), `"good" is invalid`, path, want)
			expect.Refused(t, s.Logical.Try("annotate", "namespace", s.Namespace, v1alpha1.AnnotationClusters+"="+pin), path, want)
		})
	}
	expect.Refused(t, s.Logical.Try("get", "deployment", "web"), "NotFound")
	if got := framework.ReadDeployment(s, "good").Annotations[v1alpha1.AnnotationClusters]; got != "east" {
		t.Errorf("a refused pin is stored: %q", got)
	}
}

func TestABadPolicyIsRefusedWithItsPath(t *testing.T) {
	s := suite.Scenario(t)
	for name, test := range map[string]struct {
		spec, want string
		// applied is what server-side apply says instead: the merge, which comes first, has its own words.
		applied string
	}{
		"an invalid selector of workloads": {
			spec: "workloads: {labelSelector: {matchExpressions: [{key: app, operator: Like}]}}",
			want: "spec.workloads.labelSelector.matchExpressions[0].operator: Invalid value",
		},
		"an invalid selector of clusters": {
			spec: `clusters: {labelSelector: {matchLabels: {"re gion": eu}}}`,
			want: "spec.clusters.labelSelector.matchLabels: Invalid value",
		},
		"a negative weight": {
			spec: "division: {type: Divide, by: Weights, weights: {east: -1, west: 2}}",
			want: "spec.division.weights[east]: Invalid value: -1: must not be negative",
		},
		"weights that are all zero": {
			spec: "division: {type: Divide, by: Weights, weights: {east: 0}}",
			want: "spec.division.weights: Invalid value",
		},
		"an unknown way to divide": {
			spec: "division: {type: Halve}", want: `spec.division.type: Unsupported value: "Halve"`,
		},
		"an unknown measure": {
			spec: "division: {type: Divide, by: Luck}", want: `spec.division.by: Unsupported value: "Luck"`,
		},
		"a kind that is no workload": {
			spec: "workloads: {kinds: [Service]}", want: `spec.workloads.kinds[0]: Unsupported value: "Service"`,
		},
		"together and divided": {
			spec: "{keepTogether: true, division: {type: Duplicate}}", want: "spec.keepTogether: Forbidden",
		},
		"a cluster name that cannot be": {
			spec: "clusters: {names: [East]}", want: `spec.clusters.names[0]: Invalid value: "East"`,
		},
		"an unknown field": {
			spec: "scatter: {topologyKey: zone}", want: `unknown field "spec.scatter"`, applied: ".spec.scatter: field not declared in schema",
		},
		"an unknown field further down": {
			spec: "division: {type: Divide, by: Even, wieghts: {east: 1}}", want: `unknown field "spec.division.wieghts"`,
			applied: ".spec.division.wieghts: field not declared in schema",
		},
		"a number where a name belongs": {
			spec: "clusters: {names: [1]}", want: "spec.clusters.names", applied: ".spec.clusters.names",
		},
		"a weight that is half a number": {
			spec: "division: {type: Divide, by: Weights, weights: {east: 0.5}}", want: "spec.division.weights",
			applied: "cannot convert float64 to int32",
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := s.Subtest(t)
			for _, kind := range []string{"PlacementPolicy", "ClusterPlacementPolicy"} {
				manifest := fmt.Sprintf("apiVersion: manifold.dev/v1alpha1\nkind: %s\nmetadata:\n  name: bad-%s\nspec:\n  %s\n", kind, s.Namespace, test.spec)
				expect.Refused(t, s.Logical.TryInput(manifest, "create", "-f", "-"), test.want)
				expect.Refused(t, s.Logical.TryInput(manifest, "apply", "--server-side", "-f", "-"), cmp.Or(test.applied, test.want))
			}
		})
	}
	expect.Refused(t, s.Logical.TryInput(`
apiVersion: manifold.dev/v1alpha1
kind: ClusterPlacementPolicy
metadata:
  name: bad
spec:
  namespaceSelector: {matchExpressions: [{key: team, operator: In}]}
`, "create", "-f", "-"), "spec.namespaceSelector.matchExpressions[0].values: Required value")
}

// TestWhatManifoldWritesIsNotForUsers is about the decision and the breakdown, which nobody may write by hand.
func TestWhatManifoldWritesIsNotForUsers(t *testing.T) {
	s := suite.Scenario(t)
	forged := map[string]string{
		v1alpha1.AnnotationPlacement: `{"west":{"replicas":9}}`,
		v1alpha1.AnnotationStatus:    `{"west":{"ready":9}}`,
	}
	warnings := []string{
		"Warning: metadata.annotations[manifold.dev/placement]: only Manifold writes this, so your value is ignored",
		"Warning: metadata.annotations[manifold.dev/status]: only Manifold writes this, so your value is ignored",
	}
	check := func(what string, result framework.Result) {
		t.Helper()
		if result.Code != 0 {
			t.Errorf("%s: %s", what, result)
		}
		expect.Says(t, result.Stderr, warnings...)
		d := expect.RolledOut(s, "web", 2)
		if !expect.PlacedOn(s, "east")(d) || strings.Contains(d.Annotations[v1alpha1.AnnotationStatus], "9") {
			t.Errorf("%s: what was forged is obeyed: %v", what, d.Annotations)
		}
	}
	manifest := manifests.Edited(manifests.Pinned(manifests.Deployment("web", 2), "east"), func(d *appsv1.Deployment) {
		for key, value := range forged {
			d.Annotations[key] = value
		}
	})
	check("create", s.Logical.TryInput(manifest, "apply", "-f", "-"))
	check("server-side apply", s.Logical.TryInput(manifest, "apply", "--server-side", "--force-conflicts", "-f", "-"))
	args := []string{"annotate", "deployment", "web", "--overwrite"}
	for key, value := range forged {
		args = append(args, key+"="+value)
	}
	check("annotate", s.Logical.Try(args...))
	check("a patch of the status", s.Logical.Try("patch", "deployment", "web", "--subresource=status", "--type=merge", "-p",
		`{"metadata":{"annotations":{"manifold.dev/placement":"{\"west\":{\"replicas\":9}}","manifold.dev/status":"{\"west\":{\"ready\":9}}"}}}`))

	// Taking them away is what a manifest without them does: nothing happens, and nobody is warned.
	result := s.Logical.Try("annotate", "deployment", "web", v1alpha1.AnnotationPlacement+"-", v1alpha1.AnnotationStatus+"-")
	if result.Code != 0 || strings.Contains(result.Stderr, "Warning") {
		t.Errorf("taking the annotations away: %s", result)
	}
	if d := expect.RolledOut(s, "web", 2); !expect.PlacedOn(s, "east")(d) {
		t.Errorf("it is placed on %s after that", framework.DecisionOf(s, d))
	}
}
