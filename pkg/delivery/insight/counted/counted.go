// Package counted counts in the metrics of the process how well applications are delivered, as releases end: the counts stay when the releases
// are no longer kept.
package counted

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/tools/cache"
	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/generated/informers/externalversions"
	listers "github.com/manifold-dev/manifold/generated/listers/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/internal/caches"
	"github.com/manifold-dev/manifold/pkg/delivery/insight"
)

// most is how many applications of a logical cluster have series of their own, some twenty each. Those beyond are counted together: a user who
// makes applications without end must not fill the memory of whoever stores the metrics.
const most = 500

// others is what the applications beyond are counted as. No application can have the name.
const others = "_others"

// Results of changes.
const (
	succeeded = "succeeded"
	failed    = "failed"
	undone    = "rolled_back_later"
)

var (
	of = []string{"logical_cluster", "namespace", "application"}

	changes = metrics.NewCounterVec(&metrics.CounterOpts{
		Namespace: "manifold", Subsystem: "delivery", Name: "changes_total", StabilityLevel: metrics.ALPHA,
		Help: "Releases that brought a change and have ended, by result: succeeded or failed, and rolled_back_later for those of the succeeded that were rolled back by another release.",
	}, append(of[:len(of):len(of)], "result"))
	leads = metrics.NewHistogramVec(&metrics.HistogramOpts{
		Namespace: "manifold", Subsystem: "delivery", Name: "lead_time_seconds", StabilityLevel: metrics.ALPHA,
		Help:    "Time from a commit until the end of the first release that succeeded with it.",
		Buckets: []float64{900, 3600, 4 * 3600, 24 * 3600, 7 * 24 * 3600, 30 * 24 * 3600},
	}, of)
	restores = metrics.NewHistogramVec(&metrics.HistogramOpts{
		Namespace: "manifold", Subsystem: "delivery", Name: "time_to_restore_seconds", StabilityLevel: metrics.ALPHA,
		Help:    "Time that the failure of a release lasted, until it was rolled back or another one succeeded.",
		Buckets: []float64{60, 300, 900, 3600, 4 * 3600, 24 * 3600},
	}, of)
)

func init() { legacyregistry.MustRegister(changes, leads, restores) }

// Counter counts for one logical cluster.
type Counter struct {
	logicalCluster string
	releases       listers.ReleaseLister
	revisions      listers.ApplicationRevisionLister

	mu sync.Mutex
	// counted are the applications that have series of their own.
	counted sets.Set[cache.ObjectName]
}

// Watch counts the releases that end from now on. The caller starts the informers afterwards.
func Watch(logicalCluster string, informers externalversions.SharedInformerFactory) error {
	ours := informers.Delivery().V1alpha1()
	c := &Counter{
		logicalCluster: logicalCluster, releases: ours.Releases().Lister(), revisions: ours.ApplicationRevisions().Lister(),
		counted: sets.New[cache.ObjectName](),
	}
	_, releases := ours.Releases().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{UpdateFunc: c.updated})
	_, applications := ours.Applications().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{DeleteFunc: c.deleted})
	if err := errors.Join(releases, applications); err != nil {
		return fmt.Errorf("watch how releases end: %w", err)
	}
	return nil
}

// updated counts a release that has just ended. One that has ended before the process began was counted by an earlier one.
func (c *Counter) updated(before, after any) {
	old, is := before.(*v1alpha1.Release)
	release, still := after.(*v1alpha1.Release)
	if !is || !still || old.UID != release.UID || ended(old) || !ended(release) {
		return
	}
	all, err := c.releases.Releases(release.Namespace).List(labels.Everything())
	if err != nil {
		return // a cache fails for no reason
	}
	var known []*v1alpha1.Release
	for _, other := range all {
		if other.Spec.Application == release.Spec.Application && other.Name != release.Name {
			known = append(known, other)
		}
	}
	c.count(cache.NewObjectName(release.Namespace, release.Spec.Application), insight.Learn(
		insight.Changes(known, c.committed(release.Namespace)), insight.Changes(append(known, release), c.committed(release.Namespace))))
}

func ended(release *v1alpha1.Release) bool {
	return release.Status.Phase.Ended() && release.Status.EndTime != nil
}

func (c *Counter) committed(namespace string) func(string) time.Time {
	return func(name string) time.Time {
		revision, err := c.revisions.ApplicationRevisions(namespace).Get(name)
		if err != nil || revision.Spec.Origin == nil || revision.Spec.Origin.Time == nil {
			return time.Time{}
		}
		return revision.Spec.Origin.Time.Time
	}
}

func (c *Counter) count(application cache.ObjectName, learned insight.Learned) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.counted.Has(application) {
		if c.counted.Len() < most {
			c.counted.Insert(application)
		} else {
			application = cache.NewObjectName("", others)
		}
	}
	values := []string{c.logicalCluster, application.Namespace, application.Name}
	for result, n := range map[string]int{succeeded: learned.Succeeded, failed: learned.Failed, undone: learned.Undone} {
		changes.WithLabelValues(append(values[:len(values):len(values)], result)...).Add(float64(n))
	}
	for _, lead := range learned.Leads {
		leads.WithLabelValues(values...).Observe(lead.Seconds())
	}
	for _, lasted := range learned.Restores {
		restores.WithLabelValues(values...).Observe(lasted.Seconds())
	}
}

// deleted forgets an application.
func (c *Counter) deleted(object any) {
	object = caches.Last(object)
	application, is := object.(*v1alpha1.Application)
	if !is {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.counted.Delete(cache.MetaObjectToName(application))
	series := map[string]string{of[0]: c.logicalCluster, of[1]: application.Namespace, of[2]: application.Name}
	leads.Delete(series)
	restores.Delete(series)
	for _, result := range []string{succeeded, failed, undone} {
		series["result"] = result
		changes.Delete(series)
	}
}
