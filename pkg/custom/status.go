package custom

import (
	"context"
	"reflect"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/identity"
	"github.com/manifold-dev/manifold/pkg/placement"
	"github.com/manifold-dev/manifold/pkg/projection"
	"github.com/manifold-dev/manifold/pkg/records"
	"github.com/manifold-dev/manifold/pkg/summary"
	"github.com/manifold-dev/manifold/pkg/syncer/copies"
)

// ReasonStatusRefused is the reason of the event that the logical cluster does not take a status.
const ReasonStatusRefused = "StatusRefused"

// gathered is what is known of the clusters that have, or are to have, a copy of an object.
type gathered struct {
	reports map[string]summary.CustomReport
	// versions are those in which the copies are that are to be there.
	versions []string
	// held reports whether any of them may still have a copy: a silent cluster that had one does, as far as anybody knows.
	held bool
	// pending tells that a cluster which should answer has not been asked yet, as after a start. Its loop wakes us.
	pending bool
}

// report brings status and breakdown of an object up to date, and lets it go once it is to be nowhere and is nowhere.
func (c *Controller) report(ctx context.Context, k copies.Kind, key copies.Key, o *metav1.PartialObjectMetadata) error {
	decision := identity.DecisionOf(o)
	now := c.gather(key, o, decision)
	switch {
	case (!projection.Lives(o) || len(decision) == 0) && !now.held:
		return c.release(ctx, k, o)
	case now.pending:
		return nil
	}
	if projection.Lives(o) {
		if err := c.writeStatus(ctx, k, o, decision, now); err != nil {
			return err
		}
	}
	text := summary.CustomBreakdownOf(now.reports, identity.CopiesOf(o)).String()
	if text == o.Annotations[v1alpha1.AnnotationStatus] {
		return nil
	}
	_, err := records.Write(ctx, c.writes(k, o, k.Versions[0]), o, records.Change{Annotations: map[string]string{v1alpha1.AnnotationStatus: text}, Anyhow: true})
	return err
}

func (c *Controller) gather(key copies.Key, o *metav1.PartialObjectMetadata, decision placement.Decision) gathered {
	out := gathered{reports: map[string]summary.CustomReport{}}
	last := identity.CopiesOf(o)
	for _, name := range identity.CopiedTo(o) {
		cluster, err := c.clusters.Get(name)
		if err != nil {
			continue // gone
		}
		seen := c.loops.Report(name, key)
		if seen.Live != nil {
			if origin, _ := projection.OriginOf(seen.Live); origin.UID != o.UID {
				seen.Live, seen.Generation = nil, 0 // it is of an earlier object, or somebody says so
			}
		}
		_, decided := decision[name]
		out.add(cluster, seen, last[name], decided && projection.Lives(o))
	}
	return out
}

// add adds what is known of one cluster. A cluster that is decided is to have a copy.
func (g *gathered) add(cluster *v1alpha1.Cluster, seen copies.Sighting, last summary.CustomCluster, decided bool) {
	if cluster.DeletionTimestamp != nil && cluster.Annotations[v1alpha1.AnnotationRemove] == v1alpha1.RemoveForce {
		return // given up
	}
	ready := readiness(cluster)
	report := seen.CustomReport
	switch {
	case !seen.Known:
		// A copy that was ever there is there as far as anybody knows.
		g.held = true
		g.pending = g.pending || ready == metav1.ConditionTrue
		report = lastKnown(last)
	case seen.Blind:
		// What cannot be seen is there if it ever was.
		report.Generation = last.Generation
		g.held = g.held || last.Generation > 0
	case report.Live == nil && !decided && report.Problem == "":
		return // there is nothing
	default:
		g.held = g.held || report.Live != nil
		g.pending = g.pending || decided && report.Live != nil && !seen.Compared
	}
	report.Stale = !seen.Known || ready != metav1.ConditionTrue && ready != metav1.ConditionFalse
	g.reports[cluster.Name] = report
	if version := versionOf(report.Live); decided && version != "" {
		g.versions = append(g.versions, version)
	}
}

// version is the one in which all copies are, "" if they are in several or nowhere.
func (g *gathered) version() string {
	if len(g.versions) == 0 || slices.ContainsFunc(g.versions, func(v string) bool { return v != g.versions[0] }) {
		return ""
	}
	return g.versions[0]
}

// lastKnown is the report of a cluster that nobody can ask, as the breakdown kept it.
func lastKnown(last summary.CustomCluster) summary.CustomReport {
	out := summary.CustomReport{Generation: last.Generation, Problem: last.Problem, Stale: true}
	if last.Status != nil {
		out.Live = &unstructured.Unstructured{Object: map[string]any{"status": last.Status}}
	}
	return out
}

func versionOf(o *unstructured.Unstructured) string {
	if o == nil {
		return ""
	}
	return o.GroupVersionKind().Version
}

// writeStatus stores the status that the clusters give, if it is another one. Statuses of several versions do not go together, and one that
// is not known stays.
func (c *Controller) writeStatus(ctx context.Context, k copies.Kind, o *metav1.PartialObjectMetadata, decision placement.Decision, now gathered) error {
	if len(decision) == 0 || unknown(now.reports, decision) {
		return nil
	}
	version := now.version()
	if version == "" || !slices.Contains(k.Versions, version) {
		version = k.Versions[0]
	}
	client := c.Client.Resource(k.Resource.WithVersion(version)).Namespace(o.Namespace)
	above, err := client.Get(ctx, o.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil || above.GetUID() != o.UID {
		return err
	}
	var status map[string]any
	if now.version() != "" {
		status = summary.CustomStatus(above, summary.CustomInput{
			Clusters: decision.Clusters(), Reports: now.reports, CountsStatus: !k.Statuses[version], Now: metav1.NewTime(c.Clock.Now()),
		})
	}
	return c.storeStatus(ctx, k, o, above, status)
}

// unknown reports whether there is no telling what the one cluster of a decision says, as of a silent one after a start.
func unknown(reports map[string]summary.CustomReport, decision placement.Decision) bool {
	if len(decision) != 1 {
		return false
	}
	for cluster := range decision {
		report := reports[cluster]
		return report.Stale && report.Live == nil
	}
	return false
}

func (c *Controller) storeStatus(ctx context.Context, k copies.Kind, o *metav1.PartialObjectMetadata, above *unstructured.Unstructured, status map[string]any) error {
	before, _ := above.Object["status"].(map[string]any)
	if len(before) == 0 && len(status) == 0 || reflect.DeepEqual(before, status) {
		return nil
	}
	if status == nil {
		delete(above.Object, "status")
	} else {
		above.Object["status"] = status
	}
	_, err := records.Status(ctx, c.writes(k, o, above.GroupVersionKind().Version), above)
	if apierrors.IsInvalid(err) {
		c.tell(k, o, aboutStatus, placement.Event{Type: corev1.EventTypeWarning, Reason: ReasonStatusRefused,
			Message: "the status that its clusters give is not valid here, so only annotation " + v1alpha1.AnnotationStatus + " has it: " + err.Error()})
		return nil
	}
	return err
}

// release lets go of an object that no cluster has any more. One that stays above loses what came from below.
func (c *Controller) release(ctx context.Context, k copies.Kind, o *metav1.PartialObjectMetadata) error {
	_, placed := o.Annotations[v1alpha1.AnnotationPlacement]
	_, reported := o.Annotations[v1alpha1.AnnotationStatus]
	held := records.Held(o)
	if !placed && !reported && !held {
		return nil
	}
	if o.DeletionTimestamp == nil {
		if err := c.clearStatus(ctx, k, o); err != nil {
			return err
		}
	}
	// Clearing the status may have changed the version by which others' finalizers stay as they are: then the watch brings us back.
	_, err := records.Write(ctx, c.writes(k, o, k.Versions[0]), o, records.Change{
		Annotations: map[string]string{v1alpha1.AnnotationPlacement: "", v1alpha1.AnnotationStatus: ""}, Release: true, Anyhow: !held,
	})
	return err
}

func (c *Controller) clearStatus(ctx context.Context, k copies.Kind, o *metav1.PartialObjectMetadata) error {
	above, err := c.Client.Resource(k.Resource.WithVersion(k.Versions[0])).Namespace(o.Namespace).Get(ctx, o.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil || above.GetUID() != o.UID {
		return err
	}
	return c.storeStatus(ctx, k, o, above, nil)
}
