package oam

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/manifold-dev/manifold/pkg/projection"
)

func as(t *testing.T, object any) string {
	t.Helper()
	text, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// same compares an object's spec with YAML.
func same(t *testing.T, object *unstructured.Unstructured, want string) {
	t.Helper()
	text, err := yaml.YAMLToJSON([]byte(want))
	if err != nil {
		t.Fatal(err)
	}
	if got := as(t, object.Object["spec"]); got != string(text) {
		t.Errorf("%s %s is\n%s\nwant\n%s", object.GetKind(), object.GetName(), got, text)
	}
}

var both = map[string]Backend{
	"1": {Service: "example-app-v1", Port: 80, Clusters: []string{"east", "west"}, Ready: map[string]int32{"east": 3, "west": 2}},
	"2": {Service: "example-app-v2", Port: 80, Clusters: []string{"west"}, Ready: map[string]int32{"west": 5}},
}

// render renders what can be.
func render(t *testing.T, name string, d Deployment, backends map[string]Backend) Shared {
	t.Helper()
	out, err := Render(name, d, backends)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestK31AVirtualServiceHasAWeightForEachRevision(t *testing.T) {
	d := sample(t, "document")
	d.Revisions[0].Host, d.Revisions[1].Host = "", ""
	got := render(t, "example-app", d, both)
	if len(got.Rules) != 1 || got.Rules[0].GetAPIVersion() != "networking.istio.io/v1alpha3" || got.Rules[0].GetAnnotations()["manifold.dev/clusters"] != "east,west" {
		t.Fatalf("%v", got.Rules)
	}
	same(t, got.Rules[0], `
hosts: [example-app]
http:
- name: web
  match: [{uri: {prefix: /web}}]
  route: [{destination: {host: example-app-v1, port: {number: 80}}, weight: 50}, {destination: {host: example-app-v2, port: {number: 80}}, weight: 50}]
- name: mobile
  match: [{uri: {prefix: /mobile}}]
  route: [{destination: {host: example-app-v1, port: {number: 80}}, weight: 90}, {destination: {host: example-app-v2, port: {number: 80}}, weight: 10}]
`)
	// K29: a cluster sends no requests to what it does not have.
	want := map[string]string{
		"east /spec/http/0/route": "example-app-v1:100", "west /spec/http/0/route": "example-app-v1:29 example-app-v2:71",
		"east /spec/http/1/route": "example-app-v1:100", "west /spec/http/1/route": "example-app-v1:78 example-app-v2:22",
	}
	for cluster, fields := range got.Shares["example-app"] {
		for pointer, field := range fields {
			if said := destinations(field.Is); said != want[cluster+" "+pointer] {
				t.Errorf("%s has %s at %s, want %s", cluster, said, pointer, want[cluster+" "+pointer])
			}
			delete(want, cluster+" "+pointer)
		}
	}
	if len(want) > 0 {
		t.Errorf("nothing is said of %v", want)
	}
}

func destinations(route any) string {
	var out []string
	for _, entry := range route.([]any) {
		of := entry.(map[string]any)
		out = append(out, fmt.Sprintf("%s:%d", of["destination"].(map[string]any)["host"], of["weight"]))
	}
	return strings.Join(out, " ")
}

// K5: over all clusters together each revision gets its part, if requests come to clusters by what these run for them.
func TestK5SharesOfClustersAddUpToThoseOfTheRule(t *testing.T) {
	backends := map[string]Backend{
		"1": {Service: "a", Clusters: []string{"c1", "c2", "c3"}, Ready: map[string]int32{"c1": 7, "c2": 1, "c3": 2}}, "2": {Service: "b", Ready: map[string]int32{"c2": 3, "c3": 9}},
	}
	d := read(t, "{appRevisions: [{name: 1, ref: web-v1}, {name: 2, ref: web-v2}], trafficRules: [{weightedTargets: [{revisionName: 1, percent: 30}, {revisionName: 2, percent: 70}]}]}")
	got := render(t, "web", d, backends).Shares["web"]
	total, first := 0.0, 0.0
	for cluster, part := range map[string]float64{"c1": 30 * 0.7, "c2": 30*0.1 + 70*0.25, "c3": 30*0.2 + 70*0.75} {
		for _, entry := range got[cluster]["/spec/http/0/route"].Is.([]any) {
			of := entry.(map[string]any)
			weight := float64(of["weight"].(int64)) / 100 * part
			if total += weight; of["destination"].(map[string]any)["host"] == "a" {
				first += weight
			}
		}
	}
	if share := first / total * 100; share < 29 || share > 31 {
		t.Errorf("revision 1 gets %.1f%%, want 30", share)
	}
}

func TestWhereAllRunAlikeNothingIsHeldOtherwise(t *testing.T) {
	d := read(t, "{appRevisions: [{name: 1, ref: web-v1}, {name: 2, ref: web-v2}], trafficRules: [{weightedTargets: [{revisionName: 1, percent: 10}, {revisionName: 2, percent: 90}]}]}")
	alike := map[string]Backend{
		"1": {Service: "a", Clusters: []string{"east", "west"}, Ready: map[string]int32{"east": 2, "west": 2}}, "2": {Service: "b", Ready: map[string]int32{"east": 5, "west": 5}},
	}
	got := render(t, "web", d, alike)
	if len(got.Shares) > 0 {
		t.Errorf("%v", got.Shares)
	}
	var none projection.Routes
	if none.String() != got.Shares["web"].String() {
		t.Errorf("%q", got.Shares["web"].String())
	}
}

func TestHostsFromOutsideAreTakenAtGatewaysAlone(t *testing.T) {
	got := render(t, "web", sample(t, "2021"), map[string]Backend{"example-app-v1": both["1"], "example-app-v2": both["2"]})
	if len(got.Rules) != 2 {
		t.Fatalf("%v", got.Rules)
	}
	if mesh := got.Rules[0].Object["spec"].(map[string]any); as(t, mesh["hosts"]) != `["example-app"]` || mesh["gateways"] != nil {
		t.Errorf("in the mesh it is about %v", mesh)
	}
	outside := got.Rules[1].Object["spec"].(map[string]any)
	if as(t, outside["hosts"]) != `["example-app.example.com"]` || as(t, outside["gateways"]) != `["example-app-gateway"]` {
		t.Errorf("outside it is about %v", outside)
	}
	stolen := read(t, "{appRevisions: [{name: 1, ref: web-v1}], traffic: {hosts: [payments.bank.svc.cluster.local], gateways: [mesh], http: [{weightedTargets: [{revisionName: 1, weight: 100}]}]}}")
	for _, object := range render(t, "web", stolen, both).Rules {
		spec := object.Object["spec"].(map[string]any)
		if object.GetKind() == "VirtualService" && strings.Contains(as(t, spec["hosts"]), "bank") && as(t, spec["gateways"]) != `["web-hosts"]` {
			t.Errorf("a Service of another namespace is taken over in the mesh: %v", spec)
		}
	}
}

func TestK17AndK18ARevisionIsPublishedUnderItsHost(t *testing.T) {
	d := sample(t, "document")
	d.Rules = nil
	d.Revisions[1].Host = ""
	made := render(t, "example-app", d, both).Hosts["1"]
	if len(made) != 2 {
		t.Fatalf("%v", made)
	}
	same(t, made[0], `
selector: {istio: ingressgateway}
servers: [{hosts: [./example-app-v1.example.com], port: {name: https, number: 443, protocol: HTTPS}, tls: {credentialName: example-app-v1-tls, mode: MUTUAL}}]
`)
	if got := made[0].GetAnnotations()["manifold.dev/clusters"] + " " + made[1].GetAnnotations()["manifold.dev/clusters"]; got != "east,west east,west" {
		t.Errorf("they go to %s", got)
	}
	same(t, made[1], `
gateways: [example-app-v1]
hosts: [example-app-v1.example.com]
http: [{route: [{destination: {host: example-app-v1, port: {number: 80}}, weight: 100}]}]
`)
	d.Mode = Ingress
	if got := render(t, "example-app", d, both); len(got.Hosts) > 0 || len(got.Undone) != 1 || !strings.HasPrefix(got.Undone[0], "spec.appRevisions[0].service.http.tls.mode: ") {
		t.Errorf("a host that is to be mutual is published without that, or nothing is said: %+v", got)
	}
	d.Revisions[0].TLS = &TLS{SecretName: "mine"}
	got := render(t, "example-app", d, both)
	same(t, got.Hosts["1"][0], `
rules: [{host: example-app-v1.example.com, http: {paths: [{backend: {service: {name: example-app-v1, port: {number: 80}}}, path: /, pathType: Prefix}]}}]
tls: [{hosts: [example-app-v1.example.com], secretName: mine}]
`)
	if got := render(t, "example-app", d, nil); len(got.Hosts) > 0 {
		t.Errorf("a revision without a Service is published: %v", got.Hosts)
	}
}

func TestK34AnIngressHasAPathForEachRevision(t *testing.T) {
	d := read(t, "{appRevisions: [{name: 1, ref: example-app-v1}, {name: 2, ref: example-app-v2}], trafficRules: [{weightedTargets: [{revisionName: 1}, {revisionName: 2}]}]}")
	got := render(t, "example-app", d, both)
	same(t, got.Rules[0], `
rules:
- http:
    paths:
    - {backend: {service: {name: example-app-v1, port: {number: 80}}}, path: /v1, pathType: Prefix}
    - {backend: {service: {name: example-app-v2, port: {number: 80}}}, path: /v2, pathType: Prefix}
`)
	d.Rules[0].Prefixes, d.Hosts, d.Gateways = []string{"/web/"}, []string{"a.b"}, []string{"g"}
	got = render(t, "example-app", d, both)
	if spec := as(t, got.Rules[0].Object["spec"]); !strings.Contains(spec, `"host":"a.b"`) || !strings.Contains(spec, `"path":"/web/v1"`) || len(got.Undone) != 1 {
		t.Errorf("%s, undone %v", spec, got.Undone)
	}
}
