package objects

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/utils/ptr"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	manifold "github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/internal/text"
	"github.com/manifold-dev/manifold/pkg/delivery"
	"github.com/manifold-dev/manifold/pkg/delivery/wanted"
	"github.com/manifold-dev/manifold/pkg/identity"
)

// RefusedError says why an object cannot be what is wanted. Trying again does not help.
type RefusedError struct {
	Key wanted.Key
	Err error
}

// Error names the object.
func (e *RefusedError) Error() string { return fmt.Sprintf("%s: %s", e.Key, e.Err) }

// Unwrap returns what was answered.
func (e *RefusedError) Unwrap() error { return e.Err }

// Account is who writes the objects of an application.
type Account struct {
	Namespace string
	// ServiceAccount is the name of the one whose rights count; empty for those of Manifold itself.
	ServiceAccount string
}

// Owner is an application that objects belong to.
type Owner struct {
	Namespace, Name string
	UID             types.UID
	// Selected says that objects which belong to nobody may be taken: they are their users' own, and stay that.
	Selected bool
}

// of is the owner as far as it is one of an object: what is made for an application is nobody's who selects what there is.
func (o Owner) of(object wanted.Object) Owner {
	o.Selected = o.Selected && object.Variant == delivery.Primary
	return o
}

// Writer writes objects of applications.
type Writer struct {
	store  *Store
	client Clients
	mapper meta.ResettableRESTMapper
}

// Clients returns the client of an account. That of the zero account is who delivers.
type Clients func(Account) (dynamic.Interface, error)

// NewWriter returns a Writer.
func NewWriter(store *Store, client Clients, mapper meta.ResettableRESTMapper) *Writer {
	return &Writer{store: store, client: client, mapper: mapper}
}

// place is where an object is, or is to be.
type place struct {
	resource schema.GroupVersionResource
	// namespace is "" for what is in none.
	namespace string
}

func (p place) in(client dynamic.Interface) dynamic.ResourceInterface {
	return client.Resource(p.resource).Namespace(p.namespace)
}

// manifest is what is applied of an object there. What is in no namespace cannot be owned by an Application, which is in one, and says to whom it belongs by
// an annotation.
func (p place) manifest(object wanted.Object, owner Owner, withShares bool) *unstructured.Unstructured {
	out := object.Apply(withShares)
	if p.namespace != "" {
		return out
	}
	out.SetNamespace("")
	out.SetOwnerReferences(nil)
	annotations := out.GetAnnotations()
	annotations[v1alpha1.AnnotationOwner] = owner.mark()
	out.SetAnnotations(annotations)
	return out
}

// manager is who applies an object there. Applications may want the same object in no namespace, from wherever they are: each has a name of its own, so that who
// comes second by a moment is told of the conflict.
func (p place) manager(owner Owner) string {
	if p.namespace != "" {
		return v1alpha1.FieldManager
	}
	return v1alpha1.FieldManager + "-" + string(owner.UID)
}

// UndefinedError says that the logical cluster does not have the kind of an object.
type UndefinedError struct {
	Key  wanted.Key
	Kind schema.GroupVersionKind
}

// Error says what to do.
func (e *UndefinedError) Error() string {
	return fmt.Sprintf("%s: the logical cluster has no kind %s in %s: install its definition first", e.Key, e.Kind.Kind, e.Kind.GroupVersion())
}

// place returns where an object is to be. What is in no namespace is for a ServiceAccount alone to reach: who may write Applications of a namespace has no
// rights beyond it by those of Manifold.
func (w *Writer) place(account Account, object wanted.Object) (place, error) {
	gvk := object.Manifest.GroupVersionKind()
	if known, builtIn := w.store.kinds[gvk.GroupKind()]; builtIn {
		return place{gvk.GroupVersion().WithResource(known.resource.Resource), account.Namespace}, nil
	}
	mapping, err := w.mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	if meta.IsNoMatchError(err) {
		w.mapper.Reset() // it may have been defined since
		return place{}, &UndefinedError{object.Key, gvk}
	}
	if err != nil {
		return place{}, fmt.Errorf("%s: find its kind: %w", object.Key, err)
	}
	switch {
	case mapping.Scope.Name() == meta.RESTScopeNameNamespace:
		return place{mapping.Resource, account.Namespace}, nil
	case never(gvk):
		return place{}, &RefusedError{object.Key, errors.New("objects of its kind are in no namespace, and no part of applications")}
	case account.ServiceAccount == "":
		return place{}, &RefusedError{object.Key, errors.New("it is in no namespace, and written as a ServiceAccount alone: set spec.serviceAccountName to one that may write it")}
	}
	if _, follows := w.store.scoped.Resource(gvk.GroupKind()); !follows {
		return place{}, fmt.Errorf("%s: its kind is in no namespace, and no definition of it is seen yet: waiting for that", object.Key)
	}
	return place{mapping.Resource, ""}, nil
}

// resource returns how the kind of an object in a namespace is served.
func (w *Writer) resource(object wanted.Object) (schema.GroupVersionResource, error) {
	at, err := w.place(Account{}, object)
	return at.resource, err
}

// Apply makes an object what is wanted, and returns what is stored then. Force says that fields which others have set are taken from them.
func (w *Writer) Apply(ctx context.Context, account Account, owner Owner, object wanted.Object) (metav1.Object, error) {
	at, err := w.place(account, object)
	if err != nil {
		return nil, err
	}
	client, err := w.client(account)
	if err != nil {
		return nil, err
	}
	present, err := w.present(ctx, client, at, object.Key)
	if err != nil {
		return nil, refusal(object.Key, fmt.Errorf("look whether it is there: %w", err))
	}
	if err := mayTake(present, owner.of(object)); err != nil {
		return nil, &RefusedError{object.Key, err}
	}
	if present != nil && present.GetDeletionTimestamp() != nil {
		return nil, fmt.Errorf("%s is being deleted: waiting until it is gone", object.Key)
	}
	alone := account.ServiceAccount == ""
	manifest := at.manifest(object, owner, alone)
	if present != nil {
		manifest.SetUID(present.GetUID()) // what has come in its place meanwhile may be somebody else's
	}
	stored, err := at.in(client).Apply(ctx, manifest.GetName(), manifest, metav1.ApplyOptions{FieldManager: at.manager(owner), Force: present != nil})
	if err != nil || alone || object.Shares == "" {
		return stored, refusal(object.Key, err)
	}
	// The ServiceAccount may write the content. Which revision clusters hold is for us alone to say.
	return w.share(ctx, at, object, stored)
}

// share says which revision each cluster holds of what a ServiceAccount has written.
func (w *Writer) share(ctx context.Context, at place, object wanted.Object, of *unstructured.Unstructured) (metav1.Object, error) {
	shares := &unstructured.Unstructured{}
	shares.SetGroupVersionKind(object.Manifest.GroupVersionKind())
	shares.SetName(object.Name)
	shares.SetUID(of.GetUID())
	shares.SetAnnotations(map[string]string{manifold.AnnotationPlacement: object.Shares})
	const manager = v1alpha1.FieldManager + "-shares"
	client, err := w.client(Account{})
	if err != nil {
		return nil, err
	}
	stored, err := at.in(client).Apply(ctx, object.Name, shares, metav1.ApplyOptions{FieldManager: manager, Force: true})
	return stored, refusal(object.Key, err)
}

// DryRun returns what would be stored if a workload were applied that is not there yet.
func (w *Writer) DryRun(ctx context.Context, account Account, object wanted.Object) (metav1.Object, error) {
	at, err := w.place(account, object)
	if err != nil {
		return nil, err
	}
	client, err := w.client(account)
	if err != nil {
		return nil, err
	}
	stored, err := at.in(client).Apply(ctx, object.Name, object.Apply(false),
		metav1.ApplyOptions{FieldManager: v1alpha1.FieldManager, Force: true, DryRun: []string{metav1.DryRunAll}})
	return stored, refusal(object.Key, err)
}

// present is the object as it is there, nil if it is not. What the watch has not shown yet, or does not watch, is asked for.
func (w *Writer) present(ctx context.Context, client dynamic.Interface, at place, key wanted.Key) (metav1.Object, error) {
	if found, _ := w.store.Get(at.namespace, key); found != nil {
		return found, nil
	}
	found, err := at.in(client).Get(ctx, key.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return found, nil
}

// mayTake refuses an object that does not belong to an application.
func mayTake(present metav1.Object, owner Owner) error {
	if present == nil || Owned(present, owner) {
		return nil
	}
	of := present.GetLabels()[v1alpha1.LabelApplication]
	other := of != "" && of != owner.Name
	if marked, is := markedBy(present); is && present.GetNamespace() == "" {
		of, other = marked.String(), true
	}
	switch {
	case present.GetNamespace() == "" && present.GetAnnotations()[v1alpha1.AnnotationOwner] == owner.mark():
		return nil // somebody has taken the label off
	case other:
		return fmt.Errorf("it is there already, and belongs to Application %s: an object can belong to one", text.Line(of, 2*64))
	case owner.Selected:
		return nil
	}
	return fmt.Errorf("it is there already, and does not belong to Application %s: delete it, or call one of them otherwise", owner.Name)
}

// Owned reports whether an object belongs to an application.
func Owned(object metav1.Object, owner Owner) bool {
	if object.GetLabels()[v1alpha1.LabelApplication] != owner.Name {
		return false
	}
	if object.GetNamespace() == "" {
		return object.GetAnnotations()[v1alpha1.AnnotationOwner] == owner.mark()
	}
	for _, ref := range object.GetOwnerReferences() {
		if ref.UID == owner.UID {
			return true
		}
	}
	return false
}

// byAccount reports whether objects of a kind are written, and deleted, by the rights of a ServiceAccount alone.
func (w *Writer) byAccount(kind schema.GroupKind) bool {
	_, scoped := w.store.scoped.Resource(kind)
	return scoped || w.store.kinds[kind].granted
}

// errNoAccount says why nobody deletes an object that a ServiceAccount has written.
var errNoAccount = errors.New("it is deleted as a ServiceAccount alone: set spec.serviceAccountName to one that may delete it, or delete it yourself")

// at returns where the objects of a kind that is watched are.
func (w *Writer) at(account Account, key wanted.Key) (at place, watched bool) {
	kind := schema.GroupKind{Group: key.Group, Kind: key.Kind}
	if resource, is := w.store.scoped.Resource(kind); is {
		return place{resource, ""}, true
	}
	resource, watched := w.store.Resource(kind)
	return place{resource, account.Namespace}, watched
}

// Delete deletes an object that is no longer wanted.
func (w *Writer) Delete(ctx context.Context, account Account, key wanted.Key, object metav1.Object) error {
	at, watched := w.at(account, key)
	if !watched || object.GetDeletionTimestamp() != nil {
		return nil
	}
	if account.ServiceAccount == "" && w.byAccount(schema.GroupKind{Group: key.Group, Kind: key.Kind}) {
		return &RefusedError{key, errNoAccount}
	}
	client, err := w.client(account)
	if err != nil {
		return err
	}
	err = at.in(client).Delete(ctx, key.Name, metav1.DeleteOptions{
		Preconditions: metav1.NewUIDPreconditions(string(object.GetUID())), PropagationPolicy: ptr.To(metav1.DeletePropagationBackground),
	})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil // it is gone, or another one is there
	}
	return refusal(key, err)
}

// Pin says in which clusters an object runs that nothing else is applied of any more.
func (w *Writer) Pin(ctx context.Context, account Account, key wanted.Key, object metav1.Object, clusters string) error {
	resource, watched := w.store.Resource(schema.GroupKind{Group: key.Group, Kind: key.Kind})
	if !watched || object.GetDeletionTimestamp() != nil {
		return nil
	}
	client, err := w.client(account)
	if err != nil {
		return err
	}
	change, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": object.GetUID(), "resourceVersion": object.GetResourceVersion(), "annotations": map[string]any{
			manifold.AnnotationClusters: clusters, v1alpha1.AnnotationApplied: nil, // it is not what was applied any more
		},
	}})
	if err != nil {
		return err
	}
	_, err = client.Resource(resource).Namespace(account.Namespace).Patch(ctx, key.Name, types.MergePatchType, change, metav1.PatchOptions{FieldManager: v1alpha1.FieldManager})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil // it is gone, or the watch is about to show what it is now
	}
	return refusal(key, err)
}

// LetGo has an object await no release any more: clusters that none has come to take over what others hold.
func (w *Writer) LetGo(ctx context.Context, key wanted.Key, object metav1.Object) error {
	resource, watched := w.store.Resource(schema.GroupKind{Group: key.Group, Kind: key.Kind})
	if !watched || object.GetDeletionTimestamp() != nil {
		return nil
	}
	client, err := w.client(Account{}) // which revision clusters hold is for us alone to say
	if err != nil {
		return err
	}
	annotations := map[string]any{manifold.AnnotationAwaits: nil}
	if decision := identity.WholeDecisionOf(object); decision.Held() {
		annotations[manifold.AnnotationPlacement] = decision.Settling().String()
	}
	change, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": object.GetUID(), "resourceVersion": object.GetResourceVersion(), "annotations": annotations,
	}})
	if err != nil {
		return err
	}
	_, err = client.Resource(resource).Namespace(object.GetNamespace()).Patch(ctx, key.Name, types.MergePatchType, change, metav1.PatchOptions{FieldManager: v1alpha1.FieldManager})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil // it is gone, or the watch is about to show what it is now
	}
	return refusal(key, err)
}

// refusal tells an answer that will stay the same from one that may change.
func refusal(key wanted.Key, err error) error {
	var status apierrors.APIStatus
	switch {
	case err == nil:
		return nil
	case !errors.As(err, &status):
		return fmt.Errorf("apply %s: %w", key, err)
	case apierrors.IsConflict(err) && !apierrors.HasStatusCause(err, metav1.CauseTypeFieldManagerConflict),
		apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		return fmt.Errorf("apply %s: %w", key, err)
	case apierrors.IsForbidden(err), apierrors.IsInvalid(err), apierrors.IsBadRequest(err), apierrors.IsConflict(err), apierrors.IsRequestEntityTooLargeError(err),
		apierrors.IsMethodNotSupported(err):
		return &RefusedError{key, err}
	}
	return fmt.Errorf("apply %s: %w", key, err)
}
