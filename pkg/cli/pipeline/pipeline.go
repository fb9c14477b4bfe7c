// Package pipeline holds the commands that show Pipelines of Weave GitOps, promote versions through them, and hold them.
package pipeline

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/dynamic"
	cmdutil "k8s.io/kubectl/pkg/cmd/util"
	"k8s.io/kubectl/pkg/util/templates"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/cli/listing"
	"github.com/manifold-dev/manifold/pkg/cli/logical"
	"github.com/manifold-dev/manifold/pkg/delivery/weave"
)

// NewCommand returns "pipeline" with its subcommands.
func NewCommand(f cmdutil.Factory, streams genericiooptions.IOStreams) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "pipeline COMMAND",
		Aliases: []string{"pipelines", "pl"},

		DisableFlagsInUseLine: true,

		Short: "Show pipelines over environments, promote versions through them, and hold them",
		Long: templates.LongDesc(`
			Show pipelines over environments, promote versions through them, and hold them. A pipeline is a Pipeline of Weave GitOps, in the
			group pipelines.weave.works or in the older pipelines.wego.weave.works: it names the environments of an app, such as dev, staging
			and prod, in order. "kubectl apply" makes one.`),
		Example: templates.Examples(`
			# See what there is
			manifold pipeline list

			# What each environment runs, and what waits
			manifold pipeline get podinfo

			# Promote what waits for prod, and wait until it runs there
			manifold pipeline promote podinfo --to prod --wait

			# Promote nothing for now
			manifold pipeline pause podinfo -m "release freeze"`),
		Args: cobra.NoArgs,
		Run:  cmdutil.DefaultSubCommandRun(streams.ErrOut),
	}
	cmd.AddCommand(
		newListCommand(f, streams),
		newGetCommand(f, streams),
		newPromoteCommand(f, streams),
		newPauseCommand(f, streams),
		newResumeCommand(f, streams),
	)
	return cmd
}

// subject is the pipeline that a command is about.
type subject struct {
	Namespace, Name string
	// Group is that of the pipeline. It is looked for if it is empty.
	Group string

	client dynamic.Interface
}

func (s *subject) addFlags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&s.Group, "group", s.Group, "The API group of the pipeline, where both groups have one of the name.")
	cmdutil.CheckErr(cmd.RegisterFlagCompletionFunc("group", cobra.FixedCompletions(groups(), cobra.ShellCompDirectiveNoFileComp)))
}

// groups are those that pipelines are served under.
func groups() []string {
	out := make([]string, 0, len(weave.GroupVersions))
	for _, version := range weave.GroupVersions {
		out = append(out, version.Group)
	}
	return out
}

// complete takes the one name on the command line, and finds the logical cluster.
func (s *subject) complete(f cmdutil.Factory, cmd *cobra.Command, args []string) error {
	if len(args) != 1 {
		return cmdutil.UsageErrorf(cmd, "exactly one NAME is required, got %d", len(args))
	}
	s.Name = args[0]
	if _, err := s.resources(); err != nil {
		return err
	}
	return s.connect(f)
}

func (s *subject) connect(f cmdutil.Factory) error {
	var err error
	s.Namespace, s.client, err = logical.Dynamic(f)
	return err
}

// resources are those that the pipeline may be of.
func (s *subject) resources() ([]schema.GroupVersionResource, error) {
	var out []schema.GroupVersionResource
	for _, version := range weave.GroupVersions {
		if s.Group == "" || s.Group == version.Group {
			out = append(out, version.WithResource(weave.Resource))
		}
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("--group must be one of %s, but is %q", strings.Join(groups(), ", "), s.Group)
	}
	return out, nil
}

// find reads the pipeline, in the one group that has it.
func (s *subject) find(ctx context.Context) (schema.GroupVersionResource, *weave.Pipeline, error) {
	resources, err := s.resources()
	if err != nil {
		return schema.GroupVersionResource{}, nil, err
	}
	var resource schema.GroupVersionResource
	var out *weave.Pipeline
	var failed error
	for _, candidate := range resources {
		found, err := s.client.Resource(candidate).Namespace(s.Namespace).Get(ctx, s.Name, metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err): // also where nobody has defined the kind
		case apierrors.IsForbidden(err):
			failed = err // the other group may have it
		case err != nil:
			return resource, nil, err
		case out != nil:
			return resource, nil, fmt.Errorf("namespace %q has a pipeline %q in both groups; say which by --group %s", s.Namespace, s.Name, strings.Join(groups(), " or --group "))
		default:
			resource = candidate
			if out, err = weave.Read(found); err != nil {
				return resource, nil, err
			}
		}
	}
	switch {
	case out != nil:
		return resource, out, nil
	case failed != nil:
		return resource, nil, failed
	}
	return resource, nil, fmt.Errorf("there is no pipeline %q in namespace %q; \"manifold pipeline list -A\" lists those that there are", s.Name, s.Namespace)
}

// ask posts what is asked to a subresource, and reads the answer into body.
func (s *subject) ask(ctx context.Context, subresource, kind string, body runtime.Object) error {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(body)
	if err != nil {
		return err
	}
	object := &unstructured.Unstructured{Object: content}
	object.SetGroupVersionKind(v1alpha1.SchemeGroupVersion.WithKind(kind))
	object.SetName(s.Name)
	resource := v1alpha1.SchemeGroupVersion.WithResource(v1alpha1.ResourcePipelines)
	answer, err := s.client.Resource(resource).Namespace(s.Namespace).Create(ctx, object, metav1.CreateOptions{}, subresource)
	if err != nil {
		return err
	}
	return runtime.DefaultUnstructuredConverter.FromUnstructured(answer.Object, body)
}

// title names the pipeline as kubectl names objects.
func (s *subject) title() string { return "pipeline/" + s.Name }

// errGone tells that a pipeline that is followed has been deleted.
var errGone = errors.New("it has been deleted meanwhile")

// inFull is how the resource of a group is asked for, so that no other one is meant.
func inFull(resource schema.GroupVersionResource) string { return resource.GroupResource().String() }

// completeOne offers the names of pipelines for commands that are about one.
func completeOne(f cmdutil.Factory) cobra.CompletionFunc {
	var resources []string
	for _, version := range weave.GroupVersions {
		resources = append(resources, inFull(version.WithResource(weave.Resource)))
	}
	return listing.CompleteOne(f, resources...)
}

// completeEnvironment offers the environments of the pipeline on the command line.
func completeEnvironment(f cmdutil.Factory, s *subject) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		of := *s
		if err := of.complete(f, cmd, args); err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		var names []string
		if _, p, err := of.find(cmd.Context()); err == nil {
			for i := range p.Spec.Environments {
				names = append(names, p.Spec.Environments[i].Name)
			}
		}
		return names, cobra.ShellCompDirectiveNoFileComp
	}
}
