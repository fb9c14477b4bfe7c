// Package rights is the table of what Manifold may do in a cluster, and asks clusters what of it they grant.
package rights

import (
	"slices"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/projection"
)

// Right is one row of a table of rights: verbs on resources of one API group, or on paths that are not resources.
type Right struct {
	// Why says what the right is for.
	Why string
	// Group is the API group of Resources.
	Group string
	// Resources are plural names, a subresource after a slash.
	Resources []string
	// Paths are URL paths that are not resources. A row has either Resources or Paths.
	Paths []string
	// Verbs are what is allowed.
	Verbs []string
	// Namespace bounds the row to one namespace. Empty means all of them.
	Namespace string
	// Names bounds the row to objects of these names. None means all of them.
	Names []string
}

// Renewal returns the right to renew the token of the ServiceAccount of that name, which is Manifold's own. It is granted in the system namespace
// alone.
func Renewal(account string) []Right {
	return []Right{{
		Why: "renewing its own token", Resources: []string{"serviceaccounts/token"}, Verbs: []string{"create"},
		Namespace: v1alpha1.SystemNamespace, Names: []string{account},
	}}
}

// Volumes returns the rights that PersistentVolumes take which go along with their claims. They are granted where a cluster's admin allows that.
func Volumes() []Right {
	return []Right{{
		Why: "PersistentVolumes that are made in the logical cluster", Resources: []string{"persistentvolumes"},
		Verbs: []string{"get", "list", "watch", "create", "patch", "delete"},
	}}
}

// Pipelines returns the rights by which pipelines show what their targets run in a cluster beside what Manifold has put there. They are granted where a
// cluster's admin allows that.
func Pipelines() []Right {
	const why = "showing in pipelines what their targets run"
	read := []string{"get", "list", "watch"}
	return []Right{
		{Why: why, Group: "helm.toolkit.fluxcd.io", Resources: []string{"helmreleases"}, Verbs: read},
		{Why: why, Group: "kustomize.toolkit.fluxcd.io", Resources: []string{"kustomizations"}, Verbs: read},
		{Why: why, Group: "apps", Resources: []string{"daemonsets", "deployments", "statefulsets"}, Verbs: read},
		{Why: why, Group: "batch", Resources: []string{"cronjobs"}, Verbs: read},
	}
}

// own are the verbs on what Manifold makes in a cluster.
var own = []string{"get", "list", "watch", "create", "update", "patch", "delete"}

// Workloads returns the rights that workloads take, by group.
func Workloads() (out []Right) {
	for _, group := range projection.WorkloadGroups() {
		out = append(out, Right{Why: group.Right, Group: group.Name, Resources: group.Resources, Verbs: own})
	}
	return out
}

// dependents returns the rights that all else takes that goes to clusters.
func dependents() (out []Right) {
	for _, group := range projection.DependentGroups() {
		right := Right{Why: group.Right, Group: group.Name, Resources: group.Resources, Verbs: own}
		if group.Name == "" && slices.Contains(group.Resources, "secrets") {
			// What is there is read by another role, which is granted where it is ours; see Secrets.
			right.Verbs = []string{"create", "patch", "delete"}
		}
		out = append(out, right)
	}
	return out
}

// Syncer returns everything that Manifold's credential may do in a cluster. The ClusterRole that joining makes, the check
// before joining and the reference of names are all read from this table. Writing in namespaces of the system, which a ClusterRole
// cannot leave out, is denied by the admission policy beside it.
func Syncer() []Right {
	read := []string{"get", "list", "watch"}
	proxied := []string{"get", "create", "update", "patch", "delete"}
	return slices.Concat(dependents(), Workloads(), []Right{
		{Why: "mirrored ControllerRevisions", Group: "apps", Resources: []string{"controllerrevisions"}, Verbs: read},
		{Why: "what Ingresses name", Group: "networking.k8s.io", Resources: []string{"ingressclasses"}, Verbs: read},
		{Why: "what pods name", Group: "scheduling.k8s.io", Resources: []string{"priorityclasses"}, Verbs: read},
		{Why: "what pods name", Group: "node.k8s.io", Resources: []string{"runtimeclasses"}, Verbs: read},
		{Why: "what volume claims name", Group: "storage.k8s.io", Resources: []string{"storageclasses"}, Verbs: read},
		{Why: "evicting a mirrored pod", Resources: []string{"pods/eviction"}, Verbs: []string{"create"}},
		{Why: "kubectl logs", Resources: []string{"pods/log"}, Verbs: []string{"get"}},
		{
			Why: "kubectl exec, attach, cp and port-forward, webhooks and APIServices that name a Service", Resources: []string{"pods/attach", "pods/exec", "pods/portforward"},
			Verbs: []string{"get", "create"},
		},
		{Why: "kubectl debug", Resources: []string{"pods/ephemeralcontainers"}, Verbs: []string{"get", "update", "patch"}},
		{
			Why: "resizing a mirrored pod, and what controllers above say of its status", Resources: []string{"pods/resize", "pods/status"},
			Verbs: []string{"patch"},
		},
		{Why: "the API server's proxy to pods and services", Resources: []string{"pods/proxy", "services/proxy"}, Verbs: proxied},
		{
			Why: "when served kinds change", Group: "apiextensions.k8s.io", Resources: []string{"customresourcedefinitions"}, Verbs: read,
		},
		{Why: "events shown upstream", Resources: []string{"events"}, Verbs: read},
		{Why: "capacity, zones and regions", Resources: []string{"nodes"}, Verbs: read},
		{
			Why: "whether a pod that calls the logical cluster is who its token says", Group: "authentication.k8s.io", Resources: []string{"tokenreviews"},
			Verbs: []string{"create"},
		},
		{Why: "kubectl top and autoscaling", Group: "metrics.k8s.io", Resources: []string{"nodes", "pods"}, Verbs: []string{"get", "list"}},
		{
			Why:   "health, version and served kinds",
			Paths: []string{"/api", "/api/*", "/apis", "/apis/*", "/livez", "/readyz", "/version"}, Verbs: []string{"get"},
		},
	})
}
