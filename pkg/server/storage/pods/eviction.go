package pods

import (
	"context"
	"fmt"
	"time"

	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/util/dryrun"
	policyclient "k8s.io/client-go/kubernetes/typed/policy/v1"
	"k8s.io/client-go/util/retry"
	podutil "k8s.io/kubernetes/pkg/api/pod"
	api "k8s.io/kubernetes/pkg/apis/core"
	"k8s.io/kubernetes/pkg/apis/policy"
	podstore "k8s.io/kubernetes/pkg/registry/core/pod/storage"
	"k8s.io/utils/ptr"
)

// evictionREST evicts mirrored pods in their cluster, if the disruption budgets of the logical cluster allow it. A budget that the
// cluster has for itself decides there as well.
type evictionREST struct {
	*podstore.EvictionREST
	below podsBelow
	// verdict asks the stock endpoint, by a dry run, whether it would evict. Its answer is Kubernetes' own, to the word.
	verdict func(ctx context.Context, eviction *policy.Eviction) (runtime.Object, error)
	budgets policyclient.PodDisruptionBudgetsGetter
}

func newEvictionREST(stock *podstore.EvictionREST, below podsBelow, budgets policyclient.PodDisruptionBudgetsGetter) *evictionREST {
	return &evictionREST{
		EvictionREST: stock, below: below, budgets: budgets,
		verdict: func(ctx context.Context, eviction *policy.Eviction) (runtime.Object, error) {
			return stock.Create(ctx, eviction.Name, eviction, rest.ValidateAllObjectFunc, &metav1.CreateOptions{DryRun: eviction.DeleteOptions.DryRun})
		},
	}
}

func (r *evictionREST) Create(ctx context.Context, name string, obj runtime.Object, validate rest.ValidateObjectFunc, options *metav1.CreateOptions) (runtime.Object, error) {
	eviction, ok := obj.(*policy.Eviction)
	if !ok {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("not an Eviction object: %T", obj))
	}
	if name != eviction.Name {
		return nil, apierrors.NewBadRequest("name in URL does not match name in Eviction object")
	}
	found, err := r.below.get(ctx, name, &metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	if !mirrored(found.(*api.Pod)) {
		return r.EvictionREST.Create(ctx, name, obj, validate, options)
	}
	if validate != nil {
		if err := validate(ctx, eviction.DeepCopyObject()); err != nil {
			return nil, err
		}
	}
	pod, connection, err := r.below.find(ctx, name)
	if err != nil {
		return nil, err
	}
	wanted := ptr.Deref(eviction.DeleteOptions.DeepCopy(), metav1.DeleteOptions{})
	if len(wanted.DryRun) == 0 {
		wanted.DryRun = options.DryRun
	}
	taken, refusal, err := r.askBudget(ctx, name, wanted)
	if err != nil || refusal != nil {
		return refusal, err
	}
	if err := evictBelow(ctx, connection, pod, wanted); err != nil {
		if taken != nil && answered(err) {
			taken.giveBack(ctx, r.budgets)
		}
		return nil, fromCluster(err, pod)
	}
	return &metav1.Status{Status: metav1.StatusSuccess}, nil
}

// answered reports whether an error is the cluster's answer: then the eviction did not happen. Otherwise nobody knows.
func answered(err error) bool {
	reason := apierrors.ReasonForError(err)
	return reason != metav1.StatusReasonUnknown && reason != metav1.StatusReasonTimeout && reason != metav1.StatusReasonServerTimeout
}

// askBudget returns an error or a failed Status when the eviction is refused. Otherwise it has been taken from the budget that guards
// the pod, which is returned, unless there is none, the eviction does not count, or it is a dry run.
//
// The verdict and the taking are two steps. That is safe since the budget is read before the verdict, and taken from only if it is
// still the same after it: of two evictions at a time, the second is told of a conflict and asks again. The pod is held to the version
// that was looked at in the same way, so that it does not become healthy in between.
func (r *evictionREST) askBudget(ctx context.Context, name string, wanted metav1.DeleteOptions) (taken *disruption, refusal runtime.Object, err error) {
	var final error // not to be tried again, though it may be a conflict
	err = retry.RetryOnConflict(podstore.EvictionsRetry, func() error {
		found, err := r.below.get(ctx, name, &metav1.GetOptions{})
		if err != nil {
			return err
		}
		pod := found.(*api.Pod)
		if final = checkPreconditions(pod, wanted.Preconditions); final != nil {
			return nil
		}
		budget, err := r.budgetOf(ctx, pod)
		if err != nil {
			return err
		}
		if refusal, err = r.refusal(ctx, pod, wanted); err != nil || refusal != nil {
			return err
		}
		if budget == nil || dryrun.IsDryRun(wanted.DryRun) || !counts(pod, budget) {
			return nil
		}
		taken, err = take(ctx, r.budgets, budget, pod.Name)
		return err
	})
	if final != nil {
		err = final
	}
	return taken, refusal, err
}

// refusal returns the verdict of the stock endpoint: nil, a failed Status or an error.
func (r *evictionREST) refusal(ctx context.Context, pod *api.Pod, wanted metav1.DeleteOptions) (runtime.Object, error) {
	wanted.DryRun = []string{metav1.DryRunAll}
	wanted.Preconditions = &metav1.Preconditions{UID: &pod.UID, ResourceVersion: &pod.ResourceVersion}
	verdict, err := r.verdict(ctx, &policy.Eviction{
		ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name}, DeleteOptions: &wanted,
	})
	if err != nil {
		return nil, err
	}
	if status, ok := verdict.(*metav1.Status); ok && status.Status == metav1.StatusFailure {
		return status, nil
	}
	return nil, nil
}

// budgetOf returns the budget that guards a pod, or nil. Of several it returns any: the verdict refuses such a pod.
func (r *evictionREST) budgetOf(ctx context.Context, pod *api.Pod) (*policyv1.PodDisruptionBudget, error) {
	list, err := r.budgets.PodDisruptionBudgets(pod.Namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("list the disruption budgets of namespace %q: %w", pod.Namespace, err)
	}
	for i := range list.Items {
		selector, err := metav1.LabelSelectorAsSelector(list.Items[i].Spec.Selector)
		if err == nil && selector.Matches(labels.Set(pod.Labels)) {
			return &list.Items[i], nil
		}
	}
	return nil, nil
}

// counts reports whether an eviction that is allowed is taken from the budget. That of a pod that serves nobody is not: one that has
// ended, has not begun or is going, and one that is not ready while it is not needed. So decides the stock endpoint.
func counts(pod *api.Pod, budget *policyv1.PodDisruptionBudget) bool {
	if pod.Status.Phase != api.PodRunning && pod.Status.Phase != api.PodUnknown || pod.DeletionTimestamp != nil {
		return false
	}
	if podutil.IsPodReady(pod) {
		return true
	}
	always := ptr.Deref(budget.Spec.UnhealthyPodEvictionPolicy, policyv1.IfHealthyBudget) == policyv1.AlwaysAllow
	spare := budget.Status.DesiredHealthy > 0 && budget.Status.CurrentHealthy >= budget.Status.DesiredHealthy
	return !always && !spare
}

// disruption is an eviction that was taken from a budget.
type disruption struct {
	namespace, budget, pod string
	at                     metav1.Time
}

// take counts an eviction before it happens. The disruption controller takes the pod for gone until it sees it going, for two minutes.
// Once the budget has changed meanwhile, the error is a conflict.
func take(ctx context.Context, budgets policyclient.PodDisruptionBudgetsGetter, budget *policyv1.PodDisruptionBudget, pod string) (*disruption, error) {
	d := &disruption{namespace: budget.Namespace, budget: budget.Name, pod: pod, at: metav1.Now().Rfc3339Copy()}
	changed := budget.DeepCopy()
	changed.Status.DisruptionsAllowed--
	if changed.Status.DisruptedPods == nil {
		changed.Status.DisruptedPods = map[string]metav1.Time{}
	}
	changed.Status.DisruptedPods[pod] = d.at
	_, err := budgets.PodDisruptionBudgets(budget.Namespace).UpdateStatus(ctx, changed, metav1.UpdateOptions{})
	if err != nil {
		return nil, err
	}
	return d, nil
}

// giveBackTimeout bounds how long an eviction that did not happen may hold up its answer.
const giveBackTimeout = 5 * time.Second

// giveBack has the budget forget an eviction that did not happen. The disruption controller then allows another. If that cannot be
// written, it forgets by itself after two minutes.
func (d *disruption) giveBack(ctx context.Context, budgets policyclient.PodDisruptionBudgetsGetter) {
	// Also when the client has gone.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), giveBackTimeout)
	defer cancel()
	client := budgets.PodDisruptionBudgets(d.namespace)
	_ = retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		budget, err := client.Get(ctx, d.budget, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if at, ok := budget.Status.DisruptedPods[d.pod]; !ok || !at.Equal(&d.at) {
			return nil
		}
		delete(budget.Status.DisruptedPods, d.pod)
		_, err = client.UpdateStatus(ctx, budget, metav1.UpdateOptions{})
		return err
	})
}
