// Package group stores the kinds of an API group of Manifold's own and serves them through Kubernetes' generic registry, as built-in kinds are.
package group

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/registry/rest"
	genericapiserver "k8s.io/apiserver/pkg/server"
	serverstorage "k8s.io/apiserver/pkg/server/storage"
)

// Group is an API group in the only version that it has.
type Group struct {
	Version schema.GroupVersion
	// Categories are those of all kinds.
	Categories []string
	Kinds      []Kind
	// Unstored are resources of which nothing is stored, and subresources of these, by their paths in the group. Optional.
	Unstored map[string]rest.Storage
}

func (g Group) resource(name string) schema.GroupResource {
	return g.Version.WithResource(name).GroupResource()
}

// RESTStorageProvider makes a group. It has the shape that the control plane of Kubernetes asks of the provider of a group.
type RESTStorageProvider struct {
	Group
	// Scheme has the kinds installed, with Install of their package.
	Scheme *runtime.Scheme
	// Codecs read and write objects of Scheme.
	Codecs serializer.CodecFactory
	// ParameterCodec reads the options of a request from its query.
	ParameterCodec runtime.ParameterCodec
}

// GroupName is the name of the group that the provider makes.
func (p RESTStorageProvider) GroupName() string {
	return p.Version.Group
}

// NewRESTStorage makes the stores of those resources that enabled says are served. When it names none, the group that is returned
// has no storage, which the control plane takes as disabled.
func (p RESTStorageProvider) NewRESTStorage(
	enabled serverstorage.APIResourceConfigSource, options generic.RESTOptionsGetter,
) (genericapiserver.APIGroupInfo, error) {
	group := genericapiserver.NewDefaultAPIGroupInfo(p.Version.Group, p.Scheme, p.ParameterCodec, p.Codecs)
	group.NegotiatedSerializer = withoutProtobuf{group.NegotiatedSerializer}

	storage := map[string]rest.Storage{}
	for _, kind := range p.Kinds {
		if !enabled.ResourceEnabled(p.Version.WithResource(kind.Plural)) {
			continue
		}
		objects, err := p.newREST(kind, options)
		if err != nil {
			return genericapiserver.APIGroupInfo{}, fmt.Errorf("make the storage of %s: %w", p.resource(kind.Plural), err)
		}
		storage[kind.Plural] = objects
		if kind.Status != nil {
			storage[kind.Plural+"/status"] = newStatusREST(objects, kind.Status)
		}
		if kind.Subresources == nil {
			continue
		}
		for name, subresource := range kind.Subresources(objects) {
			storage[kind.Plural+"/"+name] = subresource
		}
	}
	for path, unstored := range p.Unstored {
		if resource, _, _ := strings.Cut(path, "/"); enabled.ResourceEnabled(p.Version.WithResource(resource)) {
			storage[path] = unstored
		}
	}
	if len(storage) > 0 {
		group.VersionedResourcesStorageMap[p.Version.Version] = storage
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
