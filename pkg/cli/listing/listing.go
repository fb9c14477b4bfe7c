// Package listing makes commands that are "kubectl get" for one kind, so that every output format and --watch work.
package listing

import (
	"math"
	"slices"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/kubectl/pkg/cmd/get"
	cmdutil "k8s.io/kubectl/pkg/cmd/util"
	"k8s.io/kubectl/pkg/util/completion"
)

// Everything is for commands that take any number of names.
const Everything = math.MaxInt

// Getter is "kubectl get" of one kind.
type Getter struct {
	// Resource is how the kind is asked for, in full, so that no other group's is meant.
	Resource string

	options *get.GetOptions
}

// New returns a getter of the kind.
func New(resource string, streams genericiooptions.IOStreams) *Getter {
	return &Getter{Resource: resource, options: get.NewGetOptions("manifold", streams)}
}

// AddListFlags adds the flags of a command that lists objects, of a namespace or of all if the kind is in namespaces.
func (g *Getter) AddListFlags(cmd *cobra.Command, namespaced bool) {
	g.AddFlags(cmd)
	flags := cmd.Flags()
	flags.BoolVar(&g.options.WatchOnly, "watch-only", g.options.WatchOnly, "Watch for changes without listing first.")
	cmdutil.AddLabelSelectorFlagVar(cmd, &g.options.LabelSelector)
	if namespaced {
		flags.BoolVarP(&g.options.AllNamespaces, "all-namespaces", "A", g.options.AllNamespaces, "List those of all namespaces.")
	}
}

// AddFlags adds the flags of a command that shows objects by their names.
func (g *Getter) AddFlags(cmd *cobra.Command) {
	g.options.PrintFlags.AddFlags(cmd)
	cmd.Flags().BoolVarP(&g.options.Watch, "watch", "w", g.options.Watch, "After listing, watch for changes.")
}

// Formatted reports whether somebody has asked for an output format.
func (g *Getter) Formatted() bool {
	return *g.options.PrintFlags.OutputFormat != ""
}

// Wide reports whether somebody has asked for more columns, which is a format of those that print columns.
func (g *Getter) Wide() bool {
	return *g.options.PrintFlags.OutputFormat == "wide"
}

// Watches reports whether somebody has asked for changes.
func (g *Getter) Watches() bool {
	return g.options.Watch
}

// Select lists only what a selector of labels selects, beside what the flag says.
func (g *Getter) Select(selector string) {
	if g.options.LabelSelector != "" {
		selector += "," + g.options.LabelSelector
	}
	g.options.LabelSelector = selector
}

// Run lists the objects of these names, or all.
func (g *Getter) Run(f cmdutil.Factory, cmd *cobra.Command, names []string) error {
	args := append([]string{g.Resource}, names...)
	if err := g.options.Complete(f, cmd, args); err != nil {
		return err
	}
	if err := g.options.Validate(); err != nil {
		return err
	}
	return g.options.Run(f, args)
}

// CompleteOne offers the names of objects of some kinds, for commands that are about one.
func CompleteOne(f cmdutil.Factory, resources ...string) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, typed string) (out []string, _ cobra.ShellCompDirective) {
		for _, resource := range resources {
			names, _ := Complete(f, resource, 1)(cmd, args, typed)
			out = append(out, names...)
		}
		return out, cobra.ShellCompDirectiveNoFileComp
	}
}

// Complete offers the names of objects of a kind that are not on the command line yet, up to limit of them.
func Complete(f cmdutil.Factory, resource string, limit int) cobra.CompletionFunc {
	return func(_ *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
		if len(args) >= limit {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		names := completion.CompGetResource(f, resource, typed)
		names = slices.DeleteFunc(names, func(name string) bool { return slices.Contains(args, name) })
		return names, cobra.ShellCompDirectiveNoFileComp
	}
}
