package mirrors

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/record"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/identity"
	"github.com/manifold-dev/manifold/pkg/mirror"
	"github.com/manifold-dev/manifold/pkg/projection"
	"github.com/manifold-dev/manifold/pkg/syncer/guard"
	"github.com/manifold-dev/manifold/pkg/syncer/logical"
	"github.com/manifold-dev/manifold/pkg/syncer/physical"
	"github.com/manifold-dev/manifold/pkg/syncer/writer"
)

// ErrNotYet asks for another try: something that must be there first is on its way.
var ErrNotYet = writer.ErrNotYet

const (
	// brokenTries is how often a mirror must have been refused in a row until users are told.
	brokenTries = writer.BrokenTries
	// reasonNotShown is the reason of the event that tells what of a cluster is not shown.
	reasonNotShown = "NotShown"
)

// Options say what the mirrors of a cluster work with, and what they ask of its syncer.
type Options struct {
	// Cluster is the name of the cluster.
	Cluster string
	Above   *logical.Cluster
	Below   *physical.Cluster
	Guard   guard.Guard
	// Client writes to the cluster, and Writer to the logical cluster, in the name of the cluster.
	Client, Writer kubernetes.Interface
	// Recorder writes the events that tell users what is not shown.
	Recorder record.EventRecorder

	// Counts reports whether what the cluster holds counts as the projection of an object.
	Counts func(kind projection.Kind, above, live projection.Object) bool
	// GivenUp reports whether the cluster is removed as one that is gone for good: nothing above tells of it then.
	GivenUp func() bool
	// Unheard reports whether the cluster is silent for longer than its grace period, so that nobody is to be led to its pods. It may be nil.
	Unheard func() bool
	// Lost reports whether a workload has given up the cluster, which does not answer, and runs elsewhere.
	Lost func(w identity.Workload) bool
	// Projected returns the generation of an object that the cluster holds a projection of, false if it holds none of this very object.
	Projected func(key identity.Key, uid types.UID) (generation int64, ok bool)
	// Lives reports whether the pod that a mirror of another cluster shows is there.
	Lives func(shown *corev1.Pod) bool
	// Enqueue has an object projected anew, and Changed tells that there is something new to report of one. They return at once.
	Enqueue func(key identity.Key)
	Changed func(key identity.Key, urgent bool)
}

// tellNotShown writes an event about what is not shown: to a workload above if there is one, else to the cluster. The recorder bounds how many
// there are of one object.
func (o Options) tellNotShown(what string, live metav1.Object, to projection.Object, why error) {
	var about runtime.Object = &corev1.ObjectReference{APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: "Cluster", Name: o.Cluster}
	if to != nil {
		about = to
	}
	o.Recorder.Eventf(about, corev1.EventTypeWarning, reasonNotShown, "cluster %q has %s %.253q in namespace %.63q, which is not shown: %v",
		o.Cluster, what, live.GetName(), live.GetNamespace(), why)
}

// tellAddresses writes an event, to the pod as it is shown, about addresses that it is shown without.
func (o Options) tellAddresses(live *corev1.Pod, to runtime.Object) {
	if addresses := mirror.Impossible(&live.Status); len(addresses) > 0 {
		o.Recorder.Eventf(to, corev1.EventTypeWarning, reasonNotShown, "cluster %q says that this pod has the address %.45q, which no pod can have, so it is shown without",
			o.Cluster, addresses[0])
	}
}
