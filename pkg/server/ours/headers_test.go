package ours

import (
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestARequestDoesNotSayItselfWhoseItIs(t *testing.T) {
	for name, test := range map[string]struct{ header, want http.Header }{
		"what the app is to know stays": {
			http.Header{"Cookie": {"a=b"}, "Accept": {"*/*"}, "X-Request-Id": {"1"}, "X-Remoteness": {"1"}},
			http.Header{"Cookie": {"a=b"}, "Accept": {"*/*"}, "X-Request-Id": {"1"}, "X-Remoteness": {"1"}},
		},
		"credentials":             {http.Header{"Authorization": {"Bearer x"}, "authorization": {"Bearer y"}, "Proxy-Authorization": {"x"}}, http.Header{}},
		"impersonation":           {http.Header{"Impersonate-User": {"system:admin"}, "Impersonate-Group": {"system:masters"}, "Impersonate-Uid": {"1"}}, http.Header{}},
		"what it tells beside":    {http.Header{"Impersonate-Extra-Manifold.dev%2fuser": {"bob"}, "impersonate-extra-x": {"y"}}, http.Header{}},
		"what a front proxy says": {http.Header{"X-Remote-User": {"admin"}, "X-Remote-Group": {"system:masters"}, "X-Remote-Extra-A": {"b"}}, http.Header{}},
		"what would be taken out": {http.Header{"Connection": {"Upgrade, Impersonate-User"}, "Upgrade": {"websocket"}}, http.Header{"Connection": {"Upgrade"}, "Upgrade": {"websocket"}}},
		"an upgrade stays one":    {http.Header{"Connection": {"Upgrade, Authorization"}, "Upgrade": {"websocket"}}, http.Header{"Connection": {"Upgrade"}, "Upgrade": {"websocket"}}},
		"the token of a browser":  {http.Header{"Sec-Websocket-Protocol": {"base64url.bearer.authorization.k8s.io.abc, v5.channel.k8s.io"}}, http.Header{"Sec-Websocket-Protocol": {" v5.channel.k8s.io"}}},
		"and nothing but that":    {http.Header{"Sec-Websocket-Protocol": {"base64url.bearer.authorization.k8s.io.abc"}}, http.Header{}},
		"protocols without any":   {http.Header{"Sec-Websocket-Protocol": {"v5.channel.k8s.io", "v4.channel.k8s.io"}}, http.Header{"Sec-Websocket-Protocol": {"v5.channel.k8s.io", "v4.channel.k8s.io"}}},
	} {
		t.Run(name, func(t *testing.T) {
			request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://east.test/", nil)
			if err != nil {
				t.Fatal(err)
			}
			request.Header = test.header.Clone()
			got := Anonymous(request)
			if diff := cmp.Diff(test.want, got.Header); diff != "" {
				t.Errorf("headers (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(test.header, request.Header); diff != "" {
				t.Errorf("the request itself has changed (-want +got):\n%s", diff)
			}
		})
	}
}
