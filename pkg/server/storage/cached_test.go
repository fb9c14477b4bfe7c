package storage

import (
	"context"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/generic"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	api "k8s.io/kubernetes/pkg/apis/core"
	claimstore "k8s.io/kubernetes/pkg/registry/core/persistentvolumeclaim/storage"
	podstore "k8s.io/kubernetes/pkg/registry/core/pod/storage"
	"k8s.io/kubernetes/pkg/registry/registrytest"
	"k8s.io/utils/ptr"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
)

// The tests of this file stand on etcd and a real watch cache, which hands out its objects in wrappers.

// cachedOptions returns options of a store with a watch cache, over an etcd of its own.
func cachedOptions(t *testing.T, resource string) generic.RESTOptions {
	t.Helper()
	config, server := registrytest.NewEtcdStorage(t, "")
	config.EventsHistoryWindow = storagebackend.DefaultEventsHistoryWindow
	t.Cleanup(func() { server.Terminate(t) })
	return generic.RESTOptions{
		StorageConfig: config, Decorator: genericregistry.StorageWithCacher(), DeleteCollectionWorkers: 1, ResourcePrefix: resource,
	}
}

// awaitCache waits until the watch cache of a store answers: before, watches are refused.
func awaitCache(t *testing.T, store *genericregistry.Store) {
	t.Helper()
	if err := wait.PollUntilContextTimeout(t.Context(), 10*time.Millisecond, time.Minute, true, func(context.Context) (bool, error) {
		return store.ReadinessCheck() == nil, nil
	}); err != nil {
		t.Fatal(err)
	}
}

// cachedPods returns a store of pods that has the mirror of a running pod in cluster "east".
func cachedPods(t *testing.T) (*podstore.REST, *api.Pod) {
	t.Helper()
	storage, err := podstore.NewStorage(cachedOptions(t, "pods"), nil, nil, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(storage.Pod.Destroy)
	awaitCache(t, storage.Pod.Store)
	if err := wrapStrategies(storage.Pod.Store, func(s stockStrategy) stockStrategy { return podStrategy{s} }); err != nil {
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
	made, err := storage.Pod.Create(by(t, eastSyncer), pod, rest.ValidateAllObjectFunc, &metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return storage.Pod, made.(*api.Pod)
}

// by returns the context of a user's request in namespace "shop".
func by(t *testing.T, user string) context.Context {
	t.Helper()
	ctx, _ := as(t, user)
	return request.WithNamespace(ctx, "shop")
}

// deletedBelow returns a connection to a cluster that does something above, as its syncer would, while it answers the deletion.
func deletedBelow(resource string, then func() error) connections {
	client := fake.NewClientset()
	client.PrependReactor("delete", resource, func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, then() })
	return connections{"east": cluster(client)}
}

func TestADeletionOfAMirroredPodIsAnsweredAsOnOneCluster(t *testing.T) {
	// Longer than any answer may take, and shorter than what waits for an event that it does not understand.
	const deadline = deletionPatience - time.Second
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
			r := &podREST{REST: pods, connections: deletedBelow("pods", func() error {
				if !tt.faster {
					return nil
				}
				return remove(by(t, eastSyncer), pods, pod.UID)
			})}
			ctx, cancel := context.WithTimeout(by(t, "jane"), deadline)
			defer cancel()
			obj, gone, err := r.Delete(ctx, "web-1", rest.ValidateAllObjectFunc, &metav1.DeleteOptions{GracePeriodSeconds: tt.grace})
			if err != nil || ctx.Err() != nil {
				t.Fatalf("Delete() = %v after %v, want an answer", err, ctx.Err())
			}
			if !gone && obj.(*api.Pod).DeletionTimestamp == nil {
				t.Error("Delete() = a pod that is not deleted, want one that is gone or has a time of deletion")
			}
			if _, err := pods.Get(by(t, "jane"), "web-1", &metav1.GetOptions{}); (err != nil) != tt.faster {
				t.Errorf("the mirror afterwards: %v, want gone: %t", err, tt.faster)
			}
		})
	}
}

func TestAnEventOfTheWatchCacheIsUnderstood(t *testing.T) {
	pods, pod := cachedPods(t)
	if _, _, err := pods.Delete(by(t, eastSyncer), "web-1", rest.ValidateAllObjectFunc, &metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	told, gone := awaitTold(by(t, "jane"), pods, pod, time.Minute)
	if told.DeletionTimestamp == nil || gone {
		t.Errorf("awaitTold() = deleted at %v, gone: %t, want a time", told.DeletionTimestamp, gone)
	}
	r := &podChangeREST{same: sameMetadata, pods: pods.Store}
	want := pod.DeepCopy()
	if got := r.awaitMirror(by(t, "jane"), want, want); got.DeletionTimestamp == nil {
		t.Error("awaitMirror() returned what it was asked for, want the mirror that the watch cache shows")
	}
}

func TestADeletionOfAMirroredClaimIsAnsweredOnceItIsShown(t *testing.T) {
	claims, _, err := claimstore.NewREST(cachedOptions(t, "persistentvolumeclaims"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(claims.Destroy)
	awaitCache(t, claims.Store)
	if err := wrapStrategies(claims.Store, func(s stockStrategy) stockStrategy { return claimStrategy{s} }); err != nil {
		t.Fatal(err)
	}
	claim := claimIn("east")
	claim.ResourceVersion, claim.UID = "", ""
	claim.Annotations[v1alpha1.AnnotationUID] = "uid-below"
	if _, err := claims.Create(by(t, eastSyncer), claim, rest.ValidateAllObjectFunc, &metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	r := &claimREST{REST: claims, connections: deletedBelow("persistentvolumeclaims", func() error {
		_, _, err := claims.Delete(by(t, eastSyncer), claim.Name, rest.ValidateAllObjectFunc, &metav1.DeleteOptions{})
		return err
	})}
	ctx, cancel := context.WithTimeout(by(t, "jane"), deletionPatience-time.Second)
	defer cancel()
	obj, gone, err := r.Delete(ctx, claim.Name, rest.ValidateAllObjectFunc, &metav1.DeleteOptions{})
	if err != nil || ctx.Err() != nil {
		t.Fatalf("Delete() = %v after %v, want an answer", err, ctx.Err())
	}
	if told := obj.(*api.PersistentVolumeClaim); !gone && told.DeletionTimestamp == nil {
		t.Error("Delete() = a claim that is not deleted, want one that is gone or has a time of deletion")
	}
}
