package removal

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/utils/ptr"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	manifoldfake "github.com/manifold-dev/manifold/generated/clientset/versioned/fake"
	"github.com/manifold-dev/manifold/generated/informers/externalversions"
	"github.com/manifold-dev/manifold/pkg/syncer/logical"
)

// going is a cluster that has joined and is being removed in a manner, "" for the one that moves workloads off first.
func going(manner string) *v1alpha1.Cluster {
	c := &v1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{
		Name: "east", UID: "uid-of-east", ResourceVersion: "7",
		DeletionTimestamp: &metav1.Time{Time: time.Now()}, Finalizers: []string{"example.com/other", v1alpha1.FinalizerCluster},
	}}
	c.Status.UID = "uid-below"
	if manner != "" {
		c.Annotations = map[string]string{v1alpha1.AnnotationRemove: manner}
	}
	return c
}

func deployment(name, decision string) *appsv1.Deployment {
	return &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name,
		Annotations: map[string]string{v1alpha1.AnnotationPlacement: decision}}}
}

func mirror(name, cluster string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: "shop", Name: name, UID: "uid", Annotations: map[string]string{v1alpha1.AnnotationCluster: cluster},
	}}
}

// bare is a pod that a user has made and that runs in a cluster, or nowhere yet.
func bare(name, cluster string) *corev1.Pod {
	pod := naming(name, cluster)
	if cluster != "" {
		pod.Annotations = map[string]string{v1alpha1.AnnotationPodUID: "below"}
	}
	return pod
}

// naming is a pod whose user has written a node into it.
func naming(name, node string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: "uid"}, Spec: corev1.PodSpec{NodeName: node}}
}

// A pod that is deleted for good and held by somebody's finalizer must not hold the cluster.
func TestPodThatAFinalizerHoldsHoldsNoCluster(t *testing.T) {
	held := bare("held", "east")
	held.DeletionTimestamp, held.DeletionGracePeriodSeconds, held.Finalizers = &metav1.Time{Time: time.Now()}, new(int64), []string{"example.com/other"}
	ending := bare("ending", "east")
	ending.DeletionTimestamp, ending.DeletionGracePeriodSeconds, ending.Finalizers = held.DeletionTimestamp, ptr.To[int64](30), held.Finalizers
	for _, test := range []struct {
		pod  *corev1.Pod
		want bool
	}{{held, false}, {ending, true}} {
		h := start(t, going(v1alpha1.RemoveForce), test.pod)
		if again, err := h.sync(t.Context(), "east"); err != nil || again != test.want {
			t.Errorf("%s: waits %t (%v), want %t", test.pod.Name, again, err, test.want)
		}
	}
}

// A pod that only waited in the cluster, and is to run elsewhere, is waited for, unless the cluster is given up.
func TestPodThatLeavesIsWaitedFor(t *testing.T) {
	waits := bare("task", "")
	waits.Annotations = map[string]string{
		v1alpha1.AnnotationPlacement: `{"west":{"replicas":1}}`, v1alpha1.AnnotationPodUID: "below", v1alpha1.AnnotationPodCluster: "east",
	}
	for manner, want := range map[string]bool{"": true, v1alpha1.RemoveForce: false} {
		cluster := going(manner)
		cluster.Status.UID = "" // nothing else is waited for
		h := start(t, cluster, waits)
		if again, err := h.sync(t.Context(), "east"); err != nil || !again {
			t.Errorf("removed %q: again %t, %v, want another look", manner, again, err)
		}
		_, err := h.kube.CoreV1().Pods("shop").Get(t.Context(), "task", metav1.GetOptions{})
		if there := err == nil; there != want {
			t.Errorf("removed %q: the pod is there %t (%v), want %t", manner, there, err, want)
		}
	}
}

// Anybody may write a cluster into a pod as its node.
func TestAPodThatOnlyNamesTheClusterIsNoneOfIts(t *testing.T) {
	placed := naming("placed", "east")
	placed.Annotations = map[string]string{v1alpha1.AnnotationPlacement: `{"east":{"replicas":1}}`}
	elsewhere := naming("elsewhere", "east")
	elsewhere.Annotations = map[string]string{v1alpha1.AnnotationPlacement: `{"west":{"replicas":1}}`}
	for name, test := range map[string]struct {
		pod  *corev1.Pod
		gone bool
	}{
		"it was never placed":                          {pod: naming("named", "east")},
		"it was placed elsewhere":                      {pod: elsewhere},
		"it was placed there, and can be nowhere else": {pod: placed, gone: true},
		"it runs there":                                {pod: bare("runs", "east"), gone: true},
	} {
		t.Run(name, func(t *testing.T) {
			h := start(t, going(v1alpha1.RemoveForce), test.pod)
			if again, err := h.sync(t.Context(), "east"); err != nil || again != test.gone {
				t.Errorf("the removal waits for it: %t (%v), want %t", again, err, test.gone)
			}
			_, err := h.kube.CoreV1().Pods("shop").Get(t.Context(), test.pod.Name, metav1.GetOptions{})
			if gone := apierrors.IsNotFound(err); gone != test.gone {
				t.Errorf("it is gone: %t (%v), want %t", gone, err, test.gone)
			}
		})
	}
}

type harness struct {
	*Controller
	kube     *fake.Clientset
	manifold *manifoldfake.Clientset
	// connected tells that the cluster can be asked, left is what it has of ours then, and asked is how often it was.
	connected   bool
	left, asked int
}

// upstream is a logical cluster whose caches have synced.
type upstream struct{ *logical.Cluster }

func (upstream) HasSynced() bool { return true }

// answer counts what the cluster has of ours, as long as it is connected.
func (h *harness) answer(string) (int, bool) {
	h.asked++
	return h.left, h.connected
}

// start makes a controller whose caches hold the objects; no cluster is connected.
func start(t *testing.T, cluster *v1alpha1.Cluster, objects ...runtime.Object) *harness {
	t.Helper()
	h := &harness{kube: fake.NewClientset(objects...), manifold: manifoldfake.NewClientset(cluster)}
	kube := informers.NewSharedInformerFactory(h.kube, 0)
	manifold := externalversions.NewSharedInformerFactory(h.manifold, 0)
	caches, err := logical.New(kube, logical.Options{})
	if err != nil {
		t.Fatal(err)
	}
	h.Controller, err = New(Options{Upstream: upstream{caches}, Left: h.answer, Kube: kube, Manifold: manifold, Client: h.kube, Clusters: h.manifold})
	if err != nil {
		t.Fatal(err)
	}
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
	return h
}

func (h *harness) cluster(t *testing.T) *v1alpha1.Cluster {
	t.Helper()
	c, err := h.manifold.ManifoldV1alpha1().Clusters().Get(t.Context(), "east", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestRemovalWaits(t *testing.T) {
	neverJoined := going("")
	neverJoined.Status.UID = ""
	for name, test := range map[string]struct {
		cluster *v1alpha1.Cluster
		objects []runtime.Object
		want    string // the reason, "" if it waits for nothing
		message string // part of it
	}{
		"for workloads that are placed there": {
			cluster: going(""), objects: []runtime.Object{deployment("web", `{"east":{"replicas":1}}`), deployment("api", `{"west":{"replicas":1}}`)},
			want: reasonDraining, message: ": shop/web",
		},
		"for a cluster that does not answer, and says what to do": {
			cluster: going(""), objects: []runtime.Object{deployment("api", `{"west":{"replicas":1}}`)},
			want: reasonSilent, message: "manifold cluster remove east --force",
		},
		"not for workloads when they are left there, but for the cluster": {
			cluster: going(v1alpha1.RemoveOrphan), objects: []runtime.Object{deployment("web", `{"east":{"replicas":1}}`)},
			want: reasonSilent,
		},
		"for nothing when the cluster is given up": {
			cluster: going(v1alpha1.RemoveForce), objects: []runtime.Object{deployment("web", `{"east":{"replicas":1}}`)},
		},
		"for nothing when the cluster has never joined": {
			cluster: neverJoined,
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := start(t, test.cluster, test.objects...)
			got := h.waitsFor(test.cluster)
			if (got != nil) != (test.want != "") {
				t.Fatalf("waits for %+v, want %q", got, test.want)
			}
			if got != nil && (got.Reason != test.want || !strings.Contains(got.Message, test.message)) {
				t.Errorf("waits for %s: %s; want %s with %q", got.Reason, got.Message, test.want, test.message)
			}
		})
	}
}

func TestRemovalWaitsUntilTheClusterHasNothingOfOurs(t *testing.T) {
	unreachable := going("")
	unreachable.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ClusterReady, Status: metav1.ConditionUnknown}}
	for name, test := range map[string]struct {
		cluster *v1alpha1.Cluster
		left    int
		want    string // the reason, "" if it waits for nothing
		asked   int
	}{
		"it has something":                       {cluster: going(""), left: 3, want: reasonCleaning, asked: 1},
		"it has nothing":                         {cluster: going(""), asked: 1},
		"what it had before it fell silent":      {cluster: unreachable, want: reasonSilent},
		"nobody asks one that is given up":       {cluster: going(v1alpha1.RemoveForce), left: 3},
		"what keeps running has to be let go of": {cluster: going(v1alpha1.RemoveOrphan), left: 1, want: reasonCleaning, asked: 1},
	} {
		t.Run(name, func(t *testing.T) {
			h := start(t, test.cluster)
			h.connected, h.left = true, test.left
			got := h.waitsFor(test.cluster)
			if (got != nil) != (test.want != "") || got != nil && got.Reason != test.want {
				t.Errorf("waits for %+v, want %q", got, test.want)
			}
			if h.asked != test.asked {
				t.Errorf("it was asked %d times, want %d", h.asked, test.asked)
			}
		})
	}
}

func TestSyncTellsWhatItWaitsForOnce(t *testing.T) {
	h := start(t, going(""), deployment("web", `{"east":{"replicas":1}}`), mirror("web-1", "east"))
	again, err := h.sync(t.Context(), "east")
	if err != nil || !again {
		t.Fatalf("again %t, error %v; want to look again", again, err)
	}
	told := h.cluster(t)
	condition := meta.FindStatusCondition(told.Status.Conditions, ConditionRemoved)
	if condition == nil || condition.Status != metav1.ConditionFalse || condition.Reason != reasonDraining {
		t.Errorf("condition %+v, want %s", condition, reasonDraining)
	}
	if !slices.Contains(told.Finalizers, v1alpha1.FinalizerCluster) {
		t.Error("the cluster is let go although it waits")
	}
	before := len(h.manifold.Actions())
	if err := h.tell(t.Context(), told, *condition); err != nil {
		t.Fatal(err)
	}
	if got := len(h.manifold.Actions()) - before; got != 0 {
		t.Errorf("the same is written again: %d writes", got)
	}
	if _, err := h.kube.CoreV1().Pods("shop").Get(t.Context(), "web-1", metav1.GetOptions{}); err != nil {
		t.Errorf("the mirror of a cluster that still runs is gone: %v", err)
	}
}

func TestClusterThatIsGivenUpLeavesNothingBehind(t *testing.T) {
	h := start(t, going(v1alpha1.RemoveForce), deployment("web", `{"east":{"replicas":1}}`), mirror("web-1", "east"), mirror("web-2", "west"),
		bare("lost", "east"), bare("kept", "west"), bare("waits", ""))
	// Looked at again after the pods are deleted: somebody may have written one meanwhile.
	err := wait.PollUntilContextTimeout(t.Context(), 10*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		again, err := h.sync(ctx, "east")
		return !again, err
	})
	if err != nil {
		t.Fatalf("it is not done: %v", err)
	}
	pods, err := h.kube.CoreV1().Pods("shop").List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var left []string
	for _, pod := range pods.Items {
		left = append(left, pod.Name)
	}
	if want := []string{"kept", "waits", "web-2"}; !slices.Equal(left, want) {
		t.Errorf("pods %v are left, want %v", left, want)
	}
	if got, want := h.cluster(t).Finalizers, []string{"example.com/other"}; !slices.Equal(got, want) {
		t.Errorf("finalizers %v, want %v: that of somebody else is not ours to take", got, want)
	}
}

func TestClustersThatAreNotBeingRemovedAreLeftAlone(t *testing.T) {
	staying := going("")
	staying.DeletionTimestamp = nil
	released := going("")
	released.Finalizers = []string{"example.com/other"}
	for name, cluster := range map[string]*v1alpha1.Cluster{"one that stays": staying, "one that was let go before": released} {
		t.Run(name, func(t *testing.T) {
			h := start(t, cluster, mirror("web-1", "east"))
			if again, err := h.sync(t.Context(), "east"); again || err != nil {
				t.Errorf("again %t, error %v", again, err)
			}
			for _, action := range slices.Concat(h.kube.Actions(), h.manifold.Actions()) {
				if !slices.Contains([]string{"get", "list", "watch"}, action.GetVerb()) {
					t.Errorf("it did %s %s", action.GetVerb(), action.GetResource().Resource)
				}
			}
		})
	}
}

func TestMessagesNameSomeWorkloadsAndCountTheRest(t *testing.T) {
	for _, test := range []struct {
		names []string
		want  string
	}{
		{[]string{"shop/a"}, "shop/a"},
		{[]string{"shop/a", "shop/b", "shop/c"}, "shop/a, shop/b, shop/c"},
		{[]string{"shop/a", "shop/b", "shop/c", "shop/d", "shop/e"}, "shop/a, shop/b, shop/c and 2 more"},
	} {
		if got := enumerate(test.names); got != test.want {
			t.Errorf("%v reads %q, want %q", test.names, got, test.want)
		}
	}
}
