package summary

import (
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

func saneOf[P Object](t *testing.T, kind Kind, in, live P, bounds Bounds) (P, []string) {
	t.Helper()
	before := live.DeepCopyObject()
	got, doubts := kind.Sane(in, live, bounds)
	if !reflect.DeepEqual(before, live.DeepCopyObject()) {
		t.Error("the object of the cache was changed")
	}
	if again, more := kind.Sane(in, got, bounds); len(more) > 0 || !reflect.DeepEqual(again, got) {
		t.Errorf("what is sane is not: %v", more)
	}
	return got.(P), doubts
}

func TestSaneCountersAreWhatTheClusterWasTold(t *testing.T) {
	status := func(replicas, ready, available, updated int32) appsv1.DeploymentStatus {
		return appsv1.DeploymentStatus{Replicas: replicas, ReadyReplicas: ready, AvailableReplicas: available, UpdatedReplicas: updated}
	}
	for name, test := range map[string]struct {
		said, want appsv1.DeploymentStatus
		doubted    []string
	}{
		"all is well": {said: status(5, 4, 3, 2), want: status(5, 4, 3, 2)},
		"more than it was told, of which all serve": {
			said: status(1000, 1000, 1000, 1000), want: status(5, 5, 5, 5),
			doubted: []string{
				"replicas is 1000, and can be 5 at most", "readyReplicas is 1000, and can be 5 at most",
				"availableReplicas is 1000, and can be 5 at most", "updatedReplicas is 1000, and can be 5 at most",
			},
		},
		"less than nothing":              {said: status(-1, -2, math.MinInt32, -1), want: status(0, 0, 0, 0), doubted: []string{"replicas is -1", "readyReplicas is -2", "availableReplicas is -2147483648", "updatedReplicas is -1"}},
		"more are ready than there are":  {said: status(3, 4, 3, 3), want: status(3, 3, 3, 3), doubted: []string{"readyReplicas is 4"}},
		"more are available than ready":  {said: status(3, 2, 3, 3), want: status(3, 2, 2, 3), doubted: []string{"availableReplicas is 3"}},
		"a number that overflows in sum": {said: status(math.MaxInt32, 5, 5, 5), want: status(5, 5, 5, 5), doubted: []string{"replicas is 2147483647"}},
	} {
		t.Run(name, func(t *testing.T) {
			got, doubts := saneOf(t, deploymentKind.build(), web(4), &appsv1.Deployment{Status: test.said}, Bounds{Replicas: 5, Now: now})
			if !reflect.DeepEqual(got.Status, test.want) {
				t.Errorf("it counts as %+v, want %+v", got.Status, test.want)
			}
			if !slices.EqualFunc(doubts, test.doubted, strings.HasPrefix) {
				t.Errorf("doubts are %q, want %q", doubts, test.doubted)
			}
		})
	}
}

func TestSaneGenerationsAndConditions(t *testing.T) {
	future := metav1.NewTime(now.Add(200 * 365 * 24 * time.Hour))
	live := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Generation: 3, CreationTimestamp: longAgo}}
	live.Status.ObservedGeneration = 4
	live.Status.Conditions = []appsv1.DeploymentCondition{
		{Type: appsv1.DeploymentProgressing, Status: corev1.ConditionTrue, Reason: "NewReplicaSetAvailable", Message: "a\x1b[31mb", LastTransitionTime: future},
		{Type: appsv1.DeploymentProgressing, Status: corev1.ConditionFalse},
		{Type: "no type", Status: corev1.ConditionTrue},
		{Type: appsv1.DeploymentAvailable, Status: "Maybe"},
		{Type: appsv1.DeploymentReplicaFailure, Status: corev1.ConditionTrue, Reason: "what a reason", Message: strings.Repeat("x", 1<<20)},
	}
	got, doubts := saneOf(t, deploymentKind.build(), web(4), live, Bounds{Replicas: 5, Now: now})
	want := appsv1.DeploymentStatus{Conditions: []appsv1.DeploymentCondition{
		{Type: appsv1.DeploymentProgressing, Status: corev1.ConditionTrue, Reason: "NewReplicaSetAvailable", Message: "a^[[31mb", LastTransitionTime: longAgo},
		{Type: appsv1.DeploymentReplicaFailure, Status: corev1.ConditionTrue, Reason: "Unclear", Message: strings.Repeat("x", 1021) + "..."},
	}}
	if !reflect.DeepEqual(got.Status, want) {
		t.Errorf("it counts as %+v, want %+v", got.Status, want)
	}
	if len(doubts) != 3 || !strings.HasPrefix(doubts[0], "observedGeneration is 4 of 3") {
		t.Errorf("doubts are %q", doubts)
	}
	many := &appsv1.Deployment{}
	for i := range 100 {
		many.Status.Conditions = append(many.Status.Conditions, appsv1.DeploymentCondition{
			Type: appsv1.DeploymentConditionType(strings.Repeat("x", i%60+1)), Status: corev1.ConditionTrue,
		})
	}
	if got, _ := saneOf(t, deploymentKind.build(), web(4), many, Bounds{Now: now}); len(got.Status.Conditions) != mostConditions {
		t.Errorf("of 100 conditions %d count, want %d", len(got.Status.Conditions), mostConditions)
	}
}

func TestSaneServices(t *testing.T) {
	ip := func(ip string) corev1.LoadBalancerIngress { return corev1.LoadBalancerIngress{IP: ip} }
	host := func(name string) corev1.LoadBalancerIngress { return corev1.LoadBalancerIngress{Hostname: name} }
	for name, test := range map[string]struct {
		asks       corev1.ServiceType
		said, want []corev1.LoadBalancerIngress
	}{
		"addresses and names":                 {corev1.ServiceTypeLoadBalancer, []corev1.LoadBalancerIngress{ip("192.0.2.1"), ip("2001:db8::1"), host("a.example.com")}, []corev1.LoadBalancerIngress{ip("192.0.2.1"), ip("2001:db8::1"), host("a.example.com")}},
		"a Service that asks for none":        {corev1.ServiceTypeClusterIP, []corev1.LoadBalancerIngress{ip("192.0.2.1")}, nil},
		"what is no address":                  {corev1.ServiceTypeLoadBalancer, []corev1.LoadBalancerIngress{ip("192.0.2.01"), ip("::ffff:192.0.2.1"), ip("fe80::1%eth0"), ip("2001:DB8::1"), ip("any"), {}}, nil},
		"nobody, everybody and metadata":      {corev1.ServiceTypeLoadBalancer, []corev1.LoadBalancerIngress{ip("0.0.0.0"), ip("::"), ip("224.0.0.1"), ip("ff02::1"), ip("169.254.169.254"), ip("fe80::1"), ip("127.0.0.1")}, []corev1.LoadBalancerIngress{ip("127.0.0.1")}},
		"a name that is an address":           {corev1.ServiceTypeLoadBalancer, []corev1.LoadBalancerIngress{host("192.0.2.1"), host("010.0.0.1"), host("a..b"), host("A.example.com")}, nil},
		"one that is, beside one that is not": {corev1.ServiceTypeLoadBalancer, []corev1.LoadBalancerIngress{ip("x"), ip("192.0.2.1")}, []corev1.LoadBalancerIngress{ip("192.0.2.1")}},
		"a mode that there is not":            {corev1.ServiceTypeLoadBalancer, []corev1.LoadBalancerIngress{{IP: "192.0.2.1", IPMode: ptr.To(corev1.LoadBalancerIPMode("X"))}}, nil},
		"a mode of a name":                    {corev1.ServiceTypeLoadBalancer, []corev1.LoadBalancerIngress{{Hostname: "a.b", IPMode: ptr.To(corev1.LoadBalancerIPModeVIP)}}, nil},
		"a port that there is not":            {corev1.ServiceTypeLoadBalancer, []corev1.LoadBalancerIngress{{IP: "192.0.2.1", Ports: []corev1.PortStatus{{Port: 70000, Protocol: corev1.ProtocolTCP}}}}, nil},
		"more than anybody has":               {corev1.ServiceTypeLoadBalancer, slices.Repeat([]corev1.LoadBalancerIngress{ip("192.0.2.1")}, 1000), slices.Repeat([]corev1.LoadBalancerIngress{ip("192.0.2.1")}, 64)},
	} {
		t.Run(name, func(t *testing.T) {
			in := &corev1.Service{Spec: corev1.ServiceSpec{Type: test.asks}}
			live := &corev1.Service{}
			live.Status.LoadBalancer.Ingress = test.said
			got, _ := saneOf(t, serviceKind.build(), in, live, Bounds{Now: now})
			if !reflect.DeepEqual(got.Status.LoadBalancer.Ingress, test.want) {
				t.Errorf("it has %+v, want %+v", got.Status.LoadBalancer.Ingress, test.want)
			}
		})
	}
	live := &networkingv1.Ingress{}
	live.Status.LoadBalancer.Ingress = []networkingv1.IngressLoadBalancerIngress{{IP: "x"}, {IP: "169.254.169.254"}, {Hostname: "a.example.com"}}
	if got, _ := saneOf(t, ingressKind.build(), live, live, Bounds{Now: now}); len(got.Status.LoadBalancer.Ingress) != 1 {
		t.Errorf("the Ingress has %+v", got.Status.LoadBalancer.Ingress)
	}
}

func TestSaneJobs(t *testing.T) {
	times := func(start, end time.Duration) batchv1.JobStatus {
		return batchv1.JobStatus{StartTime: &metav1.Time{Time: longAgo.Add(start)}, CompletionTime: &metav1.Time{Time: longAgo.Add(end)}}
	}
	indexed := func(completed string, failed *string) batchv1.JobStatus {
		return batchv1.JobStatus{CompletedIndexes: completed, FailedIndexes: failed}
	}
	for name, test := range map[string]struct{ said, want batchv1.JobStatus }{
		"more than were asked for": {
			batchv1.JobStatus{Active: 1000, Succeeded: 1000, Failed: math.MaxInt32, Ready: ptr.To[int32](2000), Terminating: ptr.To[int32](-1)},
			batchv1.JobStatus{Active: 3, Succeeded: 10, Failed: plenty, Ready: ptr.To[int32](3), Terminating: ptr.To[int32](0)},
		},
		"times of its life":                  {times(time.Minute, time.Hour), times(time.Minute, time.Hour)},
		"times before it and to come":        {times(-30*24*time.Hour, 200*365*24*time.Hour), batchv1.JobStatus{}},
		"indexes that it has":                {indexed("0,2-4,9", ptr.To("1,5-7")), indexed("0,2-4,9", ptr.To("1,5-7"))},
		"indexes beyond its own":             {indexed("0-10", nil), indexed("", nil)},
		"indexes that both succeed and fail": {indexed("0-4", ptr.To("4")), indexed("0-4", nil)},
	} {
		t.Run(name, func(t *testing.T) {
			in := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: longAgo}, Spec: batchv1.JobSpec{
				Completions: ptr.To[int32](10), Parallelism: ptr.To[int32](3), CompletionMode: ptr.To(batchv1.IndexedCompletion),
				BackoffLimitPerIndex: ptr.To[int32](1),
			}}
			got, _ := saneOf(t, jobKind.build(), in, &batchv1.Job{Status: test.said}, Bounds{Replicas: 3, Now: now})
			if !reflect.DeepEqual(got.Status, test.want) {
				t.Errorf("it counts as %+v, want %+v", got.Status, test.want)
			}
		})
	}
}

func TestParseIndexes(t *testing.T) {
	for text, want := range map[string]bool{
		"": true, "0": true, "0,2": true, "0-2,4-5": true, "9": true, "10": false, "2,1": false, "1,1": false, "3-3": false, "4-2": false, "a": false,
		"-1": false, "+1": false, "01": false, "1,": false, ",1": false, "1--2": false, "0-99999999999": false, " 1": false,
	} {
		if _, ok := parseIndexes(text, 10); ok != want {
			t.Errorf("%q are indexes below 10: %t, want %t", text, ok, want)
		}
	}
}

func TestSaneDaemonSetsAndStatefulSets(t *testing.T) {
	live := &appsv1.DaemonSet{Status: appsv1.DaemonSetStatus{
		DesiredNumberScheduled: 1, CurrentNumberScheduled: 1000, NumberAvailable: 1000, UpdatedNumberScheduled: 1000, NumberMisscheduled: -1,
	}}
	got, _ := saneOf(t, daemonSetKind.build(), live, live, Bounds{Now: now})
	want := appsv1.DaemonSetStatus{DesiredNumberScheduled: 1, CurrentNumberScheduled: 1, NumberAvailable: 1, UpdatedNumberScheduled: 1}
	if !reflect.DeepEqual(got.Status, want) {
		t.Errorf("the DaemonSet counts as %+v, want %+v", got.Status, want)
	}
	set := &appsv1.StatefulSet{Status: appsv1.StatefulSetStatus{
		Replicas: 9, ReadyReplicas: 9, AvailableReplicas: 9, UpdatedReplicas: 9, CurrentReplicas: 9, CurrentRevision: "a/b", UpdateRevision: "web-1",
	}}
	sane, _ := saneOf(t, statefulSetKind.build(), set, set, Bounds{Replicas: 3, Now: now})
	if want := (appsv1.StatefulSetStatus{
		Replicas: 3, ReadyReplicas: 3, AvailableReplicas: 3, UpdatedReplicas: 3, UpdateRevision: "web-1",
	}); !reflect.DeepEqual(sane.Status, want) {
		t.Errorf("the StatefulSet counts as %+v, want %+v", sane.Status, want)
	}
}

func TestSaneClaims(t *testing.T) {
	size := func(text string) corev1.ResourceList {
		return corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(text)}
	}
	live := &corev1.PersistentVolumeClaim{}
	live.Spec.VolumeName = "../volume"
	live.Status = corev1.PersistentVolumeClaimStatus{
		Phase: "Stolen", Capacity: size("-1Gi"), AllocatedResources: size("1000E"), AccessModes: []corev1.PersistentVolumeAccessMode{"All", corev1.ReadWriteOnce},
		AllocatedResourceStatuses: map[corev1.ResourceName]corev1.ClaimResourceStatus{corev1.ResourceStorage: "x"},
		ModifyVolumeStatus:        &corev1.ModifyVolumeStatus{Status: "x"}, CurrentVolumeAttributesClassName: ptr.To("a/b"),
	}
	got, _ := saneOf(t, persistentVolumeClaimKind.build(), live, live, Bounds{Now: now})
	want := corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimPending, AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}}
	if !reflect.DeepEqual(got.Status, want) || got.Spec.VolumeName != "" {
		t.Errorf("it counts as %+v of volume %q, want %+v", got.Status, got.Spec.VolumeName, want)
	}
	fine := &corev1.PersistentVolumeClaim{Status: corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimBound, Capacity: size("1Gi")}}
	if got, doubts := persistentVolumeClaimKind.build().Sane(fine, fine, Bounds{Now: now}); got != Object(fine) || len(doubts) > 0 {
		t.Errorf("what is in order is doubted: %q", doubts)
	}
}
