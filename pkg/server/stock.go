package server

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/record"
	"k8s.io/kubernetes/cmd/kube-controller-manager/app"
	controllerconfig "k8s.io/kubernetes/cmd/kube-controller-manager/app/config"
	controlleroptions "k8s.io/kubernetes/cmd/kube-controller-manager/app/options"
	"k8s.io/kubernetes/cmd/kube-controller-manager/names"
)

// stockControllers are the controllers of Kubernetes that make a control plane complete. Those that run pods are missing: they run in
// the clusters.
var stockControllers = []string{
	names.ServiceAccountTokenController,
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
	names.CertificateSigningRequestApprovingController,
	names.CertificateSigningRequestSigningController,
	names.CertificateSigningRequestCleanerController,
	names.ValidatingAdmissionPolicyStatusController,
	names.ServiceCIDRController,
}

// runStockControllers runs them against the API at config until ctx ends.
func runStockControllers(ctx context.Context, config *rest.Config, p pki) error {
	completed, err := stockControllerConfig(ctx, config, p)
	if err != nil {
		return fmt.Errorf("configure the stock controllers: %w", err)
	}
	if err := app.Run(ctx, completed); err != nil && ctx.Err() == nil {
		return fmt.Errorf("stock controllers: %w", err)
	}
	return nil
}

func stockControllerConfig(ctx context.Context, config *rest.Config, p pki) (*controllerconfig.CompletedConfig, error) {
	opts, err := controlleroptions.NewKubeControllerManagerOptions()
	if err != nil {
		return nil, err
	}
	opts.Generic.Controllers = stockControllers
	opts.Generic.LeaderElection.LeaderElect = false
	opts.Generic.ClientConnection.QPS = -1
	opts.SAController.ServiceAccountKeyFile = p.key(serviceAccountKey)
	opts.SAController.RootCAFile = p.cert(authority)
	opts.CSRSigningController.ClusterSigningCertFile = p.cert(authority)
	opts.CSRSigningController.ClusterSigningKeyFile = p.key(authority)
	// The controllers live in the API server's process, which serves for them and has checked who may reach it.
	opts.SecureServing.BindPort = 0

	config = rest.AddUserAgent(rest.CopyConfig(config), "kube-controller-manager")
	config.QPS = -1
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	broadcaster := record.NewBroadcaster(record.WithContext(ctx))
	c := &controllerconfig.Config{
		Client:                    client,
		Kubeconfig:                config,
		EventBroadcaster:          broadcaster,
		EventRecorder:             broadcaster.NewRecorder(scheme.Scheme, corev1.EventSource{Component: "kube-controller-manager"}),
		ControllerShutdownTimeout: 10 * time.Second,
		ComponentGlobalsRegistry:  opts.ComponentGlobalsRegistry,
	}
	if err := opts.ApplyTo(c, app.KnownControllers(), app.ControllersDisabledByDefault(), app.ControllerAliases()); err != nil {
		return nil, err
	}
	return c.Complete(), nil
}
