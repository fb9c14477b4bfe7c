// Package automation says which revision an application is to run, which release brings it there, and what of its history may go.
package automation

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/delivery"
)

// State is what there is of an application.
type State struct {
	Application *v1alpha1.Application
	// Targets are those that it has, be it by the file beside its manifests.
	Targets []v1alpha1.Target
	// Revisions are its revisions without chunks, in any order, and Releases its releases.
	Revisions []*v1alpha1.ApplicationRevision
	Releases  []*v1alpha1.Release
	// Clusters are those that there are, and Unready those that are not known to be well. Without any, no target follows its clusters.
	Clusters map[string]delivery.Cluster
	Unready  map[string]bool
	// Parts is how many chunks and Secrets hold the manifests of a revision beside itself, by its number. It counts for the history alone.
	Parts map[int64]int
}

// Latest is the newest revision, nil if there is none.
func (s State) Latest() *v1alpha1.ApplicationRevision {
	var out *v1alpha1.ApplicationRevision
	for _, revision := range s.Revisions {
		if out == nil || revision.Spec.Number > out.Spec.Number {
			out = revision
		}
	}
	return out
}

// revision is the one of a name, nil if there is none.
func (s State) revision(name string) *v1alpha1.ApplicationRevision {
	for _, revision := range s.Revisions {
		if revision.Name == name {
			return revision
		}
	}
	return nil
}

// Live is the name of the revision that was last released with success to all targets. What was known before counts where no release is left that
// tells.
func (s State) Live() string {
	var last *v1alpha1.Release
	for _, release := range s.Releases {
		status := &release.Status
		done := status.Phase == v1alpha1.ReleaseSucceeded || status.Phase == v1alpha1.ReleaseRolledBack
		if !done || !release.Spec.Whole() || status.EndTime == nil {
			continue
		}
		if last == nil || cmp.Or(last.Status.EndTime.Compare(status.EndTime.Time), begunBefore(last, release)) < 0 {
			last = release
		}
	}
	switch {
	case last == nil:
		return s.Application.Status.LiveRevision
	case last.Status.Phase == v1alpha1.ReleaseRolledBack:
		return last.Status.BeforeRevision
	}
	return last.Spec.Revision
}

// Current is the release that tells how the application is: the one that runs, or the newest that has begun, or the newest.
func (s State) Current() *v1alpha1.Release {
	var out *v1alpha1.Release
	rank := func(r *v1alpha1.Release) int {
		switch {
		case r.Status.Phase == v1alpha1.ReleaseRunning || r.Status.Phase == v1alpha1.ReleaseRollingBack:
			return 2
		case begun(r) && r.Status.Phase != v1alpha1.ReleaseSuperseded:
			return 1
		}
		return 0
	}
	for _, release := range s.Releases {
		if out == nil || rank(release) > rank(out) || rank(release) == rank(out) && begunBefore(out, release) < 0 {
			out = release
		}
	}
	return out
}

// Open is the release that runs, or the newest of those that wait; nil if all have ended.
func (s State) Open() *v1alpha1.Release {
	if current := s.Current(); current != nil && begun(current) && !current.Status.Phase.Ended() {
		return current
	}
	return s.newest(func(r *v1alpha1.Release) bool { return !r.Status.Phase.Ended() })
}

// begun reports whether a release has changed what the application is to run.
func begun(release *v1alpha1.Release) bool {
	return release.Status.Sequence > 0 || release.Status.StartTime != nil
}

// begunBefore orders releases from the one that has begun first.
func begunBefore(a, b *v1alpha1.Release) int {
	return cmp.Or(cmp.Compare(a.Status.Sequence, b.Status.Sequence), older(a, b))
}

// older orders releases from the oldest. Of those that were made in the same second, where no more is told of it, the order in which they have
// begun counts, and one that has not begun comes last.
func older(a, b *v1alpha1.Release) int {
	return cmp.Or(v1alpha1.CompareMade(a, b), cmp.Compare(turn(a), turn(b)), cmp.Compare(a.Name, b.Name))
}

// turn is the place of a release among those that begin.
func turn(release *v1alpha1.Release) int64 {
	if release.Status.Sequence == 0 {
		return math.MaxInt64
	}
	return release.Status.Sequence
}

// newest is the newest release of those that fit, nil if none does.
func (s State) newest(fits func(*v1alpha1.Release) bool) *v1alpha1.Release {
	var out *v1alpha1.Release
	for _, release := range s.Releases {
		if fits(release) && (out == nil || older(out, release) < 0) {
			out = release
		}
	}
	return out
}

// chosen is the release by which somebody has last chosen a revision for all targets, nil if nobody has.
func (s State) chosen() *v1alpha1.Release {
	return s.newest(func(r *v1alpha1.Release) bool {
		never := !begun(r) && r.Status.Phase == v1alpha1.ReleaseFailed // there is no such revision
		return r.Spec.TriggeredBy.ByPerson() && r.Spec.Whole() && r.Status.Phase != v1alpha1.ReleaseCancelled && r.Status.Phase != v1alpha1.ReleaseSuperseded && !never
	})
}

// takenBack reports whether somebody has asked to put back what was there before a release, and that is done or on its way.
func takenBack(release *v1alpha1.Release) bool {
	status := &release.Status
	return (status.Phase == v1alpha1.ReleaseRollingBack || status.Phase == v1alpha1.ReleaseRolledBack) && status.BeforeRevision != "" &&
		slices.ContainsFunc(status.Requests, func(r v1alpha1.ReleaseRequest) bool {
			return r.Type == v1alpha1.RequestRollback || r.Type == v1alpha1.RequestCancel && r.Rollback
		})
}

// asked is the revision that somebody asks for with a release: what it releases, or what was there before it if they have taken it back.
func asked(release *v1alpha1.Release) string {
	if takenBack(release) {
		return release.Status.BeforeRevision
	}
	return release.Spec.Revision
}

// Wanted is the name of the revision that the application is to run, empty if nobody says, and why. A pin comes first; then what somebody has
// released or gone back to, until a newer revision than all that there were is made; then, unless releases are made by hand alone, the newest. Those
// that are not released by themselves do not count.
func (s State) Wanted() (revision string, cause v1alpha1.ReleaseCause) {
	if pin := s.Application.Spec.Revision; pin != "" {
		return pin, v1alpha1.CausePin
	}
	due, chosen := s.due(), s.chosen()
	manual := s.Application.ByHand()
	switch {
	case chosen != nil && (manual || due == nil || v1alpha1.CompareMade(chosen, due) >= 0):
		return asked(chosen), v1alpha1.CauseCommand
	case manual || due == nil:
		return s.Live(), v1alpha1.CauseCommand
	}
	return due.Name, v1alpha1.CauseRevision
}

// Next is the release that automation has to make now, nil if there is none, and why there is none where something is wrong.
func (s State) Next() (*v1alpha1.Release, string) {
	if release, wrong := s.dueRelease(); release != nil || wrong != "" {
		return release, wrong
	}
	return s.follow(), ""
}

// dueRelease is the release of the revision that the application is to run.
func (s State) dueRelease() (*v1alpha1.Release, string) {
	wanted, cause := s.Wanted()
	if s.Application.Spec.Suspend || wanted == "" || cause == v1alpha1.CauseCommand {
		return nil, ""
	}
	revision := s.revision(wanted)
	if revision == nil {
		return nil, fmt.Sprintf("spec.revision: there is no revision %s", wanted)
	}
	targets := Fingerprint(s.Targets)
	last := s.newest(automatic)
	switch {
	case last != nil && last.Spec.Revision == wanted && last.Annotations[v1alpha1.AnnotationTargets] == targets && !s.pinnedAgain(last, cause):
		return nil, ""
	case s.covered(wanted, last):
		return nil, ""
	}
	message := wanted + " is new"
	switch {
	case cause == v1alpha1.CausePin:
		message = "the application is pinned to " + wanted
	case last != nil && last.Spec.Revision == wanted:
		cause, message = v1alpha1.CauseTargets, "the targets of the application have changed"
	}
	return s.release(revision, cause, targets, message, last), ""
}

// automatic reports whether automation has made a release of what the application is to run.
func automatic(release *v1alpha1.Release) bool {
	return !release.Spec.TriggeredBy.ByPerson() && !release.Follows()
}

// pinnedAgain reports whether something else was released since automation has released what is pinned.
func (s State) pinnedAgain(last *v1alpha1.Release, cause v1alpha1.ReleaseCause) bool {
	chosen := s.chosen()
	return cause == v1alpha1.CausePin && chosen != nil && older(last, chosen) < 0 && chosen.Spec.Revision != last.Spec.Revision && chosen.Status.Phase.Ended()
}

// covered reports whether somebody has released what automation would, since its last release.
func (s State) covered(wanted string, last *v1alpha1.Release) bool {
	chosen := s.chosen()
	if chosen == nil || chosen.Spec.Revision != wanted || last != nil && older(chosen, last) < 0 {
		return false
	}
	return !chosen.Status.Phase.Ended() || chosen.Status.Phase == v1alpha1.ReleaseSucceeded
}

// release is that of a revision. Its name follows from what it is for, so that it is made once, whoever makes it.
func (s State) release(of *v1alpha1.ApplicationRevision, cause v1alpha1.ReleaseCause, targets, message string, last *v1alpha1.Release, more ...string) *v1alpha1.Release {
	parts := append([]string{string(s.Application.UID), of.Name, of.Spec.Hash, targets}, more...)
	if last != nil {
		parts = append(parts, last.Name, string(last.UID))
	}
	if chosen := s.chosen(); chosen != nil {
		parts = append(parts, chosen.Name, string(chosen.UID))
	}
	return &v1alpha1.Release{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: s.Application.Namespace, Name: s.Application.Name + "-" + hashOf(parts)[:8],
			Labels:          map[string]string{v1alpha1.LabelApplication: s.Application.Name},
			Annotations:     map[string]string{v1alpha1.AnnotationTargets: targets},
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(s.Application, v1alpha1.SchemeGroupVersion.WithKind("Application"))},
		},
		Spec: v1alpha1.ReleaseSpec{
			Application: s.Application.Name, Revision: of.Name, TriggeredBy: v1alpha1.ReleaseTrigger{Cause: cause, Message: message},
		},
	}
}

// Fingerprint tells lists of targets apart by where they lead. What they have is a part of the revision.
func Fingerprint(targets []v1alpha1.Target) string {
	type place struct {
		Name, Cluster string
		Selector      *metav1.LabelSelector
		Weight        *int32
	}
	var out []place
	for _, target := range targets {
		out = append(out, place{target.Name, target.Cluster, target.ClusterSelector, target.Weight})
	}
	slices.SortFunc(out, func(a, b place) int { return cmp.Compare(a.Name, b.Name) })
	content, _ := json.Marshal(out) // texts and numbers always marshal
	return hashOf([]string{string(content)})[:16]
}

func hashOf(parts []string) string {
	sum := sha256.New()
	for _, part := range parts {
		sum.Write([]byte(part + "\x00"))
	}
	return hex.EncodeToString(sum.Sum(nil))
}
