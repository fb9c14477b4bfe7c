package syncer

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/identity"
	"github.com/manifold-dev/manifold/pkg/placement"
	"github.com/manifold-dev/manifold/pkg/projection"
	"github.com/manifold-dev/manifold/pkg/summary"
)

// pace returns why this cluster is not to update its pods to the template yet, or "": replicas with numbers are updated from the highest
// on, one after another, and those that belong together over clusters must not go down together in several of them. So a cluster begins
// when all those with higher numbers are done. Whatever changes there wakes us.
func (s *Syncer) pace(w identity.Workload, live projection.Object, share placement.Share, decision placement.Decision) (reason string) {
	kind, ok := summary.ForResource(w.Kind.Resource)
	if !ok || !kind.Paced() || live == nil || len(decision) < 2 || !kind.RolloutOf(w.Object, share, live).Ahead {
		return ""
	}
	for _, cluster := range decision.Clusters() {
		if higher := decision[cluster]; higher.Start > share.Start && !s.Upstream.rolledOut(kind, w, cluster, higher) {
			return fmt.Sprintf("waits with its pods until those with higher ordinals are updated in %q", cluster)
		}
	}
	return ""
}

// turnOf returns why this cluster is not to update its pods yet, or "": so many of them as may be out of service at a time are those of the
// whole workload, and others have them.
func (s *Syncer) turnOf(w identity.Workload, live projection.Object, decision placement.Decision) (reason string) {
	kind, ok := summary.ForResource(w.Kind.Resource)
	if !ok || !kind.TakesTurns() || live == nil || len(decision) < 2 {
		return ""
	}
	lives := map[string]summary.Object{}
	for cluster := range decision {
		other, running := s.Upstream.Syncer(cluster)
		if !running || !other.HasSynced() {
			lives[cluster] = nil
			continue
		}
		if has := other.below.Get(w.Key()); has != nil && has.GetAnnotations()[v1alpha1.AnnotationUID] == string(w.GetUID()) {
			lives[cluster] = has
		}
	}
	behind := kind.Behind(w.Object, lives, s.cluster)
	if len(behind) == 0 {
		return ""
	}
	return fmt.Sprintf("waits with its pods until those in %s are updated: no more of all may be out of service", quoted(behind))
}

func quoted(names []string) string {
	out := make([]string, 0, len(names))
	for _, name := range names {
		out = append(out, strconv.Quote(name))
	}
	return strings.Join(out, ", ")
}

// rolledOut reports whether a cluster is known to have updated its share. One that is silent is not.
func (u *Upstream) rolledOut(kind summary.Kind, w identity.Workload, cluster string, share placement.Share) bool {
	s, ok := u.Syncer(cluster)
	if !ok || !s.HasSynced() {
		return false
	}
	live := s.below.Get(w.Key())
	return live != nil && kind.RolloutOf(w.Object, share, live).Done
}
