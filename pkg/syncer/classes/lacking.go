package classes

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"

	"github.com/manifold-dev/manifold/pkg/clusters/connection"
	"github.com/manifold-dev/manifold/pkg/identity"
	"github.com/manifold-dev/manifold/pkg/projection"
	"github.com/manifold-dev/manifold/pkg/syncer/steps"
	"github.com/manifold-dev/manifold/pkg/syncer/terms"
	"github.com/manifold-dev/manifold/pkg/syncer/trust"
)

// ReasonClassMissing is that of the events about a class that a cluster does not have.
const ReasonClassMissing = "ClassMissing"

// Options say what the classes of a cluster work with.
type Options struct {
	*trust.Cluster
	// Above are the classes of the logical cluster, Here those of the cluster.
	Above, Here Set
	// Offered is told of the classes that the cluster has, once Synced reports that all of them are known.
	Offered *connection.Classes
	Synced  func() bool
	// Names reports whether a workload names a PriorityClass that the cluster should run, or still does.
	Names func(priority string) bool
	// ByHand reports whether claims of a namespace may get volumes of a class that were made by hand, for which there need be no class.
	ByHand func(class, namespace string) bool
	Client kubernetes.Interface // of the cluster
	Terms  terms.Terms
	Queue  *steps.Queue[identity.Key]
	// Recorder writes the events that tell users what will not work without a class.
	Recorder record.EventRecorder
}

// Along says which classes a cluster lacks for what is to run there, and has those come that come along with workloads.
type Along struct{ Options }

// New returns the classes of a cluster.
func New(o Options) *Along { return &Along{o} }

// Missing returns the classes that an object names, that exist above, and that the cluster does not have. One that does not exist above
// either is as wrong as in any cluster, which tells it in its own way. Nor is one missing that only says which claims get which of the volumes that
// were made by hand.
func (c *Along) Missing(kind projection.Kind, above projection.Object) []projection.Requirement {
	return slices.DeleteFunc(kind.Requires(above), func(r projection.Requirement) bool {
		return c.Here.have(r) || !c.Above.have(r) || r.ByHand && (c.ByHand(r.Name, above.GetNamespace()) || c.bound(kind, above))
	})
}

// bound reports whether an object is a claim that has a volume in the cluster, of whatever that is made.
func (c *Along) bound(kind projection.Kind, above projection.Object) bool {
	if kind.Resource != identity.Claims {
		return false
	}
	claim, is := c.ProjectionOf(kind, above).(*corev1.PersistentVolumeClaim)
	return is && claim.Status.Phase == corev1.ClaimBound
}

// Refusal is why the cluster cannot make pods of a workload, or "". It reports as well whether the class is about to come along.
func (c *Along) Refusal(of identity.Key, missing []projection.Requirement) (reason string, waits bool) {
	c.States.Unwait(of)
	for _, r := range missing {
		if !r.ForPods {
			continue
		}
		if coming, problem := c.comesAlong(of, r); coming {
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

// Note tells of classes without which the cluster takes an object and does nothing with it, or "".
func Note(missing []projection.Requirement) string {
	for _, r := range missing {
		if !r.ForPods {
			return fmt.Sprintf("it has no %s %q, so %s: install what serves it, or name another one", r.Class.Kind, r.Name, r.Class.Without)
		}
	}
	return ""
}

// TellNote writes the event about a note that is new.
func (c *Along) TellNote(key identity.Key, above projection.Object, note string) {
	if note != "" && note != c.States.Of(key).Note {
		c.Recorder.Eventf(above, corev1.EventTypeWarning, ReasonClassMissing, "cluster %q: %s", c.Name, note)
	}
}

// Handler looks again at everything that may have waited for a class, and has the cluster's status name those that there are.
func (c *Along) Handler() cache.ResourceEventHandler {
	return cache.ResourceEventHandlerFuncs{
		AddFunc: func(obj any) {
			c.Tell()
			c.priorityChanged(obj)
			for _, key := range c.States.Troubled() {
				c.Queue.Add(key)
			}
		},
		UpdateFunc: func(_, obj any) {
			c.Tell()
			c.priorityChanged(obj)
		},
		DeleteFunc: func(obj any) {
			c.Tell()
			c.priorityChanged(obj)
		},
	}
}

// Tell passes on which classes the cluster has, once all of them are known.
func (c *Along) Tell() {
	if c.Synced() {
		c.Offered.Set(c.Here.OfferedTo(c.LogicalCluster))
	}
}
