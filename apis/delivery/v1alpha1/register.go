package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupName is the API group of the kinds of delivery.
const GroupName = "delivery.manifold.dev"

var (
	// SchemeGroupVersion is the group and version that this package's kinds are served under.
	SchemeGroupVersion = schema.GroupVersion{Group: GroupName, Version: "v1alpha1"}

	// SchemeBuilder collects what AddToScheme registers.
	SchemeBuilder = runtime.NewSchemeBuilder(addKnownTypes, addDefaultingFuncs)

	// AddToScheme registers the kinds and their defaults with a scheme, which is all that a client needs.
	AddToScheme = SchemeBuilder.AddToScheme
)

// Kind returns the group's kind of this name, without a version.
func Kind(kind string) schema.GroupKind {
	return SchemeGroupVersion.WithKind(kind).GroupKind()
}

// Resource returns the group's resource of this name, without a version.
func Resource(resource string) schema.GroupResource {
	return SchemeGroupVersion.WithResource(resource).GroupResource()
}

// Install registers the kinds for a server: as AddToScheme does, and the same Go types once more as the group's internal version.
// A server's storage converts every object to the internal version. While there is only one version, the two may be the same
// types, which makes that conversion a no-op. The served version is registered first, because callers that ask the scheme for an
// object's kind take the first answer.
func Install(scheme *runtime.Scheme) error {
	if err := AddToScheme(scheme); err != nil {
		return err
	}
	scheme.AddKnownTypes(schema.GroupVersion{Group: GroupName, Version: runtime.APIVersionInternal}, kinds()...)
	return scheme.SetVersionPriority(SchemeGroupVersion)
}

func addKnownTypes(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(SchemeGroupVersion, kinds()...)
	metav1.AddToGroupVersion(scheme, SchemeGroupVersion)
	return nil
}

func kinds() []runtime.Object {
	return []runtime.Object{
		&Application{}, &ApplicationList{}, &ApplicationPreview{},
		&ApplicationRevision{}, &ApplicationRevisionList{},
		&Release{}, &ReleaseList{},
		&ReleaseApproval{}, &ReleaseCancellation{}, &ReleaseSkip{}, &ReleaseRetry{}, &ReleaseRollback{},
		&ReleaseLogPart{}, &ReleaseLogPartList{}, &ReleaseLogOptions{},
		&Plugin{}, &PluginList{},
		&PluginRecord{}, &PluginRecordList{},
		&PipelinePromotion{}, &PipelinePause{}, &PipelineResumption{}, &PipelineRelated{},
		&WorkloadVersion{}, &WorkloadVersionList{},
	}
}
