package summary

import (
	"reflect"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/manifold-dev/manifold/pkg/placement"
)

// brief writes conditions as type=status reason, in order.
func brief(in []appsv1.DeploymentCondition) string {
	var out []string
	for _, c := range in {
		out = append(out, string(c.Type)+"="+string(c.Status)+" "+c.Reason)
	}
	return strings.Join(out, ", ")
}

func TestConditions(t *testing.T) {
	const (
		available   = "Available=True MinimumReplicasAvailable"
		unavailable = "Available=False MinimumReplicasUnavailable"
	)
	tests := map[string]struct {
		in       *appsv1.Deployment
		decision placement.Decision
		reports  map[string]Report
		unplaced string
		want     string
		// messages are parts of the message of the last condition.
		messages []string
	}{
		"all shares have rolled out": {
			in: web(5), decision: shares(3, 2), reports: map[string]Report{"east": done(3), "west": done(2)},
			want: available + ", Progressing=True NewReplicaSetAvailable", messages: []string{`Deployment "web" has successfully progressed.`},
		},
		"one share has not rolled out": {
			in: web(5), decision: shares(3, 2), reports: map[string]Report{"east": done(3), "west": progress(2, 1, 1, reasonUpdated)},
			want: available + ", Progressing=True ReplicaSetUpdated",
		},
		"one share rolls back to a ReplicaSet that it has, and still says that it is available": {
			in: web(5), decision: shares(3, 2), reports: map[string]Report{"east": done(3), "west": progress(2, 0, 2, reasonComplete)},
			want: available + ", Progressing=True ReplicaSetUpdated",
		},
		"one share has not reported": {
			in: web(5), decision: shares(3, 2), reports: map[string]Report{"east": done(3)},
			want: unavailable + ", Progressing=True ReplicaSetUpdated",
		},
		"one share is on an older generation": {
			in: web(5), decision: shares(3, 2), reports: map[string]Report{"east": done(3), "west": and(done(2), older)},
			want: available + ", Progressing=True ReplicaSetUpdated",
		},
		"one cluster passed its deadline": {
			in: web(5), decision: shares(3, 2), reports: map[string]Report{"east": done(3), "west": progress(2, 1, 1, reasonTimedOut)},
			want: available + ", Progressing=False ProgressDeadlineExceeded", messages: []string{`cluster "west": said below`},
		},
		"one cluster passed the deadline of an older generation": {
			in: web(5), decision: shares(3, 2),
			reports: map[string]Report{"east": done(3), "west": and(progress(2, 1, 1, reasonTimedOut), older)},
			want:    available + ", Progressing=True ReplicaSetUpdated",
		},
		"a cluster that left passed its deadline": {
			in: web(5), decision: shares(5), reports: map[string]Report{"east": done(5), "west": progress(2, 1, 1, reasonTimedOut)},
			want: available + ", Progressing=True ReplicaSetUpdated",
		},
		"conditions contradict each other: the deadline goes first, then what is not applied": {
			in: web(5), decision: shares(3, 1, 1),
			reports: map[string]Report{"east": done(3), "west": progress(1, 0, 0, reasonTimedOut), "north": and(done(1), conflict)},
			want:    unavailable + ", Progressing=False ProgressDeadlineExceeded", messages: []string{`cluster "west": said below`},
		},
		"clusters that cannot hold it are named with their problems": {
			in: web(5), decision: shares(3, 1, 1),
			reports:  map[string]Report{"east": done(3), "west": and(done(1), conflict), "north": and(done(1), conflict)},
			want:     unavailable + ", Progressing=False NotApplied",
			messages: []string{`cluster "north": the name is taken; cluster "west": the name is taken`},
		},
		"a cluster that left and cannot hold it does not matter": {
			in: web(3), decision: shares(3), reports: map[string]Report{"east": done(3), "west": and(done(1), conflict)},
			want: available + ", Progressing=True NewReplicaSetAvailable",
		},
		"a cluster cannot make the ReplicaSet": {
			in: web(3), decision: shares(3), reports: map[string]Report{"east": progress(0, 0, 0, "ReplicaSetCreateError")},
			want: unavailable + ", Progressing=False ReplicaSetCreateError", messages: []string{`cluster "east": said below`},
		},
		"pods cannot be made in some clusters": {
			in: web(5), decision: shares(3, 2), reports: map[string]Report{"west": and(done(2), quota), "east": and(done(3), quota)},
			want:     available + ", Progressing=True NewReplicaSetAvailable, ReplicaFailure=True FailedCreate",
			messages: []string{`cluster "east": exceeded quota; cluster "west": exceeded quota`},
		},
		"old replicas are left in a cluster that is no longer decided on": {
			in: web(3), decision: shares(3), reports: map[string]Report{"east": done(3), "west": done(3)},
			want: available + ", Progressing=True ReplicaSetUpdated",
		},
		"a cluster is silent": {
			in: web(5), decision: shares(3, 2), reports: map[string]Report{"east": done(3), "west": and(done(2), silent)},
			want:     available + ", Progressing=True NewReplicaSetAvailable",
			messages: []string{`Cluster "west" is silent; its numbers are the last known.`},
		},
		"two clusters are silent": {
			in: web(5), decision: shares(3, 2), reports: map[string]Report{"east": {Stale: true}, "west": {Stale: true}},
			want: unavailable + ", Progressing=True ReplicaSetUpdated", messages: []string{`Clusters "east", "west" are silent`},
		},
		"paused": {
			in: web(5, paused), decision: shares(3, 2), reports: map[string]Report{"east": done(3), "west": done(2)},
			want: available + ", Progressing=Unknown DeploymentPaused",
		},
		"paused after the deadline": {
			in: web(5, paused), decision: shares(5), reports: map[string]Report{"east": progress(5, 1, 5, reasonTimedOut)},
			want: available + ", Progressing=False ProgressDeadlineExceeded",
		},
		"scaled to zero": {
			in: web(0), decision: shares(0, 0), reports: map[string]Report{"east": done(0), "west": done(0)},
			want: available + ", Progressing=True NewReplicaSetAvailable",
		},
		"scaled to zero and placed nowhere": {
			in: web(0), unplaced: "0/0 clusters can run it", want: available + ", Progressing=True NewReplicaSetAvailable",
		},
		"unplaced": {
			in: web(3), unplaced: "0/2 clusters can run it: 2 are cordoned",
			want: unavailable + ", Progressing=False Unplaced", messages: []string{"0/2 clusters can run it: 2 are cordoned"},
		},
		"unplaced by now, but still served by the clusters that it leaves": {
			in: web(3), unplaced: "0/2 clusters can run it", reports: map[string]Report{"east": done(3)},
			want: available + ", Progressing=False Unplaced",
		},
		"a reason for being unplaced is void once it is placed": {
			in: web(3), decision: shares(3), unplaced: "0/2 clusters can run it", reports: map[string]Report{"east": done(3)},
			want: available + ", Progressing=True NewReplicaSetAvailable",
		},
		"not decided yet": {
			in: web(3), want: unavailable + ", Progressing=True ReplicaSetUpdated",
		},
		"without a deadline nobody speaks of progress": {
			in: web(3, noDeadline), decision: shares(3), reports: map[string]Report{"east": done(3)}, want: available,
		},
		"without a deadline trouble is still told": {
			in: web(3, noDeadline), decision: shares(3), reports: map[string]Report{"east": and(done(3), conflict)},
			want: unavailable + ", Progressing=False NotApplied",
		},
		"fewer replicas are decided on than asked for": {
			in: web(8), decision: shares(3), reports: map[string]Report{"east": done(3)},
			want: unavailable + ", Progressing=True ReplicaSetUpdated",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got := Deployment(test.in, Input{Decision: test.decision, Reports: test.reports, Unplaced: test.unplaced, Now: now}).Conditions
			if brief(got) != test.want {
				t.Errorf("conditions = %s\nwant %s", brief(got), test.want)
			}
			for _, part := range test.messages {
				if message := got[len(got)-1].Message; !strings.Contains(message, part) {
					t.Errorf("message = %q, want it to say %q", message, part)
				}
			}
		})
	}
}

// A share that is held to a part of what was decided is not what was decided yet, and what its cluster says of the rollout counts.
func TestConditionsOfAMove(t *testing.T) {
	held := func(in *Report) { in.Begun, in.Generation = in.Generation, 0 }
	for name, test := range map[string]struct {
		west          Report
		want, message string
	}{
		"it goes on": {
			west: and(done(1), held), want: "Progressing=True ReplicaSetUpdated", message: `Deployment "web" moves: 2 to leave east.`,
		},
		"what never becomes ready is told, with its cluster": {
			west: and(progress(1, 1, 0, reasonTimedOut), held), want: "Progressing=False ProgressDeadlineExceeded", message: `cluster "west": said below`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			status := Deployment(web(3), Input{
				Decision: placement.Decision{"west": {Replicas: 3}}, Reports: map[string]Report{"east": and(done(2), held), "west": test.west},
				Move: "2 to leave east", Now: now,
			})
			if got := brief(status.Conditions); !strings.Contains(got, test.want) {
				t.Errorf("conditions %s, want %s", got, test.want)
			}
			if message := find(status.Conditions, appsv1.DeploymentProgressing).Message; !strings.HasPrefix(message, test.message) {
				t.Errorf("message %q, want %q", message, test.message)
			}
			if status.ObservedGeneration == 2 {
				t.Error("the generation counts as observed, though not all is as decided")
			}
		})
	}
}

func TestAvailability(t *testing.T) {
	strategy := func(surge, unavailable intstr.IntOrString) func(*appsv1.Deployment) {
		return func(in *appsv1.Deployment) {
			in.Spec.Strategy.RollingUpdate = &appsv1.RollingUpdateDeployment{MaxSurge: &surge, MaxUnavailable: &unavailable}
		}
	}
	atLeastOne := strategy(intstr.FromInt32(0), intstr.FromString("1%"))
	two := strategy(intstr.FromInt32(1), intstr.FromInt32(2))
	nine := strategy(intstr.FromInt32(1), intstr.FromInt32(9))
	recreate := func(in *appsv1.Deployment) {
		in.Spec.Strategy = appsv1.DeploymentStrategy{Type: appsv1.RecreateDeploymentStrategyType}
	}
	tests := map[string]struct {
		in        *appsv1.Deployment
		decision  placement.Decision
		available int32
		want      corev1.ConditionStatus
	}{
		"a quarter may be missing":                                 {web(8), shares(8), 6, corev1.ConditionTrue},
		"more than a quarter may not":                              {web(8), shares(8), 5, corev1.ConditionFalse},
		"a fraction is rounded down":                               {web(7), shares(7), 6, corev1.ConditionTrue},
		"a fraction is not rounded up":                             {web(7), shares(7), 5, corev1.ConditionFalse},
		"if neither surge nor absence is left, one may be missing": {web(3, atLeastOne), shares(3), 2, corev1.ConditionTrue},
		"a number may be missing":                                  {web(3, two), shares(3), 1, corev1.ConditionTrue},
		"a number may be larger than all":                          {web(3, nine), shares(3), 0, corev1.ConditionTrue},
		"nothing may be missing where all are made anew":           {web(3, recreate), shares(3), 2, corev1.ConditionFalse},
		"what counts is the total of wholes":                       {web(3), shares(3, 3), 4, corev1.ConditionFalse},
		"a quarter of the total of wholes may be missing":          {web(3), shares(3, 3), 5, corev1.ConditionTrue},
		"what is not placed is missing":                            {web(8), shares(4), 4, corev1.ConditionFalse},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			report := Report{Generation: 2, Live: &appsv1.Deployment{Status: appsv1.DeploymentStatus{AvailableReplicas: test.available}}}
			got := Deployment(test.in, Input{Decision: test.decision, Reports: map[string]Report{"east": report}, Now: now})
			if c := find(got.Conditions, appsv1.DeploymentAvailable); c.Status != test.want {
				t.Errorf("Available = %s with %d replicas, want %s", c.Status, test.available, test.want)
			}
		})
	}
}

func TestTimesOfConditions(t *testing.T) {
	condition := func(status corev1.ConditionStatus, reason, message string) appsv1.DeploymentCondition {
		return appsv1.DeploymentCondition{
			Type: appsv1.DeploymentProgressing, Status: status, Reason: reason, Message: message,
			LastUpdateTime: longAgo, LastTransitionTime: longAgo,
		}
	}
	before := condition(corev1.ConditionTrue, "A", "a")
	at := func(c appsv1.DeploymentCondition, update, transition bool) appsv1.DeploymentCondition {
		if update {
			c.LastUpdateTime = now
		}
		if transition {
			c.LastTransitionTime = now
		}
		return c
	}
	tests := map[string]struct {
		after, want appsv1.DeploymentCondition
	}{
		"nothing changed keeps both times": {before, before},
		"another message is an update":     {condition("True", "A", "b"), at(condition("True", "A", "b"), true, false)},
		"another reason is an update":      {condition("True", "B", "a"), at(condition("True", "B", "a"), true, false)},
		"another status is a transition":   {condition("False", "A", "a"), at(condition("False", "A", "a"), true, true)},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			test.after.LastUpdateTime, test.after.LastTransitionTime = now, now
			got := settleConditions([]appsv1.DeploymentCondition{before}, []appsv1.DeploymentCondition{test.after}, now)
			if !reflect.DeepEqual(got, []appsv1.DeploymentCondition{test.want}) {
				t.Errorf("got %+v, want %+v", got, test.want)
			}
		})
	}
	t.Run("conditions of others stay, those of ours that ended go", func(t *testing.T) {
		foreign := appsv1.DeploymentCondition{Type: "example.com/Checked", Status: "True", LastUpdateTime: longAgo}
		failure := appsv1.DeploymentCondition{Type: appsv1.DeploymentReplicaFailure, Status: "True"}
		got := settleConditions([]appsv1.DeploymentCondition{foreign, failure}, []appsv1.DeploymentCondition{before}, now)
		if len(got) != 2 || got[0].Type != appsv1.DeploymentProgressing || !reflect.DeepEqual(got[1], foreign) {
			t.Errorf("got %+v", got)
		}
	})
	t.Run("a first condition is of now", func(t *testing.T) {
		got := Deployment(web(1), Input{Decision: shares(1), Reports: map[string]Report{"east": done(1)}, Now: now})
		for _, c := range got.Conditions {
			if !c.LastUpdateTime.Equal(ptr.To(now)) || !c.LastTransitionTime.Equal(ptr.To(now)) {
				t.Errorf("%s has the times %v and %v, want %v", c.Type, c.LastUpdateTime, c.LastTransitionTime, now)
			}
		}
	})
}
