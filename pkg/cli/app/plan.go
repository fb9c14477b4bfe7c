package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	cmdutil "k8s.io/kubectl/pkg/cmd/util"
	"k8s.io/kubectl/pkg/util/templates"
	utilexec "k8s.io/utils/exec"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/internal/text"
	"github.com/manifold-dev/manifold/pkg/cli/app/compare"
	"github.com/manifold-dev/manifold/pkg/cli/app/manifests"
	"github.com/manifold-dev/manifold/pkg/cli/output"
	"github.com/manifold-dev/manifold/pkg/delivery"
	"github.com/manifold-dev/manifold/pkg/delivery/places"
	"github.com/manifold-dev/manifold/pkg/delivery/read"
	"github.com/manifold-dev/manifold/pkg/delivery/traffic"
)

// PlanOptions are what "app plan" and "app diff" need.
type PlanOptions struct {
	genericiooptions.IOStreams

	subject
	// Output is the format.
	Output output.Format
	// Revision is the name of the revision, the newest if it is empty.
	Revision string
	// Targets are the names of those that are looked at, all if there are none.
	Targets []string
	// ExitCode ends with 1 if anything differs, and with 2 if that cannot be told.
	ExitCode bool

	// drift compares what is live above with what was released, whatever targets have.
	drift bool
	core  kubernetes.Interface
	trier compare.Trier
}

func newPlanCommand(f cmdutil.Factory, streams genericiooptions.IOStreams) *cobra.Command {
	o := &PlanOptions{IOStreams: streams}
	cmd := o.command(f, &cobra.Command{
		Use:   "plan NAME [--revision REVISION] [--target TARGET]... [--exit-code] [-o json|yaml]",
		Short: "Show what a release would change, target by target",
		Long: templates.LongDesc(`
			Show what a release of a revision would change, target by target. The server tries to apply its manifests, with your rights, and
			keeps nothing. What a target has is the revision that is live there, or what there is if none is known to be.

			Values of Secrets are masked. What a target has and the revision does not is deleted if spec.prune, quickSync.prune of an
			app.pipecd.yaml or a stage of the pipeline says so, as the release would go.

			Clusters are listed that join a target with the next release to it, and those that the next release to all targets leaves, as
			far as you may list clusters.

			Plugins of the application are asked what they would change in each of their deploy targets, which takes the right to create
			applications/preview. What may be secret is not shown. With --target, they are not asked.`),
		Example: templates.Examples(`
			# The newest revision
			manifold app plan web

			# Another one, in one target
			manifold app plan web --revision web-v7 --target eu

			# In a script: 0 says that nothing would change, 1 that something would, 2 that this cannot be told
			manifold app plan web --exit-code`),
	})
	cmd.Flags().StringVar(&o.Revision, "revision", o.Revision, "The name of the revision, such as web-v7. The default is the newest.")
	return cmd
}

func newDiffCommand(f cmdutil.Factory, streams genericiooptions.IOStreams) *cobra.Command {
	o := &PlanOptions{IOStreams: streams, drift: true}
	return o.command(f, &cobra.Command{
		Use:   "diff NAME [--target TARGET]... [--exit-code] [-o json|yaml]",
		Short: "Show where objects differ from the revision that is live",
		Long: templates.LongDesc(`
			Show where the objects of the logical cluster differ from the revision that is live: what somebody has changed since it was
			released, as what a release of it would put back. Fields in spec.drift.ignore are left out, and replicas that an autoscaler sets.
			"manifold app get" tells of differences in the clusters.

			What plugins of the application have found in their deploy targets is shown as well, unless --target is set: they are asked once
			a minute, and after each release.

			Values of Secrets are masked.`),
		Example: templates.Examples(`
			# What has been changed by hand
			manifold app diff web

			# In a script: 0 says that nothing differs, 1 that something does, 2 that this cannot be told
			manifold app diff web --exit-code`),
	})
}

// command makes the command out of what is particular about it.
func (o *PlanOptions) command(f cmdutil.Factory, cmd *cobra.Command) *cobra.Command {
	cmd.DisableFlagsInUseLine = true
	cmd.ValidArgsFunction = completeOne(f)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := o.Complete(f, cmd, args); err != nil {
			return err
		}
		return o.result(o.Run(cmd.Context()))
	}
	flags := cmd.Flags()
	flags.StringSliceVar(&o.Targets, "target", o.Targets, "The name of a target. The default is all.")
	flags.BoolVar(&o.ExitCode, "exit-code", o.ExitCode, "Exit with 1 if anything differs, and with 2 if that cannot be told.")
	o.Output.AddFlag(cmd)
	return cmd
}

// Complete takes the arguments and finds the logical cluster.
func (o *PlanOptions) Complete(f cmdutil.Factory, cmd *cobra.Command, args []string) error {
	if err := o.complete(f, cmd, args); err != nil {
		return err
	}
	config, err := f.ToRESTConfig()
	if err != nil {
		return err
	}
	// Nothing is kept, so nobody is to be warned that it is held back until it is released.
	config = rest.CopyConfig(config)
	config.WarningHandlerWithContext = rest.NoWarnings{}
	if o.core, err = kubernetes.NewForConfig(config); err != nil {
		return err
	}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return err
	}
	mapper, err := f.ToRESTMapper()
	o.trier = compare.Trier{Client: client, Mapper: mapper, Namespace: o.Namespace}
	return err
}

// errDiffers says that something differs, where that is to be told by the exit code.
var errDiffers = utilexec.CodeExitError{Err: errors.New(""), Code: 1}

// result is how the command ends.
func (o *PlanOptions) result(differs bool, err error) error {
	const unknown = 2
	switch {
	case err != nil && o.ExitCode:
		return utilexec.CodeExitError{Err: fmt.Errorf("error: %w", err), Code: unknown}
	case err == nil && differs && o.ExitCode:
		return errDiffers
	}
	return err
}

// Run shows what differs, and reports whether anything does.
func (o *PlanOptions) Run(ctx context.Context) (bool, error) {
	application, err := o.applications().Get(ctx, o.Name, metav1.GetOptions{})
	if err != nil {
		return false, err
	}
	head, err := o.wanted(ctx, application)
	if err != nil {
		return false, err
	}
	found := &plan{Application: o.Name, Revision: head.Name, Targets: []planTarget{}}
	switch {
	case !application.Spec.PluginsOnly:
		if err := knownTargets(head, o.Targets); err != nil {
			return false, err
		}
		o.targets(ctx, application, head, found)
	case len(o.Targets) > 0:
		return false, fmt.Errorf("application %q is delivered by plugins alone, and has no targets: leave --target out", o.Name)
	}
	o.plugins(ctx, application, head.Name, found)
	if err := o.Output.Print(o.Out, found, func(out io.Writer) error { return found.print(out) }); err != nil {
		return false, err
	}
	return found.differs(), found.failed()
}

// targets adds what would change in the targets of an application. Those that plugins alone deliver have none, though there are files in their revisions.
func (o *PlanOptions) targets(ctx context.Context, application *v1alpha1.Application, head *v1alpha1.ApplicationRevision, found *plan) {
	p := newPlanner(manifests.New(ctx, o.client, o.core), &o.trier, o.Namespace)
	spec := read.Spec(application.Spec, head)
	p.drift, p.spec, p.options = o.drift, spec.Drift, read.Copies(spec)
	if !o.drift {
		p.prunes = prunesOf(p.reader, application, head)
	}
	p.routes = traffic.Maker{Namespace: o.Namespace, Name: o.Name, Traffic: spec.Traffic}
	_, p.routes.Subset = p.options.Selecting(delivery.Primary)
	for i := range head.Spec.Targets {
		name := head.Spec.Targets[i].Name
		if len(o.Targets) > 0 && !slices.Contains(o.Targets, name) {
			continue
		}
		found.Targets = append(found.Targets, p.target(ctx, name, liveRevision(application, name), head.Name))
	}
	p.withoutOverlays(found.Targets)
	if !o.drift {
		o.clusters(ctx, application, head, found)
	}
}

// wanted is the revision that is compared with.
func (o *PlanOptions) wanted(ctx context.Context, application *v1alpha1.Application) (*v1alpha1.ApplicationRevision, error) {
	if !o.drift {
		return o.revision(ctx, application, o.Revision)
	}
	if live := application.Status.LiveRevision; live != "" {
		return o.revision(ctx, application, live)
	}
	return nil, fmt.Errorf("application %q: nothing has been released with success yet; \"manifold app plan %s\" shows what a release would change", o.Name, o.Name)
}

// clusters adds which of them join and leave the targets with the next release.
func (o *PlanOptions) clusters(ctx context.Context, application *v1alpha1.Application, head *v1alpha1.ApplicationRevision, found *plan) {
	targets := read.Spec(application.Spec, head).Targets
	if len(targets) == 0 {
		return // placement decides, at any time
	}
	list, err := o.client.ManifoldV1alpha1().Clusters().List(ctx, metav1.ListOptions{})
	if err != nil {
		found.Clusters = text.Line(err.Error(), longest)
		return
	}
	there := map[string]delivery.Cluster{}
	for i := range list.Items {
		there[list.Items[i].Name] = delivery.Cluster{Labels: list.Items[i].Labels}
	}
	moves, err := places.Next(read.Targets(targets), read.Runs(application.Status.Variants), there)
	if err != nil {
		found.Clusters = "the next release cannot begin: " + text.Line(err.Error(), longest)
	}
	for _, place := range moves.Joins {
		if target := found.target(place.Target); target != nil {
			target.Joins = append(target.Joins, place.Cluster)
		}
	}
	for _, place := range moves.Leaves {
		target := found.target(place.Target)
		if target == nil && len(o.Targets) == 0 {
			found.Targets = append(found.Targets, planTarget{Name: place.Target, From: liveRevision(application, place.Target), Gone: true})
			target = &found.Targets[len(found.Targets)-1]
		}
		if target != nil {
			target.Leaves = append(target.Leaves, place.Cluster)
		}
	}
}

// target is the one of a name, nil if the plan is not about it.
func (p *plan) target(name string) *planTarget {
	if i := slices.IndexFunc(p.Targets, func(t planTarget) bool { return t.Name == name }); i >= 0 {
		return &p.Targets[i]
	}
	return nil
}

// liveRevision is what a target runs, "" if that is not known or its clusters differ.
func liveRevision(application *v1alpha1.Application, target string) string {
	for i := range application.Status.Targets {
		if application.Status.Targets[i].Name == target {
			return application.Status.Targets[i].LiveRevision
		}
	}
	return ""
}
