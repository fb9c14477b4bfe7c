package delivery

import (
	"context"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizerfactory"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/informers"
	kubefake "k8s.io/client-go/kubernetes/fake"
	clientrest "k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	ownfake "github.com/manifold-dev/manifold/generated/clientset/versioned/fake"
	"github.com/manifold-dev/manifold/generated/informers/externalversions"
	"github.com/manifold-dev/manifold/pkg/delivery/weave"
	"github.com/manifold-dev/manifold/pkg/projection"
	"github.com/manifold-dev/manifold/pkg/registry/delivery/pipelines"
	"github.com/manifold-dev/manifold/pkg/registry/delivery/previews"
	"github.com/manifold-dev/manifold/pkg/registry/delivery/workloads"
	"github.com/manifold-dev/manifold/pkg/registry/group"
	"github.com/manifold-dev/manifold/pkg/registry/group/grouptest"
)

func byJane(ctx context.Context) context.Context {
	return request.WithUser(ctx, &user.DefaultInfo{Name: "jane"})
}

// asks are a subresource that jane posts to: the server of the tests logs nobody in.
type asks struct {
	rest.Storage
	creater rest.NamedCreater
	rest.GroupVersionKindProvider
	rest.StorageMetadata
}

func (a asks) Create(ctx context.Context, name string, body runtime.Object, validate rest.ValidateObjectFunc, options *metav1.CreateOptions) (runtime.Object, error) {
	return a.creater.Create(byJane(ctx), name, body, validate, options)
}

// lists are versions that jane asks for.
type lists struct{ *workloads.REST }

func (l lists) List(ctx context.Context, options *metainternalversion.ListOptions) (runtime.Object, error) {
	return l.REST.List(byJane(ctx), options)
}

// reads are a subresource that jane reads.
type reads struct {
	rest.Storage
	getter rest.Getter
	rest.GroupVersionKindProvider
	rest.StorageMetadata
}

func (r reads) Get(ctx context.Context, name string, options *metav1.GetOptions) (runtime.Object, error) {
	return r.getter.Get(byJane(ctx), name, options)
}

// unstored serves the group with a pipeline and a Deployment.
func unstored(t *testing.T) *clientrest.Config {
	t.Helper()
	pipeline := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": weave.Group + "/v1alpha1", "kind": "Pipeline", "metadata": map[string]any{"namespace": "shop", "name": "podinfo"},
		"spec":   map[string]any{"environments": []any{map[string]any{"name": "prod", "targets": []any{}}}},
		"status": map[string]any{"environments": map[string]any{"prod": map[string]any{"waitingStatus": map[string]any{"revision": "6.1.8"}}}},
	}}
	kinds := map[schema.GroupVersionResource]string{}
	for _, version := range weave.GroupVersions {
		kinds[version.WithResource(weave.Resource)] = "PipelineList"
	}
	for _, version := range []string{"v2", "v1"} {
		kinds[schema.GroupVersionResource{Group: "helm.toolkit.fluxcd.io", Version: version, Resource: "helmreleases"}] = "HelmReleaseList"
		kinds[schema.GroupVersionResource{Group: "kustomize.toolkit.fluxcd.io", Version: version, Resource: "kustomizations"}] = "KustomizationList"
	}
	client := fake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), kinds, pipeline)
	web := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}}
	web.Spec.Template.Spec.Containers = []corev1.Container{{Name: "web", Image: "registry.example/web:1.2"}}
	kube := informers.NewSharedInformerFactory(kubefake.NewClientset(web), 0)
	own := externalversions.NewSharedInformerFactory(ownfake.NewClientset(), 0)
	previewed := externalversions.NewSharedInformerFactory(ownfake.NewClientset(
		&v1alpha1.Application{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}, Status: v1alpha1.ApplicationStatus{LatestRevision: "web-v1"}},
		&v1alpha1.ApplicationRevision{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-v1"}, Spec: v1alpha1.ApplicationRevisionSpec{Application: "web"}},
	), 0)
	applications, revisions := previewed.Delivery().V1alpha1().Applications(), previewed.Delivery().V1alpha1().ApplicationRevisions()
	storage := pipelines.Storage(client, clock.RealClock{})
	for path, of := range storage {
		if creater, ok := of.(rest.NamedCreater); ok {
			storage[path] = asks{of, creater, of.(rest.GroupVersionKindProvider), of.(rest.StorageMetadata)}
		}
	}
	alone := func(context.Context, *weave.Pipeline, weave.Target) ([]*unstructured.Unstructured, string) {
		return nil, ""
	}
	for path, of := range pipelines.Related(client, authorizerfactory.NewAlwaysAllowAuthorizer(), alone) {
		storage[path] = reads{of, of.(rest.Getter), of.(rest.GroupVersionKindProvider), of.(rest.StorageMetadata)}
	}
	storage[v1alpha1.ResourceVersions] = lists{workloads.New(workloads.Options{
		Kube: kube, Applications: own.Delivery().V1alpha1().Applications(), Client: client, Authorizer: authorizerfactory.NewAlwaysAllowAuthorizer(),
		Overrides: func(projection.Kind, projection.Object, string) (projection.Overrides, error) {
			return projection.Overrides{}, nil
		},
	})}
	storage["applications/"+v1alpha1.SubresourcePreview] = &previews.REST{
		Applications: applications.Lister(), Revisions: revisions.Lister(), Known: applications.Informer().HasSynced,
	}
	kube.Start(t.Context().Done())
	own.Start(t.Context().Done())
	kube.WaitForCacheSync(t.Context().Done())
	own.WaitForCacheSync(t.Context().Done())
	previewed.Start(t.Context().Done())
	previewed.WaitForCacheSync(t.Context().Done())
	return grouptest.API{Install: Install, Group: func(typer runtime.ObjectTyper) group.Group {
		out := Group(typer, nil)
		out.Unstored = storage
		return out
	}}.Serve(t)
}

func TestWhatIsAskedOfPipelinesIsServedWithoutAResourceInDiscovery(t *testing.T) {
	config := unstored(t)
	client, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	_, resources, err := client.ServerGroupsAndResources()
	if err != nil {
		t.Fatal(err)
	}
	verbs := map[string]string{}
	for _, list := range resources {
		for _, r := range list.APIResources {
			verbs[r.Name+" "+r.Kind] = strings.Join(r.Verbs, ",")
		}
	}
	for name, want := range map[string]string{
		"pipelines/promote PipelinePromotion": "create", "pipelines/pause PipelinePause": "create", "pipelines/resume PipelineResumption": "create",
		"pipelines/related PipelineRelated": "get", "workloadversions WorkloadVersion": "list", "applications/preview ApplicationPreview": "create",
	} {
		if got, served := verbs[name]; !served || got != want {
			t.Errorf("%s is served with %q (%t), want %q", name, got, served, want)
		}
	}
	for name := range verbs {
		if strings.HasPrefix(name, "pipelines ") {
			t.Errorf("discovery has %q, which kubectl would take for Weave's", name)
		}
	}

	dynamicClient, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	ask := dynamicClient.Resource(v1alpha1.SchemeGroupVersion.WithResource(v1alpha1.ResourcePipelines)).Namespace("shop")
	body := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": v1alpha1.SchemeGroupVersion.String(), "kind": "PipelinePromotion", "metadata": map[string]any{"name": "podinfo"}, "environment": "prod",
		"recorded": map[string]any{"by": "the-boss", "at": nil},
	}}
	related, err := ask.Get(t.Context(), "podinfo", metav1.GetOptions{}, "related")
	if err != nil || related.GetKind() != "PipelineRelated" || related.GetName() != "podinfo" {
		t.Errorf("what is related is %+v: %v", related, err)
	}
	answer, err := ask.Create(t.Context(), body, metav1.CreateOptions{}, "promote")
	if err != nil {
		t.Fatal(err)
	}
	by, _, _ := unstructured.NestedString(answer.Object, "recorded", "by")
	revision, _, _ := unstructured.NestedString(answer.Object, "revision")
	if by != "jane" || revision != "6.1.8" || answer.GetKind() != "PipelinePromotion" {
		t.Errorf("answered %v, want what jane has asked for", answer.Object)
	}
	if _, err := ask.Get(t.Context(), "podinfo", metav1.GetOptions{}); !apierrors.IsNotFound(err) && !apierrors.IsMethodNotSupported(err) {
		t.Errorf("read here is a pipeline, which is not of this group: %v", err)
	}
}

func TestAPreviewIsPostedAndAnswered(t *testing.T) {
	client, err := dynamic.NewForConfig(unstored(t))
	if err != nil {
		t.Fatal(err)
	}
	ask := client.Resource(v1alpha1.SchemeGroupVersion.WithResource("applications")).Namespace("shop")
	body := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": v1alpha1.SchemeGroupVersion.String(), "kind": "ApplicationPreview", "metadata": map[string]any{"name": "web"}, "running": "forged",
	}}
	answer, err := ask.Create(t.Context(), body, metav1.CreateOptions{}, v1alpha1.SubresourcePreview)
	if err != nil {
		t.Fatal(err)
	}
	revision, _, _ := unstructured.NestedString(answer.Object, "revision")
	if _, forged, _ := unstructured.NestedString(answer.Object, "running"); revision != "web-v1" || forged || answer.GetKind() != "ApplicationPreview" {
		t.Errorf("answered is %v", answer.Object)
	}
	body.SetName("other")
	if _, err := ask.Create(t.Context(), body, metav1.CreateOptions{}, v1alpha1.SubresourcePreview); !apierrors.IsNotFound(err) {
		t.Errorf("of an application that there is not: %v", err)
	}
}

func TestVersionsAreListedBySelectorsAndAsTables(t *testing.T) {
	config := unstored(t)
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	versions := client.Resource(v1alpha1.SchemeGroupVersion.WithResource(v1alpha1.ResourceVersions))
	for selector, want := range map[string][]string{"": {"web.deployment"}, "image=web": {"web.deployment"}, "image=db": nil, "workload.kind=StatefulSet": nil} {
		list, err := versions.List(t.Context(), metav1.ListOptions{FieldSelector: selector})
		if err != nil {
			t.Fatalf("%s: %v", selector, err)
		}
		var got []string
		for i := range list.Items {
			got = append(got, list.Items[i].GetName())
		}
		if !slices.Equal(got, want) {
			t.Errorf("%q selects %q, want %q", selector, got, want)
		}
	}
	if _, err := versions.List(t.Context(), metav1.ListOptions{FieldSelector: "spec.replicas=1"}); !apierrors.IsBadRequest(err) {
		t.Errorf("a field that there is not: %v", err)
	}
	config = clientrest.CopyConfig(config)
	config.GroupVersion, config.APIPath, config.NegotiatedSerializer = &v1alpha1.SchemeGroupVersion, "/apis", serializer.NewCodecFactory(runtime.NewScheme()).WithoutConversion()
	raw, err := clientrest.RESTClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	table, err := raw.Get().Namespace("shop").Resource(v1alpha1.ResourceVersions).SetHeader("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io").DoRaw(t.Context())
	if err != nil || !strings.Contains(string(table), `"cells":["web.deployment","Deployment","1.2",`) {
		t.Errorf("as a table it is %s: %v", table, err)
	}
}
