package claims

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/util/dryrun"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	api "k8s.io/kubernetes/pkg/apis/core"
	claimstore "k8s.io/kubernetes/pkg/registry/core/persistentvolumeclaim/storage"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/server/identity"
	"github.com/manifold-dev/manifold/pkg/server/ours"
	"github.com/manifold-dev/manifold/pkg/server/storage/await"
	"github.com/manifold-dev/manifold/pkg/server/storage/below"
	"github.com/manifold-dev/manifold/pkg/server/storage/builtin"
	"github.com/manifold-dev/manifold/pkg/server/storage/metadata"
)

// claimREST deletes and changes mirrored volume claims where they are. Their mirrors follow when the cluster reports it.
type claimREST struct {
	*claimstore.REST
	connections below.Connections
	identity    ours.Identity
}

// Change has claims that show what is in a cluster be changed and deleted there.
func Change(storage map[string]rest.Storage, connections below.Connections, identity ours.Identity) error {
	claims, err := builtin.Lookup[*claimstore.REST](storage, "persistentvolumeclaims")
	if err != nil {
		return err
	}
	if err := builtin.WrapStrategies(claims.Store, func(s builtin.Strategy) builtin.Strategy { return claimStrategy{s} }); err != nil {
		return err
	}
	storage["persistentvolumeclaims"] = &claimREST{REST: claims, connections: connections, identity: identity}
	status, err := builtin.Lookup[builtin.Status](storage, "persistentvolumeclaims/status")
	if err != nil {
		return err
	}
	storage["persistentvolumeclaims/status"] = &claimStatusREST{Status: status, claims: claims}
	return nil
}

func (r *claimREST) get(ctx context.Context, name string) (*api.PersistentVolumeClaim, error) {
	obj, err := r.REST.Get(ctx, name, &metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	return obj.(*api.PersistentVolumeClaim), nil
}

func (r *claimREST) connection(claim *api.PersistentVolumeClaim, doing string) (*below.Connection, error) {
	connection, err := r.connections.Connection(clusterOfClaim(claim))
	if err != nil {
		return nil, apierrors.NewServiceUnavailable(fmt.Sprintf("%s claim %s/%s in cluster %q: %v",
			doing, claim.Namespace, claim.Name, clusterOfClaim(claim), err))
	}
	return connection, nil
}

// Update implements rest.Updater. The stock endpoint says, by a dry run, what it would make of the mirror: patches, defaults, admission,
// quotas, validation and conflicts are its own. Then the cluster makes the same change to the claim, and may refuse it for its own reasons.
func (r *claimREST) Update(ctx context.Context, name string, info rest.UpdatedObjectInfo, create rest.ValidateObjectFunc,
	update rest.ValidateObjectUpdateFunc, force bool, options *metav1.UpdateOptions,
) (runtime.Object, bool, error) {
	if identity.FromWithin(ctx) {
		return r.REST.Update(ctx, name, info, create, update, force, options)
	}
	if found, err := r.get(ctx, name); err != nil || !mirroredClaim(found) {
		return r.REST.Update(ctx, name, info, create, r.withGrowth(update), force, options)
	}
	tried := options.DeepCopy()
	tried.DryRun = []string{metav1.DryRunAll}
	based := &claimBasedOn{UpdatedObjectInfo: info}
	obj, _, err := r.REST.Update(ctx, name, based, create, update, false, tried)
	if err != nil {
		return nil, false, err
	}
	want, ok := obj.(*api.PersistentVolumeClaim)
	if !ok || based.claim == nil {
		return nil, false, fmt.Errorf("the stock endpoint of persistentvolumeclaims returned a %T", obj)
	}
	asked := want
	if !sameClaim(want, based.claim) {
		if err := r.recordLabels(ctx, based.claim, want, options); err != nil {
			return nil, false, err
		}
		if err := r.changeBelow(ctx, based.claim, want, options); err != nil {
			if back := r.recordLabels(context.WithoutCancel(ctx), want, based.claim, options); back != nil {
				klog.FromContext(ctx).Error(back, "Labels of a mirror that its cluster refuses could not be taken back", "claim", klog.KObj(want))
			}
			return nil, false, err
		}
		if !dryrun.IsDryRun(options.DryRun) {
			want = r.awaitShown(ctx, based.claim, want)
		}
	}
	if want, err = metadata.StoreManagers(ctx, r.REST, based.claim, asked, want, options); err != nil {
		return nil, false, err
	}
	if owners := asked.OwnerReferences; !equality.Semantic.DeepEqual(owners, based.claim.OwnerReferences) {
		return r.storeOwners(ctx, based.claim, owners, options)
	}
	return want, false, nil
}

// recordLabels stores the labels that a request gives to a mirrored claim, before the claim gets them; see podChangeREST.recordLabels.
func (r *claimREST) recordLabels(ctx context.Context, old, want *api.PersistentVolumeClaim, options *metav1.UpdateOptions) error {
	if maps.Equal(old.Labels, want.Labels) {
		return nil
	}
	_, _, err := r.storeMirror(ctx, old, func(claim *api.PersistentVolumeClaim) { metadata.Relabel(claim, old, want) }, options)
	return err
}

// storeOwners gives a mirror its owners, which are known above alone but for those that its cluster tells.
func (r *claimREST) storeOwners(ctx context.Context, of *api.PersistentVolumeClaim, owners []metav1.OwnerReference, options *metav1.UpdateOptions,
) (runtime.Object, bool, error) {
	return r.storeMirror(ctx, of, func(claim *api.PersistentVolumeClaim) { claim.OwnerReferences = owners }, options)
}

// storeMirror changes a mirror as it is stored.
func (r *claimREST) storeMirror(ctx context.Context, of *api.PersistentVolumeClaim, change func(*api.PersistentVolumeClaim), options *metav1.UpdateOptions,
) (runtime.Object, bool, error) {
	info := rest.DefaultUpdatedObjectInfo(nil, func(_ context.Context, _, old runtime.Object) (runtime.Object, error) {
		claim, ok := old.DeepCopyObject().(*api.PersistentVolumeClaim)
		if !ok || claim.UID != of.UID {
			return nil, apierrors.NewConflict(api.Resource("persistentvolumeclaims"), of.Name, errors.New("it is another claim by now"))
		}
		change(claim)
		return claim, nil
	})
	return r.REST.Update(ctx, of.Name, info, nil, rest.ValidateAllObjectUpdateFunc, false, options) // admitted before
}

// claimBasedOn remembers the claim that an update was applied to.
type claimBasedOn struct {
	rest.UpdatedObjectInfo
	claim *api.PersistentVolumeClaim
}

func (b *claimBasedOn) UpdatedObject(ctx context.Context, old runtime.Object) (runtime.Object, error) {
	if claim, ok := old.(*api.PersistentVolumeClaim); ok {
		b.claim = claim.DeepCopy()
	}
	return b.UpdatedObjectInfo.UpdatedObject(ctx, old)
}

func (r *claimREST) changeBelow(ctx context.Context, old, want *api.PersistentVolumeClaim, options *metav1.UpdateOptions) error {
	connection, err := r.connection(old, "change")
	if err != nil {
		return err
	}
	patch, err := claimPatch(old, want)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, below.Timeout)
	defer cancel()
	_, err = connection.Client.CoreV1().PersistentVolumeClaims(old.Namespace).Patch(ctx, old.Name, types.StrategicMergePatchType, patch,
		metav1.PatchOptions{DryRun: options.DryRun, FieldManager: v1alpha1.FieldManager})
	if err != nil {
		return claimFromCluster(err, old)
	}
	return nil
}

// claimPatch is the difference between two claims in labels, annotations, finalizers and spec, for the claim that old is below alone.
func claimPatch(old, want *api.PersistentVolumeClaim) ([]byte, error) {
	encode := func(claim *api.PersistentVolumeClaim, uid types.UID) ([]byte, error) {
		out := &corev1.PersistentVolumeClaim{}
		if err := legacyscheme.Scheme.Convert(claim, out, nil); err != nil {
			return nil, err
		}
		return json.Marshal(&corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{
			UID: uid, Labels: out.Labels, Annotations: out.Annotations,
			Finalizers: slices.DeleteFunc(slices.Clone(out.Finalizers), func(f string) bool { return f == v1alpha1.FinalizerProjection }),
		}, Spec: out.Spec})
	}
	before, err := encode(old, "")
	if err != nil {
		return nil, fmt.Errorf("encode claim %s/%s: %w", old.Namespace, old.Name, err)
	}
	after, err := encode(want, old.UID)
	if err != nil {
		return nil, fmt.Errorf("encode claim %s/%s: %w", want.Namespace, want.Name, err)
	}
	return strategicpatch.CreateTwoWayMergePatch(before, after, &corev1.PersistentVolumeClaim{})
}

// awaitShown returns the mirror once it shows what was changed, so that who reads it next finds it there. When that takes too long it
// returns want, which is the mirror to come.
func (r *claimREST) awaitShown(ctx context.Context, old, want *api.PersistentVolumeClaim) *api.PersistentVolumeClaim {
	shown := want
	await.Event(ctx, r.REST, await.Only(old), await.MirrorTimeout, func(event watch.Event, obj metav1.Object) bool {
		claim, ok := obj.(*api.PersistentVolumeClaim)
		if !ok || event.Type == watch.Deleted || claim.UID != old.UID {
			return true
		}
		if sameClaim(claim, want) {
			shown = claim
			return true
		}
		return false
	})
	return shown
}

// Delete implements rest.GracefulDeleter. A user's request goes to the cluster, whose protection of claims in use is the one that counts.
// What controllers in this process conclude of a StatefulSet or pod, the cluster's own controllers conclude as well, and better: they know
// what the claim belongs to. Other owners they do not know.
func (r *claimREST) Delete(ctx context.Context, name string, validate rest.ValidateObjectFunc, options *metav1.DeleteOptions) (runtime.Object, bool, error) {
	claim, err := r.get(ctx, name)
	if err != nil {
		return nil, false, err
	}
	cluster, syncer := identity.BySyncer(ctx)
	switch {
	case syncer && !mirroredClaim(claim):
		return nil, false, apierrors.NewForbidden(api.Resource("persistentvolumeclaims"), name,
			fmt.Errorf("it is no mirror, and not for the syncer of cluster %q to delete", cluster))
	case identity.WritesMirrors(ctx), !mirroredClaim(claim):
		return r.REST.Delete(ctx, name, validate, options)
	}
	if options == nil {
		options = &metav1.DeleteOptions{}
	}
	if err := checkClaimPreconditions(claim, options.Preconditions); err != nil {
		return nil, false, err
	}
	if validate != nil {
		if err := validate(ctx, claim.DeepCopy()); err != nil {
			return nil, false, err
		}
	}
	if dryrun.IsDryRun(options.DryRun) || identity.FromWithin(ctx) && !ownedAbove(claim) {
		return claim, false, nil
	}
	if err := r.deleteBelow(ctx, claim, options); err != nil || identity.FromWithin(ctx) {
		return claim, false, err
	}
	told, gone := claim, false
	await.Event(ctx, r.REST, await.Only(claim), await.DeletionPatience, func(event watch.Event, obj metav1.Object) bool {
		if changed, ok := obj.(*api.PersistentVolumeClaim); ok && changed.UID == claim.UID {
			told, gone = changed, event.Type == watch.Deleted
		}
		return gone || told.DeletionTimestamp != nil
	})
	return told, gone, nil
}

func (r *claimREST) deleteBelow(ctx context.Context, claim *api.PersistentVolumeClaim, options *metav1.DeleteOptions) error {
	connection, err := r.connection(claim, "delete")
	if err != nil {
		return err
	}
	below, cancel := context.WithTimeout(ctx, below.Timeout)
	defer cancel()
	// The UID is the same below; a resource version means nothing there and was compared above.
	err = connection.Client.CoreV1().PersistentVolumeClaims(claim.Namespace).Delete(below, claim.Name, metav1.DeleteOptions{
		Preconditions: metav1.NewUIDPreconditions(string(claim.UID)), PropagationPolicy: options.PropagationPolicy,
	})
	switch {
	case apierrors.IsNotFound(err) || apierrors.IsConflict(err):
		// Gone below, or replaced by another of that name: only the mirror is left, whose syncer lets it go.
		_, _, err = r.REST.Delete(ctx, claim.Name, rest.ValidateAllObjectFunc, &metav1.DeleteOptions{
			Preconditions: metav1.NewUIDPreconditions(string(claim.UID))})
		return err
	case err != nil:
		return claimFromCluster(err, claim)
	}
	return nil
}

// DeleteCollection implements rest.CollectionDeleter, claim by claim: the store's own would pass by the clusters. A namespace is emptied
// like that, so mirrors are deleted below for this process as well.
func (r *claimREST) DeleteCollection(ctx context.Context, validate rest.ValidateObjectFunc, options *metav1.DeleteOptions,
	which *metainternalversion.ListOptions,
) (runtime.Object, error) {
	list, err := r.REST.List(ctx, which)
	if err != nil {
		return nil, err
	}
	claims := list.(*api.PersistentVolumeClaimList)
	errs := make([]error, len(claims.Items))
	workqueue.ParallelizeUntil(ctx, builtin.MaxDeleteWorkers, len(claims.Items), func(i int) {
		errs[i] = r.deleteOne(request.WithNamespace(ctx, claims.Items[i].Namespace), &claims.Items[i], validate, options.DeepCopy())
	})
	for _, err := range errs {
		if err != nil {
			return nil, err
		}
	}
	return claims, ctx.Err()
}

func (r *claimREST) deleteOne(ctx context.Context, claim *api.PersistentVolumeClaim, validate rest.ValidateObjectFunc, options *metav1.DeleteOptions) error {
	if mirroredClaim(claim) && identity.FromWithin(ctx) && !identity.WritesMirrors(ctx) {
		if claim.DeletionTimestamp != nil {
			return nil
		}
		return r.deleteBelow(ctx, claim, options)
	}
	_, _, err := r.Delete(ctx, claim.Name, validate, options)
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

func checkClaimPreconditions(claim *api.PersistentVolumeClaim, p *metav1.Preconditions) error {
	if p == nil {
		return nil
	}
	conflict := func(what, want, have string) error {
		return apierrors.NewConflict(api.Resource("persistentvolumeclaims"), claim.Name,
			fmt.Errorf("precondition: the %s is %s, not %s", what, have, want))
	}
	if p.UID != nil && *p.UID != claim.UID {
		return conflict("UID", string(*p.UID), string(claim.UID))
	}
	if p.ResourceVersion != nil && *p.ResourceVersion != claim.ResourceVersion {
		return conflict("resource version", *p.ResourceVersion, claim.ResourceVersion)
	}
	return nil
}
