package clusters

import (
	"context"
	"fmt"

	"k8s.io/klog/v2"

	"github.com/manifold-dev/manifold/pkg/clusters/rights"
)

// learnSurplus learns whether the credential has more rights than are needed, as one has that an earlier version made.
func (l *live) learnSurplus(ctx context.Context) {
	surplus, err := rights.Excess(ctx, l.connection.Client)
	if err != nil {
		klog.FromContext(ctx).V(2).Info("Cannot ask for rights that are not needed; trying again", "err", err)
		return
	}
	s := l.session
	s.mu.Lock()
	changed := s.surplus != surplus
	s.surplus = surplus
	s.mu.Unlock()
	if changed {
		s.manager.status.Add(s.cluster.Name)
	}
}

// hasSurplus says which rights are not needed and how the cluster takes them away. The caller holds the lock.
func (s *session) hasSurplus() string {
	return fmt.Sprintf("the credential has more rights than it needs: it may %s; joining again takes that away: %s",
		s.surplus, s.manager.joinAgain(s.cluster.Name))
}
