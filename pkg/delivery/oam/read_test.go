package oam

import (
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/yaml"
)

func parse(t *testing.T, text string) Spec {
	t.Helper()
	var spec Spec
	if err := yaml.Unmarshal([]byte(text), &spec); err != nil {
		t.Fatal(err)
	}
	return spec
}

func read(t *testing.T, text string) Deployment {
	t.Helper()
	out, errs := Read(parse(t, text))
	if len(errs) > 0 {
		t.Fatal(errs.ToAggregate())
	}
	return out
}

// sample reads one of the samples.
func sample(t *testing.T, name string) Deployment {
	t.Helper()
	text, err := os.ReadFile("../../../config/samples/kubevela/" + name + ".yaml")
	if err != nil {
		t.Fatal(err)
	}
	var object Object
	if err := yaml.Unmarshal(text, &object); err != nil {
		t.Fatal(err)
	}
	out, errs := Read(object.Spec)
	if len(errs) > 0 {
		t.Fatal(errs.ToAggregate())
	}
	return out
}

func TestK7TheDocumentIsReadInBothSpellings(t *testing.T) {
	got := sample(t, "document")
	if len(got.Revisions) != 2 || got.Mode != Istio || got.Drain != DefaultDrain {
		t.Fatalf("%+v", got)
	}
	for i, want := range []struct{ name, variant, reference, service string }{
		{"1", "v1", "example-app-v1", "example-app-v1"}, {"2", "v2", "example-app-v2", "example-app-v2"},
	} {
		of := got.Revisions[i]
		if of.Name != want.name || of.Variant != want.variant || of.Reference() != want.reference || of.Service() != want.service {
			t.Errorf("%+v, want %+v", of, want)
		}
	}
	checkDocument(t, got)
}

func checkDocument(t *testing.T, got Deployment) {
	t.Helper()
	one, two := got.Revisions[0], got.Revisions[1]
	if len(one.Entries) != 2 || one.Entries[0].Selector.Name != "production" || one.Entries[0].Home() || !one.Entries[1].Home() || one.TLS.Mode != "mutual" {
		t.Errorf("revision 1 is %+v", one)
	}
	if len(two.Entries) != 1 || !two.Entries[0].Home() || two.Entries[0].Weight != 100 {
		t.Errorf("K16: without placement all of revision 2 is at home: %+v", two.Entries)
	}
	if len(got.Rules) != 2 || got.Rules[1].Name != "mobile" || got.Rules[1].Targets[0].Percent != 90 || !slices.Equal(got.Rules[0].Prefixes, []string{"/web"}) {
		t.Errorf("K2, K3: the rules are %+v", got.Rules)
	}
}

func TestTheExamplesOf2021AreRead(t *testing.T) {
	got := sample(t, "2021")
	if got.Revisions[0].Name != "example-app-v1" || got.Revisions[0].Variant != "v1" || got.Revisions[0].Entries[0].Replicas != 5 || got.Mode != Istio ||
		got.Rules[0].Targets[1].Percent != 50 || got.Rules[0].Targets[1].Port != 80 || !slices.Equal(got.Hosts, []string{"example-app.example.com"}) {
		t.Errorf("%+v", got)
	}
}

func TestK43AWorkloadIsARevision(t *testing.T) {
	got := read(t, `{drainSeconds: 5, appRevisions: [{name: 1, reference: {kind: Deployment, name: web, revision: 3}}, {name: now, reference: {kind: StatefulSet, name: db}}, {name: before, reference: {kind: StatefulSet, name: db, revision: 2}}]}`)
	one, now := got.Revisions[0], got.Revisions[1]
	if !one.Native() || one.Variant != "v1" || one.Service() != "web-v1" || one.Reference() != "Deployment/web, revision 3" || now.Variant != "now" || now.Reference() != "StatefulSet/db" {
		t.Errorf("%+v", got.Revisions)
	}
	if got.Drain != 5*time.Second {
		t.Errorf("drains for %s", got.Drain)
	}
}

// What the definition refuses at admission is refused here as well: whoever has another definition installed is told.
func TestWhatIsWrongIsToldByItsPath(t *testing.T) {
	for name, test := range map[string]struct{ in, want string }{
		"a revision of nothing":          {"{appRevisions: [{name: 1}]}", "spec.appRevisions[0].reference: Required value"},
		"both spellings":                 {"{appRevisions: [{name: 1, reference: web-v1, ref: web-v1}]}", "spec.appRevisions[0].reference: Forbidden"},
		"a name that is none":            {"{appRevisions: [{name: A, reference: web-v1}]}", `spec.appRevisions[0].name: Invalid value: "A"`},
		"no name":                        {"{appRevisions: [{reference: web-v1}]}", "spec.appRevisions[0].name: Invalid value"},
		"a name twice":                   {"{appRevisions: [{name: 1, reference: web-v1}, {name: '1', reference: web-v2}]}", "spec.appRevisions[1].name: Duplicate"},
		"a reference twice":              {"{appRevisions: [{name: 1, reference: web-v1}, {name: 2, ref: web-v1}]}", "spec.appRevisions[1].reference: Duplicate value: \"web-v1, which revision 1 is as well\""},
		"no revision's name":             {"{appRevisions: [{name: 1, reference: web}]}", "spec.appRevisions[0].reference: Invalid value: \"web\": revisions are called APPLICATION-vNUMBER"},
		"revisions of two applications":  {"{appRevisions: [{name: 1, reference: web-v1}, {name: 2, reference: db-v2}]}", "all must be of one application"},
		"a kind that cannot run":         {"{appRevisions: [{name: 1, reference: {kind: Job, name: a}}]}", "spec.appRevisions[0].reference.kind: Unsupported value"},
		"a variant's own name":           {"{appRevisions: [{name: canary, reference: {kind: Deployment, name: web}}]}", "spec.appRevisions[0].name: Invalid value: \"canary\""},
		"a revision that no history has": {"{appRevisions: [{name: a, reference: {kind: StatefulSet, name: db, revision: -2}}]}", "spec.appRevisions[0].reference.revision"},
		"a name too long for a variant":  {"{appRevisions: [{name: abcdefghijklmnopqrstuvw, reference: {kind: Deployment, name: web}}]}", "spec.appRevisions[0].name: Too long"},
		"weight and replicas":            {"{appRevisions: [{name: 1, ref: web-v1, placement: [{distribution: {weight: 1, replicas: 1}}]}]}", "spec.appRevisions[0].placement[0].distribution: Forbidden"},
		"a weight below 0":               {"{appRevisions: [{name: 1, ref: web-v1, placement: [{distribution: {weight: -1}}]}]}", "spec.appRevisions[0].placement[0].distribution.weight"},
		"replicas below 0":               {"{appRevisions: [{name: 1, ref: web-v1, placement: [{distribution: {replicas: -1}}]}]}", "spec.appRevisions[0].placement[0].distribution.replicas"},
		"weights of nothing":             {"{appRevisions: [{name: 1, ref: web-v1, placement: [{distribution: {weight: 0}}]}]}", "spec.appRevisions[0].placement: Invalid value"},
		"some of each":                   {"{appRevisions: [{name: 1, ref: web-v1, placement: [{}, {distribution: {replicas: 1}}]}]}", "spec.appRevisions[0].placement: Invalid value"},
		"a host that is none":            {"{appRevisions: [{name: 1, ref: web-v1, service: {http: {host: a/b}}}]}", "spec.appRevisions[0].service.http.host"},
		"tls without a host":             {"{appRevisions: [{name: 1, ref: web-v1, service: {http: {tls: {}}}}]}", "spec.appRevisions[0].service.http.host: Required"},
		"tls of no mode":                 {"{appRevisions: [{name: 1, ref: web-v1, service: {http: {host: a.b, tls: {mode: x}}}}]}", "spec.appRevisions[0].service.http.tls.mode: Unsupported"},
		"a target that is no revision":   {"{appRevisions: [{name: 1, ref: web-v1}], trafficRules: [{weightedTargets: [{revisionName: 2, percent: 100}]}]}", "spec.trafficRules[0].weightedTargets[0].revisionName: Invalid value: \"2\""},
		"a target twice":                 {"{appRevisions: [{name: 1, ref: web-v1}], trafficRules: [{weightedTargets: [{revisionName: 1, percent: 50}, {revisionName: 1, percent: 50}]}]}", "weightedTargets[1].revisionName: Duplicate"},
		"percents of 90":                 {"{appRevisions: [{name: 1, ref: web-v1}], trafficRules: [{weightedTargets: [{revisionName: 1, percent: 90}]}]}", "spec.trafficRules[0].weightedTargets: Invalid value: 90: the percents must add up to 100"},
		"a percent of 101":               {"{appRevisions: [{name: 1, ref: web-v1}], trafficRules: [{weightedTargets: [{revisionName: 1, percent: 101}]}]}", "weightedTargets[0].percent"},
		"percent and weight":             {"{appRevisions: [{name: 1, ref: web-v1}], trafficRules: [{weightedTargets: [{revisionName: 1, percent: 100, weight: 100}]}]}", "weightedTargets[0].weight: Forbidden"},
		"a rule for nobody":              {"{appRevisions: [{name: 1, ref: web-v1}], trafficRules: [{}]}", "spec.trafficRules[0].weightedTargets: Required"},
		"a rule twice":                   {"{appRevisions: [{name: 1, ref: web-v1}], trafficRules: [{name: a, weightedTargets: [{revisionName: 1}]}, {name: a, weightedTargets: [{revisionName: 1}]}]}", "spec.trafficRules[1].name: Duplicate"},
		"a path that is none":            {"{appRevisions: [{name: 1, ref: web-v1}], trafficRules: [{match: [{uri: {prefix: a}}], weightedTargets: [{revisionName: 1}]}]}", "spec.trafficRules[0].match[0].uri.prefix"},
		"K35 percents of an Ingress":     {"{appRevisions: [{name: 1, ref: web-v1}], trafficMode: Ingress, trafficRules: [{weightedTargets: [{revisionName: 1, percent: 100}]}]}", "spec.trafficRules: Forbidden"},
		"no percents for Istio":          {"{appRevisions: [{name: 1, ref: web-v1}], trafficMode: Istio, trafficRules: [{weightedTargets: [{revisionName: 1}]}]}", "spec.trafficRules: Required"},
		"rules of both sorts":            {"{appRevisions: [{name: 1, ref: web-v1}], trafficRules: [{weightedTargets: [{revisionName: 1}]}, {weightedTargets: [{revisionName: 1, percent: 100}]}]}", "spec.trafficRules: Invalid value"},
		"rules at both places":           {"{appRevisions: [{name: 1, ref: web-v1}], traffic: {http: [{weightedTargets: [{revisionName: 1}]}]}, trafficRules: [{weightedTargets: [{revisionName: 1}]}]}", "spec.traffic.http: Forbidden"},
		"another mode":                   {"{appRevisions: [{name: 1, ref: web-v1}], trafficMode: Nginx}", "spec.trafficMode: Unsupported"},
		"a drain below 0":                {"{appRevisions: [{name: 1, ref: web-v1}], drainSeconds: -1}", "spec.drainSeconds"},
	} {
		t.Run(name, func(t *testing.T) {
			_, errs := Read(parse(t, test.in))
			if err := errs.ToAggregate(); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("it says %v, want %q", err, test.want)
			}
		})
	}
	var spec Spec
	if err := yaml.Unmarshal([]byte("{appRevisions: [{name: 1, reference: [a]}]}"), &spec); err == nil || !strings.Contains(err.Error(), "a reference is the name of an ApplicationRevision") {
		t.Errorf("a list as a reference: %v", err)
	}
}

func TestTheNamesOfWhatIsMadeAreNobodyElses(t *testing.T) {
	const kind, alias = "ApplicationDeployment", "AppDeployment"
	seen := map[string]string{}
	for _, of := range [][2]string{
		{kind, "web"}, {alias, "web"}, {kind, strings.Repeat("a", 60)}, {kind, strings.Repeat("a", 61)}, {alias, strings.Repeat("a", 60)}, {kind, "a234567890123456-7.9-aaaaaaaaaaaaaaaaaa"},
	} {
		id := ID(of[0], of[1])
		if len(id) > 32 || !strings.HasSuffix(id, ".oam") || seen[id] != "" {
			t.Errorf("%s %s is %s, as is %s", of[0], of[1], id, seen[id])
		}
		seen[id] = of[0] + " " + of[1]
	}
	if ID(kind, "web") != "web.oam" {
		t.Errorf("web is %s", ID(kind, "web"))
	}
}

func FuzzReadNeverPanics(f *testing.F) {
	f.Add("{appRevisions: [{name: 1, reference: web-v1, placement: [{distribution: {weight: 1}}]}], trafficRules: [{weightedTargets: [{revisionName: 1, percent: 100}]}]}")
	f.Add("{appRevisions: [{name: 1, reference: {kind: Deployment, name: web}}], traffic: {hosts: [a.b], http: [{match: [{}], weightedTargets: [{revisionName: 1}]}]}}")
	f.Fuzz(func(t *testing.T, text string) {
		var spec Spec
		if yaml.Unmarshal([]byte(text), &spec) != nil {
			return
		}
		out, errs := Read(spec)
		if len(errs) > 0 || len(out.Revisions) == 0 {
			return
		}
		backends := map[string]Backend{}
		for _, revision := range out.Revisions {
			backends[revision.Name] = Backend{Service: revision.Service(), Port: 80, Clusters: []string{"east"}, Ready: map[string]int32{"east": 1}}
		}
		_, _ = Render("web", out, backends)
	})
}
