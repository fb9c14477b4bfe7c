package applications

import (
	"fmt"
	"slices"
	"strings"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
)

const (
	// mostAsked bounds how many objects an application may have beside workloads for it to be told which of them are nowhere: each is looked for.
	mostAsked = 500
	// mostNowhere bounds how many are named.
	mostNowhere = 3
)

// nowhere says what of an application is in no cluster, although clusters could have it, "" if nothing is. It was applied, and no cluster can prove that it
// has it. Before its release has ended with success, things may be on their way.
func (r *reporter) nowhere(app *v1alpha1.Application, current *v1alpha1.Release) string {
	if r.isNowhere == nil || current == nil || current.Status.Phase != v1alpha1.ReleaseSucceeded {
		return ""
	}
	var others []content
	for _, of := range r.view.contentsOf(app) {
		if projectable, _ := of.kind.Projectable(of.object); projectable && !of.kind.Workload && !isCopy(of.object) {
			others = append(others, of)
		}
	}
	if len(others) > mostAsked {
		return ""
	}
	var names []string
	for _, of := range others {
		if r.isNowhere(of.kind, of.object) {
			names = append(names, of.kind.GVK.Kind+"/"+of.object.GetName())
		}
	}
	if len(names) == 0 {
		return ""
	}
	slices.Sort(names)
	more := ""
	if rest := len(names) - mostNowhere; rest > 0 {
		names, more = names[:mostNowhere], fmt.Sprintf(" and %d more", rest)
	}
	return fmt.Sprintf("in no cluster, since nothing that is placed needs it: %s%s", strings.Join(names, ", "), more)
}
