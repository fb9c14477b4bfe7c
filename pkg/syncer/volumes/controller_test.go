package volumes

import (
	"context"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	storage "k8s.io/component-helpers/storage/volume"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	manifoldfake "github.com/manifold-dev/manifold/generated/clientset/versioned/fake"
	"github.com/manifold-dev/manifold/generated/informers/externalversions"
	"github.com/manifold-dev/manifold/pkg/summary"
	"github.com/manifold-dev/manifold/pkg/syncer"
)

// harness is a Controller over caches that hold what it is given; its client writes to an API that has the same.
type harness struct {
	*Controller
	t      *testing.T
	client *fake.Clientset
}

func newHarness(t *testing.T, objects ...runtime.Object) harness {
	t.Helper()
	east := &v1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "east"}}
	east.Spec.Allows.Volumes = true
	client, manifold := fake.NewClientset(objects...), manifoldfake.NewClientset(east)
	kube, own := informers.NewSharedInformerFactory(client, 0), externalversions.NewSharedInformerFactory(manifold, 0)
	upstream, err := syncer.NewUpstream(kube, syncer.UpstreamOptions{})
	if err != nil {
		t.Fatal(err)
	}
	c, err := New(Options{Upstream: upstream, Kube: kube, Manifold: own, Client: client, Recorder: record.NewFakeRecorder(10)})
	if err != nil {
		t.Fatal(err)
	}
	kube.Start(t.Context().Done())
	own.Start(t.Context().Done())
	if !cache.WaitForCacheSync(t.Context().Done(), c.synced...) {
		t.Fatal("the caches are empty")
	}
	return harness{c, t, client}
}

func (h harness) volume(name string) *corev1.PersistentVolume {
	h.t.Helper()
	v, err := h.client.CoreV1().PersistentVolumes().Get(h.t.Context(), name, metav1.GetOptions{})
	if err != nil {
		h.t.Fatal(err)
	}
	return v
}

func (h harness) gets(claim, volume string, uid types.UID) {
	h.t.Helper()
	if err := h.choose(h.t.Context(), cache.ObjectName{Namespace: "shop", Name: claim}); err != nil {
		h.t.Fatal(err)
	}
	if ref := h.volume(volume).Spec.ClaimRef; uid == "" && ref != nil || uid != "" && (ref == nil || ref.UID != uid || ref.Name != claim || ref.Kind != "PersistentVolumeClaim") {
		h.t.Errorf("%s is for %+v, want %s of UID %q", volume, ref, claim, uid)
	}
}

// catchUp waits until the caches show what was written of a volume.
func (h harness) catchUp(name string) {
	h.t.Helper()
	want := h.volume(name)
	if !cache.WaitFor(h.t.Context(), "", shown{h, want}) {
		h.t.Fatal("the watch does not show it")
	}
}

// shown is done once a watch has caught up with a volume.
type shown struct {
	harness
	want *corev1.PersistentVolume
}

func (s shown) Name() string { return "volume" }

func (s shown) Done() <-chan struct{} {
	out := make(chan struct{})
	go func() {
		defer close(out)
		_ = wait.PollUntilContextCancel(s.t.Context(), time.Millisecond, true, func(context.Context) (bool, error) {
			have, err := s.volumes.Get(s.want.Name)
			return err == nil && have.ResourceVersion == s.want.ResourceVersion && sameSpec(have, s.want), nil
		}) // The test has ended otherwise.
	}()
	return out
}

func sameSpec(a, b *corev1.PersistentVolume) bool {
	return (a.Spec.ClaimRef == nil) == (b.Spec.ClaimRef == nil) && a.Status.Phase == b.Status.Phase &&
		a.Annotations[v1alpha1.AnnotationStatus] == b.Annotations[v1alpha1.AnnotationStatus]
}

func disk(name string) *corev1.PersistentVolume {
	v := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("uid-of-" + name), ResourceVersion: "1"}}
	v.Spec.StorageClassName = "manual"
	v.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
	v.Spec.Capacity = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}
	v.Status.Phase = corev1.VolumeAvailable
	return v
}

func wish(name string) *corev1.PersistentVolumeClaim {
	c := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: types.UID("uid-of-" + name)}}
	c.Spec = wishSpec("manual")
	return c
}

func wishSpec(class string) (out corev1.PersistentVolumeClaimSpec) {
	out.StorageClassName = &class
	out.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
	out.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}
	return out
}

func TestNoTwoClaimsGetOneVolume(t *testing.T) {
	h := newHarness(t, disk("a"), wish("first"), wish("second"))
	h.gets("first", "a", "uid-of-first")
	if h.volume("a").Annotations[storage.AnnBoundByController] == "" {
		t.Error("it does not say that it was chosen")
	}
	h.catchUp("a")
	if err := h.choose(t.Context(), cache.ObjectName{Namespace: "shop", Name: "second"}); err != nil {
		t.Fatal(err)
	}
	h.gets("first", "a", "uid-of-first")
}

func TestNoClaimGetsTwoVolumes(t *testing.T) {
	h := newHarness(t, disk("b"), wish("data"))
	h.chosen["uid-of-data"] = "b" // the watch does not show it yet, and a smaller one has come
	small := disk("a")
	if _, err := h.client.CoreV1().PersistentVolumes().Create(t.Context(), small, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	h.catchUp("a")
	h.gets("data", "a", "")
}

func TestOfAMirrorOnlyWhatItsSetAsksForCounts(t *testing.T) {
	mirror := func(name string) *corev1.PersistentVolumeClaim {
		out := wish(name)
		out.Annotations = map[string]string{v1alpha1.AnnotationCluster: "east"}
		out.Spec.VolumeName = "of-the-bank" // says the cluster
		return out
	}
	set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "db"}}
	set.Spec.VolumeClaimTemplates = []corev1.PersistentVolumeClaim{{ObjectMeta: metav1.ObjectMeta{Name: "data"}, Spec: wishSpec("manual")}}
	h := newHarness(t, disk("a"), disk("of-the-bank"), mirror("data-db-0"), mirror("data-none-0"), set)
	h.gets("data-none-0", "of-the-bank", "")
	h.gets("data-db-0", "a", "uid-of-data-db-0")
	h.gets("data-db-0", "of-the-bank", "")
}

func TestAVolumeShowsWhatBecameOfIt(t *testing.T) {
	free, kept, gone, unknown, other := disk("free"), disk("kept"), disk("gone"), disk("unknown"), disk("other")
	free.Status.Phase = corev1.VolumePending
	for _, v := range []*corev1.PersistentVolume{kept, gone, unknown} {
		v.Spec.ClaimRef = &corev1.ObjectReference{Namespace: "shop", Name: "old", UID: "old"}
		v.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimDelete
		v.Status.Phase = corev1.VolumeReleased
	}
	kept.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimRetain
	kept.Status.Phase = corev1.VolumeBound
	// The cluster that had it is not among those any more that may have volumes.
	released := summary.VolumeHolders{"west": {Phase: corev1.VolumeReleased}}.String()
	kept.Annotations, gone.Annotations = map[string]string{v1alpha1.AnnotationStatus: released}, map[string]string{v1alpha1.AnnotationStatus: released}
	unknown.Annotations = map[string]string{v1alpha1.AnnotationStatus: summary.VolumeHolders{"west": {Phase: corev1.VolumeBound}}.String()}
	bound := wish("data")
	bound.Status.Phase, bound.Spec.VolumeName = corev1.ClaimBound, "of-the-cluster"
	other.Spec.ClaimRef = &corev1.ObjectReference{Namespace: "shop", Name: "data", UID: bound.UID}
	other.Annotations = map[string]string{storage.AnnBoundByController: "yes"}
	h := newHarness(t, free, kept, gone, unknown, other, bound)
	for _, name := range []string{"free", "kept", "kept", "gone", "gone", "unknown", "unknown", "other"} {
		if err := h.sync(t.Context(), name); err != nil {
			t.Fatal(err)
		}
		h.catchUp(name)
	}
	if v := h.volume("free"); v.Status.Phase != corev1.VolumeAvailable {
		t.Errorf("one that is for nobody is %s", v.Status.Phase)
	}
	if v := h.volume("kept"); v.Status.Phase != corev1.VolumeReleased || v.Annotations[v1alpha1.AnnotationStatus] != "" {
		t.Errorf("one whose claim is gone is %s, noted %q", v.Status.Phase, v.Annotations)
	}
	if v := h.volume("gone"); v.Status.Phase != corev1.VolumeReleased || v.Annotations[v1alpha1.AnnotationStatus] != "" {
		t.Errorf("one whose cluster has gone before it made away with it is %s, noted %q", v.Status.Phase, v.Annotations)
	}
	if v := h.volume("unknown"); v.Status.Phase != corev1.VolumeReleased {
		t.Errorf("one of which nobody knows what became is %s", v.Status.Phase)
	}
	if v := h.volume("other"); v.Spec.ClaimRef != nil || v.Annotations[storage.AnnBoundByController] != "" {
		t.Errorf("one that was chosen in vain is for %+v", v.Spec.ClaimRef)
	}
}
