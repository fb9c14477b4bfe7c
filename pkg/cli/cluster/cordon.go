package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	cmdutil "k8s.io/kubectl/pkg/cmd/util"
	"k8s.io/kubectl/pkg/util/templates"

	"github.com/manifold-dev/manifold/generated/clientset/versioned"
	manifoldclient "github.com/manifold-dev/manifold/generated/clientset/versioned/typed/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/cli/listing"
)

// cordoning is one of the two directions: whether new replicas are kept away.
type cordoning bool

const (
	cordon   cordoning = true
	uncordon cordoning = false
)

func (c cordoning) verb() string {
	if c == cordon {
		return "cordon"
	}
	return "uncordon"
}

// CordonOptions are what "cluster cordon" and "cluster uncordon" need.
type CordonOptions struct {
	genericiooptions.IOStreams

	// Names are the clusters.
	Names []string
	// Unschedulable is what they are set to.
	Unschedulable bool

	clusters manifoldclient.ClusterInterface
}

func newCordonCommand(f cmdutil.Factory, streams genericiooptions.IOStreams, direction cordoning) *cobra.Command {
	o := &CordonOptions{IOStreams: streams, Unschedulable: bool(direction)}
	cmd := &cobra.Command{
		Use:                   direction.verb() + " NAME...",
		DisableFlagsInUseLine: true,
		ValidArgsFunction:     completeClusters(f, listing.Everything),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.Complete(f, cmd, args); err != nil {
				return err
			}
			return o.Run(cmd.Context())
		},
	}
	if direction == cordon {
		cmd.Short = "Keep new replicas away from clusters"
		cmd.Long = templates.LongDesc(`
			Keep new replicas away from clusters. What runs there already stays.`)
		cmd.Example = templates.Examples(`
			# Before maintenance
			manifold cluster cordon east`)
	} else {
		cmd.Short = "Let new replicas come to clusters again"
		cmd.Long = templates.LongDesc(`
			Let new replicas come to clusters again, and end their drain if they are being drained. What runs elsewhere stays where it is.`)
		cmd.Example = templates.Examples(`
			# After maintenance
			manifold cluster uncordon east`)
	}
	return cmd
}

// Complete takes the arguments and finds the logical cluster.
func (o *CordonOptions) Complete(f cmdutil.Factory, cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return cmdutil.UsageErrorf(cmd, "at least one NAME is required")
	}
	o.Names = args
	config, err := f.ToRESTConfig()
	if err != nil {
		return err
	}
	client, err := versioned.NewForConfig(config)
	if err != nil {
		return err
	}
	o.clusters = client.ManifoldV1alpha1().Clusters()
	return nil
}

// Run sets every cluster, those after one that cannot be set too.
func (o *CordonOptions) Run(ctx context.Context) error {
	var problems []error
	for _, name := range o.Names {
		done, err := o.set(ctx, name)
		if err != nil {
			problems = append(problems, err)
			continue
		}
		fmt.Fprintf(o.Out, "cluster/%s %s\n", name, done)
	}
	if len(problems) == 1 {
		return problems[0]
	}
	return errors.Join(problems...)
}

func (o *CordonOptions) set(ctx context.Context, name string) (string, error) {
	result := cordoning(o.Unschedulable).verb() + "ed"
	cluster, err := o.clusters.Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return "", err
	}
	spec := map[string]any{"unschedulable": o.Unschedulable}
	precondition := map[string]any{}
	rest := undrained(cluster.Spec.Taints)
	drained := len(rest) < len(cluster.Spec.Taints) && !o.Unschedulable
	if drained {
		spec["taints"], precondition["resourceVersion"] = rest, cluster.ResourceVersion
	} else if cluster.Spec.Unschedulable == o.Unschedulable {
		return "already " + result, nil
	}
	patch, err := json.Marshal(map[string]any{"metadata": precondition, "spec": spec})
	if err != nil {
		return "", err
	}
	_, err = o.clusters.Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{})
	return result, err
}
