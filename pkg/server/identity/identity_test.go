package identity

import (
	"context"
	"net/http"
	"slices"
	"testing"

	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/client-go/rest"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
)

// noAuthorizer allows nothing.
type noAuthorizer struct{}

func (noAuthorizer) Authorize(context.Context, authorizer.Attributes) (authorizer.Decision, string, error) {
	return authorizer.DecisionDeny, "", nil
}

func (a noAuthorizer) ConditionsAwareAuthorize(ctx context.Context, attributes authorizer.Attributes) authorizer.ConditionsAwareDecision {
	return authorizer.ConditionsAwareDecisionFromParts(a.Authorize(ctx, attributes))
}

func (noAuthorizer) EvaluateConditions(context.Context, authorizer.ConditionsAwareDecision, authorizer.ConditionsData) (authorizer.Decision, string, error) {
	return authorizer.DecisionDeny, "", nil
}

func newIdentities(t *testing.T) (*Identities, *genericapiserver.Config) {
	t.Helper()
	generic := &genericapiserver.Config{LoopbackClientConfig: &rest.Config{Host: "https://127.0.0.1:6443", BearerToken: "loopback", QPS: 50}}
	generic.Authentication.Authenticator = authenticator.RequestFunc(func(*http.Request) (*authenticator.Response, bool, error) { return nil, false, nil })
	generic.Authorization.Authorizer = noAuthorizer{}
	ids, err := Add(generic, "shops")
	if err != nil {
		t.Fatal(err)
	}
	return ids, generic
}

func TestIdentitiesOfThisProcessAreRecognised(t *testing.T) {
	ids, generic := newIdentities(t)
	other, _ := newIdentities(t)
	for name, test := range map[string]struct {
		token      string
		want       string // the user's name, "" for nobody
		wantGroups []string
	}{
		"a syncer": {
			token: ids.Syncer("east").BearerToken, want: "system:manifold:cluster:east",
			wantGroups: []string{user.AllAuthenticated, v1alpha1.SyncersGroup},
		},
		"one of Manifold's controllers": {
			token: ids.As(v1alpha1.DrainUser).BearerToken, want: v1alpha1.DrainUser,
			wantGroups: []string{user.AllAuthenticated, v1alpha1.ControllersGroup},
		},
		"a controller that there is not": {
			token: ids.As(v1alpha1.ControllerUser).BearerToken, want: v1alpha1.ControllerUser, wantGroups: []string{user.AllAuthenticated},
		},
		"a token of another process":     {token: other.As(v1alpha1.DrainUser).BearerToken},
		"a name without the secret":      {token: v1alpha1.DrainUser},
		"the secret without a name":      {token: ids.secret},
		"a part of the secret":           {token: ids.secret[1:] + v1alpha1.DrainUser},
		"the secret with a letter wrong": {token: "!" + ids.secret[1:] + v1alpha1.DrainUser},
		"no token":                       {},
	} {
		t.Run(name, func(t *testing.T) {
			request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://127.0.0.1:6443/api", nil)
			if err != nil {
				t.Fatal(err)
			}
			if test.token != "" {
				request.Header.Set("Authorization", "Bearer "+test.token)
			}
			response, ok, _ := generic.Authentication.Authenticator.AuthenticateRequest(request)
			if ok != (test.want != "") {
				t.Fatalf("recognised %t as %+v", ok, response)
			}
			if ok && (response.User.GetName() != test.want || !slices.Equal(response.User.GetGroups(), test.wantGroups)) {
				t.Errorf("user %s in %v, want %s in %v", response.User.GetName(), response.User.GetGroups(), test.want, test.wantGroups)
			}
		})
	}
}

func TestClientsOfIdentitiesLeaveTheLoopbackConfigAlone(t *testing.T) {
	ids, generic := newIdentities(t)
	config := ids.Syncer("east")
	if config.Host != "https://127.0.0.1:6443" || config.QPS != -1 {
		t.Errorf("config %s with %v requests a second, want the server's own without a limit", config.Host, config.QPS)
	}
	if got := ids.Syncer("east").BearerToken; got != config.BearerToken {
		t.Error("a syncer has another token each time")
	}
	if generic.LoopbackClientConfig.BearerToken != "loopback" || generic.LoopbackClientConfig.QPS != 50 {
		t.Errorf("the loopback config was changed: %+v", generic.LoopbackClientConfig)
	}
}

func TestSyncersMayReportAndNothingElse(t *testing.T) {
	_, generic := newIdentities(t)
	request := func(who, verb, group, resource, subresource string) authorizer.AttributesRecord {
		return authorizer.AttributesRecord{
			User: &user.DefaultInfo{Name: who}, Verb: verb, APIGroup: group, Resource: resource, Subresource: subresource,
			Namespace: "shop", ResourceRequest: true,
		}
	}
	const east = "system:manifold:cluster:east"
	metrics := request(east, "create", "", "pods", "")
	metrics.ResourceRequest = false
	for name, test := range map[string]struct {
		request authorizer.AttributesRecord
		want    bool
	}{
		"a syncer reports a new pod":                 {request(east, "create", "", "pods", ""), true},
		"a syncer reports what a pod does":           {request(east, "update", "", "pods", ""), true},
		"a syncer reports that a pod is gone":        {request(east, "delete", "", "pods", ""), true},
		"a syncer reports an event":                  {request(east, "create", "", "events", ""), true},
		"a syncer reports an event again":            {request(east, "update", "", "events", ""), true},
		"a syncer may not read pods":                 {request(east, "list", "", "pods", ""), false},
		"a syncer may not delete all pods":           {request(east, "deletecollection", "", "pods", ""), false},
		"a syncer may not execute":                   {request(east, "create", "", "pods", "exec"), false},
		"a syncer may not read Secrets":              {request(east, "get", "", "secrets", ""), false},
		"a syncer may not write Deployments":         {request(east, "update", "apps", "deployments", ""), false},
		"a syncer may not write pods of other kinds": {request(east, "create", "metrics.k8s.io", "pods", ""), false},
		"a syncer may not reach other paths":         {metrics, false},
		"a user who is no syncer may not":            {request("jane", "create", "", "pods", ""), false},
		"a name that only begins alike may not":      {request("system:manifold:clusters", "create", "", "pods", ""), false},
	} {
		t.Run(name, func(t *testing.T) {
			decision, _, err := generic.Authorization.Authorizer.Authorize(t.Context(), test.request)
			if err != nil {
				t.Fatal(err)
			}
			if got := decision == authorizer.DecisionAllow; got != test.want {
				t.Errorf("allowed %t, want %t", got, test.want)
			}
			if got := allowance(syncersReport).ConditionsAwareAuthorize(t.Context(), test.request).IsAllow(); got != test.want {
				t.Errorf("allowed when asked for conditions: %t, want %t", got, test.want)
			}
		})
	}
	t.Run("what it does not know is left to others", func(t *testing.T) {
		decision, _, err := allowance(syncersReport).Authorize(t.Context(), request(east, "get", "", "secrets", ""))
		if decision != authorizer.DecisionNoOpinion || err != nil {
			t.Errorf("decision %v, error %v; want no opinion", decision, err)
		}
	})
}
