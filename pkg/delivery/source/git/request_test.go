package git

import (
	"strings"
	"testing"
)

func FuzzAURLIsRefusedOrNamesWhatIsAllowed(f *testing.F) {
	for _, url := range []string{"https://example.com/shop.git", "git@example.com:shop.git", "ssh://git@[::1]:22/x", "/etc", "file://x", "https://u:p@h/x", "ext::sh"} {
		f.Add(url)
	}
	f.Fuzz(func(t *testing.T, url string) {
		ep, err := Policy{}.endpoint(Request{URL: url, Credentials: Credentials{SSHKey: []byte("k"), KnownHosts: []byte("h")}})
		if err != nil {
			return
		}
		if ep.Protocol != "https" && ep.Protocol != "ssh" || ep.Host == "" || ep.Password != "" {
			t.Errorf("%q is taken as %+v", url, ep)
		}
		if name := shown(url); strings.ContainsAny(name, "\n\x1b") {
			t.Errorf("%q is shown as %q", url, name)
		}
	})
}
