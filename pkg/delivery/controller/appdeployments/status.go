package appdeployments

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/internal/text"
	"github.com/manifold-dev/manifold/pkg/delivery/oam"
	"github.com/manifold-dev/manifold/pkg/identity"
)

// mostSaid bounds the message of a condition.
const mostSaid = 1024

// tell writes the status, where it differs, with what was decided.
func (r *run) tell(ctx context.Context, step oam.Step) error {
	now := r.Clock.Now()
	next := oam.Status{
		ObservedGeneration: r.object.Generation, Conditions: slices.Clone(r.object.Status.Conditions), Picks: r.picker.Picked(),
		Add: r.named(step.Diff.Add), Mod: r.named(step.Diff.Mod), Del: r.named(step.Diff.Del), Ordered: maps.Clone(step.Sizes), Placement: r.placement(step),
	}
	next.Summary = summaryOf(next.Placement)
	for variant, size := range r.object.Status.Ordered {
		_, unknown := r.unknown[variant]
		if unknown || slices.Contains(step.Diff.Del, variant) && !slices.Contains(step.Remove, variant) {
			next.Ordered[variant] = size
		}
	}
	if !step.Since.IsZero() {
		since := metav1.NewTime(step.Since.Truncate(time.Second))
		next.DrainingSince = &since
	}
	for _, condition := range r.conditions(step) {
		condition.ObservedGeneration = r.object.Generation
		condition.Message = text.Line(condition.Message, mostSaid)
		setCondition(&next.Conditions, condition, now)
	}
	return r.write(ctx, r.key, r.object, next)
}

// summaryOf tells in one line how many pods of each revision are ready, of how many that are wanted.
func summaryOf(placement []oam.RevisionStatus) string {
	var out []string
	for _, revision := range placement {
		ready, wanted := int32(0), int32(0)
		for _, cluster := range revision.Clusters {
			ready, wanted = ready+cluster.Ready, wanted+cluster.Wanted
		}
		out = append(out, fmt.Sprintf("%s %d/%d", revision.Revision, ready, wanted))
	}
	return strings.Join(out, ", ")
}

func setCondition(all *[]metav1.Condition, condition metav1.Condition, now time.Time) {
	condition.LastTransitionTime = metav1.NewTime(now)
	meta.SetStatusCondition(all, condition)
}

func condition(kind string, holds bool, reason, message string) metav1.Condition {
	out := metav1.Condition{Type: kind, Status: metav1.ConditionFalse, Reason: reason, Message: message}
	if holds {
		out.Status = metav1.ConditionTrue
	}
	return out
}

// named are the names that the spec has for variants, or had.
func (r *run) named(variants []string) []string {
	var out []string
	for _, variant := range variants {
		out = append(out, r.nameOf(variant))
	}
	return out
}

func (r *run) nameOf(variant string) string {
	for _, revision := range r.spec.Revisions {
		if revision.Variant == variant {
			return revision.Name
		}
	}
	for _, known := range r.object.Status.Placement {
		if known.Variant == variant {
			return known.Revision
		}
	}
	return variant
}

func (r *run) conditions(step oam.Step) []metav1.Condition {
	var missing, unplaced []string
	for _, revision := range r.spec.Revisions {
		if why, unknown := r.unknown[revision.Variant]; unknown {
			missing = append(missing, fmt.Sprintf("revision %s: %s", revision.Name, why))
		}
		for _, part := range r.unplaced[revision.Variant] {
			unplaced = append(unplaced, fmt.Sprintf("revision %s: %s", revision.Name, part))
		}
	}
	found := condition(oam.ConditionRevisions, len(missing) == 0, "Found", "")
	if len(missing) > 0 {
		found.Reason, found.Message = "Missing", strings.Join(missing, "; ")+"; what runs of it stays as it is"
	}
	placed := condition(oam.ConditionPlaced, len(unplaced) == 0, "Placed", "")
	if len(unplaced) > 0 {
		placed.Reason, placed.Message = "NoCluster", strings.Join(unplaced, "; ")
	}
	routed := condition(oam.ConditionRouted, r.routes.waits == "", "Routed", r.routes.waits)
	if r.routes.waits != "" {
		routed.Reason = "Waiting"
	}
	undone := slices.Concat(r.routes.undone, r.undone)
	honoured := condition(oam.ConditionHonoured, len(undone) == 0, "Honoured", strings.Join(undone, "; "))
	if len(undone) > 0 {
		honoured.Reason = "Unhonoured"
	}
	return []metav1.Condition{found, placed, routed, honoured, r.ready(step, missing, unplaced)}
}

// ready says whether all is as the spec says, or what is lacking first.
func (r *run) ready(step oam.Step, missing, unplaced []string) metav1.Condition {
	not := func(reason, message string) metav1.Condition {
		return condition(oam.ConditionReady, false, reason, message)
	}
	changes := len(step.Diff.Add) + len(step.Diff.Mod) + len(step.Diff.Del)
	switch {
	case len(missing) > 0:
		return not("RevisionMissing", strings.Join(missing, "; "))
	case r.memory.trouble != "":
		return not("Failing", r.memory.trouble)
	case step.Waits != "":
		return not("Progressing", r.withNames(step.Waits))
	case r.routes.waits != "":
		return not("Progressing", r.routes.waits)
	case len(unplaced) > 0:
		return not("NoCluster", strings.Join(unplaced, "; "))
	case changes > 0:
		return not("Progressing", "what is smaller or no longer wanted goes")
	}
	return condition(oam.ConditionReady, true, "Ready", "")
}

// withNames is a sentence about variants in front of which the names of the revisions stand.
func (r *run) withNames(said string) string {
	for _, revision := range r.spec.Revisions {
		if rest, is := strings.CutPrefix(said, revision.Variant); is {
			return "revision " + revision.Name + rest
		}
	}
	return said
}

// placement tells what each cluster runs of each revision, those that go last.
func (r *run) placement(step oam.Step) []oam.RevisionStatus {
	var out []oam.RevisionStatus
	for _, revision := range r.spec.Revisions {
		variant := revision.Variant
		told := oam.RevisionStatus{Revision: revision.Name, Variant: variant, Reference: revision.Reference(), Message: r.unknown[variant]}
		if r.fronts[variant] != nil {
			told.Service = revision.Service()
		}
		if _, unknown := r.unknown[variant]; unknown {
			told.Clusters = r.toldBefore(variant)
			out = append(out, told)
			continue
		}
		told.Clusters = r.clustersOf(variant, step.Sizes[variant])
		for _, part := range r.unplaced[variant] {
			told.Clusters = append(told.Clusters, oam.ClusterStatus{Wanted: part.Replicas, Message: part.String()})
		}
		out = append(out, told)
	}
	for _, variant := range step.Diff.Del {
		if slices.Contains(step.Remove, variant) {
			continue
		}
		told := oam.RevisionStatus{Revision: r.nameOf(variant), Variant: variant, Message: "it goes when what is to take its place is ready", Clusters: r.toldBefore(variant)}
		for i := range told.Clusters {
			told.Clusters[i].Wanted = 0
		}
		out = append(out, told)
	}
	return out
}

// toldBefore is what was told of a revision of which nothing new is known.
func (r *run) toldBefore(variant string) []oam.ClusterStatus {
	for _, known := range r.object.Status.Placement {
		if known.Variant == variant {
			return slices.Clone(known.Clusters)
		}
	}
	return nil
}

func (r *run) clustersOf(variant string, ordered oam.Size) []oam.ClusterStatus {
	var out []oam.ClusterStatus
	for _, cluster := range slices.Sorted(maps.Keys(ordered)) {
		told := oam.ClusterStatus{Cluster: cluster, Wanted: r.sizes[variant].Total(cluster), Ready: r.pods(variant, cluster)}
		if _, stays := r.sizes[variant][cluster]; !stays {
			told.Message = "it goes when what is to take its place is ready"
		} else {
			told.Message = r.lacking(variant, cluster)
		}
		out = append(out, told)
	}
	return out
}

// refuse tells that nothing is done, since what is asked for cannot be.
func (c *Controller) refuse(ctx context.Context, k key, object *oam.Object, reason, message string) error {
	next := object.Status
	next.ObservedGeneration, next.Conditions = object.Generation, slices.Clone(object.Status.Conditions)
	said := condition(oam.ConditionReady, false, reason, text.Line(message, mostSaid))
	said.ObservedGeneration = object.Generation
	setCondition(&next.Conditions, said, c.Clock.Now())
	return c.write(ctx, k, object, next)
}

// tellLeaving tells what is left of an ApplicationDeployment that is deleted.
func (r *run) tellLeaving(ctx context.Context) error {
	var left []string
	for _, p := range r.present {
		clusters := identity.DecisionOf(p.Object).Clusters()
		for cluster := range identity.BreakdownOf(p.Object) {
			if !slices.Contains(clusters, cluster) {
				clusters = append(clusters, cluster)
			}
		}
		slices.Sort(clusters)
		said := p.Key.String()
		if len(clusters) > 0 {
			said += " in " + strings.Join(clusters, ", ")
		}
		left = append(left, said)
	}
	slices.Sort(left)
	return r.refuse(ctx, r.key, r.object, "Deleting", "waiting until these are gone: "+strings.Join(left, "; "))
}

// write writes a status where it differs.
func (c *Controller) write(ctx context.Context, k key, object *oam.Object, next oam.Status) error {
	if equality.Semantic.DeepEqual(object.Status, next) {
		return nil
	}
	status, err := json.Marshal(next)
	if err != nil {
		return err
	}
	content := map[string]any{}
	if err := json.Unmarshal(status, &content); err != nil {
		return err
	}
	out := &unstructured.Unstructured{Object: map[string]any{"status": content}}
	out.SetGroupVersionKind(oam.GroupVersion.WithKind(oam.Kinds[k.resource]))
	out.SetNamespace(k.Namespace)
	out.SetName(k.Name)
	out.SetUID(object.UID)
	out.SetResourceVersion(object.ResourceVersion)
	stored, err := c.client(k).UpdateStatus(ctx, out, metav1.UpdateOptions{FieldManager: v1alpha1.FieldManager})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("write the status of %s %s: %w", k.resource, k.ObjectName, err)
	}
	object.ResourceVersion, object.Status = stored.GetResourceVersion(), next
	return nil
}
