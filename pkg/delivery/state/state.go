// Package state tells what runs in the targets of an application, by what was released and what clusters report.
package state

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/delivery"
)

// Workload is what clusters report of a workload of the application.
type Workload struct {
	// Name is its kind and name, as in "Deployment web".
	Name string
	// Failed says why it makes no progress, empty if it does.
	Failed string
	// Clusters are those that are to run it, or do.
	Clusters map[string]Part
}

// Part is what a cluster is to run of a workload, and what it reports.
type Part struct {
	// Wanted is how many replicas it is to run.
	Wanted int32
	// Reported says that it has reported anything; Stale that it is silent now.
	Reported, Stale         bool
	Ready, Updated, Running int32
	// Revision is the name of the revision that what it has is made of, "" as long as that is not known.
	Revision string
	// Lacks says what the cluster is to have of that revision beside the workload and does not have.
	Lacks string
	// Problem says why it cannot have the workload, Waits what it waits for.
	Problem, Waits string
	// Ended says that the workload is one that ends, and has.
	Ended bool
}

// World is what is known of an application.
type World struct {
	// Release is the one that tells what is to run, nil if there is none, and Live the revision that was last released with success.
	Release   *v1alpha1.Release
	Live      string
	Workloads []Workload
	// Silent are the clusters that do not answer.
	Silent map[string]bool
	// Ailing says of which clusters other objects are not well, and how.
	Ailing map[string]Ailment
	// Dropped says why a target that the release has, and that is not among those asked about, is none any more.
	Dropped string
	// Nowhere says what of the application is in no cluster, "" for nothing.
	Nowhere string
	// Drifted says for each cluster what of its objects is not what was released, and Unclear what cannot be compared with that.
	Drifted, Unclear map[string]string
}

// Ailment is what is wrong with objects that are no workloads: of several, the worst.
type Ailment struct {
	Health  v1alpha1.HealthStatus
	Message string
}

// Worse returns the worse of two ailments. What is told first stays.
func (a Ailment) Worse(other Ailment) Ailment {
	if a.Health != "" && rank(other.Health) <= rank(a.Health) {
		return a
	}
	return other
}

// Targets tells what runs in each target, and then in those that are none any more, as long as something does.
func Targets(targets []v1alpha1.Target, w World) []v1alpha1.TargetStatus {
	wanted := wantedBy(w.Release)
	var out []v1alpha1.TargetStatus
	for _, target := range targets {
		status := v1alpha1.TargetStatus{Name: target.Name}
		for _, cluster := range wanted.clusters[target.Name] {
			status.Clusters = append(status.Clusters, clusterStatus(cluster, wanted, w))
		}
		whole(&status)
		out = append(out, status)
	}
	for _, name := range slices.Sorted(maps.Keys(wanted.clusters)) {
		if slices.ContainsFunc(targets, func(target v1alpha1.Target) bool { return target.Name == name }) {
			continue
		}
		status := v1alpha1.TargetStatus{Name: name}
		for _, cluster := range wanted.clusters[name] {
			if w.runs(cluster, wanted) {
				c := clusterStatus(cluster, wanted, w)
				c.Message = delivery.Said(strings.TrimSuffix(w.Dropped+"; "+c.Message, "; "))
				status.Clusters = append(status.Clusters, c)
			}
		}
		if len(status.Clusters) > 0 {
			whole(&status)
			out = append(out, status)
		}
	}
	return out
}

// runs reports whether a cluster is to run the application, or does. Where nothing reports, the release alone tells.
func (w World) runs(cluster string, by wanted) bool {
	if len(w.Workloads) == 0 {
		return by.revisions[cluster] != ""
	}
	return slices.ContainsFunc(w.Workloads, func(workload Workload) bool {
		_, has := workload.Clusters[cluster]
		return has
	})
}

// wanted is what a release says about clusters.
type wanted struct {
	release *v1alpha1.Release
	// clusters are those of each target, and revisions what each cluster is to run.
	clusters  map[string][]string
	revisions map[string]string
}

func wantedBy(release *v1alpha1.Release) wanted {
	out := wanted{release: release, clusters: map[string][]string{}, revisions: map[string]string{}}
	if release == nil {
		return out
	}
	primary := v1alpha1.Variant{}
	for _, variant := range release.Status.Variants {
		if variant.Name == v1alpha1.VariantPrimary {
			primary = variant
		}
	}
	// A cluster may be of another target in the plan, until the release has come there, or once it is taken back.
	of := map[string]string{}
	for _, cluster := range primary.Clusters {
		out.revisions[cluster.Cluster] = cmp.Or(cluster.Revision, primary.Revision)
		of[cluster.Cluster] = cluster.Target
	}
	if release.Status.Plan != nil {
		for _, target := range release.Status.Plan.Targets {
			elsewhere := func(cluster string) bool { return cmp.Or(of[cluster], target.Name) != target.Name }
			out.clusters[target.Name] = slices.DeleteFunc(slices.Clone(target.Clusters), elsewhere)
		}
	}
	for _, cluster := range primary.Clusters {
		if !slices.Contains(out.clusters[cluster.Target], cluster.Cluster) {
			out.clusters[cluster.Target] = append(out.clusters[cluster.Target], cluster.Cluster)
		}
	}
	return out
}

func clusterStatus(cluster string, by wanted, w World) v1alpha1.TargetClusterStatus {
	out := v1alpha1.TargetClusterStatus{Name: cluster, Revision: by.revisions[cluster], Sync: v1alpha1.Synced, Health: v1alpha1.Healthy}
	revisions, known, complete, silent := map[string]bool{}, 0, true, w.Silent[cluster]
	for _, workload := range w.Workloads {
		part, has := workload.Clusters[cluster]
		if !has {
			continue
		}
		known++
		silent, complete = silent || part.Stale, complete && part.Lacks == ""
		revisions[part.Revision] = true
		out.Replicas, out.Ready = out.Replicas+part.Wanted, out.Ready+part.Ready
		worse(&out, workload, part)
	}
	names := slices.Sorted(maps.Keys(revisions))
	switch {
	case silent:
		out.Sync, out.Health, out.Ready = v1alpha1.SyncUnknown, v1alpha1.HealthUnknown, 0
		out.Message = fmt.Sprintf("cluster %q does not answer", cluster)
		return out
	case known == 0:
		out = withoutWorkloads(out, by, w)
	case len(names) == 1 && complete:
		out.LiveRevision = names[0]
	}
	if ailment, ails := w.Ailing[cluster]; ails && rank(ailment.Health) > rank(out.Health) {
		out.Health, out.Message = ailment.Health, ailment.Message
	}
	compared(&out, w)
	return out
}

// compared takes in what came of comparing the objects of a cluster with what was released. That it has another revision says more.
func compared(into *v1alpha1.TargetClusterStatus, w World) {
	drifted, unclear := w.Drifted[into.Name], w.Unclear[into.Name]
	switch {
	case into.Sync == v1alpha1.OutOfSync:
	case drifted != "":
		into.Sync, into.Message = v1alpha1.OutOfSync, drifted
	case unclear != "" && into.Sync == v1alpha1.Synced:
		into.Sync, into.Message = v1alpha1.SyncUnknown, unclear
	}
}

// worse takes a workload of a cluster in. What is told first stays.
func worse(into *v1alpha1.TargetClusterStatus, workload Workload, part Part) {
	health, message := healthOf(workload, part)
	if rank(health) > rank(into.Health) {
		into.Health, into.Message = health, message
	}
	if into.Revision == "" || part.Revision == into.Revision && part.Lacks == "" {
		return
	}
	switch {
	case into.Sync == v1alpha1.OutOfSync:
	case part.Revision == into.Revision:
		into.Sync = v1alpha1.OutOfSync
		into.Message = cmp.Or(into.Message, delivery.Said(part.Lacks))
	case part.Revision == "":
		// Nothing is reported of it yet, or its controllers are still to see what was changed of it, such as its replicas. That is not to be another one.
		into.Sync = v1alpha1.SyncUnknown
		into.Message = cmp.Or(into.Message, delivery.Said(fmt.Sprintf("%s: which revision it is made of is not known yet", workload.Name)))
	default:
		into.Sync = v1alpha1.OutOfSync
		into.Message = delivery.Said(fmt.Sprintf("%s is to be made of %s, and %s was found", workload.Name, into.Revision, part.Revision))
	}
}

// healthOf tells how a workload is in a cluster, and why.
func healthOf(workload Workload, part Part) (v1alpha1.HealthStatus, string) {
	switch {
	case part.Problem != "":
		return v1alpha1.Degraded, delivery.Said(workload.Name + ": " + part.Problem)
	case part.Ended || part.Wanted == 0:
		return v1alpha1.Healthy, ""
	case !part.Reported:
		return v1alpha1.Missing, fmt.Sprintf("%s is not there yet", workload.Name)
	case workload.Failed != "" && part.Ready < part.Wanted:
		return v1alpha1.Degraded, delivery.Said(workload.Name + ": " + workload.Failed)
	case part.Ready < part.Wanted || part.Updated < part.Wanted:
		message := fmt.Sprintf("%s: %d of %d replicas are ready", workload.Name, part.Ready, part.Wanted)
		if part.Waits != "" {
			message += ": " + part.Waits
		}
		return v1alpha1.Progressing, delivery.Said(message)
	}
	return v1alpha1.Healthy, ""
}

// withoutWorkloads goes by the release alone, where nothing reports. It says what of that is in no cluster.
func withoutWorkloads(out v1alpha1.TargetClusterStatus, by wanted, w World) v1alpha1.TargetClusterStatus {
	for _, stage := range by.release.Status.Stages {
		for _, target := range stage.Targets {
			if target.Cluster == out.Name && target.Phase == v1alpha1.TargetSucceeded && target.Revision != "" {
				out.LiveRevision = target.Revision
			}
		}
	}
	if by.release.Status.Phase == v1alpha1.ReleaseSucceeded && w.Live == out.Revision {
		out.LiveRevision = w.Live
	}
	out.Message = w.Nowhere
	if out.LiveRevision == "" || out.LiveRevision != out.Revision {
		out.Sync, out.Health = v1alpha1.SyncUnknown, v1alpha1.HealthUnknown
		out.Message = "nothing of it reports yet"
	}
	return out
}

// whole sums up the clusters of a target.
func whole(status *v1alpha1.TargetStatus) {
	status.Sync, status.Health = v1alpha1.SyncUnknown, v1alpha1.HealthUnknown
	if len(status.Clusters) == 0 {
		status.Message = "nothing was released to it yet"
		return
	}
	var syncs []v1alpha1.SyncStatus
	var healths []v1alpha1.HealthStatus
	status.Revision, status.LiveRevision = status.Clusters[0].Revision, status.Clusters[0].LiveRevision
	for _, cluster := range status.Clusters {
		syncs, healths = append(syncs, cluster.Sync), append(healths, cluster.Health)
		if cluster.Revision != status.Revision {
			status.Revision = ""
		}
		if cluster.LiveRevision != status.LiveRevision {
			status.LiveRevision = ""
		}
		if cluster.Message != "" && status.Message == "" {
			status.Message = delivery.Said(cluster.Name + ": " + cluster.Message)
		}
	}
	status.Sync, status.Health = Sync(syncs), Health(healths)
}

// Sync is OutOfSync if any is, else Unknown if any is or there is none, else Synced.
func Sync(of []v1alpha1.SyncStatus) v1alpha1.SyncStatus {
	switch {
	case slices.Contains(of, v1alpha1.OutOfSync):
		return v1alpha1.OutOfSync
	case len(of) == 0 || slices.Contains(of, v1alpha1.SyncUnknown):
		return v1alpha1.SyncUnknown
	}
	return v1alpha1.Synced
}

// Health is the worst of those that are known, and Unknown if none is.
func Health(of []v1alpha1.HealthStatus) v1alpha1.HealthStatus {
	out := v1alpha1.HealthUnknown
	for _, health := range of {
		if rank(health) > rank(out) {
			out = health
		}
	}
	return out
}

// rank orders from what says nothing to what is worst.
func rank(health v1alpha1.HealthStatus) int {
	return slices.Index([]v1alpha1.HealthStatus{v1alpha1.HealthUnknown, v1alpha1.Healthy, v1alpha1.Progressing, v1alpha1.Missing, v1alpha1.Degraded}, health)
}
