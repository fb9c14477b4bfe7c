package releases

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta/testrestmapper"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/informers"
	kubefake "k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/kubernetes/scheme"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	testclock "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	manifold "github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	ourfake "github.com/manifold-dev/manifold/generated/clientset/versioned/fake"
	"github.com/manifold-dev/manifold/generated/informers/externalversions"
	"github.com/manifold-dev/manifold/pkg/delivery/contents"
	"github.com/manifold-dev/manifold/pkg/delivery/controller/objects"
	"github.com/manifold-dev/manifold/pkg/delivery/held"
	"github.com/manifold-dev/manifold/pkg/delivery/traffic"
	"github.com/manifold-dev/manifold/pkg/identity"
	"github.com/manifold-dev/manifold/pkg/placement"
	"github.com/manifold-dev/manifold/pkg/projection"
	"github.com/manifold-dev/manifold/pkg/summary"
)

var web = cache.NewObjectName("shop", "web")

// world is a logical cluster with clusters that do what they are told. What is written is seen at once.
type world struct {
	*testing.T
	ctx     context.Context
	clock   *testclock.FakeClock
	kube    informers.SharedInformerFactory
	ours    externalversions.SharedInformerFactory
	client  *ourfake.Clientset
	dynamic *dynamicfake.FakeDynamicClient
	*Controller
	version int
	// writes are those of objects, tried are those that were only tried to compare them, and refuses holds why objects are refused.
	writes  []string
	tried   []string
	refuses map[string]error
	// trials are the objects that were tried before a release began, and unfit holds why some are refused then.
	trials []string
	unfit  map[string]error
	// keeps are the resources of which nobody may delete anything, and asked how often the right to that was asked for.
	keeps map[string]bool
	asked int
	// admits is what admission makes of them, nil for nothing.
	admits func(*unstructured.Unstructured)
	// broken are images whose pods never get ready, and dead the clusters that do nothing.
	broken, dead map[string]bool
	// restarts has another controller go on at every step. Where it is mortal, it dies of its writes: of the first in a step, then of the second, and so on.
	restarts, mortal bool
	steps, fuse      int
	// front is the route that is there, nil for none. Those clusters that are deaf share out requests as they always did.
	front *unstructured.Unstructured
	deaf  map[string]bool
	// unplaced says that placement has not decided yet about a route that is pinned, and unserved that the logical cluster has no such kind.
	unplaced, unserved bool
	// gizmos are the objects of a custom kind that are there, and customHolds says what clusters are to hold of them.
	gizmos      *gizmos
	customHolds *held.Customs
	// scripts runs scripts and Jobs, nil for nobody.
	scripts Scripts
	// calls has plugins run stages, nil for nobody.
	calls Calls
}

func newWorld(t *testing.T, clusters ...string) *world {
	w := &world{
		fuse: immortal,
		T:    t, ctx: t.Context(), clock: testclock.NewFakeClock(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)), refuses: map[string]error{},
		unfit: map[string]error{}, broken: map[string]bool{}, dead: map[string]bool{}, deaf: map[string]bool{},
	}
	w.client, w.gizmos = ourfake.NewClientset(), newGizmos()
	w.gizmos.front = func() *unstructured.Unstructured { return w.front }
	w.dynamic = dynamicfake.NewSimpleDynamicClient(scheme.Scheme)
	w.dynamic.PrependReactor("patch", "*", w.apply)
	w.dynamic.PrependReactor("get", "*", w.get)
	w.dynamic.PrependReactor("delete", "*", w.remove)
	w.dynamic.PrependReactor("create", "selfsubjectaccessreviews", w.review)
	w.client.PrependReactor("*", "*", w.own)
	for _, fake := range []*clienttesting.Fake{&w.dynamic.Fake, &w.client.Fake} {
		fake.PrependReactor("*", "*", w.die)
	}
	w.restart()
	for _, name := range clusters {
		w.add(w.ours.Manifold().V1alpha1().Clusters().Informer(), &manifold.Cluster{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Status:     manifold.ClusterStatus{Conditions: []metav1.Condition{{Type: manifold.ClusterReady, Status: metav1.ConditionTrue, Reason: "ClusterReady"}}},
		})
	}
	return w
}

// restart has another controller go on, which remembers nothing.
func (w *world) restart() {
	w.Helper()
	kube, ours := w.kube, w.ours
	w.kube, w.ours = informers.NewSharedInformerFactory(kubefake.NewClientset(), 0), externalversions.NewSharedInformerFactory(w.client, 0)
	defer func() {
		if kube != nil {
			w.fill(kube, ours)
		}
	}()
	reader := contents.New(w.ours.Delivery().V1alpha1().ApplicationRevisions().Lister(), w.kube.Core().V1().Secrets().Lister())
	if w.Controller != nil {
		w.Controller.queue.ShutDown()
	}
	var err error
	if w.customHolds, err = held.NewCustoms(reader, filled{w.ours.Delivery().V1alpha1().Applications().Informer()}, filled{w.ours.Delivery().V1alpha1().Releases().Informer()}); err != nil {
		w.Fatal(err)
	}
	w.Controller, err = New(Options{
		Kube: w.kube, Manifold: w.ours, Contents: reader, Client: w.client, Recorder: record.NewFakeRecorder(1000), Clock: w.clock, Grace: 40 * time.Second,
		Objects: func(objects.Account) (dynamic.Interface, error) { return w.dynamic, nil },
		Mapper:  mapper{testrestmapper.TestOnlyStaticRESTMapper(scheme.Scheme), w}, Routes: fronts{w}, Customs: w.gizmos, Scripts: w.scripts, Calls: w.calls,
	})
	if err != nil {
		w.Fatal(err)
	}
}

// immortal is the fuse of who survives all writes.
const immortal = -1

// die has all requests fail after as many writes as the controller survives.
func (w *world) die(action clienttesting.Action) (bool, runtime.Object, error) {
	if w.fuse == 0 {
		return true, nil, errors.New("the controller is dead")
	}
	patch, applied := action.(clienttesting.PatchActionImpl)
	if w.fuse > 0 && action.GetVerb() != "get" && action.GetResource().Resource != "selfsubjectaccessreviews" && !(applied && len(patch.PatchOptions.DryRun) > 0) {
		w.fuse--
	}
	return false, nil, nil
}

// fill has the informers know what others knew.
func (w *world) fill(kube informers.SharedInformerFactory, ours externalversions.SharedInformerFactory) {
	for _, resource := range []string{"configmaps", "services"} {
		w.move(kube, corev1.SchemeGroupVersion.WithResource(resource))
	}
	w.move(kube, appsv1.SchemeGroupVersion.WithResource("deployments"))
	w.move(kube, ingresses)
	w.move(kube, roles)
	was, is := ours.Delivery().V1alpha1(), w.ours.Delivery().V1alpha1()
	policies, clusters := ours.Manifold().V1alpha1().PlacementPolicies().Informer(), ours.Manifold().V1alpha1().Clusters().Informer()
	for from, to := range map[cache.SharedIndexInformer]cache.SharedIndexInformer{
		was.Applications().Informer(): is.Applications().Informer(), was.Releases().Informer(): is.Releases().Informer(),
		was.ApplicationRevisions().Informer(): is.ApplicationRevisions().Informer(),
		policies:                              w.ours.Manifold().V1alpha1().PlacementPolicies().Informer(),
		clusters:                              w.ours.Manifold().V1alpha1().Clusters().Informer(),
	} {
		copyAll(w.T, from, to)
	}
}

func (w *world) move(from informers.SharedInformerFactory, resource schema.GroupVersionResource) {
	generic, err := from.ForResource(resource)
	if err != nil {
		w.Fatal(err)
	}
	copyAll(w.T, generic.Informer(), w.informer(resource))
}

func copyAll(t *testing.T, from, to cache.SharedIndexInformer) {
	for _, obj := range from.GetIndexer().List() {
		if err := to.GetIndexer().Add(obj); err != nil {
			t.Fatal(err)
		}
	}
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

// carryRoutes has the clusters share out requests as they are told, and report it.
func (w *world) carryRoutes() {
	w.carryRoutesOf(corev1.SchemeGroupVersion.WithResource("services"))
	w.carryRoutesOf(ingresses)
	if w.front == nil {
		return
	}
	if pin := w.front.GetAnnotations()[manifold.AnnotationClusters]; pin != "" && !w.unplaced {
		decision := placement.Decision{}
		for _, cluster := range strings.Split(pin, ",") {
			decision[cluster] = placement.Share{Replicas: 1}
		}
		w.annotate(w.front, manifold.AnnotationPlacement, decision.String())
	}
	reported, _ := summary.ParseCustomBreakdown(w.front.GetAnnotations()[manifold.AnnotationStatus])
	for cluster := range identity.DecisionOf(w.front) {
		if hold, err := w.customHolds.In(w.front.GroupVersionKind().GroupKind(), w.front, cluster); !w.dead[cluster] && !w.deaf[cluster] && err == nil && !hold.Absent {
			reported[cluster] = summary.CustomCluster{Generation: 1, Routes: markIn(w.front, hold, cluster), Content: hold.Revision.String()}
		}
		if problem := w.gizmos.problems[cluster]; problem != "" {
			reported[cluster] = summary.CustomCluster{Problem: problem}
		}
	}
	w.annotate(w.front, manifold.AnnotationStatus, reported.String())
}

// markIn is the mark of what a cluster holds of a route otherwise: nothing as long as that was made for something else than it holds.
func markIn(front *unstructured.Unstructured, hold held.Hold, cluster string) string {
	content := front
	if hold.Content != nil {
		content = hold.Content
	}
	fields := projection.RoutesOf(front)[cluster]
	if len(traffic.Valid(content, fields)) < len(fields) {
		return ""
	}
	return fields.Mark()
}

func (w *world) carryRoutesOf(resource schema.GroupVersionResource) {
	for _, obj := range w.informer(resource).GetIndexer().List() {
		object := obj.(runtime.Object).DeepCopyObject().(metav1.Object)
		reported := identity.BreakdownOf(object)
		if reported == nil {
			reported = summary.Breakdown{}
		}
		for _, cluster := range both {
			if w.dead[cluster] || w.deaf[cluster] {
				continue
			}
			if delete(reported, cluster); len(projection.RoutesOf(object)[cluster]) > 0 {
				reported[cluster] = summary.ClusterStatus{Routes: projection.RoutesOf(object)[cluster].Mark()}
			}
		}
		annotations := object.GetAnnotations()
		if text := reported.String(); text != annotations[manifold.AnnotationStatus] {
			if annotations[manifold.AnnotationStatus] = text; text == "" {
				delete(annotations, manifold.AnnotationStatus)
			}
			object.SetAnnotations(annotations)
			w.add(w.informer(resource), object)
		}
	}
}

// carry has the clusters do what they are told, and report it.
func (w *world) carry() {
	w.carryRoutes()
	w.carryGizmos()
	for _, obj := range w.informer(appsv1.SchemeGroupVersion.WithResource("deployments")).GetIndexer().List() {
		deployment := obj.(*appsv1.Deployment).DeepCopy()
		reported := identity.BreakdownOf(deployment)
		if reported == nil {
			reported = summary.Breakdown{}
		}
		decision := identity.DecisionOf(deployment)
		for cluster := range reported {
			if _, stays := decision[cluster]; !stays && !w.dead[cluster] {
				delete(reported, cluster)
			}
		}
		for cluster, share := range decision {
			if w.dead[cluster] {
				continue
			}
			entry := summary.ClusterStatus{Replicas: share.Replicas, Updated: share.Replicas, Generation: deployment.Generation, Revision: share.Revision, Target: share.Target}
			image := w.image(deployment, share)
			if !w.broken[image] {
				entry.Ready, entry.Available = share.Replicas, share.Replicas
			} else {
				entry.Waits = image + " cannot be pulled"
			}
			reported[cluster] = entry
		}
		if text := reported.String(); text != deployment.Annotations[manifold.AnnotationStatus] {
			deployment.Annotations[manifold.AnnotationStatus] = text
			w.add(w.informer(appsv1.SchemeGroupVersion.WithResource("deployments")), deployment)
		}
	}
}

// image is that of what a cluster holds.
func (w *world) image(deployment *appsv1.Deployment, share placement.Share) string {
	if share.Revision == "" {
		return deployment.Spec.Template.Spec.Containers[0].Image
	}
	found, err := w.Contents.Object("shop", share.Revision, share.Target, appsv1.SchemeGroupVersion.WithKind("Deployment").GroupKind(), deployment.Name)
	if err != nil {
		w.Fatal(err)
	}
	containers, _, _ := unstructured.NestedSlice(found.Object, "spec", "template", "spec", "containers")
	return containers[0].(map[string]any)["image"].(string)
}

// lives is how many steps it takes until one comes of which no controller dies.
const lives = 4

// step looks at the application once, as it is then, and lets the clusters do what follows.
func (w *world) step() {
	w.Helper()
	if w.restarts {
		w.restart()
	}
	if w.fuse = immortal; w.mortal {
		if w.steps++; w.steps%lives > 0 {
			w.fuse = w.steps % lives
		}
	}
	if err := w.sync(w.ctx, web); err != nil && w.fuse != 0 {
		w.Fatal(err)
	}
	if w.Controller.queue.Len() > 0 && w.fuse != 0 { // it has asked to look again at once
		key, _ := w.Controller.queue.Get()
		w.Controller.queue.Done(key)
		if err := w.sync(w.ctx, key); err != nil && w.fuse != 0 {
			w.Fatal(err)
		}
	}
	w.carry()
	w.clock.Step(time.Second)
}

// until steps until the release is in a phase.
func (w *world) until(release string, phase v1alpha1.ReleasePhase) *v1alpha1.Release {
	w.Helper()
	for range 200 {
		if got := w.release(release); got.Status.Phase == phase {
			return got
		}
		w.step()
	}
	text, _ := json.MarshalIndent(w.release(release).Status, "", " ")
	w.Fatalf("release %s does not come to %s:\n%s", release, phase, text)
	return nil
}

// waits steps until a stage runs, and then some more, which change nothing.
func (w *world) waits(release, stage string) *v1alpha1.Release {
	w.Helper()
	for range 200 {
		w.step()
		for _, of := range w.release(release).Status.Stages {
			if of.ID == stage && of.Phase == v1alpha1.StageRunning {
				w.step()
				return w.release(release)
			}
		}
	}
	text, _ := json.MarshalIndent(w.release(release).Status, "", " ")
	w.Fatalf("release %s does not come to stage %s:\n%s", release, stage, text)
	return nil
}

func (w *world) release(name string) *v1alpha1.Release {
	w.Helper()
	release, err := w.ours.Delivery().V1alpha1().Releases().Lister().Releases("shop").Get(name)
	if err != nil {
		w.Fatal(err)
	}
	return release.DeepCopy()
}

// runs are the images that each cluster runs of a Deployment, with the number of pods.
func (w *world) runs(deployment string) string {
	obj, exists, _ := w.informer(appsv1.SchemeGroupVersion.WithResource("deployments")).GetIndexer().GetByKey("shop/" + deployment)
	if !exists {
		return ""
	}
	decision := identity.DecisionOf(obj.(*appsv1.Deployment))
	var out []string
	for _, cluster := range decision.Clusters() {
		out = append(out, fmt.Sprintf("%s:%dx%s", cluster, decision[cluster].Replicas, w.image(obj.(*appsv1.Deployment), decision[cluster])))
	}
	slices.Sort(out)
	return strings.Join(out, " ")
}

// given has an application with a target for each cluster.
func (w *world) given(change func(*v1alpha1.Application), clusters ...string) {
	app := &v1alpha1.Application{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "app", Generation: 1},
		Spec:       v1alpha1.ApplicationSpec{Source: v1alpha1.Source{Inline: &v1alpha1.InlineSource{}}, Trigger: v1alpha1.Trigger{Mode: v1alpha1.TriggerManual}},
	}
	for _, cluster := range clusters {
		app.Spec.Targets = append(app.Spec.Targets, v1alpha1.Target{Name: cluster, Cluster: cluster})
	}
	if change != nil {
		change(app)
	}
	w.add(w.ours.Delivery().V1alpha1().Applications().Informer(), app)
}

func deploymentOf(image string) string {
	return `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web"},"spec":{"replicas":10,"selector":{"matchLabels":{"app":"web"}},` +
		`"template":{"metadata":{"labels":{"app":"web"}},"spec":{"containers":[{"name":"web","image":"` + image + `"}]}}}}`
}

// revise makes a revision with the same manifests for all targets.
func (w *world) revise(number int64, targets []string, manifests ...string) {
	w.Helper()
	w.reviseBy(number, nil, targets, manifests...)
}

// reviseBy makes one of a commit that changes files.
func (w *world) reviseBy(number int64, changes *v1alpha1.RevisionChanges, targets []string, manifests ...string) {
	w.Helper()
	each := map[string][]string{}
	for _, target := range targets {
		each[target] = manifests
	}
	w.reviseEach(number, changes, each)
}

// reviseEach makes a revision with manifests of their own for targets.
func (w *world) reviseEach(number int64, changes *v1alpha1.RevisionChanges, targets map[string][]string) {
	w.Helper()
	revision := &v1alpha1.ApplicationRevision{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: v1alpha1.RevisionName("web", number)}}
	revision.Spec.Application, revision.Spec.Number, revision.Spec.Changes = "web", number, changes
	known := map[string]bool{}
	for _, target := range slices.Sorted(maps.Keys(targets)) {
		var hashes []string
		for _, manifest := range targets[target] {
			hash, err := v1alpha1.HashManifest([]byte(manifest))
			if err != nil {
				w.Fatal(err)
			}
			if hashes = append(hashes, hash); known[hash] {
				continue
			}
			known[hash] = true
			revision.Spec.Objects = append(revision.Spec.Objects, v1alpha1.RevisionObject{Hash: hash, Manifest: &runtime.RawExtension{Raw: []byte(manifest)}})
		}
		revision.Spec.Targets = append(revision.Spec.Targets, v1alpha1.RevisionTarget{Name: target, Hash: v1alpha1.HashObjects(hashes), Objects: hashes})
	}
	revision.Spec.Hash = v1alpha1.HashRevision(revision.Spec.Targets)
	w.add(w.ours.Delivery().V1alpha1().ApplicationRevisions().Informer(), revision)
}

// asks makes a release.
func (w *world) asks(name, revision string, change func(*v1alpha1.Release)) {
	release := &v1alpha1.Release{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, Generation: 1, CreationTimestamp: metav1.NewTime(w.clock.Now().Truncate(time.Second))},
		Spec:       v1alpha1.ReleaseSpec{Application: "web", Revision: revision},
		Status:     v1alpha1.ReleaseStatus{Phase: v1alpha1.ReleasePending},
	}
	if change != nil {
		change(release)
	}
	w.add(w.ours.Delivery().V1alpha1().Releases().Informer(), release)
	w.clock.Step(time.Second)
}

// request has somebody ask something of a release.
func (w *world) request(name string, request v1alpha1.ReleaseRequest) {
	release := w.release(name)
	request.User, request.Time = "jane", metav1.NewTime(w.clock.Now().Truncate(time.Second))
	release.Status.Requests = append(release.Status.Requests, request)
	w.add(w.ours.Delivery().V1alpha1().Releases().Informer(), release)
}

func stage(name, id, with string) v1alpha1.Stage {
	out := v1alpha1.Stage{Name: name, ID: id}
	if with != "" {
		out.With = &runtime.RawExtension{Raw: []byte(with)}
	}
	return out
}

func pipeline(stages ...v1alpha1.Stage) func(*v1alpha1.Application) {
	return func(app *v1alpha1.Application) {
		app.Spec.Pipeline = &v1alpha1.Pipeline{Stages: stages}
		app.Spec.ProgressDeadlineSeconds = ptr.To(int32(60))
	}
}

// change changes an application.
func (w *world) change(how func(*v1alpha1.Application)) {
	w.Helper()
	app, err := w.ours.Delivery().V1alpha1().Applications().Lister().Applications("shop").Get("web")
	if err != nil {
		w.Fatal(err)
	}
	app = app.DeepCopy()
	app.Generation++
	how(app)
	w.add(w.ours.Delivery().V1alpha1().Applications().Informer(), app)
}
