package records

import (
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/json"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
)

// DepartedFor is how long a StatefulSet that has gone is known for the claims that its controllers may still have made: their caches are some moments
// behind.
const DepartedFor = time.Minute

const (
	departed      = "departed-"
	labelDeparted = "manifold.dev/departed"
)

// Departure returns what keeps a StatefulSet known that is about to go: what its claims are made by, and where, in an object that no user writes.
func Departure(set *appsv1.StatefulSet) (*appsv1.ControllerRevision, error) {
	known := appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: set.Namespace, Name: set.Name, UID: set.UID}, Spec: *set.Spec.DeepCopy()}
	known.Spec.Template.Reset()
	for _, key := range []string{v1alpha1.AnnotationPlacement, v1alpha1.AnnotationStatus} {
		if said, ok := set.Annotations[key]; ok {
			metav1.SetMetaDataAnnotation(&known.ObjectMeta, key, said)
		}
	}
	raw, err := json.Marshal(known)
	if err != nil {
		return nil, fmt.Errorf("encode StatefulSet %s/%s: %w", set.Namespace, set.Name, err)
	}
	return &appsv1.ControllerRevision{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: v1alpha1.SystemNamespace, Name: departed + string(set.UID), Labels: map[string]string{labelDeparted: "true"},
		},
		Data: runtime.RawExtension{Raw: raw},
	}, nil
}

// IsDeparture reports whether a ControllerRevision keeps a StatefulSet known that has gone.
func IsDeparture(revision *appsv1.ControllerRevision) bool {
	return revision.Namespace == v1alpha1.SystemNamespace && revision.Labels[labelDeparted] != ""
}

// Departed returns the StatefulSet that a departure keeps known, nil if it is none.
func Departed(revision *appsv1.ControllerRevision) *appsv1.StatefulSet {
	set := &appsv1.StatefulSet{}
	if !IsDeparture(revision) || json.Unmarshal(revision.Data.Raw, set) != nil || revision.Name != departed+string(set.UID) {
		return nil
	}
	return set
}
