// Package services answers the calls of plugins: it keeps what they ask to be kept, tells what they say of stages, and what people ask of these.
//
// Each plugin has an address of its own, on the loopback interface, so that who calls is known, and only processes of the plugin's own user are answered
// there. A plugin reads and writes what is of stages that it runs, of releases and applications that it takes part in, and what it has kept itself, and
// nothing else: what a request names is compared with what was planned. All that is kept is in objects.
package services

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"golang.org/x/net/netutil"
	"golang.org/x/time/rate"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/generated/clientset/versioned"
	"github.com/manifold-dev/manifold/generated/informers/externalversions"
	"github.com/manifold-dev/manifold/pkg/delivery/logs"
	"github.com/manifold-dev/manifold/pkg/delivery/plugins/calls"
	"github.com/manifold-dev/manifold/pkg/delivery/plugins/wire"
	"github.com/manifold-dev/manifold/pkg/delivery/plugins/wire/pipedservice"
)

const (
	// often is how many calls a second a plugin may make, and atOnce how many after it has been quiet. Others wait.
	often, atOnce = 50, 200
	// connections is how many a plugin may have, which needs one, and streams how many calls of each are answered at a time: what is read of a request counts
	// from when it begins to come.
	connections, streams = 4, 16
	// mostBytes bounds a request.
	mostBytes = 4 << 20
	// leaveWithin is how long calls have to end when the server does.
	leaveWithin = 5 * time.Second
)

// Calls knows which stages plugins run now.
type Calls interface {
	// InFlight returns the call for a stage of a release, if there is one. Without a stage it is any of the release.
	InFlight(release types.UID, stage string) (calls.InFlight, bool)
}

// Logs tells what plugins say of stages.
type Logs interface {
	Append(ctx context.Context, release *v1alpha1.Release, said logs.Said) error
}

// Options say what a Server works with.
type Options struct {
	Informers externalversions.SharedInformerFactory
	// Client keeps records.
	Client versioned.Interface
	Calls  Calls
	Logs   Logs
	Tools  Tools
	// User returns as whom a plugin runs; nobody else is answered at its address. It may be nil, and a plugin may have no user of its own: then the plugin
	// runs as this process does.
	User func(plugin string) (uid uint32, known bool)
	// Called returns how a plugin knows itself, which it says where it names itself. It may be nil: then that is the name.
	Called func(plugin string) string
	// Clock is for tests; the zero value is the real one.
	Clock clock.PassiveClock
}

// Server answers plugins.
type Server struct {
	Options
	releases, applications cache.Indexer
	synced                 []cache.InformerSynced

	mu      sync.Mutex
	ended   bool
	running map[string]*running
	group   sync.WaitGroup
}

// running is the server of one plugin.
type running struct {
	*grpc.Server
	address string
}

// byUID indexes objects by their UIDs.
const byUID = "delivery.manifold.dev/uid"

// New registers with the informers, which the caller starts afterwards.
func New(o Options) (*Server, error) {
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	if o.Called == nil {
		o.Called = func(plugin string) string { return plugin }
	}
	s := &Server{Options: o, running: map[string]*running{}}
	ours := o.Informers.Delivery().V1alpha1()
	for _, of := range []struct {
		informer cache.SharedIndexInformer
		indexer  *cache.Indexer
	}{{ours.Releases().Informer(), &s.releases}, {ours.Applications().Informer(), &s.applications}} {
		if err := of.informer.AddIndexers(cache.Indexers{byUID: uidOf}); err != nil {
			return nil, fmt.Errorf("index what plugins ask for: %w", err)
		}
		*of.indexer, s.synced = of.informer.GetIndexer(), append(s.synced, of.informer.HasSynced)
	}
	return s, nil
}

func uidOf(obj any) ([]string, error) {
	object, is := obj.(interface{ GetUID() types.UID })
	if !is || object.GetUID() == "" {
		return nil, nil
	}
	return []string{string(object.GetUID())}, nil
}

// errEnded says that the server answers nobody any more.
var errEnded = errors.New("the server ends")

// Address returns where a plugin is answered, and answers there from then on. It is the same one as long as the server runs.
func (s *Server) Address(plugin string) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		return "", errEnded
	}
	if r := s.running[plugin]; r != nil {
		return r.address, nil
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("listen for plugin %q: %w", plugin, err)
	}
	one := &service{Server: s, plugin: plugin, pace: rate.NewLimiter(often, atOnce), installing: make(chan struct{}, 1)}
	r := &running{address: listener.Addr().String(), Server: grpc.NewServer(
		grpc.MaxRecvMsgSize(mostBytes), grpc.MaxConcurrentStreams(streams), grpc.ForceServerCodecV2(wire.Codec()), grpc.UnaryInterceptor(one.intercept),
	)}
	pipedservice.RegisterPluginServiceServer(r.Server, one)
	s.running[plugin] = r
	s.group.Go(func() {
		own := guarded{listener, s.User, plugin, &rate.Sometimes{First: 1, Interval: time.Minute}}
		if err := r.Serve(netutil.LimitListener(own, connections)); err != nil && !errors.Is(err, grpc.ErrServerStopped) {
			klog.Background().Error(err, "Calls of a plugin are answered no more; it is when it is started again", "plugin", plugin)
			s.forget(plugin, r)
		}
	})
	return r.address, nil
}

func (s *Server) forget(plugin string, r *running) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.running[plugin] == r {
		delete(s.running, plugin)
	}
}

// Close answers a plugin no more, which is gone.
func (s *Server) Close(plugin string) {
	s.mu.Lock()
	r := s.running[plugin]
	delete(s.running, plugin)
	s.mu.Unlock()
	if r != nil {
		r.Stop()
	}
}

// Run answers until ctx ends, and returns when no call is left.
func (s *Server) Run(ctx context.Context) error {
	<-ctx.Done()
	s.mu.Lock()
	s.ended = true
	all := s.running
	s.running = map[string]*running{}
	s.mu.Unlock()
	for _, r := range all {
		hurry := time.AfterFunc(leaveWithin, r.Stop)
		r.GracefulStop()
		hurry.Stop()
	}
	s.group.Wait()
	return nil
}

// service answers one plugin.
type service struct {
	pipedservice.UnimplementedPluginServiceServer
	*Server
	plugin string
	pace   *rate.Limiter
	// installing has room for whoever installs a tool.
	installing chan struct{}
}

// intercept holds back who asks too often, and has a mistake of ours be an answer and not the end.
func (s *service) intercept(ctx context.Context, request any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (answer any, err error) {
	defer func() {
		if found := recover(); found != nil {
			klog.FromContext(ctx).Error(fmt.Errorf("panic: %v", found), "A call of a plugin cannot be answered", "plugin", s.plugin, "call", info.FullMethod)
			answer, err = nil, status.Error(codes.Internal, "this call cannot be answered")
		}
	}()
	if err := s.pace.Wait(ctx); err != nil {
		return nil, status.FromContextError(ctx.Err()).Err()
	}
	if !cache.WaitForCacheSync(ctx.Done(), s.synced...) {
		return nil, status.Error(codes.Unavailable, "the server has just started")
	}
	return handler(ctx, request)
}
