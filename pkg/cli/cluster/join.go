package cluster

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	cmdutil "k8s.io/kubectl/pkg/cmd/util"
	"k8s.io/kubectl/pkg/util/templates"

	manifoldv1alpha1 "github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	manifoldvalidation "github.com/manifold-dev/manifold/apis/manifold/v1alpha1/validation"
	"github.com/manifold-dev/manifold/pkg/cli/cluster/grants"
)

// JoinOptions are what "cluster join" needs.
type JoinOptions struct {
	genericiooptions.IOStreams
	// Name is what the cluster will be called.
	asAdmin

	// Labels are put on the Cluster, beside those that it has.
	Labels map[string]string
	// Kinds are custom kinds that the syncer is given rights for, beside those that it has: PLURAL.GROUP.
	Kinds []string
	// Priorities is up to which value PriorityClasses of applications may come along; "" for what was allowed before.
	Priorities string
	// Volumes says whether PersistentVolumes of the logical cluster go along with their claims.
	Volumes bool
	// Pipelines says whether pipelines show what their targets run in the cluster beside what comes from the logical one.
	Pipelines bool
	// PodWebhooks says whether the cluster asks the logical one about pods that controllers make there.
	PodWebhooks bool
	// Network is the network that the cluster is in, and PodCIDRs are the ranges of addresses of its pods; empty for what was said before.
	Network  string
	PodCIDRs []string
	// PodSecurity is the level of the Pod Security Standards that pods which Manifold makes are kept to; "" for what it was before.
	PodSecurity string
	// Lifetime is that of the syncer's token, which is renewed long before it ends.
	Lifetime time.Duration
	// DryRun says whether to print what would be made in the cluster, in place of making it: "client", or "none".
	DryRun string
	// Wait says whether to wait until the cluster is ready, and Timeout for how long.
	Wait    bool
	Timeout time.Duration

	kinds       []schema.GroupResource
	priorities  *int32
	podSecurity string
}

// NewJoinOptions returns options with their defaults.
func NewJoinOptions(streams genericiooptions.IOStreams) *JoinOptions {
	return &JoinOptions{IOStreams: streams, DryRun: dryRunNone, Lifetime: defaultLifetime, Wait: true, Timeout: 30 * time.Second}
}

func newJoinCommand(f cmdutil.Factory, streams genericiooptions.IOStreams) *cobra.Command {
	o := NewJoinOptions(streams)
	cmd := &cobra.Command{
		Use:                   "join NAME --cluster-kubeconfig FILE [--cluster-context CONTEXT] [--label KEY=VALUE]... [--allow-kind PLURAL.GROUP]... [--dry-run]",
		DisableFlagsInUseLine: true,
		Short:                 "Register a physical cluster with least rights",
		Long: templates.LongDesc(`
			Register a physical cluster, so that workloads may run on it.

			The kubeconfig given is used for joining alone and is not stored. Joining makes a ServiceAccount in the cluster that
			may do what Manifold needs and nothing more, lets it write only what carries its mark by an admission policy, and stores
			only that credential in the logical cluster. It first asks for every right that it takes, so nothing is left half made.

			The credential is a token that ends after some days, and is renewed long before by the server itself.

			--dry-run prints what would be made in the cluster, with the reason of each right, and changes nothing anywhere: for the
			cluster's admin to read, and to apply, if that is not who joins it. It needs no --cluster-kubeconfig.

			Joining again under the same name makes a new credential, ends those from before, brings the rights up to date and adds labels.

			Custom resources go to clusters that they are pinned to, or that a policy chooses which lists their kind, if Manifold may
			manage them there: --allow-kind gives that right, and keeps those that were given before.

			An application that brings a PriorityClass of its own finds it in the clusters whose admin lets it come along:
			--allow-priority-classes does, up to a value, which stays until another one is given.

			PersistentVolumes that are made in the logical cluster go along with their claims to clusters whose admin lets them, by
			--allow-volumes; joining again without it takes that back. Whoever makes such a volume reads and writes what it leads to,
			such as any folder of a node.

			Pipelines show what their targets run of what Manifold has put into a cluster. With --allow-pipelines they also show what else
			is there and carries their label, or is their app, such as the HelmReleases of a Flux that runs there: Manifold may read
			HelmReleases, Kustomizations and workloads for that. Joining again without it takes that back.

			Webhooks for pods that are registered in the logical cluster are called for pods that users create there. With --pod-webhooks
			the cluster asks the logical one about pods of Deployments and other workloads as well, which are made in the cluster. It has
			to reach the logical cluster for that, where "manifold start --advertise-url" says. Joining again without it takes that back.

			Clusters that reach the addresses of each other's pods may share a network: --network names it. A Service is then in each of them
			that runs anything of its namespace, and leads to its pods in all of them. --pod-cidr declares the addresses that the pods of the
			cluster have: the others are led to no other addresses by what it says, and to those by nobody else. Both stay until others are given.

			Whoever has stolen Manifold's token of a cluster can make pods there, in namespaces that it makes itself. With --pod-security
			these pods, and those of workloads, are kept to level "baseline" or "restricted" of Kubernetes' Pod Security Standards,
			whatever the labels of their namespaces say. It stays until another level is given; "privileged" takes it back.`),
		Example: templates.Examples(`
			# Join the cluster of the current context of a kubeconfig
			manifold cluster join east --cluster-kubeconfig ~/.kube/east

			# Choose a context, and label the cluster for placement policies
			manifold cluster join west --cluster-kubeconfig ~/.kube/config --cluster-context west-admin --label region=eu-west

			# Read what would be made in a cluster
			manifold cluster join east --dry-run

			# Let Manifold manage custom resources in a cluster, whether or not it has joined already
			manifold cluster join east --cluster-kubeconfig ~/.kube/east --allow-kind certificates.cert-manager.io

			# Let applications bring PriorityClasses of their own there, of a value of at most 1000
			manifold cluster join east --cluster-kubeconfig ~/.kube/east --allow-priority-classes 1000

			# Let PersistentVolumes that are made by hand go there along with their claims
			manifold cluster join east --cluster-kubeconfig ~/.kube/east --allow-volumes

			# Have the pods there pass the webhooks of the logical cluster
			manifold cluster join east --cluster-kubeconfig ~/.kube/east --pod-webhooks

			# Have Services lead to the pods of all clusters of a network
			manifold cluster join east --cluster-kubeconfig ~/.kube/east --network mesh --pod-cidr 10.1.0.0/16

			# Let Manifold make no privileged pods there, nor pods with folders of nodes
			manifold cluster join east --cluster-kubeconfig ~/.kube/east --pod-security baseline`),
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
	o.addFlags(cmd, "Path to a kubeconfig with admin rights in the cluster that joins.")
	flags := cmd.Flags()
	flags.StringToStringVar(&o.Labels, "label", o.Labels, "Label to put on the Cluster, as KEY=VALUE. May be repeated.")
	flags.StringArrayVar(&o.Kinds, "allow-kind", o.Kinds,
		"Custom kind that Manifold may manage in the cluster, as PLURAL.GROUP, or *.GROUP for all of a group. May be repeated.")
	flags.StringVar(&o.Priorities, "allow-priority-classes", o.Priorities,
		"Let applications bring PriorityClasses of at most this value to the cluster.")
	flags.BoolVar(&o.Volumes, "allow-volumes", o.Volumes,
		"Send PersistentVolumes of the logical cluster to the cluster along with their claims. Joining again without this flag stops that.")
	flags.BoolVar(&o.Pipelines, "allow-pipelines", o.Pipelines,
		"Let pipelines show what their targets run in the cluster, also what does not come from the logical cluster. Joining again without this flag stops that.")
	flags.BoolVar(&o.PodWebhooks, "pod-webhooks", o.PodWebhooks,
		"Have the cluster call the logical cluster about pods that controllers create there, so that its webhooks see them. "+
			"Joining again without this flag stops that.")
	flags.StringVar(&o.Network, "network", o.Network,
		"Name of the network in which clusters reach the addresses of each other's pods. Stays until another one is given.")
	flags.StringArrayVar(&o.PodCIDRs, "pod-cidr", o.PodCIDRs,
		"Range of addresses that pods of the cluster have, such as 10.1.0.0/16. May be repeated. The ranges stay until others are given.")
	flags.StringVar(&o.PodSecurity, "pod-security", o.PodSecurity,
		`Level of the Pod Security Standards that the pods which Manifold makes are kept to: "privileged", "baseline" or "restricted". Stays until another one is given.`)
	flags.DurationVar(&o.Lifetime, "token-lifetime", o.Lifetime,
		"How long a token of Manifold in the cluster lasts. It is renewed after half of that.")
	flags.StringVar(&o.DryRun, "dry-run", o.DryRun, `Must be "none" or "client". With "client", only print as YAML what would be made in the cluster.`)
	flags.Lookup("dry-run").NoOptDefVal = dryRunClient
	flags.BoolVar(&o.Wait, "wait", o.Wait, "Wait until the cluster is ready.")
	flags.DurationVar(&o.Timeout, "timeout", o.Timeout, "How long to wait for the cluster to be ready.")
	cmdutil.CheckErr(cmd.RegisterFlagCompletionFunc("pod-security",
		cobra.FixedCompletions([]string{grants.Privileged, grants.Baseline, grants.Restricted}, cobra.ShellCompDirectiveNoFileComp)))
	cmdutil.CheckErr(cmd.RegisterFlagCompletionFunc("dry-run", cobra.FixedCompletions([]string{dryRunNone, dryRunClient}, cobra.ShellCompDirectiveNoFileComp)))
	return cmd
}

// Complete takes the arguments and finds the logical cluster. The other one is not needed to print what would be made.
func (o *JoinOptions) Complete(f cmdutil.Factory, cmd *cobra.Command, args []string) error {
	if err := o.asAdmin.Complete(f, cmd, args); err != nil {
		return err
	}
	if o.Kubeconfig == "" && o.DryRun != dryRunClient {
		return cmdutil.UsageErrorf(cmd, "--cluster-kubeconfig is required; --kubeconfig is for the logical cluster")
	}
	return nil
}

// Validate refuses names and labels that could not be stored.
func (o *JoinOptions) Validate() error {
	if problems := validation.IsDNS1123Label(o.Name); len(problems) > 0 {
		return fmt.Errorf("%q is not a valid cluster name: %s", o.Name, strings.Join(problems, "; "))
	}
	if problems := metavalidation.ValidateLabels(o.Labels, field.NewPath("label")); len(problems) > 0 {
		return fmt.Errorf("--label: %w", problems.ToAggregate())
	}
	if o.DryRun != dryRunNone && o.DryRun != dryRunClient {
		return fmt.Errorf("--dry-run must be %q or %q, not %q", dryRunNone, dryRunClient, o.DryRun)
	}
	if o.Wait && o.Timeout <= 0 {
		return fmt.Errorf("--timeout must be more than zero, not %s; use --wait=false not to wait", o.Timeout)
	}
	if err := checkLifetime(o.Lifetime); err != nil {
		return err
	}
	if err := o.validateNetwork(); err != nil {
		return err
	}
	var err error
	if o.kinds, err = grants.ParseKinds(o.Kinds); err != nil {
		return err
	}
	if o.priorities, err = grants.ParsePriority(o.Priorities); err != nil {
		return err
	}
	o.podSecurity, err = grants.ParsePodSecurity(o.PodSecurity)
	return err
}

// validateNetwork refuses a network and addresses that could not be stored.
func (o *JoinOptions) validateNetwork() error {
	if problems := validation.IsDNS1123Label(o.Network); o.Network != "" && len(problems) > 0 {
		return fmt.Errorf("--network: %q is no name for a network: %s", o.Network, strings.Join(problems, "; "))
	}
	if problems := manifoldvalidation.ValidatePodCIDRs(o.PodCIDRs, field.NewPath("pod-cidr")); len(problems) > 0 {
		return fmt.Errorf("--pod-cidr: %w", problems.ToAggregate())
	}
	return nil
}

// Run joins the cluster. What it has newly made is taken back if it cannot finish.
func (o *JoinOptions) Run(ctx context.Context) error {
	if o.DryRun == dryRunClient {
		return o.print(ctx)
	}
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
