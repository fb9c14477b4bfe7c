package app

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	cmdutil "k8s.io/kubectl/pkg/cmd/util"
	"k8s.io/kubectl/pkg/util/templates"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/internal/text"
	"github.com/manifold-dev/manifold/pkg/cli/app/words"
	"github.com/manifold-dev/manifold/pkg/cli/interrupt"
)

// SyncOptions are what "app sync" needs.
type SyncOptions struct {
	genericiooptions.IOStreams

	subject
	patience
	// Targets are the names of those that the revision is released to, all if there are none.
	Targets []string
	// Revision is the name of the revision, the latest if it is empty.
	Revision string
	// Strategy is how it is released; the planner of the application decides if it is empty.
	Strategy string
	// Message is recorded with the release.
	Message string
}

func newSyncCommand(f cmdutil.Factory, streams genericiooptions.IOStreams) *cobra.Command {
	o := &SyncOptions{IOStreams: streams}
	cmd := &cobra.Command{
		Use: "sync NAME [--revision REVISION] [--target TARGET]... [--strategy QuickSync|Pipeline] [--wait [--timeout DURATION]]",

		DisableFlagsInUseLine: true,

		Short: "Release a revision of an application",
		Long: templates.LongDesc(`
			Release a revision of an application: the newest, or another that is kept. It goes through the stages of the application's
			pipeline, or to all targets at once, as the application's planner says and --strategy overrides.

			With --wait, the exit code is 0 if the release succeeds, 1 if it ends in any other way or takes longer than --timeout, and 130 if
			you interrupt this command. The release goes on then.`),
		Example: templates.Examples(`
			# The newest revision
			manifold app sync web

			# To one target, at once, and wait until it runs there
			manifold app sync web --target eu --strategy QuickSync --wait

			# An earlier revision
			manifold app sync web --revision web-v7`),
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
	flags.StringSliceVar(&o.Targets, "target", o.Targets, "The name of a target. The default is all.")
	flags.StringVar(&o.Revision, "revision", o.Revision, "The name of the revision, such as web-v7. The default is the newest.")
	flags.StringVar(&o.Strategy, "strategy", o.Strategy, "QuickSync goes to all targets at once, Pipeline through the stages. The default is what the application's planner says.")
	flags.StringVarP(&o.Message, "message", "m", o.Message, "Why. It is recorded with the release.")
	o.patience.addFlags(cmd)
	cmdutil.CheckErr(cmd.RegisterFlagCompletionFunc("strategy", cobra.FixedCompletions(
		[]string{string(v1alpha1.StrategyQuickSync), string(v1alpha1.StrategyPipeline)}, cobra.ShellCompDirectiveNoFileComp)))
	return cmd
}

// Validate refuses a strategy that there is not, and a time to wait that is none.
func (o *SyncOptions) Validate() error {
	switch v1alpha1.ReleaseStrategy(o.Strategy) {
	case "", v1alpha1.StrategyQuickSync, v1alpha1.StrategyPipeline:
		return o.patience.validate()
	}
	return fmt.Errorf("there is no strategy %q; use %s or %s", o.Strategy, v1alpha1.StrategyQuickSync, v1alpha1.StrategyPipeline)
}

// Run makes a release, and waits for it if that is asked for.
func (o *SyncOptions) Run(ctx context.Context) error {
	application, err := o.applications().Get(ctx, o.Name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	revision, err := o.revision(ctx, application, o.Revision)
	if err != nil {
		return err
	}
	if err := knownTargets(revision, o.Targets); err != nil {
		return err
	}
	release, err := o.create(ctx, application, v1alpha1.ReleaseSpec{
		Revision: revision.Name, Targets: o.Targets, Strategy: v1alpha1.ReleaseStrategy(o.Strategy), TriggeredBy: v1alpha1.ReleaseTrigger{Message: o.Message},
	})
	if err != nil {
		return err
	}
	return o.await(ctx, o.IOStreams, o.client, application, release)
}

// create makes a release of an application. It goes when the application does.
func (s *subject) create(ctx context.Context, application *v1alpha1.Application, spec v1alpha1.ReleaseSpec) (*v1alpha1.Release, error) {
	spec.Application, spec.TriggeredBy.Cause = application.Name, v1alpha1.CauseCommand
	return s.delivery().Releases(s.Namespace).Create(ctx, &v1alpha1.Release{
		ObjectMeta: metav1.ObjectMeta{
			GenerateName: application.Name + "-",
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: "Application", Name: application.Name, UID: application.UID,
			}},
		},
		Spec: spec,
	}, metav1.CreateOptions{})
}

// revision returns a revision that there is: the one that is named, by its number alone if it likes, or else the newest.
func (s *subject) revision(ctx context.Context, application *v1alpha1.Application, name string) (*v1alpha1.ApplicationRevision, error) {
	if name == "" {
		if name = application.Status.LatestRevision; name == "" {
			return nil, fmt.Errorf("application %q has no revision yet: %s", s.Name, whyNone(application))
		}
	}
	if full := s.Name + "-" + name; v1alpha1.RevisionNumber(s.Name, name) == 0 && v1alpha1.RevisionNumber(s.Name, full) > 0 {
		name = full
	}
	if v1alpha1.RevisionNumber(s.Name, name) == 0 {
		return nil, fmt.Errorf("%q is no revision of application %q, which are called %s and so on", name, s.Name, v1alpha1.RevisionName(s.Name, 1))
	}
	revision, err := s.delivery().ApplicationRevisions(s.Namespace).Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("revision %q of application %q is not kept; \"manifold app history %s\" lists those that are", name, s.Name, s.Name)
	}
	return revision, err
}

// whyNone says why an application has no revision yet.
func whyNone(application *v1alpha1.Application) string {
	for _, about := range []string{v1alpha1.ApplicationSourceReady, v1alpha1.ApplicationRendered} {
		for _, c := range application.Status.Conditions {
			if c.Type == about && c.Status != metav1.ConditionTrue {
				return words.Condition(c)
			}
		}
	}
	return "its source has not been read"
}

// knownTargets refuses names of targets that a revision has nothing for.
func knownTargets(revision *v1alpha1.ApplicationRevision, names []string) error {
	var known []string
	for i := range revision.Spec.Targets {
		known = append(known, revision.Spec.Targets[i].Name)
	}
	for _, name := range names {
		if !slices.Contains(known, name) {
			return fmt.Errorf("revision %q has no target %q; it has %s", revision.Name, name, text.Line(strings.Join(known, ", "), longest))
		}
	}
	return nil
}

// obstacle says why a release of an application does not begin, "" if nothing is known to be in its way.
func obstacle(application *v1alpha1.Application, release *v1alpha1.Release) string {
	status := &application.Status
	switch {
	case application.Spec.Suspend:
		return fmt.Sprintf("application %q is suspended: the release waits until spec.suspend is unset", application.Name)
	case status.Release != "" && status.Release != release.Name && !cmp.Or(status.ReleasePhase, v1alpha1.ReleasePending).Ended():
		return fmt.Sprintf("release %s is %s: this one waits for its turn", status.Release, cmp.Or(status.ReleasePhase, v1alpha1.ReleasePending))
	}
	return ""
}
