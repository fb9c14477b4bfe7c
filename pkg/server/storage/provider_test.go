package storage

import (
	"strings"
	"testing"

	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"
	genericapiserver "k8s.io/apiserver/pkg/server"
	controlplaneapiserver "k8s.io/kubernetes/pkg/controlplane/apiserver"
	deploymentstore "k8s.io/kubernetes/pkg/registry/apps/deployment/storage"
	replicasetstore "k8s.io/kubernetes/pkg/registry/apps/replicaset/storage"
)

// group is the provider of an API group.
type group struct {
	controlplaneapiserver.RESTStorageProvider
	name string
}

func (g group) GroupName() string { return g.name }

// hooked is one that starts something with the server.
type hooked struct{ group }

func (hooked) PostStartHook() (string, genericapiserver.PostStartHookFunc, error) {
	return "hook of " + "core", nil, nil
}

func TestOnlyTheGroupsThatDifferAreWrapped(t *testing.T) {
	in := []controlplaneapiserver.RESTStorageProvider{group{name: "autoscaling"}, group{name: "apps"}, hooked{group{name: ""}}}
	out := Change(in, Options{})
	if len(out) != 3 {
		t.Fatalf("%d providers, want 3", len(out))
	}
	if out[0] != in[0] {
		t.Errorf("autoscaling became a %T", out[0])
	}
	if _, ok := out[1].(provider); !ok {
		t.Errorf("apps became a %T", out[1])
	}
	hook, ok := out[2].(genericapiserver.PostStartHookProvider)
	if !ok {
		t.Fatalf("the core group lost its start hook: a %T", out[2])
	}
	if name, _, _ := hook.PostStartHook(); name != "hook of core" {
		t.Errorf("hook %q", name)
	}
}

// Storage that is not what the pinned version has must stop the server, not serve workloads that nobody places.
func TestStorageOfAnotherShapeIsRefused(t *testing.T) {
	for name, test := range map[string]struct {
		change  change
		storage map[string]rest.Storage
		want    string
	}{
		"no ReplicaSets":        {placed("apps"), map[string]rest.Storage{}, "storage of replicasets is a <nil>"},
		"something else there":  {changeCore, map[string]rest.Storage{"pods": &deploymentstore.REST{}}, "storage of pods is a *storage.REST"},
		"strategies of another": {placed("apps"), map[string]rest.Storage{"replicasets": &replicasetstore.REST{Store: &genericregistry.Store{}}}, "create strategy"},
	} {
		t.Run(name, func(t *testing.T) {
			if err := test.change(test.storage, Options{}); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v, want %q in it", err, test.want)
			}
		})
	}
}
