package controller

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/generated/clientset/versioned"
	listers "github.com/manifold-dev/manifold/generated/listers/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/internal/work"
	"github.com/manifold-dev/manifold/pkg/placement"
	"github.com/manifold-dev/manifold/pkg/summary"
)

// tellPolicies is how long changes of what a policy does are gathered before they are written.
const tellPolicies = time.Second

// policyKey names a policy; a ClusterPlacementPolicy has no namespace.
type policyKey struct{ namespace, name string }

// followers keep which workloads follow which policy, and write that to the policies' statuses.
type followers struct {
	client     versioned.Interface
	wide       listers.ClusterPlacementPolicyLister
	namespaced listers.PlacementPolicyLister
	queue      workqueue.TypedRateLimitingInterface[policyKey]
	// busy tells that workloads wait to be decided about, so that what is known is not all.
	busy func() bool

	mu       sync.Mutex
	of       map[item]follower
	byPolicy map[policyKey]map[item]bool
	// troubles say of workloads why clusters do not hold of them what they should.
	troubles map[item]string
	// descriptions say what is wrong with what policies say of custom kinds.
	descriptions map[policyKey]string
}

// follower is a workload that follows a policy.
type follower struct {
	policy policyKey
	// problem says why replicas have no cluster; "" if all have.
	problem string
}

func newFollowers(client versioned.Interface, wide listers.ClusterPlacementPolicyLister, namespaced listers.PlacementPolicyLister, queues work.Names) *followers {
	return &followers{
		client: client, wide: wide, namespaced: namespaced,
		queue: work.NewQueue[policyKey](queues.Of("policies"), firstRetry, lastRetry),
		of:    map[item]follower{}, byPolicy: map[policyKey]map[item]bool{}, troubles: map[item]string{},
		descriptions: map[policyKey]string{},
	}
}

// policyOf is the policy that a result followed; false if there is none.
func policyOf(result placement.Result) (policyKey, bool) {
	return policyKey{result.Policy.Namespace, result.Policy.Name}, result.Policy != placement.PolicyRef{}
}

// Follow takes into account what somebody else has decided about an object that is no workload of a built-in kind; nil if it follows no
// policy any more.
func (c *Controller) Follow(resource schema.GroupVersionResource, name cache.ObjectName, result *placement.Result) {
	if result == nil {
		c.followers.leave(item{resource, name})
		return
	}
	c.followers.follow(item{resource, name}, *result)
}

// Trouble takes into account what is wrong with the description of a custom kind by a ClusterPlacementPolicy; "" if nothing is.
func (c *Controller) Trouble(policy, problem string) {
	f, key := c.followers, policyKey{name: policy}
	if f == nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if problem == "" {
		delete(f.descriptions, key)
	} else {
		f.descriptions[key] = problem
	}
	f.queue.AddAfter(key, tellPolicies)
}

// follow takes a decision into account.
func (f *followers) follow(name item, result placement.Result) {
	if f == nil {
		return
	}
	policy, is := policyOf(result)
	next := follower{policy: policy}
	if len(result.Decision) == 0 || result.Unplaced > 0 {
		next.problem = result.Message()
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	last, was := f.of[name]
	if was && is && last == next {
		return
	}
	f.drop(name)
	if is {
		f.of[name] = next
		if f.byPolicy[policy] == nil {
			f.byPolicy[policy] = map[item]bool{}
		}
		f.byPolicy[policy][name] = true
		f.queue.AddAfter(policy, tellPolicies)
	}
}

// leave forgets a workload.
func (f *followers) leave(name item) {
	if f == nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.drop(name)
	delete(f.troubles, name)
}

// trouble takes into account why clusters do not hold of a workload what they should, such as an override that cannot be applied; "" if
// they do.
func (f *followers) trouble(name item, problem string) {
	if f == nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.troubles[name] == problem {
		return
	}
	if problem == "" {
		delete(f.troubles, name)
	} else {
		f.troubles[name] = problem
	}
	if follower, follows := f.of[name]; follows {
		f.queue.AddAfter(follower.policy, tellPolicies)
	}
}

// problemIn is what a breakdown says of clusters that do not hold what they should; "" if it says nothing of that.
func problemIn(annotation string) string {
	if !strings.Contains(annotation, `"problem"`) {
		return ""
	}
	breakdown, err := summary.ParseBreakdown(annotation)
	if err != nil {
		return ""
	}
	for _, cluster := range slices.Sorted(maps.Keys(breakdown)) {
		if problem := breakdown[cluster].Problem; problem != "" {
			return fmt.Sprintf("cluster %q: %s", cluster, problem)
		}
	}
	return ""
}

// drop is leave for who holds the lock.
func (f *followers) drop(name item) {
	last, was := f.of[name]
	if !was {
		return
	}
	delete(f.of, name)
	delete(f.byPolicy[last.policy], name)
	if len(f.byPolicy[last.policy]) == 0 {
		delete(f.byPolicy, last.policy)
	}
	f.queue.AddAfter(last.policy, tellPolicies)
}

// changed has the status of a policy looked at.
func (f *followers) changed(obj metav1.Object) {
	f.queue.AddAfter(policyKey{obj.GetNamespace(), obj.GetName()}, tellPolicies)
}

// status is what a policy does.
func (f *followers) status(policy policyKey) (out v1alpha1.PlacementPolicyStatus) {
	f.mu.Lock()
	defer f.mu.Unlock()
	out.Workloads = int32(len(f.byPolicy[policy]))
	var first item
	for name := range f.byPolicy[policy] {
		problem := f.of[name].problem
		if problem != "" {
			out.Unplaced++
		} else if problem = f.troubles[name]; problem == "" {
			continue
		}
		if out.LastError == "" || name.before(first) {
			first = name
			out.LastError = fmt.Sprintf("%s %s: %s", name.resource.Resource, name.ObjectName, problem)
		}
	}
	if problem := f.descriptions[policy]; problem != "" {
		out.LastError = problem // the workloads may only follow from that
	}
	return out
}

func (i item) before(other item) bool {
	return cmp.Or(cmp.Compare(i.resource.Resource, other.resource.Resource), cmp.Compare(i.Namespace, other.Namespace),
		cmp.Compare(i.Name, other.Name)) < 0
}

// write brings the status of one policy up to date.
func (f *followers) write(ctx context.Context, policy policyKey) error {
	if f.busy() {
		f.queue.AddAfter(policy, tellPolicies)
		return nil
	}
	status := f.status(policy)
	var err error
	if policy.namespace == "" {
		err = f.writeWide(ctx, policy.name, status)
	} else {
		err = f.writeNamespaced(ctx, policy, status)
	}
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

func (f *followers) writeWide(ctx context.Context, name string, status v1alpha1.PlacementPolicyStatus) error {
	policy, err := f.wide.Get(name)
	if err != nil {
		return err
	}
	if status.ObservedGeneration = policy.Generation; policy.Status == status {
		return nil
	}
	policy = policy.DeepCopy()
	policy.Status = status
	_, err = f.client.ManifoldV1alpha1().ClusterPlacementPolicies().UpdateStatus(ctx, policy, metav1.UpdateOptions{FieldManager: v1alpha1.FieldManager})
	return err
}

func (f *followers) writeNamespaced(ctx context.Context, name policyKey, status v1alpha1.PlacementPolicyStatus) error {
	policy, err := f.namespaced.PlacementPolicies(name.namespace).Get(name.name)
	if err != nil {
		return err
	}
	if status.ObservedGeneration = policy.Generation; policy.Status == status {
		return nil
	}
	policy = policy.DeepCopy()
	policy.Status = status
	_, err = f.client.ManifoldV1alpha1().PlacementPolicies(name.namespace).UpdateStatus(ctx, policy, metav1.UpdateOptions{FieldManager: v1alpha1.FieldManager})
	return err
}

// handler looks at the statuses of policies that are new or have changed.
func (f *followers) handler() cache.ResourceEventHandler {
	return cache.ResourceEventHandlerFuncs{
		AddFunc: func(obj any) { f.changed(obj.(metav1.Object)) },
		UpdateFunc: func(old, obj any) {
			if old.(metav1.Object).GetGeneration() != obj.(metav1.Object).GetGeneration() {
				f.changed(obj.(metav1.Object))
			}
		},
	}
}
