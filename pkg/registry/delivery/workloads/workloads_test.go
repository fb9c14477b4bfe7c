package workloads

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/warning"
	"k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/informers"
	kubefake "k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	manifoldv1alpha1 "github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	ownfake "github.com/manifold-dev/manifold/generated/clientset/versioned/fake"
	"github.com/manifold-dev/manifold/generated/informers/externalversions"
	"github.com/manifold-dev/manifold/pkg/delivery/held"
	"github.com/manifold-dev/manifold/pkg/delivery/weave"
	"github.com/manifold-dev/manifold/pkg/projection"
)

// world is a logical cluster, and what a caller may list there: "RESOURCE" everywhere, "RESOURCE in NAMESPACE" or everything if there is nothing.
type world struct {
	deployments  []*appsv1.Deployment
	applications []*v1alpha1.Application
	custom       []runtime.Object
	// broken are resources that cannot be listed.
	broken []string
	may    []string
	// policyBroken tells that the policy cannot be read that is for the cluster west.
	policyBroken bool
}

func deployment(namespace, name, image string, clusters ...string) *appsv1.Deployment {
	var shares []string
	for _, cluster := range clusters {
		shares = append(shares, fmt.Sprintf(`%q:{"replicas":1}`, cluster))
	}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: name, Labels: map[string]string{"app": name},
			Annotations: map[string]string{manifoldv1alpha1.AnnotationPlacement: "{" + strings.Join(shares, ",") + "}"},
		},
		Spec: appsv1.DeploymentSpec{Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Image: image}}}}},
	}
}

func helmRelease(namespace, name, chart, version string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "helm.toolkit.fluxcd.io/v2", "kind": "HelmRelease", "metadata": map[string]any{"namespace": namespace, "name": name},
		"spec": map[string]any{"chart": map[string]any{"spec": map[string]any{"chart": chart, "version": version}}},
	}}
}

// shows is a pipeline of the namespace shop that shows a HelmRelease of a cluster's own.
func shows(namespace, name, cluster, version string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": weave.Group + "/v1alpha1", "kind": "Pipeline", "metadata": map[string]any{"namespace": "shop", "name": name + "-" + cluster + "-" + namespace},
		"spec": map[string]any{"environments": []any{}},
		"status": map[string]any{"environments": map[string]any{"prod": map[string]any{"targets": []any{map[string]any{
			"kind": "GitopsCluster", "name": cluster, "namespace": namespace, "ready": true,
			"workloads": []any{map[string]any{"kind": "HelmRelease", "name": name, "version": version, "ready": true}},
		}}}}},
	}}
}

func (w world) storage(t *testing.T) *REST {
	t.Helper()
	kube := informers.NewSharedInformerFactory(kubefake.NewClientset(), 0)
	own := externalversions.NewSharedInformerFactory(ownfake.NewClientset(), 0)
	kinds := map[schema.GroupVersionResource]string{}
	for _, gk := range flux {
		for _, version := range fluxVersions {
			name := strings.ToLower(gk.Kind) + "s"
			kinds[schema.GroupVersionResource{Group: gk.Group, Version: version, Resource: name}] = gk.Kind + "List"
		}
	}
	for _, version := range weave.GroupVersions {
		kinds[version.WithResource(weave.Resource)] = "PipelineList"
	}
	client := fake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), kinds, w.custom...)
	client.PrependReactor("list", "*", func(action clienttesting.Action) (bool, runtime.Object, error) {
		resource := action.GetResource()
		if slices.Contains(w.broken, resource.Resource) {
			return true, nil, errors.New("conversion webhook is down")
		}
		// As of a Flux that has HelmReleases alone.
		if (resource.Version != "v2" || resource.Resource != "helmreleases") && resource.Resource != weave.Resource {
			return true, nil, apierrors.NewNotFound(resource.GroupResource(), "")
		}
		return false, nil, nil
	})
	r := New(Options{
		Kube: kube, Applications: own.Delivery().V1alpha1().Applications(), Client: client, Held: held.New(nil, nil),
		Overrides: func(_ projection.Kind, _ projection.Object, cluster string) (projection.Overrides, error) {
			if cluster == "west" && w.policyBroken {
				return projection.Overrides{}, errors.New("policy cannot be read")
			}
			return projection.Overrides{}, nil
		},
		Authorizer: authorizer.AuthorizerFunc(func(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
			if w.may == nil || slices.Contains(w.may, a.GetResource()) || slices.Contains(w.may, a.GetResource()+" in "+a.GetNamespace()) {
				return authorizer.DecisionAllow, "", nil
			}
			return authorizer.DecisionNoOpinion, "", nil
		}),
	})
	r.known = func() bool { return true }
	for _, d := range w.deployments {
		if err := kube.Apps().V1().Deployments().Informer().GetIndexer().Add(d); err != nil {
			t.Fatal(err)
		}
	}
	for _, a := range w.applications {
		if err := own.Delivery().V1alpha1().Applications().Informer().GetIndexer().Add(a); err != nil {
			t.Fatal(err)
		}
	}
	return r
}

// ask lists as jane.
func (w world) ask(t *testing.T, namespace string, options *metainternalversion.ListOptions) (*v1alpha1.WorkloadVersionList, error) {
	t.Helper()
	ctx := request.WithUser(request.WithNamespace(t.Context(), namespace), &user.DefaultInfo{Name: "jane"})
	list, err := w.storage(t).List(ctx, options)
	if err != nil {
		return nil, err
	}
	return list.(*v1alpha1.WorkloadVersionList), nil
}

func selecting(t *testing.T, by string) *metainternalversion.ListOptions {
	t.Helper()
	selector, err := fields.ParseSelector(by)
	if err != nil {
		t.Fatal(err)
	}
	return &metainternalversion.ListOptions{FieldSelector: selector}
}

// lines tell of each item in a line.
func lines(list *v1alpha1.WorkloadVersionList) []string {
	var out []string
	for i := range list.Items {
		v := &list.Items[i]
		out = append(out, v.Namespace+" "+v.Workload.Kind+"/"+v.Workload.Name+": "+Versions(v))
	}
	return out
}

func full() world {
	return world{
		deployments: []*appsv1.Deployment{
			deployment("shop", "web", "registry.example/shop/web:1.2", "east", "west"), deployment("shop", "db", "postgres:16@sha256:aa", "east"),
			deployment("blog", "web", "nginx:1.25"),
		},
		applications: []*v1alpha1.Application{{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "cart"},
			Status: v1alpha1.ApplicationStatus{Targets: []v1alpha1.TargetStatus{{Name: "eu", Clusters: []v1alpha1.TargetClusterStatus{
				{Name: "west", Revision: "cart-v7", LiveRevision: "cart-v6"}, {Name: "east", Revision: "cart-v7", LiveRevision: "cart-v7"},
			}}}},
		}},
		custom: []runtime.Object{
			helmRelease("shop", "podinfo", "podinfo", "6.1.8"), shows("podinfo", "podinfo", "west", "6.1.5"), shows("podinfo", "podinfo", "east", "6.1.6"),
			shows("shop", "podinfo", "east", "6.1.8"),
		},
	}
}

func TestW29W30EveryVersionOverAllClustersIsTold(t *testing.T) {
	list, err := full().ask(t, "", nil)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"blog Deployment/web: 1.25", "shop Deployment/db: 16 (east)", "shop Deployment/web: 1.2 (east, west)", "shop Application/cart: cart-v7 (east, west)",
		"shop HelmRelease/podinfo: 6.1.8", "podinfo HelmRelease/podinfo: 6.1.6 (east), 6.1.5 (west)",
	}
	if got := lines(list); !slices.Equal(got, want) || len(list.Errors) > 0 || list.Continue != "" {
		t.Errorf("got %q with errors %v,\nwant %q", got, list.Errors, want)
	}
	if chart := list.Items[4].Chart; chart != "podinfo" {
		t.Errorf("the chart is %q", chart)
	}
}

func TestSelectedVersions(t *testing.T) {
	for name, test := range map[string]struct {
		by   string
		want []string
	}{
		"by a chart":                      {"chart=podinfo", []string{"shop HelmRelease/podinfo: 6.1.8"}},
		"by an image, in full":            {"image=registry.example/shop/web:1.2", []string{"shop Deployment/web: 1.2 (east, west)"}},
		"by an image without its tag":     {"image=registry.example/shop/web", []string{"shop Deployment/web: 1.2 (east, west)"}},
		"by the last part of its name":    {"image=web", []string{"shop Deployment/web: 1.2 (east, west)"}},
		"by that and the tag":             {"image=web:1.2", []string{"shop Deployment/web: 1.2 (east, west)"}},
		"by an image with a digest":       {"image=postgres", []string{"shop Deployment/db: 16 (east)"}},
		"by another tag":                  {"image=web:1.3", nil},
		"by a part of a word":             {"image=eb", nil},
		"by a cluster":                    {"cluster=west", []string{"shop Deployment/web: 1.2 (west)", "shop Application/cart: cart-v7 (west)", "podinfo HelmRelease/podinfo: 6.1.5 (west)"}},
		"by a kind, however it's written": {"workload.kind=deployment,cluster=east", []string{"shop Deployment/db: 16 (east)", "shop Deployment/web: 1.2 (east)"}},
		"by a namespace":                  {"metadata.namespace=blog", []string{"blog Deployment/web: 1.25"}},
	} {
		t.Run(name, func(t *testing.T) {
			list, err := full().ask(t, "", selecting(t, test.by))
			if err != nil {
				t.Fatal(err)
			}
			if got := lines(list); !slices.Equal(got, test.want) {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
	web, _ := labels.Parse("app=web")
	list, err := full().ask(t, "shop", &metainternalversion.ListOptions{LabelSelector: web})
	if err != nil || !slices.Equal(lines(list), []string{"shop Deployment/web: 1.2 (east, west)"}) {
		t.Errorf("by a label: %q, %v", lines(list), err)
	}
	for _, by := range []string{"chart!=podinfo", "spec.replicas=1", "image=a,image=b"} {
		if _, err := full().ask(t, "", selecting(t, by)); !apierrors.IsBadRequest(err) {
			t.Errorf("%s: %v, want a bad request", by, err)
		}
	}
}

func TestW39ACallerSeesWhatHeMayListNamespaceByNamespace(t *testing.T) {
	for name, test := range map[string]struct {
		namespace string
		may       []string
		want      []string
		wantHints []string
	}{
		"everything of one kind": {
			may: []string{"deployments"}, want: []string{"blog Deployment/web: 1.25", "shop Deployment/db: 16 (east)", "shop Deployment/web: 1.2 (east, west)"},
			wantHints: []string{"statefulsets.apps", "daemonsets.apps", "cronjobs.batch", "applications.delivery.manifold.dev", "helmreleases.helm.toolkit.fluxcd.io"},
		},
		"one namespace of all": {
			may: []string{"deployments in blog"}, want: []string{"blog Deployment/web: 1.25"},
			wantHints: []string{"deployments.apps", "statefulsets.apps", "daemonsets.apps", "cronjobs.batch", "applications.delivery.manifold.dev", "helmreleases.helm.toolkit.fluxcd.io"},
		},
		"pipelines show what clusters have by themselves": {
			may: []string{"pipelines in shop"}, want: []string{"podinfo HelmRelease/podinfo: 6.1.6 (east), 6.1.5 (west)"},
			wantHints: []string{"deployments.apps", "statefulsets.apps", "daemonsets.apps", "cronjobs.batch", "applications.delivery.manifold.dev", "helmreleases.helm.toolkit.fluxcd.io"},
		},
		"nothing in the namespace": {
			namespace: "shop", may: []string{"deployments in blog"},
			wantHints: []string{"deployments.apps", "statefulsets.apps", "daemonsets.apps", "cronjobs.batch", "applications.delivery.manifold.dev", "helmreleases.helm.toolkit.fluxcd.io"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := full()
			w.may = test.may
			list, err := w.ask(t, test.namespace, nil)
			if err != nil {
				t.Fatal(err)
			}
			var hints []string
			for _, e := range list.Errors {
				hints = append(hints, e.Resource)
			}
			if got := lines(list); !slices.Equal(got, test.want) || !slices.Equal(hints, test.wantHints) {
				t.Errorf("got %q with hints %q,\nwant %q with %q", got, hints, test.want, test.wantHints)
			}
		})
	}
}

// TestHintsSayNothingOfWhatIsThere compares what a caller without rights is told of a full cluster and of an empty one.
func TestHintsSayNothingOfWhatIsThere(t *testing.T) {
	w := full()
	w.may = []string{}
	there, err := w.ask(t, "", nil)
	if err != nil {
		t.Fatal(err)
	}
	none, err := world{may: []string{}}.ask(t, "", nil)
	if err != nil || len(there.Items) > 0 || !slices.Equal(there.Errors, none.Errors) {
		t.Errorf("told %v and %v of what is there, and %v where nothing is: %v", there.Items, there.Errors, none.Errors, err)
	}
}

func TestWhatCannotBeReadIsToldBesideWhatCan(t *testing.T) {
	w := full()
	w.broken, w.policyBroken = []string{"helmreleases"}, true
	list, err := w.ask(t, "shop", nil)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"shop Deployment/db: 16 (east)", "shop Deployment/web: 1.2 (east), <unknown> (west)", "shop Application/cart: cart-v7 (east, west)"}
	if got := lines(list); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if len(list.Errors) != 1 || !strings.Contains(list.Errors[0].Message, "conversion webhook is down") || list.Items[1].Clusters[1].Error != "policy cannot be read" {
		t.Errorf("told %v and %+v", list.Errors, list.Items[1].Clusters)
	}
	told := &warnings{}
	rows, err := w.storage(t).ConvertToTable(warning.WithWarningRecorder(t.Context(), told), list, nil)
	if err != nil || len(rows.Rows) != 3 || len(told.texts) != 1 {
		t.Errorf("%d rows with warnings %q: %v", len(rows.Rows), told.texts, err)
	}
}

type warnings struct{ texts []string }

func (w *warnings) AddWarning(_, text string) { w.texts = append(w.texts, text) }

func TestPagesTogetherAreTheWhole(t *testing.T) {
	w := full()
	for i := range 20 {
		w.deployments = append(w.deployments, deployment("load", fmt.Sprintf("web-%02d", i), "web:1", "east"))
	}
	whole, err := w.ask(t, "", nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, limit := range []int64{1, 2, 7, 26, 1000} {
		var got []string
		options := &metainternalversion.ListOptions{Limit: limit}
		for {
			page, err := w.ask(t, "", options)
			if err != nil {
				t.Fatal(err)
			}
			if len(page.Items) > int(limit) {
				t.Fatalf("a page of %d items, want at most %d", len(page.Items), limit)
			}
			got = append(got, lines(page)...)
			if options.Continue = page.Continue; page.Continue == "" {
				break
			}
		}
		if !slices.Equal(got, lines(whole)) {
			t.Errorf("pages of %d are %q, want %q", limit, got, lines(whole))
		}
	}
}

func FuzzContinue(f *testing.F) {
	f.Add("")
	f.Add(position{Source: 3, After: "shop/web"}.token())
	f.Add("eyJzIjotMX0")
	f.Fuzz(func(t *testing.T, token string) {
		at, err := parsePosition(token)
		if err == nil && at.Source < 0 {
			t.Errorf("%q begins at source %d", token, at.Source)
		}
		if err == nil && token != "" {
			if again, err := parsePosition(at.token()); err != nil || again != at {
				t.Errorf("%q is %v, and again %v: %v", token, at, again, err)
			}
		}
	})
}
