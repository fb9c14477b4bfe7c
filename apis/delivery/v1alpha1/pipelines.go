package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// What the command and others ask of a Pipeline of Weave GitOps is posted to a subresource in this group, though the Pipeline itself is in one of
// its own: who may is decided by rights that no right to edit pipelines brings along, and who did is written down by the server.
const (
	// ResourcePipelines is the resource that these are subresources of. Nothing of it is stored in this group.
	ResourcePipelines = "pipelines"
	// SubresourcePromote takes a PipelinePromotion.
	SubresourcePromote = "promote"
	// SubresourcePause takes a PipelinePause.
	SubresourcePause = "pause"
	// SubresourceResume takes a PipelineResumption.
	SubresourceResume = "resume"
	// SubresourceRelated is read, and is a PipelineRelated.
	SubresourceRelated = "related"
)

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// PipelinePromotion asks for a version in an environment of a Pipeline. It is posted to the subresource promote.
type PipelinePromotion struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard metadata of every object. The name, if it is set, is that of the pipeline.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// group is the API group of the pipeline. It is needed only where both groups have a pipeline of the name.
	// +optional
	Group string `json:"group,omitempty"`
	// environment is the name of the environment that gets the version.
	Environment string `json:"environment"`
	// revision is the version: one that waits for this environment, one that the environment before has verified, or an older one that another
	// environment runs. Unset, it is the one that waits.
	// +optional
	Revision string `json:"revision,omitempty"`
	// message is recorded with it.
	// +optional
	Message string `json:"message,omitempty"`
	// recorded is what the server has written down. What a request says here is ignored.
	// +optional
	Recorded *PipelineRecord `json:"recorded,omitempty"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// PipelinePause asks that nothing of a Pipeline is promoted. It is posted to the subresource pause.
type PipelinePause struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard metadata of every object. The name, if it is set, is that of the pipeline.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// group is the API group of the pipeline. It is needed only where both groups have a pipeline of the name.
	// +optional
	Group string `json:"group,omitempty"`
	// message is recorded with it.
	// +optional
	Message string `json:"message,omitempty"`
	// recorded is what the server has written down: who has paused the pipeline first. What a request says here is ignored.
	// +optional
	Recorded *PipelineRecord `json:"recorded,omitempty"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// PipelineResumption ends the pause of a Pipeline. It is posted to the subresource resume.
type PipelineResumption struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard metadata of every object. The name, if it is set, is that of the pipeline.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// group is the API group of the pipeline. It is needed only where both groups have a pipeline of the name.
	// +optional
	Group string `json:"group,omitempty"`
	// recorded is the pause that has ended; unset if there was none. What a request says here is ignored.
	// +optional
	Recorded *PipelineRecord `json:"recorded,omitempty"`
}

// PipelineRecord is what is written down of somebody who has asked something of a Pipeline.
type PipelineRecord struct {
	// by is the name of the user.
	By string `json:"by"`
	// at is when it was asked.
	At metav1.Time `json:"at"`
	// message is what they have said.
	// +optional
	Message string `json:"message,omitempty"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// PipelineRelated tells which objects belong to the objects of Flux that clusters have by themselves and a Pipeline shows. It is read at the subresource related,
// and made for each request of what the caller may get.
type PipelineRelated struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard metadata of every object. The name is that of the pipeline.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// workloads are the objects of Flux, of the pipelines of the name in both groups.
	// +optional
	// +listType=atomic
	Workloads []RelatedWorkload `json:"workloads,omitempty"`
	// errors are what could not be read.
	// +optional
	// +listType=atomic
	Errors []RelatedError `json:"errors,omitempty"`
}

// RelatedWorkload is an object of Flux that a cluster has by itself, with what belongs to it.
type RelatedWorkload struct {
	// group is the API group of the pipeline.
	Group string `json:"group"`
	// environment is the one that it is in.
	Environment string `json:"environment"`
	// cluster is the one that has it.
	Cluster string `json:"cluster"`
	// object is the object of Flux.
	Object RelatedObject `json:"object"`
	// sources are what its content comes from.
	// +optional
	// +listType=atomic
	Sources []RelatedObject `json:"sources,omitempty"`
	// made is what it has made in the cluster, as it says itself. There are not more than 200.
	// +optional
	// +listType=atomic
	Made []RelatedObject `json:"made,omitempty"`
	// more says that it has made others besides.
	// +optional
	More bool `json:"more,omitempty"`
}

// RelatedObject names an object of a cluster.
type RelatedObject struct {
	// apiGroup is the group of its kind.
	// +optional
	APIGroup string `json:"apiGroup,omitempty"`
	// kind is its kind.
	Kind string `json:"kind"`
	// namespace is where it is; unset for one that is in none.
	// +optional
	Namespace string `json:"namespace,omitempty"`
	// name is its name.
	Name string `json:"name"`
}

// RelatedError says of a target why its objects are missing.
type RelatedError struct {
	// group is the API group of the pipeline.
	Group string `json:"group"`
	// environment is the one of the target.
	Environment string `json:"environment"`
	// cluster is that of the target.
	Cluster string `json:"cluster"`
	// namespace is that of the target.
	Namespace string `json:"namespace"`
	// message says what is missing, and why.
	Message string `json:"message"`
}
