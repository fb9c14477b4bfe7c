package reporting

import (
	"fmt"

	"github.com/manifold-dev/manifold/pkg/identity"
	"github.com/manifold-dev/manifold/pkg/projection"
	"github.com/manifold-dev/manifold/pkg/summary"
)

// tellRevision adds to a report of a projection, which the cluster's controllers have seen as it is, the revision that it is made of. The mark that says
// so can be written there by whoever administers the cluster. So it counts only for the revision that the cluster is to hold or was last known to, and
// with the hash of what that has. A workload tells besides what the cluster lacks of the revision that it is to hold.
func (r *Reporter) tellRevision(kind projection.Kind, key identity.Key, above, live projection.Object, report *summary.Report) {
	name, hash := projection.MarkedRevision(live)
	if name == "" {
		return
	}
	is := func(given identity.Revision) bool {
		if given.Name != name {
			return false
		}
		content, err := r.Above.Versions.HashAt(kind, above, given)
		if err != nil || content != hash {
			return false
		}
		report.Revision, report.Target = given.Name, given.Target
		return true
	}
	at := identity.RevisionIn(above, r.Name)
	given := is(at)
	if given && !kind.Workload {
		return // as almost always, and what is known of all clusters is not read for each of them
	}
	last := identity.BreakdownOf(above)[r.Name]
	if given {
		report.Lacks = r.beside.lacks(key, at, last.Revision == at.Name && last.Target == at.Target && last.Lacks == "")
		return
	}
	if is(identity.Revision{Name: last.Revision, Target: last.Target}) {
		return
	}
	report.Doubts = append(report.Doubts, summary.Text(fmt.Sprintf("it says that it holds revision %q, which it was not given", name)))
}
