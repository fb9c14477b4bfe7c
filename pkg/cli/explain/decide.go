package explain

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/generated/informers/externalversions"
	listers "github.com/manifold-dev/manifold/generated/listers/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/identity"
	"github.com/manifold-dev/manifold/pkg/moves"
	"github.com/manifold-dev/manifold/pkg/placement"
	"github.com/manifold-dev/manifold/pkg/placement/engine"
	"github.com/manifold-dev/manifold/pkg/projection"
)

// knowTimeout bounds how long it may take to read all that decisions depend on.
const knowTimeout = 30 * time.Second

// errSlow is the cause when knowTimeout has passed.
var errSlow = fmt.Errorf("clusters, policies and workloads could not be read within %s", knowTimeout)

// errStays tells of an object of a custom kind that nothing sends it to a cluster.
var errStays = errors.New("it stays in the logical cluster")

// decide asks the engine that admission asks, and gathers the fleet of a workload; of is nil for one of a custom kind. Whatever the user may not
// read ends the wait with the server's refusal.
func (g gatherer) decide(ctx context.Context, o *observed, w placement.Workload, of *identity.Workload) error {
	return g.ask(ctx, func(k known) error {
		if w.Custom && w.Pin == nil && len(o.decision) == 0 {
			if selected, err := k.Selects(w); err == nil && !selected {
				return errStays
			}
		}
		decided, ready := k.Decide(w, o.decision)
		if !ready {
			return errors.New("the clusters are not known")
		}
		o.result, o.remedies = &decided.Result, decided.Remedies()
		if of != nil {
			o.fleet = k.fleets().Recorded(*of)
		}
		return nil
	})
}

// known is all that decisions depend on.
type known struct {
	*engine.Engine
	clusters listers.ClusterLister
}

// fleets know of clusters what the server's know, but for what syncers tell.
func (k known) fleets() *moves.Fleets {
	cluster := func(name string) *v1alpha1.Cluster {
		c, err := k.clusters.Get(name)
		if err != nil {
			return nil // it is gone
		}
		return c
	}
	return moves.New(moves.Options{
		Leaving: func(name string) (bool, string) { return moves.Leaving(cluster(name)) },
		Silent:  func(name string) bool { return moves.Silent(cluster(name)) },
		Lost:    k.Lost,
	})
}

// ask runs a question to an engine that knows all that decisions depend on.
func (g gatherer) ask(ctx context.Context, question func(known) error) error {
	ctx, cancel := context.WithTimeoutCause(ctx, knowTimeout, errSlow)
	defer cancel()
	ctx, refuse := context.WithCancelCause(ctx)
	defer refuse(nil)

	kube := informers.NewSharedInformerFactory(g.client, 0)
	manifold := externalversions.NewSharedInformerFactory(g.manifold, 0)
	options, err := g.settings(ctx)
	if err != nil {
		return err
	}
	options.Kube, options.Manifold, options.Requested = kube, manifold, reported
	engine, err := engine.New(options)
	if err != nil {
		return err
	}
	watched := []cache.SharedIndexInformer{
		kube.Core().V1().Namespaces().Informer(),
		kube.Core().V1().PersistentVolumeClaims().Informer(),
		kube.Core().V1().PersistentVolumes().Informer(),
		kube.Storage().V1().StorageClasses().Informer(),
		kube.Scheduling().V1().PriorityClasses().Informer(),
		manifold.Manifold().V1alpha1().Clusters().Informer(),
		manifold.Manifold().V1alpha1().PlacementPolicies().Informer(),
		manifold.Manifold().V1alpha1().ClusterPlacementPolicies().Informer(),
	}
	for _, kind := range projection.Workloads() {
		generic, err := kube.ForResource(kind.Resource)
		if err != nil {
			return err
		}
		watched = append(watched, generic.Informer())
	}
	for _, informer := range watched {
		if err := informer.SetWatchErrorHandler(refuseWith(refuse)); err != nil {
			return err
		}
	}
	kube.Start(ctx.Done())
	manifold.Start(ctx.Done())
	defer manifold.Shutdown()
	defer kube.Shutdown()
	defer refuse(nil) // Before the shutdowns, which wait for what this ends.

	if !cache.WaitForCacheSync(ctx.Done(), engine.HasSynced) {
		return context.Cause(ctx)
	}
	return question(known{engine, manifold.Manifold().V1alpha1().Clusters().Lister()})
}

// settings are what the server says that it decides by. Of one that says nothing, as an older one, the defaults are taken.
func (g gatherer) settings(ctx context.Context) (out engine.Options, err error) {
	settings, err := g.client.CoreV1().ConfigMaps(metav1.NamespacePublic).Get(ctx, v1alpha1.SettingsName, metav1.GetOptions{})
	if apierrors.IsNotFound(err) || apierrors.IsForbidden(err) {
		return out, nil
	}
	if err != nil {
		return out, fmt.Errorf("read what the server decides by: %w", err)
	}
	return out, out.Take(settings)
}

// refuseWith ends everything when the server refuses to let the user read something; other trouble is tried again.
func refuseWith(refuse context.CancelCauseFunc) cache.WatchErrorHandler {
	return func(_ *cache.Reflector, err error) {
		if apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) || apierrors.IsNotFound(err) {
			if refusal := new(apierrors.StatusError); errors.As(err, &refusal) {
				err = refusal // Without what the reflector says around it.
			}
			refuse(err)
		}
	}
}

// reported knows nothing newer about a cluster's requests than its status.
func reported(string) (corev1.ResourceList, bool) { return nil, false }
