package syncer

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/projection"
)

// In a rollout, pods of the earlier template run on, and start again, with what that names.
func TestWhatPodsNameStaysUntilTheyAreGone(t *testing.T) {
	above := deployment("web", toEast, usingSecret("new"))
	live := projected(above, 2, 2)
	old := &appsv1.ReplicaSet{ObjectMeta: objectMeta("web-old")}
	old.OwnerReferences = controlledBy(live, "Deployment")
	old.Spec.Replicas = ptr.To[int32](1)
	using := func(spec *corev1.PodSpec, secret string) {
		d := &appsv1.Deployment{}
		usingSecret(secret)(d)
		spec.Volumes = d.Spec.Template.Spec.Volumes
	}
	using(&old.Spec.Template.Spec, "old")
	scaled := old.DeepCopy()
	scaled.Spec.Replicas = ptr.To[int32](0)
	pod := &corev1.Pod{ObjectMeta: objectMeta("web-old-1"), Status: corev1.PodStatus{Phase: corev1.PodRunning}}
	pod.OwnerReferences = controlledBy(old, "ReplicaSet")
	using(&pod.Spec, "old")
	over := pod.DeepCopy()
	over.Status.Phase = corev1.PodFailed
	foreign := pod.DeepCopy()
	foreign.OwnerReferences = nil

	going := secret("old")
	going.DeletionTimestamp = &metav1.Time{}
	old.Spec.Template.Labels = map[string]string{"version": "1"}
	scaled.Spec.Template.Labels, pod.Labels = old.Spec.Template.Labels, old.Spec.Template.Labels
	old.Annotations = map[string]string{v1alpha1.AnnotationTemplate: "old"}
	scaled.Annotations = old.Annotations
	// What these are by their ReplicaSet above, and how the pods are shown there. The cluster says what it likes of them.
	setAbove := &appsv1.ReplicaSet{ObjectMeta: objectMeta("web-old")}
	setAbove.OwnerReferences = controlledBy(above, "Deployment")
	old.Spec.Template.Spec.DeepCopyInto(&setAbove.Spec.Template.Spec)
	setAbove.Spec.Template.Labels = old.Spec.Template.Labels
	using(&old.Spec.Template.Spec, "stolen")
	shown := func(of *corev1.Pod) *corev1.Pod {
		m := of.DeepCopy()
		m.OwnerReferences, m.Annotations = controlledBy(setAbove, "ReplicaSet"), map[string]string{v1alpha1.AnnotationCluster: "east"}
		return m
	}
	first, second := service("first", map[string]string{"version": "1"}), service("second", map[string]string{"version": "2"})
	for name, test := range map[string]struct {
		above projection.Object
		below []projection.Object
		shown *corev1.Pod // the mirror, if there is one
		want  bool
	}{
		"a pod of the earlier template":                   {secret("old"), []projection.Object{scaled, pod}, shown(pod), true},
		"a ReplicaSet of the earlier template":            {secret("old"), []projection.Object{old}, nil, true},
		"a pod that has ended":                            {secret("old"), []projection.Object{scaled, over}, shown(over), false},
		"somebody else's pod":                             {secret("old"), []projection.Object{scaled, foreign}, nil, false},
		"a pod that is not shown":                         {secret("old"), []projection.Object{scaled, pod}, nil, false},
		"what a ReplicaSet names in the cluster alone":    {secret("stolen"), []projection.Object{old}, nil, false},
		"nothing any more":                                {secret("old"), []projection.Object{scaled}, nil, false},
		"a pod, but the user deletes it, as on a cluster": {going, []projection.Object{scaled, pod}, shown(pod), false},
		"a pod names another":                             {secret("third"), []projection.Object{scaled, pod}, shown(pod), false},
		"the template":                                    {secret("new"), nil, nil, true},
		"a pod of the earlier template is selected":       {first, []projection.Object{scaled, pod}, shown(pod), true},
		"pods of the earlier template are to come":        {first, []projection.Object{old}, nil, true},
		"pods of another template are selected":           {second, []projection.Object{old, pod}, shown(pod), false},
	} {
		t.Run(name, func(t *testing.T) {
			held := test.above.DeepCopyObject().(projection.Object)
			held.SetUID("below")
			held.SetLabels(map[string]string{v1alpha1.LabelLogicalCluster: logicalCluster})
			objects := []projection.Object{above, setAbove, test.above}
			if test.shown != nil {
				objects = append(objects, test.shown)
			}
			s := attach(t, newUpstream(t, objects...), "east", append(test.below, live, held, namespace("shop"))...)
			kind, _ := projection.ForResource(resourceOf(test.above))
			desired, _, err := s.desired(kind, test.above, held)
			if err != nil || (desired != nil) != test.want {
				t.Errorf("it stays: %t (%v), want %t", desired != nil, err, test.want)
			}
		})
	}
}

func TestWhatPodsNamedIsLookedAtWhenTheyAreGone(t *testing.T) {
	spec := corev1.PodSpec{Volumes: []corev1.Volume{
		{Name: "a", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "old"}}},
		{Name: "b", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "elsewhere"}}},
	}}
	pod := &corev1.Pod{ObjectMeta: objectMeta("web-old-1"), Spec: spec}
	mirror := pod.DeepCopy()
	mirror.Labels, mirror.Annotations = map[string]string{"version": "1"}, map[string]string{v1alpha1.AnnotationCluster: "east"}
	over := mirror.DeepCopy()
	over.ResourceVersion, over.Status.Phase = "2", corev1.PodSucceeded
	set := &appsv1.ReplicaSet{ObjectMeta: objectMeta("web-old")}
	set.Spec.Replicas, set.Spec.Template.Spec = ptr.To[int32](1), spec
	set.Spec.Template.Labels = mirror.Labels
	scaled := set.DeepCopy()
	scaled.Spec.Replicas = ptr.To[int32](0)
	for name, happens := range map[string]func(s *Syncer){
		"a pod, whose mirror goes":     func(s *Syncer) { s.Upstream.router.Pods().OnDelete(mirror) },
		"a pod that ends":              func(s *Syncer) { s.Upstream.router.Pods().OnUpdate(mirror, over) },
		"a ReplicaSet":                 func(s *Syncer) { s.handlers.OfReplicaSets().OnDelete(set) },
		"the replicas of a ReplicaSet": func(s *Syncer) { s.handlers.OfReplicaSets().OnUpdate(set, scaled) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				held := secret("old")
				held.Labels = map[string]string{v1alpha1.LabelLogicalCluster: logicalCluster}
				selecting := service("first", map[string]string{"version": "1"})
				reached := selecting.DeepCopy()
				reached.Labels = held.Labels
				following := ingress("site", "first")
				led := following.DeepCopy()
				led.Labels = held.Labels
				s := attach(t, newUpstream(t, selecting, following, service("second", map[string]string{"version": "2"})), "east",
					held, reached, led, namespace("shop"))
				happens(s.Syncer)
				synctest.Wait()
				if got := s.enqueued(); len(got) > 0 {
					t.Errorf("looked at %v before a pod could be made anew", got)
				}
				time.Sleep(time.Minute)
				synctest.Wait()
				if got, want := s.enqueued(), []string{"ingresses shop/site", "secrets shop/old", "services shop/first"}; !slices.Equal(got, want) {
					t.Errorf("looked at %v, want %v", got, want)
				}
			})
		})
	}
}
