package v1alpha1

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
	// AnnotationRevisionOnly has, with the value "true", an Application make revisions that are not released by themselves, as spec.trigger.mode Manual
	// does. AnnotationRolloutTemplate is how KubeVela called it first.
	AnnotationRevisionOnly    = "app.oam.dev/revision-only"
	AnnotationRolloutTemplate = "app.oam.dev/rollout-template"
)

// ByHand reports whether revisions of an application are released when somebody says so, and not by themselves.
func (a *Application) ByHand() bool {
	return a.Spec.Trigger.Mode == TriggerManual || a.Annotations[AnnotationRevisionOnly] == "true" || a.Annotations[AnnotationRolloutTemplate] == "true"
}
