package syncer

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/manifold-dev/manifold/pkg/identity"
)

// claimHandler looks at claims of the cluster that change.
func (s *Syncer) claimHandler() cache.ResourceEventHandler {
	look := func(obj any) {
		if claim, ok := untombed(obj).(*corev1.PersistentVolumeClaim); ok && s.below.Ours(claim.Namespace) {
			s.claims.LookAt(claim)
			s.enqueueVolumesOf(cache.MetaObjectToName(claim))
			s.tellVolumesOf(claim)
		}
	}
	return cache.ResourceEventHandlerFuncs{
		AddFunc: look,
		UpdateFunc: func(old, obj any) {
			if old.(*corev1.PersistentVolumeClaim).ResourceVersion != obj.(*corev1.PersistentVolumeClaim).ResourceVersion {
				look(obj)
			}
		},
		DeleteFunc: func(obj any) {
			if claim, ok := untombed(obj).(*corev1.PersistentVolumeClaim); ok {
				s.claims.Look(cache.MetaObjectToName(claim))
				s.enqueueVolumesOf(cache.MetaObjectToName(claim))
			}
		},
	}
}

// claimHandler has syncers look at mirrors of claims that others delete, and at claims whose name is free again.
func (u *Upstream) claimHandler() cache.ResourceEventHandler {
	shown := func(obj any) {
		claim := obj.(*corev1.PersistentVolumeClaim)
		s, ok := u.Syncer(identity.ShownFrom(claim))
		if !ok {
			return
		}
		s.claims.Stored(claim)
		s.enqueueVolumesOf(cache.MetaObjectToName(claim))
		if claim.DeletionTimestamp != nil {
			s.claims.Look(cache.MetaObjectToName(claim))
		}
	}
	return cache.ResourceEventHandlerFuncs{
		AddFunc:    shown,
		UpdateFunc: func(_, obj any) { shown(obj) },
		DeleteFunc: func(obj any) {
			claim, ok := untombed(obj).(*corev1.PersistentVolumeClaim)
			if !ok {
				return
			}
			for _, s := range u.Syncers() {
				s.claims.Gone(claim)
				s.enqueueVolumesOf(cache.MetaObjectToName(claim))
				s.claims.Look(cache.MetaObjectToName(claim))
			}
		},
	}
}
