package pipeline

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	cmdutil "k8s.io/kubectl/pkg/cmd/util"
	"k8s.io/kubectl/pkg/util/templates"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
)

// HoldOptions are what "pipeline pause" and "pipeline resume" need.
type HoldOptions struct {
	genericiooptions.IOStreams

	subject
	// Message is recorded with a pause.
	Message string
}

func newPauseCommand(f cmdutil.Factory, streams genericiooptions.IOStreams) *cobra.Command {
	o := &HoldOptions{IOStreams: streams}
	cmd := o.command(f, &cobra.Command{
		Use:   "pause NAME [-m MESSAGE] [--group GROUP]",
		Short: "Promote nothing of a pipeline for now",
		Long: templates.LongDesc(`
			Promote nothing of a pipeline until somebody resumes it. Your name is recorded. What has been begun, such as a pull request that is
			open, stays; what each environment runs is shown as ever. Pausing it once more changes nothing.`),
		Example: templates.Examples(`
			# A release freeze
			manifold pipeline pause podinfo -m "release freeze"`),
	}, o.Pause)
	cmd.Flags().StringVarP(&o.Message, "message", "m", o.Message, "Why. It is recorded with your name.")
	return cmd
}

func newResumeCommand(f cmdutil.Factory, streams genericiooptions.IOStreams) *cobra.Command {
	o := &HoldOptions{IOStreams: streams}
	return o.command(f, &cobra.Command{
		Use:   "resume NAME [--group GROUP]",
		Short: "End the pause of a pipeline",
		Long: templates.LongDesc(`
			End the pause of a pipeline, whoever has paused it. What was verified meanwhile is promoted.`),
		Example: templates.Examples(`
			# Go on
			manifold pipeline resume podinfo`),
	}, o.Resume)
}

func (o *HoldOptions) command(f cmdutil.Factory, cmd *cobra.Command, run func(context.Context) error) *cobra.Command {
	cmd.DisableFlagsInUseLine = true
	cmd.ValidArgsFunction = completeOne(f)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := o.complete(f, cmd, args); err != nil {
			return err
		}
		return run(cmd.Context())
	}
	o.addFlags(cmd)
	return cmd
}

// Pause asks for a pause, and prints who has asked for it first.
func (o *HoldOptions) Pause(ctx context.Context) error {
	body := &v1alpha1.PipelinePause{Group: o.Group, Message: o.Message}
	began := time.Now().Add(-time.Second) // times are recorded in seconds
	if err := o.ask(ctx, v1alpha1.SubresourcePause, "PipelinePause", body); err != nil {
		return err
	}
	if r := body.Recorded; r != nil && r.At.Time.Before(began) {
		fmt.Fprintf(o.Out, "%s was paused before, %s\n", o.title(), asked(r.By, r.Message, time.Since(r.At.Time)))
		return nil
	}
	fmt.Fprintf(o.Out, "%s paused\n", o.title())
	return nil
}

// Resume asks for the end of a pause.
func (o *HoldOptions) Resume(ctx context.Context) error {
	body := &v1alpha1.PipelineResumption{Group: o.Group}
	if err := o.ask(ctx, v1alpha1.SubresourceResume, "PipelineResumption", body); err != nil {
		return err
	}
	if body.Recorded == nil {
		fmt.Fprintf(o.Out, "%s was not paused\n", o.title())
		return nil
	}
	fmt.Fprintf(o.Out, "%s resumed; it was paused %s\n", o.title(), asked(body.Recorded.By, body.Recorded.Message, time.Since(body.Recorded.At.Time)))
	return nil
}
