package release

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	cmdutil "k8s.io/kubectl/pkg/cmd/util"
	"k8s.io/kubectl/pkg/util/templates"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
)

// AskOptions are what commands need that ask something of a release.
type AskOptions struct {
	genericiooptions.IOStreams

	subject
	// Stage is the id of the stage, and Targets are the names of the targets, that it is about.
	Stage   string
	Targets []string
	// Comment is recorded with the request.
	Comment string
	// Rollback takes back what a release has done that is cancelled.
	Rollback bool

	ask  func(context.Context, *AskOptions) (*v1alpha1.Release, error)
	done string
}

// command makes the command out of what is particular about it.
func (o *AskOptions) command(f cmdutil.Factory, cmd *cobra.Command) *cobra.Command {
	cmd.DisableFlagsInUseLine = true
	cmd.ValidArgsFunction = completeOne(f)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := o.complete(f, cmd, args); err != nil {
			return err
		}
		return o.Run(cmd.Context())
	}
	cmd.Flags().StringVar(&o.Comment, "comment", o.Comment, "Why. It is recorded with your name.")
	return cmd
}

func (o *AskOptions) addStage(cmd *cobra.Command, usage string) {
	cmd.Flags().StringVar(&o.Stage, "stage", o.Stage, usage)
}

func (o *AskOptions) addTargets(cmd *cobra.Command, usage string) {
	cmd.Flags().StringSliceVar(&o.Targets, "target", o.Targets, usage)
}

// Run asks, and prints what will be done. The server refuses what makes no sense.
func (o *AskOptions) Run(ctx context.Context) error {
	if _, err := o.ask(ctx, o); err != nil {
		return err
	}
	fmt.Fprintf(o.Out, "%s %s\n", o.title(), o.done)
	return nil
}

func newApproveCommand(f cmdutil.Factory, streams genericiooptions.IOStreams) *cobra.Command {
	o := &AskOptions{IOStreams: streams, done: "approved", ask: func(ctx context.Context, o *AskOptions) (*v1alpha1.Release, error) {
		return o.releases().Approve(ctx, o.Name, &v1alpha1.ReleaseApproval{Stage: o.Stage, Comment: o.Comment}, metav1.CreateOptions{})
	}}
	cmd := o.command(f, &cobra.Command{
		Use:   "approve NAME [--stage STAGE] [--comment COMMENT]",
		Short: "Agree that a release goes on",
		Long: templates.LongDesc(`
			Agree that a release goes on which waits for approval. Your name is recorded. The stage says who may approve, and how many
			have to.`),
		Example: templates.Examples(`
			# The stage that waits
			manifold release approve web-x2f

			# A stage by its id, with a comment
			manifold release approve web-x2f --stage stage-2 --comment "error rate is fine"`),
	})
	o.addStage(cmd, "The id of the stage. The default is the one that waits.")
	return cmd
}

func newCancelCommand(f cmdutil.Factory, streams genericiooptions.IOStreams) *cobra.Command {
	o := &AskOptions{IOStreams: streams, done: "is being cancelled", ask: func(ctx context.Context, o *AskOptions) (*v1alpha1.Release, error) {
		body := &v1alpha1.ReleaseCancellation{Rollback: o.Rollback, Comment: o.Comment}
		return o.releases().Cancel(ctx, o.Name, body, metav1.CreateOptions{})
	}}
	cmd := o.command(f, &cobra.Command{
		Use:   "cancel NAME [--rollback] [--comment COMMENT]",
		Short: "End a release",
		Long: templates.LongDesc(`
			End a release. Clusters that have begun come to an end, others do not begin, and what has been done stays, unless --rollback
			takes it back.`),
		Example: templates.Examples(`
			# Stop here
			manifold release cancel web-x2f

			# Put back what ran before
			manifold release cancel web-x2f --rollback`),
	})
	cmd.Flags().BoolVar(&o.Rollback, "rollback", o.Rollback, "Take back what the release has done.")
	return cmd
}

func newSkipCommand(f cmdutil.Factory, streams genericiooptions.IOStreams) *cobra.Command {
	o := &AskOptions{IOStreams: streams, done: "goes on without it", ask: func(ctx context.Context, o *AskOptions) (*v1alpha1.Release, error) {
		body := &v1alpha1.ReleaseSkip{Stage: o.Stage, Targets: o.Targets, Comment: o.Comment}
		return o.releases().Skip(ctx, o.Name, body, metav1.CreateOptions{})
	}}
	cmd := o.command(f, &cobra.Command{
		Use:   "skip NAME --stage STAGE [--target TARGET]... [--comment COMMENT]",
		Short: "Leave out a stage of a release, or targets of it",
		Long: templates.LongDesc(`
			Leave out a stage of a release that waits or has not begun, or some of its targets. Approvals cannot be skipped.`),
		Example: templates.Examples(`
			# A whole stage
			manifold release skip web-x2f --stage stage-3

			# A cluster that is away
			manifold release skip web-x2f --stage rollout --target eu`),
	})
	o.addStage(cmd, "The id of the stage.")
	o.addTargets(cmd, "The name of a target that is left out. The default is the whole stage.")
	cmdutil.CheckErr(cmd.MarkFlagRequired("stage"))
	return cmd
}

func newRetryCommand(f cmdutil.Factory, streams genericiooptions.IOStreams) *cobra.Command {
	o := &AskOptions{IOStreams: streams, done: "is tried again", ask: func(ctx context.Context, o *AskOptions) (*v1alpha1.Release, error) {
		body := &v1alpha1.ReleaseRetry{Stage: o.Stage, Targets: o.Targets, Comment: o.Comment}
		return o.releases().Retry(ctx, o.Name, body, metav1.CreateOptions{})
	}}
	cmd := o.command(f, &cobra.Command{
		Use:   "retry NAME [--stage STAGE] [--target TARGET]... [--comment COMMENT]",
		Short: "Begin a failed stage of a release once more",
		Long: templates.LongDesc(`
			Begin a failed stage of a release once more, in the targets that have failed.`),
		Example: templates.Examples(`
			# The stage that has failed
			manifold release retry web-x2f

			# One target of it
			manifold release retry web-x2f --stage rollout --target eu`),
	})
	o.addStage(cmd, "The id of the stage. The default is the one that has failed.")
	o.addTargets(cmd, "The name of a target. The default is all that have failed.")
	return cmd
}
