package custom

import (
	"encoding/json"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"

	"github.com/google/go-cmp/cmp"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	manifoldfake "github.com/manifold-dev/manifold/generated/clientset/versioned/fake"
	"github.com/manifold-dev/manifold/generated/informers/externalversions"
	decisions "github.com/manifold-dev/manifold/pkg/placement"
	"github.com/manifold-dev/manifold/pkg/placement/engine"
	"github.com/manifold-dev/manifold/pkg/syncer/copies"
)

var gizmos = copies.Kind{
	Resource: schema.GroupResource{Group: "example.com", Resource: "gizmos"}, Name: "Gizmo", Versions: []string{"v1"}, Statuses: map[string]bool{"v1": true},
}

// decider is a Controller that knows ready clusters "east" and "west", the namespace "shop", pinned or not, and a policy.
func decider(t *testing.T, namespacePin string, policy *v1alpha1.WorkloadSelector) (*Controller, *dynamicfake.FakeDynamicClient, *record.FakeRecorder) {
	t.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}
	if namespacePin != "" {
		namespace.Annotations = map[string]string{v1alpha1.AnnotationClusters: namespacePin}
	}
	var joined [2]*v1alpha1.Cluster
	for i, name := range []string{"east", "west"} {
		joined[i] = &v1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name}}
		joined[i].Status.Conditions = []metav1.Condition{{Type: v1alpha1.ClusterReady, Status: metav1.ConditionTrue}}
	}
	joined[1].Status.Kinds = []string{"Gizmo.v1.example.com"}
	rule := &v1alpha1.ClusterPlacementPolicy{ObjectMeta: metav1.ObjectMeta{Name: "rule"}}
	rule.Spec.Workloads = policy

	kube := informers.NewSharedInformerFactory(fake.NewClientset(namespace), 0)
	manifold := externalversions.NewSharedInformerFactory(manifoldfake.NewClientset(joined[0], joined[1], rule), 0)
	e, err := engine.New(engine.Options{Kube: kube, Manifold: manifold, Requested: func(string) (corev1.ResourceList, bool) { return nil, false }})
	if err != nil {
		t.Fatal(err)
	}
	client, recorder := dynamicfake.NewSimpleDynamicClient(runtime.NewScheme()), record.NewFakeRecorder(10)
	client.PrependReactor("patch", "gizmos", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, &unstructured.Unstructured{}, nil
	})
	c, err := New(Options{Engine: e, Syncers: struct{ Syncers }{}, Kube: kube, Manifold: manifold, Client: client, Recorder: recorder})
	if err != nil {
		t.Fatal(err)
	}
	kube.StartWithContext(t.Context())
	manifold.StartWithContext(t.Context())
	t.Cleanup(func() {
		kube.Shutdown()
		manifold.Shutdown()
	})
	if !cache.WaitForCacheSync(t.Context().Done(), append(c.synced, e.HasSynced)...) {
		t.Fatal("the caches did not fill")
	}
	return c, client, recorder
}

// patchOf is the metadata of the one patch that was sent, nil if none was.
func patchOf(t *testing.T, client *dynamicfake.FakeDynamicClient) map[string]any {
	t.Helper()
	var out map[string]any
	for _, action := range client.Actions() {
		if patch, ok := action.(clienttesting.PatchAction); ok {
			if out != nil {
				t.Errorf("a second patch: %s", patch.GetPatch())
			}
			if err := json.Unmarshal(patch.GetPatch(), &out); err != nil {
				t.Fatal(err)
			}
		}
	}
	if out == nil {
		return nil
	}
	return out["metadata"].(map[string]any)
}

func TestDecide(t *testing.T) {
	const pin, placement, status, held = v1alpha1.AnnotationClusters, v1alpha1.AnnotationPlacement, v1alpha1.AnnotationStatus, v1alpha1.FinalizerProjection
	const onEast, onBoth = `{"east":{"replicas":1}}`, `{"east":{"replicas":1},"west":{"replicas":1}}`
	listed := &v1alpha1.WorkloadSelector{Kinds: []string{"Gizmo.example.com"}, LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"sent": "yes"}}}
	type annotations = map[string]string
	written := func(decision, breakdown any, finalizers ...any) map[string]any {
		out := map[string]any{
			"uid": "u1", "resourceVersion": "7", "annotations": map[string]any{placement: decision, status: breakdown},
		}
		if finalizers != nil {
			out["finalizers"] = finalizers
		}
		return out
	}
	for name, test := range map[string]struct {
		annotations  annotations
		labels       map[string]string
		finalizers   []string
		namespacePin string
		policy       *v1alpha1.WorkloadSelector
		want         map[string]any
		wantEvent    string
		wantPolicy   string // that it follows
	}{
		"what nobody asks for stays above":                {},
		"also in a pinned namespace":                      {namespacePin: "east"},
		"also under a policy for everything":              {policy: &v1alpha1.WorkloadSelector{}},
		"also if a policy lists the kind, not the object": {policy: listed},
		"a pin places it": {
			annotations: annotations{pin: "east"}, want: written(onEast, `{"east":{}}`, held), wantEvent: "Placed placed on east",
		},
		"others' finalizers stay": {
			annotations: annotations{pin: "east"}, finalizers: []string{"other"}, want: written(onEast, `{"east":{}}`, "other", held),
			wantEvent: "Placed placed on east",
		},
		"a policy that lists it places it, where its namespace is pinned": {
			labels: map[string]string{"sent": "yes"}, policy: listed, namespacePin: "west",
			want: written(`{"west":{"replicas":1}}`, `{"west":{}}`, held), wantEvent: "Placed placed on west",
			wantPolicy: "ClusterPlacementPolicy rule",
		},
		"what is decided is not written again": {
			annotations: annotations{pin: "*", placement: onBoth, status: onBoth}, finalizers: []string{held},
		},
		"but for a finalizer that is missing": {
			annotations: annotations{pin: "east", placement: onEast, status: `{"east":{"generation":2}}`},
			want:        written(onEast, `{"east":{"generation":2}}`, held),
		},
		"the breakdown keeps where it may still be": {
			annotations: annotations{pin: "west", placement: onEast, status: `{"east":{"generation":2}}`}, finalizers: []string{held},
			want: written(`{"west":{"replicas":1}}`, `{"east":{"generation":2},"west":{}}`), wantEvent: "Placed placed on west",
		},
		"also where nothing was reported yet": {
			annotations: annotations{pin: "west", placement: onEast}, finalizers: []string{held},
			want: written(`{"west":{"replicas":1}}`, `{"east":{},"west":{}}`), wantEvent: "Placed placed on west",
		},
		"unpinned it is withdrawn": {
			annotations: annotations{placement: onEast, status: `{"east":{"generation":2}}`}, finalizers: []string{held},
			want: written(nil, `{"east":{"generation":2}}`), wantEvent: "Withdrawn neither a pin nor a policy",
		},
		"a cluster that has not joined is told": {
			annotations: annotations{pin: "mars"}, wantEvent: `Unplaced 0/2 clusters can run it: cluster "mars" has not joined`,
		},
		"a pin that does not parse changes nothing": {
			annotations: annotations{pin: ",", placement: onEast}, finalizers: []string{held}, wantEvent: "Unplaced annotation manifold.dev/clusters",
		},
	} {
		t.Run(name, func(t *testing.T) {
			c, client, recorder := decider(t, test.namespacePin, test.policy)
			k := gizmos
			o := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
				Namespace: "shop", Name: "one", UID: "u1", ResourceVersion: "7", Annotations: test.annotations, Labels: test.labels, Finalizers: test.finalizers,
			}}
			policy := ""
			c.Follow = func(resource schema.GroupVersionResource, name cache.ObjectName, result *decisions.Result) {
				if result != nil && copies.KeyOf(resource.GroupResource(), name) == copies.KeyOf(k.Resource, cache.NewObjectName("shop", "one")) {
					policy = result.Policy.String()
				}
			}
			wrote, err := c.decide(t.Context(), k, copies.KeyOf(k.Resource, cache.NewObjectName("shop", "one")), o)
			if err != nil || wrote != (test.want != nil) {
				t.Errorf("written %t, error %v", wrote, err)
			}
			if diff := cmp.Diff(test.want, patchOf(t, client)); diff != "" {
				t.Error(diff)
			}
			if policy != test.wantPolicy {
				t.Errorf("it follows %q, want %q", policy, test.wantPolicy)
			}
			close(recorder.Events)
			var events []string
			for event := range recorder.Events {
				events = append(events, event)
			}
			if got := strings.Join(events, "; "); !strings.Contains(got, test.wantEvent) || (got == "") != (test.wantEvent == "") {
				t.Errorf("events %q, want %q", got, test.wantEvent)
			}
		})
	}
}
