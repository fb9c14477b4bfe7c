package app

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/cli-runtime/pkg/genericiooptions"
	utilexec "k8s.io/utils/exec"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
)

const pipecdApp = `apiVersion: pipecd.dev/v1beta1
kind: KubernetesApp
spec:
  name: shop
  quickSync:
    prune: true
    multiTarget:
    - {provider: {name: hoge}, resourceDir: ./cluster-hoge}
    - {provider: {name: fuga}, resourceDir: ./cluster-fuga}
  pipeline:
    stages:
    - {name: K8S_CANARY_ROLLOUT, with: {replicas: 10%}}
    - {name: WAIT_APPROVAL, with: {approvers: [ada]}}
    - {name: K8S_PRIMARY_ROLLOUT}
    - {name: K8S_CANARY_CLEAN}
`

func TestImport(t *testing.T) {
	dir := t.TempDir()
	write := func(name, content string) string {
		folder := filepath.Join(dir, name)
		if err := os.MkdirAll(folder, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(folder, v1alpha1.PipecdFile), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return folder
	}
	good := write("good", pipecdApp)
	other := write("other", pipecdApp)
	if err := os.Rename(filepath.Join(other, v1alpha1.PipecdFile), filepath.Join(other, "prd.pipecd.yaml")); err != nil {
		t.Fatal(err)
	}
	plain := filepath.Join(dir, "plain.yaml")
	if err := os.WriteFile(plain, []byte(pipecdApp), 0o600); err != nil {
		t.Fatal(err)
	}
	elsewhere := write("elsewhere", pipecdApp+"  input: {namespace: prd}\n")
	lossy := write("lossy", pipecdApp+"  eventWatcher:\n  - matcher: {name: image}\n    handler: {type: GIT_UPDATE}\n")
	piped := write("piped", strings.Replace(strings.Replace(pipecdApp, "  name: shop\n", "  name: shop\n  description: All of it.\n  labels: {env: prd, team: 'A & B', kind: KUBERNETES}\n", 1),
		"    - {name: K8S_PRIMARY_ROLLOUT}\n", `    - {name: ANALYSIS, with: {duration: 1m, metrics: [{provider: prom, query: up, interval: 1m, expected: {max: 1}}]}}
    - {name: SCRIPT_RUN, with: {run: date}}
    - {name: K8S_PRIMARY_ROLLOUT}
`, 1))
	config := v1alpha1.PipecdConfig{AnalysisProviders: map[string]string{"prom": "https://prometheus.example"}, ScriptImage: "alpine:3"}
	named := write("named", strings.Replace(pipecdApp, "name: shop\n", "name: My Shop\n", 1))
	mesh := func(istio string) string {
		return strings.Replace(pipecdApp, "  pipeline:\n", "  trafficRouting: {method: istio, istio: {"+istio+"}}\n  pipeline:\n", 1)
	}
	found, meshed := write("found", mesh("editableRoutes: [main]")), write("mesh", mesh("virtualService: {name: web}"))
	infra := write("infra", `apiVersion: pipecd.dev/v1beta1
kind: Application
metadata: {labels: {kind: TERRAFORM}}
spec:
  name: infra
  plugins:
    terraform_plugin: {workspace: shop, deployTargets: [dev]}
    ecs: {}
  pipeline:
    stages:
    - {name: TERRAFORM_PLAN, with: {exitOnNoChanges: true}}
    - {name: WAIT_APPROVAL}
    - {name: TERRAFORM_APPLY, timeout: 30m}
`)
	for name, test := range map[string]struct {
		options   ImportOptions
		golden    string
		warning   string
		wantError string
		code      int
	}{
		"a folder":                               {options: ImportOptions{Dir: good, Branch: "main"}, golden: "import"},
		"the file itself":                        {options: ImportOptions{Dir: filepath.Join(good, v1alpha1.PipecdFile), Branch: "main"}, golden: "import"},
		"what is not honoured":                   {options: ImportOptions{Dir: lossy, Branch: "main"}, golden: "import", warning: "spec.eventWatcher is not honoured"},
		"a file of another name":                 {options: ImportOptions{Dir: filepath.Join(other, "prd.pipecd.yaml"), Branch: "main"}, golden: "import-named"},
		"a folder of another name":               {options: ImportOptions{Dir: other}, wantError: "name one of the files that there are: prd.pipecd.yaml"},
		"a name of other files":                  {options: ImportOptions{Dir: plain}, wantError: `spec.source.git.pipecd.file: Invalid value: "plain.yaml": must be the name of a file in the folder, NAME.pipecd.yaml or .pipe.yaml`},
		"another namespace":                      {options: ImportOptions{Dir: elsewhere, Strict: true}, warning: "spec.input.namespace is not honoured: objects go to the namespace of the Application, shop", wantError: "error: 1 fields of ", code: 2},
		"and strictly":                           {options: ImportOptions{Dir: lossy, Strict: true}, warning: "spec.eventWatcher is not honoured", wantError: "error: 1 fields of ", code: 2},
		"a folder without it":                    {options: ImportOptions{Dir: dir}, wantError: "there is no " + dir},
		"a name that cannot be":                  {options: ImportOptions{Dir: named}, wantError: "--name gives it another name"},
		"which is given another":                 {options: ImportOptions{Dir: named, Name: "shop", Branch: "main"}, golden: "import"},
		"names of piped, and labels":             {options: ImportOptions{Dir: piped, Branch: "main", Config: config}, golden: "import-piped", warning: "spec.labels[team] is not honoured: it can be no label"},
		"names that nobody knows":                {options: ImportOptions{Dir: piped}, wantError: "import with --analysis-provider prom=URL"},
		"a provider without address":             {options: ImportOptions{Dir: piped, Config: v1alpha1.PipecdConfig{AnalysisProviders: map[string]string{"prom": "prom:9090"}, ScriptImage: "a"}}, warning: "spec.labels[team]", wantError: "spec.source.git.pipecd.analysisProviders[prom]: Invalid value"},
		"one that plugins deliver":               {options: ImportOptions{Dir: infra, Plugins: []string{"terraform_plugin"}, PluginsOnly: true}, golden: "import-plugins", warning: "spec.plugins.ecs is not honoured: the Application does not use this plugin: add it to its spec.plugins; --plugin NAME has"},
		"plugins that nobody names":              {options: ImportOptions{Dir: infra}, wantError: "--plugin NAME has the application use the Plugin of the name, and --plugins-only nothing else"},
		"nothing, and plugins only":              {options: ImportOptions{Dir: infra, PluginsOnly: true}, wantError: "name them by --plugin"},
		"a plugin that cannot be":                {options: ImportOptions{Dir: infra, Plugins: []string{"a/b"}, PluginsOnly: true}, warning: "spec.plugins", wantError: `spec.plugins[0].name: Invalid value: "a/b"`},
		"a VirtualService that nobody may apply": {options: ImportOptions{Dir: found, Strict: true}, warning: "spec.trafficRouting.method is not honoured: the VirtualService is among the manifests", wantError: "error: 1 fields of ", code: 2},
		"which a ServiceAccount may":             {options: ImportOptions{Dir: found, Branch: "main", ServiceAccount: "routes", Strict: true}, golden: "import-istio"},
		"one that may be among the manifests":    {options: ImportOptions{Dir: meshed, Branch: "main", Strict: true}, golden: "import-istio-named", warning: "Warning: if VirtualService web is among the manifests, it is applied as a ServiceAccount that may apply it: name one by --serviceaccount"},
		"a folder that is not there":             {options: ImportOptions{Dir: filepath.Join(dir, "mars")}, wantError: "mars: no such file"},
	} {
		t.Run(name, func(t *testing.T) {
			streams, _, out, errOut := genericiooptions.NewTestIOStreams()
			o := test.options
			o.IOStreams, o.subject.Namespace = streams, "shop"
			o.Git = v1alpha1.GitSource{URL: "https://git.example/shop.git", Path: "shop/prd"}
			err := o.Run(t.Context())
			if (err == nil) != (test.wantError == "") || err != nil && !strings.Contains(err.Error(), test.wantError) {
				t.Fatalf("error %v, want %q", err, test.wantError)
			}
			var exit utilexec.CodeExitError
			if errors.As(err, &exit) != (test.code != 0) || exit.Code != test.code {
				t.Errorf("exit code %d, want %d", exit.Code, test.code)
			}
			if !strings.Contains(errOut.String(), test.warning) || test.warning == "" && errOut.String() != "" {
				t.Errorf("warned of %q, want %q", errOut.String(), test.warning)
			}
			if test.golden != "" {
				golden(t, test.golden, out.String())
			} else if out.String() != "" {
				t.Errorf("printed %q, want nothing", out.String())
			}
		})
	}
}
