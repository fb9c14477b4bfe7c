package connection

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/proxy"

	"github.com/manifold-dev/manifold/pkg/clusters/rights"
)

type asked struct{ user, auditID string }

func askedBy(ctx context.Context) (string, string) {
	who, _ := ctx.Value(asked{}).(asked)
	return who.user, who.auditID
}

func TestClustersAreToldOnWhoseBehalf(t *testing.T) {
	const us, extra = "system:serviceaccount:manifold-system:manifold-syncer-1", "Impersonate-Extra-Manifold.dev%2fuser"
	for name, test := range map[string]struct {
		who  asked
		self string
		want map[string]string // of the headers that tell it
	}{
		"a user's request":              {asked{"alice", "id-1"}, us, map[string]string{"Audit-Id": "id-1", "Impersonate-User": us, extra: "alice"}},
		"where we may not add to us":    {asked{"alice", "id-1"}, "", map[string]string{"Audit-Id": "id-1"}},
		"what Manifold does by itself":  {asked{}, us, map[string]string{}},
		"a request without an audit":    {asked{user: "alice"}, us, map[string]string{"Impersonate-User": us, extra: "alice"}},
		"a name that no header carries": {asked{user: " ä\r\nImpersonate-User: x%\x00"}, us, map[string]string{"Impersonate-User": us, extra: "%20%C3%A4%0D%0AImpersonate-User:%20x%25%00"}},
		"a name without end":            {asked{user: strings.Repeat("a", 5000)}, us, map[string]string{"Impersonate-User": us, extra: strings.Repeat("a", mostNamed)}},
	} {
		t.Run(name, func(t *testing.T) {
			var heard http.Header
			server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { heard = r.Header }))
			defer server.Close()
			b := &behalf{who: askedBy}
			b.self.Store(&test.self)
			request, err := http.NewRequestWithContext(context.WithValue(t.Context(), asked{}, test.who), http.MethodGet, server.URL, nil)
			if err != nil {
				t.Fatal(err)
			}
			response, err := b.over(http.DefaultTransport).RoundTrip(request)
			if err != nil {
				t.Fatal(err)
			}
			response.Body.Close()
			if diff := cmp.Diff(test.want, toldIn(heard)); diff != "" {
				t.Errorf("a request (-want +got):\n%s", diff)
			}
			upgraded, err := b.overUpgrades(proxy.NewUpgradeRequestRoundTripper(http.DefaultTransport, proxy.MirrorRequest)).WrapRequest(request)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, toldIn(upgraded.Header)); diff != "" {
				t.Errorf("an upgrade (-want +got):\n%s", diff)
			}
			if len(request.Header) != 0 {
				t.Errorf("the request itself has changed: %v", request.Header)
			}
		})
	}
}

// toldIn returns the headers that tell whose a request is, by the names under which servers see them.
func toldIn(header http.Header) map[string]string {
	out := map[string]string{}
	for name := range header {
		if key := http.CanonicalHeaderKey(name); key == "Audit-Id" || strings.HasPrefix(key, "Impersonate-") {
			out[strings.Replace(key, "%2F", "%2f", 1)] = strings.Join(header[name], ",")
		}
	}
	return out
}

func TestTheKeyIsTheOneThatIsGranted(t *testing.T) {
	for _, right := range rights.Telling("manifold-system", "us") {
		if right.Group == "authentication.k8s.io" && right.Resources[0] == "userextras/"+rights.UserKey {
			return
		}
	}
	t.Error("nobody is granted to tell the user")
}
