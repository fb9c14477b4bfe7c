package reporting

import (
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/manifold-dev/manifold/internal/heard"
	"github.com/manifold-dev/manifold/pkg/identity"
	"github.com/manifold-dev/manifold/pkg/placement"
	"github.com/manifold-dev/manifold/pkg/projection"
	"github.com/manifold-dev/manifold/pkg/summary"
	"github.com/manifold-dev/manifold/pkg/syncer/mirrors"
)

// enforcesPodSecurity is the label of a namespace that has pods refused which ask for too much.
const enforcesPodSecurity = "pod-security.kubernetes.io/enforce"

// refusals are what events tell of pods that could not be made, by the UID of what they are for. The statuses of some kinds do not tell.
type refusals struct {
	mu    sync.Mutex
	byUID map[types.UID]refused
}

type refused struct {
	since time.Time
	says  string
}

// of returns the refusal that is known of an object.
func (r *refusals) of(uid types.UID) refused {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.byUID[uid]
}

func (r *refusals) forget(uid types.UID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.byUID, uid)
}

// note takes an event into account, and reports whether it is news.
func (r *refusals) note(event *corev1.Event, since time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	uid := event.InvolvedObject.UID
	known, refuses := r.byUID[uid]
	switch {
	case event.Reason == mirrors.SuccessfulCreate && refuses && !mirrors.LastSeen(event).Before(known.since):
		delete(r.byUID, uid)
		return true
	case event.Reason == mirrors.FailedCreate && !refuses:
		r.byUID[uid] = refused{since, event.Message}
		return true
	}
	return false
}

// PodsRefused takes an event of the cluster into account that tells of a pod which could not be made, or was made after all. Since is
// when that began.
func (r *Reporter) PodsRefused(event *corev1.Event, since time.Time) {
	if event.Reason != mirrors.FailedCreate && event.Reason != mirrors.SuccessfulCreate {
		return
	}
	kind, ok := identity.KindNamed(event.InvolvedObject)
	if !ok || !kind.Workload || !Summarised(kind) {
		return
	}
	key := identity.Key{Resource: kind.Resource, Namespace: event.InvolvedObject.Namespace, Name: event.InvolvedObject.Name}
	live := r.Below.Get(key)
	if live == nil || live.GetUID() != event.InvolvedObject.UID {
		return // none of ours, or not shown yet: controllers try again
	}
	if r.refusals.note(event, since) {
		r.Changed(key, false)
	}
}

// Refused tells of pods that the cluster does not let be made for a reason of its own, and nil if there are none. What bounds them above as
// well, and is the same everywhere, is no such reason.
func (r *Reporter) Refused(kind summary.Kind, live projection.Object) *placement.Refusal {
	if !kind.Observed(live) {
		return nil
	}
	missing := kind.Missing(live)
	if missing.Pods == 0 {
		r.refusals.forget(live.GetUID())
		return nil
	}
	if missing.Says == "" {
		told := r.refusals.of(live.GetUID())
		missing.Since, missing.Says = told.since.UTC(), told.says
	}
	says, own := heard.Refusal(missing.Says)
	if !own || r.boundAbove(live.GetNamespace(), says) {
		return nil
	}
	missing.Says = summary.Text(says)
	return &missing
}

// boundAbove reports whether a refusal is by what the logical cluster has sent.
func (r *Reporter) boundAbove(namespace, says string) bool {
	if quota := heard.Quota(says); quota != "" {
		return r.Below.Holds(identity.Key{Resource: corev1.SchemeGroupVersion.WithResource("resourcequotas"), Namespace: namespace, Name: quota})
	}
	switch {
	case heard.ByLimitRange(says):
		limits, _ := r.Below.Stores[corev1.SchemeGroupVersion.WithResource("limitranges")].ByIndex(cache.NamespaceIndex, namespace)
		return len(limits) > 0
	case heard.ByPodSecurity(says):
		above, err := r.Above.Namespaces.Get(namespace)
		return err == nil && above.Labels[enforcesPodSecurity] != ""
	}
	return false
}
