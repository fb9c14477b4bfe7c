package grants

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/manifold-dev/manifold/pkg/clusters/rights"
)

func TestSyncerRightsAreLeast(t *testing.T) {
	for _, q := range Questions(rights.Syncer()...) {
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
	for _, r := range rights.Syncer() {
		if r.Why == "" {
			t.Errorf("%v has no reason", r)
		}
	}
}

func TestRoleGrantsExactlyWhatIsAskedFor(t *testing.T) {
	var granted []Question
	for _, rule := range policyRules(rights.Syncer()) {
		for _, verb := range rule.Verbs {
			for _, path := range rule.NonResourceURLs {
				granted = append(granted, Question{verb: verb, path: path})
			}
			for _, resource := range rule.Resources {
				granted = append(granted, Question{verb: verb, group: rule.APIGroups[0], resource: resource})
			}
		}
	}
	if want := Questions(rights.Syncer()...); !reflect.DeepEqual(granted, want) {
		t.Errorf("the role grants %v, want %v", granted, want)
	}
}

func TestQuestionTarget(t *testing.T) {
	for want, q := range map[string]Question{
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

func TestOwnRightsAreToReadByName(t *testing.T) {
	for _, q := range Questions(ownRights(testLogical)...) {
		if q.resource == "rolebindings" || q.verb == "bind" && q.name == "manifold-syncer-0a1b2c3d-secrets" {
			continue // the fence bounds which
		}
		if q.verb != "get" || !strings.HasPrefix(q.name, "manifold-syncer-0a1b2c3d") {
			t.Errorf("%s %s is more than to read what is its own", q.verb, q.target())
		}
	}
}
