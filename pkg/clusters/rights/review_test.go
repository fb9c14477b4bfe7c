package rights

import (
	"errors"
	"slices"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
)

var some = []Right{
	{Group: "apps", Resources: []string{"deployments"}, Verbs: []string{"get", "list"}},
	{Resources: []string{"pods", "pods/log"}, Verbs: []string{"get"}},
	{Paths: []string{"/apis/*", "/version"}, Verbs: []string{"get"}},
}

func rule(verbs, group, resources string, names ...string) authorizationv1.ResourceRule {
	return authorizationv1.ResourceRule{
		Verbs: strings.Split(verbs, ","), APIGroups: []string{group}, Resources: strings.Split(resources, ","), ResourceNames: names,
	}
}

func path(patterns ...string) authorizationv1.NonResourceRule {
	return authorizationv1.NonResourceRule{Verbs: []string{"get"}, NonResourceURLs: patterns}
}

func TestMissing(t *testing.T) {
	for name, test := range map[string]struct {
		has authorizationv1.SubjectRulesReviewStatus
		// allowed are the verbs that are granted when asked for one by one.
		allowed []string
		want    []string
	}{
		"everything is there": {has: authorizationv1.SubjectRulesReviewStatus{
			ResourceRules:    []authorizationv1.ResourceRule{rule("get,list", "apps", "deployments"), rule("get", "", "pods,pods/log")},
			NonResourceRules: []authorizationv1.NonResourceRule{path("/apis/*", "/version")},
		}},
		"an admin has it by stars": {has: authorizationv1.SubjectRulesReviewStatus{
			ResourceRules:    []authorizationv1.ResourceRule{rule("*", "*", "*")},
			NonResourceRules: []authorizationv1.NonResourceRule{path("*")},
		}},
		"nothing is there": {want: []string{"get,list deployments.apps", "get pods", "get pods/log", "get /apis/*", "get /version"}},
		"what is allowed by name alone does not count": {has: authorizationv1.SubjectRulesReviewStatus{
			ResourceRules:    []authorizationv1.ResourceRule{rule("get,list", "apps", "deployments", "web"), rule("get", "", "pods,pods/log")},
			NonResourceRules: []authorizationv1.NonResourceRule{path("*")},
		}, want: []string{"get,list deployments.apps"}},
		"a resource of another group, and one path for many": {has: authorizationv1.SubjectRulesReviewStatus{
			ResourceRules:    []authorizationv1.ResourceRule{rule("get,list", "", "deployments"), rule("get", "", "pods,pods/log")},
			NonResourceRules: []authorizationv1.NonResourceRule{path("/apis/apps", "/version")},
		}, want: []string{"get,list deployments.apps", "get /apis/*"}},
		"what cannot be told for sure is asked for": {
			has: authorizationv1.SubjectRulesReviewStatus{Incomplete: true}, allowed: []string{"get"}, want: []string{"list deployments.apps"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			client := fake.NewClientset()
			client.PrependReactor("create", "selfsubjectrulesreviews", func(clienttesting.Action) (bool, runtime.Object, error) {
				return true, &authorizationv1.SelfSubjectRulesReview{Status: test.has}, nil
			})
			client.PrependReactor("create", "selfsubjectaccessreviews", func(action clienttesting.Action) (bool, runtime.Object, error) {
				review := action.(clienttesting.CreateAction).GetObject().(*authorizationv1.SelfSubjectAccessReview)
				verb := ""
				if r := review.Spec.ResourceAttributes; r != nil {
					verb = r.Verb
				} else {
					verb = review.Spec.NonResourceAttributes.Verb
				}
				review.Status.Allowed = slices.Contains(test.allowed, verb)
				return true, review, nil
			})
			got, err := Missing(t.Context(), client, some)
			if err != nil || !slices.Equal(got, test.want) {
				t.Errorf("missing %q, %v, want %q", got, err, test.want)
			}
		})
	}
}

func TestMissingTellsThatItCannotAsk(t *testing.T) {
	refusal := errors.New("no")
	client := fake.NewClientset()
	client.PrependReactor("create", "selfsubjectrulesreviews", func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, refusal })
	if _, err := Missing(t.Context(), client, some); !errors.Is(err, refusal) {
		t.Errorf("got %v", err)
	}
}
