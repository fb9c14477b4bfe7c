package rights

import (
	"context"
	"fmt"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"k8s.io/client-go/kubernetes"
)

// UserKey is what the audit of a cluster has the user of the logical cluster under, among the extra information of who made a request.
const UserKey = "manifold.dev/user"

// Telling returns the rights by which a ServiceAccount tells its cluster on whose behalf it makes a request: to act as itself, and nobody else,
// with the name of a user beside.
func Telling(namespace, account string) []Right {
	const why = "telling the cluster's audit whose request it is"
	return []Right{
		{Why: why, Group: authenticationv1.GroupName, Resources: []string{"userextras/" + UserKey}, Verbs: []string{"impersonate"}},
		{Why: why, Resources: []string{"serviceaccounts"}, Names: []string{account}, Namespace: namespace, Verbs: []string{"impersonate"}},
	}
}

// Tells asks a cluster whether the client's credential has what Telling grants. It returns the user name of the credential, empty if it has
// not, and then what is missing in a person's words.
func Tells(ctx context.Context, client kubernetes.Interface) (self, missing string, err error) {
	review, err := client.AuthenticationV1().SelfSubjectReviews().Create(ctx, &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	if err != nil {
		return "", "", fmt.Errorf("ask who the credential is: %w", err)
	}
	self = review.Status.UserInfo.Username
	namespace, account, err := serviceaccount.SplitUsername(self)
	if err != nil {
		return "", "", nil //nolint:nilerr // who has made a credential by hand need not be told how to tell
	}
	missing = fmt.Sprintf("impersonate serviceaccounts %s/%s with userextras %s", namespace, account, UserKey)
	for _, right := range Telling(namespace, account) {
		attributes := &authorizationv1.ResourceAttributes{Verb: right.Verbs[0], Group: right.Group, Namespace: right.Namespace}
		attributes.Resource, attributes.Subresource = split(right.Resources[0])
		if len(right.Names) > 0 {
			attributes.Name = right.Names[0]
		}
		answer, err := client.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx, &authorizationv1.SelfSubjectAccessReview{
			Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: attributes},
		}, metav1.CreateOptions{})
		if err != nil {
			return "", "", fmt.Errorf("ask for the right to %s: %w", missing, err)
		}
		if !answer.Status.Allowed {
			return "", missing, nil
		}
	}
	return self, "", nil
}
