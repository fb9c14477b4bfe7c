// Package wanted says what objects of the logical cluster a variant set stands for: what is applied, what of it each cluster holds, and by which
// policies it is placed.
package wanted

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	manifold "github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/delivery"
	"github.com/manifold-dev/manifold/pkg/delivery/copies"
	"github.com/manifold-dev/manifold/pkg/projection"
)

// Application is what the objects of an application have in common.
type Application struct {
	Namespace, Name string
	UID             types.UID
	// Stands is the object of another kind that stands for an application; nil for an Application.
	Stands *metav1.OwnerReference
	// Pinned says that the targets say in which clusters the application runs. Otherwise placement does.
	Pinned bool
	// Rights says that the objects are written with the rights of a ServiceAccount, so that they may be of any kind that it may write.
	Rights bool
	// Traffic is the method by which requests are shared out, "" for none.
	Traffic v1alpha1.TrafficMethod
	// Routes makes what sends requests to the Service in front. It is nil if nothing is made.
	Routes func(delivery.Set, Front) ([]Route, error)
	// Route names the object by which requests are shared out, where users write it themselves: it may be one of the manifests. Without a name it is the only one
	// of its kind among them. It has no kind where there is none.
	Route  Key
	Copies copies.Options
	// Selected says that the objects of the primary are their users' own, of which nothing is written but who holds which revision.
	Selected bool
	// Targets returns the names of the targets that a revision has manifests for, in its order. Nil stands for one.
	Targets func(delivery.Revision) []string
	// Keeps returns what clusters hold of an object of the primary, whether or not their revision has it. It is nil if what a revision does not
	// have is deleted.
	Keeps func(Key) map[string]copies.Share
}

// Key names an object in the namespace of the application.
type Key struct{ Group, Kind, Name string }

// String names the object for people.
func (k Key) String() string { return k.Kind + "/" + k.Name }

// KeyOf returns the key of an object.
func KeyOf(object *unstructured.Unstructured) Key {
	gvk := object.GroupVersionKind()
	return Key{gvk.Group, gvk.Kind, object.GetName()}
}

// Object is an object as it is to be.
type Object struct {
	Key
	Variant string
	// Workload says that it ends in pods, so that placement decides about it.
	Workload bool
	// Held says that each cluster holds the content of a revision. Otherwise all hold the object as it stands.
	Held bool
	// Pinned says that it is sent to the clusters that have a share of it, and nowhere else.
	Pinned bool
	// Clusters say what each cluster has of it.
	Clusters map[string]copies.Share
	// Portions are the replicas that the manifests of the clusters' own targets say, where those of one revision say different numbers. It is nil where all
	// clusters have the number of the object.
	Portions map[string]int32
	// Manifest is what is applied, without the shares of clusters.
	Manifest *unstructured.Unstructured
	// Shares is the annotation that says which revision each cluster holds, "" if none holds one.
	Shares string
	// Hash is that of the manifest and the shares.
	Hash string
}

// Wanted is what a variant set stands for.
type Wanted struct {
	// Objects are in the order in which they are applied.
	Objects []Object
	// Policies say how workloads are placed. They are there before these.
	Policies []*manifold.PlacementPolicy
	// Replicas are those that the manifests give each workload that copies are made of, by the name of a cluster and as delivery.Part names
	// workloads.
	Replicas map[string]map[string]int32
	// Labelled tells of the clusters of the primary whose pods can be told from those of copies, and Fronts are the Services in front of it. They are for an
	// application whose requests are shared out.
	Labelled map[string]bool
	Fronts   map[string]Front
	// Unrouted says why objects that are to send requests to the application are not made, "" if they are. Those that are there stay then.
	Unrouted string
}

// Front is the Service in front of an application, with its ports and those workloads of which copies are made whose pods it leads to, or why there is none.
type Front struct {
	Name, Problem string
	Ports         []int32
	Leads         []string
}

// Contents returns the rendered objects of a part.
type Contents func(delivery.Part) ([]*unstructured.Unstructured, error)

// Make returns what a set stands for. Newest names the revision that comes first where clusters hold several.
func Make(app Application, set delivery.Set, newest string, contents Contents) (Wanted, error) {
	read := &reader{app: app, contents: contents, known: map[string][]*unstructured.Unstructured{}}
	projected, err := copies.Project(set, copies.Revisions{Contents: read.objects, Targets: app.targets, Newest: newest}, app.Copies)
	if read.err != nil {
		return Wanted{}, read.err
	}
	if err != nil {
		return Wanted{}, err
	}
	app.Route = app.Route.among(projected)
	out := Wanted{Replicas: map[string]map[string]int32{}, Labelled: map[string]bool{}, Fronts: map[string]Front{}}
	policies := policies{app: app, set: set, made: map[string]*manifold.PlacementPolicy{}}
	numbers := numbers{app: app, primary: set[delivery.Primary], read: read, said: map[string]map[Key]int32{}, differ: map[string]map[Key]bool{}}
	for _, p := range projected {
		object, err := app.finish(p, numbers.portions(p), &policies)
		if err = cmp.Or(read.err, err); err != nil {
			return Wanted{}, fmt.Errorf("%s of the %s: %w", copies.Key(p.Object), p.Variant, err)
		}
		out.Objects = append(out.Objects, object)
	}
	for _, name := range slices.Sorted(maps.Keys(policies.made)) {
		out.Policies = append(out.Policies, policies.made[name])
	}
	for cluster, part := range set[delivery.Primary].Clusters {
		if out.Replicas[cluster], err = app.Copies.Replicas(read.objects(part)); err != nil {
			return Wanted{}, err
		}
		out.Labelled[cluster] = app.Traffic != "" && copies.Labels(read.objects(part), app.Copies)
	}
	if app.Traffic == "" {
		return out, nil
	}
	for _, cluster := range set.Clusters() {
		part, has := set.Part(delivery.Primary, cluster)
		if !has { // it has copies alone: their requests come by the same Service
			name := slices.IndexFunc(set.Names(), func(name string) bool { _, has := set.Part(name, cluster); return has })
			part, _ = set.Part(set.Names()[name], cluster)
		}
		name, leads, err := app.Copies.Front(read.objects(part))
		if out.Fronts[cluster] = (Front{Name: name, Ports: app.Copies.Ports(read.objects(part)), Leads: leads}); err != nil {
			out.Fronts[cluster] = Front{Problem: err.Error()}
		}
	}
	routes, err := app.routes(set, out.Fronts)
	if err != nil {
		out.Unrouted = "spec." + err.Error()
	}
	for _, route := range routes {
		if slices.ContainsFunc(out.Objects, func(object Object) bool { return object.Key == route.Key }) {
			out.Unrouted = fmt.Sprintf("spec.traffic: %s is to be made, and is among the manifests: set spec.traffic.name to its name", route.Key)
			continue
		}
		out.Objects = append(out.Objects, route)
	}
	return out, nil
}

// Beside returns an object that belongs to an application, and is none of its revisions' but of a variant of its own.
func (app Application) Beside(variant string, object *unstructured.Unstructured) (Object, error) {
	return app.finish(copies.Projected{Variant: variant, Object: object}, nil, &policies{app: app, made: map[string]*manifold.PlacementPolicy{}})
}

func (app Application) targets(revision delivery.Revision) []string {
	if app.Targets == nil {
		return nil
	}
	return app.Targets(revision)
}

// reader reads the objects of parts, each of them once, and remembers the first error.
type reader struct {
	app      Application
	contents Contents
	known    map[string][]*unstructured.Unstructured
	err      error
}

func (r *reader) objects(part delivery.Part) []*unstructured.Unstructured {
	key := part.Revision.Name + "\x00" + part.Target
	if found, known := r.known[key]; known {
		return found
	}
	found, err := r.contents(part)
	for i := 0; err == nil && i < len(found); i++ {
		if err = r.app.admit(found[i]); err != nil {
			err = fmt.Errorf("revision %s, target %q, object %d: %s: %w", part.Revision.Name, part.Target, i, copies.Key(found[i]), err)
		}
	}
	if err != nil {
		r.err, found = cmp.Or(r.err, err), nil
	} else if found == nil {
		found = []*unstructured.Unstructured{}
	}
	r.known[key] = found
	return found
}

// admit refuses what an application may not have.
func (app Application) admit(object *unstructured.Unstructured) error {
	if namespace := object.GetNamespace(); namespace != "" && namespace != app.Namespace {
		return fmt.Errorf("metadata.namespace: it is in namespace %q, and the application in %q: leave it unset", namespace, app.Namespace)
	}
	group := object.GroupVersionKind().Group
	switch {
	case app.Rights:
	case group == rbacv1.GroupName:
		return fmt.Errorf("kind: it gives rights, which is for a ServiceAccount to do: name one in spec.serviceAccountName")
	case group == manifold.GroupName || group == v1alpha1.GroupName:
		return fmt.Errorf("kind: an application has no objects of %s, unless a ServiceAccount may write them: name one in spec.serviceAccountName", group)
	case scoped[schema.GroupKind{Group: group, Kind: object.GetKind()}]:
		return fmt.Errorf("kind: it is in no namespace, which is for a ServiceAccount to write: name one in spec.serviceAccountName")
	}
	return nil
}

// scoped are the built-in kinds in no namespace that manifests have most often. Others are refused when they are tried.
var scoped = map[schema.GroupKind]bool{
	{Group: corev1.GroupName, Kind: "Namespace"}: true, {Group: corev1.GroupName, Kind: "Node"}: true, {Group: corev1.GroupName, Kind: "PersistentVolume"}: true,
	{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}: true, {Group: "apiregistration.k8s.io", Kind: "APIService"}: true,
	{Group: "scheduling.k8s.io", Kind: "PriorityClass"}: true, {Group: "storage.k8s.io", Kind: "StorageClass"}: true,
	{Group: "admissionregistration.k8s.io", Kind: "ValidatingWebhookConfiguration"}: true,
	{Group: "admissionregistration.k8s.io", Kind: "MutatingWebhookConfiguration"}:   true,
}

// Defines returns the custom kind that a manifest defines, false for one that is no definition.
func Defines(manifest *unstructured.Unstructured) (kind schema.GroupKind, is bool) {
	if manifest.GroupVersionKind().GroupKind() != (schema.GroupKind{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}) {
		return schema.GroupKind{}, false
	}
	group, _, _ := unstructured.NestedString(manifest.Object, "spec", "group")
	name, _, _ := unstructured.NestedString(manifest.Object, "spec", "names", "kind")
	return schema.GroupKind{Group: group, Kind: name}, name != ""
}

// projected are the kinds that go to clusters, each with whether placement decides about it.
var projected = func() map[schema.GroupKind]bool {
	out := map[schema.GroupKind]bool{}
	for _, kind := range projection.Kinds() {
		out[kind.GVK.GroupKind()] = kind.Workload
	}
	return out
}()

// Owner is what the objects of an application are owned by.
func (app Application) Owner() metav1.OwnerReference {
	if app.Stands != nil {
		return *app.Stands
	}
	block := true
	return metav1.OwnerReference{
		APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: "Application", Name: app.Name, UID: app.UID, BlockOwnerDeletion: &block,
	}
}
