package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// LabelReleaseUID is carried by the parts of a Release's log: the UID of the Release.
const LabelReleaseUID = "delivery.manifold.dev/release-uid"

// +genclient
// +genclient:noStatus
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// ReleaseLogPart is a part of the log of a Release, which Manifold writes. It is read by the subresource log of the Release.
type ReleaseLogPart struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard metadata of every object.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec holds the lines.
	// +optional
	Spec ReleaseLogPartSpec `json:"spec,omitempty"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// ReleaseLogPartList is a list of parts of logs.
type ReleaseLogPartList struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard metadata of every list.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`

	// items are the objects of the list.
	Items []ReleaseLogPart `json:"items"`
}

// ReleaseLogPartSpec holds the lines of a part of a log. It is one value for whoever owns fields.
// +structType=atomic
type ReleaseLogPartSpec struct {
	// release is the name of the Release.
	Release string `json:"release"`
	// number is the position of the part, from 0. The oldest parts of a long log are deleted.
	Number int64 `json:"number"`
	// first is the position of the part's first line in the log, from 0.
	First int64 `json:"first"`
	// lines are those of the part. Lines are only ever added to the last part.
	// +optional
	// +listType=atomic
	Lines []ReleaseLogLine `json:"lines,omitempty"`
	// told says, of the last part, what of the release's status the log has told, so that nothing is told twice.
	// +optional
	Told map[string]string `json:"told,omitempty"`
	// ended tells, of the last part, that the release has ended and the log has told of it.
	// +optional
	Ended bool `json:"ended,omitempty"`
}

// ReleaseLogLine is a line of a log.
type ReleaseLogLine struct {
	// time is when what it tells of has happened.
	Time metav1.Time `json:"time"`
	// stage is the id of the stage that it is about.
	// +optional
	Stage string `json:"stage,omitempty"`
	// target is the name of the target that it is about.
	// +optional
	Target string `json:"target,omitempty"`
	// cluster is the name of the cluster that it is about.
	// +optional
	Cluster string `json:"cluster,omitempty"`
	// message is what has happened.
	Message string `json:"message"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// ReleaseLogOptions are the query of a request for the log of a Release.
type ReleaseLogOptions struct {
	metav1.TypeMeta `json:",inline"`

	// stage is the id of the stage whose lines are wanted. Unset, those of all are.
	// +optional
	Stage string `json:"stage,omitempty"`
	// target is the name of the target, or of one of its clusters, whose lines are wanted. Unset, those of all are.
	// +optional
	Target string `json:"target,omitempty"`
	// follow waits for further lines until the release has ended.
	// +optional
	Follow bool `json:"follow,omitempty"`
}
