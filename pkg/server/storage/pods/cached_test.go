package pods

import (
	"context"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/registry/rest"
	api "k8s.io/kubernetes/pkg/apis/core"
	podstore "k8s.io/kubernetes/pkg/registry/core/pod/storage"
	"k8s.io/utils/ptr"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/server/storage/await"
	"github.com/manifold-dev/manifold/pkg/server/storage/builtin"
	"github.com/manifold-dev/manifold/pkg/server/storage/storagetest"
)

// The tests of this file stand on etcd and a real watch cache, which hands out its objects in wrappers.

// cachedPods returns a store of pods that has the mirror of a running pod in cluster "east".
func cachedPods(t *testing.T) (*podstore.REST, *api.Pod) {
	t.Helper()
	storage, err := podstore.NewStorage(storagetest.CachedOptions(t, "pods"), nil, nil, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(storage.Pod.Destroy)
	storagetest.AwaitCache(t, storage.Pod.Store)
	if err := builtin.WrapStrategies(storage.Pod.Store, func(s builtin.Strategy) builtin.Strategy { return podStrategy{s} }); err != nil {
		t.Fatal(err)
	}
	pod := mirror("east")
	pod.ResourceVersion, pod.UID = "", ""
	pod.Annotations[v1alpha1.AnnotationUID] = "uid-below"
	pod.Annotations[v1alpha1.AnnotationGeneration] = "1"
	pod.Spec.TerminationGracePeriodSeconds = ptr.To[int64](30)
	pod.Spec.RestartPolicy, pod.Spec.DNSPolicy = api.RestartPolicyAlways, api.DNSClusterFirst
	pod.Spec.Containers[0].ImagePullPolicy = api.PullAlways
	pod.Spec.Containers[0].TerminationMessagePolicy = api.TerminationMessageReadFile
	made, err := storage.Pod.Create(storagetest.By(t, storagetest.EastSyncer), pod, rest.ValidateAllObjectFunc, &metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return storage.Pod, made.(*api.Pod)
}

func TestADeletionOfAMirroredPodIsAnsweredAsOnOneCluster(t *testing.T) {
	// Longer than any answer may take, and shorter than what waits for an event that it does not understand.
	const deadline = await.DeletionPatience - time.Second
	remove := func(ctx context.Context, pods *podstore.REST, uid types.UID) error {
		_, _, err := pods.Delete(ctx, "web-1", rest.ValidateAllObjectFunc, &metav1.DeleteOptions{
			GracePeriodSeconds: ptr.To[int64](0), Preconditions: metav1.NewUIDPreconditions(string(uid))})
		return err
	}
	tests := map[string]struct {
		grace *int64
		// faster is that the mirror is gone before the deletion is answered.
		faster bool
	}{
		"a pod that ends by and by is shown so by the answer": {},
		"so is one whose cluster ends it in no time":          {faster: true},
		"one that is killed is gone with the answer":          {grace: ptr.To[int64](0), faster: true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			pods, pod := cachedPods(t)
			r := &podREST{REST: pods, connections: storagetest.DeletedBelow("pods", func() error {
				if !tt.faster {
					return nil
				}
				return remove(storagetest.By(t, storagetest.EastSyncer), pods, pod.UID)
			})}
			ctx, cancel := context.WithTimeout(storagetest.By(t, "jane"), deadline)
			defer cancel()
			obj, gone, err := r.Delete(ctx, "web-1", rest.ValidateAllObjectFunc, &metav1.DeleteOptions{GracePeriodSeconds: tt.grace})
			if err != nil || ctx.Err() != nil {
				t.Fatalf("Delete() = %v after %v, want an answer", err, ctx.Err())
			}
			if !gone && obj.(*api.Pod).DeletionTimestamp == nil {
				t.Error("Delete() = a pod that is not deleted, want one that is gone or has a time of deletion")
			}
			if _, err := pods.Get(storagetest.By(t, "jane"), "web-1", &metav1.GetOptions{}); (err != nil) != tt.faster {
				t.Errorf("the mirror afterwards: %v, want gone: %t", err, tt.faster)
			}
		})
	}
}

func TestAnEventOfTheWatchCacheIsUnderstood(t *testing.T) {
	pods, pod := cachedPods(t)
	if _, _, err := pods.Delete(storagetest.By(t, storagetest.EastSyncer), "web-1", rest.ValidateAllObjectFunc, &metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	told, gone := awaitTold(storagetest.By(t, "jane"), pods, pod, time.Minute)
	if told.DeletionTimestamp == nil || gone {
		t.Errorf("awaitTold() = deleted at %v, gone: %t, want a time", told.DeletionTimestamp, gone)
	}
	r := &podChangeREST{same: sameMarks, pods: pods.Store}
	want := pod.DeepCopy()
	if got := r.awaitMirror(storagetest.By(t, "jane"), want, want); got.DeletionTimestamp == nil {
		t.Error("awaitMirror() returned what it was asked for, want the mirror that the watch cache shows")
	}
}
