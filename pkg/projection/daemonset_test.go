package projection

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/manifold-dev/manifold/pkg/placement"
)

func TestDaemonSetsKeepWhatSpeaksOfNodes(t *testing.T) {
	in := &appsv1.DaemonSet{ObjectMeta: named("shop", "agent")}
	in.Annotations = map[string]string{appsv1.DeprecatedTemplateGeneration: "7", "note": "mine"}
	in.Spec.Template.Spec.NodeSelector = map[string]string{"disk": "ssd"}
	in.Spec.Template.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
	in.Spec.UpdateStrategy.Type = appsv1.OnDeleteDaemonSetStrategyType
	kind, _ := KindOf(in)
	out := project(t, kind, in, placement.Share{}).(*appsv1.DaemonSet)
	if spec := out.Spec.Template.Spec; spec.NodeSelector["disk"] != "ssd" || len(spec.Tolerations) != 1 {
		t.Errorf("projected template %+v, want the node selector and the toleration in it", spec)
	}
	if out.Spec.UpdateStrategy.Type != appsv1.OnDeleteDaemonSetStrategyType {
		t.Errorf("projected strategy %+v, want OnDelete", out.Spec.UpdateStrategy)
	}
	if out.Annotations["note"] != "mine" {
		t.Error("the user's annotation is lost")
	}
	if _, ok := out.Annotations[appsv1.DeprecatedTemplateGeneration]; ok {
		t.Error("the count of changes above is projected: each cluster counts for itself")
	}
	demand := kind.Demand(in)
	if demand.Division != placement.Everywhere || demand.Replicas != 0 || demand.Template == nil {
		t.Errorf("demand %+v, want it everywhere, with no number of replicas", demand)
	}
}

// A cluster that waits has the new template for pods that are made anyway, and replaces none.
func TestADaemonSetThatWaitsReplacesNoPods(t *testing.T) {
	in := &appsv1.DaemonSet{ObjectMeta: named("shop", "agent")}
	in.Spec.UpdateStrategy = appsv1.DaemonSetUpdateStrategy{
		Type: appsv1.RollingUpdateDaemonSetStrategyType, RollingUpdate: &appsv1.RollingUpdateDaemonSet{},
	}
	kind, _ := KindOf(in)
	for waits, want := range map[bool]appsv1.DaemonSetUpdateStrategyType{
		true: appsv1.OnDeleteDaemonSetStrategyType, false: appsv1.RollingUpdateDaemonSetStrategyType,
	} {
		out, err := kind.Project(in, Part{Waits: waits}, Target{LogicalCluster: "logical", Cluster: "east"})
		if err != nil {
			t.Fatal(err)
		}
		if got := out.(*appsv1.DaemonSet).Spec.UpdateStrategy; got.Type != want || (got.RollingUpdate == nil) != waits {
			t.Errorf("waits %t: strategy %+v, want %s", waits, got, want)
		}
	}
}
