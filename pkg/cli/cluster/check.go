package cluster

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	cmdutil "k8s.io/kubectl/pkg/cmd/util"
	"k8s.io/kubectl/pkg/util/templates"

	manifoldv1alpha1 "github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/cli/cluster/physical"
	"github.com/manifold-dev/manifold/pkg/clusters/connection"
	"github.com/manifold-dev/manifold/pkg/placement/handmade"
)

// CheckOptions are what "cluster check" needs.
type CheckOptions struct {
	genericiooptions.IOStreams
	// Without a kubeconfig, the credential that is stored is used.
	asAdmin
}

// NewCheckOptions returns options with their defaults.
func NewCheckOptions(streams genericiooptions.IOStreams) *CheckOptions {
	return &CheckOptions{IOStreams: streams}
}

func newCheckCommand(f cmdutil.Factory, streams genericiooptions.IOStreams) *cobra.Command {
	o := NewCheckOptions(streams)
	cmd := &cobra.Command{
		Use:                   "check NAME [--cluster-kubeconfig FILE] [--cluster-context CONTEXT]",
		DisableFlagsInUseLine: true,
		Short:                 "Compare Manifold's rights in a cluster with those that it needs",
		Long: templates.LongDesc(`
			Compare what joining made in a cluster with what this version of Manifold makes: roles and their rules, bindings, admission
			policies. What is missing, more than needed or different is named, and the command ends with code 1.

			It asks with the credential that Manifold has there, which may read its own roles and policies, and nothing else about rights.
			Pass the cluster's admin kubeconfig with --cluster-kubeconfig to compare all of it, and to find what else was granted.

			Nothing is changed. "cluster join" under the same name brings everything up to date.`),
		Example: templates.Examples(`
			# Is everything as it should be?
			manifold cluster check east

			# As the cluster's admin, who sees all of it
			manifold cluster check east --cluster-kubeconfig ~/.kube/east`),
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
	o.addFlags(cmd, "Path to a kubeconfig with admin rights in the cluster. Defaults to the stored credential.")
	return cmd
}

// Validate refuses a context of no file.
func (o *CheckOptions) Validate() error {
	if o.Context != "" && o.Kubeconfig == "" {
		return errors.New("--cluster-context needs --cluster-kubeconfig")
	}
	return nil
}

// Run prints what differs.
func (o *CheckOptions) Run(ctx context.Context) error {
	logical, err := openLogical(ctx, o.logicalConfig)
	if err != nil {
		return err
	}
	cluster, err := logical.clusters.Get(ctx, o.Name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	below, err := o.open(ctx, logical, cluster)
	if err != nil {
		return fmt.Errorf("check cluster %q: %w", o.Name, err)
	}
	how, err := logical.podWebhook(ctx, o.Name)
	if err != nil {
		return fmt.Errorf("check cluster %q: %w", o.Name, err)
	}
	findings, err := below.Compare(ctx, logical.uid, cluster.Spec.Allows, how)
	if err != nil {
		return fmt.Errorf("check cluster %q: %w", o.Name, err)
	}
	return o.report(findings, handmade.JoinAgain(o.Name, cluster.Spec.Allows))
}

// open reaches the cluster, as its admin or with the credential that is stored, and makes sure that it is the one that has joined.
func (o *CheckOptions) open(ctx context.Context, logical *logical, cluster *manifoldv1alpha1.Cluster) (*physical.Cluster, error) {
	if o.Kubeconfig == "" {
		return logical.reachStored(ctx, cluster)
	}
	return o.reach(ctx, cluster)
}

// reachStored reaches a cluster with the credential that is stored for it.
func (l *logical) reachStored(ctx context.Context, cluster *manifoldv1alpha1.Cluster) (*physical.Cluster, error) {
	ref := cluster.Spec.Connection.SecretRef
	if ref == nil {
		return nil, errors.New("it has no stored credential; pass --cluster-kubeconfig")
	}
	secret, err := l.client.CoreV1().Secrets(ref.Namespace).Get(ctx, ref.Name, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("read the stored credential, or pass --cluster-kubeconfig: %w", err)
	}
	// What is stored there is data of whoever may write it, so it is read with the same care as by the server.
	config, err := connection.ParseKubeconfig(secret.Data[kubeconfigKey])
	if err != nil {
		return nil, fmt.Errorf("the credential in Secret %s/%s: %w", ref.Namespace, ref.Name, err)
	}
	config.QPS = -1
	below, err := physical.ReachWith(ctx, config, "Secret "+ref.Namespace+"/"+ref.Name)
	if err != nil {
		return nil, err
	}
	return below, sameCluster(cluster.Name, below.UID, []manifoldv1alpha1.Cluster{*cluster})
}

// report prints findings. The error is that of a cluster that differs, and says what to run.
func (o *CheckOptions) report(findings []physical.Finding, join string) error {
	differ, unread := 0, 0
	for _, f := range findings {
		switch {
		case len(f.Differs) > 0:
			differ++
			fmt.Fprintf(o.Out, "✗ %s\n", f.What)
			for _, line := range f.Differs {
				fmt.Fprintf(o.Out, "    %s\n", line)
			}
		case f.Unread != "":
			unread++
			fmt.Fprintf(o.Out, "? %s: %s\n", f.What, f.Unread)
		default:
			fmt.Fprintf(o.Out, "✓ %s\n", f.What)
		}
	}
	if differ > 0 {
		return fmt.Errorf("cluster %q differs from what this version makes, in %d of %d; to bring it up to date: "+
			"%s", o.Name, differ, len(findings), join)
	}
	if unread > 0 {
		fmt.Fprintf(o.ErrOut, "Nothing differs. %d of %d could not be read; an admin's kubeconfig shows them: manifold cluster check %s --cluster-kubeconfig FILE\n",
			unread, len(findings), o.Name)
	}
	return nil
}
