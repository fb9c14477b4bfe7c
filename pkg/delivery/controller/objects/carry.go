package objects

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	manifold "github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/generated/clientset/versioned"
	listers "github.com/manifold-dev/manifold/generated/listers/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/internal/work"
	"github.com/manifold-dev/manifold/pkg/delivery"
	"github.com/manifold-dev/manifold/pkg/delivery/observe"
	"github.com/manifold-dev/manifold/pkg/delivery/wanted"
)

// Carrier brings about what applications want in the logical cluster.
type Carrier struct {
	*Writer
	Policies listers.PlacementPolicyLister
	Manifold versioned.Interface
}

// Order is what is wanted of an application.
type Order struct {
	Account Account
	Owner   Owner
	Wanted  wanted.Wanted
	// Present is what is there of the application.
	Present []observe.Present
	// Edition tells orders apart that want the same object: one that was refused is tried again with another edition.
	Edition string
	// Prunes reports whether an object of the primary that is no longer wanted is deleted. Those of other variants are anyway.
	Prunes bool
	// Keeps reports whether the objects of a variant stay that the order does not name. Nil stands for none.
	Keeps func(variant string) bool
	// Clusters are those that run the primary, nil where placement decides that. What is no longer wanted and yet stays runs in no others.
	Clusters sets.Set[string]
	// Settled says that all was applied that is to be: what is gone since then was deleted by somebody, and is not made anew.
	Settled bool
	// AtOnce bounds how many objects are written before Memory is Unfinished. Zero stands for all.
	AtOnce int
	// Releases says that what still awaits a release somewhere is let go there: one has come to all targets.
	Releases bool
	// Drift says what of a difference counts, and whether it is put back.
	Drift Drift
	// Holds returns what a revision has of an object, by which clusters hold it. Nil stands for clusters that hold objects as they stand.
	Holds Holds
}

// Memory is what is remembered of an application between orders. It saves writes, and is built anew after a restart. One worker uses it at a time.
type Memory struct {
	written map[wanted.Key]written
	refused map[wanted.Key]refused
	drift   driftMemory
	// unfinished tells that there is more to write than was written at once.
	unfinished bool
}

// written is what was written of an object last, which the watch may not have shown yet.
type written struct {
	hash   string
	object metav1.Object
}

type refused struct{ token, why string }

// again is the token of what is tried again by every order.
const again = ""

// Again reports whether something was refused that may not be when it is tried again.
func (m *Memory) Again() bool {
	for _, r := range m.refused {
		if r.token == again {
			return true
		}
	}
	return false
}

// Unfinished reports whether there is more to write, which is for the next order.
func (m *Memory) Unfinished() bool { return m.unfinished }

// Failures say why objects were refused.
func (m *Memory) Failures() map[wanted.Key]string {
	out := make(map[wanted.Key]string, len(m.refused))
	for key, r := range m.refused {
		out[key] = r.why
	}
	return out
}

// Unwatched are the objects that were written and whose kind is not watched: nothing else is known of them.
func (m *Memory) Unwatched(store *Store, namespace string) []observe.Present {
	var out []observe.Present
	for key, w := range m.written {
		if _, watched := store.Get(namespace, key); !watched {
			out = append(out, observe.Present{Key: key, Object: w.object})
		}
	}
	return out
}

// Carry brings about what is wanted. It goes on where it stopped when it is asked again, and writes nothing that is so already. What was refused is
// remembered, and is no error.
func (c *Carrier) Carry(ctx context.Context, order Order, memory *Memory) error {
	if done, err := c.Bring(ctx, order, memory); err != nil || !done {
		return err
	}
	return c.Prune(ctx, order)
}

// Prune deletes what is no longer wanted.
func (c *Carrier) Prune(ctx context.Context, order Order) error {
	if err := c.prune(ctx, order); err != nil {
		return err
	}
	return c.prunePolicies(ctx, order)
}

// forget drops what is remembered of objects that are no longer wanted, or are wanted otherwise.
func forget(memory *Memory, order Order) {
	if memory.written == nil {
		memory.written, memory.refused = map[wanted.Key]written{}, map[wanted.Key]refused{}
	}
	hashes := map[wanted.Key]string{}
	for _, object := range order.Wanted.Objects {
		hashes[object.Key] = object.Hash
	}
	for key, w := range memory.written {
		if hashes[key] != w.hash {
			delete(memory.written, key)
		}
	}
	for key, r := range memory.refused {
		if r.token != token(order, hashes[key]) {
			delete(memory.refused, key)
		}
	}
}

func token(order Order, hash string) string { return order.Edition + "/" + hash }

// newer reports whether an object that the watch shows came after one that was written.
func newer(shown, stored metav1.Object) bool {
	if shown == nil {
		return false
	}
	a, err := strconv.ParseUint(shown.GetResourceVersion(), 10, 64)
	b, other := strconv.ParseUint(stored.GetResourceVersion(), 10, 64)
	return err != nil || other != nil || a >= b
}

// prune deletes what is no longer wanted. After an object that cannot be deleted it begins with no others.
func (c *Carrier) prune(ctx context.Context, order Order) error {
	surplus := order.surplus()
	errs := make([]error, len(surplus))
	work.SideBySide(ctx, writers, len(surplus), func(i int) (goOn bool) {
		errs[i] = c.remove(ctx, order, surplus[i])
		return errs[i] == nil
	})
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return ctx.Err()
}

// remove deletes an object that is no longer wanted, or takes it off clusters that the application has left.
func (c *Carrier) remove(ctx context.Context, order Order, p surplus) error {
	if p.pin != "" {
		if err := c.Pin(ctx, order.Account, p.Key, p.Object, p.pin); err != nil {
			return fmt.Errorf("take %s, which is no longer wanted, off clusters that the application has left: %w", p.Key, err)
		}
		return nil
	}
	if err := c.Delete(ctx, order.Account, p.Key, p.Object); err != nil {
		return fmt.Errorf("delete %s, which is no longer wanted: %w", p.Key, err)
	}
	return nil
}

// surplus is an object that an order does not want any more.
type surplus struct {
	observe.Present
	// pin are the clusters in which it stays, "" if it is deleted.
	pin string
}

// surplus is what is there, and goes with the order.
func (order Order) surplus() []surplus {
	wants := sets.New[wanted.Key]()
	for _, object := range order.Wanted.Objects {
		wants.Insert(object.Key)
	}
	var out []surplus
	for _, p := range order.Present {
		variant := p.Object.GetAnnotations()[v1alpha1.AnnotationVariant]
		if wants.Has(p.Key) || variant == "" || !Owned(p.Object, order.Owner) || order.Keeps != nil && order.Keeps(variant) {
			continue
		}
		if variant == v1alpha1.AllVariants && order.Wanted.Unrouted != "" {
			continue // requests still come by it
		}
		if variant != delivery.Primary || order.Prunes {
			out = append(out, surplus{Present: p})
		} else if pin, leaves := leftBy(p, order.Clusters); leaves {
			out = append(out, surplus{p, pin})
		}
	}
	return out
}

// Deletes are the objects that are deleted when the order is carried out.
func (order Order) Deletes() []wanted.Key {
	var out []wanted.Key
	for _, p := range order.surplus() {
		if p.pin == "" && p.Object.GetDeletionTimestamp() == nil {
			out = append(out, p.Key)
		}
	}
	return out
}

// leftBy says which of its clusters a workload keeps that runs in some which the application has left, and reports whether there are such.
func leftBy(p observe.Present, runs sets.Set[string]) (pin string, leaves bool) {
	pins := p.Object.GetAnnotations()[manifold.AnnotationClusters]
	if runs == nil || !p.Workload || pins == "" {
		return "", false
	}
	var stays []string
	for _, cluster := range strings.Split(pins, ",") {
		if runs.Has(cluster) {
			stays = append(stays, cluster)
		} else {
			leaves = true
		}
	}
	return strings.Join(stays, ","), leaves
}

// policies writes those that workloads follow, and reports whether the watch has shown them: who decides about a workload goes by what it shows.
func (c *Carrier) policies(ctx context.Context, order Order, memory *Memory) (shown bool, err error) {
	client := c.Manifold.ManifoldV1alpha1().PlacementPolicies(order.Account.Namespace)
	shown = true
	for _, want := range order.Wanted.Policies {
		present, err := c.Policies.PlacementPolicies(order.Account.Namespace).Get(want.Name)
		switch {
		case apierrors.IsNotFound(err):
			_, err = client.Create(ctx, want, metav1.CreateOptions{FieldManager: v1alpha1.FieldManager})
		case err != nil:
		case !Owned(present, order.Owner):
			refuse(order, memory, want.Name)
			shown = false
			continue
		case same(present, want):
			continue
		default:
			change := present.DeepCopy()
			change.Spec, change.Annotations, change.Labels = want.Spec, want.Annotations, want.Labels
			_, err = client.Update(ctx, change, metav1.UpdateOptions{FieldManager: v1alpha1.FieldManager})
		}
		if err != nil {
			return false, fmt.Errorf("write PlacementPolicy %s/%s: %w", want.Namespace, want.Name, err)
		}
		shown = false
	}
	return shown, nil
}

// refuse has the workloads be refused that were to follow a policy whose name is taken.
func refuse(order Order, memory *Memory, policy string) {
	why := fmt.Sprintf("it follows PlacementPolicy %s, which is there already, and does not belong to Application %s: delete the policy", policy, order.Owner.Name)
	for _, object := range order.Wanted.Objects {
		if object.Manifest.GetLabels()[v1alpha1.LabelPlacement] == policy {
			memory.refused[object.Key] = refused{token(order, object.Hash), fmt.Sprintf("%s: %s", object.Key, why)}
		}
	}
}

// same reports whether a policy says what is wanted of it. What the server fills in is left out of account.
func same(present, want *manifold.PlacementPolicy) bool {
	return equality.Semantic.DeepDerivative(want.Spec, present.Spec) && equality.Semantic.DeepEqual(divisionOf(present), divisionOf(want)) &&
		present.Annotations[v1alpha1.AnnotationVariant] == want.Annotations[v1alpha1.AnnotationVariant]
}

// divisionOf is what a policy says of division, of which no weight may be left over.
func divisionOf(policy *manifold.PlacementPolicy) manifold.Division {
	if policy.Spec.Division == nil {
		return manifold.Division{}
	}
	return *policy.Spec.Division
}

// prunePolicies deletes the policies that no workload follows any more.
func (c *Carrier) prunePolicies(ctx context.Context, order Order) error {
	wants := sets.New[string]()
	for _, policy := range order.Wanted.Policies {
		wants.Insert(policy.Name)
	}
	followed := sets.New[string]()
	for _, p := range order.Present {
		followed.Insert(p.Object.GetLabels()[v1alpha1.LabelPlacement])
	}
	all, err := c.Policies.PlacementPolicies(order.Account.Namespace).List(selects(order.Owner.Name))
	if err != nil {
		return err
	}
	for _, policy := range all {
		kept := order.Keeps != nil && order.Keeps(policy.Annotations[v1alpha1.AnnotationVariant])
		if _, applied := policy.Annotations[v1alpha1.AnnotationApplied]; applied {
			continue // it is one of its manifests
		}
		if kept || wants.Has(policy.Name) || followed.Has(policy.Name) || !Owned(policy, order.Owner) || policy.DeletionTimestamp != nil {
			continue
		}
		err := c.Manifold.ManifoldV1alpha1().PlacementPolicies(policy.Namespace).Delete(ctx, policy.Name, metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(policy.UID))})
		if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
			return fmt.Errorf("delete PlacementPolicy %s/%s, which nothing follows: %w", policy.Namespace, policy.Name, err)
		}
	}
	return nil
}
