package appdeployments

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	manifold "github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/delivery/oam"
	"github.com/manifold-dev/manifold/pkg/delivery/wanted"
	"github.com/manifold-dev/manifold/pkg/projection"
)

var twoClusters = map[string]map[string]string{"east": {"usage": "production"}, "west": nil}

const (
	one   = "{name: 1, reference: example-app-v1, placement: [{clusterSelector: {labels: {usage: production}}, distribution: {weight: 50}}, {distribution: {weight: 50}}]}"
	two   = "{name: 2, ref: example-app-v2, placement: [{clusterSelector: {name: west}}]}"
	rules = ", trafficRules: [{name: web, match: [{uri: {prefix: /web}}], weightedTargets: [{revisionName: 1, percent: %d}, {revisionName: 2, percent: %d}]}]"
)

func spec(revisions ...string) string {
	return "drainSeconds: 5, appRevisions: [" + strings.Join(revisions, ", ") + "]"
}

func shopWorld(t *testing.T) *world {
	w := newWorld(t, twoClusters)
	w.revision(1, 5)
	w.revision(2, 5)
	return w
}

func TestRevisionsRunWhereTheyAreToRun(t *testing.T) {
	w := shopWorld(t)
	w.apply("{" + spec(one, two) + "}")
	w.settle()
	w.want("v1 east=3 west=2, v2 west=5")
	w.says(oam.ConditionReady, metav1.ConditionTrue, "")
	if got := w.object.GetFinalizers(); !slices.Equal(got, []string{oam.Finalizer}) {
		t.Errorf("finalizers are %v", got)
	}
	service, _ := w.store.Get("shop", keyOf("Service", "example-app-v1"))
	if service == nil || service.(*corev1.Service).Spec.Selector[v1alpha1.LabelVariant] != "v1" {
		t.Errorf("K32: the Service of revision 1 is %v", service)
	}
	// K36: behind one Service the numbers of pods share out.
	front, _ := w.store.Get("shop", keyOf("Service", "example-app"))
	if front == nil || len(front.(*corev1.Service).Spec.Selector) != 1 {
		t.Errorf("in front is %v", front)
	}
	for _, object := range []metav1.Object{service, front} {
		if owners := object.GetOwnerReferences(); len(owners) != 1 || owners[0].Kind != "ApplicationDeployment" || owners[0].UID != "uid-of-deployment" {
			t.Errorf("%s is owned by %v", object.GetName(), owners)
		}
	}
	var told []string
	for _, revision := range w.status().Placement {
		for _, cluster := range revision.Clusters {
			told = append(told, fmt.Sprintf("%s %s %d/%d", revision.Revision, cluster.Cluster, cluster.Ready, cluster.Wanted))
		}
	}
	if !slices.Equal(told, []string{"1 east 3/3", "1 west 2/2", "2 west 5/5"}) {
		t.Errorf("K41: told is %v", told)
	}
	if got := w.status().Summary; got != "1 5/5, 2 5/5" {
		t.Errorf("in one line it is %q", got)
	}
}

func TestK15WithoutASelectorItIsTheClusterOfTheNamespaceOrOneThatStays(t *testing.T) {
	const plain = "{name: 1, ref: example-app-v1}" // K16
	w := shopWorld(t)
	w.home = ""
	w.add(w.informer(corev1.SchemeGroupVersion.WithResource("namespaces")), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name: "shop", Annotations: map[string]string{manifold.AnnotationClusters: "east"},
	}})
	w.apply("{" + spec(plain) + "}")
	w.settle()
	w.want("v1 east=5")
	w.add(w.informer(corev1.SchemeGroupVersion.WithResource("namespaces")), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}})
	w.settle()
	w.want("v1 east=5") // it is still one that it may be
	w.home = "west"
	w.apply("{" + spec(plain) + "}")
	w.settle()
	w.clock.Step(5 * time.Second)
	w.settle()
	w.want("v1 west=5")
}

func TestK25WhatStaysIsNotWritten(t *testing.T) {
	w := shopWorld(t)
	w.apply("{" + spec(one) + "}")
	w.settle()
	w.writes = nil
	w.restart()
	w.settle()
	if len(w.writes) > 0 {
		t.Errorf("after a restart there are written %v", w.writes)
	}
	w.apply("{" + spec(one, two) + "}")
	w.settle()
	for _, write := range w.writes {
		if strings.HasSuffix(write, "-v1") {
			t.Errorf("revision 1 stays, and %s is written", write)
		}
	}
}

func TestWhatSomebodyScalesIsPutBack(t *testing.T) {
	w := shopWorld(t)
	w.apply("{" + spec(one) + "}")
	w.settle()
	found, _ := w.store.Get("shop", appsKey("Deployment", "web-v1"))
	scaled, replicas := found.(*appsv1.Deployment).DeepCopy(), int32(50)
	scaled.Spec.Replicas = &replicas
	w.add(w.informer(deployments), scaled)
	w.settle()
	if found, _ = w.store.Get("shop", appsKey("Deployment", "web-v1")); *found.(*appsv1.Deployment).Spec.Replicas != 5 {
		t.Errorf("it has %d replicas", *found.(*appsv1.Deployment).Spec.Replicas)
	}
}

func TestWhatSomebodyChangesOfACopyIsPutBack(t *testing.T) {
	w := shopWorld(t)
	w.apply("{" + spec(one, two) + fmt.Sprintf(rules, 50, 50) + "}")
	w.settle()
	w.writes = nil
	w.settle()
	if len(w.writes) > 0 {
		t.Errorf("nobody has changed anything, and written are %v", w.writes)
	}
	found, _ := w.store.Get("shop", appsKey("Deployment", "web-v1"))
	changed, replicas := found.(*appsv1.Deployment).DeepCopy(), int32(50)
	changed.Spec.Template.Spec.Containers[0].Image = "other:1"
	changed.Spec.Replicas = &replicas
	w.add(w.informer(deployments), changed)
	service, _ := w.store.Get("shop", keyOf("Service", "example-app-v1"))
	led := service.(*corev1.Service).DeepCopy()
	led.Spec.Ports[0].Port = 81
	w.add(w.informer(corev1.SchemeGroupVersion.WithResource("services")), led)
	w.settle()
	found, _ = w.store.Get("shop", appsKey("Deployment", "web-v1"))
	if of := found.(*appsv1.Deployment).Spec; of.Template.Spec.Containers[0].Image != "web:1" || *of.Replicas != 5 {
		t.Errorf("it has %d replicas of %s", *of.Replicas, of.Template.Spec.Containers[0].Image)
	}
	service, _ = w.store.Get("shop", keyOf("Service", "example-app-v1"))
	if port := service.(*corev1.Service).Spec.Ports[0].Port; port != 80 {
		t.Errorf("the Service has port %d", port)
	}
	w.says(oam.ConditionReady, metav1.ConditionTrue, "")
}

func TestK31RequestsAreSharedOutAndFollowAPercent(t *testing.T) {
	w := shopWorld(t)
	w.apply("{" + spec(one, two) + fmt.Sprintf(rules, 50, 50) + "}")
	w.settle()
	service := w.customs[wantedKey{"VirtualService", "example-app"}]
	if service == nil || service.GetAnnotations()[manifold.AnnotationClusters] != "east,west" {
		t.Fatalf("%v", service)
	}
	shares := projection.RoutesOf(service)
	if len(shares) != 2 || len(shares["east"]["/spec/http/0/route"].Is.([]any)) != 1 {
		t.Errorf("east, which has revision 1 alone, holds %v", shares["east"])
	}
	w.says(oam.ConditionRouted, metav1.ConditionTrue, "")
	w.writes = nil
	w.apply("{" + spec(one, two) + fmt.Sprintf(rules, 10, 90) + "}")
	w.settle()
	for _, write := range w.writes {
		if write != "VirtualService/example-app" { // K33
			t.Errorf("a percent is changed, and %s is written", write)
		}
	}
	w.apply("{" + spec(one, two) + "}")
	w.settle()
	if len(w.customs) > 0 { // K37
		t.Errorf("the rule is gone, and there are %v", w.customs)
	}
}

func TestRequestsStayWhereTheyGoUntilWhatGetsThemIsReady(t *testing.T) {
	w := shopWorld(t)
	w.apply("{" + spec(one) + ", trafficRules: [{weightedTargets: [{revisionName: 1, percent: 100}]}]}")
	w.settle()
	w.broken["web:2"] = true
	w.apply("{" + spec(one, two) + fmt.Sprintf(rules, 50, 50) + "}")
	w.settle()
	w.says(oam.ConditionRouted, metav1.ConditionFalse, "until pods of revision 2 are ready")
	if got, _, _ := unstructured.NestedSlice(w.customs[wantedKey{"VirtualService", "example-app"}].Object, "spec", "http"); len(got[0].(map[string]any)["route"].([]any)) != 1 {
		t.Errorf("requests go to what is not ready: %v", got)
	}
	w.broken = nil
	w.settle()
	w.says(oam.ConditionRouted, metav1.ConditionTrue, "")
}

// K29: that pods are ready says nothing of what the nodes of their cluster know.
func TestRequestsStayWhereTheyGoUntilTheyGetToReadyPods(t *testing.T) {
	w := shopWorld(t)
	w.apply("{" + spec(one) + ", trafficRules: [{weightedTargets: [{revisionName: 1, percent: 100}]}]}")
	w.settle()
	w.unproxied = map[string]bool{"web:2": true}
	w.apply("{" + spec(one, two) + fmt.Sprintf(rules, 50, 50) + "}")
	w.settle()
	w.says(oam.ConditionRouted, metav1.ConditionFalse, "until pods of revision 2 are ready, and get them")
	routes := func() int {
		got, _, _ := unstructured.NestedSlice(w.customs[wantedKey{"VirtualService", "example-app"}].Object, "spec", "http")
		return len(got[0].(map[string]any)["route"].([]any))
	}
	if routes() != 1 {
		t.Error("requests go to pods that no node knows")
	}
	w.unproxied = nil
	w.settle()
	w.says(oam.ConditionRouted, metav1.ConditionTrue, "")
	if routes() != 2 {
		t.Error("requests go to one revision alone")
	}
}

func TestK17AHostIsPublishedWhereItsRevisionRuns(t *testing.T) {
	w := shopWorld(t)
	w.apply("{trafficMode: Istio, " + spec(strings.Replace(one, "{name: 1,", "{name: 1, service: {http: {host: v1.example.com, tls: {mode: mutual}}},", 1), two) + "}")
	w.broken["web:1"] = true // a host leads nowhere else before
	w.settle()
	for _, kind := range []string{"Gateway", "VirtualService"} {
		made := w.customs[wantedKey{kind, "example-app-v1"}]
		if made == nil || made.GetAnnotations()[manifold.AnnotationClusters] != "east,west" {
			t.Errorf("%s is %v", kind, made)
		}
	}
	w.apply("{" + spec(one, two) + "}")
	w.settle()
	if len(w.customs) > 0 {
		t.Errorf("the host is gone, and there are %v", w.customs)
	}
}

func TestK26OneTakesThePlaceOfTheOtherWithoutAGap(t *testing.T) {
	w := shopWorld(t)
	w.apply("{" + spec(one) + "}")
	w.settle()
	w.broken["web:2"] = true
	w.apply("{" + spec(two) + "}")
	w.settle()
	w.want("v1 east=3 west=2, v2 west=5")
	w.says(oam.ConditionReady, metav1.ConditionFalse, `revision 2: in cluster "west"`)
	if status := w.status(); !slices.Equal(status.Del, []string{"1"}) || len(status.Placement) != 2 || status.Placement[1].Clusters[0].Wanted != 0 {
		t.Errorf("K21: %+v", status)
	}
	w.broken = nil
	w.step()
	w.restart()
	w.step()
	w.want("v1 east=3 west=2, v2 west=5")
	if w.status().DrainingSince == nil {
		t.Error("nothing is drained")
	}
	w.clock.Step(5 * time.Second)
	w.restart() // what was decided is in objects
	w.settle()
	w.want("v2 west=5") // K22
	w.says(oam.ConditionReady, metav1.ConditionTrue, "")
	if policies, _ := w.ours.Manifold().V1alpha1().PlacementPolicies().Lister().List(everything); len(policies) != 1 {
		t.Errorf("policies are %v", policies)
	}
}

func TestK24WhatIsSmallerWaitsForWhatGrows(t *testing.T) {
	w := shopWorld(t)
	number := func(name int, replicas int) string {
		return fmt.Sprintf("{name: %d, ref: example-app-v%d, placement: [{clusterSelector: {name: east}, distribution: {replicas: %d}}]}", name, name, replicas)
	}
	w.apply("{" + spec(number(1, 8), number(2, 2)) + "}")
	w.settle()
	w.apply("{" + spec(number(1, 2), number(2, 8)) + "}")
	w.step() // the policies
	w.step()
	w.want("v1 east=8, v2 east=8")
	w.settle()
	w.want("v1 east=2, v2 east=8")
}

func TestK10WhatIsMissingIsNamedAndWhatRunsStays(t *testing.T) {
	w := shopWorld(t)
	w.apply("{" + spec(one, two) + fmt.Sprintf(rules, 50, 50) + "}")
	w.settle()
	w.writes = nil
	w.apply("{" + spec(one, strings.Replace(two, "app-v2", "app-v9", 1)) + fmt.Sprintf(rules, 50, 50) + "}")
	w.settle()
	w.want("v1 east=3 west=2, v2 west=5")
	w.says(oam.ConditionRevisions, metav1.ConditionFalse, "revision 2: there is no ApplicationRevision example-app-v9")
	w.says(oam.ConditionReady, metav1.ConditionFalse, "example-app-v9")
	if len(w.writes) > 0 {
		t.Errorf("written are %v", w.writes)
	}
	w.revision(9, 1)
	w.settle()
	w.clock.Step(5 * time.Second)
	w.settle()
	w.want("v1 east=3 west=2, v9 west=1")
	if gone := w.ours.Delivery().V1alpha1().ApplicationRevisions().Informer().GetIndexer(); gone != nil {
		found, _, _ := gone.GetByKey("shop/example-app-v1")
		_ = gone.Delete(found)
	}
	w.settle()
	w.want("v1 east=3 west=2, v9 west=1")
	w.says(oam.ConditionRevisions, metav1.ConditionFalse, "example-app-v1")
}

func TestK41OneClusterIsTheTroubleOfItsEntryAlone(t *testing.T) {
	w := shopWorld(t)
	w.apply("{" + spec(one, strings.Replace(two, "name: west", "name: north", 1)) + "}")
	w.settle()
	w.want("v1 east=3 west=2")
	w.says(oam.ConditionPlaced, metav1.ConditionFalse, "revision 2: no cluster matches name:north")
	w.dead["west"] = true
	w.apply("{" + spec(one, two) + "}")
	w.settle()
	w.says(oam.ConditionPlaced, metav1.ConditionTrue, "")
	status := w.status()
	if got := status.Placement[0].Clusters[0]; got.Cluster != "east" || got.Ready != 3 || got.Message != "" {
		t.Errorf("east is %+v", got)
	}
	if got := status.Placement[1].Clusters[0]; got.Cluster != "west" || got.Ready != 0 || got.Wanted != 5 || got.Message == "" {
		t.Errorf("west is %+v", got)
	}
}

func TestK40ItGoesWhenNothingIsLeftAnywhere(t *testing.T) {
	w := shopWorld(t)
	w.apply("{" + spec(one, two) + fmt.Sprintf(rules, 50, 50) + "}")
	w.settle()
	w.dead["west"] = true
	gone := metav1.NewTime(w.clock.Now())
	w.object.SetDeletionTimestamp(&gone)
	for range 5 {
		w.step()
	}
	w.says(oam.ConditionReady, metav1.ConditionFalse, "Deployment/web-v2 in west")
	w.restart()
	w.dead["west"] = false
	for range 5 {
		w.step()
	}
	policies, _ := w.ours.Manifold().V1alpha1().PlacementPolicies().Lister().List(everything)
	if w.object != nil || w.runs() != "" || len(w.customs) > 0 || len(policies) > 0 {
		t.Errorf("left are %v, %q, %v, %v", w.object, w.runs(), w.customs, policies)
	}
}

func TestK35WhatCannotBeIsToldAndNothingIsTouched(t *testing.T) {
	w := shopWorld(t)
	w.apply("{" + spec(one) + "}")
	w.settle()
	w.writes = nil
	w.apply("{" + spec(two) + ", trafficMode: Ingress, trafficRules: [{weightedTargets: [{revisionName: 2, percent: 100}]}]}")
	w.settle()
	w.want("v1 east=3 west=2")
	w.says(oam.ConditionReady, metav1.ConditionFalse, "spec.trafficRules: Forbidden")
	w.apply("{appRevisions: [{name: 1, reference: 7}]}")
	w.settle()
	w.says(oam.ConditionReady, metav1.ConditionFalse, "a reference is the name of an ApplicationRevision")
	if len(w.writes) > 0 {
		t.Errorf("written are %v", w.writes)
	}
}

func TestWhatIsSomebodyElsesIsNotTaken(t *testing.T) {
	w := shopWorld(t)
	w.add(w.informer(corev1.SchemeGroupVersion.WithResource("services")), &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "example-app-v1"}})
	w.add(w.informer(corev1.SchemeGroupVersion.WithResource("services")), &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "example-app"}})
	w.apply("{" + spec(one) + "}")
	for range 4 {
		w.step()
	}
	w.says(oam.ConditionReady, metav1.ConditionFalse, "Service/example-app-v1: it is there already")
	if slices.Contains(w.writes, "Service/example-app-v1") || slices.Contains(w.writes, "Service/example-app") {
		t.Errorf("written are %v", w.writes)
	}
}

func TestK43TheHistoryOfADeploymentRunsBesideIt(t *testing.T) {
	w := newWorld(t, twoClusters)
	replicas := int32(4)
	web := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "site", UID: "site"}, Spec: appsv1.DeploymentSpec{
		Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "site"}}, Template: template("site:2"),
	}}
	w.apply("{appRevisions: [{name: 1, reference: {kind: Deployment, name: site, revision: 1}}, {name: two, reference: {kind: Deployment, name: site}}]}")
	w.settle()
	w.says(oam.ConditionRevisions, metav1.ConditionFalse, "there is no Deployment site")
	content := w.informer(deployments)
	web.Annotations = map[string]string{}
	w.add(content, web)
	controller := true
	w.add(w.informer(appsv1.SchemeGroupVersion.WithResource("replicasets")), &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: "site-1", Annotations: map[string]string{annotationRevision: "1"},
			OwnerReferences: []metav1.OwnerReference{{UID: "site", Controller: &controller}},
		},
		Spec: appsv1.ReplicaSetSpec{Template: template("site:1")},
	})
	w.settle()
	for name, image := range map[string]string{"site-v1": "site:1", "site-two": "site:2"} {
		found, _ := w.store.Get("shop", appsKey("Deployment", name))
		if found == nil {
			t.Errorf("there is no %s: %v", name, w.status().Conditions)
			continue
		}
		if of := found.(*appsv1.Deployment); of.Spec.Template.Spec.Containers[0].Image != image || *of.Spec.Replicas != 4 {
			t.Errorf("%s is %+v", name, of.Spec)
		}
	}
	w.says(oam.ConditionReady, metav1.ConditionTrue, "")
}

func TestK43TheHistoryOfAStatefulSetRunsBesideIt(t *testing.T) {
	w := newWorld(t, twoClusters)
	replicas, controller := int32(3), true
	sets, revisions := appsv1.SchemeGroupVersion.WithResource("statefulsets"), appsv1.SchemeGroupVersion.WithResource("controllerrevisions")
	w.add(w.informer(sets), &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "db", UID: "db"}, Spec: appsv1.StatefulSetSpec{
		Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "site"}}, Template: template("db:2"),
	}})
	keep := func(name string, number int64, owner types.UID, data string) {
		w.add(w.informer(revisions), &appsv1.ControllerRevision{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, OwnerReferences: []metav1.OwnerReference{{UID: owner, Controller: &controller}}},
			Revision:   number, Data: runtime.RawExtension{Raw: []byte(data)},
		})
	}
	const data = `{"spec":{"template":{"$patch":"replace","metadata":{"labels":{"app":"site"}},"spec":{"containers":[{"name":"site","image":%q}]}}}}`
	keep("other", 1, "somebody else", fmt.Sprintf(data, "other:1"))
	keep("db-b", 2, "db", fmt.Sprintf(data, "db:2"))
	w.apply("{appRevisions: [{name: 1, reference: {kind: StatefulSet, name: db, revision: 1}}]}")
	w.settle()
	w.says(oam.ConditionRevisions, metav1.ConditionFalse, "no revision 1 of StatefulSet db: kubectl rollout history statefulset/db -n shop")
	keep("db-a", 1, "db", `{"spec":{}}`)
	w.settle()
	w.says(oam.ConditionRevisions, metav1.ConditionFalse, "ControllerRevision db-a cannot be read: it has no template")
	keep("db-a", 1, "db", fmt.Sprintf(data, "db:1"))
	w.settle()
	found, _ := w.store.Get("shop", appsKey("StatefulSet", "db-v1"))
	if found == nil {
		t.Fatalf("there is no copy: %v", w.status().Conditions)
	}
	if of := found.(*appsv1.StatefulSet).Spec; of.Template.Spec.Containers[0].Image != "db:1" || *of.Replicas != 3 || of.Template.Labels["app"] != "site" {
		t.Errorf("it is %+v", of)
	}
}

func template(image string) corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "site"}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "site", Image: image}}},
	}
}

var everything = labels.Everything()

func keyOf(kind, name string) wanted.Key { return wanted.Key{Kind: kind, Name: name} }

func appsKey(kind, name string) wanted.Key { return wanted.Key{Group: "apps", Kind: kind, Name: name} }
