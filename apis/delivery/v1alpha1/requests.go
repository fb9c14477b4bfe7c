package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// ReleaseApproval approves a stage of a release. POST it to the subresource approve.
type ReleaseApproval struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard metadata of every object. The name, if it is set, is that of the release.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// stage is the id of the stage. Defaults to the one that is waiting.
	// +optional
	Stage string `json:"stage,omitempty"`
	// comment is recorded with the approval.
	// +optional
	Comment string `json:"comment,omitempty"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// ReleaseCancellation cancels a release. Clusters that have begun finish, and others do not begin. POST it to the subresource cancel.
type ReleaseCancellation struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard metadata of every object. The name, if it is set, is that of the release.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// rollback also rolls back what the release has done.
	// +optional
	Rollback bool `json:"rollback,omitempty"`
	// comment is recorded with the request.
	// +optional
	Comment string `json:"comment,omitempty"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// ReleaseSkip skips a stage of a release that is waiting or has not begun. POST it to the subresource skip.
type ReleaseSkip struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard metadata of every object. The name, if it is set, is that of the release.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// stage is the id of the stage.
	Stage string `json:"stage"`
	// targets are the names of the targets to skip. If empty, the whole stage is skipped.
	// +optional
	// +listType=set
	Targets []string `json:"targets,omitempty"`
	// comment is recorded with the request.
	// +optional
	Comment string `json:"comment,omitempty"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// ReleaseRetry retries a failed stage of a release. POST it to the subresource retry.
type ReleaseRetry struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard metadata of every object. The name, if it is set, is that of the release.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// stage is the id of the stage. Defaults to the one that has failed.
	// +optional
	Stage string `json:"stage,omitempty"`
	// targets are the names of the targets to retry. If empty, these are all that have failed.
	// +optional
	// +listType=set
	Targets []string `json:"targets,omitempty"`
	// comment is recorded with the request.
	// +optional
	Comment string `json:"comment,omitempty"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// ReleaseRollback rolls back a release that is in progress or has ended: what ran before it runs again, in all targets at once. POST it to the subresource
// rollback.
type ReleaseRollback struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard metadata of every object. The name, if it is set, is that of the release.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// comment is recorded with the request.
	// +optional
	Comment string `json:"comment,omitempty"`
}
