package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// ReleaseApproval agrees that a stage of a release goes on. It is posted to the subresource approve.
type ReleaseApproval struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard metadata of every object. The name, if it is set, is that of the release.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// stage is the id of the stage. Unset, it is the one that waits.
	// +optional
	Stage string `json:"stage,omitempty"`
	// comment is recorded with the approval.
	// +optional
	Comment string `json:"comment,omitempty"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// ReleaseCancellation ends a release: clusters that have begun come to an end, others do not begin. It is posted to the subresource cancel.
type ReleaseCancellation struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard metadata of every object. The name, if it is set, is that of the release.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// rollback takes back what the release has done.
	// +optional
	Rollback bool `json:"rollback,omitempty"`
	// comment is recorded with the request.
	// +optional
	Comment string `json:"comment,omitempty"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// ReleaseSkip leaves out a stage of a release that waits or has not begun. It is posted to the subresource skip.
type ReleaseSkip struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard metadata of every object. The name, if it is set, is that of the release.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// stage is the id of the stage.
	Stage string `json:"stage"`
	// targets are the names of the targets that are left out. Empty leaves out the whole stage.
	// +optional
	// +listType=set
	Targets []string `json:"targets,omitempty"`
	// comment is recorded with the request.
	// +optional
	Comment string `json:"comment,omitempty"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// ReleaseRetry begins a failed stage of a release once more. It is posted to the subresource retry.
type ReleaseRetry struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard metadata of every object. The name, if it is set, is that of the release.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// stage is the id of the stage. Unset, it is the one that has failed.
	// +optional
	Stage string `json:"stage,omitempty"`
	// targets are the names of the targets. Empty stands for all that have failed.
	// +optional
	// +listType=set
	Targets []string `json:"targets,omitempty"`
	// comment is recorded with the request.
	// +optional
	Comment string `json:"comment,omitempty"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// ReleaseRollback takes a release back, whether it runs or has ended: the variants are put back that were there before it, in all targets at
// once. It is posted to the subresource rollback.
type ReleaseRollback struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard metadata of every object. The name, if it is set, is that of the release.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// comment is recorded with the request.
	// +optional
	Comment string `json:"comment,omitempty"`
}
