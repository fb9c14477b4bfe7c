package hostile

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/e2e/framework"
	"github.com/manifold-dev/manifold/e2e/framework/expect"
)

// In these tests both clusters share a network, and west says of the addresses of its pods what is not so. The admin of east has declared its ranges.

// network has the clusters share one until the test ends. What the picture has of them is taken anew.
func (a *arena) network() {
	a.Helper()
	patch := func(cluster string, spec map[string]any) {
		a.Helper()
		text, err := json.Marshal(map[string]any{"spec": spec})
		if err != nil {
			a.Fatal(err)
		}
		a.Cleanup(func() {
			a.Environment.Cleanup(a.T, "patch", "cluster", cluster, "--type=merge", "-p", `{"spec":{"network":null,"podCIDRs":null}}`)
		})
		a.Logical.Kubectl("patch", "cluster", cluster, "--type=merge", "-p", string(text))
	}
	patch("east", map[string]any{"network": "arena", "podCIDRs": []string{a.Environment.Clusters["east"].PodCIDR().String()}})
	patch("west", map[string]any{"network": "arena"})
	a.before = a.look()
}

// elsewhere selects the slices by which a cluster is led to the pods of a Service in others.
func elsewhere(service string) string {
	return discoveryv1.LabelServiceName + "=" + service + "," + discoveryv1.LabelManagedBy + "=" + v1alpha1.EndpointSlicesManager
}

func led(found []*discoveryv1.EndpointSlice) []string {
	var out []string
	for _, slice := range found {
		for _, endpoint := range slice.Endpoints {
			out = append(out, endpoint.Addresses...)
		}
	}
	slices.Sort(out)
	return out
}

// leads waits until a cluster is led to these addresses of a Service in the other one.
func (a *arena) leads(side *framework.Side, service, claim string, want ...string) {
	a.Helper()
	framework.AwaitList(side, elsewhere(service), claim, func(found []*discoveryv1.EndpointSlice) bool { return slices.Equal(led(found), want) })
}

// serve makes a Service in front of an app.
func (a *arena) serve(app string) {
	a.Helper()
	service := manifest(services, app, honestImage)
	set(service, "ClusterIP", "spec", "type")
	a.create(object{resource: services, manifest: service.Object})
}

// addressIn returns that of the one pod of an app in a cluster.
func (a *arena) addressIn(side *framework.Side, app string) string {
	a.Helper()
	return framework.AwaitList(side, "app="+app, "its pod is ready", expect.ReadyPods(1))[0].Status.PodIP
}

// lies has west say that the pods of an app have an address.
func (a *arena) lies(app, address string) (stop func()) {
	return a.west.Change(pods.GroupResource(), func(obj *unstructured.Unstructured) bool {
		if obj.GetNamespace() == a.Namespace && obj.GetLabels()["app"] == app {
			set(obj, address, "status", "podIP")
			set(obj, []any{map[string]any{"ip": address}}, "status", "podIPs")
		}
		return true
	})
}

// TestAClusterLeadsOthersToNothingThatIsNotItsOwn has west say that its pods have addresses of a pod, a Service and the API server of east, and such as
// no pod has: of the machine that asks, of the metadata service of its cloud, of groups, of nobody.
func TestAClusterLeadsOthersToNothingThatIsNotItsOwn(t *testing.T) {
	a := enter(t)
	a.network()
	a.create(deployment("near", 1, "east"))
	a.create(deployment("both", 2, "east,west"))
	for _, app := range []string{"own", "near", "both"} {
		a.serve(app)
	}
	framework.Await(a.Logical, "both", "runs", expect.Available(2))
	honest := a.addressIn(a.West, "own")
	near, shared := a.addressIn(a.East, "near"), a.addressIn(a.East, "both")
	a.leads(a.East, "own", "east is led to the pod of west", honest)
	a.leads(a.West, "near", "west is led to the pod of east", near)

	east := a.Environment.Physical["east"].Kube
	server, err := east.CoreV1().Services(metav1.NamespaceDefault).Get(t.Context(), "kubernetes", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	service := framework.Await(a.East, "near", "has an address", func(s *corev1.Service) bool { return s.Spec.ClusterIP != "" })
	for name, lie := range map[string]struct {
		address string
		// shown tells that the pod is shown with it above.
		shown bool
	}{
		"a pod of east":            {near, true},
		"a Service of east":        {service.Spec.ClusterIP, true},
		"the API server of east":   {server.Spec.ClusterIP, true},
		"the machine that asks":    {"127.0.0.1", false},
		"the metadata of a cloud":  {"169.254.169.254", false},
		"a group":                  {"224.0.0.251", false},
		"nobody":                   {"0.0.0.0", false},
		"the machine, as IPv6 has": {"::1", false},
	} {
		t.Run(name, func(t *testing.T) {
			a := a.within(t)
			stop := a.lies("own", lie.address)
			defer stop()
			alsoThere := a.lies("both", lie.address)
			defer alsoThere()
			reason := map[bool]string{true: "EndpointNotBelieved", false: "NotShown"}[lie.shown]
			a.told(a.Logical, "an event tells of the address", func(e *corev1.Event) bool {
				return e.Reason == reason && strings.Contains(e.Message, lie.address)
			})
			a.leads(a.East, "own", "east is led nowhere")
			// The pods of east are found as before, also behind a Service that has one of west.
			framework.AwaitList(a.Logical, discoveryv1.LabelServiceName+"=both", "the pod of east is among its endpoints", func(found []*discoveryv1.EndpointSlice) bool {
				return slices.Contains(led(found), shared)
			})
			a.leads(a.West, "near", "west is led to the pod of east", near)
			a.leads(a.West, "both", "west is led to the pod of east", shared)
			if !lie.shown {
				for _, pod := range a.podsOf("own") {
					if pod.Status.PodIP == lie.address {
						t.Errorf("%s is shown with %s", pod.Name, pod.Status.PodIP)
					}
				}
			}
			stop()
			alsoThere()
			a.leads(a.East, "own", "east is led to the pod of west again", honest)
		})
	}
	a.unharmed()
}

// TestSlicesThatAClusterMakesUpLeadNobody has west hold 10,000 slices under our marks, of Services of its own and of others, with endpoints everywhere.
func TestSlicesThatAClusterMakesUpLeadNobody(t *testing.T) {
	framework.Long(t)
	a := enter(t)
	a.network()
	a.create(deployment("near", 1, "east"))
	a.serve("own")
	a.serve("near")
	framework.Await(a.Logical, "near", "runs", expect.Available(1))
	honest, near := a.addressIn(a.West, "own"), a.addressIn(a.East, "near")
	a.leads(a.East, "own", "east is led to the pod of west", honest)
	a.leads(a.West, "near", "west is led to the pod of east", near)

	var forged []*unstructured.Unstructured
	for i := range 10_000 {
		namespace, of := a.Namespace, "own"
		switch i % 3 {
		case 1:
			of = "near"
		case 2:
			namespace, of = victim, estateName
		}
		slice := manifest(endpointSlices, fmt.Sprintf("%s-%d", evil, i), evilImage)
		slice.SetNamespace(namespace)
		slice.SetUID(types.UID(fmt.Sprintf("00000000-0000-4000-8000-%012d", i)))
		set(slice, []any{map[string]any{"addresses": []any{near}}, map[string]any{"addresses": []any{fmt.Sprintf("203.0.113.%d", i%256)}}}, "endpoints")
		forged = append(forged, a.claimed(label(slice, map[string]string{
			discoveryv1.LabelServiceName: of, discoveryv1.LabelManagedBy: v1alpha1.EndpointSlicesManager,
		}), slice.GetUID()))
	}
	stop := a.west.Invent(endpointSlices.GroupResource(), forged...)
	defer stop()
	a.west.End(endpointSlices.GroupResource())
	steady := a.unique("steady")
	a.create(deployment(steady, 1, "east"))
	framework.Await(a.Logical, steady, "runs in east meanwhile", expect.Available(1))
	a.leads(a.East, "own", "east is led to the pod of west", honest)
	a.small()
	for _, slice := range a.list(a.Environment.Physical["east"], endpointSlices, "") {
		if strings.Contains(slice.GetName(), evil) || strings.Contains(fmt.Sprint(slice.Object["endpoints"]), "203.0.113.") {
			t.Errorf("east has %s with %v", slice.GetName(), slice.Object["endpoints"])
		}
	}
	stop()
	a.leads(a.West, "near", "west is led to the pod of east", near)
	a.unharmed()
}
