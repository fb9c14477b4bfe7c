// Package quota has ResourceQuotas count what runs in clusters.
package quota

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	quota "k8s.io/apiserver/pkg/quota/v1"
	"k8s.io/apiserver/pkg/quota/v1/generic"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/kubernetes/pkg/quota/v1/install"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/internal/work"
)

const (
	// countWorkers is how many quotas are counted at a time.
	countWorkers = 2
	// countDelay lets the pods of a burst be counted at once.
	countDelay = 200 * time.Millisecond
)

// Usage has ResourceQuotas count mirrors. The stock controller counts anew what goes; what comes counts itself when it is admitted,
// and mirrors are not: the cluster has admitted the original.
type Usage struct {
	client   kubernetes.Interface
	quotas   corelisters.ResourceQuotaLister
	registry quota.Registry
	queue    workqueue.TypedRateLimitingInterface[cache.ObjectName]
	synced   []cache.InformerSynced
}

// New registers with the informers, which the caller starts afterwards.
func New(client kubernetes.Interface, shared informers.SharedInformerFactory, queues work.Names) (*Usage, error) {
	evaluators, err := install.NewQuotaConfigurationForControllers(generic.ListerFuncForResourceFunc(shared.ForResource), shared)
	if err != nil {
		return nil, err
	}
	u := &Usage{
		client:   client,
		quotas:   shared.Core().V1().ResourceQuotas().Lister(),
		registry: generic.NewRegistry(evaluators.Evaluators()),
		queue:    work.NewQueue[cache.ObjectName](queues.Of("quota-usage"), 10*time.Millisecond, 10*time.Second),
	}
	core, apps := shared.Core().V1(), shared.Apps().V1()
	for _, informer := range []cache.SharedIndexInformer{
		core.Pods().Informer(), core.PersistentVolumeClaims().Informer(), apps.ReplicaSets().Informer(),
	} {
		registration, err := informer.AddEventHandler(cache.ResourceEventHandlerDetailedFuncs{AddFunc: u.added})
		if err != nil {
			return nil, err
		}
		u.synced = append(u.synced, registration.HasSynced)
	}
	return u, nil
}

// added has the quotas of a mirror's namespace counted. What is there at the start the stock controller counts.
func (u *Usage) added(obj any, initially bool) {
	object, ok := obj.(metav1.Object)
	if !ok || initially || object.GetAnnotations()[v1alpha1.AnnotationCluster] == "" && metav1.GetControllerOfNoCopy(object) == nil {
		return
	}
	quotas, _ := u.quotas.ResourceQuotas(object.GetNamespace()).List(labels.Everything())
	for _, q := range quotas {
		u.queue.AddAfter(cache.MetaObjectToName(q), countDelay)
	}
}

// Run counts until ctx ends.
func (u *Usage) Run(ctx context.Context) error {
	if !cache.WaitForCacheSync(ctx.Done(), u.synced...) {
		return ctx.Err()
	}
	work.Run(ctx, u.queue, countWorkers, u.count)
	return nil
}

// count brings the usage that a quota tells up to date.
func (u *Usage) count(ctx context.Context, name cache.ObjectName) error {
	in, err := u.quotas.ResourceQuotas(name.Namespace).Get(name.Name)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	counted, err := quota.CalculateUsage(in.Namespace, in.Spec.Scopes, in.Spec.Hard, u.registry, in.Spec.ScopeSelector)
	if err != nil {
		return err
	}
	out := in.DeepCopy()
	out.Status.Hard = in.Spec.Hard.DeepCopy()
	used := corev1.ResourceList{}
	for resource := range in.Spec.Hard {
		// What no evaluator counts keeps the number that it has.
		if amount, ok := in.Status.Used[resource]; ok {
			used[resource] = amount
		}
		if amount, ok := counted[resource]; ok {
			used[resource] = amount
		}
	}
	out.Status.Used = used
	if equality.Semantic.DeepEqual(in.Status, out.Status) {
		return nil
	}
	_, err = u.client.CoreV1().ResourceQuotas(in.Namespace).UpdateStatus(ctx, out, metav1.UpdateOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}
