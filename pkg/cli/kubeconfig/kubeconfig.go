// Package kubeconfig holds the command that writes a kubeconfig of the view of a cluster.
package kubeconfig

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	cmdutil "k8s.io/kubectl/pkg/cmd/util"
	"k8s.io/kubectl/pkg/util/completion"
	"k8s.io/kubectl/pkg/util/templates"
	"k8s.io/utils/clock"

	"github.com/manifold-dev/manifold/pkg/cli/listing"
	"github.com/manifold-dev/manifold/pkg/cli/logical"
	"github.com/manifold-dev/manifold/pkg/delivery/plugins/targets"
)

// Options are what "kubeconfig" needs.
type Options struct {
	genericiooptions.IOStreams

	targets.Access
	// File is where to write it, "" for standard output.
	File string

	client kubernetes.Interface
	clock  clock.PassiveClock
}

// NewCommand returns "kubeconfig".
func NewCommand(f cmdutil.Factory, streams genericiooptions.IOStreams) *cobra.Command {
	o := &Options{IOStreams: streams, Access: targets.Access{Duration: time.Hour}, clock: clock.RealClock{}}
	cmd := &cobra.Command{
		Use: "kubeconfig --cluster CLUSTER --serviceaccount NAME [-n NAMESPACE] [--duration DURATION] [--file FILE]",

		DisableFlagsInUseLine: true,

		Short: "Write a kubeconfig that shows the logical cluster as one cluster is to see it",
		Long: templates.LongDesc(`
			Write a kubeconfig of the view of a cluster: by it, plain kubectl sees what that cluster is to hold, and what it writes is pinned there
			and becomes that cluster's alone. It is for one namespace, with the rights of a ServiceAccount there, and for a short time.

			The token in it is good for the view of that cluster and for nothing else. The ServiceAccount needs the right to use the view as well,
			as the ClusterRole manifold:use-views gives it for all clusters.`),
		Example: templates.Examples(`
			# For an hour, on standard output
			manifold kubeconfig --cluster east -n shop --serviceaccount deployer

			# Into a file that only you can read, and use it
			manifold kubeconfig --cluster east -n shop --serviceaccount deployer --file east.kubeconfig
			kubectl --kubeconfig east.kubeconfig apply -f web.yaml`),
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.complete(f); err != nil {
				return err
			}
			return o.Run(cmd.Context())
		},
	}
	flags := cmd.Flags()
	// It takes the place of kubectl's flag for an entry of the kubeconfig.
	flags.StringVar(&o.Cluster, "cluster", o.Cluster, "The cluster whose view it is.")
	flags.StringVar(&o.ServiceAccount, "serviceaccount", o.ServiceAccount, "The ServiceAccount of the namespace whose rights count.")
	flags.DurationVar(&o.Duration, "duration", o.Duration, fmt.Sprintf("For how long, at least %s and at most %s.", targets.Shortest, targets.Longest))
	flags.StringVar(&o.File, "file", o.File, "Write it to this file, which only you can read, instead of standard output.")
	for _, flag := range []string{"cluster", "serviceaccount"} {
		cmdutil.CheckErr(cmd.MarkFlagRequired(flag))
	}
	cmdutil.CheckErr(cmd.RegisterFlagCompletionFunc("cluster", listing.Complete(f, "clusters.manifold.dev", listing.Everything)))
	cmdutil.CheckErr(cmd.RegisterFlagCompletionFunc("serviceaccount", func(_ *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
		return completion.CompGetResource(f, "serviceaccounts", typed), cobra.ShellCompDirectiveNoFileComp
	}))
	return cmd
}

func (o *Options) complete(f cmdutil.Factory) error {
	namespace, config, err := logical.Config(f)
	if err != nil {
		return err
	}
	o.Namespace = namespace
	if err := o.reach(config); err != nil {
		return err
	}
	o.client, err = kubernetes.NewForConfig(config)
	return err
}

// reach has the kubeconfig lead where the user's own does, by the same certificates.
func (o *Options) reach(config *rest.Config) error {
	o.Server, o.TLSServerName = config.Host, config.ServerName
	switch {
	case config.Insecure:
		return errors.New("your own kubeconfig trusts whatever answers (insecure-skip-tls-verify), and a token is not to be sent to that: give it the authority of the server")
	case len(config.CAData) > 0:
		o.Authority = config.CAData
	case config.CAFile != "":
		authority, err := os.ReadFile(config.CAFile)
		if err != nil {
			return fmt.Errorf("read the authority that your own kubeconfig names: %w", err)
		}
		o.Authority = authority
	}
	return nil
}

// Run makes the kubeconfig and writes it.
func (o *Options) Run(ctx context.Context) error {
	target, err := targets.Make(ctx, o.client, o.Access, o.clock.Now())
	if err != nil {
		return err
	}
	if o.File == "" {
		_, err := o.Out.Write(target.Kubeconfig)
		return err
	}
	if err := write(o.File, target.Kubeconfig); err != nil {
		return err
	}
	fmt.Fprintf(o.ErrOut, "%s is good until %s\n", o.File, target.Expires.UTC().Format(time.RFC3339))
	return nil
}

// write puts the whole content into the place of a file, which nobody else may read at any moment.
func write(file string, content []byte) error {
	temporary, err := os.CreateTemp(filepath.Dir(file), ".kubeconfig-*") // for the owner alone
	if err != nil {
		return fmt.Errorf("write %s: %w", file, err)
	}
	_, err = temporary.Write(content)
	if err := errors.Join(err, temporary.Close()); err != nil {
		return errors.Join(fmt.Errorf("write %s: %w", file, err), os.Remove(temporary.Name()))
	}
	if err := os.Rename(temporary.Name(), file); err != nil {
		return errors.Join(fmt.Errorf("write %s: %w", file, err), os.Remove(temporary.Name()))
	}
	return nil
}
