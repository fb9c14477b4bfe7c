package cluster

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	cmdutil "k8s.io/kubectl/pkg/cmd/util"
	"k8s.io/kubectl/pkg/util/templates"

	manifoldv1alpha1 "github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/cli/cluster/grants"
	"github.com/manifold-dev/manifold/pkg/podhooks"
)

// RevokeOptions are what "cluster revoke" needs.
type RevokeOptions struct {
	credentialOptions
}

// NewRevokeOptions returns options with their defaults.
func NewRevokeOptions(streams genericiooptions.IOStreams) *RevokeOptions {
	return &RevokeOptions{credentialOptions{IOStreams: streams}}
}

func newRevokeCommand(f cmdutil.Factory, streams genericiooptions.IOStreams) *cobra.Command {
	o := NewRevokeOptions(streams)
	cmd := &cobra.Command{
		Use:                   "revoke NAME --cluster-kubeconfig FILE [--cluster-context CONTEXT]",
		DisableFlagsInUseLine: true,
		Short:                 "End every credential that Manifold has in a cluster",
		Long: templates.LongDesc(`
			End every credential of Manifold's in a cluster, whoever has it, and forget the one that is stored. Nothing that runs
			there is touched; it stays as it is, and is not brought up to date, until "manifold cluster join" under the same name
			makes another credential.

			An API server may remember a token for some ten seconds after it has ended.`),
		Example: templates.Examples(`
			# Lock Manifold out of a cluster
			manifold cluster revoke east --cluster-kubeconfig ~/.kube/east

			# Let it in again
			manifold cluster join east --cluster-kubeconfig ~/.kube/east`),
		ValidArgsFunction: completeClusters(f, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.complete(f, cmd, args); err != nil {
				return err
			}
			ctx, stop := interruptible(cmd.Context())
			defer stop()
			return o.Run(ctx)
		},
	}
	o.addFlags(cmd)
	return cmd
}

// Run revokes the credential, below first: that is what it is worth something for.
func (o *RevokeOptions) Run(ctx context.Context) error {
	logical, below, _, err := o.open(ctx)
	if err != nil {
		return fmt.Errorf("revoke the credential of cluster %q: %w", o.Name, err)
	}
	progress := progress{out: o.ErrOut}
	if err := below.Disown(ctx, logical.uid); err != nil {
		return fmt.Errorf("revoke the credential of cluster %q: %w", o.Name, err)
	}
	if _, err := below.StopAskingAboutPods(ctx, logical.uid); err != nil {
		return fmt.Errorf("the cluster still asks about pods with its token: %w", err)
	}
	progress.done("Ended every credential in the cluster")
	if err := logical.forget(ctx, o.Name); err != nil {
		return fmt.Errorf("the credential of cluster %q no longer works, but is still stored: %w", o.Name, err)
	}
	fmt.Fprintf(o.Out, "cluster/%s no longer has a credential\n", o.Name)
	return nil
}

// forget takes the credential out of what is stored of a cluster, and notes why it is gone.
func (l *logical) forget(ctx context.Context, cluster string) error {
	patch, err := json.Marshal(map[string]any{"data": map[string][]byte{kubeconfigKey: nil, podhooks.TokensKey: nil, revokedKey: []byte("true")}})
	if err != nil {
		return err
	}
	_, err = l.client.CoreV1().Secrets(manifoldv1alpha1.SystemNamespace).Patch(ctx, credentialName(cluster), types.MergePatchType, patch,
		metav1.PatchOptions{FieldManager: grants.FieldManager})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}
