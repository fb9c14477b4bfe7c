package app

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	cmdutil "k8s.io/kubectl/pkg/cmd/util"
	"k8s.io/kubectl/pkg/util/templates"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/cli/interrupt"
	"github.com/manifold-dev/manifold/pkg/cli/release/progress"
)

// RollbackOptions are what "app rollback" needs.
type RollbackOptions struct {
	genericiooptions.IOStreams

	subject
	patience
	// To is the name of the revision, that which ran before if it is empty.
	To string
	// Message is recorded with the release, or with what is asked of the one that runs.
	Message string
}

func newRollbackCommand(f cmdutil.Factory, streams genericiooptions.IOStreams) *cobra.Command {
	o := &RollbackOptions{IOStreams: streams}
	cmd := &cobra.Command{
		Use:                   "rollback NAME [--to REVISION] [--wait [--timeout DURATION]]",
		Aliases:               []string{"undo"},
		DisableFlagsInUseLine: true,
		Short:                 "Go back to an earlier revision of an application",
		Long: templates.LongDesc(`
			Go back to an earlier revision of an application, in all targets at once. Without --to, a release that is on its way is taken
			back; if there is none, the revision is released that had last been released with success before the one that is live. What
			was released to some targets alone does not count: where that was last, they go back to what the others run.

			Nothing newer is released by itself until there is a new revision. spec.revision of the application keeps it for longer.`),
		Example: templates.Examples(`
			# What ran before
			manifold app rollback web --wait

			# A revision that "manifold app history web" lists
			manifold app rollback web --to web-v5`),
		ValidArgsFunction: completeOne(f),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.complete(f, cmd, args); err != nil {
				return err
			}
			if err := o.patience.validate(); err != nil {
				return err
			}
			return interrupt.Run(cmd.Context(), o.Run)
		},
	}
	cmd.Flags().StringVar(&o.To, "to", o.To, "The name of the revision, such as web-v5. The default is the one that ran before.")
	cmd.Flags().StringVarP(&o.Message, "message", "m", o.Message, "Why. It is recorded with the release.")
	o.patience.addFlags(cmd)
	return cmd
}

// Run takes back the release that is on its way, or makes one of an earlier revision.
func (o *RollbackOptions) Run(ctx context.Context) error {
	application, err := o.applications().Get(ctx, o.Name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	list, err := o.delivery().Releases(o.Namespace).List(ctx, metav1.ListOptions{LabelSelector: v1alpha1.LabelApplication + "=" + o.Name})
	if err != nil {
		return err
	}
	newestFirst(list.Items)
	if going := underWay(list.Items); going != nil && o.To == "" {
		return o.takeBack(ctx, going)
	}
	to := o.To
	if to == "" {
		kept, err := o.history(ctx, application)
		if err != nil {
			return fmt.Errorf("revisions of application %q: %w", o.Name, err)
		}
		if to = before(application, list.Items, kept); to == "" {
			return fmt.Errorf("application %q: no revision is kept that was released with success before %s; name one with --to, \"manifold app history %s\" lists them",
				o.Name, cmp.Or(application.Status.LiveRevision, "this"), o.Name)
		}
	}
	revision, err := o.revision(ctx, application, to)
	if err != nil {
		return err
	}
	release, err := o.create(ctx, application, v1alpha1.ReleaseSpec{
		Revision: revision.Name, Strategy: v1alpha1.StrategyQuickSync, RollbackOf: takenBack(application, list.Items),
		TriggeredBy: v1alpha1.ReleaseTrigger{Message: o.Message},
	})
	if err != nil {
		return err
	}
	return o.await(ctx, o.IOStreams, o.client, application, release)
}

// takeBack asks a release that is on its way to put back what was there before it.
func (o *RollbackOptions) takeBack(ctx context.Context, going *v1alpha1.Release) error {
	releases := o.delivery().Releases(o.Namespace)
	if going.Status.Phase != v1alpha1.ReleaseRollingBack {
		if _, err := releases.Rollback(ctx, going.Name, &v1alpha1.ReleaseRollback{Comment: o.Message}, metav1.CreateOptions{}); err != nil {
			return err
		}
	}
	if !o.Wait {
		fmt.Fprintf(o.Out, "release/%s is being taken back\n", going.Name)
		return nil
	}
	fmt.Fprintf(o.ErrOut, "release/%s is being taken back\n", going.Name)
	// That it does not succeed is what was asked for.
	followed := o.follow(ctx, o.IOStreams, o.client, going)
	ended, err := releases.Get(ctx, going.Name, metav1.GetOptions{})
	switch {
	case err == nil && ended.Status.Phase == v1alpha1.ReleaseRolledBack:
		fmt.Fprintf(o.Out, "release/%s taken back\n", going.Name)
		return nil
	case followed == nil && err == nil:
		return fmt.Errorf("release %s was not taken back, it is %s", going.Name, progress.Phase(ended))
	case followed == nil:
		return err
	}
	return followed
}

// newestFirst sorts releases by when they ended, or were made.
func newestFirst(releases []v1alpha1.Release) {
	at := func(r *v1alpha1.Release) metav1.Time {
		if r.Status.EndTime != nil {
			return *r.Status.EndTime
		}
		return r.CreationTimestamp
	}
	slices.SortStableFunc(releases, func(a, b v1alpha1.Release) int { return at(&b).Time.Compare(at(&a).Time) })
}

// underWay returns the release that has begun and not ended, nil if there is none.
func underWay(releases []v1alpha1.Release) *v1alpha1.Release {
	for i := range releases {
		if phase := releases[i].Status.Phase; phase == v1alpha1.ReleaseRunning || phase == v1alpha1.ReleaseRollingBack {
			return &releases[i]
		}
	}
	return nil
}

// before returns the revision to go back to, if it is kept; "" if there is none. Where only some targets have got something since the application was last
// released as a whole, that is what it was released with then: the others run it still. Otherwise it is the one before that.
func before(application *v1alpha1.Application, releases []v1alpha1.Release, kept []past) string {
	live := application.Status.LiveRevision
	isKept := func(revision string) bool {
		return slices.ContainsFunc(kept, func(p past) bool { return p.Revision == revision })
	}
	if strayed(application, releases) != nil && isKept(live) {
		return live
	}
	for i := range releases {
		r := &releases[i]
		if r.Status.Phase == v1alpha1.ReleaseSucceeded && r.Spec.Whole() && r.Spec.Revision != live && isKept(r.Spec.Revision) {
			return r.Spec.Revision
		}
	}
	return ""
}

// strayed returns the last release by which some targets have got another revision than the one that is live, if nothing was released as a whole since; nil
// if there is none.
func strayed(application *v1alpha1.Application, releases []v1alpha1.Release) *v1alpha1.Release {
	i := slices.IndexFunc(releases, func(r v1alpha1.Release) bool { return r.Status.Phase == v1alpha1.ReleaseSucceeded })
	if i < 0 || releases[i].Spec.Whole() || releases[i].Spec.Revision == application.Status.LiveRevision {
		return nil
	}
	return &releases[i]
}

// takenBack returns the name of the release that is taken back: the one that some targets have something else by, or that brought what is live; "" if it
// is no longer there.
func takenBack(application *v1alpha1.Application, releases []v1alpha1.Release) string {
	if partial := strayed(application, releases); partial != nil {
		return partial.Name
	}
	for i := range releases {
		if r := &releases[i]; r.Status.Phase == v1alpha1.ReleaseSucceeded && r.Spec.Whole() && r.Spec.Revision == application.Status.LiveRevision {
			return r.Name
		}
	}
	return ""
}
