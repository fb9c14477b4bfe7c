package connection

import (
	"strings"
	"testing"
)

// kubeconfigOf is a kubeconfig with these lines for its cluster and its user.
func kubeconfigOf(cluster, user string) string {
	indent := func(lines string) string {
		return "    " + strings.ReplaceAll(strings.TrimSpace(lines), "\n", "\n    ")
	}
	return `apiVersion: v1
kind: Config
current-context: c
contexts:
- name: c
  context: {cluster: c, user: u}
clusters:
- name: c
  cluster:
` + indent(cluster) + `
users:
- name: u
  user:
` + indent(user) + "\n"
}

func TestParseKubeconfigRefusesWhatDoesNotStandForItself(t *testing.T) {
	const server, token = "server: https://east:6443", "token: secret"
	for name, test := range map[string]struct{ kubeconfig, says string }{
		"text that is no YAML":           {"{", "does not parse"},
		"an empty kubeconfig":            {"", "no context"},
		"a context that is missing":      {"apiVersion: v1\nkind: Config\ncurrent-context: x", `no context "x"`},
		"a server without TLS":           {kubeconfigOf("server: http://east:6443", token), "not an https URL"},
		"a server that is a path":        {kubeconfigOf("server: /var/run/x.sock", token), "not an https URL"},
		"TLS that is not verified":       {kubeconfigOf(server+"\ninsecure-skip-tls-verify: true", token), "insecure-skip-tls-verify"},
		"a CA in a file":                 {kubeconfigOf(server+"\ncertificate-authority: /etc/ca", token), "certificate-authority-data"},
		"a token in a file":              {kubeconfigOf(server, "tokenFile: /var/run/secrets/token"), "tokenFile"},
		"a token beside a file":          {kubeconfigOf(server, token+"\ntokenFile: /etc/shadow"), "tokenFile"},
		"a client certificate in a file": {kubeconfigOf(server, "client-certificate: /a\nclient-key: /b"), "client-certificate-data"},
		"a client key in a file":         {kubeconfigOf(server, token+"\nclient-key: /b"), "client-key-data"},
		"a program that is run": {
			kubeconfigOf(server, "exec: {apiVersion: client.authentication.k8s.io/v1, command: sh, interactiveMode: Never}"), "runs a program",
		},
		"an auth provider":      {kubeconfigOf(server, "auth-provider: {name: oidc}"), "auth-provider"},
		"a password":            {kubeconfigOf(server, "username: a\npassword: b"), "password"},
		"a user without secret": {kubeconfigOf(server, "as: somebody"), "neither a token nor"},
		"a proxy that is no URL": {
			kubeconfigOf(server+"\nproxy-url: '::'", token), "proxy-url",
		},
	} {
		t.Run(name, func(t *testing.T) {
			config, err := ParseKubeconfig([]byte(test.kubeconfig))
			if err == nil {
				t.Fatalf("accepted as %v", config)
			}
			if !strings.Contains(err.Error(), test.says) {
				t.Errorf("error %q does not say %q", err, test.says)
			}
		})
	}
}

func TestParseKubeconfigTakesTheCurrentContext(t *testing.T) {
	kubeconfig := kubeconfigOf("server: https://east:6443/path\ncertificate-authority-data: Q0E=\ntls-server-name: other",
		"token: secret") + "- name: unused\n  user: {tokenFile: /etc/shadow}\n"
	config, err := ParseKubeconfig([]byte(kubeconfig))
	if err != nil {
		t.Fatal(err)
	}
	if config.Host != "https://east:6443/path" || string(config.CAData) != "CA" || config.ServerName != "other" ||
		config.BearerToken != "secret" || config.BearerTokenFile != "" {
		t.Errorf("got %v", config)
	}
}
