package contained

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/manifold-dev/manifold/pkg/projection"
)

// What delivery writes by rights of its own, it writes for everybody who may write Applications: a kind that bounds or gives rights must not come in
// by accident.
func TestApplicationsContainWhatClusterRoleEditHas(t *testing.T) {
	got := map[projection.Delivered][]string{}
	for _, kind := range Kinds() {
		got[kind.Delivered] = append(got[kind.Delivered], kind.Resource.GroupResource().String())
	}
	for _, resources := range got {
		slices.Sort(resources)
	}
	want := map[projection.Delivered][]string{
		projection.Selected: {
			"configmaps", "daemonsets.apps", "deployments.apps", "horizontalpodautoscalers.autoscaling", "ingresses.networking.k8s.io", "jobs.batch",
			"replicasets.apps", "replicationcontrollers", "secrets", "services", "statefulsets.apps",
		},
		projection.Selectable: {
			"cronjobs.batch", "networkpolicies.networking.k8s.io", "persistentvolumeclaims", "poddisruptionbudgets.policy", "serviceaccounts",
		},
		projection.Contained: {"pods"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestWhatASelectorSelectsUnaskedIsNamedFirst(t *testing.T) {
	if !slices.IsSortedFunc(Kinds(), func(a, b Kind) int { return int(b.Delivered) - int(a.Delivered) }) {
		t.Errorf("kinds: %v", Kinds())
	}
}

func TestNoKindThatIsForServiceAccountsToWriteIsAmongWhatDeliveryWrites(t *testing.T) {
	own := map[string]bool{}
	for _, kind := range Kinds() {
		own[kind.Resource.GroupResource().String()] = true
	}
	for _, kind := range append(Granted(), Applications, PlacementPolicies) {
		if own[kind.Resource.GroupResource().String()] {
			t.Errorf("delivery writes %s by rights of its own", kind.Resource.Resource)
		}
	}
}
