package server

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"
	mcs "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/clusters/sights"
	exports "github.com/manifold-dev/manifold/pkg/multicluster"
	multicluster "github.com/manifold-dev/manifold/pkg/multicluster/controller"
)

// newMultiCluster makes the controller of the Multi-Cluster Services API. It has nothing to do until its kinds are defined.
func (m *controllers) newMultiCluster() (*multicluster.Controller, error) {
	client, err := dynamic.NewForConfig(asJSON(m.identities.As(v1alpha1.MultiClusterUser)))
	if err != nil {
		return nil, err
	}
	return multicluster.New(multicluster.Options{
		Kube: m.informers, Manifold: m.own, Kinds: m.custom.Objects(), Endpoints: m.upstream.Endpoints, Imports: imports{m.imports},
		Client: m.clients[v1alpha1.MultiClusterUser].kube, Dynamic: client, Queues: m.queues,
	})
}

// newImports makes what shows the ServiceImports that clusters have by implementations of their own.
func (m *controllers) newImports() *sights.Sights {
	return sights.New(sights.Options{
		For: "exports of Services", Grant: "--allow-kind " + mcs.ServiceImportFullName, Trim: exports.TrimImport,
		Changed: func(_ string, wish sights.Wish, _, _ *unstructured.Unstructured) {
			m.exports.ImportChanged(cache.NewObjectName(wish.Namespace, wish.Name))
		},
	})
}

// imports shows ServiceImports to the controller.
type imports struct{ *sights.Sights }

// Want implements multicluster.Imports.
func (s imports) Want(export cache.ObjectName, kind schema.GroupVersionResource, clusters []string) {
	wishes := make(map[string][]sights.Wish, len(clusters))
	for _, cluster := range clusters {
		wishes[cluster] = []sights.Wish{importOf(export, kind)}
	}
	s.Sights.Want(export.String(), wishes)
}

// Look implements multicluster.Imports.
func (s imports) Look(export cache.ObjectName, kind schema.GroupVersionResource, cluster string) exports.Theirs {
	seen := s.Sights.Look(cluster, importOf(export, kind))
	if len(seen.Objects) == 0 {
		return exports.Theirs{Known: seen.Known, Problem: seen.Problem}
	}
	return exports.ReadImport(seen.Objects[0])
}

func importOf(export cache.ObjectName, kind schema.GroupVersionResource) sights.Wish {
	return sights.Wish{Resource: kind, Namespace: export.Namespace, Name: export.Name}
}
