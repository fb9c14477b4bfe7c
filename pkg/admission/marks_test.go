package admission

import (
	"maps"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/warning"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/projection"
)

// reserved are all keys of Manifold's own, and some that it may come to have.
var reserved = []string{
	v1alpha1.AnnotationPlacement, v1alpha1.AnnotationAwaits, v1alpha1.AnnotationStatus, v1alpha1.AnnotationCluster, v1alpha1.AnnotationNode, v1alpha1.AnnotationPodUID,
	v1alpha1.AnnotationPodCluster, v1alpha1.AnnotationOrphan, v1alpha1.AnnotationView, v1alpha1.AnnotationViews, v1alpha1.AnnotationViewContents, v1alpha1.LabelLogicalCluster, v1alpha1.AnnotationNamespace,
	v1alpha1.AnnotationName, v1alpha1.AnnotationUID, v1alpha1.AnnotationProjection, v1alpha1.AnnotationTemplate, v1alpha1.LabelOrphan,
	v1alpha1.AnnotationCreated, v1alpha1.AnnotationGeneration, "manifold.dev/unheard-of",
}

// TestUsersStoreNoMarks tries every key on every kind that is projected, and others, as label and annotation, by every way of writing: none is
// stored, and what Manifold has noted itself survives.
func TestUsersStoreNoMarks(t *testing.T) {
	resources := []schema.GroupVersionResource{
		{Version: "v1", Resource: "events"}, {Version: "v1", Resource: "nodes"}, {Version: "v1", Resource: "podtemplates"},
		{Group: "batch", Version: "v1", Resource: "cronjobs"}, {Group: "apps", Version: "v1", Resource: "controllerrevisions"},
		{Group: "example.com", Version: "v1", Resource: "gizmos"}, v1alpha1.SchemeGroupVersion.WithResource("placementpolicies"),
	}
	for _, kind := range projection.Kinds() {
		resources = append(resources, kind.Resource)
	}
	for _, resource := range resources {
		for _, subresource := range []string{"", "status", "binding"} {
			for _, key := range reserved {
				for _, pairs := range metadataPairs {
					for _, operation := range []admission.Operation{admission.Create, admission.Update} {
						tryMark(t, resource, subresource, operation, pairs, key)
					}
				}
			}
		}
	}
}

func tryMark(t *testing.T, resource schema.GroupVersionResource, subresource string, operation admission.Operation, pairs pairs, key string) {
	t.Helper()
	if resource.Resource == "deployments" && pairs.kept(key) {
		return // their storage sees to it
	}
	const ours = "ours"
	for _, old := range []map[string]string{nil, {"note": "n", key: ours}} {
		if operation == admission.Create && old != nil {
			continue
		}
		obj, before := &metav1.PartialObjectMetadata{}, &metav1.PartialObjectMetadata{}
		pairs.set(obj, map[string]string{"note": "n", v1alpha1.AnnotationClusters: "east", key: "forged"})
		pairs.set(before, maps.Clone(old))
		attributes := admission.NewAttributesRecord(obj, runtime.Object(before), resource.GroupVersion().WithKind("Any"), "shop", "one", resource, subresource,
			operation, nil, false, &user.DefaultInfo{Name: "mallory", Groups: []string{user.SystemPrivilegedGroup}})
		ctx := warning.WithWarningRecorder(t.Context(), &recorder{})
		err := (&managed{}).Admit(ctx, attributes, nil)
		if err == nil {
			err = (&managed{}).Validate(ctx, attributes, nil)
		}
		want := map[string]string{"note": "n", v1alpha1.AnnotationClusters: "east"}
		if old[key] != "" {
			want[key] = ours
		}
		pod := resource.Resource == "pods" && !pairs.kept(key)
		switch {
		case pod && (err == nil || !strings.Contains(err.Error(), "metadata."+pairs.field+"["+key+"]: Forbidden")):
			t.Errorf("%s %s/%s with %s %s: %v, want a refusal that names it", operation, resource.Resource, subresource, pairs.field, key, err)
		case !pod && err != nil:
			t.Errorf("%s %s/%s with %s %s: %v", operation, resource.Resource, subresource, pairs.field, key, err)
		case !pod && !maps.Equal(pairs.get(obj), want):
			t.Errorf("%s %s/%s with %s %s stores %v, want %v", operation, resource.Resource, subresource, pairs.field, key, pairs.get(obj), want)
		}
	}
}

func TestAWebhookAddsNoMarks(t *testing.T) {
	obj := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{v1alpha1.LabelOrphan: "true"}}}
	resource := schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	attributes := admission.NewAttributesRecord(obj, nil, resource.GroupVersion().WithKind("ConfigMap"), "shop", "one", resource, "",
		admission.Create, nil, false, &user.DefaultInfo{Name: "jane"})
	if err := (&managed{}).Validate(t.Context(), attributes, nil); err == nil || !strings.Contains(err.Error(), "metadata.labels[manifold.dev/orphan]") {
		t.Errorf("%v, want a refusal of the label", err)
	}
}
