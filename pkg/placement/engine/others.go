package engine

import (
	"sync"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/tools/cache"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	informers "github.com/manifold-dev/manifold/generated/informers/externalversions/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/placement"
)

// others returns the workloads that affinity may be about: that of the policy of this one, or antiAffinity of theirs.
func (e *Engine) others(w placement.Workload, policy *placement.Policy) []placement.Other {
	needs, all := policy.NeedsOthers()
	kept := false
	var namespaced []v1alpha1.PlacementPolicy
	var wide []v1alpha1.ClusterPlacementPolicy
	if e.keepers.any() {
		each, _ := e.policies.List(labels.Everything()) // listing from a cache cannot fail
		eachWide, _ := e.clusterPolicies.List(labels.Everything())
		namespaced, wide = values(each), values(eachWide)
		var everywhere bool
		kept, everywhere = placement.KeptApart(&w, namespaced, wide)
		all = all || everywhere
	}
	if !needs && !kept {
		return nil
	}
	out := e.ledger.others(w.Namespace, all)
	for i := range out {
		if namespace, err := e.namespaces.Get(out[i].Namespace); err == nil {
			_, pinned := namespace.Annotations[v1alpha1.AnnotationClusters]
			out[i].NamespaceLabels, out[i].Pinned = namespace.Labels, out[i].Pinned || pinned
		}
	}
	if kept {
		placement.KeepApart(&w, out, namespaced, wide)
	}
	return out
}

// keepers are the policies with antiAffinity. Where there are none, decisions need not look for them.
type keepers struct {
	mu sync.Mutex
	// names has no namespace for a ClusterPlacementPolicy.
	names map[cache.ObjectName]bool
}

func (k *keepers) any() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return len(k.names) > 0
}

// watch registers with the informers of policies.
func (k *keepers) watch(own informers.Interface) (synced []cache.InformerSynced, err error) {
	k.names = map[cache.ObjectName]bool{}
	for _, informer := range []cache.SharedIndexInformer{own.PlacementPolicies().Informer(), own.ClusterPlacementPolicies().Informer()} {
		registration, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc:    k.see,
			UpdateFunc: func(_, obj any) { k.see(obj) },
			DeleteFunc: func(obj any) {
				if name, err := cache.DeletionHandlingObjectToName(obj); err == nil {
					k.set(name, false)
				}
			},
		})
		if err != nil {
			return nil, err
		}
		synced = append(synced, registration.HasSynced)
	}
	return synced, nil
}

func (k *keepers) see(obj any) {
	switch p := obj.(type) {
	case *v1alpha1.PlacementPolicy:
		k.set(cache.MetaObjectToName(p), len(p.Spec.AntiAffinity) > 0)
	case *v1alpha1.ClusterPlacementPolicy:
		k.set(cache.MetaObjectToName(p), len(p.Spec.AntiAffinity) > 0)
	}
}

func (k *keepers) set(name cache.ObjectName, keeps bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if keeps {
		k.names[name] = true
	} else {
		delete(k.names, name)
	}
}
