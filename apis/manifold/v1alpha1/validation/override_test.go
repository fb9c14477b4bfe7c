package validation

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
)

func TestValidateOverrides(t *testing.T) {
	for name, test := range map[string]struct {
		override v1alpha1.Override
		want     []string
	}{
		"all at once is fine": {override: v1alpha1.Override{
			Clusters: &v1alpha1.ClusterSelector{Names: []string{"east"}},
			Images: []v1alpha1.ImageOverride{
				{Containers: []string{"app"}, Registry: "registry.example.com:5000"}, {Repository: "shop/web_ui", Tag: "v1.2"},
				{Registry: "mirror.example.com/proxy/hub"}, {Registry: "localhost/proxy"},
			},
			Env:                 []v1alpha1.EnvOverride{{Variables: []corev1.EnvVar{{Name: "REGION", Value: "eu"}}}},
			Args:                []v1alpha1.ArgsOverride{{Args: []string{"--verbose"}}},
			Labels:              map[string]string{"region": "eu"},
			Annotations:         map[string]string{"example.com/note": "any text"},
			StrategicMergePatch: "spec:\n  template:\n    spec:\n      priorityClassName: high\n",
			JSONPatch:           `[{"op": "add", "path": "/spec/paused", "value": true}, {"op": "remove", "path": "/spec/minReadySeconds"}]`,
		}},
		"an image has parts of an image": {
			override: v1alpha1.Override{Images: []v1alpha1.ImageOverride{{}, {Registry: "a/b"}, {Repository: "Shop"}, {Tag: "a b"}, {Tag: "1", Containers: []string{"App"}}}},
			want: []string{
				"spec.overrides[0].images[0]: Required value", `spec.overrides[0].images[1].registry: Invalid value: "a/b"`,
				`spec.overrides[0].images[2].repository: Invalid value: "Shop"`, `spec.overrides[0].images[3].tag: Invalid value: "a b"`,
				`spec.overrides[0].images[4].containers[0]: Invalid value: "App"`,
			},
		},
		"variables have names, and one value": {
			override: v1alpha1.Override{Env: []v1alpha1.EnvOverride{
				{}, {Variables: []corev1.EnvVar{
					{Value: "x"},
					{Name: "A", Value: "x", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "spec.nodeName"}}},
					{Name: "B", ValueFrom: &corev1.EnvVarSource{}},
				}},
			}},
			want: []string{
				"spec.overrides[0].env[0].variables: Required value", "spec.overrides[0].env[1].variables[0].name: Required value",
				"spec.overrides[0].env[1].variables[1].valueFrom: Forbidden", "spec.overrides[0].env[1].variables[2].valueFrom: Invalid value",
			},
		},
		"marks of ownership are not for policies": {
			override: v1alpha1.Override{
				Labels: map[string]string{"manifold.dev/logical-cluster": "x", "a b": "c"}, Annotations: map[string]string{"manifold.dev/uid": "x"},
			},
			want: []string{
				`spec.overrides[0].labels: Invalid value: "a b"`, "spec.overrides[0].labels[manifold.dev/logical-cluster]: Forbidden",
				"spec.overrides[0].annotations[manifold.dev/uid]: Forbidden",
			},
		},
		"a merge patch can be read, and changes something": {
			override: v1alpha1.Override{StrategicMergePatch: "spec: ["}, want: []string{"spec.overrides[0].strategicMergePatch: Invalid value"},
		},
		"a merge patch that is empty is refused": {
			override: v1alpha1.Override{StrategicMergePatch: "{}"}, want: []string{"spec.overrides[0].strategicMergePatch: Invalid value"},
		},
		"a JSON patch is a list": {
			override: v1alpha1.Override{JSONPatch: `{"op": "remove", "path": "/spec"}`}, want: []string{"spec.overrides[0].jsonPatch: Invalid value"},
		},
		"a JSON patch has operations that there are": {
			override: v1alpha1.Override{JSONPatch: `[{"op": "burn", "path": "/spec"}]`}, want: []string{"spec.overrides[0].jsonPatch: Invalid value"},
		},
		"a JSON patch says what to add": {
			override: v1alpha1.Override{JSONPatch: `[{"op": "add", "path": "/spec"}]`}, want: []string{"spec.overrides[0].jsonPatch: Invalid value"},
		},
		"a JSON patch says where": {
			override: v1alpha1.Override{JSONPatch: `[{"op": "add", "value": 1}]`}, want: []string{"spec.overrides[0].jsonPatch: Invalid value"},
		},
		"something is changed": {
			override: v1alpha1.Override{Clusters: &v1alpha1.ClusterSelector{Names: []string{"east"}}},
			want:     []string{"spec.overrides[0]: Required value: it changes nothing"},
		},
		"arguments are said, and may be none": {
			override: v1alpha1.Override{Args: []v1alpha1.ArgsOverride{{Args: []string{}}, {}}},
			want:     []string{"spec.overrides[0].args[1].args: Required value"},
		},
		"a JSON patch has paths as JSON pointers are": {
			override: v1alpha1.Override{JSONPatch: `[{"op": "remove", "path": "spec/paused"}]`},
			want:     []string{"spec.overrides[0].jsonPatch: Invalid value"},
		},
		"a JSON patch moves from where something can be": {
			override: v1alpha1.Override{JSONPatch: `[{"op": "move", "from": "spec.paused", "path": "/spec/paused"}]`},
			want:     []string{"spec.overrides[0].jsonPatch: Invalid value"},
		},
		"clusters are named by names that can exist": {
			override: v1alpha1.Override{Clusters: &v1alpha1.ClusterSelector{Names: []string{"East"}}, Labels: map[string]string{"region": "eu"}},
			want:     []string{`spec.overrides[0].clusters.names[0]: Invalid value: "East"`},
		},
	} {
		t.Run(name, func(t *testing.T) {
			checkSpec(t, v1alpha1.PlacementPolicySpec{Overrides: []v1alpha1.Override{test.override}}, test.want)
		})
	}
}
