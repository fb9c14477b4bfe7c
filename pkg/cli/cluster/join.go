package cluster

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/rest"
	cmdutil "k8s.io/kubectl/pkg/cmd/util"
	"k8s.io/kubectl/pkg/util/templates"

	manifoldv1alpha1 "github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
)

// JoinOptions are what "cluster join" needs.
type JoinOptions struct {
	genericiooptions.IOStreams

	// Name is what the cluster will be called.
	Name string
	// Kubeconfig and Context lead to the cluster that joins, as its admin.
	Kubeconfig, Context string
	// Labels are put on the Cluster, beside those that it has.
	Labels map[string]string
	// Kinds are custom kinds that the syncer is given rights for, beside those that it has: PLURAL.GROUP.
	Kinds []string
	// Wait says whether to wait until the cluster is ready, and Timeout for how long.
	Wait    bool
	Timeout time.Duration

	logicalConfig *rest.Config
	kinds         []schema.GroupResource
}

// NewJoinOptions returns options with their defaults.
func NewJoinOptions(streams genericiooptions.IOStreams) *JoinOptions {
	return &JoinOptions{IOStreams: streams, Wait: true, Timeout: 30 * time.Second}
}

func newJoinCommand(f cmdutil.Factory, streams genericiooptions.IOStreams) *cobra.Command {
	o := NewJoinOptions(streams)
	cmd := &cobra.Command{
		Use:                   "join NAME --cluster-kubeconfig FILE [--cluster-context CONTEXT] [--label KEY=VALUE]... [--allow-kind PLURAL.GROUP]...",
		DisableFlagsInUseLine: true,
		Short:                 "Register a physical cluster with least rights",
		Long: templates.LongDesc(`
			Register a physical cluster, so that workloads may run on it.

			The kubeconfig given is used for joining alone and is not stored. Joining makes a ServiceAccount in the cluster that
			may do what Manifold needs and nothing more, keeps it out of kube-* namespaces by an admission policy, and stores
			only that credential in the logical cluster. It first asks for every right that it takes, so nothing is left half made.

			Joining again under the same name refreshes the credential and adds labels.

			Custom resources go to clusters that they are pinned to, or that a policy chooses which lists their kind, if Manifold may
			manage them there: --allow-kind gives that right, and keeps those that were given before.`),
		Example: templates.Examples(`
			# Join the cluster of the current context of a kubeconfig
			manifold cluster join east --cluster-kubeconfig ~/.kube/east

			# Choose a context, and label the cluster for placement policies
			manifold cluster join west --cluster-kubeconfig ~/.kube/config --cluster-context west-admin --label region=eu-west

			# Let Manifold manage custom resources in a cluster, whether or not it has joined already
			manifold cluster join east --cluster-kubeconfig ~/.kube/east --allow-kind certificates.cert-manager.io`),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.Complete(f, cmd, args); err != nil {
				return err
			}
			if err := o.Validate(); err != nil {
				return err
			}
			ctx, stop := interruptible(cmd.Context())
			defer stop()
			return o.Run(ctx)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&o.Kubeconfig, "cluster-kubeconfig", o.Kubeconfig, "Path to a kubeconfig with admin rights in the cluster that joins.")
	flags.StringVar(&o.Context, "cluster-context", o.Context, "The context in that kubeconfig. Defaults to its current one.")
	flags.StringToStringVar(&o.Labels, "label", o.Labels, "Label to put on the Cluster, as KEY=VALUE. May be repeated.")
	flags.StringArrayVar(&o.Kinds, "allow-kind", o.Kinds,
		"Custom kind that Manifold may manage in the cluster, as PLURAL.GROUP, or *.GROUP for all of a group. May be repeated.")
	flags.BoolVar(&o.Wait, "wait", o.Wait, "Wait until the cluster is ready.")
	flags.DurationVar(&o.Timeout, "timeout", o.Timeout, "How long to wait for the cluster to be ready.")
	cmdutil.CheckErr(cmd.RegisterFlagCompletionFunc("cluster-context", completeContexts(&o.Kubeconfig)))
	cmdutil.CheckErr(cmd.MarkFlagFilename("cluster-kubeconfig"))
	return cmd
}

// Complete takes the arguments and finds the logical cluster.
func (o *JoinOptions) Complete(f cmdutil.Factory, cmd *cobra.Command, args []string) error {
	if len(args) != 1 {
		return cmdutil.UsageErrorf(cmd, "exactly one NAME is required, got %d", len(args))
	}
	if o.Kubeconfig == "" {
		return cmdutil.UsageErrorf(cmd, "--cluster-kubeconfig is required; --kubeconfig leads to the logical cluster")
	}
	o.Name = args[0]
	var err error
	o.logicalConfig, err = f.ToRESTConfig()
	return err
}

// Validate refuses names and labels that could not be stored.
func (o *JoinOptions) Validate() error {
	if problems := validation.IsDNS1123Label(o.Name); len(problems) > 0 {
		return fmt.Errorf("%q is no name for a cluster: %s", o.Name, strings.Join(problems, "; "))
	}
	if problems := metavalidation.ValidateLabels(o.Labels, field.NewPath("label")); len(problems) > 0 {
		return fmt.Errorf("--label: %w", problems.ToAggregate())
	}
	if o.Wait && o.Timeout <= 0 {
		return fmt.Errorf("--timeout must be more than zero, not %s; use --wait=false not to wait", o.Timeout)
	}
	var err error
	o.kinds, err = parseKinds(o.Kinds)
	return err
}

// Run joins the cluster. What it has newly made is taken back if it cannot finish.
func (o *JoinOptions) Run(ctx context.Context) error {
	logical, err := openLogical(ctx, o.logicalConfig)
	if err != nil {
		return err
	}
	existing, err := o.join(ctx, logical)
	if err != nil {
		return fmt.Errorf("join cluster %q: %w", o.Name, err)
	}
	result := "joined"
	if existing != nil {
		result = "already joined, refreshed"
	}
	if o.Wait {
		if err := o.awaitReady(ctx, logical, result); err != nil {
			return err
		}
	}
	fmt.Fprintf(o.Out, "cluster/%s %s\n", o.Name, result)
	return nil
}

// join checks everything that can be checked, then makes what is needed on both sides. It returns the Cluster as it was before,
// nil if it is new.
func (o *JoinOptions) join(ctx context.Context, logical *logical) (*manifoldv1alpha1.Cluster, error) {
	progress := progress{out: o.ErrOut}
	access, err := loadAccess(o.Kubeconfig, o.Context)
	if err != nil {
		return nil, err
	}
	physical, err := reach(ctx, access)
	if err != nil {
		return nil, err
	}
	physical.kinds = o.kinds
	progress.done("Reached %s, Kubernetes %s", access.rest.Host, physical.version)
	existing, err := o.check(ctx, logical, physical)
	if err != nil {
		return nil, err
	}
	progress.done("The credential has the rights that joining takes")

	var undo undoStack
	if err := o.make(ctx, logical, physical, existing, progress, &undo); err != nil {
		return nil, takenBack(ctx, err, undo)
	}
	return existing, nil
}

// check refuses what cannot work before anything is made.
func (o *JoinOptions) check(ctx context.Context, logical *logical, physical *physical) (*manifoldv1alpha1.Cluster, error) {
	if physical.uid == logical.uid {
		return nil, fmt.Errorf("%s is the logical cluster itself; --cluster-kubeconfig must lead to a physical one", physical.access)
	}
	clusters, err := logical.list(ctx)
	if err != nil {
		return nil, fmt.Errorf("list the clusters that have joined: %w", err)
	}
	existing, err := registered(o.Name, physical.uid, clusters)
	if err != nil {
		return nil, err
	}
	if err := physical.checkKinds(physical.client.Discovery()); err != nil {
		return nil, err
	}
	return existing, physical.checkRights(ctx)
}

func (o *JoinOptions) make(ctx context.Context, logical *logical, physical *physical, existing *manifoldv1alpha1.Cluster,
	progress progress, undo *undoStack,
) error {
	if err := physical.grant(ctx, logical.uid, undo); err != nil {
		return err
	}
	progress.done("Made ServiceAccount %s/%s with least rights", manifoldv1alpha1.SystemNamespace, syncerName(logical.uid))
	if len(o.Kinds) > 0 {
		progress.done("Gave it the rights to manage %s", strings.Join(o.Kinds, ", "))
	}
	kubeconfig, err := physical.kubeconfigFor(ctx, o.Name, logical.uid)
	if err != nil {
		return err
	}
	progress.done("The cluster honours the new credential")
	if err := logical.store(ctx, o.cluster(physical), existing, kubeconfig, undo); err != nil {
		return err
	}
	progress.done("Stored it as Secret %s/%s", manifoldv1alpha1.SystemNamespace, credentialName(o.Name))
	return nil
}

// cluster is the Cluster object to store.
func (o *JoinOptions) cluster(physical *physical) *manifoldv1alpha1.Cluster {
	return &manifoldv1alpha1.Cluster{
		ObjectMeta: metav1.ObjectMeta{Name: o.Name, Labels: o.Labels},
		Spec: manifoldv1alpha1.ClusterSpec{Connection: manifoldv1alpha1.ClusterConnection{
			SecretRef: &manifoldv1alpha1.SecretReference{
				Namespace: manifoldv1alpha1.SystemNamespace, Name: credentialName(o.Name),
			},
		}},
		Status: manifoldv1alpha1.ClusterStatus{UID: string(physical.uid)},
	}
}

func (o *JoinOptions) awaitReady(ctx context.Context, logical *logical, result string) error {
	progress{out: o.ErrOut}.doing("Waiting up to %s until the cluster is ready", o.Timeout)
	var reason string
	err := logical.follow(ctx, o.Name, o.Timeout, func(cluster *manifoldv1alpha1.Cluster) bool {
		var ready bool
		ready, reason = readiness(cluster)
		return ready || cluster == nil
	})
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("cluster %q is %s, but not ready after %s: %s", o.Name, result, o.Timeout, reason)
	case err != nil:
		return fmt.Errorf("cluster %q is %s, but waiting until it is ready was cut short: %w", o.Name, result, err)
	case reason == removedMeanwhile:
		return fmt.Errorf("cluster %q was %s, but %s", o.Name, result, reason)
	}
	return nil
}

// takenBack undoes what was made and adds to err what became of that.
func takenBack(ctx context.Context, err error, undo undoStack) error {
	if len(undo) == 0 {
		return err
	}
	if left := undo.run(ctx); left != nil {
		return fmt.Errorf("%w\nwhat was made has been taken back, except:\n%w", err, left)
	}
	return fmt.Errorf("%w\nwhat was made has been taken back", err)
}
