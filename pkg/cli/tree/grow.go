package tree

import (
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/identity"
	"github.com/manifold-dev/manifold/pkg/projection"
)

// grower makes the tree of some objects.
type grower struct {
	*index
	objects
	// all tells to show each pod and revision.
	all bool
	// shown are the objects that are in the tree already, and missing the names that are.
	shown   map[types.UID]bool
	missing map[key]bool
}

// grow makes the tree of the root. It reads its arguments alone.
func grow(from objects, all bool) *Node {
	g := &grower{
		index: newIndex(from), objects: from, all: all,
		shown: map[types.UID]bool{}, missing: map[key]bool{},
	}
	var root *Node
	if app, ok := from.root.(*v1alpha1.Application); ok {
		root = g.application(app)
	} else {
		root = g.whole(from.root, "")
	}
	root.Namespace = from.root.GetNamespace()
	g.upwards(root, from.root)
	return root
}

// node shows an object without what belongs to it.
func (g *grower) node(obj projection.Object, relation Relation) *Node {
	g.shown[obj.GetUID()] = true
	n := &Node{
		Kind: obj.GetObjectKind().GroupVersionKind().Kind, Name: obj.GetName(), Relation: relation,
		Clusters: g.clustersOf(obj), Health: Healthy,
	}
	n.judge(obj)
	g.stays(n, obj)
	g.unplaced(n, obj)
	if awaits := identity.Awaits(obj); awaits != "" {
		n.Health, n.Status = worse(n.Health, Progressing), phrases(n.Status, awaits)
	}
	if kind, ok := kindOf(obj); ok && !kind.Workload {
		n.Status = phrases(n.Status, held(obj))
	}
	g.warnings(n, obj)
	g.drifted(n, obj)
	if obj.GetDeletionTimestamp() != nil {
		n.Health, n.Status = worse(n.Health, Progressing), phrases("being deleted", n.Status)
	}
	return n
}

// stays tells why an object that others need is in no cluster.
func (g *grower) stays(n *Node, obj projection.Object) {
	kind, ok := kindOf(obj)
	if !ok || kind.Workload || kind.Mirror(obj) {
		return
	}
	if ok, reason := kind.Projectable(obj); !ok {
		n.Status = phrases(n.Status, "stays in the logical cluster: "+reason)
	}
}

// unplaced tells that no cluster runs a workload.
func (g *grower) unplaced(n *Node, obj projection.Object) {
	if !workload(obj) || finished(obj) || len(identity.WholeDecisionOf(obj)) > 0 {
		return
	}
	kind, _ := kindOf(obj)
	if demand := kind.Demand(obj); demand.Replicas > 0 {
		n.Health, n.Status = Degraded, phrases("no cluster chosen", n.Status)
	}
}

// whole shows an object with what it owns, what it needs and what leads to it.
func (g *grower) whole(obj projection.Object, relation Relation) *Node {
	n := g.node(obj, relation)
	n.Children = append(n.Children, g.shares(obj)...)
	needs := g.needs(obj) // before what it owns, which may need the same
	g.ownedBy(n, obj)
	n.Children = append(n.Children, needs...)
	n.Children = append(n.Children, g.reachedBy(obj)...)
	return n
}

// ownedBy adds what the object owns: pods and old revisions together, everything else with what it owns in turn.
func (g *grower) ownedBy(n *Node, obj projection.Object) {
	var pods []*corev1.Pod
	var old, revisions []projection.Object
	for _, child := range g.owned(obj) {
		if g.shown[child.GetUID()] {
			continue
		}
		switch o := child.(type) {
		case *corev1.Pod:
			pods = append(pods, o)
		case *appsv1.ControllerRevision:
			revisions = append(revisions, o)
		case *appsv1.ReplicaSet:
			if !g.all && !workload(o) && o.Status.Replicas == 0 && (o.Spec.Replicas == nil || *o.Spec.Replicas == 0) {
				old = append(old, o)
				continue
			}
			n.Children = append(n.Children, g.part(o))
		default:
			n.Children = append(n.Children, g.part(o))
		}
	}
	n.Children = append(n.Children, g.pods(pods)...)
	n.Children = append(n.Children, g.fold(revisions, latestRevision(revisions))...)
	n.Children = append(n.Children, g.fold(old, "of earlier revisions, scaled to 0")...)
	n.Children = append(n.Children, g.claims(obj)...)
}

// part shows something that belongs to another object. A workload that is placed by itself brings all that belongs to it.
func (g *grower) part(obj projection.Object) *Node {
	if workload(obj) {
		return g.whole(obj, Owns)
	}
	n := g.node(obj, Owns)
	g.ownedBy(n, obj)
	return n
}

// fold shows objects as one node that counts them.
func (g *grower) fold(in []projection.Object, status string) []*Node {
	if len(in) == 0 {
		return nil
	}
	var out []*Node
	if g.all || len(in) == 1 {
		for _, obj := range in {
			out = append(out, g.node(obj, Owns))
		}
		return out
	}
	for _, obj := range in {
		g.shown[obj.GetUID()] = true
	}
	return []*Node{{
		Kind: in[0].GetObjectKind().GroupVersionKind().Kind, Count: len(in), Relation: Owns, Health: Healthy, Status: status,
	}}
}

func latestRevision(in []projection.Object) string {
	latest := int64(0)
	for _, obj := range in {
		if revision, ok := obj.(*appsv1.ControllerRevision); ok {
			latest = max(latest, revision.Revision)
		}
	}
	return fmt.Sprintf("the latest is revision %d", latest)
}

// claims shows the volume claims that a StatefulSet has made for its replicas, which it does not own.
func (g *grower) claims(obj projection.Object) []*Node {
	set, ok := obj.(*appsv1.StatefulSet)
	if !ok {
		return nil
	}
	var out []*Node
	for _, o := range g.sorted {
		claim, ok := o.(*corev1.PersistentVolumeClaim)
		if ok && !g.shown[claim.UID] && madeFor(set, claim.Name) {
			out = append(out, g.node(claim, Owns))
		}
	}
	return out
}

// madeFor reports whether a claim's name is that of a replica of the set.
func madeFor(set *appsv1.StatefulSet, claim string) bool {
	for _, template := range set.Spec.VolumeClaimTemplates {
		ordinal, ok := strings.CutPrefix(claim, template.Name+"-"+set.Name+"-")
		if ok && ordinal != "" && strings.Trim(ordinal, "0123456789") == "" {
			return true
		}
	}
	return false
}

// references are what an object names. A CronJob names what its Jobs will.
func references(obj projection.Object) []projection.Reference {
	if cron, ok := obj.(*batchv1.CronJob); ok {
		job := &batchv1.Job{
			TypeMeta:   typeMeta(batchv1.SchemeGroupVersion.WithKind("Job")),
			ObjectMeta: metav1.ObjectMeta{Namespace: cron.Namespace, Name: cron.Name}, Spec: cron.Spec.JobTemplate.Spec,
		}
		return projection.References(job)
	}
	kind, ok := kindOf(obj)
	if !ok {
		return nil
	}
	return kind.References(obj)
}

// needs shows what the object names, and what that needs in turn.
func (g *grower) needs(obj projection.Object) []*Node {
	var out []*Node
	for _, ref := range references(obj) {
		at := key{ref.Resource, ref.Name}
		found := g.byKey[at]
		switch {
		case found != nil && g.shown[found.GetUID()]:
		case found != nil:
			n := g.node(found, Needs)
			n.Children = append(n.Children, g.needs(found)...)
			out = append(out, n)
		case !g.missing[at]:
			g.missing[at] = true
			if n := g.absent(ref); n != nil {
				out = append(out, n)
			}
		}
	}
	return out
}

// absent shows something that is named and not there.
func (g *grower) absent(ref projection.Reference) *Node {
	kind, _ := projection.ForResource(ref.Resource)
	n := &Node{Kind: kind.GVK.Kind, Name: ref.Name, Relation: Needs, Health: Missing, Status: "missing"}
	switch {
	case g.hidden[ref.Resource] != "":
		n.Health, n.Status = Unknown, "you may not read it"
	case ref.Optional && kind.GVK.Kind == "ServiceAccount":
		return nil // pods run as the default one of their cluster
	case ref.Optional:
		n.Health, n.Status = Healthy, "missing, but optional"
	}
	return n
}

// reachedBy shows what goes along with the object: what selects its pods, what leads there in turn, and what scales it.
func (g *grower) reachedBy(obj projection.Object) []*Node {
	var out []*Node
	at, known := keyOf(obj)
	for _, o := range g.sorted {
		if g.shown[o.GetUID()] {
			continue
		}
		kind, ok := kindOf(o)
		if ok && !kind.Workload && workload(obj) && (selects(o, obj) || kind.General(o)) {
			out = append(out, g.beside(o, ReachedBy))
		}
		if scaler, ok := o.(*autoscalingv2.HorizontalPodAutoscaler); ok && scales(scaler, obj) {
			out = append(out, g.node(o, ScaledBy))
		}
	}
	if known {
		for _, follower := range g.followers[at] {
			if !g.shown[follower.GetUID()] {
				out = append(out, g.beside(follower, ReachedBy))
			}
		}
	}
	return out
}

// beside shows something that goes along with another object, what it owns, and what goes along with it in turn.
func (g *grower) beside(obj projection.Object, relation Relation) *Node {
	n := g.node(obj, relation)
	g.ownedBy(n, obj)
	n.Children = append(n.Children, g.needs(obj)...)
	n.Children = append(n.Children, g.reachedBy(obj)...)
	return n
}

func scales(scaler *autoscalingv2.HorizontalPodAutoscaler, obj projection.Object) bool {
	ref, gvk := scaler.Spec.ScaleTargetRef, obj.GetObjectKind().GroupVersionKind()
	return ref.Kind == gvk.Kind && ref.Name == obj.GetName() && groupOf(ref.APIVersion) == gvk.Group
}

func groupOf(apiVersion string) string {
	group, _, qualified := strings.Cut(apiVersion, "/")
	if !qualified {
		return ""
	}
	return group
}

// upwards adds what the root itself belongs to, goes along with or is needed by, up to the workloads.
func (g *grower) upwards(n *Node, obj projection.Object) {
	for _, owner := range obj.GetOwnerReferences() {
		if found := g.byUID(owner.UID); found != nil && !g.shown[owner.UID] {
			up := g.node(found, OwnedBy)
			g.upwards(up, found)
			n.Children = append(n.Children, up)
		}
	}
	if workload(obj) {
		return
	}
	for _, l := range g.above(obj) {
		if g.shown[l.object.GetUID()] {
			continue
		}
		up := g.node(l.object, l.relation)
		g.upwards(up, l.object)
		n.Children = append(n.Children, up)
	}
	if scaler, ok := obj.(*autoscalingv2.HorizontalPodAutoscaler); ok {
		for _, target := range g.sorted {
			if scales(scaler, target) && !g.shown[target.GetUID()] {
				n.Children = append(n.Children, g.node(target, LeadsTo))
			}
		}
	}
}

func (g *grower) byUID(uid types.UID) projection.Object {
	i := slices.IndexFunc(g.sorted, func(o projection.Object) bool { return o.GetUID() == uid })
	if i < 0 {
		return nil
	}
	return g.sorted[i]
}
