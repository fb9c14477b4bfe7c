package copies

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/delivery"
)

func patchOf(kind, name, root string, changes ...string) v1alpha1.VariantPatch {
	out := v1alpha1.VariantPatch{Target: v1alpha1.VariantPatchTarget{Kind: kind, Name: name, DocumentRoot: root}}
	for i := 0; i < len(changes); i += 2 {
		out.YAMLOps = append(out.YAMLOps, v1alpha1.VariantPatchOp{Op: v1alpha1.PatchReplace, Path: changes[i], Value: changes[i+1]})
	}
	return out
}

// What is patched has the name that it has among the manifests, and the copy its own.
func TestACopyIsPatched(t *testing.T) {
	manifests := strings.Replace(application, "data: {b: b}", `data: {b: b, app.yaml: "log: {level: info}\n", app.json: '{"log": {"level": "info"}}'}`, 1)
	in := objects(t, manifests)
	got, err := Copy(in, delivery.Canary, delivery.Variant{Suffix: "canary", Service: true, Patches: []v1alpha1.VariantPatch{
		patchOf("Deployment", "web", "", "$.spec.template.spec.containers[0].image", "web:2", "$.spec.template.spec.containers[0].env[1].value", `"7"`),
		patchOf("ConfigMap", "settings", `$.data.app\.yaml`, "$.log.level", "debug"),
		patchOf("ConfigMap", "settings", "$.data.'app.json'", "$.log", "{level: debug, sample: 3}"),
		patchOf("Service", "web", "", "$.spec.ports[0].port", "8080"),
	}}, "", map[string]int32{"Deployment/web": 2}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(content(objects(t, manifests)), content(in)); diff != "" {
		t.Errorf("the rendered objects have changed\n%s", diff)
	}
	found := map[string]*unstructured.Unstructured{}
	for _, object := range got {
		found[Key(object)] = object
	}
	container, _, _ := unstructured.NestedSlice(found["Deployment/web-canary"].Object, "spec", "template", "spec", "containers")
	env := container[0].(map[string]any)["env"].([]any)[1]
	if image := container[0].(map[string]any)["image"]; image != "web:2" || env.(map[string]any)["value"] != "7" {
		t.Errorf("the container has image %v and %v", image, env)
	}
	data, _, _ := unstructured.NestedStringMap(found["ConfigMap/settings-canary"].Object, "data")
	want := map[string]string{"b": "b", "app.yaml": "log:\n  level: debug\n", "app.json": `{"log":{"level":"debug","sample":3}}`}
	if diff := cmp.Diff(want, data); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	ports, _, _ := unstructured.NestedSlice(found["Service/web-canary"].Object, "spec", "ports")
	if port := ports[0].(map[string]any)["port"]; port != int64(8080) {
		t.Errorf("the Service has port %v", port)
	}
}

func TestAPatchThatCannotBeFollowedIsRefusedByItsPath(t *testing.T) {
	for says, patch := range map[string]v1alpha1.VariantPatch{
		`patches[0].target: Invalid value: "Deployment/api": there is no such object among the manifests`:      patchOf("Deployment", "api", "", "$.spec.paused", "true"),
		`patches[0].target: Invalid value: "ConfigMap/unused": no copy is made of it`:                          patchOf("ConfigMap", "unused", "", "$.data.e", "f"),
		`patches[0].target: Invalid value: "Service/web": no copy is made of it`:                               patchOf("Service", "web", "", "$.spec.type", "ClusterIP"),
		`patches[0].yamlOps[1].path: Invalid value: "$.spec.paused": there is no $.spec.paused`:                patchOf("Deployment", "web", "", "$.spec.selector", "{}", "$.spec.paused", "true"),
		`patches[0].yamlOps[0].path: Invalid value: "spec"`:                                                    patchOf("Deployment", "web", "", "spec", "true"),
		"patches[0].yamlOps[0].value: Invalid value: must be YAML":                                             patchOf("Deployment", "web", "", "$.spec", "{"),
		`patches[0].target.documentRoot: Invalid value: "$.data.c": ConfigMap/settings: there is no $.data.c`:  patchOf("ConfigMap", "settings", "$.data.c", "$.a", "b"),
		`patches[0].target.documentRoot: Invalid value: "$.data": ConfigMap/settings: the field holds no text`: patchOf("ConfigMap", "settings", "$.data", "$.a", "b"),
		`patches[0].yamlOps[0].path: Invalid value: "$.a": there is no $.a`:                                    patchOf("ConfigMap", "settings", "$.data.b", "$.a", "b"),
		`patches[0]: Invalid value: "Deployment/web": it may not become another object`:                        patchOf("Deployment", "web", "", "$.metadata", "{name: other}"),
		"spec.selector.matchLabels: Invalid value":                                                             patchOf("Deployment", "web", "", "$.spec.selector", "{matchLabels: [a]}"),
	} {
		_, err := Copy(objects(t, application), delivery.Canary, delivery.Variant{Suffix: "canary", Patches: []v1alpha1.VariantPatch{patch}}, "", nil, Options{})
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("error %v, want one that says %q", err, says)
		}
	}
}

// Patches are users', as the manifests are: whatever they do, the objects that they are for stay as they were, and copies keep names of their own.
func FuzzCopyWithPatches(f *testing.F) {
	f.Add("$.spec.template.spec.containers[0].image", "web:2", "")
	f.Add("$.metadata.labels", "[a]", "")
	f.Add("$.b", "{c: d}", "$.data.b")
	f.Fuzz(func(t *testing.T, path, value, root string) {
		in, patch := objects(t, application), patchOf("Deployment", "web", "", path, value)
		if root != "" {
			patch = patchOf("ConfigMap", "settings", root, path, value)
		}
		got, err := Copy(in, delivery.Canary, delivery.Variant{Suffix: "canary", Patches: []v1alpha1.VariantPatch{patch}}, "", nil, Options{})
		if diff := cmp.Diff(content(objects(t, application)), content(in)); diff != "" {
			t.Fatalf("an object that was given has changed: %s", diff)
		}
		for _, object := range got {
			if err == nil && !strings.HasSuffix(object.GetName(), "-canary") {
				t.Fatalf("%s is made", Key(object))
			}
		}
	})
}
