package projection_test

import (
	"maps"
	"reflect"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"

	delivery "github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/placement"
	"github.com/manifold-dev/manifold/pkg/projection"
)

func aboveMeta() metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "uid", Generation: 9, ResourceVersion: "42", Finalizers: []string{"manifold.dev/projection"},
		Labels: map[string]string{"new": "label", delivery.LabelApplication: "web"},
		Annotations: map[string]string{"new": "note", v1alpha1.AnnotationPlacement: "{}", v1alpha1.AnnotationClusters: "east",
			delivery.AnnotationRevision: "forged@0"}}
}

func contentMeta() metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: "web", UID: "another", Finalizers: []string{"other"}, Labels: map[string]string{"old": "label", delivery.LabelApplication: "other"},
		Annotations: map[string]string{"old": "note", v1alpha1.AnnotationClusters: "west"}}
}

func template(image string, labels ...string) corev1.PodTemplateSpec {
	out := corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: image}}}}
	for i := 0; i+1 < len(labels); i += 2 {
		if out.Labels == nil {
			out.Labels = map[string]string{}
		}
		out.Labels[labels[i]] = labels[i+1]
	}
	return out
}

// Each kind keeps who it is and what scales it, and has all else of its revision.
func TestAnObjectAtARevision(t *testing.T) {
	for name, test := range map[string]struct{ above, content, want projection.Object }{
		"a Deployment is scaled as it stands": {
			above: &appsv1.Deployment{Spec: appsv1.DeploymentSpec{Replicas: ptr.To[int32](7), Paused: true, Template: template("web:9")},
				Status: appsv1.DeploymentStatus{Replicas: 7}},
			content: &appsv1.Deployment{Spec: appsv1.DeploymentSpec{Replicas: ptr.To[int32](1), MinReadySeconds: 3, Template: template("web:7")},
				Status: appsv1.DeploymentStatus{Replicas: 1}},
			want: &appsv1.Deployment{Spec: appsv1.DeploymentSpec{Replicas: ptr.To[int32](7), MinReadySeconds: 3, Template: template("web:7")},
				Status: appsv1.DeploymentStatus{Replicas: 7}},
		},
		"a StatefulSet has its ordinals as well": {
			above: &appsv1.StatefulSet{Spec: appsv1.StatefulSetSpec{Replicas: ptr.To[int32](3), Ordinals: &appsv1.StatefulSetOrdinals{Start: 5},
				Template: template("db:9")}},
			content: &appsv1.StatefulSet{Spec: appsv1.StatefulSetSpec{Replicas: ptr.To[int32](1), Template: template("db:7")}},
			want: &appsv1.StatefulSet{Spec: appsv1.StatefulSetSpec{Replicas: ptr.To[int32](3), Ordinals: &appsv1.StatefulSetOrdinals{Start: 5},
				Template: template("db:7")}},
		},
		"a ConfigMap is that of its revision": {
			above:   &corev1.ConfigMap{Data: map[string]string{"colour": "green", "new": "key"}},
			content: &corev1.ConfigMap{Data: map[string]string{"colour": "blue"}},
			want:    &corev1.ConfigMap{Data: map[string]string{"colour": "blue"}},
		},
		"a Secret may be written as text": {
			above: &corev1.Secret{Type: corev1.SecretTypeOpaque, Data: map[string][]byte{"password": []byte("new")}},
			content: &corev1.Secret{Data: map[string][]byte{"user": []byte("me"), "password": []byte("older")},
				StringData: map[string]string{"password": "old"}},
			want: &corev1.Secret{Type: corev1.SecretTypeOpaque, Data: map[string][]byte{"user": []byte("me"), "password": []byte("old")}},
		},
		"a Service keeps what the API server has allocated": {
			above: &corev1.Service{Spec: corev1.ServiceSpec{ClusterIP: "10.0.0.1", ClusterIPs: []string{"10.0.0.1"}, HealthCheckNodePort: 31000,
				IPFamilies: []corev1.IPFamily{corev1.IPv4Protocol}, Selector: map[string]string{"app": "new"},
				Ports: []corev1.ServicePort{{Port: 80, Protocol: "TCP", NodePort: 30080}, {Port: 443, Protocol: "TCP", NodePort: 30443}}}},
			content: &corev1.Service{Spec: corev1.ServiceSpec{Selector: map[string]string{"app": "old"},
				Ports: []corev1.ServicePort{{Port: 80, Protocol: "TCP"}, {Port: 80, Protocol: "UDP"}, {Port: 443, Protocol: "TCP", NodePort: 32000}}}},
			want: &corev1.Service{Spec: corev1.ServiceSpec{ClusterIP: "10.0.0.1", ClusterIPs: []string{"10.0.0.1"}, HealthCheckNodePort: 31000,
				IPFamilies: []corev1.IPFamily{corev1.IPv4Protocol}, Selector: map[string]string{"app": "old"},
				Ports: []corev1.ServicePort{{Port: 80, Protocol: "TCP", NodePort: 30080}, {Port: 80, Protocol: "UDP"}, {Port: 443, Protocol: "TCP", NodePort: 32000}}}},
		},
		"a Service that was headless is not now": {
			above:   &corev1.Service{Spec: corev1.ServiceSpec{ClusterIP: corev1.ClusterIPNone}},
			content: &corev1.Service{Spec: corev1.ServiceSpec{Selector: map[string]string{"app": "old"}}},
			want:    &corev1.Service{Spec: corev1.ServiceSpec{Selector: map[string]string{"app": "old"}}},
		},
		"a Job keeps what is divided, and what was generated": {
			above: &batchv1.Job{Spec: batchv1.JobSpec{Parallelism: ptr.To[int32](4), Completions: ptr.To[int32](8), Suspend: ptr.To(true),
				Selector: &metav1.LabelSelector{MatchLabels: map[string]string{batchv1.ControllerUidLabel: "uid"}},
				Template: template("job:9", batchv1.ControllerUidLabel, "uid", "app", "new")}, Status: batchv1.JobStatus{Active: 2}},
			content: &batchv1.Job{Spec: batchv1.JobSpec{Parallelism: ptr.To[int32](1), BackoffLimit: ptr.To[int32](3), Template: template("job:7", "app", "old")}},
			want: &batchv1.Job{Spec: batchv1.JobSpec{Parallelism: ptr.To[int32](4), Completions: ptr.To[int32](8), Suspend: ptr.To(true),
				BackoffLimit: ptr.To[int32](3), Selector: &metav1.LabelSelector{MatchLabels: map[string]string{batchv1.ControllerUidLabel: "uid"}},
				Template: template("job:7", batchv1.ControllerUidLabel, "uid", "app", "old")}, Status: batchv1.JobStatus{Active: 2}},
		},
		"a claim keeps the class and the volume that it got": {
			above:   &corev1.PersistentVolumeClaim{Spec: corev1.PersistentVolumeClaimSpec{StorageClassName: ptr.To("fast"), VolumeName: "pv-1"}},
			content: &corev1.PersistentVolumeClaim{Spec: corev1.PersistentVolumeClaimSpec{AccessModes: []corev1.PersistentVolumeAccessMode{"ReadWriteOnce"}}},
			want: &corev1.PersistentVolumeClaim{Spec: corev1.PersistentVolumeClaimSpec{StorageClassName: ptr.To("fast"), VolumeName: "pv-1",
				AccessModes: []corev1.PersistentVolumeAccessMode{"ReadWriteOnce"}}},
		},
		"a pod is what was admitted": {
			above:   &corev1.Pod{Spec: template("web:9").Spec},
			content: &corev1.Pod{Spec: template("web:7").Spec},
			want:    &corev1.Pod{Spec: template("web:9").Spec},
		},
	} {
		t.Run(name, func(t *testing.T) {
			kind, _ := projection.KindOf(test.above)
			put := func(obj projection.Object, meta metav1.ObjectMeta) {
				reflect.ValueOf(obj).Elem().FieldByName("ObjectMeta").Set(reflect.ValueOf(meta))
			}
			put(test.above, aboveMeta())
			put(test.content, contentMeta())
			meta := aboveMeta()
			meta.Labels = map[string]string{"old": "label", delivery.LabelApplication: "web"}
			delete(meta.Annotations, "new")
			meta.Annotations["old"] = "note"
			put(test.want, meta)
			above, content := test.above.DeepCopyObject(), test.content.DeepCopyObject()
			got, err := kind.As(test.above, test.content)
			if err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(got, test.want) {
				t.Errorf("got  %+v\nwant %+v", got, test.want)
			}
			if !reflect.DeepEqual(test.above, above) || !reflect.DeepEqual(test.content, content) {
				t.Error("an argument has been changed")
			}
			if again, err := kind.As(got, test.content); err != nil || !reflect.DeepEqual(again, got) {
				t.Errorf("at the same revision again it is another one (%v)", err)
			}
		})
	}
}

func TestOnlyAProjectionIsMarkedWithItsRevision(t *testing.T) {
	kind, _ := projection.KindOf(&corev1.ConfigMap{})
	above := &corev1.ConfigMap{ObjectMeta: aboveMeta()}
	to := projection.Target{LogicalCluster: "logical", Cluster: "east"}
	hashes := map[string]bool{}
	for _, mark := range []string{"", projection.RevisionMark("web-v7", "abc"), projection.RevisionMark("web-v8", "abc")} {
		out, err := kind.Project(above, projection.Part{Revision: mark, Share: placement.Share{}}, to)
		if err != nil {
			t.Fatal(err)
		}
		if got := out.GetAnnotations()[delivery.AnnotationRevision]; got != mark {
			t.Errorf("marked as %q, want %q, whatever the object above says of itself", got, mark)
		}
		hashes[projection.HashOf(out)] = true
	}
	if len(hashes) != 3 {
		t.Errorf("%d projections, want one for each mark", len(hashes))
	}
}

// Each wave applies the object above once more. A cluster that holds what it has is not written to for that.
func TestWhatWasAppliedLastChangesNoProjection(t *testing.T) {
	kind, _ := projection.KindOf(&corev1.ConfigMap{})
	to := projection.Target{LogicalCluster: "logical", Cluster: "east"}
	applied := func(hash string) *corev1.ConfigMap {
		above := &corev1.ConfigMap{ObjectMeta: aboveMeta()}
		above.Annotations[delivery.AnnotationApplied] = hash
		return above
	}
	one, two := applied("1"), applied("2")
	if !projection.SameAnnotations(one, two) {
		t.Error("the annotations count as changed")
	}
	first, err := kind.Project(one, projection.Part{}, to)
	if err != nil {
		t.Fatal(err)
	}
	second, err := kind.Project(two, projection.Part{}, to)
	if err != nil {
		t.Fatal(err)
	}
	if projection.HashOf(first) != projection.HashOf(second) {
		t.Errorf("two projections, %v and %v", first.GetAnnotations(), second.GetAnnotations())
	}
}

func TestContentIsOfTheVersionThatIsProjected(t *testing.T) {
	kind, _ := projection.KindOf(&appsv1.Deployment{})
	manifest := func(version string, replicas any) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{"apiVersion": version, "kind": "Deployment",
			"metadata": map[string]any{"name": "web"}, "spec": map[string]any{"replicas": replicas}}}
	}
	if got, err := kind.Content(manifest("apps/v1", int64(3))); err != nil || *got.(*appsv1.Deployment).Spec.Replicas != 3 {
		t.Errorf("%v (%v), want the Deployment", got, err)
	}
	for name, bad := range map[string]*unstructured.Unstructured{
		"another version":    manifest("apps/v1beta1", int64(3)),
		"another group":      manifest("extensions/v1beta1", int64(3)),
		"no number":          manifest("apps/v1", "many"),
		"nothing that it is": {Object: map[string]any{}},
	} {
		if got, err := kind.Content(bad); err == nil {
			t.Errorf("%s: %v, want an error", name, got)
		}
	}
	if _, err := kind.As(&appsv1.Deployment{}, &corev1.ConfigMap{}); err == nil {
		t.Error("a Deployment has the content of a ConfigMap")
	}
}

// What a custom object is at a revision is all of its content, and nothing of what it is now.
func TestACustomObjectAtARevision(t *testing.T) {
	kind := projection.Custom(schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Gizmo"}, "gizmos", nil)
	gizmo := func(metadata, more map[string]any) *unstructured.Unstructured {
		out := map[string]any{"apiVersion": "example.com/v1", "kind": "Gizmo", "metadata": metadata}
		maps.Copy(out, more)
		return &unstructured.Unstructured{Object: out}
	}
	above := gizmo(map[string]any{"name": "one", "uid": "u1", "labels": map[string]any{"new": "yes"}, "annotations": map[string]any{"manifold.dev/placement": "{}", "note": "new"}},
		map[string]any{"spec": map[string]any{"size": int64(2)}, "data": "new", "status": map[string]any{"phase": "Up"}})
	manifest := gizmo(map[string]any{"name": "one", "labels": map[string]any{"old": "yes"}}, map[string]any{"spec": map[string]any{"size": int64(1)}})
	before := manifest.DeepCopy()
	content, err := kind.Content(manifest)
	if err != nil {
		t.Fatal(err)
	}
	got, err := kind.As(above, content)
	if err != nil {
		t.Fatal(err)
	}
	want := gizmo(map[string]any{"name": "one", "uid": "u1", "labels": map[string]any{"old": "yes"}, "annotations": map[string]any{"manifold.dev/placement": "{}"}},
		map[string]any{"spec": map[string]any{"size": int64(1)}, "status": map[string]any{"phase": "Up"}})
	if !reflect.DeepEqual(got, want) || !reflect.DeepEqual(manifest, before) {
		t.Errorf("it is %v, want %v; the manifest is %v", got, want, manifest)
	}
	if _, err := projection.Custom(schema.GroupVersionKind{Group: "example.com", Version: "v2", Kind: "Gizmo"}, "gizmos", nil).Content(manifest); err == nil {
		t.Error("a manifest of another version is taken")
	}
}
