package oam

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
)

func objects(t *testing.T, texts ...string) (out []*unstructured.Unstructured) {
	t.Helper()
	for _, text := range texts {
		json, err := yaml.YAMLToJSON([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		made := &unstructured.Unstructured{}
		if err := made.UnmarshalJSON(json); err != nil {
			t.Fatal(err)
		}
		out = append(out, made)
	}
	return out
}

const (
	web      = "{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, labels: {app: web, delivery.manifold.dev/application: x}, annotations: {a: b}}, spec: {replicas: 4, template: {metadata: {labels: {app: web}}}}}"
	database = "{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: db}, spec: {template: {metadata: {labels: {app: db}}}}}"
	shop     = "{apiVersion: v1, kind: Service, metadata: {name: shop}, spec: {clusterIP: 10.0.0.1, selector: {app: web}, ports: [{port: 8080}, {port: 80}]}}"
	other    = "{apiVersion: v1, kind: Service, metadata: {name: other}, spec: {selector: {app: other}, ports: [{port: 1}]}}"
	settings = "{apiVersion: v1, kind: ConfigMap, metadata: {name: settings}}"
	scaler   = "{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, metadata: {name: web}}"
)

var first = Revision{Name: "1", Variant: "v1", Application: "example-app", Number: 1}

func TestARevisionIsWhatIsCopiedOfIt(t *testing.T) {
	given := objects(t, web, database, shop, other, settings, scaler)
	got, err := Prepare(first, given)
	if err != nil {
		t.Fatal(err)
	}
	if got.Workloads["Deployment/web"] != 4 || got.Workloads["StatefulSet/db"] != 1 || len(got.Workloads) != 2 {
		t.Errorf("workloads are %v", got.Workloads)
	}
	if got.Front == nil || got.Front.GetName() != "example-app" || PortOf(got.Front) != 80 || given[2].GetName() != "shop" {
		t.Errorf("K32: in front is %v, of %v", got.Front, given[2].GetName())
	}
	if !slices.Equal(got.LeftOut, []string{"HorizontalPodAutoscaler/web", "Service/other"}) {
		t.Errorf("left out are %v", got.LeftOut)
	}
	if options := got.Options(); !slices.Equal(options.Workloads, []string{"Deployment/web", "StatefulSet/db"}) || options.Service != "example-app" {
		t.Errorf("copied are %+v", options)
	}
	if made := got.Objects[0].GetAnnotations(); made[v1alpha1.AnnotationMadeOf] != "example-app-v1" || made["a"] != "b" || len(given[0].GetAnnotations()) != 1 {
		t.Errorf("marked with %v, and given was %v", made, given[0].GetAnnotations())
	}
	if ip, has, _ := unstructured.NestedString(Fronted(got.Front).Object, "spec", "clusterIP"); has {
		t.Errorf("in front is the address %s of another", ip)
	}
}

func TestWhatNoServiceLeadsToHasNoneInFront(t *testing.T) {
	for name, given := range map[string][]string{"none": {web}, "one for others": {web, other}, "two, of which nobody says which": {web, shop, strings.Replace(shop, "name: shop", "name: market", 1)}} {
		if got, err := Prepare(first, objects(t, given...)); err != nil || got.Front != nil {
			t.Errorf("%s: in front is %v, %v", name, got.Front, err)
		}
	}
	named, err := Prepare(first, objects(t, web, shop, strings.Replace(shop, "name: shop", "name: example-app", 1)))
	if err != nil || named.Front == nil || !slices.Equal(named.LeftOut, []string{"Service/shop"}) {
		t.Errorf("the one that is called so is in front: %v, %v, %v", named.Front, named.LeftOut, err)
	}
}

func TestARevisionThatRunsNothingIsNone(t *testing.T) {
	if _, err := Prepare(first, objects(t, settings, shop)); !errors.Is(err, errNoWorkload) {
		t.Error(err)
	}
}

func TestK43TheHistoryOfAWorkloadIsARevision(t *testing.T) {
	given := objects(t, web, shop)
	template := map[string]any{"metadata": map[string]any{"labels": map[string]any{"app": "web", "pod-template-hash": "abc"}}, "spec": map[string]any{"old": true}}
	made, err := FromWorkload(given[0], template, given[1:])
	if err != nil || len(made) != 2 {
		t.Fatal(made, err)
	}
	if labels := made[0].GetLabels(); len(labels) != 1 || labels["app"] != "web" || len(made[0].GetAnnotations()) > 0 {
		t.Errorf("it comes with %v, %v", labels, made[0].GetAnnotations())
	}
	old, _, _ := unstructured.NestedBool(made[0].Object, "spec", "template", "spec", "old")
	if labels, _, _ := unstructured.NestedStringMap(made[0].Object, "spec", "template", "metadata", "labels"); !old || len(labels) != 1 {
		t.Errorf("its template is %v", made[0].Object["spec"])
	}
	if _, has := template["metadata"].(map[string]any)["labels"].(map[string]any)["pod-template-hash"]; !has {
		t.Error("what was given was changed")
	}
	if _, err := FromWorkload(&unstructured.Unstructured{Object: map[string]any{"kind": "Deployment"}}, nil, nil); err == nil {
		t.Error("a workload without a spec is none")
	}
}
