package engine

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"sync"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	testingclock "k8s.io/utils/clock/testing"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	manifoldfake "github.com/manifold-dev/manifold/generated/clientset/versioned/fake"
	"github.com/manifold-dev/manifold/generated/informers/externalversions"
	"github.com/manifold-dev/manifold/pkg/placement"
)

// joined is a cluster that is ready and has so many cores.
func joined(name string, cores int64) *v1alpha1.Cluster {
	return &v1alpha1.Cluster{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Status: v1alpha1.ClusterStatus{
			Conditions: []metav1.Condition{{Type: v1alpha1.ClusterReady, Status: metav1.ConditionTrue}},
			Allocatable: corev1.ResourceList{
				corev1.ResourceCPU:  *resource.NewQuantity(cores, resource.DecimalSI),
				corev1.ResourcePods: *resource.NewQuantity(1000, resource.DecimalSI),
			},
		},
	}
}

// removed is a cluster that is being removed in a manner, "" for the one that moves workloads off first.
func removed(name string, cores int64, manner string) *v1alpha1.Cluster {
	c := joined(name, cores)
	c.DeletionTimestamp = &metav1.Time{Time: start}
	c.Finalizers = []string{v1alpha1.FinalizerCluster}
	if manner != "" {
		c.Annotations = map[string]string{v1alpha1.AnnotationRemove: manner}
	}
	return c
}

func namespace(pin string) *corev1.Namespace {
	n := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop", Labels: map[string]string{"team": "red"}}}
	if pin != "" {
		n.Annotations = map[string]string{v1alpha1.AnnotationClusters: pin}
	}
	return n
}

func policy(name string, change func(*v1alpha1.ClusterPlacementPolicySpec)) *v1alpha1.ClusterPlacementPolicy {
	p := &v1alpha1.ClusterPlacementPolicy{ObjectMeta: metav1.ObjectMeta{Name: name}}
	change(&p.Spec)
	return p
}

func together() *v1alpha1.ClusterPlacementPolicy {
	return policy("default", func(s *v1alpha1.ClusterPlacementPolicySpec) { s.KeepTogether = true })
}

// workload asks for one core for each replica.
func workload(name string, replicas int32) placement.Workload {
	return placement.Workload{
		GVK: appsv1.SchemeGroupVersion.WithKind("Deployment"), Namespace: "shop", Name: name,
		Replicas: replicas, Requests: oneCore, Division: placement.Divisible,
	}
}

func pinned(w placement.Workload, names ...string) placement.Workload {
	w.Pin = &v1alpha1.Pin{Names: names}
	return w
}

func labelled(w placement.Workload, key, value string) placement.Workload {
	w.Labels = map[string]string{key: value}
	return w
}

// placed is a Deployment of one core for each replica, as a watch shows it.
func placed(name string, decision placement.Decision) *appsv1.Deployment {
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name,
		Annotations: map[string]string{v1alpha1.AnnotationPlacement: decision.String()}}}
	d.Spec.Template.Spec.Containers = []corev1.Container{{Name: "app", Resources: corev1.ResourceRequirements{
		Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}}}}
	return d
}

// newEngine is one that knows the objects, and that no cluster's pods request anything.
func newEngine(t *testing.T, objects ...runtime.Object) *Engine {
	t.Helper()
	e, run := prepare(t, objects...)
	run()
	return e
}

// prepare makes an engine whose informers are started, and have synced, once run is called.
func prepare(t *testing.T, objects ...runtime.Object) (e *Engine, run func()) {
	t.Helper()
	var stock, own []runtime.Object
	for _, obj := range objects {
		switch obj.(type) {
		case *v1alpha1.Cluster, *v1alpha1.ClusterPlacementPolicy, *v1alpha1.PlacementPolicy:
			own = append(own, obj)
		default:
			stock = append(stock, obj)
		}
	}
	kube := informers.NewSharedInformerFactory(fake.NewClientset(stock...), 0)
	manifold := externalversions.NewSharedInformerFactory(manifoldfake.NewClientset(own...), 0)
	e, err := New(Options{
		Kube: kube, Manifold: manifold, Clock: testingclock.NewFakePassiveClock(start),
		Requested: func(string) (corev1.ResourceList, bool) { return nil, false },
	})
	if err != nil {
		t.Fatal(err)
	}
	return e, func() {
		ctx, cancel := context.WithCancel(t.Context())
		t.Cleanup(func() {
			cancel()
			kube.Shutdown()
			manifold.Shutdown()
		})
		kube.StartWithContext(ctx)
		manifold.StartWithContext(ctx)
		kube.WaitForCacheSync(ctx.Done())
		manifold.WaitForCacheSync(ctx.Done())
		for !e.HasSynced() { // the ledger's handler follows the caches
			if ctx.Err() != nil {
				t.Fatal("the engine does not sync")
			}
		}
	}
}

func TestPlaceTakesIntoAccountWhatTheCachesHold(t *testing.T) {
	for name, test := range map[string]struct {
		objects  []runtime.Object
		workload placement.Workload
		current  placement.Decision
		want     placement.Decision
		// wantMessage is how the result's message begins.
		wantMessage string
	}{
		"the pin of the namespace is that of its workloads": {
			objects:  []runtime.Object{joined("east", 9), joined("west", 4), namespace("west")},
			workload: workload("web", 2),
			want:     on("west", 2),
		},
		"a workload's own pin wins over its namespace's": {
			objects:  []runtime.Object{joined("east", 9), joined("west", 4), namespace("west")},
			workload: pinned(workload("web", 2), "east"),
			want:     on("east", 2),
		},
		"a malformed pin of a namespace counts as none": {
			objects:  []runtime.Object{joined("east", 9), joined("west", 4), namespace(",")},
			workload: workload("web", 2),
			want:     on("east", 2),
		},
		"a namespace that is not known yet has no pin": {
			objects:  []runtime.Object{joined("east", 9), joined("west", 4)},
			workload: workload("web", 2),
			want:     on("east", 2),
		},
		"a policy selects by the labels of the namespace": {
			objects: []runtime.Object{joined("east", 9), joined("west", 4), namespace(""), policy("red", func(s *v1alpha1.ClusterPlacementPolicySpec) {
				s.NamespaceSelector = metav1.SetAsLabelSelector(map[string]string{"team": "red"})
				s.Clusters = &v1alpha1.ClusterSelector{Names: []string{"west"}}
			})},
			workload: workload("web", 2),
			want:     on("west", 2),
		},
		"a workload follows the others of its namespace": {
			objects:  []runtime.Object{joined("east", 9), joined("west", 4), namespace(""), together(), placed("api", on("west", 1))},
			workload: workload("web", 2),
			want:     on("west", 2),
		},
		"affinity knows where the others of the namespace are": {
			objects: []runtime.Object{joined("east", 9), joined("west", 4), namespace(""), placed("api", on("west", 1)),
				policy("near", func(s *v1alpha1.ClusterPlacementPolicySpec) { s.Affinity = []v1alpha1.WorkloadAffinity{{}} })},
			workload: workload("web", 2),
			want:     on("west", 2),
		},
		"affinity knows the labels of the others' namespaces": {
			objects: []runtime.Object{joined("east", 9), joined("west", 4), namespace(""), placed("api", on("east", 1)),
				policy("apart", func(s *v1alpha1.ClusterPlacementPolicySpec) {
					s.AntiAffinity = []v1alpha1.WorkloadAffinity{{NamespaceSelector: metav1.SetAsLabelSelector(map[string]string{"team": "red"})}}
				})},
			workload: workload("web", 2),
			want:     on("west", 2),
		},
		"a workload is kept apart from another one by the policy of that one": {
			objects: []runtime.Object{joined("east", 9), joined("west", 4), namespace(""), placed("api", on("east", 1)),
				&v1alpha1.PlacementPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "apart"}, Spec: v1alpha1.PlacementPolicySpec{
					Workloads:    &v1alpha1.WorkloadSelector{LabelSelector: metav1.SetAsLabelSelector(nil)},
					AntiAffinity: []v1alpha1.WorkloadAffinity{{Workloads: &v1alpha1.WorkloadSelector{LabelSelector: metav1.SetAsLabelSelector(map[string]string{"app": "web"})}}},
				}},
				&v1alpha1.PlacementPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "own"}, Spec: v1alpha1.PlacementPolicySpec{
					Priority: 1, Workloads: &v1alpha1.WorkloadSelector{LabelSelector: metav1.SetAsLabelSelector(map[string]string{"app": "web"})},
				}}},
			workload: labelled(workload("web", 2), "app", "web"),
			want:     on("west", 2),
		},
		"a workload does not follow itself": {
			objects: []runtime.Object{joined("east", 9), joined("west", 4), namespace(""), together(),
				placed("web", on("east", 3)), placed("api", on("west", 1))},
			workload: workload("web", 2),
			want:     on("west", 2),
		},
		"what decisions put on a cluster is not free there": {
			objects:  []runtime.Object{joined("east", 9), joined("west", 4), namespace(""), placed("api", on("east", 8))},
			workload: workload("web", 2),
			want:     on("west", 2),
		},
		"a cluster that is being removed is left": {
			objects:  []runtime.Object{removed("east", 9, ""), joined("west", 4), namespace("")},
			workload: workload("web", 2),
			current:  on("east", 2),
			want:     on("west", 2),
		},
		"a cluster that is being removed keeps what fits nowhere else": {
			objects:  []runtime.Object{removed("east", 9, ""), joined("west", 1), namespace("")},
			workload: workload("web", 2),
			current:  on("east", 2),
			want:     on("east", 2),
		},
		"a cluster that is given up has nothing any more": {
			objects:  []runtime.Object{removed("east", 9, v1alpha1.RemoveForce), joined("west", 1), namespace("")},
			workload: workload("web", 2),
			current:  on("east", 2),
			want:     on("west", 2),
		},
		"without a cluster it says so": {
			objects:     []runtime.Object{namespace("")},
			workload:    workload("web", 2),
			wantMessage: "0/0 clusters can run it: no cluster has joined",
		},
		"a policy that cannot be read is named": {
			objects: []runtime.Object{joined("east", 9), namespace(""), policy("broken", func(s *v1alpha1.ClusterPlacementPolicySpec) {
				s.NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"not a key": ""}}
			})},
			workload:    workload("web", 2),
			wantMessage: "select Deployment shop/web by ClusterPlacementPolicy broken: ",
		},
		"a policy that cannot be read takes nothing away": {
			objects: []runtime.Object{joined("east", 9), namespace(""), policy("broken", func(s *v1alpha1.ClusterPlacementPolicySpec) {
				s.NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"not a key": ""}}
			})},
			workload:    workload("web", 2),
			current:     on("east", 2),
			want:        on("east", 2),
			wantMessage: "placed on east; select Deployment shop/web by ClusterPlacementPolicy broken: ",
		},
	} {
		t.Run(name, func(t *testing.T) {
			result, ready := newEngine(t, test.objects...).Place(test.workload, test.current)
			if !ready {
				t.Fatal("not ready")
			}
			if !result.Decision.Equal(test.want) {
				t.Errorf("decision %v, want %v: %s", result.Decision, test.want, result.Message())
			}
			if !strings.HasPrefix(result.Message(), test.wantMessage) {
				t.Errorf("message %q, want it to begin with %q", result.Message(), test.wantMessage)
			}
		})
	}
}

func TestNothingIsDecidedBeforeTheClustersAreKnown(t *testing.T) {
	e, run := prepare(t, joined("east", 9), namespace(""))
	if result, ready := e.Place(workload("web", 1), nil); ready {
		t.Errorf("decided %v without knowing anything", result.Decision)
	}
	run()
	if _, ready := e.Place(workload("web", 1), nil); !ready {
		t.Error("still not ready")
	}
}

// kubectl apply of a folder sends all objects before a watch shows the first.
func TestABurstIsKeptNear(t *testing.T) {
	clusters := []runtime.Object{namespace(""), policy("near", func(s *v1alpha1.ClusterPlacementPolicySpec) {
		s.Affinity = []v1alpha1.WorkloadAffinity{{}}
	})}
	for i := range 8 {
		clusters = append(clusters, joined(fmt.Sprint("cluster-", i), 9))
	}
	e := newEngine(t, clusters...)
	results := make([]placement.Result, 8)
	var group sync.WaitGroup
	for i := range results {
		group.Go(func() { results[i], _ = e.Place(workload(fmt.Sprint("web-", i), 1), nil) })
	}
	group.Wait()
	for i, result := range results {
		if !result.Decision.Equal(results[0].Decision) || len(result.Decision) != 1 {
			t.Errorf("workload %d is on %v, the first on %v", i, result.Decision, results[0].Decision)
		}
	}
}

func TestABurstIsKeptApart(t *testing.T) {
	e := newEngine(t, joined("east", 9), joined("west", 9), joined("north", 9), namespace(""), policy("apart", func(s *v1alpha1.ClusterPlacementPolicySpec) {
		s.AntiAffinity = []v1alpha1.WorkloadAffinity{{}}
	}))
	results := make([]placement.Result, 3)
	var group sync.WaitGroup
	for i := range results {
		group.Go(func() { results[i], _ = e.Place(workload(fmt.Sprint("web-", i), 1), nil) })
	}
	group.Wait()
	taken := map[string]bool{}
	for _, result := range results {
		for cluster := range result.Decision {
			taken[cluster] = true
		}
	}
	if len(taken) != len(results) {
		t.Errorf("%d workloads are on %v", len(results), taken)
	}
}

func TestBurstInANamespaceFollowsTheFirst(t *testing.T) {
	e := newEngine(t, joined("east", 10), joined("west", 9), namespace(""), together())
	for _, name := range []string{"a", "b", "c", "d", "e"} {
		w := workload(name, 1)
		result, _ := e.Place(w, nil)
		if want := on("east", 1); !result.Decision.Equal(want) {
			t.Fatalf("%s is placed by %v, want %v", name, result.Decision, want)
		}
		e.Placed(w, result.Decision)
	}
}

func TestBurstBeyondWhatFitsGoesElsewhere(t *testing.T) {
	e := newEngine(t, joined("east", 4), joined("west", 3), namespace(""))
	total := map[string]int32{}
	for _, name := range []string{"a", "b", "c", "d", "e", "f", "g"} {
		w := workload(name, 1)
		result, _ := e.Place(w, nil)
		for cluster, share := range result.Decision {
			total[cluster] += share.Replicas
		}
		e.Placed(w, result.Decision)
	}
	if want := (map[string]int32{"east": 4, "west": 3}); !maps.Equal(total, want) {
		t.Errorf("seven workloads of a core went to %v, want %v", total, want)
	}
}

// Those who decide at the same time do not take the same room, be it for what is new or for what waits or grows.
func TestMoreAtOnceThanHasRoomIsNotTaken(t *testing.T) {
	const room, each = 10, 40
	for name, test := range map[string]struct {
		current placement.Decision
		asked   int32
	}{
		"what is new":  {asked: 1},
		"what spreads": {current: placement.Decision{"far": {Replicas: 1}}, asked: 2},
	} {
		t.Run(name, func(t *testing.T) {
			far := joined("far", 0)
			far.Spec.Unschedulable = true // keeps what it has
			e := newEngine(t, joined("east", room), far, namespace(""), policy("default", func(*v1alpha1.ClusterPlacementPolicySpec) {}))
			var taken sync.Mutex
			var group sync.WaitGroup
			n, begin := int32(0), make(chan struct{})
			for i := range each {
				group.Go(func() {
					<-begin // all at once
					w := pinned(workload(fmt.Sprintf("web-%d", i), test.asked), "east", "far")
					decided, known := e.Claim(w, test.current)
					taken.Lock()
					defer taken.Unlock()
					if n += decided.Decision["east"].Replicas; !known {
						t.Error("it does not know the clusters")
					}
				})
			}
			close(begin)
			group.Wait()
			if n != room {
				t.Errorf("%d replicas were given to a cluster with room for %d", n, room)
			}
		})
	}
}
