// Package secrets watches the Secrets of ours in a cluster, and writes them.
//
// RBAC grants the reading of Secrets by namespace and not by label. So the syncer may not read any at first. In namespaces of ours that are to
// have one it binds itself to a role that may, which the cluster lets it do there alone, and watches each of these namespaces by itself. What
// is written does not wait for that.
//
// In a namespace that clusters share, that would show it the Secrets of others. There it reads one by a change that changes nothing, tried
// and not made, which the cluster lets it do to what is ours; remembers what the answers show; and watches nothing. What somebody else changes
// of a Secret there is put back when the one above changes, and when the syncer begins anew.
package secrets

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	coreinformers "k8s.io/client-go/informers/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/internal/caches"
	"github.com/manifold-dev/manifold/pkg/clusters/bounds"
	"github.com/manifold-dev/manifold/pkg/clusters/rights"
	"github.com/manifold-dev/manifold/pkg/identity"
	"github.com/manifold-dev/manifold/pkg/projection"
	"github.com/manifold-dev/manifold/pkg/syncer/physical"
)

// patience is how long a start waits for the Secrets of all namespaces. One that cannot be read holds up nobody for longer: what is
// not seen yet counts as something.
const patience = 10 * time.Second

// Watch has the Secrets of ours in a cluster.
type Watch struct {
	client  kubernetes.Interface
	budget  *bounds.Budget
	role    string // the name of the role that may read Secrets, and of its bindings
	account string // the name of the ServiceAccount that is bound to it
	tweak   func(*metav1.ListOptions)
	mark    map[string]string
	// Wanted reports whether the cluster is to have any Secret in a namespace.
	Wanted func(namespace string) bool

	Store   cache.Indexer
	Handler cache.ResourceEventHandler

	mu     sync.Mutex
	ctx    context.Context // nil before the start
	spaces map[string]*space
	known  map[cache.ObjectName]struct{} // what was looked at in shared namespaces
	tasks  sync.WaitGroup
}

// space is a namespace whose Secrets are watched.
type space struct {
	stop   context.CancelFunc
	synced func() bool
	// mu guards left, which tells that nothing that its watch still has to tell counts.
	mu   sync.Mutex
	left bool
	// refused tells that the cluster does not let us read them, so that nothing is to be waited for.
	refused bool
}

// seen reports whether it is known what is there, as far as it can be.
func (s *space) seen() bool { return s.refused || s.synced() }

func New(client kubernetes.Interface, logicalCluster string, budget *bounds.Budget) *Watch {
	return &Watch{
		client: client, budget: budget, role: rights.SecretsRole(logicalCluster), account: rights.Account(logicalCluster),
		tweak:  func(o *metav1.ListOptions) { o.LabelSelector = v1alpha1.LabelLogicalCluster + "=" + logicalCluster },
		mark:   map[string]string{v1alpha1.LabelLogicalCluster: logicalCluster},
		Wanted: func(string) bool { return false },
		Store:  cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc}),
		spaces: map[string]*space{}, known: map[cache.ObjectName]struct{}{},
	}
}

// Start watches the Secrets of the namespaces until ctx ends, and returns once they have been seen, or have not for too long.
func (w *Watch) Start(ctx context.Context, namespaces []string) error {
	w.mu.Lock()
	w.ctx = ctx
	w.mu.Unlock()
	for _, namespace := range namespaces {
		w.Follow(namespace, false)
	}
	waiting, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if !cache.WaitForCacheSync(waiting.Done(), func() bool { return w.Unseen() == 0 }) && ctx.Err() == nil {
		klog.FromContext(ctx).Info("The Secrets of some namespaces have not been seen yet; going on", "namespaces", w.Unseen())
	}
	return ctx.Err()
}

// Wait returns when nothing is watched any more, after the context of start has ended.
func (w *Watch) Wait() { w.tasks.Wait() }

// Unseen is the number of namespaces whose Secrets are not known yet.
func (w *Watch) Unseen() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	out := 0
	for _, s := range w.spaces {
		if !s.seen() {
			out++
		}
	}
	return out
}

// Seen reports whether it is known which Secrets a namespace has.
func (w *Watch) Seen(namespace string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := w.spaces[namespace]
	return s == nil || s.seen()
}

// Follow watches the Secrets of a namespace of ours, if that is not done already. One that is to have a Secret is known to need the right.
func (w *Watch) Follow(namespace string, needed bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ctx == nil || w.spaces[namespace] != nil || projection.NamespaceShared(namespace) {
		return
	}
	ctx, stop := context.WithCancel(w.ctx)
	gate := w.budget.Gate()
	informer := coreinformers.NewFilteredSecretInformer(w.client, namespace, 0, cache.Indexers{}, func(o *metav1.ListOptions) {
		w.tweak(o)
		gate.Tweak(o)
	})
	s := &space{stop: stop}
	registration, err := informer.AddEventHandler(w.into(s))
	if err = errors.Join(err, informer.SetTransform(gate.Transform(physical.TrimManagedFields)), gate.Watch(informer), informer.SetWatchErrorHandlerWithContext(
		func(ctx context.Context, r *cache.Reflector, err error) {
			physical.LogWatchError(ctx, r, err)
			if apierrors.IsForbidden(err) {
				w.denied(ctx, namespace, needed)
			}
		})); err != nil {
		stop()
		klog.FromContext(ctx).Error(err, "Cannot watch the Secrets of a namespace", "namespace", namespace) // only if it had been started
		return
	}
	s.synced = registration.HasSynced
	w.spaces[namespace] = s
	w.tasks.Go(func() {
		defer gate.Close()
		informer.RunWithContext(ctx)
	})
}

// denied is told that Secrets of a namespace cannot be read. Where the cluster is to have none, no right is needed for that: none of ours is
// there, for with the first we take the right.
func (w *Watch) denied(ctx context.Context, namespace string, needed bool) {
	if !needed && !w.Wanted(namespace) {
		w.Leave(namespace)
		return
	}
	err := w.bind(ctx, namespace)
	if err == nil || apierrors.IsAlreadyExists(err) || ctx.Err() != nil {
		return // it counts in a moment
	}
	klog.FromContext(ctx).V(2).Info("Cannot take the right to read the Secrets of a namespace", "namespace", namespace, "err", err)
	w.mu.Lock()
	defer w.mu.Unlock()
	if s := w.spaces[namespace]; s != nil && apierrors.IsForbidden(err) {
		s.refused = true
	}
}

// bind gives the syncer the role that may read Secrets in a namespace.
func (w *Watch) bind(ctx context.Context, namespace string) error {
	labels := map[string]string{"app.kubernetes.io/managed-by": "manifold"}
	for key, value := range w.mark {
		labels[key] = value
	}
	_, err := w.client.RbacV1().RoleBindings(namespace).Create(ctx, &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: w.role, Labels: labels},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: w.role},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: v1alpha1.SystemNamespace, Name: w.account}},
	}, metav1.CreateOptions{FieldManager: v1alpha1.FieldManager})
	return err
}

// Unbind takes the right away again, in a namespace that we let go of.
func (w *Watch) Unbind(ctx context.Context, namespace string) error {
	err := w.client.RbacV1().RoleBindings(namespace).Delete(ctx, w.role, metav1.DeleteOptions{})
	if apierrors.IsNotFound(err) || apierrors.IsForbidden(err) {
		return nil // it never had one, or another has its name
	}
	if err != nil {
		return fmt.Errorf("give back the right to read Secrets: %w", err)
	}
	return nil
}

// Leave ends the watch of a namespace that is gone, or not ours any more. What was known there is not.
func (w *Watch) Leave(namespace string) {
	w.mu.Lock()
	s := w.spaces[namespace]
	delete(w.spaces, namespace)
	w.mu.Unlock()
	if s == nil {
		return
	}
	s.stop()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.left = true
	known, _ := w.Store.ByIndex(cache.NamespaceIndex, namespace) // the index exists
	for _, obj := range known {
		_ = w.Store.Delete(obj) // it has a name
		w.Handler.OnDelete(obj)
	}
}

// into keeps what the watch of a namespace shows, and tells of it.
func (w *Watch) into(s *space) cache.ResourceEventHandler {
	watched := func(keep func()) {
		s.mu.Lock()
		defer s.mu.Unlock()
		if !s.left {
			keep()
		}
	}
	return cache.ResourceEventHandlerDetailedFuncs{
		AddFunc: func(obj any, first bool) {
			watched(func() {
				_ = w.Store.Add(obj)
				w.Handler.OnAdd(obj, first)
			})
		},
		UpdateFunc: func(old, obj any) {
			watched(func() {
				_ = w.Store.Update(obj)
				w.Handler.OnUpdate(old, obj)
			})
		},
		DeleteFunc: func(obj any) {
			watched(func() {
				_ = w.Store.Delete(caches.Last(obj))
				w.Handler.OnDelete(obj)
			})
		},
	}
}

// Look returns a Secret of a shared namespace, nil if the cluster has none of that name that is ours. It asks once; after that, our own writes
// tell.
func (w *Watch) Look(ctx context.Context, name cache.ObjectName) (projection.Object, error) {
	w.mu.Lock()
	_, known := w.known[name]
	w.mu.Unlock()
	if known {
		obj, ok, _ := w.Store.GetByKey(name.String())
		if !ok {
			return nil, nil
		}
		return obj.(projection.Object), nil
	}
	live, err := w.read(ctx, name)
	if err != nil {
		return nil, err
	}
	if _, ours := projection.OriginOf(live); live.GetName() != "" && ours && live.GetLabels()[v1alpha1.LabelLogicalCluster] == w.mark[v1alpha1.LabelLogicalCluster] {
		w.note(live)
		return live, nil
	}
	w.forget(name)
	return nil, nil
}

// read returns a Secret of a shared namespace. One that is not ours has its name and no more, and one that is not there has none.
func (w *Watch) read(ctx context.Context, name cache.ObjectName) (*corev1.Secret, error) {
	live, err := w.client.CoreV1().Secrets(name.Namespace).Patch(ctx, name.Name, types.MergePatchType, []byte("{}"),
		metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}, FieldManager: v1alpha1.FieldManager})
	switch {
	case apierrors.IsNotFound(err):
		return &corev1.Secret{}, nil
	case apierrors.IsForbidden(err):
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: name.Namespace, Name: name.Name}}, nil
	case err != nil:
		return nil, err
	}
	return live, nil
}

// note keeps what an answer shows of a Secret in a shared namespace.
func (w *Watch) note(live *corev1.Secret) {
	if trimmed, err := physical.TrimManagedFields(live); err == nil {
		_ = w.Store.Add(trimmed)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.known[cache.MetaObjectToName(live)] = struct{}{}
}

// forget notes that a shared namespace has no Secret of ours of that name.
func (w *Watch) forget(name cache.ObjectName) {
	_ = w.Store.Delete(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: name.Namespace, Name: name.Name}})
	w.mu.Lock()
	defer w.mu.Unlock()
	w.known[name] = struct{}{}
}

// unsure has a Secret of a shared namespace read again the next time.
func (w *Watch) unsure(name cache.ObjectName) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.known, name)
}

// Gone notes that a Secret of ours has been deleted from a shared namespace, and tells of it as a watch does.
func (w *Watch) Gone(live projection.Object) {
	w.forget(cache.MetaObjectToName(live))
	w.Handler.OnDelete(live)
}

// Silent reports whether no watch shows an object: a Secret in a shared namespace.
func Silent(key identity.Key) bool {
	return key.Resource == identity.Secrets && projection.NamespaceShared(key.Namespace)
}
