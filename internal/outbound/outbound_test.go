package outbound

import (
	"encoding/pem"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// anywhere lets tests call servers on loopback.
func anywhere(net.IP) bool { return true }

func caOf(server *httptest.Server) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
}

func TestURLsThatAreNotAllowedAreRefused(t *testing.T) {
	for name, test := range map[string]struct {
		url         string
		policy      Policy
		credentials Credentials
		says        string
	}{
		"https":                     {url: "https://example.com/a?b=c"},
		"http where it is allowed":  {url: "http://example.com", policy: Policy{PlainHTTP: true}},
		"http":                      {url: "http://example.com", says: "use https"},
		"http with a password":      {url: "http://example.com", policy: Policy{PlainHTTP: true}, credentials: Credentials{Password: "p"}, says: "not sent over http"},
		"http with what may be":     {url: "http://example.com", policy: Policy{PlainHTTP: true, CredentialsInClear: true}, credentials: Credentials{BearerToken: "t"}},
		"another scheme":            {url: "file:///etc/passwd", says: "must begin with"},
		"no host":                   {url: "https:///a", says: "name a host"},
		"no URL":                    {url: "https://[", says: "must begin with"},
		"a password in the URL":     {url: "https://ada:s3cret-word@example.com", says: "Secret"},
		"control characters":        {url: "https://example.com/\x1b[31m", says: "control characters"},
		"more than an address has":  {url: "https://example.com/" + strings.Repeat("a", 3000), says: "at most"},
		"a line break, for a proxy": {url: "https://example.com/\r\nHost: a", says: "control characters"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := test.policy.URL(test.url, test.credentials)
			if (err != nil) != (test.says != "") || err != nil && (!errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), test.says)) {
				t.Errorf("error %v, want one that says %q", err, test.says)
			}
			if err != nil && strings.Contains(err.Error(), "s3cret-word") {
				t.Errorf("error %q shows a secret", err)
			}
		})
	}
}

func TestACallSaysWhoCallsAndReadsNoMoreThanItMay(t *testing.T) {
	var as []string
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		as = append(as, r.Header.Get("Authorization"))
		if r.URL.Path == "/on" {
			http.Redirect(w, r, "/there", http.StatusFound)
			return
		}
		_, _ = w.Write(make([]byte, 1000))
	}))
	defer server.Close()
	for name, test := range map[string]struct {
		credentials Credentials
		want        string
	}{
		"a token":    {Credentials{BearerToken: "abc", Username: "ada"}, "Bearer abc"},
		"a password": {Credentials{Username: "ada", Password: "b"}, "Basic YWRhOmI="},
		"nobody":     {Credentials{}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			as = nil
			test.credentials.CA = caOf(server)
			client, err := Policy{Allow: anywhere}.Client(test.credentials, Limits{Answer: 100})
			if err != nil {
				t.Fatal(err)
			}
			response, err := client.Get(server.URL + "/on")
			if err != nil {
				t.Fatal(err)
			}
			defer response.Body.Close()
			body, err := io.ReadAll(response.Body)
			if len(body) != 100 || err == nil {
				t.Errorf("%d bytes and error %v, want 100 and an error", len(body), err)
			}
			if len(as) != 2 || as[0] != test.want || as[1] != test.want {
				t.Errorf("called as %q, want twice %q", as, test.want)
			}
		})
	}
}

func TestNobodyIsLedElsewhere(t *testing.T) {
	called := 0
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { called++ }))
	defer elsewhere.Close()
	to := ""
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, to, http.StatusFound) }))
	defer server.Close()
	client, err := Policy{Allow: anywhere}.Client(Credentials{CA: caOf(server), BearerToken: "abc"}, Limits{})
	if err != nil {
		t.Fatal(err)
	}
	for name, target := range map[string]string{
		"another host":       elsewhere.URL,
		"the host in clear":  strings.Replace(server.URL, "https", "http", 1),
		"itself, for ever":   server.URL,
		"no scheme, but one": "//" + elsewhere.Listener.Addr().String(),
	} {
		to = target
		response, err := client.Get(server.URL)
		if err == nil {
			response.Body.Close()
		}
		if !errors.Is(err, ErrRefused) || called != 0 {
			t.Errorf("%s: error %v and %d calls, want %v and none", name, err, called, ErrRefused)
		}
	}
}

func TestAddressesThatMayNotBeCalledAreNotCalled(t *testing.T) {
	called := 0
	server := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { called++ }))
	defer server.Close()
	client, err := Policy{}.Client(Credentials{CA: caOf(server)}, Limits{})
	if err != nil {
		t.Fatal(err)
	}
	_, port, _ := net.SplitHostPort(server.Listener.Addr().String())
	for _, host := range []string{"127.0.0.1", "localhost", "0.0.0.0", "[::ffff:127.0.0.1]"} {
		response, err := client.Get("https://" + host + ":" + port)
		if err == nil {
			response.Body.Close()
		}
		if !errors.Is(err, ErrRefused) || called != 0 {
			t.Errorf("%s: error %v and %d calls, want %v and none", host, err, called, ErrRefused)
		}
	}
}

func TestACauseShowsNoSecret(t *testing.T) {
	credentials := Credentials{Password: "s3cret-word"}
	client, err := Policy{Allow: func(net.IP) bool { return false }}.Client(credentials, Limits{})
	if err != nil {
		t.Fatal(err)
	}
	response, err := client.Get("https://192.0.2.7/services/s3cret-path")
	if err == nil {
		response.Body.Close()
		t.Fatal("no error")
	}
	said := Cause(errors.Join(err, errors.New("\x1b[31m s3cret-word")), credentials)
	if strings.Contains(said, "s3cret") || strings.Contains(said, "\x1b") || !strings.Contains(said, "192.0.2.7") {
		t.Errorf("it says %q", said)
	}
	if _, err := (Policy{}).Client(Credentials{CA: []byte("x")}, Limits{}); !errors.Is(err, ErrRefused) {
		t.Errorf("a CA that is none: error %v", err)
	}
}
