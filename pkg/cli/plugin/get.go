package plugin

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	cmdutil "k8s.io/kubectl/pkg/cmd/util"
	"k8s.io/kubectl/pkg/util/templates"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/internal/text"
	"github.com/manifold-dev/manifold/pkg/cli/listing"
)

// GetOptions are what "plugin get" needs.
type GetOptions struct {
	genericiooptions.IOStreams

	logical
	Name string
}

func newGetCommand(f cmdutil.Factory, streams genericiooptions.IOStreams) *cobra.Command {
	o := &GetOptions{IOStreams: streams}
	getter := listing.New(resource, streams)
	cmd := &cobra.Command{
		Use:                   "get NAME [-o FORMAT] [--watch]",
		Aliases:               []string{"show", "describe"},
		DisableFlagsInUseLine: true,
		Short:                 "Show a plugin",
		Long: templates.LongDesc(`
			Show which program a plugin is, whether it answers, what it offers, and why it last failed. Its configuration is left out, since it may hold
			credentials.

			With -o or --watch, this is "kubectl get" of the plugin.`),
		Example: templates.Examples(`
			# A plugin
			manifold plugin get kubernetes

			# For a script
			manifold plugin get kubernetes -o jsonpath='{.status.stages}'`),
		ValidArgsFunction: listing.Complete(f, resource, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return cmdutil.UsageErrorf(cmd, "exactly one NAME is required, got %d", len(args))
			}
			if getter.Formatted() || getter.Watches() {
				return getter.Run(f, cmd, args)
			}
			if err := o.connect(f); err != nil {
				return err
			}
			o.Name = args[0]
			return o.Run(cmd.Context())
		},
	}
	getter.AddFlags(cmd)
	return cmd
}

// Run shows the plugin.
func (o *GetOptions) Run(ctx context.Context) error {
	plugin, err := o.plugins().Get(ctx, o.Name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	return show(o.Out, plugin, time.Now())
}

const (
	// longest bounds what one thing that others say takes of the screen.
	longest = 1024
	nothing = "-"
)

func show(out io.Writer, plugin *v1alpha1.Plugin, now time.Time) error {
	status := &plugin.Status
	tab := tabwriter.NewWriter(out, 0, 8, 2, ' ', 0)
	line := func(name, said string) {
		fmt.Fprintf(tab, "%s:\t%s\n", name, cmp.Or(text.Line(said, longest), nothing))
	}
	line("Name", plugin.Name)
	line("Program", plugin.Spec.URL)
	line("SHA-256", plugin.Spec.Sha256)
	line("Ready", ready(plugin))
	line("Stages", strings.Join(status.Stages, ", "))
	line("Services", strings.Join(status.Services, ", "))
	line("Targets", strings.Join(status.Targets, ", "))
	if status.StartTime != nil {
		line("Process", fmt.Sprintf("started %s ago, restarted %d times", duration.HumanDuration(now.Sub(status.StartTime.Time)), status.Restarts))
	}
	if status.LastError != "" {
		said := status.LastError
		if status.LastErrorTime != nil {
			said = duration.HumanDuration(now.Sub(status.LastErrorTime.Time)) + " ago: " + said
		}
		line("Last error", said)
	}
	for _, asked := range pending(plugin) {
		line("Asked for", asked)
	}
	return tab.Flush()
}

func ready(plugin *v1alpha1.Plugin) string {
	condition := meta.FindStatusCondition(plugin.Status.Conditions, v1alpha1.PluginReady)
	if condition == nil {
		return string(metav1.ConditionUnknown) // the server has not looked at it yet
	}
	said := string(condition.Status) + ", " + condition.Reason
	if condition.Message != "" {
		said += ": " + condition.Message
	}
	return said
}

// pending are what somebody has asked for and is not done.
func pending(plugin *v1alpha1.Plugin) []string {
	var out []string
	for _, asking := range []struct{ what, at, done string }{
		{"a restart", plugin.Annotations[v1alpha1.AnnotationRestartAt], plugin.Status.RestartedFor},
		{"another fetch of the program", plugin.Annotations[v1alpha1.AnnotationRefetchAt], plugin.Status.RefetchedFor},
	} {
		if asking.at != "" && asking.at != asking.done {
			out = append(out, fmt.Sprintf("%s, by %s at %s", asking.what, cmp.Or(plugin.Annotations[v1alpha1.AnnotationAskedBy], nothing), asking.at))
		}
	}
	return out
}
