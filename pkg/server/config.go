package server

import (
	"fmt"
	"strings"

	apiextensionsapiserver "k8s.io/apiextensions-apiserver/pkg/apiserver"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	serverstorage "k8s.io/apiserver/pkg/server/storage"
	"k8s.io/apiserver/pkg/util/webhook"
	clientgoinformers "k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"
	aggregatorapiserver "k8s.io/kube-aggregator/pkg/apiserver"
	aggregatorscheme "k8s.io/kube-aggregator/pkg/apiserver/scheme"
	openapicommon "k8s.io/kube-openapi/pkg/common"
	kubeoptions "k8s.io/kubernetes/cmd/kube-apiserver/app/options"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	"k8s.io/kubernetes/pkg/controlplane"
	controlplaneapiserver "k8s.io/kubernetes/pkg/controlplane/apiserver"
	kubeopenapi "k8s.io/kubernetes/pkg/generated/openapi"
	metricsinstall "k8s.io/metrics/pkg/apis/metrics/install"
	metricsv1beta1 "k8s.io/metrics/pkg/apis/metrics/v1beta1"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/generated/openapi"
)

// config is what the chain is made from: the stock server's three parts, changed where Manifold differs.
type config struct {
	aggregator    *aggregatorapiserver.Config
	kube          *controlplane.Config
	apiExtensions *apiextensionsapiserver.Config
	// informers are the ones of the server itself. Manifold's controllers share them.
	informers  clientgoinformers.SharedInformerFactory
	identities *identities
	// guard is to be told who knows what clusters may write.
	guard *mirrorGuard
	// callers is to be told who knows which pods call the API.
	callers *podCallers
	// askers is to be told who knows of which pods clusters may ask.
	askers *podAskers
}

// newConfig configures the chain. What it asks of net, it asks once the server serves.
func newConfig(opts kubeoptions.CompletedOptions, net *network, admission *podAdmission) (*config, error) {
	resources := controlplane.DefaultAPIResourceConfigSource()
	resources.EnableVersions(v1alpha1.SchemeGroupVersion, metricsv1beta1.SchemeGroupVersion)
	informerName, err := cache.NewInformerName("manifold")
	if err != nil {
		return nil, err
	}

	generic, informers, storageFactory, err := controlplaneapiserver.BuildGenericConfig(
		opts.CompletedOptions,
		[]*runtime.Scheme{legacyscheme.Scheme, apiextensionsapiserver.Scheme, aggregatorscheme.Scheme},
		resources,
		openAPIDefinitions,
		informerName,
	)
	if err != nil {
		return nil, fmt.Errorf("configure the API server: %w", err)
	}
	storeAsJSON(storageFactory, v1alpha1.GroupName)
	refuseNodeCommands(generic)
	identities, err := addIdentities(generic)
	if err != nil {
		return nil, err
	}

	callers := addPodTokens(generic, informers, net)
	askers := answerClusters(generic, informers, admission)

	kube, serviceResolver, initializers, err := configureBuiltIn(opts, generic, informers, storageFactory, net)
	if err != nil {
		return nil, fmt.Errorf("configure the built-in APIs: %w", err)
	}
	guard := &mirrorGuard{}
	kube.ControlPlane.Generic.AdmissionControl = exemptMirrors{kube.ControlPlane.Generic.AdmissionControl, guard}

	cp := kube.ControlPlane
	apiExtensions, err := controlplaneapiserver.CreateAPIExtensionsConfig(*cp.Generic, cp.VersionedInformers, initializers, opts.CompletedOptions,
		opts.MasterCount, serviceResolver,
		webhook.NewDefaultAuthenticationInfoResolverWrapper(cp.ProxyTransport, cp.Generic.EgressSelector, cp.Generic.LoopbackClientConfig, cp.Generic.TracerProvider))
	if err != nil {
		return nil, fmt.Errorf("configure custom resources: %w", err)
	}
	aggregator, err := controlplaneapiserver.CreateAggregatorConfig(*cp.Generic, opts.CompletedOptions, cp.VersionedInformers, serviceResolver,
		cp.ProxyTransport, cp.Extra.PeerProxy, initializers)
	if err != nil {
		return nil, fmt.Errorf("configure API aggregation: %w", err)
	}
	return &config{aggregator: aggregator, kube: kube, apiExtensions: apiExtensions, informers: informers, identities: identities, guard: guard,
		callers: callers, askers: askers}, nil
}

// installKinds makes the kinds known that the stock server does not serve itself.
func installKinds() error {
	if err := v1alpha1.Install(legacyscheme.Scheme); err != nil {
		return fmt.Errorf("install group %s: %w", v1alpha1.GroupName, err)
	}
	metricsinstall.Install(legacyscheme.Scheme)
	return nil
}

func openAPIDefinitions(ref openapicommon.ReferenceCallback) map[string]openapicommon.OpenAPIDefinition {
	definitions := kubeopenapi.GetOpenAPIDefinitions(ref)
	for name, definition := range openapi.GetOpenAPIDefinitions(ref) {
		if _, builtIn := definitions[name]; !builtIn {
			definitions[name] = definition
		}
	}
	return definitions
}

// storeAsJSON keeps a group out of the default storage encoding, protobuf, which only the built-in types have.
func storeAsJSON(factory *serverstorage.DefaultStorageFactory, group string) {
	factory.SetSerializer(schema.GroupResource{Group: group, Resource: serverstorage.AllResources}, runtime.ContentTypeJSON, legacyscheme.Codecs)
}

func firstOf(list string) string {
	first, _, _ := strings.Cut(list, ",")
	return first
}
