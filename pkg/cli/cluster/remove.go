package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	cmdutil "k8s.io/kubectl/pkg/cmd/util"
	"k8s.io/kubectl/pkg/util/templates"
	"k8s.io/utils/ptr"

	manifoldv1alpha1 "github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/cli/cluster/grants"
	"github.com/manifold-dev/manifold/pkg/cli/cluster/physical"
)

// RemoveOptions are what "cluster remove" needs.
type RemoveOptions struct {
	genericiooptions.IOStreams
	// The kubeconfig is for removing what joining made in the cluster. It is optional.
	asAdmin

	// Force and Orphan stand for the values of AnnotationRemove.
	Force, Orphan bool
	// Wait says whether to wait until the cluster is removed, and Timeout for how long.
	Wait    bool
	Timeout time.Duration

	// patience is how long nothing that is left may be able to move before the cluster is not removed.
	patience time.Duration
}

// NewRemoveOptions returns options with their defaults.
func NewRemoveOptions(streams genericiooptions.IOStreams) *RemoveOptions {
	return &RemoveOptions{IOStreams: streams, Wait: true, Timeout: 5 * time.Minute, patience: stuckFor}
}

func newRemoveCommand(f cmdutil.Factory, streams genericiooptions.IOStreams) *cobra.Command {
	o := NewRemoveOptions(streams)
	cmd := &cobra.Command{
		Use:                   "remove NAME [--cluster-kubeconfig FILE] [--force | --orphan]",
		Aliases:               []string{"rm"},
		DisableFlagsInUseLine: true,
		Short:                 "Remove what Manifold owns in a cluster, and its registration",
		Long: templates.LongDesc(`
			Move everything off a cluster, as "drain" does, then remove what Manifold owns there, and its registration. A cluster whose
			workloads have nowhere to go is not removed: they are named, and it stays as it was. With --wait=false it is marked for removal
			at once, which goes on when all has moved off.

			With --orphan, what runs there stays and is no longer Manifold's. With --force, nothing waits for the cluster: that is
			for one that is gone for good, and what Manifold owned there stays should it ever return.

			Manifold's own credential may not remove itself. Pass the cluster's admin kubeconfig with --cluster-kubeconfig to have
			the ServiceAccount and its rights removed too; otherwise the commands that do so are printed.`),
		Example: templates.Examples(`
			# Remove a cluster and everything that joining made there
			manifold cluster remove east --cluster-kubeconfig ~/.kube/east

			# The cluster is gone for good
			manifold cluster remove east --force

			# Let go of a cluster, and leave what runs there alone
			manifold cluster remove east --orphan`),
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
	flags.BoolVar(&o.Force, "force", o.Force, "Do not wait for the cluster to be cleaned, because it is gone for good.")
	flags.BoolVar(&o.Orphan, "orphan", o.Orphan, "Leave what runs in the cluster there.")
	flags.BoolVar(&o.Wait, "wait", o.Wait, "Wait until the cluster is removed.")
	flags.DurationVar(&o.Timeout, "timeout", o.Timeout, "How long to wait for the cluster to be removed.")
	o.addFlags(cmd, "Path to a kubeconfig with admin rights in the cluster, to remove there what joining made.")
	return cmd
}

// Validate refuses options that contradict each other.
func (o *RemoveOptions) Validate() error {
	switch {
	case o.Force && o.Orphan:
		return errors.New("--force and --orphan exclude each other: a cluster that is gone for good cannot be told to keep anything")
	case o.Kubeconfig != "" && !o.Wait:
		return errors.New("--cluster-kubeconfig needs --wait: the syncer's rights are removed after what it has to clean")
	case o.Context != "" && o.Kubeconfig == "":
		return errors.New("--cluster-context needs --cluster-kubeconfig")
	case o.Wait && o.Timeout <= 0:
		return fmt.Errorf("--timeout must be more than zero, not %s; use --wait=false not to wait", o.Timeout)
	}
	return nil
}

// Run deletes the Cluster, waits for its finalizers and then removes what joining made below, if it may.
func (o *RemoveOptions) Run(ctx context.Context) error {
	logical, err := openLogical(ctx, o.logicalConfig)
	if err != nil {
		return err
	}
	cluster, err := logical.clusters.Get(ctx, o.Name, metav1.GetOptions{})
	gone := apierrors.IsNotFound(err) && o.Kubeconfig != ""
	if err != nil && !gone {
		return err
	}
	var below *physical.Cluster
	if o.Kubeconfig != "" {
		if below, err = o.open(ctx, logical); err != nil {
			return fmt.Errorf("remove cluster %q: %w", o.Name, err)
		}
	}
	if !gone {
		if o.Wait && o.manner() == "" && cluster.DeletionTimestamp == nil {
			if err := o.empty(ctx, logical, cluster); err != nil {
				return err
			}
		}
		if err := o.remove(ctx, logical, cluster); err != nil {
			return err
		}
	}
	if !o.Wait {
		fmt.Fprintf(o.Out, "cluster/%s is being removed\n", o.Name)
		return nil
	}
	if below == nil {
		o.printCleanup(logical.uid)
	} else if err := below.Revoke(ctx, logical.uid); err != nil {
		return fmt.Errorf("cluster %q is removed, but not everything that joining made there: %w", o.Name, err)
	}
	fmt.Fprintf(o.Out, "cluster/%s removed\n", o.Name)
	return nil
}

// open reaches the cluster as its admin and makes sure that it is the one that is to be removed. A cluster that has been removed
// already is fine as well: then only what joining made there is left to do.
func (o *RemoveOptions) open(ctx context.Context, logical *logical) (*physical.Cluster, error) {
	below, err := physical.Reach(ctx, o.Kubeconfig, o.Context)
	if err != nil {
		return nil, err
	}
	clusters, err := logical.list(ctx)
	if err != nil {
		return nil, err
	}
	return below, o.refuseOther(below, clusters)
}

// sameCluster refuses a cluster that is known not to be the one called name.
func sameCluster(name string, uid types.UID, clusters []manifoldv1alpha1.Cluster) error {
	for _, c := range clusters {
		switch known := types.UID(c.Status.UID); {
		case c.Name == name && known != "" && known != uid:
			return fmt.Errorf("its kube-system UID is %s, that of %q is %s", uid, name, known)
		case c.Name != name && known == uid:
			return fmt.Errorf("it is %q", c.Name)
		}
	}
	return nil
}

func (o *RemoveOptions) remove(ctx context.Context, logical *logical, cluster *manifoldv1alpha1.Cluster) error {
	if manner := o.manner(); manner != "" {
		if _, err := logical.mark(ctx, o.Name, manner); err != nil {
			return err
		}
	}
	err := logical.clusters.Delete(ctx, o.Name, metav1.DeleteOptions{
		Preconditions:     &metav1.Preconditions{UID: ptr.To(cluster.UID)},
		PropagationPolicy: ptr.To(metav1.DeletePropagationBackground),
	})
	if err != nil || !o.Wait {
		return err
	}
	return o.awaitGone(ctx, logical, cluster.UID)
}

func (o *RemoveOptions) manner() string {
	switch {
	case o.Force:
		return manifoldv1alpha1.RemoveForce
	case o.Orphan:
		return manifoldv1alpha1.RemoveOrphan
	}
	return ""
}

// awaitGone waits until the Cluster is gone and tells on the way what its conditions say.
func (o *RemoveOptions) awaitGone(ctx context.Context, logical *logical, uid types.UID) error {
	progress := progress{out: o.ErrOut}
	progress.doing("Waiting up to %s until the cluster is clean", o.Timeout)
	var last string
	err := logical.follow(ctx, o.Name, o.Timeout, func(cluster *manifoldv1alpha1.Cluster) bool {
		if cluster == nil || cluster.UID != uid {
			return true
		}
		if now := hindrance(cluster); now != last {
			last = now
			progress.doing("%s", now)
		}
		return false
	})
	if !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	if last == "" {
		last = "its conditions do not say why"
	}
	return fmt.Errorf("cluster %q is still being removed after %s, and the removal continues in the background: %s%s",
		o.Name, o.Timeout, last, o.advice())
}

// advice says what else can be done about a removal that takes too long.
func (o *RemoveOptions) advice() string {
	if o.Force || o.Orphan {
		return ""
	}
	return fmt.Sprintf("\nTo leave there what runs there: manifold cluster remove %[1]s --orphan\n"+
		"If the cluster is gone for good: manifold cluster remove %[1]s --force", o.Name)
}

// hindrance says what a cluster that is being removed still waits for, as far as its conditions tell.
func hindrance(cluster *manifoldv1alpha1.Cluster) string {
	var said []string
	for _, c := range cluster.Status.Conditions {
		if c.Status != metav1.ConditionTrue {
			said = append(said, describe(c))
		}
	}
	return strings.Join(said, "; ")
}

// printCleanup prints what an admin of the cluster has to do in order to remove what joining made there.
func (o *RemoveOptions) printCleanup(logical types.UID) {
	fmt.Fprintf(o.ErrOut, `To remove what joining made in the cluster too, run with its admin's kubeconfig:
  kubectl delete clusterrolebinding,clusterrole %[1]s-kinds --ignore-not-found
  kubectl delete clusterrolebinding,clusterrole,validatingadmissionpolicybinding,validatingadmissionpolicy %[1]s-priorities --ignore-not-found
  kubectl delete clusterrolebinding,clusterrole,validatingadmissionpolicybinding,validatingadmissionpolicy %[1]s-volumes --ignore-not-found
  kubectl delete clusterrolebinding,clusterrole %[1]s-pipelines --ignore-not-found
  kubectl delete mutatingwebhookconfiguration %[1]s-pods --ignore-not-found
  kubectl delete clusterrole %[1]s-secrets --ignore-not-found
  kubectl delete clusterrolebinding,clusterrole %[1]s-audit --ignore-not-found
  kubectl delete rolebinding,role %[1]s-audit -n %[2]s --ignore-not-found
  kubectl delete clusterrolebinding,clusterrole,validatingadmissionpolicybinding,validatingadmissionpolicy %[1]s
  kubectl delete validatingadmissionpolicybinding,validatingadmissionpolicy %[1]s-accounts --ignore-not-found
  kubectl delete serviceaccount,role,rolebinding %[1]s -n %[2]s
and, unless another logical cluster uses it:
  kubectl delete namespace %[2]s
`, grants.Name(logical), manifoldv1alpha1.SystemNamespace)
}

// mark sets AnnotationRemove.
func (l *logical) mark(ctx context.Context, name, manner string) (*manifoldv1alpha1.Cluster, error) {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]string{manifoldv1alpha1.AnnotationRemove: manner}}})
	if err != nil {
		return nil, err
	}
	return l.clusters.Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{})
}
