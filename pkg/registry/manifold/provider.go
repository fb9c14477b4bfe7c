// Package manifold stores Manifold's own kinds and serves them through Kubernetes' generic registry, as built-in kinds are.
package manifold

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/registry/rest"
	genericapiserver "k8s.io/apiserver/pkg/server"
	serverstorage "k8s.io/apiserver/pkg/server/storage"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
)

// RESTStorageProvider makes the API group manifold.dev. It has the shape that the control plane of Kubernetes asks of the provider
// of a group.
type RESTStorageProvider struct {
	// Scheme has the kinds installed, with v1alpha1.Install.
	Scheme *runtime.Scheme
	// Codecs read and write objects of Scheme.
	Codecs serializer.CodecFactory
	// ParameterCodec reads the options of a request from its query.
	ParameterCodec runtime.ParameterCodec
}

// GroupName is the name of the group that the provider makes.
func (p RESTStorageProvider) GroupName() string {
	return v1alpha1.GroupName
}

// NewRESTStorage makes the stores of those resources that enabled says are served. When it names none, the group that is returned
// has no storage, which the control plane takes as disabled.
func (p RESTStorageProvider) NewRESTStorage(
	enabled serverstorage.APIResourceConfigSource, options generic.RESTOptionsGetter,
) (genericapiserver.APIGroupInfo, error) {
	group := genericapiserver.NewDefaultAPIGroupInfo(v1alpha1.GroupName, p.Scheme, p.ParameterCodec, p.Codecs)
	group.NegotiatedSerializer = withoutProtobuf{group.NegotiatedSerializer}

	storage := map[string]rest.Storage{}
	for _, kind := range kinds(p.Scheme) {
		if !enabled.ResourceEnabled(v1alpha1.SchemeGroupVersion.WithResource(kind.plural)) {
			continue
		}
		store, err := newREST(kind, options)
		if err != nil {
			return genericapiserver.APIGroupInfo{}, fmt.Errorf("make the storage of %s: %w", v1alpha1.Resource(kind.plural), err)
		}
		storage[kind.plural] = store
		if kind.status != nil {
			storage[kind.plural+"/status"] = newStatusREST(store, kind.status)
		}
	}
	if len(storage) > 0 {
		group.VersionedResourcesStorageMap[v1alpha1.SchemeGroupVersion.Version] = storage
	}
	return group, nil
}

// withoutProtobuf does not offer protobuf, which Manifold's own kinds cannot be written in. Clients that prefer it, such as the
// controllers of Kubernetes, then get JSON; offered and chosen, it would fail their requests.
type withoutProtobuf struct {
	runtime.NegotiatedSerializer
}

// SupportedMediaTypes are those that objects of the group can be read from and written in.
func (s withoutProtobuf) SupportedMediaTypes() []runtime.SerializerInfo {
	return slices.DeleteFunc(slices.Clone(s.NegotiatedSerializer.SupportedMediaTypes()), func(info runtime.SerializerInfo) bool {
		return info.MediaType == runtime.ContentTypeProtobuf
	})
}
