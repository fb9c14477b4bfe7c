package plugin

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	cmdutil "k8s.io/kubectl/pkg/cmd/util"
	"k8s.io/kubectl/pkg/util/templates"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	manifold "github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/internal/text"
	"github.com/manifold-dev/manifold/pkg/cli/listing"
	"github.com/manifold-dev/manifold/pkg/cli/output"
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
	_, err = fmt.Fprintln(o.Out, strings.Join(show(plugin, time.Now()), "\n"))
	return err
}

// longest bounds what one thing that others say takes of the screen.
const longest = 1024

// show returns what there is to see of a plugin, line by line.
func show(plugin *v1alpha1.Plugin, now time.Time) []string {
	status := &plugin.Status
	var rows [][]string
	line := func(name, said string) { rows = append(rows, []string{name + ":", text.Line(said, longest)}) }
	line("Name", plugin.Name)
	if plugin.Spec.PipecdName != "" {
		line("In files", plugin.Spec.PipecdName)
	}
	line("Program", plugin.Spec.URL)
	if of := plugin.Spec.SecretRef; of != nil {
		line("Login", "Secret "+manifold.SystemNamespace+"/"+of.Name)
	}
	line("SHA-256", plugin.Spec.Sha256)
	line("Ready", ready(plugin))
	line("Stages", strings.Join(status.Stages, ", "))
	line("Services", strings.Join(status.Services, ", "))
	line("Targets", strings.Join(status.Targets, ", "))
	if plugin.Spec.InstallTools {
		line("Tools", "it may install those that it asks for")
	}
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
	for _, asked := range requests(plugin) {
		line(asked[0], asked[1])
	}
	return output.Filled(rows)
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

// requests are what somebody has asked for, each with whether that is done.
func requests(plugin *v1alpha1.Plugin) (out [][2]string) {
	status := &plugin.Status
	for _, of := range []struct {
		what, at, done string
		asked          *v1alpha1.PluginAsked
	}{
		{"a restart", plugin.Annotations[v1alpha1.AnnotationRestartAt], status.RestartedFor, status.RestartAsked},
		{"another fetch of the program", plugin.Annotations[v1alpha1.AnnotationRefetchAt], status.RefetchedFor, status.RefetchAsked},
	} {
		by := ""
		if of.asked != nil {
			by = of.asked.By
		}
		switch {
		case of.at != "" && of.at != of.done:
			out = append(out, [2]string{"Asked for", fmt.Sprintf("%s, by %s at %s", of.what, cmp.Or(by, output.Nothing), of.at)})
		case of.done != "" && of.asked != nil && of.asked.For == of.done:
			out = append(out, [2]string{"Done", fmt.Sprintf("%s, for which %s has asked at %s", of.what, cmp.Or(by, output.Nothing), of.asked.Time.UTC().Format(time.RFC3339))})
		}
	}
	return out
}
