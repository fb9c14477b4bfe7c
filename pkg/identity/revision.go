package identity

import (
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/placement"
)

// Revision names what an object holds in a cluster: a revision of an application, and the target of it whose manifests count; or what was written through
// the view of the cluster, see ViewContent. The zero value stands for the object as it stands.
type Revision struct{ Name, Target string }

// String is how an object names the revision that it is made of, "" for the zero value.
func (r Revision) String() string {
	if r == (Revision{}) {
		return ""
	}
	return r.Name + "/" + r.Target
}

// ParseRevision reads what String wrote. What is none is the zero value.
func ParseRevision(text string) Revision {
	name, target, ok := strings.Cut(text, "/")
	if !ok || name == "" {
		return Revision{}
	}
	return Revision{name, target}
}

// NamesRevisions reports whether an object names a revision for any cluster, as almost none does. It is quick to ask.
func NamesRevisions(above metav1.Object) bool {
	annotations := above.GetAnnotations()
	return annotations[v1alpha1.AnnotationViews] != "" || strings.Contains(annotations[v1alpha1.AnnotationPlacement], `"revision":`) ||
		strings.Contains(annotations[v1alpha1.AnnotationStatus], `"revision":`)
}

// RevisionIn returns the revision of an object that a cluster is to hold. One that leaves keeps what it was last known to have. One that nothing is
// decided about, as where something goes along with a workload that has just come, takes over what a new cluster would.
func RevisionIn(above metav1.Object, cluster string) Revision {
	if !NamesRevisions(above) || AwaitsIn(above, cluster) {
		return Revision{}
	}
	if view, has := ViewsOf(above).Of(cluster); has {
		return RevisionOf(view)
	}
	decision := DecisionOf(above)
	if share, decided := decision[cluster]; decided {
		return Revision{share.Revision, share.Target}
	}
	if last := BreakdownOf(above)[cluster]; last.Revision != "" {
		return Revision{last.Revision, last.Target}
	}
	share := placement.Decision{cluster: {}}.Holding(decision)[cluster]
	return Revision{share.Revision, share.Target}
}

// RevisionsOf returns the revisions of an object that any cluster is to hold or has been told to, in no order and each of them once. The zero value
// is among them if any is to hold the object as it stands.
func RevisionsOf(above metav1.Object) []Revision {
	if !NamesRevisions(above) {
		return []Revision{{}}
	}
	found, views := map[Revision]bool{}, ViewsOf(above)
	for _, view := range views {
		found[RevisionOf(view)] = true
	}
	for cluster, share := range DecisionOf(above) {
		if views.Index(cluster) < 0 {
			found[Revision{share.Revision, share.Target}] = true
		}
	}
	for _, last := range BreakdownOf(above) {
		if last.Revision != "" {
			found[Revision{last.Revision, last.Target}] = true
		}
	}
	if len(found) == 0 {
		return []Revision{{}}
	}
	out := make([]Revision, 0, len(found))
	for revision := range found {
		out = append(out, revision)
	}
	return out
}
