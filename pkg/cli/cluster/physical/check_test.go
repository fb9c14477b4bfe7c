package physical

import (
	"errors"
	"slices"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/manifold-dev/manifold/pkg/cli/cluster/grants"
	"github.com/manifold-dev/manifold/pkg/clusters/rights"
)

func TestMissingRights(t *testing.T) {
	asked := grants.Questions(
		rights.Right{Resources: []string{"pods", "pods/log"}, Verbs: []string{"get", "delete"}},
		rights.Right{Group: "apps", Resources: []string{"deployments"}, Verbs: []string{"create"}},
		rights.Right{Paths: []string{"/readyz"}, Verbs: []string{"get"}},
	)
	for name, test := range map[string]struct {
		allow func(authorizationv1.SelfSubjectAccessReviewSpec) bool
		want  []string
	}{
		"nothing is missing for an admin": {
			allow: func(authorizationv1.SelfSubjectAccessReviewSpec) bool { return true },
			want:  []string{},
		},
		"verbs of the same target share a line": {
			allow: func(s authorizationv1.SelfSubjectAccessReviewSpec) bool { return s.ResourceAttributes == nil },
			want:  []string{"get,delete pods", "get,delete pods/log", "create deployments.apps"},
		},
		"a subresource is asked for as such": {
			allow: func(s authorizationv1.SelfSubjectAccessReviewSpec) bool {
				return s.ResourceAttributes == nil || s.ResourceAttributes.Subresource != "log"
			},
			want: []string{"get,delete pods/log"},
		},
		"a path is asked for as such": {
			allow: func(s authorizationv1.SelfSubjectAccessReviewSpec) bool { return s.NonResourceAttributes == nil },
			want:  []string{"get /readyz"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			client := fake.NewClientset()
			client.PrependReactor("create", "selfsubjectaccessreviews", func(a clienttesting.Action) (bool, runtime.Object, error) {
				review := a.(clienttesting.CreateAction).GetObject().(*authorizationv1.SelfSubjectAccessReview).DeepCopy()
				review.Status.Allowed = test.allow(review.Spec)
				return true, review, nil
			})
			missing, err := missingRights(t.Context(), client, asked)
			if err != nil {
				t.Fatal(err)
			}
			if got := grants.Summarise(missing); !slices.Equal(got, test.want) {
				t.Errorf("missing %q, want %q", got, test.want)
			}
		})
	}
}

func TestMissingRightsSaysWhatCouldNotBeAsked(t *testing.T) {
	client, broken := fake.NewClientset(), errors.New("connection reset")
	client.PrependReactor("create", "selfsubjectaccessreviews", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, broken
	})
	_, err := missingRights(t.Context(), client, grants.Questions(rights.Right{Resources: []string{"pods"}, Verbs: []string{"get"}}))
	if !errors.Is(err, broken) || !strings.Contains(err.Error(), "get pods") {
		t.Errorf("missingRights: %v, want the right and the cause", err)
	}
}
