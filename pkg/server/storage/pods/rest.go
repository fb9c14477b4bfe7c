package pods

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/endpoints/request"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/util/dryrun"
	"k8s.io/client-go/util/workqueue"
	api "k8s.io/kubernetes/pkg/apis/core"
	podstore "k8s.io/kubernetes/pkg/registry/core/pod/storage"
	"k8s.io/utils/ptr"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/server/identity"
	"github.com/manifold-dev/manifold/pkg/server/storage/await"
	"github.com/manifold-dev/manifold/pkg/server/storage/below"
	"github.com/manifold-dev/manifold/pkg/server/storage/builtin"
	"github.com/manifold-dev/manifold/pkg/server/storage/metadata"
)

// podREST deletes mirrored pods where they run, and changes their labels and annotations there. Their mirrors follow when the cluster
// reports it.
type podREST struct {
	*podstore.REST
	connections below.Connections
	metadata    *podChangeREST
}

// Stock returns the store behind.
func (r *podREST) Stock() *genericregistry.Store { return r.REST.Store }

// Update implements rest.Updater.
func (r *podREST) Update(ctx context.Context, name string, info rest.UpdatedObjectInfo, create rest.ValidateObjectFunc, update rest.ValidateObjectUpdateFunc, force bool, options *metav1.UpdateOptions) (runtime.Object, bool, error) {
	if !identity.WritesMirrors(ctx) {
		found, err := r.REST.Get(ctx, name, &metav1.GetOptions{})
		if err == nil && mirrored(found.(*api.Pod)) {
			return r.metadata.Update(ctx, name, info, create, update, force, options)
		}
	}
	return r.REST.Update(ctx, name, info, create, update, force, options)
}

// Create implements rest.Creater. What proves to admission how a mirror has come to differ from its template is not stored with it.
func (r *podREST) Create(ctx context.Context, obj runtime.Object, validate rest.ValidateObjectFunc, options *metav1.CreateOptions) (runtime.Object, error) {
	pod, isPod := obj.(*api.Pod)
	if _, ok := identity.BySyncer(ctx); !ok || !isPod || validate == nil {
		return r.REST.Create(ctx, obj, validate, options)
	}
	proof, ok := pod.Annotations[v1alpha1.AnnotationAdmitted]
	if !ok {
		return r.REST.Create(ctx, obj, validate, options)
	}
	metadata.SetAnnotation(pod, v1alpha1.AnnotationAdmitted, "")
	return r.REST.Create(ctx, pod, func(ctx context.Context, obj runtime.Object) error {
		proven := obj.DeepCopyObject().(*api.Pod)
		metadata.SetAnnotation(proven, v1alpha1.AnnotationAdmitted, proof)
		return validate(ctx, proven)
	}, options)
}

func (r *podREST) Delete(ctx context.Context, name string, validate rest.ValidateObjectFunc, options *metav1.DeleteOptions) (runtime.Object, bool, error) {
	if _, ok := identity.BySyncer(ctx); ok || identity.ByController(ctx) {
		if options != nil && ptr.Deref(options.GracePeriodSeconds, 1) == 0 {
			if err := r.letLoose(ctx, name, options.Preconditions); err != nil {
				return nil, false, err
			}
		}
		return r.REST.Delete(ctx, name, validate, options)
	}
	obj, err := r.REST.Get(ctx, name, &metav1.GetOptions{})
	if err != nil {
		return nil, false, err
	}
	pod := obj.(*api.Pod)
	if !mirrored(pod) {
		return r.REST.Delete(ctx, name, validate, options)
	}
	if options == nil {
		options = &metav1.DeleteOptions{}
	}
	if err := checkPreconditions(pod, options.Preconditions); err != nil {
		return nil, false, err
	}
	if validate != nil {
		if err := validate(ctx, pod.DeepCopy()); err != nil {
			return nil, false, err
		}
	}
	if dryrun.IsDryRun(options.DryRun) {
		return pod, true, nil
	}
	return r.deleteBelow(ctx, pod, options)
}

func (r *podREST) deleteBelow(ctx context.Context, pod *api.Pod, options *metav1.DeleteOptions) (runtime.Object, bool, error) {
	cluster := clusterOf(pod)
	connection, err := r.connections.Connection(cluster)
	if err != nil {
		return nil, false, apierrors.NewServiceUnavailable(fmt.Sprintf("delete pod %s/%s in cluster %q: %v", pod.Namespace, pod.Name, cluster, err))
	}
	ctx, cancel := context.WithTimeout(ctx, below.Timeout)
	defer cancel()
	// The UID is the same below; a resource version means nothing there and was compared above.
	err = connection.Client.CoreV1().Pods(pod.Namespace).Delete(ctx, pod.Name, metav1.DeleteOptions{
		GracePeriodSeconds: options.GracePeriodSeconds,
		Preconditions:      metav1.NewUIDPreconditions(string(pod.UID)),
		PropagationPolicy:  options.PropagationPolicy,
	})
	switch {
	case apierrors.IsNotFound(err) || apierrors.IsConflict(err):
		// Gone below, or replaced by another pod of that name: only the mirror is left, which was admitted for deletion above.
		own := metav1.NewUIDPreconditions(string(pod.UID))
		if err := r.letLoose(ctx, pod.Name, own); err != nil {
			return nil, false, err
		}
		return r.REST.Delete(ctx, pod.Name, rest.ValidateAllObjectFunc, &metav1.DeleteOptions{GracePeriodSeconds: ptr.To[int64](0), Preconditions: own})
	case err != nil:
		return nil, false, fromCluster(err, pod)
	}
	switch {
	case identity.FromWithin(ctx):
		return pod, false, nil
	case endsGracefully(pod, options):
		return r.tellDeletion(ctx, pod, options)
	}
	told, gone := awaitTold(ctx, r.REST, pod, await.DeletionPatience)
	return told, gone, nil
}

// letLoose takes the finalizers off the mirror of a pod that is gone: they held the pod.
func (r *podREST) letLoose(ctx context.Context, name string, preconditions *metav1.Preconditions) error {
	obj, err := r.REST.Get(ctx, name, &metav1.GetOptions{})
	if err != nil {
		return err
	}
	if pod := obj.(*api.Pod); !mirrored(pod) || len(pod.Finalizers) == 0 {
		return nil
	}
	info := rest.DefaultUpdatedObjectInfo(nil, func(_ context.Context, _, old runtime.Object) (runtime.Object, error) {
		pod := old.DeepCopyObject().(*api.Pod)
		if err := checkPreconditions(pod, preconditions); err != nil {
			return nil, err
		}
		pod.Finalizers = nil
		return pod, nil
	})
	_, _, err = r.REST.Update(ctx, name, info, nil, rest.ValidateAllObjectUpdateFunc, false, &metav1.UpdateOptions{})
	return err
}

// endsGracefully reports whether a pod that is deleted goes on running for a while, as the stock strategy decides it.
func endsGracefully(pod *api.Pod, options *metav1.DeleteOptions) bool {
	grace := ptr.Deref(options.GracePeriodSeconds, ptr.Deref(pod.Spec.TerminationGracePeriodSeconds, 0))
	return grace > 0 && pod.Spec.NodeName != "" && pod.Status.Phase != api.PodSucceeded && pod.Status.Phase != api.PodFailed
}

// tellDeletion has the mirror of a pod that ends in its cluster say so at once, as any pod does by the answer to its deletion. Its end is an
// event that follows: who listens for it only once the deletion is answered, as some operators do, must not have missed it.
func (r *podREST) tellDeletion(ctx context.Context, pod *api.Pod, options *metav1.DeleteOptions) (runtime.Object, bool, error) {
	obj, gone, err := r.REST.Delete(ctx, pod.Name, rest.ValidateAllObjectFunc, &metav1.DeleteOptions{
		GracePeriodSeconds: options.GracePeriodSeconds, Preconditions: metav1.NewUIDPreconditions(string(pod.UID))})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return pod, true, nil // the cluster was faster
	}
	return obj, gone, err
}

// awaitTold waits until the mirror of a pod that was deleted below tells so, and returns it as it is then, or as it was if that takes too
// long. Who has deleted a pod must not find it running.
func awaitTold(ctx context.Context, from rest.Watcher, pod *api.Pod, patience time.Duration) (told *api.Pod, gone bool) {
	told = pod
	await.Event(ctx, from, await.Only(pod), patience, func(event watch.Event, obj metav1.Object) bool {
		if changed, ok := obj.(*api.Pod); ok && changed.UID == pod.UID {
			told, gone = changed, event.Type == watch.Deleted
		}
		return gone || told.DeletionTimestamp != nil
	})
	return told, gone
}

// podsPatience is how long the controller of namespaces waits for one more pod to go, as it does for workloads.
const podsPatience = 5 * time.Second

// DeleteCollection deletes as Delete does, pod by pod: the store's own would pass by the clusters. The controller of namespaces waits until
// the mirrors are gone, as long as some go: it leaves everything else in a namespace until there are no pods.
func (r *podREST) DeleteCollection(ctx context.Context, validate rest.ValidateObjectFunc, options *metav1.DeleteOptions, listOptions *metainternalversion.ListOptions) (runtime.Object, error) {
	list, err := r.REST.List(ctx, listOptions)
	if err != nil {
		return nil, err
	}
	pods := list.(*api.PodList)
	errs := make([]error, len(pods.Items))
	workqueue.ParallelizeUntil(ctx, builtin.MaxDeleteWorkers, len(pods.Items), func(i int) {
		pod := &pods.Items[i]
		own := options.DeepCopy()
		_, _, err := r.Delete(request.WithNamespace(ctx, pod.Namespace), pod.Name, validate, own)
		if err != nil && !apierrors.IsNotFound(err) {
			errs[i] = err
		}
	})
	for _, err := range errs {
		if err != nil {
			return nil, err
		}
	}
	if identity.FromWithin(ctx) && !identity.WritesMirrors(ctx) && !dryrun.IsDryRun(options.DryRun) {
		await.Collection(ctx, r.REST, listOptions, podsPatience, func(pod metav1.Object) bool { return len(pod.GetFinalizers()) == 0 })
	}
	return pods, ctx.Err()
}

func checkPreconditions(pod *api.Pod, p *metav1.Preconditions) error {
	if p == nil {
		return nil
	}
	conflict := func(what, want, have string) error {
		return apierrors.NewConflict(api.Resource("pods"), pod.Name, fmt.Errorf("precondition: the %s is %s, not %s", what, have, want))
	}
	if p.UID != nil && *p.UID != pod.UID {
		return conflict("UID", string(*p.UID), string(pod.UID))
	}
	if p.ResourceVersion != nil && *p.ResourceVersion != pod.ResourceVersion {
		return conflict("resource version", *p.ResourceVersion, pod.ResourceVersion)
	}
	return nil
}

// fromCluster passes a cluster's answer on as it came; what is not an answer tells which cluster did not give one.
func fromCluster(err error, pod *api.Pod) error {
	if apierrors.ReasonForError(err) != metav1.StatusReasonUnknown {
		return err
	}
	return apierrors.NewServiceUnavailable(fmt.Sprintf("pod %s/%s runs in cluster %q, which does not answer: %v", pod.Namespace, pod.Name, clusterOf(pod), err))
}
