package identity

import (
	"slices"
	"testing"

	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
)

func TestIdentitiesByName(t *testing.T) {
	for name, want := range map[string]struct {
		controller bool
		cluster    string
		syncer     bool
	}{
		v1alpha1.SummaryUser:           {controller: true},
		v1alpha1.DrainUser:             {controller: true},
		v1alpha1.ControllerUser:        {}, // which was all of them once
		"system:manifold:cluster:east": {cluster: "east", syncer: true},
		"system:manifold:clusters":     {},
		"jane":                         {},
	} {
		u := &user.DefaultInfo{Name: name}
		cluster, syncer := SyncerCluster(u)
		if IsController(u) != want.controller || syncer != want.syncer || syncer && cluster != want.cluster {
			t.Errorf("%s: controller %t, syncer %t of %q; want %+v", name, IsController(u), syncer, cluster, want)
		}
	}
	for name, want := range map[string]bool{v1alpha1.DeliveryUser: true, v1alpha1.PlacementUser: false, v1alpha1.DeliveryUser + "s": false, "jane": false} {
		if u := (&user.DefaultInfo{Name: name}); Delivers(u) != want || ByDelivery(request.WithUser(t.Context(), u)) != want {
			t.Errorf("%s is delivery: %t, want %t", name, !want, want)
		}
	}
	if Delivers(nil) || ByDelivery(t.Context()) {
		t.Error("nobody is delivery")
	}
	if _, syncer := SyncerCluster(nil); syncer || IsController(nil) {
		t.Error("nobody is somebody")
	}
}

func TestWhoseWritesAreStoredAsTheyCome(t *testing.T) {
	stored := []string{v1alpha1.PlacementUser, v1alpha1.RemovalUser, v1alpha1.SummaryUser}
	for _, name := range append(Controllers(), v1alpha1.ControllerUser, "system:manifold:cluster:east", "jane") {
		ctx := request.WithUser(t.Context(), &user.DefaultInfo{Name: name})
		if got, want := ByController(ctx), slices.Contains(stored, name); got != want {
			t.Errorf("%s: %t, want %t", name, got, want)
		}
		if got, want := FromWithin(ctx), IsController(&user.DefaultInfo{Name: name}) || name == "system:manifold:cluster:east"; got != want {
			t.Errorf("%s is of this process: %t, want %t", name, got, want)
		}
	}
}
