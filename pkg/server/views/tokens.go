package views

import (
	"net/http"
	"slices"

	"k8s.io/apiserver/pkg/authentication/authenticator"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
)

// Authenticator lets tokens for the audience of a view log in there, and nowhere else: neither on the plain path nor in the view of another cluster.
// Next knows audiences by the request's context; api are those of the server.
func Authenticator(next authenticator.Request, api authenticator.Audiences) authenticator.Request {
	return authenticator.RequestFunc(func(r *http.Request) (*authenticator.Response, bool, error) {
		cluster, ok := From(r.Context())
		if !ok || len(api) == 0 {
			return next.AuthenticateRequest(r)
		}
		accepted := append(slices.Clone(api), v1alpha1.ViewAudience(cluster))
		// Authenticators that are done with a credential take it off the request, whose headers both share.
		response, ok, err := next.AuthenticateRequest(r.WithContext(authenticator.WithAudiences(r.Context(), accepted)))
		if err != nil || !ok || len(response.Audiences) == 0 || len(response.Audiences.Intersect(api)) > 0 {
			return response, ok, err
		}
		// The server compares what comes back with its own audiences once more.
		as := *response
		as.Audiences = api
		return &as, true, nil
	})
}
