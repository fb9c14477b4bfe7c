package clusters

import (
	"errors"
	"os"
	"time"

	coreinformers "k8s.io/client-go/informers/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/clock"

	"github.com/manifold-dev/manifold/generated/clientset/versioned"
	manifoldinformers "github.com/manifold-dev/manifold/generated/informers/externalversions/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/internal/work"
	"github.com/manifold-dev/manifold/pkg/clusters/connection"
)

// Options say what a Manager works with. Fields without a note are required.
type Options struct {
	// Client and Manifold talk to the logical cluster with the rights of the server itself.
	Client   kubernetes.Interface
	Manifold versioned.Interface
	// Clusters and Nodes are shared informers of the logical cluster. New registers with them; the caller starts them after that.
	Clusters manifoldinformers.ClusterInformer
	Nodes    coreinformers.NodeInformer
	// Registry is filled with the connections. Optional.
	Registry *Registry
	// Runner is run for every connection. Optional.
	Runner connection.Runner

	// Queues are the names of the queues. Optional.
	Queues work.Names
	// Fence says why a cluster that has been silent and answers again is not to count as ready yet, or "". Optional.
	Fence func(cluster string) string

	// Requester tells whose requests are. Optional.
	Requester connection.Requester

	// ProbeInterval is the time between two probes of a cluster, and the longest that one may take. Default 10 s, or a quarter of
	// the grace period if that is less: one lost probe must not count as silence.
	ProbeInterval time.Duration
	// GracePeriod is how long a cluster may be silent before its Ready condition becomes Unknown. Default 40 s.
	GracePeriod time.Duration
	// StatusInterval is the shortest time between two writes of a cluster's status for mere numbers. Default 5 s.
	StatusInterval time.Duration
	// DiscoveryInterval is the time between two readings of a cluster's version and served kinds. Default 5 min.
	DiscoveryInterval time.Duration
	// SettleTime is how long the first Ready of a cluster waits for its capacity and kinds, so that placement does not see a
	// ready cluster without room. Default 2 s.
	SettleTime time.Duration
	// MaxObjects and MaxBytes bound what is kept of one cluster in memory. Default 0, which is any number.
	MaxObjects, MaxBytes int64
	// Identity is the holder of the Leases. Default: the host name.
	Identity string
	// UserAgent is how requests to clusters present themselves. Default "manifold".
	UserAgent string
	// Clock is for tests.
	Clock clock.WithTicker
}

// complete checks the options and fills in what is left out.
func (o Options) complete() (Options, error) {
	if o.Client == nil || o.Manifold == nil || o.Clusters == nil || o.Nodes == nil {
		return o, errors.New("clusters: Client, Manifold, Clusters and Nodes must be set")
	}
	if o.Registry == nil {
		o.Registry = NewRegistry()
	}
	for _, d := range [...]struct {
		field *time.Duration
		value time.Duration
	}{
		{&o.GracePeriod, 40 * time.Second},
		{&o.StatusInterval, 5 * time.Second},
		{&o.DiscoveryInterval, 5 * time.Minute},
		{&o.SettleTime, 2 * time.Second},
	} {
		if *d.field <= 0 {
			*d.field = d.value
		}
	}
	if o.ProbeInterval <= 0 {
		o.ProbeInterval = min(10*time.Second, o.GracePeriod/4)
	}
	if o.Identity == "" {
		host, err := os.Hostname()
		if err != nil {
			host = "manifold"
		}
		o.Identity = host
	}
	if o.UserAgent == "" {
		o.UserAgent = "manifold"
	}
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	return o, nil
}
