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
	authorizerunion "k8s.io/apiserver/pkg/authorization/union"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/client-go/rest"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
)

// Identities lets parts of this process speak to the API under names of their own. A token is a secret that never leaves the process,
// followed by the name.
type Identities struct {
	secret string
	// Loopback is how the server itself reaches the API.
	Loopback *rest.Config
}

// Add makes generic recognise the identities and gives them their rights. The name is that of the logical cluster, for metrics.
func Add(generic *genericapiserver.Config, logicalCluster string) (*Identities, error) {
	random := make([]byte, 32)
	if _, err := rand.Read(random); err != nil {
		return nil, fmt.Errorf("make the secret of internal identities: %w", err)
	}
	ids := &Identities{secret: base64.RawURLEncoding.EncodeToString(random) + "/", Loopback: generic.LoopbackClientConfig}
	generic.Authentication.Authenticator = authenticatorunion.New(
		bearertoken.New(authenticator.WrapAudienceAgnosticToken(generic.Authentication.APIAudiences, ids)),
		generic.Authentication.Authenticator)
	union, err := authorizerunion.New(
		authorizerunion.NamedAuthorizer{AuthorizerName: "ManifoldSyncer", Authorizer: allowance(syncersReport)},
		authorizerunion.NamedAuthorizer{AuthorizerName: "ManifoldTrial", Authorizer: allowance(trialsTry)},
		authorizerunion.NamedAuthorizer{AuthorizerName: "ManifoldController", Authorizer: controllersOf(logicalCluster)},
		authorizerunion.NamedAuthorizer{AuthorizerName: "Configured", Authorizer: generic.Authorization.Authorizer})
	if err != nil {
		return nil, fmt.Errorf("give the identities of this process their rights: %w", err)
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
	case IsController(info):
		info.Groups = append(info.Groups, v1alpha1.ControllersGroup)
	}
	return &authenticator.Response{User: info}, true, nil
}

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
