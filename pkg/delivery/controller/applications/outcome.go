package applications

import (
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
)

// outcome is what came of reading the source of an application. It is kept in memory: after a restart the source is read again.
type outcome struct {
	// generation is that of the application which the source was read for.
	generation int64
	// key tells the state of the source and the targets that rendered is about; empty if it is to be tried again.
	key string
	// slow is what has taken too long to be rendered, nil if nothing has.
	slow *slow
	// Conditions tell how it went. One that is nil is not known yet.
	source, rendered, honoured *metav1.Condition
	origin                     *v1alpha1.Origin
	// hash is that of all manifests, empty if there are none.
	hash string
	// made is the revision that was made last, until the watch shows it.
	made *v1alpha1.ApplicationRevision
	// number is the highest that was tried.
	number int64
}

// slow is a state of a source and its targets that has taken too long to be rendered.
type slow struct {
	key string
	// again is when it is tried again, and told what is said of it until then.
	again time.Time
	told  *metav1.Condition
}

// show notes what there is to say about rendering a state. Both change together: the condition of a state that is left must not be taken for that of the
// state which the source comes back to.
func (o *outcome) show(key string, rendered *metav1.Condition) { o.key, o.rendered = key, rendered }

// outcomes are those of all applications.
type outcomes struct {
	mu   sync.Mutex
	apps map[types.UID]outcome
}

func (o *outcomes) of(app types.UID) outcome {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.apps[app]
}

func (o *outcomes) keep(app types.UID, found outcome) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.apps == nil {
		o.apps = map[types.UID]outcome{}
	}
	o.apps[app] = found
}

func (o *outcomes) forget(app types.UID) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.apps, app)
}

// seen notes that the watch shows a revision, or shows it no more.
func (o *outcomes) seen(app types.UID, revision string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if found := o.apps[app]; found.made != nil && found.made.Name == revision {
		found.made = nil
		o.apps[app] = found
	}
}

// condition is one without times, which are those of its change.
func condition(kind string, status metav1.ConditionStatus, reason, message string) *metav1.Condition {
	return &metav1.Condition{Type: kind, Status: status, Reason: reason, Message: message}
}
