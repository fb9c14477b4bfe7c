package gitopsclusters

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/tools/cache"
	testclock "k8s.io/utils/clock/testing"

	manifold "github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	ourfake "github.com/manifold-dev/manifold/generated/clientset/versioned/fake"
	"github.com/manifold-dev/manifold/generated/informers/externalversions"
	"github.com/manifold-dev/manifold/pkg/clusters/health"
	"github.com/manifold-dev/manifold/pkg/delivery/weave"
)

var name = cache.NewObjectName("ops", "dev")

// world is a logical cluster with one GitopsCluster, which is nil if there is none.
type world struct {
	*testing.T
	*Controller
	api     *dynamicfake.FakeDynamicClient
	object  *metav1.PartialObjectMetadata
	changed func(cache.ObjectName)
	cache   cache.Indexer
	clock   *testclock.FakeClock
}

func (w *world) FollowKind(resource schema.GroupResource, changed func(cache.ObjectName)) {
	if resource == weave.GitopsClusters.GroupResource() {
		w.changed = changed
	}
}

func (w *world) Get(of schema.GroupKind, namespace, name string) (*metav1.PartialObjectMetadata, bool) {
	if of != kind || w.object == nil || w.object.Namespace != namespace || w.object.Name != name {
		return nil, true
	}
	return w.object, true
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{T: t, clock: testclock.NewFakeClock(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))}
	stored := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"secretRef": map[string]any{"name": "dev-kubeconfig"}}}}
	stored.SetGroupVersionKind(weave.GitopsClusters.GroupVersion().WithKind(weave.KindGitopsCluster))
	stored.SetNamespace(name.Namespace)
	stored.SetName(name.Name)
	stored.SetGeneration(3)
	w.api = dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), map[schema.GroupVersionResource]string{weave.GitopsClusters: "GitopsClusterList"}, stored)
	w.object = &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: name.Namespace, Name: name.Name, Generation: 3, ResourceVersion: "1"}}
	ours := externalversions.NewSharedInformerFactory(ourfake.NewClientset(), 0)
	var err error
	if w.Controller, err = New(Options{Kinds: w, Clusters: ours.Manifold().V1alpha1().Clusters(), Client: w.api, Clock: w.clock}); err != nil {
		t.Fatal(err)
	}
	w.cache = ours.Manifold().V1alpha1().Clusters().Informer().GetIndexer()
	return w
}

// join has a Cluster with these conditions, and tells of it.
func (w *world) join(conditions ...metav1.Condition) {
	w.Helper()
	cluster := &manifold.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "dev"}, Status: manifold.ClusterStatus{Conditions: conditions}}
	before, there, _ := w.cache.GetByKey("dev")
	if !there {
		before = nil
	}
	if err := w.cache.Update(cluster); err != nil {
		w.Fatal(err)
	}
	w.Controller.changed(before, cluster)
}

// settle does what there is to do, and returns what was asked of the API.
func (w *world) settle() (asked []string) {
	w.Helper()
	w.api.ClearActions()
	for w.queue.Len() > 0 {
		key, _ := w.queue.Get()
		if err := w.sync(w.Context(), key); err != nil {
			w.Fatal(err)
		}
		w.queue.Done(key)
	}
	for _, action := range w.api.Actions() {
		asked = append(asked, strings.Trim(action.GetVerb()+" "+action.GetResource().Resource+"/"+action.GetSubresource(), "/"))
	}
	return asked
}

// shown is a condition as it is stored.
func (w *world) shown(condition string) metav1.Condition {
	w.Helper()
	found, err := w.api.Resource(weave.GitopsClusters).Namespace(name.Namespace).Get(w.Context(), name.Name, metav1.GetOptions{})
	if err != nil {
		w.Fatal(err)
	}
	var status struct {
		Status struct {
			Conditions []metav1.Condition `json:"conditions"`
		} `json:"status"`
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(found.Object, &status); err != nil {
		w.Fatal(err)
	}
	if got := meta.FindStatusCondition(status.Status.Conditions, condition); got != nil {
		return *got
	}
	return metav1.Condition{}
}

func ready(status metav1.ConditionStatus, reason string) metav1.Condition {
	return metav1.Condition{Type: manifold.ClusterReady, Status: status, Reason: reason, Message: "https://10.0.0.1:6443 answers with an error: the password is 1234"}
}

func TestAGitopsClusterShowsHowTheClusterOfItsNameIs(t *testing.T) {
	silent := metav1.Condition{Type: manifold.ClusterAnswering, Status: metav1.ConditionFalse, Reason: "Silent"}
	for text, test := range map[string]struct {
		conditions          []metav1.Condition
		none                bool
		ready, connectivity string
	}{
		"no Cluster":                       {none: true, ready: "False ClusterNotJoined", connectivity: "False ClusterNotJoined"},
		"one that was not heard of":        {ready: "Unknown ClusterNotHeard", connectivity: "Unknown ClusterNotHeard"},
		"one that is ready":                {[]metav1.Condition{ready("True", health.ReasonReady)}, false, "True ClusterReady", "True ClusterConnectionSucceeded"},
		"one that has just stopped":        {[]metav1.Condition{ready("True", health.ReasonReady), silent}, false, "True ClusterReady", "False ClusterConnectionFailed"},
		"one that is silent for long":      {[]metav1.Condition{ready("Unknown", health.ReasonUnreachable)}, false, "Unknown Unreachable", "False ClusterConnectionFailed"},
		"one that answers and is not well": {[]metav1.Condition{ready("False", health.ReasonNotReady)}, false, "False NotReady", "True ClusterConnectionSucceeded"},
		"one that does not know us":        {[]metav1.Condition{ready("False", health.ReasonUnauthorized)}, false, "False Unauthorized", "False ClusterConnectionFailed"},
		"another one at its address":       {[]metav1.Condition{ready("False", health.ReasonDifferentCluster)}, false, "False DifferentCluster", "False ClusterConnectionFailed"},
	} {
		t.Run(text, func(t *testing.T) {
			w := newWorld(t)
			if !test.none {
				w.join(test.conditions...)
			}
			w.changed(name)
			w.settle()
			for condition, want := range map[string]string{"Ready": test.ready, "ClusterConnectivity": test.connectivity} {
				got := w.shown(condition)
				if string(got.Status)+" "+got.Reason != want || got.ObservedGeneration != 3 || !strings.Contains(got.Message, `"dev"`) {
					t.Errorf("%s is %+v, want %s", condition, got, want)
				}
				if strings.Contains(got.Message, "1234") || strings.Contains(got.Message, "10.0.0.1") {
					t.Errorf("%s repeats what is for those who may see Clusters: %s", condition, got.Message)
				}
			}
		})
	}
}

func TestAGitopsClusterFollowsItsClusterAndIsWrittenOnlyForNews(t *testing.T) {
	w := newWorld(t)
	w.changed(name)
	if got := w.settle(); strings.Join(got, ", ") != "get gitopsclusters, update gitopsclusters/status" {
		t.Errorf("asked for %v", got)
	}
	w.join(ready("True", health.ReasonReady))
	w.settle()
	since := w.shown("Ready")
	if since.Status != "True" {
		t.Fatalf("it joins: %+v", since)
	}
	w.clock.Step(time.Minute)
	w.join(ready("True", health.ReasonReady))
	if got := w.settle(); len(got) > 0 {
		t.Errorf("a Cluster that tells nothing new has it ask for %v", got)
	}
	other := ready("True", health.ReasonReady)
	other.Message = "something else"
	w.join(other)
	if got := w.settle(); strings.Contains(strings.Join(got, ", "), "update") {
		t.Errorf("words that are not shown are written: %v", got)
	}
	if got := w.shown("Ready"); !got.LastTransitionTime.Equal(&since.LastTransitionTime) {
		t.Errorf("since %s, and now since %s", since.LastTransitionTime, got.LastTransitionTime)
	}
	w.join(ready("Unknown", health.ReasonUnreachable))
	w.settle()
	if got := w.shown("Ready"); got.Status != "Unknown" || !got.LastTransitionTime.Time.Equal(w.clock.Now()) {
		t.Errorf("it falls silent: %+v", got)
	}
	last, _, _ := w.cache.GetByKey("dev")
	if err := w.cache.Delete(last); err != nil {
		t.Fatal(err)
	}
	w.Controller.changed(nil, last)
	w.settle()
	if got := w.shown("Ready"); got.Reason != reasonNotJoined {
		t.Errorf("it is removed: %+v", got)
	}
}

func TestWhatSomebodyElseWritesOnAGitopsClusterIsPutRight(t *testing.T) {
	w := newWorld(t)
	w.join(ready("True", health.ReasonReady))
	client := w.api.Resource(weave.GitopsClusters).Namespace(name.Namespace)
	forged, err := client.Get(t.Context(), name.Name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	condition := func(kind, status string) map[string]any {
		return map[string]any{"type": kind, "status": status, "reason": "Forged", "message": "a", "lastTransitionTime": "2026-01-01T00:00:00Z"}
	}
	forged.Object["status"] = map[string]any{"conditions": []any{condition("Ready", "False"), condition("Painted", "True")}}
	if _, err := client.UpdateStatus(t.Context(), forged, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	w.changed(name)
	w.settle()
	if got := w.shown("Ready"); got.Status != "True" || got.Reason != health.ReasonReady {
		t.Errorf("Ready is %+v", got)
	}
	if got := w.shown("Painted"); got.Reason != "Forged" {
		t.Errorf("a condition of others is %+v", got)
	}
}

func TestAGitopsClusterThatIsGoneIsForgotten(t *testing.T) {
	w := newWorld(t)
	w.changed(name)
	w.settle()
	w.object = nil
	w.changed(name)
	if got := w.settle(); len(got) > 0 || len(w.views) > 0 {
		t.Errorf("asked for %v, and remembered %v", got, w.views)
	}
	w.join(ready("True", health.ReasonReady))
	if w.queue.Len() > 0 {
		t.Error("its Cluster has it looked at")
	}
}
