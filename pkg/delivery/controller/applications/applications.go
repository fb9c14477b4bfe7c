// Package applications makes revisions of what applications are made of, releases of revisions, and tells what runs where.
//
// Two loops share the work. One looks at sources, which may be far away and slow: it renders what it finds and makes a revision if that differs
// from the last one. The other goes by objects of the logical cluster alone: it makes releases, lets go of old ones, and writes the status.
package applications

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/clock"

	"golang.org/x/sync/errgroup"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/generated/clientset/versioned"
	deliveryclient "github.com/manifold-dev/manifold/generated/clientset/versioned/typed/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/generated/informers/externalversions"
	"github.com/manifold-dev/manifold/internal/work"
	"github.com/manifold-dev/manifold/pkg/delivery/controller/applications/departures"
	"github.com/manifold-dev/manifold/pkg/delivery/controller/applications/sources"
	"github.com/manifold-dev/manifold/pkg/delivery/controller/drifts"
	"github.com/manifold-dev/manifold/pkg/delivery/controller/objects"
	"github.com/manifold-dev/manifold/pkg/delivery/render"
	"github.com/manifold-dev/manifold/pkg/projection"
	"github.com/manifold-dev/manifold/pkg/records"
)

const (
	// Retries of one application grow from the first to the last delay.
	firstRetry = 50 * time.Millisecond
	lastRetry  = time.Minute
	// callers is how many repositories are looked at at a time, and callersOf how many for one namespace: one that does not answer is waited for for
	// more than a minute, and the repositories of others are looked at meanwhile.
	callers, callersOf = 8, 3
	// renderings is of how many namespaces files are rendered at a time. Each waits for the few processes that there are for that.
	renderings = 4
	// lookers are the workers that look at sources. Some are left for those whose files render at once, and to ask for places that others have.
	lookers, remoteLookers = renderings + 4, callers + 4
	// placeAgain is when a place is looked for again, and askAgain when a repository is asked again whose files could not be rendered for want of one.
	placeAgain, askAgain = 200 * time.Millisecond, 2 * time.Second
	// mostLooking bounds a look at a source, with the rendering of all targets. A step may take 90 seconds, and what was found is still to be stored.
	mostLooking = 75 * time.Second
	// rest is for how long a source is not rendered again that has taken too long for that, unless it changes.
	rest    = 5 * time.Minute
	workers = 4
	// pause gathers what clusters report of one application into one status.
	pause = 200 * time.Millisecond
)

// Renderer makes objects of files.
type Renderer interface {
	Bundle(ctx context.Context, bundle *render.Bundle, options render.Options) (*render.Result, error)
}

// Live knows what plugins say of applications.
type Live interface {
	// Of returns what they say of an application, for each of their deploy targets.
	Of(app types.UID) []v1alpha1.PluginTargetStatus
	// Watch has changed called for every application of which they say something else.
	Watch(changed func(cache.ObjectName))
}

// nobody is Live where no plugins run.
type nobody struct{}

func (nobody) Of(types.UID) []v1alpha1.PluginTargetStatus { return nil }
func (nobody) Watch(func(cache.ObjectName))               {}

// Options say what a Controller works with.
type Options struct {
	Own  externalversions.SharedInformerFactory
	Kube informers.SharedInformerFactory
	// Client, Objects and Dynamic write, as the identity of delivery.
	Client  versioned.Interface
	Objects kubernetes.Interface
	Dynamic dynamic.Interface
	// Mapper knows the kinds of the logical cluster.
	Mapper meta.ResettableRESTMapper
	// Customs knows what is of custom kinds. It may be nil.
	Customs objects.Customs
	// ClusterScoped knows what is in no namespace, and As returns who may delete that of an application. Both may be nil.
	ClusterScoped *objects.ClusterScoped
	As            objects.Clients
	// Drift knows what is not what was released.
	Drift *drifts.Board
	// Live knows what plugins say of applications. It may be nil.
	Live Live
	// Renderer is asked about the files of strangers.
	Renderer Renderer
	// IsNowhere reports whether an object that follows workloads goes to no cluster, by what needs it. It may be nil.
	IsNowhere func(projection.Kind, projection.Object) bool
	// Repositories are asked about git.
	Repositories sources.Repositories
	Recorder     record.EventRecorder
	Queues       work.Names
	// Clock is for tests; the zero value is the real one.
	Clock clock.PassiveClock
}

// Controller keeps applications.
type Controller struct {
	client    deliveryclient.DeliveryV1alpha1Interface
	recorder  record.EventRecorder
	view      *view
	queues    *queues
	watches   *watches
	reader    *reader
	reporter  *reporter
	history   *history
	departure *departures.Departure
	outcomes  *outcomes
	// looking are the workers that look at the source of an application, one of each, and calling those that look at repositories of a namespace.
	looking, calling *work.Places
}

// New registers with the informers, which the caller starts afterwards.
func New(o Options) (*Controller, error) {
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	if o.Drift == nil {
		o.Drift = &drifts.Board{}
	}
	if o.Live == nil {
		o.Live = nobody{}
	}
	view, err := newView(o)
	if err != nil {
		return nil, err
	}
	selector, err := sources.NewSelector(o.Kube)
	if err != nil {
		return nil, err
	}
	client, outcomes, told := o.Client.DeliveryV1alpha1(), &outcomes{}, &records.Told{}
	history := &history{view: view, client: client, secrets: o.Objects.CoreV1()}
	queues := newQueues(o.Queues)
	c := &Controller{
		client:   client,
		recorder: o.Recorder,
		view:     view,
		queues:   queues,
		watches:  &watches{view: view, queues: queues, outcomes: outcomes, told: told, drift: o.Drift},
		reader: &reader{
			view: view, history: history, recorder: o.Recorder, clock: o.Clock,
			renderer: &renderer{confined: o.Renderer, places: work.NewPlaces(renderings, 1), kinds: &kinds{mapper: o.Mapper, clock: o.Clock}},
			selector: selector, git: sources.Git{Repositories: o.Repositories, Secrets: view.secrets},
		},
		reporter:  &reporter{view: view, client: client, outcomes: outcomes, drift: o.Drift, live: o.Live, isNowhere: o.IsNowhere, told: told, recorder: o.Recorder, clock: o.Clock},
		history:   history,
		departure: &departures.Departure{Client: client, Objects: o.Dynamic, Scoped: o.ClusterScoped, As: o.As, DeleteHistory: history.deleteAll},
		outcomes:  outcomes,
		looking:   work.NewPlaces(lookers+remoteLookers, 1),
		calling:   work.NewPlaces(callers, callersOf),
	}
	return c, c.watches.add(o, selector.Informers())
}

// Run works until ctx ends.
func (c *Controller) Run(ctx context.Context) error {
	if !cache.WaitForCacheSync(ctx.Done(), c.watches.synced...) {
		return ctx.Err()
	}
	var group errgroup.Group
	group.Go(func() error { work.Run(ctx, c.queues.nearby, lookers, c.read); return nil })
	group.Go(func() error { work.Run(ctx, c.queues.remote, remoteLookers, c.read); return nil })
	group.Go(func() error { work.Run(ctx, c.queues.rest, workers, c.sync); return nil })
	return group.Wait()
}
