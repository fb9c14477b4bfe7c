package server

import (
	"fmt"
	"net/http"
	"strings"

	apiextensionsapiserver "k8s.io/apiextensions-apiserver/pkg/apiserver"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	genericapiserver "k8s.io/apiserver/pkg/server"
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
	metricsv1beta1 "k8s.io/metrics/pkg/apis/metrics/v1beta1"
	"k8s.io/utils/clock"

	delivery "github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	manifold "github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/generated/openapi"
	"github.com/manifold-dev/manifold/pkg/server/identity"
	_ "github.com/manifold-dev/manifold/pkg/server/kinds" // which the scheme of the stock server is to know
	"github.com/manifold-dev/manifold/pkg/server/mirrors"
	"github.com/manifold-dev/manifold/pkg/server/podtokens"
	"github.com/manifold-dev/manifold/pkg/server/podwebhooks"
	"github.com/manifold-dev/manifold/pkg/server/pushes"
	"github.com/manifold-dev/manifold/pkg/server/specs"
	"github.com/manifold-dev/manifold/pkg/syncer"
)

// config is what the chain is made from: the stock server's three parts, changed where Manifold differs.
type config struct {
	aggregator    *aggregatorapiserver.Config
	kube          *controlplane.Config
	apiExtensions *apiextensionsapiserver.Config
}

// genericConfig is what the three parts have in common.
type genericConfig struct {
	*genericapiserver.Config
	// informers are the ones of the server itself. Manifold's controllers share them.
	informers      clientgoinformers.SharedInformerFactory
	storageFactory *serverstorage.DefaultStorageFactory
	identities     *identity.Identities
}

func newGenericConfig(name string, opts kubeoptions.CompletedOptions) (*genericConfig, error) {
	resources := controlplane.DefaultAPIResourceConfigSource()
	resources.EnableVersions(manifold.SchemeGroupVersion, delivery.SchemeGroupVersion, metricsv1beta1.SchemeGroupVersion)
	informerName, err := cache.NewInformerName("manifold-" + name)
	if err != nil {
		return nil, fmt.Errorf("name of the logical cluster: %w", err)
	}

	config, informers, storageFactory, err := controlplaneapiserver.BuildGenericConfig(
		opts.CompletedOptions,
		[]*runtime.Scheme{legacyscheme.Scheme, apiextensionsapiserver.Scheme, aggregatorscheme.Scheme},
		resources,
		openAPIDefinitions,
		informerName,
	)
	if err != nil {
		return nil, fmt.Errorf("configure the API server: %w", err)
	}
	specs.Free(config.OpenAPIConfig, config.OpenAPIV3Config)
	storeAsJSON(storageFactory, manifold.GroupName, delivery.GroupName)
	refuseNodeCommands(config)
	identities, err := identity.Add(config, name)
	if err != nil {
		return nil, err
	}
	return &genericConfig{Config: config, informers: informers, storageFactory: storageFactory, identities: identities}, nil
}

// servesMetrics reports whether the server answers for metrics.k8s.io.
func (g *genericConfig) servesMetrics() bool {
	return g.MergedResourceConfig.AnyResourceForGroupEnabled(metricsv1beta1.GroupName)
}

// admitClusters lets clusters and their pods in by ways of their own.
func (g *genericConfig) admitClusters(net *network, upstream *syncer.Upstream, webhooks *podwebhooks.Webhooks) {
	authentication := &g.Authentication
	callers := podtokens.NewCallers(identityFrom(g.informers), g.informers, upstream.Access.CallsAPI)
	authentication.Authenticator = podtokens.New(callers, net.reviewToken, authentication.APIAudiences).Before(authentication.Authenticator)

	// Clusters ask about pods before anybody logs in: they do so by a token in the path.
	askers, build := podwebhooks.NewAskers(g.informers, net.listed, upstream), g.BuildHandlerChainFunc
	g.BuildHandlerChainFunc = func(api http.Handler, c *genericapiserver.Config) http.Handler {
		return podwebhooks.New(askers, webhooks, build(api, c))
	}
}

// hearPushes lets forges announce pushes before anybody logs in: they sign what they send.
func (g *genericConfig) hearPushes(announcer *pushes.Announcer) {
	build := g.BuildHandlerChainFunc
	g.BuildHandlerChainFunc = func(api http.Handler, c *genericapiserver.Config) http.Handler {
		return pushes.New(announcer, clock.RealClock{}, build(api, c))
	}
}

// noteSpecs has the server know who asks for its OpenAPI document.
func (g *genericConfig) noteSpecs() *specs.Document {
	document, build := &specs.Document{}, g.BuildHandlerChainFunc
	g.BuildHandlerChainFunc = func(api http.Handler, c *genericapiserver.Config) http.Handler { return build(document.Wrap(api), c) }
	return document
}

// newConfig configures the chain.
func newConfig(opts kubeoptions.CompletedOptions, g *genericConfig, net *network, upstream *syncer.Upstream) (*config, error) {
	kube, serviceResolver, initializers, err := configureBuiltIn(opts, g.Config, g.informers, g.storageFactory, net)
	if err != nil {
		return nil, fmt.Errorf("configure the built-in APIs: %w", err)
	}
	kube.ControlPlane.Generic.AdmissionControl = mirrors.Exempt{
		Interface: kube.ControlPlane.Generic.AdmissionControl, Checks: upstream.Guard(mirrors.Completed),
	}

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
	// See newChain and newNative. The aggregating server has a copy of this configuration.
	cp.Generic.SkipOpenAPIInstallation, apiExtensions.GenericConfig.SkipOpenAPIInstallation = true, true
	return &config{aggregator: aggregator, kube: kube, apiExtensions: apiExtensions}, nil
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

// storeAsJSON keeps groups out of the default storage encoding, protobuf, which only the built-in types have.
func storeAsJSON(factory *serverstorage.DefaultStorageFactory, groups ...string) {
	for _, group := range groups {
		factory.SetSerializer(schema.GroupResource{Group: group, Resource: serverstorage.AllResources}, runtime.ContentTypeJSON, legacyscheme.Codecs)
	}
}

func firstOf(list string) string {
	first, _, _ := strings.Cut(list, ",")
	return first
}
