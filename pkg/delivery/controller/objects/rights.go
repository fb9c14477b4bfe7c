package objects

import (
	"context"
	"fmt"

	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/manifold-dev/manifold/pkg/delivery/wanted"
)

var (
	reviews    = authorizationv1.SchemeGroupVersion.WithResource("selfsubjectaccessreviews")
	reviewKind = authorizationv1.SchemeGroupVersion.WithKind("SelfSubjectAccessReview")
)

// MayDelete says of each kind of some objects why an account may not delete the first of them which it may not, if there is one. Whether admission would
// let it is not asked.
func (w *Writer) MayDelete(ctx context.Context, account Account, keys []wanted.Key) (refused []*RefusedError, err error) {
	kinds, order := map[schema.GroupKind][]wanted.Key{}, []schema.GroupKind{}
	for _, key := range keys {
		kind := schema.GroupKind{Group: key.Group, Kind: key.Kind}
		if kinds[kind] == nil {
			order = append(order, kind)
		}
		kinds[kind] = append(kinds[kind], key)
	}
	for _, kind := range order {
		refusal, err := w.mayDelete(ctx, account, kind, kinds[kind])
		if err != nil {
			return nil, err
		}
		if refusal != nil {
			refused = append(refused, refusal)
		}
	}
	return refused, nil
}

// mayDelete says that of the objects of one kind. Most rights are to all objects of a kind, so that is asked first.
func (w *Writer) mayDelete(ctx context.Context, account Account, kind schema.GroupKind, keys []wanted.Key) (*RefusedError, error) {
	at, watched := w.at(account, keys[0])
	switch {
	case !watched: // so that nobody deletes it
		return nil, nil
	case account.ServiceAccount == "" && w.byAccount(kind):
		return &RefusedError{keys[0], errNoAccount}, nil
	case account.ServiceAccount == "":
		return nil, nil
	}
	client, err := w.client(account)
	if err != nil {
		return nil, err
	}
	if may, err := mayDeleteOne(ctx, client, at, ""); may || err != nil {
		return nil, err
	}
	for _, key := range keys {
		may, err := mayDeleteOne(ctx, client, at, key.Name)
		if err != nil {
			return nil, err
		}
		if !may {
			where := ""
			if at.namespace != "" {
				where = fmt.Sprintf(" in namespace %q", at.namespace)
			}
			return &RefusedError{key, fmt.Errorf("ServiceAccount %s may not delete it: give it the right to delete %s%s", account.ServiceAccount, at.resource.GroupResource(), where)}, nil
		}
	}
	return nil, nil
}

// mayDeleteOne reports whether a client may delete an object, or any of its kind for no name. Who may not even ask finds out when it is tried.
func mayDeleteOne(ctx context.Context, client dynamic.Interface, at place, name string) (bool, error) {
	review := authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &authorizationv1.ResourceAttributes{
		Verb: "delete", Namespace: at.namespace, Group: at.resource.Group, Version: at.resource.Version, Resource: at.resource.Resource, Name: name,
	}}}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&review)
	if err != nil {
		return false, err
	}
	asks := &unstructured.Unstructured{Object: content}
	asks.SetGroupVersionKind(reviewKind)
	answer, err := client.Resource(reviews).Create(ctx, asks, metav1.CreateOptions{})
	switch {
	case apierrors.IsForbidden(err):
		return true, nil
	case err != nil:
		return false, fmt.Errorf("ask for the right to delete %s %s: %w", at.resource.GroupResource(), name, err)
	}
	var out authorizationv1.SelfSubjectAccessReview
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(answer.Object, &out); err != nil {
		return false, fmt.Errorf("read whether %s %s may be deleted: %w", at.resource.GroupResource(), name, err)
	}
	return out.Status.Allowed, nil
}
