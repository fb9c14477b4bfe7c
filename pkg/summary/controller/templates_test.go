package controller

import (
	"encoding/json"
	"fmt"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"

	delivery "github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	deliverylisters "github.com/manifold-dev/manifold/generated/listers/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/delivery/contents"
	"github.com/manifold-dev/manifold/pkg/delivery/held"
	"github.com/manifold-dev/manifold/pkg/projection"
	"github.com/manifold-dev/manifold/pkg/summary"
)

func ofImage(image string, generation int64) *appsv1.Deployment {
	d := deployment("", "")
	d.Generation = generation
	d.Spec.Template.Spec.Containers = []corev1.Container{{Name: "web", Image: image}}
	d.Annotations["kubernetes.io/change-cause"] = image
	return d
}

func TestATemplateThatWasThereForAMomentIsKept(t *testing.T) {
	before, after := ofImage("web:1", 1), ofImage("web:2", 2)
	hash := projection.TemplateHash(&before.Spec.Template)
	mirror := &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: summary.ReplicaSetName("web", hash)}}
	scaled := ofImage("web:1", 2)

	h := start(t)
	h.templates.record(before, scaled)
	if got := h.templates.get(before.UID, hash); got != nil {
		t.Errorf("what stays is kept: %+v", got)
	}
	h.templates.record(before, after)
	got := h.templates.get(before.UID, hash)
	if got == nil || got.Template.Spec.Containers[0].Image != "web:1" || got.Annotations["kubernetes.io/change-cause"] != "web:1" {
		t.Fatalf("it is kept as %+v", got)
	}
	if other := h.templates.get(before.UID, "another"); other != nil {
		t.Errorf("another is kept as %+v", other)
	}
	for i := range 3 * int64(mostTemplates) {
		h.templates.record(ofImage(fmt.Sprint(i), i), ofImage(fmt.Sprint(i+1), i+1))
	}
	if kept := len(h.templates.byID[before.UID]); kept != mostTemplates {
		t.Errorf("%d are kept, want %d", kept, mostTemplates)
	}
	h.templates.gone(after)
	if len(h.templates.byID) != 0 {
		t.Error("what is gone is kept")
	}

	h = start(t, mirror)
	h.templates.record(before, after)
	if got := h.templates.get(before.UID, hash); got != nil {
		t.Errorf("what has a ReplicaSet is kept: %+v", got)
	}
}

// A target may have a template that the object above never had.
func TestATemplateOfARevisionIsKnown(t *testing.T) {
	above, west := ofImage("web:8", 1), ofImage("web:7", 1)
	west.TypeMeta = metav1.TypeMeta{APIVersion: "apps/v1", Kind: "Deployment"}
	raw, err := json.Marshal(west)
	if err != nil {
		t.Fatal(err)
	}
	hash, err := delivery.HashManifest(raw)
	if err != nil {
		t.Fatal(err)
	}
	revision := &delivery.ApplicationRevision{ObjectMeta: metav1.ObjectMeta{Namespace: above.Namespace, Name: "web-v7", UID: "seven"}}
	revision.Spec.Objects = []delivery.RevisionObject{{Hash: hash, Manifest: &runtime.RawExtension{Raw: raw}}}
	revision.Spec.Targets = []delivery.RevisionTarget{{Name: "eu", Hash: delivery.HashObjects([]string{hash}), Objects: []string{hash}}}
	revision.Spec.Hash = delivery.HashRevision(revision.Spec.Targets)
	revisions := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
	if err := revisions.Add(revision); err != nil {
		t.Fatal(err)
	}
	h := start(t)
	h.templates.versions = held.New(contents.New(deliverylisters.NewApplicationRevisionLister(revisions), nil), nil)
	of := projection.TemplateHash(&west.Spec.Template)
	if got := h.templates.recorded(above, of); got != nil {
		t.Errorf("it is known as %+v although no cluster is held at the revision", got)
	}
	above.Annotations[v1alpha1.AnnotationPlacement] = `{"west":{"replicas":1,"revision":"web-v7","target":"eu"}}`
	if got := h.templates.recorded(above, of); got == nil || got.Template.Spec.Containers[0].Image != "web:7" {
		t.Errorf("it is known as %+v, want that of the revision", got)
	}
	if got := h.templates.recorded(above, "another"); got != nil {
		t.Errorf("another is known as %+v", got)
	}
}

func TestATemplateIsOneThatTheLogicalClusterHas(t *testing.T) {
	d := ofImage("web:2", 2)
	current := projection.TemplateHash(&d.Spec.Template)
	mirror := &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{appsv1.DefaultDeploymentUniqueLabelKey: "old"}}}
	mirror.Spec.Template.Spec.Containers = []corev1.Container{{Image: "web:1"}}
	h := start(t)
	for name, test := range map[string]struct {
		hash   string
		mirror *appsv1.ReplicaSet
		want   string
	}{
		"the one in use":               {current, nil, "web:2"},
		"one in the history":           {"old", mirror, "web:1"},
		"the mirror is of another one": {"evil", mirror, ""},
		"one that only a cluster has":  {"evil", nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			got := ""
			if recorded := h.templates.of(d, test.hash, test.mirror); recorded != nil {
				got = recorded.Template.Spec.Containers[0].Image
			}
			if got != test.want {
				t.Errorf("it is of image %q, want %q", got, test.want)
			}
		})
	}
}

func TestOnlyWhatTheSelectorMeetsIsTakenOver(t *testing.T) {
	web := deployment("", "")
	web.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
	h := start(t, web)
	by := metav1.NewControllerRef(web, appsv1.SchemeGroupVersion.WithKind("Deployment"))
	another := by.DeepCopy()
	another.UID = "another"
	for name, test := range map[string]struct {
		labels map[string]string
		by     *metav1.OwnerReference
		want   bool
	}{
		"what it selects":                   {map[string]string{"app": "web", "tier": "a"}, by, true},
		"what it does not select":           {map[string]string{"app": "db"}, by, false},
		"what an earlier one may have":      {map[string]string{"app": "web"}, another, false},
		"by something that is not there":    {map[string]string{"app": "web"}, &metav1.OwnerReference{Kind: "Deployment", Name: "db"}, false},
		"by something that is no such kind": {map[string]string{"app": "web"}, &metav1.OwnerReference{Kind: "Job", Name: "web", UID: web.UID}, false},
	} {
		t.Run(name, func(t *testing.T) {
			rs := &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "made-by-hand", Labels: test.labels}}
			if got := h.wouldAdopt(test.by, rs); got != test.want {
				t.Errorf("it is taken over: %t, want %t", got, test.want)
			}
		})
	}
}
