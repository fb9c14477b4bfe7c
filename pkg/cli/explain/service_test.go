package explain

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	kubefake "k8s.io/client-go/kubernetes/fake"
	"k8s.io/utils/ptr"

	manifoldv1alpha1 "github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/generated/clientset/versioned/fake"
)

// meshedShop has a database in west, and what asks it in east, both in one network; north runs nothing of it.
func meshedShop(t *testing.T, change func(*corev1.Service)) (gatherer, *unstructured.Unstructured) {
	t.Helper()
	meta := func(name string, annotations map[string]string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: "shop", Name: name, UID: types.UID("uid-of-" + name), Annotations: annotations}
	}
	workload := func(name, cluster string) *appsv1.Deployment {
		d := &appsv1.Deployment{ObjectMeta: meta(name, map[string]string{manifoldv1alpha1.AnnotationPlacement: `{"` + cluster + `":{"replicas":1}}`})}
		d.Spec.Template.Labels = map[string]string{"app": name}
		return d
	}
	pod := &corev1.Pod{ObjectMeta: meta("db-1", map[string]string{manifoldv1alpha1.AnnotationCluster: "west"})}
	pod.Spec.NodeName, pod.Status.PodIPs = "west", []corev1.PodIP{{IP: "10.2.0.1"}}
	slice := &discoveryv1.EndpointSlice{
		ObjectMeta: meta("db-abc12", nil), AddressType: discoveryv1.AddressTypeIPv4,
		Endpoints: []discoveryv1.Endpoint{{
			Addresses: []string{"10.2.0.1"}, NodeName: ptr.To("west"), Conditions: discoveryv1.EndpointConditions{Ready: ptr.To(true)},
			TargetRef: &corev1.ObjectReference{Kind: "Pod", Namespace: "shop", Name: "db-1", UID: pod.UID},
		}},
	}
	slice.Labels = map[string]string{discoveryv1.LabelServiceName: "db", discoveryv1.LabelManagedBy: "endpointslice-controller.k8s.io"}
	service := &corev1.Service{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Service"}, ObjectMeta: meta("db", nil),
		Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeNodePort, Selector: map[string]string{"app": "db"}},
	}
	if change != nil {
		change(service)
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(service)
	if err != nil {
		t.Fatal(err)
	}
	cluster := func(name string) *manifoldv1alpha1.Cluster {
		return &manifoldv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: manifoldv1alpha1.ClusterSpec{Network: "mesh"}}
	}
	return gatherer{
		client: kubefake.NewClientset(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: metav1.NamespaceSystem, UID: "logical"}},
			service, slice, pod, workload("db", "west"), workload("api", "east")),
		manifold: fake.NewClientset(cluster("east"), cluster("west"), cluster("north")),
	}, &unstructured.Unstructured{Object: content}
}

func TestAServiceSaysWhereItIsAndWhereItLeads(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*corev1.Service)
		want   string
	}{
		"of a network": {want: `
Traffic: PreferLocal

CLUSTER   NETWORK   TYPE        OWN ENDPOINTS   ELSEWHERE   ON STANDBY
east      mesh      ClusterIP   0               1           0
north     mesh      <none>      0               0           0
west      mesh      NodePort    1               0           0
`},
		"of one cluster": {change: func(s *corev1.Service) {
			s.Annotations = map[string]string{manifoldv1alpha1.AnnotationTraffic: "Local"}
		}, want: `
Traffic: Local

CLUSTER   NETWORK   TYPE       OWN ENDPOINTS   ELSEWHERE   ON STANDBY
east      mesh      <none>     0               0           0
north     mesh      <none>     0               0           0
west      mesh      NodePort   1               0           0
`},
	} {
		t.Run(name, func(t *testing.T) {
			g, object := meshedShop(t, test.change)
			observed, err := g.gather(t.Context(), object)
			if err != nil {
				t.Fatal(err)
			}
			report, err := explain(observed)
			if err != nil {
				t.Fatal(err)
			}
			var out strings.Builder
			if err := report.print(&out, ""); err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(out.String(), test.want) {
				t.Errorf("it says:\n%s\nwant in it:\n%s", out.String(), test.want)
			}
		})
	}
}

func TestAServiceSaysWhereAClusterIsNotLed(t *testing.T) {
	g, object := meshedShop(t, nil)
	twin := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: "shop", Name: "twin", UID: "uid-of-twin", Annotations: map[string]string{manifoldv1alpha1.AnnotationCluster: "north"},
	}}
	twin.Status.PodIPs = []corev1.PodIP{{IP: "10.2.0.1"}}
	if _, err := g.client.CoreV1().Pods("shop").Create(t.Context(), twin, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	found, err := g.service(t.Context(), object)
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	found.text(&out)
	const want = `Cluster east is not led to 10.2.0.1 of cluster west: cluster "north" says that a pod of it has it too.` + "\n"
	if !strings.HasSuffix(out.String(), "\n\n"+want) {
		t.Errorf("it says:\n%s\nwant at the end:\n%s", out.String(), want)
	}
}

func TestWhatAClusterHoldsOfAServiceThatIsThereForOthers(t *testing.T) {
	g, object := meshedShop(t, nil)
	for cluster, want := range map[string]corev1.ServiceType{"east": corev1.ServiceTypeClusterIP, "west": corev1.ServiceTypeNodePort} {
		held, err := g.hold(t.Context(), object, cluster)
		if err != nil {
			t.Fatal(err)
		}
		if got := held.projected.(*corev1.Service).Spec.Type; got != want {
			t.Errorf("%s holds one of type %s, want %s", cluster, got, want)
		}
	}
}
