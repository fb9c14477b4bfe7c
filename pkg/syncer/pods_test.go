package syncer

import (
	"fmt"
	"slices"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/mirror"
	"github.com/manifold-dev/manifold/pkg/projection"
)

var podName = cache.NewObjectName("shop", "web-1")

// family is a Deployment above and what a cluster made of it: its projection, a ReplicaSet and a pod, and the ReplicaSet's mirror.
type family struct {
	above      *appsv1.Deployment
	projected  *appsv1.Deployment
	replicaSet *appsv1.ReplicaSet
	mirrored   *appsv1.ReplicaSet
	pod        *corev1.Pod
}

func newFamily() *family {
	f := &family{above: deployment("web", toEast)}
	f.projected = projected(f.above, 2, 2)
	f.replicaSet = &appsv1.ReplicaSet{ObjectMeta: objectMeta("web-below")}
	f.replicaSet.Annotations = map[string]string{v1alpha1.AnnotationTemplate: "abc"}
	f.replicaSet.OwnerReferences = controlledBy(f.projected, "Deployment")
	f.mirrored = &appsv1.ReplicaSet{ObjectMeta: objectMeta("web-abc")}
	f.mirrored.Labels = map[string]string{appsv1.DefaultDeploymentUniqueLabelKey: "abc"}
	f.mirrored.OwnerReferences = controlledBy(f.above, "Deployment")
	f.mirrored.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
	f.mirrored.Spec.Template = corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "web", appsv1.DefaultDeploymentUniqueLabelKey: "abc"}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "app"}}},
	}
	f.pod = &corev1.Pod{
		ObjectMeta: objectMeta("web-1"),
		Spec: corev1.PodSpec{
			NodeName: "node-1", Containers: []corev1.Container{{Name: "app"}}, ServiceAccountName: "default", DeprecatedServiceAccount: "default",
		},
		Status: corev1.PodStatus{Phase: corev1.PodRunning, PodIP: "10.0.0.7"},
	}
	f.pod.Labels = map[string]string{"app": "web", appsv1.DefaultDeploymentUniqueLabelKey: "below"}
	f.pod.CreationTimestamp = metav1.NewTime(time.Date(2026, time.November, 20, 13, 0, 0, 0, time.FixedZone("CET", 3600)))
	f.pod.Finalizers = []string{"below.example/finalizer"}
	f.pod.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "kubelet"}}
	f.pod.OwnerReferences = controlledBy(f.replicaSet, "ReplicaSet")
	return f
}

// mirror is what a cluster has shown of the pod.
func (f *family) mirror(cluster string) *corev1.Pod {
	return mirror.ShowPod(f.pod, cluster, controlledBy(f.mirrored, "ReplicaSet"), map[string]string{appsv1.DefaultDeploymentUniqueLabelKey: "abc"})
}

func controlledBy(owner metav1.Object, kind string) []metav1.OwnerReference {
	return []metav1.OwnerReference{*metav1.NewControllerRef(owner, appsv1.SchemeGroupVersion.WithKind(kind))}
}

// shown is the mirror as the logical cluster stores it.
func (f *family) shown(cluster string) *corev1.Pod {
	m := f.pod.DeepCopy()
	m.Spec.NodeName = cluster
	m.Finalizers, m.ManagedFields = nil, nil
	m.Labels[appsv1.DefaultDeploymentUniqueLabelKey] = "abc"
	m.Annotations = map[string]string{v1alpha1.AnnotationCluster: cluster, v1alpha1.AnnotationNode: "node-1"}
	m.OwnerReferences = controlledBy(f.mirrored, "ReplicaSet")
	return m
}

func TestMirrorIsThePodAsTheLogicalClusterKnowsIt(t *testing.T) {
	f := newFamily()
	before := f.pod.DeepCopy()
	got := f.mirror("east")
	if !mirror.SamePod(got, f.shown("east")) {
		t.Errorf("mirror %+v,\nwant %+v", got, f.shown("east"))
	}
	if got.UID != "" || got.ResourceVersion != "" || len(got.Finalizers)+len(got.ManagedFields) > 0 || !got.CreationTimestamp.IsZero() {
		t.Errorf("the mirror carries what only means something below: %+v", got.ObjectMeta)
	}
	want := map[string]string{
		v1alpha1.AnnotationUID: "uid-of-web-1", v1alpha1.AnnotationCreated: "2026-11-20T12:00:00Z", v1alpha1.AnnotationGeneration: "1",
		v1alpha1.AnnotationCluster: "east", v1alpha1.AnnotationNode: "node-1",
	}
	if fmt.Sprint(got.Annotations) != fmt.Sprint(want) {
		t.Errorf("annotations %v, want %v", got.Annotations, want)
	}
	if !equality.Semantic.DeepEqual(f.pod, before) {
		t.Error("the pod of the cache was changed")
	}
	f.pod.Spec.NodeName = ""
	if got := f.mirror("east"); got.Spec.NodeName != "" || got.Annotations[v1alpha1.AnnotationNode] != "" {
		t.Errorf("a pod that waits for a node runs on %q, %q; want nothing", got.Spec.NodeName, got.Annotations[v1alpha1.AnnotationNode])
	}
}

func TestMirrorIsWrittenOnlyWhenItChanges(t *testing.T) {
	for name, test := range map[string]struct {
		change func(below *corev1.Pod)
		want   bool
	}{
		"nothing has changed":            {func(*corev1.Pod) {}, true},
		"a version alone":                {func(p *corev1.Pod) { p.ResourceVersion = "9" }, true},
		"a finalizer, which is not ours": {func(p *corev1.Pod) { p.Finalizers = nil }, true},
		"a label":                        {func(p *corev1.Pod) { p.Labels["a"] = "b" }, false},
		"an annotation":                  {func(p *corev1.Pod) { p.Annotations = map[string]string{"a": "b"} }, false},
		"the generation":                 {func(p *corev1.Pod) { p.Generation = 2 }, false},
		"the node":                       {func(p *corev1.Pod) { p.Spec.NodeName = "node-2" }, false},
		"the spec":                       {func(p *corev1.Pod) { p.Spec.Containers[0].Image = "new" }, false},
		"the status":                     {func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed }, false},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFamily()
			shown := f.shown("east")
			test.change(f.pod)
			if got := mirror.SamePod(f.mirror("east"), shown); got != test.want {
				t.Errorf("the same: %t, want %t", got, test.want)
			}
		})
	}
	t.Run("another owner", func(t *testing.T) {
		f := newFamily()
		if mirror.SamePod(mirror.ShowPod(f.pod, "east", controlledBy(f.above, "Deployment"), f.mirror("east").Labels), f.shown("east")) {
			t.Error("counts as the same")
		}
	})
}

func TestSyncPod(t *testing.T) {
	type objects = []projection.Object
	for name, test := range map[string]struct {
		prepare    func(f *family) (above, below objects)
		want       []string // verbs of the writes to the mirror
		wantErr    error
		wantMarked bool
		stranger   *appsv1.ReplicaSet // what else the cluster has
	}{
		"a new pod is shown": {
			prepare: func(f *family) (above, below objects) {
				return objects{f.above, f.mirrored, namespace("shop")}, objects{f.projected, f.replicaSet, f.pod}
			},
			want: []string{"create"},
		},
		"what is shown well is left alone": {
			prepare: func(f *family) (above, below objects) {
				return objects{f.above, f.mirrored, namespace("shop"), f.shown("east")}, objects{f.projected, f.replicaSet, f.pod}
			},
		},
		"what has changed is updated": {
			prepare: func(f *family) (above, below objects) {
				shown := f.shown("east")
				f.pod.Status.Phase = corev1.PodFailed
				return objects{f.above, f.mirrored, namespace("shop"), shown}, objects{f.projected, f.replicaSet, f.pod}
			},
			want: []string{"update"},
		},
		"a pod waits for the mirror of its ReplicaSet": {
			prepare: func(f *family) (above, below objects) {
				return objects{f.above, namespace("shop")}, objects{f.projected, f.replicaSet, f.pod}
			},
		},
		"somebody else's pod is not shown": {
			prepare: func(f *family) (above, below objects) {
				f.pod.OwnerReferences = nil
				return objects{f.above, f.mirrored, namespace("shop")}, objects{f.projected, f.replicaSet, f.pod}
			},
		},
		"the pod of a Deployment that was deleted above and made anew is not shown": {
			prepare: func(f *family) (above, below objects) {
				f.above.UID = "another"
				f.mirrored.OwnerReferences = controlledBy(f.above, "Deployment")
				return objects{f.above, f.mirrored, namespace("shop")}, objects{f.projected, f.replicaSet, f.pod}
			},
		},
		"nothing is shown in a namespace that goes": {
			prepare: func(f *family) (above, below objects) {
				going := namespace("shop")
				going.DeletionTimestamp = &metav1.Time{}
				return objects{f.above, f.mirrored, going}, objects{f.projected, f.replicaSet, f.pod}
			},
		},
		"what is gone below goes": {
			prepare: func(f *family) (above, below objects) {
				return objects{f.above, f.mirrored, namespace("shop"), f.shown("east")}, objects{f.projected, f.replicaSet}
			},
			want: []string{"delete"},
		},
		"the mirror of an earlier pod of that name goes": {
			prepare: func(f *family) (above, below objects) {
				shown := f.shown("east")
				shown.UID = "earlier"
				return objects{f.above, f.mirrored, namespace("shop"), shown}, objects{f.projected, f.replicaSet, f.pod}
			},
			want: []string{"delete"},
		},
		"what is no longer ours goes": {
			prepare: func(f *family) (above, below objects) {
				shown := f.shown("east")
				f.pod.OwnerReferences[0].UID = "somebody-else"
				return objects{f.above, f.mirrored, namespace("shop"), shown}, objects{f.projected, f.replicaSet, f.pod}
			},
			want:     []string{"delete"},
			stranger: &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-below", UID: "somebody-else"}},
		},
		"what the garbage collector of the cluster is to decide about stays": {
			prepare: func(f *family) (above, below objects) {
				return objects{namespace("shop"), f.shown("east")}, objects{f.pod}
			},
		},
		"also if it is the owner of its owner that is gone": {
			prepare: func(f *family) (above, below objects) {
				return objects{namespace("shop"), f.shown("east")}, objects{f.replicaSet, f.pod}
			},
			stranger: newFamily().replicaSet,
		},
		"what its owner has let go of is marked in its cluster, and taken over when the watch shows that": {
			prepare: func(f *family) (above, below objects) {
				shown := f.shown("east")
				shown.Labels["app"] = "broken"
				f.pod.OwnerReferences = nil
				return objects{f.above, f.mirrored, namespace("shop"), shown}, objects{f.projected, f.replicaSet, f.pod}
			},
			wantMarked: true,
		},
		"what its owner has let go of without a reason above is looked at again": {
			prepare: func(f *family) (above, below objects) {
				shown := f.shown("east")
				f.pod.OwnerReferences = nil
				return objects{f.above, f.mirrored, namespace("shop"), shown}, objects{f.projected, f.replicaSet, f.pod}
			},
			wantErr: errNotYet,
		},
		"a pod of what is not placed there is not shown": {
			prepare: func(f *family) (above, below objects) {
				f.above.Annotations[v1alpha1.AnnotationPlacement] = `{"west":{"replicas":2}}`
				return objects{f.above, f.mirrored, namespace("shop")}, objects{f.projected, f.replicaSet, f.pod}
			},
			wantErr: errNotYet,
		},
		"but one that is shown goes on being shown": {
			prepare: func(f *family) (above, below objects) {
				shown := f.shown("east")
				f.above.Annotations[v1alpha1.AnnotationPlacement] = `{"west":{"replicas":2}}`
				f.pod.Status.Phase = corev1.PodFailed
				return objects{f.above, f.mirrored, namespace("shop"), shown}, objects{f.projected, f.replicaSet, f.pod}
			},
			want: []string{"update"},
		},
		"labels, images and privileges that the cluster gives a pod are not shown": {
			prepare: func(f *family) (above, below objects) {
				shown := f.shown("east")
				f.pod.Labels["app"], f.pod.Spec.Containers[0].Image, f.pod.Spec.HostNetwork = "bank", "evil:1", true
				f.pod.Annotations = map[string]string{v1alpha1.AnnotationClusters: "west"}
				return objects{f.above, f.mirrored, namespace("shop"), shown}, objects{f.projected, f.replicaSet, f.pod}
			},
		},
		"a pod whose UID something above has is not shown": {
			prepare: func(f *family) (above, below objects) {
				f.pod.UID = f.above.UID
				return objects{f.above, f.mirrored, namespace("shop")}, objects{f.projected, f.replicaSet, f.pod}
			},
			wantErr: errNotYet,
		},
		"another cluster's mirror is not ours to delete": {
			prepare: func(f *family) (above, below objects) {
				return objects{f.above, f.mirrored, namespace("shop"), f.shown("west")}, objects{f.projected, f.replicaSet}
			},
		},
		"a pod whose name another cluster has taken waits": {
			prepare: func(f *family) (above, below objects) {
				return objects{f.above, f.mirrored, namespace("shop"), f.shown("west")}, objects{f.projected, f.replicaSet, f.pod}
			},
			wantErr: errNotYet,
		},
		"a pod that ends is shown as ending": {
			prepare: func(f *family) (above, below objects) {
				shown := f.shown("east")
				f.pod.DeletionTimestamp, f.pod.DeletionGracePeriodSeconds = &metav1.Time{Time: time.Now()}, ptr.To[int64](30)
				return objects{f.above, f.mirrored, namespace("shop"), shown}, objects{f.projected, f.replicaSet, f.pod}
			},
			want: []string{"delete"},
		},
		"the deletion above counts a generation as that below has": {
			prepare: func(f *family) (above, below objects) {
				shown := f.shown("east")
				f.pod.DeletionTimestamp, f.pod.DeletionGracePeriodSeconds = &metav1.Time{Time: time.Now()}, ptr.To[int64](30)
				f.pod.Generation = 2
				return objects{f.above, f.mirrored, namespace("shop"), shown}, objects{f.projected, f.replicaSet, f.pod}
			},
			want: []string{"delete"},
		},
		"a pod that ends is shown after its Deployment": {
			prepare: func(f *family) (above, below objects) {
				shown := f.shown("east")
				f.pod.DeletionTimestamp, f.pod.Status.Phase = &metav1.Time{Time: time.Now()}, corev1.PodFailed
				return objects{namespace("shop"), shown}, objects{f.pod}
			},
			want: []string{"update", "delete"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			above, below := test.prepare(newFamily())
			s := attach(t, newUpstream(t, above...), "east", below...)
			if test.stranger != nil {
				if err := s.client.(*fake.Clientset).Tracker().Add(test.stranger); err != nil {
					t.Fatal(err)
				}
			}
			for _, obj := range above {
				if pod, ok := obj.(*corev1.Pod); ok {
					if err := s.above.Tracker().Add(pod); err != nil {
						t.Fatal(err)
					}
				}
			}
			if err := s.pods.Sync(t.Context(), podName); err != test.wantErr {
				t.Fatalf("error %v, want %v", err, test.wantErr)
			}
			var got []string
			for _, action := range s.above.Actions() {
				got = append(got, action.GetVerb())
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("writes %v, want %v", got, test.want)
			}
			if marked := len(patched(t, s)) > 0; marked != test.wantMarked {
				t.Errorf("marked %t, want %t", marked, test.wantMarked)
			}
		})
	}
}

// The watch follows a moment later. Until then a second look must not write a second time.
func TestOwnWritesAreKnownBeforeTheWatchShowsThem(t *testing.T) {
	f := newFamily()
	s := attach(t, newUpstream(t, f.above, f.mirrored, namespace("shop")), "east", f.projected, f.replicaSet, f.pod)
	// The API server answers with the UID of the pod below and without what carried it there.
	answer := func(clienttesting.Action) (bool, runtime.Object, error) {
		answered := f.shown("east")
		answered.ResourceVersion = "5"
		return true, answered, nil
	}
	s.above.PrependReactor("create", "pods", answer)
	if err := s.pods.Sync(t.Context(), podName); err != nil {
		t.Fatal(err)
	}
	if err := s.pods.Sync(t.Context(), podName); err != nil {
		t.Fatal(err)
	}
	if got := len(s.above.Actions()); got != 1 {
		t.Errorf("%d writes, want one", got)
	}
}

func TestEventsBelowAreAboutTheObjectsAbove(t *testing.T) {
	f := newFamily()
	unmirrored := f.replicaSet.DeepCopy()
	unmirrored.Name, unmirrored.UID = "web-new", "uid-of-web-new"
	unmirrored.Annotations = map[string]string{v1alpha1.AnnotationTemplate: "new"}
	foreign := &corev1.Pod{ObjectMeta: objectMeta("foreign")}
	live := secret("key")
	live.UID = "uid-below"
	live.Annotations = map[string]string{v1alpha1.AnnotationUID: "uid-of-key"}
	site := ingress("site", "web")
	site.UID, site.Annotations = live.UID, map[string]string{v1alpha1.AnnotationUID: "uid-of-site"}
	usingSecret("key")(f.above)
	u := newUpstream(t, f.above, f.mirrored, f.shown("east"), secret("key"), ingress("site", "web"), service("web", map[string]string{"app": "web"}))
	s := attach(t, u, "east", f.projected, f.replicaSet, unmirrored, f.pod, foreign, live, site)

	for name, test := range map[string]struct {
		about     corev1.ObjectReference
		want      string // kind, name and UID; "" for an event that is not shown
		wantLater bool   // the object above may still come
	}{
		"a pod": {
			about: corev1.ObjectReference{Kind: "Pod", Namespace: "shop", Name: "web-1", UID: "uid-of-web-1"}, want: "Pod web-1 uid-of-web-1",
		},
		"an earlier pod of the name": {
			about: corev1.ObjectReference{Kind: "Pod", Namespace: "shop", Name: "web-1", UID: "earlier"},
		},
		"a pod that is not seen yet": {
			about: corev1.ObjectReference{Kind: "Pod", Namespace: "shop", Name: "new", UID: "uid-of-new"}, wantLater: true,
		},
		"a projection that is not seen yet": {
			about: corev1.ObjectReference{APIVersion: "v1", Kind: "Secret", Namespace: "shop", Name: "new", UID: "uid-of-new"}, wantLater: true,
		},
		"somebody else's pod": {
			about: corev1.ObjectReference{Kind: "Pod", Namespace: "shop", Name: "foreign", UID: "uid-of-foreign"},
		},
		"a ReplicaSet is about its mirror": {
			about: corev1.ObjectReference{Kind: "ReplicaSet", Namespace: "shop", Name: "web-below", UID: "uid-of-web-below"}, want: "ReplicaSet web-abc uid-of-web-abc",
		},
		"a ReplicaSet whose mirror is on its way": {
			about: corev1.ObjectReference{Kind: "ReplicaSet", Namespace: "shop", Name: "web-new", UID: "uid-of-web-new"}, wantLater: true,
		},
		"a projection is about its origin": {
			about: corev1.ObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop", Name: "web", UID: f.projected.UID}, want: "Deployment web uid-of-web",
		},
		"a dependent too": {
			about: corev1.ObjectReference{APIVersion: "v1", Kind: "Secret", Namespace: "shop", Name: "key", UID: "uid-below"}, want: "Secret key uid-of-key",
		},
		"one whose plural is no plain one, by a version that is not ours": {
			about: corev1.ObjectReference{APIVersion: "networking.k8s.io/v1beta1", Kind: "Ingress", Namespace: "shop", Name: "site", UID: "uid-below"},
			want:  "Ingress site uid-of-site",
		},
		"one of the name and another group": {
			about: corev1.ObjectReference{APIVersion: "example.com/v1", Kind: "Secret", Namespace: "shop", Name: "key", UID: "uid-below"},
		},
		"an earlier projection of the name": {
			about: corev1.ObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop", Name: "web", UID: "earlier"},
		},
		"something else": {
			about: corev1.ObjectReference{Kind: "Job", Namespace: "shop", Name: "web", UID: "uid-of-web"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			in := &corev1.Event{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web.1", UID: "event", ResourceVersion: "9"}, InvolvedObject: test.about, Reason: "Started"}
			out, known := s.Syncer.events.Mirror(in)
			if known == test.wantLater {
				t.Errorf("known %t, want %t", known, !test.wantLater)
			}
			got := ""
			if out != nil {
				got = fmt.Sprint(out.InvolvedObject.Kind, " ", out.InvolvedObject.Name, " ", out.InvolvedObject.UID)
				if out.Name != "web.1.east" || out.UID != "" || out.ResourceVersion != "" || out.Reason != "Started" || out.Source.Host != "east" {
					t.Errorf("event %+v", out)
				}
			}
			if got != test.want {
				t.Errorf("about %q, want %q", got, test.want)
			}
		})
	}
}

// The watches of a cluster are independent: a pod may be known, and have its last change behind it, before what it belongs to is.
func TestPodsAreLookedAtWhenTheirOwnersBecomeKnown(t *testing.T) {
	f := newFamily()
	released := f.replicaSet.DeepCopy()
	released.OwnerReferences = nil
	of := func(owner metav1.Object) *metav1.ObjectMeta {
		pod := f.pod.DeepCopy()
		pod.OwnerReferences = controlledBy(owner, "StatefulSet")
		return &pod.ObjectMeta
	}
	set := &appsv1.StatefulSet{ObjectMeta: objectMeta("db")}
	setPod := &corev1.Pod{ObjectMeta: *of(set), Status: f.pod.Status}
	for name, test := range map[string]struct {
		known []projection.Object
		told  func(s *Syncer)
		want  int
	}{
		"a Deployment": {[]projection.Object{f.replicaSet, f.pod}, func(s *Syncer) { s.handlers.OfObjects(deployments).OnAdd(f.projected, false) }, 1},
		"a StatefulSet": {[]projection.Object{setPod}, func(s *Syncer) {
			kind, _ := projection.ForResource(statefulSetResource)
			s.handlers.OfObjects(kind).OnAdd(set, false)
		}, 1},
		"a ReplicaSet": {[]projection.Object{f.projected, f.pod}, func(s *Syncer) { s.handlers.OfReplicaSets().OnAdd(f.replicaSet, false) }, 1},
		"a ReplicaSet that a Deployment takes over": {[]projection.Object{f.projected, f.pod}, func(s *Syncer) {
			s.handlers.OfReplicaSets().OnUpdate(released, f.replicaSet)
		}, 1},
		"a ReplicaSet that belongs to the same as before": {[]projection.Object{f.projected, f.pod}, func(s *Syncer) {
			s.handlers.OfReplicaSets().OnUpdate(f.replicaSet, f.replicaSet)
		}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			s := attach(t, newUpstream(t, f.above, f.mirrored), "east", append(test.known, namespace("shop"))...)
			test.told(s.Syncer)
			if got := s.pods.Queue.Len(); got != test.want {
				t.Errorf("%d pods are looked at, want %d", got, test.want)
			}
		})
	}
}
