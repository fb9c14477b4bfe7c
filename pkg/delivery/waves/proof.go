package waves

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/manifold-dev/manifold/pkg/delivery"
)

// Verdict is what is known about a target that is under way.
type Verdict struct {
	// Done says that it is proven to have what it is to have.
	Done bool
	// Failed says that it cannot get there.
	Failed bool
	// Ready says that it serves, be it for a moment only.
	Ready bool
	// Message says what it waits for, or why it has failed.
	Message string
	// At is when to look again if nothing happens before; zero if nothing is due.
	At time.Time
}

// Look is one look at a cluster while a release runs.
type Look struct {
	Cluster string
	// Set is what the application is to run, and Edit counts the edits of it that concern the cluster.
	Set  delivery.Set
	Edit int64
	Seen delivery.Cluster
	Now  time.Time
}

// Runs says whether the cluster is proven to run what the set says of a variant: it reports about the last edit, has applied this very part, its
// workloads' statuses are about that, and all has been ready for long enough. A report that is ready, but about anything older, proves nothing.
// The cluster's own clock does not count for less than since when it was seen to be ready.
func (l Look) Runs(variant string, minReady time.Duration, ready time.Time) Verdict {
	part, wanted := l.Set.Part(variant, l.Cluster)
	report, there := l.Seen.Variants[variant]
	switch {
	case l.Seen.Edit < l.Edit:
		return Verdict{Message: told(l.Seen.Unapplied, "waiting for cluster %q to report on what it is to run", l.Cluster)}
	case !wanted && !there:
		return Verdict{Done: true, Ready: true}
	case !wanted:
		return Verdict{Message: fmt.Sprintf("waiting for the %s to be gone from cluster %q", variant, l.Cluster)}
	case report.Failure != "":
		return Verdict{Failed: true, Message: fmt.Sprintf("cluster %q refuses the %s of %s: %s", l.Cluster, variant, part.Revision.Name, delivery.Said(report.Failure))}
	case report.Fingerprint != part.Fingerprint():
		return Verdict{Message: told(report.Waiting, "waiting for cluster %q to apply the %s of %s", l.Cluster, variant, part.Revision.Name)}
	case !report.Current:
		return Verdict{Message: fmt.Sprintf("waiting for the controllers of cluster %q to see the %s of %s", l.Cluster, variant, part.Revision.Name)}
	case !report.Ready:
		return Verdict{Message: told(report.Waiting, "waiting for the %s of %s to be ready in cluster %q", variant, part.Revision.Name, l.Cluster)}
	}
	if ready.IsZero() {
		ready = l.Now
	}
	if report.ReadySince.After(ready) && !report.ReadySince.After(l.Now) {
		ready = report.ReadySince
	}
	if at := ready.Add(minReady); l.Now.Before(at) {
		return Verdict{Ready: true, At: at, Message: fmt.Sprintf("the %s of %s has to be ready in cluster %q for %s", variant, part.Revision.Name, l.Cluster, minReady)}
	}
	return Verdict{Done: true, Ready: true}
}

// told says what is waited for, and why it has not come about, if that is known.
func told(why, format string, args ...any) string {
	out := fmt.Sprintf(format, args...)
	if why != "" {
		out += ": " + delivery.Said(why)
	}
	return out
}

// Routes says whether the cluster is proven to share out its traffic as the set says.
func (l Look) Routes() Verdict {
	if l.Seen.Edit < l.Edit {
		return Verdict{Message: fmt.Sprintf("waiting for cluster %q to report on the shares of the traffic", l.Cluster)}
	}
	shares := l.Set.Shares(l.Cluster)
	for _, name := range slices.Sorted(maps.Keys(l.Seen.Variants)) {
		if _, named := shares[name]; !named && l.Seen.Variants[name].Weight > 0 {
			return Verdict{Message: fmt.Sprintf("waiting for cluster %q to take the traffic from variant %s", l.Cluster, delivery.Said(name))}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(shares)) {
		if share := shares[name]; l.Seen.Variants[name].Weight != share {
			return Verdict{Message: told(l.Seen.Unrouted, "waiting for cluster %q to send %d%% of the traffic to the %s", l.Cluster, share, name)}
		}
	}
	return Verdict{Done: true, Ready: true}
}
