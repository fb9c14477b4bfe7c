package services

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/manifold-dev/manifold/internal/heard"
	"github.com/manifold-dev/manifold/pkg/server/storage/below"
)

const (
	// mostRepeated is how much of a request is kept so that it can be sent again, mostRefused how long a refusal is at most.
	mostRepeated = 256 << 10
	mostRefused  = 16 << 10
)

// elsewhere sends a request for a Service to one cluster after the other, the first of which the request is made for, until one has endpoints
// of it that can be reached. Which one has some is known here a moment later than there, and there a moment later than they go: while a workload moves,
// the Service may already have lost them in the old cluster, or not have them yet in the new one. Each cluster is asked once at most, and what a cluster
// says decides whether the next is asked, not which one.
type elsewhere struct {
	service  string
	clusters []*below.Connection
	// is asks a cluster other than the first whether it has the Service that the request is for. The error says that it has not.
	is func(ctx context.Context, c *below.Connection) error
}

// RoundTrip implements http.RoundTripper.
func (e *elsewhere) RoundTrip(request *http.Request) (*http.Response, error) {
	again, err := repeatable(request)
	if err != nil {
		return nil, err
	}
	response, err := e.clusters[0].Transport.RoundTrip(request)
	for _, next := range e.clusters[1:] {
		if err != nil || again == nil || !e.refused(request.Method, response) {
			break
		}
		if e.is(request.Context(), next) != nil {
			continue
		}
		response.Body.Close()
		response, err = next.Transport.RoundTrip(e.to(next, again()))
	}
	return response, err
}

// to turns a request for the first cluster into one for another.
func (e *elsewhere) to(next *below.Connection, request *http.Request) *http.Request {
	first := e.clusters[0].Host
	target := *request.URL
	target.Scheme, target.Host = next.Host.Scheme, next.Host.Host
	rebase := func(path string) string {
		return strings.TrimSuffix(next.Host.Path, "/") + strings.TrimPrefix(path, strings.TrimSuffix(first.Path, "/"))
	}
	target.Path = rebase(target.Path)
	if target.RawPath != "" {
		target.RawPath = rebase(target.RawPath)
	}
	request.URL, request.Host = &target, next.Host.Host
	return request
}

// repeatable returns what makes the request anew, nil if that cannot be.
func repeatable(request *http.Request) (again func() *http.Request, err error) {
	clone := func() *http.Request { return request.Clone(request.Context()) }
	switch {
	case request.Body == nil || request.Body == http.NoBody:
		return clone, nil
	case request.ContentLength <= 0 || request.ContentLength > mostRepeated:
		return nil, nil
	}
	content, err := io.ReadAll(request.Body)
	if err != nil {
		return nil, err
	}
	request.Body.Close()
	request.Body = io.NopCloser(bytes.NewReader(content))
	return func() *http.Request {
		out := clone()
		out.Body = io.NopCloser(bytes.NewReader(content))
		return out
	}, nil
}

// refused reports whether a cluster says that it has no endpoints of the Service, or not the Service, or that it has not reached the endpoint that it
// chose. Then no pod has got the request; one that may be sent twice can be repeated also if that is not sure. The pods may answer with the same code.
func (e *elsewhere) refused(method string, response *http.Response) bool {
	status := refusal(response)
	switch status.Reason {
	case metav1.StatusReasonServiceUnavailable:
		unreached, unsent := heard.Unreached(status.Message)
		return unsent || unreached && changesNothing(method) || heard.LacksEndpoints(status.Message)
	case metav1.StatusReasonNotFound:
		return status.Details != nil && status.Details.Kind == "services" && status.Details.Name == e.service
	}
	return false
}

// changesNothing reports whether requests of the method may be sent twice, also to other replicas in another cluster. HEAD is not among them, since
// an answer to it does not say what went wrong.
func changesNothing(method string) bool {
	return method == http.MethodGet || method == http.MethodOptions
}

// refusal returns what an API server says in a response with one of the codes that a refusal has; the zero Status if that is something else. The response
// is as it was.
func refusal(response *http.Response) metav1.Status {
	if response.StatusCode != http.StatusServiceUnavailable && response.StatusCode != http.StatusNotFound {
		return metav1.Status{}
	}
	begin, err := io.ReadAll(io.LimitReader(response.Body, mostRefused))
	rest := response.Body
	response.Body = struct {
		io.Reader
		io.Closer
	}{io.MultiReader(bytes.NewReader(begin), rest), rest}
	var status metav1.Status
	if err != nil || json.Unmarshal(begin, &status) != nil || status.Kind != "Status" {
		return metav1.Status{}
	}
	return status
}
