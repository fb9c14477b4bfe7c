package views

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/kubernetes/pkg/api/legacyscheme"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/identity"
	"github.com/manifold-dev/manifold/pkg/projection"
)

// Several clusters may hold one object, each as it was written through its own view. The object says what the first of them holds, with the replicas of
// all together, and carries what the others hold (identity.Contents): so one write changes one cluster's, no cluster sees the half of it, and whoever
// may read the object may read all of it. Everybody who asks what a cluster holds takes that for a revision of the object (pkg/delivery/held).

// inOnePlace are the kinds of which one name is one thing in all clusters: what has an identity, data or progress of its own.
var inOnePlace = map[string]bool{
	"persistentvolumeclaims": true, "pods": true, "replicasets": true, "replicationcontrollers": true, "statefulsets": true, "jobs": true,
	"cronjobs": true,
}

// mostContents bounds the contents that an object carries, in bytes: annotations may have 256 KiB together.
const mostContents = 200 << 10

// several reports whether several clusters may hold objects of the kind, each of them something else.
func (l looker) several() bool { return !inOnePlace[l.kind.Resource.Resource] }

// heldBy returns which clusters hold an object as it was written through their views, none if it was not written through any.
func (l looker) heldBy(above projection.Object) v1alpha1.Views {
	if views := identity.ViewsOf(above); views != nil {
		return views
	}
	names := identity.MadeThrough(above)
	if l.kind.Workload {
		pin, err := v1alpha1.ParsePin(above.GetAnnotations()[v1alpha1.AnnotationClusters])
		if err != nil || pin.All {
			return nil
		}
		names = pin.Names
	}
	if len(names) != 1 {
		return nil
	}
	return v1alpha1.Views{{Cluster: names[0], Replicas: replicasOf(above)}}
}

// mayJoin returns why an object that the cluster has no part of does not come to be held by it as well, nil if it may.
func (l looker) mayJoin(above projection.Object) error {
	switch {
	case l.kind.Mirror(above), len(l.heldBy(above)) == 0:
		return l.occupied(above, "What was made without a view has one content for all clusters")
	case !l.several():
		return l.occupied(above, fmt.Sprintf("A %s of one name is in one cluster", l.kind.GVK.Kind))
	case above.GetDeletionTimestamp() != nil:
		return l.occupied(above, "It is being deleted")
	case !identity.Viewed(above) && identity.NamesRevisions(above):
		return l.occupied(above, "An Application says which revision its clusters hold")
	}
	return nil
}

// held returns an object as a cluster holds it by its view, with all that the object itself knows of who it is.
func (l looker) held(above projection.Object, view v1alpha1.View) (projection.Object, error) {
	out := above.DeepCopyObject().(projection.Object)
	if view.Content != "" {
		content, err := l.content(above, view.Content)
		if err != nil {
			return nil, fmt.Errorf("%s %q as cluster %q holds it: %w", l.kind.GVK.Kind, above.GetName(), view.Cluster, err)
		}
		if out, err = l.as(above, content); err != nil {
			return nil, err
		}
	}
	setReplicas(out, view.Replicas)
	annotate(out, v1alpha1.AnnotationClusters, view.Cluster)
	return out, nil
}

// content returns what an object carries under a name.
func (l looker) content(above projection.Object, name string) (projection.Object, error) {
	all, err := identity.ContentsOf(above)
	if err != nil {
		return nil, err
	}
	manifest, err := all.Get(name)
	if err != nil {
		return nil, err
	}
	out := l.kind.New()
	if err := json.Unmarshal(manifest, out); err != nil {
		return nil, fmt.Errorf("content %q: %w", name, err)
	}
	return out, nil
}

// as returns the object above with the content of another one, and who manages which field of that. It shares memory with neither.
func (l looker) as(above, content projection.Object) (projection.Object, error) {
	shared, err := l.kind.As(above, content)
	if err != nil {
		return nil, err
	}
	out := shared.DeepCopyObject().(projection.Object)
	out.SetManagedFields(slices.Clone(content.GetManagedFields()))
	return out, nil
}

// manifest is what is carried of an object as a cluster holds it. What the object itself says, such as its replicas by cluster, is no part of it.
func (l looker) manifest(of projection.Object) ([]byte, error) {
	out := of.DeepCopyObject().(projection.Object)
	setReplicas(out, nil)
	labels, annotations, fields := out.GetLabels(), users(out.GetAnnotations()), out.GetManagedFields()
	bare(out)
	out.GetObjectKind().SetGroupVersionKind(l.kind.GVK)
	out.SetName(of.GetName())
	out.SetLabels(labels)
	out.SetAnnotations(annotations)
	out.SetManagedFields(fields)
	data, err := json.Marshal(out)
	if err != nil {
		return nil, fmt.Errorf("encode %s %q: %w", l.kind.GVK.Kind, of.GetName(), err)
	}
	return data, nil
}

// with returns what is stored of an object once the cluster holds next of it, and all others what they hold.
func (l looker) with(above, next projection.Object) (runtime.Object, error) {
	views := slices.Clone(l.heldBy(above))
	contents, err := identity.ContentsOf(above)
	if err != nil {
		return nil, err
	}
	i := views.Index(l.cluster)
	if i < 0 {
		i = len(views)
		views = append(views, v1alpha1.View{Cluster: l.cluster})
	}
	views[i].Replicas = replicasOf(next)
	if i == 0 {
		return l.whole(above, next, views, contents)
	}
	manifest, err := l.manifest(next)
	if err != nil {
		return nil, err
	}
	if views[i].Content, err = contents.Add(manifest); err != nil {
		return nil, fmt.Errorf("keep %s %q as cluster %q is to hold it: %w", l.kind.GVK.Kind, above.GetName(), l.cluster, err)
	}
	first, err := l.held(above, views[0])
	if err != nil {
		return nil, err
	}
	return l.whole(above, first, views, contents)
}

// without returns what is stored of an object once the cluster holds nothing of it, and all others what they hold.
func (l looker) without(above projection.Object) (runtime.Object, error) {
	views := slices.DeleteFunc(slices.Clone(l.heldBy(above)), func(view v1alpha1.View) bool { return view.Cluster == l.cluster })
	if len(views) == 0 {
		return nil, fmt.Errorf("no cluster but %q holds %s %q", l.cluster, l.kind.GVK.Kind, above.GetName())
	}
	contents, err := identity.ContentsOf(above)
	if err != nil {
		return nil, err
	}
	first, err := l.held(above, views[0])
	if err != nil {
		return nil, err
	}
	views[0].Content = ""
	return l.whole(above, first, views, contents)
}

// whole returns what is stored of an object whose clusters hold what views say: the first of them first, the others contents.
func (l looker) whole(above, first projection.Object, views v1alpha1.Views, contents identity.Contents) (runtime.Object, error) {
	out, err := l.as(above, first)
	if err != nil {
		return nil, err
	}
	names := strings.Join(views.Clusters(), ",")
	annotate(out, v1alpha1.AnnotationClusters, names)
	annotate(out, v1alpha1.AnnotationView, names) // also of a workload that one cluster is left with: what leaves the others waits for nothing there
	if len(views) == 1 {
		setReplicas(out, views[0].Replicas)
		annotate(out, v1alpha1.AnnotationViews, "")
		annotate(out, v1alpha1.AnnotationViewContents, "")
		return l.stored(out)
	}
	used := identity.Contents{}
	for _, view := range views[1:] {
		used[view.Content] = contents[view.Content]
	}
	text := used.String()
	if len(text) > mostContents {
		return nil, apierrors.NewRequestEntityTooLargeError(fmt.Sprintf("what clusters %s hold of %s %q takes %d bytes together, which is more than one object carries (%d): "+
			"use another name or another namespace for some of them", names, l.kind.GVK.Kind, above.GetName(), len(text), mostContents))
	}
	setReplicas(out, sum(views))
	annotate(out, v1alpha1.AnnotationViews, views.String())
	annotate(out, v1alpha1.AnnotationViewContents, text)
	return l.stored(out)
}

// stored returns an object in the version that storage has it in.
func (l looker) stored(of projection.Object) (runtime.Object, error) {
	out, err := legacyscheme.Scheme.ConvertToVersion(of, internalOf(l.kind))
	if err != nil {
		return nil, fmt.Errorf("store a %s: %w", l.kind.GVK.Kind, err)
	}
	return out, nil
}

// steers returns what is wrong with a change of what an object says for all of its clusters, in the view of one: its owners and finalizers, and what steers
// Manifold. An object that joins others may leave these out.
func (l looker) steers(was, wanted metav1.Object, joins bool) field.ErrorList {
	var errs field.ErrorList
	const says = "the object says this for all clusters that hold it: change it at the logical cluster itself"
	at := field.NewPath("metadata")
	before, after := was.GetAnnotations(), wanted.GetAnnotations()
	keys := maps.Clone(after)
	if !joins {
		maps.Copy(keys, before)
	}
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		if ofManifold(key) && key != v1alpha1.AnnotationClusters && !slices.Contains(hidden, key) && before[key] != after[key] {
			errs = append(errs, field.Forbidden(at.Child("annotations").Key(key), says))
		}
	}
	if !(joins && len(wanted.GetOwnerReferences()) == 0) && !equality.Semantic.DeepEqual(was.GetOwnerReferences(), wanted.GetOwnerReferences()) {
		errs = append(errs, field.Forbidden(at.Child("ownerReferences"), says))
	}
	if !(joins && len(wanted.GetFinalizers()) == 0) && !equality.Semantic.DeepEqual(was.GetFinalizers(), wanted.GetFinalizers()) {
		errs = append(errs, field.Forbidden(at.Child("finalizers"), says))
	}
	return errs
}

// same reports whether two versions of an object have the same content: all but who it is, how it stands, and what steers Manifold.
func (l looker) same(a, b projection.Object) bool {
	if !maps.Equal(a.GetLabels(), b.GetLabels()) || !maps.Equal(users(a.GetAnnotations()), users(b.GetAnnotations())) {
		return false
	}
	a, b = a.DeepCopyObject().(projection.Object), b.DeepCopyObject().(projection.Object)
	bare(a)
	bare(b)
	return equality.Semantic.DeepEqual(a, b)
}

// users are the annotations that do not steer Manifold.
func users(annotations map[string]string) map[string]string {
	out := maps.Clone(annotations)
	maps.DeleteFunc(out, func(key, _ string) bool { return ofManifold(key) })
	return out
}

// annotate sets an annotation, or takes it away for "". It leaves alone the map that another object may share.
func annotate(of metav1.Object, key, value string) {
	annotations := maps.Clone(of.GetAnnotations())
	if annotations == nil {
		annotations = map[string]string{}
	}
	if annotations[key] = value; value == "" {
		delete(annotations, key)
	}
	of.SetAnnotations(annotations)
}

// replicasOf is the number of replicas that a workload says, nil for one that says none.
func replicasOf(of projection.Object) *int32 {
	if d, is := of.(*appsv1.Deployment); is {
		replicas := wanted(d.Spec.Replicas)
		return &replicas
	}
	return nil
}

func setReplicas(of projection.Object, replicas *int32) {
	if d, is := of.(*appsv1.Deployment); is {
		d.Spec.Replicas = replicas
	}
}

// sum is the number of replicas of all clusters together, nil if they have none.
func sum(views v1alpha1.Views) *int32 {
	total, says := int64(0), false
	for _, view := range views {
		if view.Replicas != nil {
			total, says = total+int64(*view.Replicas), true
		}
	}
	if !says {
		return nil
	}
	out := int32(min(total, int64(1<<31-1)))
	return &out
}
