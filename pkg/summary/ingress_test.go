package summary

import (
	"reflect"
	"testing"

	networkingv1 "k8s.io/api/networking/v1"
)

func TestIngressPoints(t *testing.T) {
	type point = networkingv1.IngressLoadBalancerIngress
	points := func(in ...point) Report {
		return Report{Live: &networkingv1.Ingress{Status: networkingv1.IngressStatus{LoadBalancer: networkingv1.IngressLoadBalancerStatus{Ingress: in}}}}
	}
	east, west := point{IP: "192.0.2.1"}, point{IP: "192.0.2.9"}
	host, ported := point{Hostname: "in.example.com"}, point{IP: "192.0.2.1", Ports: []networkingv1.IngressPortStatus{{Port: 80}}}
	tests := map[string]struct {
		before  []point
		reports map[string]Report
		want    []point
	}{
		"none without clusters, whatever there was": {before: []point{east}},
		"none while none is allocated":              {reports: map[string]Report{"east": points(), "west": {Problem: "the name is taken"}}},
		"those of all clusters, sorted":             {reports: map[string]Report{"east": points(west, host), "west": points(east)}, want: []point{host, east, west}},
		"each once":                                 {reports: map[string]Report{"east": points(east, host), "west": points(host, east)}, want: []point{host, east}},
		"other ports are another point":             {reports: map[string]Report{"east": points(east), "north": points(ported), "west": points(east)}, want: []point{east, ported}},
		"a silent cluster keeps its own":            {reports: map[string]Report{"east": and(points(east), silent)}, want: []point{east}},
		"a cluster on an older generation counts":   {reports: map[string]Report{"east": points(east), "west": and(points(west), func(r *Report) { r.Generation = 0 })}, want: []point{east, west}},
		"those of a cluster that left are gone":     {before: []point{east, west}, reports: map[string]Report{"west": points(west)}, want: []point{west}},
	}
	kind, _ := ForResource(networkingv1.SchemeGroupVersion.WithResource("ingresses"))
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			in := &networkingv1.Ingress{}
			in.Status.LoadBalancer.Ingress = test.before
			got := kind.Summarise(in, Input{Reports: test.reports}).(*networkingv1.Ingress).Status.LoadBalancer.Ingress
			if !reflect.DeepEqual(got, test.want) {
				t.Errorf("points = %+v, want %+v", got, test.want)
			}
			if !reflect.DeepEqual(in.Status.LoadBalancer.Ingress, test.before) {
				t.Error("the input was changed")
			}
		})
	}
}
