package rights

import (
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
)

func TestWhoMayTellOnWhoseBehalfItActs(t *testing.T) {
	const us = "system:serviceaccount:manifold-system:us"
	for name, test := range map[string]struct {
		user          string
		grants        map[string]string // resource: namespace/name
		self, missing string
	}{
		"who has both rights": {us, map[string]string{"userextras/manifold.dev/user": "/", "serviceaccounts/": "manifold-system/us"}, us, ""},
		"not who has none":    {us, nil, "", "impersonate serviceaccounts manifold-system/us with userextras manifold.dev/user"},
		"not who has one alone": {us, map[string]string{"userextras/manifold.dev/user": "/"}, "",
			"impersonate serviceaccounts manifold-system/us with userextras manifold.dev/user"},
		"nobody needs it who is no ServiceAccount": {"admin", nil, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			client := fake.NewClientset()
			client.PrependReactor("create", "selfsubjectreviews", func(clienttesting.Action) (bool, runtime.Object, error) {
				review := &authenticationv1.SelfSubjectReview{}
				review.Status.UserInfo.Username = test.user
				return true, review, nil
			})
			client.PrependReactor("create", "selfsubjectaccessreviews", func(action clienttesting.Action) (bool, runtime.Object, error) {
				review := action.(clienttesting.CreateAction).GetObject().(*authorizationv1.SelfSubjectAccessReview)
				of := review.Spec.ResourceAttributes
				granted, ok := test.grants[of.Resource+"/"+of.Subresource]
				review.Status.Allowed = ok && of.Verb == "impersonate" && granted == of.Namespace+"/"+of.Name
				return true, review, nil
			})
			self, missing, err := Tells(t.Context(), client)
			if err != nil || self != test.self || missing != test.missing {
				t.Errorf("got %q, %q, %v; want %q, %q", self, missing, err, test.self, test.missing)
			}
		})
	}
}
