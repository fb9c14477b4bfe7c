package app

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	cmdutil "k8s.io/kubectl/pkg/cmd/util"
	"k8s.io/kubectl/pkg/util/templates"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/cli/follow"
	"github.com/manifold-dev/manifold/pkg/cli/interrupt"
	"github.com/manifold-dev/manifold/pkg/cli/listing"
	"github.com/manifold-dev/manifold/pkg/cli/output"
)

// GetOptions are what "app get" needs.
type GetOptions struct {
	genericiooptions.IOStreams

	subject
	// shown is the revision whose origin was read last, which is from.
	shown string
	from  *v1alpha1.Origin
}

func newGetCommand(f cmdutil.Factory, streams genericiooptions.IOStreams) *cobra.Command {
	o := &GetOptions{IOStreams: streams}
	getter := listing.New(resource, streams)
	cmd := &cobra.Command{
		Use:                   "get NAME [-o FORMAT] [--watch]",
		Aliases:               []string{"show", "describe"},
		DisableFlagsInUseLine: true,
		Short:                 "Show an application, target by target",
		Long: templates.LongDesc(`
			Show where an application comes from, what is wrong with it, and for each cluster of its targets the revision that it is to run,
			the one that it runs, whether it has what was released, and how that is.

			With -o, this is "kubectl get" of the application.`),
		Example: templates.Examples(`
			# An application
			manifold app get web

			# As it changes
			manifold app get web --watch

			# For a script
			manifold app get web -o jsonpath='{.status.liveRevision}'`),
		ValidArgsFunction: completeOne(f),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.complete(f, cmd, args); err != nil {
				return err
			}
			switch {
			case getter.Formatted():
				return getter.Run(f, cmd, args)
			case getter.Watches():
				return interrupt.Run(cmd.Context(), o.Watch)
			}
			return o.Run(cmd.Context())
		},
	}
	getter.AddFlags(cmd)
	return cmd
}

// Run shows the application.
func (o *GetOptions) Run(ctx context.Context) error {
	application, err := o.applications().Get(ctx, o.Name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(o.Out, strings.Join(show(application, o.origin(ctx, application), time.Now()), "\n"))
	return err
}

// origin is where the revision comes from that the application is to run, nil if that is not known.
func (o *GetOptions) origin(ctx context.Context, application *v1alpha1.Application) *v1alpha1.Origin {
	name := cmp.Or(application.Status.WantedRevision, application.Status.LiveRevision)
	if name == "" {
		return nil
	}
	if name != o.shown || o.from == nil {
		revision, err := o.delivery().ApplicationRevisions(o.Namespace).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return nil // it may be gone, or not for this user to read
		}
		o.shown, o.from = name, revision.Spec.Origin
	}
	return o.from
}

// Watch shows the application whenever it changes: in place on a terminal, and elsewhere one text below the other.
func (o *GetOptions) Watch(ctx context.Context) error {
	screen, behind := output.ScreenOf(o.Out), ""
	return follow.Object(ctx, o.applications(), o.client, &v1alpha1.Application{}, o.Name, func(application *v1alpha1.Application) (bool, error) {
		if application == nil {
			return true, fmt.Errorf("there is no application %q in namespace %q", o.Name, o.Namespace)
		}
		lines := show(application, o.origin(ctx, application), time.Now())
		if screen != nil {
			return false, screen.Draw(fitting(lines, screen.Rows()))
		}
		_, err := fmt.Fprintln(o.Out, behind+strings.Join(lines, "\n"))
		behind = "\n"
		return false, err
	})
}

// fitting are the lines that there is room for, and how many are left out.
func fitting(lines []string, rows int) []string {
	if len(lines) <= rows {
		return lines
	}
	return append(lines[:rows-1:rows-1], fmt.Sprintf("... and %d more lines", len(lines)-rows+1))
}
