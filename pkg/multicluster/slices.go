package multicluster

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"

	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	mcs "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"
)

const (
	// SlicesManager is who keeps the slices of a ServiceImport, by the label endpointslice.kubernetes.io/managed-by.
	SlicesManager = "multicluster.manifold.dev"
	// mostSlices bounds how many slices a ServiceImport has.
	mostSlices = 1000
)

// Part is what one cluster has of a slice that the logical cluster has made of the pods of a Service.
type Part struct {
	Cluster   string
	Of        *discoveryv1.EndpointSlice
	Endpoints []discoveryv1.Endpoint
}

// Slices returns the slices of a ServiceImport, each of one cluster, and how many there would be beyond what it may have. They have the label of the
// ServiceImport and not that of the Service, so that nobody takes their endpoints for further ones of that, and go to no cluster.
func Slices(of *mcs.ServiceImport, parts []Part) (out []*discoveryv1.EndpointSlice, unshown int) {
	parts = slices.DeleteFunc(slices.Clone(parts), func(p Part) bool { return len(p.Endpoints) == 0 })
	slices.SortFunc(parts, func(a, b Part) int { return cmp.Compare(a.name(of.Name), b.name(of.Name)) })
	if unshown = max(len(parts)-mostSlices, 0); unshown > 0 {
		parts = parts[:mostSlices]
	}
	owner := metav1.OwnerReference{APIVersion: of.APIVersion, Kind: of.Kind, Name: of.Name, UID: of.UID}
	for _, part := range parts {
		slice := &discoveryv1.EndpointSlice{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: of.Namespace, Name: part.name(of.Name), OwnerReferences: []metav1.OwnerReference{owner},
				Labels: map[string]string{
					mcs.LabelServiceName: of.Name, mcs.LabelSourceCluster: part.Cluster, discoveryv1.LabelManagedBy: SlicesManager,
				},
			},
			AddressType: part.Of.AddressType, Ports: part.Of.DeepCopy().Ports,
		}
		for i := range part.Endpoints {
			slice.Endpoints = append(slice.Endpoints, *part.Endpoints[i].DeepCopy())
		}
		out = append(out, slice)
	}
	return out, unshown
}

// name is the same for the same slice and cluster, so that a change of one pod is the change of one object.
func (p Part) name(service string) string {
	sum := sha256.Sum256([]byte(p.Of.Name))
	return fmt.Sprintf("%s-%s-%s", service, p.Cluster, hex.EncodeToString(sum[:5]))
}
