// Package insight holds the command that tells how well applications are delivered.
package insight

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	cmdutil "k8s.io/kubectl/pkg/cmd/util"
	"k8s.io/kubectl/pkg/util/templates"

	"github.com/manifold-dev/manifold/generated/clientset/versioned"
	"github.com/manifold-dev/manifold/pkg/cli/logical"
	"github.com/manifold-dev/manifold/pkg/cli/output"
	"github.com/manifold-dev/manifold/pkg/delivery/insight"
)

// longestTime bounds the time that is told of: a day each is a row.
const longestTime = 10 * 366 * 24 * time.Hour

// Options are what "app insight" needs.
type Options struct {
	genericiooptions.IOStreams

	Namespace     string
	AllNamespaces bool
	// Names are those of applications. None means all that the selector selects.
	Names    []string
	Selector string
	// Since is how far back to look.
	Since age
	// By is the length of the periods that are told of, if any.
	By     unit
	Output output.Format

	client versioned.Interface
}

// NewCommand returns "insight". Complete offers the names of applications.
func NewCommand(f cmdutil.Factory, streams genericiooptions.IOStreams, complete cobra.CompletionFunc) *cobra.Command {
	o := &Options{IOStreams: streams, Since: age(30 * 24 * time.Hour)}
	cmd := &cobra.Command{
		Use: "insight [NAME... | -l SELECTOR] [-A] [--since AGE] [--by day|month] [-o json|yaml]",

		DisableFlagsInUseLine: true,

		Short: "Show how well applications are delivered",
		Long: templates.LongDesc(`
			Show how well applications are delivered, by their releases: how many there were, how many of them failed, how long it took from a commit until
			it was released, and how long a failure lasted. The times are medians.

			A release counts once it has succeeded, failed or been rolled back. Releases that roll back another one, put drift right, follow the
			clusters of a target, or were cancelled or superseded, are no changes. Only releases that are kept can be counted: of each application as many as
			its spec.releaseHistoryLimit says. The metrics of the server count them all.`),
		Example: templates.Examples(`
			# All applications of the namespace, over the last 30 days
			manifold app insight

			# One application, day by day
			manifold app insight web --since 7d --by day

			# The applications of a team, in all namespaces, month by month, for a script
			manifold app insight -A -l team=shop --since 365d --by month -o json`),
		ValidArgsFunction: complete,
		RunE: func(cmd *cobra.Command, args []string) error {
			o.Names = args
			if err := o.complete(f, cmd); err != nil {
				return err
			}
			return o.Run(cmd.Context(), time.Now())
		},
	}
	o.Output.AddFlag(cmd)
	flags := cmd.Flags()
	flags.BoolVarP(&o.AllNamespaces, "all-namespaces", "A", o.AllNamespaces, "Show applications of all namespaces.")
	flags.Var(&o.Since, "since", "How far back to look, in days, as 30d, or in hours and minutes, as 36h.")
	flags.Var(&o.By, "by", "Show each day or month as well. One of: (day, month). Days and months are those of UTC.")
	cmdutil.AddLabelSelectorFlagVar(cmd, &o.Selector)
	cmdutil.CheckErr(cmd.RegisterFlagCompletionFunc("by", cobra.FixedCompletions([]string{string(insight.Day), string(insight.Month)},
		cobra.ShellCompDirectiveNoFileComp)))
	return cmd
}

func (o *Options) complete(f cmdutil.Factory, cmd *cobra.Command) error {
	if len(o.Names) > 0 && (o.Selector != "" || o.AllNamespaces) {
		return cmdutil.UsageErrorf(cmd, "applications are named, or selected by --selector and --all-namespaces, not both")
	}
	if _, err := labels.Parse(o.Selector); err != nil {
		return cmdutil.UsageErrorf(cmd, "--selector: %v", err)
	}
	var err error
	o.Namespace, o.client, err = logical.Typed(f)
	return err
}

// Run reads what is kept, and shows it as of now.
func (o *Options) Run(ctx context.Context, now time.Time) error {
	kept, err := o.read(ctx)
	if err != nil {
		return err
	}
	report := newReport(kept, insight.Unit(o.By), now.Add(-time.Duration(o.Since)), now)
	return o.Output.Print(o.Out, report, report.print)
}

// age is a length of time, as a flag.
type age time.Duration

// Set implements pflag.Value.
func (a *age) Set(value string) error {
	var parsed time.Duration
	var err error
	if days, ok := strings.CutSuffix(value, "d"); ok {
		var n int
		n, err = strconv.Atoi(days)
		n = min(n, int(longestTime.Hours())) // what is more is refused below, and must not overflow before
		parsed = time.Duration(n) * 24 * time.Hour
	} else {
		parsed, err = time.ParseDuration(value)
	}
	switch {
	case err != nil:
		return fmt.Errorf("it must be a number of days, as 30d, or a duration, as 36h")
	case parsed <= 0 || parsed > longestTime:
		return fmt.Errorf("it must be more than nothing, and at most %dd", int(longestTime.Hours()/24))
	}
	*a = age(parsed)
	return nil
}

// String implements pflag.Value.
func (a *age) String() string {
	if d := time.Duration(*a); d%(24*time.Hour) == 0 {
		return fmt.Sprintf("%dd", d/(24*time.Hour))
	}
	return time.Duration(*a).String()
}

// Type implements pflag.Value.
func (a *age) Type() string { return "age" }

// unit is a unit of periods, as a flag.
type unit insight.Unit

// Set implements pflag.Value.
func (u *unit) Set(value string) error {
	switch insight.Unit(value) {
	case insight.Day, insight.Month, "":
		*u = unit(value)
		return nil
	}
	return fmt.Errorf("it must be %s or %s", insight.Day, insight.Month)
}

// String implements pflag.Value.
func (u *unit) String() string { return string(*u) }

// Type implements pflag.Value.
func (u *unit) Type() string { return "unit" }
