package controller

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
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
	"k8s.io/utils/ptr"
	mcs "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	ourfake "github.com/manifold-dev/manifold/generated/clientset/versioned/fake"
	"github.com/manifold-dev/manifold/generated/informers/externalversions"
	"github.com/manifold-dev/manifold/pkg/multicluster"
)

var (
	name    = cache.NewObjectName("shop", "db")
	exports = mcs.SchemeGroupVersion.WithResource(mcs.ServiceExportPluralName)
	imports = mcs.SchemeGroupVersion.WithResource(mcs.ServiceImportPluralName)
)

// world is a logical cluster whose caches show what was written whenever the controller looks.
type world struct {
	*testing.T
	*Controller
	client  *kubefake.Clientset
	api     *dynamicfake.FakeDynamicClient
	defined map[schema.GroupKind]bool
	awaited bool
	// pods are the addresses of the pods of the Service by cluster, in one slice.
	pods map[string][]string
	// wanted are the clusters whose imports are to be seen, and theirs what these are.
	wanted []string
	theirs map[string]multicluster.Theirs
}

func newWorld(t *testing.T, clusters map[string]string) *world {
	w := &world{
		T: t, client: kubefake.NewClientset(), defined: map[schema.GroupKind]bool{multicluster.ExportKind: true, multicluster.ImportKind: true},
		pods: map[string][]string{},
	}
	w.api = dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), map[schema.GroupVersionResource]string{
		exports: "ServiceExportList", imports: "ServiceImportList",
	})
	// As the server does with finalizers.
	w.api.PrependReactor("patch", "serviceexports", func(action clienttesting.Action) (bool, runtime.Object, error) {
		patch := &unstructured.Unstructured{}
		if err := patch.UnmarshalJSON([]byte(strings.Replace(string(action.(clienttesting.PatchAction).GetPatch()), "{", `{"apiVersion":"v1","kind":"x",`, 1))); err != nil {
			return true, nil, err
		}
		live := w.get(exports)
		if annotations := patch.GetAnnotations(); annotations != nil {
			now := live.GetAnnotations()
			maps.Copy(now, annotations)
			live.SetAnnotations(now)
			return true, live, w.api.Tracker().Update(exports, live, "shop")
		}
		live.SetFinalizers(patch.GetFinalizers())
		if live.GetDeletionTimestamp() != nil && len(live.GetFinalizers()) == 0 {
			return true, live, w.api.Tracker().Delete(exports, "shop", "db")
		}
		return true, live, w.api.Tracker().Update(exports, live, "shop")
	})
	var err error
	w.Controller, err = New(Options{
		Kube: informers.NewSharedInformerFactory(w.client, 0), Manifold: externalversions.NewSharedInformerFactory(ourfake.NewClientset(), 0),
		Kinds: kinds{w}, Endpoints: endpoints{w}, Imports: seen{w}, Client: w.client, Dynamic: w.api, Clock: testclock.NewFakePassiveClock(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)),
	})
	if err != nil {
		t.Fatal(err)
	}
	for cluster, network := range clusters {
		w.join(cluster, network, metav1.ConditionTrue)
	}
	return w
}

func (w *world) join(cluster, network string, ready metav1.ConditionStatus) {
	w.Helper()
	err := w.Manifold.Manifold().V1alpha1().Clusters().Informer().GetIndexer().Update(&v1alpha1.Cluster{
		ObjectMeta: metav1.ObjectMeta{Name: cluster}, Spec: v1alpha1.ClusterSpec{Network: network},
		Status: v1alpha1.ClusterStatus{Conditions: []metav1.Condition{{Type: v1alpha1.ClusterReady, Status: ready, Reason: "Any"}}},
	})
	if err != nil {
		w.Fatal(err)
	}
}

// kinds are the custom kinds of a world.
type kinds struct{ *world }

func (k kinds) Resource(kind schema.GroupKind) (schema.GroupVersionResource, bool) {
	return map[schema.GroupKind]schema.GroupVersionResource{multicluster.ExportKind: exports, multicluster.ImportKind: imports}[kind], k.defined[kind]
}

func (k kinds) Get(kind schema.GroupKind, namespace, name string) (*metav1.PartialObjectMetadata, bool) {
	resource, defined := k.Resource(kind)
	found := k.get(resource)
	if !defined || found == nil || name != found.GetName() || namespace != found.GetNamespace() {
		return nil, defined
	}
	return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Annotations: found.GetAnnotations()}}, true
}

func (k kinds) Awaited(schema.GroupKind, *metav1.PartialObjectMetadata) bool { return k.awaited }
func (kinds) FollowKind(schema.GroupResource, func(cache.ObjectName))        {}

// endpoints are those of the pods of a world.
type endpoints struct{ *world }

func (e endpoints) MadeOfPods(cache.ObjectName) []*discoveryv1.EndpointSlice {
	return []*discoveryv1.EndpointSlice{{
		ObjectMeta:  metav1.ObjectMeta{Namespace: "shop", Name: "db-x", Labels: map[string]string{discoveryv1.LabelServiceName: "db"}},
		AddressType: discoveryv1.AddressTypeIPv4, Ports: []discoveryv1.EndpointPort{{Name: ptr.To("sql"), Port: ptr.To[int32](5432)}},
	}}
}

func (e endpoints) Sources(*discoveryv1.EndpointSlice) []string {
	return slices.Sorted(maps.Keys(e.pods))
}

func (e endpoints) From(_ *discoveryv1.EndpointSlice, _ *corev1.Service, cluster string) (out []discoveryv1.Endpoint) {
	for _, address := range e.pods[cluster] {
		out = append(out, discoveryv1.Endpoint{Addresses: []string{address}})
	}
	return out
}

func (endpoints) Contested(*corev1.Pod) []cache.ObjectName { return []cache.ObjectName{name} }

// seen are the imports that clusters of a world have by implementations of their own.
type seen struct{ *world }

func (s seen) Want(_ cache.ObjectName, _ schema.GroupVersionResource, clusters []string) {
	s.wanted = clusters
}

func (s seen) Look(_ cache.ObjectName, _ schema.GroupVersionResource, cluster string) multicluster.Theirs {
	return s.theirs[cluster]
}

func (w *world) get(resource schema.GroupVersionResource) *unstructured.Unstructured {
	found, err := w.api.Tracker().Get(resource, "shop", "db")
	if err != nil {
		return nil
	}
	return found.(*unstructured.Unstructured).DeepCopy()
}

func (w *world) export(change ...func(*mcs.ServiceExport)) {
	w.Helper()
	e := &mcs.ServiceExport{
		TypeMeta:   metav1.TypeMeta{APIVersion: mcs.GroupVersion.String(), Kind: mcs.ServiceExportKindName},
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "db", UID: "export", Generation: 1},
	}
	for _, c := range change {
		c(e)
	}
	w.add(exports, e)
}

func (w *world) add(resource schema.GroupVersionResource, object any) {
	w.Helper()
	content, err := asMap(object)
	if err == nil {
		err = w.api.Tracker().Create(resource, content, "shop")
	}
	if err != nil {
		w.Fatal(err)
	}
}

func (w *world) serve(change ...func(*corev1.Service)) {
	w.Helper()
	s := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "db", UID: "db"}, Spec: corev1.ServiceSpec{
		Selector: map[string]string{"app": "db"}, ClusterIP: "10.0.0.7", ClusterIPs: []string{"10.0.0.7"}, Ports: []corev1.ServicePort{{Name: "sql", Port: 5432}},
	}}
	for _, c := range change {
		c(s)
	}
	if _, err := w.client.CoreV1().Services("shop").Create(w.Context(), s, metav1.CreateOptions{}); err != nil {
		w.Fatal(err)
	}
}

// annotated is what the Service says of where it leads.
func (w *world) annotated() string {
	w.Helper()
	s, err := w.client.CoreV1().Services("shop").Get(w.Context(), "db", metav1.GetOptions{})
	if err != nil {
		w.Fatal(err)
	}
	return s.Annotations[v1alpha1.AnnotationTraffic]
}

func (w *world) annotate(value string) {
	w.Helper()
	s, err := w.client.CoreV1().Services("shop").Get(w.Context(), "db", metav1.GetOptions{})
	if err != nil {
		w.Fatal(err)
	}
	s.Annotations = map[string]string{v1alpha1.AnnotationTraffic: value}
	if _, err := w.client.CoreV1().Services("shop").Update(w.Context(), s, metav1.UpdateOptions{FieldManager: "kubectl-annotate"}); err != nil {
		w.Fatal(err)
	}
}

// refresh has the caches show what was written.
func (w *world) refresh() {
	w.Helper()
	services, err := w.client.CoreV1().Services("").List(w.Context(), metav1.ListOptions{})
	if err != nil {
		w.Fatal(err)
	}
	found, err := w.client.DiscoveryV1().EndpointSlices("").List(w.Context(), metav1.ListOptions{})
	if err != nil {
		w.Fatal(err)
	}
	var all, ofSlices []any
	for i := range services.Items {
		all = append(all, &services.Items[i])
	}
	for i := range found.Items {
		ofSlices = append(ofSlices, &found.Items[i])
	}
	err = errors.Join(w.Kube.Core().V1().Services().Informer().GetIndexer().Replace(all, ""),
		w.Kube.Discovery().V1().EndpointSlices().Informer().GetIndexer().Replace(ofSlices, ""))
	if err != nil {
		w.Fatal(err)
	}
}

// look has the controller look once.
func (w *world) look() error {
	w.Helper()
	w.refresh()
	err := w.sync(w.Context(), name)
	w.refresh()
	return err
}

// settle has it look until it writes nothing more.
func (w *world) settle() {
	w.Helper()
	for range 5 {
		w.client.ClearActions()
		w.api.ClearActions()
		if err := w.look(); err != nil {
			w.Fatal(err)
		}
		if w.writes() == 0 {
			return
		}
	}
	w.Fatal("it writes again and again")
}

func (w *world) writes() (count int) {
	for _, action := range append(w.client.Actions(), w.api.Actions()...) {
		if !slices.Contains([]string{"get", "list", "watch"}, action.GetVerb()) {
			count++
		}
	}
	return count
}

// led writes the slices of the import: clusters with their addresses.
func (w *world) led() string {
	w.Helper()
	found, err := w.client.DiscoveryV1().EndpointSlices("shop").List(w.Context(), metav1.ListOptions{LabelSelector: mcs.LabelServiceName + "=db"})
	if err != nil {
		w.Fatal(err)
	}
	var out []string
	for _, slice := range found.Items {
		text := slice.Labels[mcs.LabelSourceCluster] + ":"
		for _, endpoint := range slice.Endpoints {
			text += endpoint.Addresses[0]
		}
		out = append(out, text)
	}
	slices.Sort(out)
	return strings.Join(out, " ")
}

func (w *world) imported() *mcs.ServiceImport {
	w.Helper()
	found := w.get(imports)
	if found == nil {
		return nil
	}
	out := &mcs.ServiceImport{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(found.Object, out); err != nil {
		w.Fatal(err)
	}
	return out
}

// says returns the reason and message of a condition of the export.
func (w *world) says(kind mcs.ServiceExportConditionType) string {
	w.Helper()
	out := &mcs.ServiceExport{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(w.get(exports).Object, out); err != nil {
		w.Fatal(err)
	}
	found := meta.FindStatusCondition(out.Status.Conditions, string(kind))
	if found == nil {
		return ""
	}
	return found.Reason + ": " + found.Message
}

func (w *world) held() bool {
	found := w.get(exports)
	return found != nil && slices.Contains(found.GetFinalizers(), multicluster.Finalizer)
}

// remove deletes the export as the server does: what is held stays until it is let go.
func (w *world) remove() {
	w.Helper()
	live := w.get(exports)
	now := metav1.Now()
	live.SetDeletionTimestamp(&now)
	if err := w.api.Tracker().Update(exports, live, "shop"); err != nil {
		w.Fatal(err)
	}
}

func expect[T comparable](t *testing.T, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}

func mesh() map[string]string { return map[string]string{"east": "mesh", "west": "mesh"} }

func TestAnExportedServiceLeadsToAllItsPodsUntilItIsNotExportedAnyMore(t *testing.T) {
	w := newWorld(t, mesh())
	w.serve()
	w.pods = map[string][]string{"east": {"10.1.0.1"}, "west": {"10.2.0.1"}}
	w.export()
	w.settle()
	expect(t, "it leads", w.annotated(), "Global")
	expect(t, "its slices", w.led(), "east:10.1.0.1 west:10.2.0.1")
	got := w.imported()
	if got == nil || got.Spec.Type != mcs.ClusterSetIP || got.Spec.IPs[0] != "10.0.0.7" || len(got.Status.Clusters) != 2 || !meta.IsStatusConditionTrue(got.Status.Conditions, "Ready") {
		t.Errorf("its import is %+v", got)
	}
	if said := w.says(mcs.ServiceExportConditionReady); !strings.HasPrefix(said, "Exported") {
		t.Errorf("it says %s", said)
	}

	w.pods = map[string][]string{"west": {"10.2.0.1", "10.2.0.2"}}
	w.settle()
	expect(t, "when they have moved", w.led(), "west:10.2.0.110.2.0.2")
	w.join("west", "mesh", metav1.ConditionUnknown)
	w.settle()
	expect(t, "when the cluster is silent", w.led(), "")
	expect(t, "it is still where it comes from", len(w.imported().Status.Clusters), 1)
	w.join("west", "mesh", metav1.ConditionTrue)
	w.settle()

	w.remove()
	if err := w.look(); err != nil {
		t.Fatal(err)
	}
	expect(t, "it leads as before", w.annotated(), "")
	expect(t, "no slices are left", w.led(), "")
	if w.imported() != nil || w.get(exports) != nil {
		t.Error("import or export are left")
	}
}

func TestWhatSomebodyChangesOfAnImportIsPutBack(t *testing.T) {
	w := newWorld(t, mesh())
	w.serve()
	w.pods = map[string][]string{"east": {"10.1.0.1"}}
	w.export()
	w.settle()
	live := w.get(imports)
	_ = unstructured.SetNestedField(live.Object, "Headless", "spec", "type")
	if err := w.api.Tracker().Update(imports, live, "shop"); err != nil {
		t.Fatal(err)
	}
	found, err := w.client.DiscoveryV1().EndpointSlices("shop").List(t.Context(), metav1.ListOptions{})
	if err != nil || len(found.Items) != 1 {
		t.Fatal(found, err)
	}
	found.Items[0].Endpoints[0].Addresses = []string{"192.0.2.66"}
	if _, err := w.client.DiscoveryV1().EndpointSlices("shop").Update(t.Context(), &found.Items[0], metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	w.settle()
	expect(t, "its type", w.imported().Spec.Type, mcs.ClusterSetIP)
	expect(t, "its slices", w.led(), "east:10.1.0.1")
}

func TestWhatAServiceSaysItselfOfWhereItLeadsStays(t *testing.T) {
	for _, said := range []v1alpha1.Traffic{v1alpha1.TrafficGlobal, v1alpha1.TrafficLocal, v1alpha1.TrafficPreferLocal} {
		w := newWorld(t, mesh())
		w.serve()
		w.annotate(string(said))
		w.export()
		w.settle()
		expect(t, "exported", w.annotated(), string(said))
		w.remove()
		if err := w.look(); err != nil {
			t.Fatal(err)
		}
		expect(t, "exported no more", w.annotated(), string(said))
	}
	w := newWorld(t, mesh())
	w.serve()
	w.export()
	w.settle()
	w.annotate("Local")
	w.settle()
	expect(t, "changed while it is exported", w.annotated(), "Local")
	if said := w.says(mcs.ServiceExportConditionReady); !strings.HasPrefix(said, "Failed: annotation manifold.dev/traffic") {
		t.Errorf("it says %s", said)
	}
	w.remove()
	if err := w.look(); err != nil {
		t.Fatal(err)
	}
	expect(t, "exported no more", w.annotated(), "Local")
}

func TestAnExportWithoutAServiceHoldsNothingAndBecomesValidWithOne(t *testing.T) {
	w := newWorld(t, mesh())
	w.export()
	w.settle()
	if said := w.says(mcs.ServiceExportConditionValid); !strings.HasPrefix(said, "NoService") {
		t.Errorf("it says %s", said)
	}
	if w.imported() != nil || w.held() {
		t.Error("something stands for a Service that there is not")
	}
	w.serve()
	w.settle()
	if w.imported() == nil || !w.held() {
		t.Error("nothing stands for the Service")
	}
	if err := w.client.CoreV1().Services("shop").Delete(t.Context(), "db", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	w.settle()
	if w.imported() != nil || w.held() {
		t.Error("something stands for a Service that is gone")
	}
}

func TestAnExportThatGoesToClustersIsForThemToCarryOut(t *testing.T) {
	for name, change := range map[string]func(*world, *mcs.ServiceExport){
		"pinned": func(_ *world, e *mcs.ServiceExport) {
			e.Annotations = map[string]string{v1alpha1.AnnotationClusters: "east"}
		},
		"about to leave them": func(_ *world, e *mcs.ServiceExport) {
			e.Annotations = map[string]string{v1alpha1.AnnotationStatus: `{"east":{}}`}
		},
		"not placed yet": func(w *world, _ *mcs.ServiceExport) { w.awaited = true },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, mesh())
			w.serve()
			w.export()
			w.settle()
			live := w.get(exports)
			e := &mcs.ServiceExport{}
			change(w, e)
			live.SetAnnotations(e.Annotations)
			unstructured.RemoveNestedField(live.Object, "status")
			if err := w.api.Tracker().Update(exports, live, "shop"); err != nil {
				t.Fatal(err)
			}
			w.settle()
			if w.imported() != nil || w.held() || w.annotated() != "" {
				t.Error("something of it is left that the clusters have their own of")
			}
			expect(t, "its status is theirs", w.says(mcs.ServiceExportConditionReady), "")
		})
	}
}

// place has the export go to clusters, which carry it out themselves.
func (w *world) place(decision string) {
	w.Helper()
	live := w.get(exports)
	live.SetAnnotations(map[string]string{v1alpha1.AnnotationClusters: "any", v1alpha1.AnnotationPlacement: decision})
	if err := w.api.Tracker().Update(exports, live, "shop"); err != nil {
		w.Fatal(err)
	}
}

// importedAs is an import as a cluster with an implementation of its own has it.
func importedAs(ports []mcs.ServicePort, ips ...string) multicluster.Theirs {
	return multicluster.Theirs{Known: true, Import: &mcs.ServiceImport{Spec: mcs.ServiceImportSpec{Type: mcs.ClusterSetIP, IPs: ips, Ports: ports}}}
}

func TestTheImportOfAnExportThatClustersCarryOutIsShownWithAllItsEndpoints(t *testing.T) {
	w := newWorld(t, map[string]string{"east": "", "west": "", "north": ""})
	w.serve()
	w.pods = map[string][]string{"east": {"10.1.0.1"}, "west": {"10.2.0.1"}, "north": {"10.3.0.1"}}
	w.export()
	w.place(`{"east":{},"west":{}}`)
	w.settle()
	expect(t, "those are looked at", strings.Join(w.wanted, " "), "east west")
	expect(t, "its endpoints", w.led(), "east:10.1.0.1 west:10.2.0.1") // north exports nothing
	expect(t, "the Service leads", w.annotated(), "")
	expect(t, "held", w.held(), false)
	expect(t, "the status of the export", w.says(mcs.ServiceExportConditionReady), "")
	ready := func() string {
		found := meta.FindStatusCondition(w.imported().Status.Conditions, "Ready")
		return string(found.Status) + ": " + found.Message
	}
	if got := ready(); !strings.HasPrefix(got, `False: cluster "east": its ServiceImport has not been seen yet; cluster "west"`) {
		t.Errorf("it says %s", got)
	}
	sql := []mcs.ServicePort{{Name: "sql", Port: 5432}}
	w.theirs = map[string]multicluster.Theirs{"east": importedAs(sql, "241.0.0.7"), "west": {Problem: "Manifold has no right"}}
	w.settle()
	expect(t, "one cannot be seen", ready(), `False: cluster "west": Manifold has no right`)
	w.theirs["west"] = importedAs(sql, "241.0.0.7")
	w.settle()
	expect(t, "all have it", ready(), "True: ")
	got := w.imported()
	expect(t, "its address", strings.Join(got.Spec.IPs, " "), "241.0.0.7")
	expect(t, "it comes from", len(got.Status.Clusters), 2)
	w.theirs["west"] = importedAs(sql, "241.0.0.8")
	w.settle()
	expect(t, "they have it under different addresses", strings.Join(w.imported().Spec.IPs, " "), "")

	w.place("{}")
	w.settle()
	expect(t, "nobody carries it out", w.led(), "")
	if w.imported() != nil || len(w.wanted) > 0 {
		t.Errorf("left are %v, looked at are %v", w.imported(), w.wanted)
	}
	live := w.get(exports)
	live.SetAnnotations(nil)
	if err := w.api.Tracker().Update(exports, live, "shop"); err != nil {
		t.Fatal(err)
	}
	w.settle()
	expect(t, "Manifold does", w.annotated(), "Global")
	expect(t, "with its own address", strings.Join(w.imported().Spec.IPs, " "), "10.0.0.7")
	w.place(`{"east":{}}`)
	w.settle()
	expect(t, "and does no more", w.annotated(), "")
	expect(t, "held", w.held(), false)
	expect(t, "those that are left", w.led(), "east:10.1.0.1")
}

func TestAnExportThatClustersCarryOutGoesWhereverItsServiceHasPods(t *testing.T) {
	w := newWorld(t, map[string]string{"east": "", "west": ""})
	w.serve()
	w.export(func(e *mcs.ServiceExport) {
		e.Annotations = map[string]string{v1alpha1.AnnotationExportedBy: v1alpha1.ExportedByClusters}
	})
	pin := func() string { return w.get(exports).GetAnnotations()[v1alpha1.AnnotationClusters] }
	w.settle()
	expect(t, "without pods it goes", pin(), "")
	expect(t, "and Manifold exports", w.annotated(), "")
	for _, step := range []struct {
		pods map[string][]string
		want string
	}{
		{map[string][]string{"east": {"10.1.0.1"}}, "east"},
		{map[string][]string{"east": {"10.1.0.1"}, "west": {"10.2.0.1"}}, "east,west"},
		{nil, "east,west"}, // between one pod and the next
		{map[string][]string{"west": {"10.2.0.1"}}, "west"},
		{map[string][]string{"west": {"10.2.0.1"}, "gone": {"10.3.0.1"}}, "west"}, // which is no cluster any more
	} {
		w.pods = step.pods
		w.settle()
		expect(t, fmt.Sprintf("with pods in %v it goes to", step.pods), pin(), step.want)
	}
	expect(t, "the status of the export", w.says(mcs.ServiceExportConditionReady), "")
	if w.held() || w.annotated() != "" {
		t.Error("Manifold carries it out as well")
	}
	w.defined[multicluster.ImportKind] = false // nobody needs imports here for that
	w.pods = map[string][]string{"east": {"10.1.0.1"}}
	w.settle()
	expect(t, "without the definition of imports it goes to", pin(), "east")
}

// What a cluster says of an import shows nothing but that it is not as it should be.
func TestNothingOfAnImportIsAsAClusterSaysThatLies(t *testing.T) {
	sql := []mcs.ServicePort{{Name: "sql", Port: 5432}}
	for name, test := range map[string]struct {
		says multicluster.Theirs
		want string
	}{
		"another type":                        {multicluster.Theirs{Known: true, Import: &mcs.ServiceImport{Spec: mcs.ServiceImportSpec{Type: mcs.Headless, Ports: sql}}}, "not of type ClusterSetIP"},
		"another port":                        {importedAs([]mcs.ServicePort{{Name: "sql", Port: 22}}), "has no port 5432/TCP"},
		"another protocol":                    {importedAs([]mcs.ServicePort{{Name: "sql", Port: 5432, Protocol: corev1.ProtocolUDP}}), "has no port 5432/TCP"},
		"more ports":                          {importedAs(append([]mcs.ServicePort{{Name: "ssh", Port: 22}}, sql...)), ""},
		"the machine itself as an address":    {importedAs(sql, "127.0.0.1"), ""},
		"the metadata of a cloud":             {importedAs(sql, "169.254.169.254"), ""},
		"an address that is none":             {importedAs(sql, "any"), ""},
		"more addresses than there are":       {importedAs(sql, "10.0.0.1", "10.0.0.2", "10.0.0.3"), ""},
		"a message that is longer than it is": {multicluster.Theirs{Problem: strings.Repeat("x", 1<<20)}, "xxx"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, map[string]string{"east": ""})
			w.serve()
			w.pods = map[string][]string{"east": {"10.1.0.1"}}
			w.theirs = map[string]multicluster.Theirs{"east": test.says}
			w.export()
			w.place(`{"east":{}}`)
			w.settle()
			got := w.imported()
			if got.Spec.Type != mcs.ClusterSetIP || len(got.Spec.IPs) > 0 || len(got.Spec.Ports) != 1 || got.Spec.Ports[0].Port != 5432 {
				t.Errorf("it is %+v", got.Spec)
			}
			ready := meta.FindStatusCondition(got.Status.Conditions, "Ready")
			if !strings.Contains(ready.Message, test.want) || (ready.Status == metav1.ConditionTrue) != (test.want == "") || len(ready.Message) > 1024 {
				t.Errorf("it says %s: %.200s", ready.Status, ready.Message)
			}
			expect(t, "its endpoints", w.led(), "east:10.1.0.1")
		})
	}
}

func TestAnImportThatSomebodyMadeIsLeftAloneWhereClustersCarryOutTheExport(t *testing.T) {
	w := newWorld(t, map[string]string{"east": ""})
	w.serve()
	w.pods = map[string][]string{"east": {"10.1.0.1"}}
	w.add(imports, &mcs.ServiceImport{
		TypeMeta: metav1.TypeMeta{APIVersion: mcs.GroupVersion.String(), Kind: "ServiceImport"}, ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "db", UID: "theirs"},
	})
	w.export()
	w.place(`{"east":{}}`)
	w.settle()
	if got := w.imported(); got.UID != "theirs" || got.Spec.Type != "" || w.led() != "" {
		t.Errorf("it is %+v, with %s", got, w.led())
	}
}

func TestWhatIsInTheWayIsTold(t *testing.T) {
	for name, test := range map[string]struct {
		before func(*world)
		want   string
	}{
		"an import that somebody made": {func(w *world) {
			w.add(imports, &mcs.ServiceImport{
				TypeMeta: metav1.TypeMeta{APIVersion: mcs.GroupVersion.String(), Kind: "ServiceImport"}, ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "db", UID: "theirs"},
			})
		}, "that this export has not made"},
		"no definition of imports": {func(w *world) { w.defined[multicluster.ImportKind] = false }, "kubectl apply -k config/crds/mcs"},
		"a webhook": {func(w *world) {
			w.client.PrependReactor("create", "endpointslices", func(clienttesting.Action) (bool, runtime.Object, error) {
				return true, nil, apierrors.NewForbidden(schema.GroupResource{Resource: "endpointslices"}, "db", errors.New("the webhook says no"))
			})
		}, "the webhook says no"},
		"a slice of that name": {func(w *world) {
			wanted, _ := multicluster.Slices(&mcs.ServiceImport{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "db"}}, []multicluster.Part{{
				Cluster: "east", Of: endpoints{w}.MadeOfPods(name)[0], Endpoints: []discoveryv1.Endpoint{{}},
			}})
			wanted[0].Labels = nil
			if _, err := w.client.DiscoveryV1().EndpointSlices("shop").Create(w.Context(), wanted[0], metav1.CreateOptions{}); err != nil {
				w.Fatal(err)
			}
		}, "that Manifold has not made"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, mesh())
			w.serve()
			w.pods = map[string][]string{"east": {"10.1.0.1"}}
			test.before(w)
			w.export()
			if err := w.look(); err == nil {
				t.Error("it is not tried again")
			}
			if said := w.says(mcs.ServiceExportConditionReady); !strings.HasPrefix(said, "Failed: ") || !strings.Contains(said, test.want) {
				t.Errorf("it says %q, want %q", said, test.want)
			}
		})
	}
}

func TestAnExportThatCannotGoSaysWhy(t *testing.T) {
	w := newWorld(t, mesh())
	w.serve()
	w.export()
	w.settle()
	w.client.PrependReactor("patch", "services", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewForbidden(schema.GroupResource{Resource: "services"}, "db", errors.New("the webhook says no"))
	})
	w.remove()
	if err := w.look(); err == nil || !w.held() {
		t.Errorf("it goes: %v", err)
	}
	if said := w.says(mcs.ServiceExportConditionReady); !strings.HasPrefix(said, "Failed: ") || !strings.Contains(said, "the webhook says no") {
		t.Errorf("it says %q", said)
	}
}

func TestNothingIsDoneForAnExportOfAKindThatIsNotDefined(t *testing.T) {
	w := newWorld(t, mesh())
	w.serve()
	w.export()
	w.defined = map[schema.GroupKind]bool{}
	w.settle()
	if w.imported() != nil || w.annotated() != "" {
		t.Error("something was done")
	}
}

func TestExportsAreLookedAtWhenWhatTheyGoByChanges(t *testing.T) {
	ownSlice := &discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "any", Labels: map[string]string{discoveryv1.LabelServiceName: "db"}}}
	derived := &discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "any", Labels: map[string]string{mcs.LabelServiceName: "db"}}}
	other := &discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "any", Labels: map[string]string{discoveryv1.LabelServiceName: "web"}}}
	for what, test := range map[string]struct {
		happens func(*world)
		want    bool
	}{
		"a slice of the Service":                               {func(w *world) { w.ofSlice(ownSlice) }, true},
		"a slice of the import":                                {func(w *world) { w.ofSlice(derived) }, true},
		"a slice of another one":                               {func(w *world) { w.ofSlice(other) }, false},
		"a pod that has an address that another cluster's has": {func(w *world) { w.ofPod(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: types.UID("pod")}}) }, true},
		"a cluster": {func(w *world) { w.all() }, true},
	} {
		t.Run(what, func(t *testing.T) {
			w := newWorld(t, mesh())
			queued := &queue{TypedRateLimitingInterface: w.queue}
			w.Controller.queue = queued
			w.serve()
			w.export()
			w.refresh()
			test.happens(w)
			expect(t, "looked at", slices.Contains(queued.added, name), test.want)
		})
	}
}

// queue notes what is added, however late it is to be looked at.
type queue struct {
	workqueue.TypedRateLimitingInterface[cache.ObjectName]
	added []cache.ObjectName
}

func (q *queue) AddAfter(name cache.ObjectName, _ time.Duration) { q.added = append(q.added, name) }
