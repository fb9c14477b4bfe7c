package gateways

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/manifold-dev/manifold/pkg/summary"
	"github.com/manifold-dev/manifold/pkg/syncer/addresses"
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
		"nor has one of which nothing is known": {report: summary.CustomReport{Stale: true}, stays: true, want: summary.Presence{Stale: true}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := presenceOf(test.report, test.stays, test.behind, test.last); got != test.want {
				t.Errorf("%+v, want %+v", got, test.want)
			}
		})
	}
}
