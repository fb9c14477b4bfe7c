// Package views changes the storage of what goes to clusters for requests that come through the view of one of them (pkg/server/views): what is read is
// as that cluster is to hold it, and what is written is that cluster's alone. Requests on the plain path pass as they are.
package views

import (
	"context"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/warning"
	"k8s.io/client-go/util/retry"

	"github.com/manifold-dev/manifold/pkg/identity"
	"github.com/manifold-dev/manifold/pkg/projection"
	"github.com/manifold-dev/manifold/pkg/server/storage/metadata"
	"github.com/manifold-dev/manifold/pkg/server/views"
)

// Project returns what a cluster is to hold of a workload, by the function that its syncer goes by.
type Project func(kind projection.Kind, above projection.Object, cluster string) (projection.Object, error)

// notOneCluster are resources that go to clusters and yet bound or describe the logical cluster as a whole.
var notOneCluster = map[string]bool{"namespaces": true, "limitranges": true, "resourcequotas": true, "endpoints": true, "endpointslices": true}

// Viewed are the resources whose storage was changed.
type Viewed struct {
	project    Project
	authorizer authorizer.UnconditionalAuthorizer
	stores     map[schema.GroupVersionResource]*store
}

// New returns what changes storage. Nothing is projected before the server serves.
func New(project Project, authorizer authorizer.UnconditionalAuthorizer) *Viewed {
	return &Viewed{project: project, authorizer: authorizer, stores: map[schema.GroupVersionResource]*store{}}
}

// stock is what the storage of every kind that goes to clusters offers. The server finds what it offers by type assertion.
type stock interface {
	rest.StandardStorage
	rest.StorageWithReadiness
	rest.Scoper
	rest.SingularNameProvider
	rest.StorageVersionProvider
	rest.ResetFieldsStrategy
	rest.MayReturnFullObjectDeleter
	rest.CorruptObjectDeleterProvider
}

// InGroup reports whether an API group has anything that is seen and written through views.
func InGroup(group string) bool {
	return slices.ContainsFunc(kinds(), func(kind projection.Kind) bool { return mayBeOneClusters(kind, group) })
}

func mayBeOneClusters(kind projection.Kind, group string) bool {
	return kind.Resource.Group == group && kind.Resource.Version == "v1" && kind.Namespaced && !notOneCluster[kind.Resource.Resource]
}

// Change wraps the storage of an API group in its version v1.
func (v *Viewed) Change(storage map[string]rest.Storage, group string) error {
	for _, kind := range kinds() {
		resource := kind.Resource
		was, served := storage[resource.Resource]
		if !served || !mayBeOneClusters(kind, group) {
			continue
		}
		whole, ok := was.(stock)
		if !ok {
			return fmt.Errorf("storage of %s is a %T, which lacks a part that built-in storage has", resource.Resource, was)
		}
		if more := hasMore(was); more != "" {
			return fmt.Errorf("storage of %s is a %T, and views would hide that it is a %s", resource.Resource, was, more)
		}
		s := &store{stock: whole, kind: kind, project: v.project, authorizer: v.authorizer, deployments: v.deployments}
		storage[resource.Resource], v.stores[resource] = s, s
		if err := s.changeScale(storage); err != nil {
			return err
		}
	}
	return nil
}

// deployments is the storage of Deployments, nil as long as there is none.
func (v *Viewed) deployments() *store {
	return v.stores[appsv1.SchemeGroupVersion.WithResource("deployments")]
}

// hasMore names what storage offers that the wrapped one would not, "" if it offers no such thing.
func hasMore(storage rest.Storage) string {
	switch storage.(type) {
	case rest.NamedCreater:
		return "NamedCreater"
	case rest.GetterWithOptions:
		return "GetterWithOptions"
	case rest.Connecter:
		return "Connecter"
	case rest.StorageMetadata:
		return "StorageMetadata"
	case rest.KindProvider:
		return "KindProvider"
	case rest.GroupVersionKindProvider:
		return "GroupVersionKindProvider"
	case rest.GroupVersionAcceptor:
		return "GroupVersionAcceptor"
	case rest.SubresourceObjectMetaPreserver:
		return "SubresourceObjectMetaPreserver"
	case rest.ResetFieldsFilterStrategy:
		return "ResetFieldsFilterStrategy"
	}
	return ""
}

// Viewed reports whether objects of a resource are seen and written through views.
func (v *Viewed) Viewed(resource schema.GroupVersionResource) bool { return v.stores[resource] != nil }

// Check returns why an object does not count in the view of the context, see pkg/server/views.
func (v *Viewed) Check(ctx context.Context, resource schema.GroupVersionResource, subresource, name string, write bool) error {
	s := v.stores[resource]
	cluster, ok := views.From(ctx)
	if s == nil || !ok {
		return nil
	}
	obj, err := s.stock.Get(ctx, name, &metav1.GetOptions{})
	if err != nil {
		return err
	}
	l := s.through(ctx, cluster)
	above, err := l.versioned(obj)
	switch {
	case err != nil:
		return err
	case write && subresource == "status" && l.sees(above) && identity.Viewed(above):
		return apierrors.NewForbidden(resource.GroupResource(), name, fmt.Errorf("its status is that of all clusters that hold it, among them %s", l.others(above)))
	case write:
		return l.refusal(above)
	case !l.sees(above):
		return apierrors.NewNotFound(resource.GroupResource(), name)
	}
	return nil
}

// store is the storage of a kind, seen through views where requests come through one.
type store struct {
	stock
	kind    projection.Kind
	project Project
	// authorizer knows who may do what.
	authorizer authorizer.UnconditionalAuthorizer
	// deployments is the storage of those that control what is stored here.
	deployments func() *store
}

// ShortNames implements rest.ShortNamesProvider, which not every kind does.
func (s *store) ShortNames() []string {
	if named, ok := s.stock.(rest.ShortNamesProvider); ok {
		return named.ShortNames()
	}
	return nil
}

// Categories implements rest.CategoriesProvider, which not every kind does.
func (s *store) Categories() []string {
	if named, ok := s.stock.(rest.CategoriesProvider); ok {
		return named.Categories()
	}
	return nil
}

func (s *store) through(ctx context.Context, cluster string) looker {
	l := looker{kind: s.kind, project: s.project, cluster: cluster}
	l.controls = func(above projection.Object) (projection.Object, looker) { return s.controller(ctx, cluster, above) }
	return l
}

// controller returns the Deployment that controls an object.
func (s *store) controller(ctx context.Context, cluster string, above projection.Object) (projection.Object, looker) {
	ref, of := metav1.GetControllerOf(above), s.deployments()
	if ref == nil || of == nil || ref.Kind != of.kind.GVK.Kind || ref.APIVersion != of.kind.GVK.GroupVersion().String() {
		return nil, looker{}
	}
	found, err := of.stock.Get(request.WithNamespace(ctx, above.GetNamespace()), ref.Name, &metav1.GetOptions{ResourceVersion: "0"}) // from the cache
	if err != nil {
		return nil, looker{}
	}
	through := of.through(ctx, cluster)
	owner, err := through.versioned(found)
	if err != nil || owner.GetUID() != ref.UID {
		return nil, looker{}
	}
	return owner, through
}

// Get implements rest.Getter.
func (s *store) Get(ctx context.Context, name string, options *metav1.GetOptions) (runtime.Object, error) {
	obj, err := s.stock.Get(ctx, name, options)
	cluster, ok := views.From(ctx)
	if err != nil || !ok {
		return obj, err
	}
	shown, visible, err := s.through(ctx, cluster).show(ctx, obj)
	if err == nil && !visible {
		err = apierrors.NewNotFound(s.kind.Resource.GroupResource(), name)
	}
	return shown, err
}

// List implements rest.Lister. A page may have fewer objects than were asked for, and how many are left is not told: others' would be counted.
func (s *store) List(ctx context.Context, options *metainternalversion.ListOptions) (runtime.Object, error) {
	cluster, ok := views.From(ctx)
	if !ok {
		return s.stock.List(ctx, options)
	}
	l := s.through(ctx, cluster)
	options, selected := l.selects(options)
	list, err := s.stock.List(ctx, options)
	if err != nil {
		return nil, err
	}
	shown := []runtime.Object{}
	if err := meta.EachListItem(list, func(obj runtime.Object) error {
		out, visible, err := l.show(ctx, obj)
		if visible && selected(out) {
			shown = append(shown, out)
		}
		return err
	}); err != nil {
		return nil, err
	}
	out := s.NewList()
	if err := meta.SetList(out, shown); err != nil {
		return nil, err
	}
	from, err := meta.ListAccessor(list)
	if err != nil {
		return nil, err
	}
	to, err := meta.ListAccessor(out)
	if err != nil {
		return nil, err
	}
	to.SetResourceVersion(from.GetResourceVersion())
	to.SetContinue(from.GetContinue())
	return out, nil
}

// Watch implements rest.Watcher. What comes to the cluster is added, and what leaves it deleted, as for one who watches by labels.
func (s *store) Watch(ctx context.Context, options *metainternalversion.ListOptions) (watch.Interface, error) {
	cluster, ok := views.From(ctx)
	if !ok {
		return s.stock.Watch(ctx, options)
	}
	l := s.through(ctx, cluster)
	options, selected := l.selects(options)
	events, err := s.stock.Watch(ctx, options)
	if err != nil {
		return nil, err
	}
	// Warnings go with the head of an answer, which has been sent when events come.
	w := watcher{looker: l, selected: selected, ctx: warning.WithWarningRecorder(ctx, nobody{}), told: map[string]bool{}}
	return watch.Filter(events, w.see), nil
}

// selects returns with what options objects are asked for, and which of what comes is meant: the labels of an object are not those that each cluster holds of it.
func (l looker) selects(options *metainternalversion.ListOptions) (ask *metainternalversion.ListOptions, selected func(runtime.Object) bool) {
	if !l.several() || options == nil || options.LabelSelector == nil || options.LabelSelector.Empty() {
		return options, func(runtime.Object) bool { return true }
	}
	selector := options.LabelSelector
	ask = options.DeepCopy()
	ask.LabelSelector = nil
	return ask, func(obj runtime.Object) bool {
		accessor, is := obj.(metav1.Object)
		return is && selector.Matches(labels.Set(accessor.GetLabels()))
	}
}

// Create implements rest.Creater.
func (s *store) Create(ctx context.Context, obj runtime.Object, validate rest.ValidateObjectFunc, options *metav1.CreateOptions) (runtime.Object, error) {
	cluster, ok := views.From(ctx)
	if !ok {
		return s.stock.Create(ctx, obj, validate, options)
	}
	l := s.through(ctx, cluster)
	accessor, err := meta.Accessor(obj)
	if err != nil {
		return nil, err
	}
	if err := l.stamp(accessor, nil); err != nil {
		return nil, err
	}
	if name := accessor.GetName(); name != "" { // before what counts objects counts it
		if found, err := s.stock.Get(ctx, name, &metav1.GetOptions{}); err == nil {
			return s.join(ctx, l, found, obj, validate, options)
		}
	}
	asked := obj.DeepCopyObject()
	made, err := s.stock.Create(ctx, obj, validate, options)
	if apierrors.IsAlreadyExists(err) && accessor.GetName() != "" { // several may be applied to at once
		if found, getErr := s.stock.Get(ctx, accessor.GetName(), &metav1.GetOptions{}); getErr == nil {
			return s.join(ctx, l, found, asked, validate, options)
		}
	}
	return l.after(ctx, made, err)
}

// join has the cluster hold an object that others hold, as somebody makes it through the view. He has to have the right to change it besides.
func (s *store) join(ctx context.Context, l looker, found, obj runtime.Object, validate rest.ValidateObjectFunc, options *metav1.CreateOptions) (runtime.Object, error) {
	above, err := l.versioned(found)
	if err != nil {
		return nil, err
	}
	name := above.GetName()
	if l.sees(above) {
		return nil, apierrors.NewAlreadyExists(s.kind.Resource.GroupResource(), name)
	}
	if err := l.mayJoin(above); err != nil {
		return nil, err
	}
	if err := s.mayUpdate(ctx, above); err != nil {
		return nil, err
	}
	info := &change{
		UpdatedObjectInfo: rest.DefaultUpdatedObjectInfo(nil, func(context.Context, runtime.Object, runtime.Object) (runtime.Object, error) { return obj, nil }),
		store:             s, looker: l, name: name, create: validate, force: true, makes: true,
	}
	update := &metav1.UpdateOptions{}
	if options != nil {
		update.DryRun, update.FieldManager, update.FieldValidation = options.DryRun, options.FieldManager, options.FieldValidation
	}
	var changed runtime.Object
	err = retry.RetryOnConflict(retry.DefaultRetry, func() error { // others may join at the same time
		changed, _, err = s.stock.Update(metadata.WithViewsDecided(ctx), name, info, validate, rest.ValidateAllObjectUpdateFunc, false, update)
		return err
	})
	return l.after(ctx, changed, err)
}

// mayUpdate asks for the right to change an object, for one who has asked to make it.
func (s *store) mayUpdate(ctx context.Context, above metav1.Object) error {
	who, known := request.UserFrom(ctx)
	if !known {
		who = &user.DefaultInfo{}
	}
	resource := s.kind.Resource
	if known {
		decision, _, err := s.authorizer.Authorize(ctx, authorizer.AttributesRecord{
			User: who, Verb: "update", ResourceRequest: true, Namespace: above.GetNamespace(), Name: above.GetName(),
			APIGroup: resource.Group, APIVersion: resource.Version, Resource: resource.Resource,
		})
		if err == nil && decision == authorizer.DecisionAllow {
			return nil
		}
	}
	return apierrors.NewForbidden(resource.GroupResource(), above.GetName(), fmt.Errorf("other clusters hold an object of this name, so that to make it here is to change it, "+
		"and user %q may not update it", who.GetName()))
}

// Update implements rest.Updater, also for patches and applies.
func (s *store) Update(ctx context.Context, name string, info rest.UpdatedObjectInfo, create rest.ValidateObjectFunc, update rest.ValidateObjectUpdateFunc,
	force bool, options *metav1.UpdateOptions,
) (runtime.Object, bool, error) {
	cluster, ok := views.From(ctx)
	decided := metadata.WithViewsDecided(ctx)
	if !ok {
		return s.stock.Update(decided, name, plain{info, s.through(ctx, "")}, create, update, force, options)
	}
	l := s.through(ctx, cluster)
	change := &change{UpdatedObjectInfo: info, store: s, looker: l, name: name, create: create, update: update, force: force}
	obj, made, err := s.stock.Update(decided, name, change, create, update, force, options)
	shown, err := l.after(ctx, obj, err)
	return shown, made || change.joined, err
}

// after returns what was written as the view shows it.
func (l looker) after(ctx context.Context, obj runtime.Object, err error) (runtime.Object, error) {
	if err != nil || obj == nil {
		return obj, err
	}
	if _, is := obj.(metav1.Object); !is { // a status
		return obj, nil
	}
	shown, visible, err := l.show(ctx, obj)
	if err == nil && !visible {
		return obj, hide(obj)
	}
	return shown, err
}

// Delete implements rest.GracefulDeleter.
func (s *store) Delete(ctx context.Context, name string, validate rest.ValidateObjectFunc, options *metav1.DeleteOptions) (runtime.Object, bool, error) {
	cluster, ok := views.From(ctx)
	if !ok {
		return s.stock.Delete(ctx, name, validate, options)
	}
	l := s.through(ctx, cluster)
	if found, err := s.stock.Get(ctx, name, &metav1.GetOptions{}); err == nil && identity.Viewed(found.(metav1.Object)) {
		return s.leave(ctx, l, name, validate, options)
	}
	obj, gone, err := s.stock.Delete(ctx, name, func(ctx context.Context, obj runtime.Object) error {
		above, err := l.versioned(obj)
		if err != nil {
			return err
		}
		if err := l.refusal(above); err != nil {
			return err
		}
		if identity.Viewed(above) {
			return apierrors.NewConflict(s.kind.Resource.GroupResource(), name, fmt.Errorf("cluster %s has come to hold it meanwhile: try again", l.others(above)))
		}
		if validate == nil {
			return nil
		}
		return validate(ctx, obj)
	}, options)
	shown, err := l.after(ctx, obj, err)
	return shown, gone, err
}

// leave takes an object away from the cluster that others hold as well. It is gone from the view at once, and from the cluster once that has heard of it.
func (s *store) leave(ctx context.Context, l looker, name string, validate rest.ValidateObjectFunc, options *metav1.DeleteOptions) (runtime.Object, bool, error) {
	if options == nil {
		options = &metav1.DeleteOptions{}
	}
	//lint:ignore SA1019 Whoever sets it means the same.
	if options.OrphanDependents != nil && *options.OrphanDependents || options.PropagationPolicy != nil && *options.PropagationPolicy == metav1.DeletePropagationOrphan {
		return nil, false, apierrors.NewBadRequest(fmt.Sprintf("%s %q is held by other clusters as well, so what cluster %q runs of it cannot be orphaned", s.kind.GVK.Kind, name, l.cluster))
	}
	w := &leaving{looker: l, preconditions: options.Preconditions, validate: validate}
	_, _, err := s.stock.Update(metadata.WithViewsDecided(ctx), name, w, rest.ValidateAllObjectFunc, rest.ValidateAllObjectUpdateFunc, false, &metav1.UpdateOptions{DryRun: options.DryRun})
	if err != nil {
		return nil, false, err
	}
	return w.last, true, nil
}

// DeleteCollection implements rest.CollectionDeleter. It is not answered in views.
func (s *store) DeleteCollection(ctx context.Context, validate rest.ValidateObjectFunc, options *metav1.DeleteOptions, which *metainternalversion.ListOptions,
) (runtime.Object, error) {
	if _, ok := views.From(ctx); ok {
		return nil, apierrors.NewMethodNotSupported(s.kind.Resource.GroupResource(), "deletecollection")
	}
	return s.stock.DeleteCollection(ctx, validate, options, which)
}
