package reporting

import (
	"fmt"

	"github.com/manifold-dev/manifold/pkg/identity"
	"github.com/manifold-dev/manifold/pkg/projection"
	"github.com/manifold-dev/manifold/pkg/summary"
)

// tellRevision adds to a report of a projection, which the cluster's controllers have seen as it is, the revision that it is made of. The mark that says
// so can be written there by whoever administers the cluster. So it counts only for the revision that the cluster is to hold or was last known to, and
// with the hash of what that has.
func (r *Reporter) tellRevision(kind projection.Kind, above, live projection.Object, report *summary.Report) {
	name, hash := projection.MarkedRevision(live)
	if name == "" {
		return
	}
	last := identity.BreakdownOf(above)[r.Name]
	for _, given := range []identity.Revision{identity.RevisionIn(above, r.Name), {Name: last.Revision, Target: last.Target}} {
		if given.Name != name {
			continue
		}
		if is, err := r.Above.Versions.HashAt(kind, above, given); err == nil && is == hash {
			report.Revision, report.Target = given.Name, given.Target
			return
		}
	}
	report.Doubts = append(report.Doubts, summary.Text(fmt.Sprintf("it says that it holds revision %q, which it was not given", name)))
}
