package validation

import (
	"strings"
	"testing"
)

func TestValidateSource(t *testing.T) {
	checkSpecs(t, specs{
		"an address of SSH is fine":            {spec: "source: {git: {url: 'git@git.example:team/shop.git'}}"},
		"a URL of SSH with its user is fine":   {spec: "source: {git: {url: 'ssh://git@git.example/shop.git'}}"},
		"a range of versions is fine":          {spec: "source: {git: {url: https://git.example/a, ref: {semver: '>=1.0.0 <2.0.0'}}}"},
		"a selector of labels is fine":         {spec: "source: {selector: {kinds: [Deployment, Rollout.argoproj.io], matchLabels: {app: web}}}"},
		"objects of the application are fine":  {spec: "source: {inline: {objects: [{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: shop}}]}}"},
		"a folder that is written with a dot":  {spec: "source: {git: {url: https://git.example/a, path: ./web/../api}}"},
		"a branch with a slash is fine":        {spec: "source: {git: {url: https://git.example/a, ref: {branch: feature/cart}}}"},
		"an empty ref is the default branch's": {spec: "source: {git: {url: https://git.example/a, ref: {}}}"},

		"two sources": {
			spec: "source: {git: {url: https://git.example/a}, selector: {matchLabels: {app: web}}}",
			want: []string{"spec.source.selector: Forbidden: may not be combined with git"},
		},
		"an address that is missing":      {spec: "source: {git: {}}", want: []string{"spec.source.git.url: Required value"}},
		"a scheme that nobody serves":     {spec: "source: {git: {url: 'gopher://git.example/a'}}", want: []string{`spec.source.git.url: Unsupported value: "gopher"`}},
		"an address without a repository": {spec: "source: {git: {url: 'https://git.example/'}}", want: []string{"spec.source.git.url: Invalid value"}},
		"an address without a host":       {spec: "source: {git: {url: 'https:///a'}}", want: []string{"spec.source.git.url: Invalid value"}},
		"two refs": {
			spec: "source: {git: {url: https://git.example/a, ref: {branch: main, tag: v1}}}",
			want: []string{"spec.source.git.ref.tag: Forbidden: may not be combined with branch"},
		},
		"names that git does not have": {
			spec: "source: {git: {url: https://git.example/a, ref: {branch: '-u x'}}}", want: []string{`spec.source.git.ref.branch: Invalid value: "-u x"`},
		},
		"a name that leaves its folder": {
			spec: "source: {git: {url: https://git.example/a, ref: {tag: a/../b}}}", want: []string{`spec.source.git.ref.tag: Invalid value: "a/../b"`},
		},
		"a part of a hash": {
			spec: "source: {git: {url: https://git.example/a, ref: {commit: abc123}}}", want: []string{`spec.source.git.ref.commit: Invalid value: "abc123"`},
		},
		"a hash of SHA-256, which nobody can read": {
			spec: "source: {git: {url: https://git.example/a, ref: {commit: " + strings.Repeat("0a", 32) + "}}}", want: []string{"spec.source.git.ref.commit: Invalid value"},
		},
		"a commit on a branch": {
			spec: "source: {git: {url: https://git.example/a, ref: {branch: main, commit: " + strings.Repeat("0a", 20) + "}}}",
			want: []string{"spec.source.git.ref.commit: Forbidden: may not be combined with branch"},
		},
		"no range of versions": {
			spec: "source: {git: {url: https://git.example/a, ref: {semver: newest}}}",
			want: []string{`spec.source.git.ref.semver: Invalid value: "newest": must be a range of versions`},
		},
		"a range that nobody would write": {
			spec: "source: {git: {url: https://git.example/a, ref: {semver: '" + strings.Repeat(">1 ", 100) + "'}}}", want: []string{"spec.source.git.ref.semver: Too long"},
		},
		"a folder outside of the repository": {
			spec: "source: {git: {url: https://git.example/a, path: web/../../etc}}", want: []string{"spec.source.git.path: Invalid value: \"web/../../etc\": must not leave"},
		},
		"a folder of the server": {spec: "source: {git: {url: https://git.example/a, path: /etc}}", want: []string{`spec.source.git.path: Invalid value: "/etc": must be relative`}},
		"a repository that is asked all the time": {
			spec: "source: {git: {url: https://git.example/a, interval: 1s}}", want: []string{`spec.source.git.interval: Invalid value: "1s": must be at least 10s`},
		},
		"a Secret that cannot exist": {
			spec: "source: {git: {url: https://git.example/a, secretRef: {name: A}}}", want: []string{`spec.source.git.secretRef.name: Invalid value: "A"`},
		},
		"a webhook is signed by a Secret": {spec: "source: {git: {url: https://git.example/a, webhook: {secretRef: {name: hook}}}}"},
		"a webhook that names none": {
			spec: "source: {git: {url: https://git.example/a, webhook: {}}}", want: []string{"spec.source.git.webhook.secretRef.name: Required value"},
		},
		"an application file with a name of its own": {spec: "source: {git: {url: https://git.example/a, pipecd: {file: prd.pipecd.yaml}}}"},
		"the oldest name of one":                     {spec: "source: {git: {url: https://git.example/a, pipecd: {file: .pipe.yaml}}}"},
		"an application file of any name":            {spec: "source: {git: {url: https://git.example/a, pipecd: {file: app.yaml}}}", want: []string{`spec.source.git.pipecd.file: Invalid value: "app.yaml": must be the name of a file in the folder`}},
		"an application file elsewhere":              {spec: "source: {git: {url: https://git.example/a, pipecd: {file: ../app.pipecd.yaml}}}", want: []string{`spec.source.git.pipecd.file: Invalid value: "../app.pipecd.yaml"`}},
		"an application file with a long name":       {spec: "source: {git: {url: https://git.example/a, pipecd: {file: " + strings.Repeat("a", 250) + ".pipecd.yaml}}}", want: []string{"spec.source.git.pipecd.file: Too long"}},
		"what piped would know":                      {spec: "source: {git: {url: https://git.example/a, pipecd: {analysisProviders: {prom: 'https://prometheus.example'}, scriptImage: 'alpine:3'}}}"},
		"providers that are none": {
			spec: "source: {git: {url: https://git.example/a, pipecd: {analysisProviders: {a: prometheus, b: 'https://a:b@c', '': 'https://c'}}}}",
			want: []string{
				"spec.source.git.pipecd.analysisProviders[]: Required value", "spec.source.git.pipecd.analysisProviders[a]: Invalid value",
				"spec.source.git.pipecd.analysisProviders[b]: Forbidden: may not hold credentials",
			},
		},
		"credentials for what piped would know": {
			spec: "source: {git: {url: https://git.example/a, pipecd: {analysisProviders: {prom: 'https://prometheus.example'}, analysisSecrets: {prom: prometheus}}}}",
		},
		"credentials for nobody, and of a Secret that cannot exist": {
			spec: "source: {git: {url: https://git.example/a, pipecd: {analysisProviders: {a: 'https://a', b: 'https://b'}, analysisSecrets: {a: A, b: '', prom: prometheus}}}}",
			want: []string{
				`spec.source.git.pipecd.analysisSecrets[a]: Invalid value: "A"`, "spec.source.git.pipecd.analysisSecrets[b]: Required value",
				"spec.source.git.pipecd.analysisSecrets[prom]: Forbidden: analysisProviders has no server of that name",
			},
		},
		"a selector of everything": {spec: "source: {selector: {kinds: [Deployment]}}", want: []string{"spec.source.selector: Required value"}},
		"kinds that there cannot be": {
			spec: "source: {selector: {kinds: [deployments, Widget., A, A], matchLabels: {a: b}}}",
			want: []string{
				`spec.source.selector.kinds[3]: Duplicate value: "A"`, `spec.source.selector.kinds[0]: Invalid value: "deployments"`,
				`spec.source.selector.kinds[1]: Invalid value: "Widget."`,
			},
		},
		"labels that there cannot be": {spec: "source: {selector: {matchLabels: {a b: c}}}", want: []string{`spec.source.selector.matchLabels: Invalid value: "a b"`}},
		"no objects":                  {spec: "source: {inline: {objects: []}}", want: []string{"spec.source.inline.objects: Required value"}},
		"objects that are none, twice, elsewhere or secret": {
			spec: `source: {inline: {objects: [
  {kind: ConfigMap}, {apiVersion: v1, kind: ConfigMap, metadata: {name: a}}, {apiVersion: v1, kind: ConfigMap, metadata: {name: a}},
  {apiVersion: v1, kind: ConfigMap, metadata: {name: b, namespace: kube-system}}, {apiVersion: v1, kind: Secret, metadata: {name: s}}]}}`,
			want: []string{
				"spec.source.inline.objects[0].apiVersion: Required value", "spec.source.inline.objects[0].metadata.name: Required value",
				`spec.source.inline.objects[2]: Duplicate value: "ConfigMap a"`,
				`spec.source.inline.objects[3].metadata.namespace: Invalid value: "kube-system"`,
				"spec.source.inline.objects[4]: Forbidden: a Secret may not be here",
			},
		},
	})
	none := application(t, "")
	none.Spec.Source.Git = nil
	check(t, ValidateApplication(none), []string{"spec.source: Required value: exactly one of git, selector, inline must be set"})
}

func TestCredentialsInAddressesAreRefusedAndNotRepeated(t *testing.T) {
	for _, address := range []string{
		"https://user:hunter2@git.example/a", "https://hunter2@git.example/a", "ssh://git:hunter2@git.example/a", "https://hunter2%zz@git.example/a",
	} {
		errs := ValidateApplication(application(t, "source: {git: {url: '"+address+"'}}"))
		if len(errs) != 1 || !strings.HasPrefix(errs[0].Error(), "spec.source.git.url: ") || strings.Contains(errs.ToAggregate().Error(), "hunter2") {
			t.Errorf("%s: %v, want one refusal that does not repeat it", address, errs)
		}
	}
}
