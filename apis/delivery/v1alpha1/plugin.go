package v1alpha1

import (
	"cmp"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// ResourcePlugins is the resource of plugins.
const ResourcePlugins = "plugins"

// What admins ask of a plugin by annotations. Any other value than the one that the status tells of has it done once. The command writes the time.
const (
	// AnnotationRestartAt has the process of a plugin stopped and started again.
	AnnotationRestartAt = "delivery.manifold.dev/restart-at"
	// AnnotationRefetchAt has the program of a plugin fetched again, whatever the cache holds, and started.
	AnnotationRefetchAt = "delivery.manifold.dev/refetch-at"
	// AnnotationAskedBy is the name of the user who asked last. The server writes it.
	AnnotationAskedBy = "delivery.manifold.dev/asked-by"
)

// +genclient
// +genclient:nonNamespaced
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// Plugin is a program that speaks the protocol of PipeCD's plugins. It runs beside the API server, where an admin has enabled that by start
// --plugins-dir, and offers stages, live state and previews to the applications of all namespaces.
type Plugin struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard metadata of every object. The name is how applications refer to the plugin, and a DNS label.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec says which program runs, and with which configuration.
	// +optional
	Spec PluginSpec `json:"spec,omitempty"`
	// status shows whether the plugin answers, and what it offers.
	// +optional
	Status PluginStatus `json:"status,omitempty"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// PluginList is a list of plugins.
type PluginList struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard metadata of every list.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`

	// items are the objects of the list.
	Items []Plugin `json:"items"`
}

// PluginSpec says which program runs, and with which configuration.
type PluginSpec struct {
	// url is where the program is: file:///PATH on the server's own disk, https://HOST/PATH, http://HOST/PATH, or oci://REGISTRY/REPOSITORY with a
	// :TAG or a @DIGEST. What is there is an executable, or a tar.gz with one.
	URL string `json:"url"`
	// sha256 is the SHA-256 of the program, as 64 hexadecimal digits: of the executable itself, also if it comes in a tar.gz. A program whose checksum is
	// another one is never run.
	Sha256 string `json:"sha256"`
	// secretRef names a Secret in namespace manifold-system by which the server logs in where it fetches the program: of type kubernetes.io/basic-auth for
	// https and oci, or kubernetes.io/dockerconfigjson for oci. It is told to nobody but the host that url names, and to whom a registry has tokens made by.
	// +optional
	SecretRef *PluginSecretReference `json:"secretRef,omitempty"`
	// pipecdName is how files of PipeCD call the plugin where that cannot be the name of an object, such as k8s_plugin for the plugin k8s-plugin: the name in
	// lower case, with hyphens in place of underscores, must be that of the plugin. The plugin is told this name as its own.
	// +optional
	PipecdName string `json:"pipecdName,omitempty"`
	// installTools lets the plugin install tools that it asks for, such as a version of kubectl, by scripts of its own. They run as the plugin does: as its user,
	// within its limits and in its folder. If unset, it has those alone that an admin has put into the folder tools of start --plugins-dir.
	// +optional
	InstallTools bool `json:"installTools,omitempty"`
	// config is the configuration of the plugin, an object that reaches it as it is. Every admin who may read the plugin can read it, and it is
	// handed over as an argument of the process, which users of the server's host may see.
	// +optional
	Config *runtime.RawExtension `json:"config,omitempty"`
	// deployTargets are the places that the plugin deploys to. A plugin reads them when it starts, so a change of them restarts it.
	// +optional
	// +listType=map
	// +listMapKey=name
	DeployTargets []PluginTarget `json:"deployTargets,omitempty"`
	// port is the one on which the plugin listens on the loopback interface. If unset, a free one is chosen at each start.
	// +optional
	Port int32 `json:"port,omitempty"`
	// logLevel is debug, info, warn or error. Defaults to info.
	// +optional
	LogLevel PluginLogLevel `json:"logLevel,omitempty"`
	// limits bound what the process may use.
	// +optional
	Limits PluginLimits `json:"limits,omitempty"`
	// gracePeriodSeconds is how many seconds the process has to end after it was asked to, before it is killed. Defaults to 30.
	// +optional
	GracePeriodSeconds *int32 `json:"gracePeriodSeconds,omitempty"`
	// suspend stops the process, and starts it no more until this is unset. Stages of the plugin wait.
	// +optional
	Suspend bool `json:"suspend,omitempty"`
}

// PluginSecretReference names a Secret in namespace manifold-system.
type PluginSecretReference struct {
	// name is that of the Secret.
	Name string `json:"name"`
}

// PluginNameOf is the name of the object for a plugin that files of PipeCD call so. Objects cannot have all names that PipeCD lets plugins have.
func PluginNameOf(written string) string {
	return strings.ReplaceAll(strings.ToLower(written), "_", "-")
}

// Called is the name by which the plugin is known to files of PipeCD, and to itself.
func (p *Plugin) Called() string { return cmp.Or(p.Spec.PipecdName, p.Name) }

// PluginKubeconfigField is the field of the configuration of a target that the server writes where that stands for a cluster. PipeCD's plugins for Kubernetes have it.
const PluginKubeconfigField = "kubeConfigPath"

// PluginTarget is a place that a plugin deploys to.
type PluginTarget struct {
	// name is how applications refer to the place. It must be unique within the plugin.
	Name string `json:"name"`
	// labels are handed to the plugin along with the name.
	// +optional
	Labels map[string]string `json:"labels,omitempty"`
	// config is what the plugin needs to know of the place, an object that reaches it as it is.
	// +optional
	Config *runtime.RawExtension `json:"config,omitempty"`
	// clusterSelector selects clusters by the labels of their Cluster objects. Each of them is then a place of its own, which has the name of the cluster,
	// and the labels and the config that are said here; name is that of the group. To the config comes kubeConfigPath, the path of a kubeconfig by which
	// the plugin works in the view of that cluster, and, unless it says another one, appStateInformer.namespace.
	// +optional
	ClusterSelector *metav1.LabelSelector `json:"clusterSelector,omitempty"`
	// serviceAccountRef is the ServiceAccount by whose rights the plugin works in the clusters that clusterSelector selects, whoever has started a release. It
	// needs the right to use their views. Required with clusterSelector.
	// +optional
	ServiceAccountRef *PluginServiceAccountRef `json:"serviceAccountRef,omitempty"`
}

// PluginServiceAccountRef names a ServiceAccount by whose rights a plugin works in clusters.
type PluginServiceAccountRef struct {
	// namespace is that of the ServiceAccount, in which the plugin works unless it says another one.
	Namespace string `json:"namespace"`
	// name is that of the ServiceAccount.
	Name string `json:"name"`
}

// PluginLogLevel is how much a plugin logs.
// +enum
type PluginLogLevel string

const (
	// PluginLogDebug is everything.
	PluginLogDebug PluginLogLevel = "debug"
	// PluginLogInfo is what happens.
	PluginLogInfo PluginLogLevel = "info"
	// PluginLogWarn is what may be wrong.
	PluginLogWarn PluginLogLevel = "warn"
	// PluginLogError is what is wrong.
	PluginLogError PluginLogLevel = "error"
)

// PluginLimits bound what the process of a plugin may use.
type PluginLimits struct {
	// memory is how much memory each of the processes may use for data. Defaults to 1Gi, and must be at least 128Mi.
	// +optional
	Memory *resource.Quantity `json:"memory,omitempty"`
	// files is how many files and connections the process may have open. Defaults to 1024, and must be at least 64.
	// +optional
	Files *int64 `json:"files,omitempty"`
	// processes is how many processes and threads there may be. Defaults to 512, and must be at least 16.
	// +optional
	Processes *int64 `json:"processes,omitempty"`
}

// PluginReady is the condition type of a Plugin that is True while its process runs and answers.
const PluginReady = "Ready"

// PluginStagesDistinct is the condition type of a Plugin that is False while another one offers a stage of the same name.
const PluginStagesDistinct = "StagesDistinct"

// Reasons of the condition StagesDistinct.
const (
	// PluginReasonDistinct is that no other plugin offers a stage of its names.
	PluginReasonDistinct = "Distinct"
	// PluginReasonAlsoBuiltIn is that stages have names of built-in ones. Applications say which of them they mean.
	PluginReasonAlsoBuiltIn = "AlsoBuiltIn"
	// PluginReasonOfferedTwice is that another plugin offers a stage of the same name. Pipelines that use it do not begin.
	PluginReasonOfferedTwice = "OfferedTwice"
)

// PluginIsolated is the condition type of a Plugin that is True while its process has a user of its own.
const PluginIsolated = "Isolated"

// Reasons of the condition Isolated.
const (
	// PluginReasonOwnUser is that the process has a user of its own.
	PluginReasonOwnUser = "OwnUser"
	// PluginReasonServersUser is that the process runs as the user of the server, who is not root.
	PluginReasonServersUser = "ServersUser"
)

// PluginTargetsReady is the condition type of a Plugin that is False while clusters that it selects are no deploy targets, or cannot be reached as such. Only
// Plugins that select clusters have it.
const PluginTargetsReady = "TargetsReady"

// Reasons of the condition TargetsReady.
const (
	// PluginReasonComplete is that each cluster that is selected is a deploy target.
	PluginReasonComplete = "Complete"
	// PluginReasonAccountMissing is that a ServiceAccount does not exist by whose rights the plugin is to work.
	PluginReasonAccountMissing = "ServiceAccountMissing"
	// PluginReasonTokenFailed is that there is no token of a ServiceAccount, or no new one. It is asked for again.
	PluginReasonTokenFailed = "TokenFailed"
)

// Reasons of the condition Ready.
const (
	// PluginReasonAnswering is that the process runs and answers.
	PluginReasonAnswering = "Answering"
	// PluginReasonSuspended is that spec.suspend is set.
	PluginReasonSuspended = "Suspended"
	// PluginReasonFetching is that the program is on its way.
	PluginReasonFetching = "Fetching"
	// PluginReasonFetchFailed is that the program could not be fetched. It is tried again.
	PluginReasonFetchFailed = "FetchFailed"
	// PluginReasonChecksumDiffers is that the program is not the one that the Plugin says.
	PluginReasonChecksumDiffers = "ChecksumDiffers"
	// PluginReasonRefused is that the Plugin asks for something that cannot be, such as a port that another one has.
	PluginReasonRefused = "Refused"
	// PluginReasonStarting is that the process has started and has not answered yet.
	PluginReasonStarting = "Starting"
	// PluginReasonNotAnswering is that the process runs and does not answer.
	PluginReasonNotAnswering = "NotAnswering"
	// PluginReasonExited is that the process has ended. It is started again.
	PluginReasonExited = "Exited"
	// PluginReasonCrashLoop is that the process has ended several times in a row. It is started again, ever more slowly.
	PluginReasonCrashLoop = "CrashLoop"
	// PluginReasonRestarting is that the process is stopped because the Plugin has changed. Calls in flight have the grace period to end.
	PluginReasonRestarting = "Restarting"
	// PluginReasonHostDisabled is that this server runs no plugins.
	PluginReasonHostDisabled = "HostDisabled"
)

// PluginStatus shows whether a plugin answers, and what it offers.
type PluginStatus struct {
	// observedGeneration is the generation of the plugin that the rest is about.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// stages are the names of the stages that the plugin offers.
	// +optional
	// +listType=set
	Stages []string `json:"stages,omitempty"`
	// services are what the plugin can do: Deployment, LiveState, PlanPreview, Drift.
	// +optional
	// +listType=set
	Services []string `json:"services,omitempty"`
	// targets are the names of the deploy targets that it was started with.
	// +optional
	// +listType=set
	Targets []string `json:"targets,omitempty"`
	// sha256 is the checksum of the program that runs.
	// +optional
	Sha256 string `json:"sha256,omitempty"`
	// startTime is when the process was started.
	// +optional
	StartTime *metav1.Time `json:"startTime,omitempty"`
	// incarnation counts the starts of the process.
	// +optional
	Incarnation int64 `json:"incarnation,omitempty"`
	// restarts counts the starts after the process had ended or had been ended because it did not answer.
	// +optional
	Restarts int64 `json:"restarts,omitempty"`
	// lastError says why the plugin last failed to be fetched, to start or to go on. It stays when the plugin is well again.
	// +optional
	LastError string `json:"lastError,omitempty"`
	// lastErrorTime is when that was.
	// +optional
	LastErrorTime *metav1.Time `json:"lastErrorTime,omitempty"`
	// restartedFor is the value of the annotation delivery.manifold.dev/restart-at that the plugin was last restarted for.
	// +optional
	RestartedFor string `json:"restartedFor,omitempty"`
	// refetchedFor is the value of the annotation delivery.manifold.dev/refetch-at that the program was last fetched for.
	// +optional
	RefetchedFor string `json:"refetchedFor,omitempty"`
	// restartAsked is who asked last for a restart, which the server has written down when they did.
	// +optional
	RestartAsked *PluginAsked `json:"restartAsked,omitempty"`
	// refetchAsked is who asked last for the program to be fetched again.
	// +optional
	RefetchAsked *PluginAsked `json:"refetchAsked,omitempty"`
	// conditions show the state of the plugin.
	// +optional
	// +patchMergeKey=type
	// +patchStrategy=merge
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty" patchStrategy:"merge" patchMergeKey:"type"`
}

// PluginAsked is what somebody has asked of a plugin by an annotation.
type PluginAsked struct {
	// for is the value of the annotation.
	For string `json:"for"`
	// by is the name of the user.
	By string `json:"by"`
	// time is when it was.
	Time metav1.Time `json:"time"`
}
