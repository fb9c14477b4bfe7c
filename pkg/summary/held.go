package summary

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	delivery "github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/placement"
)

// newest returns the revisions that are the newest which the shares of a decision name, by the application.
func newest(decision placement.Decision) map[string]int64 {
	var out map[string]int64
	for _, share := range decision {
		application, number, named := delivery.ParseRevisionName(share.Revision)
		if !named {
			continue
		}
		if out == nil {
			out = map[string]int64{}
		}
		out[application] = max(out[application], number)
	}
	return out
}

// held returns the revision that a cluster is held at while others have a newer one, "" if it is not.
func (w whole) held(cluster string) string {
	revision := w.decision[cluster].Revision
	application, number, named := delivery.ParseRevisionName(revision)
	if !named || number >= w.newest[application] {
		return ""
	}
	return revision
}

// behind reports whether what a cluster has is not what is wanted in the end: it is held at an older revision, or it has not told yet that it has that
// of its share.
func (w whole) behind(cluster string) bool {
	share := w.decision[cluster]
	return w.held(cluster) != "" || share.Revision != "" && w.reports[cluster].Revision != share.Revision
}

// anyBehind reports whether any cluster is behind.
func (w whole) anyBehind() bool {
	return slices.ContainsFunc(w.shares(), w.behind)
}

// mostNamed bounds how many clusters a message names.
const mostNamed = 10

// holds says which clusters are held at older revisions, and by whom, "" if none is.
func (w whole) holds() string {
	at := map[string][]string{}
	for _, cluster := range w.shares() {
		if revision := w.held(cluster); revision != "" {
			at[revision] = append(at[revision], cluster)
		}
	}
	if len(at) == 0 {
		return ""
	}
	var parts []string
	var application string
	for _, revision := range slices.Sorted(maps.Keys(at)) {
		application, _, _ = delivery.ParseRevisionName(revision)
		clusters, more := at[revision], ""
		if rest := len(clusters) - mostNamed; rest > 0 {
			clusters, more = clusters[:mostNamed], fmt.Sprintf(" and %d more", rest)
		}
		parts = append(parts, fmt.Sprintf("at %s in %s%s", revision, strings.Join(clusters, ", "), more))
	}
	return fmt.Sprintf("held %s by Application %s", strings.Join(parts, " and "), application)
}
