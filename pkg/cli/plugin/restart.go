package plugin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	watchtools "k8s.io/client-go/tools/watch"
	cmdutil "k8s.io/kubectl/pkg/cmd/util"
	"k8s.io/kubectl/pkg/util/templates"
	"k8s.io/utils/clock"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/internal/text"
	"github.com/manifold-dev/manifold/pkg/cli/follow"
	"github.com/manifold-dev/manifold/pkg/cli/interrupt"
	"github.com/manifold-dev/manifold/pkg/cli/listing"
)

// restartManager is the field manager of what asks for a restart.
const restartManager = "manifold-plugin-restart"

// atFormat is that of times by which things are asked for. Two that are asked for in one second are two.
const atFormat = "2006-01-02T15:04:05.000000Z07:00"

// RestartOptions are what "plugin restart" needs.
type RestartOptions struct {
	genericiooptions.IOStreams

	logical
	Name string
	// Refetch has the program fetched again.
	Refetch bool
	Wait    bool
	// Timeout is zero to wait for as long as it takes.
	Timeout time.Duration

	clock clock.PassiveClock
}

func newRestartCommand(f cmdutil.Factory, streams genericiooptions.IOStreams) *cobra.Command {
	o := &RestartOptions{IOStreams: streams, clock: clock.RealClock{}}
	cmd := &cobra.Command{
		Use:                   "restart NAME [--refetch] [--wait [--timeout DURATION]]",
		DisableFlagsInUseLine: true,
		Short:                 "Start a plugin again",
		Long: templates.LongDesc(`
			Stop the process of a plugin, and start it again. Your name is recorded. What the plugin is doing for releases at the time ends or begins again
			as if its process had died.

			With --wait, the exit code is 0 once the new process answers, 1 if it does not within --timeout, and 130 if you interrupt this command.`),
		Example: templates.Examples(`
			# Start it again
			manifold plugin restart kubernetes

			# Fetch its program again, whatever was kept of it, and wait until it answers
			manifold plugin restart kubernetes --refetch --wait --timeout 2m`),
		ValidArgsFunction: listing.Complete(f, resource, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return cmdutil.UsageErrorf(cmd, "exactly one NAME is required, got %d", len(args))
			}
			o.Name = args[0]
			if err := o.Validate(); err != nil {
				return err
			}
			if err := o.connect(f); err != nil {
				return err
			}
			return interrupt.Run(cmd.Context(), o.Run)
		},
	}
	flags := cmd.Flags()
	flags.BoolVar(&o.Refetch, "refetch", o.Refetch, "Fetch the program again before, also if it is there.")
	flags.BoolVar(&o.Wait, "wait", o.Wait, "Wait until the new process answers.")
	flags.DurationVar(&o.Timeout, "timeout", o.Timeout, "With --wait: how long to wait. Zero is for as long as it takes.")
	return cmd
}

// Validate refuses a time to wait that is none.
func (o *RestartOptions) Validate() error {
	switch {
	case o.Timeout < 0:
		return fmt.Errorf("--timeout must not be less than zero, but is %s", o.Timeout)
	case o.Timeout > 0 && !o.Wait:
		return errors.New("--timeout is for --wait")
	}
	return nil
}

// Run asks for the restart, and waits for it if that is asked for.
func (o *RestartOptions) Run(ctx context.Context) error {
	at := o.clock.Now().UTC().Format(atFormat)
	asking := map[string]string{v1alpha1.AnnotationRestartAt: at}
	if o.Refetch {
		asking[v1alpha1.AnnotationRefetchAt] = at
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": asking}})
	if err != nil {
		return err
	}
	plugin, err := o.plugins().Patch(ctx, o.Name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: restartManager})
	if err != nil {
		return err
	}
	if why := obstacle(plugin); why != "" {
		fmt.Fprintf(o.ErrOut, "Warning: %s\n", why)
	}
	if !o.Wait {
		fmt.Fprintf(o.Out, "plugin/%s is asked to restart\n", o.Name)
		return nil
	}
	fmt.Fprintf(o.ErrOut, "plugin/%s is asked to restart\n", o.Name)
	return o.await(ctx, at)
}

// obstacle says what may keep a restart from being done, "" if nothing does.
func obstacle(plugin *v1alpha1.Plugin) string {
	switch {
	case plugin.Spec.Suspend:
		return fmt.Sprintf("plugin %s is suspended, and starts once spec.suspend is unset", plugin.Name)
	case !meta.IsStatusConditionTrue(plugin.Status.Conditions, v1alpha1.PluginReady):
		return text.Line("plugin "+plugin.Name+" is not ready: "+ready(plugin), longest)
	}
	return ""
}

// await follows the plugin until the process answers that was started for this restart.
func (o *RestartOptions) await(ctx context.Context, at string) error {
	bounded, cancel := watchtools.ContextWithOptionalTimeout(ctx, o.Timeout)
	defer cancel()
	said := ""
	err := follow.Object(bounded, o.plugins(), o.client, &v1alpha1.Plugin{}, o.Name, func(plugin *v1alpha1.Plugin) (bool, error) {
		if plugin == nil {
			return false, errors.New("it has been deleted meanwhile")
		}
		if done(plugin, at) {
			return true, nil
		}
		if now := text.Line(ready(plugin), longest); now != said {
			said = now
			fmt.Fprintf(o.ErrOut, "plugin/%s: %s\n", o.Name, said)
		}
		return false, nil
	})
	if err != nil && ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("plugin %s has not restarted after %s (ready is %s): manifold plugin get %s", o.Name, o.Timeout, said, o.Name)
	}
	if err != nil {
		return err
	}
	fmt.Fprintf(o.Out, "plugin/%s restarted\n", o.Name)
	return nil
}

// done reports whether the process answers that was started for a restart, or for a later one.
func done(plugin *v1alpha1.Plugin, at string) bool {
	return plugin.Status.RestartedFor >= at && meta.IsStatusConditionTrue(plugin.Status.Conditions, v1alpha1.PluginReady)
}
