// Package promotions promotes the versions of pipelines from one environment to the next, as package promotion decides. It reads nothing of targets but what
// the status of a pipeline tells, and writes of that what is its own: which version waits, how far a promotion is, and the condition Promoting.
//
// All that it goes by is in objects. What was done, and could not be told any more, is done again, and each strategy sees that it was done before.
package promotions

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"

	"github.com/manifold-dev/manifold/internal/work"
	"github.com/manifold-dev/manifold/pkg/delivery/controller/objects"
	"github.com/manifold-dev/manifold/pkg/delivery/pulls"
	"github.com/manifold-dev/manifold/pkg/delivery/weave"
)

const (
	workers = 4

	firstRetry = 50 * time.Millisecond
	lastRetry  = 30 * time.Second
	// asksForges is how often the forge is asked about a pull request that waits for people, unless there is news.
	asksForges = 5 * time.Minute
)

// FieldManager is the name under which versions are written into targets.
const FieldManager = "manifold-promotion"

// Kinds tell of the custom resources of the logical cluster.
type Kinds interface {
	// FollowKind has changed called for every object of a resource that is new, has changed or is gone.
	FollowKind(resource schema.GroupResource, changed func(object cache.ObjectName))
}

// Options say what a Controller works with.
type Options struct {
	Kinds Kinds
	// Dynamic reads pipelines and writes their statuses, and Events writes what others act on, as the identity of this controller.
	Dynamic dynamic.Interface
	Events  typedcorev1.EventsGetter
	// Objects writes into targets, as a ServiceAccount of the pipeline's namespace.
	Objects objects.Clients
	Mapper  meta.ResettableRESTMapper
	Secrets corelisters.SecretLister
	// SecretsSynced reports whether the Secrets are known.
	SecretsSynced cache.InformerSynced
	Pulls         pulls.Opener
	// May reports whether somebody has a right now.
	May      func(weave.Author, weave.Right) bool
	Recorder record.EventRecorder
	Queues   work.Names
	// Clock is for tests; the zero value is the real one.
	Clock clock.PassiveClock
}

// Key names a pipeline.
type Key struct {
	Group string
	cache.ObjectName
}

// KeyOf returns the key of a pipeline.
func KeyOf(p *weave.Pipeline) Key {
	return Key{p.GroupVersionKind().Group, cache.NewObjectName(p.Namespace, p.Name)}
}

// Controller promotes.
type Controller struct {
	Options
	queue workqueue.TypedRateLimitingInterface[Key]

	mu sync.Mutex
	// waiting are closed once the pipeline has been looked at.
	waiting map[Key][]chan struct{}
	// asked is when the forge was asked about a pull request.
	asked map[pullRequest]asked
	// refusals are how things stood when a pull request was refused.
	refusals map[pullRequest]refusal
	// busy are the Secrets with whose credentials a forge has been called too often.
	busy map[cache.ObjectName]busy
}

// pullRequest names the promotion to an environment.
type pullRequest struct {
	Key
	environment string
}

// New registers with the kinds.
func New(o Options) *Controller {
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	c := &Controller{
		Options: o, queue: work.NewQueue[Key](o.Queues.Of("promotions"), firstRetry, lastRetry),
		waiting: map[Key][]chan struct{}{}, asked: map[pullRequest]asked{}, refusals: map[pullRequest]refusal{}, busy: map[cache.ObjectName]busy{},
	}
	for _, version := range weave.GroupVersions {
		o.Kinds.FollowKind(schema.GroupResource{Group: version.Group, Resource: weave.Resource}, func(name cache.ObjectName) {
			c.queue.Add(Key{version.Group, name})
		})
	}
	return c
}

// HasSynced reports whether the controller knows what it needs.
func (c *Controller) HasSynced() bool { return c.SecretsSynced() }

// Run promotes until ctx ends.
func (c *Controller) Run(ctx context.Context) error {
	if !cache.WaitForCacheSync(ctx.Done(), c.SecretsSynced) {
		return ctx.Err()
	}
	work.Run(ctx, c.queue, workers, c.sync)
	return nil
}

// look has a pipeline looked at now, and returns once that has been done, whatever has come of it.
func (c *Controller) look(ctx context.Context, k Key) error {
	done := make(chan struct{})
	c.mu.Lock()
	c.waiting[k] = append(c.waiting[k], done)
	c.mu.Unlock()
	c.queue.Add(k)
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// looking takes over who waits for a pipeline to be looked at, and returns what tells them that it has been.
func (c *Controller) looking(k Key) (looked func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	waiting := c.waiting[k]
	delete(c.waiting, k)
	return func() {
		for _, done := range waiting {
			close(done)
		}
	}
}
