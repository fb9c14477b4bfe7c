package validation

import (
	"strings"
	"testing"
)

func TestValidateTraffic(t *testing.T) {
	checkSpecs(t, specs{
		"a VirtualService of subsets":                  {spec: "traffic: {method: VirtualService, name: web, subsets: true, routes: [main], gateways: [{namespace: istio, name: edge}]}"},
		"an Ingress of all hosts":                      {spec: "traffic: {method: Ingress, host: '*.example.com', className: nginx, nginxCanary: true}"},
		"a switch":                                     {spec: "traffic: {method: Service, drainSeconds: 0}"},
		"the VirtualService among the manifests":       {spec: "traffic: {method: VirtualService, subsets: true, routes: [main]}"},
		"an HTTPRoute that is made":                    {spec: "traffic: {method: HTTPRoute, host: web.example.com, port: 80, gateways: [{name: edge, sectionName: https}]}"},
		"a VirtualService that a ServiceAccount makes": {spec: "serviceAccountName: routes\ntraffic: {method: VirtualService, host: web.example.com, subsets: true}"},

		"a method that is missing":              {spec: "traffic: {}", want: []string{"spec.traffic.method: Required value"}},
		"a method that there isn't":             {spec: "traffic: {method: DNS}", want: []string{`spec.traffic.method: Unsupported value: "DNS"`}},
		"a route that nobody calls":             {spec: "traffic: {method: HTTPRoute}", want: []string{"spec.traffic.host: Required value"}},
		"names that cannot be":                  {spec: "traffic: {method: HTTPRoute, host: web_1, name: A, gateways: [{name: '', namespace: B}]}", want: []string{`spec.traffic.host: Invalid value: "web_1"`, `spec.traffic.name: Invalid value: "A"`, "spec.traffic.gateways[0].name: Required value", `spec.traffic.gateways[0].namespace: Invalid value: "B"`}},
		"a drain that ends before it":           {spec: "traffic: {method: Replicas, drainSeconds: -1}", want: []string{"spec.traffic.drainSeconds: Invalid value: -1"}},
		"a route that is there twice":           {spec: "traffic: {method: HTTPRoute, name: a, routes: [b, b]}", want: []string{`spec.traffic.routes[1]: Duplicate value: "b"`}},
		"rules of a route that is made":         {spec: "traffic: {method: HTTPRoute, host: web.example.com, gateways: [{name: edge}], routes: [a]}", want: []string{"spec.traffic.routes: Forbidden"}},
		"a VirtualService that nobody may make": {spec: "traffic: {method: VirtualService, host: web.example.com}", want: []string{"spec.serviceAccountName: Required value: a VirtualService can take over the hosts of other namespaces"}},
		"a listener of Istio":                   {spec: "traffic: {method: VirtualService, name: web, gateways: [{name: edge, sectionName: https}]}", want: []string{"spec.traffic.gateways[0].sectionName: Forbidden"}},
		"a port that is none":                   {spec: "traffic: {method: Ingress, host: web.example.com, port: 65536}", want: []string{"spec.traffic.port: Invalid value: 65536"}},
		"fields of other methods": {
			spec: "traffic: {method: Service, host: a, name: a, port: 80, gateways: [{name: a}], routes: [a], subsets: true, className: a, nginxCanary: true}",
			want: []string{
				"spec.traffic.host: Forbidden", "spec.traffic.name: Forbidden", "spec.traffic.port: Forbidden", "spec.traffic.gateways: Forbidden", "spec.traffic.routes: Forbidden",
				"spec.traffic.subsets: Forbidden", "spec.traffic.className: Forbidden", "spec.traffic.nginxCanary: Forbidden",
			},
		},
	})
}

func TestWhatHasNoEffectIsWarnedOf(t *testing.T) {
	for name, test := range map[string]struct{ spec, want string }{
		"nothing of traffic":    {"", ""},
		"a switch":              {"traffic: {method: Service}", ""},
		"a route that is there": {"traffic: {method: HTTPRoute, name: web}", ""},
		"a route that belongs to no Gateway": {"traffic: {method: HTTPRoute, host: web.example.com}",
			"spec.traffic.gateways: Required value: an HTTPRoute that is made for host belongs to a Gateway; or set name to that of one which is there; until that is changed, releases whose stages route traffic fail"},
		"a route that is made":                  {"traffic: {method: Ingress, host: web.example.com, port: 80, className: nginx}", ""},
		"a host of one there is":                {"traffic: {method: HTTPRoute, host: web.example.com, name: web}", "spec.traffic.host: has no effect: HTTPRoute web, which spec.traffic.name names"},
		"what the one among the manifests says": {"traffic: {method: VirtualService, port: 80}", "spec.traffic.port: has no effect: the VirtualService among the manifests stays as it is"},
		"a VirtualService among the manifests that nobody may apply": {"traffic: {method: VirtualService}",
			"spec.serviceAccountName: Required value: a VirtualService can take over the hosts of other namespaces, so the one among the manifests is applied as a ServiceAccount"},
		"one that somebody may apply": {"serviceAccountName: routes\ntraffic: {method: VirtualService}", ""},
		"one that may be there":       {"traffic: {method: VirtualService, name: web}", ""},
		"and all else of a route that is made": {"traffic: {method: HTTPRoute, name: web, port: 80, gateways: [{name: edge}]}",
			"spec.traffic.port: has no effect: HTTPRoute web, which spec.traffic.name names, stays as it is, and no route is made|spec.traffic.gateways: has no effect"},
	} {
		got := strings.Join(ApplicationWarnings(application(t, test.spec)), "|")
		if (got == "") != (test.want == "") || !strings.HasPrefix(got, test.want) {
			t.Errorf("%s: warnings %q, want %q", name, got, test.want)
		}
	}
}

func TestValidateRouting(t *testing.T) {
	routed := func(method, with string) string {
		return "traffic: {method: " + method + "}\npipeline: {stages: [{name: K8S_CANARY_ROLLOUT}, {name: K8S_BASELINE_ROLLOUT}, {name: K8S_TRAFFIC_ROUTING, with: {" + with + "}}]}"
	}
	const with = "spec.pipeline.stages[2].with"
	checkSpecs(t, specs{
		"a part of each":                 {spec: routed("Replicas", "primary: 80, canary: 10%, baseline: 10")},
		"the primary has what is left":   {spec: routed("VirtualService, name: web", "canary: 10")},
		"a switch is all or nothing":     {spec: routed("Service", "canary: 100")},
		"nothing is said":                {spec: routed("Replicas", ""), want: []string{with + ": Required value"}},
		"everything and a part":          {spec: routed("Replicas", "all: canary, canary: 10"), want: []string{with + ".all: Forbidden"}},
		"everything to nobody":           {spec: routed("Replicas", "all: green"), want: []string{with + `.all: Unsupported value: "green"`}},
		"parts that do not add up":       {spec: routed("Replicas", "primary: 80, canary: 10"), want: []string{with + ": Invalid value: 90: percentages must add up to 100"}},
		"more than there is":             {spec: routed("Replicas", "canary: 60, baseline: 60"), want: []string{with + ": Invalid value: 120: percentages must not be more than 100"}},
		"a percentage over 100":          {spec: routed("Replicas", "canary: 101"), want: []string{with + ".canary: Invalid value: 101"}},
		"a percentage below 0":           {spec: routed("Replicas", "canary: -1"), want: []string{with + ".canary: Invalid value: -1"}},
		"a part of a switch":             {spec: routed("Service", "canary: 10"), want: []string{with + ".canary: Invalid value: 10: must be 0 or 100"}},
		"a switch of paths":              {spec: routed("Ingress, name: web", "canary: 100")},
		"a part of a path":               {spec: routed("Ingress, host: a.example.com", "canary: 10, baseline: 1"), want: []string{with + ".canary: Invalid value: 10: must be 0 or 100 when spec.traffic.method is Ingress", with + ".baseline: Invalid value: 1: must be 0 or 100"}},
		"a part by nginx":                {spec: routed("Ingress, name: web, nginxCanary: true", "canary: 10")},
		"two parts by nginx":             {spec: routed("Ingress, name: web, nginxCanary: true", "canary: 10, baseline: 10"), want: []string{with + ".baseline: Invalid value: 10: must be 0 when spec.traffic.nginxCanary is set"}},
		"all of a baseline by nginx":     {spec: routed("Ingress, name: web, nginxCanary: true", "all: baseline"), want: []string{with + `.all: Invalid value: "baseline": nginx shares`}},
		"more pods than anybody wants":   {spec: routed("Replicas", "canary: 41, baseline: 40"), want: []string{with + ": Invalid value: 19: must leave the primary 0, or 20 and more"}},
		"a great part by pods":           {spec: routed("Replicas", "canary: 40, baseline: 40")},
		"routing that nothing is set up": {spec: "pipeline: {stages: [{name: K8S_TRAFFIC_ROUTING, with: {all: primary}}]}", want: []string{"spec.traffic: Required value: a stage routes traffic"}},
	})
}

func TestValidateVariantLabel(t *testing.T) {
	checkSpecs(t, specs{
		"PipeCD's is fine":   {spec: "variantLabel: {key: pipecd.dev/variant}"},
		"a key of our own":   {spec: "variantLabel: {key: manifold.dev/variant}", want: []string{"spec.variantLabel.key: Forbidden"}},
		"a key of delivery":  {spec: "variantLabel: {key: delivery.manifold.dev/application}", want: []string{"spec.variantLabel.key: Forbidden"}},
		"a key that is none": {spec: "variantLabel: {key: a b}", want: []string{`spec.variantLabel.key: Invalid value: "a b"`}},
		"values that are the same, or none": {
			spec: "variantLabel: {primaryValue: a, canaryValue: a, baselineValue: b c}",
			want: []string{`spec.variantLabel.canaryValue: Duplicate value: "a"`, `spec.variantLabel.baselineValue: Invalid value: "b c"`},
		},
	})
}

// One Service in front leads to one variant, or to all that there are.
func TestValidateSharesByNumbersOfPods(t *testing.T) {
	stages := func(method, stages string) string {
		return twoTargets + "traffic: {method: " + method + "}\npipeline: {stages: [" + stages + "]}"
	}
	const (
		canary   = "{name: K8S_CANARY_ROLLOUT}, "
		baseline = "{name: K8S_BASELINE_ROLLOUT, with: {replicas: 1}}, "
	)
	checkSpecs(t, specs{
		"a canary, and back":               {spec: stages("Replicas", canary+"{name: K8S_TRAFFIC_ROUTING, with: {canary: 20}}, {name: K8S_TRAFFIC_ROUTING, with: {all: primary}}, {name: K8S_CANARY_CLEAN}")},
		"a canary that is cleaned at once": {spec: stages("Replicas", canary+"{name: K8S_TRAFFIC_ROUTING, with: {canary: 20}}, {name: K8S_CANARY_CLEAN}")},
		"all of both": {spec: stages("Replicas", canary+baseline+"{name: K8S_TRAFFIC_ROUTING, with: {canary: 20, baseline: 20}}, {name: K8S_TRAFFIC_ROUTING, with: {primary: 100}}, "+
			"{name: K8S_CANARY_CLEAN}, {name: K8S_BASELINE_CLEAN}")},
		"everything to one of several": {spec: stages("Replicas", canary+baseline+"{name: K8S_TRAFFIC_ROUTING, with: {all: canary}}")},
		"a part to one of two copies": {spec: stages("Replicas", canary+baseline+"{name: K8S_TRAFFIC_ROUTING, with: {canary: 20}}"),
			want: []string{"spec.pipeline.stages[2].with: Forbidden: the baseline would get requests"}},
		"nothing to the primary alone": {spec: stages("Replicas", canary+baseline+"{name: K8S_TRAFFIC_ROUTING, with: {canary: 50, baseline: 50}}"),
			want: []string{"spec.pipeline.stages[2].with: Forbidden: the primary would get requests"}},
		"a copy that comes too late": {spec: stages("Replicas", canary+"{name: K8S_TRAFFIC_ROUTING, with: {canary: 20}}, "+baseline),
			want: []string{"spec.pipeline.stages[2]: Forbidden: the baseline would get requests"}},
		"a copy that goes too early": {spec: stages("Replicas", canary+baseline+"{name: K8S_TRAFFIC_ROUTING, with: {canary: 20, baseline: 20}}, {name: K8S_CANARY_CLEAN}"),
			want: []string{"spec.pipeline.stages[3]: Forbidden: the canary would get requests"}},
		"which weights can do": {spec: stages("VirtualService, name: web", canary+baseline+"{name: K8S_TRAFFIC_ROUTING, with: {canary: 20}}")},
		"and so can other targets": {spec: stages("Replicas", "{name: K8S_CANARY_ROLLOUT, targets: [a]}, {name: K8S_BASELINE_ROLLOUT, targets: [b], with: {replicas: 1}}, "+
			"{name: K8S_TRAFFIC_ROUTING, targets: [a], with: {canary: 20}}")},
	})
}
