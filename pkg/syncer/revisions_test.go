package syncer

import (
	"reflect"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/identity"
	"github.com/manifold-dev/manifold/pkg/mirror"
	"github.com/manifold-dev/manifold/pkg/projection"
)

// statefulSet is one of the logical cluster. Decision is the annotation.
func statefulSet(name, decision string, replicas int32) *appsv1.StatefulSet {
	set := &appsv1.StatefulSet{ObjectMeta: objectMeta(name)}
	set.Annotations = map[string]string{v1alpha1.AnnotationPlacement: decision}
	set.Spec.Replicas = ptr.To(replicas)
	set.Spec.Template.Labels = map[string]string{"app": name}
	return set
}

// projectedSet is a StatefulSet as a cluster holds it for the one above: so many replicas from an ordinal on.
func projectedSet(above *appsv1.StatefulSet, start, replicas int32) *appsv1.StatefulSet {
	set := above.DeepCopy()
	set.UID, set.Generation = above.UID+"-below", 1
	set.Labels = map[string]string{v1alpha1.LabelLogicalCluster: logicalCluster}
	set.Annotations = map[string]string{
		v1alpha1.AnnotationNamespace: above.Namespace, v1alpha1.AnnotationName: above.Name, v1alpha1.AnnotationUID: string(above.UID),
		v1alpha1.AnnotationProjection: "hash",
	}
	set.Spec.Replicas, set.Spec.Ordinals = ptr.To(replicas), &appsv1.StatefulSetOrdinals{Start: start}
	set.Status = appsv1.StatefulSetStatus{ObservedGeneration: 1, Replicas: replicas}
	return set
}

// revisionBelow is what a cluster's controller made to remember a template of an object.
func revisionBelow(owner projection.Object, kind, name, hash string) *appsv1.ControllerRevision {
	revision := &appsv1.ControllerRevision{ObjectMeta: objectMeta(name), Data: runtime.RawExtension{Raw: []byte("{}")}}
	revision.Annotations = map[string]string{v1alpha1.AnnotationTemplate: hash, "other": "annotation"}
	revision.OwnerReferences = controlledBy(owner, kind)
	return revision
}

// podBelow is a pod of a StatefulSet, labelled with the revision that it carries out.
func podBelow(owner projection.Object, name, revision string) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: objectMeta(name), Spec: corev1.PodSpec{NodeName: "node-1"}}
	pod.Labels = map[string]string{appsv1.ControllerRevisionHashLabelKey: revision}
	pod.OwnerReferences = controlledBy(owner, "StatefulSet")
	return pod
}

func TestRevisionsBelowAreNamedByTheirUpstreamTemplates(t *testing.T) {
	above := statefulSet("db", toEast, 3)
	live := projectedSet(above, 0, 3)
	another := projectedSet(above, 0, 3)
	another.UID = "an-earlier-one"
	pod := podBelow(live, "db-0", "db-below-2")
	s := attach(t, newUpstream(t, above), "east", live, pod,
		revisionBelow(live, "StatefulSet", "db-below-1", "one"), revisionBelow(live, "StatefulSet", "db-below-2", "two"),
		revisionBelow(another, "StatefulSet", "db-earlier", "zero"), revisionBelow(live, "StatefulSet", "db-by-hand", ""))
	key := identity.Key{Resource: statefulSetResource, Namespace: "shop", Name: "db"}

	report, known := s.reports.Report(key, above)
	if want := map[string]string{"db-below-1": "one", "db-below-2": "two"}; !known || !reflect.DeepEqual(report.Revisions, want) {
		t.Errorf("revisions %v, want %v", report.Revisions, want)
	}
	if got, want := s.reports.TemplatesInUse(key), map[string]bool{"two": true}; !reflect.DeepEqual(got, want) {
		t.Errorf("in use are %v, want %v", got, want)
	}
	owner := s.owners.OfMirror(pod)
	if owner == nil || owner.References[0].UID != above.UID {
		t.Fatalf("the mirror belongs to %+v, want the StatefulSet above", owner)
	}
	if got := mirror.ShowPod(pod, "east", owner.References, owner.Labels).Labels[appsv1.ControllerRevisionHashLabelKey]; got != "db-two" {
		t.Errorf("the mirror names revision %q, want that of the logical cluster", got)
	}
}

func TestAMirrorNamesItsRevisionAsItsOwnerWould(t *testing.T) {
	above := statefulSet("db", toEast, 1)
	live := projectedSet(above, 0, 1)
	byHash := revisionBelow(live, "StatefulSet", "db-xyz", "one")
	byHash.Labels = map[string]string{appsv1.ControllerRevisionHashLabelKey: "xyz"}
	for name, test := range map[string]struct {
		revision *appsv1.ControllerRevision
		label    string
		want     string
	}{
		"a StatefulSet's by name":           {revisionBelow(live, "StatefulSet", "db-below", "one"), "db-below", "db-one"},
		"a DaemonSet's by hash":             {byHash, "xyz", "one"},
		"one that is not known yet":         {revisionBelow(live, "StatefulSet", "db-below", "one"), "db-newer", "db-newer"},
		"one that carries out nothing ours": {revisionBelow(live, "StatefulSet", "db-below", ""), "db-below", "db-below"},
	} {
		t.Run(name, func(t *testing.T) {
			pod := podBelow(live, "db-0", test.label)
			s := attach(t, newUpstream(t, above), "east", live, pod, test.revision)
			owner := s.owners.OfMirror(pod)
			if got := mirror.ShowPod(pod, "east", owner.References, owner.Labels).Labels[appsv1.ControllerRevisionHashLabelKey]; got != test.want {
				t.Errorf("the mirror names %q, want %q", got, test.want)
			}
		})
	}
}

// A pod may be seen before the revision that it carries out.
func TestANewRevisionHasPodsLookedAtAgain(t *testing.T) {
	above := statefulSet("db", toEast, 1)
	live := projectedSet(above, 0, 1)
	pod := podBelow(live, "db-0", "db-below")
	s := attach(t, newUpstream(t, above), "east", namespace("shop"), live, pod)
	handler := s.handlers.OfRevisions()
	revision := revisionBelow(live, "StatefulSet", "db-below", "one")
	handler.OnAdd(revision, false)
	if got, _ := s.pods.Queue.Get(); got != cache.NewObjectName("shop", "db-0") {
		t.Errorf("looks at pod %v, want db-0", got)
	}
	if want := (change{identity.Key{Resource: statefulSetResource, Namespace: "shop", Name: "db"}, false}); len(s.changes) != 1 || s.changes[0] != want {
		t.Errorf("told %v, want %v", s.changes, want)
	}
	handler.OnUpdate(revision, revision)
	handler.OnAdd(revisionBelow(statefulSet("foreign", "", 1), "StatefulSet", "foreign-1", "one"), false)
	if len(s.changes) != 1 {
		t.Errorf("told %v, want nothing more of what did not change or is not ours", s.changes)
	}
}
