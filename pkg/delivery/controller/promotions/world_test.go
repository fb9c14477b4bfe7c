package promotions

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	kubefake "k8s.io/client-go/kubernetes/fake"
	corelisters "k8s.io/client-go/listers/core/v1"
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
	// lost are the rights that somebody has not.
	lost []string
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
		May: func(of weave.Author, right weave.Right) bool {
			return !slices.Contains(w.lost, of.User+" "+right.String())
		},
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
