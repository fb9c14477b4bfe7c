package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// +genclient
// +genclient:noStatus
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// ApplicationRevision is what an Application was at some point: its manifests for each target as they were rendered. It never changes.
//
// Where the manifests are too many for one object, the revision is a head, called APPLICATION-vNUMBER, and chunks, called
// APPLICATION-vNUMBER-INDEX, that hold further manifests. Chunks are made before their head, so a head that is there is whole.
type ApplicationRevision struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard metadata of every object.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the revision. It cannot be changed.
	// +optional
	Spec ApplicationRevisionSpec `json:"spec,omitempty"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// ApplicationRevisionList is a list of revisions.
type ApplicationRevisionList struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard metadata of every list.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`

	// items are the objects of the list.
	Items []ApplicationRevision `json:"items"`
}

// ApplicationRevisionSpec is a revision, or a chunk of one. It is one value for whoever owns fields: managed fields that list the contents of
// all manifests would be as large as the manifests.
// +structType=atomic
type ApplicationRevisionSpec struct {
	// application is the name of the Application.
	Application string `json:"application"`
	// number counts the revisions of the application, from 1.
	Number int64 `json:"number"`
	// chunkOf is set on a chunk: the name of the head. A chunk has objects, and none of the fields below them.
	// +optional
	ChunkOf string `json:"chunkOf,omitempty"`
	// objects are manifests, each of them once, whichever targets have it.
	// +optional
	// +listType=map
	// +listMapKey=hash
	Objects []RevisionObject `json:"objects,omitempty"`

	// hash is that of all targets together, and of content, see HashWithContent: two revisions with the same hash are the same.
	// +optional
	Hash string `json:"hash,omitempty"`
	// content is the hash of the files of the folder, where plugins deliver them. It tells revisions apart that have the same manifests, or none.
	// +optional
	Content string `json:"content,omitempty"`
	// targets say which objects each target has.
	// +optional
	// +listType=map
	// +listMapKey=name
	Targets []RevisionTarget `json:"targets,omitempty"`
	// chunks are those that hold objects which the head does not.
	// +optional
	// +listType=map
	// +listMapKey=name
	Chunks []RevisionChunk `json:"chunks,omitempty"`
	// origin is where the manifests came from.
	// +optional
	Origin *Origin `json:"origin,omitempty"`
	// changes are the files that differ from the revision before. They are unset where nobody asks for them, and where that cannot be told.
	// +optional
	Changes *RevisionChanges `json:"changes,omitempty"`
	// images are those that the workloads name, sorted.
	// +optional
	// +listType=atomic
	Images []RevisionImage `json:"images,omitempty"`
	// charts are those that the manifests were rendered from, as NAME-VERSION, sorted.
	// +optional
	// +listType=atomic
	Charts []string `json:"charts,omitempty"`
	// warnings are what the renderer found odd.
	// +optional
	// +listType=atomic
	Warnings []string `json:"warnings,omitempty"`
	// delivery is what the application file beside the manifests says about how they are delivered. What the Application says itself comes first.
	// +optional
	Delivery *RevisionDelivery `json:"delivery,omitempty"`
}

// RevisionChanges are the files of a repository by which the commit of a revision differs from that of the revision before.
type RevisionChanges struct {
	// since is the name of the revision before.
	Since string `json:"since"`
	// files are the paths of files that were added, changed or deleted, from the root of the repository, sorted: at most 1000 of them.
	// +optional
	// +listType=atomic
	Files []string `json:"files,omitempty"`
	// more tells that there are others.
	// +optional
	More bool `json:"more,omitempty"`
}

// RevisionDelivery is how manifests are delivered, in the words of an Application.
type RevisionDelivery struct {
	// targets are the places that the application goes to.
	// +optional
	// +listType=map
	// +listMapKey=name
	Targets []Target `json:"targets,omitempty"`
	// pipeline is the way of the revision, stage by stage.
	// +optional
	Pipeline *Pipeline `json:"pipeline,omitempty"`
	// planner says which changes go through the pipeline.
	// +optional
	Planner *Planner `json:"planner,omitempty"`
	// trigger says which files count.
	// +optional
	Trigger *RevisionTrigger `json:"trigger,omitempty"`
	// rollback says when a release that fails is taken back.
	// +optional
	Rollback Rollback `json:"rollback,omitempty"`
	// traffic says how requests are shared out over variants.
	// +optional
	Traffic *Traffic `json:"traffic,omitempty"`
	// service names the Service in front of the application.
	// +optional
	Service *ServiceReference `json:"service,omitempty"`
	// workloads are those that variants have copies of.
	// +optional
	// +listType=atomic
	Workloads []WorkloadReference `json:"workloads,omitempty"`
	// variantLabel is the label that tells the pods of variants apart.
	// +optional
	VariantLabel VariantLabel `json:"variantLabel,omitempty"`
	// drift says what happens when clusters no longer have what was released.
	// +optional
	Drift *Drift `json:"drift,omitempty"`
	// prune says whether a release without the pipeline deletes what earlier revisions brought to a target and the revision that is released does not have.
	// +optional
	Prune *bool `json:"prune,omitempty"`
	// plugins are the plugins that the file has options for, of those that the application uses.
	// +optional
	// +listType=map
	// +listMapKey=name
	Plugins []ApplicationPlugin `json:"plugins,omitempty"`
	// labels are those that queries and scripts see beside the labels of the Application.
	// +optional
	Labels map[string]string `json:"labels,omitempty"`
}

// RevisionTrigger says which files count, in the words of spec.trigger of an Application.
type RevisionTrigger struct {
	// paths are patterns of files.
	// +optional
	// +listType=atomic
	Paths []string `json:"paths,omitempty"`
	// ignores are patterns of files that do not count.
	// +optional
	// +listType=atomic
	Ignores []string `json:"ignores,omitempty"`
}

// RevisionObject is a manifest. Exactly one of manifest and secretKeyRef is set.
type RevisionObject struct {
	// hash is that of the manifest, see HashManifest.
	Hash string `json:"hash"`
	// manifest is the object as it was rendered.
	// +optional
	Manifest *runtime.RawExtension `json:"manifest,omitempty"`
	// secretKeyRef says where the manifest is that is a Secret: nobody who may read revisions comes to read Secrets by that.
	// +optional
	SecretKeyRef *SecretKeyReference `json:"secretKeyRef,omitempty"`
}

// SecretKeyReference names a value in a Secret in the namespace of the object that refers to it.
type SecretKeyReference struct {
	// name is the name of the Secret.
	Name string `json:"name"`
	// key is the key of the value.
	Key string `json:"key"`
}

// RevisionTarget says which objects a target has.
type RevisionTarget struct {
	// name is that of the target.
	Name string `json:"name"`
	// hash is that of the hashes of its objects in their order, see HashObjects: a target with the same hash in two revisions has the same.
	Hash string `json:"hash"`
	// objects are the hashes of its objects, in the order that they are applied in. They are left out where an earlier target of the list has the same hash, and
	// so the same objects.
	// +optional
	// +listType=atomic
	Objects []string `json:"objects,omitempty"`
}

// RevisionChunk names a chunk and proves what is in it.
type RevisionChunk struct {
	// name is that of the ApplicationRevision.
	Name string `json:"name"`
	// hash is that of the hashes of its objects in their order, see HashObjects.
	Hash string `json:"hash"`
}

// RevisionImage is an image that workloads name.
type RevisionImage struct {
	// name is the image without its tag and digest.
	Name string `json:"name"`
	// tag is its tag.
	// +optional
	Tag string `json:"tag,omitempty"`
	// digest is its digest.
	// +optional
	Digest string `json:"digest,omitempty"`
}
