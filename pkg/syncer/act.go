package syncer

import (
	"cmp"
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/csaupgrade"
	"k8s.io/utils/ptr"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/internal/typed"
	"github.com/manifold-dev/manifold/pkg/identity"
	"github.com/manifold-dev/manifold/pkg/projection"
	"github.com/manifold-dev/manifold/pkg/syncer/mirrors"
)

// errNotYet asks for another try: something that must be there first is on its way.
var errNotYet = mirrors.ErrNotYet

// conflictError tells that a name below is somebody else's.
type conflictError struct{ reason string }

func (e *conflictError) Error() string { return e.reason }

// act carries out one step of a plan.
func (s *Syncer) act(ctx context.Context, kind projection.Kind, action projection.Action, desired, live projection.Object) error {
	switch action.Step {
	case projection.Create:
		return s.create(ctx, kind, desired)
	case projection.Apply:
		return s.apply(ctx, kind, desired, live)
	case projection.Replace, projection.Delete:
		return s.delete(ctx, kind, live, deletion{})
	case projection.Conflict:
		if s.claims.Yields(live) {
			return s.apply(ctx, kind, desired, live)
		}
		return &conflictError{action.Reason}
	case projection.Nothing, projection.Wait:
		return nil
	}
	return fmt.Errorf("unknown step %q", action.Step)
}

// create makes the object. It is not an apply, which would silently take over what somebody else made under that name.
func (s *Syncer) create(ctx context.Context, kind projection.Kind, desired projection.Object) (err error) {
	if kind.Resource == namespaceResource {
		s.below.Expect(desired.GetName(), true)
		defer func() {
			if err != nil {
				s.below.Expect(desired.GetName(), false)
			}
		}()
	}
	err = s.written(kind, desired, s.rest(kind).Post().
		NamespaceIfScoped(desired.GetNamespace(), kind.Namespaced).Resource(kind.Resource.Resource).
		VersionedParams(&metav1.CreateOptions{FieldManager: v1alpha1.FieldManager}, scheme.ParameterCodec).
		Body(desired).Do(ctx))
	if !apierrors.IsAlreadyExists(err) {
		return err
	}
	// Either the watch is behind, or the object is not ours, which our watch does not show.
	live, err := s.read(ctx, kind, desired)
	if err != nil {
		return err
	}
	action := kind.Plan(desired, live)
	if action.Step == projection.Create {
		return errNotYet
	}
	return s.act(ctx, kind, action, desired, live)
}

// apply brings an object of ours to the projection by server-side apply: what we no longer project goes, what others own stays. The
// UID keeps it from making a new object, or from changing another one of that name.
func (s *Syncer) apply(ctx context.Context, kind projection.Kind, desired, live projection.Object) error {
	if err := s.adoptFields(ctx, kind, live); err != nil {
		return err
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(desired)
	if err != nil {
		return fmt.Errorf("encode the projection: %w", err)
	}
	delete(content, "status")
	metadata := content["metadata"].(map[string]any)
	metadata["uid"] = string(live.GetUID())
	delete(metadata, "creationTimestamp")
	body, err := json.Marshal(content)
	if err != nil {
		return fmt.Errorf("encode the projection: %w", err)
	}
	return s.written(kind, desired, s.rest(kind).Patch(types.ApplyPatchType).
		NamespaceIfScoped(desired.GetNamespace(), kind.Namespaced).Resource(kind.Resource.Resource).Name(desired.GetName()).
		VersionedParams(&metav1.PatchOptions{FieldManager: v1alpha1.FieldManager, Force: ptr.To(true)}, scheme.ParameterCodec).
		Body(body).Do(ctx))
}

// written returns the error of a write. Where no watch shows what came of it, the answer does.
func (s *Syncer) written(kind projection.Kind, desired projection.Object, answer rest.Result) error {
	if !silentSecret(identity.KeyOf(kind, desired)) {
		return answer.Error()
	}
	made := &corev1.Secret{}
	err := answer.Into(made)
	if err != nil {
		s.below.secrets.unsure(cache.MetaObjectToName(desired))
		return err
	}
	s.below.secrets.note(made)
	return nil
}

// adoptFields turns the fields that we own by having created the object into applied ones, once: otherwise what we leave out later
// would stay.
func (s *Syncer) adoptFields(ctx context.Context, kind projection.Kind, live projection.Object) error {
	created := false
	for _, entry := range live.GetManagedFields() {
		created = created || entry.Manager == v1alpha1.FieldManager && entry.Operation == metav1.ManagedFieldsOperationUpdate && entry.Subresource == ""
	}
	if !created {
		return nil
	}
	whole, err := s.read(ctx, kind, live)
	if err != nil {
		return err
	}
	if whole == nil || whole.GetUID() != live.GetUID() {
		return errNotYet
	}
	patch, err := csaupgrade.UpgradeManagedFieldsPatch(whole, sets.New(v1alpha1.FieldManager), v1alpha1.FieldManager)
	if err != nil {
		return fmt.Errorf("take over the fields that we created: %w", err)
	}
	if len(patch) == 0 {
		return nil
	}
	return s.rest(kind).Patch(types.JSONPatchType).
		NamespaceIfScoped(live.GetNamespace(), kind.Namespaced).Resource(kind.Resource.Resource).Name(live.GetName()).
		VersionedParams(&metav1.PatchOptions{FieldManager: v1alpha1.FieldManager}, scheme.ParameterCodec).
		Body(patch).Do(ctx).Error()
}

// deletion says how an object is deleted.
type deletion struct {
	// owned says what becomes of what the object owns; the zero value lets it go in the background.
	owned metav1.DeletionPropagation
	// grace is how many seconds the object has to end, nil for as many as it asks for itself.
	grace *int64
	// unchanged has the object deleted only as it was looked at.
	unchanged bool
}

// delete removes an object of ours, and no other that may have taken its name.
func (s *Syncer) delete(ctx context.Context, kind projection.Kind, live projection.Object, how deletion) error {
	preconditions := metav1.NewUIDPreconditions(string(live.GetUID()))
	if how.unchanged {
		preconditions.ResourceVersion = ptr.To(live.GetResourceVersion())
	}
	err := s.rest(kind).Delete().
		NamespaceIfScoped(live.GetNamespace(), kind.Namespaced).Resource(kind.Resource.Resource).Name(live.GetName()).
		Body(&metav1.DeleteOptions{
			Preconditions:      preconditions,
			PropagationPolicy:  ptr.To(cmp.Or(how.owned, metav1.DeletePropagationBackground)),
			GracePeriodSeconds: how.grace,
		}).Do(ctx).Error()
	if apierrors.IsNotFound(err) {
		err = nil
	}
	if err == nil && silentSecret(identity.KeyOf(kind, live)) {
		s.deletedSilently(live)
	}
	return err
}

// deletedSilently notes what no watch shows: that a Secret is gone, or is to be looked at again if something holds it.
func (s *Syncer) deletedSilently(live projection.Object) {
	if len(live.GetFinalizers()) == 0 {
		s.below.secrets.gone(live)
		return
	}
	name := cache.MetaObjectToName(live)
	s.below.secrets.unsure(name)
	s.queue.AddAfter(identity.Key{Resource: secretResource, Namespace: name.Namespace, Name: name.Name}, conflictRetry)
}

// orphan takes our marks off an object, which is nobody's business of ours from then on.
func (s *Syncer) orphan(ctx context.Context, kind projection.Kind, live projection.Object) error {
	if live == nil {
		return nil
	}
	if kind.Resource == namespaceResource {
		if secrets, _ := s.below.secrets.store.IndexKeys(cache.NamespaceIndex, live.GetName()); len(secrets) > 0 || !s.below.secrets.seen(live.GetName()) {
			return errNotYet // they are let go of first, as long as they can be seen
		}
		s.below.secrets.leave(live.GetName())
		if err := s.below.secrets.unbind(ctx, live.GetName()); err != nil {
			return err
		}
	}
	annotations := map[string]any{}
	for _, key := range []string{
		v1alpha1.AnnotationNamespace, v1alpha1.AnnotationName, v1alpha1.AnnotationUID, v1alpha1.AnnotationProjection, v1alpha1.AnnotationTemplate,
	} {
		annotations[key] = nil
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": live.GetUID(), "labels": map[string]any{v1alpha1.LabelLogicalCluster: nil, v1alpha1.LabelOrphan: nil, v1alpha1.LabelPodWebhooks: nil},
		"annotations": annotations,
	}})
	if err != nil {
		return fmt.Errorf("encode a patch: %w", err)
	}
	err = s.rest(kind).Patch(types.MergePatchType).
		NamespaceIfScoped(live.GetNamespace(), kind.Namespaced).Resource(kind.Resource.Resource).Name(live.GetName()).
		VersionedParams(&metav1.PatchOptions{FieldManager: v1alpha1.FieldManager}, scheme.ParameterCodec).
		Body(patch).Do(ctx).Error()
	if apierrors.IsNotFound(err) {
		err = nil
	}
	if err == nil && silentSecret(identity.KeyOf(kind, live)) {
		s.below.secrets.gone(live)
	}
	return err
}

// read gets an object past the cache, or nil if the cluster has none.
func (s *Syncer) read(ctx context.Context, kind projection.Kind, of projection.Object) (projection.Object, error) {
	if silentSecret(identity.KeyOf(kind, of)) {
		live, err := s.below.secrets.read(ctx, cache.MetaObjectToName(of))
		if err != nil || live.Name == "" {
			return nil, err
		}
		return live, nil
	}
	out := kind.New()
	err := s.rest(kind).Get().
		NamespaceIfScoped(of.GetNamespace(), kind.Namespaced).Resource(kind.Resource.Resource).Name(of.GetName()).
		Do(ctx).Into(out)
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case kind.Resource == secretResource && apierrors.IsForbidden(err):
		s.below.secrets.follow(of.GetNamespace(), true)
		return nil, errNotYet // the right to read it is on its way
	case err != nil:
		return nil, err
	}
	return out, nil
}

// rest sends requests about objects of a projected kind, whose groups are all known.
func (s *Syncer) rest(kind projection.Kind) rest.Interface {
	client, err := typed.REST(s.client, kind.Resource.Group)
	if err != nil {
		panic(err)
	}
	return client
}

// EnsureNamespace sees to it that a namespace of ours exists before something is put into it that is not of a projected kind. The error
// tells what is in the way, or Passes.
func (s *Syncer) EnsureNamespace(ctx context.Context, name string) error {
	return s.ensureNamespace(ctx, name)
}

// ensureNamespace sees to it that a namespace of ours exists before something is put into it.
func (s *Syncer) ensureNamespace(ctx context.Context, name string) error {
	if name == "" || projection.NamespaceShared(name) {
		return nil
	}
	key := identity.Key{Resource: namespaceResource, Name: name}
	if live := s.below.Get(key); live != nil {
		if live.GetDeletionTimestamp() != nil {
			return fmt.Errorf("namespace %q is being deleted in the cluster: %w", name, errNotYet)
		}
		return nil
	}
	kind, _ := projection.ForResource(namespaceResource)
	above := s.Upstream.Get(key)
	if above == nil || above.GetDeletionTimestamp() != nil {
		return errNotYet
	}
	desired, err := kind.Project(above, projection.Part{PodWebhooks: s.podWebhooks(above)}, s.target)
	if err != nil {
		return err
	}
	return s.act(ctx, kind, kind.Plan(desired, nil), desired, nil)
}

func hashOf(obj projection.Object) string { return obj.GetAnnotations()[v1alpha1.AnnotationProjection] }
