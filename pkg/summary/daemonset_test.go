package summary

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/manifold-dev/manifold/pkg/placement"
)

// agents is a DaemonSet at generation 2, of which generation seen was observed.
func agents(seen int64, conditions ...appsv1.DaemonSetCondition) *appsv1.DaemonSet {
	return &appsv1.DaemonSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "agent", UID: "uid-agent", Generation: 2},
		Status:     appsv1.DaemonSetStatus{ObservedGeneration: seen, Conditions: conditions},
	}
}

// onNodes is the report of a cluster that carries out a generation on so many nodes.
func onNodes(generation int64, desired, updated, available int32) Report {
	return Report{Generation: generation, Live: &appsv1.DaemonSet{Status: appsv1.DaemonSetStatus{
		ObservedGeneration: 17, DesiredNumberScheduled: desired, CurrentNumberScheduled: desired, UpdatedNumberScheduled: updated,
		NumberReady: available, NumberAvailable: available, NumberUnavailable: desired - available,
	}}}
}

func TestDaemonSetStatus(t *testing.T) {
	both := shares(0, 0)
	stopped := func(reason, message string, since metav1.Time) appsv1.DaemonSetCondition {
		return appsv1.DaemonSetCondition{
			Type: "Progressing", Status: corev1.ConditionFalse, Reason: reason, Message: message, LastTransitionTime: since,
		}
	}
	others := appsv1.DaemonSetCondition{Type: "Checked", Status: corev1.ConditionTrue, Reason: "Probe", LastTransitionTime: longAgo}
	collisions := int32(3)
	tests := map[string]struct {
		in       *appsv1.DaemonSet
		decision placement.Decision
		reports  map[string]Report
		unplaced string
		want     appsv1.DaemonSetStatus
	}{
		"counters are summed over the clusters": {
			in: agents(1), decision: both, reports: map[string]Report{"east": onNodes(2, 3, 3, 3), "west": onNodes(2, 2, 1, 1)},
			want: appsv1.DaemonSetStatus{
				ObservedGeneration: 2, DesiredNumberScheduled: 5, CurrentNumberScheduled: 5, UpdatedNumberScheduled: 4,
				NumberReady: 4, NumberAvailable: 4, NumberUnavailable: 1,
			},
		},
		"clusters without a fitting node have nothing to do": {
			in: agents(1), decision: both, reports: map[string]Report{"east": onNodes(2, 0, 0, 0), "west": onNodes(2, 0, 0, 0)},
			want: appsv1.DaemonSetStatus{ObservedGeneration: 2},
		},
		"a cluster that has not reported wants a pod, as far as anybody knows": {
			in: agents(2), decision: both, reports: map[string]Report{"east": onNodes(2, 3, 3, 3)},
			want: appsv1.DaemonSetStatus{
				ObservedGeneration: 2, DesiredNumberScheduled: 4, CurrentNumberScheduled: 3, UpdatedNumberScheduled: 3,
				NumberReady: 3, NumberAvailable: 3, NumberUnavailable: 1,
			},
		},
		"none has reported": {
			in: agents(0), decision: both,
			want: appsv1.DaemonSetStatus{DesiredNumberScheduled: 2, NumberUnavailable: 2},
		},
		"a cluster on an older generation keeps the new one from being observed": {
			in: agents(1), decision: both, reports: map[string]Report{"east": onNodes(2, 3, 3, 3), "west": onNodes(1, 2, 2, 2)},
			want: appsv1.DaemonSetStatus{
				ObservedGeneration: 1, DesiredNumberScheduled: 5, CurrentNumberScheduled: 5, UpdatedNumberScheduled: 5,
				NumberReady: 5, NumberAvailable: 5,
			},
		},
		"a cluster that was added with an older generation is not updated": {
			in: agents(2), decision: both, reports: map[string]Report{"east": onNodes(2, 3, 3, 3), "west": onNodes(1, 2, 2, 2)},
			want: appsv1.DaemonSetStatus{
				ObservedGeneration: 2, DesiredNumberScheduled: 5, CurrentNumberScheduled: 5, UpdatedNumberScheduled: 3,
				NumberReady: 5, NumberAvailable: 5,
			},
		},
		"a cluster that was added and has looked at nothing wants a pod, as far as anybody knows": {
			in: agents(2), decision: both, reports: map[string]Report{"east": onNodes(2, 3, 3, 3), "west": onNodes(0, 0, 0, 0)},
			want: appsv1.DaemonSetStatus{
				ObservedGeneration: 2, DesiredNumberScheduled: 4, CurrentNumberScheduled: 3, UpdatedNumberScheduled: 3,
				NumberReady: 3, NumberAvailable: 3, NumberUnavailable: 1,
			},
		},
		"a silent cluster counts as last heard, and confirms nothing new": {
			in: agents(1), decision: both, reports: map[string]Report{"east": onNodes(2, 3, 3, 3), "west": and(onNodes(2, 2, 2, 2), silent)},
			want: appsv1.DaemonSetStatus{
				ObservedGeneration: 1, DesiredNumberScheduled: 5, CurrentNumberScheduled: 5, UpdatedNumberScheduled: 5,
				NumberReady: 5, NumberAvailable: 5,
			},
		},
		"pods in a cluster that left are where they should not be": {
			in: agents(2), decision: shares(0), reports: map[string]Report{"east": onNodes(2, 3, 3, 3), "west": onNodes(2, 2, 2, 2)},
			want: appsv1.DaemonSetStatus{
				ObservedGeneration: 2, DesiredNumberScheduled: 3, CurrentNumberScheduled: 3, UpdatedNumberScheduled: 3,
				NumberReady: 3, NumberAvailable: 3, NumberMisscheduled: 2,
			},
		},
		"unplaced, it waits for a first pod and says why": {
			in: agents(0), unplaced: "0/2 clusters can run it: 2 are cordoned",
			want: appsv1.DaemonSetStatus{
				ObservedGeneration: 2, DesiredNumberScheduled: 1, NumberUnavailable: 1,
				Conditions: []appsv1.DaemonSetCondition{stopped(ReasonUnplaced, "0/2 clusters can run it: 2 are cordoned", now)},
			},
		},
		"not decided yet": {
			in: agents(1), want: appsv1.DaemonSetStatus{ObservedGeneration: 1},
		},
		"a cluster that cannot hold it is named, and conditions of others stay": {
			in: agents(1, stopped(ReasonNotApplied, "before", longAgo), others), decision: both,
			reports: map[string]Report{"east": onNodes(2, 3, 3, 3), "west": and(onNodes(1, 2, 2, 2), conflict)},
			want: appsv1.DaemonSetStatus{
				ObservedGeneration: 1, DesiredNumberScheduled: 4, CurrentNumberScheduled: 3, UpdatedNumberScheduled: 3,
				NumberReady: 3, NumberAvailable: 3, NumberUnavailable: 1,
				Conditions: []appsv1.DaemonSetCondition{stopped(ReasonNotApplied, `cluster "west": the name is taken`, longAgo), others},
			},
		},
		"what stopped it goes when nothing does any more, and collisions stay": {
			in: func() *appsv1.DaemonSet {
				in := agents(2, stopped(ReasonUnplaced, "before", longAgo))
				in.Status.CollisionCount = &collisions
				return in
			}(),
			decision: shares(0), reports: map[string]Report{"east": onNodes(2, 1, 1, 1)},
			want: appsv1.DaemonSetStatus{
				ObservedGeneration: 2, DesiredNumberScheduled: 1, CurrentNumberScheduled: 1, UpdatedNumberScheduled: 1,
				NumberReady: 1, NumberAvailable: 1, CollisionCount: &collisions,
			},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got := DaemonSet(test.in, Input{Decision: test.decision, Reports: test.reports, Unplaced: test.unplaced, Now: now})
			if !equality.Semantic.DeepEqual(got, test.want) {
				t.Errorf("got  %+v\nwant %+v", got, test.want)
			}
		})
	}
}

func TestADaemonSetIsSettledWhenItsNodesAreDone(t *testing.T) {
	tests := map[string]struct {
		edit func(*appsv1.DaemonSetStatus)
		want bool
	}{
		"all is done":              {func(*appsv1.DaemonSetStatus) {}, true},
		"a node waits for its pod": {func(s *appsv1.DaemonSetStatus) { s.CurrentNumberScheduled = 2 }, false},
		"a pod is old":             {func(s *appsv1.DaemonSetStatus) { s.UpdatedNumberScheduled = 2 }, false},
		"a pod is not available":   {func(s *appsv1.DaemonSetStatus) { s.NumberAvailable = 2 }, false},
		"a pod is on its way out":  {func(s *appsv1.DaemonSetStatus) { s.NumberMisscheduled = 1 }, false},
		"it was not looked at yet": {func(s *appsv1.DaemonSetStatus) { s.ObservedGeneration = 0 }, false},
	}
	kind, _ := ForResource(daemonSetKind.resource)
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			below := onNodes(2, 3, 3, 3).Live.(*appsv1.DaemonSet)
			below.Generation = 5
			test.edit(&below.Status)
			if got := kind.Settled(below); got != test.want {
				t.Errorf("settled = %t, want %t", got, test.want)
			}
		})
	}
}

func TestASilentClustersDaemonSetIsRememberedByItsCounters(t *testing.T) {
	kind, _ := ForResource(daemonSetKind.resource)
	reports := map[string]Report{"east": onNodes(2, 3, 2, 1)}
	got := DaemonSet(agents(2), Input{
		Decision: shares(0), Reports: map[string]Report{"east": kind.LastKnown(kind.BreakdownOf(reports)["east"])}, Now: now,
	})
	want := DaemonSet(agents(2), Input{Decision: shares(0), Reports: reports, Now: now})
	if !equality.Semantic.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}
