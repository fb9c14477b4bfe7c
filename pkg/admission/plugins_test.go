package admission

import (
	"context"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/warning"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
)

type recorder struct{ texts []string }

func (r *recorder) AddWarning(_, text string) { r.texts = append(r.texts, text) }

func TestPlugins(t *testing.T) {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "east"}}
	namespace := func(pin string) *corev1.Namespace {
		return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop", Annotations: map[string]string{v1alpha1.AnnotationClusters: pin}}}
	}
	draining := func(seconds string) *corev1.Service {
		return &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", Annotations: map[string]string{v1alpha1.AnnotationDrainSeconds: seconds}}}
	}

	traffic := func(value string) *corev1.Namespace {
		return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop", Annotations: map[string]string{v1alpha1.AnnotationTraffic: value}}}
	}

	exportedBy := func(value string) *corev1.Namespace {
		return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop", Annotations: map[string]string{v1alpha1.AnnotationExportedBy: value}}}
	}

	for name, test := range map[string]struct {
		plugin    string
		user      string
		operation admission.Operation
		resource  schema.GroupVersionResource
		kind      string
		object    runtime.Object
		old       runtime.Object
		wantError string
		wantWarn  string
	}{
		"cordoning a node is refused and the command named": {
			plugin: NodesPlugin, user: "admin", operation: admission.Update, resource: corev1.SchemeGroupVersion.WithResource("nodes"), kind: "Node",
			object: node, old: node, wantError: `use "manifold cluster cordon east"`,
		},
		"deleting a node is refused and the command named": {
			plugin: NodesPlugin, user: "admin", operation: admission.Delete, resource: corev1.SchemeGroupVersion.WithResource("nodes"), kind: "Node",
			old: node, wantError: `"manifold cluster remove east"`,
		},
		"making a node is refused and the command named": {
			plugin: NodesPlugin, user: "admin", operation: admission.Create, resource: corev1.SchemeGroupVersion.WithResource("nodes"), kind: "Node",
			object: node, wantError: `"manifold cluster join NAME"`,
		},
		"Manifold itself writes nodes": {
			plugin: NodesPlugin, user: v1alpha1.ClustersUser, operation: admission.Update,
			resource: corev1.SchemeGroupVersion.WithResource("nodes"), kind: "Node", object: node, old: node,
		},
		"a namespace may be pinned": {
			plugin: PinPlugin, user: "admin", operation: admission.Create, resource: corev1.SchemeGroupVersion.WithResource("namespaces"), kind: "Namespace",
			object: namespace("east,west"),
		},
		"a malformed pin of a namespace is refused with its path": {
			plugin: PinPlugin, user: "admin", operation: admission.Update, resource: corev1.SchemeGroupVersion.WithResource("namespaces"), kind: "Namespace",
			object: namespace("east,,west"), old: namespace("east"), wantError: "metadata.annotations[manifold.dev/clusters]",
		},
		"a malformed pin of a custom resource is refused with its path": {
			plugin: PinPlugin, user: "admin", operation: admission.Create,
			resource: schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "gizmos"}, kind: "Gizmo",
			object: namespace("east west"), wantError: "metadata.annotations[manifold.dev/clusters]",
		},
		"an export may be the clusters' to carry out": {
			plugin: PinPlugin, user: "admin", operation: admission.Create,
			resource: schema.GroupVersionResource{Group: "multicluster.x-k8s.io", Version: "v1beta1", Resource: "serviceexports"}, kind: "ServiceExport",
			object: exportedBy("clusters"),
		},
		"an export for somebody else to carry out is refused with its path": {
			plugin: PinPlugin, user: "admin", operation: admission.Create,
			resource: schema.GroupVersionResource{Group: "multicluster.x-k8s.io", Version: "v1beta1", Resource: "serviceexports"}, kind: "ServiceExport",
			object: exportedBy("cilium"), wantError: `metadata.annotations[manifold.dev/exported-by]: Unsupported value: "cilium": supported values: "clusters"`,
		},
		"a Service may say where its traffic goes": {
			plugin: PinPlugin, user: "admin", operation: admission.Create, resource: corev1.SchemeGroupVersion.WithResource("services"), kind: "Service",
			object: traffic("Global"),
		},
		"traffic of a Service that means nothing is refused with its path": {
			plugin: PinPlugin, user: "admin", operation: admission.Create, resource: corev1.SchemeGroupVersion.WithResource("services"), kind: "Service",
			object: traffic("Nearby"), wantError: `metadata.annotations[manifold.dev/traffic]: Unsupported value: "Nearby"`,
		},
		"traffic of a namespace that means nothing is refused with its path": {
			plugin: PinPlugin, user: "admin", operation: admission.Update, resource: corev1.SchemeGroupVersion.WithResource("namespaces"), kind: "Namespace",
			object: traffic("local"), old: traffic("Local"), wantError: "metadata.annotations[manifold.dev/traffic]",
		},
		"a time to drain is a whole number of seconds": {
			plugin: PinPlugin, user: "admin", operation: admission.Create, resource: corev1.SchemeGroupVersion.WithResource("services"), kind: "Service",
			object: draining("90"),
		},
		"any other is refused with its path": {
			plugin: PinPlugin, user: "admin", operation: admission.Update, resource: corev1.SchemeGroupVersion.WithResource("services"), kind: "Service",
			object: draining("90s"), old: draining("90"), wantError: "metadata.annotations[manifold.dev/drain-seconds]",
		},
		"also on a policy": {
			plugin: PinPlugin, user: "admin", operation: admission.Create, resource: v1alpha1.SchemeGroupVersion.WithResource("placementpolicies"), kind: "PlacementPolicy",
			object: &v1alpha1.PlacementPolicy{ObjectMeta: draining("-1").ObjectMeta}, wantError: "metadata.annotations[manifold.dev/drain-seconds]",
		},
		"a Service with an old bad one stays editable": {
			plugin: PinPlugin, user: "admin", operation: admission.Update, resource: corev1.SchemeGroupVersion.WithResource("services"), kind: "Service",
			object: draining("x"), old: draining("x"),
		},
		"a namespace with an old bad pin stays editable": {
			plugin: PinPlugin, user: "admin", operation: admission.Update, resource: corev1.SchemeGroupVersion.WithResource("namespaces"), kind: "Namespace",
			object: namespace(""), old: namespace(""),
		},
	} {
		t.Run(name, func(t *testing.T) {
			plugins := admission.NewPlugins()
			Register(plugins, func() []*v1alpha1.Cluster { return nil })
			plugin, err := plugins.InitPlugin(test.plugin, nil, admission.PluginInitializers{})
			if err != nil {
				t.Fatal(err)
			}
			objectName := "east"
			if test.kind == "Namespace" {
				objectName = "shop"
			}
			attributes := admission.NewAttributesRecord(test.object, test.old, test.resource.GroupVersion().WithKind(test.kind), "", objectName,
				test.resource, "", test.operation, nil, false, &user.DefaultInfo{Name: test.user})
			warnings := &recorder{}
			err = plugin.(admission.ValidationInterface).Validate(warning.WithWarningRecorder(context.Background(), warnings), attributes, nil)
			if got := errorText(err); !strings.Contains(got, test.wantError) || (got == "") != (test.wantError == "") {
				t.Errorf("error %q, want %q in it", got, test.wantError)
			}
			if got := strings.Join(warnings.texts, "\n"); !strings.Contains(got, test.wantWarn) || (got == "") != (test.wantWarn == "") {
				t.Errorf("warning %q, want %q in it", got, test.wantWarn)
			}
		})
	}
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
