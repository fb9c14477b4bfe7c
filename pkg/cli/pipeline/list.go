package pipeline

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/tools/pager"
	cmdutil "k8s.io/kubectl/pkg/cmd/util"
	"k8s.io/kubectl/pkg/util/templates"

	"github.com/manifold-dev/manifold/internal/text"
	"github.com/manifold-dev/manifold/pkg/cli/output"
	"github.com/manifold-dev/manifold/pkg/delivery/weave"
)

// ListOptions are what "pipeline list" needs.
type ListOptions struct {
	genericiooptions.IOStreams

	subject
	// AllNamespaces lists those of all namespaces.
	AllNamespaces bool
	Selector      string
	Output        output.Format
}

func newListCommand(f cmdutil.Factory, streams genericiooptions.IOStreams) *cobra.Command {
	o := &ListOptions{IOStreams: streams}
	cmd := &cobra.Command{
		Use:                   "list [-A] [-l SELECTOR] [-o json|yaml]",
		Aliases:               []string{"ls"},
		DisableFlagsInUseLine: true,
		Short:                 "List pipelines of both groups",
		Long: templates.LongDesc(`
			List pipelines of both groups, with what their environments run in order, what waits for a person, and who has paused them.

			What of it you may not read is told beside, and the exit code is 1 then.`),
		Example: templates.Examples(`
			# Those of a namespace
			manifold pipeline list -n shop

			# All that there are
			manifold pipeline list -A`),
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.connect(f); err != nil {
				return err
			}
			return o.Run(cmd.Context())
		},
	}
	o.Output.AddFlag(cmd)
	cmd.Flags().BoolVarP(&o.AllNamespaces, "all-namespaces", "A", o.AllNamespaces, "List those of all namespaces.")
	cmdutil.AddLabelSelectorFlagVar(cmd, &o.Selector)
	o.addFlags(cmd)
	return cmd
}

// Run lists pipelines. One group that cannot be read hides nothing of the other.
func (o *ListOptions) Run(ctx context.Context) error {
	resources, err := o.resources()
	if err != nil {
		return err
	}
	namespace := o.Namespace
	if o.AllNamespaces {
		namespace = metav1.NamespaceAll
	}
	list := &unstructured.UnstructuredList{Object: map[string]any{"apiVersion": "v1", "kind": "List"}, Items: []unstructured.Unstructured{}}
	var failed []error
	defined := false
	for _, resource := range resources {
		read := func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			return o.client.Resource(resource).Namespace(namespace).List(ctx, options)
		}
		err := pager.New(read).EachListItem(ctx, metav1.ListOptions{LabelSelector: o.Selector}, func(item runtime.Object) error {
			if pipeline, ok := item.(*unstructured.Unstructured); ok {
				list.Items = append(list.Items, *pipeline)
			}
			return nil
		})
		defined = defined || !apierrors.IsNotFound(err)
		if err != nil && !apierrors.IsNotFound(err) {
			failed = append(failed, err)
		}
	}
	if !defined {
		return errors.New(`the logical cluster serves no pipelines; "kubectl apply -k config/crds/weave" defines them`)
	}
	slices.SortStableFunc(list.Items, func(a, b unstructured.Unstructured) int {
		return cmp.Or(cmp.Compare(a.GetNamespace(), b.GetNamespace()), cmp.Compare(a.GetName(), b.GetName()))
	})
	err = o.Output.Print(o.Out, list.UnstructuredContent(), func(out io.Writer) error {
		if len(list.Items) == 0 && len(failed) == 0 {
			fmt.Fprintln(o.ErrOut, "No pipelines found.")
			return nil
		}
		return printLines(out, rows(list.Items, o.AllNamespaces, time.Now()))
	})
	return errors.Join(append([]error{err}, failed...)...)
}

// rows are a line for each pipeline, under a header.
func rows(items []unstructured.Unstructured, namespaces bool, now time.Time) []string {
	cells := [][]string{{"NAME", "GROUP", "ENVIRONMENTS", "READY", "WAITS", "PAUSED", "AGE"}}
	for i := range items {
		item := &items[i]
		group := item.GroupVersionKind().Group
		p, err := weave.Read(item)
		if err != nil {
			cells = append(cells, []string{item.GetName(), group, "cannot be read", nothing, nothing, nothing, nothing})
			continue
		}
		cells = append(cells, []string{
			p.Name, group, cell(strings.Join(environments(p), ", ")), condition(p, weave.ConditionReady), cell(strings.Join(waits(p), ", ")),
			pausedBy(p), duration.HumanDuration(now.Sub(p.CreationTimestamp.Time)),
		})
	}
	if namespaces {
		cells[0] = append([]string{"NAMESPACE"}, cells[0]...)
		for i := range items {
			cells[i+1] = append([]string{items[i].GetNamespace()}, cells[i+1]...)
		}
	}
	return output.Table(cells)
}

// environments are those of a pipeline in order, each with what it runs.
func environments(p *weave.Pipeline) []string {
	var out []string
	for i := range p.Spec.Environments {
		name := p.Spec.Environments[i].Name
		of := p.Status.Environments[name]
		said := ""
		seen := map[string]bool{}
		for _, w := range workloadsOf(of) {
			if version := short(w.Version); version != "" && !seen[version] {
				seen[version] = true
				said += " " + version
			}
		}
		out = append(out, text.Line(name, longestCell)+said)
	}
	return out
}

// waits are the versions that wait for a person, each with where it would go.
func waits(p *weave.Pipeline) []string {
	var out []string
	for i := range p.Spec.Environments {
		name := p.Spec.Environments[i].Name
		if of := p.Status.Environments[name]; of != nil && of.WaitingStatus != nil {
			out = append(out, short(of.WaitingStatus.Revision)+" for "+name)
		}
	}
	return out
}

func pausedBy(p *weave.Pipeline) string {
	if p.Status.Paused == nil {
		return nothing
	}
	return cell("by " + p.Status.Paused.By)
}

func condition(p *weave.Pipeline, kind string) string {
	for _, c := range p.Status.Conditions {
		if c.Type == kind {
			return string(c.Status)
		}
	}
	return string(metav1.ConditionUnknown)
}
