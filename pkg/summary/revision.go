package summary

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// historyLimit bounds the annotation with former revisions, in characters: maxRevHistoryLengthInChars in
// k8s.io/kubernetes/pkg/controller/deployment/sync.go.
const historyLimit = 2000

// Revision is the number of a template in the history of a Deployment.
type Revision struct {
	// Number counts the templates in the order of their last use.
	Number int64
	// History lists the former numbers of a template that was used again, oldest first, separated by commas.
	History string
}

// Annotate puts the revision on a ReplicaSet, and reports whether that changed it.
func (r Revision) Annotate(mirror *appsv1.ReplicaSet) bool {
	if RevisionOf(mirror) == r {
		return false
	}
	metav1.SetMetaDataAnnotation(&mirror.ObjectMeta, annotationRevision, r.String())
	if r.History != "" {
		metav1.SetMetaDataAnnotation(&mirror.ObjectMeta, annotationRevisionHistory, r.History)
	}
	return true
}

// String is the number as the annotation deployment.kubernetes.io/revision of the Deployment and its ReplicaSet has it.
func (r Revision) String() string { return strconv.FormatInt(r.Number, 10) }

// RevisionOf reads the revision of a mirror. Without one, or with one that is no number, it is zero.
func RevisionOf(mirror *appsv1.ReplicaSet) Revision {
	number, err := strconv.ParseInt(mirror.Annotations[annotationRevision], 10, 64)
	if err != nil {
		number = 0
	}
	return Revision{Number: number, History: mirror.Annotations[annotationRevisionHistory]}
}

// Revisions numbers the mirrors of one Deployment, by their names, as the Deployment controller does: the mirror named current, which
// carries out the template in use, gets the highest number, one more than all others have; if it has that already it keeps it; if it
// had a lower one, since an old template is used again, that goes to its history. All others keep theirs. The Deployment's own
// revision is that of current.
//
// Others without a number come from clusters that had them before; they are numbered first, in the order in which they were made. Those that
// were made by hand stay without one, as with a Deployment controller, which numbers what it makes.
func Revisions(current string, mirrors []*appsv1.ReplicaSet) map[string]Revision {
	out := make(map[string]Revision, len(mirrors))
	var highest int64
	var unnumbered []*appsv1.ReplicaSet
	for _, mirror := range mirrors {
		revision := RevisionOf(mirror)
		out[mirror.Name] = revision
		switch {
		case mirror.Name == current, revision.Number == 0 && madeByHand(mirror):
		case revision.Number == 0:
			unnumbered = append(unnumbered, mirror)
		default:
			highest = max(highest, revision.Number)
		}
	}
	slices.SortFunc(unnumbered, func(a, b *appsv1.ReplicaSet) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	})
	for _, mirror := range unnumbered {
		highest++
		out[mirror.Name] = Revision{Number: highest, History: out[mirror.Name].History}
	}
	if revision, ok := out[current]; ok && revision.Number <= highest {
		out[current] = Revision{Number: highest + 1, History: appendHistory(revision)}
	}
	return out
}

// appendHistory drops the oldest numbers where the list would become too long.
func appendHistory(r Revision) string {
	if r.Number == 0 {
		return r.History
	}
	if r.History == "" {
		return r.String()
	}
	history := append(strings.Split(r.History, ","), r.String())
	for len(strings.Join(history, ",")) > historyLimit {
		history = history[1:]
	}
	return strings.Join(history, ",")
}

// Prune returns the mirrors of old templates that are beyond the Deployment's revisionHistoryLimit, the oldest first: cleanupDeployment
// in k8s.io/kubernetes/pkg/controller/deployment/sync.go. One that still has replicas, or that is being deleted, is never returned.
// The mirror named current is not history.
func Prune(owner *appsv1.Deployment, current string, mirrors []*appsv1.ReplicaSet) []*appsv1.ReplicaSet {
	const unlimited = 1<<31 - 1
	limit := ptr.Deref(owner.Spec.RevisionHistoryLimit, unlimited)
	var old []*appsv1.ReplicaSet
	for _, mirror := range mirrors {
		if mirror.Name != current && mirror.DeletionTimestamp == nil {
			old = append(old, mirror)
		}
	}
	surplus := len(old) - int(limit)
	if surplus <= 0 {
		return nil
	}
	slices.SortFunc(old, func(a, b *appsv1.ReplicaSet) int {
		return cmp.Or(
			cmp.Compare(RevisionOf(a).Number, RevisionOf(b).Number),
			a.CreationTimestamp.Compare(b.CreationTimestamp.Time),
			cmp.Compare(a.Name, b.Name),
		)
	})
	return slices.DeleteFunc(old[:surplus], func(mirror *appsv1.ReplicaSet) bool {
		runs := mirror.Status.Replicas != 0 || ptr.Deref(mirror.Spec.Replicas, 1) != 0
		return runs || mirror.Generation > mirror.Status.ObservedGeneration
	})
}
