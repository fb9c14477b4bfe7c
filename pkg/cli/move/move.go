// Package move holds the command that moves a workload to other clusters and shows how far it is.
package move

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"
	cmdutil "k8s.io/kubectl/pkg/cmd/util"
	"k8s.io/kubectl/pkg/util/completion"
	"k8s.io/kubectl/pkg/util/templates"

	manifoldv1alpha1 "github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/cli/target"
	"github.com/manifold-dev/manifold/pkg/placement/words"
	"github.com/manifold-dev/manifold/pkg/projection"
)

// Options are what "move" needs.
type Options struct {
	genericiooptions.IOStreams

	// To is the pin, in the words of the annotation manifold.dev/clusters.
	To string
	// Wait says whether to wait until the workload has moved, and Timeout for how long.
	Wait    bool
	Timeout time.Duration

	client   dynamic.Interface
	warnings warnings
	find     target.Finder
}

// NewCommand returns "move".
func NewCommand(f cmdutil.Factory, streams genericiooptions.IOStreams) *cobra.Command {
	o := &Options{IOStreams: streams, Wait: true, Timeout: 5 * time.Minute}
	cmd := &cobra.Command{
		Use:                   "move (KIND/NAME | KIND NAME) --to CLUSTERS [-n NAMESPACE] [--timeout DURATION | --wait=false]",
		DisableFlagsInUseLine: true,
		Short:                 "Move a workload to other clusters",
		Long: templates.LongDesc(`
			Move a workload to other clusters, without an outage: replicas are made there first, and those that it has go when their
			replacements are available.

			This pins the workload, as the annotation manifold.dev/clusters does: to one cluster, to several that share its replicas, or
			with * to all. The move goes on when the command is interrupted; moving it back ends it.`),
		Example: templates.Examples(`
			# To one cluster
			manifold move deployment/web --to west

			# Divide it over two
			manifold move deployment/web --to east,west`),
		ValidArgsFunction: target.CompleteWorkload(f),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.Complete(f, cmd, args); err != nil {
				return err
			}
			if err := o.Validate(); err != nil {
				return err
			}
			ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
			defer stop()
			return o.Run(ctx)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&o.To, "to", o.To, "The clusters: a name, several separated by commas, or * for all.")
	flags.BoolVar(&o.Wait, "wait", o.Wait, "Wait until the workload has moved.")
	flags.DurationVar(&o.Timeout, "timeout", o.Timeout, "How long to wait until the workload has moved.")
	cmdutil.CheckErr(cmd.MarkFlagRequired("to"))
	cmdutil.CheckErr(cmd.RegisterFlagCompletionFunc("to", func(_ *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
		return completion.CompGetResource(f, "clusters."+manifoldv1alpha1.GroupName, typed), cobra.ShellCompDirectiveNoFileComp
	}))
	return cmd
}

// Complete takes the arguments and finds the logical cluster.
func (o *Options) Complete(f cmdutil.Factory, cmd *cobra.Command, args []string) error {
	var err error
	o.find, err = target.Of(f, cmd, args, "one workload is required, as KIND/NAME or KIND NAME", "only one workload can be moved at a time, not %d")
	if err != nil {
		return err
	}
	config, err := f.ToRESTConfig()
	if err != nil {
		return err
	}
	config = rest.CopyConfig(config)
	config.WarningHandlerWithContext = &o.warnings
	o.client, err = dynamic.NewForConfig(config)
	return err
}

// Validate refuses a pin that says nothing and a time to wait that is none.
func (o *Options) Validate() error {
	if _, err := manifoldv1alpha1.ParsePin(o.To); err != nil {
		return fmt.Errorf("--to: %w", err)
	}
	if o.Wait && o.Timeout <= 0 {
		return fmt.Errorf("--timeout must be more than zero, not %s; use --wait=false not to wait", o.Timeout)
	}
	return nil
}

// Run pins the workload and waits until it has moved.
func (o *Options) Run(ctx context.Context) error {
	object, mapping, err := o.find()
	if err != nil {
		return err
	}
	name := strings.ToLower(object.GetKind()) + "/" + object.GetName()
	if err := movable(object); err != nil {
		return fmt.Errorf("move %s: %w", name, err)
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": object.GetUID(), "annotations": map[string]string{manifoldv1alpha1.AnnotationClusters: o.To},
	}})
	if err != nil {
		return err
	}
	client := o.client.Resource(mapping.Resource).Namespace(object.GetNamespace())
	if err := o.try(ctx, client, object.GetName(), patch); err != nil {
		return fmt.Errorf("move %s: %w", name, err)
	}
	pinned, err := client.Patch(ctx, object.GetName(), types.MergePatchType, patch, metav1.PatchOptions{})
	if err != nil {
		return err
	}
	for _, text := range o.warnings.take() {
		fmt.Fprintf(o.ErrOut, "Warning: %s\n", text)
	}
	if !o.Wait {
		fmt.Fprintf(o.Out, "%s is being moved\n", name)
		return nil
	}
	last, err := o.follow(ctx, client, pinned)
	switch {
	case err == nil:
		fmt.Fprintf(o.Out, "%s moved\n", name)
		return nil
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("%s has not moved after %s, and the move continues in the background: %s\nFor the reasons: manifold explain %s -n %s",
			name, o.Timeout, last, name, object.GetNamespace())
	case errors.Is(err, context.Canceled):
		return fmt.Errorf("interrupted; the move of %s goes on", name)
	}
	return err
}

// try asks the server what it would do, and refuses a move that volumes keep from beginning.
func (o *Options) try(ctx context.Context, client dynamic.ResourceInterface, name string, patch []byte) error {
	if _, err := client.Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}}); err != nil {
		return err
	}
	for _, text := range o.warnings.take() {
		if strings.Contains(text, words.TiedAdvice) {
			return errors.New(text)
		}
	}
	return nil
}

// movable refuses what is not placed, and what stays where it was started.
func movable(object *unstructured.Unstructured) error {
	kind, ok := projection.ForGVK(object.GroupVersionKind())
	if isCustom(object) {
		return nil
	}
	if !ok || !kind.Workload {
		return errors.New("it is no workload; what workloads need follows them")
	}
	typed := kind.New()
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, typed); err != nil {
		return err
	}
	if owner := metav1.GetControllerOf(object); kind.Mirror(typed) && owner != nil {
		return fmt.Errorf("it belongs to %s %s; move that", owner.Kind, owner.Name)
	}
	if demand := kind.Demand(typed); (demand.Fixed || demand.Finished) && object.GetAnnotations()[manifoldv1alpha1.AnnotationPlacement] != "" {
		return fmt.Errorf("a %s stays in the cluster where it was started", kind.GVK.Kind)
	}
	return nil
}

// isCustom reports whether an object is of a custom kind that clusters can have.
func isCustom(object *unstructured.Unstructured) bool {
	return object.GetNamespace() != "" && target.IsCustom(object.GroupVersionKind().Group)
}

// follow watches the workload until it has moved, prints each step, and returns the last one.
func (o *Options) follow(ctx context.Context, client dynamic.ResourceInterface, pinned *unstructured.Unstructured) (last string, err error) {
	ctx, cancel := watchtools.ContextWithOptionalTimeout(ctx, o.Timeout)
	defer cancel()
	one := fields.OneTermEqualSelector(metav1.ObjectNameField, pinned.GetName()).String()
	source := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			options.FieldSelector = one
			return client.List(ctx, options)
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			options.FieldSelector = one
			return client.Watch(ctx, options)
		},
	}
	_, err = watchtools.UntilWithSync(ctx, source, &unstructured.Unstructured{}, nil, func(e watch.Event) (bool, error) {
		object, ok := e.Object.(*unstructured.Unstructured)
		if !ok || e.Type == watch.Deleted || object.GetUID() != pinned.GetUID() {
			return false, errors.New("it was deleted meanwhile")
		}
		if object.GetGeneration() < pinned.GetGeneration() {
			return false, nil
		}
		step, err := o.step(object)
		if err != nil {
			return false, err
		}
		if step.text != last {
			last = step.text
			fmt.Fprintln(o.ErrOut, last)
		}
		return step.done, nil
	})
	if err != nil && ctx.Err() != nil {
		return last, ctx.Err()
	}
	return last, err
}

// step reads how far an object is.
func (o *Options) step(object *unstructured.Unstructured) (step, error) {
	if isCustom(object) {
		return customStepOf(object.GetAnnotations(), o.To)
	}
	return stepOf(object.GetAnnotations(), o.To, object.GetKind() == "DaemonSet")
}
