package controller

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/ptr"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	manifoldfake "github.com/manifold-dev/manifold/generated/clientset/versioned/fake"
	"github.com/manifold-dev/manifold/generated/informers/externalversions"
	"github.com/manifold-dev/manifold/pkg/placement"
	"github.com/manifold-dev/manifold/pkg/placement/engine"
	"github.com/manifold-dev/manifold/pkg/projection"
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

func notReady(c *v1alpha1.Cluster) *v1alpha1.Cluster {
	c.Status.Conditions[0].Status = metav1.ConditionFalse
	return c
}

// deployment is one of two replicas of a core each, with annotations in pairs of key and value.
func deployment(name string, annotations ...string) *appsv1.Deployment {
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{
		Namespace: "shop", Name: name, UID: types.UID("uid-of-" + name), ResourceVersion: "7", Annotations: map[string]string{},
	}}
	for i := 0; i < len(annotations); i += 2 {
		d.Annotations[annotations[i]] = annotations[i+1]
	}
	d.Spec.Replicas = ptr.To[int32](2)
	d.Spec.Template.Spec.Containers = []corev1.Container{{Name: "app", Resources: corev1.ResourceRequirements{
		Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}}}}
	return d
}

// named is a Deployment in the queue.
func named(name string) item {
	return item{appsv1.SchemeGroupVersion.WithResource("deployments"), cache.NewObjectName("shop", name)}
}

// harness is a controller with the logical cluster that it works in.
type harness struct {
	*Controller
	kube     *fake.Clientset
	manifold *manifoldfake.Clientset
	recorder *record.FakeRecorder
	ctx      context.Context
}

// start makes a controller whose caches hold the objects. It decides when sync is called, or after run.
func start(t *testing.T, objects ...runtime.Object) *harness {
	t.Helper()
	var stock, own []runtime.Object
	for _, obj := range objects {
		switch obj.(type) {
		case *v1alpha1.Cluster, *v1alpha1.PlacementPolicy, *v1alpha1.ClusterPlacementPolicy:
			own = append(own, obj)
		default:
			stock = append(stock, obj)
		}
	}
	h := &harness{kube: fake.NewClientset(stock...), manifold: manifoldfake.NewClientset(own...), recorder: record.NewFakeRecorder(100)}
	kube := informers.NewSharedInformerFactory(h.kube, 0)
	manifold := externalversions.NewSharedInformerFactory(h.manifold, 0)
	placing, err := engine.New(engine.Options{
		Kube: kube, Manifold: manifold, Requested: func(string) (corev1.ResourceList, bool) { return nil, false },
	})
	if err != nil {
		t.Fatal(err)
	}
	h.Controller, err = New(Options{Engine: placing, Kube: kube, Manifold: manifold, Client: h.kube, Recorder: h.recorder})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	h.ctx = ctx
	t.Cleanup(func() {
		cancel()
		kube.Shutdown()
		manifold.Shutdown()
	})
	kube.StartWithContext(ctx)
	manifold.StartWithContext(ctx)
	if !cache.WaitForCacheSync(ctx.Done(), append(h.synced, placing.HasSynced)...) {
		t.Fatal("the caches do not sync")
	}
	return h
}

// run has the controller work until the test ends.
func (h *harness) run(t *testing.T) {
	ctx, cancel := context.WithCancel(h.ctx)
	ended := make(chan error, 1)
	go func() { ended <- h.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("the controller ended: %v", err)
		}
	})
}

// await waits until the Deployment carries the decision.
func (h *harness) await(t *testing.T, name, want string) {
	t.Helper()
	var got string
	err := wait.PollUntilContextTimeout(h.ctx, 5*time.Millisecond, 20*time.Second, true, func(ctx context.Context) (bool, error) {
		d, err := h.kube.AppsV1().Deployments("shop").Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		got = d.Annotations[v1alpha1.AnnotationPlacement]
		return got == want, nil
	})
	if err != nil {
		t.Fatalf("decision of %s is %q, want %q: %v", name, got, want, err)
	}
}

// patches are the bodies that were sent to Deployments.
func (h *harness) patches() []map[string]any {
	var out []map[string]any
	for _, action := range h.kube.Actions() {
		if patch, ok := action.(clienttesting.PatchAction); ok {
			var body map[string]any
			if err := json.Unmarshal(patch.GetPatch(), &body); err != nil {
				panic(err)
			}
			out = append(out, body)
		}
	}
	return out
}

func (h *harness) events() []string {
	var out []string
	for {
		select {
		case e := <-h.recorder.Events:
			out = append(out, e)
		default:
			return out
		}
	}
}

func TestSyncWritesADecisionOnceAndSaysSo(t *testing.T) {
	for name, test := range map[string]struct {
		objects   []runtime.Object
		want      string // the decision that is written; "" for no write, "none" for one that is taken away
		wantEvent string // how the one event begins; "" for none
	}{
		"a workload that came before its cluster is placed": {
			objects:   []runtime.Object{joined("east", 9), deployment("web")},
			want:      `{"east":{"replicas":2}}`,
			wantEvent: "Normal Placed placed on east",
		},
		"one that is placed well is left alone": {
			objects: []runtime.Object{joined("east", 9), deployment("web", v1alpha1.AnnotationPlacement, `{"east":{"replicas":2}}`)},
		},
		"a decision that does not parse is replaced": {
			objects:   []runtime.Object{joined("east", 9), deployment("web", v1alpha1.AnnotationPlacement, "east")},
			want:      `{"east":{"replicas":2}}`,
			wantEvent: "Normal Placed placed on east",
		},
		"without a cluster it says so": {
			objects:   []runtime.Object{deployment("web")},
			wantEvent: "Warning Unplaced 0/0 clusters can run it: no cluster has joined",
		},
		"a pin to a cluster that has not joined": {
			objects:   []runtime.Object{joined("east", 9), deployment("web", v1alpha1.AnnotationClusters, "west")},
			wantEvent: "Warning Unplaced 0/1 clusters can run it",
		},
		"a pin that does not parse": {
			objects:   []runtime.Object{joined("east", 9), deployment("web", v1alpha1.AnnotationClusters, ",")},
			wantEvent: "Warning Unplaced annotation manifold.dev/clusters: ",
		},
		"what is placed with something worth knowing": {
			objects:   []runtime.Object{joined("east", 1), deployment("web")},
			want:      `{"east":{"replicas":2}}`,
			wantEvent: "Normal PlacementNote placed on east; ",
		},
		"what a cluster runs that is not there any more goes elsewhere": {
			objects:   []runtime.Object{joined("west", 9), deployment("web", v1alpha1.AnnotationPlacement, `{"east":{"replicas":2}}`)},
			want:      `{"west":{"replicas":2}}`,
			wantEvent: "Normal Placed placed on west",
		},
		"what can run nowhere any more has no decision": {
			objects:   []runtime.Object{deployment("web", v1alpha1.AnnotationPlacement, `{"east":{"replicas":2}}`)},
			want:      "none",
			wantEvent: "Warning Unplaced 0/0 clusters can run it",
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := start(t, test.objects...)
			for range 2 { // the second time changes nothing and says nothing
				if err := h.sync(t.Context(), named("web")); err != nil {
					t.Fatal(err)
				}
				if test.want == "" {
					continue
				}
				if err := wait.PollUntilContextTimeout(t.Context(), time.Millisecond, 20*time.Second, true, func(context.Context) (bool, error) {
					d, _, err := h.stores[named("web").resource].GetByKey("shop/web")
					if err != nil {
						return false, err
					}
					got := d.(*appsv1.Deployment).Annotations[v1alpha1.AnnotationPlacement]
					return got == test.want || test.want == "none" && got == "", nil
				}); err != nil {
					t.Fatalf("the watch does not show the decision %s: %v", test.want, err)
				}
			}
			patches := h.patches()
			switch {
			case test.want == "" && len(patches) > 0:
				t.Errorf("it wrote %v, want nothing", patches)
			case test.want != "" && len(patches) != 1:
				t.Errorf("it wrote %d times, want once: %v", len(patches), patches)
			}
			events := h.events()
			if test.wantEvent == "" && len(events) > 0 {
				t.Errorf("events %q, want none", events)
			}
			if test.wantEvent != "" && (len(events) != 1 || !strings.HasPrefix(events[0], test.wantEvent)) {
				t.Errorf("events %q, want one that begins %q", events, test.wantEvent)
			}
		})
	}
}

func TestDecisionIsWrittenOnTheObjectThatItWasMadeFor(t *testing.T) {
	h := start(t, joined("east", 9), deployment("web"))
	if err := h.sync(t.Context(), named("web")); err != nil {
		t.Fatal(err)
	}
	want := `[map[metadata:map[annotations:map[manifold.dev/placement:{"east":{"replicas":2}}] resourceVersion:7 uid:uid-of-web]]]`
	if got := fmt.Sprint(h.patches()); got != want {
		t.Errorf("it wrote %s, want %s", got, want)
	}
}

// The cache still shows it as it was: decided about again, it would find its own room taken.
func TestWhatWasDecidedAboutIsSeenAnewBeforeItIsDecidedAboutAgain(t *testing.T) {
	h := start(t, joined("east", 9), deployment("web"))
	before := deployment("web")
	result, _ := h.Engine.Place(placement.Workload{Namespace: "shop", Name: "web", Replicas: 2}, nil)
	if h.outdated(named("web"), before) {
		t.Error("what nobody has decided about is outdated")
	}
	if err := h.write(t.Context(), named("web"), before, nil, result); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if !h.outdated(named("web"), before) {
			t.Error("the version that was decided about is not outdated")
		}
	}
	if h.outdated(named("web"), deployment("web", v1alpha1.AnnotationPlacement, result.Annotation())) {
		t.Error("what has come of it is outdated")
	}
	if err := h.write(t.Context(), named("web"), before, nil, result); err != nil {
		t.Fatal(err)
	}
	changed := before.DeepCopy()
	changed.ResourceVersion = "9"
	if h.outdated(named("web"), changed) {
		t.Error("what somebody has changed since is outdated")
	}
}

func TestDecisionIsMadeAnewWhenTheObjectHasChanged(t *testing.T) {
	h := start(t, joined("east", 9), deployment("web"))
	refusals := 0
	h.kube.PrependReactor("patch", "deployments", func(clienttesting.Action) (bool, runtime.Object, error) {
		if refusals++; refusals > 2 {
			return false, nil, nil
		}
		return true, nil, apierrors.NewConflict(appsv1.Resource("deployments"), "web", nil)
	})
	if err := h.sync(t.Context(), named("web")); !apierrors.IsConflict(err) {
		t.Errorf("error %v, want the conflict, so that the key is tried again", err)
	}
	if events := h.events(); len(events) > 0 {
		t.Errorf("events %q about a decision that was not stored", events)
	}
	h.run(t)
	h.await(t, "web", `{"east":{"replicas":2}}`)
}

func TestDeletedWorkloadsAreLeftAlone(t *testing.T) {
	going := deployment("web")
	going.DeletionTimestamp = &metav1.Time{Time: time.Now()}
	going.Finalizers = []string{v1alpha1.FinalizerProjection}
	h := start(t, joined("east", 9), going)
	for _, name := range []string{"web", "gone"} {
		if err := h.sync(t.Context(), named(name)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if patches, events := h.patches(), h.events(); len(patches)+len(events) > 0 {
		t.Errorf("it wrote %v and told %q of what is being deleted", patches, events)
	}
}

func TestWorkloadsAreDecidedAgainWhenItMatters(t *testing.T) {
	pinned := func(pin string) *corev1.Namespace {
		n := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}
		if pin != "" {
			n.Annotations = map[string]string{v1alpha1.AnnotationClusters: pin}
		}
		return n
	}
	apart := func() *v1alpha1.PlacementPolicy {
		p := &v1alpha1.PlacementPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "apart"}}
		p.Spec.AntiAffinity = []v1alpha1.WorkloadAffinity{{}}
		return p
	}
	clusters := func(h *harness) interface {
		Create(context.Context, *v1alpha1.Cluster, metav1.CreateOptions) (*v1alpha1.Cluster, error)
		Update(context.Context, *v1alpha1.Cluster, metav1.UpdateOptions) (*v1alpha1.Cluster, error)
	} {
		return h.manifold.ManifoldV1alpha1().Clusters()
	}
	for name, test := range map[string]struct {
		objects []runtime.Object
		before  string
		change  func(ctx context.Context, h *harness) error
		want    string
	}{
		"when a cluster joins": {
			objects: []runtime.Object{deployment("web")},
			change: func(ctx context.Context, h *harness) error {
				_, err := clusters(h).Create(ctx, joined("east", 9), metav1.CreateOptions{})
				return err
			},
			want: `{"east":{"replicas":2}}`,
		},
		"when a cluster becomes ready": {
			objects: []runtime.Object{notReady(joined("east", 9)), deployment("web")},
			change: func(ctx context.Context, h *harness) error {
				_, err := clusters(h).Update(ctx, joined("east", 9), metav1.UpdateOptions{})
				return err
			},
			want: `{"east":{"replicas":2}}`,
		},
		"when a namespace is pinned elsewhere": {
			objects: []runtime.Object{joined("east", 9), joined("west", 5), pinned(""), deployment("web")},
			before:  `{"east":{"replicas":2}}`,
			change: func(ctx context.Context, h *harness) error {
				_, err := h.kube.CoreV1().Namespaces().Update(ctx, pinned("west"), metav1.UpdateOptions{})
				return err
			},
			want: `{"west":{"replicas":2}}`,
		},
		"when a namespace is pinned to one more cluster, whose part it gets": {
			objects: []runtime.Object{joined("east", 9), joined("west", 9), pinned("east"), deployment("web")},
			before:  `{"east":{"replicas":2}}`,
			change: func(ctx context.Context, h *harness) error {
				_, err := h.kube.CoreV1().Namespaces().Update(ctx, pinned("east,west"), metav1.UpdateOptions{})
				return err
			},
			want: `{"east":{"replicas":1},"west":{"replicas":1}}`,
		},
		"when a cluster is removed": {
			objects: []runtime.Object{joined("east", 9), joined("west", 5), deployment("web")},
			before:  `{"east":{"replicas":2}}`,
			change: func(ctx context.Context, h *harness) error {
				c := joined("east", 9)
				c.DeletionTimestamp, c.Finalizers = &metav1.Time{Time: time.Now()}, []string{v1alpha1.FinalizerCluster}
				_, err := clusters(h).Update(ctx, c, metav1.UpdateOptions{})
				return err
			},
			want: `{"west":{"replicas":2}}`,
		},
		"when a policy says something else": {
			objects: []runtime.Object{joined("east", 9), joined("west", 5), deployment("web")},
			before:  `{"east":{"replicas":2}}`,
			change: func(ctx context.Context, h *harness) error {
				p := &v1alpha1.PlacementPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "rule"}}
				p.Spec.Clusters = &v1alpha1.ClusterSelector{Names: []string{"west"}}
				_, err := h.manifold.ManifoldV1alpha1().PlacementPolicies("shop").Create(ctx, p, metav1.CreateOptions{})
				return err
			},
			want: `{"west":{"replicas":2}}`,
		},
		"when a workload goes that it is kept apart from": {
			objects: []runtime.Object{joined("east", 9), apart(), deployment("web"), deployment("db", v1alpha1.AnnotationClusters, "east",
				v1alpha1.AnnotationPlacement, `{"east":{"replicas":2}}`)},
			change: func(ctx context.Context, h *harness) error {
				err := wait.PollUntilContextTimeout(ctx, 5*time.Millisecond, 20*time.Second, true, func(context.Context) (bool, error) {
					h.mu.Lock()
					defer h.mu.Unlock()
					return h.lonely[named("web")], nil
				})
				if err != nil {
					return fmt.Errorf("it does not wait for the other one: %w", err)
				}
				return h.kube.AppsV1().Deployments("shop").Delete(ctx, "db", metav1.DeleteOptions{})
			},
			want: `{"east":{"replicas":2}}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := start(t, test.objects...)
			h.run(t)
			h.await(t, "web", test.before)
			if err := test.change(t.Context(), h); err != nil {
				t.Fatal(err)
			}
			h.await(t, "web", test.want)
		})
	}
}

// Free capacity changes all the time: only those that wait for it are looked at again.
func TestNothingIsRememberedOfWorkloadsThatAreGone(t *testing.T) {
	waits := deployment("waits", v1alpha1.AnnotationClusters, "west")
	deployments, _ := projection.ForResource(named("waits").resource)
	for name, gone := range map[string]any{
		"a deletion that was seen":   waits,
		"a deletion that was missed": cache.DeletedFinalStateUnknown{Key: "shop/waits", Obj: waits},
	} {
		t.Run(name, func(t *testing.T) {
			h := start(t, joined("east", 9), waits)
			if err := h.sync(t.Context(), named("waits")); err != nil {
				t.Fatal(err)
			}
			if h.told.Len() == 0 || len(h.waiting) == 0 {
				t.Fatalf("told %v, waiting %v, want the workload in both", h.told.Len(), h.waiting)
			}
			h.workloadHandler(deployments).OnDelete(gone)
			if h.told.Len()+len(h.waiting) > 0 {
				t.Errorf("told %v, waiting %v, want nothing", h.told.Len(), h.waiting)
			}
		})
	}
}

func TestWaitingWorkloadsAreDecidedAgainWhenThereMayBeRoom(t *testing.T) {
	h := start(t, joined("east", 9), deployment("placed", v1alpha1.AnnotationPlacement, `{"east":{"replicas":2}}`),
		deployment("waits", v1alpha1.AnnotationClusters, "west"))
	for _, name := range []string{"placed", "waits"} {
		if err := h.sync(t.Context(), named(name)); err != nil {
			t.Fatal(err)
		}
	}
	for h.queue.Len() > 0 { // what the first lists have enqueued; nothing else was written
		name, _ := h.queue.Get()
		h.queue.Done(name)
	}
	grown := joined("east", 10)
	h.clusterHandler().OnUpdate(joined("east", 9), grown)
	h.clusterHandler().OnUpdate(grown, grown)
	var got []string
	for h.queue.Len() > 0 {
		name, _ := h.queue.Get()
		got = append(got, name.Name)
		h.queue.Done(name)
	}
	if want := []string{"waits"}; !slices.Equal(got, want) {
		t.Errorf("looked again at %v, want %v", got, want)
	}
}

// A Job that has only just been made may have started in its cluster, though its status does not say so yet.
func TestAJobThatMayHaveStartedIsLeftAlone(t *testing.T) {
	for name, test := range map[string]struct {
		made time.Time
		want int // writes
	}{
		"one that was made long ago has not started": {time.Now().Add(-time.Hour), 1},
		"of one that was just made nobody knows yet": {time.Now().Add(time.Hour), 0},
	} {
		t.Run(name, func(t *testing.T) {
			east := joined("east", 9)
			east.Spec.Taints = []corev1.Taint{{Key: v1alpha1.TaintDrain, Effect: corev1.TaintEffectNoExecute}}
			sums := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{
				Namespace: "shop", Name: "sums", UID: "sums", ResourceVersion: "7", CreationTimestamp: metav1.NewTime(test.made),
				Annotations: map[string]string{v1alpha1.AnnotationPlacement: `{"east":{"replicas":1}}`},
			}}
			h := start(t, east, joined("west", 9), sums)
			if err := h.sync(t.Context(), item{batchv1.SchemeGroupVersion.WithResource("jobs"), cache.NewObjectName("shop", "sums")}); err != nil {
				t.Fatal(err)
			}
			if got := h.patches(); len(got) != test.want {
				t.Errorf("it wrote %v, want %d writes", got, test.want)
			}
		})
	}
}

func TestTheClustersThatADecisionDropsAreEnteredWithIt(t *testing.T) {
	const inWest = `{"west":{"replicas":2}}`
	h := start(t, joined("east", 9), deployment("web", v1alpha1.AnnotationPlacement, inWest))
	current := placement.Decision{"west": {Replicas: 2}}
	result := placement.Result{Decision: placement.Decision{"east": {Replicas: 2}}}
	if err := h.write(t.Context(), named("web"), deployment("web", v1alpha1.AnnotationPlacement, inWest), current, result); err != nil {
		t.Fatal(err)
	}
	want := map[string]any{v1alpha1.AnnotationPlacement: `{"east":{"replicas":2}}`, v1alpha1.AnnotationStatus: inWest}
	if got := h.patches()[0]["metadata"].(map[string]any)["annotations"]; !reflect.DeepEqual(got, want) {
		t.Errorf("it writes %v, want %v", got, want)
	}
}
