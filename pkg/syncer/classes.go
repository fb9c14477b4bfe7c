package syncer

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"

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

// refusal is why the cluster cannot make pods of a workload, or "".
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
func (s *Syncer) tellNote(key Key, above projection.Object, note string) {
	if note != "" && note != s.stateOf(key).note {
		s.Recorder.Eventf(above, corev1.EventTypeWarning, reasonClassMissing, "cluster %q: %s", s.cluster, note)
	}
}

// classHandler looks again at everything that may have waited for a class.
func (s *Syncer) classHandler() cache.ResourceEventHandler {
	return cache.ResourceEventHandlerFuncs{AddFunc: func(any) {
		s.mu.Lock()
		defer s.mu.Unlock()
		for key, st := range s.states {
			if st.problem != "" || st.note != "" {
				s.enqueue(key)
			}
		}
	}}
}
