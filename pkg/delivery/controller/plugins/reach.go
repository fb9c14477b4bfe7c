package plugins

import (
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/delivery/plugins"
	"github.com/manifold-dev/manifold/pkg/delivery/plugins/targets"
)

// tokenPatience is how long the logical cluster has to give a token.
const tokenPatience = 10 * time.Second

// given is what a plugin reaches one cluster by.
type given struct {
	targets.Target
	// account and cluster are those that it is for, and accountUID tells an account from a later one of its name, which the token is not good for.
	account    v1alpha1.PluginServiceAccountRef
	accountUID types.UID
	cluster    string
}

// reached is what a plugin reaches of the deploy targets that are meant.
type reached struct {
	targets []plugins.Target
	// files are for the folder of the plugin.
	files map[string]string
	// renew is when the next of the files is to be made anew, zero if none is. What could not be is tried again because of err.
	renew time.Time
	// selects is whether there may be clusters among the targets, and clusters how many there are.
	selects  bool
	clusters int
	missing  []trouble
	failed   []trouble
	// err is for whoever is to try again.
	err error
}

// trouble is why something does not go as the Plugin says.
type trouble struct{ field, what string }

func (t trouble) String() string { return t.field + ": " + t.what }

// reach gives a plugin what it reaches its deploy targets by. What it has stays until it is to be renewed, and longer if that fails: without it, a target would go and the
// process be started anew. What is for targets that are meant no more is forgotten.
func (c *Controller) reach(ctx context.Context, plugin *v1alpha1.Plugin, all []meant) (out reached) {
	before, next := c.has(plugin.Name), map[string]given{}
	accounts := c.accountsOf(plugin, &out)
	folder := c.Host.Folder(plugin.Name)
	for _, target := range all {
		if target.cluster == nil {
			out.targets = append(out.targets, target.Target)
			continue
		}
		uid, exists := accounts[target.account]
		if !exists {
			continue
		}
		is := given{account: target.account, accountUID: uid, cluster: target.cluster.Name}
		was, had := before[target.Name]
		if had = had && was.account == is.account && was.accountUID == is.accountUID; had {
			is.Target = was.Target
		}
		if !had || !c.Clock.Now().Before(is.Renew) {
			made, err := c.ask(ctx, is)
			switch {
			case err == nil:
				is.Target = made
			case apierrors.IsNotFound(err): // it has gone meanwhile, which is told of
				out.missing = append(out.missing, trouble{target.field, missing(target.account)})
				continue
			default:
				out.err = err
				if !had {
					out.failed = append(out.failed, trouble{target.field, err.Error()})
					continue
				}
				out.failed = append(out.failed, trouble{target.field, fmt.Sprintf("%v; the token that it has is good until %s", err, is.Expires.UTC().Format(time.RFC3339))})
			}
		}
		config, err := reachedBy(target.Config, filepath.Join(folder, targets.KubeconfigFile(is.cluster)), is.account.Namespace)
		if err != nil {
			out.failed = append(out.failed, trouble{target.field + ".config", err.Error()})
			continue
		}
		target.Config = config
		out.add(target.Target, is, c.Clock.Now())
		next[target.Name] = is
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(next) > 0 {
		c.given[plugin.Name] = next
	} else {
		delete(c.given, plugin.Name)
	}
	return out
}

// add adds a cluster.
func (r *reached) add(target plugins.Target, is given, now time.Time) {
	r.targets = append(r.targets, target)
	r.clusters++
	if r.files == nil {
		r.files = map[string]string{}
	}
	maps.Copy(r.files, is.Files)
	if is.Renew.After(now) && (r.renew.IsZero() || is.Renew.Before(r.renew)) {
		r.renew = is.Renew
	}
}

// accountsOf are the accounts by whose rights a plugin works in clusters, by their UIDs. Those that do not exist are told of, also where no cluster is selected.
func (c *Controller) accountsOf(plugin *v1alpha1.Plugin, out *reached) map[v1alpha1.PluginServiceAccountRef]types.UID {
	exist := map[v1alpha1.PluginServiceAccountRef]types.UID{}
	for i, of := range plugin.Spec.DeployTargets {
		if of.ClusterSelector == nil {
			continue
		}
		out.selects = true
		account, err := c.accounts.ServiceAccounts(of.ServiceAccountRef.Namespace).Get(of.ServiceAccountRef.Name)
		if err != nil || account.DeletionTimestamp != nil { // a cache fails for no other reason
			out.missing = append(out.missing, trouble{fieldOf(i), missing(*of.ServiceAccountRef)})
			continue
		}
		exist[*of.ServiceAccountRef] = account.UID
	}
	return exist
}

func missing(account v1alpha1.PluginServiceAccountRef) string {
	return fmt.Sprintf("there is no ServiceAccount %s/%s, by whose rights the plugin is to work: make it, and the clusters become deploy targets", account.Namespace, account.Name)
}

// ask asks for a token, and writes the kubeconfig.
func (c *Controller) ask(ctx context.Context, of given) (targets.Target, error) {
	ctx, cancel := context.WithTimeout(ctx, tokenPatience)
	defer cancel()
	access := c.Access
	access.Cluster, access.Namespace, access.ServiceAccount = of.cluster, of.account.Namespace, of.account.Name
	return targets.Make(ctx, c.Tokens, access, c.Clock.Now())
}

func (c *Controller) has(plugin string) map[string]given {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.given[plugin]
}

// forget drops what a plugin had.
func (c *Controller) forget(plugin string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.given, plugin)
}

// show shows whether the clusters that are selected are deploy targets.
func (r *reached) show(on *shown) {
	switch {
	case !r.selects:
		on.without = append(on.without, v1alpha1.PluginTargetsReady)
	case len(r.missing) > 0:
		on.condition(v1alpha1.PluginTargetsReady, false, v1alpha1.PluginReasonAccountMissing, said(slices.Concat(r.missing, r.failed)))
	case len(r.failed) > 0:
		on.condition(v1alpha1.PluginTargetsReady, false, v1alpha1.PluginReasonTokenFailed, said(r.failed))
	case r.clusters == 0:
		on.condition(v1alpha1.PluginTargetsReady, true, v1alpha1.PluginReasonComplete, "no cluster that has joined is selected")
	default:
		on.condition(v1alpha1.PluginTargetsReady, true, v1alpha1.PluginReasonComplete, fmt.Sprintf("clusters that are deploy targets: %d", r.clusters))
	}
}

// said tells of troubles, each once.
func said(all []trouble) string {
	var out []string
	for _, of := range all {
		if line := of.String(); !slices.Contains(out, line) {
			out = append(out, line)
		}
	}
	return strings.Join(out, "; ")
}
