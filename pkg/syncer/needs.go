package syncer

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/cache"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/identity"
	"github.com/manifold-dev/manifold/pkg/projection"
	"github.com/manifold-dev/manifold/pkg/syncer/steps"
)

var ingressResource = networkingv1.SchemeGroupVersion.WithResource("ingresses")

// reasonLacking is that of the events about what a workload names and its cluster does not have of it.
const reasonLacking = "DependentMissing"

// Pods use what their cluster has under the names that they give, whoever put it there. So a workload comes into a cluster, or changes there
// into something that makes other pods, only when all that it names is there and is ours. That is also the order in which things are made.
// What pods use that run already is not taken from them. An Ingress has its controller use Secrets in the same way.

// lack is what a workload is held back for. The zero value is nothing.
type lack struct {
	// problem is for the user; "" for what is only on its way.
	problem string
	// waits tells that something is on its way, and polls that nothing will wake us when it is there.
	waits, polls bool
}

// Each kind has its own watch, so what was made before a workload may be seen after it. On one cluster it is there. So a step is tried again
// this often, within 350 ms, before a user is told that something does not exist, and once before pods begin without something that may be
// missing.
const (
	requiredTries = 3
	optionalTries = 1
)

func (l lack) some() bool { return l.waits || l.problem != "" }

// heldBack reports whether a projection that leads to pods has to wait, for what they name or for overrides that are admitted. It tells the user
// why, unless it takes a moment only.
func (s *Syncer) heldBack(ctx context.Context, w identity.Workload, desired, live projection.Object) (bool, error) {
	refused, err := s.refusedAbove(ctx, w, desired)
	if err != nil {
		return false, err
	}
	if refused != "" {
		s.hold(w.Key(), w.Object, reasonOverrideRefused, refused)
		s.queue.AddAfter(w.Key(), steps.ConflictRetry)
		return true, nil
	}
	found, err := s.lacking(ctx, w, desired, live)
	if err != nil || !found.some() {
		return false, err
	}
	if found.problem != "" {
		if !w.Kind.Workload {
			found.problem = fmt.Sprintf("%s is held back: %s", named(w.Kind, w.Key()), found.problem) // workloads are told as well
		}
		s.hold(w.Key(), w.Object, reasonLacking, found.problem)
	}
	if found.polls {
		s.queue.AddAfter(w.Key(), steps.ConflictRetry)
	}
	return true, nil
}

// hold makes a problem visible for which a cluster stays as it is with a workload, until there is a change here or elsewhere.
func (s *Syncer) hold(key identity.Key, above projection.Object, reason, message string) {
	s.fail(key, above, reason, message)
	s.mu.Lock()
	defer s.mu.Unlock()
	if st, ok := s.states[key]; ok {
		st.held = true
		s.states[key] = st
	}
}

// lacking returns what a projection names and the cluster does not have of ours. A problem goes before what is on its way.
func (s *Syncer) lacking(ctx context.Context, w identity.Workload, desired, live projection.Object) (lack, error) {
	s.unwait(w.Key())
	var out lack
	for _, ref := range s.usedBy(w.Kind, desired) {
		found, err := s.lacks(ctx, w.Key(), ref)
		if err != nil {
			return lack{}, err
		}
		if found.problem != "" {
			return found, nil
		}
		out.waits = out.waits || found.waits
	}
	if problem := s.takenClaim(w, desired, live); problem != "" {
		return lack{problem: problem, polls: true}, nil
	}
	if !out.waits {
		s.unwait(w.Key())
	}
	return out, nil
}

// usedByName are the kinds of which pods use an object by its name.
var usedByName = []string{"configmaps", "persistentvolumeclaims", "secrets", "serviceaccounts"}

// usedBy returns what the pods of a projection use by name, with what their ServiceAccount brings them.
func (s *Syncer) usedBy(kind projection.Kind, desired projection.Object) []projection.Reference {
	var out []projection.Reference
	for _, ref := range kind.References(desired) {
		if !slices.Contains(usedByName, ref.Resource.Resource) {
			continue
		}
		if ref.Resource.Resource == "serviceaccounts" {
			if account := s.Upstream.Get(identity.KeyOfReference(ref)); account != nil {
				out = append(out, projection.References(account)...)
			}
		}
		out = append(out, ref)
	}
	return out
}

// lacks returns why a cluster does not have what a workload names, the zero lack if it has.
func (s *Syncer) lacks(ctx context.Context, workload identity.Key, ref projection.Reference) (lack, error) {
	key := identity.KeyOfReference(ref)
	kind, _ := projection.ForResource(key.Resource)
	above := s.Upstream.Get(key)
	never := ""
	if above != nil {
		_, never = kind.Projectable(above)
	}
	switch {
	case projection.OfEveryCluster(ref) && (above == nil || never != "" || projection.NamespaceShared(key.Namespace)):
		return lack{}, nil
	case above == nil || !kind.Lives(above) || never != "" && ref.Optional:
		return s.absent(ctx, workload, kind, ref)
	case kind.Mirror(above):
		return s.lacksMirrored(above, key), nil
	case never != "":
		return lack{problem: fmt.Sprintf("it names %s, which is never there: %s", named(kind, key), never)}, nil
	}
	if s.provides(key, above) {
		return lack{}, nil
	}
	st := s.await(key, workload)
	switch {
	case st.problem != "":
		return lack{problem: fmt.Sprintf("it waits for %s: %s", named(kind, key), st.problem)}, nil
	case s.provides(key, above): // by now
		return lack{}, nil
	case st.hash != "" && st.uid == above.GetUID() && s.below.Get(key) == nil:
		return lack{}, nil // it was made a moment ago, and the watch has not shown it
	case !s.Upstream.wanted(kind, above, s.cluster):
		return lack{problem: fmt.Sprintf("it names %s, which nothing brings there, as only an override names it: annotate that with %s=%s",
			named(kind, key), v1alpha1.AnnotationClusters, s.cluster)}, nil
	}
	s.enqueue(key)
	return lack{waits: true}, nil
}

// provides reports whether the cluster has the projection of an object.
func (s *Syncer) provides(key identity.Key, above projection.Object) bool {
	live := s.below.Get(key)
	if live == nil || live.GetDeletionTimestamp() != nil {
		return false
	}
	origin, _ := projection.OriginOf(live)
	return origin == projection.Origin{
		LogicalCluster: s.target.LogicalCluster, Namespace: key.Namespace, Name: key.Name, UID: above.GetUID(),
	}
}

// named writes an object as messages show it.
func named(kind projection.Kind, key identity.Key) string {
	return kind.GVK.Kind + " " + key.Namespace + "/" + key.Name
}

// absent is about something that does not exist in the logical cluster, so that whatever has its name in this one is somebody else's.
func (s *Syncer) absent(ctx context.Context, workload identity.Key, kind projection.Kind, ref projection.Reference) (lack, error) {
	key := identity.KeyOfReference(ref)
	s.await(key, workload)
	tries := requiredTries
	if ref.Optional {
		tries = optionalTries
	}
	if s.queue.NumRequeues(workload) < tries {
		return lack{}, errNotYet
	}
	if !ref.Optional {
		return lack{problem: fmt.Sprintf("it names %s, which does not exist: create it, or take the name out", named(kind, key))}, nil
	}
	taken, err := s.taken(ctx, kind, key)
	if err != nil || !taken {
		return lack{}, err
	}
	return lack{polls: true, problem: fmt.Sprintf("it names %s, which does not exist in the logical cluster, while the cluster has one that Manifold does not own: "+
		"delete or rename it there, or take the name out", named(kind, key))}, nil
}

// taken reports whether a name is somebody else's in the cluster, by an attempt to make something of it that changes nothing. What is not ours is
// not watched, and may not be readable either.
func (s *Syncer) taken(ctx context.Context, kind projection.Kind, key identity.Key) (bool, error) {
	blank := kind.New()
	blank.SetNamespace(key.Namespace)
	blank.SetName(key.Name)
	blank.SetUID(types.UID(s.target.LogicalCluster))
	desired, err := kind.Project(blank, projection.Part{}, s.target)
	if err != nil {
		return false, err
	}
	err = s.rest(kind).Post().
		NamespaceIfScoped(key.Namespace, kind.Namespaced).Resource(kind.Resource.Resource).
		VersionedParams(&metav1.CreateOptions{FieldManager: v1alpha1.FieldManager, DryRun: []string{metav1.DryRunAll}}, scheme.ParameterCodec).
		Body(desired).Do(ctx).Error()
	switch {
	case apierrors.IsAlreadyExists(err):
		return s.below.Get(key) == nil, nil // ours is about to go
	case apierrors.IsNotFound(err): // the namespace is not there
		return false, nil
	}
	return false, err
}

// lacksMirrored is about a claim that a controller in some cluster has made.
func (s *Syncer) lacksMirrored(above projection.Object, key identity.Key) lack {
	claim, ok := above.(*corev1.PersistentVolumeClaim)
	if !ok {
		return lack{}
	}
	live := s.below.Claim(cache.ObjectName{Namespace: key.Namespace, Name: key.Name})
	if identity.ShownFrom(claim) == s.cluster && live != nil && live.UID == claim.UID {
		return lack{}
	}
	return lack{polls: true, problem: fmt.Sprintf("it names PersistentVolumeClaim %s/%s, which is in cluster %q: run it there",
		key.Namespace, key.Name, identity.ShownFrom(claim))}
}

// takenClaim returns the problem of a workload whose replicas would find a claim of somebody else under the name of theirs, "" if there is
// none. In a namespace of ours there is nobody else who makes such.
func (s *Syncer) takenClaim(w identity.Workload, desired, live projection.Object) string {
	if !projection.NamespaceShared(w.GetNamespace()) || len(w.Kind.ClaimTemplates(desired)) == 0 {
		return ""
	}
	for _, claim := range s.below.ClaimsNamedAfter(w.GetNamespace(), w.GetName()) {
		ordinal, uses := w.Kind.ClaimOrdinal(desired, claim.Name)
		if !uses || !numbersOf(w.Kind, desired).Contains(ordinal) || live != nil && numbersOf(w.Kind, live).Contains(ordinal) {
			continue
		}
		if _, ours := projection.OriginOf(claim); ours {
			continue
		}
		if shown := s.Upstream.Get(identity.Key{Resource: claimResource, Namespace: claim.Namespace, Name: claim.Name}); shown == nil || shown.GetUID() != claim.UID {
			return fmt.Sprintf("it would use PersistentVolumeClaim %s/%s, which the cluster has and Manifold does not own: delete it there, "+
				"or use another name", claim.Namespace, claim.Name)
		}
	}
	return ""
}

// await notes that a workload waits for an object, and returns how that stands: what becomes of it from now on wakes the workload.
func (s *Syncer) await(object, workload identity.Key) state {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.waitedFor[object] == nil {
		s.waitedFor[object] = map[identity.Key]struct{}{}
	}
	s.waitedFor[object][workload] = struct{}{}
	s.waitsFor[workload] = append(s.waitsFor[workload], object)
	return s.states[object]
}

// wakeWaiting has workloads looked at again that wait for an object.
func (s *Syncer) wakeWaiting(object identity.Key) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for workload := range s.waitedFor[object] {
		s.enqueue(workload)
	}
}

// unwait forgets what a workload waits for.
func (s *Syncer) unwait(workload identity.Key) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, object := range s.waitsFor[workload] {
		delete(s.waitedFor[object], workload)
		if len(s.waitedFor[object]) == 0 {
			delete(s.waitedFor, object)
		}
	}
	delete(s.waitsFor, workload)
}
