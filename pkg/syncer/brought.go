package syncer

import (
	"context"
	"fmt"

	schedulingv1 "k8s.io/api/scheduling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/internal/typed"
	"github.com/manifold-dev/manifold/pkg/identity"
	"github.com/manifold-dev/manifold/pkg/projection"
	"github.com/manifold-dev/manifold/pkg/syncer/steps"
	"github.com/manifold-dev/manifold/pkg/syncer/writer"
)

// byPriority indexes workloads by the PriorityClass of their pods.
const byPriority = "manifold.dev/priority"

var priorityResource = schedulingv1.SchemeGroupVersion.WithResource("priorityclasses")

func priorityKey(name string) identity.Key {
	return identity.Key{Resource: priorityResource, Name: name}
}

// priorityOf returns the PriorityClass that the pods of a workload name, "" for none.
func priorityOf(kind projection.Kind, of projection.Object) string {
	if template := kind.Demand(of).Template; template != nil {
		return template.Spec.PriorityClassName
	}
	return ""
}

func indexPriority(kind projection.Kind) cache.IndexFunc {
	return func(obj any) ([]string, error) {
		if o, ok := obj.(projection.Object); ok && kind.Workload && !kind.Mirror(o) {
			if name := priorityOf(kind, o); name != "" {
				return []string{name}, nil
			}
		}
		return nil, nil
	}
}

func (c classes) priority(name string) *schedulingv1.PriorityClass {
	obj, _, _ := c[priorityResource].GetIndexer().GetByKey(name) // reading a cache cannot fail
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

func (s *Syncer) gatherPriority(name string) brought {
	leaving, _ := s.Leaving(s.cluster)
	b := brought{above: s.Upstream.classes.priority(name), below: s.below.classes.priority(name)}
	b.named = !leaving && s.Upstream.namesPriority(name, s.cluster)
	b.allowed = b.above != nil && s.letsIn(b.above)
	if b.below != nil {
		origin, marked := projection.OriginOf(b.below)
		b.mine = marked && origin.LogicalCluster == s.target.LogicalCluster
	}
	return b
}

// letsIn reports whether the admin of the cluster lets a PriorityClass come along.
func (s *Syncer) letsIn(class *schedulingv1.PriorityClass) bool {
	if s.Allows == nil || !projection.GoesAlong(class) {
		return false
	}
	upTo := s.Allows(s.cluster).PriorityClassesUpTo
	return upTo != nil && class.Value <= *upTo
}

// namesPriority reports whether a workload names a PriorityClass that a cluster should run, or still does.
func (u *Upstream) namesPriority(name, cluster string) bool {
	for _, kind := range projection.Workloads() {
		found, _ := u.Stores[kind.Resource].ByIndex(byPriority, name) // the index exists: NewUpstream made it
		for _, obj := range found {
			if u.runs(identity.Workload{Kind: kind, Object: obj.(projection.Object)}, cluster) {
				return true
			}
		}
	}
	return false
}

// routePriority has the PriorityClasses looked at that two versions of a workload name, nil for none.
func (u *Upstream) routePriority(kind projection.Kind, versions ...projection.Object) {
	for _, version := range versions {
		if version == nil {
			continue
		}
		if name := priorityOf(kind, version); name != "" {
			for _, s := range u.Syncers() {
				s.enqueue(priorityKey(name))
			}
		}
	}
}

// priorityHandler looks again at the PriorityClasses of the logical cluster that change.
func (u *Upstream) priorityHandler() cache.ResourceEventHandler {
	look := func(obj any) {
		if class, ok := untombed(obj).(*schedulingv1.PriorityClass); ok {
			for _, s := range u.Syncers() {
				s.enqueue(priorityKey(class.Name))
			}
		}
	}
	return cache.ResourceEventHandlerFuncs{AddFunc: look, UpdateFunc: func(_, obj any) { look(obj) }, DeleteFunc: look}
}

// priorityChanged looks again at a PriorityClass of the cluster, and at what waits for it.
func (s *Syncer) priorityChanged(obj any) {
	if class, ok := untombed(obj).(*schedulingv1.PriorityClass); ok {
		s.enqueue(priorityKey(class.Name))
		s.wakeWaiting(priorityKey(class.Name))
	}
}

// comesAlong returns how it stands with a class that a workload names and the cluster lacks: whether it is on its way, and the problem if it
// cannot come.
func (s *Syncer) comesAlong(workload identity.Key, r projection.Requirement) (coming bool, problem string) {
	class := s.Upstream.classes.priority(r.Name)
	if r.Class.Resource != priorityResource || class == nil || !s.letsIn(class) {
		return false, ""
	}
	key := priorityKey(r.Name)
	st := s.await(key, workload)
	if st.problem == "" {
		s.enqueue(key)
	}
	return true, st.problem
}

// syncPriority brings a PriorityClass in line that comes along with workloads, or came.
func (s *Syncer) syncPriority(ctx context.Context, key identity.Key) error {
	if s.givenUp() {
		return nil
	}
	b := s.gatherPriority(key.Name)
	err := s.actPriority(ctx, b)
	if err == nil {
		if s.stateOf(key).problem != "" {
			s.setState(key, state{})
		}
		return nil
	}
	if writer.Passes(err) {
		return err
	}
	s.queue.AddAfter(key, steps.ConflictRetry)
	if problem := fmt.Sprintf("PriorityClass %s cannot come along: %s", key.Name, err); s.stateOf(key).problem != problem {
		s.setState(key, state{problem: problem})
	}
	return nil
}

func (s *Syncer) actPriority(ctx context.Context, b brought) error {
	client := s.client.SchedulingV1().PriorityClasses()
	switch {
	case b.mine && (!b.wanted() || !projection.SamePriority(b.above, b.below)):
		klog.FromContext(ctx).V(2).Info("Removing a PriorityClass", "name", b.below.Name)
		if leaving, manner := s.Leaving(s.cluster); leaving && manner == v1alpha1.RemoveOrphan {
			patch := fmt.Appendf(nil, `{"metadata":{"uid":%q,"labels":{%q:null}}}`, b.below.UID, v1alpha1.LabelLogicalCluster)
			_, err := client.Patch(ctx, b.below.Name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: v1alpha1.FieldManager})
			return typed.IgnoreGone(err)
		}
		// Where another one is wanted, the watch tells when this one is gone.
		return typed.IgnoreGone(client.Delete(ctx, b.below.Name, metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(b.below.UID))}))
	case b.wanted() && b.below == nil:
		desired, err := projection.BroughtPriorityClass(b.above, s.target)
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

// broughtPriorities are the PriorityClasses of the cluster that are ours.
func (s *Syncer) broughtPriorities() []*schedulingv1.PriorityClass {
	var out []*schedulingv1.PriorityClass
	for _, obj := range s.below.classes[priorityResource].GetStore().List() {
		class, ok := obj.(*schedulingv1.PriorityClass)
		if !ok {
			continue
		}
		if origin, marked := projection.OriginOf(class); marked && origin.LogicalCluster == s.target.LogicalCluster {
			out = append(out, class)
		}
	}
	return out
}
