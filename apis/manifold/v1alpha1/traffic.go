package v1alpha1

import (
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Traffic is the value of AnnotationTraffic: which pods of a Service a cluster is led to, where it shares a network with others.
//
// +k8s:openapi-gen=false
type Traffic string

const (
	// TrafficPreferLocal leads to the pods of other clusters only while none of the cluster's own is ready. It is the default.
	TrafficPreferLocal Traffic = "PreferLocal"
	// TrafficGlobal leads to all ready pods, wherever they are.
	TrafficGlobal Traffic = "Global"
	// TrafficLocal leads to the cluster's own pods alone, and has the Service only where it has pods, as in clusters without a network.
	TrafficLocal Traffic = "Local"
)

// Traffics returns all values of AnnotationTraffic.
func Traffics() []Traffic { return []Traffic{TrafficGlobal, TrafficLocal, TrafficPreferLocal} }

// ValidateTraffic refuses a value of AnnotationTraffic that means nothing.
func ValidateTraffic(value string, path *field.Path) field.ErrorList {
	for _, known := range Traffics() {
		if Traffic(value) == known {
			return nil
		}
	}
	return field.ErrorList{field.NotSupported(path, Traffic(value), Traffics())}
}

// ExportedByClusters is the value of AnnotationExportedBy that has implementations of the Multi-Cluster Services API in the clusters carry out a
// ServiceExport, wherever the Service has pods.
const ExportedByClusters = "clusters"

// ValidateExportedBy refuses a value of AnnotationExportedBy that means nothing.
func ValidateExportedBy(value string, path *field.Path) field.ErrorList {
	if value == ExportedByClusters {
		return nil
	}
	return field.ErrorList{field.NotSupported(path, value, []string{ExportedByClusters})}
}

// TrafficOf returns what counts for a Service with these annotations in a namespace with those. A value that means nothing, as on a namespace
// that was annotated before anybody looked, counts as none.
func TrafficOf(service, namespace map[string]string) Traffic {
	for _, annotations := range []map[string]string{service, namespace} {
		if value, ok := annotations[AnnotationTraffic]; ok && len(ValidateTraffic(value, field.NewPath(""))) == 0 {
			return Traffic(value)
		}
	}
	return TrafficPreferLocal
}
