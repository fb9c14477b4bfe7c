package engine

import (
	"sync"

	"k8s.io/client-go/tools/cache"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	informers "github.com/manifold-dev/manifold/generated/informers/externalversions/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/placement"
	"github.com/manifold-dev/manifold/pkg/placement/rules"
)

// others returns the workloads that affinity may be about: that of the policy of this one, or antiAffinity of theirs.
func (e *Engine) others(w placement.Workload, policy *placement.Policy) []placement.Other {
	needs, all := policy.NeedsOthers()
	if !needs && !e.affine.any() {
		return nil
	}
	policies := e.reading.All()
	kept, everywhere := rules.KeptApart(&w, policies)
	if !needs && !kept {
		return nil
	}
	out := e.ledger.others(w.Namespace, all || everywhere)
	for i := range out {
		if namespace, err := e.namespaces.Get(out[i].Namespace); err == nil {
			_, pinned := namespace.Annotations[v1alpha1.AnnotationClusters]
			out[i].NamespaceLabels, out[i].Pinned = namespace.Labels, out[i].Pinned || pinned
		}
	}
	if kept {
		rules.KeepApart(&w, out, policies)
	}
	return out
}

// affine are the policies with affinity or antiAffinity. Where there are none, decisions need not look for them.
type affine struct {
	mu sync.Mutex
	// names has no namespace for a ClusterPlacementPolicy.
	names map[cache.ObjectName]bool
}

func (a *affine) any() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.names) > 0
}

// watch registers with the informers of policies.
func (a *affine) watch(own informers.Interface) (synced []cache.InformerSynced, err error) {
	a.names = map[cache.ObjectName]bool{}
	for _, informer := range []cache.SharedIndexInformer{own.PlacementPolicies().Informer(), own.ClusterPlacementPolicies().Informer()} {
		registration, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc:    a.see,
			UpdateFunc: func(_, obj any) { a.see(obj) },
			DeleteFunc: func(obj any) {
				if name, err := cache.DeletionHandlingObjectToName(obj); err == nil {
					a.set(name, false)
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

func (a *affine) see(obj any) {
	switch p := obj.(type) {
	case *v1alpha1.PlacementPolicy:
		a.set(cache.MetaObjectToName(p), len(p.Spec.Affinity)+len(p.Spec.AntiAffinity) > 0)
	case *v1alpha1.ClusterPlacementPolicy:
		a.set(cache.MetaObjectToName(p), len(p.Spec.Affinity)+len(p.Spec.AntiAffinity) > 0)
	}
}

func (a *affine) set(name cache.ObjectName, is bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if is {
		a.names[name] = true
	} else {
		delete(a.names, name)
	}
}
