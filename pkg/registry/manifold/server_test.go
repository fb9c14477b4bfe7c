package manifold

import (
	"net/http/httptest"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apiserver/pkg/authorization/authorizerfactory"
	openapinamer "k8s.io/apiserver/pkg/endpoints/openapi"
	"k8s.io/apiserver/pkg/registry/generic"
	genericapiserver "k8s.io/apiserver/pkg/server"
	serverstorage "k8s.io/apiserver/pkg/server/storage"
	etcdtesting "k8s.io/apiserver/pkg/storage/etcd3/testing"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	"k8s.io/client-go/rest"
	basecompatibility "k8s.io/component-base/compatibility"
	"k8s.io/kube-openapi/pkg/common"
	"k8s.io/kube-openapi/pkg/validation/spec"

	metaopenapi "k8s.io/apiextensions-apiserver/pkg/generated/openapi"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/generated/openapi"
)

// storage is where the test server keeps objects: JSON in an etcd of the test's own.
type storage struct {
	config *storagebackend.Config
}

func (s storage) GetRESTOptions(resource schema.GroupResource, _ runtime.Object) (generic.RESTOptions, error) {
	return generic.RESTOptions{
		StorageConfig:           s.config.ForResource(resource),
		Decorator:               generic.UndecoratedStorage,
		DeleteCollectionWorkers: 1,
		ResourcePrefix:          resource.Group + "/" + resource.Resource,
	}, nil
}

func newScheme(t *testing.T) *runtime.Scheme {
	t.Helper()
	scheme := runtime.NewScheme()
	metav1.AddToGroupVersion(scheme, schema.GroupVersion{Version: "v1"})
	if err := v1alpha1.Install(scheme); err != nil {
		t.Fatal(err)
	}
	return scheme
}

// newProvider returns the provider under test, and storage for it.
func newProvider(t *testing.T) (RESTStorageProvider, storage) {
	t.Helper()
	scheme := newScheme(t)
	codecs := serializer.NewCodecFactory(scheme)
	_, config := etcdtesting.NewUnsecuredEtcd3TestClientServer(t)
	config.Codec = codecs.LegacyCodec(v1alpha1.SchemeGroupVersion)
	return RESTStorageProvider{scheme, codecs, metav1.ParameterCodec}, storage{config}
}

func everything() *serverstorage.ResourceConfig {
	config := serverstorage.NewResourceConfig()
	config.EnableVersions(v1alpha1.SchemeGroupVersion)
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

// serve runs a generic API server that serves the group alone, and returns how to reach it.
func serve(t *testing.T) *rest.Config {
	t.Helper()
	provider, storage := newProvider(t)
	group, err := provider.NewRESTStorage(everything(), storage)
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
