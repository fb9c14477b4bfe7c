package identity

import (
	"testing"

	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
)

func TestIdentitiesByName(t *testing.T) {
	for name, want := range map[string]struct {
		controller bool
		cluster    string
		syncer     bool
	}{
		v1alpha1.ControllerUser:        {controller: true},
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
	if _, syncer := SyncerCluster(nil); syncer || IsController(nil) {
		t.Error("nobody is somebody")
	}
}
