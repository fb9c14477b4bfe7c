package simulate

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/placement"
	"github.com/manifold-dev/manifold/pkg/placement/engine"
	"github.com/manifold-dev/manifold/pkg/projection"
	"github.com/manifold-dev/manifold/pkg/summary"
)

// rounds bounds how often all is decided anew because something has moved. What needs longer goes on for ever.
const rounds = 20

// outcome is what becomes of a workload.
type outcome struct {
	decided  bool
	before   placement.Decision
	result   placement.Result
	remedies map[string][]string
	// steps are what was said on the way, before the last decision.
	steps []string
	// told is what the decisions about others say to it.
	told []string
}

type outcomes map[engine.Ref]*outcome

// settle decides about all workloads until none moves any more. In each round all that was decided has come to run.
func (w *world) settle(ctx context.Context, refs []engine.Ref) (outcomes, error) {
	now := time.Now()
	out := outcomes{}
	for round := range rounds {
		moved, err := w.round(ctx, now, refs, round == 0, out)
		if err != nil || len(moved) == 0 {
			return out, err
		}
	}
	return nil, fmt.Errorf("workloads still move after %d rounds of decisions", rounds)
}

// round decides about all workloads once, and lets what was decided come to run. It returns what has changed.
func (w *world) round(ctx context.Context, now time.Time, refs []engine.Ref, first bool, out outcomes) (map[engine.Ref]placement.Result, error) {
	moved := map[engine.Ref]placement.Result{}
	if err := w.ask(ctx, now, func(e *engine.Engine) error { return w.decide(e, refs, first, out, moved) }); err != nil {
		return nil, err
	}
	for ref, result := range moved {
		w.store(ref, result)
	}
	w.run(refs)
	return moved, nil
}

// decide decides about all workloads, and again about those that others then concern, as long as there are some.
func (w *world) decide(e *engine.Engine, refs []engine.Ref, first bool, out outcomes, moved map[engine.Ref]placement.Result) error {
	queue, again := slices.Clone(refs), map[engine.Ref]int{}
	for ref, booked := range w.booked {
		if work, ok := w.read(ref); ok {
			e.Book(work, booked) // it goes on to wait
		}
	}
	for ; len(queue) > 0; queue = queue[1:] {
		ref := queue[0]
		kind, o, ok := w.workload(ref)
		if !ok || kind.Demand(o).Finished {
			continue
		}
		work, err := kind.WorkloadOf(o)
		if err != nil {
			return fmt.Errorf("%s: %w", ref, err)
		}
		current, err := placement.ParseDecision(o.GetAnnotations()[v1alpha1.AnnotationPlacement])
		if err != nil {
			return fmt.Errorf("%s: %w", ref, err)
		}
		if last, has := moved[ref]; has {
			current, work.Failures = last.Decision, last.Failures
		}
		if first && again[ref] == 0 {
			work.Repinned = w.changed[ref].repinned
			if w.changed[ref].resized {
				work.Failures = nil
			}
		}
		decided, known := e.Decide(work, current)
		if !known {
			return fmt.Errorf("%s: the clusters are not known", ref)
		}
		out.of(ref).follow(decided, current)
		if !decided.Decision.Equal(current) || !decided.Failures.Equal(work.Failures) {
			e.Placed(work, decided.Decision)
			moved[ref] = decided.Result
		}
		for _, stop := range decided.Stops {
			if told := out.of(stop.Ref); !slices.Contains(told.told, stop.Message) {
				told.told = append(told.told, stop.Message)
			}
		}
		w.booked[ref] = decided
		for _, other := range e.Book(work, decided) {
			if again[other]++; again[other] < rounds {
				queue = append(queue, other)
			}
		}
	}
	return nil
}

// of is the outcome for a workload.
func (o outcomes) of(ref engine.Ref) *outcome {
	if o[ref] == nil {
		o[ref] = &outcome{}
	}
	return o[ref]
}

// follow takes one more decision into account.
func (o *outcome) follow(d engine.Decided, current placement.Decision) {
	switch {
	case !o.decided:
		o.decided, o.before = true, current
	case d.Decision.Equal(o.result.Decision):
		return
	case !o.result.Decision.Equal(o.before) || len(o.before) == 0:
		o.steps = append(o.steps, o.result.Message())
	}
	o.result, o.remedies = d.Result, d.Remedies()
}

// read finds what placement needs to know of a workload.
func (w *world) read(ref engine.Ref) (placement.Workload, bool) {
	kind, o, ok := w.workload(ref)
	if !ok {
		return placement.Workload{}, false
	}
	work, err := kind.WorkloadOf(o)
	return work, err == nil
}

// workload finds a workload.
func (w *world) workload(ref engine.Ref) (projection.Kind, projection.Object, bool) {
	for _, k := range projection.Workloads() {
		if o, ok := w.objects[k.GVK.GroupKind()][ref.Namespace+"/"+ref.Name]; ok && k.GVK.Kind == ref.Kind {
			return k, o.(projection.Object), true
		}
	}
	return projection.Kind{}, nil, false
}

// store keeps a decision.
func (w *world) store(ref engine.Ref, result placement.Result) {
	if kind, o, ok := w.workload(ref); ok {
		w.annotate(kind, o, v1alpha1.AnnotationPlacement, result.Annotation())
	}
}

// annotate puts an object with one more annotation in the place of another.
func (w *world) annotate(kind projection.Kind, o projection.Object, key, value string) {
	next := o.DeepCopyObject().(projection.Object)
	annotations := next.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[key] = value
	next.SetAnnotations(annotations)
	w.objects[kind.GVK.GroupKind()][nameOf(next)] = next
}

// run has all that was decided run, and nothing else: by the breakdowns, and by what is requested of the clusters.
func (w *world) run(refs []engine.Ref) {
	more := map[string]placement.Resources{}
	for _, ref := range refs {
		kind, o, ok := w.workload(ref)
		if !ok || kind.Demand(o).Finished || kind.Demand(o).Arrived > 0 {
			continue
		}
		decision, err := placement.ParseDecision(o.GetAnnotations()[v1alpha1.AnnotationPlacement])
		work, workErr := kind.WorkloadOf(o)
		before, breakdownErr := summary.ParseBreakdown(o.GetAnnotations()[v1alpha1.AnnotationStatus])
		if err != nil || workErr != nil || breakdownErr != nil {
			continue // what cannot be read was refused before
		}
		after := summary.Breakdown{}
		for cluster, share := range decision {
			after[cluster] = summary.ClusterStatus{Replicas: share.Replicas, Ready: share.Replicas, Available: share.Replicas, Updated: share.Replicas}
			add(more, cluster, work.Requests, int64(share.Replicas))
		}
		for cluster, status := range before {
			add(more, cluster, work.Requests, -int64(status.Replicas+status.Succeeded+status.Failed))
		}
		w.annotate(kind, o, v1alpha1.AnnotationStatus, after.String())
	}
	for _, c := range all[*v1alpha1.Cluster](w, clusterKind) {
		c = c.DeepCopy()
		c.Status.Requested = plus(c.Status.Requested, more[c.Name])
		w.objects[clusterKind][nameOf(c)] = c
	}
}

func add(sums map[string]placement.Resources, cluster string, requests placement.Resources, n int64) {
	if sums[cluster] == nil {
		sums[cluster] = placement.Resources{}
	}
	sums[cluster].Add(requests, n)
}

// plus is a list with some amounts more.
func plus(list corev1.ResourceList, more placement.Resources) corev1.ResourceList {
	out := maps.Clone(list)
	if out == nil {
		out = corev1.ResourceList{}
	}
	for name, amount := range more {
		sum := out[name]
		if name == corev1.ResourceCPU {
			sum.Add(*resource.NewMilliQuantity(amount, resource.DecimalSI))
		} else {
			sum.Add(*resource.NewQuantity(amount, resource.DecimalSI))
		}
		out[name] = sum
	}
	return out
}
