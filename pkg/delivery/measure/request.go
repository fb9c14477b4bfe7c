package measure

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net/http"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/internal/outbound"
)

// mostBody bounds the answer to a request, in bytes.
const mostBody = 64 << 10

// request sends a request, and has found 1 where the answer is good. What is wrong with another one it says as an error, which counts as bad as
// well.
func (m *Measurer) request(ctx context.Context, l look, check *v1alpha1.AnalysisHTTP) (found, error) {
	as, err := m.credentials(l, check.SecretRef)
	if err != nil {
		return found{}, err
	}
	address, err := m.Policy.URL(check.URL, as)
	if err != nil {
		return found{}, err
	}
	client, err := m.Policy.Client(as, outbound.Limits{Timeout: timeout(check.Timeout), Answer: mostBody})
	if err != nil {
		return found{}, err
	}
	if check.ExpectedCode >= 300 && check.ExpectedCode < 400 {
		client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	}
	method := cmp.Or(check.Method, http.MethodGet)
	request, err := http.NewRequestWithContext(ctx, method, address.String(), nil)
	if err != nil {
		return found{}, fmt.Errorf("method or url: %w", said(err, as))
	}
	for _, header := range check.Headers {
		if http.CanonicalHeaderKey(header.Key) == "Host" {
			request.Host = header.Value
			continue
		}
		request.Header.Add(header.Key, header.Value)
	}
	answer, err := client.Do(request)
	if err != nil {
		return found{}, fmt.Errorf("%s %s: %w", method, address.Host, said(err, as))
	}
	defer answer.Body.Close()
	if answer.StatusCode != int(check.ExpectedCode) {
		return found{}, fmt.Errorf("%s %s is answered with status %d, want %d", method, address.Host, answer.StatusCode, check.ExpectedCode)
	}
	if check.ExpectedResponse == "" {
		return found{values: []float64{1}}, nil
	}
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		return found{}, fmt.Errorf("%s %s: read the answer: %w", method, address.Host, said(err, as))
	}
	if string(body) != check.ExpectedResponse {
		return found{}, fmt.Errorf("%s %s is answered with %q, want %q", method, address.Host, excerpt(string(body)), excerpt(check.ExpectedResponse))
	}
	return found{values: []float64{1}}, nil
}

// excerpt is the beginning of a text, for an error that has room for little.
func excerpt(body string) string {
	const most = 60
	if len(body) <= most {
		return body
	}
	return body[:most] + "..."
}
