// Package identity lets the parts of this process speak to the API under names of their own, says what each of them may do, and tells by whom
// a request comes.
package identity

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"fmt"
	"strings"

	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/request/bearertoken"
	authenticatorunion "k8s.io/apiserver/pkg/authentication/request/union"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	authorizerunion "k8s.io/apiserver/pkg/authorization/union"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/client-go/rest"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/projection"
)

// Identities lets parts of this process speak to the API under names of their own. A token is a secret that never leaves the process,
// followed by the name.
type Identities struct {
	secret string
	// Loopback is how the server itself reaches the API.
	Loopback *rest.Config
}

// Add makes generic recognise the identities and gives syncers their rights.
func Add(generic *genericapiserver.Config) (*Identities, error) {
	random := make([]byte, 32)
	if _, err := rand.Read(random); err != nil {
		return nil, fmt.Errorf("make the secret of internal identities: %w", err)
	}
	ids := &Identities{secret: base64.RawURLEncoding.EncodeToString(random) + "/", Loopback: generic.LoopbackClientConfig}
	generic.Authentication.Authenticator = authenticatorunion.New(
		bearertoken.New(authenticator.WrapAudienceAgnosticToken(generic.Authentication.APIAudiences, ids)),
		generic.Authentication.Authenticator)
	union, err := authorizerunion.New(
		authorizerunion.NamedAuthorizer{AuthorizerName: "ManifoldSyncer", Authorizer: syncerAuthorizer{}},
		authorizerunion.NamedAuthorizer{AuthorizerName: "ManifoldTrial", Authorizer: trialAuthorizer{}},
		authorizerunion.NamedAuthorizer{AuthorizerName: "ManifoldController", Authorizer: controllerAuthorizer{}},
		authorizerunion.NamedAuthorizer{AuthorizerName: "Configured", Authorizer: generic.Authorization.Authorizer})
	if err != nil {
		return nil, fmt.Errorf("give syncers their rights: %w", err)
	}
	generic.Authorization.Authorizer = union
	return ids, nil
}

// AuthenticateToken implements authenticator.Token.
func (ids *Identities) AuthenticateToken(_ context.Context, token string) (*authenticator.Response, bool, error) {
	if len(token) <= len(ids.secret) || subtle.ConstantTimeCompare([]byte(token[:len(ids.secret)]), []byte(ids.secret)) != 1 {
		return nil, false, nil
	}
	info := &user.DefaultInfo{Name: token[len(ids.secret):], Groups: []string{user.AllAuthenticated}}
	switch {
	case strings.HasPrefix(info.Name, v1alpha1.SyncerUserPrefix):
		info.Groups = append(info.Groups, v1alpha1.SyncersGroup)
	case controllerRights[info.Name] != nil:
		info.Groups = append(info.Groups, v1alpha1.ControllersGroup)
	case info.Name == v1alpha1.ControllerUser:
		info.Groups = append(info.Groups, user.SystemPrivilegedGroup)
	}
	return &authenticator.Response{User: info}, true, nil
}

// Controller returns how Manifold's own controllers reach the API.
func (ids *Identities) Controller() *rest.Config { return ids.As(v1alpha1.ControllerUser) }

// Summary and placement return how those two of them reach it that need no more than rights of their own.
func (ids *Identities) Summary() *rest.Config   { return ids.As(v1alpha1.SummaryUser) }
func (ids *Identities) Placement() *rest.Config { return ids.As(v1alpha1.PlacementUser) }

// Syncer returns how the syncer of a cluster reaches the API.
func (ids *Identities) Syncer(cluster string) *rest.Config {
	return ids.As(v1alpha1.SyncerUserPrefix + cluster)
}

// As returns how somebody reaches the API under a name.
func (ids *Identities) As(name string) *rest.Config {
	c := rest.CopyConfig(ids.Loopback)
	c.BearerToken = ids.secret + name
	c.QPS = -1
	c.UserAgent = "manifold"
	return c
}

// syncerAuthorizer gives a syncer what it needs to report what runs in its cluster, and nothing else. It never denies: what it does not
// know is left to RBAC. What exactly a syncer may write is a question of admission, which sees the objects; see package mirrors.
type syncerAuthorizer struct{}

var syncerRights = map[string]map[string]bool{
	"pods":                   {"create": true, "update": true, "delete": true},
	"persistentvolumeclaims": {"create": true, "update": true, "patch": true, "delete": true},
	"events":                 {"create": true, "update": true},
}

// Authorize implements authorizer.Authorizer.
func (syncerAuthorizer) Authorize(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
	if _, ok := SyncerCluster(a.GetUser()); !ok || !a.IsResourceRequest() || a.GetAPIGroup() != "" || a.GetSubresource() != "" {
		return authorizer.DecisionNoOpinion, "", nil
	}
	if _, refused := projection.NamespaceRefusal(a.GetNamespace()); refused || !syncerRights[a.GetResource()][a.GetVerb()] {
		return authorizer.DecisionNoOpinion, "", nil
	}
	return authorizer.DecisionAllow, "a syncer reports what runs in its cluster", nil
}

// ConditionsAwareAuthorize implements authorizer.Authorizer. The rights depend on nothing that a condition could test.
func (a syncerAuthorizer) ConditionsAwareAuthorize(ctx context.Context, attributes authorizer.Attributes) authorizer.ConditionsAwareDecision {
	return authorizer.ConditionsAwareDecisionFromParts(a.Authorize(ctx, attributes))
}

// EvaluateConditions implements authorizer.Authorizer.
func (syncerAuthorizer) EvaluateConditions(context.Context, authorizer.ConditionsAwareDecision, authorizer.ConditionsData) (authorizer.Decision, string, error) {
	return authorizer.DecisionDeny, "", authorizer.ErrorConditionEvaluationNotSupported
}
