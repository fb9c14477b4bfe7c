package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Names on objects of the logical cluster.
const (
	// AnnotationClusters is the user's pin, on a workload or its namespace: cluster names separated by commas, or "*" for all
	// that are schedulable. The workload's own wins over its namespace's.
	AnnotationClusters = "manifold.dev/clusters"
	// AnnotationVolumes is the user's word about volumes that cannot follow a workload to another cluster; see VolumesRecreate. Without it,
	// the workload stays where they are.
	AnnotationVolumes = "manifold.dev/volumes"
	// AnnotationSharedStorage marks, with the value "true", a StorageClass of the logical cluster of which a claim leads to the same data in
	// each cluster.
	AnnotationSharedStorage = "manifold.dev/shared-storage"
	// AnnotationAPI is the user's word, on a pod template or a pod, about which API the pods call; see APILogical. Without it, pods with
	// a token of a ServiceAccount that has been given rights call the logical cluster.
	AnnotationAPI = "manifold.dev/api"
	// AnnotationTraffic is the user's word, on a Service or its namespace, about which of its pods a cluster is led to; see Traffic. The
	// Service's own wins over its namespace's. It means something where clusters share a network.
	AnnotationTraffic = "manifold.dev/traffic"
	// AnnotationExportedBy is the user's word, on a ServiceExport, about who carries it out; see ExportedByClusters. Without it, Manifold does, unless the
	// export is pinned or placed.
	AnnotationExportedBy = "manifold.dev/exported-by"
	// AnnotationDrainSeconds is the user's word, on a Service, an Ingress, a Gateway or a placement policy, about how long the last replicas behind
	// an address stay in a cluster after the address has left the status; see DefaultDrain. The object's own wins over the policy's.
	AnnotationDrainSeconds = "manifold.dev/drain-seconds"
	// AnnotationPlacement is the decision, JSON by cluster. Manifold alone writes it.
	AnnotationPlacement = "manifold.dev/placement"
	// AnnotationAwaits is carried by an object that an Application selects, and of which some cluster has nothing before a release of that Application
	// comes to it: the name of the Application. A cluster whose share of AnnotationPlacement names no revision, or that has none, is one of those.
	// Manifold alone writes it.
	AnnotationAwaits = "manifold.dev/awaits"
	// AnnotationStatus is the compact breakdown of the status by cluster, JSON. Manifold alone writes it.
	AnnotationStatus = "manifold.dev/status"
	// AnnotationCluster is carried by what the logical cluster only shows, pods and events: it names the cluster where the original is.
	// Manifold alone writes it.
	AnnotationCluster = "manifold.dev/cluster"
	// AnnotationNode is carried by pods: it names the node that they run on in their cluster.
	AnnotationNode = "manifold.dev/node"
	// AnnotationPodUID is carried by a pod that a user made, once its cluster runs it: the UID that it has there. Manifold alone writes
	// it.
	AnnotationPodUID = "manifold.dev/pod-uid"
	// AnnotationPodCluster is carried beside it until the pod is scheduled, and then names its cluster as its node: it names the cluster that
	// has the pod. Manifold alone writes it.
	AnnotationPodCluster = "manifold.dev/pod-cluster"
	// AnnotationOrphan is carried by a workload that is deleted without what it owns, which goes on running. Manifold alone writes it.
	AnnotationOrphan = "manifold.dev/orphan"
	// AnnotationAuthors is carried by pipelines: who has named each of their targets, and has them use Secrets and ServiceAccounts, JSON. Manifold alone writes it.
	AnnotationAuthors = "manifold.dev/authors"
	// FinalizerProjection is held while any cluster holds a projection of the object.
	FinalizerProjection = "manifold.dev/projection"
	// AnnotationRemove is set on a Cluster that is deleted without moving off first what runs there; see RemoveForce and RemoveOrphan.
	AnnotationRemove = "manifold.dev/remove"
	// FinalizerCluster is held by a Cluster until nothing of ours is left there.
	FinalizerCluster = "manifold.dev/cluster"
	// SystemNamespace holds credentials and leases above, and the syncer's ServiceAccount below.
	SystemNamespace = "manifold-system"
)

// ProtectedNamespaces are the namespaces that exist in every cluster and belong to those who run it: nothing of the logical cluster goes there,
// and nothing there is shown in it. A name that only looks like theirs, such as kube-flannel, is anybody's.
func ProtectedNamespaces() []string {
	return []string{metav1.NamespaceSystem, metav1.NamespacePublic, corev1.NamespaceNodeLease, SystemNamespace}
}

// What the logical cluster publishes of the process that serves it, in the namespace kube-public, for everybody who has logged in.
const (
	// SettingsName is the name of the ConfigMap.
	SettingsName = "manifold"
	// SettingClusterToleration and SettingUnschedulableToleration are for how long workloads tolerate, if their policy does not say, that
	// their cluster is silent or cannot run their pods.
	SettingClusterToleration       = "cluster-toleration"
	SettingUnschedulableToleration = "unschedulable-toleration"
	// SettingAdvertiseURL is where pods in clusters find the logical cluster.
	SettingAdvertiseURL = "advertise-url"
)

// VolumesRecreate is the value of AnnotationVolumes that has a workload begin with new volumes where it goes. The old ones stay where they
// are.
const VolumesRecreate = "recreate"

// Values of AnnotationAPI.
const (
	// APILogical has pods call the logical cluster, as their ServiceAccount there.
	APILogical = "logical"
	// APICluster has them call the cluster that they run in, as on any cluster.
	APICluster = "cluster"
)

// Values of AnnotationRemove.
const (
	// RemoveForce gives up a cluster that is gone for good: what is there is not asked for any more.
	RemoveForce = "force"
	// RemoveOrphan leaves in place what runs there.
	RemoveOrphan = "orphan"
)

// Names on objects in a physical cluster. An object without LabelLogicalCluster is never touched.
const (
	// LabelLogicalCluster carries the identity of the logical cluster that owns the object: the UID of its kube-system namespace.
	LabelLogicalCluster = "manifold.dev/logical-cluster"
	// AnnotationNamespace is the namespace of the object upstream.
	AnnotationNamespace = "manifold.dev/namespace"
	// AnnotationName is the name of the object upstream.
	AnnotationName = "manifold.dev/name"
	// AnnotationUID is the UID of the object upstream.
	AnnotationUID = "manifold.dev/uid"
	// AnnotationProjection is the hash of the projection that was applied last; equal hashes need no write.
	AnnotationProjection = "manifold.dev/projection"
	// AnnotationTemplate is the hash of the upstream pod template that the object carries out. The Deployment controller below
	// copies it to the ReplicaSets it makes, which is how they are matched across clusters.
	AnnotationTemplate = "manifold.dev/template"
	// AnnotationAPIAuthority is carried by pods that call the logical cluster: its certificate authority in PEM, which they have as a file.
	AnnotationAPIAuthority = "manifold.dev/api-authority"
	// LabelPodWebhooks is carried by namespaces of ours for whose pods a webhook is registered above: PodWebhooksFail or PodWebhooksIgnore. The
	// cluster asks the logical one about pods that are made there.
	LabelPodWebhooks = "manifold.dev/pod-webhooks"
	// AnnotationAdmitted is carried by pods that webhooks of the logical cluster have changed: what they have changed, and the proof of that.
	AnnotationAdmitted = "manifold.dev/admitted"
	// LabelOrphan is carried by what outlives its owner, from when it is marked as ours until it is a projection like any other.
	LabelOrphan = "manifold.dev/orphan"
)

// EndpointSlicesManager is the value of the label endpointslice.kubernetes.io/managed-by that slices have in a cluster which lead to the pods of a
// Service in the other clusters of its network.
const EndpointSlicesManager = "endpoints.manifold.dev"

// Values of LabelPodWebhooks, which are those of a webhook's failurePolicy: whether a pod may be made if the logical cluster cannot be asked.
const (
	PodWebhooksFail   = "Fail"
	PodWebhooksIgnore = "Ignore"
)

// AnnotationCreated is how a syncer reports the age of a mirrored pod, in RFC 3339; the API server moves it and AnnotationUID to where they
// belong and stores neither.
const AnnotationCreated = "manifold.dev/created"

// AnnotationGeneration is how a syncer reports the generation of a mirrored pod; the API server moves it to where it belongs, as it does
// AnnotationCreated.
const AnnotationGeneration = "manifold.dev/generation"

// FieldManager is the name under which Manifold applies to physical clusters.
const FieldManager = "manifold"

const (
	// ControllerUser is what the user names of Manifold's own controllers begin with. Each has rights of its own, and no others.
	ControllerUser = "system:manifold:controller"
	// BootstrapUser makes the objects that a logical cluster starts with.
	BootstrapUser = ControllerUser + ":bootstrap"
	// ClustersUser tells how clusters are, mirrors them as Nodes, and keeps the credentials for them.
	ClustersUser = ControllerUser + ":clusters"
	// CustomUser writes decisions and statuses of custom resources.
	CustomUser = ControllerUser + ":custom"
	// AppDeploymentsUser carries out ApplicationDeployments of core.oam.dev.
	AppDeploymentsUser = ControllerUser + ":appdeployments"
	// DeliveryUser makes the revisions and releases of Applications, and what they consist of. It alone says which revision a cluster holds.
	DeliveryUser = ControllerUser + ":delivery"
	// DrainUser tells what still runs on clusters that are drained.
	DrainUser = ControllerUser + ":drain"
	// EventsUser writes the events of all controllers.
	EventsUser = ControllerUser + ":events"
	// GitopsClustersUser shows on GitopsClusters of Weave GitOps how Clusters are.
	GitopsClustersUser = ControllerUser + ":gitopsclusters"
	// InformersUser watches the kinds of Manifold and of delivery for all controllers.
	InformersUser = ControllerUser + ":informers"
	// MultiClusterUser carries out ServiceExports of the Multi-Cluster Services API.
	MultiClusterUser = ControllerUser + ":multicluster"
	// PipelinesUser shows in pipelines of Weave GitOps what their targets run.
	PipelinesUser = ControllerUser + ":pipelines"
	// PluginServicesUser keeps what plugins ask to be kept of releases and applications.
	PluginServicesUser = ControllerUser + ":plugin-services"
	// PlacementUser writes decisions.
	PlacementUser = ControllerUser + ":placement"
	// PluginsUser runs the plugins of delivery, and shows how they are.
	PluginsUser = ControllerUser + ":plugins"
	// PromotionsUser promotes versions from one environment of a pipeline to the next.
	PromotionsUser = ControllerUser + ":promotions"
	// QuotaUser counts what runs in clusters.
	QuotaUser = ControllerUser + ":quota"
	// AsksUser writes down what people ask of Pipelines.
	AsksUser = ControllerUser + ":asks"
	// RemovalUser takes away what is left of clusters that are removed.
	RemovalUser = ControllerUser + ":removal"
	// SummaryUser writes what clusters report: statuses, and mirrored ReplicaSets and ControllerRevisions.
	SummaryUser = ControllerUser + ":summary"
	// VersionsUser reads which versions there are, for those who may list them.
	VersionsUser = ControllerUser + ":versions"
	// VolumesUser binds PersistentVolumes that users have made.
	VolumesUser = ControllerUser + ":volumes"
	// ControllersGroup is the group of all of them.
	ControllersGroup = "system:manifold:controllers"
	// SyncerUserPrefix followed by a cluster's name is the user name of its syncer in the logical cluster.
	SyncerUserPrefix = "system:manifold:cluster:"
	// TrialUser is the user name under which Manifold asks the admission of the logical cluster about pods, by attempts that change nothing.
	TrialUser = "system:manifold:trial"
	// SyncersGroup is the group of all syncers.
	SyncersGroup = "system:manifold:clusters"
)

// SubresourceFleet is what of a workload tells how it stands in all clusters at the moment. It can be read alone, as JSON.
const SubresourceFleet = "fleet"

// VerbOverride is the right to write the overrides of policies.
const VerbOverride = "override"

// DefaultPolicyName names the ClusterPlacementPolicy that is made on first start.
const DefaultPolicyName = "default"
