package syncer

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/identity"
	"github.com/manifold-dev/manifold/pkg/projection"
	"github.com/manifold-dev/manifold/pkg/syncer/reporting"
	"github.com/manifold-dev/manifold/pkg/syncer/states"
	"github.com/manifold-dev/manifold/pkg/syncer/watching"
	"github.com/manifold-dev/manifold/pkg/syncer/writer"
)

func TestFailureIsShownWhereUsersLook(t *testing.T) {
	web, api := deployment("web", toEast, usingSecret("key")), deployment("api", `{"west":{"replicas":1}}`, usingSecret("key"))
	webKey := identity.Key{Resource: deploymentResource, Namespace: "shop", Name: "web"}
	secretKey := identity.Key{Resource: secretResource, Namespace: "shop", Name: "key"}
	forbidden := apierrors.NewForbidden(corev1.Resource("secrets"), "key", errors.New("no"))
	for name, test := range map[string]struct {
		key         identity.Key
		above       projection.Object
		err         error
		wantAgain   bool   // the step is tried again by its error
		wantProblem string // of web
		wantEvents  []string
	}{
		"a conflict of a Deployment": {
			key: webKey, above: web, err: fmt.Errorf("act: %w", &writer.ConflictError{Reason: "taken"}),
			wantProblem: "taken", wantEvents: []string{`Warning NameTaken cluster "east": taken`},
		},
		"a conflict of what a Deployment needs is told on both": {
			key: secretKey, above: secret("key"), err: &writer.ConflictError{Reason: "taken"},
			wantProblem: "taken", wantEvents: []string{`Warning NameTaken cluster "east": taken`, `Warning NameTaken cluster "east": taken`},
		},
		"a refusal": {
			key: webKey, above: web, err: forbidden, wantAgain: true,
			wantProblem: forbidden.Error(), wantEvents: []string{`Warning ProjectionFailed cluster "east": ` + forbidden.Error()},
		},
		"what passes by itself is tried again in silence": {
			key: webKey, above: web, err: errNotYet, wantAgain: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			u := newUpstream(t, web, api, secret("key"))
			s := attach(t, u, "east")
			for range 2 { // the second time there is nothing new to tell
				if err := s.failed(test.key, test.above, test.err); (err != nil) != test.wantAgain {
					t.Errorf("error %v, want one: %t", err, test.wantAgain)
				}
			}
			report, known := s.reports.Report(identity.KeyOf(deployments, web), web)
			if !known || report.Problem != test.wantProblem {
				t.Errorf("problem %q, want %q", report.Problem, test.wantProblem)
			}
			if other, _ := s.reports.Report(identity.KeyOf(deployments, api), api); other.Problem != "" {
				t.Errorf("a Deployment elsewhere has the problem %q", other.Problem)
			}
			var events []string
			for len(s.events.Events) > 0 {
				events = append(events, <-s.events.Events)
			}
			if !slices.Equal(events, test.wantEvents) {
				t.Errorf("events %q, want %q", events, test.wantEvents)
			}
			if told := len(s.changes) > 0; told != (test.wantProblem != "") {
				t.Errorf("told of %v", s.changes)
			}
			for _, c := range s.changes {
				if c.key != webKey || !c.urgent {
					t.Errorf("told of %+v, want the Deployment, at once", c)
				}
			}
			s.done(test.key, projection.Kind{}, states.State{})
			if report, _ := s.reports.Report(identity.KeyOf(deployments, web), web); report.Problem != "" {
				t.Errorf("the problem %q stays when a step has succeeded", report.Problem)
			}
		})
	}
}

// A webhook below that cannot be called is answered like a storage that fails for a moment.
func TestErrorInsideAClusterIsToldWhenItLasts(t *testing.T) {
	web := deployment("web", toEast)
	u := newUpstream(t, web)
	s := attach(t, u, "east")
	key, broken := identity.KeyOf(deployments, web), apierrors.NewInternalError(errors.New("failed calling webhook"))
	for try := range writer.BrokenTries + 1 {
		if err := s.failed(key, web, broken); err == nil {
			t.Fatal("the step is not tried again")
		}
		want := ""
		if try == writer.BrokenTries {
			want = broken.Error()
		}
		if report, _ := s.reports.Report(key, web); report.Problem != want {
			t.Errorf("problem %q after try %d, want %q", report.Problem, try+1, want)
		}
		s.queue.AddRateLimited(key)
	}
	if got, want := <-s.events.Events, `Warning ProjectionFailed cluster "east": `+broken.Error(); got != want {
		t.Errorf("event %q, want %q", got, want)
	}
}

// A bare pod's status is mirrored, so nobody makes a summary of it who could be told of a failure.
func TestFailureOfAPodIsAnEventAlone(t *testing.T) {
	pod := &corev1.Pod{ObjectMeta: objectMeta("once")}
	pod.Annotations = map[string]string{v1alpha1.AnnotationPlacement: `{"east":{"replicas":1}}`}
	u := newUpstream(t, pod)
	s := attach(t, u, "east")
	key := identity.Key{Resource: podResource, Namespace: "shop", Name: "once"}
	if err := s.failed(key, pod, &writer.ConflictError{Reason: "taken"}); err != nil {
		t.Fatal(err)
	}
	if got, want := <-s.events.Events, `Warning NameTaken cluster "east": taken`; got != want {
		t.Errorf("event %q, want %q", got, want)
	}
	if len(s.changes) > 0 {
		t.Errorf("told of %v, of which there is no summary", s.changes)
	}
}

func TestUpdatesBelowThatCanHaveTouchedWhatIsProjected(t *testing.T) {
	for name, test := range map[string]struct {
		of     projection.Object
		change func(projection.Object)
		want   bool
	}{
		"a status":                              {of: projected(deployment("web", ""), 1, 1), change: func(o projection.Object) { o.(*appsv1.Deployment).Status.Replicas = 0 }},
		"a finalizer":                           {of: projected(deployment("web", ""), 1, 1), change: func(o projection.Object) { o.SetFinalizers([]string{"a/b"}) }},
		"the spec":                              {of: projected(deployment("web", ""), 1, 1), change: func(o projection.Object) { o.SetGeneration(2) }, want: true},
		"a label":                               {of: projected(deployment("web", ""), 1, 1), change: func(o projection.Object) { o.SetLabels(nil) }, want: true},
		"an annotation":                         {of: projected(deployment("web", ""), 1, 1), change: func(o projection.Object) { o.SetAnnotations(nil) }, want: true},
		"a deletion":                            {of: projected(deployment("web", ""), 1, 1), change: func(o projection.Object) { o.SetDeletionTimestamp(&metav1.Time{}) }, want: true},
		"anything of what has no generation":    {of: &corev1.Secret{}, change: func(projection.Object) {}, want: true},
		"anything of a Service, which has none": {of: &corev1.Service{}, change: func(projection.Object) {}, want: true},
	} {
		t.Run(name, func(t *testing.T) {
			after := test.of.DeepCopyObject().(projection.Object)
			test.change(after)
			if got := watching.ProjectedPartChanged(test.of, after); got != test.want {
				t.Errorf("got %t, want %t", got, test.want)
			}
		})
	}
}

func TestStatusThatIsWorthTellingAtOnce(t *testing.T) {
	status := func(observed int64, replicas, updated, available int32) *appsv1.Deployment {
		return &appsv1.Deployment{
			ObjectMeta: metav1.ObjectMeta{Generation: 2}, Spec: appsv1.DeploymentSpec{Replicas: ptr.To[int32](3)},
			Status: appsv1.DeploymentStatus{ObservedGeneration: observed, Replicas: replicas, UpdatedReplicas: updated, AvailableReplicas: available},
		}
	}
	byDefault := status(2, 1, 1, 1)
	byDefault.Spec.Replicas = nil
	for name, test := range map[string]struct {
		live projection.Object
		want bool
	}{
		"all are there":                       {status(2, 3, 3, 3), true},
		"one replica is the default":          {byDefault, true},
		"the controller has not seen it yet":  {status(1, 3, 3, 3), false},
		"old pods are still there":            {status(2, 4, 3, 3), false},
		"not all are updated":                 {status(2, 3, 2, 3), false},
		"not all are available":               {status(2, 3, 3, 2), false},
		"what has no rollout is always ready": {service("web", nil), true},
	} {
		t.Run(name, func(t *testing.T) {
			if got := reporting.Settled(identity.Key{Resource: resourceOf(test.live)}, test.live); got != test.want {
				t.Errorf("got %t, want %t", got, test.want)
			}
		})
	}
}

func TestReportAnswersForTheGenerationThatIsCarriedOut(t *testing.T) {
	above := deployment("web", toEast)
	above.Generation = 7
	live := projected(above, 2, 1)
	key := identity.Key{Resource: deploymentResource, Namespace: "shop", Name: "web"}
	current := states.State{UID: above.UID, Generation: 7, Hash: "hash", Told: 2, Most: 2}
	for name, test := range map[string]struct {
		live      *appsv1.Deployment
		state     states.State
		unsynced  bool
		want      int64
		begun     int64
		wantHolds bool
	}{
		"it is there and seen":              {live: live, state: current, want: 7, begun: 7, wantHolds: true},
		"the cluster holds another version": {live: live, state: states.State{UID: above.UID, Generation: 7, Hash: "other", Told: 2, Most: 2}, wantHolds: true},
		"a share is held to a part of it":   {live: live, state: states.State{UID: above.UID, Generation: 7, Hash: "hash", Told: 2, Most: 2, Wait: states.Wait{Held: true}}, begun: 7, wantHolds: true},
		"an earlier object was carried out": {live: live, state: states.State{UID: "earlier", Generation: 7, Hash: "hash"}, wantHolds: true},
		"the controllers there have not seen it": {
			live: func() *appsv1.Deployment { d := live.DeepCopy(); d.Generation = 2; return d }(), state: current, wantHolds: true,
		},
		"it is not there":                     {state: current},
		"what the cluster holds is not known": {live: live, state: current, unsynced: true},
	} {
		t.Run(name, func(t *testing.T) {
			var objects []projection.Object
			if test.live != nil {
				objects = append(objects, test.live)
			}
			s := attach(t, newUpstream(t, above), "east", objects...)
			s.states.Set(key, test.state)
			s.synced.Store(!test.unsynced)
			report, known := s.reports.Report(identity.KeyOf(deployments, above), above)
			holds := report.Live != nil
			if known == test.unsynced {
				t.Fatalf("known %t", known)
			}
			if report.Generation != test.want || report.Begun != test.begun || holds != test.wantHolds {
				t.Errorf("generation %d, begun %d, holds %t; want %d, %d, %t",
					report.Generation, report.Begun, holds, test.want, test.begun, test.wantHolds)
			}
			if test.wantHolds && report.Live != test.live {
				t.Errorf("object %+v, want that of the cluster", report.Live)
			}
		})
	}
}

func TestWhatTheClusterShouldHold(t *testing.T) {
	deleted := deployment("web", toEast)
	deleted.DeletionTimestamp = &metav1.Time{}
	deleted.Finalizers = []string{v1alpha1.FinalizerProjection}
	moved := deployment("web", `{"west":{"replicas":2}}`)
	leaving := deployment("web", `{"west":{"replicas":2}}`, stillIn("east"))
	refused := deployment("web", toEast, func(d *appsv1.Deployment) { d.Namespace = "kube-system" })
	for name, test := range map[string]struct {
		above, live projection.Object
		leaving     bool
		want        *int32 // the replicas; nil if nothing
		wantHeld    bool
		wantErr     string
	}{
		"its share":                                {above: deployment("web", toEast), want: ptr.To[int32](2)},
		"nothing of what is gone above":            {live: projected(deployment("web", toEast), 2, 2)},
		"nothing of what is being deleted":         {above: deleted, live: projected(deleted, 2, 2)},
		"nothing of what is elsewhere":             {above: moved},
		"what serves until the rest serves":        {above: leaving, live: projected(leaving, 2, 2), want: ptr.To[int32](2), wantHeld: true},
		"nothing that it was never given":          {above: moved, live: projected(moved, 2, 2)},
		"nothing in a namespace of Kubernetes'":    {above: refused, wantErr: "kube-system"},
		"a namespace that is empty, once made":     {above: namespace("shop"), live: namespace("shop"), want: ptr.To[int32](0)},
		"no empty namespace when the cluster goes": {above: namespace("shop"), live: namespace("shop"), leaving: true},
	} {
		t.Run(name, func(t *testing.T) {
			u := newUpstream(t)
			var below []projection.Object
			if test.live != nil {
				below = append(below, test.live)
			}
			s := attachFound(t, u, "east", below...)
			s.Leaving = func(string) (bool, string) { return test.leaving, "" }
			of := test.above
			if of == nil {
				of = test.live
			}
			kind, _ := projection.ForResource(resourceOf(of))
			desired, waits, err := s.desired(kind, test.above, test.live)
			if test.wantErr != "" {
				if err == nil || !strings.Contains(err.Error(), test.wantErr) {
					t.Errorf("error %v, want one about %s", err, test.wantErr)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if (desired != nil) != (test.want != nil) || waits.Held != test.wantHeld {
				t.Fatalf("desired %v, held %t", desired, waits.Held)
			}
			if d, ok := desired.(*appsv1.Deployment); ok && *d.Spec.Replicas != *test.want {
				t.Errorf("%d replicas, want %d", *d.Spec.Replicas, *test.want)
			}
		})
	}
}
