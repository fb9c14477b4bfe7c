package syncer

import (
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/identity"
	"github.com/manifold-dev/manifold/pkg/projection"
	"github.com/manifold-dev/manifold/pkg/syncer/states"
)

// A move makes before it breaks: the old cluster keeps what serves until the new one does.
func TestShareIsHeldUntilItsReplacementServes(t *testing.T) {
	above := deployment("web", `{"west":{"replicas":3}}`)
	another := deployment("web", "")
	another.UID = "an-earlier-one"
	going := projected(above, 3, 3)
	going.DeletionTimestamp = &metav1.Time{Time: time.Now()}
	nowhere := func(replicas int32) *appsv1.Deployment {
		return deployment("web", "", func(d *appsv1.Deployment) { d.Spec.Replicas = ptr.To(replicas) })
	}
	partly := deployment("web", `{"west":{"replicas":1}}`, func(d *appsv1.Deployment) { d.Spec.Replicas = ptr.To[int32](3) })
	rolling := deployment("web", `{"west":{"replicas":4}}`, func(d *appsv1.Deployment) {
		d.Spec.Strategy.RollingUpdate = &appsv1.RollingUpdateDeployment{MaxSurge: ptr.To(intstr.FromInt32(1))}
	})
	replacing := func(replicas, available int32) *appsv1.Deployment {
		d := projected(rolling, replicas, available)
		d.Status.UpdatedReplicas = 1
		return d
	}

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
		"what does not serve in the middle of a rollout": {
			above: rolling, east: replacing(4, 3), west: projected(rolling, 1, 0), want: 4, more: true,
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
		"what has no place any more stays": {
			above: nowhere(3), east: projected(above, 2, 1), west: projected(above, 1, 0), want: 2, more: true,
		},
		"what has no place any more and is scaled down goes as far": {
			above: nowhere(1), east: projected(above, 2, 2), want: 1, more: true,
		},
		"what has no place and is scaled to none goes": {above: nowhere(0), east: projected(above, 2, 2)},
		"what a part of has no place any more stays as far": {
			above: partly, east: projected(above, 3, 3), west: projected(above, 1, 1), want: 2, more: true,
		},
		"an earlier object of the name is not held": {
			above: above, east: projected(another, 3, 3),
		},
	} {
		t.Run(name, func(t *testing.T) {
			u := newUpstream(t, test.above)
			var east *testSyncer
			for cluster, live := range map[string]*appsv1.Deployment{"east": test.east, "west": test.west} {
				if s := attachWith(t, u, cluster, live); cluster == "east" {
					east = s
				}
			}
			if step := east.next(test.above); step.Held != test.more || step.Held && step.Share.Replicas != test.want {
				t.Errorf("%+v; want it held %t with %d replicas", step, test.more, test.want)
			}
		})
	}
}

// Replicas that keep no identity may run more than once for the time of a move, those of every kind that has such.
func TestWhichKindsAreHeld(t *testing.T) {
	meta := objectMeta("web")
	meta.Labels = map[string]string{v1alpha1.LabelLogicalCluster: logicalCluster}
	meta.Annotations = map[string]string{
		v1alpha1.AnnotationPlacement: `{"west":{"replicas":3}}`, v1alpha1.AnnotationStatus: `{"east":{"replicas":3}}`,
		v1alpha1.AnnotationNamespace: meta.Namespace, v1alpha1.AnnotationName: meta.Name, v1alpha1.AnnotationUID: string(meta.UID),
	}
	three := ptr.To[int32](3)
	for name, test := range map[string]struct {
		object projection.Object
		want   bool
	}{
		"ReplicaSets": {&appsv1.ReplicaSet{
			ObjectMeta: meta, Spec: appsv1.ReplicaSetSpec{Replicas: three}, Status: appsv1.ReplicaSetStatus{AvailableReplicas: 3},
		}, true},
		"ReplicationControllers": {&corev1.ReplicationController{
			ObjectMeta: meta, Spec: corev1.ReplicationControllerSpec{Replicas: three, Template: &corev1.PodTemplateSpec{}},
			Status: corev1.ReplicationControllerStatus{AvailableReplicas: 3},
		}, true},
		"not Secrets": {secret("key"), false},
	} {
		t.Run(name, func(t *testing.T) {
			kind, ok := projection.KindOf(test.object)
			if !ok {
				t.Fatalf("no kind for %T", test.object)
			}
			u := newUpstream(t, test.object)
			s := attach(t, u, "east")
			if err := s.below.Stores[kind.Resource].Add(test.object); err != nil {
				t.Fatal(err)
			}
			if step := s.next(test.object); step.Held != test.want || step.Held && step.Share.Replicas != 3 {
				t.Errorf("%+v; want it held %t with 3 replicas", step, test.want)
			}
		})
	}
}

// The one who holds back waits for what others report.
func TestReportWakesTheSyncersThatHoldBack(t *testing.T) {
	above := deployment("web", `{"west":{"replicas":3}}`)
	u := newUpstream(t, above)
	east, west, north := attach(t, u, "east"), attach(t, u, "west"), attach(t, u, "north")
	kind, _ := projection.ForResource(deploymentResource)
	east.states.Set(identity.KeyOf(kind, above), states.State{Wait: states.Wait{Held: true}})
	west.changed(identity.KeyOf(kind, above), true)
	if got := east.enqueued(); len(got) != 1 {
		t.Errorf("the syncer that holds back looks at %v, want the Deployment", got)
	}
	if got := north.enqueued(); len(got) != 0 {
		t.Errorf("another syncer looks at %v, want nothing", got)
	}
	if want := (change{identity.KeyOf(kind, above), true}); len(west.changes) != 1 || west.changes[0] != want {
		t.Errorf("told %v, want %v", west.changes, want)
	}
}

// A share grows only as far as replicas may be extra, and says so by being held.
func TestShareGrowsWithinTheSurge(t *testing.T) {
	surging := func(placement string) *appsv1.Deployment {
		d := deployment("web", placement)
		d.Spec.Replicas = ptr.To[int32](4)
		d.Spec.Strategy.RollingUpdate = &appsv1.RollingUpdateDeployment{MaxSurge: ptr.To(intstr.FromString("25%")), MaxUnavailable: ptr.To(intstr.FromString("25%"))}
		return d
	}
	above := surging(`{"west":{"replicas":4}}`)
	reported := surging(`{"west":{"replicas":4}}`)
	reported.Annotations[v1alpha1.AnnotationStatus] = `{"east":{"replicas":4,"available":4}}`
	two := &v1alpha1.Move{MaxSurge: ptr.To(intstr.FromInt32(2))}
	for name, test := range map[string]struct {
		above      *appsv1.Deployment
		east, west *appsv1.Deployment // nil for none
		move       *v1alpha1.Move
		silent     bool // east
		starting   bool // east, whose watches have shown nothing yet
		want       int32
		held       bool
	}{
		"the workload's own surge":                                   {above: above, east: projected(above, 4, 4), want: 1, held: true},
		"the policy's":                                               {above: above, east: projected(above, 4, 4), move: two, want: 2, held: true},
		"more when the old ones have left":                           {above: above, east: projected(above, 3, 3), west: projected(above, 1, 1), want: 2, held: true},
		"all when there is nothing to leave":                         {above: above},
		"all where nobody waits for the old":                         {above: above, east: projected(above, 4, 4), silent: true},
		"what was last reported counts until it is seen":             {above: reported, starting: true, want: 1, held: true},
		"what a silent cluster has reported does not":                {above: reported, starting: true, silent: true},
		"an earlier report of what is seen not to be there does not": {above: reported},
		"a scale up": {above: surging(`{"east":{"replicas":8},"west":{"replicas":8}}`), east: projected(above, 4, 4)},
	} {
		t.Run(name, func(t *testing.T) {
			u := newUpstream(t, test.above)
			east := attachWith(t, u, "east", test.east)
			west := attachWith(t, u, "west", test.west)
			east.synced.Store(!test.starting)
			u.Fleets.Moves = func(projection.Kind, projection.Object) *v1alpha1.Move { return test.move }
			u.Fleets.Silent = func(cluster string) bool { return cluster == "east" && test.silent }
			if step := west.next(test.above); step.Held != test.held || step.Held && step.Share.Replicas != test.want {
				t.Errorf("%+v; want it held %t with %d replicas", step, test.held, test.want)
			}
		})
	}
}

// attachWith is attach with a Deployment that may be missing.
func attachWith(t *testing.T, u *Upstream, cluster string, live *appsv1.Deployment) *testSyncer {
	t.Helper()
	if live == nil {
		return attach(t, u, cluster)
	}
	return attach(t, u, cluster, live)
}
