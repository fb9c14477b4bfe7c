package services

import (
	"net/netip"
	"slices"
)

// Endpoint is one of the addresses behind a port of a Service.
type Endpoint struct {
	Address netip.AddrPort
	// Ready, Serving and Terminating are the conditions of an EndpointSlice, with its rules for what it leaves out.
	Ready, Serving, Terminating bool
	// Hostname is the name that cluster DNS knows the endpoint by, below that of a headless Service.
	Hostname string
	// Node is where it runs; ForNodes and ForZones are the hints whom it is meant for.
	Node               string
	ForNodes, ForZones []string
}

// Place is where in the cluster a connection begins.
type Place struct {
	Node, Zone string
}

// Usable returns the endpoints that a new connection may be given to, as kube-proxy finds them: the ready ones, or else those that serve while
// they terminate. A policy of Local asks for those of the own node; otherwise hints are followed, if all ready endpoints have them and one
// is for this place.
func Usable(endpoints []Endpoint, local bool, from Place) []Endpoint {
	ready := filter(endpoints, func(e *Endpoint) bool { return e.Ready })
	terminating := filter(endpoints, func(e *Endpoint) bool { return !e.Ready && e.Serving && e.Terminating })
	if local {
		here := func(e *Endpoint) bool { return e.Node == from.Node }
		ready, terminating = filter(ready, here), filter(terminating, here)
	}
	if len(ready) == 0 {
		return terminating
	}
	if local {
		return ready
	}
	if hinted, ok := followed(ready, from.Node, func(e *Endpoint) []string { return e.ForNodes }); ok {
		return hinted
	}
	if hinted, ok := followed(ready, from.Zone, func(e *Endpoint) []string { return e.ForZones }); ok {
		return hinted
	}
	return ready
}

// followed returns the endpoints that are meant for a place, if that is to be followed.
func followed(ready []Endpoint, place string, hints func(*Endpoint) []string) ([]Endpoint, bool) {
	if slices.ContainsFunc(ready, func(e Endpoint) bool { return len(hints(&e)) == 0 }) {
		return nil, false
	}
	hinted := filter(ready, func(e *Endpoint) bool { return slices.Contains(hints(e), place) })
	return hinted, len(hinted) > 0
}

func filter(endpoints []Endpoint, keep func(*Endpoint) bool) []Endpoint {
	var out []Endpoint
	for i := range endpoints {
		if keep(&endpoints[i]) {
			out = append(out, endpoints[i])
		}
	}
	return out
}
