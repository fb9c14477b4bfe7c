package physical

import (
	"encoding/base64"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/client-go/tools/clientcmd"
)

const twoContexts = `
apiVersion: v1
kind: Config
current-context: east
clusters:
- name: east
  cluster: {server: "https://east:6443", certificate-authority: ca.crt, tls-server-name: kubernetes, proxy-url: "http://proxy:3128"}
- name: west
  cluster: {server: "https://west:6443", insecure-skip-tls-verify: true}
users:
- name: admin
  user: {token: admin-secret}
contexts:
- name: east
  context: {cluster: east, user: admin, namespace: shop}
- name: west
  context: {cluster: west, user: admin}
`

func TestLoadAccessRefuses(t *testing.T) {
	for name, test := range map[string]struct {
		content string
		missing bool
		context string
		want    string
	}{
		"a file that is not there":                {missing: true, want: "there is no kubeconfig"},
		"a file that is no YAML":                  {content: "\tno: [yaml", want: "does not parse"},
		"a manifest that is no kubeconfig":        {content: "apiVersion: v1\nkind: Pod\n", want: "does not parse"},
		"an empty file":                           {content: "", want: "has no contexts"},
		"a context that there is not":             {content: twoContexts, context: "north", want: `no context "north"; it has: east, west`},
		"a choice of contexts that nobody made":   {content: strings.Replace(twoContexts, "current-context: east", "", 1), want: "choose one with --cluster-context: east, west"},
		"a current context that there is not":     {content: strings.Replace(twoContexts, "current-context: east", "current-context: gone", 1), want: `no context "gone"`},
		"a context whose CA file cannot be read":  {content: strings.Replace(twoContexts, "ca.crt", "lost.crt", 1), want: "lost.crt"},
		"a context whose cluster is not in there": {content: strings.Replace(twoContexts, "{cluster: east, ", "{cluster: north, ", 1), want: `context "east"`},
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "kubeconfig")
			if !test.missing {
				write(t, file, test.content)
				write(t, filepath.Join(filepath.Dir(file), "ca.crt"), "the CA")
			}
			_, err := loadAccess(file, test.context)
			if err == nil {
				t.Fatal("loadAccess succeeded")
			}
			if !strings.Contains(err.Error(), test.want) || !strings.Contains(err.Error(), file) {
				t.Errorf("loadAccess: %v, want the file's name and %q", err, test.want)
			}
		})
	}
}

func TestCredentialKeepsTheWayAndNotTheUser(t *testing.T) {
	file := filepath.Join(t.TempDir(), "kubeconfig")
	write(t, file, twoContexts)
	write(t, filepath.Join(filepath.Dir(file), "ca.crt"), "the CA")
	for context, want := range map[string]struct{ has, lacks []string }{
		"": {
			has: []string{
				"server: https://east:6443", "tls-server-name: kubernetes", "proxy-url: http://proxy:3128",
				"certificate-authority-data: " + base64.StdEncoding.EncodeToString([]byte("the CA")), "token: syncer-secret",
			},
			lacks: []string{"admin", "west", "ca.crt", "shop", "insecure"},
		},
		"west": {
			has:   []string{"server: https://west:6443", "insecure-skip-tls-verify: true", "token: syncer-secret"},
			lacks: []string{"admin", "east", "certificate-authority"},
		},
	} {
		t.Run("context "+context, func(t *testing.T) {
			a, err := loadAccess(file, context)
			if err != nil {
				t.Fatal(err)
			}
			got, err := clientcmd.Write(*a.withToken("joined", "syncer", "syncer-secret"))
			if err != nil {
				t.Fatal(err)
			}
			for _, part := range want.has {
				if !strings.Contains(string(got), part) {
					t.Errorf("the credential lacks %q:\n%s", part, got)
				}
			}
			for _, part := range want.lacks {
				if strings.Contains(string(got), part) {
					t.Errorf("the credential holds %q:\n%s", part, got)
				}
			}
			if _, err := clientcmd.RESTConfigFromKubeConfig(got); err != nil {
				t.Errorf("the credential is of no use: %v", err)
			}
		})
	}
}

func write(t *testing.T, file, content string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}
