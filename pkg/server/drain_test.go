package server

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
)

func TestCommandsForNodesAreRefused(t *testing.T) {
	node := request.RequestInfo{IsResourceRequest: true, APIVersion: "v1", Verb: "get", Resource: "nodes", Name: "east"}
	pods := request.RequestInfo{IsResourceRequest: true, APIVersion: "v1", Verb: "list", Resource: "pods"}
	eviction := request.RequestInfo{IsResourceRequest: true, APIVersion: "v1", Verb: "create", Resource: "pods", Subresource: "eviction", Namespace: "shop", Name: "web-1"}
	metrics := request.RequestInfo{IsResourceRequest: true, APIGroup: "metrics.k8s.io", Verb: "list", Resource: "nodes"}
	for name, test := range map[string]struct {
		command string
		info    request.RequestInfo
		want    string // part of the message; "" if it passes
	}{
		"drain reads its node":                     {"kubectl drain", node, `"manifold cluster drain east" to move them off`},
		"drain lists the pods of its node":         {"kubectl drain", pods, `nothing was evicted`},
		"drain evicts a pod":                       {"kubectl drain", eviction, `pods "web-1" is forbidden`},
		"the embedded kubectl drains":              {"manifold kubectl drain", node, `"manifold cluster drain east"`},
		"another program drains":                   {"oc adm drain", node, `"manifold cluster drain east"`},
		"cordon reads its node":                    {"kubectl cordon", node, `use "manifold cluster cordon east"`},
		"uncordon reads its node":                  {"kubectl uncordon", node, `use "manifold cluster uncordon east"`},
		"draining clusters is what is recommended": {"manifold cluster drain", node, ""},
		"others read nodes":                        {"kubectl get", node, ""},
		"others evict":                             {"", eviction, ""},
		"a command of that name alone":             {"drain", node, ""},
		"nodes of another group":                   {"kubectl drain", metrics, ""},
	} {
		t.Run(name, func(t *testing.T) {
			passed := false
			filter := nodeCommandFilter{codecs: legacyscheme.Codecs, next: http.HandlerFunc(func(http.ResponseWriter, *http.Request) { passed = true })}
			r := httptest.NewRequest(http.MethodGet, "/", nil)
			r.Header.Set(commandHeader, test.command)
			w := httptest.NewRecorder()
			filter.ServeHTTP(w, r.WithContext(request.WithRequestInfo(t.Context(), &test.info)))
			if passed != (test.want == "") {
				t.Fatalf("passed: %t, answer %s", passed, w.Body)
			}
			message := strings.ReplaceAll(w.Body.String(), `\"`, `"`)
			if test.want != "" && (w.Code != http.StatusForbidden || !strings.Contains(message, test.want)) {
				t.Errorf("answer %d %s, want %q", w.Code, message, test.want)
			}
		})
	}
}
