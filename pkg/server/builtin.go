package server

import (
	"fmt"
	"net/url"

	"k8s.io/apiserver/pkg/admission"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/egressselector"
	serverstorage "k8s.io/apiserver/pkg/server/storage"
	"k8s.io/apiserver/pkg/util/proxy"
	"k8s.io/apiserver/pkg/util/webhook"
	clientgoinformers "k8s.io/client-go/informers"
	aggregatorapiserver "k8s.io/kube-aggregator/pkg/apiserver"
	kubeoptions "k8s.io/kubernetes/cmd/kube-apiserver/app/options"
	"k8s.io/kubernetes/pkg/capabilities"
	"k8s.io/kubernetes/pkg/controlplane"
	controlplaneapiserver "k8s.io/kubernetes/pkg/controlplane/apiserver"
	"k8s.io/kubernetes/pkg/controlplane/reconcilers"
	kubeapiserveradmission "k8s.io/kubernetes/pkg/kubeapiserver/admission"
)

// configureBuiltIn configures the server of the built-in kinds. It follows CreateKubeAPIServerConfig of kube-apiserver, which has no place
// for another way to Services. It also returns that way, and what initialises admission plugins.
func configureBuiltIn(opts kubeoptions.CompletedOptions, generic *genericapiserver.Config, informers clientgoinformers.SharedInformerFactory,
	storageFactory *serverstorage.DefaultStorageFactory, net *network,
) (*controlplane.Config, webhook.ServiceResolver, []admission.PluginInitializer, error) {
	capabilities.Setup(opts.AllowPrivileged, opts.MaxConnectionBytesPerSec)
	slices, err := proxy.NewEndpointSliceIndexerGetter(informers.Discovery().V1().EndpointSlices())
	if err != nil {
		return nil, nil, nil, fmt.Errorf("index the EndpointSlices: %w", err)
	}
	// Who selects a way out for the network of the cluster has one that is not ours.
	reaches := generic.EgressSelector == nil
	services := stockResolver(opts, informers, slices)
	if reaches {
		services = net.resolver(informers, slices, services)
	}
	if local, err := url.Parse(generic.LoopbackClientConfig.Host); err == nil {
		services = aggregatorapiserver.NewLoopbackServiceResolver(services, local)
	}
	stock, err := (&kubeapiserveradmission.Config{}).New()
	if err != nil {
		return nil, nil, nil, fmt.Errorf("initialise admission: %w", err)
	}
	cp, initializers, err := controlplaneapiserver.CreateConfig(opts.CompletedOptions, generic, informers, slices, storageFactory, services, stock)
	if err != nil {
		return nil, nil, nil, err
	}
	if reaches {
		net.dialBy(cp.ProxyTransport, informers)
	}
	kube := &controlplane.Config{ControlPlane: *cp, Extra: extraOf(opts)}
	return kube, services, initializers, useEgress(kube)
}

// stockResolver resolves Services as kube-apiserver does.
func stockResolver(opts kubeoptions.CompletedOptions, informers clientgoinformers.SharedInformerFactory, slices proxy.EndpointSliceGetter,
) webhook.ServiceResolver {
	services := informers.Core().V1().Services().Lister()
	if opts.EnableAggregatorRouting {
		return aggregatorapiserver.NewEndpointServiceResolver(services, slices)
	}
	return aggregatorapiserver.NewClusterIPServiceResolver(services)
}

func extraOf(opts kubeoptions.CompletedOptions) controlplane.Extra {
	return controlplane.Extra{
		KubeletClientConfig:       opts.KubeletConfig,
		ServiceIPRange:            opts.PrimaryServiceClusterIPRange,
		APIServerServiceIP:        opts.APIServerServiceIP,
		SecondaryServiceIPRange:   opts.SecondaryServiceClusterIPRange,
		APIServerServicePort:      443,
		ServiceNodePortRange:      opts.ServiceNodePortRange,
		KubernetesServiceNodePort: opts.KubernetesServiceNodePort,
		EndpointReconcilerType:    reconcilers.Type(opts.EndpointReconcilerType),
		MasterCount:               opts.MasterCount,
	}
}

// useEgress has the server take the way out that the flags select, if they do.
func useEgress(kube *controlplane.Config) error {
	egress := kube.ControlPlane.Generic.EgressSelector
	if egress == nil {
		return nil
	}
	kube.Extra.KubeletClientConfig.Lookup = egress.Lookup
	dial, err := egress.Lookup(egressselector.Cluster.AsNetworkContext())
	if err != nil {
		return err
	}
	transport := kube.ControlPlane.ProxyTransport.Clone()
	transport.DialContext = dial
	kube.ControlPlane.ProxyTransport = transport
	return nil
}
