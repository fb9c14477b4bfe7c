package applications

import (
	"context"
	"time"

	"k8s.io/klog/v2"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
)

// mostComparing bounds how long a repository may take to show the commit of the revision before, which mostly is here still.
const mostComparing = 30 * time.Second

// changes are the files by which a commit differs from that of the revision before, nil if that cannot be told or nobody asks: of the first revision,
// of one from another repository, and of one for which the application itself has changed. It is the revision before, be it released or not, so that
// the files from any revision to any other can be put together.
func (r *reader) changes(ctx context.Context, p *plan, before *v1alpha1.ApplicationRevision) *v1alpha1.RevisionChanges {
	if !p.byFiles || p.found.Since == nil || p.found.Origin == nil || before == nil || before.Spec.Origin == nil || !p.sameManner(before) {
		return nil
	}
	from, to := before.Spec.Origin, p.found.Origin
	if from.URL != to.URL || from.Commit == "" || from.Commit == to.Commit {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, mostComparing)
	defer cancel()
	found, err := p.found.Since(ctx, from.Commit)
	if err != nil {
		klog.FromContext(ctx).V(2).Info("Cannot tell which files a commit changes", "application", klog.KObj(p.app), "commit", to.Commit, "since", from.Commit, "err", err)
		return nil
	}
	return &v1alpha1.RevisionChanges{Since: before.Name, Files: found.Files, More: found.More}
}
