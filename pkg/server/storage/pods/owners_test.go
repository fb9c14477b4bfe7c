package pods

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/util/dryrun"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	api "k8s.io/kubernetes/pkg/apis/core"
	"k8s.io/utils/ptr"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/server/storage/storagetest"
)

// storingChange stands for the stock endpoint of pods, and keeps what it is given to store.
type storingChange struct {
	patchStorage
	pod    *api.Pod
	stored *api.Pod
}

func (s *storingChange) Update(ctx context.Context, _ string, info rest.UpdatedObjectInfo, _ rest.ValidateObjectFunc, _ rest.ValidateObjectUpdateFunc, _ bool, options *metav1.UpdateOptions) (runtime.Object, bool, error) {
	obj, err := info.UpdatedObject(ctx, s.pod)
	if err == nil && !dryrun.IsDryRun(options.DryRun) {
		s.stored = obj.(*api.Pod)
		s.stored.ResourceVersion = "9"
	}
	return obj, false, err
}

func TestOwnersOfAMirroredPodAreChangedWhereTheyAreKnown(t *testing.T) {
	controller := metav1.OwnerReference{APIVersion: "v1", Kind: "ReplicationController", Name: "web", UID: "above", Controller: ptr.To(true)}
	other := metav1.OwnerReference{APIVersion: "v1", Kind: "ReplicationController", Name: "web", UID: "other", Controller: ptr.To(true)}
	second := metav1.OwnerReference{APIVersion: "v1", Kind: "ReplicationController", Name: "stay", UID: "stay"}
	custom := metav1.OwnerReference{APIVersion: "example.com/v1", Kind: "Fleet", Name: "f", UID: "f"}
	type owners = []metav1.OwnerReference
	const hold = `{"apiVersion":"v1","kind":"Namespace","name":"shop","uid":"namespace-below"}`
	for name, test := range map[string]struct {
		who        string // jane by default
		have, want owners
		wantBelow  string // of ownerReferences in the patch, "" for no request
		wantStored owners // nil if nothing is stored
		wantErr    func(error) bool
	}{
		"another owner is known above, and keeps the pod below": {
			have: owners{controller}, want: owners{controller, second}, wantBelow: "[" + hold + "]", wantStored: owners{controller, second},
		},
		"a third one changes nothing below": {
			have: owners{controller, second}, want: owners{controller, second, custom}, wantStored: owners{controller, second, custom},
		},
		"the last one lets go of it": {
			have: owners{controller, second}, want: owners{controller}, wantBelow: `[{"$patch":"delete","uid":"namespace-below"}]`, wantStored: owners{controller},
		},
		"the controller is taken off below, and the mirror follows": {
			have: owners{controller}, want: nil, wantBelow: `[{"$patch":"delete","uid":"below"}]`,
		},
		"by the garbage collector above it is taken off above alone": {
			who: user.APIServerUser, have: owners{controller, second}, want: owners{second}, wantStored: owners{second},
		},
		"a controller is given by its UID below": {
			have: nil, want: owners{controller},
			wantBelow: `[{"apiVersion":"v1","kind":"ReplicationController","name":"web","uid":"below","controller":true}]`,
		},
		"one that the cluster does not have is refused": {have: nil, want: owners{other}, wantErr: apierrors.IsInvalid},
	} {
		t.Run(name, func(t *testing.T) {
			pod := mirror("east")
			pod.OwnerReferences = test.have
			client := fake.NewClientset(
				&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop", UID: "namespace-below"}},
				&corev1.ReplicationController{ObjectMeta: metav1.ObjectMeta{
					Namespace: "shop", Name: "web", UID: "below", Annotations: map[string]string{v1alpha1.AnnotationUID: "above"},
				}},
				&corev1.Pod{ObjectMeta: metav1.ObjectMeta{
					Namespace: "shop", Name: "web-1", UID: pod.UID, OwnerReferences: owners{{Kind: "ReplicationController", UID: "below", Controller: ptr.To(true)}},
				}})
			var patch string
			client.PrependReactor("patch", "pods", func(action clienttesting.Action) (bool, runtime.Object, error) {
				patch = string(action.(clienttesting.PatchAction).GetPatch())
				return true, &corev1.Pod{}, nil
			})
			store := &storingChange{pod: pod}
			r := &podChangeREST{patchStorage: store, same: sameMarks, below: foundIn(pod, storagetest.Connections{"east": storagetest.Cluster(client)})}
			who := test.who
			if who == "" {
				who = "jane"
			}
			ctx, _ := storagetest.As(t, who)
			_, _, err := r.Update(ctx, "web-1", rest.DefaultUpdatedObjectInfo(nil, func(_ context.Context, _, old runtime.Object) (runtime.Object, error) {
				out := old.DeepCopyObject().(*api.Pod)
				out.OwnerReferences = test.want
				return out, nil
			}), nil, nil, false, &metav1.UpdateOptions{})
			if test.wantErr != nil {
				if !test.wantErr(err) {
					t.Errorf("error %v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			want := ""
			if test.wantBelow != "" {
				want = `{"metadata":{"ownerReferences":` + test.wantBelow + `,"uid":"` + string(pod.UID) + `"}}`
			}
			if patch != want {
				t.Errorf("patch below %s, want\n%s", patch, want)
			}
			var stored owners
			if store.stored != nil {
				stored = store.stored.OwnerReferences
			}
			if !equality.Semantic.DeepEqual(stored, test.wantStored) {
				t.Errorf("stored %v, want %v", stored, test.wantStored)
			}
		})
	}
}
