package server

import (
	"fmt"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	crdinformers "k8s.io/apiextensions-apiserver/pkg/client/informers/externalversions/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	genericapifilters "k8s.io/apiserver/pkg/endpoints/filters"
	"k8s.io/apiserver/pkg/registry/rest"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/util/notfoundhandler"
	"k8s.io/client-go/kubernetes"
	aggregatorapiserver "k8s.io/kube-aggregator/pkg/apiserver"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	"k8s.io/kubernetes/pkg/controlplane"
	controlplaneapiserver "k8s.io/kubernetes/pkg/controlplane/apiserver"
	"k8s.io/kubernetes/pkg/controlplane/controller/defaultservicecidr"
	"k8s.io/kubernetes/pkg/controlplane/controller/kubernetesservice"
	metricsv1beta1 "k8s.io/metrics/pkg/apis/metrics/v1beta1"

	delivery "github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	manifold "github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	deliveryregistry "github.com/manifold-dev/manifold/pkg/registry/delivery"
	"github.com/manifold-dev/manifold/pkg/registry/group"
	manifoldregistry "github.com/manifold-dev/manifold/pkg/registry/manifold"
	"github.com/manifold-dev/manifold/pkg/registry/metrics"
	"github.com/manifold-dev/manifold/pkg/server/bootstrap"
	"github.com/manifold-dev/manifold/pkg/server/specs"
	"github.com/manifold-dev/manifold/pkg/server/storage"
)

// newChain makes the servers and chains them: aggregation, then the built-in kinds and Manifold's, then custom resources. It follows
// CreateServerChain of kube-apiserver and New of its control plane, which offer no place to change storage. It also returns the server's informer of definitions of custom resources.
func newChain(c *config, o storage.Options, m metrics.Sources, own ownKinds,
) (*aggregatorapiserver.APIAggregator, crdinformers.CustomResourceDefinitionInformer, error) {
	kube := c.kube.Complete()
	notFound := notfoundhandler.New(kube.ControlPlane.Generic.Serializer, genericapifilters.NoMuxAndDiscoveryIncompleteKey)
	extensions, err := c.apiExtensions.Complete().New(genericapiserver.NewEmptyDelegateWithCustomHandler(notFound))
	if err != nil {
		return nil, nil, fmt.Errorf("make the server of custom resources: %w", err)
	}
	crdsServed := c.apiExtensions.GenericConfig.MergedResourceConfig.ResourceEnabled(
		apiextensionsv1.SchemeGroupVersion.WithResource("customresourcedefinitions"))

	definitions, generic := extensions.Informers.Apiextensions().V1().CustomResourceDefinitions(), c.apiExtensions.GenericConfig
	specs.InstallCustom(extensions.GenericAPIServer, definitions.Lister(), generic.OpenAPIConfig, generic.OpenAPIV3Config)
	native, err := newNative(kube, extensions.GenericAPIServer, o, m, own)
	if err != nil {
		return nil, nil, err
	}
	aggregator, err := controlplaneapiserver.CreateAggregatorServer(c.aggregator.Complete(), native.GenericAPIServer,
		definitions, crdsServed, groupPriorities())
	if err != nil {
		return nil, nil, fmt.Errorf("make the aggregating server: %w", err)
	}
	if groups := c.aggregator.GenericConfig.AggregatedDiscoveryGroupManager; groups != nil {
		groups.SetGroupVersionPriority(metav1.GroupVersion(metricsv1beta1.SchemeGroupVersion), bootstrap.MetricsGroupPriority, bootstrap.MetricsVersionPriority)
	}
	return aggregator, definitions, nil
}

// ownKinds is what the kinds of delivery are served with.
type ownKinds struct {
	// unstored is what the group serves besides, and written is called before who has written an Application is answered.
	unstored map[string]rest.Storage
	written  func(runtime.Object)
}

// newNative makes the server of the built-in kinds, of Manifold's and of the clusters' metrics.
func newNative(
	kube controlplane.CompletedConfig, delegate genericapiserver.DelegationTarget, o storage.Options, m metrics.Sources, own ownKinds,
) (*controlplaneapiserver.Server, error) {
	server, err := kube.ControlPlane.New(controlplaneapiserver.KubeAPIServer, delegate)
	if err != nil {
		return nil, fmt.Errorf("make the server of built-in kinds: %w", err)
	}
	client, err := kubernetes.NewForConfig(kube.ControlPlane.Generic.LoopbackClientConfig)
	if err != nil {
		return nil, err
	}
	providers, err := kube.StorageProviders(client)
	if err != nil {
		return nil, fmt.Errorf("make the storage of built-in kinds: %w", err)
	}
	o.Authorizer = kube.ControlPlane.Generic.Authorization.Authorizer
	o.Budgets = client.PolicyV1()
	informers := kube.ControlPlane.Extra.VersionedInformers
	o.Endpoints, o.Pods = informers.Discovery().V1().EndpointSlices().Lister(), informers.Core().V1().Pods().Lister()
	o.Identity = identityFrom(informers)
	providers = storage.Change(providers, o)
	delivered := deliveryregistry.Group(legacyscheme.Scheme, own.written)
	delivered.Unstored = own.unstored
	for _, of := range []group.Group{manifoldregistry.Group(legacyscheme.Scheme), delivered} {
		providers = append(providers, group.RESTStorageProvider{
			Group: of, Scheme: legacyscheme.Scheme, Codecs: legacyscheme.Codecs, ParameterCodec: legacyscheme.ParameterCodec,
		})
	}
	providers = append(providers,
		metrics.RESTStorageProvider{
			Scheme: legacyscheme.Scheme, Codecs: legacyscheme.Codecs, ParameterCodec: legacyscheme.ParameterCodec, Sources: m,
		})
	if err := server.InstallAPIs(providers...); err != nil {
		return nil, fmt.Errorf("install the APIs: %w", err)
	}
	if err := specs.Install(server.GenericAPIServer, kube.ControlPlane.Generic.OpenAPIConfig, kube.ControlPlane.Generic.OpenAPIV3Config); err != nil {
		return nil, fmt.Errorf("serve the OpenAPI documents: %w", err)
	}
	return server, addServiceHooks(kube, server, client)
}

// addServiceHooks adds what keeps the Service "kubernetes" and the default ServiceCIDR, without which no Service gets an address.
func addServiceHooks(kube controlplane.CompletedConfig, server *controlplaneapiserver.Server, client kubernetes.Interface) error {
	_, port, err := kube.ControlPlane.Generic.SecureServing.HostPort()
	if err != nil {
		return fmt.Errorf("address that is served: %w", err)
	}
	services := kubernetesservice.New(kubernetesservice.Config{
		PublicIP:                  kube.ControlPlane.Generic.PublicAddress,
		EndpointReconciler:        kube.Extra.EndpointReconcilerConfig.Reconciler,
		EndpointInterval:          kube.Extra.EndpointReconcilerConfig.Interval,
		ServiceIP:                 kube.Extra.APIServerServiceIP,
		ServicePort:               kube.Extra.APIServerServicePort,
		PublicServicePort:         port,
		KubernetesServiceNodePort: kube.Extra.KubernetesServiceNodePort,
	}, client, kube.ControlPlane.Extra.VersionedInformers.Core().V1().Services())

	generic := server.GenericAPIServer
	if err := generic.AddPostStartHook("bootstrap-controller", func(ctx genericapiserver.PostStartHookContext) error {
		services.Start(ctx.Done())
		return nil
	}); err != nil {
		return err
	}
	if err := generic.AddPreShutdownHook("stop-kubernetes-service-controller", func() error {
		services.Stop()
		return nil
	}); err != nil {
		return err
	}
	return generic.AddPostStartHook("start-kubernetes-service-cidr-controller", func(ctx genericapiserver.PostStartHookContext) error {
		defaultservicecidr.NewController(kube.Extra.ServiceIPRange, kube.Extra.SecondaryServiceIPRange, client).Start(ctx)
		return bootstrap.WidenServiceRanges(ctx, client.NetworkingV1().ServiceCIDRs(), kube.Extra.ServiceIPRange, kube.Extra.SecondaryServiceIPRange)
	})
}

// groupPriorities orders the groups in discovery as kube-apiserver does; kubectl resolves short names by it. The list there is private.
// What is in it is registered at every start, and the server is not ready before it answers. Metrics are not in it, see registerMetrics.
func groupPriorities() map[schema.GroupVersion]controlplaneapiserver.APIServicePriority {
	priorities := controlplaneapiserver.DefaultGenericAPIServicePriorities()
	for _, g := range []struct {
		group    string
		priority int32
		versions map[string]int32
	}{
		{"", 18000, map[string]int32{"v1": 1}},
		{"apps", 17800, map[string]int32{"v1": 15}},
		{"autoscaling", 17500, map[string]int32{"v1": 15, "v2": 30}},
		{"batch", 17400, map[string]int32{"v1": 15}},
		{"networking.k8s.io", 17200, map[string]int32{"v1": 15, "v1beta1": 9}},
		{"policy", 17100, map[string]int32{"v1": 15}},
		{"storage.k8s.io", 16800, map[string]int32{"v1": 15, "v1beta1": 9, "v1alpha1": 1}},
		{"scheduling.k8s.io", 16600, map[string]int32{"v1": 15, "v1beta1": 9, "v1alpha3": 3}},
		{"node.k8s.io", 16300, map[string]int32{"v1": 15}},
		{"resource.k8s.io", 16200, map[string]int32{"v1": 21, "v1beta2": 15, "v1beta1": 9, "v1alpha3": 1}},
		{"lifecycle.k8s.io", 15700, map[string]int32{"v1alpha1": 1}},
		{manifold.GroupName, 15000, map[string]int32{"v1alpha1": 1}},
		{delivery.GroupName, 14900, map[string]int32{"v1alpha1": 1}},
	} {
		for version, priority := range g.versions {
			priorities[schema.GroupVersion{Group: g.group, Version: version}] = controlplaneapiserver.APIServicePriority{Group: g.priority, Version: priority}
		}
	}
	return priorities
}
