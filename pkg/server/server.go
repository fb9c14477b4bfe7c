package server

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"

	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/healthz"
	"k8s.io/client-go/tools/cache"
	"k8s.io/component-base/version"
	"k8s.io/klog/v2"
	aggregatorapiserver "k8s.io/kube-aggregator/pkg/apiserver"
	"k8s.io/utils/clock"

	"golang.org/x/sync/errgroup"

	"github.com/manifold-dev/manifold/pkg/clusters"
	"github.com/manifold-dev/manifold/pkg/server/specs"
	"github.com/manifold-dev/manifold/pkg/server/storage"
	storageviews "github.com/manifold-dev/manifold/pkg/server/storage/views"
)

// Run serves the logical cluster until ctx ends. Then the controllers end, whose watches would keep the server from draining, the server
// drains its requests, and etcd ends last. Started is called when the server listens.
func Run(ctx context.Context, c CompletedOptions, started func()) error {
	defer c.Close()
	ctx = klog.NewContext(ctx, klog.FromContext(ctx).WithValues("logicalCluster", c.name))
	klog.FromContext(ctx).Info("Starting", "version", version.Get().GitVersion, "dataDir", c.dir.path)
	if c.advertised.Loopback() {
		klog.FromContext(ctx).Info("Pods that call the API are told an address that only this host reaches: give another one by --advertise-url",
			"host", c.advertised.Host, "port", c.advertised.Port)
	}
	s, err := newServer(c)
	if err != nil {
		return err
	}
	prepared, err := s.chain.PrepareRun()
	if err != nil {
		return fmt.Errorf("prepare the API server: %w", err)
	}
	writeAdmin := func() error {
		return c.pki.WriteAdminKubeconfig(c.AdminKubeconfig(), c.kube.SecureServing.BindAddress, s.port)
	}
	if err := writeAdmin(); err != nil {
		return err
	}

	// etcd outlives ctx: requests that drain need it.
	etcdCtx, stopEtcd := context.WithCancel(context.WithoutCancel(ctx))
	var etcdGroup errgroup.Group
	if c.embeddedEtcd != nil {
		etcdGroup.Go(func() error { return c.embeddedEtcd.Run(etcdCtx) })
	}
	serving, servingCtx := errgroup.WithContext(ctx)
	serving.Go(func() error { return prepared.Run(servingCtx) })
	serving.Go(func() error {
		select {
		case <-s.started:
		case <-servingCtx.Done():
			return nil
		}
		return s.controllers.run(servingCtx, func() { s.ready.Store(true) })
	})
	serving.Go(func() error {
		select {
		case <-s.started:
			started()
		case <-servingCtx.Done():
		}
		return nil
	})
	serving.Go(func() error { return c.pki.KeepCurrent(servingCtx, clock.RealClock{}, c.names, writeAdmin) })
	err = serving.Wait()
	stopEtcd()
	return errors.Join(err, etcdGroup.Wait())
}

type server struct {
	chain       *aggregatorapiserver.APIAggregator
	controllers *controllers
	port        int
	// started is closed when the server serves; ready is set when the controllers know what there is.
	started chan struct{}
	ready   atomic.Bool
}

func newServer(c CompletedOptions) (*server, error) {
	registry := clusters.NewRegistry()
	generic, err := newGenericConfig(c.name, c.kube)
	if err != nil {
		return nil, err
	}
	_, port, err := generic.SecureServing.HostPort()
	if err != nil {
		return nil, fmt.Errorf("address that is served: %w", err)
	}
	s := &server{port: port, started: make(chan struct{})}
	if s.controllers, err = newControllers(generic, registry, c); err != nil {
		return nil, fmt.Errorf("make the controllers: %w", err)
	}
	c.joined.lister = s.controllers.joined
	c.governing.Follow(s.controllers.own.Delivery().V1alpha1().Applications())
	viewed := storageviews.New(s.controllers.projected, s.controllers.authorizer)
	if err := generic.serveViews(s.controllers, viewed); err != nil {
		return nil, err
	}
	net := &network{registry: registry, listed: s.controllers.joined}
	generic.admitClusters(net, s.controllers.upstream, c.podAdmission)
	generic.hearPushes(s.controllers.pushes)
	document := generic.noteSpecs()
	config, err := newConfig(c.kube, generic, net, s.controllers.upstream)
	if err != nil {
		return nil, err
	}
	unstored, err := s.controllers.unstored(generic.Authorization.Authorizer)
	if err != nil {
		return nil, err
	}
	chain, definitions, err := newChain(config, storage.Options{
		Connections: connections{registry, net.listed}, Placer: s.controllers.engine, Fleets: s.controllers.upstream.Fleets, Viewed: viewed,
	}, s.controllers.metrics(), ownKinds{unstored: unstored, written: c.governing.Await})
	if err != nil {
		return nil, err
	}
	s.chain = chain
	s.controllers.custom.Define(definitions)
	s.controllers.clusterScoped.Define(definitions.Informer())
	s.controllers.pipelines.Define(definitions.Informer())
	return s, s.addHooks(document, definitions.Informer())
}

func (s *server) addHooks(document *specs.Document, definitions cache.SharedInformer) error {
	generic := s.chain.GenericAPIServer
	err := generic.AddPostStartHook("start-manifold-controllers", func(genericapiserver.PostStartHookContext) error {
		close(s.started)
		return nil
	})
	if err != nil {
		return err
	}
	err = generic.AddPostStartHook("renew-openapi-document", func(ctx genericapiserver.PostStartHookContext) error {
		go document.Follow(ctx, definitions)
		return nil
	})
	if err != nil {
		return err
	}
	return generic.AddReadyzChecks(healthz.NamedCheck("manifold-controllers", func(*http.Request) error {
		if !s.ready.Load() {
			return errors.New("the controllers have not read the logical cluster yet")
		}
		return nil
	}))
}
