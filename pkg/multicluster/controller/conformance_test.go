package controller

import (
	"net/netip"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	mcs "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/manifold-dev/manifold/pkg/multicluster"
)

// What KEP-1645 asks of an implementation, and the conformance suite of the API holds, one test each. The clusterset is the logical cluster: exports are
// made there and imports are shown there. What needs names and requests is in e2e/network and e2e/traffic.

// exporting is a world in which both clusters have pods of an exported Service.
func exporting(t *testing.T, change ...func(*corev1.Service)) *world {
	w := newWorld(t, mesh())
	w.serve(change...)
	w.pods = map[string][]string{"east": {"10.1.0.1"}, "west": {"10.2.0.1"}}
	w.export()
	w.settle()
	return w
}

// change changes the Service.
func (w *world) change(how func(*corev1.Service)) {
	w.Helper()
	s, err := w.client.CoreV1().Services("shop").Get(w.Context(), "db", metav1.GetOptions{})
	if err != nil {
		w.Fatal(err)
	}
	how(s)
	if _, err := w.client.CoreV1().Services("shop").Update(w.Context(), s, metav1.UpdateOptions{}); err != nil {
		w.Fatal(err)
	}
	w.settle()
}

// unexported deletes the export, and lets the garbage collector have what belonged to it.
func (w *world) unexported() {
	w.Helper()
	w.remove()
	if err := w.look(); err != nil {
		w.Fatal(err)
	}
}

func headless(s *corev1.Service) {
	s.Spec.ClusterIP, s.Spec.ClusterIPs = corev1.ClusterIPNone, []string{corev1.ClusterIPNone}
}

func TestAServiceImportExistsAsLongAsTheServiceIsExported(t *testing.T) {
	w := exporting(t)
	w.pods = map[string][]string{"west": {"10.2.0.1"}} // one cluster exports it no more
	w.settle()
	if w.imported() == nil {
		t.Error("it is gone, and one cluster has it still")
	}
	w.pods = nil // which is between one pod and the next
	w.settle()
	if w.imported() == nil {
		t.Error("it is gone, and the export is not")
	}
	if w.unexported(); w.imported() != nil {
		t.Error("nobody exports it, and it is there")
	}
}

func TestTheImportOfAServiceWithAnAddressIsAClusterSetIP(t *testing.T) {
	w := exporting(t)
	if got := w.imported(); got.Spec.Type != mcs.ClusterSetIP || got.Namespace != "shop" || got.Name != "db" {
		t.Errorf("it is %+v", got)
	}
}

func TestAClusterSetIPHasAnAddress(t *testing.T) {
	w := exporting(t)
	ips := w.imported().Spec.IPs
	if len(ips) != 1 {
		t.Fatalf("it has %v", ips)
	}
	if _, err := netip.ParseAddr(ips[0]); err != nil {
		t.Error(err)
	}
	w.pods = map[string][]string{"west": {"10.2.0.9"}}
	w.settle()
	if again := w.imported().Spec.IPs; !slices.Equal(again, ips) {
		t.Errorf("it was %v and is %v: an address stays as long as the import", ips, again)
	}
}

func TestTheImportOfAHeadlessServiceIsHeadlessAndHasNoAddress(t *testing.T) {
	w := exporting(t, headless)
	if got := w.imported().Spec; got.Type != mcs.Headless || len(got.IPs) > 0 {
		t.Errorf("it is %+v", got)
	}
	if got := w.led(); got != "east:10.1.0.1 west:10.2.0.1" {
		t.Errorf("its pods are %s", got)
	}
	if w.unexported(); w.imported() != nil || w.led() != "" {
		t.Error("something of it is left")
	}
}

func TestAnImportHasThePortsOfTheService(t *testing.T) {
	w := exporting(t, func(s *corev1.Service) {
		s.Spec.Ports = []corev1.ServicePort{
			{Name: "sql", Port: 5432, Protocol: corev1.ProtocolTCP, AppProtocol: ptr.To("postgres"), NodePort: 30000},
			{Name: "gossip", Port: 7946, Protocol: corev1.ProtocolUDP},
		}
	})
	want := []mcs.ServicePort{
		{Name: "sql", Port: 5432, Protocol: corev1.ProtocolTCP, AppProtocol: ptr.To("postgres")}, {Name: "gossip", Port: 7946, Protocol: corev1.ProtocolUDP},
	}
	if got := w.imported().Spec.Ports; !equality.Semantic.DeepEqual(got, want) {
		t.Errorf("they are %+v", got)
	}
	w.change(func(s *corev1.Service) { s.Spec.Ports = s.Spec.Ports[1:] })
	if got := w.imported().Spec.Ports; !equality.Semantic.DeepEqual(got, want[1:]) {
		t.Errorf("they stay %+v when the Service changes", got)
	}
}

func TestPodsWithDifferentPortsAreMergedInOneImportAndTellTheirOwn(t *testing.T) {
	w := exporting(t, func(s *corev1.Service) {
		s.Spec.Ports = []corev1.ServicePort{{Name: "sql", Port: 5432}, {Name: "metrics", Port: 9187}}
	})
	if got := w.imported().Spec.Ports; len(got) != 2 {
		t.Errorf("the ports of the import are %+v", got)
	}
	found, err := w.client.DiscoveryV1().EndpointSlices("shop").List(t.Context(), metav1.ListOptions{LabelSelector: mcs.LabelServiceName + "=db"})
	if err != nil || len(found.Items) != 2 {
		t.Fatal(found, err)
	}
	for _, slice := range found.Items {
		if len(slice.Ports) != 1 || *slice.Ports[0].Name != "sql" { // those of the slice that it is made of
			t.Errorf("%s has ports %+v", slice.Name, slice.Ports)
		}
	}
}

func TestAnImportHasTheSessionAffinityOfTheService(t *testing.T) {
	w := exporting(t, func(s *corev1.Service) {
		s.Spec.SessionAffinity = corev1.ServiceAffinityClientIP
		s.Spec.SessionAffinityConfig = &corev1.SessionAffinityConfig{ClientIP: &corev1.ClientIPConfig{TimeoutSeconds: ptr.To[int32](42)}}
	})
	if got := w.imported().Spec; got.SessionAffinity != corev1.ServiceAffinityClientIP || *got.SessionAffinityConfig.ClientIP.TimeoutSeconds != 42 {
		t.Errorf("it is %+v", got)
	}
	w.change(func(s *corev1.Service) {
		s.Spec.SessionAffinity, s.Spec.SessionAffinityConfig = corev1.ServiceAffinityNone, nil
	})
	if got := w.imported().Spec; got.SessionAffinity != corev1.ServiceAffinityNone || got.SessionAffinityConfig != nil {
		t.Errorf("it stays %+v when the Service changes", got)
	}
}

func TestAnImportHasThePoliciesAndFamiliesOfTheService(t *testing.T) {
	w := exporting(t, func(s *corev1.Service) {
		s.Spec.InternalTrafficPolicy, s.Spec.TrafficDistribution = ptr.To(corev1.ServiceInternalTrafficPolicyLocal), ptr.To("PreferSameZone")
		s.Spec.IPFamilies, s.Spec.ClusterIPs = []corev1.IPFamily{corev1.IPv4Protocol, corev1.IPv6Protocol}, []string{"10.0.0.7", "fd00::7"}
	})
	got := w.imported().Spec
	if *got.InternalTrafficPolicy != corev1.ServiceInternalTrafficPolicyLocal || *got.TrafficDistribution != "PreferSameZone" || len(got.IPFamilies) != 2 || len(got.IPs) != 2 {
		t.Errorf("it is %+v", got)
	}
}

func TestAnImportHasTheLabelsAndAnnotationsThatAreExportedAndNoOthers(t *testing.T) {
	w := newWorld(t, mesh())
	w.serve(func(s *corev1.Service) {
		s.Labels, s.Annotations = map[string]string{"of": "service"}, map[string]string{"of": "service"}
	})
	w.export(func(e *mcs.ServiceExport) {
		e.Labels, e.Annotations = map[string]string{"of": "export"}, map[string]string{"of": "export"}
		e.Spec.ExportedLabels, e.Spec.ExportedAnnotations = map[string]string{"team": "shop"}, map[string]string{"note": "any"}
	})
	w.settle()
	got := w.imported()
	if len(got.Labels) != 1 || got.Labels["team"] != "shop" || len(got.Annotations) != 1 || got.Annotations["note"] != "any" {
		t.Errorf("it has %v and %v", got.Labels, got.Annotations)
	}
}

func TestAnExportBeforeItsServiceIsNotValidUntilThereIsOne(t *testing.T) {
	w := newWorld(t, mesh())
	w.export()
	w.settle()
	if got := w.says(mcs.ServiceExportConditionValid); !strings.HasPrefix(got, string(mcs.ServiceExportReasonNoService)) || w.imported() != nil {
		t.Errorf("it says %s, and its import is %v", got, w.imported())
	}
	w.serve()
	w.settle()
	if got := w.says(mcs.ServiceExportConditionValid); !strings.HasPrefix(got, string(mcs.ServiceExportReasonValid)) || w.imported() == nil {
		t.Errorf("with a Service it says %s, and its import is %v", got, w.imported())
	}
}

func TestAnExportOfAnExternalNameIsNotValidAndHasNoImport(t *testing.T) {
	w := newWorld(t, mesh())
	w.serve(func(s *corev1.Service) {
		s.Spec = corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: "example.com"}
	})
	w.export()
	w.settle()
	if got := w.says(mcs.ServiceExportConditionValid); !strings.HasPrefix(got, string(mcs.ServiceExportReasonInvalidServiceType)) || w.imported() != nil {
		t.Errorf("it says %s, and its import is %v", got, w.imported())
	}
}

func TestAServiceThatBecomesAnExternalNameIsImportedNoMore(t *testing.T) {
	w := exporting(t)
	w.change(func(s *corev1.Service) {
		s.Spec = corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: "example.com"}
	})
	if w.imported() != nil || w.led() != "" || w.held() {
		t.Errorf("left are %v, %s", w.imported(), w.led())
	}
}

// Exports of one name cannot say different things: there is one Service. What clusters would resolve, the API server has, which lets nobody make two.
func TestExportsOfOneNameDoNotConflict(t *testing.T) {
	w := exporting(t)
	for what, how := range map[string]func(*corev1.Service){
		"ports":            func(s *corev1.Service) { s.Spec.Ports[0].Port++ },
		"headlessness":     headless,
		"session affinity": func(s *corev1.Service) { s.Spec.SessionAffinity = corev1.ServiceAffinityClientIP },
	} {
		w.change(how)
		if got := w.says(mcs.ServiceExportConditionConflict); !strings.HasPrefix(got, string(mcs.ServiceExportReasonNoConflicts)) {
			t.Errorf("%s change, and it says %s", what, got)
		}
	}
	if got := w.imported().Spec; got.Type != mcs.Headless || got.SessionAffinity != corev1.ServiceAffinityClientIP || got.Ports[0].Port != 5433 {
		t.Errorf("the import is %+v, which is not the Service", got)
	}
}

func TestAnImportNamesTheClustersThatItComesFrom(t *testing.T) {
	w := exporting(t)
	if got := w.imported().Status.Clusters; len(got) != 2 || got[0].Cluster != "east" || got[1].Cluster != "west" {
		t.Errorf("it comes from %v", got)
	}
	w.pods = map[string][]string{"west": {"10.2.0.1"}}
	w.settle()
	if got := w.imported().Status.Clusters; len(got) != 1 || got[0].Cluster != "west" {
		t.Errorf("it comes from %v", got)
	}
}

func TestSlicesOfAnImportHaveTheLabelsOfTheAPIAndGoWithIt(t *testing.T) {
	w := exporting(t)
	found, err := w.client.DiscoveryV1().EndpointSlices("shop").List(t.Context(), metav1.ListOptions{})
	if err != nil || len(found.Items) != 2 || w.imported().Status.EndpointSliceObjects != mcs.EndpointSliceObjectsPresent {
		t.Fatal(found, w.imported().Status, err)
	}
	for _, slice := range found.Items {
		manager := slice.Labels[discoveryv1.LabelManagedBy]
		if slice.Labels[mcs.LabelServiceName] != "db" || slice.Labels[mcs.LabelSourceCluster] == "" || manager != multicluster.SlicesManager {
			t.Errorf("%s has labels %v", slice.Name, slice.Labels)
		}
	}
	if w.unexported(); w.led() != "" {
		t.Errorf("left are %s", w.led())
	}
}

func TestAServiceThatIsDeletedTakesItsImportAlongAndNotItsExport(t *testing.T) {
	w := exporting(t)
	if err := w.client.CoreV1().Services("shop").Delete(t.Context(), "db", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	w.settle()
	if w.imported() != nil || w.led() != "" || w.get(exports) == nil {
		t.Errorf("left are %v, %s, and the export is %v", w.imported(), w.led(), w.get(exports))
	}
	if got := w.says(mcs.ServiceExportConditionValid); !strings.HasPrefix(got, string(mcs.ServiceExportReasonNoService)) {
		t.Errorf("it says %s", got)
	}
}
