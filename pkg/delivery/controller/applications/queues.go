package applications

import (
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/internal/work"
)

// queue has the names of applications.
type queue = workqueue.TypedRateLimitingInterface[cache.ObjectName]

// queues are what is to be done.
type queues struct {
	// nearby has applications whose sources are in the logical cluster, remote those whose sources are elsewhere.
	nearby, remote queue
	// rest has applications of which all but the source is looked at.
	rest queue
}

func newQueues(names work.Names) *queues {
	return &queues{
		nearby: work.NewQueue[cache.ObjectName](names.Of("application-sources"), firstRetry, lastRetry),
		remote: work.NewQueue[cache.ObjectName](names.Of("application-repositories"), firstRetry, lastRetry),
		rest:   work.NewQueue[cache.ObjectName](names.Of("applications"), firstRetry, lastRetry),
	}
}

// look has the source of an application looked at, and all the rest.
func (q *queues) look(app *v1alpha1.Application) {
	name := cache.MetaObjectToName(app)
	q.of(app).Add(name)
	q.rest.Add(name)
}

// lookAgain has a repository asked again after its interval, and not all of them at the same moment.
func (q *queues) lookAgain(app *v1alpha1.Application) {
	if git := app.Spec.Source.Git; git != nil {
		interval := time.Minute
		if git.Interval != nil {
			interval = git.Interval.Duration
		}
		q.remote.AddAfter(cache.MetaObjectToName(app), wait.Jitter(interval, 0.1))
	}
}

func (q *queues) of(app *v1alpha1.Application) queue {
	if app.Spec.Source.Git != nil {
		return q.remote
	}
	return q.nearby
}
