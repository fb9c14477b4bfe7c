// Package versions holds the command that tells which chart versions and image tags run in which clusters.
package versions

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/dynamic"
	cmdutil "k8s.io/kubectl/pkg/cmd/util"
	"k8s.io/kubectl/pkg/util/templates"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/internal/text"
	"github.com/manifold-dev/manifold/pkg/cli/listing"
	"github.com/manifold-dev/manifold/pkg/cli/logical"
	"github.com/manifold-dev/manifold/pkg/cli/output"
)

const (
	// longest bounds a message, and longestCell what stands in a column.
	longest     = 512
	longestCell = 120
	// nothing stands in a column that has no value.
	nothing = output.Nothing
)

// Options are what "versions" needs.
type Options struct {
	genericiooptions.IOStreams

	Namespace string
	// AllNamespaces asks for those of all namespaces that the user may see.
	AllNamespaces bool
	// Chart, Image, Cluster and Kind leave out all others.
	Chart, Image, Cluster, Kind string
	// Selector is one of labels of the workloads.
	Selector string
	Output   output.Format

	client dynamic.Interface
}

// NewCommand returns "versions".
func NewCommand(f cmdutil.Factory, streams genericiooptions.IOStreams) *cobra.Command {
	o := &Options{IOStreams: streams}
	cmd := &cobra.Command{
		Use: "versions [-A] [--chart CHART] [--image IMAGE] [--in CLUSTER] [--kind KIND] [-l SELECTOR] [-o json|yaml]",

		DisableFlagsInUseLine: true,

		Short: "Show which chart versions and image tags run in which clusters",
		Long: templates.LongDesc(`
			Show which version of each workload every cluster holds: the version of the chart of a HelmRelease, the revision of a
			Kustomization or an Application, and the tags of all images of a Deployment, StatefulSet, DaemonSet or CronJob. Clusters that a release
			holds at a revision are told with what that has, and overrides of policies count.

			You see what you may list, namespace by namespace. What could not be read is told on standard error, or among the errors of the
			list with -o. Others can ask the same of the API: GET /apis/delivery.manifold.dev/v1alpha1/workloadversions.`),
		Example: templates.Examples(`
			# All that you may see
			manifold versions -A

			# Where a chart is installed, and in which versions
			manifold versions -A --chart podinfo

			# Who still runs an image, by its name or with its tag
			manifold versions -A --image nginx:1.25

			# What one cluster runs
			manifold versions -A --in east -o json`),
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.complete(f); err != nil {
				return err
			}
			return o.Run(cmd.Context())
		},
	}
	o.Output.AddFlag(cmd)
	flags := cmd.Flags()
	flags.BoolVarP(&o.AllNamespaces, "all-namespaces", "A", o.AllNamespaces, "Show those of all namespaces.")
	flags.StringVar(&o.Chart, "chart", o.Chart, "Show releases of this chart alone.")
	flags.StringVar(&o.Image, "image", o.Image, "Show what runs this image alone, named with or without its tag, registry and folders.")
	// Not --cluster, which is kubectl's for an entry of the kubeconfig.
	flags.StringVar(&o.Cluster, "in", o.Cluster, "Show what this cluster holds alone.")
	flags.StringVar(&o.Kind, "kind", o.Kind, "Show workloads of this kind alone.")
	cmdutil.AddLabelSelectorFlagVar(cmd, &o.Selector)
	cmdutil.CheckErr(cmd.RegisterFlagCompletionFunc("in", listing.Complete(f, "clusters.manifold.dev", listing.Everything)))
	return cmd
}

func (o *Options) complete(f cmdutil.Factory) error {
	var err error
	o.Namespace, o.client, err = logical.Dynamic(f)
	return err
}

// Run asks page by page, and shows all.
func (o *Options) Run(ctx context.Context) error {
	list, err := o.list(ctx)
	if err != nil {
		return err
	}
	return o.Output.Print(o.Out, list, func(out io.Writer) error {
		for _, e := range list.Errors {
			where := ""
			if e.Namespace != "" {
				where = fmt.Sprintf(" in namespace %q", e.Namespace)
			}
			fmt.Fprintf(o.ErrOut, "Warning: %s%s: %s\n", e.Resource, where, text.Line(e.Message, longest))
		}
		if len(list.Items) == 0 {
			fmt.Fprintln(o.ErrOut, "No workloads found.")
			return nil
		}
		return table(out, list.Items, o.AllNamespaces)
	})
}

func (o *Options) list(ctx context.Context) (*v1alpha1.WorkloadVersionList, error) {
	namespace := o.Namespace
	if o.AllNamespaces {
		namespace = metav1.NamespaceAll
	}
	var selected []fields.Selector
	for _, by := range []struct{ field, value string }{
		{v1alpha1.FieldChart, o.Chart}, {v1alpha1.FieldCluster, o.Cluster}, {v1alpha1.FieldImage, o.Image}, {v1alpha1.FieldKind, o.Kind},
	} {
		if by.value != "" {
			selected = append(selected, fields.OneTermEqualSelector(by.field, by.value))
		}
	}
	client := o.client.Resource(v1alpha1.SchemeGroupVersion.WithResource(v1alpha1.ResourceVersions)).Namespace(namespace)
	all := &v1alpha1.WorkloadVersionList{Items: []v1alpha1.WorkloadVersion{}}
	all.SetGroupVersionKind(v1alpha1.SchemeGroupVersion.WithKind("WorkloadVersionList"))
	told := map[v1alpha1.VersionsError]bool{}
	for next := ""; ; {
		found, err := client.List(ctx, metav1.ListOptions{LabelSelector: o.Selector, FieldSelector: fields.AndSelectors(selected...).String(), Continue: next})
		if err != nil {
			return nil, err
		}
		var page v1alpha1.WorkloadVersionList
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(found.UnstructuredContent(), &page); err != nil {
			return nil, fmt.Errorf("read a list of versions: %w", err)
		}
		all.Items = append(all.Items, page.Items...)
		for _, e := range page.Errors {
			if !told[e] { // a page may begin where the one before has ended
				told[e] = true
				all.Errors = append(all.Errors, e)
			}
		}
		if next = page.Continue; next == "" {
			return all, nil
		}
	}
}

// table writes a row for each cluster of each workload.
func table(out io.Writer, items []v1alpha1.WorkloadVersion, namespaces bool) error {
	var rows [][]string
	write := func(namespace string, cells ...string) {
		if namespaces {
			cells = append([]string{namespace}, cells...)
		}
		rows = append(rows, cells)
	}
	write("NAMESPACE", "WORKLOAD", "CLUSTER", "VERSION", "OF")
	for i := range items {
		v := &items[i]
		for _, c := range v.Clusters {
			of := strings.Join(c.Images, ",")
			switch {
			case c.Error != "":
				of = c.Error
			case v.Chart != "":
				of = "chart " + v.Chart
			case of == "" && c.Revision != "":
				of = c.Revision
			}
			write(v.Namespace, cell(v.Workload.Kind+"/"+v.Workload.Name), cell(c.Cluster), cell(c.Version), cell(of))
		}
	}
	_, err := fmt.Fprintln(out, strings.Join(output.Table(rows), "\n"))
	return err
}

func cell(said string) string { return cmp.Or(text.Line(said, longestCell), nothing) }
