package manifests

import (
	"reflect"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"
)

func object(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	out := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &out.Object); err != nil {
		t.Fatal(err)
	}
	return out
}

func namespaced(gvk schema.GroupVersionKind) (namespaced, known bool) {
	return gvk.Kind != "ClusterRole" && gvk.Kind != "Namespace", gvk.Kind != "Unknown"
}

func TestWhatAnApplicationMayNotHave(t *testing.T) {
	for name, test := range map[string]struct {
		object, account string
		want            string
	}{
		"what is in its namespace": {object: "{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, namespace: shop}}"},
		"what nobody knows yet":    {object: "{apiVersion: example.com/v1, kind: Unknown, metadata: {name: web, namespace: shop}}"},
		"what is in no namespace": {
			object: "{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: all}}", want: "ClusterRole.rbac.authorization.k8s.io all: it is in no namespace, and written as a ServiceAccount alone: set spec.serviceAccountName",
		},
		"what is in no namespace, and says that it is": {
			object: "{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: all, namespace: shop}}", want: "it is in no namespace",
		},
		"what is in none and nobody knows yet":   {object: "{apiVersion: example.com/v1, kind: Unknown, metadata: {name: web}}", want: "it is in no namespace"},
		"what is in no namespace, of an account": {object: "{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: all}}", account: "robot"},
		"such that says it is in another":        {object: "{apiVersion: v1, kind: Namespace, metadata: {name: shop, namespace: kube-system}}", account: "robot"},
		"such without a name":                    {object: "{apiVersion: v1, kind: Namespace, metadata: {generateName: shop-}}", account: "robot", want: "it has no name"},
		"a namespace":                            {object: "{apiVersion: v1, kind: Namespace, metadata: {name: shop}}", want: "Namespace shop: it is in no namespace"},
		"what is in another":                     {object: "{apiVersion: v1, kind: Secret, metadata: {name: web, namespace: kube-system}}", account: "robot", want: `it is in namespace "kube-system"`},
		"rights":                                 {object: "{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: web, namespace: shop}}", want: "set spec.serviceAccountName"},
		"rights that an account has":             {object: "{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: web, namespace: shop}}", account: "robot"},
		"a revision of another one":              {object: "{apiVersion: delivery.manifold.dev/v1alpha1, kind: ApplicationRevision, metadata: {name: db-v1, namespace: shop}}", want: "set spec.serviceAccountName"},
		"a policy":                               {object: "{apiVersion: manifold.dev/v1alpha1, kind: PlacementPolicy, metadata: {name: all, namespace: shop}}", want: "set spec.serviceAccountName"},
	} {
		t.Run(name, func(t *testing.T) {
			err := Rules{Namespace: "shop", Account: test.account, Namespaced: namespaced}.Check([]*unstructured.Unstructured{object(t, test.object)})
			if (err != nil) != (test.want != "") || err != nil && !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v, want %q", err, test.want)
			}
		})
	}
}

func TestMarksAreNotForManifestsToSet(t *testing.T) {
	got := object(t, `
apiVersion: v1
kind: ConfigMap
metadata:
  name: a
  labels: {app: web, delivery.manifold.dev/application: other, delivery.manifold.dev/placement: other-primary}
  annotations: {note: mine, manifold.dev/clusters: east, manifold.dev/placement: '{"east":{"revision":"other-v1"}}', delivery.manifold.dev/applied: x}
  ownerReferences: [{uid: x}]
  finalizers: [manifold.dev/projection]
`)
	removed := Clean(got)
	want := object(t, `
apiVersion: v1
kind: ConfigMap
metadata: {name: a, labels: {app: web}, annotations: {note: mine, manifold.dev/clusters: east}}
`)
	if !reflect.DeepEqual(got, want) {
		t.Errorf("what is left is %v, want %v", got, want)
	}
	if names := strings.Join(removed, " "); names != "metadata.annotations[delivery.manifold.dev/applied] metadata.annotations[manifold.dev/placement] "+
		"metadata.labels[delivery.manifold.dev/application] metadata.labels[delivery.manifold.dev/placement] metadata.ownerReferences metadata.finalizers" {
		t.Errorf("removed is %s", names)
	}
	if again := Clean(got); len(again) > 0 {
		t.Errorf("of a clean object is removed %v", again)
	}
}

func TestWhatManifestsTellPipeCDIsNamed(t *testing.T) {
	got := Unhonoured(object(t, `
apiVersion: v1
kind: ConfigMap
metadata:
  name: a
  annotations: {note: mine, pipecd.dev/sync-by-replace: enabled, pipecd.dev/ignore-drift-detection: 'true', not.pipecd.dev/x: z}
`))
	want := "metadata.annotations[pipecd.dev/ignore-drift-detection] is not honoured: name the object in spec.drift.ignore " +
		"metadata.annotations[pipecd.dev/sync-by-replace] is not honoured"
	if strings.Join(got, " ") != want {
		t.Errorf("named are %q", got)
	}
}

func TestWhatALiveObjectIsAppliedBy(t *testing.T) {
	for name, test := range map[string]struct{ live, want string }{
		"a Deployment with its status": {`
apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
  namespace: shop
  uid: x
  resourceVersion: "7"
  generation: 3
  creationTimestamp: "2026-01-01T00:00:00Z"
  labels: {app: web}
  annotations: {deployment.kubernetes.io/revision: "3", kubectl.kubernetes.io/last-applied-configuration: "{}", manifold.dev/placement: "{}", manifold.dev/status: "{}", manifold.dev/clusters: "east,west"}
  finalizers: [manifold.dev/projection]
  managedFields: [{manager: kubectl}]
spec: {replicas: 3, paused: true}
status: {readyReplicas: 3}
`, "{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, namespace: shop, labels: {app: web}}, spec: {paused: true}}"},
		"a Service with what the server has chosen": {`
apiVersion: v1
kind: Service
metadata: {name: web, namespace: shop}
spec: {clusterIP: 10.0.0.1, clusterIPs: [10.0.0.1], type: NodePort, ports: [{port: 80, nodePort: 30001}]}
`, "{apiVersion: v1, kind: Service, metadata: {name: web, namespace: shop}, spec: {type: NodePort, ports: [{port: 80}]}}"},
		"a headless Service": {
			"{apiVersion: v1, kind: Service, metadata: {name: web}, spec: {clusterIP: None, clusterIPs: [None], ports: [{port: 80}]}}",
			"{apiVersion: v1, kind: Service, metadata: {name: web}, spec: {clusterIP: None, clusterIPs: [None], ports: [{port: 80}]}}",
		},
	} {
		t.Run(name, func(t *testing.T) {
			live := object(t, test.live)
			before := live.DeepCopy()
			if got, want := FromLive(live), object(t, test.want); !reflect.DeepEqual(got, want) {
				t.Errorf("manifest %v, want %v", got, want)
			}
			if !reflect.DeepEqual(live, before) {
				t.Error("the live object is changed")
			}
		})
	}
}
