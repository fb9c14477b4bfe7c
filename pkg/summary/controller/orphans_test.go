package controller

import (
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
)

// What a cluster names otherwise has a ReplicaSet to itself, so it is not to run a second time under the name of the mirror.
func TestAFormerMirrorRunsWhatIsItsOwn(t *testing.T) {
	mirror := func(replicas int32, decision string, owned bool) *appsv1.ReplicaSet {
		rs := &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: "web-1", UID: "uid-of-web-1", ResourceVersion: "5",
			Annotations: map[string]string{v1alpha1.AnnotationPlacement: decision},
		}}
		rs.Spec.Replicas = ptr.To(replicas)
		if owned {
			rs.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(deployment("", ""), appsv1.SchemeGroupVersion.WithKind("Deployment"))}
		}
		return rs
	}
	const inEast = `{"east":{"replicas":2}}`
	for name, test := range map[string]struct {
		mirror *appsv1.ReplicaSet
		want   []string
	}{
		"it showed more":               {mirror(5, inEast, false), []string{"update replicasets"}},
		"it showed nothing of its own": {mirror(3, "", false), []string{"update replicasets"}},
		"it showed no more":            {mirror(2, inEast, false), nil},
		"not as long as it is one":     {mirror(5, inEast, true), nil},
	} {
		t.Run(name, func(t *testing.T) {
			h := start(t, test.mirror)
			if err := h.scaleToOwn(t.Context(), test.mirror); err != nil {
				t.Fatal(err)
			}
			if got := h.writes(); !slices.Equal(got, test.want) {
				t.Errorf("writes %v, want %v", got, test.want)
			}
		})
	}
}
