package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/util/retry"
	cmdutil "k8s.io/kubectl/pkg/cmd/util"
	"k8s.io/kubectl/pkg/util/templates"

	manifoldv1alpha1 "github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
)

// DrainOptions are what "cluster drain" needs.
type DrainOptions struct {
	genericiooptions.IOStreams

	subject
	// Force moves off also what has to start over elsewhere.
	Force bool
	// Wait says whether to wait until the cluster is empty, and Timeout for how long.
	Wait    bool
	Timeout time.Duration

	// patience is how long nothing that is left may be able to move before there is nothing to wait for.
	patience time.Duration
}

// NewDrainOptions returns options with their defaults.
func NewDrainOptions(streams genericiooptions.IOStreams) *DrainOptions {
	return &DrainOptions{IOStreams: streams, Wait: true, Timeout: 5 * time.Minute, patience: stuckFor}
}

func newDrainCommand(f cmdutil.Factory, streams genericiooptions.IOStreams) *cobra.Command {
	o := NewDrainOptions(streams)
	cmd := &cobra.Command{
		Use:                   "drain NAME [--force] [--timeout DURATION | --wait=false]",
		DisableFlagsInUseLine: true,
		Short:                 "Move everything off a cluster",
		Long: templates.LongDesc(`
			Move everything off a cluster, and keep new replicas away. Replicas are made elsewhere first; those in the cluster go when
			their replacements are available. What cannot move stays, and is named with the reason: once nothing is left but that,
			this command ends with an error.

			The drain goes on when this command is interrupted. "manifold cluster uncordon" ends it: what has moved stays where it is.

			A Job that has started is not moved. It leaves when it ends, or with --force starts over elsewhere.`),
		Example: templates.Examples(`
			# Before maintenance
			manifold cluster drain east

			# After maintenance
			manifold cluster uncordon east`),
		ValidArgsFunction: completeClusters(f, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.Complete(f, cmd, args); err != nil {
				return err
			}
			if err := o.Validate(); err != nil {
				return err
			}
			ctx, stop := interruptible(cmd.Context())
			defer stop()
			return o.Run(ctx)
		},
	}
	flags := cmd.Flags()
	flags.BoolVar(&o.Force, "force", o.Force, "Also move what has to start over elsewhere, such as Jobs that have started.")
	flags.BoolVar(&o.Wait, "wait", o.Wait, "Wait until the cluster is empty.")
	flags.DurationVar(&o.Timeout, "timeout", o.Timeout, "How long to wait until the cluster is empty.")
	return cmd
}

// Validate refuses a time to wait that is none.
func (o *DrainOptions) Validate() error {
	if o.Wait && o.Timeout <= 0 {
		return fmt.Errorf("--timeout must be more than zero, not %s; use --wait=false not to wait", o.Timeout)
	}
	return nil
}

// Run has the cluster drained, and waits until it is.
func (o *DrainOptions) Run(ctx context.Context) error {
	logical, err := openLogical(ctx, o.logicalConfig)
	if err != nil {
		return err
	}
	cluster, err := logical.clusters.Get(ctx, o.Name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	begun, err := o.begin(ctx, logical, cluster)
	if err != nil {
		return fmt.Errorf("drain cluster %q: %w", o.Name, err)
	}
	if !o.Wait {
		fmt.Fprintf(o.Out, "cluster/%s is being drained\n", o.Name)
		return nil
	}
	return o.awaitEmpty(ctx, logical, begun)
}

// begin cordons and taints the cluster in one step, unless that has been done.
func (o *DrainOptions) begin(ctx context.Context, logical *logical, cluster *manifoldv1alpha1.Cluster) (*manifoldv1alpha1.Cluster, error) {
	taint := corev1.Taint{Key: manifoldv1alpha1.TaintDrain, Effect: corev1.TaintEffectNoExecute}
	if o.Force {
		taint.Value = manifoldv1alpha1.DrainForce
	}
	at := slices.IndexFunc(cluster.Spec.Taints, func(t corev1.Taint) bool { return t.MatchTaint(&taint) })
	if at >= 0 && cluster.Spec.Taints[at].Value == taint.Value && cluster.Spec.Unschedulable {
		return cluster, nil
	}
	return logical.setTaints(ctx, cluster, true, func(has []corev1.Taint) []corev1.Taint { return append(undrained(has), taint) })
}

// undrained returns the taints without that of a drain.
func undrained(taints []corev1.Taint) []corev1.Taint {
	return slices.DeleteFunc(slices.Clone(taints), func(t corev1.Taint) bool { return t.Key == manifoldv1alpha1.TaintDrain })
}

// setTaints cordons or uncordons a cluster together with its taints. If somebody has changed it since it was read, whose status changes all the time, that is
// done to the cluster as it is then.
func (l *logical) setTaints(
	ctx context.Context, cluster *manifoldv1alpha1.Cluster, unschedulable bool, taints func(has []corev1.Taint) []corev1.Taint,
) (out *manifoldv1alpha1.Cluster, err error) {
	err = retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		patch, err := json.Marshal(map[string]any{
			"metadata": map[string]any{"resourceVersion": cluster.ResourceVersion},
			"spec":     map[string]any{"unschedulable": unschedulable, "taints": taints(cluster.Spec.Taints)},
		})
		if err != nil {
			return err
		}
		if out, err = l.clusters.Patch(ctx, cluster.Name, types.MergePatchType, patch, metav1.PatchOptions{}); apierrors.IsConflict(err) {
			if now, gone := l.clusters.Get(ctx, cluster.Name, metav1.GetOptions{}); gone == nil {
				cluster = now
			}
		}
		return err
	})
	return out, err
}

// drainOf returns what a cluster says of a drain since that began, nil when it has said nothing yet. It is an error when somebody has
// removed the cluster or ended its drain meanwhile.
func drainOf(cluster, begun *manifoldv1alpha1.Cluster) (*metav1.Condition, error) {
	if cluster == nil || cluster.UID != begun.UID {
		return nil, fmt.Errorf("cluster %q: %s", begun.Name, removedMeanwhile)
	}
	if len(undrained(cluster.Spec.Taints)) == len(cluster.Spec.Taints) {
		return nil, fmt.Errorf("cluster %q is no longer being drained: the drain was ended by another command", begun.Name)
	}
	drained := meta.FindStatusCondition(cluster.Status.Conditions, manifoldv1alpha1.ClusterDrained)
	if drained == nil || drained.ObservedGeneration < begun.Generation {
		return nil, nil
	}
	return drained, nil
}

// awaitEmpty waits until the cluster is empty, or nothing that is left can move, and tells on the way what its condition says.
func (o *DrainOptions) awaitEmpty(ctx context.Context, logical *logical, begun *manifoldv1alpha1.Cluster) error {
	last, err := o.waiting(logical, begun).run(ctx)
	switch {
	case err == nil:
		fmt.Fprintf(o.Out, "cluster/%s drained\n", o.Name)
		return nil
	case errors.Is(err, errStuck):
		return fmt.Errorf("cluster %q cannot be emptied; the drain continues in the background: %s%s", o.Name, last.Message, o.advice())
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("cluster %q is not empty after %s, and the drain continues in the background: %s%s",
			o.Name, o.Timeout, orUnknown(last.Message), o.advice())
	case errors.Is(err, context.Canceled):
		return fmt.Errorf("interrupted; the drain of cluster %q continues%s", o.Name, o.advice())
	default:
		return err
	}
}

func (o *DrainOptions) waiting(logical *logical, begun *manifoldv1alpha1.Cluster) *draining {
	return &draining{logical: logical, begun: begun, timeout: o.Timeout, patience: o.patience, progress: progress{out: o.ErrOut}}
}

func (o *DrainOptions) advice() string {
	return fmt.Sprintf("\nTo end it and let replicas return: manifold cluster uncordon %s", o.Name)
}
