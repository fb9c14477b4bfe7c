package applications

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/informers"
	kubefake "k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	manifold "github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/generated/clientset/versioned/fake"
	"github.com/manifold-dev/manifold/generated/informers/externalversions"
	"github.com/manifold-dev/manifold/internal/caches"
	"github.com/manifold-dev/manifold/pkg/delivery/controller/applications/sources"
	"github.com/manifold-dev/manifold/pkg/delivery/render"
)

// world is a logical cluster of fakes, and a controller in it whose steps a test takes.
type world struct {
	*testing.T
	*Controller
	client   *fake.Clientset
	objects  *kubefake.Clientset
	dynamic  *dynamicfake.FakeDynamicClient
	recorder *record.FakeRecorder
	own      externalversions.SharedInformerFactory
	kube     informers.SharedInformerFactory
}

// here renders in this process: what tests render is their own.
type here struct{ runs *int }

func (h here) Bundle(ctx context.Context, bundle *render.Bundle, options render.Options) (*render.Result, error) {
	*h.runs++
	return render.Render(ctx, bundle, options)
}

// mapper knows the kinds of the tests.
type mapper struct{ meta.RESTMapper }

func (mapper) Reset() {}

func kindsOfTests() mapper {
	out := meta.NewDefaultRESTMapper(nil)
	for kind, scope := range map[schema.GroupVersionKind]meta.RESTScope{
		{Version: "v1", Kind: "ConfigMap"}:                                       meta.RESTScopeNamespace,
		{Version: "v1", Kind: "Secret"}:                                          meta.RESTScopeNamespace,
		{Group: "apps", Version: "v1", Kind: "Deployment"}:                       meta.RESTScopeNamespace,
		{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "Role"}:        meta.RESTScopeNamespace,
		{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "ClusterRole"}: meta.RESTScopeRoot,
		{Group: "example.com", Version: "v1", Kind: "Planet"}:                    meta.RESTScopeRoot,
	} {
		out.Add(kind, scope)
	}
	return mapper{out}
}

// newWorld has objects of our kinds and of others, and informers that show them.
func newWorld(t *testing.T, repositories sources.Repositories, objects ...runtime.Object) *world {
	t.Helper()
	var ours, theirs []runtime.Object
	for _, object := range objects {
		if _, _, err := scheme.Scheme.ObjectKinds(object); err == nil {
			theirs = append(theirs, object)
		} else {
			ours = append(ours, object)
		}
	}
	w := &world{T: t, client: fake.NewClientset(ours...), objects: kubefake.NewClientset(theirs...), dynamic: dynamicfake.NewSimpleDynamicClientWithCustomListKinds(
		scheme.Scheme, map[schema.GroupVersionResource]string{manifold.SchemeGroupVersion.WithResource("placementpolicies"): "PlacementPolicyList"}, theirs...)}
	w.restart(repositories)
	return w
}

// restart makes a new controller, which knows nothing but what is stored.
func (w *world) restart(repositories sources.Repositories) {
	w.Helper()
	w.own, w.kube = externalversions.NewSharedInformerFactory(w.client, 0), informers.NewSharedInformerFactory(w.objects, 0)
	w.recorder = record.NewFakeRecorder(1000)
	var err error
	w.Controller, err = New(Options{
		Own: w.own, Kube: w.kube, Client: w.client, Objects: w.objects, Dynamic: w.dynamic, Mapper: kindsOfTests(), Renderer: here{new(int)}, Repositories: repositories,
		Recorder: w.recorder,
	})
	if err != nil {
		w.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	w.Cleanup(func() {
		cancel()
		w.own.Shutdown()
		w.kube.Shutdown()
		for _, queue := range []interface{ ShutDown() }{w.queues.nearby, w.queues.remote, w.queues.rest} {
			queue.ShutDown()
		}
	})
	w.own.Start(ctx.Done())
	w.kube.Start(ctx.Done())
	if !cache.WaitForCacheSync(ctx.Done(), w.watches.synced...) {
		w.Fatal("the caches are not filled")
	}
}

// eventually waits until the caches show something.
func (w *world) eventually(what string, holds func() bool) {
	w.Helper()
	deadline := time.After(20 * time.Second)
	for !holds() {
		select {
		case <-deadline:
			w.Fatalf("still not so: %s", what)
		case <-time.After(time.Millisecond):
		}
	}
}

// settled waits until the caches show all that is stored.
func (w *world) settled() {
	w.Helper()
	applications, err := w.client.DeliveryV1alpha1().Applications("").List(w.Context(), metav1.ListOptions{})
	revisions, err2 := w.client.DeliveryV1alpha1().ApplicationRevisions("").List(w.Context(), metav1.ListOptions{})
	releases, err3 := w.client.DeliveryV1alpha1().Releases("").List(w.Context(), metav1.ListOptions{})
	secrets, err4 := w.objects.CoreV1().Secrets("").List(w.Context(), metav1.ListOptions{})
	if err := errors.Join(err, err2, err3, err4); err != nil {
		w.Fatal(err)
	}
	w.eventually("the caches show what is stored", func() bool {
		for i := range applications.Items {
			shown := w.view.application(cache.MetaObjectToName(&applications.Items[i]))
			if shown == nil || shown.ResourceVersion != applications.Items[i].ResourceVersion || marshalled(shown) != marshalled(applications.Items[i]) {
				return false
			}
		}
		return len(w.view.applications.List()) == len(applications.Items) && len(w.view.revisions.List()) == len(revisions.Items) &&
			sameAll(w.view.releases, releases.Items) && len(w.kube.Core().V1().Secrets().Informer().GetIndexer().List()) == len(secrets.Items)
	})
}

func sameAll(store cache.Store, releases []v1alpha1.Release) bool {
	for i := range releases {
		shown := caches.Named[*v1alpha1.Release](store, cache.MetaObjectToName(&releases[i]).String())
		if shown == nil || marshalled(shown) != marshalled(releases[i]) {
			return false
		}
	}
	return len(store.List()) == len(releases)
}

var web = cache.ObjectName{Namespace: "shop", Name: "web"}

// turn takes each step once: the finalizer, the source, the rest.
func (w *world) turn() *v1alpha1.Application {
	w.Helper()
	for range 3 {
		w.settled()
		if err := w.read(w.Context(), web); err != nil {
			w.Logf("read: %v", err)
		}
		w.settled()
		if err := w.sync(w.Context(), web); err != nil {
			w.Logf("sync: %v", err)
		}
	}
	w.settled()
	return w.view.application(web)
}

func (w *world) revisionNames() string {
	var out []string
	for _, revision := range caches.All[*v1alpha1.ApplicationRevision](w.view.revisions) {
		out = append(out, revision.Name)
	}
	slices.Sort(out)
	return strings.Join(out, " ")
}

// released are the revisions of releases, from the oldest by name of revision.
func (w *world) released() string {
	var out []string
	for _, release := range caches.All[*v1alpha1.Release](w.view.releases) {
		out = append(out, release.Spec.Revision)
	}
	slices.Sort(out)
	return strings.Join(out, " ")
}

// change changes the application as a user does.
func (w *world) change(do func(*v1alpha1.ApplicationSpec)) {
	w.Helper()
	app, err := w.client.DeliveryV1alpha1().Applications(web.Namespace).Get(w.Context(), web.Name, metav1.GetOptions{})
	if err != nil {
		w.Fatal(err)
	}
	do(&app.Spec)
	app.Generation++
	if _, err := w.client.DeliveryV1alpha1().Applications(web.Namespace).Update(w.Context(), app, metav1.UpdateOptions{}); err != nil {
		w.Fatal(err)
	}
	w.settled()
}

// ends brings all releases to an end, as the controller of releases does.
func (w *world) ends(phase v1alpha1.ReleasePhase) {
	w.Helper()
	for _, release := range caches.All[*v1alpha1.Release](w.view.releases) {
		if release.Status.Phase.Ended() {
			continue
		}
		ended := release.DeepCopy()
		ended.Status.Phase, ended.Status.StartTime, ended.Status.EndTime = phase, &metav1.Time{Time: time.Now()}, &metav1.Time{Time: time.Now()}
		if _, err := w.client.DeliveryV1alpha1().Releases(release.Namespace).UpdateStatus(w.Context(), ended, metav1.UpdateOptions{}); err != nil {
			w.Fatal(err)
		}
	}
	w.settled()
}

// says is the message of a condition that is not True, empty if it is.
func says(app *v1alpha1.Application, kind string) string {
	found := meta.FindStatusCondition(app.Status.Conditions, kind)
	switch {
	case found == nil:
		return kind + " is not there"
	case found.Status == metav1.ConditionTrue:
		return ""
	}
	return found.Reason + ": " + found.Message
}

func inline(objects ...string) *v1alpha1.Application {
	app := &v1alpha1.Application{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "uid-of-web", Generation: 1}}
	app.Spec.Source.Inline = &v1alpha1.InlineSource{}
	for _, object := range objects {
		app.Spec.Source.Inline.Objects = append(app.Spec.Source.Inline.Objects, runtime.RawExtension{Raw: []byte(object)})
	}
	v1alpha1.SetObjectDefaults_Application(app)
	return app
}

func configMap(colour string) string {
	return fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"settings"},"data":{"colour":%q}}`, colour)
}

const deployment = `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web"},"spec":{"template":{"spec":{"containers":[{"name":"web","image":"nginx:1"}]}}}}`

// events are all that there were since the last time.
func (w *world) events() string {
	var out []string
	for {
		select {
		case event := <-w.recorder.Events:
			out = append(out, event)
		default:
			return strings.Join(out, "\n")
		}
	}
}
