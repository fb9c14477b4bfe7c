package summary

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/utils/ptr"

	"github.com/manifold-dev/manifold/pkg/projection"
)

// History is what of a StatefulSet or a DaemonSet its ControllerRevisions keep, and how.
type History struct {
	// Template is the one in use.
	Template *corev1.PodTemplateSpec
	// Selector is that of the pods. Revisions that nobody controls belong to whose selector meets them.
	Selector *metav1.LabelSelector
	// Limit is how many revisions are kept beside those in use; nil and below zero keep all.
	Limit *int32
	// Collisions is how often a name was taken by a revision of another template.
	Collisions int32
	// HashLabel is the label that has the hash of a revision's template.
	HashLabel string
}

// HistoryPlan is what is to be done to a history.
type HistoryPlan struct {
	// Write is the revision of the template in use, to be created if it has no resource version; nil if it is there as it should be.
	Write *appsv1.ControllerRevision
	// Collisions is more than that of the history if the name of the revision to write was taken by that of another template. It is to
	// be noted in the status first, and the rest planned anew.
	Collisions int32
	// Prune are the old revisions beyond the limit, the oldest first.
	Prune []*appsv1.ControllerRevision
}

// KeepsHistory reports whether objects of the kind have ControllerRevisions.
func (k Kind) KeepsHistory() bool { return k.history != nil }

// Collided returns a copy of an object that notes how often the name of a revision was taken.
func (k Kind) Collided(in Object, collisions int32) Object {
	out := in.DeepCopyObject().(Object)
	k.collide(out, collisions)
	return out
}

// HistoryOf returns what the history of an object keeps.
func (k Kind) HistoryOf(in Object) History { return k.history(in) }

// PlanHistory decides what is to be done to the revisions of an object, which are all that it controls.
//
// The revision of the template in use has the highest number, as the stock controllers number: one more than all others have, if the
// template is new or used again. So what "rollout undo" and "rollout history" read are the templates that the user wrote, whatever
// overrides made of them below. It is the data that says which template a revision keeps; a user may write another one under its name, and
// then the name is not to be had. Used holds the hashes of templates that any pod still carries out; their revisions are not pruned.
func (k Kind) PlanHistory(owner Object, gvk schema.GroupVersionKind, existing []*appsv1.ControllerRevision, used map[string]bool) (HistoryPlan, error) {
	h := k.history(owner)
	data, err := revisionData(h.Template)
	if err != nil {
		return HistoryPlan{}, fmt.Errorf("encode the template of %s %s/%s: %w", gvk.Kind, owner.GetNamespace(), owner.GetName(), err)
	}
	sorted := slices.SortedFunc(slices.Values(existing), compareRevisions)
	var current *appsv1.ControllerRevision
	var highest int64
	for _, revision := range sorted {
		if bytes.Equal(revision.Data.Raw, data) {
			current = revision
		}
		highest = max(highest, revision.Revision)
	}
	plan := HistoryPlan{Collisions: h.Collisions}
	switch {
	case current == nil:
		write := newRevision(owner, gvk, h, projection.CollidedHash(h.Template, h.Collisions), data)
		if slices.ContainsFunc(sorted, func(r *appsv1.ControllerRevision) bool { return r.Name == write.Name }) {
			plan.Collisions++
			return plan, nil
		}
		plan.Write = write
		plan.Write.Revision = highest + 1
	case current != sorted[len(sorted)-1]:
		plan.Write = current.DeepCopy()
		plan.Write.Revision = highest + 1
	}
	var old []*appsv1.ControllerRevision
	for _, revision := range sorted {
		if revision != current && !used[revision.Labels[h.HashLabel]] && revision.DeletionTimestamp == nil {
			old = append(old, revision)
		}
	}
	if surplus := len(old) - limitOf(h); surplus > 0 {
		plan.Prune = old[:surplus]
	}
	return plan, nil
}

func limitOf(h History) int {
	if limit := ptr.Deref(h.Limit, -1); limit >= 0 {
		return int(limit)
	}
	return math.MaxInt
}

// compareRevisions orders by number, as the stock controllers do.
func compareRevisions(a, b *appsv1.ControllerRevision) int {
	return cmp.Or(
		cmp.Compare(a.Revision, b.Revision),
		a.CreationTimestamp.Compare(b.CreationTimestamp.Time),
		cmp.Compare(a.Name, b.Name),
	)
}

// newRevision makes a revision without its number.
func newRevision(owner Object, gvk schema.GroupVersionKind, h History, hash string, data []byte) *appsv1.ControllerRevision {
	labels := maps.Clone(h.Template.Labels)
	if labels == nil {
		labels = map[string]string{}
	}
	labels[h.HashLabel] = hash
	out := &appsv1.ControllerRevision{
		ObjectMeta: metav1.ObjectMeta{
			Name:            RevisionName(owner.GetName(), hash),
			Namespace:       owner.GetNamespace(),
			Labels:          labels,
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(owner, gvk)},
		},
		Data: runtime.RawExtension{Raw: data},
	}
	copyAnnotations(&out.ObjectMeta, owner.GetAnnotations())
	return out
}

// revisionData is the strategic merge patch that brings a template back: byte for byte the one that kubectl and the stock controllers make
// of the object, since that is how they tell whether a revision is the one in use.
func revisionData(template *corev1.PodTemplateSpec) ([]byte, error) {
	text, err := json.Marshal(template)
	if err != nil {
		return nil, err
	}
	var content map[string]any
	if err := json.Unmarshal(text, &content); err != nil {
		return nil, err
	}
	content["$patch"] = "replace"
	return json.Marshal(map[string]any{"spec": map[string]any{"template": content}})
}

// RevisionName returns the name of the ControllerRevision of the logical cluster that keeps the template with that hash for a StatefulSet
// or a DaemonSet.
func RevisionName(owner, templateHash string) string { return hashedName(owner, templateHash) }

// hashedName adds a hash to a name, which is cut if the whole would be too long.
func hashedName(name, hash string) string {
	if room := validation.DNS1123SubdomainMaxLength - len("-") - len(hash); room > 0 && len(name) > room {
		name = name[:room]
	}
	return name + "-" + hash
}
