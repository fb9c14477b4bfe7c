package tree

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	manifoldv1alpha1 "github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/identity"
	"github.com/manifold-dev/manifold/pkg/placement"
	"github.com/manifold-dev/manifold/pkg/projection"
	"github.com/manifold-dev/manifold/pkg/summary"
)

// shares shows the clusters that an object is decided to be in or still is in, with what each says of its part.
func (g *grower) shares(obj projection.Object) []*Node {
	decision, breakdown := identity.WholeDecisionOf(obj), identity.BreakdownOf(obj)
	names := decision.Clusters()
	for name := range breakdown {
		names = append(names, name)
	}
	slices.Sort(names)
	var out []*Node
	for _, name := range slices.Compact(names) {
		share, decided := decision[name]
		status, told := breakdown[name]
		n := &Node{Kind: "Cluster", Name: name, Relation: RunsIn, Health: Healthy}
		if told {
			n.share(obj, share, decided, status)
		}
		if decided && identity.AwaitsIn(obj, name) {
			n.Health, n.Status = Progressing, phrases("waits for its release", n.Status)
		}
		n.Status = phrases(revisionOf(share, status), n.Status)
		if !decided {
			n.Health, n.Status = worse(n.Health, Progressing), phrases("leaving", n.Status)
		}
		g.silence(n)
		out = append(out, n)
	}
	return out
}

// share tells what a cluster says of its part of a workload.
func (n *Node) share(obj projection.Object, share placement.Share, decided bool, status summary.ClusterStatus) {
	of := status.Replicas
	if kind, ok := kindOf(obj); ok && decided && kind.Demand(obj).Division != placement.Everywhere {
		of = share.Replicas
	}
	switch {
	case status.Ended != "":
		n.Status = phrases(status.Ended, ends(status))
	default:
		if workload(obj) || of > 0 {
			n.Ready = &Ready{Ready: status.Ready, Of: of}
		}
		if status.Ready < of {
			n.Health = Progressing
		}
		n.Status = ends(status)
	}
	if status.Stale {
		n.Health, n.Status = Unknown, phrases("does not answer, last known state", n.Status)
	}
	if status.Problem != "" {
		n.Health, n.Status = Degraded, phrases("cannot be applied there", n.Status)
		n.problem(status.Problem)
	}
}

// revisionOf says at which revision of its application a cluster holds an object, "" for none.
func revisionOf(share placement.Share, status summary.ClusterStatus) string {
	switch {
	case share.Revision == "":
		return ""
	case status.Revision == "" || status.Revision == share.Revision:
		return share.Revision
	}
	return fmt.Sprintf("%s, should be %s", status.Revision, share.Revision)
}

// mostNamed is how many clusters are named that hold one of several revisions.
const mostNamed = 3

// held says which clusters hold which revision of an object that has no node for each cluster, "" if all hold the same.
func held(obj projection.Object) string {
	clusters := map[string][]string{}
	decision := identity.DecisionOf(obj)
	for _, cluster := range decision.Clusters() {
		if revision := decision[cluster].Revision; revision != "" {
			clusters[revision] = append(clusters[revision], cluster)
		}
	}
	if len(clusters) < 2 {
		return ""
	}
	var out []string
	for _, revision := range sortedKeys(clusters) {
		where := strings.Join(clusters[revision], " and ")
		if number := len(clusters[revision]); number > mostNamed {
			where = fmt.Sprintf("%d clusters", number)
		}
		out = append(out, revision+" in "+where)
	}
	return phrases(out...)
}

// ends counts the pods of a Job that have ended.
func ends(status summary.ClusterStatus) string {
	var out []string
	if status.Succeeded > 0 {
		out = append(out, fmt.Sprintf("%d succeeded", status.Succeeded))
	}
	if status.Failed > 0 {
		out = append(out, fmt.Sprintf("%d failed", status.Failed))
	}
	return strings.Join(out, ", ")
}

// silence adds what Manifold knows of a cluster that is not ready.
func (g *grower) silence(n *Node) {
	if g.clusters == nil {
		return
	}
	i := slices.IndexFunc(g.clusters, func(c manifoldv1alpha1.Cluster) bool { return c.Name == n.Name })
	if i < 0 {
		n.Health, n.Status = Unknown, phrases("has not joined", n.Status)
		return
	}
	ready := meta.FindStatusCondition(g.clusters[i].Status.Conditions, manifoldv1alpha1.ClusterReady)
	if ready == nil || ready.Status == metav1.ConditionTrue {
		return
	}
	n.Health, n.Status = Unknown, phrases(ready.Reason, n.Status)
	n.problem(ready.Message)
}

// warnings adds what Manifold says of an object that a cluster cannot hold, and of a workload that is placed nowhere. Events outlive what
// they tell of, so they count while the status by cluster has a problem there.
func (g *grower) warnings(n *Node, obj projection.Object) {
	latest := map[string]corev1.Event{}
	for _, e := range g.events {
		if e.InvolvedObject.UID != obj.GetUID() || !strings.HasPrefix(cmp.Or(e.ReportingController, e.Source.Component), "manifold") {
			continue
		}
		if cluster := clusterIn(e.Message); e.LastTimestamp.After(latest[cluster].LastTimestamp.Time) || latest[cluster].Message == "" {
			latest[cluster] = e
		}
	}
	for _, cluster := range sortedKeys(latest) {
		if e := latest[cluster]; g.stands(obj, cluster) && !slices.Contains(n.Problems, e.Message) {
			n.Health, n.Status = worse(n.Health, Degraded), phrases(n.Status, e.Reason)
			n.problem(e.Message)
		}
	}
}

// clusterIn returns the cluster that the message of a syncer's event begins with, "" for any other message.
func clusterIn(message string) string {
	name, _, quoted := strings.Cut(strings.TrimPrefix(message, `cluster "`), `": `)
	if !quoted || !strings.HasPrefix(message, `cluster "`) {
		return ""
	}
	return name
}

// stands reports whether what an event said of a cluster is still so.
func (g *grower) stands(obj projection.Object, cluster string) bool {
	if cluster == "" {
		return workload(obj) && len(identity.DecisionOf(obj)) == 0
	}
	if workload(obj) {
		return false // the line of the cluster says so already
	}
	return slices.ContainsFunc(g.needing(obj), func(w projection.Object) bool { return identity.BreakdownOf(w)[cluster].Problem != "" })
}
