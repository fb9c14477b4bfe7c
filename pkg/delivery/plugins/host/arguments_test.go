package host

import (
	"encoding/json"
	"slices"
	"testing"
	"time"

	"github.com/manifold-dev/manifold/pkg/delivery/plugins"
)

func TestAProgramIsToldWhatPipeCDTellsIt(t *testing.T) {
	for name, test := range map[string]struct {
		spec Spec
		want []string
	}{
		"nothing but what must be": {
			spec: Spec{URL: "https://example.com/wait", Grace: 30 * time.Second, LogLevel: "info"},
			want: []string{`{"name":"a","url":"https://example.com/wait","port":7001}`},
		},
		"a configuration and targets, unchanged": {
			spec: Spec{URL: "oci://example.com/k8s:v1", Grace: 30 * time.Second, Config: json.RawMessage(`{"b":1e3,"a":[]}`), Targets: []plugins.Target{
				{Name: "dev", Labels: map[string]string{"env": "dev"}, Config: json.RawMessage(`{"kubeConfigPath":"/x"}`)}, {Name: "prd"},
			}},
			want: []string{`{"name":"a","url":"oci://example.com/k8s:v1","port":7001,"config":{"b":1e3,"a":[]},"deployTargets":[` +
				`{"name":"dev","labels":{"env":"dev"},"config":{"kubeConfigPath":"/x"}},{"name":"prd","config":{}}]}`},
		},
		"a URL that programs do not know": {
			spec: Spec{URL: "http://example.com/wait", Grace: 30 * time.Second},
			want: []string{`{"name":"a","url":"file:///cache/p","port":7001}`},
		},
		"another grace period and level": {
			spec: Spec{URL: "file:///p", Grace: 5 * time.Second, LogLevel: "debug"},
			want: []string{`{"name":"a","url":"file:///p","port":7001}`, "--grace-period", "5s", "--log-level", "debug"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := arguments("a", test.spec, "/cache/p", "localhost:7000", 7001)
			if err != nil {
				t.Fatal(err)
			}
			if want := append([]string{"start", "--piped-plugin-service", "localhost:7000", "--config"}, test.want...); !slices.Equal(got, want) {
				t.Errorf("arguments\n%q, want\n%q", got, want)
			}
		})
	}
	if _, err := arguments("a", Spec{Config: json.RawMessage(`{`)}, "/p", "localhost:7000", 7001); err == nil {
		t.Error("what is no JSON is handed over")
	}
}
