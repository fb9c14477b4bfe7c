package syncer

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
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
	"github.com/manifold-dev/manifold/pkg/identity"
	"github.com/manifold-dev/manifold/pkg/projection"
)

// reasonClassMissing is that of the events about a class that a cluster does not have.
const reasonClassMissing = "ClassMissing"

// classes are the classes of an API, by what it serves them as. There are few of them, in any cluster.
type classes map[schema.GroupVersionResource]cache.SharedIndexInformer

func classesOf(factory informers.SharedInformerFactory) (classes, error) {
	out := classes{}
	for _, class := range projection.Classes() {
		generic, err := factory.ForResource(class.Resource)
		if err != nil {
			return nil, fmt.Errorf("watch %s: %w", class.Resource.Resource, err)
		}
		out[class.Resource] = generic.Informer()
	}
	return out, nil
}

func (c classes) have(r projection.Requirement) bool {
	_, ok, err := c[r.Class.Resource].GetIndexer().GetByKey(r.Name)
	return err == nil && ok
}

// missing returns the classes that an object names, that exist above, and that the cluster does not have. One that does not exist above
// either is as wrong as in any cluster, which tells it in its own way.
func (s *Syncer) missing(kind projection.Kind, above projection.Object) []projection.Requirement {
	return slices.DeleteFunc(kind.Requires(above), func(r projection.Requirement) bool {
		return s.below.classes.have(r) || !s.Upstream.classes.have(r)
	})
}

// classRefusal is why the cluster cannot make pods of a workload, or "". It reports as well whether the class is about to come along.
func (s *Syncer) classRefusal(of identity.Key, missing []projection.Requirement) (reason string, waits bool) {
	s.unwait(of)
	for _, r := range missing {
		if !r.ForPods {
			continue
		}
		if coming, problem := s.comesAlong(of, r); coming {
			return problem, problem == ""
		}
		return refusal(missing), false
	}
	return "", false
}

func refusal(missing []projection.Requirement) string {
	for _, r := range missing {
		if r.ForPods {
			return fmt.Sprintf("it has no %s %q, without which %s: create it there, or name another one", r.Class.Kind, r.Name, r.Class.Without)
		}
	}
	return ""
}

// note tells of classes without which the cluster takes an object and does nothing with it, or "".
func note(missing []projection.Requirement) string {
	for _, r := range missing {
		if !r.ForPods {
			return fmt.Sprintf("it has no %s %q, so %s: install what serves it, or name another one", r.Class.Kind, r.Name, r.Class.Without)
		}
	}
	return ""
}

// tellNote writes the event about a note that is new.
func (s *Syncer) tellNote(key identity.Key, above projection.Object, note string) {
	if note != "" && note != s.stateOf(key).note {
		s.Recorder.Eventf(above, corev1.EventTypeWarning, reasonClassMissing, "cluster %q: %s", s.cluster, note)
	}
}

// classHandler looks again at everything that may have waited for a class, and has the cluster's status name those that there are.
func (s *Syncer) classHandler() cache.ResourceEventHandler {
	return cache.ResourceEventHandlerFuncs{
		AddFunc: func(obj any) {
			s.tellClasses()
			s.priorityChanged(obj)
			s.mu.Lock()
			defer s.mu.Unlock()
			for key, st := range s.states {
				if st.problem != "" || st.note != "" {
					s.enqueue(key)
				}
			}
		},
		UpdateFunc: func(_, obj any) {
			s.tellClasses()
			s.priorityChanged(obj)
		},
		DeleteFunc: func(obj any) {
			s.tellClasses()
			s.priorityChanged(obj)
		},
	}
}

// tellClasses passes on which classes the cluster has, once all of them are known.
func (s *Syncer) tellClasses() {
	if s.HasSynced() {
		s.offered.Set(s.below.classes.offered(s.target.LogicalCluster))
	}
}

// mostClasses bounds how many classes of a kind a cluster's status names. One that has more has them all, as far as placement knows.
const mostClasses = 1000

// offered returns the classes of a cluster, without those that it has of the logical cluster; nil if they are too many to be told.
func (c classes) offered(logicalCluster string) *v1alpha1.ClusterClasses {
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
