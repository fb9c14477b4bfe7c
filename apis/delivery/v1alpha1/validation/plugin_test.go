package validation

import (
	"encoding/json"
	"fmt"
	"net/url"
	"path"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
)

var sum = strings.Repeat("0a", 32)

// plugin is the one that a spec in YAML makes, with the defaults. A program and its checksum are put in where there are none.
func plugin(t *testing.T, spec string) *v1alpha1.Plugin {
	t.Helper()
	made := &v1alpha1.Plugin{ObjectMeta: metav1.ObjectMeta{Name: "wait", ResourceVersion: "1"}, Spec: v1alpha1.PluginSpec{URL: "file:///opt/plugins/wait", Sha256: sum}}
	if err := yaml.UnmarshalStrict([]byte(spec), &made.Spec); err != nil {
		t.Fatal(err)
	}
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	scheme.Default(made)
	return made
}

func TestPluginsAreNamedByDNSLabelsAndInNoNamespace(t *testing.T) {
	made := plugin(t, "")
	check(t, ValidatePlugin(made), nil)
	made.Name = "my.wait"
	check(t, ValidatePlugin(made), []string{`metadata.name: Invalid value: "my.wait"`})
	made.Name, made.Namespace = "wait", "shop"
	check(t, ValidatePlugin(made), []string{"metadata.namespace: Forbidden"})
}

func TestValidatePlugin(t *testing.T) {
	for name, test := range map[string]struct {
		spec string
		want []string
	}{
		"what says nothing but which program is fine": {},
		"everything at once is fine": {spec: `
url: oci://registry.example:5000/plugins/kubernetes:v0.4.0@sha256:` + sum + `
config: {chartRepositories: [{name: a}]}
deployTargets:
- {name: dev_1, labels: {env: "", "team name": any thing}, config: {masterURL: "https://one"}}
- {name: clusters, clusterSelector: {matchLabels: {region: eu}}, config: {appStateInformer: {namespace: web}}, serviceAccountRef: {namespace: shop, name: deployer}}
port: 7001
logLevel: debug
limits: {memory: 512Mi, files: 64, processes: 16}
gracePeriodSeconds: 1
suspend: true
`},
		"no program": {spec: `url: ""`, want: []string{"spec.url: Required value"}},
		"an address that is none": {
			spec: `url: "https://exa mple/secret"`, want: []string{`spec.url: Invalid value: "": must be a URL`},
		},
		"a scheme that there isn't":               {spec: "url: ftp://example.com/wait", want: []string{`spec.url: Unsupported value: "ftp": supported values: "file", "http", "https", "oci"`}},
		"a path that is no URL":                   {spec: "url: /opt/plugins/wait", want: []string{`spec.url: Unsupported value: ""`}},
		"a relative path":                         {spec: "url: file:plugins/wait", want: []string{`spec.url: Invalid value: "file:plugins/wait": must name an absolute path`}},
		"a file of another host":                  {spec: "url: file://host/wait", want: []string{`spec.url: Invalid value: "file://host/wait": must name an absolute path`}},
		"a path that goes back":                   {spec: "url: file:///opt/../etc/wait", want: []string{`spec.url: Invalid value: "file:///opt/../etc/wait": must name a file by its shortest absolute path`}},
		"a path that goes back, written in bytes": {spec: `url: "file:///opt/%2e%2e/wait"`, want: []string{"spec.url: Invalid value"}},
		"a folder for a file":                     {spec: "url: file:///", want: []string{"spec.url: Invalid value"}},
		"a query for a file":                      {spec: "url: file:///opt/wait?x=y", want: []string{"spec.url: Invalid value"}},
		"credentials in an address are not repeated": {
			spec: "url: https://jane:hunter2@example.com/wait", want: []string{"spec.url: Forbidden: may not hold credentials"},
		},
		"a fragment":                           {spec: "url: https://example.com/wait#x", want: []string{"spec.url: Invalid value"}},
		"a host without a file":                {spec: "url: https://example.com/", want: []string{`spec.url: Invalid value: "https://example.com/": must name a host and a file`}},
		"a file without a host":                {spec: "url: http:///wait", want: []string{"spec.url: Invalid value"}},
		"a query is what stores of files have": {spec: `url: "https://example.com/files?id=7"`},
		"an image without a tag":               {spec: "url: oci://registry.example/plugins/wait", want: []string{`spec.url: Invalid value: "oci://registry.example/plugins/wait": must have a tag or a digest`}},
		"an image without a registry":          {spec: "url: oci:///plugins/wait:v1", want: []string{"spec.url: Invalid value"}},
		"an image that no registry has":        {spec: "url: oci://registry.example/Plugins/wait:v1", want: []string{"spec.url: Invalid value"}},
		"an address that goes on and on":       {spec: "url: https://example.com/" + strings.Repeat("a", 2048), want: []string{"spec.url: Too long"}},
		"a login for a file that needs none":   {spec: "secretRef: {name: login}", want: []string{"spec.secretRef: Forbidden: is for URLs of https and oci; one of file needs none"}},
		"a login that everybody could read":    {spec: "url: http://example.com/wait\nsecretRef: {name: login}", want: []string{"spec.secretRef: Forbidden: is for URLs of https and oci; one of http would show"}},
		"a login without a name":               {spec: "url: https://example.com/wait\nsecretRef: {}", want: []string{"spec.secretRef.name: Required value"}},
		"a login that no Secret can be":        {spec: "url: https://example.com/wait\nsecretRef: {name: ../login}", want: []string{`spec.secretRef.name: Invalid value: "../login"`}},
		"a login, tools and another name":      {spec: "url: https://example.com/wait\nsecretRef: {name: login}\ninstallTools: true\npipecdName: Wait"},
		"a name by which files find another":   {spec: "pipecdName: k8s_plugin", want: []string{`spec.pipecdName: Invalid value: "k8s_plugin": must be the name of the plugin, wait,`}},
		"a name that no plugin of PipeCD has":  {spec: `pipecdName: "w a/it"`, want: []string{`spec.pipecdName: Invalid value: "w a/it": must be at most 63 letters`}},
		"no checksum":                          {spec: `sha256: ""`, want: []string{"spec.sha256: Required value"}},
		"a checksum of something else":         {spec: "sha256: sha256:" + sum[:57], want: []string{"spec.sha256: Invalid value"}},
		"a checksum in capitals":               {spec: "sha256: " + strings.ToUpper(sum), want: []string{"spec.sha256: Invalid value"}},
		"a list for a config":                  {spec: "config: [a]", want: []string{`spec.config: Invalid value: "": must be an object`}},
		"a text for the config of a target":    {spec: "deployTargets: [{name: a, config: text}]", want: []string{"spec.deployTargets[0].config: Invalid value"}},
		"targets that cannot be told apart": {
			spec: `deployTargets: [{name: a}, {name: a}, {name: ""}, {name: "a b"}]`,
			want: []string{`spec.deployTargets[1].name: Duplicate value: "a"`, "spec.deployTargets[2].name: Required value", `spec.deployTargets[3].name: Invalid value: "a b"`},
		},
		"a label without a key": {spec: `deployTargets: [{name: a, labels: {"": b}}]`, want: []string{"spec.deployTargets[0].labels[]: Required value"}},
		"a selector that selects by nothing": {
			spec: "deployTargets: [{name: a, clusterSelector: {matchExpressions: [{key: region, operator: Near}]}, serviceAccountRef: {namespace: shop, name: deployer}}]",
			want: []string{"spec.deployTargets[0].clusterSelector.matchExpressions[0].operator: Invalid value"},
		},
		"clusters by nobody's rights": {
			spec: "deployTargets: [{name: a}, {name: b, clusterSelector: {}}]", want: []string{"spec.deployTargets[1].serviceAccountRef: Required value: say by the rights"},
		},
		"rights without clusters": {
			spec: "deployTargets: [{name: a, serviceAccountRef: {namespace: shop, name: deployer}}]", want: []string{"spec.deployTargets[0].serviceAccountRef: Forbidden"},
		},
		"an account without its names": {
			spec: "deployTargets: [{name: a, clusterSelector: {}, serviceAccountRef: {}}]",
			want: []string{"spec.deployTargets[0].serviceAccountRef.name: Required value", "spec.deployTargets[0].serviceAccountRef.namespace: Required value"},
		},
		"names that no account has": {
			spec: "deployTargets: [{name: a, clusterSelector: {}, serviceAccountRef: {namespace: ../shop, name: a/b}}]",
			want: []string{`spec.deployTargets[0].serviceAccountRef.name: Invalid value: "a/b"`, `spec.deployTargets[0].serviceAccountRef.namespace: Invalid value: "../shop"`},
		},
		"an account of Kubernetes' own": {
			spec: "deployTargets: [{name: a, clusterSelector: {}, serviceAccountRef: {namespace: kube-system, name: default}}]",
			want: []string{"spec.deployTargets[0].serviceAccountRef.namespace: Forbidden"},
		},
		"an account of ours": {
			spec: "deployTargets: [{name: a, clusterSelector: {}, serviceAccountRef: {namespace: manifold-system, name: default}}]",
			want: []string{"spec.deployTargets[0].serviceAccountRef.namespace: Forbidden"},
		},
		"another kubeconfig for clusters": {
			spec: "deployTargets: [{name: a, clusterSelector: {}, config: {kubeConfigPath: /etc/mine}, serviceAccountRef: {namespace: shop, name: deployer}}]",
			want: []string{"spec.deployTargets[0].config.kubeConfigPath: Forbidden"},
		},
		"a port of the system": {spec: "port: 80", want: []string{"spec.port: Invalid value: 80: must be from 1024 to 65535"}},
		"a port below 0":       {spec: "port: -1", want: []string{"spec.port: Invalid value: -1"}},
		"a level that no plugin has": {
			spec: "logLevel: chatty", want: []string{`spec.logLevel: Unsupported value: "chatty": supported values: "debug", "info", "warn", "error"`},
		},
		"no time at all to end": {spec: "gracePeriodSeconds: 0", want: []string{"spec.gracePeriodSeconds: Invalid value: 0: must be from 1 to 3600"}},
		"a day to end":          {spec: "gracePeriodSeconds: 86400", want: []string{"spec.gracePeriodSeconds: Invalid value: 86400"}},
		"limits that nothing starts with": {
			spec: "limits: {memory: 1Mi, files: 0, processes: -5}",
			want: []string{`spec.limits.memory: Invalid value: "1Mi": must be at least 128Mi`, "spec.limits.files: Invalid value: 0: must be from 64 to 1048576", "spec.limits.processes: Invalid value: -5"},
		},
		"memory below 0": {spec: `limits: {memory: "-1"}`, want: []string{"spec.limits.memory: Invalid value"}},
	} {
		t.Run(name, func(t *testing.T) {
			made := plugin(t, test.spec)
			check(t, ValidatePlugin(made), test.want)
			old := plugin(t, "port: 9999")
			check(t, ValidatePluginUpdate(made, old), test.want)
			check(t, ValidatePluginUpdate(made, made), nil)
		})
	}
}

func TestAllThatAPluginIsConfiguredWithFitsIntoAnArgument(t *testing.T) {
	config := func(size int) *runtime.RawExtension {
		raw, err := json.Marshal(map[string]string{"a": strings.Repeat("x", size)})
		if err != nil {
			t.Fatal(err)
		}
		return &runtime.RawExtension{Raw: raw}
	}
	made := plugin(t, "")
	made.Spec.Config = config(90 << 10)
	check(t, ValidatePlugin(made), nil)
	made.Spec.DeployTargets = []v1alpha1.PluginTarget{{Name: "a", Config: config(7 << 10)}}
	check(t, ValidatePlugin(made), []string{"spec: Invalid value: "})
	made.Spec.Config, made.Spec.DeployTargets = nil, nil
	for i := range 501 {
		made.Spec.DeployTargets = append(made.Spec.DeployTargets, v1alpha1.PluginTarget{Name: fmt.Sprint("t", i)})
	}
	check(t, ValidatePlugin(made), []string{"spec.deployTargets: Too many"})
}

func TestAProgramByHTTPIsWarnedOf(t *testing.T) {
	if got := PluginWarnings(plugin(t, "url: http://example.com/wait")); len(got) != 1 || !strings.HasPrefix(got[0], "spec.url: ") {
		t.Errorf("warnings %q, want one of spec.url", got)
	}
	if got := PluginWarnings(plugin(t, "url: https://example.com/wait")); got != nil {
		t.Errorf("warnings %q, want none", got)
	}
}

func FuzzAnAddressThatIsTakenNamesAProgramAndHoldsNoCredentials(f *testing.F) {
	for _, seed := range []string{
		"file:///opt/wait", "https://example.com/wait", "oci://registry.example/wait:v1", "file:%", "https://u:p@h/x", "oci://h/a:b@sha256:" + sum, "http://[::1]:80/x",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, address string) {
		if len(validateProgram(address, field.NewPath("spec", "url"))) > 0 {
			return
		}
		parsed, err := url.Parse(address)
		if err != nil {
			t.Fatal(err)
		}
		if parsed.User != nil || parsed.Fragment != "" || parsed.Path == "" {
			t.Errorf("%q is taken", address)
		}
		if local := parsed.Scheme == "file"; local == (parsed.Host != "") || local && !path.IsAbs(parsed.Path) {
			t.Errorf("%q is taken, with the host %q and the path %q", address, parsed.Host, parsed.Path)
		}
	})
}
