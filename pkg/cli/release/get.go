package release

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	cmdutil "k8s.io/kubectl/pkg/cmd/util"
	"k8s.io/kubectl/pkg/util/templates"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/internal/text"
	"github.com/manifold-dev/manifold/pkg/cli/listing"
	"github.com/manifold-dev/manifold/pkg/cli/output"
	"github.com/manifold-dev/manifold/pkg/cli/release/progress"
)

// GetOptions are what "release get" needs.
type GetOptions struct {
	genericiooptions.IOStreams

	subject
}

func newGetCommand(f cmdutil.Factory, streams genericiooptions.IOStreams) *cobra.Command {
	o := &GetOptions{IOStreams: streams}
	getter := listing.New(resource, streams)
	cmd := &cobra.Command{
		Use:                   "get NAME [-o FORMAT] [--watch]",
		Aliases:               []string{"show", "describe"},
		DisableFlagsInUseLine: true,
		Short:                 "Show a release, stage by stage and cluster by cluster",
		Long: templates.LongDesc(`
			Show what a release brings, its stages, how far each cluster is in them, and what people have asked of it.

			With -o or --watch, this is "kubectl get" of the release. "manifold release watch" shows the stages until it has ended.`),
		Example: templates.Examples(`
			# A release
			manifold release get web-x2f

			# For a script
			manifold release get web-x2f -o jsonpath='{.status.phase}'`),
		ValidArgsFunction: completeOne(f),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.complete(f, cmd, args); err != nil {
				return err
			}
			if getter.Formatted() || getter.Watches() {
				return getter.Run(f, cmd, args)
			}
			return o.Run(cmd.Context())
		},
	}
	getter.AddFlags(cmd)
	return cmd
}

// Run shows the release.
func (o *GetOptions) Run(ctx context.Context) error {
	release, err := o.releases().Get(ctx, o.Name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	return show(o.Out, release, time.Now())
}

// longestComment bounds what a comment takes of the screen.
const longestComment = 512

// show writes the release, what people have asked of it, and what it waits for them to do.
func show(out io.Writer, release *v1alpha1.Release, now time.Time) error {
	if _, err := fmt.Fprintln(out, strings.Join(progress.Lines(release, now, 0), "\n")); err != nil {
		return err
	}
	if requests := release.Status.Requests; len(requests) > 0 {
		rows := [][]string{{"AGE", "REQUEST", "BY", "STAGE", "COMMENT"}}
		for i := range requests {
			r := &requests[i]
			rows = append(rows, output.Row(duration.HumanDuration(now.Sub(r.Time.Time)), requested(r), text.Line(r.User, longestComment), r.Stage,
				text.Line(r.Comment, longestComment)))
		}
		if _, err := fmt.Fprintf(out, "\n%s\n", strings.Join(output.Table(rows), "\n")); err != nil {
			return err
		}
	}
	if advice := progress.Advice(release); advice != "" {
		_, err := fmt.Fprintf(out, "\n%s\n", advice)
		return err
	}
	return nil
}

// requested is what somebody has asked for, with the targets that it is about.
func requested(r *v1alpha1.ReleaseRequest) string {
	what := string(r.Type)
	if r.Rollback {
		what += " and roll back"
	}
	if len(r.Targets) > 0 {
		what += " " + strings.Join(r.Targets, ",")
	}
	return text.Line(what, longestComment)
}
