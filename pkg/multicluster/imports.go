package multicluster

import (
	"cmp"
	"maps"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	mcs "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/internal/text"
)

// Import returns the ServiceImport that stands for an exported Service. It belongs to the export, whose version of the API that is.
func Import(export *mcs.ServiceExport, service *corev1.Service) *mcs.ServiceImport {
	owner := *metav1.NewControllerRef(export, export.GroupVersionKind())
	owner.BlockOwnerDeletion = nil // what holds up the deletion is our finalizer alone
	out := &mcs.ServiceImport{
		TypeMeta: metav1.TypeMeta{APIVersion: export.APIVersion, Kind: mcs.ServiceImportKindName},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: service.Namespace, Name: service.Name, OwnerReferences: []metav1.OwnerReference{owner},
			Labels: exported(export.Spec.ExportedLabels), Annotations: exported(export.Spec.ExportedAnnotations),
		},
		Spec: mcs.ServiceImportSpec{
			Type: mcs.ClusterSetIP, Ports: []mcs.ServicePort{}, IPFamilies: service.Spec.IPFamilies,
			SessionAffinity: service.Spec.SessionAffinity, SessionAffinityConfig: service.Spec.SessionAffinityConfig,
			InternalTrafficPolicy: service.Spec.InternalTrafficPolicy, TrafficDistribution: service.Spec.TrafficDistribution,
		},
	}
	for _, port := range service.Spec.Ports {
		out.Spec.Ports = append(out.Spec.Ports, mcs.ServicePort{Name: port.Name, Protocol: port.Protocol, AppProtocol: port.AppProtocol, Port: port.Port})
	}
	if service.Spec.ClusterIP == corev1.ClusterIPNone {
		out.Spec.Type = mcs.Headless
		return out
	}
	out.Spec.IPs = service.Spec.ClusterIPs
	return out
}

// exported returns what somebody wishes to be on the ServiceImport, without what means something to Manifold: whoever exports a Service may not be
// somebody who may say where a ServiceImport goes.
func exported(in map[string]string) map[string]string {
	out := map[string]string{}
	for key, value := range in {
		if !ours(key) {
			out[key] = value
		}
	}
	return out
}

func ours(key string) bool {
	domain, _, _ := strings.Cut(key, "/")
	return domain == v1alpha1.GroupName || strings.HasSuffix(domain, "."+v1alpha1.GroupName)
}

// Import returns the ServiceImport that stands for the Service of an export.
func (e Export) Import(export *mcs.ServiceExport) *mcs.ServiceImport {
	out := Import(export, e.Service)
	if e.Theirs != nil && out.Spec.Type == mcs.ClusterSetIP {
		out.Spec.IPs = e.clusterSetIPs() // the address of the Service here is none that anybody gets there
	}
	return out
}

// Merge makes of the ServiceImport that there is the one that is wanted, and reports whether it was not. What Manifold keeps on it stays.
func Merge(wanted, live *mcs.ServiceImport) (changed bool) {
	annotations := maps.Clone(wanted.Annotations)
	for key, value := range live.Annotations {
		if ours(key) {
			annotations[key] = value
		}
	}
	if equality.Semantic.DeepEqual(wanted.Spec, live.Spec) && maps.Equal(wanted.Labels, live.Labels) && maps.Equal(annotations, live.Annotations) {
		return false
	}
	live.Spec, live.Labels, live.Annotations = wanted.Spec, wanted.Labels, annotations
	return true
}

// ImportStatus is what the status of the ServiceImport says beside what others say in it.
func (e Export) ImportStatus(generation int64, slices int) mcs.ServiceImportStatus {
	out := mcs.ServiceImportStatus{EndpointSliceObjects: mcs.EndpointSliceObjectsAbsent}
	if slices > 0 {
		out.EndpointSliceObjects = mcs.EndpointSliceObjectsPresent
	}
	for _, cluster := range e.Sources {
		out.Clusters = append(out.Clusters, mcs.ClusterStatus{Cluster: cluster})
	}
	ready := e.importReady()
	ready.ObservedGeneration = generation
	out.Conditions = []metav1.Condition{ready}
	return out
}

func (e Export) importReady() metav1.Condition {
	of := e.ready(condition(string(mcs.ServiceExportConditionReady), metav1.ConditionFalse, string(mcs.ServiceExportReasonPending), ""))
	out := condition(string(mcs.ServiceImportConditionReady), of.Status, string(mcs.ServiceImportReasonPending), "see the condition Ready of the ServiceExport")
	if e.Theirs != nil {
		out.Status, out.Message = metav1.ConditionFalse, cmp.Or(e.Trouble, e.awaits())
		if out.Message == "" {
			out.Status = metav1.ConditionTrue
		}
		out.Message = text.Line(out.Message, mostSaid)
	}
	if out.Status == metav1.ConditionTrue {
		out.Reason, out.Message = string(mcs.ServiceImportReasonReady), ""
	}
	return out
}
