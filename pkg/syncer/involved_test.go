package syncer

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/identity"
	"github.com/manifold-dev/manifold/pkg/projection"
	"github.com/manifold-dev/manifold/pkg/syncer/states"
)

// What was projected a moment ago, and is to be elsewhere now, may not be in the breakdown yet.
func TestWhatThisProcessHasProjectedAClusterHas(t *testing.T) {
	web := deployment("web", `{"west":{"replicas":2}}`)
	s := attach(t, newUpstream(t, web), "east")
	w := identity.Workload{Kind: deployments, Object: web}
	if s.trust.Has(w) {
		t.Error("it has what it was never given")
	}
	s.states.Set(w.Key(), states.State{UID: "earlier", Hash: "x"})
	if s.trust.Has(w) {
		t.Error("it has what an earlier one of the name was")
	}
	s.states.Set(w.Key(), states.State{UID: web.UID, Hash: "x"})
	if !s.trust.Has(w) {
		t.Error("it does not have what was just projected")
	}
}

// The marks of a namespace do not tell who has made it.
func TestANamespaceInWhichNothingIsToRunStaysAsItIs(t *testing.T) {
	above := namespace("shop")
	above.Labels, above.Annotations = map[string]string{"team": "a"}, map[string]string{"note": "x"}
	live := namespace("shop")
	live.Labels = map[string]string{v1alpha1.LabelLogicalCluster: logicalCluster}
	s := attach(t, newUpstream(t, above), "east", live)
	kind, _ := projection.KindOf(above)
	desired, _, err := s.desired(kind, above, live)
	if err != nil || desired != projection.Object(live) {
		t.Errorf("desired is %v (%v), want it as it is", desired, err)
	}
	if action := kind.Plan(desired, live); action.Step != projection.Nothing {
		t.Errorf("the plan is to %s, as %s; want nothing", action.Step, action.Reason)
	}
}

// What goes there without a workload needs what the namespace says, as of the security of its pods.
func TestANamespaceOfWhatIsPinnedIsKeptInLine(t *testing.T) {
	for name, test := range map[string]struct {
		pin    string
		custom bool
		want   bool
	}{
		"a ConfigMap that is pinned there": {pin: "east", want: true},
		"one that is pinned elsewhere":     {pin: "west"},
		"a custom resource":                {custom: true, want: true},
	} {
		t.Run(name, func(t *testing.T) {
			above, live := namespace("shop"), namespace("shop")
			above.Labels = map[string]string{"team": "a"}
			live.Labels = map[string]string{v1alpha1.LabelLogicalCluster: logicalCluster}
			settings := &corev1.ConfigMap{ObjectMeta: objectMeta("settings")}
			settings.Annotations = map[string]string{v1alpha1.AnnotationClusters: test.pin}
			s := attach(t, newUpstream(t, above, settings), "east", live)
			s.planner.Uses = func(string, string) bool { return test.custom }
			kind, _ := projection.KindOf(above)
			desired, _, err := s.desired(kind, above, live)
			if err != nil || (desired.GetLabels()["team"] == "a") != test.want {
				t.Errorf("desired is %v (%v), want what the namespace says: %t", desired, err, test.want)
			}
		})
	}
}
