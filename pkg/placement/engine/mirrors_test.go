package engine

import (
	"slices"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/placement"
	"github.com/manifold-dev/manifold/pkg/placement/build"
	"github.com/manifold-dev/manifold/pkg/projection"
)

func controlledBy(o metav1.Object, kind, name string) {
	o.SetOwnerReferences([]metav1.OwnerReference{*metav1.NewControllerRef(
		&metav1.ObjectMeta{Name: name}, schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: kind})})
}

// setOf is the ReplicaSet of a Deployment that carries out a template of that hash.
func setOf(deployment, hash string) *appsv1.ReplicaSet {
	rs := &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: deployment + "-" + hash,
		Labels: map[string]string{appsv1.DefaultDeploymentUniqueLabelKey: hash}}}
	controlledBy(rs, "Deployment", deployment)
	return rs
}

// mirrored is a pod of a controller that runs on a cluster.
func mirrored(name, kind, maker, cluster string, changes ...func(*corev1.Pod)) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name,
		Annotations: map[string]string{v1alpha1.AnnotationCluster: cluster}}}
	controlledBy(pod, kind, maker)
	for _, change := range changes {
		change(pod)
	}
	return pod
}

// waiting is what the scheduler says of a pod.
func waiting(says string, since time.Time) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		pod.Status.Conditions = []corev1.PodCondition{{
			Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable,
			Message: says, LastTransitionTime: metav1.Time{Time: since},
		}}
	}
}

func TestMirrorsOfAWorkload(t *testing.T) {
	d := placed("web", on("east", 3))
	hash := projection.TemplateHash(&d.Spec.Template)
	current, earlier := "web-"+hash, "web-earlier"
	since := start.Add(-time.Hour)
	ended := func(pod *corev1.Pod) { pod.Status.Phase = corev1.PodFailed }
	going := func(pod *corev1.Pod) {
		pod.DeletionTimestamp, pod.Finalizers = &metav1.Time{Time: start}, []string{"example.com/wait"}
	}
	nominated := func(pod *corev1.Pod) { pod.Status.NominatedNodeName = "node-1" }
	for name, test := range map[string]struct {
		objects []runtime.Object
		kind    string // Deployment unless it says otherwise
		want    []placement.Pod
	}{
		"nothing while every pod of the namespace has its node": {
			objects: []runtime.Object{mirrored("a", "ReplicaSet", current, "east")},
		},
		"those of the Deployment's ReplicaSets, and no others": {
			objects: []runtime.Object{
				mirrored("a", "ReplicaSet", current, "east", waiting("too small", since)), mirrored("b", "ReplicaSet", current, "west"),
				mirrored("c", "ReplicaSet", earlier, "east"), mirrored("d", "ReplicaSet", "other", "east"),
			},
			want: []placement.Pod{{Cluster: "east", Since: since, Says: "too small"}, {Cluster: "west"}, {Cluster: "east"}},
		},
		"none that have ended or are about to": {
			objects: []runtime.Object{
				mirrored("a", "ReplicaSet", current, "east", waiting("too small", since)),
				mirrored("b", "ReplicaSet", current, "east", ended), mirrored("c", "ReplicaSet", current, "east", going),
			},
			want: []placement.Pod{{Cluster: "east", Since: since, Says: "too small"}},
		},
		"what stops others for its sake has its node": {
			objects: []runtime.Object{
				mirrored("a", "ReplicaSet", current, "east", waiting("too small", since)),
				mirrored("b", "ReplicaSet", current, "east", waiting("too small", since), nominated),
			},
			want: []placement.Pod{{Cluster: "east", Since: since, Says: "too small"}, {Cluster: "east"}},
		},
		"those that wait with an earlier template are told apart": {
			objects: []runtime.Object{
				mirrored("a", "ReplicaSet", earlier, "east", waiting("too small", since)), mirrored("b", "ReplicaSet", current, "east"),
			},
			want: []placement.Pod{{Cluster: "east", Since: since, Says: "too small", Outdated: true}, {Cluster: "east"}},
		},
		"those that a controller makes without ReplicaSets": {
			kind: "StatefulSet",
			objects: []runtime.Object{
				mirrored("web-0", "StatefulSet", "web", "east", waiting("too small", since)), mirrored("a", "ReplicaSet", current, "east"),
			},
			want: []placement.Pod{{Cluster: "east", Since: since, Says: "too small"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			e := newEngine(t, append(test.objects, setOf("web", hash), setOf("web", "earlier"), setOf("other", "hash"))...)
			w := workload("web", 3)
			w.Template = &d.Spec.Template
			if test.kind != "" {
				w.GVK.Kind = test.kind
			}
			got := e.mirrors.of(w, on("east", 3))
			if len(got) != len(test.want) {
				t.Fatalf("got %v, want %v", got, test.want)
			}
			for _, want := range test.want {
				i := slices.IndexFunc(got, func(p placement.Pod) bool {
					return p.Cluster == want.Cluster && p.Since.Equal(want.Since) && p.Says == want.Says && p.Outdated == want.Outdated
				})
				if i < 0 {
					t.Fatalf("got %v, want %v", got, test.want)
				}
				got = slices.Delete(got, i, i+1)
			}
		})
	}
}

// A bare pod is its own workload. Replicas with ordinals are told apart by them.
func TestPodsOfWorkloadsThatAreToldApart(t *testing.T) {
	since := start.Add(-time.Hour)
	own := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "task", Annotations: map[string]string{
		v1alpha1.AnnotationPodUID: "below", v1alpha1.AnnotationPodCluster: "east"}}}
	waiting("too small", since)(own)
	e := newEngine(t, own, mirrored("db-7", "StatefulSet", "db", "east"), mirrored("db-8", "StatefulSet", "db", "west", waiting("too small", since)),
		mirrored("db-canary", "StatefulSet", "db", "west"))
	w := workload("task", 1)
	w.GVK.Kind, w.Once, w.Template = "Pod", true, &corev1.PodTemplateSpec{}
	if got := e.mirrors.of(w, on("east", 1)); len(got) != 1 || got[0] != (placement.Pod{Cluster: "east", Since: got[0].Since, Says: "too small"}) || !got[0].Since.Equal(since) {
		t.Errorf("of a pod got %+v, want itself in east since %s", got, since)
	}
	w = workload("db", 3)
	w.GVK.Kind, w.Ordinals, w.First, w.Template = "StatefulSet", true, 5, &corev1.PodTemplateSpec{}
	got := e.mirrors.of(w, on("east", 3))
	slices.SortFunc(got, func(a, b placement.Pod) int { return int(a.Ordinal - b.Ordinal) })
	if len(got) != 2 || got[0].Ordinal != 2 || got[1].Ordinal != 3 || got[1].Cluster != "west" || !got[1].Since.Equal(since) {
		t.Errorf("got %+v, want the third in east and the fourth, which waits, in west", got)
	}
}

// What a cluster refuses needs no pod to be told by.
func TestDecidesWhatIsRefused(t *testing.T) {
	d := placed("web", on("east", 2))
	hash := projection.TemplateHash(&d.Spec.Template)
	w := pinned(workload("web", 2), "east", "west")
	w.Template = &d.Spec.Template
	w.Refused = map[string]placement.Refusal{"east": {Pods: 1, Since: start.Add(-time.Hour), Says: "exceeded quota"}}
	got, ready := newEngine(t, d, setOf("web", hash), namespace(""), joined("east", 9), joined("west", 9),
		mirrored("a", "ReplicaSet", "web-"+hash, "east")).Decide(w, on("east", 2))
	if want := (placement.Decision{"east": {Replicas: 1}, "west": {Replicas: 1}}); !ready || !got.Decision.Equal(want) {
		t.Errorf("got %s, want %s", got.Decision, want)
	}
	if got, want := got.Departure(on("east", 2)), `; moved off cluster "east", which refuses some of the pods (exceeded quota)`; got != want {
		t.Errorf("departure %q, want %q", got, want)
	}
}

// A pod that runs is where it runs, also if its cluster was faster than a decision.
func TestAPodStaysWhereItRuns(t *testing.T) {
	w := workload("task", 1)
	w.GVK.Kind, w.GVK.Group, w.Once, w.Fixed, w.RunsIn = "Pod", "", true, true, "east"
	engine := newEngine(t, namespace(""), joined("east", 9), joined("west", 9))
	got, ready := engine.Decide(w, on("west", 1))
	if want := on("east", 1); !ready || !got.Decision.Equal(want) {
		t.Errorf("got %s, want %s", got.Decision, want)
	}
	got, ready = engine.Decide(w, build.Held(on("west", 1), "west", "task-v7"))
	if want := build.Held(on("east", 1), "east", "task-v7"); !ready || !got.Decision.Equal(want) {
		t.Errorf("got %s, want %s, which it takes along", got.Decision, want)
	}
}

func TestDecidesWhatIsUnschedulable(t *testing.T) {
	d := placed("web", on("east", 2))
	hash := projection.TemplateHash(&d.Spec.Template)
	pods := func(since time.Duration) []runtime.Object {
		waits := waiting("0/3 nodes are available: 3 Insufficient cpu. preemption: none.", start.Add(-since))
		return []runtime.Object{d, setOf("web", hash), namespace(""), joined("east", 9), joined("west", 9),
			mirrored("a", "ReplicaSet", "web-"+hash, "east"), mirrored("b", "ReplicaSet", "web-"+hash, "east", waits)}
	}
	w := pinned(workload("web", 2), "east", "west")
	w.Template = &d.Spec.Template

	early, ready := newEngine(t, pods(30*time.Second)...).Decide(w, on("east", 2))
	if want := on("east", 2); !ready || !early.Decision.Equal(want) || !early.Next.Equal(start.Add(90*time.Second)) {
		t.Errorf("early on %s until %s, want %s for 90 seconds", early.Decision, early.Next, want)
	}
	late, ready := newEngine(t, pods(2*time.Minute)...).Decide(w, on("east", 2))
	want := placement.Decision{"east": {Replicas: 1}, "west": {Replicas: 1}}
	if !ready || !late.Decision.Equal(want) || late.Moved != 1 || !late.Next.Equal(start.Add(10*time.Minute)) {
		t.Errorf("then %s with %d moved until %s, want %s for ten minutes", late.Decision, late.Moved, late.Next, want)
	}
	if got, want := late.Departure(on("east", 2)),
		`; moved off cluster "east", which has no node for some of the pods (0/3 nodes are available: 3 Insufficient cpu)`; got != want {
		t.Errorf("departure %q, want %q", got, want)
	}
}
