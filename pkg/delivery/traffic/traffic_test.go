package traffic

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/manifold-dev/manifold/pkg/delivery"
	"github.com/manifold-dev/manifold/pkg/projection"
)

func read(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	data, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	object := &unstructured.Unstructured{}
	if err := json.Unmarshal(data, &object.Object); err != nil {
		t.Fatal(err)
	}
	whole(object.Object)
	return object
}

// whole makes the numbers of an object what they are when a client has read it.
func whole(value any) any {
	switch v := value.(type) {
	case map[string]any:
		for key := range v {
			v[key] = whole(v[key])
		}
	case []any:
		for i := range v {
			v[i] = whole(v[i])
		}
	case float64:
		if v == float64(int64(v)) {
			return int64(v)
		}
	}
	return value
}

func web(shares map[string]int32) Backends {
	return Backends{Shares: shares, Service: "web", Services: map[string]string{"primary": "web", "canary": "web-canary", "baseline": "web-baseline"}}
}

func route(rules string) string {
	return "{apiVersion: gateway.networking.k8s.io/v1, kind: HTTPRoute, metadata: {name: web, namespace: shop}, spec: {hostnames: [a.example], rules: " + rules + "}}"
}

func service(http string) string {
	return "{apiVersion: networking.istio.io/v1, kind: VirtualService, metadata: {name: web, namespace: shop}, spec: {hosts: [a.example], http: " + http + "}}"
}

func TestWeights(t *testing.T) {
	tenth := map[string]int32{"primary": 90, "canary": 10}
	only := map[string]int32{"primary": 100}
	for name, test := range map[string]struct {
		in, want string
		backends Backends
		err      string
	}{
		"HTTPRoute: a canary gets its share": {
			in: route(`[{backendRefs: [{name: web, port: 80}]}]`), backends: web(tenth),
			want: route(`[{backendRefs: [{name: web, port: 80, weight: 90}, {name: web-canary, port: 80, weight: 10}]}]`),
		},
		"HTTPRoute: shares are changed": {
			in: route(`[{backendRefs: [{name: web, port: 80, weight: 90}, {name: web-canary, port: 80, weight: 10}]}]`), backends: web(map[string]int32{"primary": 40, "canary": 50, "baseline": 10}),
			want: route(`[{backendRefs: [{name: web, port: 80, weight: 40}, {name: web-baseline, port: 80, weight: 10}, {name: web-canary, port: 80, weight: 50}]}]`),
		},
		"HTTPRoute: what has no share any more is taken out": {
			in: route(`[{backendRefs: [{name: web, port: 80, weight: 90}, {name: web-canary, port: 80, weight: 10}]}]`), backends: web(only),
			want: route(`[{backendRefs: [{name: web, port: 80, weight: 100}]}]`),
		},
		"HTTPRoute: a share of 0 stays where it is": {
			in: route(`[{backendRefs: [{name: web, port: 80, weight: 90}, {name: web-canary, port: 80, weight: 10}]}]`), backends: web(map[string]int32{"primary": 100, "canary": 0}),
			want: route(`[{backendRefs: [{name: web, port: 80, weight: 100}, {name: web-canary, port: 80, weight: 0}]}]`),
		},
		"HTTPRoute: others keep their weights, and what is the application's is divided": {
			in: route(`[{backendRefs: [{name: old, port: 80, weight: 30}, {name: web, port: 80, weight: 50}, {name: else, port: 80, weight: 20}]}]`), backends: web(tenth),
			want: route(`[{backendRefs: [{name: old, port: 80, weight: 30}, {name: web, port: 80, weight: 45}, {name: web-canary, port: 80, weight: 5}, {name: else, port: 80, weight: 20}]}]`),
		},
		"HTTPRoute: a part that is too small to be divided is refused": {
			in: route(`[{backendRefs: [{name: old}, {name: web}]}]`), backends: web(tenth), err: "spec.rules[0].backendRefs: Invalid value: 1: the weights of Service web are too small to give 10% to the canary",
		},
		"HTTPRoute: filters and matches stay": {
			in: route(`[{name: all, matches: [{path: {value: /}}], backendRefs: [{name: web, port: 80, filters: [{type: A}]}], timeouts: {request: 1s}}]`), backends: web(tenth),
			want: route(`[{name: all, matches: [{path: {value: /}}], backendRefs: [{name: web, port: 80, filters: [{type: A}], weight: 90}, {name: web-canary, port: 80, filters: [{type: A}], weight: 10}], timeouts: {request: 1s}}]`),
		},
		"HTTPRoute: rules that send nothing to the application stay": {
			in: route(`[{backendRefs: [{name: api, weight: 7}]}, {filters: [{type: RequestRedirect}]}, {backendRefs: [{name: web}]}]`), backends: web(tenth),
			want: route(`[{backendRefs: [{name: api, weight: 7}]}, {filters: [{type: RequestRedirect}]}, {backendRefs: [{name: web, weight: 90}, {name: web-canary, weight: 10}]}]`),
		},
		"HTTPRoute: only rules that are named": {
			in: route(`[{name: a, backendRefs: [{name: web}]}, {name: b, backendRefs: [{name: web}]}]`), backends: func() Backends { b := web(tenth); b.Routes = []string{"b"}; return b }(),
			want: route(`[{name: a, backendRefs: [{name: web}]}, {name: b, backendRefs: [{name: web, weight: 90}, {name: web-canary, weight: 10}]}]`),
		},
		"HTTPRoute: a namesake of another kind or namespace is another": {
			in: route(`[{backendRefs: [{name: web, kind: Bucket, group: x}, {name: web, namespace: other}]}]`), backends: web(tenth), err: "spec.rules: Invalid value: \"web\": no rule sends requests to Service web",
		},
		"HTTPRoute: a weight that is none":  {in: route(`[{backendRefs: [{name: web, weight: many}]}]`), backends: web(tenth), err: "spec.rules[0].backendRefs[0].weight"},
		"HTTPRoute: a negative weight":      {in: route(`[{backendRefs: [{name: web, weight: -1}]}]`), backends: web(tenth), err: "spec.rules[0].backendRefs[0].weight"},
		"HTTPRoute: rules that are none":    {in: route(`{a: b}`), backends: web(tenth), err: "spec.rules: Invalid value"},
		"HTTPRoute: a backend that is none": {in: route(`[{backendRefs: [web]}]`), backends: web(tenth), err: "spec.rules[0].backendRefs[0]"},
		"HTTPRoute: without a spec":         {in: `{kind: HTTPRoute, metadata: {name: web}}`, backends: web(tenth), err: "spec: Required value: HTTPRoute web has none"},
		"shares that do not add up":         {in: route(`[]`), backends: web(map[string]int32{"primary": 90}), err: "traffic: Invalid value: 90"},
		"a share that is none":              {in: route(`[]`), backends: web(map[string]int32{"primary": 110, "canary": -10}), err: "traffic[primary]: Invalid value: 110"},
		"a variant without a Service":       {in: route(`[]`), backends: Backends{Service: "web", Services: map[string]string{"primary": "web"}, Shares: tenth}, err: "services[canary]: Required value"},
		"a variant without a subset":        {in: service(`[]`), backends: Backends{Service: "web", Services: map[string]string{"canary": "a", "primary": "b"}, Subsets: map[string]string{"primary": "primary"}, Shares: tenth}, err: "services[canary]: Required value"},
		"VirtualService: each variant's host": {
			in: service(`[{route: [{destination: {host: web, port: {number: 80}}}]}]`), backends: web(tenth),
			want: service(`[{route: [{destination: {host: web, port: {number: 80}}, weight: 90}, {destination: {host: web-canary, port: {number: 80}}, weight: 10}]}]`),
		},
		"VirtualService: long hosts stay long": {
			in: service(`[{route: [{destination: {host: web.shop.svc.cluster.local}}]}]`), backends: web(tenth),
			want: service(`[{route: [{destination: {host: web.shop.svc.cluster.local}, weight: 90}, {destination: {host: web-canary.shop.svc.cluster.local}, weight: 10}]}]`),
		},
		"VirtualService: a host of another namespace or domain is another": {
			in: service(`[{route: [{destination: {host: web.other.svc.cluster.local}}]}, {route: [{destination: {host: web.shop.example.com}}]}]`), backends: web(tenth), err: "no rule sends requests",
		},
		"VirtualService: subsets of one host": {
			in: service(`[{route: [{destination: {host: web, subset: primary}, weight: 100}, {destination: {host: web, subset: baseline}, weight: 0}]}]`),
			backends: func() Backends {
				b := web(tenth)
				b.Subsets = map[string]string{"primary": "primary", "canary": "canary", "baseline": "baseline"}
				return b
			}(),
			want: service(`[{route: [{destination: {host: web, subset: primary}, weight: 90}, {destination: {host: web, subset: canary}, weight: 10}]}]`),
		},
		"VirtualService: others keep their weights": {
			in: service(`[{match: [{uri: {prefix: /a}}], route: [{destination: {host: old}, weight: 50}, {destination: {host: web}, weight: 50, headers: {a: b}}]}]`), backends: web(tenth),
			want: service(`[{match: [{uri: {prefix: /a}}], route: [{destination: {host: old}, weight: 50}, {destination: {host: web}, weight: 45, headers: {a: b}}, {destination: {host: web-canary}, weight: 5, headers: {a: b}}]}]`),
		},
	} {
		t.Run(name, func(t *testing.T) {
			in := read(t, test.in)
			render := HTTPRoute
			if in.GetKind() == "VirtualService" {
				render = VirtualService
			}
			got, err := render(in, test.backends)
			if test.err != "" {
				if err == nil || !strings.Contains(err.Error(), test.err) {
					t.Errorf("error %v, want one with %q", err, test.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(read(t, test.want).Object, got.Object); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
			if diff := cmp.Diff(read(t, test.in).Object, in.Object); diff != "" {
				t.Errorf("the renderer has changed what it was given\n%s", diff)
			}
			if again, err := render(got, test.backends); err != nil || !cmp.Equal(got.Object, again.Object) {
				t.Errorf("rendered again, it is %v, %v", again, err)
			}
		})
	}
}

// Rule 7.
func TestWhatIsRenderedIsNoDrift(t *testing.T) {
	for name, test := range map[string]struct {
		in     string
		routes []string
		want   string
	}{
		"rules that send requests to the application": {in: route(`[{backendRefs: [{name: api}]}, {name: b, backendRefs: [{name: old}, {name: web-canary}]}, {backendRefs: [{name: web}]}]`), want: "/spec/rules/1/backendRefs /spec/rules/2/backendRefs"},
		"of those that are named":                     {in: route(`[{name: a, backendRefs: [{name: web}]}, {name: b, backendRefs: [{name: web}]}]`), routes: []string{"b"}, want: "/spec/rules/1/backendRefs"},
		"and routes of Istio":                         {in: service(`[{route: [{destination: {host: web.shop}}]}, {route: [{destination: {host: else}}]}]`), want: "/spec/http/0/route"},
		"nothing of another kind":                     {in: `{kind: Thing, spec: {rules: [{backendRefs: [{name: web}]}]}}`},
		"nothing of what cannot be read":              {in: route(`{a: b}`)},
	} {
		t.Run(name, func(t *testing.T) {
			b := web(nil)
			b.Routes = test.routes
			if got := strings.Join(Owned(read(t, test.in), b), " "); got != test.want {
				t.Errorf("%q, want %q", got, test.want)
			}
		})
	}
}

func TestAServiceLeadsToOneVariant(t *testing.T) {
	got, err := Selects("web", map[string]string{"app": "web"}, "example.com/variant", "canary")
	if want := (projection.Fields{"/spec/selector/example.com~1variant": {Is: "canary"}}); err != nil || !cmp.Equal(got, want) {
		t.Errorf("%v, %v, want %v", got, err, want)
	}
	if _, err := Selects("web", nil, "variant", "canary"); err == nil || !strings.Contains(err.Error(), "spec.selector: Required value: Service web") {
		t.Errorf("a Service without a selector: %v", err)
	}
	for name, test := range map[string]struct {
		shares map[string]int32
		want   string
	}{
		"the one that gets everything":   {map[string]int32{"primary": 0, "canary": 100}, "canary"},
		"none if it would have to share": {map[string]int32{"primary": 90, "canary": 10}, ""},
		"none if there is none":          {nil, ""},
	} {
		if got := Chosen(test.shares); got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}

func TestFieldsOfARoute(t *testing.T) {
	const one = "/spec/rules/0/backendRefs"
	ref := func(name string, weight int64) any { return map[string]any{"name": name, "weight": weight} }
	for name, test := range map[string]struct {
		in     string
		shares map[string]int32
		want   map[string]any
	}{
		"a canary with a share": {
			in: route(`[{backendRefs: [{name: web}]}]`), shares: map[string]int32{"primary": 80, "canary": 20},
			want: map[string]any{one: []any{ref("web", 80), ref("web-canary", 20)}},
		},
		"nothing where the primary alone is named and has everything": {
			in: route(`[{backendRefs: [{name: web}]}, {backendRefs: [{name: web, weight: 7}]}]`), shares: map[string]int32{"primary": 100, "canary": 0},
		},
		"what names a canary that is gone": {
			in: route(`[{backendRefs: [{name: web, weight: 5}, {name: web-canary, weight: 5}]}]`), shares: map[string]int32{"primary": 100},
			want: map[string]any{one: []any{ref("web", 100)}},
		},
		"nothing where a canary that is gone gets nothing as it stands": {
			in:     route(`[{backendRefs: [{name: web, weight: 5}, {name: web-canary, weight: 0}]}, {backendRefs: [{name: other, weight: 5}, {name: web, weight: 5}, {name: web-canary, weight: 0}]}]`),
			shares: map[string]int32{"primary": 100},
		},
		"a weight that is missing beside others is none of 0": {
			in: route(`[{backendRefs: [{name: web}, {name: web-canary, weight: 0}]}]`), shares: map[string]int32{"primary": 100},
			want: map[string]any{one: []any{ref("web", 100)}},
		},
		"only the rules that send requests to the application": {
			in: route(`[{backendRefs: [{name: other}]}, {backendRefs: [{name: web}]}]`), shares: map[string]int32{"primary": 0, "canary": 100},
			want: map[string]any{"/spec/rules/1/backendRefs": []any{ref("web", 0), ref("web-canary", 100)}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			in := read(t, test.in)
			got, err := Weights(in, web(test.shares), nil)
			if err != nil {
				t.Fatal(err)
			}
			is := map[string]any{}
			for pointer, field := range got {
				is[pointer] = field.Is
				if field.Of == "" {
					t.Errorf("%s is set whatever the route says there", pointer)
				}
			}
			if len(is) != len(test.want) || len(is) > 0 && !cmp.Equal(is, test.want) {
				t.Errorf("%v, want %v", is, test.want)
			}
		})
	}
	b := web(map[string]int32{"primary": 80, "canary": 20})
	b.Subsets = map[string]string{"primary": "primary", "canary": "canary"}
	got, err := Weights(read(t, service(`[{route: [{destination: {host: web, subset: primary}}]}]`)), b, nil)
	to := func(subset string, weight int64) any {
		return map[string]any{"destination": map[string]any{"host": "web", "subset": subset}, "weight": weight}
	}
	if err != nil || !cmp.Equal(got["/spec/http/0/route"].Is, any([]any{to("primary", 80), to("canary", 20)})) {
		t.Errorf("subsets of a VirtualService: %v, %v", got, err)
	}
	if _, err := Weights(read(t, "{kind: Thing, metadata: {name: web}}"), b, nil); err == nil || !strings.Contains(err.Error(), "Thing web: requests are shared out by") {
		t.Errorf("another kind: %v", err)
	}
	if _, err := Weights(read(t, route(`[{backendRefs: [{name: other}]}]`)), web(map[string]int32{"primary": 100}), nil); err == nil || !strings.Contains(err.Error(), "no rule sends requests to Service web") {
		t.Errorf("a route without the application: %v", err)
	}
}

// Two applications may share a route, and even a rule of it: neither takes away what the other one has set.
func TestApplicationsThatShareARoute(t *testing.T) {
	api := func(shares map[string]int32) Backends {
		return Backends{Shares: shares, Service: "api", Services: map[string]string{"primary": "api", "canary": "api-canary"}}
	}
	all, tenth, half := map[string]int32{"primary": 100}, map[string]int32{"primary": 90, "canary": 10}, map[string]int32{"primary": 50, "canary": 50}
	for name, test := range map[string]struct {
		in    string
		steps []Backends
		want  []string
	}{
		"a rule each": {
			in:    route(`[{backendRefs: [{name: web}]}, {backendRefs: [{name: api}]}]`),
			steps: []Backends{web(tenth), api(half), web(tenth), api(all), web(all)},
			want: []string{
				"web:90 web-canary:10 | -", "web:90 web-canary:10 | api:50 api-canary:50", "web:90 web-canary:10 | api:50 api-canary:50", "web:90 web-canary:10 | -", "- | -",
			},
		},
		"one rule": {
			in:    route(`[{backendRefs: [{name: web, weight: 60}, {name: api, weight: 40}]}]`),
			steps: []Backends{web(tenth), api(half), web(half), web(all), api(all)},
			want: []string{
				"web:54 web-canary:6 api:40", "web:54 web-canary:6 api:20 api-canary:20", "web:30 web-canary:30 api:20 api-canary:20", "web:60 api:20 api-canary:20", "-",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			in, fields := read(t, test.in), projection.Fields(nil)
			for i, b := range test.steps {
				next, err := Weights(in, b, fields)
				if err != nil {
					t.Fatal(err)
				}
				if again, err := Weights(in, b, next); err != nil || !cmp.Equal(again, next) {
					t.Errorf("step %d: asked again it is %v, %v", i, again, err)
				}
				if got := said(next, strings.Count(test.in, "backendRefs")); got != test.want[i] {
					t.Errorf("step %d: %s, want %s", i, got, test.want[i])
				}
				fields = next
			}
		})
	}
	in := read(t, route(`[{backendRefs: [{name: web}]}, {backendRefs: [{name: api}]}]`))
	fields, _ := Weights(in, web(tenth), nil)
	fields, _ = Weights(in, api(tenth), fields)
	if got := said(Others(in, web(all), fields), 2); got != "- | api:90 api-canary:10" {
		t.Errorf("what is about others is %s", got)
	}
	changed := read(t, route(`[{name: new, backendRefs: [{name: web}]}, {backendRefs: [{name: web}]}]`))
	if got := said(Valid(changed, fields), 2); got != "web:90 web-canary:10 | -" {
		t.Errorf("of a rule that has changed nothing counts: %s", got)
	}
	for name, odd := range map[string]projection.Fields{
		"no pointer":      {"": {Of: "a"}},
		"another field":   {"/spec/rules/7/backendRefs": {Of: projection.RouteHash(nil), Is: []any{}}},
		"no backends":     {"/spec/rules/0/backendRefs": {Of: projection.RouteHash(at(in.Object, "/spec/rules/0/backendRefs")), Is: "web"}},
		"of anything":     {"/spec/rules/0/backendRefs": {Is: []any{}}},
		"a whole of less": {"/spec": {Of: "a", Is: map[string]any{}}},
	} {
		if got := Valid(in, odd); len(got) > 0 {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// said are the backends that a cluster holds otherwise, by rule.
func said(fields projection.Fields, rules int) string {
	var out []string
	for i := range rules {
		refs, _ := fields[fmt.Sprintf("/spec/rules/%d/backendRefs", i)].Is.([]any)
		var of []string
		for _, ref := range refs {
			of = append(of, fmt.Sprintf("%v:%v", ref.(map[string]any)["name"], ref.(map[string]any)["weight"]))
		}
		if of == nil {
			of = []string{"-"}
		}
		out = append(out, strings.Join(of, " "))
	}
	return strings.Join(out, " | ")
}

// Routes are users' objects. Whatever is in one, rendering neither panics nor loses what is not the application's, and the weights add up.
func FuzzWeights(f *testing.F) {
	f.Add([]byte(`{"spec":{"rules":[{"backendRefs":[{"name":"web","weight":3},{"name":"old"}]}]}}`), uint8(10), false)
	f.Add([]byte(`{"metadata":{"namespace":"shop"},"spec":{"http":[{"route":[{"destination":{"host":"web.shop"}},{"weight":7}]}]}}`), uint8(50), true)
	f.Fuzz(func(t *testing.T, data []byte, canary uint8, istio bool) {
		object := &unstructured.Unstructured{}
		if json.Unmarshal(data, &object.Object) != nil || object.Object == nil {
			return
		}
		whole(object.Object)
		b := web(map[string]int32{delivery.Primary: 100 - int32(canary%101), delivery.Canary: int32(canary % 101)})
		render, rules, backends := HTTPRoute, "rules", "backendRefs"
		if istio {
			render, rules, backends = VirtualService, "http", "route"
		}
		before := object.DeepCopy()
		got, err := render(object, b)
		if !cmp.Equal(before.Object, object.Object) {
			t.Fatal("the renderer has changed what it was given")
		}
		if err != nil {
			return
		}
		if again, err := render(got, b); err != nil || !cmp.Equal(again.Object, got.Object) {
			t.Fatalf("rendered again: %v, %v, first %v", again, err, got)
		}
		was, _, _ := unstructured.NestedSlice(object.Object, "spec", rules)
		is, _, _ := unstructured.NestedSlice(got.Object, "spec", rules)
		for i := range was {
			if a, b := others(was[i], backends), others(is[i], backends); !cmp.Equal(a, b) {
				t.Fatalf("others had %v, and have %v", a, b)
			}
		}
	})
}

// others are the backends of a rule that name nothing of the application.
func others(rule any, backends string) []any {
	object, _ := rule.(map[string]any)
	list, _ := object[backends].([]any)
	var out []any
	for _, backend := range list {
		if text, _ := json.Marshal(backend); !strings.Contains(string(text), "web") {
			out = append(out, backend)
		}
	}
	return out
}
