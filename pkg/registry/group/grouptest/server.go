// Package grouptest runs groups for the tests of their kinds.
package grouptest

import (
	"net/http/httptest"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apiserver/pkg/authorization/authorizerfactory"
	openapinamer "k8s.io/apiserver/pkg/endpoints/openapi"
	"k8s.io/apiserver/pkg/registry/generic"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	genericapiserver "k8s.io/apiserver/pkg/server"
	serverstorage "k8s.io/apiserver/pkg/server/storage"
	etcdtesting "k8s.io/apiserver/pkg/storage/etcd3/testing"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	"k8s.io/client-go/rest"
	basecompatibility "k8s.io/component-base/compatibility"
	"k8s.io/kube-openapi/pkg/common"
	"k8s.io/kube-openapi/pkg/validation/spec"

	metaopenapi "k8s.io/apiextensions-apiserver/pkg/generated/openapi"

	"github.com/manifold-dev/manifold/generated/openapi"
	"github.com/manifold-dev/manifold/pkg/registry/group"
)

// storage is where the test server keeps objects: JSON in an etcd of the test's own.
type storage struct {
	config *storagebackend.Config
}

func (s storage) GetRESTOptions(resource schema.GroupResource, _ runtime.Object) (generic.RESTOptions, error) {
	return generic.RESTOptions{
		StorageConfig:           s.config.ForResource(resource),
		Decorator:               genericregistry.StorageWithCacher(),
		DeleteCollectionWorkers: 1,
		ResourcePrefix:          resource.Group + "/" + resource.Resource,
	}, nil
}

// API is what a group is made of: how its kinds are registered, and how they are stored and shown.
type API struct {
	Install func(*runtime.Scheme) error
	Group   func(runtime.ObjectTyper) group.Group
}

// Scheme returns a scheme that has the group's kinds.
func (a API) Scheme(t *testing.T) *runtime.Scheme {
	t.Helper()
	scheme := runtime.NewScheme()
	metav1.AddToGroupVersion(scheme, schema.GroupVersion{Version: "v1"})
	if err := a.Install(scheme); err != nil {
		t.Fatal(err)
	}
	return scheme
}

// Provider returns the provider of the group, and storage for it.
func (a API) Provider(t *testing.T) (group.RESTStorageProvider, generic.RESTOptionsGetter) {
	t.Helper()
	scheme := a.Scheme(t)
	codecs, of := serializer.NewCodecFactory(scheme), a.Group(scheme)
	_, config := etcdtesting.NewUnsecuredEtcd3TestClientServer(t)
	config.Codec = codecs.LegacyCodec(of.Version)
	config.EventsHistoryWindow = 2 * time.Minute
	return group.RESTStorageProvider{Group: of, Scheme: scheme, Codecs: codecs, ParameterCodec: runtime.NewParameterCodec(scheme)}, storage{config}
}

// Everything enables all of the group.
func (a API) Everything(t *testing.T) *serverstorage.ResourceConfig {
	t.Helper()
	config := serverstorage.NewResourceConfig()
	config.EnableVersions(a.Group(a.Scheme(t)).Version)
	return config
}

// definitions are those of the group and of the Kubernetes types that its kinds are made of. Those of the core group are short: the
// real ones come from a package that only the real server imports.
func definitions(ref common.ReferenceCallback) map[string]common.OpenAPIDefinition {
	all := metaopenapi.GetOpenAPIDefinitions(ref)
	for name, definition := range openapi.GetOpenAPIDefinitions(ref) {
		all[name] = definition
	}
	for name, fields := range map[string][]string{
		"Taint":      {"key", "value", "effect", "timeAdded"},
		"Toleration": {"key", "operator", "value", "effect", "tolerationSeconds"},
		"EnvVar":     {"name", "value", "valueFrom"},
	} {
		properties := map[string]spec.Schema{}
		for _, field := range fields {
			properties[field] = *spec.StringProperty()
		}
		all["io.k8s.api.core.v1."+name] = common.OpenAPIDefinition{Schema: spec.Schema{SchemaProps: spec.SchemaProps{
			Type: []string{"object"}, Properties: properties,
		}}}
	}
	all["io.k8s.apimachinery.pkg.util.intstr.IntOrString"] = common.OpenAPIDefinition{Schema: spec.Schema{SchemaProps: spec.SchemaProps{
		Type: []string{"string"}, Format: "int-or-string",
	}}}
	return all
}

// Serve runs a generic API server that serves the group alone, and returns how to reach it.
func (a API) Serve(t *testing.T) *rest.Config {
	t.Helper()
	provider, storage := a.Provider(t)
	group, err := provider.NewRESTStorage(a.Everything(t), storage)
	if err != nil {
		t.Fatal(err)
	}

	config := genericapiserver.NewConfig(provider.Codecs)
	config.ExternalAddress = "localhost:443"
	config.LoopbackClientConfig = &rest.Config{}
	config.Authorization.Authorizer = authorizerfactory.NewAlwaysAllowAuthorizer()
	config.EffectiveVersion = basecompatibility.NewEffectiveVersionFromString("1.37", "", "")
	namer := openapinamer.NewDefinitionNamer(provider.Scheme)
	config.OpenAPIConfig = genericapiserver.DefaultOpenAPIConfig(definitions, namer)
	config.OpenAPIConfig.Info.Version = "unversioned"
	config.OpenAPIV3Config = genericapiserver.DefaultOpenAPIV3Config(definitions, namer)
	config.OpenAPIV3Config.Info.Version = "unversioned"

	server, err := config.Complete(nil).New("manifold-test", genericapiserver.NewEmptyDelegate())
	if err != nil {
		t.Fatal(err)
	}
	if err := server.InstallAPIGroup(&group); err != nil {
		t.Fatal(err)
	}
	server.PrepareRun()
	t.Cleanup(server.Destroy)

	front := httptest.NewServer(server.Handler)
	t.Cleanup(front.Close)
	return &rest.Config{Host: front.URL}
}
