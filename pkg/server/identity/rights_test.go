package identity

import (
	"slices"
	"strings"
	"testing"

	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/component-base/metrics/testutil"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	_ "k8s.io/kubernetes/pkg/controlplane" // installs all groups

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/projection"
	"github.com/manifold-dev/manifold/pkg/summary"
)

// allowed reports whether a controller may do something.
func allowed(t *testing.T, name, verb, group, resource, namespace, object string) bool {
	t.Helper()
	resource, subresource, _ := strings.Cut(resource, "/")
	got, _, err := controllersOf("shops").Authorize(t.Context(), authorizer.AttributesRecord{
		User: &user.DefaultInfo{Name: name}, Verb: verb, APIGroup: group, Resource: resource, Subresource: subresource,
		Namespace: namespace, Name: object, ResourceRequest: true,
	})
	if err != nil || got == authorizer.DecisionDeny {
		t.Errorf("%s may %s %s of %q: %v, %v; want it allowed or left to others", name, verb, resource, group, got, err)
	}
	return got == authorizer.DecisionAllow
}

// wantRights is what each controller may do, everywhere or in one namespace, by verbs and resources. Whoever gives one a right writes it here, too.
var wantRights = map[string][]string{
	v1alpha1.AppDeploymentsUser: {
		"get,patch applicationdeployments.core.oam.dev", "update applicationdeployments/status.core.oam.dev",
		"get,patch appdeployments.core.oam.dev", "update appdeployments/status.core.oam.dev",
		"create,delete,get,patch configmaps in shop", "create,delete,get,patch secrets in shop", "create,delete,get,patch services in shop",
		"create,delete,get,patch deployments.apps in shop", "create,delete,get,patch statefulsets.apps in shop",
		"create,delete,get,patch ingresses.networking.k8s.io in shop",
		"create,delete,get,patch virtualservices.networking.istio.io in shop", "create,delete,get,patch gateways.networking.istio.io in shop",
		"create,delete,update placementpolicies.manifold.dev in shop",
	},
	v1alpha1.BootstrapUser: {
		"create,get,update configmaps in kube-public",
		"create,get namespaces",
		"create,delete,get apiservices.apiregistration.k8s.io",
		"create,get,update flowschemas.flowcontrol.apiserver.k8s.io",
		"create,get prioritylevelconfigurations.flowcontrol.apiserver.k8s.io",
		"create,get clusterplacementpolicies.manifold.dev",
		"create,get clusterrolebindings.rbac.authorization.k8s.io",
		"create,escalate,get clusterroles.rbac.authorization.k8s.io",
		"create,get rolebindings.rbac.authorization.k8s.io in kube-public",
		"create,escalate,get roles.rbac.authorization.k8s.io in kube-public",
	},
	v1alpha1.ClustersUser: {
		"create,delete,update nodes", "update nodes/status",
		"get,list,update,watch secrets in manifold-system",
		"create,get,list,update leases.coordination.k8s.io in manifold-system",
		"list clusters.manifold.dev", "update clusters/status.manifold.dev",
	},
	v1alpha1.CustomUser: {
		"get,list,patch,update,watch widgets.example.com", "update widgets/status.example.com",
		"get,list,patch,update,watch gateways.gateway.networking.k8s.io", "update gateways/status.gateway.networking.k8s.io",
		"get,list,patch,update,watch httproutes.gateway.networking.k8s.io", "get,list,patch,update,watch virtualservices.networking.istio.io",
		"get,list,patch,update,watch destinationrules.networking.istio.io", "get,list,patch,update,watch gateways.networking.istio.io",
		"get,list,patch,update,watch appdeployments.core.oam.dev", "update appdeployments/status.core.oam.dev",
		"get,list,patch,update,watch applicationdeployments.core.oam.dev", "update applicationdeployments/status.core.oam.dev",
		"get,list,patch,update,watch applications.core.oam.dev",
		"get,list,patch,update,watch gitopsclusters.gitops.weave.works", "update gitopsclusters/status.gitops.weave.works",
		"get,list,patch,update,watch pipelines.pipelines.weave.works", "update pipelines/status.pipelines.weave.works",
		"get,list,patch,update,watch pipelines.pipelines.wego.weave.works", "update pipelines/status.pipelines.wego.weave.works",
		"get,list,patch,update,watch serviceexports.multicluster.x-k8s.io", "update serviceexports/status.multicluster.x-k8s.io",
		"get,list,patch,update,watch serviceimports.multicluster.x-k8s.io", "update serviceimports/status.multicluster.x-k8s.io",
		"get,list,patch,update,watch helmreleases.helm.toolkit.fluxcd.io", "update helmreleases/status.helm.toolkit.fluxcd.io",
		"get,list,patch,update,watch kustomizations.kustomize.toolkit.fluxcd.io", "update kustomizations/status.kustomize.toolkit.fluxcd.io",
	},
	v1alpha1.DeliveryUser: {
		"get,list,patch,update,watch applications.delivery.manifold.dev", "patch,update applications/status.delivery.manifold.dev",
		"create,delete,get,list,patch,update,watch applicationrevisions.delivery.manifold.dev",
		"create,delete,get,list,patch,update,watch releases.delivery.manifold.dev", "patch,update releases/status.delivery.manifold.dev",
		"list,watch httproutes.gateway.networking.k8s.io", "list,watch virtualservices.networking.istio.io",
		"create,delete,get,list,patch,update configmaps in shop",
		"create,delete,get,list,patch,update persistentvolumeclaims in shop",
		"create,delete,get,list,patch,update pods in shop",
		"create,delete,get,list,patch,update replicationcontrollers in shop",
		"create,delete,get,list,patch,update secrets in shop",
		"create,delete,get,list,patch,update services in shop",
		"create,delete,get,list,patch,update daemonsets.apps in shop",
		"create,delete,get,list,patch,update deployments.apps in shop",
		"create,delete,get,list,patch,update replicasets.apps in shop",
		"create,delete,get,list,patch,update statefulsets.apps in shop",
		"create,delete,get,list,patch,update cronjobs.batch in shop",
		"create,delete,get,list,patch,update jobs.batch in shop",
		"create,delete,get,list,patch,update ingresses.networking.k8s.io in shop",
		"create,delete,get,list,patch,update networkpolicies.networking.k8s.io in shop",
		"create,delete,get,list,patch,update poddisruptionbudgets.policy in shop",
		"create,delete,get,list,patch,update placementpolicies.manifold.dev in shop",
		"create,delete,get,list,patch,update horizontalpodautoscalers.autoscaling in shop",
		"create,delete,get,patch,update httproutes.gateway.networking.k8s.io in shop",
		"get,patch virtualservices.networking.istio.io in shop",
		"create,delete,get,impersonate,list,patch,update serviceaccounts in shop",
	},
	v1alpha1.DrainUser:          {"update clusters/status.manifold.dev"},
	v1alpha1.EventsUser:         {"create,patch,update events"},
	v1alpha1.GitopsClustersUser: {"get gitopsclusters.gitops.weave.works", "update gitopsclusters/status.gitops.weave.works"},
	v1alpha1.InformersUser: {
		"list,watch clusterplacementpolicies.manifold.dev", "list,watch clusters.manifold.dev", "list,watch placementpolicies.manifold.dev",
		"list,watch applicationrevisions.delivery.manifold.dev", "list,watch applications.delivery.manifold.dev", "list,watch releases.delivery.manifold.dev",
		"list,watch plugins.delivery.manifold.dev",
	},
	v1alpha1.MultiClusterUser: {
		"get,patch serviceexports.multicluster.x-k8s.io", "update serviceexports/status.multicluster.x-k8s.io",
		"create,delete,get,update serviceimports.multicluster.x-k8s.io in shop", "update serviceimports/status.multicluster.x-k8s.io in shop",
		"create,delete,update endpointslices.discovery.k8s.io in shop", "patch services in shop",
	},
	v1alpha1.PipelinesUser: {
		"get pipelines.pipelines.weave.works", "patch pipelines/status.pipelines.weave.works",
		"get pipelines.pipelines.wego.weave.works", "patch pipelines/status.pipelines.wego.weave.works",
		"get helmreleases.helm.toolkit.fluxcd.io", "get kustomizations.kustomize.toolkit.fluxcd.io",
	},
	v1alpha1.PlacementUser: {
		"patch persistentvolumeclaims", "patch pods", "update pods/status", "patch replicationcontrollers",
		"patch daemonsets.apps", "patch deployments.apps", "patch replicasets.apps", "patch statefulsets.apps",
		"patch jobs.batch",
		"update clusterplacementpolicies/status.manifold.dev", "update placementpolicies/status.manifold.dev",
	},
	v1alpha1.PluginsUser:        {"get plugins.delivery.manifold.dev", "patch,update plugins/status.delivery.manifold.dev", "create serviceaccounts/token in shop"},
	v1alpha1.PluginServicesUser: {"create,get,update pluginrecords.delivery.manifold.dev"},
	v1alpha1.PromotionsUser: {
		"get pipelines.pipelines.weave.works", "patch pipelines/status.pipelines.weave.works",
		"get pipelines.pipelines.wego.weave.works", "patch pipelines/status.pipelines.wego.weave.works",
		"create events", "impersonate serviceaccounts in shop",
	},
	v1alpha1.QuotaUser: {"update resourcequotas/status"},
	v1alpha1.RemovalUser: {
		"delete,patch persistentvolumeclaims", "delete pods",
		"patch clusters.manifold.dev", "update clusters/status.manifold.dev",
	},
	v1alpha1.SummaryUser: {
		"patch persistentvolumeclaims", "update persistentvolumeclaims/status", "delete pods",
		"patch replicationcontrollers", "update replicationcontrollers/status", "update services/status",
		"create,delete,update controllerrevisions.apps",
		"patch daemonsets.apps", "update daemonsets/status.apps", "patch deployments.apps", "update deployments/status.apps",
		"create,delete,patch,update replicasets.apps", "update replicasets/status.apps",
		"patch statefulsets.apps", "update statefulsets/status.apps",
		"patch jobs.batch", "update jobs/status.batch",
		"update ingresses/status.networking.k8s.io",
	},
	v1alpha1.AsksUser: {
		"get pipelines.pipelines.weave.works", "patch pipelines/status.pipelines.weave.works",
		"get pipelines.pipelines.wego.weave.works", "patch pipelines/status.pipelines.wego.weave.works",
	},
	v1alpha1.VersionsUser: {
		"list helmreleases.helm.toolkit.fluxcd.io", "list kustomizations.kustomize.toolkit.fluxcd.io",
		"list pipelines.pipelines.weave.works", "list pipelines.pipelines.wego.weave.works",
	},
	v1alpha1.VolumesUser: {"delete,update persistentvolumes", "update persistentvolumes/status"},
}

// asked are the resources of which every controller is asked what it may do.
var asked = map[string][]string{
	"": {
		"configmaps", "endpoints", "events", "limitranges", "namespaces", "namespaces/finalize", "nodes", "nodes/proxy", "nodes/status",
		"persistentvolumeclaims", "persistentvolumeclaims/status", "persistentvolumes", "persistentvolumes/status", "pods", "pods/eviction",
		"pods/exec", "pods/binding", "pods/status", "replicationcontrollers", "replicationcontrollers/scale", "replicationcontrollers/status",
		"resourcequotas", "resourcequotas/status", "secrets", "serviceaccounts", "serviceaccounts/token", "services", "services/proxy", "services/status",
		"users", "groups",
	},
	"admissionregistration.k8s.io": {"mutatingwebhookconfigurations", "validatingwebhookconfigurations", "validatingadmissionpolicies"},
	"apiextensions.k8s.io":         {"customresourcedefinitions", "customresourcedefinitions/status"},
	"apiregistration.k8s.io":       {"apiservices", "apiservices/status"},
	"apps": {
		"controllerrevisions", "daemonsets", "daemonsets/status", "deployments", "deployments/scale", "deployments/status",
		"replicasets", "replicasets/scale", "replicasets/status", "statefulsets", "statefulsets/scale", "statefulsets/status",
	},
	"authentication.k8s.io": {"serviceaccounts", "uids", "userextras", "users", "groups"},
	"autoscaling":           {"horizontalpodautoscalers"},
	"batch":                 {"cronjobs", "cronjobs/status", "jobs", "jobs/status"},
	"certificates.k8s.io":   {"certificatesigningrequests", "certificatesigningrequests/approval"},
	"coordination.k8s.io":   {"leases"},
	"core.oam.dev":          {"appdeployments", "appdeployments/status", "applicationdeployments", "applicationdeployments/status", "applications"},
	"delivery.manifold.dev": {
		"applicationrevisions", "applications", "applications/preview", "applications/status", "pipelines/pause", "pipelines/promote", "pipelines/resume", "pluginrecords",
		"plugins", "plugins/status",
		"releases", "releases/approve", "releases/cancel", "releases/status", "workloadversions",
	},
	"discovery.k8s.io":             {"endpointslices"},
	"events.k8s.io":                {"events"},
	"example.com":                  {"widgets", "widgets/status", "widgets/scale"},
	"flowcontrol.apiserver.k8s.io": {"flowschemas", "flowschemas/status", "prioritylevelconfigurations"},
	"gateway.networking.k8s.io":    {"gateways", "gateways/status", "httproutes"},
	"gitops.weave.works":           {"gitopsclusters", "gitopsclusters/status"},
	"helm.toolkit.fluxcd.io":       {"helmreleases", "helmreleases/status"},
	"kustomize.toolkit.fluxcd.io":  {"kustomizations", "kustomizations/status"},
	"pipelines.weave.works":        {"pipelines", "pipelines/status"},
	"pipelines.wego.weave.works":   {"pipelines", "pipelines/status"},
	"manifold.dev": {
		"clusterplacementpolicies", "clusterplacementpolicies/status", "clusters", "clusters/status", "placementpolicies", "placementpolicies/status",
	},
	"metrics.k8s.io":            {"pods"},
	"multicluster.x-k8s.io":     {"serviceexports", "serviceexports/status", "serviceimports", "serviceimports/status"},
	"networking.k8s.io":         {"ingresses", "ingresses/status", "networkpolicies", "servicecidrs"},
	"networking.istio.io":       {"destinationrules", "gateways", "virtualservices"},
	"policy":                    {"poddisruptionbudgets", "poddisruptionbudgets/status"},
	"rbac.authorization.k8s.io": {"clusterrolebindings", "clusterroles", "rolebindings", "roles"},
	"storage.k8s.io":            {"storageclasses", "volumeattachments"},
}

func TestControllersHaveTheRightsThatAreListedAndNoOthers(t *testing.T) {
	verbs := []string{"bind", "create", "delete", "deletecollection", "escalate", "get", "impersonate", "list", "override", "patch", "update", "watch"}
	for _, name := range Controllers() {
		var got []string
		for group, resources := range asked {
			for _, resource := range resources {
				of := strings.TrimSuffix(resource+"."+group, ".")
				anywhere := map[string]bool{}
				for _, namespace := range []string{"", "shop", "kube-system", v1alpha1.SystemNamespace, "kube-public"} {
					var may []string
					for _, verb := range verbs {
						if allowed(t, name, verb, group, resource, namespace, "web") && !anywhere[verb] {
							may = append(may, verb)
							anywhere[verb] = namespace == ""
						}
					}
					switch {
					case len(may) == 0:
					case namespace == "":
						got = append(got, strings.Join(may, ",")+" "+of)
					default:
						got = append(got, strings.Join(may, ",")+" "+of+" in "+namespace)
					}
				}
			}
		}
		want := slices.Sorted(slices.Values(wantRights[name]))
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Errorf("%s may\n%s\nwant\n%s", name, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
	for name := range wantRights {
		if _, ok := controllers[name]; !ok {
			t.Errorf("there is no %s", name)
		}
	}
}

// What bootstrap makes gives others rights, which must be those alone.
func TestBootstrapBindsWhatItIsToBind(t *testing.T) {
	for role, want := range map[string]bool{"cluster-admin": true, "admin": false, "system:controller:namespace-controller": false, "": false} {
		if got := allowed(t, v1alpha1.BootstrapUser, "bind", "rbac.authorization.k8s.io", "clusterroles", "", role); got != want {
			t.Errorf("it may bind ClusterRole %q: %t, want %t", role, got, want)
		}
	}
	for role, want := range map[string]bool{"manifold:settings": true, "another": false} {
		if got := allowed(t, v1alpha1.BootstrapUser, "bind", "rbac.authorization.k8s.io", "roles", "kube-public", role); got != want {
			t.Errorf("it may bind Role %q: %t, want %t", role, got, want)
		}
	}
}

// Everything that Kubernetes serves itself is none of the controller's of custom resources.
func TestBuiltInKindsAreNoCustomResources(t *testing.T) {
	for _, version := range legacyscheme.Scheme.PrioritizedVersionsAllGroups() {
		if allowed(t, v1alpha1.CustomUser, "get", version.Group, "secrets", "shop", "web") {
			t.Errorf("group %s is taken for one of custom resources", version.Group)
		}
	}
}

func TestRequestsWithoutARightAreCounted(t *testing.T) {
	before := refused(t)
	allowed(t, v1alpha1.DrainUser, "delete", "", "pods", "shop", "web")
	allowed(t, "jane", "delete", "", "pods", "shop", "web")
	if got := refused(t) - before; got != 1 {
		t.Errorf("counted %v, want the one of a controller", got)
	}
}

func refused(t *testing.T) float64 {
	t.Helper()
	count, err := testutil.GetCounterMetricValue(refusals.WithLabelValues("shops", v1alpha1.DrainUser, "delete", "", "pods", ""))
	if err != nil {
		t.Fatal(err)
	}
	return count
}

func TestNoControllerIsPrivileged(t *testing.T) {
	ids, _ := newIdentities(t)
	for _, name := range Controllers() {
		response, ok, err := ids.AuthenticateToken(t.Context(), ids.As(name).BearerToken)
		if err != nil || !ok {
			t.Fatalf("%s is not known: %v", name, err)
		}
		if got, want := response.User.GetGroups(), []string{user.AllAuthenticated, v1alpha1.ControllersGroup}; !slices.Equal(got, want) {
			t.Errorf("%s is in %v, want %v", name, got, want)
		}
	}
}

// A kind that comes to be summarised, or placed, needs a right.
func TestControllersMayWriteEveryKind(t *testing.T) {
	for _, kind := range summary.Kinds() {
		if r := kind.Resource; !allowed(t, v1alpha1.SummaryUser, "update", r.Group, r.Resource+"/status", "shop", "web") {
			t.Errorf("the statuses of %s cannot be written", r.Resource)
		}
		if r := kind.Resource; kind.Breakdown && !allowed(t, v1alpha1.SummaryUser, "patch", r.Group, r.Resource, "shop", "web") {
			t.Errorf("%s cannot be let go", r.Resource)
		}
	}
	for _, kind := range projection.Workloads() {
		if r := kind.Resource; !allowed(t, v1alpha1.PlacementUser, "patch", r.Group, r.Resource, "shop", "web") {
			t.Errorf("no decision can be written on %s", r.Resource)
		}
	}
}
