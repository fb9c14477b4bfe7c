package traffic

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/generated/clientset/versioned"
	"github.com/manifold-dev/manifold/hack/stock"
	"github.com/manifold-dev/manifold/hack/stock/datapath"
	"github.com/manifold-dev/manifold/hack/stock/datapath/gateway"
	"github.com/manifold-dev/manifold/hack/stock/logical"
)

// The clusters, and the name that the logical cluster has as a member of the network.
const (
	east  = "east"
	west  = "west"
	above = "logical"
)

// site is what all scenarios share.
type site struct {
	options  Options
	clusters []*stock.Cluster
	server   *logical.Server
	client   kubernetes.Interface
	manifold versioned.Interface
	network  *datapath.Network
	gateways []*gateway.Gateway
	shared   bool
}

const (
	// gracePeriod is how long a cluster may be silent before it counts as unreachable, and toleration how long its workloads stay then. Less than by
	// default, so that nobody waits for it.
	gracePeriod = 8 * time.Second
	toleration  = 30 * time.Second
)

func newSite(ctx context.Context, o Options) (_ *site, err error) {
	s := &site{options: o}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.stop())
		}
	}()
	var all []stock.Options
	for _, name := range []string{east, west} {
		all = append(all, stock.Options{Name: name, Dir: filepath.Join(o.Dir, name), BinDir: o.BinDir, Servers: true, Progress: o.Progress})
	}
	if s.clusters, err = stock.StartAll(ctx, all...); err != nil {
		return nil, err
	}
	dir := filepath.Join(o.Dir, "manifold")
	if err := os.RemoveAll(dir); err != nil {
		return nil, fmt.Errorf("remove the data of an earlier run: %w", err)
	}
	if s.server, err = logical.Start(ctx, logical.Options{Binary: o.Manifold, Dir: dir, Args: []string{
		"--cluster-grace-period=" + gracePeriod.String(), "--cluster-toleration=" + toleration.String(),
	}}); err != nil {
		return nil, err
	}
	config, err := s.server.RESTConfig()
	if err != nil {
		return nil, err
	}
	if s.client, err = kubernetes.NewForConfig(config); err != nil {
		return nil, err
	}
	if s.manifold, err = versioned.NewForConfig(config); err != nil {
		return nil, err
	}
	joinArgs, err := s.defineRoutes(ctx)
	if err != nil {
		return nil, err
	}
	members := []datapath.Member{{Name: above, Client: s.client}}
	for _, c := range s.clusters {
		fmt.Fprintf(o.Progress, "bench: join cluster %s\n", c.Name())
		if err := s.server.Join(ctx, c, joinArgs...); err != nil {
			return nil, err
		}
		members = append(members, datapath.Of(c))
	}
	if s.shared, err = shareNetwork(ctx, config, east, west); err != nil {
		return nil, err
	}
	if s.network, err = datapath.Start(ctx, datapath.Options{Members: members}); err != nil {
		return nil, err
	}
	return s, s.startGateways(ctx)
}

// shareNetwork says of the clusters that they are in one network, and reports whether this Manifold knows what that is.
func shareNetwork(ctx context.Context, config *rest.Config, names ...string) (shared bool, err error) {
	config = rest.CopyConfig(config)
	config.WarningHandler = rest.NoWarnings{} // of a field that is not known yet
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return false, err
	}
	patch := []byte(`{"spec":{"network":"flat"}}`)
	shared = true
	for _, name := range names {
		cluster, err := client.Resource(v1alpha1.SchemeGroupVersion.WithResource("clusters")).Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{})
		if err != nil {
			return false, fmt.Errorf("name the network of cluster %q: %w", name, err)
		}
		network, _, err := unstructured.NestedString(cluster.Object, "spec", "network")
		if err != nil {
			return false, fmt.Errorf("read the network of cluster %q: %w", name, err)
		}
		shared = shared && network != ""
	}
	return shared, nil
}

func (s *site) cluster(name string) *stock.Cluster {
	for _, c := range s.clusters {
		if c.Name() == name {
			return c
		}
	}
	return nil
}

func (s *site) stop() error {
	var errs []error
	for _, g := range s.gateways {
		errs = append(errs, g.Stop())
	}
	if s.network != nil {
		s.network.Stop()
	}
	if s.server != nil {
		errs = append(errs, s.server.Stop())
	}
	return errors.Join(append(errs, stock.StopAll(s.clusters))...)
}
