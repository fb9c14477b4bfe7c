package promotions

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	kubefake "k8s.io/client-go/kubernetes/fake"
	corelisters "k8s.io/client-go/listers/core/v1"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/yaml"

	"github.com/manifold-dev/manifold/pkg/delivery/controller/objects"
	"github.com/manifold-dev/manifold/pkg/delivery/pulls"
	"github.com/manifold-dev/manifold/pkg/delivery/weave"
)

var web = Key{weave.Group, cache.NewObjectName("shop", "web")}

// kinds follow nothing: tests say themselves when to look.
type kinds struct{}

func (kinds) FollowKind(schema.GroupResource, func(cache.ObjectName)) {}

type mapper struct{ meta.RESTMapper }

func (mapper) Reset() {}

// world is a controller over the objects of a logical cluster.
type world struct {
	*testing.T
	*Controller
	dynamic *dynamicfake.FakeDynamicClient
	kube    *kubefake.Clientset
	clock   *clocktesting.FakePassiveClock
	events  *record.FakeRecorder
	secrets cache.Indexer
	forge   *forge
	// accounts are those that targets were written as.
	accounts []objects.Account
}

// forge is one whose pull requests stand as the test says.
type forge struct {
	result   pulls.Result
	err      error
	requests []pulls.Request
	// base is the commit of the base branch, and glances how often it was looked at.
	base    string
	glances int
}

func (f *forge) Base(context.Context, pulls.Request) (string, error) {
	f.glances++
	return f.base, nil
}

func (f *forge) Open(_ context.Context, request pulls.Request) (pulls.Result, error) {
	f.requests = append(f.requests, request)
	return f.result, f.err
}

func object(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	out := map[string]any{}
	if err := yaml.Unmarshal([]byte(text), &out); err != nil {
		t.Fatal(err)
	}
	o := &unstructured.Unstructured{Object: out}
	if o.GetUID() == "" {
		o.SetUID("uid")
	}
	o.SetResourceVersion("1")
	return o
}

func newWorld(t *testing.T, texts ...string) *world {
	t.Helper()
	lists := map[schema.GroupVersionResource]string{
		{Group: weave.Group, Version: weave.Version, Resource: weave.Resource}:      "PipelineList",
		{Group: weave.OlderGroup, Version: weave.Version, Resource: weave.Resource}: "PipelineList",
	}
	known := meta.NewDefaultRESTMapper([]schema.GroupVersion{
		{Group: "apps", Version: "v1"}, {Group: "helm.toolkit.fluxcd.io", Version: "v2"}, {Group: "kustomize.toolkit.fluxcd.io", Version: "v1"},
		{Group: "source.toolkit.fluxcd.io", Version: "v1"},
	})
	for resource, kind := range map[schema.GroupVersionResource]string{
		{Group: "apps", Version: "v1", Resource: "deployments"}:                           "Deployment",
		{Group: "helm.toolkit.fluxcd.io", Version: "v2", Resource: "helmreleases"}:        "HelmRelease",
		{Group: "kustomize.toolkit.fluxcd.io", Version: "v1", Resource: "kustomizations"}: "Kustomization",
		{Group: "source.toolkit.fluxcd.io", Version: "v1", Resource: "gitrepositories"}:   "GitRepository",
	} {
		lists[resource] = kind + "List"
		known.AddSpecific(resource.GroupVersion().WithKind(kind), resource, resource.GroupVersion().WithResource(strings.ToLower(kind)), meta.RESTScopeNamespace)
	}
	var all []runtime.Object
	for _, text := range texts {
		all = append(all, object(t, text))
	}
	w := &world{
		T: t, dynamic: dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), lists, all...), kube: kubefake.NewClientset(),
		clock: clocktesting.NewFakePassiveClock(time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)), events: record.NewFakeRecorder(100),
		secrets: cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc}), forge: &forge{},
	}
	w.restart(known)
	return w
}

// restart forgets what the controller remembers.
func (w *world) restart(known meta.RESTMapper) {
	w.Controller = New(Options{
		Kinds: kinds{}, Dynamic: w.dynamic, Events: w.kube.CoreV1(), Mapper: mapper{known}, Pulls: w.forge, Recorder: w.events, Clock: w.clock,
		Secrets: corelisters.NewSecretLister(w.secrets), SecretsSynced: func() bool { return true },
		Objects: func(account objects.Account) (dynamic.Interface, error) {
			w.accounts = append(w.accounts, account)
			return w.dynamic, nil
		},
	})
}

func (w *world) look() {
	w.Helper()
	if err := w.sync(w.Context(), web); err != nil {
		w.Fatal(err)
	}
}

func (w *world) pipeline() *weave.Pipeline {
	w.Helper()
	p, err := w.read(w.Context(), web)
	if err != nil || p == nil {
		w.Fatalf("the pipeline is %v: %v", p, err)
	}
	return p
}

// promotion is that to prod.
func (w *world) promotion() weave.PromotionStatus {
	w.Helper()
	status := w.pipeline().Status.Environments["prod"]
	if status == nil || status.Promotion == nil {
		return weave.PromotionStatus{}
	}
	return *status.Promotion
}

// change changes the stored pipeline, as others do.
func (w *world) change(how func(*unstructured.Unstructured)) {
	w.Helper()
	found, err := w.client(web).Get(w.Context(), web.Name, metav1.GetOptions{})
	if err != nil {
		w.Fatal(err)
	}
	how(found)
	if _, err := w.client(web).Update(w.Context(), found, metav1.UpdateOptions{}); err != nil {
		w.Fatal(err)
	}
}

// writes are the resources that were written, in order, and cleared by it.
func (w *world) writes() (out []string) {
	for _, action := range w.dynamic.Actions() {
		if action.GetVerb() == "get" {
			continue
		}
		resource := action.GetResource().Resource
		if action.GetSubresource() != "" {
			resource += "/" + action.GetSubresource()
		}
		out = append(out, action.GetVerb()+" "+resource)
	}
	w.dynamic.ClearActions()
	return out
}

func (w *world) told() (out []string) {
	for {
		select {
		case event := <-w.events.Events:
			out = append(out, event)
		default:
			return out
		}
	}
}

// pipelineOf is a pipeline over dev, which runs 2, and prod, which runs 1.
func pipelineOf(strategy string) string {
	return fmt.Sprintf(`
apiVersion: pipelines.weave.works/v1alpha1
kind: Pipeline
metadata: {namespace: shop, name: web, generation: 1, uid: uid-of-web}
spec:
  appRef: {apiVersion: apps/v1, kind: Deployment, name: web}
  environments:
  - {name: dev, targets: [{namespace: dev}]}
  - {name: prod, targets: [{namespace: prod}]}
  promotion: %s
status:
  observedGeneration: 1
  conditions: [{type: Ready, status: "True", reason: Read, message: "", lastTransitionTime: "2026-05-01T11:00:00Z"}]
  environments:
    dev:
      targets: [{namespace: dev, ready: true, workloads: [{kind: Deployment, name: web, version: "2", ready: true, images: ["ghcr.io/shop/web:2"]}]}]
    prod:
      targets: [{namespace: prod, ready: true, workloads: [{kind: Deployment, name: web, version: "1", ready: true, images: ["ghcr.io/shop/web:1"]}]}]
`, strategy)
}

const (
	directly = "{strategy: {direct: {serviceAccountName: promoter}}}"
	inProd   = `
apiVersion: apps/v1
kind: Deployment
metadata: {namespace: prod, name: web}
spec:
  template:
    spec:
      containers:
      - {name: web, image: "ghcr.io/shop/web:1"}
      - {name: proxy, image: "docker.io/envoy:7"}
`
)

func (w *world) image() string {
	w.Helper()
	found, err := w.dynamic.Resource(schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}).Namespace("prod").Get(w.Context(), "web", metav1.GetOptions{})
	if err != nil {
		w.Fatal(err)
	}
	containers, _, _ := unstructured.NestedSlice(found.Object, "spec", "template", "spec", "containers")
	var out []string
	for _, c := range containers {
		out = append(out, c.(map[string]any)["image"].(string))
	}
	return strings.Join(out, " ")
}

func TestADirectPromotionWritesTheTargetsAsTheAccountThatIsNamed(t *testing.T) {
	w := newWorld(t, pipelineOf(directly), inProd)
	w.look()
	if got := w.image(); got != "ghcr.io/shop/web:2 docker.io/envoy:7" {
		t.Errorf("prod is to run %s", got)
	}
	if got := w.promotion(); got.Phase != weave.PromotionStarted || got.Revision != "2" || got.Strategy != "direct" || got.Attempts != 1 {
		t.Errorf("the promotion is %+v", got)
	}
	if want := (objects.Account{Namespace: "shop", ServiceAccount: "promoter"}); len(w.accounts) != 1 || w.accounts[0] != want {
		t.Errorf("it is written as %v", w.accounts)
	}
	if got := w.writes(); !slices.Equal(got, []string{"patch pipelines/status", "patch deployments", "patch pipelines/status"}) {
		t.Errorf("written is %v", got)
	}
	if got := w.told(); len(got) != 1 || !strings.Contains(got[0], "PromotionStarted 2 is promoted to prod (direct)") {
		t.Errorf("events are %v", got)
	}
	w.look()
	if got := w.writes(); len(got) > 0 {
		t.Errorf("looked at again, there is written %v", got)
	}
	if ready := meta.FindStatusCondition(w.pipeline().Status.Conditions, weave.ConditionReady); ready == nil || ready.Reason != "Read" {
		t.Errorf("the condition of others is %v", ready)
	}
}

func TestAWriteOfTheStatusTouchesNothingElse(t *testing.T) {
	w := newWorld(t, pipelineOf(directly), inProd)
	w.look()
	for _, action := range w.dynamic.Actions() {
		patch, is := action.(clienttesting.PatchAction)
		if !is || action.GetSubresource() != "status" {
			continue
		}
		var got struct {
			Metadata map[string]any
			Spec     any
			Status   map[string]json.RawMessage
		}
		if err := json.Unmarshal(patch.GetPatch(), &got); err != nil {
			t.Fatal(err)
		}
		environments := map[string]map[string]any{}
		if err := json.Unmarshal(got.Status["environments"], &environments); err != nil {
			t.Fatal(err)
		}
		delete(got.Status, "environments")
		delete(got.Status, "conditions")
		if got.Metadata["uid"] != "uid-of-web" || got.Metadata["resourceVersion"] == nil || len(got.Metadata) != 2 || got.Spec != nil || len(got.Status) > 0 {
			t.Errorf("the patch is %s", patch.GetPatch())
		}
		for name, fields := range environments {
			for field := range fields {
				if field != "promotion" && field != "waitingStatus" {
					t.Errorf("it writes %s of %s", field, name)
				}
			}
		}
	}
}

func TestWhatWasDoneAndNotToldIsNotDoneAgain(t *testing.T) {
	for name, test := range map[string]struct {
		strategy string
		done     func(w *world) int
	}{
		"a version that was written": {directly, func(w *world) (n int) {
			for _, action := range w.dynamic.Actions() {
				if action.Matches("patch", "deployments") {
					n++
				}
			}
			return n
		}},
		"an event": {"{strategy: {notification: {}}}", func(w *world) int {
			events, err := w.kube.CoreV1().Events("shop").List(w.Context(), metav1.ListOptions{})
			if err != nil {
				w.Fatal(err)
			}
			return len(events.Items)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, pipelineOf(test.strategy), inProd)
			patches := 0
			w.dynamic.PrependReactor("patch", "pipelines", func(clienttesting.Action) (bool, runtime.Object, error) {
				if patches++; patches == 2 { // after it has begun, and was carried out
					return true, nil, errors.New("the server is gone")
				}
				return false, nil, nil
			})
			if err := w.sync(t.Context(), web); err == nil {
				t.Fatal("nothing has failed")
			}
			if n := test.done(w); n != 1 {
				t.Fatalf("it is done %d times", n)
			}
			w.clock.SetTime(w.clock.Now().Add(time.Minute))
			w.restart(w.Mapper.(mapper).RESTMapper)
			w.look()
			if n := test.done(w); n != 1 {
				t.Errorf("it is done %d times", n)
			}
			if got := w.promotion(); got.Phase != weave.PromotionStarted {
				t.Errorf("the promotion is %+v", got)
			}
		})
	}
}

func TestANotificationIsAnEventThatOthersActOn(t *testing.T) {
	w := newWorld(t, pipelineOf("{strategy: {notification: {}}}"))
	w.look()
	events, err := w.kube.CoreV1().Events("shop").List(t.Context(), metav1.ListOptions{})
	if err != nil || len(events.Items) != 1 {
		t.Fatalf("events are %v: %v", events, err)
	}
	event := events.Items[0]
	if event.Reason != "Promote" || event.Type != "Normal" || event.Annotations["environment"] != "prod" || event.Annotations["version"] != "2" ||
		event.InvolvedObject.Kind != "Pipeline" || event.InvolvedObject.APIVersion != "pipelines.weave.works/v1alpha1" || event.InvolvedObject.UID != "uid-of-web" {
		t.Errorf("the event is %+v", event)
	}
}

func TestWhyADirectPromotionFails(t *testing.T) {
	elsewhere := strings.ReplaceAll(pipelineOf(directly), "{namespace: prod}", "{namespace: prod, clusterRef: {kind: GitopsCluster, name: east}}")
	elsewhere = strings.Replace(elsewhere, "[{namespace: prod, ready", "[{kind: GitopsCluster, name: east, namespace: prod, ready", 1)
	for name, test := range map[string]struct {
		pipeline string
		object   string
		refused  error
		want     string
	}{
		"there is nothing":         {pipeline: pipelineOf(directly), want: "there is no Deployment prod/web"},
		"it is in a cluster alone": {pipeline: elsewhere, want: `Deployment prod/web is not in the logical cluster: what is in cluster "east" alone is not written directly`},
		"another image":            {pipeline: pipelineOf(directly), object: strings.ReplaceAll(inProd, "shop/web", "other/web"), want: "none of its containers has an image of ghcr.io/shop/web"},
		"the account has no right": {pipeline: pipelineOf(directly), object: inProd, refused: apierrors.NewForbidden(schema.GroupResource{Group: "apps", Resource: "deployments"}, "web", errors.New("no")), want: "write version 2 into Deployment prod/web as ServiceAccount shop/promoter"},
		"no account":               {pipeline: pipelineOf("{strategy: {direct: {serviceAccountName: \"\"}}}"), object: inProd, want: "no ServiceAccount is named"},
		"a kind that is not there": {pipeline: strings.ReplaceAll(strings.ReplaceAll(pipelineOf(directly), "apps/v1, kind: Deployment", "apps/v1, kind: StatefulSet"), "kind: Deployment, name: web", "kind: StatefulSet, name: web"), want: "find how StatefulSet prod/web is served"},
	} {
		t.Run(name, func(t *testing.T) {
			texts := []string{test.pipeline}
			if test.object != "" {
				texts = append(texts, test.object)
			}
			w := newWorld(t, texts...)
			if test.refused != nil {
				w.dynamic.PrependReactor("patch", "deployments", func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, test.refused })
			}
			w.look()
			if got := w.promotion(); got.Phase != weave.PromotionFailed || !strings.Contains(got.Message, test.want) || got.Attempts != 1 {
				t.Errorf("the promotion is %+v, want %q", got, test.want)
			}
			if said := meta.FindStatusCondition(w.pipeline().Status.Conditions, weave.ConditionPromoting); said == nil || said.Reason != "Failed" {
				t.Errorf("the condition is %v", said)
			}
			if got := w.told(); len(got) != 1 || !strings.HasPrefix(got[0], "Warning PromotionFailed") {
				t.Errorf("events are %v", got)
			}
			w.look() // it is tried again later
			if got := w.promotion(); got.Attempts != 1 {
				t.Errorf("it is tried %d times at once", got.Attempts)
			}
			w.clock.SetTime(w.clock.Now().Add(3 * time.Second))
			w.look()
			if got := w.promotion(); got.Attempts != 2 {
				t.Errorf("it is tried %d times", got.Attempts)
			}
			if got := w.told(); len(got) > 0 {
				t.Errorf("what was told is told again: %v", got)
			}
		})
	}
}

func TestWhatIsRepairedResumesByItself(t *testing.T) {
	w := newWorld(t, pipelineOf(directly), inProd)
	broken := true
	w.dynamic.PrependReactor("patch", "deployments", func(clienttesting.Action) (bool, runtime.Object, error) { return broken, nil, errors.New("not now") })
	w.look()
	broken = false
	w.clock.SetTime(w.clock.Now().Add(3 * time.Second))
	w.look()
	if got := w.promotion(); got.Phase != weave.PromotionStarted || got.Message != "" || got.Attempts != 2 {
		t.Errorf("the promotion is %+v", got)
	}
}

func TestVersionsAreWrittenWhereFluxHasThem(t *testing.T) {
	const sha = "0123456789abcdef0123456789abcdef01234567"
	of := func(kind, group, version string) string {
		text := strings.ReplaceAll(pipelineOf(directly), "apiVersion: apps/v1, kind: Deployment", "apiVersion: "+group+", kind: "+kind)
		text = strings.ReplaceAll(text, "{kind: Deployment, name: web", "{kind: "+kind+", name: web")
		text = strings.ReplaceAll(text, `version: "2", ready: true, images: ["ghcr.io/shop/web:2"]`, `version: "`+version+`", ready: true`)
		return strings.ReplaceAll(text, `, images: ["ghcr.io/shop/web:1"]`, "")
	}
	for name, test := range map[string]struct {
		pipeline string
		objects  []string
		resource schema.GroupVersionResource
		want     []string
		path     []string
	}{
		"the version of a chart": {
			of("HelmRelease", "helm.toolkit.fluxcd.io/v2", "6.1.8"),
			[]string{"{apiVersion: helm.toolkit.fluxcd.io/v2, kind: HelmRelease, metadata: {namespace: prod, name: web}, spec: {chart: {spec: {chart: podinfo, version: 6.1.5}}}}"},
			schema.GroupVersionResource{Group: "helm.toolkit.fluxcd.io", Version: "v2", Resource: "helmreleases"}, []string{"6.1.8"}, []string{"spec", "chart", "spec", "version"},
		},
		"the commit of a source": {
			of("Kustomization", "kustomize.toolkit.fluxcd.io/v1", "main@sha1:"+sha),
			[]string{
				"{apiVersion: kustomize.toolkit.fluxcd.io/v1, kind: Kustomization, metadata: {namespace: prod, name: web}, spec: {sourceRef: {kind: GitRepository, name: web}}}",
				"{apiVersion: source.toolkit.fluxcd.io/v1, kind: GitRepository, metadata: {namespace: prod, name: web}, spec: {ref: {branch: main}}}",
			},
			schema.GroupVersionResource{Group: "source.toolkit.fluxcd.io", Version: "v1", Resource: "gitrepositories"}, []string{sha}, []string{"spec", "ref", "commit"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, append(test.objects, test.pipeline)...)
			w.look()
			found, err := w.dynamic.Resource(test.resource).Namespace("prod").Get(t.Context(), "web", metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if got, _, _ := unstructured.NestedString(found.Object, test.path...); got != test.want[0] {
				t.Errorf("it is %q: %+v", got, w.promotion())
			}
		})
	}
	t.Run("not of a source elsewhere", func(t *testing.T) {
		w := newWorld(t, of("Kustomization", "kustomize.toolkit.fluxcd.io/v1", "main@sha1:"+sha),
			"{apiVersion: kustomize.toolkit.fluxcd.io/v1, kind: Kustomization, metadata: {namespace: prod, name: web}, spec: {sourceRef: {kind: GitRepository, name: web, namespace: flux-system}}}")
		w.look()
		if got := w.promotion(); got.Phase != weave.PromotionFailed || !strings.Contains(got.Message, "in namespace flux-system, which is not the one of the target") {
			t.Errorf("the promotion is %+v", got)
		}
	})
}

func TestAPullRequestIsOpenedAndFollowed(t *testing.T) {
	const how = "{strategy: {pull-request: {type: github, url: 'https://forge/shop', baseBranch: main, secretRef: {name: forge}}}}"
	w := newWorld(t, pipelineOf(how))
	w.look()
	if got := w.promotion(); got.Phase != weave.PromotionFailed || !strings.Contains(got.Message, "there is no Secret shop/forge") {
		t.Errorf("the promotion is %+v", got)
	}
	if err := w.secrets.Add(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "forge"}, Data: map[string][]byte{"token": []byte("t")}}); err != nil {
		t.Fatal(err)
	}
	w.forge.result = pulls.Result{State: pulls.Open, URL: "https://forge/shop/1"}
	w.clock.SetTime(w.clock.Now().Add(time.Minute))
	w.look()
	if got := w.promotion(); got.Phase != weave.PromotionStarted || got.URL != "https://forge/shop/1" {
		t.Errorf("the promotion is %+v", got)
	}
	request := w.forge.requests[0]
	if request.Pipeline != (pulls.Pipeline{Group: weave.Group, Namespace: "shop", Name: "web"}) || request.Environment != "prod" || request.Version.Images["ghcr.io/shop/web"] != "2" ||
		request.Version.Revision != "2" || request.App.Name != "web" || !slices.Equal(request.App.Namespaces, []string{"prod"}) || string(request.Credentials["token"]) != "t" {
		t.Errorf("asked for is %+v", request)
	}
	w.look()
	if len(w.forge.requests) != 1 {
		t.Errorf("the forge is asked %d times", len(w.forge.requests))
	}
	w.clock.SetTime(w.clock.Now().Add(asksForges))
	w.forge.result = pulls.Result{State: pulls.Closed, URL: "https://forge/shop/1", Message: "it was closed"}
	w.look()
	if len(w.forge.requests) != 2 || w.forge.requests[1].Known != "https://forge/shop/1" {
		t.Errorf("the forge is asked for %+v", w.forge.requests)
	}
	if got := w.promotion(); got.Phase != weave.PromotionRevoked || got.Message != "it was closed" {
		t.Errorf("the promotion is %+v", got)
	}
	w.clock.SetTime(w.clock.Now().Add(asksForges))
	w.look()
	if len(w.forge.requests) != 2 {
		t.Errorf("the forge is asked %d times", len(w.forge.requests))
	}
}

func TestWhatARepositoryRefusesIsTriedAgainOnceSomethingHasChanged(t *testing.T) {
	const how = "{strategy: {pull-request: {type: github, url: 'https://forge/shop', baseBranch: main, secretRef: {name: forge}}}}"
	secret := func(w *world, version string) {
		w.Helper()
		if err := w.secrets.Update(&corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "forge", ResourceVersion: version}, Data: map[string][]byte{"token": []byte("t")},
		}); err != nil {
			w.Fatal(err)
		}
		w.SecretChanged(cache.NewObjectName("shop", "forge"))
	}
	for name, test := range map[string]struct {
		err  error
		then func(w *world)
		// tried says that it is tried again after that, and glances how often the base branch was looked at.
		tried   bool
		glances int
	}{
		"not if nothing has changed for a day": {err: pulls.ErrRefused, then: func(w *world) { w.clock.SetTime(w.clock.Now().Add(24 * time.Hour)) }},
		"once the pipeline has": {err: pulls.ErrRefused, tried: true, then: func(w *world) {
			w.change(func(p *unstructured.Unstructured) {
				p.SetGeneration(2)
				_ = unstructured.SetNestedField(p.Object, int64(2), "status", "observedGeneration")
			})
		}},
		"once the Secret has": {err: pulls.ErrRefused, tried: true, then: func(w *world) { secret(w, "2") }},
		"when the server starts anew, within the time in which forges are asked": {err: pulls.ErrRefused, tried: true, then: func(w *world) {
			w.restart(w.Mapper.(mapper).RESTMapper)
			w.look()
			w.clock.SetTime(w.clock.Now().Add(asksForges))
		}},
		"not while the base branch is at the commit that was refused": {err: pulls.Refusal(pulls.ErrMissing, "c0ffee"), glances: 1, then: func(w *world) { w.clock.SetTime(w.clock.Now().Add(time.Hour)) }},
		"once the base branch has another commit": {err: pulls.Refusal(pulls.ErrMissing, "c0ffee"), tried: true, glances: 1, then: func(w *world) {
			w.forge.base = "deadbeef"
			w.clock.SetTime(w.clock.Now().Add(firstGlance))
		}},
		"not at once, though the base branch has another commit":    {err: pulls.Refusal(pulls.ErrMissing, "c0ffee"), then: func(w *world) { w.forge.base = "deadbeef" }},
		"now and then, where the forge may know a credential since": {err: pulls.ErrForbidden, tried: true, then: func(w *world) { w.clock.SetTime(w.clock.Now().Add(asksForges)) }},
		"not before": {err: pulls.ErrForbidden, then: func(w *world) { w.clock.SetTime(w.clock.Now().Add(asksForges - time.Second)) }},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, pipelineOf(how))
			secret(w, "1")
			w.forge.err, w.forge.base = test.err, "c0ffee"
			w.look()
			if got := w.promotion(); got.Phase != weave.PromotionFailed || !got.Refused || got.Attempts != 1 {
				t.Fatalf("the promotion is %+v", got)
			}
			said := meta.FindStatusCondition(w.pipeline().Status.Conditions, weave.ConditionPromoting)
			if said == nil || said.Reason != "Refused" || !strings.Contains(said.Message, "once the pipeline, its Secret or the repository has changed") {
				t.Errorf("the condition is %v", said)
			}
			if got := w.told(); len(got) != 1 || !strings.Contains(got[0], "once the pipeline, its Secret or the repository has changed") {
				t.Errorf("events are %v", got)
			}
			w.forge.err, w.forge.result = nil, pulls.Result{State: pulls.Open, URL: "https://forge/shop/1"}
			test.then(w)
			w.writes()
			w.look()
			want := weave.PromotionFailed
			if test.tried {
				want = weave.PromotionStarted
			}
			if got := w.promotion(); got.Phase != want || got.Refused == test.tried {
				t.Errorf("the promotion is %+v, want it %s", got, want)
			}
			if w.forge.glances != test.glances {
				t.Errorf("the base branch was looked at %d times, want %d", w.forge.glances, test.glances)
			}
			if got := w.writes(); !test.tried && len(got) > 0 {
				t.Errorf("it waits, and yet there is written %v", got)
			}
		})
	}
}

func TestAChangeOfASecretConcernsThoseWhoWereRefusedWithIt(t *testing.T) {
	w := newWorld(t, pipelineOf("{strategy: {pull-request: {type: github, url: 'https://forge/shop', baseBranch: main, secretRef: {name: forge}}}}"))
	w.look() // there is no such Secret
	for name, want := range map[cache.ObjectName]int{
		cache.NewObjectName("shop", "forge"): 1, cache.NewObjectName("shop", "other"): 0, cache.NewObjectName("farm", "forge"): 0,
	} {
		w.SecretChanged(name)
		if got := w.queue.Len(); got != want {
			t.Errorf("Secret %s has %d pipelines looked at, want %d", name, got, want)
		}
		for w.queue.Len() > 0 {
			k, _ := w.queue.Get()
			w.queue.Done(k)
		}
	}
}

func TestALookAtARepositoryThatHasRefusedIsRareOnceItHasRefusedForLong(t *testing.T) {
	w := newWorld(t, pipelineOf("{strategy: {pull-request: {type: github, url: 'https://forge/shop', baseBranch: main, secretRef: {name: forge}}}}"))
	if err := w.secrets.Add(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "forge"}}); err != nil {
		t.Fatal(err)
	}
	w.forge.err, w.forge.base = pulls.Refusal(pulls.ErrAmbiguous, "c0ffee"), "c0ffee"
	for range 3600 {
		w.look()
		w.clock.SetTime(w.clock.Now().Add(time.Second))
	}
	if most := 8 + 12; w.forge.glances > most || w.forge.glances < 12 {
		t.Errorf("it was looked at %d times in an hour, want 12 to %d", w.forge.glances, most)
	}
	if len(w.forge.requests) != 1 {
		t.Errorf("it was tried %d times, want once", len(w.forge.requests))
	}
}

func TestTheForgeIsAskedAtOnceWhenAVersionComesToWaitBehindAPullRequest(t *testing.T) {
	w := newWorld(t, pipelineOf("{strategy: {pull-request: {type: github, url: 'https://forge/shop', baseBranch: main, secretRef: {name: forge}}}}"))
	if err := w.secrets.Add(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "forge"}, Data: map[string][]byte{"token": []byte("t")}}); err != nil {
		t.Fatal(err)
	}
	w.forge.result = pulls.Result{State: pulls.Open, URL: "https://forge/shop/1"}
	w.look()
	runs := func(tag string) {
		w.change(func(found *unstructured.Unstructured) {
			workload := map[string]any{"kind": "Deployment", "name": "web", "version": tag, "ready": true, "images": []any{"ghcr.io/shop/web:" + tag}}
			target := map[string]any{"namespace": "dev", "ready": true, "workloads": []any{workload}}
			if err := unstructured.SetNestedSlice(found.Object, []any{target}, "status", "environments", "dev", "targets"); err != nil {
				t.Fatal(err)
			}
		})
		w.look()
	}
	for _, test := range []struct {
		tag   string
		asked int
	}{{"2", 1}, {"3", 2}, {"3", 2}, {"4", 3}} {
		if runs(test.tag); len(w.forge.requests) != test.asked {
			t.Errorf("with %s before it the forge was asked %d times, want %d", test.tag, len(w.forge.requests), test.asked)
		}
	}
	w.forge.result = pulls.Result{State: pulls.Closed, URL: "https://forge/shop/1"}
	runs("5")
	w.forge.result = pulls.Result{State: pulls.Open, URL: "https://forge/shop/2"}
	w.look()
	if got := w.promotion(); got.Revision != "5" || got.Phase != weave.PromotionStarted {
		t.Errorf("the promotion is %+v, want the newer version's, as the older one's was closed", got)
	}
}

func TestWhatOthersWriteMeanwhileStays(t *testing.T) {
	w := newWorld(t, pipelineOf("{manual: true, strategy: {notification: {}}}"))
	conflicts := 0
	w.dynamic.PrependReactor("patch", "pipelines", func(clienttesting.Action) (bool, runtime.Object, error) {
		if conflicts++; conflicts > 1 {
			return false, nil, nil
		}
		found, err := w.dynamic.Tracker().Get(schema.GroupVersionResource{Group: weave.Group, Version: weave.Version, Resource: weave.Resource}, "shop", "web")
		if err != nil {
			return true, nil, err
		}
		changed := found.(*unstructured.Unstructured).DeepCopy()
		_ = unstructured.SetNestedField(changed.Object, []any{map[string]any{"type": "Ready", "status": "False", "reason": "Silent", "message": "", "lastTransitionTime": "2026-05-01T11:00:00Z"}}, "status", "conditions")
		if err := w.dynamic.Tracker().Update(schema.GroupVersionResource{Group: weave.Group, Version: weave.Version, Resource: weave.Resource}, changed, "shop"); err != nil {
			return true, nil, err
		}
		return true, nil, apierrors.NewConflict(schema.GroupResource{Group: weave.Group, Resource: weave.Resource}, "web", errors.New("changed"))
	})
	w.look()
	p := w.pipeline()
	if ready := meta.FindStatusCondition(p.Status.Conditions, weave.ConditionReady); ready == nil || ready.Reason != "Silent" {
		t.Errorf("what others have written is %v", p.Status.Conditions)
	}
	if s := p.Status.Environments["prod"]; s.WaitingStatus == nil || s.WaitingStatus.Revision != "2" || s.Promotion.Phase != weave.PromotionWaiting || len(s.Targets) != 1 {
		t.Errorf("prod is %+v", s)
	}
}

func TestAWebhookAsksForWhatWaitsAlone(t *testing.T) {
	w := newWorld(t, pipelineOf("{manual: true, strategy: {direct: {serviceAccountName: promoter}}}"), inProd)
	w.look()
	if waits, err := w.Ask(t.Context(), w.pipeline(), "prod", "1", "ci"); waits || err != nil {
		t.Errorf("what does not wait is asked for: %t, %v", waits, err)
	}
	w.writes()
	if waits, err := w.Ask(t.Context(), w.pipeline(), "dev", "2", "ci"); waits || err != nil || len(w.writes()) > 0 {
		t.Errorf("an environment in which nothing waits is asked for: %t, %v", waits, err)
	}
	if waits, err := w.Ask(t.Context(), w.pipeline(), "prod", "2", "ci"); !waits || err != nil {
		t.Fatalf("what waits is not asked for: %v", err)
	}
	w.look()
	p := w.pipeline()
	if s := p.Status.Environments["prod"]; s.Asked == nil || s.Asked.By != "ci" || s.WaitingStatus != nil || s.Promotion.Phase != weave.PromotionStarted || s.Promotion.By != "ci" || s.Promotion.Held {
		t.Errorf("prod is %+v with %+v", s, s.Promotion)
	}
	if got := w.image(); !strings.HasPrefix(got, "ghcr.io/shop/web:2") {
		t.Errorf("prod is to run %s", got)
	}
}

func TestOfOneNameInBothGroupsTheNewerIsMeant(t *testing.T) {
	older := strings.Replace(pipelineOf(directly), "pipelines.weave.works/", "pipelines.wego.weave.works/", 1)
	w := newWorld(t, older)
	found, err := w.Find(t.Context(), web.ObjectName)
	if err != nil || found == nil || found.GroupVersionKind().Group != weave.OlderGroup {
		t.Errorf("found is %v: %v", found, err)
	}
	w = newWorld(t, older, pipelineOf(directly))
	found, err = w.Find(t.Context(), web.ObjectName)
	if err != nil || found == nil || found.GroupVersionKind().Group != weave.Group {
		t.Errorf("found is %v: %v", found, err)
	}
	if found, err = w.Find(t.Context(), cache.NewObjectName("shop", "none")); found != nil || err != nil {
		t.Errorf("found is %v: %v", found, err)
	}
}

func TestASecretThatSignsNothingIsToldByAnEvent(t *testing.T) {
	w := newWorld(t, pipelineOf(directly))
	p := w.pipeline()
	if w.SigningKey(p, "hook") != nil || len(w.told()) != 1 {
		t.Error("a Secret that is missing is not told")
	}
	if err := w.secrets.Add(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "hook"}, Data: map[string][]byte{"other": []byte("x")}}); err != nil {
		t.Fatal(err)
	}
	if w.SigningKey(p, "hook") != nil || len(w.told()) != 1 {
		t.Error("a Secret without the key is not told")
	}
	if err := w.secrets.Update(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "hook"}, Data: map[string][]byte{KeyHMAC: []byte("x")}}); err != nil {
		t.Fatal(err)
	}
	if string(w.SigningKey(p, "hook")) != "x" || len(w.told()) != 0 {
		t.Error("the key is not that of the Secret")
	}
}

func TestWhoeverWaitsIsToldOnceThePipelineWasLookedAt(t *testing.T) {
	w := newWorld(t, pipelineOf("{strategy: {notification: {}}}"))
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- w.Controller.Run(ctx) }()
	p, err := w.Look(t.Context(), w.pipeline())
	if err != nil || p.Status.Environments["prod"].Promotion == nil || p.Status.Environments["prod"].Promotion.Phase != weave.PromotionStarted {
		t.Errorf("it is %+v: %v", p, err)
	}
	stop()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestWhatIsLeftOfAnEnvironmentThatIsGoneIsTakenBack(t *testing.T) {
	w := newWorld(t, pipelineOf("{manual: true, strategy: {notification: {}}}"))
	w.look()
	w.change(func(o *unstructured.Unstructured) {
		_ = unstructured.SetNestedSlice(o.Object, []any{map[string]any{"name": "dev", "targets": []any{map[string]any{"namespace": "dev"}}}}, "spec", "environments")
	})
	w.look()
	if s := w.pipeline().Status.Environments["prod"]; s.WaitingStatus != nil || s.Promotion != nil || len(s.Targets) != 1 {
		t.Errorf("prod is %+v", s)
	}
}
