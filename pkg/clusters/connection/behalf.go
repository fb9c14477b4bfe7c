package connection

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/util/proxy"
	"k8s.io/client-go/transport"

	"github.com/manifold-dev/manifold/pkg/clusters/rights"
)

// Requester tells on whose behalf a request to a cluster is made, by its context: the name of a user of the logical cluster, and the ID under
// which the audit there has the user's request. Both are empty for what Manifold does by itself.
type Requester func(ctx context.Context) (user, auditID string)

// auditIDHeader is by which requests bring the ID that an audit is to have them under.
const auditIDHeader = "Audit-ID"

// mostNamed is how much of the name of a user a cluster is told, in bytes.
const mostNamed = 256

// behalf tells the audit of a cluster on whose behalf requests are made. A cluster that lets us act as ourselves with one piece of information
// more, which rights.Telling is for, is told the user. One that does not is told the ID of the request above, by which it can be found there.
type behalf struct {
	who Requester
	// self is the user name that the cluster knows us by, empty while it does not let us add to it.
	self atomic.Pointer[string]
}

// tell returns the request with what it tells. It does not change the request itself.
func (b *behalf) tell(r *http.Request) *http.Request {
	if b.who == nil {
		return r
	}
	user, auditID := b.who(r.Context())
	if user == "" {
		return r
	}
	r = r.Clone(r.Context())
	if auditID != "" {
		r.Header.Set(auditIDHeader, auditID)
	}
	if self := b.self.Load(); self != nil && *self != "" {
		r.Header.Set(transport.ImpersonateUserHeader, *self)
		// As client-go escapes it, which is how API servers read it.
		r.Header.Set(transport.ImpersonateUserExtraHeaderPrefix+strings.ReplaceAll(rights.UserKey, "/", "%2F"), headerValue(user))
	}
	return r
}

// headerValue is a name as a header can carry it, whatever is in it: what is not visible ASCII is percent-encoded.
func headerValue(name string) string {
	var out strings.Builder
	for i := 0; i < len(name) && out.Len() < mostNamed; i++ {
		if c := name[i]; c > ' ' && c < 0x7f && c != '%' {
			out.WriteByte(c)
		} else {
			fmt.Fprintf(&out, "%%%02X", c)
		}
	}
	return out.String()
}

// over returns a transport that tells.
func (b *behalf) over(t http.RoundTripper) http.RoundTripper { return telling{t, b} }

type telling struct {
	http.RoundTripper
	*behalf
}

// RoundTrip implements http.RoundTripper.
func (t telling) RoundTrip(r *http.Request) (*http.Response, error) {
	return t.RoundTripper.RoundTrip(t.tell(r))
}

// WrappedRoundTripper lets others find the transport itself.
func (t telling) WrappedRoundTripper() http.RoundTripper { return t.RoundTripper }

// overUpgrades does for requests that leave HTTP behind what over does for others.
func (b *behalf) overUpgrades(t proxy.UpgradeRequestRoundTripper) proxy.UpgradeRequestRoundTripper {
	return tellingUpgrades{t, b}
}

type tellingUpgrades struct {
	proxy.UpgradeRequestRoundTripper
	*behalf
}

// WrapRequest implements proxy.UpgradeRequestRoundTripper.
func (t tellingUpgrades) WrapRequest(r *http.Request) (*http.Request, error) {
	return t.UpgradeRequestRoundTripper.WrapRequest(t.tell(r))
}

// WrappedRoundTripper lets others find the transport itself, whose dialer and TLS they need.
func (t tellingUpgrades) WrappedRoundTripper() http.RoundTripper { return t.UpgradeRequestRoundTripper }
