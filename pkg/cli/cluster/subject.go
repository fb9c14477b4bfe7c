package cluster

import (
	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"
	cmdutil "k8s.io/kubectl/pkg/cmd/util"
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
