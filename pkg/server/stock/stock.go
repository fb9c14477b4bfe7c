// Package stock runs the controllers of Kubernetes that make a control plane complete, on the informers of the server itself.
package stock

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/util/keyutil"
	controllermetrics "k8s.io/component-base/metrics/prometheus/controllers"
	"k8s.io/controller-manager/pkg/clientbuilder"
	"k8s.io/controller-manager/pkg/healthz"
	"k8s.io/controller-manager/pkg/informerfactory"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/cmd/kube-controller-manager/app"
	controllerconfig "k8s.io/kubernetes/cmd/kube-controller-manager/app/config"
	controlleroptions "k8s.io/kubernetes/cmd/kube-controller-manager/app/options"
	"k8s.io/kubernetes/cmd/kube-controller-manager/names"
	"k8s.io/kubernetes/pkg/controller/garbagecollector"
	tokencontroller "k8s.io/kubernetes/pkg/controller/serviceaccount"
	"k8s.io/kubernetes/pkg/serviceaccount"
)

// stockControllers are the controllers of Kubernetes that make a control plane complete. Those that run pods are missing: they run in
// the clusters. That of ServiceAccount tokens is made apart, as in the stock program, and so is that of the statuses of policies.
var stockControllers = []string{
	names.ServiceAccountController,
	names.LegacyServiceAccountTokenCleanerController,
	names.RootCACertificatePublisherController,
	names.NamespaceController,
	names.GarbageCollectorController,
	names.ResourceQuotaController,
	names.ClusterRoleAggregationController,
	names.CronJobController,
	names.TTLAfterFinishedController,
	names.HorizontalPodAutoscalerController,
	names.DisruptionController,
	// These two let go of claims and volumes that no pod, mirrored or not, uses any more.
	names.PersistentVolumeClaimProtectionController,
	names.PersistentVolumeProtectionController,
	// It removes the pods of clusters that are gone for good: their nodes are.
	names.PodGarbageCollectorController,
	names.CertificateSigningRequestApprovingController,
	names.CertificateSigningRequestSigningController,
	names.CertificateSigningRequestCleanerController,
	names.ServiceCIDRController,
	// These two read the mirrored pods, so that a Service shows what serves it, in whichever cluster.
	names.EndpointSliceController,
	names.EndpointsController,
	// This one reads the Endpoints of Services that have no selector, which their users write.
	names.EndpointSliceMirroringController,
}

const (
	controllerManager = "kube-controller-manager"
	// mapperReset is how often the garbage collector's view of the served kinds is renewed, as in the stock program.
	mapperReset = 30 * time.Second
	// controllersShutdown bounds how long stock controllers may take to end.
	controllersShutdown = 10 * time.Second
)

// Keys names the files of the keys that stock controllers sign with.
type Keys struct {
	ServiceAccountKey string
	// Authority is a certificate, and AuthorityKey its key.
	Authority, AuthorityKey string
}

// Run runs them against the API at config until ctx ends. They share the server's informers: a second set would hold
// everything twice, and every write would be sent and decoded once more.
func Run(ctx context.Context, config *rest.Config, shared informers.SharedInformerFactory,
	metadata metadatainformer.SharedInformerFactory, k Keys,
) error {
	config = rest.CopyConfig(config)
	asStockProgram(config)
	config.QPS = -1
	config.WarningHandlerWithContext = quietWarnings{}
	held := holdInformers(ctx, shared)
	cc, err := stockContext(ctx, config, held, metadata, k)
	if err != nil {
		return fmt.Errorf("prepare the stock controllers: %w", err)
	}
	tokens, err := tokensController(ctx, cc, k)
	if err != nil {
		return fmt.Errorf("prepare the controller of ServiceAccount tokens: %w", err)
	}
	policies, err := policyStatus(cc)
	if err != nil {
		return fmt.Errorf("prepare the controller of the statuses of ValidatingAdmissionPolicies: %w", err)
	}
	known, descriptors := app.NewControllerDescriptors(), map[string]*app.ControllerDescriptor{}
	for _, name := range stockControllers {
		descriptors[name] = known[name]
	}
	all, err := app.BuildControllers(ctx, cc, descriptors, nil, healthz.NewMutableHealthzHandler())
	if err != nil {
		return fmt.Errorf("make the stock controllers: %w", err)
	}
	held.release()
	shared.StartWithContext(ctx)
	cc.ObjectOrMetadataInformerFactory.Start(ctx.Done())
	close(cc.InformersStarted)

	var wg sync.WaitGroup
	defer wg.Wait()
	wg.Go(func() {
		policies.Run(ctx, int(cc.ComponentConfig.ValidatingAdmissionPolicyStatusController.ConcurrentPolicySyncs))
	})
	wg.Go(func() { tokens.Run(ctx, int(cc.ComponentConfig.SAController.ConcurrentSATokenSyncs)) })
	if !app.RunControllers(ctx, cc, all, app.ControllerStartJitter, controllersShutdown) && ctx.Err() == nil {
		return errors.New("they ended by themselves")
	}
	return nil
}

// quietWarnings keeps what the API warns of out of the log, unless somebody looks closely: an autoscaler would be told every few seconds
// that a cluster has no metrics.
type quietWarnings struct{}

// HandleWarningHeaderWithContext implements rest.WarningHandlerWithContext.
func (quietWarnings) HandleWarningHeaderWithContext(ctx context.Context, _ int, _, text string) {
	klog.FromContext(ctx).V(2).Info("A stock controller was warned", "text", text)
}

// stockContext is what the controllers are made from: CreateControllerContext of the stock program, but over the given informers.
func stockContext(ctx context.Context, config *rest.Config, shared informers.SharedInformerFactory,
	metadataInformers metadatainformer.SharedInformerFactory, k Keys,
) (app.ControllerContext, error) {
	completed, err := stockConfig(k)
	if err != nil {
		return app.ControllerContext{}, err
	}
	builder := emptyingClients{clientbuilder.SimpleControllerClientBuilder{ClientConfig: config}}
	metadataClient, err := metadata.NewForConfig(config)
	if err != nil {
		return app.ControllerContext{}, err
	}
	discovery, err := builder.DiscoveryClient("controller-discovery")
	if err != nil {
		return app.ControllerContext{}, err
	}
	mapper := restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(discovery))
	go wait.UntilWithContext(ctx, func(context.Context) { mapper.Reset() }, mapperReset)

	cc := app.ControllerContext{
		ClientBuilder:                   builder,
		InformerFactory:                 shared,
		ObjectOrMetadataInformerFactory: informerfactory.NewInformerFactory(shared, metadataInformers),
		ComponentConfig:                 completed.ComponentConfig,
		RESTMapper:                      mapper,
		InformersStarted:                make(chan struct{}),
		ResyncPeriod:                    app.ResyncPeriod(completed),
		ControllerManagerMetrics:        controllermetrics.NewControllerManagerMetrics(controllerManager),
	}
	ignored := garbagecollector.DefaultIgnoredResources()
	cc.GraphBuilder = garbagecollector.NewDependencyGraphBuilder(ctx, metadataClient, mapper, ignored,
		cc.ObjectOrMetadataInformerFactory, cc.InformersStarted)
	controllermetrics.Register()
	klog.FromContext(ctx).V(2).Info("Stock controllers prepared", "controllers", stockControllers)
	return cc, nil
}

// stockConfig is the stock program's configuration by its own defaults, with our keys.
func stockConfig(k Keys) (*controllerconfig.CompletedConfig, error) {
	opts, err := controlleroptions.NewKubeControllerManagerOptions()
	if err != nil {
		return nil, err
	}
	opts.Generic.Controllers = stockControllers
	opts.SAController.ServiceAccountKeyFile = k.ServiceAccountKey
	opts.SAController.RootCAFile = k.Authority
	opts.CSRSigningController.ClusterSigningCertFile = k.Authority
	opts.CSRSigningController.ClusterSigningKeyFile = k.AuthorityKey
	// The controllers live in the API server's process, which serves for them and has checked who may reach it.
	opts.SecureServing.BindPort = 0
	c := &controllerconfig.Config{ComponentGlobalsRegistry: opts.ComponentGlobalsRegistry}
	if err := opts.ApplyTo(c, app.KnownControllers(), app.ControllersDisabledByDefault(), app.ControllerAliases()); err != nil {
		return nil, err
	}
	return c.Complete(), nil
}

func tokensController(ctx context.Context, cc app.ControllerContext, k Keys) (*tokencontroller.TokensController, error) {
	key, err := keyutil.PrivateKeyFromFile(k.ServiceAccountKey)
	if err != nil {
		return nil, err
	}
	generator, err := serviceaccount.JWTTokenGenerator(serviceaccount.LegacyIssuer, key)
	if err != nil {
		return nil, err
	}
	ca, err := os.ReadFile(k.Authority)
	if err != nil {
		return nil, err
	}
	client, err := cc.NewClient("tokens-controller")
	if err != nil {
		return nil, err
	}
	core := cc.InformerFactory.Core().V1()
	return tokencontroller.NewTokensController(klog.FromContext(ctx), core.ServiceAccounts(), core.Secrets(), client,
		tokencontroller.TokensControllerOptions{TokenGenerator: generator, RootCA: ca})
}
