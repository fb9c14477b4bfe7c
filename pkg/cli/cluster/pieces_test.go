package cluster

import (
	"slices"
	"strings"
	"testing"

	manifoldv1alpha1 "github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
)

func TestPieces(t *testing.T) {
	all, err := pieces("0a1b2c3d-4e5f-6789")
	if err != nil {
		t.Fatal(err)
	}
	var kinds []string
	for _, p := range all {
		kinds = append(kinds, p.object.GetKind())
		if want := p.resource.GroupVersion().String(); p.object.GetAPIVersion() != want {
			t.Errorf("%s has the version %s, want %s", p, p.object.GetAPIVersion(), want)
		}
		if p.object.GetKind() != "Namespace" && !strings.HasPrefix(p.object.GetName(), "manifold-syncer-0a1b2c3d") {
			t.Errorf("%s does not carry the logical cluster's name", p)
		}
		if _, marked := p.object.GetLabels()[manifoldv1alpha1.LabelLogicalCluster]; marked {
			t.Errorf("%s is marked as owned, so the syncer would remove what it lives by", p)
		}
		if _, has := p.object.Object["status"]; has {
			t.Errorf("%s claims the status", p)
		}
	}
	if last := len(kinds) - 1; kinds[last] != "ClusterRoleBinding" || slices.Contains(kinds[:last], "ClusterRoleBinding") {
		t.Errorf("the order is %v: the syncer has rights before it is fenced in", kinds)
	}
}
