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

const (
	v7 = `{"east":{"replicas":0,"revision":"web-v7","target":"eu"}}`
	v8 = `{"east":{"replicas":0,"revision":"web-v8","target":"eu"}}`
)

var (
	configMaps  = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	deployments = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
	sets        = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "statefulsets"}
	volumes     = schema.GroupVersionResource{Version: "v1", Resource: "persistentvolumeclaims"}
	gizmos      = schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "gizmos"}
	cronJobs    = schema.GroupVersionResource{Group: "batch", Version: "v1", Resource: "cronjobs"}
)

func annotated(annotations map[string]string) *metav1.PartialObjectMetadata {
	return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: "one", Annotations: maps.Clone(annotations)}}
}

func placed(annotation string) map[string]string {
	if annotation == "" {
		return nil
	}
	return map[string]string{v1alpha1.AnnotationPlacement: annotation}
}

func attributes(resource schema.GroupVersionResource, subresource, who string, obj, old *metav1.PartialObjectMetadata) admission.Attributes {
	operation, before := admission.Create, runtime.Object(nil)
	if old != nil {
		operation, before = admission.Update, old
	}
	return admission.NewAttributesRecord(obj, before, resource.GroupVersion().WithKind("Any"), "shop", "one", resource, subresource, operation, nil, false,
		&user.DefaultInfo{Name: who})
}

func TestWhatDeliverySaysOfRevisions(t *testing.T) {
	const both = `{"east":{"replicas":2},"west":{"replicas":1,"fullUntil":"2026-01-02T03:04:05Z","failures":1}}`
	for name, test := range map[string]struct {
		resource       schema.GroupVersionResource
		subresource    string
		made           bool // it is created
		old, now, want string
		wantWarning    string
	}{
		"a new ConfigMap":                {resource: configMaps, made: true, now: v7, want: v7},
		"another revision":               {resource: configMaps, old: v7, now: v8, want: v8},
		"a cluster that goes":            {resource: configMaps, old: v7, now: `{}`, want: ""},
		"one without a revision":         {resource: configMaps, old: v7, now: `{"east":{"replicas":0}}`, want: ""},
		"one of two without a revision":  {resource: configMaps, old: v7, now: `{"east":{"replicas":1},"west":{"replicas":1,"revision":"web-v7","target":"eu"}}`, want: `{"east":{"replicas":0},"west":{"replicas":0,"revision":"web-v7","target":"eu"}}`},
		"nothing said":                   {resource: configMaps, old: v7, now: "", want: v7},
		"replicas of a ConfigMap":        {resource: configMaps, now: `{"east":{"replicas":9,"start":3,"copy":true,"revision":"web-v7","target":"eu"}}`, want: v7},
		"with a status":                  {resource: configMaps, subresource: "status", old: v7, now: v8, want: v7, wantWarning: "only Manifold writes this"},
		"a Deployment is for storage":    {resource: deployments, old: heldBoth, now: v8, want: v8},
		"and so is a StatefulSet":        {resource: sets, old: heldBoth, now: v8, want: v8},
		"a claim that is placed":         {resource: volumes, old: both, now: v8, want: `{"east":{"replicas":2,"revision":"web-v8","target":"eu"},"west":{"replicas":1,"fullUntil":"2026-01-02T03:04:05Z","failures":1}}`},
		"a claim that is not":            {resource: volumes, made: true, now: v8, want: ""},
		"a custom resource":              {resource: gizmos, old: `{"east":{"replicas":2}}`, now: v8, want: `{"east":{"replicas":2,"revision":"web-v8","target":"eu"}}`},
		"a custom resource goes nowhere": {resource: gizmos, made: true, now: v8, want: ""},
		"a decision that cannot be read": {resource: gizmos, old: `?`, now: v8, want: "?"},
		"what is in no cluster":          {resource: cronJobs, made: true, now: v8, want: "", wantWarning: "cronjobs are not sent to clusters"},
	} {
		t.Run(name, func(t *testing.T) {
			obj, old, seen := annotated(placed(test.now)), annotated(placed(test.old)), &recorder{}
			if test.made {
				old = nil
			}
			a := attributes(test.resource, test.subresource, v1alpha1.DeliveryUser, obj, old)
			ctx := warning.WithWarningRecorder(t.Context(), seen)
			if err := (&managed{}).Admit(ctx, a, nil); err != nil {
				t.Fatal(err)
			}
			if err := (&managed{}).Validate(ctx, a, nil); err != nil {
				t.Fatal(err)
			}
			if got := obj.Annotations[v1alpha1.AnnotationPlacement]; got != test.want {
				t.Errorf("annotation %s, want %s", got, test.want)
			}
			if got := strings.Join(seen.texts, "; "); !strings.Contains(got, test.wantWarning) || (got == "") != (test.wantWarning == "") {
				t.Errorf("warnings %q, want %q", got, test.wantWarning)
			}
		})
	}
}

func TestDeliverySaysNothingThatCannotBe(t *testing.T) {
	for name, test := range map[string]struct{ annotation, want string }{
		"no JSON":                {"web-v7", "parse placement"},
		"no revision":            {`{"east":{"replicas":0,"revision":"web","target":"eu"}}`, "not the name of a revision"},
		"another namespace":      {`{"east":{"replicas":0,"revision":"other/web-v7","target":"eu"}}`, "not the name of a revision"},
		"no target":              {`{"east":{"replicas":0,"revision":"web-v7"}}`, "not the name of a target"},
		"a cluster that is none": {`{"../x":{"replicas":0,"revision":"web-v7","target":"eu"}}`, `cluster "../x"`},
		"a negative share":       {`{"east":{"replicas":-1,"revision":"web-v7","target":"eu"}}`, "has -1 replicas"},
	} {
		for _, resource := range []schema.GroupVersionResource{configMaps, deployments, gizmos} {
			a := attributes(resource, "", v1alpha1.DeliveryUser, annotated(placed(test.annotation)), annotated(placed(v7)))
			err := (&managed{}).Admit(t.Context(), a, nil)
			if err == nil || !strings.Contains(err.Error(), "metadata.annotations[manifold.dev/placement]") || !strings.Contains(err.Error(), test.want) {
				t.Errorf("%s on %s: %v, want a refusal with %q", name, resource.Resource, err, test.want)
			}
		}
	}
}

// What delivery writes comes from the files of users: it carries no mark, and no other note of ours.
func TestDeliveryStoresNoMarks(t *testing.T) {
	for _, resource := range []schema.GroupVersionResource{configMaps, sets, gizmos} {
		for _, key := range reserved {
			if key == v1alpha1.AnnotationPlacement {
				continue
			}
			for _, pairs := range metadataPairs {
				obj, old := annotated(nil), annotated(placed(v7))
				pairs.set(obj, map[string]string{"note": "n", key: "forged"})
				ctx := warning.WithWarningRecorder(t.Context(), &recorder{})
				if err := (&managed{}).Admit(ctx, attributes(resource, "", v1alpha1.DeliveryUser, obj, old), nil); err != nil {
					t.Fatal(err)
				}
				if _, stored := pairs.get(obj)[key]; stored || pairs.get(obj)["note"] != "n" {
					t.Errorf("%s: %s has %v", resource.Resource, pairs.field, pairs.get(obj))
				}
			}
		}
	}
}

// No other user says which revision a cluster holds, whatever the kind, by whatever way of writing.
func TestNobodyElseSaysRevisions(t *testing.T) {
	users := []string{"jane", "system:serviceaccount:shop:deployer", "system:masters", v1alpha1.ControllerUser + "s:delivery", "delivery"}
	for _, kind := range projection.Kinds() {
		if kind.Resource == deployments {
			continue // their storage sees to it
		}
		for _, who := range users {
			for _, subresource := range []string{"", "status", "scale", "ephemeralcontainers"} {
				for _, said := range []string{v8, ""} {
					for _, before := range []string{v7, ""} {
						obj, old := annotated(placed(said)), annotated(placed(before))
						ctx := warning.WithWarningRecorder(t.Context(), &recorder{})
						if err := (&managed{}).Admit(ctx, attributes(kind.Resource, subresource, who, obj, old), nil); err != nil {
							t.Fatal(err)
						}
						if got := obj.Annotations[v1alpha1.AnnotationPlacement]; got != before {
							t.Errorf("%s makes %q of %q on %s/%s", who, got, before, kind.Resource.Resource, subresource)
						}
					}
				}
			}
		}
	}
}

func TestAWebhookSaysNoRevisions(t *testing.T) {
	for name, test := range map[string]struct {
		resource schema.GroupVersionResource
		now, old string
		refused  bool
	}{
		"one of its own":                 {configMaps, v8, v7, true},
		"one where there was none":       {configMaps, v8, "", true},
		"none any more":                  {configMaps, "", v7, true},
		"the same":                       {configMaps, v7, v7, false},
		"of a workload storage has said": {deployments, v8, v7, false},
	} {
		err := (&managed{}).Validate(t.Context(), attributes(test.resource, "", "jane", annotated(placed(test.now)), annotated(placed(test.old))), nil)
		if refused := err != nil && strings.Contains(err.Error(), "metadata.annotations[manifold.dev/placement]"); refused != test.refused {
			t.Errorf("%s: %v, want a refusal %t", name, err, test.refused)
		}
	}
}
