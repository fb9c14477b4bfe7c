package pipeline

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	watchtools "k8s.io/client-go/tools/watch"
	cmdutil "k8s.io/kubectl/pkg/cmd/util"
	"k8s.io/kubectl/pkg/util/templates"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/internal/text"
	"github.com/manifold-dev/manifold/pkg/cli/follow"
	"github.com/manifold-dev/manifold/pkg/cli/interrupt"
	"github.com/manifold-dev/manifold/pkg/delivery/weave"
)

// PromoteOptions are what "pipeline promote" needs.
type PromoteOptions struct {
	genericiooptions.IOStreams

	subject
	// Environment is the one that gets the version.
	Environment string
	// Revision is the version, the one that waits if it is empty.
	Revision string
	// Message is recorded with it.
	Message string
	// Patience is for the environment to be verified.
	follow.Patience
}

func newPromoteCommand(f cmdutil.Factory, streams genericiooptions.IOStreams) *cobra.Command {
	o := &PromoteOptions{IOStreams: streams}
	cmd := &cobra.Command{
		Use: "promote NAME --to ENVIRONMENT [--revision REVISION] [-m MESSAGE] [--wait [--timeout DURATION]] [--group GROUP]",

		DisableFlagsInUseLine: true,

		Short: "Ask for a version in an environment of a pipeline",
		Long: templates.LongDesc(`
			Ask for a version in an environment of a pipeline: the one that waits for it, one that the environment before has verified, or an
			older one that another environment runs. Your name is recorded. How the version gets there is what the pipeline says: by a pull
			request, an event, or directly. An environment that was given an older version stays at it until somebody asks for another.

			With --wait, the exit code is 0 once all targets of the environment run the version and are ready, 1 if the promotion is revoked,
			another version is promoted instead, or it takes longer than --timeout, and 130 if you interrupt this command. What fails is tried
			again meanwhile. The promotion goes on when this command ends.`),
		Example: templates.Examples(`
			# What waits for prod
			manifold pipeline promote podinfo --to prod

			# From a script, with an end
			manifold pipeline promote podinfo --to prod --wait --timeout 10m

			# Back to what staging still runs
			manifold pipeline promote podinfo --to prod --revision 6.1.5 -m "6.1.8 leaks"`),
		ValidArgsFunction: completeOne(f),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.complete(f, cmd, args); err != nil {
				return err
			}
			if err := o.Validate(); err != nil {
				return err
			}
			return interrupt.Run(cmd.Context(), o.Run)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&o.Environment, "to", o.Environment, "The environment that gets the version.")
	flags.StringVar(&o.Revision, "revision", o.Revision, "The version. The default is the one that waits.")
	flags.StringVarP(&o.Message, "message", "m", o.Message, "Why. It is recorded with your name.")
	o.AddFlags(cmd, "Wait until all targets of the environment run the version and are ready.", "it takes")
	o.addFlags(cmd)
	cmdutil.CheckErr(cmd.MarkFlagRequired("to"))
	cmdutil.CheckErr(cmd.RegisterFlagCompletionFunc("to", completeEnvironment(f, &o.subject)))
	return cmd
}

// Run asks for the version, and waits for it if that is asked for. What happens meanwhile goes to standard error.
func (o *PromoteOptions) Run(ctx context.Context) error {
	body := &v1alpha1.PipelinePromotion{Group: o.Group, Environment: o.Environment, Revision: o.Revision, Message: o.Message}
	if err := o.ask(ctx, v1alpha1.SubresourcePromote, "PipelinePromotion", body); err != nil {
		return err
	}
	o.Group, o.Revision = body.Group, body.Revision
	if !o.Wait {
		fmt.Fprintf(o.Out, "%s: %s is asked for in %s\n", o.title(), text.Line(o.Revision, longest), o.Environment)
		return nil
	}
	fmt.Fprintf(o.ErrOut, "%s: %s is asked for in %s\n", o.title(), text.Line(o.Revision, longest), o.Environment)
	if err := o.await(ctx, body.Recorded); err != nil {
		return err
	}
	fmt.Fprintf(o.Out, "%s: %s runs %s\n", o.title(), o.Environment, text.Line(o.Revision, longest))
	return nil
}

// await follows the pipeline until the environment has the version.
func (o *PromoteOptions) await(ctx context.Context, since *v1alpha1.PipelineRecord) error {
	bounded, cancel := watchtools.ContextWithOptionalTimeout(ctx, o.Timeout)
	defer cancel()
	resources, err := o.resources()
	if err != nil {
		return err
	}
	w := &waiter{environment: o.Environment, revision: o.Revision}
	if since != nil {
		w.since = since.At
	}
	client := o.client.Resource(resources[0]).Namespace(o.Namespace)
	err = follow.Object(bounded, client, o.client, &unstructured.Unstructured{}, o.Name, func(found *unstructured.Unstructured) (bool, error) {
		if found == nil {
			return true, fmt.Errorf("%s: %w", o.title(), errGone)
		}
		p, err := weave.Read(found)
		if err != nil {
			return true, err
		}
		done, line, err := w.look(p)
		if line != "" {
			fmt.Fprintf(o.ErrOut, "%s: %s\n", o.title(), line)
		}
		return done, err
	})
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		fmt.Fprintf(o.ErrOut, "The promotion goes on: manifold pipeline get %s -n %s\n", o.Name, o.Namespace)
		return err
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("%s does not run %s after %s%s, and the promotion goes on: manifold pipeline get %s -n %s",
			o.Environment, text.Line(o.Revision, longest), o.Timeout, w.where(), o.Name, o.Namespace)
	}
	return err
}

// waiter tells when a version has come to an environment.
type waiter struct {
	environment, revision string
	// since is when it was asked for: what was there before tells nothing.
	since metav1.Time
	said  string
}

// look reports whether nothing more is to come, with what has changed as a line, and why it has failed.
func (w *waiter) look(p *weave.Pipeline) (done bool, line string, err error) {
	of := p.Status.Environments[w.environment]
	if of == nil {
		return false, "", nil
	}
	if of.Asked != nil && of.Asked.Revision != w.revision && !of.Asked.At.Before(&w.since) {
		return true, "", fmt.Errorf("%s is asked for in %s instead, by %s", short(of.Asked.Revision), w.environment, text.Line(of.Asked.By, longest))
	}
	last := of.Promotion
	if last == nil {
		return false, "", nil
	}
	if last.Revision != w.revision {
		if last.At.After(w.since.Time) {
			return true, "", fmt.Errorf("%s is promoted to %s instead", short(last.Revision), w.environment)
		}
		return false, "", nil
	}
	said := text.Line(fmt.Sprintf("%s is %s in %s%s", short(last.Revision), last.Phase, w.environment, detail(last)), longest)
	if said != w.said {
		w.said, line = said, said
	}
	switch last.Phase {
	case weave.PromotionVerified:
		return true, line, nil
	case weave.PromotionRevoked:
		if last.At.Before(&w.since) {
			return false, "", nil // before it was asked for
		}
		return true, line, fmt.Errorf("the promotion of %s to %s is revoked: %s", short(last.Revision), w.environment, cmp.Or(text.Line(last.Message, longest), "no reason is told"))
	}
	return false, line, nil
}

func detail(last *weave.PromotionStatus) string {
	if last.URL != "" {
		return ": " + last.URL
	}
	if last.Message != "" {
		return ": " + last.Message
	}
	return ""
}

// where says what was seen last.
func (w *waiter) where() string {
	if w.said == "" {
		return ""
	}
	return " (" + w.said + ")"
}
