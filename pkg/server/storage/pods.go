package storage

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/operation"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/util/dryrun"
	"k8s.io/client-go/util/workqueue"
	api "k8s.io/kubernetes/pkg/apis/core"
	podstore "k8s.io/kubernetes/pkg/registry/core/pod/storage"
	"k8s.io/utils/ptr"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/placement"
	"github.com/manifold-dev/manifold/pkg/projection"
)

// podStrategy takes mirrored pods as their cluster's syncer reports them: metadata, spec and status in one write, with the UID and the
// age that the pod has below, so that both ends speak of the same pod.
type podStrategy struct {
	stockStrategy
}

func (s podStrategy) PrepareForCreate(ctx context.Context, obj runtime.Object) {
	if _, ok := bySyncer(ctx); !ok {
		s.stockStrategy.PrepareForCreate(ctx, obj)
		return
	}
	pod := obj.(*api.Pod)
	pod.UID = types.UID(pod.Annotations[v1alpha1.AnnotationUID])
	if created, err := time.Parse(time.RFC3339, pod.Annotations[v1alpha1.AnnotationCreated]); err == nil {
		pod.CreationTimestamp = metav1.NewTime(created)
	}
	takeReported(pod)
}

func (s podStrategy) PrepareForUpdate(ctx context.Context, obj, old runtime.Object) {
	if _, ok := bySyncer(ctx); !ok {
		s.stockStrategy.PrepareForUpdate(ctx, obj, old)
		return
	}
	pod, before := obj.(*api.Pod), old.(*api.Pod)
	if mirrored(before) {
		keepManagers(pod, before)
	}
	takeReported(pod)
}

// takeReported moves what a syncer reports in annotations to where it belongs. The generation of a mirror is that of the pod below; that of
// another pod is counted above.
func takeReported(pod *api.Pod) {
	if generation, err := strconv.ParseInt(pod.Annotations[v1alpha1.AnnotationGeneration], 10, 64); err == nil {
		pod.Generation = generation
	}
	for _, key := range []string{v1alpha1.AnnotationUID, v1alpha1.AnnotationCreated, v1alpha1.AnnotationGeneration} {
		setAnnotation(pod, key, "")
	}
}

// Validate trusts what another API server has accepted, as long as a syncer speaks for its own cluster.
func (s podStrategy) Validate(ctx context.Context, obj runtime.Object) field.ErrorList {
	if cluster, ok := bySyncer(ctx); ok {
		return validateMirror(obj.(*api.Pod), cluster)
	}
	return s.stockStrategy.Validate(ctx, obj)
}

func (s podStrategy) ValidateUpdate(ctx context.Context, obj, old runtime.Object) field.ErrorList {
	if cluster, ok := bySyncer(ctx); ok {
		errs := validateMirror(old.(*api.Pod), cluster)
		if pod := obj.(*api.Pod); !letGo(pod, old.(*api.Pod)) {
			errs = append(errs, validateMirror(pod, cluster)...)
		}
		return errs
	}
	if pod := old.(*api.Pod); mirrored(pod) && !labelledAnew(obj.(*api.Pod), pod) {
		return field.ErrorList{field.Forbidden(field.NewPath("metadata", "name"),
			fmt.Sprintf("the pod mirrors one in cluster %q, and only its labels, annotations and owners can be changed here, and finalizers taken off: "+
				"change the workload that it belongs to", clusterOf(pod)))}
	}
	return s.stockStrategy.ValidateUpdate(ctx, obj, old)
}

// ValidateDeclaratively is skipped for mirrors: the cluster below has done it.
func (s podStrategy) ValidateDeclaratively(ctx context.Context, obj, old runtime.Object, errs field.ErrorList, op operation.Type, config rest.DeclarativeValidationConfig) field.ErrorList {
	if _, ok := bySyncer(ctx); ok {
		return errs
	}
	return s.stockStrategy.ValidateDeclaratively(ctx, obj, old, errs, op, config)
}

func (s podStrategy) WarningsOnCreate(ctx context.Context, obj runtime.Object) []string {
	if _, ok := bySyncer(ctx); ok {
		return nil
	}
	return s.stockStrategy.WarningsOnCreate(ctx, obj)
}

func validateMirror(pod *api.Pod, cluster string) field.ErrorList {
	var errs field.ErrorList
	if pod.Spec.NodeName != "" && pod.Spec.NodeName != cluster {
		errs = append(errs, field.Forbidden(field.NewPath("spec", "nodeName"),
			fmt.Sprintf("the syncer of cluster %q may not report a pod of %q", cluster, pod.Spec.NodeName)))
	} else if !runsIn(pod, cluster) {
		errs = append(errs, field.Forbidden(field.NewPath("metadata", "annotations").Key(v1alpha1.AnnotationCluster),
			fmt.Sprintf("the syncer of cluster %q may only report pods that are there", cluster)))
	}
	if pod.UID == "" {
		errs = append(errs, field.Required(field.NewPath("metadata", "annotations").Key(v1alpha1.AnnotationUID), "a mirror carries its pod's UID"))
	}
	return errs
}

// mirrored reports whether a pod only shows one that a controller made below. A pod that a user made above, and that
// was placed, is no mirror: what happens below is told by its status.
func mirrored(pod *api.Pod) bool {
	_, ok := pod.Annotations[v1alpha1.AnnotationCluster]
	return ok
}

// clusterOf returns the cluster that is known to run a pod, "" while there is none.
func clusterOf(pod *api.Pod) string { return projection.ClusterOf(pod, pod.Spec.NodeName) }

// uidBelow is the UID that a pod has in its cluster.
func uidBelow(pod *api.Pod) types.UID { return projection.UIDBelow(pod) }

// runsIn reports whether a pod is in a cluster: as a mirror, or made there, or placed there while no cluster is known to have it.
func runsIn(pod *api.Pod, cluster string) bool {
	waits := pod.Annotations[v1alpha1.AnnotationPodCluster]
	switch {
	case !mirrored(pod) && waits != "":
		return waits == cluster
	case mirrored(pod), pod.Spec.NodeName != "" && uidBelow(pod) != "":
		return clusterOf(pod) == cluster
	}
	decision, err := placement.ParseDecision(pod.Annotations[v1alpha1.AnnotationPlacement])
	_, placed := decision[cluster]
	return err == nil && placed
}

// letGo reports whether an update only tells of a pod that waited in a cluster that it is there no more, so that another one makes it.
func letGo(pod, old *api.Pod) bool {
	return old.Annotations[v1alpha1.AnnotationPodCluster] != "" && !mirrored(pod) && equality.Semantic.DeepEqual(pod.Spec, old.Spec) &&
		pod.Annotations[v1alpha1.AnnotationPodCluster] == "" && uidBelow(pod) == "" &&
		pod.Annotations[v1alpha1.AnnotationPlacement] == old.Annotations[v1alpha1.AnnotationPlacement]
}

// labelledAnew reports whether an update leaves everything but labels, annotations and owners as it is, and finalizers that it takes off.
func labelledAnew(pod, old *api.Pod) bool {
	added := slices.ContainsFunc(pod.Finalizers, func(f string) bool { return !slices.Contains(old.Finalizers, f) })
	return equality.Semantic.DeepEqual(pod.Spec, old.Spec) && !added
}

// podREST deletes mirrored pods where they run, and changes their labels and annotations there. Their mirrors follow when the cluster
// reports it.
type podREST struct {
	*podstore.REST
	connections Connections
	metadata    *podChangeREST
}

// Update implements rest.Updater.
func (r *podREST) Update(ctx context.Context, name string, info rest.UpdatedObjectInfo, create rest.ValidateObjectFunc, update rest.ValidateObjectUpdateFunc, force bool, options *metav1.UpdateOptions) (runtime.Object, bool, error) {
	if !writesMirrors(ctx) {
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
	if _, ok := bySyncer(ctx); !ok || !isPod || validate == nil {
		return r.REST.Create(ctx, obj, validate, options)
	}
	proof, ok := pod.Annotations[v1alpha1.AnnotationAdmitted]
	if !ok {
		return r.REST.Create(ctx, obj, validate, options)
	}
	setAnnotation(pod, v1alpha1.AnnotationAdmitted, "")
	return r.REST.Create(ctx, pod, func(ctx context.Context, obj runtime.Object) error {
		proven := obj.DeepCopyObject().(*api.Pod)
		setAnnotation(proven, v1alpha1.AnnotationAdmitted, proof)
		return validate(ctx, proven)
	}, options)
}

func (r *podREST) Delete(ctx context.Context, name string, validate rest.ValidateObjectFunc, options *metav1.DeleteOptions) (runtime.Object, bool, error) {
	if _, ok := bySyncer(ctx); ok || byController(ctx) {
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

// belowTimeout bounds how long a deletion waits for a cluster: one that has halted keeps its connections open and says nothing.
const belowTimeout = 15 * time.Second

func (r *podREST) deleteBelow(ctx context.Context, pod *api.Pod, options *metav1.DeleteOptions) (runtime.Object, bool, error) {
	cluster := clusterOf(pod)
	connection, err := r.connections.Connection(cluster)
	if err != nil {
		return nil, false, apierrors.NewServiceUnavailable(fmt.Sprintf("delete pod %s/%s in cluster %q: %v", pod.Namespace, pod.Name, cluster, err))
	}
	ctx, cancel := context.WithTimeout(ctx, belowTimeout)
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
	case fromWithin(ctx):
		return pod, false, nil
	case endsGracefully(pod, options):
		return r.tellDeletion(ctx, pod, options)
	}
	told, gone := awaitTold(ctx, r.REST, pod, deletionPatience)
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
	awaitEvent(ctx, from, only(pod), patience, func(event watch.Event, obj metav1.Object) bool {
		if changed, ok := obj.(*api.Pod); ok && changed.UID == pod.UID {
			told, gone = changed, event.Type == watch.Deleted
		}
		return gone || told.DeletionTimestamp != nil
	})
	return told, gone
}

// maxDeleteWorkers bounds how many pods one deletecollection deletes at a time, as the stock store's flag does by default.
const maxDeleteWorkers = 16

// DeleteCollection deletes as Delete does, pod by pod: the store's own would pass by the clusters. The controller of namespaces waits until
// the mirrors are gone, as long as some go: it leaves everything else in a namespace until there are no pods.
func (r *podREST) DeleteCollection(ctx context.Context, validate rest.ValidateObjectFunc, options *metav1.DeleteOptions, listOptions *metainternalversion.ListOptions) (runtime.Object, error) {
	list, err := r.REST.List(ctx, listOptions)
	if err != nil {
		return nil, err
	}
	pods := list.(*api.PodList)
	errs := make([]error, len(pods.Items))
	workqueue.ParallelizeUntil(ctx, maxDeleteWorkers, len(pods.Items), func(i int) {
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
	if fromWithin(ctx) && !writesMirrors(ctx) && !dryrun.IsDryRun(options.DryRun) {
		awaitCollection(ctx, r.REST, listOptions, podsPatience, func(pod metav1.Object) bool { return len(pod.GetFinalizers()) == 0 })
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
