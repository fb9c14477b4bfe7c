package physical

import (
	"reflect"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/clusters/capacity"
)

// having is a cluster with these namespaces of ours.
func having(t *testing.T, namespaces ...*corev1.Namespace) *Cluster {
	t.Helper()
	c := New()
	c.Namespaces = informers.NewSharedInformerFactory(fake.NewClientset(), 0).Core().V1().Namespaces().Informer()
	for _, namespace := range namespaces {
		if err := c.Namespaces.GetStore().Add(namespace); err != nil {
			t.Fatal(err)
		}
	}
	return c
}

func cpu(amount string) corev1.ResourceList {
	return corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(amount)}
}

func container(name, request string) corev1.Container {
	return corev1.Container{
		Name: name, Image: "image", Command: []string{"run"}, Env: []corev1.EnvVar{{Name: "A", Value: "b"}},
		Resources: corev1.ResourceRequirements{Requests: cpu(request)},
	}
}

func sidecar(name, request string) corev1.Container {
	c := container(name, request)
	c.RestartPolicy = ptr.To(corev1.ContainerRestartPolicyAlways)
	return c
}

// granted is the status of a container that was resized in place.
func granted(name, amount string) corev1.ContainerStatus {
	return corev1.ContainerStatus{Name: name, AllocatedResources: cpu(amount), Resources: &corev1.ResourceRequirements{Requests: cpu(amount)}}
}

// Capacity counts every pod of a cluster by the same rules as the scheduler there.
func TestTrimmedPodRequestsWhatThePodDoes(t *testing.T) {
	for name, test := range map[string]struct {
		spec   corev1.PodSpec
		status corev1.PodStatus
		want   string // thousandths of a core; "" if the pod does not count
	}{
		"containers": {
			spec: corev1.PodSpec{Containers: []corev1.Container{container("a", "100m"), container("b", "200m")}}, want: "300m",
		},
		"a large init container": {
			spec: corev1.PodSpec{InitContainers: []corev1.Container{container("init", "900m")}, Containers: []corev1.Container{container("a", "100m")}},
			want: "900m",
		},
		"a sidecar": {
			spec: corev1.PodSpec{InitContainers: []corev1.Container{sidecar("proxy", "50m")}, Containers: []corev1.Container{container("a", "100m")}},
			want: "150m",
		},
		"overhead": {
			spec: corev1.PodSpec{Overhead: cpu("10m"), Containers: []corev1.Container{container("a", "100m")}}, want: "110m",
		},
		"resources of the pod as a whole": {
			spec: corev1.PodSpec{Resources: &corev1.ResourceRequirements{Requests: cpu("2")}, Containers: []corev1.Container{container("a", "100m")}},
			want: "2",
		},
		"a container that is being made smaller": {
			spec:   corev1.PodSpec{Containers: []corev1.Container{container("a", "100m")}},
			status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{granted("a", "400m")}},
			want:   "400m",
		},
		"a sidecar that is being made smaller": {
			spec:   corev1.PodSpec{InitContainers: []corev1.Container{sidecar("proxy", "50m")}, Containers: []corev1.Container{container("a", "100m")}},
			status: corev1.PodStatus{InitContainerStatuses: []corev1.ContainerStatus{granted("proxy", "300m")}},
			want:   "400m",
		},
		"a container whose growth the node cannot grant": {
			spec: corev1.PodSpec{Containers: []corev1.Container{container("a", "9")}},
			status: corev1.PodStatus{
				ContainerStatuses: []corev1.ContainerStatus{granted("a", "100m")},
				Conditions:        []corev1.PodCondition{{Type: corev1.PodResizePending, Reason: corev1.PodReasonInfeasible}},
			},
			want: "100m",
		},
		"a pod as a whole that is being made smaller": {
			spec: corev1.PodSpec{Resources: &corev1.ResourceRequirements{Requests: cpu("1")}, Containers: []corev1.Container{container("a", "100m")}},
			status: corev1.PodStatus{
				AllocatedResources: cpu("3"), Resources: &corev1.ResourceRequirements{Requests: cpu("3")},
			},
			want: "3",
		},
		"a pod that has ended": {
			spec:   corev1.PodSpec{Containers: []corev1.Container{container("a", "100m")}},
			status: corev1.PodStatus{Phase: corev1.PodSucceeded},
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := having(t)
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "foreign", Name: "a"}, Spec: test.spec, Status: test.status}
			before, counted := capacity.PodRequests(pod)
			if counted != (test.want != "") {
				t.Fatalf("counted %t", counted)
			}
			if counted && !equality.Semantic.DeepEqual(before, cpu(test.want)) {
				t.Fatalf("the whole pod requests %v, want %s", before, test.want)
			}
			trimmed, err := c.TrimPod(pod)
			if err != nil {
				t.Fatal(err)
			}
			after, still := capacity.PodRequests(trimmed.(*corev1.Pod))
			if still != counted || !equality.Semantic.DeepEqual(before, after) {
				t.Errorf("trimmed it requests %v (counted %t), want %v (%t)", after, still, before, counted)
			}
		})
	}
}

func TestForeignPodIsTrimmedAndOurOwnIsNot(t *testing.T) {
	c := having(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}})
	for namespace, want := range map[string]struct{ env, labels bool }{
		"shop":    {env: true, labels: true},
		"default": {env: true, labels: true}, // exists everywhere, and may hold pods of ours
		"foreign": {},
	} {
		pod := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "a", UID: "uid", ResourceVersion: "5", Labels: map[string]string{"app": "a"}},
			Spec:       corev1.PodSpec{NodeName: "n1", Containers: []corev1.Container{container("a", "100m")}},
			Status:     corev1.PodStatus{Phase: corev1.PodRunning},
		}
		whole := pod.DeepCopy()
		out, err := c.TrimPod(pod)
		if err != nil {
			t.Fatal(err)
		}
		trimmed := out.(*corev1.Pod)
		if got := len(trimmed.Spec.Containers[0].Env) > 0; got != want.env {
			t.Errorf("%s: keeps the environment %t, want %t", namespace, got, want.env)
		}
		if got := len(trimmed.Labels) > 0; got != want.labels {
			t.Errorf("%s: keeps labels %t, want %t", namespace, got, want.labels)
		}
		if trimmed.Name != "a" || trimmed.UID != "uid" || trimmed.ResourceVersion != "5" || trimmed.Spec.NodeName != "n1" || trimmed.Status.Phase != corev1.PodRunning {
			t.Errorf("%s: lost who it is: %+v", namespace, trimmed)
		}
		if want.env && !equality.Semantic.DeepEqual(trimmed, whole) {
			t.Errorf("%s: a pod of ours is changed: %+v", namespace, trimmed)
		}
	}
}

// Whether we created or applied an object decides how it is updated next. What else managers have is of no use and most of the memory.
func TestOfManagedFieldsOnlyOursAreKeptWithoutTheFields(t *testing.T) {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{ManagedFields: []metav1.ManagedFieldsEntry{
		{Manager: "kubelet", Operation: metav1.ManagedFieldsOperationUpdate, Subresource: "status"},
		{Manager: v1alpha1.FieldManager, Operation: metav1.ManagedFieldsOperationUpdate, FieldsType: "FieldsV1", FieldsV1: &metav1.FieldsV1{}},
	}}}
	out, err := TrimManagedFields(pod)
	if err != nil {
		t.Fatal(err)
	}
	want := []metav1.ManagedFieldsEntry{{Manager: v1alpha1.FieldManager, Operation: metav1.ManagedFieldsOperationUpdate}}
	if got := out.(*corev1.Pod).ManagedFields; !reflect.DeepEqual(got, want) {
		t.Errorf("managed fields %+v, want %+v", got, want)
	}
	if out, err := TrimManagedFields("a tombstone"); err != nil || out != "a tombstone" {
		t.Errorf("something without metadata became %v, %v", out, err)
	}
}

func TestOnlyWhatTellsATemplateIsKeptOfARevision(t *testing.T) {
	got, err := TrimRevision(&appsv1.ControllerRevision{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: "db-below", OwnerReferences: []metav1.OwnerReference{{Kind: "StatefulSet", Name: "db"}},
			Annotations: map[string]string{v1alpha1.AnnotationTemplate: "one", "other": "annotation"},
		},
		Data: runtime.RawExtension{Raw: []byte("{}")},
	})
	if err != nil {
		t.Fatal(err)
	}
	kept := got.(*appsv1.ControllerRevision)
	if len(kept.Data.Raw) > 0 || len(kept.Annotations) != 1 || kept.Annotations[v1alpha1.AnnotationTemplate] != "one" || len(kept.OwnerReferences) != 1 {
		t.Errorf("kept %+v, want the owner and the template's hash", kept)
	}
	tomb := cache.DeletedFinalStateUnknown{Key: "shop/db-below"}
	if got, err := TrimRevision(tomb); err != nil || !reflect.DeepEqual(got, tomb) {
		t.Errorf("a tombstone becomes %v, %v", got, err)
	}
}
