package cluster

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	cmdutil "k8s.io/kubectl/pkg/cmd/util"
	"k8s.io/kubectl/pkg/util/templates"

	manifoldv1alpha1 "github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/cli/cluster/physical"
)

// credentialOptions are what the commands about the credential of a cluster have in common.
type credentialOptions struct {
	genericiooptions.IOStreams
	asAdmin
}

func (o *credentialOptions) addFlags(cmd *cobra.Command) {
	o.asAdmin.addFlags(cmd, "Path to a kubeconfig with admin rights in the cluster.")
}

// complete takes the arguments and finds the logical cluster.
func (o *credentialOptions) complete(f cmdutil.Factory, cmd *cobra.Command, args []string) error {
	if err := o.Complete(f, cmd, args); err != nil {
		return err
	}
	if o.Kubeconfig == "" {
		return cmdutil.UsageErrorf(cmd, "--cluster-kubeconfig is required: Manifold's own credential may not end others")
	}
	return nil
}

// open reaches both sides, and makes sure that they belong together.
func (o *credentialOptions) open(ctx context.Context) (*logical, *physical.Cluster, *manifoldv1alpha1.Cluster, error) {
	logical, err := openLogical(ctx, o.logicalConfig)
	if err != nil {
		return nil, nil, nil, err
	}
	cluster, err := logical.clusters.Get(ctx, o.Name, metav1.GetOptions{})
	if err != nil {
		return nil, nil, nil, err
	}
	below, err := o.reach(ctx, cluster)
	return logical, below, cluster, err
}

// RotateOptions are what "cluster rotate" needs.
type RotateOptions struct {
	credentialOptions

	// Lifetime is that of the token.
	Lifetime time.Duration
}

// NewRotateOptions returns options with their defaults.
func NewRotateOptions(streams genericiooptions.IOStreams) *RotateOptions {
	return &RotateOptions{credentialOptions: credentialOptions{IOStreams: streams}, Lifetime: defaultLifetime}
}

func newRotateCommand(f cmdutil.Factory, streams genericiooptions.IOStreams) *cobra.Command {
	o := NewRotateOptions(streams)
	cmd := &cobra.Command{
		Use:                   "rotate NAME --cluster-kubeconfig FILE [--cluster-context CONTEXT] [--token-lifetime DURATION]",
		DisableFlagsInUseLine: true,
		Short:                 "Replace the credential of a cluster, and end the one from before",
		Long: templates.LongDesc(`
			Replace the token that Manifold reaches a cluster with, and end all those from before, stolen ones among them. What
			watches the cluster goes on, and nothing that runs there is touched. The token by which the cluster asks about pods, if it
			joined with --pod-webhooks, is replaced as well; the one from before ends after a minute.

			Tokens are renewed by themselves; this is for one that somebody else may know, that has expired while the server was
			down, or that a cluster has from an earlier version and never ends. An API server may remember a token for some ten
			seconds after it has ended.`),
		Example: templates.Examples(`
			# Replace the credential of a cluster
			manifold cluster rotate east --cluster-kubeconfig ~/.kube/east

			# With one that lasts for a day, and is renewed after half of it
			manifold cluster rotate east --cluster-kubeconfig ~/.kube/east --token-lifetime 24h`),
		ValidArgsFunction: completeClusters(f, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.complete(f, cmd, args); err != nil {
				return err
			}
			if err := checkLifetime(o.Lifetime); err != nil {
				return err
			}
			ctx, stop := interruptible(cmd.Context())
			defer stop()
			return o.Run(ctx)
		},
	}
	o.addFlags(cmd)
	cmd.Flags().DurationVar(&o.Lifetime, "token-lifetime", o.Lifetime, "How long the token lasts. It is renewed after half of that.")
	return cmd
}

// Run replaces the credential.
func (o *RotateOptions) Run(ctx context.Context) error {
	logical, below, cluster, err := o.open(ctx)
	if err != nil {
		return fmt.Errorf("rotate the credential of cluster %q: %w", o.Name, err)
	}
	if err := o.rotate(ctx, logical, below); err != nil {
		return fmt.Errorf("rotate the credential of cluster %q: %w", o.Name, err)
	}
	renewed, err := logical.renewPodWebhook(ctx, below, cluster)
	if err != nil {
		return fmt.Errorf("cluster %q has a new credential, but still asks about pods with the token from before: %w", o.Name, err)
	}
	if renewed {
		progress{out: o.ErrOut}.done("Renewed the token by which the cluster asks about pods")
	}
	fmt.Fprintf(o.Out, "cluster/%s has a new credential\n", o.Name)
	return nil
}

func (o *RotateOptions) rotate(ctx context.Context, logical *logical, below *physical.Cluster) error {
	progress := progress{out: o.ErrOut}
	var token physical.Token
	var earlier []string
	err := replacing(func() (err error) {
		var undo physical.Undo
		if token, earlier, err = o.replace(ctx, logical, below, &undo); err != nil {
			return takenBack(ctx, err, undo)
		}
		return nil
	})
	if err != nil {
		return err
	}
	progress.done("The cluster honours the new credential%s", token.Capped(o.Lifetime))
	progress.done("Stored it as Secret %s/%s", manifoldv1alpha1.SystemNamespace, credentialName(o.Name))
	logical.awaitTakenUp(ctx, o.Name, token)
	if err := ctx.Err(); err != nil {
		return errors.Join(err, errors.New("the new credential is stored, and those from before are still good; run the command again"))
	}
	if err := below.Retire(ctx, earlier); err != nil {
		return err
	}
	progress.done("Ended the credentials from before")
	return nil
}

// replace makes a token, tries it and stores it in place of the one that is there. It returns the Secrets that the tokens from before end with.
// See replacing.
func (o *RotateOptions) replace(ctx context.Context, logical *logical, below *physical.Cluster, undo *physical.Undo,
) (token physical.Token, earlier []string, err error) {
	before, err := logical.credential(ctx, o.Name)
	if err != nil {
		return physical.Token{}, nil, err
	}
	token, err = below.Issue(ctx, logical.uid, o.Lifetime, undo)
	if apierrors.IsNotFound(err) {
		err = fmt.Errorf("%w; it has been revoked: run \"manifold cluster join %s --cluster-kubeconfig FILE\"", err, o.Name)
	}
	if err != nil {
		return physical.Token{}, nil, err
	}
	if earlier, err = below.Bound(ctx, logical.uid, token.Secret); err != nil {
		return physical.Token{}, nil, err
	}
	if err := below.Try(ctx, o.Name, token); err != nil {
		return physical.Token{}, nil, fmt.Errorf("try the new credential: %w", err)
	}
	return token, earlier, logical.replaceToken(ctx, o.Name, before, token.Value)
}
