package wanted

import (
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/json"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	manifold "github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/delivery"
	"github.com/manifold-dev/manifold/pkg/delivery/copies"
	"github.com/manifold-dev/manifold/pkg/identity"
	"github.com/manifold-dev/manifold/pkg/placement"
)

// finish makes of a projected object what is applied: with our marks, its owner, and where it is to run.
func (app Application) finish(p copies.Projected, portions map[string]int32, policies *policies) (Object, error) {
	key := KeyOf(p.Object)
	workload, goes := projected[schema.GroupKind{Group: key.Group, Kind: key.Kind}]
	// What a copy is made of is in no revision: its clusters hold the object as it stands.
	out := Object{
		Key: key, Variant: p.Variant, Workload: workload, Clusters: p.Clusters, Held: goes && p.Variant == delivery.Primary, Portions: portions,
		Manifest: p.Object.DeepCopy(),
	}
	if app.Keeps != nil && out.Held {
		out.Clusters = maps.Clone(out.Clusters)
		for cluster, share := range app.Keeps(key) {
			_, stays := policies.set.Part(delivery.Primary, cluster)
			if _, has := out.Clusters[cluster]; !has && stays {
				out.Clusters[cluster] = share
			}
		}
	}
	if app.Selected && p.Variant == delivery.Primary {
		out.Manifest = bare(p.Object)
	}
	m := out.Manifest
	if portions != nil {
		if err := setReplicas(m, portions); err != nil {
			return Object{}, err
		}
	}
	unstructured.RemoveNestedField(m.Object, "status")
	for _, field := range []string{"creationTimestamp", "generation", "managedFields", "resourceVersion", "selfLink", "uid"} {
		unstructured.RemoveNestedField(m.Object, "metadata", field)
	}
	m.SetNamespace(app.Namespace)
	if !app.Selected || p.Variant != delivery.Primary {
		m.SetOwnerReferences([]metav1.OwnerReference{app.Owner()})
	}
	app.mark(&out, p, policies)
	if out.Held {
		out.Shares = shares(out.Clusters)
	}
	var err error
	out.Hash, err = hash(m, out.Shares)
	return out, err
}

// mark has labels and annotations of a manifest say whose it is, and where it is to run.
func (app Application) mark(out *Object, p copies.Projected, policies *policies) {
	m := out.Manifest
	_, goes := projected[schema.GroupKind{Group: out.Group, Kind: out.Kind}]
	annotations := maps.Clone(m.GetAnnotations())
	// What is of a custom kind goes where its author or a policy sends it, but for the route: requests are shared out in the clusters that have it.
	maps.DeleteFunc(annotations, func(name, _ string) bool { return ours(name, app.Pinned && goes) })
	_, sent := annotations[manifold.AnnotationClusters]
	out.Pinned = out.Workload && app.Pinned || !goes && p.Variant == delivery.Primary && out.Key == app.Route && !sent && !app.Selected
	if annotations == nil {
		annotations = map[string]string{}
	}
	labels := maps.Clone(m.GetLabels())
	if labels == nil {
		labels = map[string]string{}
	}
	labels[v1alpha1.LabelApplication], annotations[v1alpha1.AnnotationVariant] = app.Name, p.Variant
	if !goes && p.Variant == delivery.Primary {
		annotations[v1alpha1.AnnotationContent] = identity.Revision{Name: p.From.Revision, Target: p.From.Target}.String()
	}
	if out.Pinned {
		annotations[manifold.AnnotationClusters] = strings.Join(slices.Sorted(maps.Keys(out.Clusters)), ",")
	}
	if out.Workload && app.Pinned {
		labels[v1alpha1.LabelPlacement] = policies.of(*out)
	}
	m.SetLabels(labels)
	m.SetAnnotations(annotations)
}

// bare is an object without what its users say of it.
func bare(object *unstructured.Unstructured) *unstructured.Unstructured {
	out := &unstructured.Unstructured{}
	out.SetGroupVersionKind(object.GroupVersionKind())
	out.SetName(object.GetName())
	return out
}

// ours reports whether an annotation of a manifest is not for its author to write.
func ours(name string, pinned bool) bool {
	switch name {
	case manifold.AnnotationPlacement, manifold.AnnotationAwaits, manifold.AnnotationStatus, v1alpha1.AnnotationApplied, v1alpha1.AnnotationVariant, v1alpha1.AnnotationRoutes,
		v1alpha1.AnnotationContent, v1alpha1.AnnotationOwner:
		return true
	case manifold.AnnotationClusters:
		return pinned
	}
	return false
}

// shares is the annotation that says which revision each cluster holds. How many replicas clusters have is for placement to say.
func shares(clusters map[string]copies.Share) string {
	out := placement.Decision{}
	for cluster, share := range clusters {
		out[cluster] = placement.Share{Revision: share.Revision, Target: share.Target}
	}
	return out.String()
}

func hash(manifest *unstructured.Unstructured, shares string) (string, error) {
	text, err := json.Marshal(manifest.Object)
	if err != nil {
		return "", err
	}
	sum := sha256.New()
	sum.Write(text)
	sum.Write([]byte("\x00" + shares))
	return hex.EncodeToString(sum.Sum(nil)), nil
}

// Apply returns what is applied of the object. With shares it says which revision each cluster holds, which only who delivers may say.
func (o Object) Apply(withShares bool) *unstructured.Unstructured {
	out := o.Manifest.DeepCopy()
	annotations := out.GetAnnotations()
	annotations[v1alpha1.AnnotationApplied] = o.Hash
	if withShares && o.Shares != "" {
		annotations[manifold.AnnotationPlacement] = o.Shares
	}
	out.SetAnnotations(annotations)
	return out
}

// Applied reports whether an object of the logical cluster is what is wanted: it was applied as it is now, and every cluster that has a share
// holds what it is to hold.
func (o Object) Applied(present metav1.Object) bool {
	if present == nil || present.GetDeletionTimestamp() != nil || present.GetAnnotations()[v1alpha1.AnnotationApplied] != o.Hash {
		return false
	}
	return o.holds(present)
}

// holds reports whether every cluster that has a share of an object holds what it is to hold.
func (o Object) holds(present metav1.Object) bool {
	decision, err := placement.ParseDecision(present.GetAnnotations()[manifold.AnnotationPlacement])
	if err != nil {
		return false
	}
	for cluster, want := range o.Clusters {
		has, placed := decision[cluster]
		switch {
		case !o.Held:
		case placed && (has.Revision != want.Revision || has.Target != want.Target), !placed && !o.Workload:
			return false
		}
	}
	return true
}
