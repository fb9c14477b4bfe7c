package ours

import (
	"net/url"
	"path"
	"strings"
	"testing"
)

func TestWhatAnAppIsAskedArrivesAsItWasSent(t *testing.T) {
	const below = "/api/v1/namespaces/shop/pods/web-1/proxy"
	for name, test := range map[string]struct{ id, sub, want string }{
		"nothing":                                   {"web-1", "", below},
		"the root":                                  {"web-1", "/", below + "/"},
		"a path without a slash":                    {"web-1", "a", below + "/a"},
		"a slash at the end":                        {"web-1", "/a/b/", below + "/a/b/"},
		"spaces, umlauts and question marks":        {"web-1", "/a b/größe/?x", below + "/a b/größe/?x"},
		"a colon, a semicolon, an at sign":          {"web-1", "/a:b;v=1/@c", below + "/a:b;v=1/@c"},
		"what was encoded twice":                    {"web-1", "/group%2Fproject", below + "/group%2Fproject"},
		"percent signs that encode nothing":         {"web-1", "/100%/%zz", below + "/100%/%zz"},
		"empty segments":                            {"web-1", "//a//b", below + "//a//b"},
		"names that begin or end with dots":         {"web-1", "/.well-known/..a/b../...", below + "/.well-known/..a/b../..."},
		"a backslash in a name":                     {"web-1", `/a\b`, below + `/a\b`},
		"a port":                                    {"web-1:8080", "/a", "/api/v1/namespaces/shop/pods/web-1:8080/proxy/a"},
		"a port by its name":                        {"web-1:http", "/a", "/api/v1/namespaces/shop/pods/web-1:http/proxy/a"},
		"a scheme":                                  {"https:web-1:", "/a", "/api/v1/namespaces/shop/pods/https:web-1:/proxy/a"},
		"a pod with dots in its name":               {"a.b.c", "/a", "/api/v1/namespaces/shop/pods/a.b.c/proxy/a"},
		"a line break, which is encoded on the way": {"web-1", "/a\nb", below + "/a\nb"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := ProxyPath("shop", "pods", test.id, test.sub)
			if err != nil || got != test.want {
				t.Errorf("got %q, %v; want %q", got, err, test.want)
			}
		})
	}
}

func TestAPathThatMayLeadOutOfTheObjectIsRefused(t *testing.T) {
	for name, sub := range map[string]string{
		"up":                                 "/../../../../kube-system/secrets/x",
		"up, then down again":                "/../proxy/a",
		"within itself":                      "/a/../b",
		"by a single dot":                    "/./a",
		"up at the end":                      "/a/..",
		"encoded once more":                  "/%2e%2e/%2e%2e/secrets",
		"encoded in part":                    "/.%2e/%2E./secrets",
		"with encoded slashes":               "/..%2f..%2fsecrets",
		"encoded twice more":                 "/%252e%252e/secrets",
		"encoded more often than anybody is": "/%25252525252e%25252525252e/secrets",
		"beside what cannot be decoded":      "/%zz/%2e%2e/secrets",
		"with backslashes":                   `/..\..\secrets`,
		"with encoded backslashes":           "/..%5c..%5csecrets",
		"with parameters":                    "/..;/..;a=b/secrets",
		"with encoded parameters":            "/..%3b/secrets",
		"before a query":                     "/..?/secrets",
		"before a fragment":                  "/..%23/secrets",
		"before a zero byte":                 "/..\x00/secrets",
		"before an encoded zero byte":        "/..%00x/secrets",
		"with spaces around it":              "/.. /%20../secrets",
		"with empty segments":                "//..//..//secrets",
		"without a slash in front":           "../secrets",
	} {
		t.Run(name, func(t *testing.T) {
			got, err := ProxyPath("shop", "pods", "web-1", sub)
			if err == nil {
				t.Fatalf("got %q", got)
			}
			if !strings.Contains(err.Error(), `pods "web-1"`) || !strings.Contains(err.Error(), quoted(sub)) {
				t.Errorf("the error does not name the object and the path: %v", err)
			}
		})
	}
}

func TestWhatIsNoNameIsRefused(t *testing.T) {
	for name, test := range map[string]struct{ namespace, id string }{
		"four parts":                       {"shop", "a:b:c:d"},
		"another scheme":                   {"shop", "ftp:web:80"},
		"no name":                          {"shop", ""},
		"no name beside a port":            {"shop", ":80"},
		"dots":                             {"shop", ".."},
		"dots beside a port":               {"shop", "..:80"},
		"dots for a port":                  {"shop", "web:.."},
		"a slash in the port":              {"shop", "web:80/../.."},
		"an encoded slash in the port":     {"shop", "web:80%2f.."},
		"a slash in the name":              {"shop", "../x"},
		"an encoded name":                  {"shop", "%2e%2e"},
		"a backslash":                      {"shop", `web\..`},
		"a question mark":                  {"shop", "web?x"},
		"a port that is no label":          {"shop", "web:a.b"},
		"a namespace that leads elsewhere": {"../kube-system", "web"},
		"a namespace of dots":              {"..", "web"},
		"no namespace":                     {"", "web"},
	} {
		t.Run(name, func(t *testing.T) {
			if got, err := ProxyPath(test.namespace, "pods", test.id, "/"); err == nil {
				t.Errorf("got %q", got)
			}
		})
	}
}

func TestErrorsQuoteNoMoreThanTheyMust(t *testing.T) {
	_, err := ProxyPath("shop", "pods", "web-1", "/../\x1b[2J"+strings.Repeat("a", 1<<20))
	if err == nil || len(err.Error()) > 2*mostQuoted || strings.ContainsRune(err.Error(), '\x1b') {
		t.Errorf("%d bytes: %.300v", len(err.Error()), err)
	}
}

// FuzzProxyPath looks at what arrives with the eyes of servers that read it in different ways: none may see it leave the object.
func FuzzProxyPath(f *testing.F) {
	for _, sub := range []string{
		"", "/", "/a/b/", "/../..", "/%2e%2e/x", "/..%2fx", "/..%252fx", `\..\`, "/..;/", "//a//", "/a/../b", "/a?b=c#d", "/%zz", "/\x00..", "/ü",
	} {
		f.Add("shop", "web-1:80", sub)
	}
	f.Add("..", "..", "/")
	f.Add("shop", "web:80/..", "/")
	f.Fuzz(func(t *testing.T, namespace, id, sub string) {
		got, err := ProxyPath(namespace, "services", id, sub)
		if err != nil {
			return
		}
		below := "/base/api/v1/namespaces/" + namespace + "/services/" + id + "/proxy"
		sent := &url.URL{Scheme: "https", Host: "east.test", Path: "/base" + got}
		arrived, err := url.Parse(sent.String()) // what proxy.NewUpgradeAwareHandler makes of it
		if err != nil || arrived.Host != sent.Host || arrived.RawQuery != "" || arrived.Fragment != "" {
			t.Fatalf("%q becomes %v, %v", sent, arrived, err)
		}
		if strings.Count(below, "/") != 8 {
			t.Fatalf("%q has other segments than it should", below)
		}
		seen := arrived.Path
		for range 4 {
			for _, read := range readings(seen) {
				if clean := path.Clean(read); clean != below && !strings.HasPrefix(clean, below+"/") {
					t.Fatalf("%q is taken for %q, which is not below %q", sent, clean, below)
				}
			}
			next, err := url.PathUnescape(seen)
			if err != nil {
				break
			}
			seen = next
		}
	})
}

// readings is what servers may take a path for.
func readings(seen string) []string {
	out := []string{seen, strings.ReplaceAll(seen, `\`, "/")}
	for _, end := range []string{"\x00", "?", "#"} {
		before, _, _ := strings.Cut(seen, end)
		out = append(out, before)
	}
	segments := strings.Split(seen, "/")
	for i := range segments {
		segments[i], _, _ = strings.Cut(segments[i], ";")
	}
	return append(out, strings.Join(segments, "/"))
}
