package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// +genclient
// +genclient:noStatus
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// PluginRecord is what a plugin has asked Manifold to keep of a Release, or of an Application. Manifold writes it, and it goes with that object.
type PluginRecord struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard metadata of every object.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec holds what is kept.
	// +optional
	Spec PluginRecordSpec `json:"spec,omitempty"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// PluginRecordList is a list of records of plugins.
type PluginRecordList struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard metadata of every list.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`

	// items are the objects of the list.
	Items []PluginRecord `json:"items"`
}

// PluginRecordSpec holds what a plugin keeps. It is one value for whoever owns fields.
// +structType=atomic
type PluginRecordSpec struct {
	// plugin is the name of the plugin. No other plugin reads or writes the record.
	Plugin string `json:"plugin"`
	// application is the name of the Application.
	Application string `json:"application"`
	// release is the name of the Release. It is empty for what is kept of the Application.
	// +optional
	Release string `json:"release,omitempty"`
	// metadata is what is kept of the release as a whole.
	// +optional
	Metadata map[string]string `json:"metadata,omitempty"`
	// stages are what is kept of its stages.
	// +optional
	// +listType=map
	// +listMapKey=id
	Stages []StageRecord `json:"stages,omitempty"`
	// objects are what is kept of the Application.
	// +optional
	Objects map[string][]byte `json:"objects,omitempty"`
}

// StageRecord is what a plugin keeps of a stage.
type StageRecord struct {
	// id is that of the stage.
	ID string `json:"id"`
	// attempt is the attempt of the stage that it is about. The next one begins without anything.
	Attempt int32 `json:"attempt"`
	// metadata is what is kept.
	// +optional
	Metadata map[string]string `json:"metadata,omitempty"`
}
