package objects

import (
	"context"
	"errors"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/internal/work"
	"github.com/manifold-dev/manifold/pkg/delivery"
	"github.com/manifold-dev/manifold/pkg/delivery/wanted"
	"github.com/manifold-dev/manifold/pkg/identity"
)

// writers is how many objects of an application are written at a time. Each waits for etcd, which takes several in one write to the disk.
const writers = 8

// Bring is Carry for what is wanted alone: nothing is deleted. It reports whether all of it was asked for. Objects of a kind are written side by side, and
// one kind after the other, since a Deployment may need its ConfigMaps.
func (c *Carrier) Bring(ctx context.Context, order Order, memory *Memory) (done bool, err error) {
	forget(memory, order)
	memory.drift.begin(order)
	shown, err := c.policies(ctx, order, memory)
	if err != nil || !shown {
		return false, err
	}
	if err := c.letGo(ctx, order); err != nil {
		return false, err
	}
	memory.unfinished = false
	left := order.AtOnce
	if left == 0 {
		left = len(order.Wanted.Objects)
	}
	for rest := order.Wanted.Objects; len(rest) > 0; {
		together := alike(rest)
		due, refused := c.due(order, rest[:together], memory)
		now := due[:min(len(due), left)]
		if err := c.write(ctx, order, now, memory); err != nil {
			return false, err
		}
		if refused || anyRefused(now, memory) {
			return false, nil // what comes after it may need it
		}
		if memory.unfinished = len(now) < len(due); memory.unfinished {
			return false, nil
		}
		left, rest = left-len(now), rest[together:]
	}
	return true, nil
}

// alike is how many objects at the beginning are of one kind and variant.
func alike(objects []wanted.Object) int {
	for i, object := range objects {
		if first := objects[0]; object.Group != first.Group || object.Kind != first.Kind || object.Variant != first.Variant {
			return i
		}
	}
	return len(objects)
}

// due returns those of some objects that are to be written, as far as none that was refused comes before them, and reports whether one was.
func (c *Carrier) due(order Order, among []wanted.Object, memory *Memory) (due []wanted.Object, refused bool) {
	for _, object := range among {
		if anyRefused([]wanted.Object{object}, memory) {
			return due, true
		}
		if _, refused := memory.refused[object.Key]; !refused && !c.settled(order, object, memory) {
			due = append(due, object)
		}
	}
	return due, false
}

// anyRefused reports whether any of some objects was refused on which the rest of the application may depend.
func anyRefused(among []wanted.Object, memory *Memory) bool {
	for _, object := range among {
		if _, refused := memory.refused[object.Key]; refused && object.Variant != v1alpha1.AllVariants {
			return true
		}
	}
	return false
}

// settled reports whether there is nothing to write of an object: it is there as it is wanted, or the watch is about to show it, or somebody has deleted it.
func (c *Carrier) settled(order Order, object wanted.Object, memory *Memory) bool {
	present, watched := c.store.Get(order.Account.Namespace, object.Key)
	last, known := memory.written[object.Key]
	switch {
	case !watched && known:
		return true
	case watched && present == nil && order.Settled && memory.drift.there[object.Key]:
		return true // that is drift
	case watched && order.applied(object, present):
		return true
	case watched && known && !newer(present, last.object):
		return true // the watch is about to show it
	}
	return false
}

// applied reports whether an object is there as it is wanted.
func (o Order) applied(object wanted.Object, present metav1.Object) bool {
	return object.Applied(present) && (o.Owner.of(object).Selected || Owned(present, o.Owner))
}

// letGo has what is there as it is wanted await no release any more, if one has come to all targets.
func (c *Carrier) letGo(ctx context.Context, order Order) error {
	if !order.Releases {
		return nil
	}
	errs := make([]error, len(order.Wanted.Objects))
	work.SideBySide(ctx, writers, len(errs), func(i int) (goOn bool) {
		object := order.Wanted.Objects[i]
		present, watched := c.store.Get(order.Account.Namespace, object.Key)
		if watched && present != nil && identity.AwaitedBy(present) != "" && order.applied(object, present) {
			errs[i] = c.LetGo(ctx, object.Key, present)
		}
		return errs[i] == nil
	})
	return errors.Join(errs...)
}

// answer is what came of writing an object.
type answer struct {
	asked  bool
	stored metav1.Object
	err    error
}

// write applies objects, of which none needs another. After one that fails no others are begun.
func (c *Carrier) write(ctx context.Context, order Order, objects []wanted.Object, memory *Memory) error {
	answers := make([]answer, len(objects))
	work.SideBySide(ctx, writers, len(objects), func(i int) (goOn bool) {
		stored, err := c.Apply(ctx, order.Account, order.Owner, objects[i])
		answers[i] = answer{true, stored, err}
		return err == nil
	})
	var failed error
	for i, answer := range answers {
		if !answer.asked {
			continue
		}
		if err := memory.note(order, objects[i], answer); err != nil && failed == nil {
			failed = err
		}
	}
	if failed == nil {
		return ctx.Err()
	}
	return failed
}

// note remembers what came of writing an object. What was refused is no error.
func (m *Memory) note(order Order, object wanted.Object, of answer) error {
	if undefined := new(UndefinedError); errors.As(of.err, &undefined) && object.Variant == v1alpha1.AllVariants {
		m.refused[object.Key] = refused{again, delivery.Said(of.err.Error())}
		return nil // the rest of the application does not depend on it
	}
	if refusal := new(RefusedError); errors.As(of.err, &refusal) {
		m.refused[object.Key] = refused{token(order, object.Hash), delivery.Said(of.err.Error())}
		return nil
	}
	if of.err != nil {
		return of.err
	}
	m.written[object.Key] = written{object.Hash, of.stored}
	return nil
}
