package controller

import (
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
)

// claim is one of class "fast" that was made long ago.
func claim(annotations map[string]string) *corev1.PersistentVolumeClaim {
	return &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "data", UID: "data", Annotations: annotations,
			CreationTimestamp: metav1.NewTime(time.Now().Add(-time.Hour))},
		Spec: corev1.PersistentVolumeClaimSpec{StorageClassName: ptr.To("fast")},
	}
}

func storing(c *v1alpha1.Cluster, classes ...v1alpha1.ClusterStorageClass) *v1alpha1.Cluster {
	c.Status.Classes = &v1alpha1.ClusterClasses{StorageClasses: classes}
	return c
}

// using has the pods of a Deployment use the claim.
func using(d *appsv1.Deployment) *appsv1.Deployment {
	d.Spec.Template.Spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{
		PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"}}}}
	return d
}

func TestAClaimThatNothingUsesIsDecidedAbout(t *testing.T) {
	fast := v1alpha1.ClusterStorageClass{Name: "fast"}
	waiting := v1alpha1.ClusterStorageClass{Name: "fast", WaitForFirstConsumer: true}
	settled := map[string]string{v1alpha1.AnnotationPlacement: `{"east":{"replicas":1}}`}
	fresh := claim(nil)
	fresh.CreationTimestamp = metav1.Now()
	never := claim(nil)
	never.Namespace = "kube-system"
	for name, test := range map[string]struct {
		claim     *corev1.PersistentVolumeClaim
		objects   []runtime.Object
		want      string // the decision that is written, "" for none
		wantEvent string // how the one event begins, "" for none
		wantWait  bool
	}{
		"it goes to a cluster that has its class": {
			claim: claim(nil), objects: []runtime.Object{storing(joined("east", 9)), storing(joined("west", 3), fast)},
			want: `{"west":{"replicas":1}}`, wantEvent: "Normal Placed placed on west, as nothing that is placed uses it",
		},
		"a class that waits for a pod has it wait": {
			claim: claim(nil), objects: []runtime.Object{storing(joined("east", 9), waiting)}, wantWait: true,
			wantEvent: "Normal WaitForFirstConsumer waiting for first consumer to be created before binding",
		},
		"as long as nobody knows the classes it waits": {
			claim: claim(nil), objects: []runtime.Object{joined("east", 9)}, wantWait: true,
		},
		"no cluster has its class": {
			claim: claim(nil), objects: []runtime.Object{storing(joined("east", 9))}, wantWait: true,
			wantEvent: "Warning Unplaced 0/1 clusters can run it: 1 lacks StorageClass fast",
		},
		"what was made this moment may be used in another one": {claim: fresh, objects: []runtime.Object{storing(joined("east", 9), fast)}},
		"what is used follows its workload": {
			claim: claim(nil), objects: []runtime.Object{storing(joined("east", 9), fast), using(deployment("web"))},
		},
		"what has been decided stays": {claim: claim(settled), objects: []runtime.Object{storing(joined("east", 9), fast), storing(joined("west", 99), fast)}},
		"what was decided for a cluster that is gone is decided anew": {
			claim: claim(settled), objects: []runtime.Object{storing(joined("west", 9), fast)},
			want: `{"west":{"replicas":1}}`, wantEvent: "Normal Placed placed on west",
		},
		"what is in a cluster stays": {
			claim:   claim(map[string]string{v1alpha1.AnnotationStatus: `{"east":{}}`}),
			objects: []runtime.Object{storing(joined("west", 9), fast)},
		},
		"what is pinned goes where its pin says": {
			claim:   claim(map[string]string{v1alpha1.AnnotationClusters: "east"}),
			objects: []runtime.Object{storing(joined("west", 9), fast)},
		},
		"a mirror shows what is there": {
			claim:   claim(map[string]string{v1alpha1.AnnotationCluster: "east"}),
			objects: []runtime.Object{storing(joined("west", 9), fast)},
		},
		"one for a volume of the logical cluster says that this stays there": {
			claim: claim(nil), wantEvent: "Warning VolumeStaysAbove it is for PersistentVolume disk of the logical cluster",
			objects: []runtime.Object{storing(joined("east", 9), fast), using(deployment("web")), &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "disk"},
				Spec: corev1.PersistentVolumeSpec{ClaimRef: &corev1.ObjectReference{Namespace: "shop", Name: "data"}}}},
		},
		"a namespace of the system has none": {claim: never, objects: []runtime.Object{storing(joined("west", 9), fast)}},
	} {
		t.Run(name, func(t *testing.T) {
			h := start(t, append(slices.Clone(test.objects), test.claim)...)
			key := cache.MetaObjectToName(test.claim)
			for range 2 { // the second time tells nothing new
				if err := h.unused.sync(h.ctx, key); err != nil {
					t.Fatal(err)
				}
				if test.want != "" {
					break
				}
			}
			patches, got := h.patches(), ""
			if len(patches) > 0 {
				got = patches[0]["metadata"].(map[string]any)["annotations"].(map[string]any)[v1alpha1.AnnotationPlacement].(string)
			}
			if got != test.want || len(patches) > 1 {
				t.Errorf("decision %q by %d patches, want %q", got, len(patches), test.want)
			}
			events := h.events()
			if len(events) > 1 || (len(events) == 1) != (test.wantEvent != "") || len(events) == 1 && !strings.HasPrefix(events[0], test.wantEvent) {
				t.Errorf("events %q, want %q", events, test.wantEvent)
			}
			if h.unused.waiting[key] != test.wantWait {
				t.Errorf("it waits: %t, want %t", h.unused.waiting[key], test.wantWait)
			}
		})
	}
}
