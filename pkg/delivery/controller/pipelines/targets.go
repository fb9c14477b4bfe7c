package pipelines

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	delivery "github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	manifold "github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	texts "github.com/manifold-dev/manifold/pkg/delivery"
	"github.com/manifold-dev/manifold/pkg/delivery/held"
	"github.com/manifold-dev/manifold/pkg/delivery/observe"
	"github.com/manifold-dev/manifold/pkg/delivery/weave"
	"github.com/manifold-dev/manifold/pkg/delivery/weave/versions"
	"github.com/manifold-dev/manifold/pkg/identity"
	"github.com/manifold-dev/manifold/pkg/placement/handmade"
	"github.com/manifold-dev/manifold/pkg/projection"
)

// lastSeen is what is said of a workload of which only the past is known.
const lastSeen = "this is what was seen last"

// seen is what is known of a target.
type seen struct {
	workloads []weave.WorkloadStatus
	// problem says why it cannot be read, or what of it, silent that this is since its cluster does not answer, and waits that it is about to be known.
	problem       string
	silent, waits bool
	// partly says that workloads may be missing, of which those that were shown before are shown again.
	partly bool
}

// target returns what is told of a target. Last is what was told before, nil if nothing was.
func (l *look) target(t weave.Target, last *weave.TargetStatus) (out weave.TargetStatus, silent bool) {
	out = weave.TargetStatus{Namespace: t.Namespace, ClusterRef: t.ClusterRef}
	if t.ClusterRef != nil {
		out.Kind, out.Name = t.ClusterRef.Kind, t.ClusterRef.Name
	}
	if lacks := l.lacks(t); lacks != "" {
		out.Denied, out.Error = true, texts.Said(lacks)
		return out, false
	}
	var now seen
	if t.ClusterRef == nil {
		now = l.here(t.Namespace)
	} else {
		now = l.there(t.ClusterRef, t.Namespace)
	}
	if now.waits {
		l.waits = true
		// What was told of another spec may be about another app.
		if l.patient && last != nil && l.pipeline.Status.ObservedGeneration == l.pipeline.Generation {
			return *last, false
		}
		l.holds = true
	}
	out.Workloads, out.Error = now.workloads, texts.Said(now.problem)
	if now.partly && last != nil {
		for _, workload := range last.Workloads {
			if slices.ContainsFunc(out.Workloads, func(w weave.WorkloadStatus) bool { return w.Kind == workload.Kind && w.Name == workload.Name }) {
				continue
			}
			out.Workloads = append(out.Workloads, unsure(workload))
		}
	}
	versions.Sort(out.Workloads)
	out.Ready = out.Error == "" && len(out.Workloads) > 0 && !slices.ContainsFunc(out.Workloads, func(w weave.WorkloadStatus) bool { return !w.Ready })
	return out, now.silent
}

// unsure is a workload as it was seen last.
func unsure(w weave.WorkloadStatus) weave.WorkloadStatus {
	w.Ready, w.Failed, w.Message = false, false, lastSeen
	return w
}

// here is what a namespace of the logical cluster has.
func (l *look) here(namespace string) seen {
	if _, err := l.namespaces.Get(namespace); apierrors.IsNotFound(err) {
		return seen{problem: fmt.Sprintf("there is no namespace %q", namespace)}
	}
	all := l.in(namespace)
	out := seen{problem: cmp.Or(all.problem, all.undefined), partly: all.problem != "" || all.waits, waits: all.waits}
	if all.waits {
		out.problem = cmp.Or(out.problem, "what is there of custom kinds is not known yet")
	}
	for _, f := range all.found {
		if said, known := versions.Of(f.object); known {
			l.released(&said, f.object)
			out.workloads = append(out.workloads, said)
		}
	}
	return out
}

// there is what a namespace of a cluster has.
func (l *look) there(ref *weave.ClusterReference, namespace string) seen {
	cluster, err := l.clusters.Get(ref.Name)
	if err != nil || ref.Kind != weave.KindCluster && ref.Kind != weave.KindGitopsCluster {
		return seen{problem: fmt.Sprintf("there is no %s %q: manifold cluster list", ref.Kind, ref.Name)}
	}
	out := seen{}
	_, err = l.namespaces.Get(namespace)
	known := !apierrors.IsNotFound(err)
	if known {
		out = l.placed(cluster.Name, namespace)
	}
	if !observe.Silent(cluster) {
		l.alone(cluster, namespace, known, &out)
	} else {
		out.silent, out.partly, out.waits = true, true, false
		out.problem = fmt.Sprintf("cluster %q does not answer: what is shown is what was seen last", cluster.Name)
		for i := range out.workloads {
			out.workloads[i] = unsure(out.workloads[i])
		}
	}
	return out
}

// placed is what a cluster has of what is in a namespace of the logical cluster.
func (l *look) placed(cluster, namespace string) seen {
	all := l.in(namespace)
	out := seen{problem: all.problem, partly: all.problem != "" || all.waits, waits: all.waits}
	for _, f := range all.found {
		said, there, err := l.placedIn(cluster, f)
		switch {
		case errors.Is(err, held.ErrNotYet):
			out.waits, out.partly = true, true
		case err != nil:
			out.problem = cmp.Or(out.problem, texts.Said(err.Error()))
			out.partly = true
		case there:
			out.workloads = append(out.workloads, said)
		}
	}
	return out
}

// placedIn returns what a cluster has of an object, false if it has no share of it.
func (l *look) placedIn(cluster string, f found) (weave.WorkloadStatus, bool, error) {
	switch o := f.object.(type) {
	case *delivery.Application:
		said, there := versions.ApplicationIn(o, cluster)
		l.released(&said, o)
		return said, there, nil
	case *unstructured.Unstructured:
		return l.copied(cluster, f.kind, o)
	}
	share, placed := identity.DecisionOf(f.object)[cluster]
	if !placed {
		return weave.WorkloadStatus{}, false, nil
	}
	reported, heard := identity.BreakdownOf(f.object)[cluster]
	of := versions.Placed{Share: share, Generation: f.object.GetGeneration(), Reported: reported, Heard: heard}
	kind, known := projection.KindOf(f.object)
	if !known {
		return weave.WorkloadStatus{}, false, nil
	}
	version, err := l.Versions.In(kind, f.object, cluster)
	if err != nil {
		return weave.WorkloadStatus{}, false, err
	}
	said, there := versions.In(version.Object, of)
	return said, there, nil
}

// released has an application say versions that mean the same in every namespace.
func (l *look) released(said *weave.WorkloadStatus, object metav1.Object) {
	if app, is := object.(*delivery.Application); is {
		versions.Released(said, app, func(name string) *delivery.ApplicationRevision {
			revision, _ := l.revisions.ApplicationRevisions(app.Namespace).Get(name) // nil if it is not there
			return revision
		})
	}
}

// copied returns what a cluster has of an object of a custom kind.
func (l *look) copied(cluster string, kind schema.GroupKind, above *unstructured.Unstructured) (weave.WorkloadStatus, bool, error) {
	decision := identity.DecisionOf(above)
	if _, placed := decision[cluster]; !placed {
		return weave.WorkloadStatus{}, false, nil
	}
	copies := identity.CopiesOf(above)
	reported, heard := copies[cluster]
	hold := held.Hold{}
	if l.Holds != nil {
		var err error
		if hold, err = l.Holds(kind, above, cluster); err != nil {
			return weave.WorkloadStatus{}, false, err
		}
	}
	if hold.Absent {
		return weave.WorkloadStatus{}, false, nil
	}
	said, there := versions.CopyIn(versions.Copy{
		Above: above, Content: hold.Content, Reported: reported, Heard: heard, Alone: len(decision) == 1 && len(copies) <= 1,
	})
	return said, there, nil
}

// alone adds what a cluster has that is not of the logical one, if its admin lets that be seen. Shared says that the logical cluster has the namespace as well.
func (l *look) alone(cluster *manifold.Cluster, namespace string, shared bool, out *seen) {
	if !cluster.Spec.Allows.Pipelines {
		lacks := fmt.Sprintf("there is no namespace %q in the logical cluster", namespace)
		if shared {
			lacks = l.in(namespace).undefined
		}
		if lacks != "" && out.problem == "" {
			out.problem = fmt.Sprintf("%s; to show what others run in the cluster: %s", lacks, handmade.LetPipelinesIn(cluster.Name, cluster.Spec.Allows))
		}
		return
	}
	for _, sight := range l.sightsOf(cluster, namespace, shared) {
		objects, known := l.see(cluster.Name, sight, out)
		if sight.Resource == namespaces {
			if known && len(objects) == 0 {
				out.problem = fmt.Sprintf("there is no namespace %q in cluster %q", namespace, cluster.Name)
			}
			continue
		}
		for _, o := range objects {
			l.takeIn(o, out)
		}
	}
}

// takeIn adds an object that a cluster has, unless it comes from the logical cluster, is another's, or is known already.
func (l *look) takeIn(o *unstructured.Unstructured, out *seen) {
	if !l.isAlone(o) {
		return
	}
	said, known := versions.Of(o)
	if !known || slices.ContainsFunc(out.workloads, func(w weave.WorkloadStatus) bool { return w.Kind == said.Kind && w.Name == said.Name }) {
		return
	}
	out.workloads = append(out.workloads, said)
}

// see returns what is seen of a cluster.
func (l *look) see(cluster string, sight Sight, out *seen) (objects []*unstructured.Unstructured, known bool) {
	now := l.Sights.Look(cluster, sight)
	switch {
	case now.Problem != "":
		out.problem, out.partly, l.again = cmp.Or(out.problem, texts.Said(now.Problem)), true, true
	case !now.Known:
		out.problem, out.partly, out.waits = cmp.Or(out.problem, fmt.Sprintf("what cluster %q has is not known yet", cluster)), true, true
	}
	return now.Objects, now.Known
}
