package syncer

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/client-go/tools/record"

	"github.com/manifold-dev/manifold/pkg/identity"
	"github.com/manifold-dev/manifold/pkg/projection"
	"github.com/manifold-dev/manifold/pkg/records"
	"github.com/manifold-dev/manifold/pkg/syncer/demand"
	"github.com/manifold-dev/manifold/pkg/syncer/planning"
	"github.com/manifold-dev/manifold/pkg/syncer/states"
)

const (
	// reasonWaiting is the reason of the event about what a cluster waits for with an object.
	reasonWaiting = "WaitingForCluster"
	// reasonNotBelieved is the reason of the event about endpoints that a cluster is not led to.
	reasonNotBelieved = "EndpointNotBelieved"
)

// telling tells users by events what is not as they would expect in one cluster, once.
type telling struct {
	cluster  string
	recorder record.EventRecorder
	states   *states.States[identity.Key]
	demand   *demand.Graph
	doubted  records.Texts[identity.Key]
}

// wait tells what the cluster waits for with an object.
func (t *telling) wait(l planning.Look, waits states.Wait) {
	if waits.Reason != "" && !waits.Brief && waits.Reason != t.states.Of(l.Key).Reason {
		t.recorder.Eventf(l.Above, corev1.EventTypeNormal, reasonWaiting, "cluster %q %s", t.cluster, waits.Reason)
	}
}

// doubts tells which endpoints of a Service the cluster is not led to although they are ready elsewhere.
func (t *telling) doubts(l planning.Look) {
	if l.Key.Resource != identity.EndpointSlices {
		return
	}
	var service *corev1.Service
	var refused []projection.Refusal
	if slice, ok := l.Above.(*discoveryv1.EndpointSlice); ok && projection.MadeOfPods(slice) {
		service, refused = t.demand.Refusals(slice, t.cluster)
	}
	text := ""
	if len(refused) > 0 {
		first := refused[0]
		text = fmt.Sprintf("cluster %q is not led to %s, which cluster %q says a pod has: %s", t.cluster, first.Address, first.Cluster, first.Reason)
		if len(refused) > 1 {
			text += fmt.Sprintf("; and %d more endpoints", len(refused)-1)
		}
	}
	if t.doubted.News(l.Key, text) {
		t.recorder.Event(service, corev1.EventTypeWarning, reasonNotBelieved, text)
	}
}
