package syncer

import (
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/placement"
	"github.com/manifold-dev/manifold/pkg/projection"
	"github.com/manifold-dev/manifold/pkg/summary"
	"github.com/manifold-dev/manifold/pkg/syncer/mirrors"
)

const overQuota = "exceeded quota: tight, requested: pods=1, used: pods=1, limited: pods=1"

// databaseBelow is a StatefulSet in a cluster that has so many of three pods.
func databaseBelow(pods int32) *appsv1.StatefulSet {
	set := &appsv1.StatefulSet{ObjectMeta: objectMeta("db")}
	set.UID, set.Generation = "db-below", 1
	set.Labels = map[string]string{v1alpha1.LabelLogicalCluster: logicalCluster}
	set.Annotations = map[string]string{
		v1alpha1.AnnotationNamespace: "shop", v1alpha1.AnnotationName: "db", v1alpha1.AnnotationUID: "db",
	}
	set.Spec.Replicas = ptr.To[int32](3)
	set.Status = appsv1.StatefulSetStatus{ObservedGeneration: 1, Replicas: pods}
	return set
}

var started = time.Date(2026, time.November, 20, 12, 0, 0, 0, time.UTC)

// toldOf is an event about the StatefulSet.
func toldOf(reason, message string, first, last time.Time) *corev1.Event {
	return &corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{Namespace: "shop", Name: reason, UID: "event"},
		InvolvedObject: corev1.ObjectReference{APIVersion: "apps/v1", Kind: "StatefulSet", Namespace: "shop", Name: "db", UID: "db-below"},
		Reason:         reason, Message: message, FirstTimestamp: metav1.NewTime(first), LastTimestamp: metav1.NewTime(last),
	}
}

func TestEventsTellOfPodsThatAreRefused(t *testing.T) {
	refusal := `create Pod db-1 in StatefulSet db failed error: pods "db-1" is forbidden: ` + overQuota
	fails := func(first, last time.Duration) *corev1.Event {
		return toldOf("FailedCreate", refusal, started.Add(first), started.Add(last))
	}
	made := func(at time.Duration) *corev1.Event {
		return toldOf("SuccessfulCreate", "create Pod db-1 in StatefulSet db successful", started.Add(at), started.Add(at))
	}
	for name, test := range map[string]struct {
		events []*corev1.Event
		pods   int32
		want   *placement.Refusal
	}{
		"since the first time":               {events: []*corev1.Event{fails(0, 0), fails(0, time.Minute)}, pods: 1, want: &placement.Refusal{Pods: 2, Since: started, Says: overQuota}},
		"nothing once all pods are there":    {events: []*corev1.Event{fails(0, 0)}, pods: 3},
		"nothing once the next one was made": {events: []*corev1.Event{fails(0, 0), made(time.Minute)}, pods: 2},
		"anew after that": {
			events: []*corev1.Event{fails(0, 0), made(time.Minute), fails(0, time.Hour)}, pods: 1,
			want: &placement.Refusal{Pods: 2, Since: started.Add(time.Hour), Says: overQuota},
		},
		"nothing of what is wrong with it": {events: []*corev1.Event{toldOf("FailedCreate", `Pod "db-1" is invalid: spec: no`, started, started)}, pods: 1},
		"nothing without a word":           {pods: 1},
	} {
		t.Run(name, func(t *testing.T) {
			live := databaseBelow(test.pods)
			s := attach(t, newUpstream(t), "east", live, namespace("shop"))
			for _, e := range test.events {
				s.reports.PodsRefused(e, mirrors.LastSeen(e))
			}
			kind, _ := summary.ForResource(statefulSetResource)
			got := s.reports.Refused(kind, live)
			if (got == nil) != (test.want == nil) || got != nil && *got != *test.want {
				t.Errorf("got %+v, want %+v", got, test.want)
			}
			if news := len(test.events) > 0; test.want != nil && news && len(s.changes) == 0 {
				t.Error("nobody is told")
			}
		})
	}
}

// What the logical cluster bounds itself is bounded wherever the pods go.
func TestOnlyTheClustersOwnRefusalsCount(t *testing.T) {
	owned := func(obj projection.Object) projection.Object {
		obj.SetLabels(map[string]string{v1alpha1.LabelLogicalCluster: logicalCluster})
		obj.SetAnnotations(map[string]string{v1alpha1.AnnotationNamespace: "shop", v1alpha1.AnnotationName: obj.GetName(), v1alpha1.AnnotationUID: "above"})
		return obj
	}
	secured := namespace("shop")
	secured.Labels = map[string]string{"pod-security.kubernetes.io/enforce": "restricted"}
	const large, privileged = "maximum cpu usage per Container is 1, but limit is 2", `violates PodSecurity "restricted:latest": privileged`
	for name, test := range map[string]struct {
		says      string
		below     projection.Object
		namespace *corev1.Namespace
		want      bool
	}{
		"a quota of its own":               {says: overQuota, want: true},
		"a quota from above":               {says: overQuota, below: owned(&corev1.ResourceQuota{ObjectMeta: objectMeta("tight")})},
		"another quota from above":         {says: overQuota, below: owned(&corev1.ResourceQuota{ObjectMeta: objectMeta("wide")}), want: true},
		"limits of its own":                {says: large, want: true},
		"limits from above":                {says: large, below: owned(&corev1.LimitRange{ObjectMeta: objectMeta("limits")})},
		"what its admin lets pods do":      {says: privileged, want: true},
		"what the namespace lets them do":  {says: privileged, namespace: secured},
		"a policy of the cluster's admins": {says: `admission webhook "policy.example.com" denied the request: no`, want: true},
	} {
		t.Run(name, func(t *testing.T) {
			above := test.namespace
			if above == nil {
				above = namespace("shop")
			}
			live := deployment("web", toEast)
			live.Status.ObservedGeneration = live.Generation
			live.Spec.Replicas = ptr.To[int32](1)
			live.Status.Conditions = []appsv1.DeploymentCondition{{
				Type: appsv1.DeploymentReplicaFailure, Status: corev1.ConditionTrue, Reason: "FailedCreate", LastTransitionTime: metav1.NewTime(started),
				Message: `pods "web-1" is forbidden: ` + test.says,
			}}
			if test.says[:9] == "admission" {
				live.Status.Conditions[0].Message = test.says
			}
			var below []projection.Object
			if test.below != nil {
				below = append(below, test.below)
			}
			s := attach(t, newUpstream(t, above), "east", below...)
			kind, _ := summary.ForResource(deploymentResource)
			got := s.reports.Refused(kind, live)
			if want := (placement.Refusal{Pods: 1, Since: started, Says: test.says}); (got != nil) != test.want || got != nil && *got != want {
				t.Errorf("got %+v, want one: %t", got, test.want)
			}
		})
	}
}
