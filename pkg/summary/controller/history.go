package controller

import (
	"context"
	"errors"
	"fmt"
	"maps"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/internal/caches"
	"github.com/manifold-dev/manifold/pkg/identity"
	"github.com/manifold-dev/manifold/pkg/projection"
	"github.com/manifold-dev/manifold/pkg/summary"
)

// byRevisionOwner indexes ControllerRevisions by the UID of what controls them, those that nothing does by their namespace.
const byRevisionOwner = "manifold.dev/revision-owner"

// errCollision has a history looked at again, under another name for its revision.
var errCollision = errors.New("it gets another name")

// histories are the ControllerRevisions of the logical cluster: one for each upstream template of a StatefulSet or DaemonSet.
type histories struct {
	client kubernetes.Interface
	// revisions are those that are watched, with our own writes that the watch has not shown yet.
	revisions cache.MutationCache
	synced    cache.InformerSynced
	// used asks all clusters which templates the pods of an object carry out.
	used func(key identity.Key) map[string]bool
}

// watchHistories registers with the informer. As with the stock controllers, what somebody does to a revision is not answered before there is
// something else to do for its owner.
func watchHistories(o Options) (*histories, error) {
	h := &histories{client: o.Client}
	h.used = func(key identity.Key) map[string]bool {
		used := map[string]bool{}
		for _, s := range o.Reports.Reporters() {
			maps.Copy(used, s.TemplatesInUse(key))
		}
		return used
	}
	informer := o.Kube.Apps().V1().ControllerRevisions().Informer()
	if err := informer.AddIndexers(cache.Indexers{byRevisionOwner: indexRevisionOwner}); err != nil {
		return nil, fmt.Errorf("index ControllerRevisions: %w", err)
	}
	h.revisions = cache.NewIntegerResourceVersionMutationCacheWithOptions(klog.Background(), informer.GetStore(),
		cache.MutationCacheOptions{TTL: remember, MaxCacheSize: remembered, Indexer: informer.GetIndexer(), IncludeAdds: true})
	registration, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(obj any) { h.revisions.OnAddOrUpdate(obj.(*appsv1.ControllerRevision)) },
		UpdateFunc: func(_, obj any) { h.revisions.OnAddOrUpdate(obj.(*appsv1.ControllerRevision)) },
		DeleteFunc: func(obj any) {
			obj = caches.Last(obj)
			if revision, ok := obj.(*appsv1.ControllerRevision); ok {
				h.revisions.OnDelete(revision)
			}
		},
	})
	if err != nil {
		return nil, fmt.Errorf("watch ControllerRevisions: %w", err)
	}
	h.synced = registration.HasSynced
	return h, nil
}

func indexRevisionOwner(obj any) ([]string, error) {
	revision, ok := obj.(*appsv1.ControllerRevision)
	if !ok {
		return nil, nil
	}
	if ref := metav1.GetControllerOfNoCopy(revision); ref != nil {
		return []string{string(ref.UID)}, nil
	}
	return []string{orphansIn(revision.Namespace)}, nil
}

func orphansIn(namespace string) string { return "orphans/" + namespace }

// sync brings the ControllerRevisions of an object up to date. It writes the object itself where that counts collisions of their names.
func (h *histories) sync(
	ctx context.Context, kind summary.Kind, key identity.Key, in summary.Object, write func(next summary.Object) error,
) error {
	projected, _ := projection.ForResource(key.Resource)
	existing := h.of(string(in.GetUID()))
	if len(existing) == 0 {
		adopted, err := h.adopt(ctx, kind, projected, in)
		if err != nil {
			return err
		}
		existing = adopted
	}
	plan, err := kind.PlanHistory(in, projected.GVK, existing, nil)
	if err != nil {
		return err
	}
	if plan.Collisions != kind.HistoryOf(in).Collisions {
		if err := write(kind.Collided(in, plan.Collisions)); err != nil {
			return err
		}
		return fmt.Errorf("the name of the revision of %s is taken by one of another template: %w", key, errCollision)
	}
	if len(plan.Prune) > 0 {
		// Only now it matters which of them are in use, which takes a look at all pods.
		if plan, err = kind.PlanHistory(in, projected.GVK, existing, h.used(key)); err != nil {
			return err
		}
	}
	if plan.Write != nil {
		if err := h.write(ctx, plan.Write); err != nil {
			return err
		}
	}
	for _, revision := range plan.Prune {
		err := h.client.AppsV1().ControllerRevisions(revision.Namespace).Delete(ctx, revision.Name,
			metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(revision.UID))})
		if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
			return err
		}
	}
	return nil
}

// of returns the revisions under a key of the index.
func (h *histories) of(owner string) []*appsv1.ControllerRevision {
	found, _ := h.revisions.ByIndex(byRevisionOwner, owner) // the index exists: New made it
	out := make([]*appsv1.ControllerRevision, 0, len(found))
	for _, obj := range found {
		out = append(out, obj.(*appsv1.ControllerRevision))
	}
	return out
}

// adopt takes over the history that an earlier object left behind when it was deleted without what it owned.
func (h *histories) adopt(
	ctx context.Context, kind summary.Kind, projected projection.Kind, in summary.Object,
) ([]*appsv1.ControllerRevision, error) {
	selector, err := metav1.LabelSelectorAsSelector(kind.HistoryOf(in).Selector)
	if err != nil || selector.Empty() {
		return nil, nil //nolint:nilerr // a selector that is none selects nothing; validation tells the user
	}
	var adopted []*appsv1.ControllerRevision
	for _, orphan := range h.of(orphansIn(in.GetNamespace())) {
		if orphan.DeletionTimestamp != nil || !selector.Matches(labels.Set(orphan.Labels)) {
			continue
		}
		revision := orphan.DeepCopy()
		revision.OwnerReferences = append(revision.OwnerReferences, *metav1.NewControllerRef(in, projected.GVK))
		if err := h.write(ctx, revision); err != nil {
			return nil, err
		}
		adopted = append(adopted, revision)
	}
	return adopted, nil
}

func (h *histories) write(ctx context.Context, revision *appsv1.ControllerRevision) error {
	revisions := h.client.AppsV1().ControllerRevisions(revision.Namespace)
	var written *appsv1.ControllerRevision
	var err error
	if revision.ResourceVersion == "" {
		written, err = revisions.Create(ctx, revision, metav1.CreateOptions{FieldManager: v1alpha1.FieldManager})
	} else {
		written, err = revisions.Update(ctx, revision, metav1.UpdateOptions{FieldManager: v1alpha1.FieldManager})
	}
	if apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("ControllerRevision %s/%s is somebody else's, or that of an earlier object which is still being removed: %w",
			revision.Namespace, revision.Name, err)
	}
	if err != nil {
		return err
	}
	h.revisions.Mutation(written)
	return nil
}
