package gateways

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/cache"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/summary"
	"github.com/manifold-dev/manifold/pkg/syncer/addresses"
	"github.com/manifold-dev/manifold/pkg/syncer/copies"
)

func TestWhenTheAddressesOfAGatewayAreToLeave(t *testing.T) {
	gateway := func(status map[string]any) summary.CustomReport {
		return summary.CustomReport{Live: &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "gateway.networking.k8s.io/v1", "kind": "Gateway", "status": status,
		}}}
	}
	at := gateway(map[string]any{"addresses": []any{map[string]any{"value": "192.0.2.1"}}})
	out := summary.Withdrawal{Withdrawn: metav1.Now()}
	for name, test := range map[string]struct {
		report summary.CustomReport
		stays  bool
		behind addresses.Behind
		last   summary.Withdrawal
		want   summary.Presence
	}{
		"not where what it leads to stays":               {report: at, stays: true, behind: addresses.Behind{Any: true, Stays: true, Runs: true}, want: summary.Presence{Published: true}},
		"not where it leads to nothing yet":              {report: at, stays: true, want: summary.Presence{Published: true}},
		"where what it leads to leaves":                  {report: at, stays: true, behind: addresses.Behind{Any: true, Runs: true}, want: summary.Presence{Published: true, Leaves: true}},
		"and is about to end":                            {report: at, stays: true, behind: addresses.Behind{Any: true, Runs: true, Asks: true}, want: summary.Presence{Published: true, Leaves: true, Asks: true}},
		"and has ended":                                  {report: at, stays: true, last: out, want: summary.Presence{Published: true, Leaves: true}},
		"until something is to run there again":          {report: at, stays: true, behind: addresses.Behind{Any: true, Stays: true}, last: out, want: summary.Presence{Published: true}},
		"where it leaves itself, after what runs there":  {report: at, behind: addresses.Behind{Any: true, Runs: true}, want: summary.Presence{Published: true, Leaves: true}},
		"at once if nothing runs there":                  {report: at, want: summary.Presence{Published: true, Leaves: true, Asks: true}},
		"or if what runs there does so without it":       {report: at, behind: addresses.Behind{Any: true, Stays: true, Runs: true}, want: summary.Presence{Published: true, Leaves: true, Asks: true}},
		"one without addresses has nothing to take away": {report: gateway(nil), want: summary.Presence{Leaves: true, Asks: true}},
		"what a silent one said last counts": {
			report: summary.CustomReport{Stale: true, Live: &unstructured.Unstructured{Object: map[string]any{"status": map[string]any{"addresses": []any{map[string]any{"value": "192.0.2.1"}}}}}},
			last:   out, want: summary.Presence{Published: true, Leaves: true, Asks: true, Stale: true},
		},
		"where nothing is ready yet":            {report: at, stays: true, behind: addresses.Behind{Any: true, Stays: true, Unserved: true}, want: summary.Presence{Published: true, Unserved: true}},
		"nor has one of which nothing is known": {report: summary.CustomReport{Stale: true}, stays: true, want: summary.Presence{Stale: true}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := presenceOf(test.report, test.stays, test.behind, test.last); got != test.want {
				t.Errorf("%+v, want %+v", got, test.want)
			}
		})
	}
}

func TestTheAddressOfAGatewayWaitsUntilItIsServed(t *testing.T) {
	const web, api = "web", "api"
	front := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "front", Annotations: map[string]string{
		v1alpha1.AnnotationPlacement: `{"east":{},"west":{}}`,
	}}}
	served, unserved := addresses.Behind{Any: true, Stays: true}, addresses.Behind{Any: true, Stays: true, Unserved: true}
	nothing := addresses.Behind{}
	for name, test := range map[string]struct {
		east, west []string                    // the Services that routes lead to there
		behind     map[string]addresses.Behind // by cluster and Service
		shown      []string
		want       bool // that of west waits
	}{
		"while another one is served":          {east: []string{web}, west: []string{web}, behind: map[string]addresses.Behind{"east web": served, "west web": unserved}, want: true},
		"not once it is served":                {east: []string{web}, west: []string{web}, behind: map[string]addresses.Behind{"east web": served, "west web": served}},
		"not if it is shown":                   {east: []string{web}, west: []string{web}, behind: map[string]addresses.Behind{"east web": served, "west web": unserved}, shown: []string{"192.0.2.2"}},
		"not if no other is served":            {east: []string{web}, west: []string{web}, behind: map[string]addresses.Behind{"east web": unserved, "west web": unserved}},
		"while none of its routes has come":    {east: []string{web}, behind: map[string]addresses.Behind{"east web": served, "west web": served}, want: true},
		"not if they lead to nothing known":    {east: []string{web}, behind: map[string]addresses.Behind{"east web": nothing, "west web": nothing}},
		"not if no route leads from it":        {},
		"not if its routes lead to other pods": {east: []string{web}, west: []string{api}, behind: map[string]addresses.Behind{"east web": served, "west api": served}},
	} {
		t.Run(name, func(t *testing.T) {
			led := func(services []string) (out []cache.ObjectName) {
				for _, name := range services {
					out = append(out, cache.ObjectName{Namespace: "shop", Name: name})
				}
				return out
			}
			a := Addresses{
				Gateways: func(cluster string) []addresses.Gateway {
					return []addresses.Gateway{{Above: front, Services: led(map[string][]string{"east": test.east, "west": test.west}[cluster])}}
				},
				Behind: func(cluster string, services []cache.ObjectName) addresses.Behind {
					if len(services) == 0 {
						return nothing
					}
					return test.behind[cluster+" "+services[0].Name]
				},
			}
			told := copies.Gathered{Reports: map[string]summary.CustomReport{}}
			for cluster, address := range map[string]string{"east": "192.0.2.1", "west": "192.0.2.2"} {
				told.Reports[cluster] = summary.CustomReport{Live: &unstructured.Unstructured{Object: map[string]any{
					"status": map[string]any{"addresses": []any{map[string]any{"value": address}}},
				}}}
			}
			key := copies.Key{Resource: copies.GatewayResource, Namespace: "shop", Name: "front"}
			early := a.Withdraw(key, front, told, time.Now()).Early(append(test.shown, "192.0.2.1"))
			if early["west"] != test.want || early["east"] {
				t.Errorf("%v wait; want west to: %t", early, test.want)
			}
		})
	}
	if early := (Outcome{}).Early([]string{"192.0.2.1"}); len(early) > 0 {
		t.Errorf("of what is no Gateway %v wait", early)
	}
}
