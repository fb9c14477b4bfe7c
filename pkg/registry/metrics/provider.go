// Package metrics serves metrics.k8s.io: what nodes and pods of the logical cluster use, as the metrics APIs of the clusters have it.
//
// Nothing is stored. A request is answered by asking those clusters that it is about, each once and all at a time. A cluster that
// cannot say is left out: a warning names it with what to do, and only when no cluster can say is the request refused.
package metrics

import (
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/registry/rest"
	genericapiserver "k8s.io/apiserver/pkg/server"
	serverstorage "k8s.io/apiserver/pkg/server/storage"
	"k8s.io/metrics/pkg/apis/metrics"
	"k8s.io/metrics/pkg/apis/metrics/v1beta1"
)

// RESTStorageProvider makes the API group metrics.k8s.io. It has the shape that the control plane of Kubernetes asks of the provider
// of a group.
type RESTStorageProvider struct {
	// Scheme has the kinds installed.
	Scheme *runtime.Scheme
	// Codecs read and write objects of Scheme.
	Codecs serializer.CodecFactory
	// ParameterCodec reads the options of a request from its query.
	ParameterCodec runtime.ParameterCodec
	// Sources is where metrics come from.
	Sources Sources
}

// GroupName is the name of the group that the provider makes.
func (p RESTStorageProvider) GroupName() string { return metrics.GroupName }

// NewRESTStorage makes the resources that enabled says are served. "--runtime-config=metrics.k8s.io/v1beta1=false" takes them out, for
// those who serve the group by an API server of their own.
func (p RESTStorageProvider) NewRESTStorage(
	enabled serverstorage.APIResourceConfigSource, _ generic.RESTOptionsGetter,
) (genericapiserver.APIGroupInfo, error) {
	group := genericapiserver.NewDefaultAPIGroupInfo(metrics.GroupName, p.Scheme, p.ParameterCodec, p.Codecs)
	storage := map[string]rest.Storage{}
	for resource, s := range map[string]rest.Storage{"nodes": &nodeREST{sources: p.Sources}, "pods": &podREST{sources: p.Sources}} {
		if enabled.ResourceEnabled(v1beta1.SchemeGroupVersion.WithResource(resource)) {
			storage[resource] = s
		}
	}
	if len(storage) > 0 {
		group.VersionedResourcesStorageMap[v1beta1.SchemeGroupVersion.Version] = storage
	}
	return group, nil
}
