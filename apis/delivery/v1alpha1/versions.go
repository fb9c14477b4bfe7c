package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// ResourceVersions is the resource of WorkloadVersions, which can be listed alone.
const ResourceVersions = "workloadversions"

// VersionsRole is the ClusterRole by which everybody may list WorkloadVersions: they hold only what the caller may list.
const VersionsRole = "manifold-delivery-versions"

// Fields that lists of WorkloadVersions are selected by.
const (
	// FieldChart selects by the name of the chart.
	FieldChart = "chart"
	// FieldImage selects by an image, with or without its tag, registry and folders.
	FieldImage = "image"
	// FieldCluster selects what a cluster runs.
	FieldCluster = "cluster"
	// FieldKind selects by the kind of the workload.
	FieldKind = "workload.kind"
)

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// WorkloadVersion tells which version of a workload each cluster holds. It is computed from what its reader may list, and stored nowhere.
type WorkloadVersion struct {
	metav1.TypeMeta `json:",inline"`
	// metadata names it after the workload.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// workload is the object that it is about.
	Workload VersionedWorkload `json:"workload"`
	// chart is the name of the chart that a HelmRelease installs.
	// +optional
	Chart string `json:"chart,omitempty"`
	// clusters are those that hold the workload, sorted. What no cluster holds has one entry without a name.
	// +optional
	// +listType=atomic
	Clusters []ClusterVersion `json:"clusters,omitempty"`
}

// VersionedWorkload names an object.
type VersionedWorkload struct {
	// apiVersion is the group and the version of its kind.
	APIVersion string `json:"apiVersion"`
	// kind is its kind.
	Kind string `json:"kind"`
	// name is its name.
	Name string `json:"name"`
}

// ClusterVersion is the version of a workload in a cluster.
type ClusterVersion struct {
	// cluster is the name of the cluster; empty for the logical cluster, where what is in no cluster is.
	// +optional
	Cluster string `json:"cluster,omitempty"`
	// version is the version of the chart, the revision that was applied, or the tags of all images, separated by commas.
	// +optional
	Version string `json:"version,omitempty"`
	// images are those of its containers.
	// +optional
	// +listType=atomic
	Images []string `json:"images,omitempty"`
	// revision is the name of the ApplicationRevision that the cluster holds the workload at.
	// +optional
	Revision string `json:"revision,omitempty"`
	// error tells why the version is not known.
	// +optional
	Error string `json:"error,omitempty"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// WorkloadVersionList is what was found, and what could not be read.
type WorkloadVersionList struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard metadata of every list.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`

	// items are what was found.
	Items []WorkloadVersion `json:"items"`
	// errors tell what could not be read. The items are complete but for that.
	// +optional
	// +listType=atomic
	Errors []VersionsError `json:"errors,omitempty"`
}

// VersionsError tells what could not be read.
type VersionsError struct {
	// namespace is where; empty for all namespaces.
	// +optional
	Namespace string `json:"namespace,omitempty"`
	// resource is the kind of objects, with its group.
	Resource string `json:"resource"`
	// message tells why, and what to do about it.
	Message string `json:"message"`
}
