package v1alpha1

import (
	"maps"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Names on applications and on what automation makes of them.
const (
	// FinalizerApplication is held by an Application until what it leaves behind is free of it.
	FinalizerApplication = "delivery.manifold.dev/application"
	// AnnotationRefresh is the user's word on an Application to look at its source at once. Any other value than before does. Pushes that forges
	// announce write it too.
	AnnotationRefresh = "delivery.manifold.dev/refresh"
	// AnnotationSource is carried by a revision: it tells the state of the source that it was rendered from, and by which targets.
	AnnotationSource = "delivery.manifold.dev/source"
	// AnnotationTargets is carried by releases that automation makes: it tells the targets that the application had then.
	AnnotationTargets = "delivery.manifold.dev/targets"
	// AnnotationFollows is on a release by which targets follow their clusters alone: a hash of which of them come and go.
	AnnotationFollows = "delivery.manifold.dev/follows"
	// AnnotationMade tells to the microsecond when a revision or a release was made. The server writes it: a time of the API tells no more than the second.
	AnnotationMade = "delivery.manifold.dev/made"
	// AnnotationRevisionOnly has, with the value "true", an Application make revisions that are not released by themselves, as spec.trigger.mode Manual
	// does. AnnotationRolloutTemplate is how KubeVela called it first.
	AnnotationRevisionOnly    = "app.oam.dev/revision-only"
	AnnotationRolloutTemplate = "app.oam.dev/rollout-template"
)

// ByHand reports whether revisions of an application are released when somebody says so, and not by themselves.
func (a *Application) ByHand() bool {
	return a.Spec.Trigger.Mode == TriggerManual || a.Annotations[AnnotationRevisionOnly] == "true" || a.Annotations[AnnotationRolloutTemplate] == "true"
}

// madeFormat is that of AnnotationMade, by which texts are in the order of time.
const madeFormat = "2006-01-02T15:04:05.000000Z"

// SetMade notes on a revision or a release when it was made.
func SetMade(object metav1.Object, at time.Time) { setMade(object, at.UTC().Format(madeFormat)) }

// KeepMade keeps what is noted of when an object was made through an update of it.
func KeepMade(object, old metav1.Object) { setMade(object, old.GetAnnotations()[AnnotationMade]) }

func setMade(object metav1.Object, text string) {
	annotations := maps.Clone(object.GetAnnotations())
	if annotations == nil {
		annotations = map[string]string{}
	}
	if annotations[AnnotationMade] = text; text == "" {
		delete(annotations, AnnotationMade)
	}
	object.SetAnnotations(annotations)
}

// CompareMade orders revisions and releases by when they were made, the first one first. Those of which no more than the second is known are equal within it.
func CompareMade(a, b metav1.Object) int {
	one, other := a.GetCreationTimestamp(), b.GetCreationTimestamp()
	if order := one.Compare(other.Time); order != 0 {
		return order
	}
	made, otherMade := a.GetAnnotations()[AnnotationMade], b.GetAnnotations()[AnnotationMade]
	if made == "" || otherMade == "" {
		return 0
	}
	return strings.Compare(made, otherMade)
}
