package cluster

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"
	cmdutil "k8s.io/kubectl/pkg/cmd/util"

	manifoldv1alpha1 "github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/cli/cluster/physical"
)

// subject is the cluster that a command is about, in the logical cluster that it belongs to.
type subject struct {
	// Name is the cluster's.
	Name string

	logicalConfig *rest.Config
}

// Complete takes the name from the arguments and finds the logical cluster.
func (s *subject) Complete(f cmdutil.Factory, cmd *cobra.Command, args []string) error {
	if len(args) != 1 {
		return cmdutil.UsageErrorf(cmd, "exactly one NAME is required, got %d", len(args))
	}
	s.Name = args[0]
	var err error
	s.logicalConfig, err = f.ToRESTConfig()
	return err
}

// asAdmin is a cluster that a command reaches as its admin.
type asAdmin struct {
	subject
	// Kubeconfig and Context lead to the cluster as its admin.
	Kubeconfig, Context string
}

// addFlags adds those that lead to the cluster. Usage says what for.
func (a *asAdmin) addFlags(cmd *cobra.Command, usage string) {
	flags := cmd.Flags()
	flags.StringVar(&a.Kubeconfig, "cluster-kubeconfig", a.Kubeconfig, usage)
	flags.StringVar(&a.Context, "cluster-context", a.Context, "The context in that kubeconfig. Defaults to its current one.")
	cmdutil.CheckErr(cmd.RegisterFlagCompletionFunc("cluster-context", completeContexts(&a.Kubeconfig)))
	cmdutil.CheckErr(cmd.MarkFlagFilename("cluster-kubeconfig"))
}

// reach reaches the cluster and makes sure that it is not known to be another one than that which has joined.
func (a *asAdmin) reach(ctx context.Context, joined *manifoldv1alpha1.Cluster) (*physical.Cluster, error) {
	below, err := physical.Reach(ctx, a.Kubeconfig, a.Context)
	if err != nil {
		return nil, err
	}
	return below, a.refuseOther(below, []manifoldv1alpha1.Cluster{*joined})
}

// refuseOther refuses a cluster that is known to be another one.
func (a *asAdmin) refuseOther(below *physical.Cluster, joined []manifoldv1alpha1.Cluster) error {
	if err := sameCluster(a.Name, below.UID, joined); err != nil {
		return fmt.Errorf("%s leads to another cluster: %w", below, err)
	}
	return nil
}
