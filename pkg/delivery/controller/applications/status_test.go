package applications

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/internal/caches"
)

// reach has the release of a revision have brought it to targets, each with a cluster of its name, and has it end.
func (w *world) reach(revision string, targets ...string) {
	w.Helper()
	for _, release := range caches.All[*v1alpha1.Release](w.view.releases) {
		if release.Spec.Revision != revision {
			continue
		}
		reached := release.DeepCopy()
		reached.Status.Plan, reached.Status.Sequence = &v1alpha1.ReleasePlan{}, v1alpha1.RevisionNumber("web", revision)
		primary := v1alpha1.Variant{Name: v1alpha1.VariantPrimary}
		for _, target := range targets {
			reached.Status.Plan.Targets = append(reached.Status.Plan.Targets, v1alpha1.ResolvedTarget{Name: target, Clusters: []string{target}})
			primary.Clusters = append(primary.Clusters, v1alpha1.VariantCluster{Target: target, Cluster: target, Revision: revision})
		}
		reached.Status.Variants = []v1alpha1.Variant{primary}
		if _, err := w.client.DeliveryV1alpha1().Releases(release.Namespace).UpdateStatus(w.Context(), reached, metav1.UpdateOptions{}); err != nil {
			w.Fatal(err)
		}
	}
	w.settled()
	w.ends(v1alpha1.ReleaseSucceeded)
}

// shown is what a status tells of targets.
func shown(app *v1alpha1.Application) string {
	var out []string
	for _, target := range app.Status.Targets {
		out = append(out, strings.TrimSuffix(target.Name+" "+target.LiveRevision+" "+target.Message, " "))
	}
	return strings.Join(out, "; ")
}

// What runs in a target is told also after the newest revision has dropped it, until a release has left it.
func TestADroppedTargetIsShownUntilItIsLeft(t *testing.T) {
	app := inline(configMap("red"))
	app.Spec.Targets = []v1alpha1.Target{{Name: "east", Cluster: "east"}, {Name: "west", Cluster: "west"}}
	w := newWorld(t, nil, app)
	w.turn()
	w.reach("web-v1", "east", "west")
	if got, want := shown(w.turn()), "east web-v1; west web-v1"; got != want {
		t.Fatalf("shown is %q, want %q", got, want)
	}
	w.change(func(spec *v1alpha1.ApplicationSpec) {
		spec.Trigger.Mode, spec.Targets = v1alpha1.TriggerManual, spec.Targets[:1]
		spec.Source.Inline.Objects[0].Raw = []byte(configMap("blue"))
	})
	if got, want := shown(w.turn()), "east web-v1; west web-v1 west: spec.targets does not have this target any more"; w.revisionNames() != "web-v1 web-v2" || got != want {
		t.Errorf("shown is %q, want %q; revisions are %s", got, want, w.revisionNames())
	}
	w.change(func(spec *v1alpha1.ApplicationSpec) { spec.Trigger.Mode = v1alpha1.TriggerAutomatic })
	w.turn()
	w.reach("web-v2", "east")
	if got, want := shown(w.turn()), "east web-v2"; got != want {
		t.Errorf("shown is %q, want %q", got, want)
	}
}
