package pods

import (
	"context"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	api "k8s.io/kubernetes/pkg/apis/core"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/server/storage/await"
	"github.com/manifold-dev/manifold/pkg/server/storage/storagetest"
)

// gating is an update that leaves a pod these gates alone.
func gating(gates ...api.PodSchedulingGate) rest.UpdatedObjectInfo {
	return rest.DefaultUpdatedObjectInfo(nil, func(_ context.Context, _, old runtime.Object) (runtime.Object, error) {
		out := old.DeepCopyObject()
		out.(*api.Pod).Spec.SchedulingGates = gates
		return out, nil
	})
}

func TestAGateOfAMirrorIsTakenOffItsPod(t *testing.T) {
	queue, quota := api.PodSchedulingGate{Name: "x/queue"}, api.PodSchedulingGate{Name: "x/quota"}
	for name, test := range map[string]struct {
		left    []api.PodSchedulingGate
		want    []corev1.PodSchedulingGate // of the pod in its cluster
		refused bool
	}{
		"one of two":      {left: []api.PodSchedulingGate{quota}, want: []corev1.PodSchedulingGate{{Name: "x/quota"}}},
		"all":             {},
		"but none is new": {left: []api.PodSchedulingGate{queue, quota, {Name: "x/new"}}, want: []corev1.PodSchedulingGate{{Name: "x/queue"}, {Name: "x/quota"}}, refused: true},
	} {
		t.Run(name, func(t *testing.T) {
			pods, made := cachedPods(t)
			waits := made.DeepCopy()
			waits.Name, waits.ResourceVersion, waits.UID = "web-2", "", ""
			waits.Annotations[v1alpha1.AnnotationUID] = "uid-of-web-2"
			waits.Spec.NodeName, waits.Spec.SchedulingGates, waits.Status = "", []api.PodSchedulingGate{queue, quota}, api.PodStatus{Phase: api.PodPending}
			if _, err := pods.Create(storagetest.By(t, storagetest.EastSyncer), waits, rest.ValidateAllObjectFunc, &metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
			live := storagetest.LiveOf("web-2")
			live.UID, live.Spec.SchedulingGates = "uid-of-web-2", []corev1.PodSchedulingGate{{Name: "x/queue"}, {Name: "x/quota"}}
			client := fake.NewClientset(live)
			client.PrependReactor("patch", "pods", func(clienttesting.Action) (bool, runtime.Object, error) {
				// The syncer tells of it a moment later.
				_, _, err := pods.Update(storagetest.By(t, storagetest.EastSyncer), "web-2", gating(test.left...), rest.ValidateAllObjectFunc, rest.ValidateAllObjectUpdateFunc, false, &metav1.UpdateOptions{})
				return err != nil, nil, err
			})
			r := &podChangeREST{patchStorage: pods, same: sameMarks, pods: pods.Store, below: podsBelow{
				get: pods.Store.Get, identity: storagetest.Known, connections: storagetest.Connections{"east": storagetest.Cluster(client)},
			}}
			ctx, cancel := context.WithTimeout(storagetest.Updating(t, "pods"), await.MirrorTimeout-time.Second)
			defer cancel()
			shown, _, err := r.Update(ctx, "web-2", gating(test.left...), nil, rest.ValidateAllObjectUpdateFunc, false, &metav1.UpdateOptions{})
			if apierrors.IsInvalid(err) != test.refused || err != nil && !test.refused || ctx.Err() != nil {
				t.Fatalf("Update() = %v after %v, refused: %t", err, ctx.Err(), test.refused)
			}
			if !test.refused && !slices.Equal(shown.(*api.Pod).Spec.SchedulingGates, test.left) {
				t.Errorf("it is shown with %v, want %v", shown.(*api.Pod).Spec.SchedulingGates, test.left)
			}
			got, err := client.CoreV1().Pods("shop").Get(t.Context(), "web-2", metav1.GetOptions{})
			if err != nil || !slices.Equal(got.Spec.SchedulingGates, test.want) || len(got.Spec.Containers) != len(live.Spec.Containers) {
				t.Errorf("its cluster has it with %v (%v), want %v", got.Spec.SchedulingGates, err, test.want)
			}
		})
	}
}
