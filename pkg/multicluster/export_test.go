package multicluster

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	mcs "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
)

func db(change ...func(*corev1.Service)) *corev1.Service {
	s := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "db"}, Spec: corev1.ServiceSpec{
		Type: corev1.ServiceTypeNodePort, Selector: map[string]string{"app": "db"}, ClusterIP: "10.0.0.7", ClusterIPs: []string{"10.0.0.7"},
		IPFamilies: []corev1.IPFamily{corev1.IPv4Protocol}, SessionAffinity: corev1.ServiceAffinityClientIP,
		Ports: []corev1.ServicePort{{Name: "sql", Port: 5432, NodePort: 30432, Protocol: corev1.ProtocolTCP, AppProtocol: ptr.To("postgres")}},
	}}
	for _, c := range change {
		c(s)
	}
	return s
}

func leadingTo(traffic v1alpha1.Traffic) func(*corev1.Service) {
	return func(s *corev1.Service) {
		s.Annotations = map[string]string{v1alpha1.AnnotationTraffic: string(traffic)}
	}
}

func unselecting(s *corev1.Service) { s.Spec.Selector = nil }

// of returns a condition of an export, as "status/reason".
func of(all []metav1.Condition, kind mcs.ServiceExportConditionType) (said, message string) {
	found := meta.FindStatusCondition(all, string(kind))
	return fmt.Sprintf("%s/%s", found.Status, found.Reason), found.Message
}

func TestAnExportSaysHowFarItIsReached(t *testing.T) {
	export := func(change func(*Export), of *corev1.Service) Export {
		e := Export{Namespace: "shop", Name: "db", Service: of, Sources: []string{"east", "west"}, Networked: true}
		change(&e)
		return e
	}
	as := func(*Export) {}
	for name, test := range map[string]struct {
		in           Export
		valid, ready string
		says         string
	}{
		"every cluster of the network reaches it":              {export(as, db()), "True/Valid", "True/Exported", `namespace shop reaches its pods in "east", "west"`},
		"also when the export says that it leads to all":       {export(as, db(leadingTo(v1alpha1.TrafficGlobal))), "True/Valid", "True/Exported", `"west"`},
		"the Service may prefer the cluster's own":             {export(as, db(leadingTo(v1alpha1.TrafficPreferLocal))), "True/Valid", "True/Exported", "leads to them as PreferLocal"},
		"not if the Service is to stay local":                  {export(as, db(leadingTo(v1alpha1.TrafficLocal))), "True/Valid", "False/Failed", "manifold.dev/traffic: Local"},
		"no pod is needed for that":                            {export(func(e *Export) { e.Sources = nil }, db()), "True/Valid", "True/Exported", "no cluster has pods of it yet"},
		"clusters share no network":                            {export(func(e *Export) { e.Networked, e.Alone = false, e.Sources }, db()), "True/Valid", "False/Pending", "set spec.network"},
		"those that run it are in no network":                  {export(func(e *Export) { e.Alone = e.Sources }, db()), "True/Valid", "False/Pending", `spec.network of cluster "east", "west" is empty`},
		"one of those that run it is in no network":            {export(func(e *Export) { e.Alone = []string{"west"} }, db()), "True/Valid", "True/Exported", `; spec.network of cluster "west" is empty`},
		"a Service with endpoints that are written":            {export(func(e *Export) { e.Networked, e.Sources = false, nil }, db(unselecting)), "True/Valid", "True/Exported", "no selector"},
		"a headless one":                                       {export(as, db(func(s *corev1.Service) { s.Spec.ClusterIP = corev1.ClusterIPNone })), "True/Valid", "True/Exported", `"west"`},
		"what could not be done is told":                       {export(func(e *Export) { e.Trouble = "quota\nexceeded" }, db()), "True/Valid", "False/Failed", "quota exceeded"},
		"not all slices are shown":                             {export(func(e *Export) { e.Unshown = 7 }, db()), "True/Valid", "True/Exported", "7 further EndpointSlices"},
		"there is no Service":                                  {export(as, nil), "False/NoService", "False/Pending", "Valid"},
		"a name of something outside":                          {export(as, db(func(s *corev1.Service) { s.Spec.Type = corev1.ServiceTypeExternalName })), "False/InvalidServiceType", "False/Pending", "Valid"},
		"a Service that goes":                                  {export(as, db(func(s *corev1.Service) { s.DeletionTimestamp = &metav1.Time{} })), "False/NoService", "False/Pending", "Valid"},
		"the Service of the API server":                        {export(as, db(func(s *corev1.Service) { s.Namespace, s.Name = "default", "kubernetes" })), "False/Refused", "False/Pending", "Valid"},
		"a namespace of Kubernetes' own":                       {export(func(e *Export) { e.Namespace = "kube-system" }, db()), "False/Refused", "False/Pending", "Valid"},
		"what cannot be exported and cannot be taken back too": {export(func(e *Export) { e.Trouble = "a webhook says no" }, nil), "False/NoService", "False/Failed", "a webhook says no"},
	} {
		t.Run(name, func(t *testing.T) {
			all := test.in.Conditions(3)
			if got, _ := of(all, mcs.ServiceExportConditionValid); got != test.valid {
				t.Errorf("valid: %s, want %s", got, test.valid)
			}
			if got, message := of(all, mcs.ServiceExportConditionReady); got != test.ready || !strings.Contains(message, test.says) {
				t.Errorf("ready: %s: %s; want %s that says %q", got, message, test.ready, test.says)
			}
			if got, _ := of(all, mcs.ServiceExportConditionConflict); got != "False/NoConflicts" {
				t.Errorf("conflict: %s, and there is but one Service", got)
			}
			for _, c := range all {
				if c.ObservedGeneration != 3 {
					t.Errorf("%s is of generation %d", c.Type, c.ObservedGeneration)
				}
			}
		})
	}
}

func TestMessagesNameSoManyClustersAndNoMore(t *testing.T) {
	var many []string
	for i := range 1000 {
		many = append(many, fmt.Sprintf("cluster-%03d", i))
	}
	e := Export{Namespace: "shop", Name: "db", Service: db(), Sources: many, Networked: true}
	_, message := of(e.Conditions(1), mcs.ServiceExportConditionReady)
	if !strings.HasSuffix(message, `"cluster-009" and 990 more`) {
		t.Errorf("it says %s", message)
	}
}

func TestAServiceIsAnnotatedUnlessItSaysItselfWhereItLeads(t *testing.T) {
	for name, test := range map[string]struct {
		of   *corev1.Service
		want bool
	}{
		"where nothing is said":              {db(), true},
		"where the same is said":             {db(leadingTo(v1alpha1.TrafficGlobal)), false},
		"where something else is said":       {db(leadingTo(v1alpha1.TrafficLocal)), false},
		"where something meaningless is":     {db(leadingTo("")), false},
		"where it has endpoints of somebody": {db(unselecting), false},
	} {
		if got := (Export{Service: test.of}).Annotates(); got != test.want {
			t.Errorf("%s: %t, want %t", name, got, test.want)
		}
	}
}

func newExport() *mcs.ServiceExport {
	return &mcs.ServiceExport{
		TypeMeta:   metav1.TypeMeta{APIVersion: mcs.GroupVersion.String(), Kind: mcs.ServiceExportKindName},
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "db", UID: "export"},
		Spec: mcs.ServiceExportSpec{
			ExportedLabels:      map[string]string{"team": "shop", "manifold.dev/logical-cluster": "forged"},
			ExportedAnnotations: map[string]string{"note": "ours", v1alpha1.AnnotationClusters: "east", "delivery.manifold.dev/routes": "x", "notmanifold.dev/y": "stays"},
		},
	}
}

func TestAnImportStandsForTheService(t *testing.T) {
	got := Import(newExport(), db())
	if !metav1.IsControlledBy(got, newExport()) || got.Namespace != "shop" || got.Name != "db" {
		t.Errorf("it is %+v", got.ObjectMeta)
	}
	spec := got.Spec
	if spec.Type != mcs.ClusterSetIP || !slices.Equal(spec.IPs, []string{"10.0.0.7"}) || spec.SessionAffinity != corev1.ServiceAffinityClientIP ||
		!slices.Equal(spec.IPFamilies, []corev1.IPFamily{corev1.IPv4Protocol}) {
		t.Errorf("it is %+v", spec)
	}
	want := mcs.ServicePort{Name: "sql", Port: 5432, Protocol: corev1.ProtocolTCP, AppProtocol: ptr.To("postgres")}
	if len(spec.Ports) != 1 || spec.Ports[0].Name != want.Name || spec.Ports[0].Port != want.Port || spec.Ports[0].Protocol != want.Protocol || *spec.Ports[0].AppProtocol != "postgres" {
		t.Errorf("its ports are %+v, want %+v", spec.Ports, want)
	}
	headless := Import(newExport(), db(func(s *corev1.Service) {
		s.Spec.ClusterIP, s.Spec.ClusterIPs = corev1.ClusterIPNone, []string{corev1.ClusterIPNone}
	}))
	if headless.Spec.Type != mcs.Headless || len(headless.Spec.IPs) > 0 {
		t.Errorf("of a headless one it is %+v", headless.Spec)
	}
}

// Who may export a Service may not be somebody who may pin a ServiceImport, or forge marks.
func TestAnImportHasNothingOfTheExportThatMeansSomethingToManifold(t *testing.T) {
	got := Import(newExport(), db())
	if len(got.Labels) != 1 || got.Labels["team"] != "shop" {
		t.Errorf("its labels are %v", got.Labels)
	}
	if len(got.Annotations) != 2 || got.Annotations["note"] != "ours" || got.Annotations["notmanifold.dev/y"] != "stays" {
		t.Errorf("its annotations are %v", got.Annotations)
	}
}

func TestAnImportIsPutBackAndKeepsWhatManifoldHasOnIt(t *testing.T) {
	wanted := Import(newExport(), db())
	live := wanted.DeepCopy()
	live.Annotations[v1alpha1.AnnotationPlacement] = "{}"
	if Merge(wanted, live) {
		t.Error("it is written although it is as it should be")
	}
	live.Spec.Ports[0].Port = 1
	live.Labels["forged"] = "yes"
	if !Merge(wanted, live) || live.Spec.Ports[0].Port != 5432 || live.Labels["forged"] != "" || live.Annotations[v1alpha1.AnnotationPlacement] != "{}" {
		t.Errorf("it became %+v", live)
	}
	if Merge(wanted, live) {
		t.Error("it is written twice")
	}
}

func TestAnImportTellsItsClusters(t *testing.T) {
	e := Export{Namespace: "shop", Name: "db", Service: db(), Sources: []string{"east", "west"}, Networked: true}
	got := e.ImportStatus(4, 2)
	if got.EndpointSliceObjects != mcs.EndpointSliceObjectsPresent || len(got.Clusters) != 2 || got.Clusters[1].Cluster != "west" {
		t.Errorf("it says %+v", got)
	}
	if c := got.Conditions[0]; c.Status != metav1.ConditionTrue || c.Reason != string(mcs.ServiceImportReasonReady) || c.ObservedGeneration != 4 {
		t.Errorf("it says %+v", c)
	}
	e.Networked, e.Sources = false, nil
	got = e.ImportStatus(4, 0)
	if got.EndpointSliceObjects != mcs.EndpointSliceObjectsAbsent || len(got.Clusters) != 0 || got.Conditions[0].Status != metav1.ConditionFalse {
		t.Errorf("it says %+v", got)
	}
}

func part(cluster, slice string, addresses ...string) Part {
	out := Part{Cluster: cluster, Of: &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: slice, Labels: map[string]string{discoveryv1.LabelServiceName: "db"}}, AddressType: discoveryv1.AddressTypeIPv4,
		Ports: []discoveryv1.EndpointPort{{Name: ptr.To("sql"), Port: ptr.To[int32](5432)}},
	}}
	for _, address := range addresses {
		out.Endpoints = append(out.Endpoints, discoveryv1.Endpoint{Addresses: []string{address}})
	}
	return out
}

func TestEachSliceOfAnImportIsOfOneCluster(t *testing.T) {
	imported := Import(newExport(), db())
	imported.UID = "import"
	parts := []Part{part("west", "db-1", "10.2.0.1", "10.2.0.2"), part("east", "db-1", "10.1.0.1"), part("east", "db-2", "10.1.0.9"), part("north", "db-1")}
	got, unshown := Slices(imported, parts)
	if len(got) != 3 || unshown != 0 {
		t.Fatalf("%d slices, %d unshown: %v", len(got), unshown, got)
	}
	names := map[string]bool{}
	for _, s := range got {
		names[s.Name] = true
		if s.Labels[mcs.LabelServiceName] != "db" || s.Labels[mcs.LabelSourceCluster] == "" || s.Labels[discoveryv1.LabelManagedBy] != SlicesManager {
			t.Errorf("%s has labels %v", s.Name, s.Labels)
		}
		if _, has := s.Labels[discoveryv1.LabelServiceName]; has {
			t.Errorf("%s is taken for one of the Service", s.Name)
		}
		if s.OwnerReferences[0].UID != "import" || s.OwnerReferences[0].Controller != nil || *s.Ports[0].Port != 5432 {
			t.Errorf("%s is %+v", s.Name, s)
		}
	}
	if len(names) != 3 {
		t.Errorf("their names are %v", names)
	}
	slices.Reverse(parts)
	again, _ := Slices(imported, parts)
	for i := range again {
		if again[i].Name != got[i].Name {
			t.Errorf("in another order they are others: %s, %s", again[i].Name, got[i].Name)
		}
	}
	again[0].Endpoints[0].Addresses[0] = "changed"
	for _, p := range parts {
		if len(p.Endpoints) > 0 && p.Endpoints[0].Addresses[0] == "changed" {
			t.Errorf("that of %s shares memory with what it is made of", p.Cluster)
		}
	}
}

func TestAnImportHasSoManySlicesAndNoMore(t *testing.T) {
	var parts []Part
	for i := range 1500 {
		parts = append(parts, part("east", fmt.Sprintf("db-%d", i), "10.1.0.1"))
	}
	if got, unshown := Slices(Import(newExport(), db()), parts); len(got) != 1000 || unshown != 500 {
		t.Errorf("%d slices, %d unshown", len(got), unshown)
	}
}
