// Package classes knows the classes of APIs, such as PriorityClasses: which of those that objects name a cluster lacks, and which of them come along with
// workloads.
package classes

import (
	"fmt"
	"slices"
	"strings"

	nodev1 "k8s.io/api/node/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/internal/text"
	"github.com/manifold-dev/manifold/pkg/projection"
)

// Set are the classes of an API, by what it serves them as. There are few of them, in any cluster.
type Set map[schema.GroupVersionResource]cache.SharedIndexInformer

func Of(factory informers.SharedInformerFactory) (Set, error) {
	out := Set{}
	for _, class := range projection.Classes() {
		generic, err := factory.ForResource(class.Resource)
		if err != nil {
			return nil, fmt.Errorf("watch %s: %w", class.Resource.Resource, err)
		}
		out[class.Resource] = generic.Informer()
	}
	return out, nil
}

func (c Set) have(r projection.Requirement) bool {
	_, ok, err := c[r.Class.Resource].GetIndexer().GetByKey(r.Name)
	return err == nil && ok
}

// mostClasses bounds how many classes of a kind a cluster's status names. One that has more has them all, as far as placement knows.
const mostClasses = 1000

// OfferedTo returns the classes of a cluster, without those that it has of the logical cluster; nil if they are too many to be told.
func (c Set) OfferedTo(logicalCluster string) *v1alpha1.ClusterClasses {
	out := &v1alpha1.ClusterClasses{}
	for _, informer := range c {
		all := informer.GetStore().List()
		if len(all) > mostClasses {
			return nil
		}
		for _, obj := range all {
			o, ok := obj.(metav1.Object)
			if !ok || text.Line(o.GetName(), validation.DNS1123SubdomainMaxLength) != o.GetName() {
				continue // it is no name, which nobody can give
			}
			switch class := obj.(type) {
			case *schedulingv1.PriorityClass:
				if origin, marked := projection.OriginOf(class); !marked || origin.LogicalCluster != logicalCluster {
					out.PriorityClasses = append(out.PriorityClasses, class.Name)
				}
			case *nodev1.RuntimeClass:
				out.RuntimeClasses = append(out.RuntimeClasses, class.Name)
			case *storagev1.StorageClass:
				out.StorageClasses = append(out.StorageClasses, v1alpha1.ClusterStorageClass{
					Name: class.Name, Default: isDefault(class), WaitForFirstConsumer: waitsForConsumer(class),
					ByHand: class.Provisioner == noProvisioner,
				})
			}
		}
	}
	slices.Sort(out.PriorityClasses)
	slices.Sort(out.RuntimeClasses)
	slices.SortFunc(out.StorageClasses, func(a, b v1alpha1.ClusterStorageClass) int { return strings.Compare(a.Name, b.Name) })
	return out
}

// What marks the StorageClass of claims that name none, now and as it was.
const (
	defaultStorage     = "storageclass.kubernetes.io/is-default-class"
	betaDefaultStorage = "storageclass.beta.kubernetes.io/is-default-class"
)

// noProvisioner is the provisioner of StorageClasses whose volumes are made by hand.
const noProvisioner = "kubernetes.io/no-provisioner"

func isDefault(class *storagev1.StorageClass) bool {
	return class.Annotations[defaultStorage] == "true" ||
		class.Annotations[betaDefaultStorage] == "true"
}

func waitsForConsumer(class *storagev1.StorageClass) bool {
	return ptr.Deref(class.VolumeBindingMode, storagev1.VolumeBindingImmediate) == storagev1.VolumeBindingWaitForFirstConsumer
}
