package projection

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
)

// managed is an entry of managed fields.
func managed(manager, subresource, fields string) metav1.ManagedFieldsEntry {
	return metav1.ManagedFieldsEntry{
		Manager: manager, Operation: metav1.ManagedFieldsOperationUpdate, Subresource: subresource,
		FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(fields),
	}
}

func TestAServiceKeepsWhatSomebodyChose(t *testing.T) {
	const ofPort = `{"f:spec":{"f:ports":{"k:{\"port\":80,\"protocol\":\"TCP\"}":{".":{},"f:nodePort":{},"f:port":{}}}}}`
	const plain = `{"f:spec":{"f:ports":{".":{},"k:{\"port\":80,\"protocol\":\"TCP\"}":{".":{},"f:port":{},"f:protocol":{}}},"f:type":{}}}`
	tests := map[string]struct {
		managers                []metav1.ManagedFieldsEntry
		applied                 string
		http, dns, health       int32
		address, firstOfFamiles string
	}{
		"nothing, if an API server allocated it all": {managers: []metav1.ManagedFieldsEntry{managed("kubectl", "", plain)}},
		"nothing, if nobody knows":                   {},
		"a port of nodes":                            {managers: []metav1.ManagedFieldsEntry{managed("helm", "", plain), managed("kubectl", "", ofPort)}, http: 30080},
		"an address":                                 {managers: []metav1.ManagedFieldsEntry{managed("kubectl", "", `{"f:spec":{"f:clusterIP":{}}}`)}, address: "10.0.0.7"},
		"an address among several": {
			managers: []metav1.ManagedFieldsEntry{managed("kubectl", "", `{"f:spec":{"f:clusterIPs":{}}}`)}, address: "10.0.0.7",
		},
		"families of addresses":                 {managers: []metav1.ManagedFieldsEntry{managed("kubectl", "", `{"f:spec":{"f:ipFamilies":{}}}`)}, firstOfFamiles: "IPv4"},
		"a port of health checks":               {managers: []metav1.ManagedFieldsEntry{managed("kubectl", "", `{"f:spec":{"f:healthCheckNodePort":{}}}`)}, health: 30099},
		"nothing that is reserved for Manifold": {managers: []metav1.ManagedFieldsEntry{managed(v1alpha1.FieldManager, "", ofPort)}},
		"nothing of a status":                   {managers: []metav1.ManagedFieldsEntry{managed("kubectl", "status", ofPort)}},
		"nothing that cannot be read":           {managers: []metav1.ManagedFieldsEntry{managed("kubectl", "", `{"f:spec":`)}},
		"a port that was allocated before it was written down": {
			managers: []metav1.ManagedFieldsEntry{managed("kubectl", "", plain)}, applied: `{"spec":{"ports":[{"port":80,"nodePort":30080},{"port":53}]}}`, http: 30080,
		},
		"not a port that a manifest named before":       {applied: `{"spec":{"ports":[{"port":80,"nodePort":30081}]}}`},
		"not an address that a copied manifest repeats": {applied: `{"spec":{"clusterIP":"10.0.0.7","ports":[{"port":80}]}}`},
		"nothing of a manifest that is none":            {applied: `{"spec":{"ports":"80"}}`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			in := &corev1.Service{ObjectMeta: named("shop", "web"), Spec: corev1.ServiceSpec{
				Type: corev1.ServiceTypeLoadBalancer, ClusterIP: "10.0.0.7", ClusterIPs: []string{"10.0.0.7"},
				IPFamilies: []corev1.IPFamily{corev1.IPv4Protocol}, HealthCheckNodePort: 30099,
				Ports: []corev1.ServicePort{
					{Port: 80, Protocol: corev1.ProtocolTCP, NodePort: 30080}, {Port: 53, Protocol: corev1.ProtocolUDP, NodePort: 30053},
				},
			}}
			in.ManagedFields = test.managers
			if test.applied != "" {
				in.Annotations = map[string]string{corev1.LastAppliedConfigAnnotation: test.applied}
			}
			projected, err := kindOf(t, in).Project(in, Part{}, east)
			if err != nil {
				t.Fatal(err)
			}
			got := projected.(*corev1.Service).Spec
			family := ""
			if len(got.IPFamilies) > 0 {
				family = string(got.IPFamilies[0])
			}
			if got.Ports[0].NodePort != test.http || got.Ports[1].NodePort != test.dns || got.HealthCheckNodePort != test.health ||
				got.ClusterIP != test.address || len(got.ClusterIPs) > 0 || family != test.firstOfFamiles {
				t.Errorf("got %+v", got)
			}
		})
	}
}

func TestAServiceIsMadeAnewForAnotherAddress(t *testing.T) {
	kind := kindOf(t, &corev1.Service{})
	at := func(address string, of corev1.ServiceType) *corev1.Service {
		return &corev1.Service{Spec: corev1.ServiceSpec{ClusterIP: address, Type: of}}
	}
	tests := map[string]struct {
		desired, live *corev1.Service
		want          string
	}{
		"not for one that the cluster allocated": {at("", ""), at("10.0.0.7", ""), ""},
		"not for the one that was chosen":        {at("10.0.0.7", ""), at("10.0.0.7", ""), ""},
		"for another one that was chosen":        {at("10.0.0.8", ""), at("10.0.0.7", ""), "spec.clusterIP"},
		"for none at all":                        {at("None", ""), at("10.0.0.7", ""), "spec.clusterIP"},
		"for one where there was none":           {at("", ""), at("None", ""), "spec.clusterIP"},
		"not when it becomes a name":             {at("", corev1.ServiceTypeExternalName), at("10.0.0.7", ""), ""},
		"not when it was a name":                 {at("10.0.0.7", ""), at("", corev1.ServiceTypeExternalName), ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := kind.replace(test.desired, test.live); got != test.want {
				t.Errorf("replaced for %q, want %q", got, test.want)
			}
		})
	}
}
