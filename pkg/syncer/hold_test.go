package syncer

import (
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/manifold-dev/manifold/pkg/projection"
)

// A move makes before it breaks: the old cluster keeps what serves until the new one does.
func TestShareIsHeldUntilItsReplacementServes(t *testing.T) {
	above := deployment("web", `{"west":{"replicas":3}}`)
	another := deployment("web", "")
	another.UID = "an-earlier-one"
	going := projected(above, 3, 3)
	going.DeletionTimestamp = &metav1.Time{Time: time.Now()}

	for name, test := range map[string]struct {
		above      *appsv1.Deployment
		east, west *appsv1.Deployment // nil for none
		want       int32
		more       bool
	}{
		"nothing of the new share is there yet": {
			above: above, east: projected(above, 3, 3), want: 3, more: true,
		},
		"it is there and does not serve yet": {
			above: above, east: projected(above, 3, 3), west: projected(above, 3, 0), want: 3, more: true,
		},
		"a part serves": {
			above: above, east: projected(above, 3, 3), west: projected(above, 3, 2), want: 1, more: true,
		},
		"all serve": {
			above: above, east: projected(above, 3, 3), west: projected(above, 3, 3),
		},
		"what does not serve is not held": {
			above: above, east: projected(above, 3, 0), west: projected(above, 3, 0),
		},
		"what is being deleted in the new cluster does not serve for long": {
			above: above, east: projected(above, 3, 3), west: going, want: 3, more: true,
		},
		"a share that grows is not held": {
			above: deployment("web", `{"east":{"replicas":5}}`), east: projected(above, 3, 3),
		},
		"a share that shrinks with the whole is not held": {
			above: deployment("web", `{"east":{"replicas":1}}`), east: projected(above, 3, 3),
		},
		"a share that shrinks in favour of another is held": {
			above: deployment("web", `{"east":{"replicas":1},"west":{"replicas":2}}`), east: projected(above, 3, 3), want: 3, more: true,
		},
		"what has no decision is not held": {
			above: deployment("web", ""), east: projected(above, 3, 3),
		},
		"an earlier object of the name is not held": {
			above: above, east: projected(another, 3, 3),
		},
	} {
		t.Run(name, func(t *testing.T) {
			u := newUpstream(t, test.above)
			for cluster, live := range map[string]*appsv1.Deployment{"east": test.east, "west": test.west} {
				if live == nil {
					attach(t, u, cluster)
				} else {
					attach(t, u, cluster, live)
				}
			}
			share, more := u.hold(test.above, test.east, "east")
			if more != test.more || more && share.Replicas != test.want {
				t.Errorf("held %t with %d replicas, want %t with %d", more, share.Replicas, test.more, test.want)
			}
		})
	}
}

func TestOnlyDeploymentsAreHeld(t *testing.T) {
	u := newUpstream(t)
	if _, more := u.hold(secret("key"), secret("key"), "east"); more {
		t.Error("a Secret is held")
	}
}

// The one who holds back waits for what others report.
func TestReportWakesTheSyncersThatHoldBack(t *testing.T) {
	above := deployment("web", `{"west":{"replicas":3}}`)
	u := newUpstream(t, above)
	east, west, north := attach(t, u, "east"), attach(t, u, "west"), attach(t, u, "north")
	kind, _ := projection.ForResource(deploymentResource)
	east.setState(keyOf(kind, above), state{wait: wait{held: true}})
	west.changed(keyOf(kind, above), true)
	if got := east.enqueued(); len(got) != 1 {
		t.Errorf("the syncer that holds back looks at %v, want the Deployment", got)
	}
	if got := north.enqueued(); len(got) != 0 {
		t.Errorf("another syncer looks at %v, want nothing", got)
	}
	if want := (change{keyOf(kind, above), true}); len(west.changes) != 1 || west.changes[0] != want {
		t.Errorf("told %v, want %v", west.changes, want)
	}
}
