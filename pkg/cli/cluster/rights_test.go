package cluster

import (
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
)

func TestSyncerRightsAreLeast(t *testing.T) {
	for _, q := range questions(SyncerRights()...) {
		if q.verb == "*" || q.group == "*" || strings.HasPrefix(q.resource, "*") || q.path == "*" {
			t.Errorf("%s %s is more than Manifold can need", q.verb, q.target())
		}
		if slices.Contains([]string{"rbac.authorization.k8s.io", "admissionregistration.k8s.io", "certificates.k8s.io"}, q.group) {
			t.Errorf("%s %s would let the syncer widen its own rights", q.verb, q.target())
		}
		if q.resource == "secrets" && slices.Contains([]string{"get", "list", "watch"}, q.verb) {
			t.Errorf("%s %s would let the syncer read everybody's", q.verb, q.target())
		}
		if slices.Contains([]string{"impersonate", "escalate", "bind", "deletecollection"}, q.verb) {
			t.Errorf("%s %s is not needed", q.verb, q.target())
		}
	}
	for _, r := range SyncerRights() {
		if r.Why == "" {
			t.Errorf("%v has no reason", r)
		}
	}
}

func TestRoleGrantsExactlyWhatIsAskedFor(t *testing.T) {
	var granted []question
	for _, rule := range policyRules(SyncerRights()) {
		for _, verb := range rule.Verbs {
			for _, path := range rule.NonResourceURLs {
				granted = append(granted, question{verb: verb, path: path})
			}
			for _, resource := range rule.Resources {
				granted = append(granted, question{verb: verb, group: rule.APIGroups[0], resource: resource})
			}
		}
	}
	if want := questions(SyncerRights()...); !reflect.DeepEqual(granted, want) {
		t.Errorf("the role grants %v, want %v", granted, want)
	}
}

func TestQuestionTarget(t *testing.T) {
	for want, q := range map[string]question{
		"pods":                                 {resource: "pods"},
		"pods/log":                             {resource: "pods/log"},
		"deployments.apps":                     {group: "apps", resource: "deployments"},
		"deployments.apps/scale":               {group: "apps", resource: "deployments/scale"},
		"/readyz":                              {path: "/readyz"},
		"secrets in namespace manifold-system": {resource: "secrets", namespace: "manifold-system"},
	} {
		if got := q.target(); got != want {
			t.Errorf("target of %+v: %q, want %q", q, got, want)
		}
	}
}

func TestMissingRights(t *testing.T) {
	asked := questions(
		Right{Resources: []string{"pods", "pods/log"}, Verbs: []string{"get", "delete"}},
		Right{Group: "apps", Resources: []string{"deployments"}, Verbs: []string{"create"}},
		Right{Paths: []string{"/readyz"}, Verbs: []string{"get"}},
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
			if got := summarise(missing); !slices.Equal(got, test.want) {
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
	_, err := missingRights(t.Context(), client, questions(Right{Resources: []string{"pods"}, Verbs: []string{"get"}}))
	if !errors.Is(err, broken) || !strings.Contains(err.Error(), "get pods") {
		t.Errorf("missingRights: %v, want the right and the cause", err)
	}
}
