package services

import (
	"net/netip"
	"slices"
	"testing"
)

func at(address string) netip.AddrPort { return netip.AddrPortFrom(netip.MustParseAddr(address), 8080) }

func TestANewConnectionGoesWhereKubeProxySendsIt(t *testing.T) {
	ready := func(address string, change ...func(*Endpoint)) Endpoint {
		e := Endpoint{Address: at(address), Ready: true, Serving: true}
		for _, c := range change {
			c(&e)
		}
		return e
	}
	terminating := func(e *Endpoint) { e.Ready, e.Terminating = false, true }
	failing := func(e *Endpoint) { e.Ready, e.Serving = false, false }
	on := func(node string) func(*Endpoint) { return func(e *Endpoint) { e.Node = node } }
	zones := func(names ...string) func(*Endpoint) { return func(e *Endpoint) { e.ForZones = names } }
	nodes := func(names ...string) func(*Endpoint) { return func(e *Endpoint) { e.ForNodes = names } }
	tests := map[string]struct {
		endpoints []Endpoint
		local     bool
		from      Place
		want      []string
	}{
		"to the ready ones": {
			endpoints: []Endpoint{ready("10.130.0.1"), ready("10.130.0.2", failing), ready("10.130.0.3", terminating), ready("10.130.0.4")},
			want:      []string{"10.130.0.1", "10.130.0.4"},
		},
		"to those that serve to their end when none is ready": {
			endpoints: []Endpoint{ready("10.130.0.1", failing), ready("10.130.0.2", terminating), ready("10.130.0.3", terminating, failing)},
			want:      []string{"10.130.0.2"},
		},
		"nowhere when there are none": {},
		"to the own node by a policy": {
			endpoints: []Endpoint{ready("10.130.0.1", on("a")), ready("10.130.0.2", on("b"))}, local: true, from: Place{Node: "b"},
			want: []string{"10.130.0.2"},
		},
		"to the end of those of the own node before others": {
			endpoints: []Endpoint{ready("10.130.0.1", on("a")), ready("10.130.0.2", on("b"), terminating)}, local: true, from: Place{Node: "b"},
			want: []string{"10.130.0.2"},
		},
		"nowhere when the own node has none": {
			endpoints: []Endpoint{ready("10.130.0.1", on("a"))}, local: true, from: Place{Node: "b"},
		},
		"to the own zone by hints": {
			endpoints: []Endpoint{ready("10.130.0.1", zones("a")), ready("10.130.0.2", zones("b")), ready("10.130.0.3", zones("a", "b"))},
			from:      Place{Zone: "b"}, want: []string{"10.130.0.2", "10.130.0.3"},
		},
		"to all when one has no hint": {
			endpoints: []Endpoint{ready("10.130.0.1", zones("a")), ready("10.130.0.2")}, from: Place{Zone: "a"},
			want: []string{"10.130.0.1", "10.130.0.2"},
		},
		"to all when no hint is for the own zone": {
			endpoints: []Endpoint{ready("10.130.0.1", zones("a")), ready("10.130.0.2", zones("a"))}, from: Place{Zone: "b"},
			want: []string{"10.130.0.1", "10.130.0.2"},
		},
		"to the own node by hints before the own zone": {
			endpoints: []Endpoint{ready("10.130.0.1", zones("z"), nodes("a")), ready("10.130.0.2", zones("z"), nodes("b"))},
			from:      Place{Node: "a", Zone: "z"}, want: []string{"10.130.0.1"},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, e := range Usable(tt.endpoints, tt.local, tt.from) {
				got = append(got, e.Address.Addr().String())
			}
			if !slices.Equal(got, tt.want) {
				t.Errorf("Usable() = %v, want %v", got, tt.want)
			}
		})
	}
}
