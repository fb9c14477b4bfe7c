package projection

import (
	"errors"
	"reflect"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/google/go-cmp/cmp"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/placement"
)

// reservedKeys are all keys of Manifold's own, and one that it may come to have.
var reservedKeys = []string{
	v1alpha1.AnnotationPlacement, v1alpha1.AnnotationStatus, v1alpha1.AnnotationCluster, v1alpha1.AnnotationNode, v1alpha1.AnnotationPodUID,
	v1alpha1.AnnotationPodCluster, v1alpha1.AnnotationOrphan, v1alpha1.AnnotationView, v1alpha1.AnnotationViews, v1alpha1.AnnotationViewContents, v1alpha1.LabelLogicalCluster, v1alpha1.AnnotationNamespace,
	v1alpha1.AnnotationName, v1alpha1.AnnotationUID, v1alpha1.AnnotationProjection, v1alpha1.AnnotationTemplate, v1alpha1.LabelOrphan,
	v1alpha1.AnnotationCreated, v1alpha1.AnnotationGeneration, "manifold.dev/unheard-of",
}

// eachMeta calls what is asked for with all metadata in a value, its own first.
func eachMeta(v reflect.Value, visit func(*metav1.ObjectMeta)) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			eachMeta(v.Elem(), visit)
		}
	case reflect.Slice:
		for i := range v.Len() {
			eachMeta(v.Index(i), visit)
		}
	case reflect.Struct:
		if v.CanAddr() {
			if meta, ok := v.Addr().Interface().(*metav1.ObjectMeta); ok {
				visit(meta)
				return
			}
		}
		for i := range v.NumField() {
			if v.Field(i).CanSet() {
				eachMeta(v.Field(i), visit)
			}
		}
	}
}

// mark writes every reserved key everywhere into an object, and returns how many metadata there are.
func mark(in Object) (count int) {
	eachMeta(reflect.ValueOf(in), func(meta *metav1.ObjectMeta) {
		count++
		for _, key := range reservedKeys {
			metav1.SetMetaDataLabel(meta, key, "forged")
			metav1.SetMetaDataAnnotation(meta, key, "forged")
		}
		metav1.SetMetaDataLabel(meta, "app", "kept")
	})
	return count
}

func TestNoMarkOfAUserReachesACluster(t *testing.T) {
	eachFilled(t, func(t *testing.T, kind Kind, in Object) {
		in.GetObjectKind().SetGroupVersionKind(kind.GVK)
		if set, ok := in.(*appsv1.StatefulSet); ok {
			set.Spec.VolumeClaimTemplates = []corev1.PersistentVolumeClaim{{ObjectMeta: metav1.ObjectMeta{Name: "data"}}}
		}
		if kind.Workload {
			_, pods := podsOf(kind, in)
			pods.Volumes = append(pods.Volumes, corev1.Volume{Name: "scratch", VolumeSource: corev1.VolumeSource{
				Ephemeral: &corev1.EphemeralVolumeSource{VolumeClaimTemplate: &corev1.PersistentVolumeClaimTemplate{}},
			}})
		}
		mark(in)
		if kind.Mirror(in) {
			for _, key := range []string{v1alpha1.AnnotationCluster} { // a mark above, which storage keeps out
				annotations := in.GetAnnotations()
				delete(annotations, key)
				in.SetAnnotations(annotations)
			}
		}
		out := project(t, kind, in, placement.Share{Replicas: 3})
		own := map[string]string{
			v1alpha1.LabelLogicalCluster: east.LogicalCluster, v1alpha1.AnnotationName: in.GetName(), v1alpha1.AnnotationUID: string(in.GetUID()),
			v1alpha1.AnnotationNamespace: in.GetNamespace(), v1alpha1.AnnotationProjection: hashOfObject(out),
		}
		first := true
		eachMeta(reflect.ValueOf(out), func(meta *metav1.ObjectMeta) {
			for what, pairs := range map[string]map[string]string{"label": meta.Labels, "annotation": meta.Annotations} {
				for key, value := range pairs {
					ours := first && (own[key] == value || key == v1alpha1.AnnotationTemplate && value != "forged")
					if v1alpha1.ReservedKey(key) && !ours {
						t.Errorf("%s has %s %s=%s below", meta.Name, what, key, value)
					}
				}
			}
			if meta.Labels["app"] != "kept" {
				t.Errorf("labels %v have lost what is the user's", meta.Labels)
			}
			first = false
		})
	})
}

func hashOfObject(o Object) string { return o.GetAnnotations()[v1alpha1.AnnotationProjection] }

func TestOverridesBringNoMarks(t *testing.T) {
	kind := kindOf(t, &appsv1.Deployment{})
	in := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}}
	patch := `{"spec":{"template":{"metadata":{"labels":{"manifold.dev/orphan":"true","tier":"front"}}}}}`
	out, err := kind.Project(in, Part{Overrides: Overrides{Policy: "p", Items: []Override{{0, v1alpha1.Override{StrategicMergePatch: patch}}}}}, east)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"tier": "front"}
	if diff := cmp.Diff(want, out.(*appsv1.Deployment).Spec.Template.Labels); diff != "" {
		t.Error(diff)
	}
}

func TestPodsOfACustomResourceCarryNoMarks(t *testing.T) {
	in := gizmo(t, `{"metadata":{"namespace":"shop","name":"one","uid":"u1"},"spec":{"template":{"metadata":{
		"labels":{"app":"shop","manifold.dev/logical-cluster":"lc"},"annotations":{"manifold.dev/uid":"u"}}},
		"pods":[{"labels":{"manifold.dev/orphan":"true"}}],"manifold.dev/orphan":"no label"}}`)
	out, err := gizmos.Project(in, Part{}, east)
	if err != nil {
		t.Fatal(err)
	}
	want := gizmo(t, `{"spec":{"template":{"metadata":{"labels":{"app":"shop"},"annotations":{}}},"pods":[{"labels":{}}],"manifold.dev/orphan":"no label"}}`)
	if diff := cmp.Diff(want.Object["spec"], out.(interface{ UnstructuredContent() map[string]any }).UnstructuredContent()["spec"]); diff != "" {
		t.Error(diff)
	}
}

func TestPodsInASharedNamespaceGetNoTokenOfTheClustersOwnAccount(t *testing.T) {
	yes, no := true, false
	token := func(name string) corev1.Volume {
		return corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{
			Sources: []corev1.VolumeProjection{{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Path: "token"}}},
		}}}
	}
	mounts := func(names ...string) []corev1.Container {
		c := corev1.Container{Name: "app"}
		for _, name := range names {
			c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: name})
		}
		return []corev1.Container{c}
	}
	for name, test := range map[string]struct {
		namespace string
		in, want  corev1.PodSpec
		refused   bool
	}{
		"by default":                      {"default", corev1.PodSpec{}, corev1.PodSpec{AutomountServiceAccountToken: &no}, false},
		"where the account is named":      {"default", corev1.PodSpec{ServiceAccountName: "default"}, corev1.PodSpec{ServiceAccountName: "default", AutomountServiceAccountToken: &no}, false},
		"in the way of old":               {"default", corev1.PodSpec{DeprecatedServiceAccount: "default"}, corev1.PodSpec{DeprecatedServiceAccount: "default", AutomountServiceAccountToken: &no}, false},
		"one that asks for it is refused": {"default", corev1.PodSpec{AutomountServiceAccountToken: &yes}, corev1.PodSpec{}, true},
		"so is a volume of the user's own with one": {
			"default", corev1.PodSpec{Volumes: []corev1.Volume{token("mine")}}, corev1.PodSpec{}, true,
		},
		"what admission has added is taken out": {
			"default",
			corev1.PodSpec{Volumes: []corev1.Volume{{Name: "data"}, token("kube-api-access-x1")}, Containers: mounts("data", "kube-api-access-x1"), InitContainers: mounts("kube-api-access-x1")},
			corev1.PodSpec{
				Volumes: []corev1.Volume{{Name: "data"}}, Containers: mounts("data"), AutomountServiceAccountToken: &no,
				InitContainers: []corev1.Container{{Name: "app", VolumeMounts: []corev1.VolumeMount{}}},
			}, false,
		},
		"an account of the user's own has its token": {"default", corev1.PodSpec{ServiceAccountName: "web", AutomountServiceAccountToken: &yes}, corev1.PodSpec{ServiceAccountName: "web", AutomountServiceAccountToken: &yes}, false},
		"and any does in a namespace of ours":        {"shop", corev1.PodSpec{AutomountServiceAccountToken: &yes}, corev1.PodSpec{AutomountServiceAccountToken: &yes}, false},
	} {
		t.Run(name, func(t *testing.T) {
			for _, in := range []Object{
				&appsv1.Deployment{Spec: appsv1.DeploymentSpec{Template: corev1.PodTemplateSpec{Spec: test.in}}}, &corev1.Pod{Spec: test.in},
			} {
				in.SetNamespace(test.namespace)
				in.SetName("web")
				kind := kindOf(t, in)
				out, err := kind.Project(in, Part{}, east)
				var refused *RefusedError
				if errors.As(err, &refused) != test.refused || err != nil && !test.refused {
					t.Fatalf("%s: %v, want refused: %t", kind.GVK.Kind, err, test.refused)
				}
				if test.refused {
					continue
				}
				_, got := podsOf(kind, out)
				if diff := cmp.Diff(test.want, *got); diff != "" {
					t.Errorf("%s: %s", kind.GVK.Kind, diff)
				}
			}
		})
	}
}
