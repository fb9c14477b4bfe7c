package syncer

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/identity"
	"github.com/manifold-dev/manifold/pkg/projection"
	"github.com/manifold-dev/manifold/pkg/syncer/logical"
	"github.com/manifold-dev/manifold/pkg/syncer/mirrors"
	"github.com/manifold-dev/manifold/pkg/syncer/planning"
	"github.com/manifold-dev/manifold/pkg/syncer/writer"
)

// orphaning makes an object of the logical cluster one that is deleted without what it owns.
func orphaning[T projection.Object](o T) T {
	o.SetDeletionTimestamp(&metav1.Time{})
	o.SetFinalizers([]string{metav1.FinalizerOrphanDependents, v1alpha1.FinalizerProjection})
	return o
}

// podOf is one that a ReplicaSet below controls.
func podOf(owner *appsv1.ReplicaSet, name string, change ...func(*corev1.Pod)) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: objectMeta(name), Status: corev1.PodStatus{Phase: corev1.PodRunning}}
	pod.OwnerReferences = controlledBy(owner, "ReplicaSet")
	for _, c := range change {
		c(pod)
	}
	return pod
}

// marked makes an object below an orphan of ours.
func marked(pod *corev1.Pod) {
	pod.Labels = map[string]string{"app": "web", v1alpha1.LabelLogicalCluster: logicalCluster, v1alpha1.LabelOrphan: "true"}
	pod.Annotations = map[string]string{
		v1alpha1.AnnotationNamespace: pod.Namespace, v1alpha1.AnnotationName: pod.Name, v1alpha1.AnnotationUID: string(pod.UID),
	}
}

// above is a pod as the logical cluster has it: a mirror of one in a cluster, or one that is placed there.
func mirrorOf(pod *corev1.Pod, cluster string) *corev1.Pod {
	out := &corev1.Pod{ObjectMeta: objectMeta(pod.Name)}
	out.Annotations = map[string]string{v1alpha1.AnnotationCluster: cluster}
	return out
}

func ownOf(pod *corev1.Pod, decision string) *corev1.Pod {
	out := mirrorOf(pod, "")
	out.Annotations = map[string]string{v1alpha1.AnnotationPlacement: decision, v1alpha1.AnnotationPodUID: string(pod.UID)}
	return out
}

// patched are the names of what was patched in the cluster, sorted.
func patched(t *testing.T, s *testSyncer) []string {
	t.Helper()
	var out []string
	for _, action := range s.client.(*fake.Clientset).Actions() {
		if action.GetVerb() == "list" {
			continue
		}
		patch, ok := action.(clienttesting.PatchAction)
		if !ok {
			t.Errorf("unexpected %s of %s", action.GetVerb(), action.GetResource().Resource)
			continue
		}
		var object metav1.PartialObjectMetadata
		if err := json.Unmarshal(patch.GetPatch(), &object); err != nil {
			t.Fatal(err)
		}
		if object.Labels[v1alpha1.LabelOrphan] != "true" || object.Labels[v1alpha1.LabelLogicalCluster] != logicalCluster ||
			object.Annotations[v1alpha1.AnnotationName] != patch.GetName() || object.UID == "" {
			t.Errorf("patched with %s, want our marks", patch.GetPatch())
		}
		out = append(out, patch.GetName())
	}
	slices.Sort(out)
	return out
}

func TestAnObjectGoesOnlyWhenWhatItOwnsIsShownAsOthersAre(t *testing.T) {
	set := orphaning(plainSet("web", toEast))
	live := handProjected(set, nil)
	plain, done := podOf(live, "web-1"), podOf(live, "web-2", marked)
	for name, test := range map[string]struct {
		above, below []projection.Object
		wantMarked   []string
		wantErr      error
	}{
		"it owns nothing":         {nil, nil, nil, nil},
		"a pod with a mirror":     {[]projection.Object{mirrorOf(plain, "east")}, []projection.Object{plain}, []string{"web-1"}, errNotYet},
		"a pod that is not shown": {nil, []projection.Object{plain}, []string{"web-1"}, errNotYet},
		"a pod that is marked and not shown so": {
			[]projection.Object{mirrorOf(done, "east")}, []projection.Object{done}, nil, errNotYet,
		},
		"a pod that is shown as one of the user's": {
			[]projection.Object{ownOf(done, toEast)}, []projection.Object{done}, nil, nil,
		},
		"a pod whose name another cluster has": {
			[]projection.Object{mirrorOf(plain, "west")}, []projection.Object{plain}, []string{"web-1"}, nil,
		},
		"a pod that ends anyway": {
			nil, []projection.Object{podOf(live, "web-1", func(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{} })}, nil, nil,
		},
		"somebody else's pod": {
			nil, []projection.Object{podOf(live, "web-1", func(p *corev1.Pod) { p.OwnerReferences[0].UID = "earlier" })}, nil, nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := attach(t, newUpstream(t, append(test.above, set, namespace("shop"))...), "east", append(test.below, live)...)
			for _, obj := range test.below {
				if err := s.client.(*fake.Clientset).Tracker().Add(obj); err != nil {
					t.Fatal(err)
				}
			}
			kind, _ := projection.KindOf(set)
			if err := s.orphans.Abandon(t.Context(), kind, live); !errors.Is(err, test.wantErr) {
				t.Errorf("error %v, want %v", err, test.wantErr)
			}
			if got := patched(t, s); !slices.Equal(got, test.wantMarked) {
				t.Errorf("marked %v, want %v", got, test.wantMarked)
			}
		})
	}
}

func TestADeploymentGoesOnlyWhenItsReplicaSetsAreNobodysAbove(t *testing.T) {
	web := orphaning(deployment("web", toEast))
	live := projected(web, 2, 2)
	below := func(replicas int32) *appsv1.ReplicaSet {
		rs := &appsv1.ReplicaSet{ObjectMeta: objectMeta("web-abc"), Spec: appsv1.ReplicaSetSpec{Replicas: &replicas}}
		rs.OwnerReferences = controlledBy(live, "Deployment")
		return rs
	}
	mirror := plainSet("web-abc", "")
	mirror.OwnerReferences = controlledBy(web, "Deployment")
	for name, test := range map[string]struct {
		above   []projection.Object
		below   *appsv1.ReplicaSet
		wantErr error
	}{
		"the collector has not come to it": {[]projection.Object{mirror}, below(2), errNotYet},
		"it has":                           {[]projection.Object{plainSet("web-abc", toEast)}, below(2), nil},
		"one of another name is still to be shown": {nil, below(2), errNotYet},
		"an old one need not be":                   {nil, below(0), nil},
	} {
		t.Run(name, func(t *testing.T) {
			s := attach(t, newUpstream(t, append(test.above, web, namespace("shop"))...), "east", live, test.below)
			if err := s.client.(*fake.Clientset).Tracker().Add(test.below); err != nil {
				t.Fatal(err)
			}
			kind, _ := projection.KindOf(web)
			if err := s.orphans.Abandon(t.Context(), kind, live); !errors.Is(err, test.wantErr) {
				t.Errorf("error %v, want %v", err, test.wantErr)
			}
			if got := patched(t, s); !slices.Equal(got, []string{"web-abc"}) {
				t.Errorf("marked %v, want the ReplicaSet", got)
			}
		})
	}
}

func TestAnOrphanedPodIsTakenOverAsItIs(t *testing.T) {
	set := orphaning(plainSet("web", toEast))
	live := handProjected(set, nil)
	pod := podOf(live, "web-1", marked, func(p *corev1.Pod) { p.Spec.NodeName = "node-1" })
	loose := metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: "c", UID: "c"}
	mirror := mirrorOf(pod, "east")
	mirror.OwnerReferences = append(controlledBy(set, "ReplicaSet"), loose)
	mirror.Labels, mirror.Spec.NodeName, mirror.Annotations[v1alpha1.AnnotationNode] = map[string]string{"app": "web"}, "east", "node-1"
	mirror.Spec.Containers = []corev1.Container{{Name: "app", Image: "app:1"}, {Name: "added", Image: "evil:1"}}
	set.Spec.Template.Spec.Containers = []corev1.Container{{Name: "app", Image: "app:1"}}
	// The cluster says more than it may.
	pod.Spec.Containers = []corev1.Container{{Name: "app", Image: "evil:1"}}
	pod.Annotations[v1alpha1.AnnotationClusters] = "west"
	for name, test := range map[string]struct {
		above      []projection.Object
		want       string
		wantOwners []metav1.OwnerReference
	}{
		"that has a mirror": {[]projection.Object{mirror}, "update", []metav1.OwnerReference{loose}},
	} {
		t.Run(name, func(t *testing.T) {
			s := attach(t, newUpstream(t, append(test.above, set, namespace("shop"))...), "east", live, pod)
			for _, obj := range test.above {
				if err := s.above.Tracker().Add(obj); err != nil {
					t.Fatal(err)
				}
			}
			if err := s.pods.Sync(t.Context(), podName); err != nil {
				t.Fatal(err)
			}
			actions := s.above.Actions()
			if len(actions) != 1 || actions[0].GetVerb() != test.want {
				t.Fatalf("writes %v, want one to %s", actions, test.want)
			}
			got := actions[0].(clienttesting.CreateAction).GetObject().(*corev1.Pod)
			if got.Annotations[v1alpha1.AnnotationPlacement] != `{"east":{"replicas":1}}` || got.Annotations[v1alpha1.AnnotationPodUID] != "uid-of-web-1" ||
				got.Annotations[v1alpha1.AnnotationClusters] != "" || identity.ShownFrom(got) != "" || got.Spec.NodeName != "east" {
				t.Errorf("it is %+v on %q, want one that runs where it is", got.Annotations, got.Spec.NodeName)
			}
			if len(got.Spec.Containers) != 1 || got.Spec.Containers[0].Image != "app:1" {
				t.Errorf("it has %+v, want what came from above", got.Spec.Containers)
			}
			if len(got.Labels) != 1 || got.Labels["app"] != "web" || !equality.Semantic.DeepEqual(got.OwnerReferences, test.wantOwners) {
				t.Errorf("labels %v and owners %v, want those of the user", got.Labels, got.OwnerReferences)
			}
			if got := s.enqueued(); !slices.Equal(got, []string{"replicasets shop/web"}) {
				t.Errorf("looks at %v, want the owner, which waits for it", got)
			}
		})
	}
}

// What goes on running is known above before it does, so a pod that is marked as such is first shown as one of its controller.
func TestAMarkedPodIsNoneOfAUsersWithoutARecord(t *testing.T) {
	set := plainSet("web", toEast)
	set.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
	set.Spec.Template.Labels = map[string]string{"app": "web"}
	live := handProjected(set, nil)
	pod := podOf(live, "web-1", marked)
	alone := podOf(live, "web-1", marked, func(p *corev1.Pod) { p.OwnerReferences = nil })
	mirror := func(change ...func(*corev1.Pod)) *corev1.Pod {
		m := mirrorOf(pod, "east")
		m.Labels, m.OwnerReferences, m.Spec.NodeName = map[string]string{"app": "web"}, controlledBy(set, "ReplicaSet"), "east"
		for _, c := range change {
			c(m)
		}
		return m
	}
	relabelled := func(p *corev1.Pod) { p.Labels["app"] = "broken" }
	taken := func(p *corev1.Pod) { p.OwnerReferences = nil }
	waiting := func(p *corev1.Pod) { p.Spec.NodeName = "" }
	for name, test := range map[string]struct {
		pod, mirror *corev1.Pod
		want        string // the write and whether it is of a mirror
		wantErr     error
	}{
		"a pod with its controller":                           {pod, nil, "create mirror", nil},
		"a pod with its controller and a mirror":              {pod, mirror(), "update mirror", nil},
		"a pod without a controller, that nobody knows":       {alone, nil, "", errNotYet},
		"a pod without a controller, that is shown with one":  {alone, mirror(), "", errNotYet},
		"a pod that a user has given other labels":            {alone, mirror(relabelled), "update pod", nil},
		"a pod that the collector above has taken off":        {alone, mirror(taken), "update pod", nil},
		"but none that could begin elsewhere, of no template": {alone, mirror(taken, waiting), "", errNotYet},
	} {
		t.Run(name, func(t *testing.T) {
			objects := []projection.Object{set, namespace("shop")}
			if test.mirror != nil {
				objects = append(objects, test.mirror)
			}
			s := attach(t, newUpstream(t, objects...), "east", live, test.pod)
			if test.mirror != nil {
				if err := s.above.Tracker().Add(test.mirror); err != nil {
					t.Fatal(err)
				}
			}
			if err := s.pods.Sync(t.Context(), podName); !errors.Is(err, test.wantErr) {
				t.Fatalf("error %v, want %v", err, test.wantErr)
			}
			got := ""
			for _, action := range s.above.Actions() {
				got += action.GetVerb()
				if written, ok := action.(clienttesting.CreateAction); ok {
					if of := written.GetObject().(*corev1.Pod); identity.ShownFrom(of) == "east" && logical.ControllerOf(of) != nil {
						got += " mirror"
					} else {
						got += " pod"
					}
				}
			}
			if got != test.want {
				t.Errorf("writes %q, want %q", got, test.want)
			}
		})
	}
}

func TestAPodThatNobodyLetsGoOfIsTold(t *testing.T) {
	set := plainSet("web", toEast)
	set.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
	live := handProjected(set, nil)
	alone := podOf(live, "web-1", func(p *corev1.Pod) { p.OwnerReferences = nil })
	mirror := mirrorOf(alone, "east")
	mirror.Labels, mirror.OwnerReferences = map[string]string{"app": "web"}, controlledBy(set, "ReplicaSet")
	s := attach(t, newUpstream(t, set, namespace("shop"), mirror), "east", live, alone)
	if err := s.above.Tracker().Add(mirror); err != nil {
		t.Fatal(err)
	}
	for range writer.BrokenTries {
		if err := s.pods.Sync(t.Context(), podName); !errors.Is(err, errNotYet) {
			t.Fatalf("error %v, want %v", err, errNotYet)
		}
		s.pods.Queue.AddRateLimited(podName)
	}
	if err := s.pods.Sync(t.Context(), podName); err != nil {
		t.Fatal(err)
	}
	if got := s.above.Actions(); len(got) != 1 || got[0].GetVerb() != "delete" {
		t.Errorf("writes %v, want a deletion of the mirror", got)
	}
	select {
	case got := <-s.events.Events:
		if !strings.Contains(got, "NotShown") || !strings.Contains(got, "web-1") {
			t.Errorf("event %q, want one that tells of the pod", got)
		}
	default:
		t.Error("no event tells of it")
	}
}

// From when something is marked until it is shown as the user's, whatever the loops see of it is no reason to remove it.
func TestAnOrphanIsLeftAloneUntilItIsShown(t *testing.T) {
	web := orphaning(deployment("web", toEast))
	live := projected(web, 2, 2)
	bare := plainSet("web-abc", toEast)
	mirror := plainSet("web-abc", "")
	mirror.OwnerReferences = controlledBy(web, "Deployment")
	below := func(change ...func(*appsv1.ReplicaSet)) *appsv1.ReplicaSet {
		rs := handProjected(bare, nil)
		rs.Labels[v1alpha1.LabelOrphan] = "true"
		for _, c := range change {
			c(rs)
		}
		return rs
	}
	owned := func(rs *appsv1.ReplicaSet) { rs.OwnerReferences = controlledBy(live, "Deployment") }
	overwritten := func(rs *appsv1.ReplicaSet) { rs.Annotations[v1alpha1.AnnotationName] = "web" }
	pod := podOf(bare, "web-1", marked)
	var none projection.Object
	for name, test := range map[string]struct {
		above, live projection.Object
		want        string // the plan, "" if it is no other than that of any object
		wantMarked  []string
	}{
		"a ReplicaSet whose Deployment is there":           {bare, below(owned), "do nothing: it outlives its owner, which is not gone yet or still has it above", nil},
		"one whose mirror is one yet":                      {mirror, below(), "do nothing: it outlives its owner, which is not gone yet or still has it above", nil},
		"one that carries the marks of its Deployment":     {bare, below(overwritten), "mark it again: the controller of its owner has written over its marks", []string{"web-abc"}},
		"not one that is shown and marked":                 {bare, below(), "", nil},
		"not one that was deleted above":                   {none, below(), "", nil},
		"not one that is a projection like any other":      {bare, handProjected(bare, nil), "", nil},
		"a pod that is not shown":                          {none, pod, "have it shown as the user's own: it outlives its owner, and the logical cluster does not have it as its own yet", nil},
		"a pod that is shown as a mirror":                  {mirrorOf(pod, "east"), pod, "have it shown as the user's own: it outlives its owner, and the logical cluster does not have it as its own yet", nil},
		"not a pod that is shown as one of the user's own": {ownOf(pod, toEast), pod, "", nil},
	} {
		t.Run(name, func(t *testing.T) {
			s := attach(t, newUpstream(t, web, namespace("shop")), "east", live)
			if err := s.client.(*fake.Clientset).Tracker().Add(test.live); err != nil {
				t.Fatal(err)
			}
			kind, _ := projection.KindOf(test.live)
			l := planning.Look{Key: identity.KeyOf(kind, test.live), Kind: kind, Above: test.above, Live: test.live}
			if l.Orphan = s.orphans.Look(kind, test.above, test.live); (l.Orphan == mirrors.NoOrphan) != (test.want == "") {
				t.Fatalf("it is an orphan: %v", l.Orphan)
			}
			if test.want == "" {
				return
			}
			p := s.planner.Plan(l)
			if p.String() != test.want {
				t.Errorf("plans to %s\nwant     %s", p, test.want)
			}
			if err := s.carryOut(t.Context(), l, p); err != nil {
				t.Error(err)
			}
			if got := patched(t, s); !slices.Equal(got, test.wantMarked) {
				t.Errorf("marked %v, want %v", got, test.wantMarked)
			}
		})
	}
}

func TestPodsOfAnOrphanedReplicaSetStayItsOwn(t *testing.T) {
	f := newFamily()
	orphaning(f.above)
	f.replicaSet.Name, f.mirrored.OwnerReferences = f.mirrored.Name, nil
	f.replicaSet.OwnerReferences = nil
	f.replicaSet.Labels = map[string]string{v1alpha1.LabelLogicalCluster: logicalCluster, v1alpha1.LabelOrphan: "true"}
	f.pod.OwnerReferences = controlledBy(f.replicaSet, "ReplicaSet")
	s := attach(t, newUpstream(t, f.above, f.mirrored, namespace("shop"), f.shown("east")), "east", f.replicaSet, f.pod)
	got := s.owners.OfMirror(f.pod)
	if got == nil || len(got.References) != 1 || got.References[0].UID != f.mirrored.UID {
		t.Errorf("the pod belongs to %+v, want the ReplicaSet above", got)
	}
}
