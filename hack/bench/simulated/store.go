package simulated

import (
	"encoding/json"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/apimachinery/pkg/watch"
)

// store is all objects of one resource, and what has happened to them. The lock of the cluster guards it.
type store struct {
	cluster *Cluster
	objects map[types.NamespacedName]*unstructured.Unstructured
	// log is everything that has happened, the latest last: watches read on from where they are. changed is closed when there is more.
	log     []event
	changed chan struct{}
}

// event is a change of an object.
type event struct {
	revision int64
	kind     watch.EventType
	object   *unstructured.Unstructured
	raw      json.RawMessage
}

// store returns the one of a resource. The caller holds the lock.
func (c *Cluster) store(resource, group string) *store {
	key := resource + "." + group
	if c.stores[key] == nil {
		c.stores[key] = &store{cluster: c, objects: map[types.NamespacedName]*unstructured.Unstructured{}, changed: make(chan struct{})}
	}
	return c.stores[key]
}

func object(content map[string]any) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: content}
}

func nameOf(o *unstructured.Unstructured) types.NamespacedName {
	return types.NamespacedName{Namespace: o.GetNamespace(), Name: o.GetName()}
}

// put stores an object in the place of another of its name, as an API server does: objects that are stored are not changed any more.
func (s *store) put(o *unstructured.Unstructured) *unstructured.Unstructured {
	last := s.objects[nameOf(o)]
	kind := watch.Added
	if last == nil {
		o.SetUID(uuid.NewUUID())
		o.SetCreationTimestamp(metav1.Now())
		o.SetGeneration(1)
	} else {
		kind = watch.Modified
		o.SetUID(last.GetUID())
		o.SetCreationTimestamp(last.GetCreationTimestamp())
		o.SetGeneration(last.GetGeneration())
		if !sameSpec(last, o) {
			o.SetGeneration(last.GetGeneration() + 1)
		}
	}
	s.act(last, o)
	s.append(kind, o)
	s.objects[nameOf(o)] = o
	return o
}

// drop removes an object; nil if there is none.
func (s *store) drop(name types.NamespacedName) *unstructured.Unstructured {
	last := s.objects[name]
	if last == nil {
		return nil
	}
	last = last.DeepCopy()
	delete(s.objects, name)
	s.append(watch.Deleted, last)
	return last
}

func (s *store) append(kind watch.EventType, o *unstructured.Unstructured) {
	s.cluster.revision++
	o.SetResourceVersion(strconv.FormatInt(s.cluster.revision, 10))
	raw, _ := o.MarshalJSON() // what came as JSON can be written as JSON
	s.log = append(s.log, event{s.cluster.revision, kind, o, raw})
	close(s.changed)
	s.changed = make(chan struct{})
}

func sameSpec(a, b *unstructured.Unstructured) bool {
	one, err := json.Marshal(a.Object["spec"])
	if err != nil {
		return false
	}
	two, err := json.Marshal(b.Object["spec"])
	return err == nil && string(one) == string(two)
}

// act does what controllers would: a namespace is active, and a Deployment runs.
func (s *store) act(last, o *unstructured.Unstructured) {
	switch o.GetKind() {
	case "Namespace":
		o.Object["status"] = map[string]any{"phase": "Active"}
	case "Deployment":
		switch {
		case s.cluster.rollout == 0:
			o.Object["status"] = rolledOut(o)
		case last == nil:
			o.Object["status"] = map[string]any{}
			s.rollOut(o)
		default: // its controller has seen nothing yet
			o.Object["status"] = last.Object["status"]
			if last.GetGeneration() != o.GetGeneration() {
				s.rollOut(o)
			}
		}
	}
}

// rollOut has a Deployment be as its spec says once the time for that is over, unless it has been changed by then.
func (s *store) rollOut(o *unstructured.Unstructured) {
	name, uid, generation := nameOf(o), o.GetUID(), o.GetGeneration()
	time.AfterFunc(s.cluster.rollout, func() {
		s.cluster.mu.Lock()
		defer s.cluster.mu.Unlock()
		last := s.objects[name]
		if last == nil || last.GetUID() != uid || last.GetGeneration() != generation {
			return
		}
		next := last.DeepCopy()
		next.Object["status"] = rolledOut(next)
		s.append(watch.Modified, next)
		s.objects[name] = next
	})
}

// rolledOut is the status of a Deployment that is as its spec says.
func rolledOut(o *unstructured.Unstructured) map[string]any {
	replicas, _, _ := unstructured.NestedFieldNoCopy(o.Object, "spec", "replicas")
	return map[string]any{
		"observedGeneration": o.GetGeneration(), "replicas": replicas, "updatedReplicas": replicas, "readyReplicas": replicas,
		"availableReplicas": replicas,
		"conditions":        []any{condition("Available", "MinimumReplicasAvailable"), condition("Progressing", "NewReplicaSetAvailable")},
	}
}

func condition(kind, reason string) map[string]any {
	return map[string]any{"type": kind, "status": "True", "reason": reason}
}
