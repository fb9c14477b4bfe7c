package compare

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

func parse(t *testing.T, manifest string) *unstructured.Unstructured {
	t.Helper()
	if manifest == "" {
		return nil
	}
	out := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(manifest), &out.Object); err != nil {
		t.Fatal(err)
	}
	return out
}

const configMap = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: web}\ndata: {value: one}\n"

// kept is a ConfigMap with all that the server and controllers keep, and nobody writes into manifests.
const kept = `apiVersion: v1
kind: ConfigMap
metadata:
  name: web
  namespace: shop
  uid: "1"
  resourceVersion: "7"
  generation: 3
  creationTimestamp: "2026-11-20T12:00:00Z"
  managedFields: [{manager: manifold-delivery}]
  ownerReferences: [{kind: Application, name: web}]
  labels: {delivery.manifold.dev/application: web}
  annotations: {manifold.dev/placement: "{}", kubectl.kubernetes.io/last-applied-configuration: "hunter2"}
data: {value: one}
status: {phase: Fine}
`

const secret = "apiVersion: v1\nkind: Secret\nmetadata: {name: web, annotations: {kubectl.kubernetes.io/last-applied-configuration: hunter2}}\ndata: {password: %s, user: cm9vdA==}\n"

func TestUnified(t *testing.T) {
	was, is := strings.Replace(secret, "%s", "aHVudGVyMg==", 1), strings.Replace(secret, "%s", "aHVudGVyMw==", 1)
	for name, test := range map[string]struct {
		from, to string
		want     string
	}{
		"nothing but what the server keeps": {from: kept, to: configMap},
		"nothing at all":                    {},
		"a field": {from: configMap, to: strings.Replace(configMap, "one", "two", 1), want: `--- a
+++ b
@@ -1,6 +1,6 @@
 apiVersion: v1
 data:
-  value: one
+  value: two
 kind: ConfigMap
 metadata:
   name: web
`},
		"a new object": {to: configMap, want: `--- a
+++ b
@@ -0,0 +1,6 @@
+apiVersion: v1
+data:
+  value: one
+kind: ConfigMap
+metadata:
+  name: web
`},
		"a Secret, of which values are masked": {from: was, to: is, want: `--- a
+++ b
@@ -1,6 +1,6 @@
 apiVersion: v1
 data:
-  password: '*** (before)'
+  password: '*** (after)'
   user: '***'
 kind: Secret
 metadata:
`},
		"a new Secret": {to: is, want: `--- a
+++ b
@@ -0,0 +1,7 @@
+apiVersion: v1
+data:
+  password: '***'
+  user: '***'
+kind: Secret
+metadata:
+  name: web
`},
		"what a terminal obeys": {from: configMap, to: strings.Replace(configMap, "one", `"a\u202eb"`, 1), want: `--- a
+++ b
@@ -1,6 +1,6 @@
 apiVersion: v1
 data:
-  value: one
+  value: a\u202eb
 kind: ConfigMap
 metadata:
   name: web
`},
	} {
		t.Run(name, func(t *testing.T) {
			from, to := parse(t, test.from), parse(t, test.to)
			got, err := Unified(from, to, "a", "b")
			if err != nil {
				t.Fatal(err)
			}
			if got != test.want {
				t.Errorf("got\n%s\nwant\n%s", got, test.want)
			}
			if strings.Contains(got, "aHVudGVy") || strings.Contains(got, "hunter") {
				t.Error("a Secret's value is shown")
			}
		})
	}
}
