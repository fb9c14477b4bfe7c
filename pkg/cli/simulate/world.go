package simulate

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/config"
	"github.com/manifold-dev/manifold/pkg/placement/engine"
	"github.com/manifold-dev/manifold/pkg/projection"
)

// world is everything that decisions depend on.
type world struct {
	// namespace is that of objects that name none.
	namespace string
	// served tells that the policies are those of a logical cluster, so that none is missing.
	served bool
	// settings are the server's; what is unset is what it does by default.
	settings engine.Options
	own      *runtime.Scheme
	// objects are by kind, and by namespace and name.
	objects map[schema.GroupKind]map[string]object
	// asked are the workloads of the manifests, in their order. Those of which manifests ask for something else than before are in changed.
	asked   []engine.Ref
	changed map[engine.Ref]change
	// booked are the last decisions, which may wait for others to move.
	booked map[engine.Ref]engine.Decided
}

// change is what a manifest changes in a workload.
type change struct{ repinned, resized bool }

func newWorld(namespace string) *world {
	return &world{namespace: namespace, objects: map[schema.GroupKind]map[string]object{}, changed: map[engine.Ref]change{},
		booked: map[engine.Ref]engine.Decided{}}
}

// keep takes an object as it is. Objects that decisions do not depend on are left out.
func (w *world) keep(u *unstructured.Unstructured) error {
	k, o, err := w.typed(u)
	if err == nil && o != nil {
		w.put(k, o)
	}
	return err
}

// apply takes an object as a manifest: what was decided about one that is there, and what clusters say of it, stays.
func (w *world) apply(u *unstructured.Unstructured) error {
	k, o, err := w.typed(u)
	if err != nil || o == nil {
		return err
	}
	workload, is := projection.ForGVK(k.GroupVersionKind)
	is = is && workload.Workload && !workload.Mirror(o.(projection.Object))
	before, known := w.objects[k.GroupKind()][nameOf(o)]
	if is {
		ref := engine.Ref{Kind: k.Kind, Namespace: o.GetNamespace(), Name: o.GetName()}
		if !slices.Contains(w.asked, ref) {
			w.asked = append(w.asked, ref)
		}
		if known {
			w.changed[ref] = changeOf(workload, before.(projection.Object), o.(projection.Object))
		}
	}
	if known {
		if err := carry(before, o); err != nil {
			return err
		}
	}
	w.put(k, o)
	return nil
}

// carry has an object keep what Manifold and clusters have written on it.
func carry(before, o object) error {
	for _, key := range []string{v1alpha1.AnnotationPlacement, v1alpha1.AnnotationStatus} {
		if value, had := before.GetAnnotations()[key]; had {
			annotations := maps.Clone(o.GetAnnotations())
			if annotations == nil {
				annotations = map[string]string{}
			}
			annotations[key] = value
			o.SetAnnotations(annotations)
		}
	}
	o.SetCreationTimestamp(before.GetCreationTimestamp())
	o.SetUID(before.GetUID())
	from, err := runtime.DefaultUnstructuredConverter.ToUnstructured(before)
	if err != nil {
		return err
	}
	to, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	if err != nil {
		return err
	}
	if status, has := from["status"]; has {
		to["status"] = status
	}
	return runtime.DefaultUnstructuredConverter.FromUnstructured(to, o)
}

// changeOf compares what a manifest asks for with what there is.
func changeOf(kind projection.Kind, before, after projection.Object) change {
	was, err := kind.WorkloadOf(before)
	if err != nil {
		return change{}
	}
	is, err := kind.WorkloadOf(after)
	if err != nil {
		return change{}
	}
	return change{repinned: is.Pin != nil && fmt.Sprint(is.Pin) != fmt.Sprint(was.Pin), resized: !maps.Equal(was.Requests, is.Requests)}
}

// typed reads an object as the server does, and refuses what it would refuse; nil for one that no decision depends on.
func (w *world) typed(u *unstructured.Unstructured) (kind, object, error) {
	gvk := u.GroupVersionKind()
	k, found := kindOf(gvk)
	if !found {
		return k, nil, w.take(u)
	}
	if k.GroupVersionKind != gvk {
		return k, nil, field.NotSupported(field.NewPath("apiVersion"), u.GetAPIVersion(), []string{k.GroupVersion().String()})
	}
	if u.GetName() == "" {
		return k, nil, field.Required(field.NewPath("metadata", "name"), "an object needs a name")
	}
	o := k.new()
	if err := decode(u.Object, o); err != nil {
		return k, nil, err
	}
	if o.GetNamespace() == "" && !k.wide {
		o.SetNamespace(w.namespace)
	}
	if k.own {
		if err := w.defaulted(o); err != nil {
			return k, nil, err
		}
	}
	if k.complete == nil {
		return k, o, nil
	}
	return k, o, k.complete(o).ToAggregate()
}

// take takes what the server says that it decides by, if that is what an object is.
func (w *world) take(u *unstructured.Unstructured) error {
	if u.GroupVersionKind() != corev1.SchemeGroupVersion.WithKind("ConfigMap") || u.GetNamespace() != metav1.NamespacePublic ||
		u.GetName() != v1alpha1.SettingsName {
		return nil
	}
	settings := &corev1.ConfigMap{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, settings); err != nil {
		return err
	}
	return w.settings.Take(settings)
}

// defaulted gives an object of one of Manifold's kinds its defaults.
func (w *world) defaulted(o object) error {
	if w.own == nil {
		w.own = runtime.NewScheme()
		if err := v1alpha1.AddToScheme(w.own); err != nil {
			return err
		}
	}
	w.own.Default(o)
	return nil
}

func (w *world) put(k kind, o object) {
	if w.objects[k.GroupKind()] == nil {
		w.objects[k.GroupKind()] = map[string]object{}
	}
	w.objects[k.GroupKind()][nameOf(o)] = o
}

func nameOf(o object) string { return o.GetNamespace() + "/" + o.GetName() }

// all are the objects of a kind by namespace and name.
func all[T object](w *world, gk schema.GroupKind) (out []T) {
	for _, name := range slices.Sorted(maps.Keys(w.objects[gk])) {
		out = append(out, w.objects[gk][name].(T))
	}
	return out
}

var (
	clusterKind   = v1alpha1.SchemeGroupVersion.WithKind("Cluster").GroupKind()
	policyKind    = v1alpha1.SchemeGroupVersion.WithKind("ClusterPlacementPolicy").GroupKind()
	namespaceKind = corev1.SchemeGroupVersion.WithKind("Namespace").GroupKind()
)

// found adds what every logical cluster has: a policy to start with, and the namespaces that anything is in, with the label of their name.
func (w *world) found() error {
	if !w.served && len(w.objects[policyKind]) == 0 {
		policy, err := config.DefaultPolicy()
		if err != nil {
			return err
		}
		w.own.Default(policy)
		w.objects[policyKind] = map[string]object{nameOf(policy): policy}
	}
	names := map[string]bool{}
	for _, objects := range w.objects {
		for name := range objects {
			if namespace, _, _ := strings.Cut(name, "/"); namespace != "" {
				names[namespace] = true
			}
		}
	}
	if w.objects[namespaceKind] == nil {
		w.objects[namespaceKind] = map[string]object{}
	}
	for name := range names {
		if w.objects[namespaceKind]["/"+name] == nil {
			w.objects[namespaceKind]["/"+name] = &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
		}
	}
	for name, o := range w.objects[namespaceKind] {
		n := o.(*corev1.Namespace).DeepCopy()
		metav1.SetMetaDataLabel(&n.ObjectMeta, corev1.LabelMetadataName, n.Name)
		w.objects[namespaceKind][name] = n
	}
	return nil
}

// silence has clusters fall silent for so long that nobody tolerates it.
func (w *world) silence(names []string) error {
	for _, name := range names {
		o, joined := w.objects[clusterKind]["/"+name]
		if !joined {
			return fmt.Errorf("--without %s: there is no such cluster", name)
		}
		c := o.(*v1alpha1.Cluster).DeepCopy()
		meta.SetStatusCondition(&c.Status.Conditions, metav1.Condition{
			Type: v1alpha1.ClusterReady, Status: metav1.ConditionUnknown, Reason: "Silent", Message: "it is lost",
		})
		c.Spec.Taints = append(c.Spec.Taints, corev1.Taint{Key: v1alpha1.TaintUnreachable, Effect: corev1.TaintEffectNoExecute})
		w.objects[clusterKind]["/"+name] = c
	}
	return nil
}

// workloads are those that are placed, those of the manifests first.
func (w *world) workloads() ([]engine.Ref, error) {
	out := slices.Clone(w.asked)
	for _, k := range projection.Workloads() {
		for _, o := range all[projection.Object](w, k.GVK.GroupKind()) {
			if ref := (engine.Ref{Kind: k.GVK.Kind, Namespace: o.GetNamespace(), Name: o.GetName()}); !k.Mirror(o) && !slices.Contains(w.asked, ref) {
				out = append(out, ref)
			}
		}
	}
	rest := out[len(w.asked):]
	slices.SortStableFunc(rest, func(a, b engine.Ref) int { return strings.Compare(a.Namespace+"/"+a.Name, b.Namespace+"/"+b.Name) })
	if len(out) == 0 {
		return nil, errors.New("there are no workloads, neither in the manifests nor beside the clusters")
	}
	return out, nil
}
