package tree

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/internal/text"
	"github.com/manifold-dev/manifold/pkg/cli/app/words"
	"github.com/manifold-dev/manifold/pkg/cli/release/progress"
	"github.com/manifold-dev/manifold/pkg/projection"
)

// longest bounds what a message takes of the screen.
const longest = 512

// application shows an application: what each of its clusters runs, the release that is on its way, and the objects of each variant.
func (g *grower) application(app *v1alpha1.Application) *Node {
	n := g.node(app, "")
	for i := range app.Status.Targets {
		target := &app.Status.Targets[i]
		if len(target.Clusters) == 0 {
			n.Children = append(n.Children, &Node{
				Kind: "Target", Name: target.Name, Relation: Owns, Health: healthOf(target.Health), Status: text.Line(target.Message, longest),
			})
		}
		for j := range target.Clusters {
			n.Clusters = append(n.Clusters, target.Clusters[j].Name)
			n.Children = append(n.Children, g.runs(target.Name, &target.Clusters[j]))
		}
	}
	slices.Sort(n.Clusters)
	n.Clusters = slices.Compact(n.Clusters)
	if g.release != nil && !progress.Phase(g.release).Ended() {
		n.Children = append(n.Children, g.underway(g.release))
	}
	n.Children = append(n.Children, byPlugins(app)...)
	n.Children = append(n.Children, g.variants(app)...)
	return n
}

func (n *Node) judgeApplication(app *v1alpha1.Application) {
	status := &app.Status
	if status.ObservedGeneration < app.Generation {
		n.Health, n.Status = Progressing, "the last change has not been processed yet"
	}
	if status.ObservedGeneration > 0 {
		n.Health = worse(n.Health, healthOf(status.Health))
		n.Status = phrases(string(status.Sync), words.Revisions(status), n.Status)
	}
	if app.Spec.Revision != "" {
		n.Status = phrases(n.Status, "pinned to "+app.Spec.Revision)
	}
	if app.Spec.Suspend {
		n.Health, n.Status = worse(n.Health, Suspended), phrases(n.Status, "suspended")
	}
	n.pods(words.Primary(status))
	releasing := status.ReleasePhase != "" && !status.ReleasePhase.Ended()
	for _, c := range status.Conditions {
		if c.Status == metav1.ConditionFalse && !(c.Type == v1alpha1.ApplicationReleased && releasing) {
			n.problem(words.Condition(c))
		}
	}
}

// healthOf is how applications call it. What they know nothing of is unknown.
func healthOf(health v1alpha1.HealthStatus) Health {
	return Health(cmp.Or(health, v1alpha1.HealthUnknown))
}

// pods tells how many are ready, if any are wanted.
func (n *Node) pods(ready, of int32) {
	if of > 0 {
		n.Ready = &Ready{Ready: ready, Of: of}
	}
}

// runs shows what a cluster of a target runs of an application.
func (g *grower) runs(target string, c *v1alpha1.TargetClusterStatus) *Node {
	n := &Node{Kind: "Cluster", Name: c.Name, Relation: RunsIn, Health: healthOf(c.Health)}
	n.pods(c.Ready, c.Replicas)
	revision := c.LiveRevision
	if c.Revision != "" && c.Revision != c.LiveRevision {
		revision = phrases(revision, "should be "+c.Revision)
	}
	states := []string{string(cmp.Or(c.Sync, v1alpha1.SyncUnknown)), string(cmp.Or(c.Health, v1alpha1.HealthUnknown))}
	n.Status = phrases(inTarget(target, c.Name), revision, phrases(slices.Compact(states)...))
	if message := text.Line(c.Message, longest); n.Health == Progressing {
		n.Status = phrases(n.Status, message)
	} else {
		n.problem(message)
	}
	g.silence(n)
	return n
}

// inTarget names the target, if it is not called as its cluster.
func inTarget(target, cluster string) string {
	if target == cluster {
		return ""
	}
	return "target " + target
}

// underway shows a release: the stages that run or have failed, and in these the clusters that are not done.
func (g *grower) underway(release *v1alpha1.Release) *Node {
	n := &Node{
		Kind: "Release", Name: release.Name, Relation: Owns, Health: Progressing,
		Status: phrases(fmt.Sprintf("%s %s", progress.Phase(release), release.Spec.Revision), text.Line(release.Status.Message, longest)),
	}
	for i := range release.Status.Stages {
		if stage := &release.Status.Stages[i]; stage.Phase == v1alpha1.StageRunning || stage.Phase == v1alpha1.StageFailed {
			n.Children = append(n.Children, stageOf(stage))
		}
	}
	g.ownedBy(n, release) // its scripts
	return n
}

func stageOf(stage *v1alpha1.StageStatus) *Node {
	n := &Node{
		Kind: "Stage", Name: stage.ID, Relation: Owns, Health: Progressing,
		Status: phrases(fmt.Sprintf("%s %s", stage.Name, stage.Phase), text.Line(stage.Message, longest)),
	}
	if stage.Phase == v1alpha1.StageFailed {
		n.Health = Degraded
	}
	for i := range stage.Targets {
		t := &stage.Targets[i]
		n.Clusters = append(n.Clusters, t.Cluster)
		health, shown := targetHealth[t.Phase]
		if !shown {
			continue
		}
		child := &Node{Kind: "Cluster", Name: t.Cluster, Relation: RunsIn, Health: health}
		child.pods(t.Ready, t.Replicas)
		child.Status = phrases(inTarget(t.Name, t.Cluster), string(t.Phase))
		if message := text.Line(t.Message, longest); health == Progressing {
			child.Status = phrases(child.Status, message)
		} else {
			child.problem(message)
		}
		n.Children = append(n.Children, child)
	}
	slices.Sort(n.Clusters)
	return n
}

// targetHealth has the phases in which a cluster is shown in a stage.
var targetHealth = map[v1alpha1.TargetPhase]Health{
	v1alpha1.TargetRunning: Progressing, v1alpha1.TargetUnreachable: Unknown, v1alpha1.TargetFailed: Degraded,
}

// variants shows what an application consists of, variant by variant. Objects of a variant that there is no more are about to go.
func (g *grower) variants(app *v1alpha1.Application) []*Node {
	objects := map[string][]projection.Object{}
	for _, obj := range g.sorted {
		if variant, ok := variantOf(app, obj); ok {
			objects[variant] = append(objects[variant], obj)
		}
	}
	var out []*Node
	for i := range app.Status.Variants {
		v := &app.Status.Variants[i]
		n := &Node{Kind: "Variant", Name: v.Name, Relation: Owns, Health: Healthy, Status: v.Revision}
		for j := range v.Clusters {
			n.Clusters = append(n.Clusters, v.Clusters[j].Cluster)
		}
		slices.Sort(n.Clusters)
		ready, of := words.Pods(&app.Status, v)
		n.pods(ready, of)
		if ready < of {
			n.Health = Progressing
		}
		if v.Traffic != nil {
			n.Status = phrases(n.Status, fmt.Sprintf("%d%% of the requests", *v.Traffic))
		}
		g.consistsOf(n, objects[v.Name])
		if v.Name == v1alpha1.VariantPrimary {
			n.Children = append(n.Children, gone(app)...)
		}
		delete(objects, v.Name)
		out = append(out, n)
	}
	routes := &Node{} // they are of all variants
	g.consistsOf(routes, objects[v1alpha1.AllVariants])
	out = append(out, routes.Children...)
	delete(objects, v1alpha1.AllVariants)
	for _, name := range sortedKeys(objects) {
		n := &Node{Kind: "Variant", Name: name, Relation: Owns, Health: Progressing, Status: "no longer wanted"}
		g.consistsOf(n, objects[name])
		out = append(out, n)
	}
	return out
}

// variantOf returns the variant of an application that an object belongs to.
func variantOf(app *v1alpha1.Application, obj projection.Object) (variant string, belongs bool) {
	variant = obj.GetAnnotations()[v1alpha1.AnnotationVariant]
	return variant, variant != "" && obj.GetLabels()[v1alpha1.LabelApplication] == app.Name
}

// consistsOf adds the objects of a variant, and what goes along with each: workloads first, as these need most of the others.
func (g *grower) consistsOf(n *Node, objects []projection.Object) {
	for _, obj := range objects {
		if workload(obj) && !g.shown[obj.GetUID()] {
			n.Children = append(n.Children, g.whole(obj, Owns))
		}
	}
	for _, obj := range objects {
		if g.shown[obj.GetUID()] {
			continue
		}
		child := g.beside(obj, Owns)
		if _, known := kindOf(obj); !known {
			child.Children = append(g.shares(obj), child.Children...)
		}
		n.Children = append(n.Children, child)
	}
}

// gone shows the objects that were released and are not there.
func gone(app *v1alpha1.Application) []*Node {
	var out []*Node
	for _, d := range app.Status.Drift {
		if d.Path == "" {
			out = append(out, &Node{
				Kind: d.Kind, Name: d.Name, Relation: Owns, Clusters: d.Clusters, Health: Missing, Status: "missing",
				Problems: []string{"it was released, and somebody has deleted it"},
			})
		}
	}
	return out
}

// drifted tells what of an object is not what was released, if the tree is of its application.
func (g *grower) drifted(n *Node, obj projection.Object) {
	app, ok := g.root.(*v1alpha1.Application)
	if !ok {
		return
	}
	if _, belongs := variantOf(app, obj); !belongs {
		return
	}
	gvk, differs := obj.GetObjectKind().GroupVersionKind(), false
	for _, d := range app.Status.Drift {
		if d.Path == "" || d.Group != gvk.Group || d.Kind != gvk.Kind || d.Name != obj.GetName() {
			continue
		}
		in := " in the logical cluster alone"
		if len(d.Clusters) > 0 {
			in = " in " + strings.Join(d.Clusters, ", ")
		}
		n.problem(text.Line(fmt.Sprintf("%s is to be %s, and %s was found%s", d.Path, cmp.Or(d.Wanted, "nothing"), cmp.Or(d.Found, "nothing"), in), longest))
		differs = true
	}
	if differs {
		n.Status = phrases(n.Status, string(v1alpha1.OutOfSync))
	}
}
