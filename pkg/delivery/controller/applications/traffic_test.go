package applications

import (
	"strings"
	"testing"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/internal/caches"
)

// Clusters hold what revisions say, so that is where the label has to be by which the pods of variants are told apart.
func TestRevisionsTellPodsApartWhereRequestsAreSharedOut(t *testing.T) {
	w := newWorld(t, nil, inline(deployment, configMap("blue")))
	w.turn()
	label := func() string {
		w.Helper()
		revisions := caches.All[*v1alpha1.ApplicationRevision](w.view.revisions)
		newest := revisions[0]
		for _, revision := range revisions {
			if revision.Spec.Number > newest.Spec.Number {
				newest = revision
			}
		}
		for _, object := range newest.Spec.Objects {
			if object.Manifest != nil && strings.Contains(string(object.Manifest.Raw), `"delivery.manifold.dev/variant":"primary"`) {
				return newest.Name + " has it"
			}
		}
		return newest.Name + " has none"
	}
	if got := label(); got != "web-v1 has none" {
		t.Error(got)
	}
	w.change(func(spec *v1alpha1.ApplicationSpec) {
		spec.Traffic = &v1alpha1.Traffic{Method: v1alpha1.TrafficReplicas}
	})
	w.turn()
	if got := label(); got != "web-v2 has it" {
		t.Error(got)
	}
}
