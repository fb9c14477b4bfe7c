package bearer

import (
	"context"
	"net/http"
	"sync"

	utilnet "k8s.io/apimachinery/pkg/util/net"
)

// Source is the token that the requests of a connection carry. It may change while they are made: those under way go on, watches among them,
// since a cluster looks at a token when a request begins. It is safe for concurrent use.
type Source struct {
	mu      sync.Mutex
	token   string
	changed chan struct{}
}

// NewSource returns a source of a token. There may be none.
func NewSource(token string) *Source {
	return &Source{token: token, changed: make(chan struct{})}
}

// Token returns the present token, and what is closed when it changes.
func (s *Source) Token() (token string, changed <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.token, s.changed
}

// Set has requests carry another token from now on.
func (s *Source) Set(token string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.token == token {
		return
	}
	s.token = token
	close(s.changed)
	s.changed = make(chan struct{})
}

// Over returns a transport that adds the token to what it hands on to next. It is the only credential of the kind that leaves: one that a
// request has already is somebody else's.
func (s *Source) Over(next http.RoundTripper) http.RoundTripper {
	return &transport{source: s, next: next}
}

type transport struct {
	source *Source
	next   http.RoundTripper
}

var _ utilnet.RoundTripperWrapper = &transport{}

// RoundTrip implements http.RoundTripper.
func (t *transport) RoundTrip(r *http.Request) (*http.Response, error) {
	token, _ := t.source.Token()
	if tried, ok := r.Context().Value(trying{}).(string); ok {
		token = tried
	}
	r = r.Clone(r.Context())
	r.Header.Del("Authorization")
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	return t.next.RoundTrip(r)
}

// WrappedRoundTripper implements utilnet.RoundTripperWrapper, by which connections are closed.
func (t *transport) WrappedRoundTripper() http.RoundTripper { return t.next }

type trying struct{}

// Trying returns a context whose requests carry another token than that of their source.
func Trying(ctx context.Context, token string) context.Context {
	return context.WithValue(ctx, trying{}, token)
}
