package v1alpha1

import (
	"maps"
	"slices"
	"strings"
)

// keyDomain is the prefix of the labels, annotations and finalizers that mean something to Manifold.
const keyDomain = GroupName + "/"

// userKeys are the labels and annotations of our domain that users write. All others are reserved: what is not known today may mean
// something tomorrow, and must not be there already.
var userKeys = map[string]bool{
	AnnotationClusters:      true,
	AnnotationVolumes:       true,
	AnnotationAPI:           true,
	AnnotationSharedStorage: true,
	AnnotationRemove:        true,
	AnnotationTraffic:       true,
	AnnotationDrainSeconds:  true,
	AnnotationExportedBy:    true,
}

// keptAnnotations are the reserved ones that Manifold writes on objects of the logical cluster. They are kept through whatever users write,
// who may have read them. All other reserved keys, and these as labels, are marks: they only mean something on objects in physical clusters,
// or in the reports of syncers.
var keptAnnotations = map[string]bool{
	AnnotationPlacement:    true,
	AnnotationAwaits:       true,
	AnnotationStatus:       true,
	AnnotationCluster:      true,
	AnnotationNode:         true,
	AnnotationPodUID:       true,
	AnnotationPodCluster:   true,
	AnnotationOrphan:       true,
	AnnotationView:         true,
	AnnotationViews:        true,
	AnnotationViewContents: true,
	AnnotationAuthors:      true,
}

// markKeys are the reserved ones that only mean something on objects in physical clusters, or in the reports of syncers.
var markKeys = []string{
	LabelLogicalCluster, AnnotationNamespace, AnnotationName, AnnotationUID, AnnotationProjection, AnnotationTemplate, LabelOrphan,
	AnnotationCreated, AnnotationGeneration, AnnotationAPIAuthority, LabelPodWebhooks, AnnotationAdmitted,
}

// Keys returns the names of all labels and annotations of our domain that are known, those that users write among them, sorted. Some are
// labels at one place and annotations at another.
func Keys() []string {
	all := slices.Clone(markKeys)
	for _, keys := range []map[string]bool{userKeys, keptAnnotations} {
		all = slices.AppendSeq(all, maps.Keys(keys))
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// ReservedKey reports whether Manifold alone writes the label or annotation of that name.
func ReservedKey(key string) bool { return strings.HasPrefix(key, keyDomain) && !userKeys[key] }

// KeptAnnotation reports whether an annotation is one that Manifold writes on objects of the logical cluster. It is reserved then.
func KeptAnnotation(key string) bool { return keptAnnotations[key] }
