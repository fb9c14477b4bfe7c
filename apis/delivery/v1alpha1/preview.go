package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// SubresourcePreview of applications takes an ApplicationPreview.
const SubresourcePreview = "preview"

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// ApplicationPreview asks what plugins would change by a release of an application. It is posted to the subresource preview, and nothing of it is kept.
type ApplicationPreview struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard metadata of every object. The name, if it is set, is that of the application.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// revision is the name of the revision that would be released. Defaults to the newest one.
	// +optional
	Revision string `json:"revision,omitempty"`
	// running is the name of the revision that it is compared with, which runs; unset if none does. What a request says here is ignored.
	// +optional
	Running string `json:"running,omitempty"`
	// previews are what each plugin says of each of its deploy targets. What a request says here is ignored.
	// +optional
	// +listType=map
	// +listMapKey=plugin
	// +listMapKey=deployTarget
	Previews []PluginPreview `json:"previews,omitempty"`
}
