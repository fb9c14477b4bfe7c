package projection

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
)

func TestWhereAPodRuns(t *testing.T) {
	for name, test := range map[string]struct {
		node        string
		annotations map[string]string
		want        string
		uid         types.UID
	}{
		"a mirror, where Manifold says":                   {"east", map[string]string{v1alpha1.AnnotationCluster: "east"}, "east", "above"},
		"a mirror whose pod has no node":                  {"", map[string]string{v1alpha1.AnnotationCluster: "east"}, "east", "above"},
		"a pod of a user's that a cluster runs":           {"east", map[string]string{v1alpha1.AnnotationPodUID: "below"}, "east", "below"},
		"one that is not scheduled yet":                   {"", map[string]string{v1alpha1.AnnotationPodUID: "below", v1alpha1.AnnotationPodCluster: "east"}, "", "below"},
		"one that waits where its user wants it":          {"east", map[string]string{v1alpha1.AnnotationPodUID: "below", v1alpha1.AnnotationPodCluster: "east"}, "", "below"},
		"one of which a user has written the node":        {"east", nil, "", ""},
		"one that was decided to go where the user wrote": {"east", map[string]string{v1alpha1.AnnotationPlacement: `{"east":{"replicas":1}}`}, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: "above", Annotations: test.annotations}}
			if got := ClusterRunning(pod, test.node); got != test.want {
				t.Errorf("it runs in %q, want %q", got, test.want)
			}
			if got := UIDBelow(pod); got != test.uid {
				t.Errorf("its UID there is %q, want %q", got, test.uid)
			}
		})
	}
}

func TestWhatStandsForAnObject(t *testing.T) {
	marks := func(change func(*metav1.ObjectMeta)) metav1.ObjectMeta {
		out := metav1.ObjectMeta{
			Namespace: "shop", Name: "web", UID: "below",
			Labels: map[string]string{v1alpha1.LabelLogicalCluster: "logical"},
			Annotations: map[string]string{
				v1alpha1.AnnotationNamespace: "shop", v1alpha1.AnnotationName: "web", v1alpha1.AnnotationUID: "above",
			},
		}
		change(&out)
		return out
	}
	set := func(key, value string) func(*metav1.ObjectMeta) {
		return func(m *metav1.ObjectMeta) { m.Annotations[key] = value }
	}
	own := metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "above"}
	mirror := metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "below", Annotations: map[string]string{v1alpha1.AnnotationCluster: "east"}}
	for name, test := range map[string]struct {
		above, below metav1.ObjectMeta
		want         string
	}{
		"what was projected":               {own, marks(func(*metav1.ObjectMeta) {}), ""},
		"not a stranger's":                 {own, metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "below"}, "it does not carry the label manifold.dev/logical-cluster of this logical cluster"},
		"not another logical cluster's":    {own, marks(func(m *metav1.ObjectMeta) { m.Labels[v1alpha1.LabelLogicalCluster] = "other" }), "it does not carry the label manifold.dev/logical-cluster of this logical cluster"},
		"not another namespace's":          {own, marks(set(v1alpha1.AnnotationNamespace, "other")), "its marks name another object"},
		"not another object's":             {own, marks(set(v1alpha1.AnnotationName, "other")), "its marks name another object"},
		"not that of a namesake before it": {own, marks(set(v1alpha1.AnnotationUID, "before")), "its annotation manifold.dev/uid is not above"},
		"what is mirrored":                 {mirror, metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "below"}, ""},
		"not its successor":                {mirror, marks(func(m *metav1.ObjectMeta) { m.UID = "next" }), "its UID is not below"},
		"nothing without a UID":            {metav1.ObjectMeta{Annotations: mirror.Annotations}, metav1.ObjectMeta{}, "its UID is not "},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Differs(&test.above, &test.below, "logical"); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
	below := marks(func(m *metav1.ObjectMeta) { m.Labels = nil })
	if Differs(&own, &below, "") == "" {
		t.Error("what has no mark belongs to a logical cluster that does not know its own")
	}
}
