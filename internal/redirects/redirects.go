// Package redirects keeps the clients of a cluster with that cluster. The API server of one redirects nobody. Who follows a redirect sends
// its request to whoever the cluster names, over whatever the cluster names, and in the name of the cluster takes the answer.
package redirects

import (
	"fmt"
	"net/http"

	"github.com/manifold-dev/manifold/internal/text"
)

// mostShown is how much of where a redirect leads its error shows, in bytes.
const mostShown = 200

// Error is the error of a request that was answered with a redirect.
type Error struct {
	// Code is the status code of the answer, Location where it leads to.
	Code     int
	Location string
}

func (e *Error) Error() string {
	return fmt.Sprintf("the answer is a redirect (%d) to %q, which is not followed", e.Code, text.Line(e.Location, mostShown))
}

// Refuse returns a transport that makes redirects errors.
func Refuse(over http.RoundTripper) http.RoundTripper { return refuse{over} }

type refuse struct{ http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (r refuse) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := r.RoundTripper.RoundTrip(request)
	if err != nil {
		return nil, err
	}
	switch response.StatusCode {
	case http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther, http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
		response.Body.Close()
		return nil, &Error{Code: response.StatusCode, Location: response.Header.Get("Location")}
	}
	return response, nil
}

// WrappedRoundTripper lets others find the transport itself.
func (r refuse) WrappedRoundTripper() http.RoundTripper { return r.RoundTripper }
