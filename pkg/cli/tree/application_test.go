package tree

import (
	"errors"
	"maps"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/utils/ptr"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	manifoldv1alpha1 "github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/delivery/traffic"
	"github.com/manifold-dev/manifold/pkg/projection"
)

// hostile is what somebody says who wants to be obeyed or to fill the screen.
var hostile = "\x1b[2Jall\tis\nwell" + strings.Repeat(" really", 200)

// delivered makes an object one of a variant of application web.
func delivered[P projection.Object](obj P, variant string) P {
	annotations := maps.Clone(obj.GetAnnotations())
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[v1alpha1.AnnotationVariant] = variant
	obj.SetAnnotations(annotations)
	labels := maps.Clone(obj.GetLabels())
	if labels == nil {
		labels = map[string]string{}
	}
	labels[v1alpha1.LabelApplication] = "web"
	obj.SetLabels(labels)
	return obj
}

// deployed is a Deployment of an application, with the pods that clusters have ready.
func deployed(name, variant, decision, status string, replicas, ready, updated int32) *appsv1.Deployment {
	needing := func(p *corev1.PodSpec) {
		p.Containers[0].EnvFrom = []corev1.EnvFromSource{{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "settings"}}}}
	}
	return delivered(typed(&appsv1.Deployment{
		ObjectMeta: about(name, placed(decision, status)),
		Spec:       appsv1.DeploymentSpec{Replicas: &replicas, Template: template(name, needing)},
		Status:     appsv1.DeploymentStatus{ReadyReplicas: ready, UpdatedReplicas: updated},
	}), variant)
}

// gizmo is an object of a custom kind.
func gizmo(placement, status string) *unstructured.Unstructured {
	out := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "example.com/v1", "kind": "Gizmo", "metadata": map[string]any{"name": "queue", "namespace": "shop", "uid": "Gizmo/queue"},
		"status": map[string]any{"conditions": []any{map[string]any{"type": "Ready", "status": "True"}}},
	}}
	out.SetAnnotations(placed(placement, status))
	return delivered(out, v1alpha1.VariantPrimary)
}

func application(change func(*v1alpha1.Application)) *v1alpha1.Application {
	app := &v1alpha1.Application{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: "Application"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "Application/web", Generation: 2},
		Status: v1alpha1.ApplicationStatus{
			ObservedGeneration: 2, LatestRevision: "web-v7", WantedRevision: "web-v7", LiveRevision: "web-v7", Release: "web-x2f", ReleasePhase: v1alpha1.ReleaseSucceeded,
			Sync: v1alpha1.Synced, Health: v1alpha1.Healthy,
			Targets: []v1alpha1.TargetStatus{
				{Name: "hoge", Clusters: []v1alpha1.TargetClusterStatus{{
					Name: "east", Revision: "web-v7", LiveRevision: "web-v7", Replicas: 3, Ready: 3, Sync: v1alpha1.Synced, Health: v1alpha1.Healthy,
				}}},
				{Name: "west", Clusters: []v1alpha1.TargetClusterStatus{{
					Name: "west", Revision: "web-v7", LiveRevision: "web-v7", Replicas: 2, Ready: 2, Sync: v1alpha1.Synced, Health: v1alpha1.Healthy,
				}}},
			},
			Variants: []v1alpha1.Variant{{
				Name: v1alpha1.VariantPrimary, Revision: "web-v7",
				Clusters: []v1alpha1.VariantCluster{{Target: "hoge", Cluster: "east"}, {Target: "west", Cluster: "west"}},
			}},
		},
	}
	change(app)
	return app
}

// releasing is an application of which two clusters are on the way to another revision, with all that may be wrong meanwhile.
func releasing() objects {
	app := application(func(app *v1alpha1.Application) {
		app.Spec.Revision = "web-v8"
		status := &app.Status
		status.WantedRevision, status.LatestRevision, status.ReleasePhase = "web-v8", "web-v9", v1alpha1.ReleaseRunning
		status.Sync, status.Health = v1alpha1.OutOfSync, v1alpha1.Degraded
		status.Targets[1].Clusters[0] = v1alpha1.TargetClusterStatus{
			Name: "west", Revision: "web-v8", LiveRevision: "web-v7", Replicas: 2, Sync: v1alpha1.OutOfSync, Health: v1alpha1.Degraded, Message: "Deployment web: " + hostile,
		}
		status.Targets = append(status.Targets, v1alpha1.TargetStatus{Name: "mars", Sync: v1alpha1.SyncUnknown, Health: v1alpha1.HealthUnknown, Message: "no cluster matches"})
		status.Variants[0].Traffic = ptr.To[int32](90)
		status.Variants = append(status.Variants, v1alpha1.Variant{
			Name: v1alpha1.VariantCanary, Revision: "web-v8", Traffic: ptr.To[int32](10),
			Clusters: []v1alpha1.VariantCluster{{Target: "hoge", Cluster: "east", Ready: 1, Workloads: map[string]int32{"Deployment/web": 1}}},
		})
		status.Drift = []v1alpha1.FieldDrift{
			{Kind: "ConfigMap", Name: "settings", Path: "/data/colour", Wanted: `"blue"`, Found: `"red"`, Clusters: []string{"east", "west"}},
			{Kind: "ConfigMap", Name: "settings", Path: "/data/size", Wanted: `"1"`},
			{Kind: "ConfigMap", Name: "token", Path: "/data/of-another-application"},
			{Kind: "Service", Name: "queue", Clusters: []string{"west"}},
		}
		status.Conditions = []metav1.Condition{
			{Type: v1alpha1.ApplicationSourceReady, Status: metav1.ConditionTrue, Reason: "Fetched"},
			{Type: v1alpha1.ApplicationReleased, Status: metav1.ConditionFalse, Reason: "Releasing", Message: "web-x2f releases web-v8"},
			{Type: v1alpha1.ApplicationHonoured, Status: metav1.ConditionFalse, Reason: "Unhonoured", Message: "spec.input.helmChart is not honoured"},
		}
	})
	web := deployed("web", v1alpha1.VariantPrimary, `{"east":{"replicas":3,"revision":"web-v7"},"west":{"replicas":2,"revision":"web-v8"}}`,
		`{"east":{"replicas":3,"ready":3,"updated":3,"revision":"web-v7"},"west":{"replicas":2,"revision":"web-v7","problem":"Secret shop/token is there already and not ours"}}`, 5, 3, 3)
	canary := deployed("web-canary", v1alpha1.VariantCanary, `{"east":{"replicas":1}}`, `{"east":{"replicas":1,"ready":1,"updated":1}}`, 1, 1, 1)
	left := deployed("web-baseline", v1alpha1.VariantBaseline, `{}`, `{"west":{"replicas":1,"ready":1,"updated":1}}`, 1, 1, 1)
	left.DeletionTimestamp = ptr.To(metav1.NewTime(now))
	service := typed(&corev1.Service{ObjectMeta: about("web", nil), Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeClusterIP, Selector: map[string]string{"app": "web"}}})
	release := &v1alpha1.Release{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-x2f", UID: "Release/web-x2f"}, Spec: v1alpha1.ReleaseSpec{Application: "web", Revision: "web-v8"},
		Status: v1alpha1.ReleaseStatus{Phase: v1alpha1.ReleaseRunning, Stages: []v1alpha1.StageStatus{
			{ID: "canary", Name: v1alpha1.StageCanaryRollout, Phase: v1alpha1.StageSucceeded, Targets: []v1alpha1.StageTargetStatus{{Name: "hoge", Cluster: "east", Phase: v1alpha1.TargetSucceeded}}},
			{ID: "rollout", Name: v1alpha1.StagePrimaryRollout, Phase: v1alpha1.StageRunning, Message: "wave 2 of 2", Targets: []v1alpha1.StageTargetStatus{
				{Name: "hoge", Cluster: "east", Phase: v1alpha1.TargetSucceeded, Replicas: 3, Ready: 3},
				{Name: "west", Cluster: "west", Phase: v1alpha1.TargetRunning, Replicas: 2, Message: "0 of 2 pods are ready"},
				{Name: "eu", Cluster: "north", Phase: v1alpha1.TargetUnreachable, Message: "it does not answer"},
				{Name: "eu", Cluster: "south", Phase: v1alpha1.TargetFailed, Message: hostile},
				{Name: "eu", Cluster: "star", Phase: v1alpha1.TargetPending},
			}},
			{ID: "clean", Name: v1alpha1.StageCanaryClean, Phase: v1alpha1.StageNotStarted},
		}},
	}
	script := typed(&batchv1.Job{ObjectMeta: about("web-x2f-script", placed(`{"east":{"replicas":1}}`, `{"east":{"succeeded":1,"ended":"Complete"}}`)),
		Status: batchv1.JobStatus{Succeeded: 1, Conditions: []batchv1.JobCondition{{Type: batchv1.JobComplete, Status: corev1.ConditionTrue}}}})
	script.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(release, v1alpha1.SchemeGroupVersion.WithKind("Release"))}
	return objects{root: app, release: release, clusters: bothReady, others: []projection.Object{
		web, canary, left, script, mirrored("web-e0", "east", web), mirrored("web-w0", "west", web, cannotPull), mirrored("web-canary-e0", "east", canary),
		delivered(service, v1alpha1.VariantPrimary),
		delivered(typed(&corev1.ConfigMap{ObjectMeta: about("settings", nil)}), v1alpha1.VariantPrimary),
		delivered(typed(&corev1.ConfigMap{ObjectMeta: about("spare", map[string]string{manifoldv1alpha1.AnnotationPlacement: `{"east":{"revision":"web-v7"},"west":{"revision":"web-v8"}}`})}), v1alpha1.VariantPrimary),
		typed(&corev1.ConfigMap{ObjectMeta: about("unrelated", nil)}),
		delivered(typed(&autoscalingv2.HorizontalPodAutoscaler{ObjectMeta: about("web", nil), Spec: autoscalingv2.HorizontalPodAutoscalerSpec{
			ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Name: "web"}, MaxReplicas: 10,
		}}), v1alpha1.VariantPrimary),
		gizmo(`{"east":{"revision":"web-v7"},"west":{"revision":"web-v8"}}`, `{"east":{"revision":"web-v7"},"west":{"problem":"the cluster does not know the kind"}}`),
	}}
}

// halted is an application at rest, of which one cluster has fallen silent.
func halted() objects {
	app := application(func(app *v1alpha1.Application) {
		app.Spec.Suspend = true
		app.Status.Sync = v1alpha1.SyncUnknown
		west := &app.Status.Targets[1].Clusters[0]
		west.Ready, west.LiveRevision, west.Sync, west.Health, west.Message = 0, "", v1alpha1.SyncUnknown, v1alpha1.HealthUnknown, `cluster "west" does not answer`
	})
	web := deployed("web", v1alpha1.VariantPrimary, `{"east":{"replicas":3,"revision":"web-v7"},"west":{"replicas":2,"revision":"web-v7"}}`,
		`{"east":{"replicas":3,"ready":3,"updated":3,"revision":"web-v7"},"west":{"replicas":2,"ready":2,"updated":2,"revision":"web-v7","stale":true}}`, 5, 5, 5)
	ended := releasing().release
	ended.Status.Phase = v1alpha1.ReleaseSucceeded
	return objects{
		root: app, release: ended, clusters: []manifoldv1alpha1.Cluster{bothReady[0], cluster("west", metav1.ConditionUnknown)},
		others: []projection.Object{web, mirrored("web-e0", "east", web), delivered(typed(&corev1.ConfigMap{ObjectMeta: about("settings", nil)}), v1alpha1.VariantPrimary)},
	}
}

func unreleased() objects {
	return objects{root: application(func(app *v1alpha1.Application) { app.Status = v1alpha1.ApplicationStatus{} })}
}

// revised are the revisions of the application: the manifests of web-v8 are in a chunk.
func revised() []runtime.Object {
	manifest := func(text string) []v1alpha1.RevisionObject {
		return []v1alpha1.RevisionObject{{Hash: text, Manifest: &runtime.RawExtension{Raw: []byte(text)}}, {Hash: "secret", SecretKeyRef: &v1alpha1.SecretKeyReference{Name: "kept"}}}
	}
	revision := func(name string, spec v1alpha1.ApplicationRevisionSpec) *v1alpha1.ApplicationRevision {
		return &v1alpha1.ApplicationRevision{
			TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: "ApplicationRevision"},
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}, Spec: spec,
		}
	}
	return []runtime.Object{
		revision("web-v7", v1alpha1.ApplicationRevisionSpec{Objects: manifest(`{"apiVersion":"apps/v1","kind":"Deployment"}`)}),
		revision("web-v8", v1alpha1.ApplicationRevisionSpec{Chunks: []v1alpha1.RevisionChunk{{Name: "web-v8-0"}}}),
		revision("web-v8-0", v1alpha1.ApplicationRevisionSpec{Objects: append(manifest(`{"apiVersion":"example.com/v1","kind":"Gizmo"}`),
			manifest(`{"apiVersion":"gone.example.com/v1","kind":"Gone"}`)...)}),
	}
}

// servedApplication makes a gatherer that finds an application, its release, its revisions and what it consists of.
func servedApplication(t *testing.T, from objects) (gatherer, interface {
	PrependReactor(verb, resource string, reaction clienttesting.ReactionFunc)
}) {
	t.Helper()
	g, client := served(t, from)
	release := from.release.DeepCopy()
	release.TypeMeta = metav1.TypeMeta{APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: "Release"}
	for _, obj := range append(revised(), release) {
		if err := client.Tracker().Add(asRead(t, obj)); err != nil {
			t.Fatal(err)
		}
	}
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Gizmo"}, meta.RESTScopeNamespace)
	mapper.Add(traffic.HTTPRouteKind, meta.RESTScopeNamespace)
	g.mapper = mapper
	return g, client
}

func TestAnApplicationIsGatheredWithItsReleaseAndItsCustomResources(t *testing.T) {
	from := releasing()
	g, _ := servedApplication(t, from)
	got, err := g.gather(t.Context(), asRead(t, from.root))
	if err != nil {
		t.Fatal(err)
	}
	if want, got := drawn(t, from), drawn(t, got); got != want {
		t.Errorf("read from a server, the tree is\n%s\nwant\n%s", got, want)
	}
}

// A route that is made is of all variants. One that is an Ingress is shown with the Service that it leads to.
func TestARouteThatIsMadeIsShown(t *testing.T) {
	route := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "gateway.networking.k8s.io/v1", "kind": "HTTPRoute", "metadata": map[string]any{"name": "web", "namespace": "shop", "uid": "HTTPRoute/web"},
	}}
	route.SetAnnotations(placed(`{"east":{"replicas":1}}`, `{"east":{"generation":1}}`))
	ingress := typed(&networkingv1.Ingress{ObjectMeta: about("web", nil), Spec: networkingv1.IngressSpec{DefaultBackend: &networkingv1.IngressBackend{
		Service: &networkingv1.IngressServiceBackend{Name: "web"},
	}}})
	for want, made := range map[string]projection.Object{"HTTPRoute web": delivered(route, v1alpha1.AllVariants), "Ingress web": delivered(ingress, v1alpha1.AllVariants)} {
		from := releasing()
		from.root.(*v1alpha1.Application).Spec.Traffic = &v1alpha1.Traffic{Method: v1alpha1.TrafficMethod(strings.Fields(want)[0]), Host: "a", Gateways: []v1alpha1.GatewayReference{{Name: "edge"}}}
		from.others = append(from.others, made)
		g, _ := servedApplication(t, from)
		got, err := g.gather(t.Context(), asRead(t, from.root))
		if err != nil {
			t.Fatal(err)
		}
		if text := drawn(t, got); strings.Count(text, want) != 1 || strings.Contains(text, "Variant *") {
			t.Errorf("want %s once, and not as of a variant, in\n%s", want, text)
		}
	}
}

func TestWhoMayNotReadReleasesAndRevisionsSeesTheRest(t *testing.T) {
	from := releasing()
	g, client := servedApplication(t, from)
	for _, resource := range []string{"releases", "applicationrevisions"} {
		client.PrependReactor("get", resource, func(clienttesting.Action) (bool, runtime.Object, error) {
			return true, nil, apierrors.NewForbidden(v1alpha1.Resource(resource), "", errors.New("only admins may look"))
		})
	}
	got, err := g.gather(t.Context(), asRead(t, from.root))
	if err != nil {
		t.Fatal(err)
	}
	text := drawn(t, got)
	for _, want := range []string{"Variant canary", "Deployment web ", "in west"} {
		if !strings.Contains(text, want) {
			t.Errorf("want %q in\n%s", want, text)
		}
	}
	for _, hidden := range []string{"Release", "Gizmo"} {
		if strings.Contains(text, hidden) {
			t.Errorf("want no %s in\n%s", hidden, text)
		}
	}
}

func TestADeploymentTellsAtWhichRevisionClustersHoldIt(t *testing.T) {
	from := rooted(releasing(), "Deployment", "web")
	text := drawn(t, from)
	if !strings.Contains(text, "web-v7, should be web-v8") || strings.Contains(text, "Release") {
		t.Errorf("the tree of the Deployment is\n%s", text)
	}
}
