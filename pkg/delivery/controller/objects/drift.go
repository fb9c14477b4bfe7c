package objects

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	autoscalingv2 "k8s.io/api/autoscaling/v2"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	manifold "github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/delivery"
	"github.com/manifold-dev/manifold/pkg/delivery/contained"
	"github.com/manifold-dev/manifold/pkg/delivery/copies"
	"github.com/manifold-dev/manifold/pkg/delivery/drift"
	"github.com/manifold-dev/manifold/pkg/delivery/wanted"
)

// Drift says what of a difference counts.
type Drift struct {
	Spec *v1alpha1.Drift
	// Heal has what differs be put back.
	Heal bool
	// Missing are the objects of which it is known that somebody has deleted them.
	Missing []wanted.Key
	Now     time.Time
}

// driftMemory is what is remembered of differences. It saves requests.
type driftMemory struct {
	// there are the objects that were seen as they were applied.
	there map[wanted.Key]bool
	// compared is what came of comparing each object.
	compared map[wanted.Key]compared
	// patience is how often each was put back.
	patience map[wanted.Key]drift.Patience
	// unhealed says why an object could not be put back.
	unhealed map[wanted.Key]string
}

// compared is what came of comparing an object.
type compared struct {
	// seen names the state that was compared, and asked what of it the server was asked about.
	seen, asked string
	differences []drift.Difference
	// reach says which clusters these reach, as the object was placed.
	reach   drift.Reach
	placed  string
	unclear string
}

// Inspection is what came of looking at the objects of an application.
type Inspection struct {
	// Found are the objects that are not what was applied, in their order.
	Found []drift.Object
	// Healed are those that were put back.
	Healed []drift.Object
	// Again is when there may be more to put back, zero if there is not.
	Again time.Time
}

// look has the objects looked at again at some time.
func (i *Inspection) look(at time.Time) {
	if i.Again.IsZero() || at.Before(i.Again) {
		i.Again = at
	}
}

// Inspect compares the objects of an application with what was applied, and puts back what is to be, after the order was carried out. The server is asked once for each state of an
// object that is not written as the manifest writes it.
func (c *Carrier) Inspect(ctx context.Context, order Order, memory *Memory) (out Inspection, err error) {
	var errs []error
	for _, object := range order.Wanted.Objects {
		present, watched := c.store.Get(order.Account.Namespace, object.Key)
		if !watched || c.pending(order, object, present, memory) {
			continue
		}
		differs, err := c.inspect(ctx, order, object, present, &memory.drift)
		if err == nil && differs != nil {
			err = c.answer(ctx, order, object, present, memory, differs, &out)
		}
		errs = append(errs, err)
	}
	return out, errors.Join(errs...)
}

// answer puts back an object that differs, if it is to be and its time has come, and takes it down.
func (c *Carrier) answer(ctx context.Context, order Order, object wanted.Object, present metav1.Object, memory *Memory, differs *drift.Object, out *Inspection) error {
	m := &memory.drift
	heals := order.Drift.Heal && differs.Unclear == ""
	var err error
	if heals && !m.patience[object.Key].Due().After(order.Drift.Now) {
		if err = c.heal(ctx, order, object, present, memory); err == nil {
			out.Healed = append(out.Healed, *differs)
			out.look(m.patience[object.Key].Due())
			return nil
		}
		if refusal := new(RefusedError); errors.As(err, &refusal) {
			m.unhealed[object.Key], err = delivery.Said(refusal.Err.Error()), nil
		}
	}
	if heals {
		out.look(m.patience[object.Key].Due())
	}
	differs.Healed, differs.Unhealed = m.patience[object.Key].Times, m.unhealed[object.Key]
	out.Found = append(out.Found, *differs)
	return err
}

// begin forgets what is no longer wanted, and learns what is known to be missing.
func (m *driftMemory) begin(order Order) {
	if m.there == nil {
		*m = driftMemory{map[wanted.Key]bool{}, map[wanted.Key]compared{}, map[wanted.Key]drift.Patience{}, map[wanted.Key]string{}}
	}
	wants := map[wanted.Key]bool{}
	for _, object := range order.Wanted.Objects {
		wants[object.Key] = true
	}
	gone := func(key wanted.Key) bool { return !wants[key] }
	maps.DeleteFunc(m.there, func(key wanted.Key, _ bool) bool { return gone(key) })
	maps.DeleteFunc(m.compared, func(key wanted.Key, _ compared) bool { return gone(key) })
	maps.DeleteFunc(m.patience, func(key wanted.Key, _ drift.Patience) bool { return gone(key) })
	maps.DeleteFunc(m.unhealed, func(key wanted.Key, _ string) bool { return gone(key) })
	for _, key := range order.Drift.Missing {
		if wants[key] {
			m.there[key] = true
		}
	}
}

// pending reports whether an object is still on its way to what is wanted, so that there is nothing to compare yet.
func (c *Carrier) pending(order Order, object wanted.Object, present metav1.Object, memory *Memory) bool {
	if last, known := memory.written[object.Key]; known && present != nil && !newer(present, last.object) {
		return true
	}
	if present == nil || present.GetDeletionTimestamp() != nil {
		return !order.Settled || !memory.drift.there[object.Key] || memory.drift.patience[object.Key].Fresh(order.Drift.Now)
	}
	return !object.Applied(present) || !order.Owner.of(object).Selected && !Owned(present, order.Owner)
}

// inspect compares one object, and returns nil if it is what was applied.
func (c *Carrier) inspect(ctx context.Context, order Order, object wanted.Object, present metav1.Object, m *driftMemory) (*drift.Object, error) {
	out := &drift.Object{Group: object.Group, Kind: object.Kind, Name: object.Name}
	if present == nil || present.GetDeletionTimestamp() != nil {
		out.Missing = true
		if !c.store.stays(object) {
			out.Clusters = clustersOf(object) // what is gone above goes from them
		}
		return out, nil
	}
	m.there[object.Key] = true
	result, err := c.compare(ctx, order, object, present, m.compared[object.Key])
	if err != nil {
		return nil, err
	}
	m.compared[object.Key] = result
	if len(result.differences) == 0 && result.unclear == "" {
		return nil, nil
	}
	if out.Unclear = result.unclear; out.Unclear != "" {
		out.Clusters = clustersOf(object)
		return out, nil
	}
	out.Clusters, out.Count = result.reach.Clusters(), len(result.differences)
	out.Fields = drift.Fields(schema.GroupKind{Group: object.Group, Kind: object.Kind}, result.differences, result.reach)
	return out, nil
}

// compare compares an object with its manifest, and where it is written otherwise, with what the server would make of that. Last is what came of it
// before.
func (c *Carrier) compare(ctx context.Context, order Order, object wanted.Object, present metav1.Object, last compared) (compared, error) {
	ignored := c.ignored(order, object)
	out := compared{seen: digest(object.Hash, ignored, present.GetUID(), present.GetResourceVersion())}
	if out.seen == last.seen {
		return last, nil
	}
	at, err := c.place(order.Account, object)
	if err != nil {
		return out, err
	}
	of := object
	of.Manifest = at.manifest(object, order.Owner, false)
	manifest := drift.Stored(drift.Without(of.Manifest, ignored))
	written, err := c.written(object, present, manifest)
	if err != nil {
		return out, err
	}
	if len(written) == 0 {
		return out, nil
	}
	out.placed = present.GetAnnotations()[manifold.AnnotationPlacement]
	out.asked = digest(object.Hash, ignored, present.GetUID(), written)
	if out.asked == last.asked && (len(last.differences) == 0 || out.placed == last.placed) {
		last.seen = out.seen
		return last, nil
	}
	found, would, err := c.try(ctx, order, object, at)
	if refusal := new(RefusedError); errors.As(err, &refusal) {
		out.unclear = delivery.Said(refusal.Err.Error())
		return out, nil
	}
	if err != nil {
		return out, err
	}
	if out.differences = drift.Compare(manifest, would, found); len(out.differences) > 0 {
		out.reach = comparison{object, present, manifest, would, found}.reach(out.differences, order.Holds)
	}
	return out, nil
}

// written are the fields of an object that are not written as its manifest writes them. What is watched in another version of the API, or of which the
// metadata alone is, cannot be compared so, and counts as one of them.
func (c *Carrier) written(object wanted.Object, present metav1.Object, manifest *unstructured.Unstructured) ([]drift.Difference, error) {
	gvk := object.Manifest.GroupVersionKind()
	resource, known := c.store.Resource(gvk.GroupKind())
	_, unseen := present.(*metav1.PartialObjectMetadata)
	if !unseen && (!known || resource.Version != gvk.Version) {
		return []drift.Difference{{Path: "/apiVersion", Wanted: gvk.Version, Found: present.GetResourceVersion()}}, nil
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(present)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", object.Key, err)
	}
	out := drift.Compare(manifest, manifest, &unstructured.Unstructured{Object: content})
	switch {
	case unseen && present.GetNamespace() == "": // most of these kinds have no generation
		out = append(out, drift.Difference{Path: "/metadata/resourceVersion", Found: present.GetResourceVersion()})
	case unseen: // whatever else is changed counts as another generation
		out = append(out, drift.Difference{Path: "/metadata/generation", Found: present.GetGeneration()})
	}
	return out, nil
}

// try returns an object as it is, and as it would be if it were applied.
func (c *Carrier) try(ctx context.Context, order Order, object wanted.Object, at place) (found, would *unstructured.Unstructured, err error) {
	client, err := c.client(order.Account)
	if err != nil {
		return nil, nil, err
	}
	if found, err = at.in(client).Get(ctx, object.Name, metav1.GetOptions{}); err != nil {
		return nil, nil, refusal(object.Key, err)
	}
	manifest := at.manifest(object, order.Owner, order.Account.ServiceAccount == "")
	manifest.SetUID(found.GetUID())
	manifest.SetResourceVersion(found.GetResourceVersion())
	would, err = at.in(client).Apply(ctx, object.Name, manifest, metav1.ApplyOptions{FieldManager: at.manager(order.Owner), Force: true, DryRun: []string{metav1.DryRunAll}})
	return found, would, refusal(object.Key, err)
}

// ignored are the fields of an object of which a difference does not count: those that the application names, and those that delivery itself or an
// autoscaler sets.
func (c *Carrier) ignored(order Order, object wanted.Object) []string {
	out := drift.Ignored(order.Drift.Spec, schema.GroupKind{Group: object.Group, Kind: object.Kind}, object.Name)
	scaled := map[string]bool{}
	if _, has, _ := unstructured.NestedFieldNoCopy(object.Manifest.Object, "spec", "replicas"); has {
		scaled[object.Key.String()] = c.store.Autoscaled(order.Account.Namespace, object.Key)
	}
	return append(out, copies.Owned(object.Variant, object.Manifest, scaled)...)
}

// heal applies an object anew, and leaves alone what is not compared of it.
func (c *Carrier) heal(ctx context.Context, order Order, object wanted.Object, present metav1.Object, memory *Memory) error {
	m := &memory.drift
	m.patience[object.Key] = m.patience[object.Key].Next(order.Drift.Now)
	if ignored := c.ignored(order, object); present != nil && len(ignored) > 0 {
		found, err := c.whole(ctx, order, object, present)
		if err != nil {
			return err
		}
		object.Manifest = drift.Keeping(object.Manifest, found, ignored)
	}
	stored, err := c.Apply(ctx, order.Account, order.Owner, object)
	if err != nil {
		return err
	}
	delete(m.unhealed, object.Key)
	memory.written[object.Key] = written{object.Hash, stored}
	return nil
}

// whole is an object with all of its fields. Of what is watched by its metadata the rest is asked for.
func (c *Carrier) whole(ctx context.Context, order Order, object wanted.Object, present metav1.Object) (*unstructured.Unstructured, error) {
	if _, unseen := present.(*metav1.PartialObjectMetadata); !unseen {
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(present)
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", object.Key, err)
		}
		return &unstructured.Unstructured{Object: content}, nil
	}
	at, err := c.place(order.Account, object)
	if err != nil {
		return nil, err
	}
	client, err := c.client(order.Account)
	if err != nil {
		return nil, err
	}
	found, err := at.in(client).Get(ctx, object.Name, metav1.GetOptions{})
	return found, refusal(object.Key, err)
}

// digest tells states apart.
func digest(of ...any) string {
	content, _ := json.Marshal(of) // what comes from the API always marshals
	sum := sha256.Sum256(content)
	return string(sum[:])
}

// Autoscaled reports whether an autoscaler of the namespace sets the replicas of a workload, whoever has made it.
func (s *Store) Autoscaled(namespace string, workload wanted.Key) bool {
	kind, known := s.kinds[autoscalers]
	if !known {
		return false
	}
	found, err := kind.informer.GetIndexer().ByIndex(byScaled, namespace+"/"+workload.String())
	return err == nil && len(found) > 0
}

var autoscalers = contained.Autoscalers.GVK.GroupKind()

// byScaled indexes autoscalers by the workloads that they scale.
const byScaled = "delivery.manifold.dev/scaled"

func indexScaled(obj any) ([]string, error) {
	scaler, is := obj.(*autoscalingv2.HorizontalPodAutoscaler)
	if !is {
		return nil, nil
	}
	of := scaler.Spec.ScaleTargetRef
	return []string{scaler.Namespace + "/" + wanted.Key{Kind: of.Kind, Name: of.Name}.String()}, nil
}
