package cluster

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/manifold-dev/manifold/pkg/cli/cluster/grants"
	"github.com/manifold-dev/manifold/pkg/cli/cluster/physical"
)

// Values of --dry-run.
const (
	dryRunNone   = "none"
	dryRunClient = "client"
)

// print writes what joining would make in the cluster, and changes nothing. With a kubeconfig, it includes the custom kinds that Manifold
// may manage there already, which joining keeps.
func (o *JoinOptions) print(ctx context.Context) error {
	logical, err := openLogical(ctx, o.logicalConfig)
	if err != nil {
		return err
	}
	beside, err := o.allowances(ctx, logical)
	if err == nil && o.Kubeconfig != "" {
		err = o.addAllowed(ctx, logical, &beside)
	}
	if err != nil {
		return fmt.Errorf("join cluster %q: %w", o.Name, err)
	}
	all, err := grants.All(logical.uid, beside)
	if err != nil {
		return err
	}
	fmt.Fprintf(o.Out, "# What \"manifold cluster join %s\" makes in the cluster, for the logical cluster %s.\n", o.Name, logical.uid)
	return grants.WriteYAML(o.Out, all)
}

// addAllowed adds what the cluster allowed before and joining keeps.
func (o *JoinOptions) addAllowed(ctx context.Context, logical *logical, beside *grants.Allowances) error {
	below, err := physical.Reach(ctx, o.Kubeconfig, o.Context)
	if err != nil {
		return err
	}
	kinds, err := below.Kinds(ctx, logical.uid)
	if err != nil {
		return err
	}
	beside.Kinds = append(kinds, beside.Kinds...)
	if beside.PriorityClassesUpTo == nil {
		if beside.PriorityClassesUpTo, err = below.PriorityClassesUpTo(ctx, logical.uid); err != nil {
			return err
		}
	}
	existing, err := logical.clusters.Get(ctx, o.Name, metav1.GetOptions{})
	switch {
	case err == nil:
		beside.PodSecurity = keptTo(beside.PodSecurity, existing)
	case !apierrors.IsNotFound(err):
		return err
	}
	if beside.PodSecurity == "" {
		if beside.PodSecurity, err = below.PodSecurity(ctx, logical.uid); err != nil {
			return err
		}
	}
	return nil
}
