package controller

import (
	"context"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"
	testingclock "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	manifoldfake "github.com/manifold-dev/manifold/generated/clientset/versioned/fake"
	"github.com/manifold-dev/manifold/generated/informers/externalversions"
	"github.com/manifold-dev/manifold/pkg/identity"
	"github.com/manifold-dev/manifold/pkg/placement/engine"
	"github.com/manifold-dev/manifold/pkg/summary"
	"github.com/manifold-dev/manifold/pkg/syncer"
)

var now = time.Date(2026, time.November, 20, 12, 0, 0, 0, time.UTC)

// cluster is one that has joined and whose Ready condition has the status; "" for none yet.
func cluster(name string, ready metav1.ConditionStatus) *v1alpha1.Cluster {
	c := &v1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if ready != "" {
		c.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ClusterReady, Status: ready}}
	}
	return c
}

func removed(c *v1alpha1.Cluster, manner string) *v1alpha1.Cluster {
	c.DeletionTimestamp, c.Finalizers = &metav1.Time{Time: now}, []string{v1alpha1.FinalizerCluster}
	if manner != "" {
		c.Annotations = map[string]string{v1alpha1.AnnotationRemove: manner}
	}
	return c
}

// deployment is one of three replicas with a decision and a breakdown, "" for none.
func deployment(decision, breakdown string) *appsv1.Deployment {
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{
		Namespace: "shop", Name: "web", UID: "uid-of-web", Generation: 4, ResourceVersion: "7",
		Finalizers: []string{"example.com/other", v1alpha1.FinalizerProjection}, Annotations: map[string]string{"user": "own"},
	}}
	d.Spec.Replicas = ptr.To[int32](3)
	if decision != "" {
		d.Annotations[v1alpha1.AnnotationPlacement] = decision
	}
	if breakdown != "" {
		d.Annotations[v1alpha1.AnnotationStatus] = breakdown
	}
	return d
}

var deploymentKind, _ = summary.ForResource(deploymentResource)

func keyOf(d *appsv1.Deployment) identity.Key {
	return identity.Key{Resource: deploymentResource, Namespace: d.Namespace, Name: d.Name}
}

// deleted makes a Deployment one that is being deleted, and that nobody holds but us.
func deleted(d *appsv1.Deployment) *appsv1.Deployment {
	d.DeletionTimestamp, d.Finalizers = &metav1.Time{Time: now}, []string{v1alpha1.FinalizerProjection}
	return d
}

// holding has somebody hold a Deployment that is being deleted.
func holding(d *appsv1.Deployment) *appsv1.Deployment {
	d.Finalizers = append(d.Finalizers, "example.com/other")
	return d
}

type harness struct {
	*Controller
	kube  *fake.Clientset
	woken *recordingQueue
}

// start makes a controller whose caches hold the objects. No cluster is connected.
func start(t *testing.T, objects ...runtime.Object) *harness {
	t.Helper()
	var stock, own []runtime.Object
	for _, obj := range objects {
		if _, ok := obj.(*v1alpha1.Cluster); ok {
			own = append(own, obj)
		} else {
			stock = append(stock, obj)
		}
	}
	h := &harness{kube: fake.NewClientset(stock...)}
	// As an API server does, and the fake one does not.
	h.kube.PrependReactor("update", "deployments", func(action clienttesting.Action) (bool, runtime.Object, error) {
		action.(clienttesting.UpdateAction).GetObject().(*appsv1.Deployment).ResourceVersion = "8"
		return false, nil, nil
	})
	kube := informers.NewSharedInformerFactory(h.kube, 0)
	manifold := externalversions.NewSharedInformerFactory(manifoldfake.NewClientset(own...), 0)
	upstream, err := syncer.NewUpstream(kube, syncer.UpstreamOptions{})
	if err != nil {
		t.Fatal(err)
	}
	placing, err := engine.New(engine.Options{
		Kube: kube, Manifold: manifold, Requested: func(string) (corev1.ResourceList, bool) { return nil, false },
	})
	if err != nil {
		t.Fatal(err)
	}
	h.Controller, err = New(Options{
		Reports: upstream, Engine: placing, Kube: kube, Manifold: manifold, Client: h.kube, Clock: testingclock.NewFakePassiveClock(now),
	})
	if err != nil {
		t.Fatal(err)
	}
	h.woken = &recordingQueue{TypedRateLimitingInterface: h.queue.TypedRateLimitingInterface}
	h.queue.TypedRateLimitingInterface = h.woken
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(func() {
		cancel()
		kube.Shutdown()
		manifold.Shutdown()
		h.queue.ShutDown()
	})
	kube.StartWithContext(ctx)
	manifold.StartWithContext(ctx)
	if !cache.WaitForCacheSync(ctx.Done(), append(h.synced, upstream.HasSynced, placing.HasSynced)...) {
		t.Fatal("the caches do not sync")
	}
	return h
}

// writes are the verbs and resources of what was written.
func (h *harness) writes() []string {
	var out []string
	for _, action := range h.kube.Actions() {
		if slices.Contains([]string{"get", "list", "watch"}, action.GetVerb()) {
			continue
		}
		resource := action.GetResource().Resource
		if action.GetSubresource() != "" {
			resource += "/" + action.GetSubresource()
		}
		out = append(out, action.GetVerb()+" "+resource)
	}
	return out
}

func TestGatherTakesTheBreakdownsWordForClustersThatNobodyCanAsk(t *testing.T) {
	const onEast = `{"east":{"replicas":3}}`
	const known = `{"east":{"replicas":3,"ready":2,"available":1,"updated":3,"generation":4,"problem":"no room"}}`
	last := summary.Report{Generation: 4, Stale: true, Problem: "no room",
		Live: &appsv1.Deployment{Status: appsv1.DeploymentStatus{Replicas: 3, ReadyReplicas: 2, AvailableReplicas: 1, UpdatedReplicas: 3}}}
	never := summary.Report{Stale: true, Live: &appsv1.Deployment{}}
	for name, test := range map[string]struct {
		clusters   []runtime.Object
		deployment *appsv1.Deployment
		want       map[string]summary.Report
		held       bool
		pending    bool
	}{
		"a silent cluster still has what it had": {
			clusters: []runtime.Object{cluster("east", metav1.ConditionUnknown)}, deployment: deployment(onEast, known),
			want: map[string]summary.Report{"east": last}, held: true,
		},
		"a silent cluster may hold what it was told to and has not reported": {
			clusters: []runtime.Object{cluster("east", metav1.ConditionUnknown)}, deployment: deployment(onEast, ""),
			want: map[string]summary.Report{"east": never}, held: true,
		},
		"a silent cluster may still hold what is decided to be elsewhere": {
			clusters: []runtime.Object{cluster("east", metav1.ConditionUnknown)}, deployment: deployment(`{"west":{"replicas":3}}`, known),
			want: map[string]summary.Report{"east": last}, held: true,
		},
		"a ready cluster will be asked in a moment": {
			clusters: []runtime.Object{cluster("east", metav1.ConditionTrue)}, deployment: deployment(onEast, known),
			want: map[string]summary.Report{"east": last}, held: true, pending: true,
		},
		"a cluster that is not ready will not": {
			clusters: []runtime.Object{cluster("east", metav1.ConditionFalse)}, deployment: deployment(onEast, known),
			want: map[string]summary.Report{"east": last}, held: true,
		},
		"a cluster that has nothing to do with it does not count": {
			clusters: []runtime.Object{cluster("west", metav1.ConditionTrue)}, deployment: deployment(onEast, known),
			want: map[string]summary.Report{},
		},
		"a cluster that is given up has nothing any more": {
			clusters:   []runtime.Object{removed(cluster("east", metav1.ConditionUnknown), v1alpha1.RemoveForce)},
			deployment: deployment(onEast, known), want: map[string]summary.Report{},
		},
		"a cluster that is left first still has it": {
			clusters:   []runtime.Object{removed(cluster("east", metav1.ConditionUnknown), "")},
			deployment: deployment(onEast, known), want: map[string]summary.Report{"east": last}, held: true,
		},
		"a damaged breakdown tells nothing": {
			clusters: []runtime.Object{cluster("east", metav1.ConditionUnknown)}, deployment: deployment("", `{"east":`),
			want: map[string]summary.Report{},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := start(t, test.clusters...).gather(deploymentKind, keyOf(test.deployment), test.deployment)
			if !reflect.DeepEqual(got.reports, test.want) {
				t.Errorf("reports %+v, want %+v", got.reports, test.want)
			}
			if got.held != test.held || got.pending != test.pending {
				t.Errorf("held %t, pending %t; want %t, %t", got.held, got.pending, test.held, test.pending)
			}
		})
	}
}

func TestSyncOfADeployment(t *testing.T) {
	const onEast = `{"east":{"replicas":3}}`
	const known = `{"east":{"replicas":3,"ready":3,"available":3,"updated":3,"generation":4}}`
	silent, ready := cluster("east", metav1.ConditionUnknown), cluster("east", metav1.ConditionTrue)
	for name, test := range map[string]struct {
		clusters   []runtime.Object
		deployment *appsv1.Deployment
		want       []string
	}{
		"what a silent cluster had is shown": {
			clusters: []runtime.Object{silent}, deployment: deployment(onEast, known), want: []string{"update deployments/status"},
		},
		"nothing is written before a ready cluster was asked": {
			clusters: []runtime.Object{ready}, deployment: deployment(onEast, known),
		},
		"what no cluster can hold is let go when it is deleted": {
			deployment: deleted(deployment(onEast, known)), want: []string{"patch deployments"},
		},
		"what is held by a cluster that was given up is let go": {
			clusters:   []runtime.Object{removed(cluster("east", metav1.ConditionUnknown), v1alpha1.RemoveForce)},
			deployment: deleted(deployment(onEast, known)), want: []string{"patch deployments"},
		},
		"what somebody else holds is not let go before, and its status is told": {
			deployment: holding(deleted(deployment(onEast, known))), want: []string{"update deployments/status"},
		},
		"what a cluster has of what somebody else holds is told": {
			clusters: []runtime.Object{silent}, deployment: holding(deleted(deployment(onEast, known))), want: []string{"update deployments/status"},
		},
		"what a silent cluster may hold is not let go": {
			clusters: []runtime.Object{silent}, deployment: deleted(deployment(onEast, known)),
		},
		"what a ready cluster may hold is not let go": {
			clusters: []runtime.Object{ready}, deployment: deleted(deployment(onEast, "")),
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := start(t, append(test.clusters, test.deployment)...)
			if err := h.sync(t.Context(), task{Key: keyOf(test.deployment)}); err != nil {
				t.Fatal(err)
			}
			if got := h.writes(); !slices.Equal(got, test.want) {
				t.Errorf("writes %v, want %v", got, test.want)
			}
		})
	}
}

func TestStatusAndBreakdownGoOutTogetherAndOnce(t *testing.T) {
	before := deployment(`{"east":{"replicas":3}}`, `{"east":{"replicas":3,"ready":3,"available":3,"updated":3,"generation":4}}`)
	h := start(t, cluster("east", metav1.ConditionUnknown), before)
	for range 2 {
		if err := h.sync(t.Context(), task{Key: keyOf(before)}); err != nil {
			t.Fatal(err)
		}
	}
	if got, want := h.writes(), []string{"update deployments/status"}; !slices.Equal(got, want) {
		t.Fatalf("writes %v, want %v", got, want)
	}
	after, err := h.kube.AppsV1().Deployments("shop").Get(t.Context(), "web", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if after.Status.Replicas != 3 || after.Status.AvailableReplicas != 3 {
		t.Errorf("status %+v, want the three replicas that were heard of last", after.Status)
	}
	want := `{"east":{"replicas":3,"ready":3,"available":3,"updated":3,"generation":4,"stale":true}}`
	if got := after.Annotations[v1alpha1.AnnotationStatus]; got != want {
		t.Errorf("breakdown %s, want %s", got, want)
	}
	if after.Annotations["user"] != "own" || after.Annotations[v1alpha1.AnnotationPlacement] != before.Annotations[v1alpha1.AnnotationPlacement] {
		t.Errorf("annotations %v: somebody else's are lost", after.Annotations)
	}
}

func TestUnplacedDeploymentSaysWhy(t *testing.T) {
	unplaced := deployment("", "")
	badPin := deployment("", "")
	badPin.Annotations[v1alpha1.AnnotationClusters] = ","
	for name, test := range map[string]struct {
		deployment *appsv1.Deployment
		want       string
	}{
		"in the words of the event":            {unplaced, "0/0 clusters can run it: no cluster has joined"},
		"also when it is the user's own doing": {badPin, "annotation manifold.dev/clusters: "},
		"and nothing once it is placed":        {deployment(`{"east":{"replicas":3}}`, ""), ""},
	} {
		t.Run(name, func(t *testing.T) {
			got := start(t).unplaced(keyOf(test.deployment), test.deployment, identity.DecisionOf(test.deployment))
			if !strings.HasPrefix(got, test.want) || (got == "") != (test.want == "") {
				t.Errorf("%q, want %q", got, test.want)
			}
		})
	}
}

func TestReleaseTakesOurFinalizerAlone(t *testing.T) {
	going := holding(deleted(deployment("", "")))
	h := start(t, going)
	if err := h.release(t.Context(), keyOf(going), going); err != nil {
		t.Fatal(err)
	}
	for _, action := range h.kube.Actions() {
		if patch, ok := action.(clienttesting.PatchAction); ok {
			want := `{"metadata":{"finalizers":["example.com/other"],"resourceVersion":"7","uid":"uid-of-web"}}`
			if got := string(patch.GetPatch()); got != want {
				t.Errorf("patch %s, want %s: neither another object nor another version", got, want)
			}
		}
	}
	if got, want := h.writes(), []string{"patch deployments"}; !slices.Equal(got, want) {
		t.Errorf("writes %v, want %v", got, want)
	}
	without := going.DeepCopy()
	without.Finalizers = []string{"example.com/other"}
	if err := h.release(t.Context(), keyOf(without), without); err != nil || len(h.writes()) != 1 {
		t.Errorf("what carries our finalizer no more is written: %v, %v", h.writes(), err)
	}
}

func TestSetAnnotation(t *testing.T) {
	for name, test := range map[string]struct {
		before     map[string]string
		key, value string
		want       map[string]string
	}{
		"a value is set":                    {nil, v1alpha1.AnnotationStatus, "{}", map[string]string{v1alpha1.AnnotationStatus: "{}"}},
		"no breakdown takes it away":        {map[string]string{v1alpha1.AnnotationStatus: "{}", "a": "b"}, v1alpha1.AnnotationStatus, "", map[string]string{"a": "b"}},
		"no revision leaves the one before": {map[string]string{annotationRevision: "3"}, annotationRevision, "", map[string]string{annotationRevision: "3"}},
		"nothing is made of nothing":        {nil, v1alpha1.AnnotationStatus, "", nil},
	} {
		t.Run(name, func(t *testing.T) {
			d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Annotations: test.before}}
			setAnnotation(d, test.key, test.value)
			if !maps.Equal(d.Annotations, test.want) || (d.Annotations == nil) != (test.want == nil) {
				t.Errorf("annotations %v, want %v", d.Annotations, test.want)
			}
		})
	}
}

// A status that is made while a cluster has not been asked would take away the addresses that users connect to.
func TestServiceKeepsItsStatusUntilEveryClusterCouldBeAsked(t *testing.T) {
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}, Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeLoadBalancer}}
	service.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: "192.0.2.1"}}
	service.Spec.Selector = map[string]string{"app": "web"}
	web := deployment(`{"east":{"replicas":3}}`, "")
	web.Spec.Template.Labels = service.Spec.Selector
	key := identity.Key{Resource: corev1.SchemeGroupVersion.WithResource("services"), Namespace: "shop", Name: "web"}
	for name, test := range map[string]struct {
		clusters []runtime.Object
		want     []string
	}{
		"one has not been":    {[]runtime.Object{cluster("east", metav1.ConditionTrue)}, nil},
		"there is none to be": {nil, []string{"update services/status"}},
	} {
		t.Run(name, func(t *testing.T) {
			h := start(t, append(test.clusters, service.DeepCopy(), web.DeepCopy())...)
			if err := h.sync(t.Context(), task{Key: key}); err != nil {
				t.Fatal(err)
			}
			if got := h.writes(); !slices.Equal(got, test.want) {
				t.Errorf("writes %v, want %v", got, test.want)
			}
		})
	}
}

func TestClusterThatTurnsSilentWakesWhatConcernsIt(t *testing.T) {
	decided, reported, other := deployment(`{"east":{"replicas":3}}`, ""), deployment("", `{"east":{"replicas":3}}`), deployment(`{"northeast":{"replicas":3}}`, "")
	decided.Name, reported.Name, other.Name = "decided", "reported", "other"
	for name, test := range map[string]struct {
		before, after *v1alpha1.Cluster
		want          []string
	}{
		"when it falls silent": {cluster("east", metav1.ConditionTrue), cluster("east", metav1.ConditionUnknown), []string{"decided", "reported"}},
		"when it returns":      {cluster("east", metav1.ConditionUnknown), cluster("east", metav1.ConditionTrue), []string{"decided", "reported"}},
		"when it is given up": {cluster("east", metav1.ConditionUnknown), removed(cluster("east", metav1.ConditionUnknown), v1alpha1.RemoveForce),
			[]string{"decided", "reported"}},
		"not by its heartbeat": {cluster("east", metav1.ConditionTrue), cluster("east", metav1.ConditionTrue), nil},
	} {
		t.Run(name, func(t *testing.T) {
			h := start(t, decided, reported, other)
			h.clusterHandler().OnUpdate(test.before, test.after)
			if woken := h.woken.taken(); !slices.Equal(woken, test.want) {
				t.Errorf("woken %v, want %v", woken, test.want)
			}
		})
	}
	t.Run("when it is gone", func(t *testing.T) {
		h := start(t, decided, reported, other)
		h.clusterHandler().OnDelete(cache.DeletedFinalStateUnknown{Key: "east", Obj: cluster("east", "")})
		if woken := h.woken.taken(); !slices.Equal(woken, []string{"decided", "reported"}) {
			t.Errorf("woken %v, want decided and reported", woken)
		}
	})
}

func TestMirrorsThatOthersChangeAreLookedAt(t *testing.T) {
	d := deployment("", "")
	rs := &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-abc", Generation: 1, ResourceVersion: "1",
		OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(d, appsv1.SchemeGroupVersion.WithKind("Deployment"))}}}
	scaled, touched := rs.DeepCopy(), rs.DeepCopy()
	scaled.Generation, scaled.ResourceVersion = 2, "2"
	touched.ResourceVersion = "2"
	for name, test := range map[string]struct {
		happens func(handler cache.ResourceEventHandler)
		want    []string
	}{
		"when one is scaled by hand":     {func(h cache.ResourceEventHandler) { h.OnUpdate(rs, scaled) }, []string{"web"}},
		"when one is deleted":            {func(h cache.ResourceEventHandler) { h.OnDelete(rs) }, []string{"web"}},
		"when a deletion was missed":     {func(h cache.ResourceEventHandler) { h.OnDelete(cache.DeletedFinalStateUnknown{Obj: rs}) }, []string{"web"}},
		"not when we write their status": {func(h cache.ResourceEventHandler) { h.OnUpdate(rs, touched) }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			h := start(t)
			test.happens(h.replicaSetHandler())
			if woken := h.woken.taken(); !slices.Equal(woken, test.want) {
				t.Errorf("woken %v, want %v", woken, test.want)
			}
		})
	}
}
