// Package objects reads and writes what Applications consist of in the logical cluster: it knows what is there by watch, applies what is wanted, and
// deletes what no longer is.
package objects

import (
	"fmt"
	"maps"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/internal/caches"
	"github.com/manifold-dev/manifold/pkg/delivery/contained"
	"github.com/manifold-dev/manifold/pkg/delivery/observe"
	"github.com/manifold-dev/manifold/pkg/delivery/wanted"
	"github.com/manifold-dev/manifold/pkg/identity"
)

// byApplication indexes objects by the application that they belong to.
const byApplication = "delivery.manifold.dev/application"

// Store knows what is there of applications. Of the built-in kinds that they may contain all that belongs to them is known by watch: each is watched by
// somebody else of this process anyway.
type Store struct {
	kinds   map[schema.GroupKind]kind
	customs customs
	// scoped are those in no namespace. It may be nil.
	scoped *ClusterScoped
}

type kind struct {
	resource schema.GroupVersionResource
	informer cache.SharedIndexInformer
	workload bool
	// granted says that objects of the kind are written, and deleted, by the rights of a ServiceAccount alone.
	granted bool
	// of returns the application that an object of the kind belongs to.
	of func(obj any) (cache.ObjectName, bool)
}

// NewStore registers with the informers, which the caller starts afterwards. What is of custom kinds, and what is in no namespace, it asks others
// for, if there are any.
func NewStore(kube informers.SharedInformerFactory, others Customs, scoped *ClusterScoped) (*Store, error) {
	s := &Store{kinds: map[schema.GroupKind]kind{}, customs: customs{others}, scoped: scoped}
	for _, row := range contained.Kinds() {
		generic, err := kube.ForResource(row.Resource)
		if err != nil {
			return nil, fmt.Errorf("watch %s: %w", row.Resource.Resource, err)
		}
		if err := s.add(row, kind{row.Resource, generic.Informer(), row.Workload, false, applicationOf}); err != nil {
			return nil, err
		}
	}
	for _, row := range contained.Granted() {
		generic, err := kube.ForResource(row.Resource)
		if err != nil {
			return nil, fmt.Errorf("watch %s: %w", row.Resource.Resource, err)
		}
		if err := s.Grant(row, generic.Informer()); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// Grant has the store know the objects of another kind that are written by the rights of ServiceAccounts alone, before Watch. Others make objects of such
// kinds with the labels of applications, which count for none: those that were applied do.
func (s *Store) Grant(row contained.Kind, informer cache.SharedIndexInformer) error {
	return s.add(row, kind{row.Resource, informer, false, true, appliedFor})
}

func (s *Store) add(row contained.Kind, of kind) error {
	gk := row.GVK.GroupKind()
	s.kinds[gk] = of
	indexers := cache.Indexers{byApplication: indexBy(of.of)}
	if gk == autoscalers {
		indexers[byScaled] = indexScaled
	}
	there := of.informer.GetIndexer().GetIndexers()
	maps.DeleteFunc(indexers, func(name string, _ cache.IndexFunc) bool { return there[name] != nil }) // by another Store
	if err := of.informer.AddIndexers(indexers); err != nil {
		return fmt.Errorf("index %s by their applications: %w", row.Resource.Resource, err)
	}
	return nil
}

func indexBy(application func(obj any) (cache.ObjectName, bool)) cache.IndexFunc {
	return func(obj any) ([]string, error) {
		if name, of := application(obj); of {
			return []string{name.String()}, nil
		}
		return nil, nil
	}
}

// appliedFor returns the application that an object was applied for.
func appliedFor(obj any) (cache.ObjectName, bool) {
	if object, is := caches.Last(obj).(metav1.Object); !is || object.GetAnnotations()[v1alpha1.AnnotationApplied] == "" {
		return cache.ObjectName{}, false
	}
	return applicationOf(obj)
}

// applicationOf returns the application that an object belongs to.
func applicationOf(obj any) (cache.ObjectName, bool) {
	obj = caches.Last(obj)
	object, is := obj.(metav1.Object)
	if !is || object.GetLabels()[v1alpha1.LabelApplication] == "" {
		return cache.ObjectName{}, false
	}
	if object.GetNamespace() == "" {
		return markedBy(object)
	}
	return cache.NewObjectName(object.GetNamespace(), object.GetLabels()[v1alpha1.LabelApplication]), true
}

// Watch has changed called for the application of every object that changes. It returns what tells that all of built-in kinds is known: custom ones come
// when they are defined.
func (s *Store) Watch(changed func(cache.ObjectName)) ([]cache.InformerSynced, error) {
	var synced []cache.InformerSynced
	for gk, kind := range s.kinds {
		tell := func(obj any) {
			if name, of := kind.of(obj); of {
				changed(name)
			}
			// What was made anew has no label, and may be in what was released last.
			if object, is := caches.Last(obj).(metav1.Object); is && identity.AwaitedBy(object) != "" {
				changed(cache.NewObjectName(object.GetNamespace(), identity.AwaitedBy(object)))
			}
		}
		registration, err := kind.informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc: tell, DeleteFunc: tell,
			UpdateFunc: func(old, obj any) {
				if old.(metav1.Object).GetResourceVersion() != obj.(metav1.Object).GetResourceVersion() {
					tell(old) // it may have belonged to another one
					tell(obj)
				}
			},
		})
		if err != nil {
			return nil, fmt.Errorf("watch %s: %w", gk, err)
		}
		synced = append(synced, registration.HasSynced)
	}
	WatchCustoms(s.customs.Customs, changed)
	s.scoped.Follow(changed)
	return synced, nil
}

// Of returns all that belongs to an application.
func (s *Store) Of(application cache.ObjectName) ([]observe.Present, error) {
	var out []observe.Present
	for gk, kind := range s.kinds {
		found, err := kind.informer.GetIndexer().ByIndex(byApplication, application.String())
		if err != nil {
			return nil, fmt.Errorf("list %s of Application %s: %w", kind.resource.Resource, application, err)
		}
		for _, obj := range found {
			object := obj.(metav1.Object)
			out = append(out, observe.Present{Key: wanted.Key{Group: gk.Group, Kind: gk.Kind, Name: object.GetName()}, Object: object, Workload: kind.workload})
		}
	}
	return append(append(out, CustomsOf(s.customs.Customs, application)...), s.scoped.Of(application)...), nil
}

// Get returns an object, nil if it is not there. Known is false for kinds that are not watched. For those in no namespace it does not count.
func (s *Store) Get(namespace string, key wanted.Key) (object metav1.Object, known bool) {
	if _, scoped := s.scoped.Resource(schema.GroupKind{Group: key.Group, Kind: key.Kind}); scoped {
		found, known := s.scoped.Get(schema.GroupKind{Group: key.Group, Kind: key.Kind}, key.Name)
		if found == nil {
			return nil, known
		}
		return found, known
	}
	kind, known := s.kinds[schema.GroupKind{Group: key.Group, Kind: key.Kind}]
	if !known {
		return s.customs.get(namespace, key)
	}
	obj, exists, err := kind.informer.GetIndexer().GetByKey(namespace + "/" + key.Name)
	if err != nil || !exists {
		return nil, true
	}
	return obj.(metav1.Object), true
}

// Resource returns how a kind that is watched is served.
func (s *Store) Resource(gk schema.GroupKind) (schema.GroupVersionResource, bool) {
	if resource, scoped := s.scoped.Resource(gk); scoped {
		return resource, true
	}
	if kind, known := s.kinds[gk]; known {
		return kind.resource, true
	}
	return s.customs.resource(gk)
}

// selects selects what carries the label of an application.
func selects(application string) labels.Selector {
	return labels.SelectorFromSet(labels.Set{v1alpha1.LabelApplication: application})
}
