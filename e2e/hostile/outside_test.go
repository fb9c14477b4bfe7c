package hostile

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/uuid"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/e2e/framework"
	"github.com/manifold-dev/manifold/e2e/framework/expect"
)

// TestAClusterSpeaksOfItsOwnAddressesAndExportsAlone has west claim addresses of load balancers that are those of east, or nobody's, and export and import
// Services, some of which it has nothing of. What is shown above, and what east is led to, stays what was decided.
func TestAClusterSpeaksOfItsOwnAddressesAndExportsAlone(t *testing.T) {
	a := enter(t)
	t.Run("addresses of load balancers", func(t *testing.T) { a.within(t).claimsAddresses() })
	t.Run("exports and imports", func(t *testing.T) { a.within(t).claimsExports() })
}

// The addresses that load balancers give in east and in west.
const (
	addressOfEast = "192.0.2.1"
	addressOfWest = "192.0.2.2"
)

func (a *arena) claimsAddresses() {
	a.create(deployment("both", 2, "east,west"))
	a.create(object{resource: services, manifest: annotate(manifest(services, "both", honestImage), map[string]string{v1alpha1.AnnotationDrainSeconds: "1"}).Object})
	framework.Await(a.Logical, "both", "runs", expect.Available(2))
	a.balances(a.East, "both", addressOfEast)
	a.balances(a.West, "both", addressOfWest)
	a.shows("both", "both clusters have an address", addressOfEast, addressOfWest)
	thousands := make([]string, 0, 5000)
	for i := range cap(thousands) {
		thousands = append(thousands, fmt.Sprintf("203.0.%d.%d", i/250, i%250+1))
	}
	for name, lie := range map[string]struct {
		says []string
		want []string // beside that of east; "" stands for as many as count
	}{
		"that of east":                            {says: []string{addressOfEast}},
		"that of east beside its own":             {says: []string{addressOfEast, addressOfWest}, want: []string{addressOfWest}},
		"those that nobody can be sent to":        {says: []string{"169.254.169.254", "fe80::1", "224.0.0.251", "0.0.0.0", "::", "ff02::1", "::ffff:192.0.2.3", "192.0.2", "192.0.2.007"}},
		"names that are none, or addresses":       {says: []string{"a b", "-x.example", strings.Repeat("a", 300), "169.254.169.1694"}},
		"the machine itself, as tools for one do": {says: []string{"127.0.0.1"}, want: []string{"127.0.0.1"}},
		"thousands":           {says: thousands, want: thousands[:64]},
		"thousands of nobody": {says: slices.Repeat([]string{"169.254.169.254"}, len(thousands))},
	} {
		a.Run(name, func(t *testing.T) {
			a := a.within(t)
			stop := a.balancedBy("both", lie.says)
			defer stop()
			a.shows("both", "east's address is shown, and of west's what can be", append([]string{addressOfEast}, lie.want...)...)
			stop()
			a.shows("both", "both are shown again", addressOfEast, addressOfWest)
		})
	}
	// An address that west takes for its own does not go with west.
	stop := a.balancedBy("both", []string{addressOfEast})
	defer stop()
	a.shows("both", "west has that of east", addressOfEast)
	a.Logical.Kubectl("annotate", "deployment", "both", v1alpha1.AnnotationClusters+"=east", "--overwrite")
	framework.AwaitGone[*appsv1.Deployment](a.West, "both")
	a.shows("both", "east's address stays when west leaves", addressOfEast)
	framework.Await(a.East, "both", "has its address", func(s *corev1.Service) bool { return slices.Equal(points(s), []string{addressOfEast}) })
	stop()
	a.unharmed()
}

// balances has a cluster give a Service an address, as a controller of load balancers would.
func (a *arena) balances(side *framework.Side, service, ip string) {
	a.Helper()
	framework.Await(side, service, "is there", framework.Exists[*corev1.Service])
	side.Kubectl("patch", "service", service, "--subresource=status", "--type=merge", "-p", `{"status":{"loadBalancer":{"ingress":[{"ip":"`+ip+`"}]}}}`)
}

// balancedBy has west say that a Service has these addresses, or names.
func (a *arena) balancedBy(service string, addresses []string) (stop func()) {
	var ingress []any
	for _, address := range addresses {
		field := "ip"
		if _, err := netip.ParseAddr(address); err != nil && strings.Trim(address, "0123456789.") != "" {
			field = "hostname"
		}
		ingress = append(ingress, map[string]any{field: address})
	}
	return a.west.Change(services.GroupResource(), func(obj *unstructured.Unstructured) bool {
		if a.ofArena(obj, service) {
			set(obj, ingress, "status", "loadBalancer", "ingress")
		}
		return true
	})
}

func points(s *corev1.Service) []string {
	var out []string
	for _, point := range s.Status.LoadBalancer.Ingress {
		out = append(out, point.IP+point.Hostname)
	}
	slices.Sort(out)
	return out
}

// shows waits until a Service above has these addresses and no others.
func (a *arena) shows(service, claim string, want ...string) {
	a.Helper()
	slices.Sort(want)
	framework.Await(a.Logical, service, claim, func(s *corev1.Service) bool { return slices.Equal(points(s), want) })
}

// Kinds of the Multi-Cluster Services API.
var (
	exports = resource("multicluster.x-k8s.io", "v1beta1", "serviceexports")
	imports = resource("multicluster.x-k8s.io", "v1beta1", "serviceimports")
)

const (
	exportOf = `{apiVersion: multicluster.x-k8s.io/v1beta1, kind: ServiceExport, metadata: {name: "%[1]s"}}`
	// importOf is what an implementation of the API would make, with addresses that no Service may have.
	importOf = `{apiVersion: multicluster.x-k8s.io/v1beta1, kind: ServiceImport, metadata: {name: "%[1]s"},
  spec: {type: ClusterSetIP, ips: [169.254.169.254], ports: [{port: 80, protocol: TCP}]}}`
	// lost is the start of addresses that no pod has.
	lost = "203.0.113."
)

func (a *arena) claimsExports() {
	a.network()
	a.knowsExports()
	a.create(deployment("near", 1, "east"))
	a.serve("near")
	a.serve("own")
	framework.Await(a.Logical, "near", "runs", expect.Available(1))
	honest, near := a.addressIn(a.West, "own"), a.addressIn(a.East, "near")
	// That of near is for Manifold to carry out, that of own for what west runs.
	a.create(object{resource: exports, manifest: parse(exportOf, "near")})
	a.create(object{resource: exports, manifest: annotate(&unstructured.Unstructured{Object: parse(exportOf, "own")},
		map[string]string{v1alpha1.AnnotationExportedBy: v1alpha1.ExportedByClusters}).Object})
	a.awaitCopied(exports, "own", "west")
	a.imports("near", near)
	a.imports("own", honest)
	a.before = a.look() // the definitions are new

	// In the namespace that west has, Mallory writes what an implementation of the API would.
	west := a.Environment.Physical["west"]
	var theirs []*unstructured.Unstructured
	for _, name := range []string{"near", "own", evil} {
		for _, of := range []resourceOf{exports, imports} {
			if of == exports && name == "own" {
				continue // it is there already
			}
			theirs = append(theirs, a.createIn(west, a.Namespace, of, &unstructured.Unstructured{Object: parse(map[resourceOf]string{exports: exportOf, imports: importOf}[of], name)}))
		}
		slice := forgedSlice(a.Namespace, name, honest, near)
		slice.SetUID("") // west gives it one
		theirs = append(theirs, a.createIn(west, a.Namespace, endpointSlices, slice))
	}
	defer func() {
		for _, obj := range theirs {
			a.Environment.CleanupIn(a.T, west, "delete", strings.ToLower(obj.GetKind()), obj.GetName(), "-n", a.Namespace, "--ignore-not-found")
		}
	}()
	// In those that it has nothing of, west says that there is something, under our marks.
	settled := a.settleIn(victim, bystander)
	defer settled()
	forged := map[resourceOf][]*unstructured.Unstructured{}
	for _, namespace := range []string{victim, bystander} {
		for of, text := range map[resourceOf]string{exports: exportOf, imports: importOf} {
			obj := &unstructured.Unstructured{Object: parse(text, estateName)}
			obj.SetNamespace(namespace)
			obj.SetUID(uuid.NewUUID())
			forged[of] = append(forged[of], a.claimed(obj, obj.GetUID()))
		}
		slice := label(forgedSlice(namespace, estateName, honest, near), map[string]string{discoveryv1.LabelManagedBy: v1alpha1.EndpointSlicesManager})
		forged[endpointSlices] = append(forged[endpointSlices], a.claimed(slice, slice.GetUID()))
	}
	stop := a.invent(forged)
	defer stop()

	a.Logical.Poll("west is heard of the import that it was asked for", func() error {
		return framework.Contains(a.Logical.Kubectl("get", "serviceimport", "own", "-o", `jsonpath={.status.conditions[?(@.type=="Ready")].status}`), "True")
	})
	a.canary()
	a.imports("near", near)
	a.imports("own", honest)
	a.leads(a.East, "own", "east is led to the pod of west", honest)
	a.leads(a.West, "near", "west is led to the pod of east", near)
	a.noneOfTheirs()
	stop()
	settled()
	a.unharmed()
}

// knowsExports defines the kinds of the Multi-Cluster Services API above and in west until the test ends.
func (a *arena) knowsExports() {
	a.Helper()
	const from = "../../config/crds/mcs"
	for _, side := range []*framework.Side{a.Logical, a.West} {
		side.Kubectl("apply", "-k", from)
		a.Cleanup(func() { a.Environment.CleanupIn(a.T, side.API, "delete", "-k", from, "--ignore-not-found") })
		side.Poll("the definitions are established", func() error {
			return framework.Failure(side.Try("wait", "--for=condition=Established", "--timeout=20s",
				"crd/"+exports.GroupResource().String(), "crd/"+imports.GroupResource().String()))
		})
	}
	a.Cleanup(func() { a.Environment.Cleanup(a.T, "delete", "serviceexports", "--all", "-n", a.Namespace) })
}

// forgedSlice is one of an export of a Service, and of the Service itself, that leads to addresses of pods and to such as nobody has.
func forgedSlice(namespace, service string, addresses ...string) *unstructured.Unstructured {
	slice := invented(endpointSlices, namespace, evil+"-"+service)
	var all []any
	for _, address := range append(addresses, lost+"6", lost+"7") {
		all = append(all, map[string]any{"addresses": []any{address}})
	}
	set(slice, all, "endpoints")
	return label(slice, map[string]string{
		discoveryv1.LabelServiceName: service, discoveryv1.LabelManagedBy: "multicluster.example.com",
		"multicluster.kubernetes.io/service-name": service, "multicluster.kubernetes.io/source-cluster": "east",
	})
}

// imports waits until the slices of a ServiceImport above have these addresses.
func (a *arena) imports(service string, want ...string) {
	a.Helper()
	framework.AwaitList(a.Logical, "multicluster.kubernetes.io/service-name="+service, "the import of "+service+" has what was decided", func(found []*discoveryv1.EndpointSlice) bool {
		return slices.Equal(led(found), want)
	})
}

// noneOfTheirs checks that nothing of what west has written or said is above, or in east.
func (a *arena) noneOfTheirs() {
	a.Helper()
	for _, api := range []*framework.API{a.Environment.Logical, a.Environment.Physical["east"]} {
		list, err := api.Dynamic.Resource(endpointSlices).List(a.Context(), metav1.ListOptions{})
		if err != nil {
			a.Fatal(err)
		}
		for _, slice := range list.Items {
			if strings.Contains(slice.GetName(), evil) || strings.Contains(fmt.Sprint(slice.Object["endpoints"]), lost) {
				a.Errorf("%s has %s/%s with %v", api.Name, slice.GetNamespace(), slice.GetName(), slice.Object["endpoints"])
			}
		}
		for _, of := range []resourceOf{exports, imports} {
			list, err := api.Dynamic.Resource(of).List(a.Context(), metav1.ListOptions{})
			if apierrors.IsNotFound(err) {
				continue // it is not defined there
			}
			if err != nil {
				a.Fatal(err)
			}
			for _, obj := range list.Items {
				ips, _, _ := unstructured.NestedSlice(obj.Object, "spec", "ips")
				if obj.GetNamespace() != a.Namespace || obj.GetName() == evil || slices.Contains(ips, any("169.254.169.254")) {
					a.Errorf("%s has %s %s/%s with the addresses %v", api.Name, of.Resource, obj.GetNamespace(), obj.GetName(), ips)
				}
			}
		}
	}
}
