// Package start holds the command that runs the logical cluster.
package start

import (
	"context"
	"fmt"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/rest"
	cliflag "k8s.io/component-base/cli/flag"
	basecompatibility "k8s.io/component-base/compatibility"
	"k8s.io/component-base/featuregate"
	logsapi "k8s.io/component-base/logs/api/v1"
	"k8s.io/kubectl/pkg/util/templates"
	"k8s.io/kubectl/pkg/util/term"

	"github.com/manifold-dev/manifold/pkg/server"
)

// Options are what "start" needs: the server's options and where to tell that it is ready.
type Options struct {
	genericiooptions.IOStreams

	Server *server.Options
}

// NewCommand returns "start".
func NewCommand(streams genericiooptions.IOStreams) *cobra.Command {
	o := &Options{IOStreams: streams, Server: server.NewOptions()}
	cmd := &cobra.Command{
		Use:                   "start [--data-dir DIR] [--secure-port PORT] [--bind-address ADDRESS]",
		DisableFlagsInUseLine: true,
		Short:                 "Run the logical cluster: API server, storage, controllers and syncers",
		Long: templates.LongDesc(`
			Run the logical cluster in one process: API server, embedded etcd, controllers and syncers.

			Everything it keeps is in the data directory: the storage, keys and certificates, and admin.kubeconfig, which kubectl
			and the other commands here can use. A second start on the same directory continues. Ctrl-C stops it; what runs in the
			clusters goes on meanwhile.

			All flags of the stock API server work too.`),
		Example: templates.Examples(`
			# Run it here
			manifold start

			# Let others reach it, and keep everything elsewhere
			manifold start --data-dir /var/lib/manifold --bind-address 0.0.0.0

			# Use an etcd that runs already
			manifold start --etcd-servers https://10.0.0.1:2379 --etcd-cafile ca.crt --etcd-certfile tls.crt --etcd-keyfile tls.key`),
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGINT, syscall.SIGTERM)
			defer stop()
			context.AfterFunc(ctx, stop) // A second signal does not wait for requests to drain.
			return o.Run(ctx)
		},
	}
	flags := o.Server.Flags()
	for _, name := range flags.Order {
		cmd.Flags().AddFlagSet(flags.FlagSets[name])
	}
	setHelp(cmd, flags)
	return cmd
}

// setHelp prints the flags by section, as the stock API server does.
func setHelp(cmd *cobra.Command, flags cliflag.NamedFlagSets) {
	cmd.SetHelpFunc(func(cmd *cobra.Command, _ []string) {
		out := cmd.OutOrStdout()
		text := term.NewResponsiveWriter(out)
		fmt.Fprintf(text, "%s\n\nExamples:\n%s\n\nUsage:\n  %s [options]\n",
			strings.TrimSpace(cmd.Long), strings.TrimRight(cmd.Example, " \n"), cmd.UseLine())
		columns := 0
		if size := (term.TTY{Out: out}).GetSize(); size != nil {
			columns = int(size.Width)
		}
		cliflag.PrintSections(out, flags, columns)
	})
}

// Run runs the server until ctx ends and tells when it is ready.
func (o *Options) Run(ctx context.Context) error {
	begun := time.Now()
	if err := o.apply(); err != nil {
		return err
	}
	completed, err := o.Server.Complete(ctx)
	if err != nil {
		return err
	}
	if problems := completed.Validate(); len(problems) > 0 {
		completed.Close()
		return utilerrors.NewAggregate(problems)
	}
	kubeconfig, err := filepath.Abs(completed.AdminKubeconfig())
	if err != nil {
		completed.Close()
		return err
	}
	setGCPercent(startGCPercent)
	group, ctx := errgroup.WithContext(ctx)
	ctx, stop := context.WithCancel(ctx)
	started := make(chan struct{})
	group.Go(func() error {
		defer stop() // The announcement waits for a server that there is not any more.
		return server.Run(ctx, completed, func() { close(started) })
	})
	group.Go(func() error {
		select {
		case <-started:
			return returnIdleMemory(ctx)
		case <-ctx.Done():
			return nil
		}
	})
	group.Go(func() error {
		o.announce(ctx, kubeconfig, begun)
		return nil
	})
	return group.Wait()
}

// apply puts the flags that are about the whole process into effect: feature gates and logging.
func (o *Options) apply() error {
	registry := o.Server.GenericServerRunOptions.ComponentGlobalsRegistry
	if err := registry.Set(); err != nil {
		return err
	}
	gates := registry.FeatureGateFor(basecompatibility.DefaultKubeComponent)
	if err := logsapi.ValidateAndApply(o.Server.Logs, gates); err != nil {
		return err
	}
	// Warnings about the server's own requests help nobody.
	rest.SetDefaultWarningHandler(rest.NoWarnings{})
	if mutable, ok := gates.(featuregate.MutableFeatureGate); ok {
		mutable.AddMetrics()
	}
	registry.AddMetrics()
	return nil
}
