package grants

import (
	"slices"
	"strings"
	"testing"

	manifoldv1alpha1 "github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
)

func TestPieces(t *testing.T) {
	all, err := assemble(everywhere("0a1b2c3d-4e5f-6789")...)
	if err != nil {
		t.Fatal(err)
	}
	var kinds []string
	for _, p := range all {
		kinds = append(kinds, p.Object.GetKind())
		if want := p.Resource.GroupVersion().String(); p.Object.GetAPIVersion() != want {
			t.Errorf("%s has the version %s, want %s", p, p.Object.GetAPIVersion(), want)
		}
		if p.Object.GetKind() != "Namespace" && !strings.HasPrefix(p.Object.GetName(), "manifold-syncer-0a1b2c3d") {
			t.Errorf("%s does not carry the logical cluster's name", p)
		}
		if _, marked := p.Object.GetLabels()[manifoldv1alpha1.LabelLogicalCluster]; marked {
			t.Errorf("%s is marked as owned, so the syncer would remove what it lives by", p)
		}
		if _, has := p.Object.Object["status"]; has {
			t.Errorf("%s claims the status", p)
		}
	}
	if last := len(kinds) - 1; kinds[last] != "ClusterRoleBinding" || slices.Contains(kinds[:last], "ClusterRoleBinding") {
		t.Errorf("the order is %v: the syncer has rights before it is fenced in", kinds)
	}
}
