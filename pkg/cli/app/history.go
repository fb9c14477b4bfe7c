package app

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/tools/pager"
	cmdutil "k8s.io/kubectl/pkg/cmd/util"
	"k8s.io/kubectl/pkg/util/templates"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/internal/text"
	"github.com/manifold-dev/manifold/pkg/cli/output"
)

// HistoryOptions are what "app history" needs.
type HistoryOptions struct {
	genericiooptions.IOStreams

	subject
	// Output is the format.
	Output output.Format
}

// past is a revision as "app history" prints it, without its manifests.
type past struct {
	Number   int64                    `json:"number"`
	Revision string                   `json:"revision"`
	Origin   *v1alpha1.Origin         `json:"origin,omitempty"`
	Images   []v1alpha1.RevisionImage `json:"images,omitempty"`
	Charts   []string                 `json:"charts,omitempty"`
	Warnings []string                 `json:"warnings,omitempty"`
	Created  metav1.Time              `json:"created"`
	// LiveIn are the targets that run it, or their clusters where not all of them do.
	LiveIn []string `json:"liveIn,omitempty"`
}

func newHistoryCommand(f cmdutil.Factory, streams genericiooptions.IOStreams) *cobra.Command {
	o := &HistoryOptions{IOStreams: streams}
	cmd := &cobra.Command{
		Use:                   "history NAME [-o json|yaml]",
		DisableFlagsInUseLine: true,
		Short:                 "List the revisions of an application",
		Long: templates.LongDesc(`
			List the revisions of an application that are kept, the newest first: the commit that each was made of, its images, and where it
			runs. "manifold app rollback" goes back to one of them.`),
		Example: templates.Examples(`
			# All that are kept
			manifold app history web

			# For a script
			manifold app history web -o json`),
		ValidArgsFunction: completeOne(f),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.complete(f, cmd, args); err != nil {
				return err
			}
			return o.Run(cmd.Context())
		},
	}
	o.Output.AddFlag(cmd)
	return cmd
}

// Run lists the revisions.
func (o *HistoryOptions) Run(ctx context.Context) error {
	application, err := o.applications().Get(ctx, o.Name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	all, err := o.history(ctx, application)
	if err != nil {
		return fmt.Errorf("revisions of application %q: %w", o.Name, err)
	}
	return o.Output.Print(o.Out, all, func(out io.Writer) error { return printHistory(out, all, time.Now()) })
}

// history returns the revisions of an application, the newest first. It reads them page by page, as their manifests may be large.
func (s *subject) history(ctx context.Context, application *v1alpha1.Application) ([]past, error) {
	const page = 10
	all := []past{}
	revisions := pager.New(func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
		options.LabelSelector = v1alpha1.LabelApplication + "=" + s.Name
		return s.delivery().ApplicationRevisions(s.Namespace).List(ctx, options)
	})
	revisions.PageSize, revisions.PageBufferSize = page, 0
	err := revisions.EachListItem(ctx, metav1.ListOptions{}, func(object runtime.Object) error {
		if revision, ok := object.(*v1alpha1.ApplicationRevision); ok && !revision.IsChunk() && revision.Spec.Application == s.Name {
			all = append(all, past{
				Number: revision.Spec.Number, Revision: revision.Name, Origin: revision.Spec.Origin, Images: revision.Spec.Images,
				Charts: revision.Spec.Charts, Warnings: revision.Spec.Warnings, Created: revision.CreationTimestamp,
				LiveIn: liveIn(application, revision.Name),
			})
		}
		return nil
	})
	slices.SortFunc(all, func(a, b past) int { return cmp.Compare(b.Number, a.Number) })
	return all, err
}

// liveIn are the targets that run a revision, or their clusters where not all of them do.
func liveIn(application *v1alpha1.Application, revision string) []string {
	var out []string
	for i := range application.Status.Targets {
		t := &application.Status.Targets[i]
		if t.LiveRevision == revision {
			out = append(out, t.Name)
			continue
		}
		for j := range t.Clusters {
			if t.Clusters[j].LiveRevision == revision {
				out = append(out, t.Name+" in "+t.Clusters[j].Name)
			}
		}
	}
	return out
}

func printHistory(out io.Writer, all []past, now time.Time) error {
	if len(all) == 0 {
		_, err := fmt.Fprintln(out, "There is no revision yet.")
		return err
	}
	rows := [][]string{{"REVISION", "AGE", "COMMIT", "AUTHOR", "IMAGES", "LIVE", "MESSAGE"}}
	for _, r := range all {
		origin := cmp.Or(r.Origin, &v1alpha1.Origin{})
		rows = append(rows, []string{
			r.Revision, duration.HumanDuration(max(now.Sub(r.Created.Time), 0)),
			text.Line(origin.Commit[:min(len(origin.Commit), shortCommit)], longestCell), text.FirstLine(origin.Author, longestCell/2),
			text.Line(strings.Join(images(r.Images), ","), longestCell), text.Line(strings.Join(r.LiveIn, ", "), longestCell),
			text.FirstLine(origin.Message, longestCell),
		})
	}
	_, err := fmt.Fprintln(out, strings.Join(output.Filled(rows), "\n"))
	return err
}

func images(all []v1alpha1.RevisionImage) []string {
	var out []string
	for _, image := range all {
		written := image.Name
		switch {
		case image.Tag != "":
			written += ":" + image.Tag
		case image.Digest != "":
			written += "@" + image.Digest
		}
		out = append(out, written)
	}
	return out
}
