package classes

import (
	"context"
	"fmt"

	schedulingv1 "k8s.io/api/scheduling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/internal/caches"
	"github.com/manifold-dev/manifold/internal/typed"
	"github.com/manifold-dev/manifold/pkg/identity"
	"github.com/manifold-dev/manifold/pkg/projection"
	"github.com/manifold-dev/manifold/pkg/syncer/states"
	"github.com/manifold-dev/manifold/pkg/syncer/steps"
	"github.com/manifold-dev/manifold/pkg/syncer/writer"
)

// PriorityKey names a PriorityClass.
func PriorityKey(name string) identity.Key {
	return identity.Key{Resource: identity.Priorities, Name: name}
}

func (c Set) priority(name string) *schedulingv1.PriorityClass {
	obj, _, _ := c[identity.Priorities].GetIndexer().GetByKey(name) // reading a cache cannot fail
	class, _ := obj.(*schedulingv1.PriorityClass)
	return class
}

// brought is what comes of a PriorityClass in a cluster: gathered, and then carried out.
type brought struct {
	// above is the class of the logical cluster, below that of the cluster; nil if there is none.
	above, below *schedulingv1.PriorityClass
	// mine tells that the class below is ours.
	mine bool
	// named tells that a workload in the cluster names it, allowed that the cluster lets it come along.
	named, allowed bool
}

// wanted reports whether the cluster is to have the class of us.
func (b brought) wanted() bool {
	return b.above != nil && b.named && b.allowed && (b.below == nil || b.mine)
}

func (c *Along) gather(name string) brought {
	b := brought{above: c.Above.priority(name), below: c.Here.priority(name)}
	b.named = !c.Terms.Leaves() && c.Names(name)
	b.allowed = b.above != nil && c.letsIn(b.above)
	if b.below != nil {
		origin, marked := projection.OriginOf(b.below)
		b.mine = marked && origin.LogicalCluster == c.LogicalCluster
	}
	return b
}

// letsIn reports whether the admin of the cluster lets a PriorityClass come along.
func (c *Along) letsIn(class *schedulingv1.PriorityClass) bool {
	if !projection.GoesAlong(class) {
		return false
	}
	upTo := c.Terms.Allows().PriorityClassesUpTo
	return upTo != nil && class.Value <= *upTo
}

// priorityChanged looks again at a PriorityClass of the cluster, and at what waits for it.
func (c *Along) priorityChanged(obj any) {
	if class, ok := caches.Last(obj).(*schedulingv1.PriorityClass); ok {
		c.Queue.Add(PriorityKey(class.Name))
		c.States.Wake(PriorityKey(class.Name))
	}
}

// comesAlong returns how it stands with a class that a workload names and the cluster lacks: whether it is on its way, and the problem if it
// cannot come.
func (c *Along) comesAlong(workload identity.Key, r projection.Requirement) (coming bool, problem string) {
	class := c.Above.priority(r.Name)
	if r.Class.Resource != identity.Priorities || class == nil || !c.letsIn(class) {
		return false, ""
	}
	key := PriorityKey(r.Name)
	st := c.States.Await(key, workload)
	if st.Problem == "" {
		c.Queue.Add(key)
	}
	return true, st.Problem
}

// Sync brings a PriorityClass in line that comes along with workloads, or came.
func (c *Along) Sync(ctx context.Context, key identity.Key) error {
	if c.Terms.GivenUp() {
		return nil
	}
	b := c.gather(key.Name)
	err := c.act(ctx, b)
	if err == nil {
		if c.States.Of(key).Problem != "" {
			c.States.Set(key, states.State{})
		}
		return nil
	}
	if writer.Passes(err) {
		return err
	}
	c.Queue.AddAfter(key, steps.ConflictRetry)
	c.States.Fail(key, "", fmt.Sprintf("PriorityClass %s cannot come along: %s", key.Name, err))
	return nil
}

func (c *Along) act(ctx context.Context, b brought) error {
	client := c.Client.SchedulingV1().PriorityClasses()
	switch {
	case b.mine && (!b.wanted() || !projection.SamePriority(b.above, b.below)):
		klog.FromContext(ctx).V(2).Info("Removing a PriorityClass", "name", b.below.Name)
		if c.Terms.LeftAsItIs() {
			patch := fmt.Appendf(nil, `{"metadata":{"uid":%q,"labels":{%q:null}}}`, b.below.UID, v1alpha1.LabelLogicalCluster)
			_, err := client.Patch(ctx, b.below.Name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: v1alpha1.FieldManager})
			return typed.IgnoreGone(err)
		}
		// Where another one is wanted, the watch tells when this one is gone.
		return typed.IgnoreGone(client.Delete(ctx, b.below.Name, metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(b.below.UID))}))
	case b.wanted() && b.below == nil:
		desired, err := projection.BroughtPriorityClass(b.above, c.Target())
		if err != nil {
			return err
		}
		klog.FromContext(ctx).V(2).Info("Bringing a PriorityClass", "name", desired.Name)
		_, err = client.Create(ctx, desired, metav1.CreateOptions{FieldManager: v1alpha1.FieldManager})
		if apierrors.IsAlreadyExists(err) {
			return nil // the watch is about to show it
		}
		return err
	}
	return nil
}

// Brought are the PriorityClasses of the cluster that are ours.
func (c *Along) Brought() []*schedulingv1.PriorityClass {
	var out []*schedulingv1.PriorityClass
	for _, obj := range c.Here[identity.Priorities].GetStore().List() {
		class, ok := obj.(*schedulingv1.PriorityClass)
		if !ok {
			continue
		}
		if origin, marked := projection.OriginOf(class); marked && origin.LogicalCluster == c.LogicalCluster {
			out = append(out, class)
		}
	}
	return out
}
