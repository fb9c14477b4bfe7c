// Package lacking says what pods that are to be made in a cluster would lack there, of what they name.
//
// Pods use what their cluster has under the names that they give, whoever put it there. So a workload comes into a cluster, or changes there
// into something that makes other pods, only when all that it names is there and is ours. That is also the order in which things are made.
// What pods use that run already is not taken from them. An Ingress has its controller use Secrets in the same way.
//
// In a namespace that clusters share, what may be missing is left out of projections while it does not exist above. Whatever is still named has to be
// there, since somebody else may make it later, and so have the Services that an Ingress or endpoints lead to and the claims that are copied.
package lacking

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/cache"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/internal/typed"
	"github.com/manifold-dev/manifold/pkg/identity"
	"github.com/manifold-dev/manifold/pkg/projection"
	"github.com/manifold-dev/manifold/pkg/syncer/logical"
	"github.com/manifold-dev/manifold/pkg/syncer/steps"
	"github.com/manifold-dev/manifold/pkg/syncer/trust"
	"github.com/manifold-dev/manifold/pkg/syncer/writer"
)

// Reason is that of the events about what a workload names and its cluster does not have of it.
const Reason = "DependentMissing"

// Options say what is asked about what workloads name.
type Options struct {
	*trust.Cluster
	Above  *logical.Cluster
	Client kubernetes.Interface // of the cluster
	Queue  *steps.Queue[identity.Key]
	// Fail makes a problem with an object visible.
	Fail func(key identity.Key, above projection.Object, reason, message string)
	// Overrides returns what the policy of a workload changes of it in a cluster, and Admits a RefusedError for a pod that the admission of the
	// logical cluster refuses. They may be nil.
	Overrides func(kind projection.Kind, above projection.Object, cluster string) (projection.Overrides, error)
	Admits    func(ctx context.Context, pod *corev1.Pod) error
	// Awaited returns what of the Services of a namespace, and of where they lead in other clusters, this one is about to get, of what it does not
	// have. It may be nil.
	Awaited func(namespace, cluster string, has func(identity.Key) bool) []identity.Key
}

// Pods says what pods that are to be made in a cluster would lack there.
type Pods struct{ Options }

// New returns what pods of a cluster lack.
func New(o Options) *Pods { return &Pods{o} }

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
	RequiredTries = 3
	OptionalTries = 1
	// LedTries are how often a workload that comes to a cluster is tried again, within 3 s, until the cluster is led to what its pods may call.
	LedTries = 6
)

func (l lack) some() bool { return l.waits || l.problem != "" }

// HeldBack reports whether a projection that leads to pods has to wait, for what they name or until they are admitted above. It tells the user
// why, unless it takes a moment only.
func (c *Pods) HeldBack(ctx context.Context, w identity.Workload, desired, live projection.Object) (bool, error) {
	refused, err := c.refusedAbove(ctx, w, desired)
	if err != nil {
		return false, err
	}
	if refused.problem != "" {
		c.hold(w.Key(), w.Object, refused.reason, refused.problem)
		c.Queue.AddAfter(w.Key(), steps.ConflictRetry)
		return true, nil
	}
	found, err := c.lacking(ctx, w, desired, live)
	if err != nil || !found.some() {
		return false, err
	}
	if found.problem != "" {
		if !w.Kind.Workload {
			found.problem = fmt.Sprintf("%s is held back: %s", named(w.Kind, w.Key()), found.problem) // workloads are told as well
		}
		c.hold(w.Key(), w.Object, Reason, found.problem)
	}
	if found.polls {
		c.Queue.AddAfter(w.Key(), steps.ConflictRetry)
	}
	return true, nil
}

// Of returns what a custom workload names and the cluster does not have of ours: a problem for the user, or that something is on its way. Whoever
// makes its copies counts tries, and tells the user.
func (c *Pods) Of(ctx context.Context, w identity.Workload, desired projection.Object) (problem string, waits bool, err error) {
	found, err := c.lacking(ctx, w, desired, nil)
	return found.problem, found.waits, err
}

// hold makes a problem visible for which a cluster stays as it is with a workload, until there is a change here or elsewhere.
func (c *Pods) hold(key identity.Key, above projection.Object, reason, message string) {
	c.Fail(key, above, reason, message)
	c.States.Hold(key)
}

// lacking returns what a projection names and the cluster does not have of ours. A problem goes before what is on its way.
func (c *Pods) lacking(ctx context.Context, w identity.Workload, desired, live projection.Object) (lack, error) {
	c.States.Unwait(w.Key())
	if !w.Kind.Custom && c.Queue.NumRequeues(w.Key()) < OptionalTries && len(w.Kind.LeftOut(w.Object, nil, c.Above.Offers)) > 0 {
		return lack{}, writer.ErrNotYet // it may have been made a moment ago, and pods would be made twice
	}
	if live == nil && c.unled(w) {
		return lack{}, writer.ErrNotYet
	}
	var out lack
	for _, ref := range c.usedBy(w.Kind, desired) {
		found, err := c.lacks(ctx, w.Key(), ref)
		if err != nil {
			return lack{}, err
		}
		if found.problem != "" {
			return found, nil
		}
		out.waits = out.waits || found.waits
	}
	if found, err := c.lacksCopied(ctx, w, desired); err != nil || found.problem != "" {
		return found, err
	}
	if problem := c.takenClaim(w, desired, live); problem != "" {
		return lack{problem: problem, polls: true}, nil
	}
	if !out.waits {
		c.States.Unwait(w.Key())
	}
	return out, nil
}

// unled reports whether a workload is to wait a moment, because the cluster is about to get Services of its namespace, or slices that lead to their pods in
// other clusters: its pods may call these as soon as they run. What fails, and what takes longer, keeps nobody waiting.
func (c *Pods) unled(w identity.Workload) bool {
	if c.Awaited == nil || !w.Kind.Workload || w.Kind.Custom || c.Queue.NumRequeues(w.Key()) >= LedTries {
		return false
	}
	return len(c.Awaited(w.GetNamespace(), c.Name, func(key identity.Key) bool {
		st := c.States.Of(key)
		return c.Below.Get(key) != nil || st.Problem != "" || st.Hash != "" // which the watch is about to show
	})) > 0
}

// usedByName are the kinds of which pods use an object by its name.
var usedByName = []string{"configmaps", "persistentvolumeclaims", "secrets", "serviceaccounts"}

// usedBy returns what the pods of a projection use by name, with what their ServiceAccount brings them, or what anything else leads to.
func (c *Pods) usedBy(kind projection.Kind, desired projection.Object) []projection.Reference {
	shared := projection.NamespaceShared(desired.GetNamespace())
	named := kind.References(desired)
	if shared && !kind.Workload {
		named = append(named, kind.Follows(desired)...)
	}
	var out []projection.Reference
	for _, ref := range named {
		if !slices.Contains(usedByName, ref.Resource.Resource) && (kind.Workload || ref.Resource.Resource != "services") {
			continue
		}
		if ref.Resource.Resource == "serviceaccounts" {
			if account := c.Above.Get(identity.KeyOfReference(ref)); account != nil {
				out = append(out, c.pullSecrets(account)...)
			}
		}
		ref.Optional = ref.Optional && !shared
		out = append(out, ref)
	}
	return out
}

// pullSecrets are those that a ServiceAccount brings its pods.
func (c *Pods) pullSecrets(account projection.Object) []projection.Reference {
	named := projection.References(account)
	if projection.NamespaceShared(account.GetNamespace()) {
		named = slices.DeleteFunc(named, func(ref projection.Reference) bool { return !c.Above.Offers(ref) }) // as its projection
	}
	return named
}

// lacksCopied returns which claim the cluster does not have of ours that it is to copy the content of. In a namespace of ours it waits for one, and
// nobody else makes it.
func (c *Pods) lacksCopied(ctx context.Context, w identity.Workload, desired projection.Object) (lack, error) {
	if !projection.NamespaceShared(desired.GetNamespace()) {
		return lack{}, nil
	}
	kind, _ := projection.ForResource(identity.Claims)
	for _, ref := range w.Kind.Copied(desired) {
		key := identity.KeyOfReference(ref)
		above := c.Above.Get(key)
		var found lack
		switch {
		case above == nil || !kind.Lives(above):
			var err error
			if found, err = c.absent(ctx, w.Key(), kind, ref); err != nil {
				return lack{}, err
			}
		case kind.Mirror(above):
			found = c.lacksMirrored(above, key)
		case !c.provides(key, above):
			found = lack{polls: true, problem: fmt.Sprintf("it copies %s, which is not in this cluster: run it in the cluster that has it", named(kind, key))}
		}
		if found.problem != "" {
			return found, nil
		}
	}
	return lack{}, nil
}

// lacks returns why a cluster does not have what a workload names, the zero lack if it has.
func (c *Pods) lacks(ctx context.Context, workload identity.Key, ref projection.Reference) (lack, error) {
	key := identity.KeyOfReference(ref)
	kind, _ := projection.ForResource(key.Resource)
	above := c.Above.Get(key)
	never := ""
	if above != nil {
		_, never = kind.Projectable(above)
	}
	switch {
	case projection.OfEveryCluster(ref) && (above == nil || never != "" || projection.NamespaceShared(key.Namespace)):
		return lack{}, nil
	case above == nil || !kind.Lives(above) || never != "" && ref.Optional:
		return c.absent(ctx, workload, kind, ref)
	case kind.Mirror(above):
		return c.lacksMirrored(above, key), nil
	case never != "":
		return lack{problem: fmt.Sprintf("it uses %s, which is not sent to any cluster: %s", named(kind, key), never)}, nil
	}
	if c.provides(key, above) {
		return lack{}, nil
	}
	return c.toCome(workload, kind, key, ref, above), nil
}

// toCome returns why a cluster does not have an object yet that is to be projected into it.
func (c *Pods) toCome(workload identity.Key, kind projection.Kind, key identity.Key, ref projection.Reference, above projection.Object) lack {
	st := c.States.Await(key, workload)
	switch {
	case identity.AwaitsIn(above, c.Name) && ref.Optional:
		return lack{}
	case identity.AwaitsIn(above, c.Name):
		return lack{problem: fmt.Sprintf("it uses %s, which %s", named(kind, key), identity.Awaits(above))}
	case st.Problem != "":
		return lack{problem: fmt.Sprintf("it waits for %s: %s", named(kind, key), st.Problem)}
	case c.provides(key, above): // by now
		return lack{}
	case st.Hash != "" && st.UID == above.GetUID() && c.Below.Get(key) == nil:
		return lack{} // it was made a moment ago, and the watch has not shown it
	case identity.OfAnotherView(above, c.Name):
		return lack{problem: fmt.Sprintf("it uses %s, which was made through the view of cluster %q and is that cluster's alone",
			named(kind, key), above.GetAnnotations()[v1alpha1.AnnotationView])}
	case !c.Wanted(kind, above, c.Name):
		return lack{problem: fmt.Sprintf("it uses %s, which is not sent to this cluster%s: annotate it with %s=%s",
			named(kind, key), byOverride(key), v1alpha1.AnnotationClusters, c.Name)}
	}
	c.Queue.Add(key)
	return lack{waits: true}
}

// byOverride says why nothing brings what pods name.
func byOverride(key identity.Key) string {
	if key.Resource == identity.Services {
		return "" // what leads to a Service does not bring it
	}
	return " because only an override names it"
}

// provides reports whether the cluster has the projection of an object.
func (c *Pods) provides(key identity.Key, above projection.Object) bool {
	live := c.Below.Get(key)
	return live != nil && live.GetDeletionTimestamp() == nil && c.IsProjection(live, above)
}

// named writes an object as messages show it.
func named(kind projection.Kind, key identity.Key) string {
	return kind.GVK.Kind + " " + key.Namespace + "/" + key.Name
}

// absent is about something that does not exist in the logical cluster, so that whatever has its name in this one is somebody else's.
func (c *Pods) absent(ctx context.Context, workload identity.Key, kind projection.Kind, ref projection.Reference) (lack, error) {
	key := identity.KeyOfReference(ref)
	c.States.Await(key, workload)
	tries := RequiredTries
	if ref.Optional {
		tries = OptionalTries
	}
	if _, custom := c.Above.CustomKind(workload.Resource); !custom && c.Queue.NumRequeues(workload) < tries {
		return lack{}, writer.ErrNotYet
	}
	if !ref.Optional {
		return lack{problem: fmt.Sprintf("it uses %s, which does not exist: create it, or remove the reference", named(kind, key))}, nil
	}
	taken, err := c.taken(ctx, kind, key)
	if err != nil || !taken {
		return lack{}, err
	}
	return lack{polls: true, problem: fmt.Sprintf("it uses %s, which does not exist in the logical cluster, while this cluster has one that Manifold does not own: "+
		"delete or rename that one, or remove the reference", named(kind, key))}, nil
}

// taken reports whether a name is somebody else's in the cluster, by an attempt to make something of it that changes nothing. What is not ours is
// not watched, and may not be readable either.
func (c *Pods) taken(ctx context.Context, kind projection.Kind, key identity.Key) (bool, error) {
	blank := kind.New()
	blank.SetNamespace(key.Namespace)
	blank.SetName(key.Name)
	blank.SetUID(types.UID(c.LogicalCluster))
	desired, err := kind.Project(blank, projection.Part{}, c.Target())
	if err != nil {
		return false, err
	}
	client, err := typed.REST(c.Client, kind.Resource.GroupVersion())
	if err != nil {
		return false, err
	}
	err = client.Post().
		NamespaceIfScoped(key.Namespace, kind.Namespaced).Resource(kind.Resource.Resource).
		VersionedParams(&metav1.CreateOptions{FieldManager: v1alpha1.FieldManager, DryRun: []string{metav1.DryRunAll}}, scheme.ParameterCodec).
		Body(desired).Do(ctx).Error()
	switch {
	case apierrors.IsAlreadyExists(err):
		return c.Below.Get(key) == nil, nil // ours is about to go
	case apierrors.IsNotFound(err): // the namespace is not there
		return false, nil
	}
	return false, err
}

// lacksMirrored is about a claim that a controller in some cluster has made.
func (c *Pods) lacksMirrored(above projection.Object, key identity.Key) lack {
	claim, ok := above.(*corev1.PersistentVolumeClaim)
	if !ok {
		return lack{}
	}
	live := c.Below.Claim(cache.ObjectName{Namespace: key.Namespace, Name: key.Name})
	if identity.ShownFrom(claim) == c.Name && live != nil && live.UID == claim.UID {
		return lack{}
	}
	return lack{polls: true, problem: fmt.Sprintf("it uses PersistentVolumeClaim %s/%s, which is in cluster %q: run it there",
		key.Namespace, key.Name, identity.ShownFrom(claim))}
}

// takenClaim returns the problem of a workload whose replicas would find a claim of somebody else under the name of theirs, "" if there is
// none. In a namespace of ours there is nobody else who makes such.
func (c *Pods) takenClaim(w identity.Workload, desired, live projection.Object) string {
	if !projection.NamespaceShared(w.GetNamespace()) || len(w.Kind.ClaimTemplates(desired)) == 0 {
		return ""
	}
	for _, claim := range c.Below.ClaimsNamedAfter(w.GetNamespace(), w.GetName()) {
		ordinal, uses := w.Kind.ClaimOrdinal(desired, claim.Name)
		if !uses || !identity.OrdinalsIn(w.Kind, desired).Contains(ordinal) || live != nil && identity.OrdinalsIn(w.Kind, live).Contains(ordinal) {
			continue
		}
		if _, ours := projection.OriginOf(claim); ours {
			continue
		}
		if shown := c.Above.Get(identity.Key{Resource: identity.Claims, Namespace: claim.Namespace, Name: claim.Name}); shown == nil || shown.GetUID() != claim.UID {
			return fmt.Sprintf("it would use PersistentVolumeClaim %s/%s, which the cluster has and Manifold does not own: delete it there, "+
				"or use another name", claim.Namespace, claim.Name)
		}
	}
	return ""
}
