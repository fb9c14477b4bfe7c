package pods

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	api "k8s.io/kubernetes/pkg/apis/core"
	"k8s.io/kubernetes/pkg/apis/policy"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/server/storage/storagetest"
)

// budget guards the pods of app "web".
func budget(allowed int32) *policyv1.PodDisruptionBudget {
	return &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", ResourceVersion: "1"},
		Spec:       policyv1.PodDisruptionBudgetSpec{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}},
		Status:     policyv1.PodDisruptionBudgetStatus{DisruptionsAllowed: allowed},
	}
}

// guarded is a mirrored pod that serves.
func guarded(cluster string) *api.Pod {
	pod := mirror(cluster)
	pod.Labels = map[string]string{"app": "web"}
	pod.Status.Conditions = []api.PodCondition{{Type: api.PodReady, Status: api.ConditionTrue}}
	return pod
}

// versioned has a fake clientset refuse updates of budgets that are not based on the last version.
func versioned(client *fake.Clientset) *fake.Clientset {
	var mu sync.Mutex
	client.PrependReactor("update", "poddisruptionbudgets", func(action clienttesting.Action) (bool, runtime.Object, error) {
		mu.Lock()
		defer mu.Unlock()
		changed := action.(clienttesting.UpdateAction).GetObject().(*policyv1.PodDisruptionBudget)
		last, err := client.Tracker().Get(action.GetResource(), changed.Namespace, changed.Name)
		if err != nil {
			return true, nil, err
		}
		version := last.(*policyv1.PodDisruptionBudget).ResourceVersion
		if changed.ResourceVersion != version {
			return true, nil, apierrors.NewConflict(policy.Resource("poddisruptionbudgets"), changed.Name, errors.New("changed"))
		}
		number, err := strconv.Atoi(version)
		if err != nil {
			return true, nil, err
		}
		changed = changed.DeepCopy()
		changed.ResourceVersion = strconv.Itoa(number + 1)
		return true, changed, client.Tracker().Update(action.GetResource(), changed, changed.Namespace)
	})
	return client
}

func readBudget(t *testing.T, client *fake.Clientset) policyv1.PodDisruptionBudgetStatus {
	t.Helper()
	got, err := client.PolicyV1().PodDisruptionBudgets("shop").Get(t.Context(), "web", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return got.Status
}

func TestEvictionHappensBelow(t *testing.T) {
	another := types.UID("another")
	tooMany := apierrors.NewTooManyRequests("budget", 1)
	for name, test := range map[string]struct {
		of      string // the Eviction's name
		options *metav1.DeleteOptions
		dryRun  []string
		verdict runtime.Object
		refusal error // of the verdict
		below   error
		want    func(error) bool // nil for success
		asked   bool             // whether the cluster was asked
		taken   bool             // whether the budget counts it
	}{
		"with the pod's UID":            {of: "web-1", asked: true, taken: true},
		"as a dry run":                  {of: "web-1", dryRun: []string{"All"}, asked: true},
		"as a dry run by its options":   {of: "web-1", options: &metav1.DeleteOptions{DryRun: []string{"All"}}, asked: true},
		"not of another pod":            {of: "web-1", options: &metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &another}}, want: apierrors.IsConflict},
		"not by another name":           {of: "web-2", want: apierrors.IsBadRequest},
		"unless the budget refuses":     {of: "web-1", refusal: tooMany, want: apierrors.IsTooManyRequests},
		"unless there are two budgets":  {of: "web-1", verdict: &metav1.Status{Status: metav1.StatusFailure, Code: 500}},
		"unless a budget there refuses": {of: "web-1", below: tooMany, want: apierrors.IsTooManyRequests, asked: true},
		// It may have happened.
		"unless the cluster is silent": {of: "web-1", below: errors.New("connection refused"), want: apierrors.IsServiceUnavailable, asked: true, taken: true},
	} {
		t.Run(name, func(t *testing.T) {
			east := fake.NewClientset(storagetest.LiveOf("web-1"))
			var evicted *policyv1.Eviction
			east.PrependReactor("create", "pods", func(action clienttesting.Action) (bool, runtime.Object, error) {
				evicted = action.(clienttesting.CreateAction).GetObject().(*policyv1.Eviction)
				return true, nil, test.below
			})
			above := versioned(fake.NewClientset(budget(3)))
			r := &evictionREST{
				below: foundIn(guarded("east"), storagetest.Connections{"east": storagetest.Cluster(east)}), budgets: above.PolicyV1(),
				verdict: func(_ context.Context, e *policy.Eviction) (runtime.Object, error) {
					if !slices.Equal(e.DeleteOptions.DryRun, []string{"All"}) || *e.DeleteOptions.Preconditions.ResourceVersion != "7" {
						t.Errorf("the stock endpoint was asked with %+v, want a dry run for the version that was looked at", e.DeleteOptions)
					}
					return test.verdict, test.refusal
				},
			}
			ctx, _ := storagetest.As(t, "jane")
			eviction := &policy.Eviction{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: test.of}, DeleteOptions: test.options}
			answer, err := r.Create(ctx, "web-1", eviction, rest.ValidateAllObjectFunc, &metav1.CreateOptions{DryRun: test.dryRun})
			if test.want == nil && err != nil || test.want != nil && !test.want(err) {
				t.Errorf("error %v", err)
			}
			if test.verdict != nil && answer != test.verdict {
				t.Errorf("answer %+v, want the verdict", answer)
			}
			if (evicted != nil) != test.asked {
				t.Fatalf("asked below: %+v", evicted)
			}
			if evicted != nil && (evicted.Name != "web-1" || *evicted.DeleteOptions.Preconditions.UID != "uid-below" ||
				evicted.DeleteOptions.Preconditions.ResourceVersion != nil) {
				t.Errorf("evicted %+v with %+v", evicted, evicted.DeleteOptions.Preconditions)
			}
			if evicted != nil && (len(evicted.DeleteOptions.DryRun) > 0) == test.taken && test.below == nil {
				t.Errorf("evicted with %+v", evicted.DeleteOptions)
			}
			if pods := slices.Collect(maps.Keys(readBudget(t, above).DisruptedPods)); (len(pods) == 1 && pods[0] == "web-1") != test.taken {
				t.Errorf("the budget counts %q", pods)
			}
		})
	}
}

func TestAPartOfABudgetDoesNotStandInTheWayOfTheWhole(t *testing.T) {
	part, foreign, generous, other := budget(0), budget(0), budget(1), budget(0)
	part.Labels = map[string]string{v1alpha1.LabelLogicalCluster: "logical"}
	foreign.Name, generous.Name, other.Name = "foreign", "generous", "other"
	other.Spec.Selector.MatchLabels["app"] = "other"
	tooMany := apierrors.NewTooManyRequests("Cannot evict pod as it would violate the pod's disruption budget.", 0)
	two := apierrors.NewInternalError(errors.New("This pod has more than one PodDisruptionBudget"))
	for name, test := range map[string]struct {
		budgets []runtime.Object
		answer  error // to the eviction
		want    bool  // that it goes
		refused error // otherwise, if not by the answer
	}{
		"the pod goes if it is only the part":             {budgets: []runtime.Object{part, other}, answer: tooMany, want: true},
		"it stays if the cluster has a budget of its own": {budgets: []runtime.Object{part, foreign}, answer: tooMany},
		"it stays if that one, beside the part, spares none": {
			budgets: []runtime.Object{part, foreign}, answer: two,
			refused: apierrors.NewTooManyRequests("Cannot evict pod as it would violate the pod's disruption budget.", 0),
		},
		"it goes if that one, beside the part, spares one":      {budgets: []runtime.Object{part, generous}, answer: two, want: true},
		"it stays if the cluster has two of its own":            {budgets: []runtime.Object{part, foreign, generous}, answer: two},
		"it stays if the cluster has two, neither of them ours": {budgets: []runtime.Object{foreign, generous}, answer: two},
		"it stays if the cluster refuses without any":           {budgets: []runtime.Object{other}, answer: tooMany},
		"it stays if the cluster refuses it otherwise":          {budgets: []runtime.Object{part}, answer: apierrors.NewForbidden(api.Resource("pods"), "web-1", nil)},
	} {
		t.Run(name, func(t *testing.T) {
			east := fake.NewClientset(test.budgets...)
			east.PrependReactor("create", "pods", func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, test.answer })
			gone := false
			east.PrependReactor("delete", "pods", func(action clienttesting.Action) (bool, runtime.Object, error) {
				gone = *action.(clienttesting.DeleteAction).GetDeleteOptions().Preconditions.UID == "uid-below"
				return true, nil, nil
			})
			err := evictBelow(t.Context(), storagetest.Cluster(east), guarded("east"), metav1.DeleteOptions{})
			if gone != test.want || (err == nil) != test.want {
				t.Errorf("gone: %t, error %v", gone, err)
			}
			if want := cmp.Or(test.refused, test.answer); !test.want && err.Error() != want.Error() {
				t.Errorf("error %v, want %v", err, want)
			}
			if test.refused != nil && !apierrors.HasStatusCause(err, policyv1.DisruptionBudgetCause) {
				t.Errorf("error %v does not tell of a budget", err)
			}
		})
	}
}

func TestEvictionsAtOnceDoNotExceedTheBudget(t *testing.T) {
	above := versioned(fake.NewClientset(budget(2)))
	var evicted atomic.Int32
	var running []runtime.Object
	for i := range 6 {
		running = append(running, storagetest.LiveOf("web-"+strconv.Itoa(i)))
	}
	east := fake.NewClientset(running...)
	east.PrependReactor("create", "pods", func(clienttesting.Action) (bool, runtime.Object, error) {
		evicted.Add(1)
		return true, nil, nil
	})
	pods := foundIn(nil, storagetest.Connections{"east": storagetest.Cluster(east)})
	pods.get = func(_ context.Context, name string, _ *metav1.GetOptions) (runtime.Object, error) {
		pod := guarded("east")
		pod.Name = name
		return pod, nil
	}
	r := &evictionREST{
		below: pods, budgets: above.PolicyV1(),
		verdict: func(ctx context.Context, _ *policy.Eviction) (runtime.Object, error) {
			now, err := above.PolicyV1().PodDisruptionBudgets("shop").Get(ctx, "web", metav1.GetOptions{})
			if err == nil && now.Status.DisruptionsAllowed <= 0 {
				err = apierrors.NewTooManyRequests("budget", 0)
			}
			return &metav1.Status{Status: metav1.StatusSuccess}, err
		},
	}
	ctx, _ := storagetest.As(t, "jane")
	var group sync.WaitGroup
	for i := range 6 {
		group.Go(func() {
			name := "web-" + strconv.Itoa(i)
			eviction := &policy.Eviction{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}}
			if _, err := r.Create(ctx, name, eviction, nil, &metav1.CreateOptions{}); err != nil && !apierrors.IsTooManyRequests(err) {
				t.Error(err)
			}
		})
	}
	group.Wait()
	if got := evicted.Load(); got != 2 {
		t.Errorf("%d pods were evicted, want the 2 that the budget allows", got)
	}
	if got := readBudget(t, above); got.DisruptionsAllowed != 0 || len(got.DisruptedPods) != 2 {
		t.Errorf("the budget is left with %+v", got)
	}
}

func TestWhichEvictionsCount(t *testing.T) {
	always := policyv1.AlwaysAllow
	for name, test := range map[string]struct {
		change func(pod *api.Pod, budget *policyv1.PodDisruptionBudget)
		want   bool
	}{
		"that of a pod that serves":   {func(*api.Pod, *policyv1.PodDisruptionBudget) {}, true},
		"not that of one that failed": {func(p *api.Pod, _ *policyv1.PodDisruptionBudget) { p.Status.Phase = api.PodFailed }, false},
		"not that of one to come":     {func(p *api.Pod, _ *policyv1.PodDisruptionBudget) { p.Status.Phase = api.PodPending }, false},
		"not that of one that goes":   {func(p *api.Pod, _ *policyv1.PodDisruptionBudget) { p.DeletionTimestamp = &metav1.Time{} }, false},
		"that of a sick one while it is needed": {func(p *api.Pod, b *policyv1.PodDisruptionBudget) {
			p.Status.Conditions = nil
			b.Status.DesiredHealthy, b.Status.CurrentHealthy = 3, 2
		}, true},
		"not that of a sick one that is not needed": {func(p *api.Pod, b *policyv1.PodDisruptionBudget) {
			p.Status.Conditions = nil
			b.Status.DesiredHealthy, b.Status.CurrentHealthy = 3, 3
		}, false},
		"not that of a sick one that may always go": {func(p *api.Pod, b *policyv1.PodDisruptionBudget) {
			p.Status.Conditions = nil
			b.Spec.UnhealthyPodEvictionPolicy = &always
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			pod, b := guarded("east"), budget(1)
			test.change(pod, b)
			if got := counts(pod, b); got != test.want {
				t.Errorf("counts: %t, want %t", got, test.want)
			}
		})
	}
}
