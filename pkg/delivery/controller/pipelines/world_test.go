package pipelines

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/informers"
	kubefake "k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	testclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/yaml"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"

	manifold "github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	ourfake "github.com/manifold-dev/manifold/generated/clientset/versioned/fake"
	"github.com/manifold-dev/manifold/generated/informers/externalversions"
	"github.com/manifold-dev/manifold/pkg/delivery/weave"
	"github.com/manifold-dev/manifold/pkg/delivery/weave/versions"
)

const logical = "logical-id"

var podinfo = key{weave.Group, cache.NewObjectName("flux", "podinfo")}

// world is a logical cluster with clusters, of which what is there is seen at once.
type world struct {
	*testing.T
	*Controller
	clock   *testclock.FakeClock
	kube    informers.SharedInformerFactory
	ours    externalversions.SharedInformerFactory
	api     *dynamicfake.FakeDynamicClient
	store   cache.SharedInformer
	version int
	// customs are the objects of custom kinds, pipelines among them, and undefined the kinds that nobody has defined.
	customs   map[schema.GroupKind]map[string]*unstructured.Unstructured
	undefined map[schema.GroupKind]bool
	unknown   map[schema.GroupKind]bool
	// there is what clusters have by themselves, and wants who wants to see what of it.
	there map[string]map[Sight]Seen
	wants map[string]map[string][]Sight
	// writes are the patches of statuses, and reads the objects that were read.
	writes []string
	reads  []string
	// lost are the rights that somebody has not.
	lost []string
}

func newWorld(t *testing.T) *world {
	w := &world{
		T: t, clock: testclock.NewFakeClock(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)), customs: map[schema.GroupKind]map[string]*unstructured.Unstructured{},
		undefined: map[schema.GroupKind]bool{}, unknown: map[schema.GroupKind]bool{}, there: map[string]map[Sight]Seen{}, wants: map[string]map[string][]Sight{},
		kube: informers.NewSharedInformerFactory(kubefake.NewClientset(), 0), ours: externalversions.NewSharedInformerFactory(ourfake.NewClientset(), 0),
		api: dynamicfake.NewSimpleDynamicClient(runtime.NewScheme()), store: cache.NewSharedInformer(&cache.ListWatch{}, &apiextensionsv1.CustomResourceDefinition{}, 0),
	}
	w.api.PrependReactor("get", "*", w.get)
	w.api.PrependReactor("patch", "*", w.patch)
	w.begin()
	for kind, resource := range versions.Custom {
		w.define(kind, resource)
	}
	for _, cluster := range []string{"dev", "prod"} {
		w.cluster(cluster, nil)
	}
	for _, namespace := range []string{"flux", "podinfo"} {
		w.add(w.kube.Core().V1().Namespaces().Informer(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})
	}
	return w
}

// begin has a controller begin, which remembers nothing.
func (w *world) begin() {
	w.Helper()
	var err error
	w.Controller, err = New(Options{
		Kube: w.kube, Manifold: w.ours, Kinds: kinds{w}, Sights: sighted{w}, Dynamic: w.api, LogicalCluster: func() string { return logical }, Clock: w.clock,
		May: func(by weave.Author, right weave.Right) bool {
			return !slices.Contains(w.lost, by.User+" "+right.String())
		},
	})
	if err != nil {
		w.Fatal(err)
	}
	w.Define(w.store)
}

// restart has another controller go on over the same caches.
func (w *world) restart() {
	w.known, w.wants = newIndex(), map[string]map[string][]Sight{}
	w.read.Clear()
}

func (w *world) define(kind schema.GroupKind, resource schema.GroupResource) {
	crd := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: resource.String()}}
	crd.Status.Conditions = []apiextensionsv1.CustomResourceDefinitionCondition{{Type: apiextensionsv1.Established, Status: apiextensionsv1.ConditionTrue}}
	if err := w.store.GetStore().Add(crd); err != nil {
		w.Fatal(err)
	}
	delete(w.undefined, kind)
}

func (w *world) undefine(kind schema.GroupKind) {
	if err := w.store.GetStore().Delete(&apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: versions.Custom[kind].String()}}); err != nil {
		w.Fatal(err)
	}
	w.undefined[kind] = true
}

// cluster adds a Cluster that answers, unless it is changed.
func (w *world) cluster(name string, change func(*manifold.Cluster)) {
	out := &manifold.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name}}
	out.Status.Conditions = []metav1.Condition{{Type: manifold.ClusterReady, Status: metav1.ConditionTrue}}
	if change != nil {
		change(out)
	}
	w.add(w.ours.Manifold().V1alpha1().Clusters().Informer(), out)
}

func silent(c *manifold.Cluster) { c.Status.Conditions[0].Status = metav1.ConditionUnknown }

func allowed(c *manifold.Cluster) {
	c.Spec.Allows.Pipelines = true
	c.Status.Kinds = []string{"HelmRelease.v2.helm.toolkit.fluxcd.io", "HelmRelease.v2beta2.helm.toolkit.fluxcd.io", "Pod.v1"}
}

func (w *world) add(informer cache.SharedIndexInformer, object metav1.Object) {
	w.Helper()
	w.version++
	object.SetResourceVersion(strconv.Itoa(w.version))
	if err := informer.GetIndexer().Add(object); err != nil {
		w.Fatal(err)
	}
}

// apply has an object of a custom kind there as YAML says it. The spec that it has counts its generation.
func (w *world) apply(text string) *unstructured.Unstructured {
	w.Helper()
	content := map[string]any{}
	if err := yaml.Unmarshal([]byte(text), &content); err != nil {
		w.Fatal(err)
	}
	encoded, err := json.Marshal(content)
	if err != nil {
		w.Fatal(err)
	}
	out := &unstructured.Unstructured{}
	if err := out.UnmarshalJSON(encoded); err != nil {
		w.Fatal(err)
	}
	kind := out.GroupVersionKind().GroupKind()
	if w.customs[kind] == nil {
		w.customs[kind] = map[string]*unstructured.Unstructured{}
	}
	name := cache.MetaObjectToName(out).String()
	if last := w.customs[kind][name]; last != nil {
		out.SetGeneration(last.GetGeneration() + 1)
		if status, has := last.Object["status"]; has && out.Object["status"] == nil {
			out.Object["status"] = status
		}
	} else if out.GetGeneration() == 0 {
		out.SetGeneration(1)
	}
	out.SetUID(types.UID("uid-of-" + out.GetName()))
	w.keep(out)
	return out
}

func (w *world) keep(o *unstructured.Unstructured) {
	w.version++
	o.SetResourceVersion(strconv.Itoa(w.version))
	w.customs[o.GroupVersionKind().GroupKind()][cache.MetaObjectToName(o).String()] = o
}

// pipeline applies podinfo, whose environments are YAML.
func (w *world) pipeline(app, environments string) {
	w.Helper()
	w.apply(fmt.Sprintf("apiVersion: pipelines.weave.works/v1alpha1\nkind: Pipeline\nmetadata: {name: podinfo, namespace: flux}\nspec: {%s environments: %s}", app, environments))
}

// helmRelease applies one of podinfo that is ready at a version.
func (w *world) helmRelease(namespace, version string) *unstructured.Unstructured {
	w.Helper()
	return w.apply(fmt.Sprintf(`{apiVersion: helm.toolkit.fluxcd.io/v2, kind: HelmRelease, metadata: {name: podinfo, namespace: %s, generation: 1, labels: {pipelines.weave.works/pipeline: podinfo}},
spec: {chart: {spec: {version: %[2]s}}}, status: {observedGeneration: 99, lastAppliedRevision: %[2]s, conditions: [{type: Ready, status: "True", reason: ok}]}}`, namespace, version))
}

// deployment has one there that is ready.
func (w *world) deployment(namespace, name, tag string, change func(*appsv1.Deployment)) {
	w.Helper()
	out := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Generation: 1, Labels: map[string]string{weave.OlderPipelineLabel: "podinfo"}}}
	out.Spec.Template.Spec.Containers = []corev1.Container{{Name: "web", Image: "podinfo:" + tag}}
	out.Status = appsv1.DeploymentStatus{ObservedGeneration: 1, Replicas: 1, UpdatedReplicas: 1, ReadyReplicas: 1, AvailableReplicas: 1}
	if change != nil {
		change(out)
	}
	w.add(w.kube.Apps().V1().Deployments().Informer(), out)
}

func (w *world) get(action clienttesting.Action) (bool, runtime.Object, error) {
	of := action.(clienttesting.GetAction)
	name := of.GetNamespace() + "/" + of.GetName()
	w.reads = append(w.reads, of.GetResource().Resource+" "+name)
	for kind, objects := range w.customs {
		if o := objects[name]; o != nil && kind.Group == of.GetResource().Group {
			return true, o.DeepCopy(), nil
		}
	}
	return true, nil, apierrors.NewNotFound(of.GetResource().GroupResource(), of.GetName())
}

func (w *world) patch(action clienttesting.Action) (bool, runtime.Object, error) {
	of := action.(clienttesting.PatchAction)
	if of.GetSubresource() != "status" || of.GetPatchType() != types.MergePatchType {
		w.Errorf("%s of %q is written", of.GetPatchType(), of.GetSubresource())
	}
	w.writes = append(w.writes, string(of.GetPatch()))
	objects := w.customs[schema.GroupKind{Group: of.GetResource().Group, Kind: weave.Kind}]
	o := objects[of.GetNamespace()+"/"+of.GetName()].DeepCopy()
	change := &unstructured.Unstructured{}
	_ = json.Unmarshal(of.GetPatch(), &change.Object)
	if version := change.GetResourceVersion(); version != "" && version != o.GetResourceVersion() {
		return true, nil, apierrors.NewConflict(of.GetResource().GroupResource(), of.GetName(), fmt.Errorf("it is another version"))
	}
	before, err := o.MarshalJSON()
	if err != nil {
		return true, nil, err
	}
	after, err := jsonpatch.MergePatch(before, of.GetPatch())
	if err != nil {
		return true, nil, err
	}
	if err := o.UnmarshalJSON(after); err != nil {
		return true, nil, err
	}
	w.keep(o)
	return true, o.DeepCopy(), nil
}

// look has the controller look at podinfo.
func (w *world) look() {
	w.Helper()
	if err := w.sync(w.Context(), podinfo); err != nil {
		w.Fatal(err)
	}
}

// told is the status of podinfo.
func (w *world) told() weave.Status {
	w.Helper()
	out, err := decode(w.customs[schema.GroupKind{Group: weave.Group, Kind: weave.Kind}][podinfo.ObjectName.String()])
	if unreadable := (unreadableError{}); err != nil && !errors.As(err, &unreadable) {
		w.Fatal(err)
	}
	return out.Status
}

// shows compares what is told of an environment: each target with "KIND/NAME VERSION" for its workloads, with a star for what is ready.
func (w *world) shows(environment string, want ...string) {
	w.Helper()
	var got []string
	if status := w.told().Environments[environment]; status != nil {
		for _, target := range status.Targets {
			said := strings.TrimPrefix(target.Name+"/"+target.Namespace, "/") + ":"
			for _, workload := range target.Workloads {
				said += fmt.Sprintf(" %s/%s %s", workload.Kind, workload.Name, workload.Version)
				if workload.Ready {
					said += "*"
				}
			}
			if target.Ready {
				said += " ready"
			}
			got = append(got, said)
		}
	}
	if !slices.Equal(got, want) {
		w.Errorf("of %s is shown\n%s\nwant\n%s", environment, strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// says compares the condition Ready.
func (w *world) says(status metav1.ConditionStatus, reason, message string) {
	w.Helper()
	for _, condition := range w.told().Conditions {
		if condition.Type == weave.ConditionReady {
			if condition.Status != status || condition.Reason != reason || !strings.Contains(condition.Message, message) {
				w.Errorf("Ready is %s, %s: %s; want %s, %s: %s", condition.Status, condition.Reason, condition.Message, status, reason, message)
			}
			return
		}
	}
	w.Error("nothing is said of Ready")
}

// kinds are the custom kinds of a world.
type kinds struct{ *world }

func (k kinds) Resource(kind schema.GroupKind) (schema.GroupVersionResource, bool) {
	resource, custom := versions.Custom[kind]
	return resource.WithVersion("v2"), custom && !k.undefined[kind]
}

func (k kinds) Get(kind schema.GroupKind, namespace, name string) (*metav1.PartialObjectMetadata, bool) {
	o := k.customs[kind][namespace+"/"+name]
	if o == nil || k.unknown[kind] {
		return nil, !k.unknown[kind] && !k.undefined[kind]
	}
	return metadataFrom(o), true
}

func metadataFrom(o *unstructured.Unstructured) *metav1.PartialObjectMetadata {
	return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Namespace: o.GetNamespace(), Name: o.GetName(), UID: o.GetUID(), ResourceVersion: o.GetResourceVersion(), Generation: o.GetGeneration(),
		Labels: o.GetLabels(), Annotations: o.GetAnnotations(), DeletionTimestamp: o.GetDeletionTimestamp(),
	}}
}

func (k kinds) Known(kind schema.GroupKind) bool { return !k.unknown[kind] && !k.undefined[kind] }

func (k kinds) Indexed(index, value string, show func(schema.GroupKind, *metav1.PartialObjectMetadata)) {
	for kind, objects := range k.customs {
		if k.unknown[kind] || k.undefined[kind] {
			continue
		}
		for _, o := range objects {
			if found, err := Indexers()[index](o); err == nil && slices.Contains(found, value) {
				show(kind, metadataFrom(o))
			}
		}
	}
}

func (kinds) Follow(func(before, after *metav1.PartialObjectMetadata)) {}

func (kinds) FollowKind(schema.GroupResource, func(cache.ObjectName)) {}

// sighted shows what clusters of a world have.
type sighted struct{ *world }

func (s sighted) Want(owner string, sights map[string][]Sight) { s.wants[owner] = sights }

func (s sighted) Look(cluster string, sight Sight) Seen {
	if !slices.Contains(s.wants["uid-of-podinfo"][cluster], sight) {
		s.Errorf("%s looks at %v, which it does not want", cluster, sight)
	}
	if of, has := s.there[cluster]; has {
		seen := of[sight]
		seen.Known = seen.Problem == ""
		return seen
	}
	return Seen{}
}

// noted is a queue that notes what is to be looked at.
type noted struct {
	workqueue.TypedRateLimitingInterface[key]
	keys []key
}

func (n *noted) AddAfter(k key, _ time.Duration) { n.keys = append(n.keys, k) }
