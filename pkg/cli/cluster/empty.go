package cluster

import (
	"context"
	"errors"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	manifoldv1alpha1 "github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
)

// stuckFor is how long nothing that is left in a cluster can move before nobody waits for that any more: what only just begins to move, and room that
// only just becomes free, is seen a moment later.
const stuckFor = 5 * time.Second

// errStuck is what waiting for an empty cluster ends with when nothing that is left there can move.
var errStuck = errors.New("nothing that is left can move")

// draining waits for a cluster to become empty.
type draining struct {
	logical *logical
	// begun is the Cluster as it was when its drain began.
	begun *manifoldv1alpha1.Cluster
	// timeout is how long to wait at most, patience how long while nothing that is left can move.
	timeout, patience time.Duration
	progress          progress
}

// run waits until the cluster is empty and tells on the way what its condition says. It returns what that said last.
func (d *draining) run(ctx context.Context) (last metav1.Condition, err error) {
	d.progress.doing("Waiting up to %s until everything has moved off", d.timeout)
	ctx, cancel := context.WithTimeout(ctx, d.timeout)
	defer cancel()
	for {
		patience := d.timeout
		if last.Reason == manifoldv1alpha1.ReasonStuck {
			patience = d.patience
		}
		next, err := d.await(ctx, last, patience)
		switch {
		case err == nil && next.Status == metav1.ConditionTrue:
			return next, nil
		case err == nil:
			last = next
			d.progress.doing("%s", last.Message)
		case ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded):
			return last, errStuck
		default:
			return last, err
		}
	}
}

// await waits until the condition of the drain says something else than before.
func (d *draining) await(ctx context.Context, last metav1.Condition, patience time.Duration) (next metav1.Condition, err error) {
	var ended error
	err = d.logical.follow(ctx, d.begun.Name, patience, func(cluster *manifoldv1alpha1.Cluster) bool {
		var drained *metav1.Condition
		if drained, ended = drainOf(cluster, d.begun); ended != nil {
			return true
		}
		if drained == nil ||
			drained.Status != metav1.ConditionTrue && drained.Reason == last.Reason && drained.Message == last.Message {
			return false
		}
		next = *drained
		return true
	})
	if ended != nil {
		return next, ended
	}
	return next, err
}

// empty moves everything off a cluster before it is removed. One whose workloads have nowhere to go is left as it was, with an error that
// names them.
func (o *RemoveOptions) empty(ctx context.Context, logical *logical, cluster *manifoldv1alpha1.Cluster) error {
	drain := &DrainOptions{IOStreams: o.IOStreams, subject: o.subject, Timeout: o.Timeout, patience: o.patience}
	begun, err := drain.begin(ctx, logical, cluster)
	if err != nil {
		return fmt.Errorf("move off what runs in cluster %q: %w", o.Name, err)
	}
	last, err := drain.waiting(logical, begun).run(ctx)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, errStuck):
		return o.giveUp(ctx, logical, cluster, last.Message)
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("cluster %q is not removed: it is not empty after %s, and the drain continues in the background: %s%s",
			o.Name, o.Timeout, orUnknown(last.Message), o.emptyAdvice())
	case errors.Is(err, context.Canceled):
		return fmt.Errorf("interrupted: cluster %q is not removed, and its drain continues%s", o.Name, drain.advice())
	default:
		return fmt.Errorf("cluster %q is not removed: %w", o.Name, err)
	}
}

// giveUp lets replicas come to a cluster again that is not removed, unless it was being drained before.
func (o *RemoveOptions) giveUp(ctx context.Context, logical *logical, before *manifoldv1alpha1.Cluster, why string) error {
	as := "it is as before, except for what has moved off"
	if len(undrained(before.Spec.Taints)) < len(before.Spec.Taints) {
		as = "its drain continues"
	} else if _, err := logical.setTaints(ctx, before, before.Spec.Unschedulable, undrained); err != nil { // as before
		as = fmt.Sprintf("its drain could not be ended: %s", err)
	}
	return fmt.Errorf("cluster %q is not removed because not everything can move off it, and %s: %s%s", o.Name, as, why, o.emptyAdvice())
}

// emptyAdvice says how to be rid of a cluster that does not become empty.
func (o *RemoveOptions) emptyAdvice() string {
	return fmt.Sprintf("\nTo go on once they may run elsewhere: manifold cluster remove %[1]s\n"+
		"To leave there what runs there: manifold cluster remove %[1]s --orphan\n"+
		"If the cluster is gone for good: manifold cluster remove %[1]s --force", o.Name)
}

func orUnknown(message string) string {
	if message == "" {
		return "it is not known yet what is left there"
	}
	return message
}
