package controller

import (
	"context"
	"maps"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/identity"
	"github.com/manifold-dev/manifold/pkg/projection"
	"github.com/manifold-dev/manifold/pkg/summary"
)

// syncReplicaSets brings the mirrored ReplicaSets of a Deployment up to date: one for each template of the Deployment that any cluster carries
// out or that is in its history, and for the one in use also if idle says that no cluster is going to. It returns the Deployment's revision,
// "" while there is none.
func (c *Controller) syncReplicaSets(ctx context.Context, d *appsv1.Deployment, idle bool) (string, error) {
	existing := c.replicaSets.of(d)
	shares := c.replicaSetShares(d)

	names := slices.AppendSeq(slices.Collect(maps.Keys(shares)), maps.Keys(existing))
	slices.Sort(names)
	var wanted []*appsv1.ReplicaSet
	for _, name := range slices.Compact(names) {
		hash := summary.ReplicaSetHash(existing[name], shares[name])
		if existing[name] == nil && (name != summary.ReplicaSetName(d.Name, hash) || c.replicaSets.taken(d.Namespace, name)) {
			continue // one that was made by hand, or let go of, and is not the Deployment's above, yet or any more
		}
		if rs := summary.ReplicaSet(d, hash, c.templates.recorded(d, hash), existing[name], shares[name]); rs != nil {
			wanted = append(wanted, rs)
		}
	}
	currentName := summary.CurrentReplicaSet(d, wanted)
	if idle && !named(wanted, currentName) && !c.replicaSets.taken(d.Namespace, currentName) {
		wanted = append(wanted, summary.ReplicaSet(d, projection.TemplateHash(&d.Spec.Template), nil, nil, nil))
	}
	revisions := summary.Revisions(currentName, wanted)
	for _, rs := range wanted {
		revisions[rs.Name].Annotate(rs)
		if err := c.replicaSets.write(ctx, rs, existing[rs.Name]); err != nil {
			return "", err
		}
	}
	if d.DeletionTimestamp == nil {
		for _, rs := range summary.Prune(d, currentName, wanted) {
			if err := c.replicaSets.delete(ctx, rs); err != nil {
				return "", err
			}
		}
	}
	if revision, ok := revisions[currentName]; ok {
		return revision.String(), nil
	}
	return "", nil
}

// idle reports whether a Deployment begins with its template although no cluster is going to tell of it soon: it is to run nowhere, or all the
// clusters where it is to run cannot be told of it, or are kept from it by a problem. On a single cluster it has a revision nevertheless, and
// people go back to that.
func idle(d *appsv1.Deployment, reports map[string]summary.Report) bool {
	if d.Spec.Paused || d.DeletionTimestamp != nil {
		return false
	}
	for cluster := range identity.DecisionOf(d) {
		report, known := reports[cluster]
		if known && (report.Generation >= d.Generation || !report.Stale && report.Problem == "") {
			return false
		}
	}
	return true
}

func named(list []*appsv1.ReplicaSet, name string) bool {
	return slices.ContainsFunc(list, func(rs *appsv1.ReplicaSet) bool { return rs.Name == name })
}

// addReplicaSets makes the mirrors that are missing and leaves the others for when there is more to write: pods wait for their owners.
func (c *Controller) addReplicaSets(ctx context.Context, d *appsv1.Deployment) error {
	if kind, _ := projection.ForResource(deploymentResource); !kind.Lives(d) {
		return nil // what it has left behind is not its own any more
	}
	existing := c.replicaSets.of(d)
	for name := range c.replicaSetShares(d) {
		if existing[name] == nil {
			_, err := c.syncReplicaSets(ctx, d, false)
			return err
		}
	}
	return nil
}

func (c *Controller) replicaSetShares(d *appsv1.Deployment) map[string][]summary.ReplicaSetShare {
	out, decision := map[string][]summary.ReplicaSetShare{}, identity.DecisionOf(d)
	for _, s := range c.Reports.Reporters() {
		if _, decided := decision[s.Cluster()]; c.leftBehind(s.Cluster(), decided) {
			continue
		}
		bounds := summary.Bounds{Replicas: s.Most(deploymentResource, d), Now: metav1.NewTime(c.Clock.Now())}
		for name, list := range s.ReplicaSets(d) {
			for _, rs := range list {
				out[name] = append(out[name], summary.SaneShare(s.Cluster(), rs, bounds))
			}
		}
	}
	return out
}

// leftBehind reports whether what a cluster was last seen to run of a workload counts no more: it has been given up, or it is silent and is not
// to run any of it.
func (c *Controller) leftBehind(cluster string, decided bool) bool {
	found, err := c.clusters.Get(cluster)
	return err != nil || found.Annotations[v1alpha1.AnnotationRemove] != "" && found.DeletionTimestamp != nil || !decided && silent(found)
}
