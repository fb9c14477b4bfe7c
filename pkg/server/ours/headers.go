package ours

import (
	"net/http"
	"slices"
	"strings"

	"k8s.io/streaming/pkg/httpstream"
)

// said begins the names of headers by which a request says whose it is: to an API server, or to one that trusts a proxy in front of it. Only
// Manifold says that to a cluster.
var said = []string{"Authorization", "Proxy-Authorization", "Impersonate-", "X-Remote-"}

// webSocketToken begins the name of a protocol by which a browser hands a token to an API server.
const webSocketToken = "base64url.bearer.authorization.k8s.io."

// Anonymous returns a request of a user without what says whose it is. That of an upgrade, which is passed on with the header "Connection",
// names no other headers there: who is on the way takes out what is named, also what has been added later. It does not change the request.
func Anonymous(r *http.Request) *http.Request {
	out := r.Clone(r.Context())
	for name := range out.Header {
		if slices.ContainsFunc(said, func(prefix string) bool { return strings.HasPrefix(http.CanonicalHeaderKey(name), prefix) }) {
			delete(out.Header, name)
		}
	}
	if httpstream.IsUpgradeRequest(r) {
		out.Header.Set(httpstream.HeaderConnection, httpstream.HeaderUpgrade)
	}
	withoutToken(out.Header)
	return out
}

func withoutToken(header http.Header) {
	const name = "Sec-Websocket-Protocol"
	offered, ok := header[name]
	if !ok || !strings.Contains(strings.Join(offered, ","), webSocketToken) {
		return
	}
	kept := slices.DeleteFunc(strings.Split(strings.Join(offered, ","), ","), func(protocol string) bool {
		return strings.HasPrefix(strings.TrimSpace(protocol), webSocketToken)
	})
	if len(kept) == 0 {
		header.Del(name)
		return
	}
	header.Set(name, strings.Join(kept, ","))
}
