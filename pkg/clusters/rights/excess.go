package rights

import (
	"context"
	"fmt"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// Excess asks a cluster whether the client's credential may do there what an earlier version took and this one does not need. It returns that
// in a person's words, "" if there is nothing.
func Excess(ctx context.Context, client kubernetes.Interface) (string, error) {
	review, err := client.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx, &authorizationv1.SelfSubjectAccessReview{
		Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: "list", Resource: "secrets"}},
	}, metav1.CreateOptions{})
	if err != nil {
		return "", fmt.Errorf("ask whether the credential may list the secrets of all namespaces: %w", err)
	}
	if !review.Status.Allowed {
		return "", nil
	}
	return "list the secrets of all namespaces", nil
}
