package cluster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	manifoldv1alpha1 "github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/cli/cluster/grants"
	"github.com/manifold-dev/manifold/pkg/cli/cluster/physical"
	"github.com/manifold-dev/manifold/pkg/podhooks"
)

// joining is one run of "cluster join".
type joining struct {
	*JoinOptions
	progress progress
	logical  *logical
	below    *physical.Cluster
	// existing is the Cluster as it was before, nil if it is new.
	existing *manifoldv1alpha1.Cluster
	// allowed is what the cluster is to allow beside what every cluster does. Once that has been granted, it has also what was allowed before and
	// stays.
	allowed grants.Allowances
	// undo takes back what has been made.
	undo physical.Undo
}

// join checks everything that can be checked, then makes what is needed on both sides. It returns the Cluster as it was before,
// nil if it is new.
func (o *JoinOptions) join(ctx context.Context, logical *logical) (*manifoldv1alpha1.Cluster, error) {
	j := &joining{JoinOptions: o, progress: progress{out: o.ErrOut}, logical: logical}
	var err error
	if j.below, err = physical.Reach(ctx, o.Kubeconfig, o.Context); err != nil {
		return nil, err
	}
	j.progress.done("Reached %s, Kubernetes %s", j.below.Host(), j.below.Version)
	if j.allowed, err = o.allowances(ctx, logical); err != nil {
		return nil, err
	}
	if how := j.allowed.PodWebhook; how != nil && how.Loopback() {
		fmt.Fprintf(o.ErrOut, "Warning: the cluster is told to ask at %s, which only the host of the logical cluster reaches; "+
			"give another address by \"manifold start --advertise-url\", and join again\n", how.BaseURL)
	}
	if err := j.check(ctx); err != nil {
		return nil, err
	}
	j.progress.done("The credential has the rights that joining takes")
	if err := j.make(ctx); err != nil {
		return nil, takenBack(ctx, err, j.undo)
	}
	return j.existing, nil
}

// allowances are what the options ask the cluster to allow.
func (o *JoinOptions) allowances(ctx context.Context, logical *logical) (out grants.Allowances, err error) {
	out = grants.Allowances{Kinds: o.kinds, PriorityClassesUpTo: o.priorities, Volumes: o.Volumes, Pipelines: o.Pipelines, PodSecurity: o.podSecurity}
	if o.PodWebhooks {
		out.PodWebhook, err = logical.podWebhook(ctx, o.Name)
	}
	return out, err
}

// check refuses what cannot work before anything is made.
func (j *joining) check(ctx context.Context) error {
	if j.below.UID == j.logical.uid {
		return fmt.Errorf("%s is the logical cluster itself; --cluster-kubeconfig must lead to a physical one", j.below)
	}
	clusters, err := j.logical.list(ctx)
	if err != nil {
		return fmt.Errorf("list the clusters that have joined: %w", err)
	}
	if j.existing, err = registered(j.Name, j.below.UID, clusters); err != nil {
		return err
	}
	if j.existing != nil {
		j.allowed.PodSecurity = keptTo(j.podSecurity, j.existing)
	}
	return j.below.Check(ctx, j.logical.uid, j.allowed)
}

// keptTo is the level of Pod Security that a cluster is to keep pods to, "" for the one that it keeps them to: what is asked for, or what was before, also
// if somebody has removed all of that from the cluster.
func keptTo(asked string, existing *manifoldv1alpha1.Cluster) string {
	if asked == "" {
		return existing.Spec.Allows.PodSecurity
	}
	return asked
}

// make has the cluster grant what is needed, and the logical cluster know the credential.
func (j *joining) make(ctx context.Context) error {
	if err := j.grant(ctx); err != nil {
		return err
	}
	var token physical.Token
	var earlier []string
	err := replacing(func() (err error) {
		token, earlier, err = j.replace(ctx)
		return err
	})
	if err != nil {
		return err
	}
	j.progress.done("Stored it as Secret %s/%s", manifoldv1alpha1.SystemNamespace, credentialName(j.Name))
	if err := j.askAboutPods(ctx); err != nil {
		return err
	}
	if err := j.takeBack(ctx); err != nil {
		return err
	}
	if err := j.liftPodSecurity(ctx); err != nil {
		return err
	}
	return j.retire(ctx, token, earlier)
}

// replace makes a token and stores it in place of the credential that is there, if there is one. It returns the Secrets that the tokens from
// before end with. See replacing.
func (j *joining) replace(ctx context.Context) (token physical.Token, earlier []string, err error) {
	before, err := j.logical.credential(ctx, j.Name)
	if err != nil {
		return physical.Token{}, nil, err
	}
	made := len(j.undo)
	if token, err = j.below.Issue(ctx, j.logical.uid, j.Lifetime, &j.undo); err != nil {
		return physical.Token{}, nil, err
	}
	if earlier, err = j.below.Bound(ctx, j.logical.uid, token.Secret); err != nil {
		return physical.Token{}, nil, err
	}
	kubeconfig, err := j.below.Kubeconfig(ctx, j.Name, j.logical.uid, token)
	if err != nil {
		return physical.Token{}, nil, err
	}
	j.progress.done("The cluster honours the new credential%s", token.Capped(j.Lifetime))
	issued := slices.Clone(j.undo[made:])
	if j.existing != nil {
		j.undo = nil // from now on the cluster may be reached with what has been made
	}
	credential := map[string][]byte{kubeconfigKey: kubeconfig}
	if err := j.preparePodWebhook(ctx, credential); err != nil {
		return physical.Token{}, nil, err
	}
	err = j.logical.store(ctx, j.cluster(), j.existing, before, credential, &j.undo)
	if j.existing != nil && apierrors.IsConflict(err) {
		err = errors.Join(err, issued.Run(ctx))
	}
	return token, earlier, err
}

func (j *joining) grant(ctx context.Context) error {
	var err error
	if j.allowed, err = j.below.Grant(ctx, j.logical.uid, j.allowed, &j.undo); err != nil {
		return err
	}
	j.progress.done("Made ServiceAccount %s/%s with least rights", manifoldv1alpha1.SystemNamespace, grants.Name(j.logical.uid))
	if len(j.Kinds) > 0 {
		j.progress.done("Gave it the rights to manage %s", strings.Join(j.Kinds, ", "))
	}
	if j.priorities != nil {
		j.progress.done("Let PriorityClasses come along, up to a value of %d", *j.priorities)
	}
	if j.Volumes {
		j.progress.done("Let PersistentVolumes go along with their claims")
	}
	if j.Pipelines {
		j.progress.done("Let pipelines show what their targets run there")
	}
	if j.podSecurity != "" && j.podSecurity != grants.Privileged {
		j.progress.done("Kept the pods that Manifold makes to level %q of Pod Security", j.podSecurity)
	}
	return nil
}

// liftPodSecurity has pods be kept to no level any more, if that was asked for.
func (j *joining) liftPodSecurity(ctx context.Context) error {
	if j.podSecurity != grants.Privileged {
		return nil
	}
	taken, err := j.below.LiftPodSecurity(ctx, j.logical.uid)
	if err != nil {
		return fmt.Errorf("take back that pods are kept to a level of Pod Security: %w", err)
	}
	if taken {
		j.progress.done("Took back that pods are kept to a level of Pod Security")
	}
	return nil
}

// preparePodWebhook makes the token that the cluster asks about pods with, and notes in the credential what is to be known of it. A cluster that is
// not to ask any more is told so first: without its token, it would be refused.
func (j *joining) preparePodWebhook(ctx context.Context, credential map[string][]byte) (err error) {
	if how := j.allowed.PodWebhook; how != nil {
		how.Token, credential[podhooks.TokensKey], err = j.logical.podWebhookToken(ctx, j.Name)
		return err
	}
	taken, err := j.below.StopAskingAboutPods(ctx, j.logical.uid)
	if err != nil {
		return fmt.Errorf("take back that the cluster asks about pods: %w", err)
	}
	if taken {
		j.progress.done("Took back that the cluster asks about pods")
	}
	return nil
}

func (j *joining) askAboutPods(ctx context.Context) error {
	how := j.allowed.PodWebhook
	if how == nil {
		return nil
	}
	if err := j.below.AskAboutPods(ctx, j.logical.uid, *how, &j.undo); err != nil {
		return err
	}
	j.progress.done("Had the cluster ask about pods, at %s", how.BaseURL)
	return nil
}

// takeBack takes back what this run does not ask for and an earlier one did.
func (j *joining) takeBack(ctx context.Context) error {
	taken, err := j.below.TakeBack(ctx, j.logical.uid, j.allowed)
	for _, what := range taken {
		j.progress.done("Took back that %s", what)
	}
	return err
}

// retire ends the credentials from before, which a new cluster may have as well if it was removed in a hurry.
func (j *joining) retire(ctx context.Context, token physical.Token, earlier []string) error {
	if j.existing == nil {
		return j.below.Retire(ctx, earlier)
	}
	j.logical.awaitTakenUp(ctx, j.Name, token)
	if err := j.below.Retire(ctx, earlier); err != nil {
		return err
	}
	j.progress.done("Ended the credentials from before")
	return nil
}

// cluster is the Cluster object to store.
func (j *joining) cluster() *manifoldv1alpha1.Cluster {
	return &manifoldv1alpha1.Cluster{
		ObjectMeta: metav1.ObjectMeta{Name: j.Name, Labels: j.Labels},
		Spec: manifoldv1alpha1.ClusterSpec{
			Connection: manifoldv1alpha1.ClusterConnection{SecretRef: &manifoldv1alpha1.SecretReference{
				Namespace: manifoldv1alpha1.SystemNamespace, Name: credentialName(j.Name),
			}},
			Allows:  j.allowed.Said(),
			Network: j.Network, PodCIDRs: j.PodCIDRs,
		},
		Status: manifoldv1alpha1.ClusterStatus{UID: string(j.below.UID)},
	}
}

// takenBack undoes what was made and adds to err what became of that.
func takenBack(ctx context.Context, err error, undo physical.Undo) error {
	if len(undo) == 0 {
		return err
	}
	if left := undo.Run(ctx); left != nil {
		return fmt.Errorf("%w\nwhat was made has been taken back, except:\n%w", err, left)
	}
	return fmt.Errorf("%w\nwhat was made has been taken back", err)
}
