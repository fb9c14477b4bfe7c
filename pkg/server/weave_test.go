package server

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"

	"github.com/manifold-dev/manifold/pkg/delivery/weave"
)

// texts are the warnings that a server has sent.
type texts struct {
	mu  sync.Mutex
	all []string
}

func (w *texts) HandleWarningHeaderWithContext(_ context.Context, _ int, _, text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.all = append(w.all, text)
}

func (w *texts) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return strings.Join(w.all, "\n")
}

// weaver is somebody who writes objects of Weave's kinds.
type weaver struct {
	*testing.T
	dynamic.Interface
	warned *texts
}

func newWeaver(t *testing.T, admin *rest.Config, user string) weaver {
	t.Helper()
	config, warned := rest.CopyConfig(admin), &texts{}
	config.WarningHandlerWithContext = warned
	if user != "" {
		config.Impersonate.UserName = user
	}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return weaver{t, client, warned}
}

func parse(t *testing.T, manifest string) *unstructured.Unstructured {
	t.Helper()
	out := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(manifest), &out.Object); err != nil {
		t.Fatal(err)
	}
	return out
}

// creates makes an object in namespace ops.
func (w weaver) creates(manifest string) error {
	w.Helper()
	object := parse(w.T, manifest)
	resource := object.GroupVersionKind().GroupVersion().WithResource(strings.ToLower(object.GetKind()) + "s")
	_, err := w.Resource(resource).Namespace("ops").Create(w.Context(), object, metav1.CreateOptions{})
	return err
}

func eventually(t *testing.T, claim string, is func(context.Context) error) {
	t.Helper()
	var last error
	if wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		last = is(ctx)
		return last == nil, nil
	}) != nil {
		t.Fatalf("%s: not so: %v", claim, last)
	}
}

// define makes the definitions of Weave's kinds known, and waits until they are served.
func (w weaver) define() {
	w.Helper()
	made, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), "../../config/crds/weave")
	if err != nil {
		w.Fatal(err)
	}
	definitions := w.Resource(schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"})
	for _, resource := range made.Resources() {
		if _, err := definitions.Create(w.Context(), parse(w.T, resource.MustYaml()), metav1.CreateOptions{}); err != nil {
			w.Fatal(err)
		}
	}
	for _, resource := range []schema.GroupVersionResource{weave.GitopsClusters, weave.GroupVersions[0].WithResource(weave.Resource), weave.GroupVersions[1].WithResource(weave.Resource)} {
		eventually(w.T, resource.String()+" is served", func(ctx context.Context) error {
			_, err := w.Resource(resource).List(ctx, metav1.ListOptions{})
			return err
		})
	}
}

func bind(t *testing.T, client kubernetes.Interface, namespace, role, user string) {
	t.Helper()
	_, err := client.RbacV1().RoleBindings(namespace).Create(t.Context(), &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{GenerateName: user + "-"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: user}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
}

func pipelineOver(name, targets string) string {
	return fmt.Sprintf("apiVersion: pipelines.weave.works/v1alpha1\nkind: Pipeline\nmetadata: {name: %s}\nspec: {appRef: {apiVersion: apps/v1, kind: Deployment, name: web}, environments: [{name: dev, targets: [%s]}]}",
		name, targets)
}

// What of pipelines takes a server, and no cluster: their definitions, admission with RBAC, and the status of GitopsClusters.
func TestWeavesKindsAreServedToThoseWhoMay(t *testing.T) {
	client, config, _ := serve(t, "weave")
	for _, name := range []string{"ops", "shop"} {
		if _, err := client.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	admin, ann := newWeaver(t, config, ""), newWeaver(t, config, "ann")
	admin.define()
	bind(t, client, "ops", "edit", "ann")
	eventually(t, "whoever edits the namespace of a pipeline sees only what is in the targets if he may", func(context.Context) error {
		err := ann.creates(pipelineOver("web", "{namespace: shop}"))
		if want := `spec.environments[0].targets[0].namespace: you need the right to "list" deployments.apps in namespace "shop"`; !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), want) {
			return fmt.Errorf("got %v, want %s", err, want)
		}
		return nil
	})
	bind(t, client, "shop", "manifold-pipelines-targets", "ann")
	eventually(t, "who may names them", func(context.Context) error { return ann.creates(pipelineOver("web", "{namespace: shop}")) })
	newer := weave.GroupVersions[0].WithResource(weave.Resource)
	add := `[{"op": "add", "path": "/spec/environments/0/targets/-", "value": {"namespace": "kube-system"}}]`
	if _, err := ann.Resource(newer).Namespace("ops").Patch(t.Context(), "web", types.JSONPatchType, []byte(add), metav1.PatchOptions{}); err == nil || !strings.Contains(err.Error(), "targets[1].namespace: you need the right") {
		t.Errorf("a target that is added later: %v", err)
	}
	if err := ann.creates("apiVersion: gitops.weave.works/v1alpha1\nkind: GitopsCluster\nmetadata: {name: mars}"); err == nil || !strings.Contains(err.Error(), `metadata.name: you need the right to "get" clusters.manifold.dev "mars"`) {
		t.Errorf("a view of a Cluster that he may not see: %v", err)
	}
	if err := admin.creates(pipelineOver("bad", "{namespace: shop}, {namespace: shop}")); !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "spec.environments[0].targets[1]: Duplicate value") {
		t.Errorf("a target twice: %v", err)
	}
	if err := admin.creates(pipelineOver("bad", "{clusterRef: {kind: GitopsCluster, name: mars}}")); !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "spec.environments[0].targets[0].namespace: Required value") {
		t.Errorf("no namespace: %v", err)
	}

	document := "apiVersion: pipelines.wego.weave.works/v1alpha1\nkind: Pipeline\nmetadata: {name: podinfo, annotations: {manifold.dev/clusters: mars}}\n" +
		"spec: {environments: [{name: dev, targets: [{namespace: podinfo, clusterRef: {kind: GitopsCluster, name: mars}}]}]}"
	if err := admin.creates(document); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`clusterRef.name: no cluster has joined as "mars"`, `targets[0].namespace: the logical cluster has no namespace "podinfo"`} {
		if got := admin.warned.String(); !strings.Contains(got, want) {
			t.Errorf("warnings are %q, want %q", got, want)
		}
	}
	eventually(t, "an event tells why its pin leads nowhere", func(ctx context.Context) error {
		events, err := client.CoreV1().Events("ops").List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		var said []string
		for _, event := range events.Items {
			said = append(said, event.InvolvedObject.Name+": "+event.Message)
		}
		if !strings.Contains(strings.Join(said, "\n"), "Manifold carries out Pipeline itself") {
			return fmt.Errorf("events say %q", said)
		}
		return nil
	})
	if err := admin.creates("apiVersion: gitops.weave.works/v1alpha1\nkind: GitopsCluster\nmetadata: {name: mars}\nspec: {secretRef: {name: mars-kubeconfig}}"); err != nil {
		t.Fatal(err)
	}
	eventually(t, "a GitopsCluster tells that no cluster has joined", func(ctx context.Context) error {
		view, err := admin.Resource(weave.GitopsClusters).Namespace("ops").Get(ctx, "mars", metav1.GetOptions{})
		if err != nil {
			return err
		}
		conditions, _, _ := unstructured.NestedSlice(view.Object, "status", "conditions")
		if len(conditions) != 2 || conditions[0].(map[string]any)["reason"] != "ClusterNotJoined" {
			return fmt.Errorf("its conditions are %v", conditions)
		}
		return nil
	})
	whatIsUsedIsFollowed(t, client, admin, ann, newWeaver(t, config, "eve"))
}

// whatIsUsedIsFollowed takes the rights to what a pipeline uses from who has named it, and gives them back.
func whatIsUsedIsFollowed(t *testing.T, client kubernetes.Interface, admin, ann, eve weaver) {
	t.Helper()
	promotes := strings.Replace(pipelineOver("uses", "{namespace: shop}"), "spec: {", "spec: {promotion: {strategy: {direct: {serviceAccountName: promoter}, secretRef: {name: hook}}}, ", 1)
	if err := ann.creates(promotes); err != nil {
		t.Fatal(err)
	}
	told := func(claim, denied, webhookDenied string) {
		t.Helper()
		eventually(t, claim, func(ctx context.Context) error {
			found, err := admin.Resource(weave.GroupVersions[0].WithResource(weave.Resource)).Namespace("ops").Get(ctx, "uses", metav1.GetOptions{})
			if err != nil {
				return err
			}
			p, err := weave.Read(found)
			if err != nil {
				return err
			}
			dev := p.Status.Environments["dev"]
			if dev == nil || (dev.Denied == "") != (denied == "") || !strings.Contains(dev.Denied, denied) || (dev.WebhookDenied == "") != (webhookDenied == "") || !strings.Contains(dev.WebhookDenied, webhookDenied) {
				return fmt.Errorf("its status is %+v, and its annotations are %v", dev, p.Annotations)
			}
			return nil
		})
	}
	told("who may use it has it used", "", "")
	bindings := client.RbacV1().RoleBindings("ops")
	if err := bindings.DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{}); err != nil {
		t.Fatal(err)
	}
	told("who may not any more is denied it", `"ann", who has this pipeline use it, has lost the right to impersonate serviceaccounts "promoter" in namespace "ops"`, `has lost the right to get secrets "hook"`)
	bind(t, client, "ops", "edit", "ann")
	told("who may again has it used again", "", "")

	related := func(by weaver) error {
		_, err := by.Resource(schema.GroupVersionResource{Group: "delivery.manifold.dev", Version: "v1alpha1", Resource: "pipelines"}).Namespace("ops").Get(t.Context(), "uses", metav1.GetOptions{}, "related")
		return err
	}
	eventually(t, "who may look at a pipeline may ask what belongs to it", func(context.Context) error { return related(ann) })
	if err := related(eve); !apierrors.IsForbidden(err) {
		t.Errorf("who may not look at the pipeline asks what belongs to it: %v", err)
	}
}
