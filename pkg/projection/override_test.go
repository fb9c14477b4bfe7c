package projection

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/placement"
)

// overridable is a Deployment with two containers and an init container.
func overridable() *appsv1.Deployment {
	labels := map[string]string{"app": "web"}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "u1", Labels: labels},
		Spec: appsv1.DeploymentSpec{
			Replicas: ptr.To[int32](5),
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{
					InitContainers: []corev1.Container{{Name: "init", Image: "busybox"}},
					Containers: []corev1.Container{
						{Name: "app", Image: "registry.example.com/shop/web:v1", Env: []corev1.EnvVar{{Name: "A", Value: "1"}}, Args: []string{"run"}},
						{Name: "log", Image: "docker.io/library/logger:v2@sha256:abc"},
					},
				},
			},
		},
	}
}

func overriding(overrides ...v1alpha1.Override) Overrides {
	o, err := OverridesFor(&placement.Policy{
		Kind: "PlacementPolicy", Namespace: "shop", Name: "rule", Spec: v1alpha1.PlacementPolicySpec{Overrides: overrides},
	}, "east", map[string]string{"region": "eu"})
	if err != nil {
		panic(err)
	}
	return o
}

func TestOverridesChangeWhatAClusterHolds(t *testing.T) {
	named := func(names ...string) *v1alpha1.ClusterSelector { return &v1alpha1.ClusterSelector{Names: names} }
	for name, test := range map[string]struct {
		overrides Overrides
		want      func(*appsv1.Deployment)
	}{
		"an override of another cluster changes nothing": {
			overrides: overriding(v1alpha1.Override{Clusters: named("west"), Labels: map[string]string{"a": "b"}}),
			want:      func(*appsv1.Deployment) {},
		},
		"an override selects by labels of the cluster": {
			overrides: overriding(v1alpha1.Override{
				Clusters: &v1alpha1.ClusterSelector{LabelSelector: metav1.SetAsLabelSelector(map[string]string{"region": "eu"})},
				Args:     []v1alpha1.ArgsOverride{{Containers: []string{"app"}, Args: []string{"serve"}}},
			}),
			want: func(d *appsv1.Deployment) { d.Spec.Template.Spec.Containers[0].Args = []string{"serve"} },
		},
		"a registry is replaced, or put before an image without one": {
			overrides: overriding(v1alpha1.Override{Images: []v1alpha1.ImageOverride{{Registry: "mirror:5000"}}}),
			want: func(d *appsv1.Deployment) {
				d.Spec.Template.Spec.InitContainers[0].Image = "mirror:5000/busybox"
				d.Spec.Template.Spec.Containers[0].Image = "mirror:5000/shop/web:v1"
				d.Spec.Template.Spec.Containers[1].Image = "mirror:5000/library/logger:v2@sha256:abc"
			},
		},
		"a registry may have a path, behind which images keep theirs": {
			overrides: overriding(v1alpha1.Override{Images: []v1alpha1.ImageOverride{{Registry: "mirror.example.com/proxy"}}}),
			want: func(d *appsv1.Deployment) {
				d.Spec.Template.Spec.InitContainers[0].Image = "mirror.example.com/proxy/busybox"
				d.Spec.Template.Spec.Containers[0].Image = "mirror.example.com/proxy/shop/web:v1"
				d.Spec.Template.Spec.Containers[1].Image = "mirror.example.com/proxy/library/logger:v2@sha256:abc"
			},
		},
		"a tag and a repository are replaced in one container, the digest with the tag": {
			overrides: overriding(v1alpha1.Override{Images: []v1alpha1.ImageOverride{{Containers: []string{"log"}, Repository: "log", Tag: "v9"}}}),
			want:      func(d *appsv1.Deployment) { d.Spec.Template.Spec.Containers[1].Image = "docker.io/log:v9" },
		},
		"variables are set and added": {
			overrides: overriding(v1alpha1.Override{Env: []v1alpha1.EnvOverride{
				{Containers: []string{"app"}, Variables: []corev1.EnvVar{{Name: "B", Value: "2"}, {Name: "A", Value: "3"}}},
			}}),
			want: func(d *appsv1.Deployment) {
				d.Spec.Template.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "A", Value: "3"}, {Name: "B", Value: "2"}}
			},
		},
		"labels and annotations are those of the pods as well, and later overrides win": {
			overrides: overriding(
				v1alpha1.Override{Labels: map[string]string{"zone": "a"}},
				v1alpha1.Override{Labels: map[string]string{"zone": "b"}, Annotations: map[string]string{"note": "x"}}),
			want: func(d *appsv1.Deployment) {
				d.Labels["zone"], d.Annotations["note"] = "b", "x"
				d.Spec.Template.Labels = map[string]string{"app": "web", "zone": "b"}
				d.Spec.Template.Annotations = map[string]string{"note": "x"}
			},
		},
		"a strategic merge patch knows lists by name": {
			overrides: overriding(v1alpha1.Override{StrategicMergePatch: "spec: {template: {spec: {containers: [{name: log, image: none}]}}}"}),
			want:      func(d *appsv1.Deployment) { d.Spec.Template.Spec.Containers[1].Image = "none" },
		},
		"a JSON patch comes after it": {
			overrides: overriding(v1alpha1.Override{
				StrategicMergePatch: "spec: {minReadySeconds: 3}", JSONPatch: `[{op: test, path: /spec/minReadySeconds, value: 3}, {op: add, path: /spec/paused, value: true}]`,
			}),
			want: func(d *appsv1.Deployment) { d.Spec.MinReadySeconds, d.Spec.Paused = 3, true },
		},
	} {
		t.Run(name, func(t *testing.T) {
			in, target := overridable(), Target{LogicalCluster: "l", Cluster: "east"}
			part := Part{Share: placement.Share{Replicas: 2}}
			plain, err := deployment.build().Project(in, part, target)
			if err != nil {
				t.Fatal(err)
			}
			part.Overrides = test.overrides
			got, err := deployment.build().Project(in, part, target)
			if err != nil {
				t.Fatal(err)
			}
			if !equality.Semantic.DeepEqual(in, overridable()) {
				t.Error("the object of the logical cluster was changed")
			}
			if got.GetAnnotations()[v1alpha1.AnnotationTemplate] != plain.GetAnnotations()[v1alpha1.AnnotationTemplate] {
				t.Error("the ReplicaSets of several clusters could not be told to be of one template any more")
			}
			want := plain.(*appsv1.Deployment)
			test.want(want)
			want.Annotations[v1alpha1.AnnotationProjection] = got.GetAnnotations()[v1alpha1.AnnotationProjection]
			if !equality.Semantic.DeepEqual(got, want) {
				t.Errorf("projection %+v\nwant %+v", got, want)
			}
		})
	}
}

func TestOverridesThatCannotBeApplied(t *testing.T) {
	for name, test := range map[string]struct {
		override v1alpha1.Override
		want     string
	}{
		"a JSON patch of what is not there": {
			override: v1alpha1.Override{JSONPatch: `[{"op": "remove", "path": "/spec/nothing"}]`}, want: "overrides[0] of PlacementPolicy shop/rule: jsonPatch: ",
		},
		"a patch that adds what the kind does not have": {
			override: v1alpha1.Override{StrategicMergePatch: "spec: {size: 3}"}, want: `what the patches leave is no Deployment: json: unknown field "size"`,
		},
		"a patch of the number of replicas": {
			override: v1alpha1.Override{StrategicMergePatch: "spec: {replicas: 9}"}, want: "it may not change the number of replicas",
		},
		"a patch of the name": {
			override: v1alpha1.Override{StrategicMergePatch: "metadata: {name: other}"}, want: "it may not change the name",
		},
		"a patch of the marks of ownership": {
			override: v1alpha1.Override{JSONPatch: `[{"op": "remove", "path": "/metadata/labels"}]`}, want: "it may not change labels and annotations of manifold.dev",
		},
		"a patch of the kind": {
			override: v1alpha1.Override{StrategicMergePatch: "kind: StatefulSet"}, want: "overrides[0] of PlacementPolicy shop/rule: the patches may not change kind",
		},
		"a patch that has somebody hold the object": {
			override: v1alpha1.Override{StrategicMergePatch: "metadata: {finalizers: [example.com/hold]}"},
			want:     "the patches may not change metadata other than labels and annotations",
		},
		"a patch of what the object is compared with": {
			override: v1alpha1.Override{JSONPatch: `[{"op": "add", "path": "/metadata/resourceVersion", "value": "1"}]`},
			want:     "the patches may not change metadata other than labels and annotations",
		},
		"a patch of the status": {
			override: v1alpha1.Override{StrategicMergePatch: "status: {replicas: 3}"}, want: "the patches may not change status",
		},
		"a patch that leaves no object": {
			override: v1alpha1.Override{JSONPatch: `[{"op": "replace", "path": "", "value": 3}]`}, want: "overrides[0] of PlacementPolicy shop/rule: ",
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := deployment.build().Project(overridable(), Part{Overrides: overriding(test.override)}, Target{LogicalCluster: "l", Cluster: "east"})
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v, want one with %q", err, test.want)
			}
		})
	}
}

func TestOverridesOfAPod(t *testing.T) {
	in := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "one"}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: "a"}}}}
	out, err := pod.build().Project(in, Part{Overrides: overriding(v1alpha1.Override{
		Images: []v1alpha1.ImageOverride{{Tag: "v2"}}, Labels: map[string]string{"zone": "a"}, StrategicMergePatch: "spec: {hostname: x}",
	})}, Target{LogicalCluster: "l", Cluster: "east"})
	if err != nil {
		t.Fatal(err)
	}
	if got := out.(*corev1.Pod); got.Spec.Containers[0].Image != "a:v2" || got.Labels["zone"] != "a" || got.Spec.Hostname != "x" {
		t.Errorf("projected %+v", got)
	}
}
