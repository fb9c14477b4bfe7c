package identity

import (
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	"k8s.io/kubernetes/plugin/pkg/auth/authorizer/rbac"

	delivery "github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/delivery/weave"
	"github.com/manifold-dev/manifold/pkg/delivery/weave/versions"
	"github.com/manifold-dev/manifold/pkg/projection"
	"github.com/manifold-dev/manifold/pkg/summary"
)

// controller is what one of our controllers may do. None has more than its own work needs: nothing that a cluster could bring it to do reaches
// what it was not made for.
type controller struct {
	// anywhere are rules for all namespaces and for what is in none, and in those for one namespace.
	anywhere []rbacv1.PolicyRule
	in       map[string][]rbacv1.PolicyRule
	// also reports whether it may do what no rule can say. Optional.
	also func(authorizer.Attributes) bool
	// stored tells that what it writes of workloads, pods and claims is a decision, a summary or a mirror, and is stored as it comes.
	stored bool
}

var controllers = map[string]controller{
	v1alpha1.AppDeploymentsUser: {also: deploysRevisions, anywhere: []rbacv1.PolicyRule{
		may("get,patch", "core.oam.dev", "applicationdeployments", "appdeployments"), // our finalizer
		may("update", "core.oam.dev", "applicationdeployments/status", "appdeployments/status"),
	}},
	v1alpha1.AsksUser: {anywhere: []rbacv1.PolicyRule{
		may("get", weave.Group, weave.Resource),
		may("patch", weave.Group, weave.Resource+"/status"), // what people have asked for
		may("get", weave.OlderGroup, weave.Resource),
		may("patch", weave.OlderGroup, weave.Resource+"/status"),
	}},
	v1alpha1.BootstrapUser: {
		anywhere: []rbacv1.PolicyRule{
			may("get,create", corev1.GroupName, "namespaces"),
			may("get,create", rbacv1.GroupName, "clusterroles", "clusterrolebindings"),
			// It has none of the rights that it gives: those of the roles for policies and metrics, and the administrator's.
			may("escalate", rbacv1.GroupName, "clusterroles"),
			named(may("bind", rbacv1.GroupName, "clusterroles"), "cluster-admin", delivery.VersionsRole),
			may("get,create", flowcontrolv1.GroupName, "prioritylevelconfigurations", "flowschemas"),
			may("update", flowcontrolv1.GroupName, "flowschemas"),
			may("get,create", v1alpha1.GroupName, "clusterplacementpolicies"),
			may("get,create,delete", apiregistrationv1.GroupName, "apiservices"),
		},
		in: map[string][]rbacv1.PolicyRule{metav1.NamespacePublic: {
			may("get,create,update", corev1.GroupName, "configmaps"),
			may("get,create", rbacv1.GroupName, "roles", "rolebindings"),
			may("escalate", rbacv1.GroupName, "roles"),
			named(may("bind", rbacv1.GroupName, "roles"), "manifold:settings"),
		}},
	},
	v1alpha1.ClustersUser: {
		anywhere: []rbacv1.PolicyRule{
			may("list", v1alpha1.GroupName, "clusters"),
			may("update", v1alpha1.GroupName, "clusters/status"),
			may("create,update,delete", corev1.GroupName, "nodes"),
			may("update", corev1.GroupName, "nodes/status"),
		},
		in: map[string][]rbacv1.PolicyRule{v1alpha1.SystemNamespace: {
			may("get,list,watch,update", corev1.GroupName, "secrets"), // credentials of clusters, and their next tokens
			may("get,list,create,update", coordinationv1.GroupName, "leases"),
		}},
	},
	v1alpha1.CustomUser:   {also: notesOnCustomResources},
	v1alpha1.DeliveryUser: {anywhere: delivers(), also: deliversContents},
	v1alpha1.DrainUser: {anywhere: []rbacv1.PolicyRule{
		may("update", v1alpha1.GroupName, "clusters/status"),
	}},
	v1alpha1.EventsUser: {anywhere: []rbacv1.PolicyRule{
		may("create,update,patch", corev1.GroupName, "events"),
	}},
	v1alpha1.GitopsClustersUser: {anywhere: []rbacv1.PolicyRule{
		may("get", weave.GitopsClusters.Group, weave.GitopsClusters.Resource),
		may("update", weave.GitopsClusters.Group, weave.GitopsClusters.Resource+"/status"),
	}},
	v1alpha1.InformersUser: {anywhere: []rbacv1.PolicyRule{
		may("list,watch", v1alpha1.GroupName, "clusters", "placementpolicies", "clusterplacementpolicies"),
		may("list,watch", delivery.GroupName, "applications", "applicationrevisions", "releases", delivery.ResourcePlugins),
	}},
	v1alpha1.MultiClusterUser: {also: exportsServices, anywhere: []rbacv1.PolicyRule{
		may("get,patch", "multicluster.x-k8s.io", "serviceexports"), // our finalizer
		may("update", "multicluster.x-k8s.io", "serviceexports/status"),
	}},
	v1alpha1.PipelinesUser: {anywhere: []rbacv1.PolicyRule{
		may("get", weave.Group, weave.Resource),
		may("patch", weave.Group, weave.Resource+"/status"),
		may("get", weave.OlderGroup, weave.Resource),
		may("patch", weave.OlderGroup, weave.Resource+"/status"),
		may("get", versions.HelmRelease.Group, versions.Custom[versions.HelmRelease].Resource),
		may("get", versions.Kustomization.Group, versions.Custom[versions.Kustomization].Resource),
	}},
	v1alpha1.PlacementUser: {stored: true, anywhere: append(mayPatchWorkloads(),
		may("patch", corev1.GroupName, "persistentvolumeclaims"),
		may("update", corev1.GroupName, "pods/status"), // that no cluster can run them
		may("update", v1alpha1.GroupName, "placementpolicies/status", "clusterplacementpolicies/status"),
	)},
	v1alpha1.PluginsUser: {also: asksForTokens, anywhere: []rbacv1.PolicyRule{
		may("get", delivery.GroupName, delivery.ResourcePlugins),
		may("update,patch", delivery.GroupName, delivery.ResourcePlugins+"/status"),
	}},
	v1alpha1.PluginServicesUser: {anywhere: []rbacv1.PolicyRule{
		may("get,create,update", delivery.GroupName, "pluginrecords"),
	}},
	v1alpha1.PromotionsUser: {also: promotes, anywhere: []rbacv1.PolicyRule{
		may("get", weave.Group, weave.Resource),
		may("get", weave.OlderGroup, weave.Resource),
		may("patch", weave.Group, weave.Resource+"/status"),
		may("patch", weave.OlderGroup, weave.Resource+"/status"),
		may("create", corev1.GroupName, "events"), // on which others promote
	}},
	v1alpha1.QuotaUser: {anywhere: []rbacv1.PolicyRule{
		may("update", corev1.GroupName, "resourcequotas/status"),
	}},
	v1alpha1.RemovalUser: {stored: true, anywhere: []rbacv1.PolicyRule{
		may("patch", v1alpha1.GroupName, "clusters"), // it takes our finalizer off
		may("update", v1alpha1.GroupName, "clusters/status"),
		may("delete", corev1.GroupName, "pods"),
		may("patch,delete", corev1.GroupName, "persistentvolumeclaims"),
	}},
	v1alpha1.SummaryUser: {stored: true, anywhere: append(maySummarise(),
		may("create,update,delete", appsv1.GroupName, "replicasets", "controllerrevisions"),
		may("delete", corev1.GroupName, "pods"), // mirrors of what was lost
	)},
	v1alpha1.VersionsUser: {anywhere: []rbacv1.PolicyRule{
		may("list", "helm.toolkit.fluxcd.io", "helmreleases"),
		may("list", "kustomize.toolkit.fluxcd.io", "kustomizations"),
		may("list", weave.Group, weave.Resource),
		may("list", weave.OlderGroup, weave.Resource),
	}},
	v1alpha1.VolumesUser: {anywhere: []rbacv1.PolicyRule{
		may("update,delete", corev1.GroupName, "persistentvolumes"),
		may("update", corev1.GroupName, "persistentvolumes/status"),
	}},
}

// exports are the rules for what stands for an exported Service, and for the annotation that has it lead to all of its pods.
var exports = []rbacv1.PolicyRule{
	may("get,create,update,delete", "multicluster.x-k8s.io", "serviceimports"),
	may("update", "multicluster.x-k8s.io", "serviceimports/status"),
	may("create,update,delete", discoveryv1.GroupName, "endpointslices"),
	may("patch", corev1.GroupName, "services"),
}

// exportsServices allows to write exports in the namespaces that go to clusters.
func exportsServices(a authorizer.Attributes) bool {
	if _, refused := projection.NamespaceRefusal(a.GetNamespace()); refused || a.GetNamespace() == "" {
		return false
	}
	return rbac.RulesAllow(a, exports...)
}

// mayPatchWorkloads allows to note a decision on what is placed.
func mayPatchWorkloads() (out []rbacv1.PolicyRule) {
	for _, group := range projection.WorkloadGroups() {
		out = append(out, may("patch", group.Name, group.Resources...))
	}
	return out
}

// maySummarise allows to write the status of what is summarised, and to take our finalizer off what no cluster holds any more.
func maySummarise() (out []rbacv1.PolicyRule) {
	for _, kind := range summary.Kinds() {
		out = append(out, may("update", kind.Resource.Group, kind.Resource.Resource+"/status"))
		if kind.Breakdown {
			out = append(out, may("patch", kind.Resource.Group, kind.Resource.Resource))
		}
	}
	return out
}

// may is a rule of verbs that commas separate.
func may(verbs, group string, resources ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{Verbs: strings.Split(verbs, ","), APIGroups: []string{group}, Resources: resources}
}

// named is a rule for objects of some names alone.
func named(rule rbacv1.PolicyRule, names ...string) rbacv1.PolicyRule {
	rule.ResourceNames = names
	return rule
}

// allows reports whether the controller may do what is asked.
func (c controller) allows(a authorizer.Attributes) bool {
	return rbac.RulesAllow(a, c.anywhere...) || a.GetNamespace() != "" && rbac.RulesAllow(a, c.in[a.GetNamespace()]...) || c.also != nil && c.also(a)
}

// builtIn are the groups whose names look like those of custom resources.
var builtIn = sets.New(
	"metrics.k8s.io",
	"admission.k8s.io", "admissionregistration.k8s.io", "apiextensions.k8s.io", "apiregistration.k8s.io", "authentication.k8s.io",
	"authorization.k8s.io", "certificates.k8s.io", "coordination.k8s.io", "discovery.k8s.io", "events.k8s.io", "flowcontrol.apiserver.k8s.io",
	"imagepolicy.k8s.io", "internal.apiserver.k8s.io", "lifecycle.k8s.io", "networking.k8s.io", "node.k8s.io", "rbac.authorization.k8s.io",
	"resource.k8s.io", "scheduling.k8s.io", "storage.k8s.io", "storagemigration.k8s.io",
)

// notesOnCustomResources allows to read custom resources, and to note on them what was decided and what clusters report.
func notesOnCustomResources(a authorizer.Attributes) bool {
	group := a.GetAPIGroup()
	if !strings.Contains(group, ".") || builtIn.Has(group) || v1alpha1.IsOwnGroup(group) {
		return false
	}
	switch a.GetSubresource() {
	case "":
		return slices.Contains([]string{"get", "list", "watch", "patch", "update"}, a.GetVerb())
	case "status":
		return a.GetVerb() == "update"
	}
	return false
}
