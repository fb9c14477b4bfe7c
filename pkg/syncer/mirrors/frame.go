package mirrors

import (
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/internal/typed"
	"github.com/manifold-dev/manifold/internal/work"
	"github.com/manifold-dev/manifold/pkg/syncer/logical"
)

const (
	// Retries of one object grow from the first to the last delay.
	firstRetry = 50 * time.Millisecond
	lastRetry  = 30 * time.Second
	// remember is how long a mirror that was written and that the watch has not shown is remembered, remembered how many are.
	remember   = time.Minute
	remembered = 10_000
	// pendingDelay is how long what has just been made may stay unmirrored. Most pods are bound and started meanwhile, and then two or
	// three states cost one write.
	pendingDelay = 150 * time.Millisecond
)

// object is what a mirror shows.
type object interface {
	comparable
	metav1.Object
	runtime.Object
}

// client writes the mirrors of one namespace.
type client[T any] interface {
	Create(ctx context.Context, mirror T, opts metav1.CreateOptions) (T, error)
	Update(ctx context.Context, mirror T, opts metav1.UpdateOptions) (T, error)
	Delete(ctx context.Context, name string, opts metav1.DeleteOptions) error
}

// frame is what the mirrors of a kind have in common.
type frame[T object] struct {
	// Queue holds the names to look at.
	Queue workqueue.TypedRateLimitingInterface[cache.ObjectName]
	// stored is what the watch of the logical cluster shows, with our own writes that it has not shown yet.
	stored cache.MutationCache
	above  *logical.Cluster
	client func(namespace string) client[T]
	// same reports whether writing want over have would change nothing.
	same func(want, have T) bool
}

func newFrame[T object](queue string, above *logical.Cluster, store cache.Indexer, to func(namespace string) client[T], same func(want, have T) bool) frame[T] {
	return frame[T]{
		Queue: work.NewQueue[cache.ObjectName](above.Queues.Of(queue), firstRetry, lastRetry),
		stored: cache.NewIntegerResourceVersionMutationCacheWithOptions(klog.Background(), store,
			cache.MutationCacheOptions{TTL: remember, MaxCacheSize: remembered, Indexer: store, IncludeAdds: true}),
		above: above, client: to, same: same,
	}
}

// Look has a name looked at.
func (f *frame[T]) Look(name cache.ObjectName) { f.Queue.Add(name) }

// lookAt has an object of the cluster looked at: at once, unless it only just begins.
func (f *frame[T]) lookAt(live T, beginning bool) {
	if beginning && live.GetDeletionTimestamp() == nil {
		f.Queue.AddAfter(cache.MetaObjectToName(live), pendingDelay)
		return
	}
	f.Look(cache.MetaObjectToName(live))
}

// Named returns what is stored above under a name, as the watch or our own last write shows it, or nil.
func (f *frame[T]) Named(name cache.ObjectName) (stored T) {
	obj, exists, err := f.stored.GetByKey(name.String())
	if err != nil || !exists {
		return stored
	}
	return obj.(T)
}

// Stored takes down what the watch of the logical cluster shows, and Gone that it shows something no more.
func (f *frame[T]) Stored(obj T) { f.stored.OnAddOrUpdate(obj) }

// Gone is for what is stored no more.
func (f *frame[T]) Gone(obj T) { f.stored.OnDelete(obj) }

// put stores a mirror unless it is stored like that already, and returns it as it is stored then. It returns nil if that would keep a
// namespace that goes, or outlive it.
func (f *frame[T]) put(ctx context.Context, want, have T) (stored T, err error) {
	switch {
	case have != stored && f.same(want, have):
		return have, nil
	case have != stored:
		want.SetResourceVersion(have.GetResourceVersion())
		return f.update(ctx, want)
	case f.above.NamespaceGoes(want.GetNamespace()):
		return stored, nil
	}
	written, err := f.client(want.GetNamespace()).Create(ctx, want, metav1.CreateOptions{FieldManager: v1alpha1.FieldManager})
	if apierrors.IsAlreadyExists(err) {
		return stored, ErrNotYet
	}
	if err != nil {
		return stored, err
	}
	f.stored.Mutation(written)
	return written, nil
}

func (f *frame[T]) update(ctx context.Context, want T) (stored T, err error) {
	written, err := f.client(want.GetNamespace()).Update(ctx, want, metav1.UpdateOptions{FieldManager: v1alpha1.FieldManager})
	if err != nil {
		return stored, err
	}
	f.stored.Mutation(written)
	return written, nil
}

// remove deletes what is stored, within a time of grace if there is one.
func (f *frame[T]) remove(ctx context.Context, stored T, grace *int64) error {
	return typed.IgnoreGone(f.client(stored.GetNamespace()).Delete(ctx, stored.GetName(), metav1.DeleteOptions{
		GracePeriodSeconds: grace, Preconditions: metav1.NewUIDPreconditions(string(stored.GetUID())),
	}))
}
