package projection

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/utils/ptr"
)

// richDeployment has every sort of field that comparing treats in its own way.
func richDeployment() *appsv1.Deployment {
	in := webDeployment()
	in.Spec.Strategy = appsv1.DeploymentStrategy{
		Type:          appsv1.RollingUpdateDeploymentStrategyType,
		RollingUpdate: &appsv1.RollingUpdateDeployment{MaxSurge: ptr.To(intstr.FromInt32(0))},
	}
	in.Spec.Template.Spec = corev1.PodSpec{
		ImagePullSecrets: []corev1.LocalObjectReference{{Name: "registry"}},
		Tolerations:      []corev1.Toleration{{Key: "gpu"}},
		Volumes:          []corev1.Volume{{Name: "files", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}},
		Containers: []corev1.Container{
			{
				Name: "web", Image: "web:1", Args: []string{"--verbose", "--port=80"},
				Env:       []corev1.EnvVar{{Name: "A", Value: "1"}, {Name: "B", Value: "2"}},
				Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse("1")}},
				Ports:     []corev1.ContainerPort{{ContainerPort: 53, Protocol: "TCP"}, {ContainerPort: 53, Protocol: "UDP"}},
			},
			{Name: "helper", Image: "helper:1"},
		},
	}
	return in
}

func TestCovers(t *testing.T) {
	pod := func(edit func(*corev1.PodSpec)) func(*appsv1.Deployment) {
		return func(d *appsv1.Deployment) { edit(&d.Spec.Template.Spec) }
	}
	web := func(edit func(*corev1.Container)) func(*appsv1.Deployment) {
		return pod(func(p *corev1.PodSpec) { edit(&p.Containers[0]) })
	}
	request := func(name corev1.ResourceName, amount string) func(*corev1.Container) {
		return func(c *corev1.Container) { c.Resources.Requests[name] = resource.MustParse(amount) }
	}
	tests := map[string]struct {
		below func(*appsv1.Deployment)
		want  bool
		// patchDiffers marks where a strategic merge patch sees it otherwise, which is why Covers is not made of one.
		patchDiffers bool
	}{
		"the same":         {below: func(*appsv1.Deployment) {}, want: true},
		"replicas changed": {below: func(d *appsv1.Deployment) { d.Spec.Replicas = ptr.To[int32](1) }},
		"replicas removed": {below: func(d *appsv1.Deployment) { d.Spec.Replicas = nil }},
		"a default filled in": {
			below: pod(func(p *corev1.PodSpec) { p.RestartPolicy = "Always" }), want: true,
		},
		"a sidecar added at the end": {
			below: pod(func(p *corev1.PodSpec) {
				p.Containers = append(p.Containers, corev1.Container{Name: "mesh"})
			}), want: true,
		},
		"a sidecar added at the front": {
			below: pod(func(p *corev1.PodSpec) {
				p.Containers = append([]corev1.Container{{Name: "mesh"}}, p.Containers...)
			}), want: true,
		},
		"containers in another order": {below: pod(func(p *corev1.PodSpec) { slices.Reverse(p.Containers) }), want: true},
		"a container removed":         {below: pod(func(p *corev1.PodSpec) { p.Containers = p.Containers[:1] })},
		"an image changed":            {below: web(func(c *corev1.Container) { c.Image = "web:2" })},
		"a variable added":            {below: web(func(c *corev1.Container) { c.Env = append(c.Env, corev1.EnvVar{Name: "C"}) }), want: true},
		"a variable changed":          {below: web(func(c *corev1.Container) { c.Env[1].Value = "3" })},
		"a variable read from elsewhere": {
			below: web(func(c *corev1.Container) { c.Env[1] = corev1.EnvVar{Name: "B", ValueFrom: &corev1.EnvVarSource{}} }),
		},
		"an argument added":            {below: web(func(c *corev1.Container) { c.Args = append(c.Args, "--debug") })},
		"arguments in another order":   {below: web(func(c *corev1.Container) { slices.Reverse(c.Args) })},
		"a quantity written otherwise": {below: web(request("cpu", "1000m")), want: true},
		"a quantity changed":           {below: web(request("cpu", "2"))},
		"a request added":              {below: web(request("memory", "1Gi")), want: true},
		"a port removed":               {below: web(func(c *corev1.Container) { c.Ports = c.Ports[:1] })},
		"ports of one number in another order": {
			below: web(func(c *corev1.Container) { slices.Reverse(c.Ports) }), want: true, patchDiffers: true,
		},
		"a Secret for pulling added": {
			below: pod(func(p *corev1.PodSpec) {
				p.ImagePullSecrets = append(p.ImagePullSecrets, corev1.LocalObjectReference{Name: "x"})
			}),
			want: true,
		},
		"a toleration added": {
			below: pod(func(p *corev1.PodSpec) { p.Tolerations = append(p.Tolerations, corev1.Toleration{Key: "x"}) }),
		},
		"a toleration with its default": {
			below: pod(func(p *corev1.PodSpec) { p.Tolerations[0].Operator = "Equal" }), want: true, patchDiffers: true,
		},
		"a volume of another type": {
			below: pod(func(p *corev1.PodSpec) {
				p.Volumes[0].VolumeSource = corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/"}}
			}),
		},
		"a limit of zero changed": {
			below: func(d *appsv1.Deployment) { d.Spec.Strategy.RollingUpdate.MaxSurge = ptr.To(intstr.FromInt32(1)) },
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			desired := richDeployment()
			live := edited(desired, test.below)
			if got := Covers(desired, live); got != test.want {
				t.Errorf("Covers = %t, want %t", got, test.want)
			}
			if patch := patchTo(t, desired, live); ((patch == "{}") != test.want) != test.patchDiffers {
				t.Errorf("the strategic merge patch would be %s; differs from Covers: %t, want %t", patch, !test.patchDiffers, test.patchDiffers)
			}
		})
	}
}

func TestPullSecretsThatAClusterAddsToServiceAccountsAreItsOwn(t *testing.T) {
	account := func(secrets ...string) *corev1.ServiceAccount {
		in := &corev1.ServiceAccount{ObjectMeta: named("shop", "web")}
		for _, name := range secrets {
			in.ImagePullSecrets = append(in.ImagePullSecrets, corev1.LocalObjectReference{Name: name})
		}
		return in
	}
	if !Covers(account("registry"), account("web-dockercfg", "registry")) {
		t.Error("an added Secret is drift")
	}
	if Covers(account("registry"), account("web-dockercfg")) {
		t.Error("a missing Secret is no drift")
	}
}

// TestCoversAgreesWithPatches changes every single value of a live Deployment in turn and compares with the slow and well-known way.
func TestCoversAgreesWithPatches(t *testing.T) {
	desired := richDeployment()
	// Where Covers is right on purpose and a patch is not: two ports of one number, and defaults inside lists that do not merge.
	desired.Spec.Template.Spec.Containers[0].Ports = nil
	desired.Spec.Template.Spec.Tolerations = nil
	covered, changed := 0, 0
	for i := 0; ; i++ {
		live := edited(desired, func(*appsv1.Deployment) {})
		skip := i
		path, ok := changeLeaf(reflect.ValueOf(&live.Spec).Elem(), "spec", &skip)
		if !ok {
			break
		}
		got, patch := Covers(desired, live), patchTo(t, desired, live)
		if got != (patch == "{}") {
			t.Errorf("with %s changed: Covers = %t, but the patch would be %s", path, got, patch)
		}
		if got {
			covered++
		} else {
			changed++
		}
	}
	if covered < 10 || changed < 10 {
		t.Errorf("%d changes were covered and %d not, want a good number of both", covered, changed)
	}
}

// changeLeaf changes the value that comes after skip others, and returns its path. It returns false when there are not that many.
func changeLeaf(v reflect.Value, path string, skip *int) (string, bool) {
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() {
			return "", false
		}
		return changeLeaf(v.Elem(), path, skip)
	case reflect.Struct:
		if v.Type() == quantityType || v.Type() == intOrStrType {
			return "", false
		}
		for i := range v.NumField() {
			if found, ok := changeLeaf(v.Field(i), path+"."+v.Type().Field(i).Name, skip); ok {
				return found, true
			}
		}
		return "", false
	case reflect.Slice:
		for i := range v.Len() {
			if found, ok := changeLeaf(v.Index(i), fmt.Sprintf("%s[%d]", path, i), skip); ok {
				return found, true
			}
		}
		return "", false
	case reflect.String, reflect.Bool, reflect.Int32, reflect.Int64:
	default:
		return "", false
	}
	if *skip--; *skip >= 0 || !v.CanSet() {
		return "", false
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(v.String() + "x")
	case reflect.Bool:
		v.SetBool(!v.Bool())
	default:
		v.SetInt(v.Int() + 1)
	}
	return path, true
}

// patchTo is what would have to be sent to bring live to desired, apart from the order of lists.
func patchTo(t *testing.T, desired, live Object) string {
	t.Helper()
	want, err := json.Marshal(desired)
	if err != nil {
		t.Fatal(err)
	}
	have, err := json.Marshal(live)
	if err != nil {
		t.Fatal(err)
	}
	schema, err := strategicpatch.NewPatchMetaFromStruct(desired)
	if err != nil {
		t.Fatal(err)
	}
	patch, err := strategicpatch.CreateThreeWayMergePatch(want, want, have, schema, true)
	if err != nil {
		t.Fatal(err)
	}
	var content map[string]any
	if err := json.Unmarshal(patch, &content); err != nil {
		t.Fatal(err)
	}
	out, err := json.Marshal(withoutOrder(content))
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// withoutOrder takes the directives of a patch away, and what then only says where it would be changed.
func withoutOrder(in map[string]any) map[string]any {
	for key, value := range in {
		if strings.HasPrefix(key, "$") {
			delete(in, key)
			continue
		}
		switch value := value.(type) {
		case map[string]any:
			if len(value) > 0 && len(withoutOrder(value)) == 0 {
				delete(in, key)
			}
		case []any:
			rest := slices.DeleteFunc(value, func(element any) bool {
				fields, ok := element.(map[string]any)
				return ok && len(fields) > 1 && len(withoutOrder(fields)) == 1
			})
			if in[key] = rest; len(rest) == 0 {
				delete(in, key)
			}
		}
	}
	return in
}
