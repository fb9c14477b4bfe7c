package rewrite

import (
	"bytes"
	"errors"
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// prod is the environment of the tests: a chart that goes to one namespace.
func prod() Wanted {
	return Wanted{Namespace: "default", Pipeline: "podinfo", Environment: "prod", Kind: "HelmRelease", Name: "podinfo", Namespaces: []string{"podinfo"}, Revision: "6.2.0"}
}

// of is an environment whose app has images.
func of(kind string, images map[string]string) Wanted {
	w := prod()
	w.Kind, w.Images, w.Revision = kind, images, ""
	return w
}

const (
	mark = `# {"$promotion": "default:podinfo:prod"}`

	release = `apiVersion: helm.toolkit.fluxcd.io/v2
kind: HelmRelease
metadata: {name: podinfo, namespace: podinfo}
spec:
  chart:
    spec:
      chart: podinfo
      version: "6.1.5"   # what runs
`
	deployment = `apiVersion: apps/v1
kind: Deployment
metadata:
  name: podinfo
  namespace: podinfo
spec:
  template:
    spec:
      initContainers:
      - image: ghcr.io/podinfo:6.1.5
      containers:
      - {name: web, image: "ghcr.io/podinfo:6.1.5"} # the shop
      - name: proxy
        image: registry:5000/proxy
`
)

var images = map[string]string{"ghcr.io/podinfo": "6.2.0"}

func TestTheVersionIsWrittenAndNothingElse(t *testing.T) {
	for name, test := range map[string]struct {
		wanted Wanted
		files  map[string]string
		// want are the files as they are to be, of those that change.
		want map[string]string
	}{
		"behind a marker, in its quotes": {prod(),
			map[string]string{"a.yaml": "# top\n\n\nspec:\n    version:   '6.1.5'   " + mark + "\n    other: [a,   b]\n"},
			map[string]string{"a.yaml": "# top\n\n\nspec:\n    version:   '6.2.0'   " + mark + "\n    other: [a,   b]\n"}},
		"behind all markers of the environment, and of no other": {prod(),
			map[string]string{
				"eu/a.yaml": "a: 1 " + mark + "\n---\nb: 6.1.5 " + mark, "us/b.yml": "- \"x\" " + mark + "\r\n- y # {\"$promotion\": \"default:podinfo:prod2\"}\r\n",
				"c.yaml": "v: 6.1.5 # {\"$promotion\": \"default:podinfo:dev\"}", "README.md": "v: 6.1.5 " + mark,
			},
			map[string]string{
				"eu/a.yaml": "a: 6.2.0 " + mark + "\n---\nb: 6.2.0 " + mark, "us/b.yml": "- \"6.2.0\" " + mark + "\r\n- y # {\"$promotion\": \"default:podinfo:prod2\"}\r\n",
			}},
		"behind a marker with more in it": {prod(),
			map[string]string{"a.yaml": `v: 1 # {"$imagepolicy": "a:b", "$promotion": "default:podinfo:prod"}`},
			map[string]string{"a.yaml": `v: 6.2.0 # {"$imagepolicy": "a:b", "$promotion": "default:podinfo:prod"}`}},
		"behind a marker with a comment below it": {prod(),
			map[string]string{"a.yaml": "a: 1 " + mark + "\n     # and so on\nb: 2 " + mark + "\n# below\n"},
			map[string]string{"a.yaml": "a: 6.2.0 " + mark + "\n     # and so on\nb: 6.2.0 " + mark + "\n# below\n"}},
		"below the path alone": {with(prod(), func(w *Wanted) { w.Path = "clusters/prod/" }),
			map[string]string{"clusters/prod/a.yaml": "v: 1 " + mark, "clusters/prod2/a.yaml": "v: 1 " + mark},
			map[string]string{"clusters/prod/a.yaml": "v: 6.2.0 " + mark}},
		"quoted where it would be a number without": {with(prod(), func(w *Wanted) { w.Revision = "1.10" }),
			map[string]string{"a.yaml": "v: 6.1.5 " + mark + "\nw: '6.1.5' " + mark},
			map[string]string{"a.yaml": "v: \"1.10\" " + mark + "\nw: '1.10' " + mark}},
		"behind characters of several bytes": {prod(),
			map[string]string{"a.yaml": "ключ: {ä: \"ö\", v: 1} # all\n\"ü\": \"6.1.5\" " + mark},
			map[string]string{"a.yaml": "ключ: {ä: \"ö\", v: 1} # all\n\"ü\": \"6.2.0\" " + mark}},
		"as the tag of a marked image": {of("Deployment", images),
			map[string]string{"a.yaml": "image: ghcr.io/podinfo:6.1.5 " + mark + "\nenv: \"ghcr.io/podinfo:1\" " + mark + "\nimages:\n- name: ghcr.io/podinfo\n  newTag: x " + mark},
			map[string]string{"a.yaml": "image: ghcr.io/podinfo:6.2.0 " + mark + "\nenv: \"ghcr.io/podinfo:6.2.0\" " + mark + "\nimages:\n- name: ghcr.io/podinfo\n  newTag: 6.2.0 " + mark}},
		"as the tag of a marked image when only the revision says it": {prod(),
			map[string]string{"a.yaml": "image: registry:5000/podinfo " + mark},
			map[string]string{"a.yaml": "image: registry:5000/podinfo:6.2.0 " + mark}},
		"as the tag of the image beside which it stands": {of("Deployment", map[string]string{"a": "1.0.0", "b": "2.0.0"}),
			map[string]string{"a.yaml": "x: {repository: a, tag: \"0\"}\ny:\n  repository: b\n  tag: \"0\" " + mark + "\nz:\n  name: old\n  newName: a\n  newTag: \"0\" " + mark},
			map[string]string{"a.yaml": "x: {repository: a, tag: \"0\"}\ny:\n  repository: b\n  tag: \"2.0.0\" " + mark + "\nz:\n  name: old\n  newName: a\n  newTag: \"1.0.0\" " + mark}},

		"of a HelmRelease": {prod(),
			map[string]string{"dev.yaml": strings.Replace(release, "namespace: podinfo", "namespace: dev", 1), "prod.yaml": release},
			map[string]string{"prod.yaml": strings.Replace(release, "6.1.5", "6.2.0", 1)}},
		"of a HelmRelease whose kustomization says the namespace": {prod(),
			map[string]string{
				"prod/hr.yaml": strings.Replace(release, ", namespace: podinfo", "", 1), "prod/kustomization.yaml": "namespace: podinfo\nresources: [hr.yaml]",
				"dev/hr.yaml": strings.Replace(release, ", namespace: podinfo", "", 1), "dev/kustomization.yaml": "namespace: dev\nresources: [./hr.yaml]",
				"kustomization.yaml": "resources: [dev, prod]",
			},
			map[string]string{"prod/hr.yaml": strings.Replace(strings.Replace(release, ", namespace: podinfo", "", 1), "6.1.5", "6.2.0", 1)}},
		"in each namespace of the environment": {with(prod(), func(w *Wanted) { w.Namespaces = []string{"eu", "podinfo", "eu"} }),
			map[string]string{"all.yaml": release + "---\n" + strings.Replace(release, "namespace: podinfo", "namespace: eu", 1)},
			map[string]string{"all.yaml": strings.ReplaceAll(release+"---\n"+strings.Replace(release, "namespace: podinfo", "namespace: eu", 1), "6.1.5", "6.2.0")}},
		"of a Deployment": {of("Deployment", images), map[string]string{"a.yaml": deployment}, map[string]string{"a.yaml": strings.ReplaceAll(deployment, "6.1.5", "6.2.0")}},
		"of several images": {of("Deployment", map[string]string{"ghcr.io/podinfo": "7", "registry:5000/proxy": "8"}), map[string]string{"a.yaml": deployment},
			map[string]string{"a.yaml": strings.ReplaceAll(strings.ReplaceAll(deployment, "6.1.5", "7"), "5000/proxy", "5000/proxy:8")}},
		"of a CronJob": {of("CronJob", images),
			map[string]string{"a.yaml": "apiVersion: batch/v1\nkind: CronJob\nmetadata: {name: podinfo, namespace: podinfo}\nspec:\n  jobTemplate:\n    spec:\n      template:\n        spec:\n          containers: [{image: ghcr.io/podinfo}]"},
			map[string]string{"a.yaml": "apiVersion: batch/v1\nkind: CronJob\nmetadata: {name: podinfo, namespace: podinfo}\nspec:\n  jobTemplate:\n    spec:\n      template:\n        spec:\n          containers: [{image: ghcr.io/podinfo:6.2.0}]"}},
		"of the kustomization for the namespace, in the place of the manifest": {of("Deployment", images),
			map[string]string{
				"base/a.yaml":             strings.Replace(deployment, "  namespace: podinfo\n", "", 1),
				"base/kustomization.yaml": "resources: [a.yaml]", "dev/kustomization.yaml": "namespace: dev\nresources: [../base]\nimages: [{name: ghcr.io/podinfo, newTag: 6.2.0}]",
				"prod/kustomization.yaml": "namespace: podinfo\nresources:\n- ../base\nimages:\n- name: other\n  newTag: a\n- name: ghcr.io/podinfo\n  newTag: 6.1.5 # now\n",
			},
			map[string]string{"prod/kustomization.yaml": "namespace: podinfo\nresources:\n- ../base\nimages:\n- name: other\n  newTag: a\n- name: ghcr.io/podinfo\n  newTag: 6.2.0 # now\n"}},
		"of what an image becomes": {of("Deployment", images),
			map[string]string{"prod/kustomization.yaml": "namespace: podinfo\nimages:\n- {name: web, newName: ghcr.io/podinfo, newTag: '1'}\n- {name: ghcr.io/podinfo, newName: other, newTag: '1'}\n"},
			map[string]string{"prod/kustomization.yaml": "namespace: podinfo\nimages:\n- {name: web, newName: ghcr.io/podinfo, newTag: '6.2.0'}\n- {name: ghcr.io/podinfo, newName: other, newTag: '1'}\n"}},
		"of a Kustomization of Flux": {of("Kustomization", images),
			map[string]string{"a.yaml": "apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {name: podinfo, namespace: podinfo}\nspec:\n  images:\n  - name: ghcr.io/podinfo\n    newTag: 6.1.5\n"},
			map[string]string{"a.yaml": "apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {name: podinfo, namespace: podinfo}\nspec:\n  images:\n  - name: ghcr.io/podinfo\n    newTag: 6.2.0\n"}},
		"as the pin of an Application": {with(prod(), func(w *Wanted) { w.Kind, w.Revision = "Application", "podinfo-v7" }),
			map[string]string{"a.yaml": "apiVersion: delivery.manifold.dev/v1alpha1\nkind: Application\nmetadata: {name: podinfo, namespace: podinfo}\nspec: {revision: podinfo-v6}"},
			map[string]string{"a.yaml": "apiVersion: delivery.manifold.dev/v1alpha1\nkind: Application\nmetadata: {name: podinfo, namespace: podinfo}\nspec: {revision: podinfo-v7}"}},
		"as the commit of an Application": {with(prod(), func(w *Wanted) { w.Kind, w.Revision = "Application", strings.Repeat("ab", 20) }),
			map[string]string{"a.yaml": "apiVersion: delivery.manifold.dev/v1alpha1\nkind: Application\nmetadata: {name: podinfo, namespace: podinfo}\nspec:\n  source: {git: {url: x, ref: {commit: 01}}}"},
			map[string]string{"a.yaml": "apiVersion: delivery.manifold.dev/v1alpha1\nkind: Application\nmetadata: {name: podinfo, namespace: podinfo}\nspec:\n  source: {git: {url: x, ref: {commit: " + strings.Repeat("ab", 20) + "}}}"}},
		"not where it is already": {prod(), map[string]string{"a.yaml": "v: 6.2.0 " + mark}, nil},
		"beside templates and what is no YAML": {prod(),
			map[string]string{"chart/a.yaml": "{{ if .podinfo }}\nkind: HelmRelease", "b.yaml": "\tpodinfo", "c.yaml": "podinfo", "d.yaml": "- podinfo\n---\n---\nkind: {podinfo: HelmRelease}", "prod.yaml": release},
			map[string]string{"prod.yaml": strings.Replace(release, "6.1.5", "6.2.0", 1)}},
	} {
		t.Run(name, func(t *testing.T) {
			files := bytesOf(test.files)
			result, err := Rewrite(files, test.wanted)
			if err != nil {
				t.Fatal(err)
			}
			got := map[string]string{}
			for file, content := range result.Files {
				got[file] = string(content)
			}
			if diff := cmp.Diff(test.want, got); diff != "" && len(test.want)+len(got) > 0 {
				t.Error(diff)
			}
			if diff := cmp.Diff(test.files, stringsOf(files)); diff != "" {
				t.Errorf("what was handed over has changed: %s", diff)
			}
			if result.Places == 0 || (len(result.Changes) == 0) != (len(test.want) == 0) {
				t.Errorf("%d places and changes %v", result.Places, result.Changes)
			}
			maps.Copy(files, result.Files)
			again, err := Rewrite(files, test.wanted)
			if err != nil || len(again.Changes) > 0 || again.Places != result.Places {
				t.Errorf("a second time it changes %v of %d places, error %v", again.Changes, again.Places, err)
			}
		})
	}
}

func with(w Wanted, change func(*Wanted)) Wanted {
	change(&w)
	return w
}

func bytesOf(files map[string]string) map[string][]byte {
	out := map[string][]byte{}
	for name, content := range files {
		out[name] = []byte(content)
	}
	return out
}

func stringsOf(files map[string][]byte) map[string]string {
	out := map[string]string{}
	for name, content := range files {
		out[name] = string(content)
	}
	return out
}

func TestWhatIsNotCertainIsRefusedWithFileAndLine(t *testing.T) {
	flux := "apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {name: podinfo, namespace: podinfo}\nspec: {path: ./a}"
	for name, test := range map[string]struct {
		wanted Wanted
		files  map[string]string
		is     error
		says   string
	}{
		"a marker behind nothing":                     {prod(), map[string]string{"a/b.yaml": "a: 1\n" + mark + "\nb: 2"}, ErrAmbiguous, "a/b.yaml:2"},
		"a marker below another comment":              {prod(), map[string]string{"a.yaml": "a: 1 # so\n     " + mark + "\nb: 2"}, ErrAmbiguous, "a.yaml:2"},
		"a marker behind a list":                      {prod(), map[string]string{"a.yaml": "x: y\na: [1, 2] " + mark}, ErrAmbiguous, "a.yaml:2"},
		"a marker behind a key":                       {prod(), map[string]string{"a.yaml": "x: y\na: " + mark + "\n  b: 1"}, ErrAmbiguous, "a.yaml:"},
		"a marker behind a text of several lines":     {prod(), map[string]string{"a.yaml": "x: y\na: \"1\n  2\" " + mark}, ErrContent, "a.yaml:2"},
		"a marker behind a block":                     {prod(), map[string]string{"a.yaml": "x: y\na: | " + mark + "\n  1.0\n"}, ErrContent, "a.yaml:2"},
		"a marker behind an alias":                    {prod(), map[string]string{"a.yaml": "x: &v 1\na: *v " + mark}, ErrAmbiguous, "a.yaml:2"},
		"a marker behind an anchor":                   {prod(), map[string]string{"a.yaml": "x: &v 1.0 " + mark + "\na: *v"}, ErrContent, "a.yaml:1"},
		"a marker behind nothing in a value's place":  {prod(), map[string]string{"a.yaml": "x: y\na: " + mark + "\nb: 1"}, ErrAmbiguous, "a.yaml:"},
		"a marker that is spoilt":                     {prod(), map[string]string{"a.yaml": `a: 1 # {"$promotion": "default:podinfo:prod"`}, ErrAmbiguous, "a.yaml:1"},
		"a marker with more behind it":                {prod(), map[string]string{"a.yaml": "a: 1 " + mark + " the version"}, ErrAmbiguous, "a.yaml:1"},
		"a marker in a template":                      {prod(), map[string]string{"a.yaml": "x: y\nv: {{ .v }} " + mark}, ErrAmbiguous, "a.yaml:2"},
		"a marker in what is no YAML":                 {prod(), map[string]string{"a.yaml": "x: y\n{{ if .v }}\nv: 1 " + mark}, ErrContent, "a.yaml:3"},
		"a marked image that is none of the version":  {of("Deployment", images), map[string]string{"a.yaml": "image: other:1 " + mark}, ErrAmbiguous, "a.yaml:1"},
		"a marked image that is pinned":               {of("Deployment", images), map[string]string{"a.yaml": "image: ghcr.io/podinfo:1@sha256:ab " + mark}, ErrContent, "a.yaml:1"},
		"a marked value that could be of each image":  {of("Deployment", map[string]string{"a": "1", "b": "2"}), map[string]string{"a.yaml": "tag: x " + mark}, ErrAmbiguous, "a.yaml:1"},
		"no manifest":                                 {prod(), map[string]string{"a.yaml": "a: b"}, ErrMissing, mark},
		"a manifest without a namespace":              {prod(), map[string]string{"a.yaml": strings.Replace(release, ", namespace: podinfo", "", 1)}, ErrMissing, "a.yaml:1"},
		"a manifest of another group":                 {prod(), map[string]string{"a.yaml": strings.Replace(release, "helm.toolkit", "other", 1)}, ErrMissing, mark},
		"a manifest outside of the path":              {with(prod(), func(w *Wanted) { w.Path = "prod" }), map[string]string{"product/a.yaml": release}, ErrMissing, `"prod"`},
		"two manifests":                               {prod(), map[string]string{"dev/a.yaml": release, "prod/a.yaml": "---\n" + release}, ErrAmbiguous, "dev/a.yaml:1, prod/a.yaml:2"},
		"one namespace of two":                        {with(prod(), func(w *Wanted) { w.Namespaces = []string{"podinfo", "us"} }), map[string]string{"a.yaml": release}, ErrMissing, "us/podinfo"},
		"a manifest that several take":                {prod(), map[string]string{"base/a.yaml": release, "base/kustomization.yaml": "resources: [a.yaml]", "dev/kustomization.yaml": "resources: [../base]", "prod/kustomization.yaml": "resources: [../base]"}, ErrAmbiguous, "dev/kustomization.yaml:1, prod/kustomization.yaml:1"},
		"a HelmRelease that names no version":         {prod(), map[string]string{"a.yaml": strings.Replace(release, "version:", "other:", 1)}, ErrMissing, "a.yaml:1"},
		"a kind that is not looked for":               {with(prod(), func(w *Wanted) { w.Kind = "Widget" }), map[string]string{"a.yaml": release}, ErrMissing, mark},
		"no kind":                                     {with(prod(), func(w *Wanted) { w.Kind, w.Name = "", "" }), map[string]string{"a.yaml": release}, ErrMissing, mark},
		"a Deployment without the image":              {of("Deployment", map[string]string{"other": "1"}), map[string]string{"a.yaml": deployment}, ErrMissing, "a.yaml:1"},
		"a Deployment whose image is pinned":          {of("Deployment", images), map[string]string{"a.yaml": strings.Replace(deployment, "6.1.5", "6.1.5@sha256:ab", 1)}, ErrContent, "a.yaml:10"},
		"a Deployment of a version without images":    {with(of("Deployment", nil), func(w *Wanted) { w.Revision = "1" }), map[string]string{"a.yaml": deployment}, ErrVersion, "image"},
		"two kustomizations":                          {of("Deployment", images), map[string]string{"a/kustomization.yaml": "namespace: podinfo\nimages: [{name: ghcr.io/podinfo, newTag: a}]", "b/Kustomization": "namespace: podinfo\nimages: [{name: ghcr.io/podinfo, newTag: a}]"}, ErrAmbiguous, "a/kustomization.yaml:2, b/Kustomization:2"},
		"a kustomization beside a manifest elsewhere": {of("Deployment", images), map[string]string{"a/kustomization.yaml": "namespace: podinfo\nimages: [{name: ghcr.io/podinfo, newTag: a}]", "b/a.yaml": deployment}, ErrAmbiguous, "a/kustomization.yaml:2"},
		"a kustomization that pins":                   {of("Deployment", images), map[string]string{"a/kustomization.yaml": "namespace: podinfo\nimages: [{name: ghcr.io/podinfo, digest: 'sha256:ab'}]"}, ErrContent, "a/kustomization.yaml:2"},
		"a kustomization that says it twice":          {of("Deployment", images), map[string]string{"a/kustomization.yaml": "namespace: podinfo\nimages: [{name: ghcr.io/podinfo, newTag: a}, {name: x, newName: ghcr.io/podinfo, newTag: a}]"}, ErrAmbiguous, "a/kustomization.yaml:2"},
		"a Kustomization of Flux without images":      {of("Kustomization", images), map[string]string{"a.yaml": flux}, ErrMissing, "a.yaml:1"},
		"no version":                                  {with(prod(), func(w *Wanted) { w.Revision = "" }), nil, ErrVersion, ""},
		"a version that ends the value":               {with(prod(), func(w *Wanted) { w.Revision = "1 # x" }), nil, ErrVersion, ""},
		"a version that is a line":                    {with(prod(), func(w *Wanted) { w.Revision = "1\nb: 2" }), nil, ErrVersion, ""},
		"a digest for a tag":                          {of("Deployment", map[string]string{"a": "sha256:ab"}), nil, ErrVersion, "a"},
		"a file that is too large":                    {prod(), map[string]string{"a.yaml": "v: 1 " + mark + "\n" + strings.Repeat("# more\n", mostParsed/7)}, ErrContent, "a.yaml:1"},
		"a file of too many values":                   {prod(), map[string]string{"a.yaml": "v: 1 " + mark + "\nw: [" + strings.Repeat("a,", mostWeight) + "a]"}, ErrContent, "a.yaml:1"},
		"kustomizations of too many values":           {prod(), map[string]string{"kustomization.yaml": "w: [" + strings.Repeat("a,", mostWeight) + "a]"}, ErrContent, "path"},
	} {
		t.Run(name, func(t *testing.T) {
			result, err := Rewrite(bytesOf(test.files), test.wanted)
			if !errors.Is(err, test.is) || !strings.Contains(err.Error(), test.says) {
				t.Errorf("error %v, want %v that says %q", err, test.is, test.says)
			}
			if len(result.Files) > 0 {
				t.Errorf("it is done half way: %v", result.Changes)
			}
		})
	}
}

// Whatever a file holds, it is refused or no byte but those of the values changes.
func FuzzRewrite(f *testing.F) {
	for _, content := range []string{
		release, deployment, "v: 1 " + mark, "a: '1' " + mark + "\n---\nb: \"2\" " + mark, "- [a, {b: c}] " + mark, "a: &x 1 " + mark, "a: |\n  1 " + mark, "a: !!str 1 " + mark,
		"\ufeffa: 1 " + mark, "a: 1 " + mark + "\u0085b: 1 " + mark, "? a\n: 1 " + mark, "a: 1 # x\n" + mark, "{a: 1, b: 2 " + mark + "\n}", "a:\t1 " + mark, "a: 1 " + mark + "\r\rb: 2 " + mark,
	} {
		f.Add(content, "6.2.0")
	}
	f.Fuzz(func(t *testing.T, content, version string) {
		for _, w := range []Wanted{with(prod(), func(w *Wanted) { w.Revision = version }), of("Deployment", map[string]string{"ghcr.io/podinfo": version})} {
			result, err := Rewrite(map[string][]byte{"a.yaml": []byte(content)}, w)
			if err != nil {
				continue
			}
			changed, any := result.Files["a.yaml"]
			if !any {
				continue
			}
			before, after := strings.Split(content, "\n"), strings.Split(string(changed), "\n")
			if len(before) != len(after) {
				t.Fatalf("%q has become %q", content, changed)
			}
			for i := range before {
				if before[i] != after[i] && !strings.Contains(after[i], version) {
					t.Errorf("line %q has become %q", before[i], after[i])
				}
			}
			again, err := Rewrite(map[string][]byte{"a.yaml": changed}, w)
			if err != nil || len(again.Changes) > 0 || bytes.Equal(changed, []byte(content)) {
				t.Errorf("%q has become %q, which is changed again by %v, error %v", content, changed, again.Changes, err)
			}
		}
	})
}
