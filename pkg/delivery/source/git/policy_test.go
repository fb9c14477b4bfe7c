package git

import (
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestAddressesThatMayNotBeCalledAreNotCalled(t *testing.T) {
	called := 0
	server := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { called++ }))
	defer server.Close()
	_, key := newKey(t)
	withKey := Credentials{SSHKey: key, KnownHosts: []byte("\n"), CA: caOf(server.TLS)}
	_, port, _ := net.SplitHostPort(server.Listener.Addr().String())
	for _, url := range []string{
		server.URL + "/shop.git",
		"https://localhost:" + port + "/shop.git",
		"https://0.0.0.0:" + port + "/shop.git",
		"https://[::ffff:127.0.0.1]:" + port + "/shop.git",
		"ssh://git@" + server.Listener.Addr().String() + "/shop.git",
	} {
		_, err := newTestClient(t, Policy{}, Limits{}).Resolve(t.Context(), Request{URL: url, Credentials: withKey})
		if !errors.Is(err, ErrRefused) || called != 0 {
			t.Errorf("%s: error %v and %d calls, want %v and none", url, err, called, ErrRefused)
		}
	}
}

func TestURLsThatAreNotAllowedAreRefused(t *testing.T) {
	for name, test := range map[string]struct {
		request Request
		policy  Policy
		says    string
	}{
		"a file":                            {request: Request{URL: "file:///etc"}, says: "own disk"},
		"a path":                            {request: Request{URL: "/etc"}, says: "own disk"},
		"a path that is relative":           {request: Request{URL: "../etc"}, says: "own disk"},
		"a program":                         {request: Request{URL: "ext::sh -c id"}, says: "private key"},
		"git's own protocol":                {request: Request{URL: "git://example.com/shop.git"}, says: `"git"`},
		"another scheme":                    {request: Request{URL: "gopher://example.com/shop.git"}, says: `"gopher"`},
		"http":                              {request: Request{URL: "http://example.com/shop.git"}, says: "use https"},
		"http with a password":              {request: Request{URL: "http://example.com/shop.git", Credentials: Credentials{Password: "p"}}, policy: Policy{PlainHTTP: true}, says: "not sent over http"},
		"a password in the URL":             {request: Request{URL: "https://ada:s3cret-word@example.com/shop.git"}, says: "Secret"},
		"a user in the URL":                 {request: Request{URL: "https://s3cret-word@example.com/shop.git"}, says: "Secret"},
		"no host":                           {request: Request{URL: "https:///shop.git"}, says: "a host is missing"},
		"control characters":                {request: Request{URL: "https://example.com/\x1b[31m"}, says: "control characters"},
		"too long a URL":                    {request: Request{URL: "https://example.com/" + strings.Repeat("a", 3000)}, says: "at most"},
		"ssh without a key":                 {request: Request{URL: "git@example.com:shop.git"}, says: "private key"},
		"ssh with a host that nobody knows": {request: Request{URL: "git@example.com:shop.git", Credentials: Credentials{SSHKey: []byte("k")}}, says: "known_hosts"},
		"ssh with what is no key":           {request: Request{URL: "git@example.com:shop.git", Credentials: Credentials{SSHKey: []byte("k"), KnownHosts: []byte("\n")}}, says: "cannot be read"},
		"a CA that is none":                 {request: Request{URL: "https://example.com/shop.git", Credentials: Credentials{CA: []byte("x")}}, says: "PEM"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := newTestClient(t, test.policy, Limits{}).Resolve(t.Context(), test.request)
			if !errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), test.says) {
				t.Errorf("error %v, want one that says %q", err, test.says)
			}
			if err != nil && strings.Contains(err.Error(), "s3cret-word") {
				t.Errorf("error %q shows a secret", err)
			}
		})
	}
}
