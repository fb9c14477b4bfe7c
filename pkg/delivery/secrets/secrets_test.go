package secrets

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
)

func specOf(t *testing.T, text string) *v1alpha1.ApplicationSpec {
	t.Helper()
	out := &v1alpha1.ApplicationSpec{}
	if err := yaml.UnmarshalStrict([]byte(text), out); err != nil {
		t.Fatal(err)
	}
	return out
}

func told(uses []Use) (out []string) {
	for _, use := range uses {
		out = append(out, fmt.Sprintf("%s=%s: %s", use.Path, use.Name, use.For))
	}
	return out
}

func TestEverySecretThatAnApplicationNamesIsFound(t *testing.T) {
	spec := specOf(t, `
source:
  git:
    url: https://git.example/shop.git
    secretRef: {name: git}
    webhook: {secretRef: {name: hook}}
    pipecd:
      analysisProviders: {b: https://b.example, a: https://a.example, open: https://open.example}
      analysisSecrets: {b: second, a: first}
notifications: [{name: ops, secretRef: {name: ops}}, {name: chat, type: Slack, secretRef: {name: chat}}]
plugins: [{name: own}]
pipeline:
  stages:
  - {name: K8S_SYNC}
  - name: ANALYSIS
    with:
      metrics: [{provider: https://a.example, query: up}, {provider: https://p.example, query: up, secretRef: {name: prom}}]
      https:
      - {url: https://w.example, secretRef: {name: web}}
      - {url: https://w.example, method: POST, headers: [{key: Host, value: other.example}], secretRef: {name: web}}
  - {name: ANALYSIS, plugin: own, with: {https: [{url: https://w.example, secretRef: {name: of-a-plugin}}]}}
  - {name: OF_A_PLUGIN, with: {https: [{url: https://w.example, secretRef: {name: of-a-plugin}}]}}
`)
	want := []string{
		`spec.source.git.secretRef.name=git: repository "https://git.example/shop.git"`,
		`spec.source.git.webhook.secretRef.name=hook: signatures of pushes`,
		`spec.source.git.pipecd.analysisSecrets[a]=first: queries to "https://a.example"`,
		`spec.source.git.pipecd.analysisSecrets[b]=second: queries to "https://b.example"`,
		`spec.notifications[0].secretRef.name=ops: notifications of type Webhook`,
		`spec.notifications[1].secretRef.name=chat: notifications of type Slack`,
		`spec.pipeline.stages[1].with.metrics[1].secretRef.name=prom: queries to "https://p.example"`,
		`spec.pipeline.stages[1].with.https[0].secretRef.name=web: requests GET "https://w.example"`,
		`spec.pipeline.stages[1].with.https[1].secretRef.name=web: requests POST "https://w.example" with headers [{"Host" "other.example"}]`,
	}
	if got := told(Of(spec)); !slices.Equal(got, want) {
		t.Errorf("uses are\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if spec.PluginsOnly = true; slices.ContainsFunc(Of(spec), func(use Use) bool { return strings.HasPrefix(use.Path.String(), "spec.pipeline") }) {
		t.Errorf("stages that plugins alone run use %q", told(Of(spec)))
	}
}

func TestAnotherUseIsOfAnotherSecretOrForSomethingElse(t *testing.T) {
	const (
		query   = "pipeline: {stages: [{name: ANALYSIS, with: {metrics: [{provider: 'https://%s', query: up, secretRef: {name: %s}}]}}]}"
		request = "pipeline: {stages: [{name: ANALYSIS, with: {https: [{url: 'https://a', secretRef: {name: s}%s}]}}]}"
	)
	for name, test := range map[string]struct {
		known, uses string
		want        []string
	}{
		"the same use is none":    {known: fmt.Sprintf(query, "a", "s"), uses: fmt.Sprintf(query, "a", "s")},
		"nor is it anywhere else": {known: fmt.Sprintf(query, "a", "s"), uses: strings.Replace(fmt.Sprintf(query, "a", "s"), "[{name: A", "[{name: WAIT}, {name: A", 1)},
		"nor by its provider": {
			known: "source: {git: {url: a, pipecd: {analysisProviders: {prom: 'https://a'}, analysisSecrets: {prom: s}}}}", uses: fmt.Sprintf(query, "a", "s"),
		},
		"another Secret is one":        {known: fmt.Sprintf(query, "a", "s"), uses: fmt.Sprintf(query, "a", "t"), want: []string{"t"}},
		"another server is one":        {known: fmt.Sprintf(query, "a", "s"), uses: fmt.Sprintf(query, "b", "s"), want: []string{"s"}},
		"for queries is not for git":   {known: "source: {git: {url: 'https://a', secretRef: {name: s}}}", uses: fmt.Sprintf(query, "a", "s"), want: []string{"s"}},
		"nor for requests":             {known: fmt.Sprintf(query, "a", "s"), uses: fmt.Sprintf(request, ""), want: []string{"s"}},
		"GET is what a request does":   {known: fmt.Sprintf(request, ""), uses: fmt.Sprintf(request, ", method: GET")},
		"another method is one":        {known: fmt.Sprintf(request, ""), uses: fmt.Sprintf(request, ", method: DELETE"), want: []string{"s"}},
		"another host is one":          {known: fmt.Sprintf(request, ""), uses: fmt.Sprintf(request, ", headers: [{key: Host, value: evil}]"), want: []string{"s"}},
		"what is expected is no use":   {known: fmt.Sprintf(request, ""), uses: fmt.Sprintf(request, ", expectedResponse: fine")},
		"two that are known exchanged": {known: fmt.Sprintf(query, "a", "s") + "\nnotifications: [{secretRef: {name: t}}]", uses: fmt.Sprintf(query, "a", "t") + "\nnotifications: [{secretRef: {name: s}}]", want: []string{"s", "t"}},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, use := range Beyond(Of(specOf(t, test.uses)), Of(specOf(t, test.known))) {
				got = append(got, use.Name)
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("other uses are of %q, want of %q", got, test.want)
			}
		})
	}
}

func TestStagesUseSecretsForWhatTheirApplicationSaysItself(t *testing.T) {
	stages := specOf(t, "pipeline: {stages: [{name: WAIT}, {name: ANALYSIS, with: {metrics: [{provider: 'https://a', query: up, secretRef: {name: s}}]}}]}").Pipeline.Stages
	at := field.NewPath("spec", "pipeline", "stages")
	own := specOf(t, "source: {git: {url: a, pipecd: {analysisProviders: {prom: 'https://a'}, analysisSecrets: {prom: s}}}}")
	if errs := Unstated(own, stages, at); len(errs) > 0 {
		t.Errorf("what the Application says is refused: %v", errs)
	}
	own.Source.Git.Pipecd.AnalysisProviders["prom"] = "https://b"
	const want = `spec.pipeline.stages[1].with.metrics[0].secretRef.name: Forbidden: the Application does not say itself that Secret "s" is for queries to "https://a"`
	if errs := Unstated(own, stages, at); len(errs) != 1 || !strings.HasPrefix(errs[0].Error(), want) {
		t.Errorf("refused is %v, want %s", errs, want)
	}
}
