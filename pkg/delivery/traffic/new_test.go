package traffic

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/delivery"
	"github.com/manifold-dev/manifold/pkg/projection"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// golden compares an object with a file.
func golden(t *testing.T, name string, object *unstructured.Unstructured) {
	t.Helper()
	got, err := yaml.Marshal(object.Object)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join("testdata", name+".yaml")
	if *update {
		if err := os.WriteFile(file, got, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s (-want +got)\n%s", file, diff)
	}
}

var (
	anywhere = Entry{Namespace: "shop", Name: "example-app", Hosts: []string{"app.example.com"}}
	// revisions divide the requests for one path, and others for another.
	revisions = []Rule{
		{Name: "web", Prefixes: []string{"/web", "/site"}, To: []Destination{{Service: "example-app-v1", Port: 80, Weight: 90}, {Service: "example-app-v2", Port: 80, Weight: 10}}},
		{To: []Destination{{Service: "example-app-v1", Port: 8080, Weight: 100}}},
	}
)

func TestNewRoutes(t *testing.T) {
	for name, test := range map[string]struct {
		make  func(Entry, []Rule) (*unstructured.Unstructured, error)
		in    Entry
		rules []Rule
	}{
		"new-httproute": {NewHTTPRoute, Entry{Namespace: "shop", Name: "example-app", Hosts: anywhere.Hosts,
			Gateways: []v1alpha1.GatewayReference{{Name: "edge", Namespace: "infra", SectionName: "https"}, {Name: "inner"}}}, revisions},
		"new-virtualservice": {NewVirtualService, Entry{Namespace: "shop", Name: "example-app", Hosts: anywhere.Hosts,
			Gateways: []v1alpha1.GatewayReference{{Name: "edge", Namespace: "istio-system"}, {Name: "mesh"}}}, revisions},
		"new-virtualservice-subsets": {NewVirtualService, anywhere, []Rule{{To: []Destination{{Service: "web", Subset: "primary", Weight: 80}, {Service: "web", Subset: "canary", Weight: 20}}}}},
		"new-ingress": {NewIngress, Entry{Namespace: "shop", Name: "example-app", Hosts: []string{"a.example.com", "b.example.com"}, Class: "nginx"}, []Rule{
			{Prefixes: []string{"/v1"}, To: []Destination{{Service: "example-app-v1", Port: 80, Weight: 100}}},
			{Prefixes: []string{"/v2"}, To: []Destination{{Service: "example-app-v2", Port: 80, Weight: 100}}},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := test.make(test.in, test.rules)
			if err != nil {
				t.Fatal(err)
			}
			golden(t, name, got)
			if got.GetKind() == "Ingress" { // whose type is at hand
				if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(got.Object, &networkingv1.Ingress{}, true); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

func TestNewRoutesAreRefusedByField(t *testing.T) {
	one := []Destination{{Service: "web", Port: 80, Weight: 100}}
	for name, test := range map[string]struct {
		make  func(Entry, []Rule) (*unstructured.Unstructured, error)
		in    Entry
		rules []Rule
		want  string
	}{
		"no rule":                       {NewHTTPRoute, anywhere, nil, "rules: Required value"},
		"a prefix that is none":         {NewHTTPRoute, anywhere, []Rule{{Prefixes: []string{"/", "web"}, To: one}}, `rules[0].prefixes[1]: Invalid value: "web": must begin with /`},
		"nowhere to go":                 {NewHTTPRoute, anywhere, []Rule{{To: one}, {}}, "rules[1].to: Required value"},
		"no Service":                    {NewVirtualService, anywhere, []Rule{{To: []Destination{{Weight: 100}}}}, "rules[0].to[0].service: Required value"},
		"no port":                       {NewHTTPRoute, anywhere, []Rule{{To: []Destination{{Service: "web", Weight: 100}}}}, "rules[0].to[0].port: Invalid value: 0"},
		"a weight that is none":         {NewVirtualService, anywhere, []Rule{{To: []Destination{{Service: "a", Weight: 101}, {Service: "b", Weight: -1}}}}, "rules[0].to[0].weight: Invalid value: 101"},
		"weights that do not add up":    {NewVirtualService, anywhere, []Rule{{To: []Destination{{Service: "a", Weight: 50}, {Service: "b", Weight: 49}}}}, "rules[0].to: Invalid value: 99: weights must add up to 100"},
		"a Service that is there twice": {NewVirtualService, anywhere, []Rule{{To: []Destination{{Service: "a", Weight: 50}, {Service: "a", Weight: 50}}}}, "rules[0].to[1].service: Duplicate value"},
		"no host for Istio":             {NewVirtualService, Entry{Name: "web"}, []Rule{{To: one}}, "hosts: Required value"},
		"weights of an Ingress":         {NewIngress, anywhere, revisions, "rules[0].to: Too many: 2: must have at most 1 item"},
		"a path that is there twice":    {NewIngress, anywhere, []Rule{{To: one}, {Prefixes: []string{"/"}, To: one}}, `rules[1].prefixes: Duplicate value: "/"`},
	} {
		if got, err := test.make(test.in, test.rules); err == nil || !strings.HasPrefix(err.Error(), test.want) {
			t.Errorf("%s: %v, %v, want %s", name, got, err, test.want)
		}
	}
}

// A route that is made for a host leads to the Service in front, and clusters hold it with weights.
func TestARouteForAHost(t *testing.T) {
	for name, test := range map[string]struct {
		of   v1alpha1.Traffic
		want string
	}{
		"an HTTPRoute":     {v1alpha1.Traffic{Method: v1alpha1.TrafficHTTPRoute, Host: "web.example.com", Gateways: []v1alpha1.GatewayReference{{Name: "edge"}}}, "host-httproute"},
		"a VirtualService": {v1alpha1.Traffic{Method: v1alpha1.TrafficVirtualService, Host: "web.example.com"}, "host-virtualservice"},
		"an Ingress":       {v1alpha1.Traffic{Method: v1alpha1.TrafficIngress, Host: "web.example.com", ClassName: "nginx"}, "host-ingress"},
	} {
		t.Run(name, func(t *testing.T) {
			set := delivery.Set{"primary": {Clusters: map[string]delivery.Part{"east": {}, "west": {}}}}
			all, err := Maker{Namespace: "shop", Name: "web", Traffic: &test.of}.Make(set, "web", []int32{80})
			if err != nil {
				t.Fatal(err)
			}
			if len(all) != 1 || all[0].Variant != v1alpha1.AllVariants || !cmp.Equal(all[0].Clusters, []string{"east", "west"}) {
				t.Fatalf("%+v", all)
			}
			got := all[0].Object
			golden(t, test.want, got)
			shares := map[string]int32{"primary": 80, "canary": 20}
			if test.of.Method == v1alpha1.TrafficIngress {
				shares = map[string]int32{"primary": 0, "canary": 100}
			}
			fields, err := Weights(got, web(shares), nil)
			if err != nil || len(fields) != 1 {
				t.Fatalf("%v, %v", fields, err)
			}
			golden(t, test.want+"-canary", with(got, fields))
			if fields, err := Weights(got, web(map[string]int32{"primary": 100}), nil); err != nil || len(fields) > 0 {
				t.Errorf("where the primary is alone, clusters hold it otherwise: %v, %v", fields, err)
			}
		})
	}
	for name, test := range map[string]struct {
		of    v1alpha1.Traffic
		ports []int32
		want  string
	}{
		"no port":            {v1alpha1.Traffic{Method: v1alpha1.TrafficIngress, Host: "a"}, nil, "traffic.port: Required value: Service web has the ports none"},
		"several ports":      {v1alpha1.Traffic{Method: v1alpha1.TrafficIngress, Host: "a"}, []int32{80, 443}, "traffic.port: Required value: Service web has the ports 80, 443: say which one"},
		"a port of nobody's": {v1alpha1.Traffic{Method: v1alpha1.TrafficIngress, Host: "a", Port: 8080}, []int32{80}, "traffic.port: Invalid value: 8080: Service web has 80"},
		"another method":     {v1alpha1.Traffic{Method: v1alpha1.TrafficService, Host: "a"}, []int32{80}, "traffic.method: Unsupported value"},
	} {
		if got, err := (Maker{Name: "web", Traffic: &test.of}).Make(nil, "web", test.ports); err == nil || !strings.HasPrefix(err.Error(), test.want) {
			t.Errorf("%s: %v, %v, want %s", name, got, err, test.want)
		}
	}
	if got, err := (Maker{Name: "web", Traffic: &v1alpha1.Traffic{Method: v1alpha1.TrafficHTTPRoute, Name: "front"}}).Make(nil, "web", nil); err != nil || len(got) > 0 {
		t.Errorf("where a route is named, there is made %v, %v", got, err)
	}
}

func ingress(paths string) string {
	return "{apiVersion: networking.k8s.io/v1, kind: Ingress, metadata: {name: front, namespace: shop, annotations: {a: b}}, " +
		"spec: {ingressClassName: nginx, tls: [{secretName: s}], rules: [{host: a.example}, {host: b.example, http: {paths: " + paths + "}}]}}"
}

// leads is a path of an Ingress.
func leads(path, service string) string {
	return "{path: " + path + ", pathType: Prefix, backend: {service: {name: " + service + ", port: {name: http}}}}"
}

func TestPathsOfAnIngress(t *testing.T) {
	alone, switched, both := map[string]int32{"primary": 100}, map[string]int32{"primary": 0, "canary": 100}, map[string]int32{"primary": 100, "canary": 0, "baseline": 0}
	for name, test := range map[string]struct {
		in, want string
		shares   map[string]int32
		err      string
	}{
		"the primary alone": {in: leads("/", "web"), shares: alone, want: leads("/", "web")},
		"a copy has a path of its own": {in: leads("/", "web"), shares: map[string]int32{"primary": 100, "canary": 0},
			want: leads("/", "web") + ", " + leads("/canary", "web-canary")},
		"each copy below each path": {in: leads("/shop/", "web") + ", " + leads("/", "old") + ", " + leads("/api", "web"), shares: both,
			want: leads("/shop/", "web") + ", " + leads("/shop/baseline", "web-baseline") + ", " + leads("/shop/canary", "web-canary") + ", " + leads("/", "old") + ", " +
				leads("/api", "web") + ", " + leads("/api/baseline", "web-baseline") + ", " + leads("/api/canary", "web-canary")},
		"one that gets everything": {in: leads("/", "web"), shares: switched, want: leads("/", "web-canary") + ", " + leads("/canary", "web-canary")},
		"and nothing any more": {in: leads("/", "web-canary") + ", " + leads("/canary", "web-canary"), shares: map[string]int32{"primary": 100, "canary": 0},
			want: leads("/", "web") + ", " + leads("/canary", "web-canary")},
		"one that is gone":                     {in: leads("/", "web") + ", " + leads("/canary", "web-canary"), shares: alone, want: leads("/", "web")},
		"percentages are refused":              {in: leads("/", "web"), shares: map[string]int32{"primary": 90, "canary": 10}, err: `traffic: Invalid value: "primary 90%, canary 10%": an Ingress has no weights`},
		"an Ingress without the application":   {in: leads("/", "old"), shares: alone, err: `spec.rules: Invalid value: "front": no path leads to Service web`},
		"a path that is somebody else's":       {in: leads("/", "web") + ", " + leads("/canary", "old"), shares: switched, err: "spec.rules[1].http.paths[0].path: Duplicate value"},
		"a pattern has nothing below":          {in: leads("/web(/|$)(.*)", "web"), shares: switched, err: "spec.rules[1].http.paths[0].path: Invalid value"},
		"and stays what it is with nobody":     {in: leads("/web(/|$)(.*)", "web"), shares: alone, want: leads("/web(/|$)(.*)", "web")},
		"paths that are none":                  {in: "web", shares: alone, err: "spec.rules[1].http.paths[0]: Invalid value"},
		"what leads to no Service is not ours": {in: "{path: /static, pathType: Prefix, backend: {resource: {kind: Bucket, name: web}}}, " + leads("/", "web"), shares: alone, want: "{path: /static, pathType: Prefix, backend: {resource: {kind: Bucket, name: web}}}, " + leads("/", "web")},
	} {
		t.Run(name, func(t *testing.T) {
			in := read(t, ingress("["+test.in+"]"))
			got, err := Ingress(in, web(test.shares))
			if test.err != "" {
				if err == nil || !strings.HasPrefix(err.Error(), test.err) {
					t.Errorf("error %v, want %s", err, test.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(read(t, ingress("["+test.want+"]")).Object, got.Object); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
			if diff := cmp.Diff(read(t, ingress("["+test.in+"]")).Object, in.Object); diff != "" {
				t.Errorf("the renderer has changed what it was given\n%s", diff)
			}
			if again, err := Ingress(got, web(test.shares)); err != nil || !cmp.Equal(got.Object, again.Object) {
				t.Errorf("rendered again, it is %v, %v", again, err)
			}
			fields, err := Weights(in, web(test.shares), nil)
			if differs := !cmp.Equal(in.Object, got.Object); err != nil || (len(fields) == 1) != differs || !cmp.Equal(with(in, fields).Object, got.Object) {
				t.Errorf("clusters hold %v, %v", fields, err)
			}
		})
	}
}

// Two applications may share an Ingress, and even a host of it: neither takes away what the other one has set.
func TestApplicationsThatShareAnIngress(t *testing.T) {
	in := read(t, ingress("["+leads("/", "web")+", "+leads("/api", "api")+"]"))
	api := func(shares map[string]int32) Backends {
		return Backends{Shares: shares, Service: "api", Services: map[string]string{"primary": "api", "canary": "api-canary"}}
	}
	alone, beside, switched := map[string]int32{"primary": 100}, map[string]int32{"primary": 100, "canary": 0}, map[string]int32{"primary": 0, "canary": 100}
	fields := projection.Fields(nil)
	for i, step := range []struct {
		b    Backends
		want string
	}{
		{web(switched), "/:web-canary /canary:web-canary /api:api"},
		{api(beside), "/:web-canary /canary:web-canary /api:api /api/canary:api-canary"},
		{web(alone), "/:web /api:api /api/canary:api-canary"},
		{api(alone), "/:web /api:api"},
	} {
		next, err := Weights(in, step.b, fields)
		if err != nil {
			t.Fatal(err)
		}
		fields = next
		var got []string
		if err := eachPaths(with(in, fields), func(_ map[string]any, paths []map[string]any, _ *field.Path) error {
			for _, entry := range paths {
				got = append(got, pathOf(entry, "")+":"+leadsTo(entry))
			}
			return nil
		}); err != nil || strings.Join(got, " ") != step.want {
			t.Errorf("step %d: %v, %v, want %s", i, got, err, step.want)
		}
	}
	if len(fields) > 0 {
		t.Errorf("in the end clusters hold %v", fields)
	}
}

func TestNginxGivesACanaryItsShare(t *testing.T) {
	in := read(t, ingress("["+leads("/", "web")+", "+leads("/old", "old")+", "+leads("/api", "web")+"]"))
	got, err := NginxCanary(in, web(nil), "canary")
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "nginx-canary", got)
	if _, err := NginxCanary(read(t, ingress("["+leads("/", "old")+"]")), web(nil), "canary"); err == nil || !strings.Contains(err.Error(), "no path leads to Service web") {
		t.Errorf("an Ingress without the application: %v", err)
	}
	if _, err := NginxCanary(in, web(nil), "green"); err == nil || !strings.Contains(err.Error(), "services[green]: Required value") {
		t.Errorf("a variant without a Service: %v", err)
	}
	const weight = "/metadata/annotations/nginx.ingress.kubernetes.io~1canary-weight"
	for name, test := range map[string]struct {
		shares map[string]int32
		want   projection.Fields
		err    string
	}{
		"nothing":             {shares: map[string]int32{"primary": 100, "canary": 0}, want: projection.Fields{}},
		"a part":              {shares: map[string]int32{"primary": 90, "canary": 10}, want: projection.Fields{weight: {Of: projection.RouteHash("0"), Is: "10"}}},
		"everything":          {shares: map[string]int32{"primary": 0, "canary": 100}, want: projection.Fields{weight: {Of: projection.RouteHash("0"), Is: "100"}}},
		"a part of two":       {shares: map[string]int32{"primary": 80, "canary": 10, "baseline": 10}, err: "traffic[baseline]: Invalid value: 10: must be 0: nginx shares requests between the primary and the canary"},
		"a part that is none": {shares: map[string]int32{"canary": 101}, err: "traffic[canary]: Invalid value: 101"},
	} {
		got, err := NginxWeight(test.shares, "canary")
		if test.err != "" && (err == nil || err.Error() != test.err && !strings.HasPrefix(err.Error(), test.err)) || test.err == "" && (err != nil || !cmp.Equal(got, test.want)) {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
}

// Ingresses are users' objects, and several applications may share one: neither takes away what is another's, whatever is in it.
func FuzzPaths(f *testing.F) {
	f.Add("/", "/canary", uint8(0), "web", "web-canary")
	f.Add("/shop", "/api", uint8(1), "web", "old")
	f.Add("/a", "/a/canary", uint8(1), "web-canary", "web-canary")
	f.Fuzz(func(t *testing.T, first, second string, chosen uint8, one, other string) {
		entry := func(path, service string) any {
			return map[string]any{"path": path, "pathType": "Prefix", "backend": map[string]any{"service": map[string]any{"name": service}}}
		}
		in := &unstructured.Unstructured{Object: map[string]any{"kind": "Ingress", "spec": map[string]any{"rules": []any{
			map[string]any{"http": map[string]any{"paths": []any{entry(first, one), entry(second, other), entry("/else", "else")}}},
		}}}}
		shares := map[string]int32{"primary": 100, "canary": 0}
		if chosen%2 == 1 {
			shares = map[string]int32{"primary": 0, "canary": 100}
		}
		got, err := Ingress(in, web(shares))
		if err != nil {
			return
		}
		if again, err := Ingress(got, web(shares)); err != nil || !cmp.Equal(again.Object, got.Object) {
			t.Fatalf("rendered again: %v, %v, first %v", again, err, got)
		}
		count := 0
		_ = eachPaths(got, func(_ map[string]any, paths []map[string]any, _ *field.Path) error {
			for _, path := range paths {
				if leadsTo(path) == "else" && path["path"] == "/else" {
					count++
				}
			}
			return nil
		})
		if count != 1 {
			t.Fatalf("the path of somebody else is there %d times: %v", count, got)
		}
	})
}
