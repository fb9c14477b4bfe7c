package config

import (
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// kubevela returns the definitions as kubectl apply -k makes them, by their names.
func kubevela(t *testing.T) map[string]*apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	return definitions(t, "crds/kubevela")
}

func TestTheDefinitionsOfKubeVelaAreThoseOfTwoKindsAlone(t *testing.T) {
	all := kubevela(t)
	if got := slices.Sorted(maps.Keys(all)); !slices.Equal(got, []string{"appdeployments.core.oam.dev", "applicationdeployments.core.oam.dev"}) {
		t.Fatalf("defined are %v", got)
	}
	for name, crd := range all {
		schemaOf(t, crd)
		for _, word := range append(crd.Spec.Names.ShortNames, crd.Spec.Names.Categories...) {
			t.Errorf("%s answers to %q, which may be another kind's", name, word)
		}
	}
}

func TestEveryFieldOfAnApplicationDeploymentIsExplained(t *testing.T) {
	crd := kubevela(t)["applicationdeployments.core.oam.dev"]
	schema := crd.Spec.Versions[0].Schema.OpenAPIV3Schema
	for _, path := range undescribed(".spec", schema.Properties["spec"]) {
		t.Errorf("%s has no description", path)
	}
}

// TestK1AnApplicationDeploymentIsValidated is about what a server says at admission.
func TestK1AnApplicationDeploymentIsValidated(t *testing.T) {
	crd := kubevela(t)["applicationdeployments.core.oam.dev"]
	says := admission(t, crd)
	document, err := os.ReadFile("samples/kubevela/document.yaml")
	if err != nil {
		t.Fatal(err)
	}
	examples, err := os.ReadFile("samples/kubevela/2021.yaml")
	if err != nil {
		t.Fatal(err)
	}
	spec := func(text string) string { return "spec: " + text }
	two := "appRevisions: [{name: 1, reference: web-v1}, {name: 2, ref: web-v2}]"
	for name, test := range map[string]struct{ in, want string }{
		"the document's own":                         {in: string(document)},
		"as in the examples of 2021":                 {in: string(examples)},
		"K6 names that are numbers":                  {in: spec("{" + two + "}")},
		"K6 names that are texts":                    {in: spec("{appRevisions: [{name: one, reference: web-v1}]}")},
		"K43 a workload":                             {in: spec("{appRevisions: [{name: one, reference: {kind: Deployment, name: web, revision: 3}}]}")},
		"nothing":                                    {in: spec("{}"), want: "spec.appRevisions: Required"},
		"no revision":                                {in: spec("{appRevisions: []}"), want: "spec.appRevisions"},
		"K7 a revision of nothing":                   {in: spec("{appRevisions: [{name: 1}]}"), want: "spec.appRevisions[0]"},
		"K7 both spellings":                          {in: spec("{appRevisions: [{name: 1, reference: web-v1, ref: web-v1}]}"), want: "spec.appRevisions[0]"},
		"a revision without a name":                  {in: spec("{appRevisions: [{reference: web-v1}]}"), want: "spec.appRevisions[0].name"},
		"two of one name":                            {in: spec("{appRevisions: [{name: 1, reference: web-v1}, {name: '1', reference: web-v2}]}"), want: "spec.appRevisions: Duplicate"},
		"K4 a target that is no revision":            {in: spec("{" + two + ", trafficRules: [{weightedTargets: [{revisionName: 3, percent: 100}]}]}"), want: "spec.trafficRules: Invalid"},
		"K4 and as a text":                           {in: spec("{" + two + ", trafficRules: [{weightedTargets: [{revisionName: '2', percent: 100}]}]}")},
		"K5 percents that are too few":               {in: spec("{" + two + ", trafficRules: [{weightedTargets: [{revisionName: 1, percent: 50}, {revisionName: 2, percent: 49}]}]}"), want: "spec.trafficRules[0].weightedTargets: Invalid value: the percents must add up to 100"},
		"K5 a percent below 0":                       {in: spec("{" + two + ", trafficRules: [{weightedTargets: [{revisionName: 1, percent: 101}, {revisionName: 2, percent: -1}]}]}"), want: "spec.trafficRules[0].weightedTargets[1].percent"},
		"K5 some targets without a percent":          {in: spec("{" + two + ", trafficRules: [{weightedTargets: [{revisionName: 1, percent: 100}, {revisionName: 2}]}]}"), want: "spec.trafficRules[0].weightedTargets"},
		"a revision twice in a rule":                 {in: spec("{" + two + ", trafficRules: [{weightedTargets: [{revisionName: 1, percent: 50}, {revisionName: 1, percent: 50}]}]}"), want: "spec.trafficRules[0].weightedTargets: Duplicate"},
		"two rules of one name":                      {in: spec("{" + two + ", trafficRules: [{name: a, weightedTargets: [{revisionName: 1, percent: 100}]}, {name: a, weightedTargets: [{revisionName: 2, percent: 100}]}]}"), want: "spec.trafficRules: Duplicate"},
		"a rule for nobody":                          {in: spec("{" + two + ", trafficRules: [{weightedTargets: []}]}"), want: "spec.trafficRules[0].weightedTargets"},
		"K3 a path that is none":                     {in: spec("{" + two + ", trafficRules: [{match: [{uri: {prefix: web}}], weightedTargets: [{revisionName: 1, percent: 100}]}]}"), want: "spec.trafficRules[0].match[0].uri.prefix"},
		"K35 a percent in Ingress mode":              {in: spec("{" + two + ", trafficMode: Ingress, trafficRules: [{weightedTargets: [{revisionName: 1, percent: 100}]}]}"), want: "spec.trafficRules: Forbidden: an Ingress gives each revision a path"},
		"K35 and as the examples of 2021 call it":    {in: spec("{" + two + ", trafficMode: Ingress, traffic: {http: [{weightedTargets: [{revisionName: 1, weight: 100}]}]}}"), want: "spec.traffic.http: Forbidden"},
		"K34 no percent in Ingress mode":             {in: spec("{" + two + ", trafficMode: Ingress, trafficRules: [{weightedTargets: [{revisionName: 1}, {revisionName: 2}]}]}")},
		"K31 no percent in Istio mode":               {in: spec("{" + two + ", trafficMode: Istio, trafficRules: [{weightedTargets: [{revisionName: 1}]}]}"), want: "spec.trafficRules: Required"},
		"a mode that there is not":                   {in: spec("{" + two + ", trafficMode: Nginx}"), want: "spec.trafficMode: Unsupported"},
		"rules of both sorts":                        {in: spec("{" + two + ", trafficRules: [{weightedTargets: [{revisionName: 1}]}, {weightedTargets: [{revisionName: 2, percent: 100}]}]}"), want: "spec.trafficRules: Invalid"},
		"rules at both places":                       {in: spec("{" + two + ", traffic: {http: [{weightedTargets: [{revisionName: 1}]}]}, trafficRules: [{weightedTargets: [{revisionName: 1}]}]}"), want: "spec.traffic.http: Forbidden"},
		"percent and weight":                         {in: spec("{" + two + ", trafficRules: [{weightedTargets: [{revisionName: 1, percent: 100, weight: 100}]}]}"), want: "spec.trafficRules[0].weightedTargets[0].weight: Forbidden"},
		"K14 a weight below 0":                       {in: spec("{appRevisions: [{name: 1, reference: web-v1, placement: [{distribution: {weight: -1}}]}]}"), want: "spec.appRevisions[0].placement[0].distribution.weight"},
		"K14 no weight at all":                       {in: spec("{appRevisions: [{name: 1, reference: web-v1, placement: [{distribution: {weight: 0}}]}]}"), want: "spec.appRevisions[0].placement"},
		"K14 weight and replicas":                    {in: spec("{appRevisions: [{name: 1, reference: web-v1, placement: [{distribution: {weight: 1, replicas: 1}}]}]}"), want: "spec.appRevisions[0].placement[0].distribution"},
		"K14 some with replicas, some with a weight": {in: spec("{appRevisions: [{name: 1, reference: web-v1, placement: [{distribution: {weight: 1}}, {distribution: {replicas: 1}}]}]}"), want: "spec.appRevisions[0].placement"},
		"K17 a host that is none":                    {in: spec("{appRevisions: [{name: 1, reference: web-v1, service: {http: {host: 'a b'}}}]}"), want: "spec.appRevisions[0].service.http.host"},
		"K18 tls without a host":                     {in: spec("{appRevisions: [{name: 1, reference: web-v1, service: {http: {tls: {mode: mutual}}}}]}"), want: "spec.appRevisions[0].service.http.host: Required"},
		"K18 a mode of tls that there is not":        {in: spec("{appRevisions: [{name: 1, reference: web-v1, service: {http: {host: a.b, tls: {mode: none}}}}]}"), want: "spec.appRevisions[0].service.http.tls.mode"},
	} {
		t.Run(name, func(t *testing.T) {
			said := says(test.in)
			if (test.want == "") != (said == "") || !strings.Contains(said, test.want) {
				t.Errorf("says %q, want %q", said, test.want)
			}
		})
	}
}
