package config

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/manifold-dev/manifold/pkg/delivery/weave"
)

const (
	pipelinesName = "pipelines.pipelines.weave.works"
	olderName     = "pipelines.pipelines.wego.weave.works"
	clustersName  = "gitopsclusters.gitops.weave.works"
)

func TestTheDefinitionsOfWeaveAreThoseOfThreeKindsAlone(t *testing.T) {
	all := definitions(t, "crds/weave")
	if got := slices.Sorted(maps.Keys(all)); !slices.Equal(got, []string{clustersName, pipelinesName, olderName}) {
		t.Fatalf("defined are %v", got)
	}
	for name, crd := range all {
		schemaOf(t, crd)
		for _, word := range append(crd.Spec.Names.ShortNames, crd.Spec.Names.Categories...) {
			t.Errorf("%s answers to %q, which may be another kind's", name, word)
		}
	}
	for folder, name := range map[string]string{"pipelines": pipelinesName, "pipelines-wego": olderName, "gitopsclusters": clustersName} {
		if got := slices.Sorted(maps.Keys(definitions(t, "crds/weave/"+folder))); !slices.Equal(got, []string{name}) {
			t.Errorf("folder %s defines %v", folder, got)
		}
	}
}

func TestEveryFieldOfAPipelineIsExplained(t *testing.T) {
	for name, crd := range definitions(t, "crds/weave") {
		schema := crd.Spec.Versions[0].Schema.OpenAPIV3Schema
		if schema.Description == "" {
			t.Errorf("%s has no description", name)
		}
		for _, path := range undescribed(".spec", schema.Properties["spec"]) {
			t.Errorf("%s: %s has no description", name, path)
		}
	}
}

// What a controller writes and no definition has, the server drops without a word.
func TestTheDefinitionsHaveTheFieldsOfTheTypes(t *testing.T) {
	all := definitions(t, "crds/weave")
	for name, except := range map[string]string{pipelinesName: "", olderName: ".spec.appRef"} {
		schema := all[name].Spec.Versions[0].Schema.OpenAPIV3Schema
		for _, part := range []struct {
			name string
			of   reflect.Type
		}{{"spec", reflect.TypeFor[weave.Spec]()}, {"status", reflect.TypeFor[weave.Status]()}} {
			defined, typed := map[string]bool{}, map[string]bool{}
			fieldsOf("."+part.name, schema.Properties[part.name], defined)
			typeFields("."+part.name, part.of, typed)
			for path := range defined {
				if !typed[path] {
					t.Errorf("%s: %s is defined, and no type has it", name, path)
				}
			}
			for path := range typed {
				if !defined[path] && (except == "" || !strings.HasPrefix(path, except)) {
					t.Errorf("%s: %s is not defined", name, path)
				}
			}
		}
	}
}

func fieldsOf(path string, schema apiextensionsv1.JSONSchemaProps, into map[string]bool) {
	for name, field := range schema.Properties {
		into[path+"."+name] = true
		fieldsOf(path+"."+name, field, into)
	}
	if schema.Items != nil && schema.Items.Schema != nil {
		fieldsOf(path, *schema.Items.Schema, into)
	}
	if schema.AdditionalProperties != nil && schema.AdditionalProperties.Schema != nil {
		fieldsOf(path, *schema.AdditionalProperties.Schema, into)
	}
}

func typeFields(path string, of reflect.Type, into map[string]bool) {
	switch of.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Map:
		typeFields(path, of.Elem(), into)
	case reflect.Struct:
		if of == reflect.TypeFor[metav1.Time]() {
			return
		}
		for i := range of.NumField() {
			name, _, _ := strings.Cut(of.Field(i).Tag.Get("json"), ",")
			into[path+"."+name] = true
			typeFields(path+"."+name, of.Field(i).Type, into)
		}
	}
}

// TestW1W2APipelineIsValidated is about what a server says by the definitions.
func TestW1W2APipelineIsValidated(t *testing.T) {
	const app = "appRef: {apiVersion: apps/v1, kind: Deployment, name: web}"
	const dev = "environments: [{name: dev, targets: [{namespace: web}]}]"
	spec := func(parts ...string) string { return "spec: {" + strings.Join(parts, ", ") + "}" }
	targets := func(text string) string { return spec(app, "environments: [{name: dev, targets: ["+text+"]}]") }
	promotion := func(text string) string { return spec(app, dev, "promotion: {strategy: {"+text+"}}") }
	pull := func(text string) string { return promotion("pull-request: {" + text + "}") }
	many := func(count int, entry string) string {
		var out []string
		for i := range count {
			out = append(out, fmt.Sprintf(entry, i))
		}
		return strings.Join(out, ", ")
	}
	// To compile the rules of a definition takes seconds, so all cases share them.
	all := definitions(t, "crds/weave")
	says := map[bool]func(string) string{false: admission(t, all[pipelinesName]), true: admission(t, all[olderName])}
	for name, test := range map[string]struct {
		older    bool
		in, want string
	}{
		"W1 as the document's first story has it": {older: true, in: spec(
			"environments: [{name: dev, targets: [{namespace: podinfo, clusterRef: {kind: GitopsCluster, name: dev}}]}, {name: prod, targets: [{namespace: podinfo, clusterRef: {kind: GitopsCluster, name: prod}}]}]")},
		"the newer group names the app":     {in: spec(app, dev)},
		"and it must":                       {in: spec(dev), want: "spec.appRef: Required value"},
		"the older one need not":            {older: true, in: spec(dev)},
		"W3 a target of this cluster":       {in: targets("{namespace: web}")},
		"W4 a GitopsCluster":                {in: targets("{namespace: web, clusterRef: {apiVersion: gitops.weave.works/v1alpha1, kind: GitopsCluster, name: dev, namespace: flux-system}}")},
		"a Cluster":                         {in: targets("{namespace: web, clusterRef: {kind: Cluster, name: dev}}")},
		"W2 no spec":                        {in: "kind: Pipeline", want: "spec: Required value"},
		"W2 no environments":                {in: spec(app), want: "spec.environments: Required value"},
		"W2 an empty list of them":          {in: spec(app, "environments: []"), want: "spec.environments: Invalid value"},
		"W2 an environment without a name":  {in: spec(app, "environments: [{targets: [{namespace: web}]}]"), want: "spec.environments[0].name: Required value"},
		"W2 one without targets":            {in: spec(app, "environments: [{name: dev}]"), want: "spec.environments[0].targets: Required value"},
		"W2 one with an empty list":         {in: spec(app, "environments: [{name: dev, targets: []}]"), want: "spec.environments[0].targets: Invalid value"},
		"W2 a target without a namespace":   {in: targets("{clusterRef: {kind: GitopsCluster, name: dev}}"), want: "spec.environments[0].targets[0].namespace: Required value"},
		"W2 in the older group":             {older: true, in: spec("environments: [{name: dev, targets: [{}]}]"), want: "spec.environments[0].targets[0].namespace: Required value"},
		"W2 a cluster without a kind":       {in: targets("{namespace: web, clusterRef: {name: dev}}"), want: "spec.environments[0].targets[0].clusterRef.kind: Required value"},
		"W2 a cluster without a name":       {in: targets("{namespace: web, clusterRef: {kind: GitopsCluster}}"), want: "spec.environments[0].targets[0].clusterRef.name: Required value"},
		"a cluster of a kind unheard of":    {in: targets("{namespace: web, clusterRef: {kind: Fleet, name: dev}}"), want: `spec.environments[0].targets[0].clusterRef.kind: Unsupported value: "Fleet"`},
		"an app without a name":             {in: spec("appRef: {apiVersion: apps/v1, kind: Deployment}", dev), want: "spec.appRef.name: Required value"},
		"an app without a kind":             {in: spec("appRef: {apiVersion: apps/v1, name: web}", dev), want: "spec.appRef.kind: Required value"},
		"an app without a version":          {in: spec("appRef: {kind: Deployment, name: web}", dev), want: "spec.appRef.apiVersion: Required value"},
		"environments twice":                {in: spec(app, "environments: [{name: dev, targets: [{namespace: a}]}, {name: dev, targets: [{namespace: b}]}]"), want: "spec.environments: Duplicate value"},
		"a name that markers cannot have":   {in: spec(app, "environments: [{name: 'a:b', targets: [{namespace: a}]}]"), want: "spec.environments[0].name: Invalid value"},
		"a namespace that is none":          {in: targets("{namespace: Web}"), want: "spec.environments[0].targets[0].namespace: Invalid value"},
		"as many environments as there may": {in: spec(app, "environments: ["+many(32, "{name: e%d, targets: [{namespace: a}]}")+"]")},
		"one more":                          {in: spec(app, "environments: ["+many(33, "{name: e%d, targets: [{namespace: a}]}")+"]"), want: "spec.environments: Too many"},
		"too many targets":                  {in: targets(many(65, "{namespace: n%d}")), want: "spec.environments[0].targets: Too many"},
		"a notification":                    {in: promotion("notification: {}")},
		"a manual one with a key":           {in: spec(app, dev, "promotion: {manual: true, strategy: {notification: {}, secretRef: {name: key}}}")},
		"of an environment alone":           {in: spec(app, "environments: [{name: dev, targets: [{namespace: a}], promotion: {manual: true, strategy: {direct: {serviceAccountName: promoter}}}}]")},
		"no strategy":                       {in: spec(app, dev, "promotion: {manual: true}"), want: "spec.promotion.strategy: Required value"},
		"an empty one":                      {in: promotion(""), want: "spec.promotion.strategy: Invalid value: exactly one of"},
		"two":                               {in: promotion("notification: {}, direct: {serviceAccountName: a}"), want: "spec.promotion.strategy: Invalid value: exactly one of"},
		"two of an environment":             {in: spec(app, "environments: [{name: dev, targets: [{namespace: a}], promotion: {strategy: {notification: {}, direct: {serviceAccountName: a}}}}]"), want: "spec.environments[0].promotion.strategy: Invalid value: exactly one of"},
		"direct as nobody":                  {in: promotion("direct: {}"), want: "spec.promotion.strategy.direct.serviceAccountName: Required value"},
		"a pull request":                    {in: pull("type: github, url: 'https://github.com/a/b', baseBranch: main, secretRef: {name: token}")},
		"without a type":                    {in: pull("url: 'https://github.com/a/b', baseBranch: main, secretRef: {name: token}"), want: "pull-request.type: Required value"},
		"without a url":                     {in: pull("type: github, baseBranch: main, secretRef: {name: token}"), want: "pull-request.url: Required value"},
		"without a branch":                  {in: pull("type: github, url: 'https://github.com/a/b', secretRef: {name: token}"), want: "pull-request.baseBranch: Required value"},
		"without a secret":                  {in: pull("type: github, url: 'https://github.com/a/b', baseBranch: main"), want: "pull-request.secretRef: Required value"},
		"of a forge unheard of":             {in: pull("type: sourceforge, url: 'https://a.b/c', baseBranch: main, secretRef: {name: a}"), want: "pull-request.type: Unsupported value"},
		"a file on the server":              {in: pull("type: github, url: 'file:///etc', baseBranch: main, secretRef: {name: a}"), want: "pull-request.url: Invalid value"},
	} {
		t.Run(name, func(t *testing.T) {
			said := says[test.older](test.in)
			if (test.want == "") != (said == "") || !strings.Contains(said, test.want) {
				t.Errorf("says %q, want %q", said, test.want)
			}
		})
	}
}

func TestAGitopsClusterIsTakenAsWeaveHasItAndAsAViewAlone(t *testing.T) {
	says := admission(t, definitions(t, "crds/weave")[clustersName])
	for name, test := range map[string]struct{ in, want string }{
		"with a Secret":                     {in: "spec: {secretRef: {name: dev-kubeconfig}}"},
		"with a cluster of Cluster API":     {in: "spec: {capiClusterRef: {name: dev}}"},
		"with neither":                      {in: "spec: {}"},
		"as a view alone":                   {in: "kind: GitopsCluster"},
		"with both":                         {in: "spec: {secretRef: {name: a}, capiClusterRef: {name: b}}", want: "spec.capiClusterRef: Forbidden"},
		"with a Secret that has no name":    {in: "spec: {secretRef: {}}", want: "spec.secretRef.name: Required value"},
		"with a cluster that has no name":   {in: "spec: {capiClusterRef: {}}", want: "spec.capiClusterRef.name: Required value"},
		"with a status as Weave GitOps has": {in: "status: {conditions: [{type: Ready, status: 'True', reason: a, message: b, lastTransitionTime: '2026-01-01T00:00:00Z'}]}"},
	} {
		t.Run(name, func(t *testing.T) {
			if said := says(test.in); (test.want == "") != (said == "") || !strings.Contains(said, test.want) {
				t.Errorf("says %q, want %q", said, test.want)
			}
		})
	}
}
