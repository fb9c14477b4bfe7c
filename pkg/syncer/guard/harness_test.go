package guard

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/utils/ptr"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/mirror"
	"github.com/manifold-dev/manifold/pkg/projection"
	"github.com/manifold-dev/manifold/pkg/syncer/logical"
)

const toEast = `{"east":{"replicas":2}}`

// guardOf knows what is above.
func guardOf(t *testing.T, above ...projection.Object) Guard {
	t.Helper()
	g := unread(t, above...)
	g.Synced = func() bool { return true }
	return g
}

// unread has caches that have not been filled yet, for all that it knows.
func unread(t *testing.T, above ...projection.Object) Guard {
	t.Helper()
	c, err := logical.New(informers.NewSharedInformerFactory(fake.NewClientset(), 0), logical.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, obj := range above {
		kind, ok := projection.KindOf(obj)
		if !ok {
			t.Fatalf("no kind for %T", obj)
		}
		if err := c.Stores[kind.Resource].Add(obj); err != nil {
			t.Fatal(err)
		}
	}
	return Guard{Cluster: c, Synced: func() bool { return false }}
}

// refusal is the text of an error, "" for none.
func refusalOf(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func expectRefusal(t *testing.T, err error, want string) {
	t.Helper()
	if got := refusalOf(err); !strings.Contains(got, want) || (got == "") != (want == "") {
		t.Errorf("refused with %q, want %q in it", got, want)
	}
}

func objectMeta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: "shop", Name: name, UID: types.UID("uid-of-" + name), Generation: 1, ResourceVersion: "1"}
}

func namespace(name string) *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("uid-of-" + name)}}
}

func secret(name string) *corev1.Secret { return &corev1.Secret{ObjectMeta: objectMeta(name)} }

// deployment is one of the logical cluster. Decision is the annotation.
func deployment(name, decision string) *appsv1.Deployment {
	d := &appsv1.Deployment{ObjectMeta: objectMeta(name)}
	d.Annotations = map[string]string{v1alpha1.AnnotationPlacement: decision}
	return d
}

func controlledBy(owner metav1.Object, kind string) []metav1.OwnerReference {
	return []metav1.OwnerReference{*metav1.NewControllerRef(owner, appsv1.SchemeGroupVersion.WithKind(kind))}
}

// family is a Deployment above, the mirror of a ReplicaSet that clusters have made of it, and a pod of that.
type family struct {
	above    *appsv1.Deployment
	mirrored *appsv1.ReplicaSet
	pod      *corev1.Pod
}

func newFamily() *family {
	f := &family{above: deployment("web", toEast), mirrored: &appsv1.ReplicaSet{ObjectMeta: objectMeta("web-abc")}}
	f.mirrored.Labels = map[string]string{appsv1.DefaultDeploymentUniqueLabelKey: "abc"}
	f.mirrored.OwnerReferences = controlledBy(f.above, "Deployment")
	f.mirrored.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
	f.mirrored.Spec.Template = corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "web", appsv1.DefaultDeploymentUniqueLabelKey: "abc"}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "app"}}},
	}
	f.pod = &corev1.Pod{
		ObjectMeta: objectMeta("web-1"),
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "app"}}, ServiceAccountName: "default", DeprecatedServiceAccount: "default"},
		Status:     corev1.PodStatus{Phase: corev1.PodRunning, PodIP: "10.0.0.7"},
	}
	f.pod.Labels = map[string]string{"app": "web", appsv1.DefaultDeploymentUniqueLabelKey: "abc"}
	f.pod.OwnerReferences = controlledBy(f.mirrored, "ReplicaSet")
	return f
}

// shown is the mirror of the pod as the logical cluster stores it.
func (f *family) shown(cluster string) *corev1.Pod {
	m := f.pod.DeepCopy()
	m.Spec.NodeName = cluster
	m.Annotations = map[string]string{v1alpha1.AnnotationCluster: cluster, v1alpha1.AnnotationNode: "node-1"}
	return m
}

// estate is a StatefulSet above, and a claim that a cluster made of its template.
type estate struct {
	above *appsv1.StatefulSet
	claim *corev1.PersistentVolumeClaim
}

func newEstate(decision string) *estate {
	e := &estate{above: &appsv1.StatefulSet{ObjectMeta: objectMeta("db")}, claim: &corev1.PersistentVolumeClaim{ObjectMeta: objectMeta("data-db-0")}}
	e.above.Annotations = map[string]string{v1alpha1.AnnotationPlacement: decision}
	e.above.Spec.Replicas = ptr.To[int32](2)
	e.above.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "db"}}
	e.above.Spec.VolumeClaimTemplates = []corev1.PersistentVolumeClaim{{ObjectMeta: metav1.ObjectMeta{Name: "data"}}}
	e.claim.Labels = map[string]string{"app": "db"}
	e.claim.Finalizers = []string{mirror.InUse}
	e.claim.Spec.VolumeName = "pv-1"
	e.claim.Status.Phase = corev1.ClaimBound
	return e
}

// shown is the mirror of the claim as the logical cluster stores it.
func (e *estate) shown(cluster string) *corev1.PersistentVolumeClaim {
	m := e.claim.DeepCopy()
	m.Finalizers = append(m.Finalizers, v1alpha1.FinalizerProjection)
	m.Annotations = map[string]string{v1alpha1.AnnotationCluster: cluster}
	return m
}
