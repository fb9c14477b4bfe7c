package appdeployments

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/meta/testrestmapper"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/client-go/dynamic"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/informers"
	kubefake "k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/kubernetes/scheme"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"
	testclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/yaml"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	manifold "github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	ourfake "github.com/manifold-dev/manifold/generated/clientset/versioned/fake"
	"github.com/manifold-dev/manifold/generated/informers/externalversions"
	"github.com/manifold-dev/manifold/pkg/delivery/contents"
	"github.com/manifold-dev/manifold/pkg/delivery/controller/objects"
	"github.com/manifold-dev/manifold/pkg/delivery/oam"
	"github.com/manifold-dev/manifold/pkg/identity"
	"github.com/manifold-dev/manifold/pkg/placement"
	"github.com/manifold-dev/manifold/pkg/projection"
	"github.com/manifold-dev/manifold/pkg/summary"
)

var example = key{"applicationdeployments", cache.NewObjectName("shop", "example-app")}

// world is a logical cluster with clusters that do what they are told. What is written is seen at once.
type world struct {
	*testing.T
	clock  *testclock.FakeClock
	kube   informers.SharedInformerFactory
	ours   externalversions.SharedInformerFactory
	client *ourfake.Clientset
	api    *dynamicfake.FakeDynamicClient
	*Controller
	version int
	// object is the ApplicationDeployment, nil if it is gone, and customs are the objects of Istio's kinds.
	object  *unstructured.Unstructured
	customs map[wantedKey]*unstructured.Unstructured
	// home is the cluster of the object itself, "" if it does not say.
	home string
	// writes are those of objects. Clusters that are dead do nothing, and images that are broken never get ready. Requests do not get
	// to those that are unproxied.
	writes                  []string
	dead, broken, unproxied map[string]bool
}

type wantedKey struct{ kind, name string }

func newWorld(t *testing.T, clusters map[string]map[string]string) *world {
	w := &world{
		T: t, clock: testclock.NewFakeClock(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)), customs: map[wantedKey]*unstructured.Unstructured{},
		dead: map[string]bool{}, broken: map[string]bool{}, home: "west",
	}
	w.client, w.api = ourfake.NewClientset(), dynamicfake.NewSimpleDynamicClient(scheme.Scheme)
	w.api.PrependReactor("patch", "*", w.patch)
	w.api.PrependReactor("get", "*", w.get)
	w.api.PrependReactor("delete", "*", w.remove)
	w.api.PrependReactor("update", "*", w.update)
	w.client.PrependReactor("*", "*", w.own)
	w.kube, w.ours = informers.NewSharedInformerFactory(kubefake.NewClientset(), 0), externalversions.NewSharedInformerFactory(w.client, 0)
	w.restart()
	for name, labels := range clusters {
		w.add(w.ours.Manifold().V1alpha1().Clusters().Informer(), &manifold.Cluster{
			ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels},
			Status:     manifold.ClusterStatus{Conditions: []metav1.Condition{{Type: manifold.ClusterReady, Status: metav1.ConditionTrue, Reason: "ClusterReady"}}},
		})
	}
	return w
}

// restart has another controller go on, which remembers nothing. It has the caches of the one before.
func (w *world) restart() {
	w.Helper()
	kube, ours := w.kube, w.ours
	w.kube, w.ours = informers.NewSharedInformerFactory(kubefake.NewClientset(), 0), externalversions.NewSharedInformerFactory(w.client, 0)
	var err error
	w.Controller, err = New(Options{
		Kube: w.kube, Manifold: w.ours, Contents: contents.New(w.ours.Delivery().V1alpha1().ApplicationRevisions().Lister(), w.kube.Core().V1().Secrets().Lister()),
		Client: w.client, Dynamic: w.api, Objects: func(objects.Account) (dynamic.Interface, error) { return w.api, nil },
		Mapper: mapper{testrestmapper.TestOnlyStaticRESTMapper(scheme.Scheme)}, Kinds: customs{w}, Clock: w.clock,
	})
	if err != nil {
		w.Fatal(err)
	}
	move := func(from, to cache.SharedIndexInformer) {
		for _, obj := range from.GetIndexer().List() {
			if err := to.GetIndexer().Add(obj); err != nil {
				w.Fatal(err)
			}
		}
	}
	for _, gvr := range []schema.GroupVersionResource{
		corev1.SchemeGroupVersion.WithResource("services"), corev1.SchemeGroupVersion.WithResource("configmaps"), appsv1.SchemeGroupVersion.WithResource("deployments"),
		appsv1.SchemeGroupVersion.WithResource("replicasets"), {Group: "networking.k8s.io", Version: "v1", Resource: "ingresses"},
	} {
		was, err := kube.ForResource(gvr)
		if err != nil {
			w.Fatal(err)
		}
		move(was.Informer(), w.informer(gvr))
	}
	move(ours.Manifold().V1alpha1().Clusters().Informer(), w.ours.Manifold().V1alpha1().Clusters().Informer())
	move(ours.Manifold().V1alpha1().PlacementPolicies().Informer(), w.ours.Manifold().V1alpha1().PlacementPolicies().Informer())
	move(ours.Delivery().V1alpha1().ApplicationRevisions().Informer(), w.ours.Delivery().V1alpha1().ApplicationRevisions().Informer())
}

type mapper struct{ meta.RESTMapper }

func (mapper) Reset() {}

var istio = map[string]string{"VirtualService": "virtualservices", "Gateway": "gateways"}

func (m mapper) RESTMapping(kind schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	if resource, is := istio[kind.Kind]; is {
		return &meta.RESTMapping{Resource: schema.GroupVersionResource{Group: kind.Group, Version: "v1alpha3", Resource: resource}, Scope: meta.RESTScopeNamespace}, nil
	}
	return m.RESTMapper.RESTMapping(kind, versions...)
}

// customs are the custom resources of a world.
type customs struct{ *world }

func (customs) Follow(func(before, after *metav1.PartialObjectMetadata))     {}
func (customs) FollowKind(schema.GroupResource, func(cache.ObjectName))      {}
func (customs) Awaited(schema.GroupKind, *metav1.PartialObjectMetadata) bool { return false }

func (customs) Resource(kind schema.GroupKind) (schema.GroupVersionResource, bool) {
	resource, is := istio[kind.Kind]
	return schema.GroupVersionResource{Group: kind.Group, Version: "v1alpha3", Resource: resource}, is
}

func (c customs) Get(kind schema.GroupKind, _, name string) (*metav1.PartialObjectMetadata, bool) {
	if istio[kind.Kind] == "" {
		return nil, false
	}
	return metadata(c.customs[wantedKey{kind.Kind, name}]), true
}

func (c customs) Indexed(_, value string, show func(schema.GroupKind, *metav1.PartialObjectMetadata)) {
	for _, object := range c.customs {
		if value == "shop/"+object.GetLabels()[v1alpha1.LabelApplication] {
			show(object.GroupVersionKind().GroupKind(), metadata(object))
		}
	}
}

func metadata(of *unstructured.Unstructured) *metav1.PartialObjectMetadata {
	if of == nil {
		return nil
	}
	out := &metav1.PartialObjectMetadata{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(map[string]any{"metadata": of.Object["metadata"]}, out); err != nil {
		panic(err)
	}
	return out
}

func (w *world) next() string {
	w.version++
	return strconv.Itoa(w.version)
}

func (w *world) add(informer cache.SharedIndexInformer, object metav1.Object) {
	w.Helper()
	object.SetResourceVersion(w.next())
	if object.GetUID() == "" {
		object.SetUID(types.UID("uid-" + object.GetName()))
	}
	if err := informer.GetIndexer().Update(object); err != nil {
		w.Fatal(err)
	}
}

func (w *world) informer(resource schema.GroupVersionResource) cache.SharedIndexInformer {
	generic, err := w.kube.ForResource(resource)
	if err != nil {
		w.Fatal(err)
	}
	return generic.Informer()
}

// patch is what the server does: it stores what is applied, and placement decides as pin and policy say.
func (w *world) patch(action clienttesting.Action) (bool, runtime.Object, error) {
	patch := action.(clienttesting.PatchAction)
	in := &unstructured.Unstructured{}
	if err := utiljson.Unmarshal(patch.GetPatch(), &in.Object); err != nil {
		return true, nil, err
	}
	if patch.GetPatchType() == types.MergePatchType { // our finalizer
		w.object.SetFinalizers(in.GetFinalizers())
		w.object.SetResourceVersion(w.next())
		if len(in.GetFinalizers()) == 0 && w.object.GetDeletionTimestamp() != nil {
			w.object = nil
			return true, in, nil
		}
		return true, w.object.DeepCopy(), nil
	}
	if len(action.(clienttesting.PatchActionImpl).PatchOptions.DryRun) > 0 {
		return true, in, nil
	}
	w.writes = append(w.writes, in.GetKind()+"/"+in.GetName())
	if istio[in.GetKind()] != "" {
		return true, w.applyCustom(in), nil
	}
	informer, generation := w.informer(patch.GetResource()), int64(1)
	if old, exists, _ := informer.GetIndexer().GetByKey("shop/" + in.GetName()); exists {
		before := old.(metav1.Object)
		in.SetUID(before.GetUID())
		generation = before.GetGeneration() + 1
		annotate(in, manifold.AnnotationStatus, before.GetAnnotations()[manifold.AnnotationStatus])
	}
	in.SetGeneration(generation)
	if in.GetKind() == "Deployment" {
		annotate(in, manifold.AnnotationPlacement, w.place(in).String())
	}
	typed, err := scheme.Scheme.New(in.GroupVersionKind())
	if err != nil {
		return true, nil, err
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(in.Object, typed); err != nil {
		return true, nil, err
	}
	w.add(informer, typed.(metav1.Object))
	in.SetResourceVersion(strconv.Itoa(w.version))
	return true, in, nil
}

// applyCustom stores an object of Istio's kinds, or what clusters hold of it otherwise.
func (w *world) applyCustom(in *unstructured.Unstructured) *unstructured.Unstructured {
	key := wantedKey{in.GetKind(), in.GetName()}
	before := w.customs[key]
	if _, whole := in.Object["spec"]; !whole {
		annotate(before, v1alpha1.AnnotationRoutes, in.GetAnnotations()[v1alpha1.AnnotationRoutes])
		before.SetResourceVersion(w.next())
		return before.DeepCopy()
	}
	in.SetUID(types.UID("uid-" + in.GetKind() + in.GetName()))
	in.SetGeneration(1)
	if before != nil {
		in.SetGeneration(before.GetGeneration() + 1)
		annotate(in, v1alpha1.AnnotationRoutes, before.GetAnnotations()[v1alpha1.AnnotationRoutes])
		annotate(in, manifold.AnnotationStatus, before.GetAnnotations()[manifold.AnnotationStatus])
	}
	in.SetResourceVersion(w.next())
	w.customs[key] = in
	return in.DeepCopy()
}

func annotate(object *unstructured.Unstructured, name, value string) {
	annotations := object.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	if annotations[name] = value; value == "" {
		delete(annotations, name)
	}
	object.SetAnnotations(annotations)
}

// place decides as the pin and the policy say.
func (w *world) place(in *unstructured.Unstructured) placement.Decision {
	policy, err := w.ours.Manifold().V1alpha1().PlacementPolicies().Lister().PlacementPolicies("shop").Get(in.GetLabels()[v1alpha1.LabelPlacement])
	if err != nil {
		w.Errorf("%s is applied before its policy: %v", in.GetName(), err)
		return nil
	}
	out, total := placement.Decision{}, int32(0)
	for _, cluster := range strings.Split(in.GetAnnotations()[manifold.AnnotationClusters], ",") {
		out[cluster] = placement.Share{Replicas: policy.Spec.Division.Weights[cluster]}
		total += policy.Spec.Division.Weights[cluster]
	}
	if replicas, _, _ := unstructured.NestedInt64(in.Object, "spec", "replicas"); int32(replicas) != total {
		w.Errorf("%s has %d replicas, and its policy divides %d", in.GetName(), replicas, total)
	}
	return out
}

func (w *world) get(action clienttesting.Action) (bool, runtime.Object, error) {
	name, resource := action.(clienttesting.GetAction).GetName(), action.GetResource()
	missing := apierrors.NewNotFound(resource.GroupResource(), name)
	switch resource.Group {
	case oam.GroupVersion.Group:
		if w.object == nil {
			return true, nil, missing
		}
		return true, w.object.DeepCopy(), nil
	case "networking.istio.io":
		for key, object := range w.customs {
			if istio[key.kind] == resource.Resource && key.name == name {
				return true, object.DeepCopy(), nil
			}
		}
		return true, nil, missing
	}
	if obj, exists, _ := w.informer(resource).GetIndexer().GetByKey("shop/" + name); exists {
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
		return true, &unstructured.Unstructured{Object: content}, err
	}
	return true, nil, missing
}

func (w *world) remove(action clienttesting.Action) (bool, runtime.Object, error) {
	name, resource := action.(clienttesting.DeleteAction).GetName(), action.GetResource()
	w.writes = append(w.writes, "delete "+name)
	for kind, of := range istio {
		if resource.Resource == of {
			delete(w.customs, wantedKey{kind, name})
			return true, nil, nil
		}
	}
	obj, exists, _ := w.informer(resource).GetIndexer().GetByKey("shop/" + name)
	if deployment, is := obj.(*appsv1.Deployment); exists && is { // it goes when no cluster has anything of it
		going := deployment.DeepCopy()
		going.DeletionTimestamp = &metav1.Time{Time: w.clock.Now()}
		w.add(w.informer(resource), going)
		return true, nil, nil
	}
	if exists {
		_ = w.informer(resource).GetIndexer().Delete(obj)
	}
	return true, nil, nil
}

// update is that of the status.
func (w *world) update(action clienttesting.Action) (bool, runtime.Object, error) {
	in := action.(clienttesting.UpdateAction).GetObject().(*unstructured.Unstructured)
	if w.object == nil || in.GetResourceVersion() != w.object.GetResourceVersion() {
		w.Fatalf("the status is written of an object that is not the one that is there: %v", in)
	}
	w.object.Object["status"] = runtime.DeepCopyJSONValue(in.Object["status"])
	w.object.SetResourceVersion(w.next())
	return true, w.object.DeepCopy(), nil
}

// own stores what is written of policies.
func (w *world) own(action clienttesting.Action) (bool, runtime.Object, error) {
	informer := w.ours.Manifold().V1alpha1().PlacementPolicies().Informer()
	switch a := action.(type) {
	case clienttesting.UpdateActionImpl:
		w.add(informer, a.GetObject().DeepCopyObject().(metav1.Object))
		return true, a.GetObject(), nil
	case clienttesting.CreateActionImpl:
		w.add(informer, a.GetObject().DeepCopyObject().(metav1.Object))
		return true, a.GetObject(), nil
	case clienttesting.DeleteActionImpl:
		if obj, exists, _ := informer.GetIndexer().GetByKey("shop/" + a.GetName()); exists {
			_ = informer.GetIndexer().Delete(obj)
		}
		return true, nil, nil
	}
	return false, nil, nil
}

var deployments = appsv1.SchemeGroupVersion.WithResource("deployments")

// carry has the clusters do what they are told, and report it.
func (w *world) carry() {
	for _, obj := range w.informer(deployments).GetIndexer().List() {
		deployment := obj.(*appsv1.Deployment).DeepCopy()
		decision, reported := identity.DecisionOf(deployment), identity.BreakdownOf(deployment)
		if reported == nil {
			reported = summary.Breakdown{}
		}
		for cluster := range reported {
			if _, stays := decision[cluster]; (!stays || deployment.DeletionTimestamp != nil) && !w.dead[cluster] {
				delete(reported, cluster)
			}
		}
		if deployment.DeletionTimestamp != nil && len(reported) == 0 {
			_ = w.informer(deployments).GetIndexer().Delete(deployment)
			continue
		}
		for cluster, share := range decision {
			if w.dead[cluster] || deployment.DeletionTimestamp != nil {
				continue
			}
			entry := summary.ClusterStatus{Replicas: share.Replicas, Updated: share.Replicas, Generation: deployment.Generation}
			if !w.broken[deployment.Spec.Template.Spec.Containers[0].Image] {
				entry.Ready, entry.Available = share.Replicas, share.Replicas
			}
			if w.unproxied[deployment.Spec.Template.Spec.Containers[0].Image] {
				entry.Unproxied = share.Replicas
			}
			reported[cluster] = entry
		}
		if text := reported.String(); text != deployment.Annotations[manifold.AnnotationStatus] {
			deployment.Annotations[manifold.AnnotationStatus] = text
			w.add(w.informer(deployments), deployment)
		}
	}
	for _, object := range w.customs {
		reported, _ := summary.ParseCustomBreakdown(object.GetAnnotations()[manifold.AnnotationStatus])
		if reported == nil {
			reported = summary.CustomBreakdown{}
		}
		for _, cluster := range strings.Split(object.GetAnnotations()[manifold.AnnotationClusters], ",") {
			if !w.dead[cluster] {
				reported[cluster] = summary.CustomCluster{Generation: object.GetGeneration(), Routes: projection.RoutesOf(object)[cluster].Mark()}
			}
		}
		annotate(object, manifold.AnnotationStatus, reported.String())
	}
}

// revision makes a revision of the application, with so many replicas.
func (w *world) revision(number int64, replicas int) {
	w.Helper()
	var manifests []v1alpha1.RevisionObject
	var hashes []string
	for _, manifest := range []string{
		`{"apiVersion":"v1","kind":"Service","metadata":{"name":"front","namespace":"shop"},"spec":{"selector":{"app":"web"},"ports":[{"port":80}]}}`,
		fmt.Sprintf(`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web","namespace":"shop"},"spec":{"replicas":%d,"selector":{"matchLabels":{"app":"web"}},`+
			`"template":{"metadata":{"labels":{"app":"web"}},"spec":{"containers":[{"name":"web","image":"web:%d"}]}}}}`, replicas, number),
	} {
		hash, err := v1alpha1.HashManifest([]byte(manifest))
		if err != nil {
			w.Fatal(err)
		}
		manifests = append(manifests, v1alpha1.RevisionObject{Hash: hash, Manifest: &runtime.RawExtension{Raw: []byte(manifest)}})
		hashes = append(hashes, hash)
	}
	targets := []v1alpha1.RevisionTarget{{Name: v1alpha1.DefaultTarget, Hash: v1alpha1.HashObjects(hashes), Objects: hashes}}
	w.add(w.ours.Delivery().V1alpha1().ApplicationRevisions().Informer(), &v1alpha1.ApplicationRevision{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: v1alpha1.RevisionName("example-app", number)},
		Spec: v1alpha1.ApplicationRevisionSpec{
			Application: "example-app", Number: number, Objects: manifests, Targets: targets, Hash: v1alpha1.HashRevision(targets),
		},
	})
}

// apply is what a user does.
func (w *world) apply(spec string) {
	w.Helper()
	content := map[string]any{}
	if err := yaml.Unmarshal([]byte(spec), &content); err != nil {
		w.Fatal(err)
	}
	if w.object == nil {
		w.object = &unstructured.Unstructured{Object: map[string]any{"apiVersion": "core.oam.dev/v1beta1", "kind": "ApplicationDeployment"}}
		w.object.SetNamespace("shop")
		w.object.SetName("example-app")
		w.object.SetUID("uid-of-deployment")
	}
	if w.home != "" {
		content["homeCluster"] = w.home
	}
	w.object.Object["spec"] = content
	w.object.SetGeneration(w.object.GetGeneration() + 1)
	w.object.SetResourceVersion(w.next())
}

// step looks at it once, and lets the clusters do what follows.
func (w *world) step() {
	w.Helper()
	if err := w.sync(w.Context(), example); err != nil {
		w.Fatal(err)
	}
	w.carry()
	w.clock.Step(time.Second)
}

// settle steps until nothing changes any more but the clock.
func (w *world) settle() {
	w.Helper()
	for range 100 {
		before := w.version
		w.step()
		if w.step(); w.version == before {
			return
		}
	}
	w.Fatalf("it never settles: %v", w.writes)
}

// status is that of the object.
func (w *world) status() oam.Status {
	w.Helper()
	found, err := w.read(w.Context(), example)
	if unreadable := (unreadableError{}); found == nil || err != nil && !errors.As(err, &unreadable) {
		w.Fatal(found, err)
	}
	return found.Status
}

// runs is what clusters run, by what was decided: "v1 east=3 west=2, v2 west=5".
func (w *world) runs() string {
	var out []string
	for _, obj := range w.informer(deployments).GetIndexer().List() {
		deployment := obj.(*appsv1.Deployment)
		decision := identity.DecisionOf(deployment)
		said := strings.TrimPrefix(deployment.Name, "web-")
		for _, cluster := range decision.Clusters() {
			said += fmt.Sprintf(" %s=%d", cluster, decision[cluster].Replicas)
		}
		out = append(out, said)
	}
	slices.Sort(out)
	return strings.Join(out, ", ")
}

func (w *world) want(runs string) {
	w.Helper()
	if got := w.runs(); got != runs {
		w.Errorf("they run %q, want %q", got, runs)
	}
}

// says checks a condition.
func (w *world) says(kind string, status metav1.ConditionStatus, message string) {
	w.Helper()
	found := meta.FindStatusCondition(w.status().Conditions, kind)
	if found == nil || found.Status != status || !strings.Contains(found.Message, message) {
		w.Errorf("condition %s is %+v, want %s that says %q", kind, found, status, message)
	}
}
