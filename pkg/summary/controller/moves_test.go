package controller

import (
	"slices"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/record"
	testingclock "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/summary"
)

// runs is the report of a cluster that was told to run so many replicas, of which some serve.
func runs(replicas, available int32) summary.Report {
	return summary.Report{Live: &appsv1.Deployment{
		Spec: appsv1.DeploymentSpec{Replicas: ptr.To(replicas)}, Status: appsv1.DeploymentStatus{AvailableReplicas: available},
	}}
}

// A move, step by step, with what is told of each.
func TestMovesAreToldFromBeginToEnd(t *testing.T) {
	const deadline = 10 * time.Minute
	h := start(t)
	clock, recorder := testingclock.NewFakePassiveClock(now), record.NewFakeRecorder(10)
	h.Clock, h.Recorder = clock, recorder
	d := deployment(`{"west":{"replicas":3}}`, "")
	d.Spec.ProgressDeadlineSeconds = ptr.To(int32(deadline / time.Second))
	at := now
	for _, step := range []struct {
		after      time.Duration
		east, west summary.Report
		want       string // how far it is
		event      string // "" for none
	}{
		{east: runs(3, 3), want: "3 to leave east, 0 of 3 available in west", event: "Normal Moving moves: 3 to leave east, 0 of 3 available in west"},
		{after: time.Minute, east: runs(3, 3), west: runs(1, 0), want: "3 to leave east, 0 of 3 available in west"},
		{
			after: deadline, east: runs(3, 3), west: runs(1, 0), want: "3 to leave east, 0 of 3 available in west",
			event: "Warning MoveStalled has made no progress for 10m: 3 to leave east, 0 of 3 available in west; " +
				"what runs stays until its replacement is available",
		},
		{after: deadline, east: runs(3, 3), west: runs(1, 0), want: "3 to leave east, 0 of 3 available in west"},
		{east: runs(2, 2), west: runs(2, 1), want: "2 to leave east, 1 of 3 available in west"},
		{west: runs(3, 3), event: "Normal Moved moved: it runs on west"},
		{after: deadline, west: runs(3, 1)},
	} {
		at = at.Add(step.after)
		clock.SetTime(at)
		reports := map[string]summary.Report{}
		for cluster, report := range map[string]summary.Report{"east": step.east, "west": step.west} {
			if report.Live != nil {
				reports[cluster] = report
			}
		}
		if got := h.moving(keyOf(d), d, reports); got != step.want {
			t.Errorf("it is told %q, want %q", got, step.want)
		}
		var events, want []string
		for len(recorder.Events) > 0 {
			events = append(events, <-recorder.Events)
		}
		if step.event != "" {
			want = []string{step.event}
		}
		if !slices.Equal(events, want) {
			t.Errorf("events %q, want %q", events, want)
		}
	}
}

func TestAMoveOfWhatRunsOnEachNodeIsTold(t *testing.T) {
	h := start(t)
	recorder := record.NewFakeRecorder(10)
	h.Recorder = recorder
	on := func(nodes, available int32) summary.Report {
		return summary.Report{Live: &appsv1.DaemonSet{Status: appsv1.DaemonSetStatus{DesiredNumberScheduled: nodes, NumberAvailable: available}}}
	}
	daemons := &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "agent", UID: "agent", Annotations: map[string]string{
		v1alpha1.AnnotationPlacement: `{"west":{"replicas":0}}`,
	}}}
	key := keyOf(deployment("", ""))
	key.Resource = appsv1.SchemeGroupVersion.WithResource("daemonsets")
	if got, want := h.moving(key, daemons, map[string]summary.Report{"east": on(3, 3), "west": on(2, 1)}), "3 to leave east, 1 of 2 available in west"; got != want {
		t.Errorf("it is told %q, want %q", got, want)
	}
	if got := h.moving(key, daemons, map[string]summary.Report{"west": on(2, 1)}); got != "" {
		t.Errorf("it is told %q, want nothing", got)
	}
	for _, want := range []string{"Normal Moving moves: 3 to leave east, 1 of 2 available in west", "Normal Moved moved: it runs on west"} {
		if got := <-recorder.Events; got != want {
			t.Errorf("event %q, want %q", got, want)
		}
	}
}

func TestAMoveThatLosesItsTargetIsNotToldToHaveEnded(t *testing.T) {
	h := start(t)
	recorder := record.NewFakeRecorder(10)
	h.Recorder = recorder
	reports := map[string]summary.Report{"east": runs(3, 3)}
	d := deployment(`{"west":{"replicas":3}}`, "")
	h.moving(keyOf(d), d, reports)
	<-recorder.Events // its begin
	if got := h.moving(keyOf(d), deployment("", ""), reports); got != "" || len(recorder.Events) > 0 {
		t.Errorf("it is told %q and by %d events, want nothing", got, len(recorder.Events))
	}
}

func TestWhatDoesNotMoveIsNotTold(t *testing.T) {
	h := start(t)
	recorder := record.NewFakeRecorder(10)
	h.Recorder = recorder
	daemons := &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "agent", UID: "agent"}}
	scaled := deployment(`{"east":{"replicas":1}}`, "")
	stale := runs(3, 3)
	stale.Stale = true
	for name, test := range map[string]struct {
		object  summary.Object
		reports map[string]summary.Report
	}{
		"a scale down":                     {scaled, map[string]summary.Report{"east": runs(3, 3)}},
		"a scale up":                       {deployment(`{"east":{"replicas":9}}`, ""), map[string]summary.Report{"east": runs(3, 3)}},
		"what is left in a silent cluster": {scaled, map[string]summary.Report{"east": runs(1, 1), "west": stale}},
		"what runs on each node":           {daemons, map[string]summary.Report{"east": {Live: daemons}}},
	} {
		t.Run(name, func(t *testing.T) {
			key := keyOf(scaled)
			if test.object == summary.Object(daemons) {
				key.Resource = appsv1.SchemeGroupVersion.WithResource("daemonsets")
			}
			if got := h.moving(key, test.object, test.reports); got != "" || len(recorder.Events) > 0 {
				t.Errorf("it is told %q and by %d events, want nothing", got, len(recorder.Events))
			}
		})
	}
}
