package summary

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/manifold-dev/manifold/pkg/placement"
)

// plain is a ReplicaSet at generation 2, of which generation seen was observed.
func plain(replicas int32, seen int64, conditions ...appsv1.ReplicaSetCondition) *appsv1.ReplicaSet {
	return &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "uid-web", Generation: 2},
		Spec:       appsv1.ReplicaSetSpec{Replicas: ptr.To(replicas)},
		Status:     appsv1.ReplicaSetStatus{ObservedGeneration: seen, Conditions: conditions},
	}
}

// running is the report of a cluster that carries out a generation.
func running(generation int64, replicas, available int32) Report {
	return Report{Generation: generation, Live: &appsv1.ReplicaSet{Status: appsv1.ReplicaSetStatus{
		ObservedGeneration: 17, Replicas: replicas, FullyLabeledReplicas: replicas, ReadyReplicas: available, AvailableReplicas: available,
	}}}
}

// failing adds what a cluster says when it cannot make pods.
func failing(reason, message string) func(*Report) {
	return func(in *Report) {
		status := &in.Live.(*appsv1.ReplicaSet).Status
		status.Conditions = append(status.Conditions, appsv1.ReplicaSetCondition{
			Type: appsv1.ReplicaSetReplicaFailure, Status: corev1.ConditionTrue, Reason: reason, Message: message, LastTransitionTime: longAgo,
		})
	}
}

func ending(n int32) func(*Report) {
	return func(in *Report) { in.Live.(*appsv1.ReplicaSet).Status.TerminatingReplicas = ptr.To(n) }
}

func counted(observed int64, replicas, available int32, conditions ...appsv1.ReplicaSetCondition) appsv1.ReplicaSetStatus {
	return appsv1.ReplicaSetStatus{
		ObservedGeneration: observed, Replicas: replicas, FullyLabeledReplicas: replicas, ReadyReplicas: available, AvailableReplicas: available,
		Conditions: conditions,
	}
}

func TestStatusOfAPlainReplicaSet(t *testing.T) {
	fails := func(reason, message string, since metav1.Time) appsv1.ReplicaSetCondition {
		return appsv1.ReplicaSetCondition{
			Type: appsv1.ReplicaSetReplicaFailure, Status: corev1.ConditionTrue, Reason: reason, Message: message, LastTransitionTime: since,
		}
	}
	others := appsv1.ReplicaSetCondition{Type: "Checked", Status: corev1.ConditionTrue, Reason: "Probe", LastTransitionTime: longAgo}
	const nowhere = "0/2 clusters can run it: 2 are cordoned"
	tests := map[string]struct {
		in       *appsv1.ReplicaSet
		decision placement.Decision
		reports  map[string]Report
		unplaced string
		want     appsv1.ReplicaSetStatus
	}{
		"counters are summed": {
			in: plain(5, 1), decision: shares(3, 2), reports: map[string]Report{"east": running(2, 3, 3), "west": running(2, 2, 1)},
			want: counted(2, 5, 4),
		},
		"one cluster is silent: it counts as last heard and confirms nothing": {
			in: plain(5, 1), decision: shares(3, 2), reports: map[string]Report{"east": running(2, 3, 3), "west": and(running(2, 2, 2), silent)},
			want: counted(1, 5, 5),
		},
		"one cluster is on an older generation": {
			in: plain(5, 1), decision: shares(3, 2), reports: map[string]Report{"east": running(2, 3, 3), "west": running(1, 1, 1)},
			want: counted(1, 4, 4),
		},
		"one cluster has not reported": {
			in: plain(5, 1), decision: shares(3, 2), reports: map[string]Report{"east": running(2, 3, 3)},
			want: counted(1, 3, 3),
		},
		"a cluster that left still has replicas": {
			in: plain(3, 1), decision: shares(3), reports: map[string]Report{"east": running(2, 3, 1), "west": running(2, 2, 2)},
			want: counted(2, 5, 3),
		},
		"the whole in each of two clusters is counted in units of the whole": {
			in: plain(3, 1), decision: shares(3, 3),
			reports: map[string]Report{"east": and(running(2, 3, 3), ending(1)), "west": and(running(2, 4, 2), ending(2))},
			want: func() appsv1.ReplicaSetStatus {
				out := counted(2, 4, 2)
				out.FullyLabeledReplicas, out.TerminatingReplicas = 3, ptr.To[int32](2)
				return out
			}(),
		},
		"terminating replicas are summed where clusters tell of them": {
			in: plain(5, 1), decision: shares(3, 2), reports: map[string]Report{"east": and(running(2, 3, 3), ending(1)), "west": running(2, 2, 2)},
			want: func() appsv1.ReplicaSetStatus {
				out := counted(2, 5, 5)
				out.TerminatingReplicas = ptr.To[int32](1)
				return out
			}(),
		},
		"unplaced": {
			in: plain(3, 0), unplaced: nowhere, want: counted(2, 0, 0, fails(ReasonUnplaced, nowhere, now)),
		},
		"unplaced since before": {
			in: plain(3, 2, fails(ReasonUnplaced, "another reason", longAgo)), unplaced: nowhere,
			want: counted(2, 0, 0, fails(ReasonUnplaced, nowhere, longAgo)),
		},
		"scaled to zero and placed nowhere": {
			in: plain(0, 1), unplaced: nowhere, want: counted(2, 0, 0),
		},
		"not decided yet": {
			in: plain(3, 1), want: counted(1, 0, 0),
		},
		"a cluster cannot hold it": {
			in: plain(5, 1), decision: shares(3, 2), reports: map[string]Report{"east": running(2, 3, 3), "west": and(running(2, 2, 2), conflict)},
			want: counted(1, 3, 3, fails(ReasonNotApplied, `cluster "west": the name is taken`, now)),
		},
		"clusters cannot make pods, each for its own reason": {
			in: plain(5, 1, others), decision: shares(3, 2),
			reports: map[string]Report{
				"east": and(running(2, 0, 0), failing("FailedCreate", "exceeded quota")),
				"west": and(running(2, 0, 0), failing("FailedDelete", "no answer")),
			},
			want: counted(2, 0, 0, fails("FailedCreate", `cluster "east": exceeded quota; cluster "west": no answer`, now), others),
		},
		"what failed and does not any more leaves no condition, and those of others stay": {
			in: plain(3, 2, fails("FailedCreate", "before", longAgo), others), decision: shares(3), reports: map[string]Report{"east": running(2, 3, 3)},
			want: counted(2, 3, 3, others),
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			from := Input{Decision: test.decision, Reports: test.reports, Unplaced: test.unplaced, Now: now}
			if got := PlainReplicaSet(test.in, from); !equality.Semantic.DeepEqual(got, test.want) {
				t.Errorf("got  %+v\nwant %+v", got, test.want)
			}
			// A ReplicationController says the same of the same.
			from.Reports = asControllers(test.reports)
			want := corev1.ReplicationControllerStatus{
				ObservedGeneration: test.want.ObservedGeneration, Replicas: test.want.Replicas, FullyLabeledReplicas: test.want.FullyLabeledReplicas,
				ReadyReplicas: test.want.ReadyReplicas, AvailableReplicas: test.want.AvailableReplicas,
				Conditions: asControllerConditions(test.want.Conditions),
			}
			if got := ReplicationController(asController(test.in), from); !equality.Semantic.DeepEqual(got, want) {
				t.Errorf("of a ReplicationController: got  %+v\nwant %+v", got, want)
			}
		})
	}
}

func asController(in *appsv1.ReplicaSet) *corev1.ReplicationController {
	return &corev1.ReplicationController{
		ObjectMeta: in.ObjectMeta,
		Spec:       corev1.ReplicationControllerSpec{Replicas: in.Spec.Replicas},
		Status: corev1.ReplicationControllerStatus{
			ObservedGeneration: in.Status.ObservedGeneration, Replicas: in.Status.Replicas, FullyLabeledReplicas: in.Status.FullyLabeledReplicas,
			ReadyReplicas: in.Status.ReadyReplicas, AvailableReplicas: in.Status.AvailableReplicas,
			Conditions: asControllerConditions(in.Status.Conditions),
		},
	}
}

func asControllerConditions(in []appsv1.ReplicaSetCondition) []corev1.ReplicationControllerCondition {
	var out []corev1.ReplicationControllerCondition
	for _, c := range in {
		out = append(out, corev1.ReplicationControllerCondition{
			Type: corev1.ReplicationControllerConditionType(c.Type), Status: c.Status, LastTransitionTime: c.LastTransitionTime,
			Reason: c.Reason, Message: c.Message,
		})
	}
	return out
}

func asControllers(in map[string]Report) map[string]Report {
	out := map[string]Report{}
	for cluster, report := range in {
		if rs := live[*appsv1.ReplicaSet](report); rs != nil {
			report.Live = asController(rs)
		}
		out[cluster] = report
	}
	return out
}

func TestReplicasAreSettledWhenAllServe(t *testing.T) {
	tests := map[string]struct {
		edit func(*appsv1.ReplicaSet)
		want bool
	}{
		"all serve":                {func(*appsv1.ReplicaSet) {}, true},
		"one is missing":           {func(rs *appsv1.ReplicaSet) { rs.Status.Replicas = 2 }, false},
		"one is too many":          {func(rs *appsv1.ReplicaSet) { rs.Status.Replicas = 4 }, false},
		"one does not serve":       {func(rs *appsv1.ReplicaSet) { rs.Status.AvailableReplicas = 2 }, false},
		"it was not looked at yet": {func(rs *appsv1.ReplicaSet) { rs.Generation = 18 }, false},
	}
	sets, _ := ForResource(replicaSetKind.resource)
	controllers, _ := ForResource(replicationControllerKind.resource)
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			below := running(2, 3, 3).Live.(*appsv1.ReplicaSet)
			below.Spec.Replicas, below.Generation = ptr.To[int32](3), 17
			test.edit(below)
			if got := sets.Settled(below); got != test.want {
				t.Errorf("settled = %t, want %t", got, test.want)
			}
			if got := controllers.Settled(asController(below)); got != test.want {
				t.Errorf("as a ReplicationController, settled = %t, want %t", got, test.want)
			}
		})
	}
}

func TestASilentClustersReplicasAreRememberedByTheirCounters(t *testing.T) {
	reports := map[string]Report{"east": running(2, 3, 2)}
	sets, _ := ForResource(replicaSetKind.resource)
	remembered := Input{
		Decision: shares(3), Reports: map[string]Report{"east": sets.LastKnown(sets.BreakdownOf(reports)["east"])}, Now: now,
	}
	if got := PlainReplicaSet(plain(3, 2), remembered); !equality.Semantic.DeepEqual(got, counted(2, 3, 2)) {
		t.Errorf("got %+v", got)
	}
	controllers, _ := ForResource(replicationControllerKind.resource)
	remembered.Reports = map[string]Report{"east": controllers.LastKnown(controllers.BreakdownOf(asControllers(reports))["east"])}
	if got := ReplicationController(asController(plain(3, 2)), remembered); got.Replicas != 3 || got.FullyLabeledReplicas != 3 || got.AvailableReplicas != 2 {
		t.Errorf("got %+v", got)
	}
}
