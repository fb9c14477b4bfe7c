package status

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/clusters/capacity"
	"github.com/manifold-dev/manifold/pkg/placement"
)

// resources builds a resource list from name and quantity in turn.
func resources(pairs ...string) corev1.ResourceList {
	l := corev1.ResourceList{}
	for i := 0; i < len(pairs); i += 2 {
		l[corev1.ResourceName(pairs[i])] = resource.MustParse(pairs[i+1])
	}
	return l
}

var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

func readyCondition(status metav1.ConditionStatus, reason string, since time.Time) metav1.Condition {
	return metav1.Condition{Type: v1alpha1.ClusterReady, Status: status, Reason: reason, LastTransitionTime: metav1.NewTime(since)}
}

// fullStatus is that of a cluster that has been ready since noon.
func fullStatus() v1alpha1.ClusterStatus {
	return v1alpha1.ClusterStatus{
		Conditions:        []metav1.Condition{readyCondition(metav1.ConditionTrue, "ClusterReady", noon)},
		UID:               "uid-1",
		KubernetesVersion: "v1.37.1",
		Kinds:             []string{"Deployment.v1.apps", "Pod.v1"},
		Nodes:             v1alpha1.NodeCount{Total: 2, Ready: 1},
		Capacity:          resources("cpu", "8", "pods", "220"),
		Allocatable:       resources("cpu", "4", "pods", "110"),
		GrownFrom:         resources("cpu", "4", "pods", "110"),
		GrownAt:           &metav1.Time{Time: noon},
		Requested:         resources("cpu", "1", "pods", "5"),
		Topology:          map[string]string{corev1.LabelTopologyRegion: "eu"},
	}
}

func TestNextStatus(t *testing.T) {
	later := noon.Add(time.Hour)
	nodes := func() *capacity.Nodes {
		status := fullStatus()
		return &capacity.Nodes{Count: status.Nodes, Capacity: status.Capacity, Allocatable: status.Allocatable, Topology: status.Topology}
	}
	condition := func(status metav1.ConditionStatus, reason string) *metav1.Condition {
		c := readyCondition(status, reason, time.Time{})
		return &c
	}
	unknown := func(reason string) v1alpha1.ClusterStatus {
		status := fullStatus()
		status.Conditions[0] = readyCondition(metav1.ConditionUnknown, reason, noon)
		return status
	}
	for name, test := range map[string]struct {
		last v1alpha1.ClusterStatus
		seen Observation
		want func(*v1alpha1.ClusterStatus) // changes last
	}{
		"nothing known changes nothing": {last: fullStatus(), want: func(*v1alpha1.ClusterStatus) {}},
		"the same once more changes nothing": {
			last: fullStatus(),
			seen: Observation{Ready: condition(metav1.ConditionTrue, "ClusterReady"), UID: "uid-1", Version: "v1.37.1",
				Kinds: fullStatus().Kinds, Nodes: nodes(), Requested: resources("cpu", "1000m", "memory", "5Gi", "pods", "5")},
			want: func(*v1alpha1.ClusterStatus) {},
		},
		"everything is filled in at the first look": {
			seen: Observation{Ready: condition(metav1.ConditionTrue, "ClusterReady"), UID: "uid-1", Version: "v1.37.1",
				Kinds: fullStatus().Kinds, Nodes: nodes(), Requested: resources("cpu", "1", "memory", "5Gi", "pods", "5")},
			want: func(s *v1alpha1.ClusterStatus) {
				*s = fullStatus()
				s.Conditions[0].LastTransitionTime = metav1.NewTime(later)
				s.GrownAt = &metav1.Time{Time: later}
			},
		},
		"a change of state has its time": {
			last: fullStatus(),
			seen: Observation{Ready: condition(metav1.ConditionUnknown, "Unreachable")},
			want: func(s *v1alpha1.ClusterStatus) {
				s.Conditions[0] = readyCondition(metav1.ConditionUnknown, "Unreachable", later)
			},
		},
		"a change of reason alone keeps the time": {
			last: fullStatus(),
			seen: Observation{Ready: condition(metav1.ConditionTrue, "Other")},
			want: func(s *v1alpha1.ClusterStatus) { s.Conditions[0] = readyCondition(metav1.ConditionTrue, "Other", noon) },
		},
		"a cluster that has returned is fenced within the same silence": {
			last: unknown("Unreachable"),
			seen: Observation{Ready: condition(metav1.ConditionUnknown, "Fenced")},
			want: func(s *v1alpha1.ClusterStatus) {
				s.Conditions[0] = readyCondition(metav1.ConditionUnknown, "Fenced", noon)
			},
		},
		"one that falls silent again begins another": {
			last: unknown("Fenced"),
			seen: Observation{Ready: condition(metav1.ConditionUnknown, "Unreachable")},
			want: func(s *v1alpha1.ClusterStatus) {
				s.Conditions[0] = readyCondition(metav1.ConditionUnknown, "Unreachable", later)
			},
		},
		"what the token ends with goes with what is said of the credential": {
			last: fullStatus(),
			seen: Observation{Credential: &metav1.Condition{Type: v1alpha1.ClusterCredentialValid, Status: metav1.ConditionTrue}, TokenSecret: "manifold-system/syncer-x"},
			want: func(s *v1alpha1.ClusterStatus) {
				s.TokenSecret = "manifold-system/syncer-x"
				s.Conditions = append(s.Conditions, metav1.Condition{
					Type: v1alpha1.ClusterCredentialValid, Status: metav1.ConditionTrue, LastTransitionTime: metav1.NewTime(later),
				})
			},
		},
		"what the token ends with is kept while nothing is known of the credential": {
			last: func() v1alpha1.ClusterStatus { s := fullStatus(); s.TokenSecret = "manifold-system/syncer-x"; return s }(),
			seen: Observation{UID: "uid-1"}, want: func(*v1alpha1.ClusterStatus) {},
		},
		"the identity of the cluster that joined is never overwritten": {
			last: fullStatus(), seen: Observation{UID: "uid-2"}, want: func(*v1alpha1.ClusterStatus) {},
		},
		"requests wait for the nodes, which say what counts": {
			seen: Observation{Requested: resources("cpu", "1")}, want: func(*v1alpha1.ClusterStatus) {},
		},
		"a label that the nodes no longer share goes": {
			last: fullStatus(),
			seen: Observation{Nodes: func() *capacity.Nodes { n := nodes(); n.Topology = map[string]string{}; return n }()},
			want: func(s *v1alpha1.ClusterStatus) { s.Topology = map[string]string{} },
		},
	} {
		t.Run(name, func(t *testing.T) {
			before := *test.last.DeepCopy()
			want := *test.last.DeepCopy()
			test.want(&want)
			got := Next(test.last, test.seen, later)
			if !equality.Semantic.DeepEqual(got, want) {
				t.Errorf("(-want +got):\n%s", cmp.Diff(want, got))
			}
			if again := Next(got, test.seen, later.Add(time.Hour)); !equality.Semantic.DeepEqual(again, got) {
				t.Errorf("a second time it changed again:\n%s", cmp.Diff(got, again))
			}
			if !equality.Semantic.DeepEqual(test.last, before) {
				t.Error("the last status was changed")
			}
		})
	}
}

func TestAClusterIsBelievedToGrowByDoubling(t *testing.T) {
	status, now := fullStatus(), noon
	nodes := &capacity.Nodes{Count: v1alpha1.NodeCount{Total: 1, Ready: 1}, Allocatable: resources("cpu", "200k", "pods", "110")}
	for _, want := range []struct{ cpu, until string }{
		{"1000", "2026-11-20T12:10:00Z"}, {"1000", "2026-11-20T12:10:00Z"}, {"2000", "2026-11-20T12:20:00Z"}, {"2000", "2026-11-20T12:20:00Z"},
		{"4000", "2026-11-20T12:30:00Z"},
	} {
		status = Next(status, Observation{Nodes: nodes}, now)
		if got := status.Allocatable[corev1.ResourceCPU]; got.Cmp(resource.MustParse(want.cpu)) != 0 {
			t.Errorf("at %s %s CPUs count, want %s", now.Format(time.TimeOnly), got.String(), want.cpu)
		}
		condition := meta.FindStatusCondition(status.Conditions, v1alpha1.ClusterCapacityCounted)
		if condition == nil || condition.Status != metav1.ConditionFalse || !strings.Contains(condition.Message, want.until) {
			t.Errorf("at %s it is told %+v, want until %s", now.Format(time.TimeOnly), condition, want.until)
		}
		if wait := BeliefEnds(status, now); wait <= 0 || wait > capacity.Window {
			t.Errorf("it is looked at again in %s", wait)
		}
		now = now.Add(capacity.Window / 2)
	}
	limited := Next(status, Observation{Nodes: nodes, Limits: resources("cpu", "100k")}, now)
	if got := limited.Allocatable[corev1.ResourceCPU]; got.Cmp(resource.MustParse("100k")) != 0 || BeliefEnds(limited, now) != 0 {
		t.Errorf("with a limit %s CPUs count, conditions %+v", got.String(), limited.Conditions)
	}
	doubted := Next(fullStatus(), Observation{Nodes: &capacity.Nodes{Doubt: "1 of 3 nodes are not counted"}}, noon)
	if condition := meta.FindStatusCondition(doubted.Conditions, v1alpha1.ClusterCapacityCounted); condition == nil || condition.Message != "1 of 3 nodes are not counted" {
		t.Errorf("it is told %+v", condition)
	}
}

func TestWriteIn(t *testing.T) {
	const interval = 5 * time.Second
	for name, test := range map[string]struct {
		change func(*v1alpha1.ClusterStatus)
		since  time.Duration
		want   time.Duration
	}{
		"numbers wait for the interval": {
			change: func(s *v1alpha1.ClusterStatus) { s.Requested = resources("cpu", "2") }, since: 2 * time.Second, want: 3 * time.Second,
		},
		"numbers are written at once after a quiet time": {
			change: func(s *v1alpha1.ClusterStatus) { s.Requested = resources("cpu", "2") }, since: interval,
		},
		"nodes are numbers": {
			change: func(s *v1alpha1.ClusterStatus) { s.Nodes.Ready, s.Allocatable = 2, resources("cpu", "8") }, want: interval,
		},
		"a condition does not wait": {
			change: func(s *v1alpha1.ClusterStatus) { s.Conditions[0].Status = metav1.ConditionFalse },
		},
		"a version does not wait":       {change: func(s *v1alpha1.ClusterStatus) { s.KubernetesVersion = "v1.38.0" }},
		"first numbers do not wait":     {change: func(s *v1alpha1.ClusterStatus) { s.Requested = resources("cpu", "1") }},
		"a condition takes the numbers": {change: func(s *v1alpha1.ClusterStatus) { s.Conditions, s.Nodes.Total = nil, 9 }},
	} {
		t.Run(name, func(t *testing.T) {
			last := fullStatus()
			if name == "first numbers do not wait" {
				last.Requested = nil
			}
			next := *last.DeepCopy()
			test.change(&next)
			if got := WriteIn(last, next, test.since, interval); got != test.want {
				t.Errorf("write in %s, want %s", got, test.want)
			}
		})
	}
}

func TestTaints(t *testing.T) {
	own := corev1.Taint{Key: "dedicated", Effect: corev1.TaintEffectNoSchedule}
	for name, test := range map[string]struct {
		conditions []metav1.Condition
		want       []string
	}{
		"a ready cluster has its own":         {fullStatus().Conditions, []string{"dedicated:NoSchedule"}},
		"a cluster not heard yet has its own": {nil, []string{"dedicated:NoSchedule"}},
		"a silent cluster is unreachable": {[]metav1.Condition{readyCondition("Unknown", "Unreachable", noon)}, []string{
			"dedicated:NoSchedule", v1alpha1.TaintUnreachable + ":NoSchedule", v1alpha1.TaintUnreachable + ":NoExecute"}},
		"one that has returned and is fenced drives nothing out": {[]metav1.Condition{readyCondition("Unknown", "Fenced", noon)}, []string{
			"dedicated:NoSchedule", v1alpha1.TaintUnreachable + ":NoSchedule"}},
		"a cluster that says so is not ready":    {[]metav1.Condition{readyCondition("False", "NotReady", noon)}, []string{"dedicated:NoSchedule", v1alpha1.TaintNotReady + ":NoSchedule"}},
		"a cluster that refuses is not ready":    {[]metav1.Condition{readyCondition("False", "Unauthorized", noon)}, []string{"dedicated:NoSchedule", v1alpha1.TaintNotReady + ":NoSchedule"}},
		"conditions of other types do not count": {[]metav1.Condition{{Type: v1alpha1.ClusterSyncerRunning, Status: "False"}}, []string{"dedicated:NoSchedule"}},
	} {
		t.Run(name, func(t *testing.T) {
			cluster := &v1alpha1.Cluster{Spec: v1alpha1.ClusterSpec{Taints: []corev1.Taint{own}}}
			cluster.Status.Conditions = test.conditions
			var got []string
			for _, taint := range Taints(cluster) {
				got = append(got, taint.Key+":"+string(taint.Effect))
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestPlacementPrefersTheRequestsOfThisMoment(t *testing.T) {
	east := &v1alpha1.Cluster{Status: fullStatus()}
	east.Name = "east"
	half := placement.Load{Assumed: placement.Amounts{{Name: corev1.ResourceCPU, Value: 500}}}
	for name, test := range map[string]struct {
		requested corev1.ResourceList
		load      placement.Load
		want      int64
	}{
		"the status is what counts while nothing newer is known":    {want: 3000},
		"the requests of this moment count where they are known":    {requested: resources("cpu", "3"), want: 1000},
		"what was decided and has not arrived counts beside them":   {requested: resources("cpu", "3"), load: half, want: 500},
		"what was decided and has not arrived counts by the status": {load: half, want: 2500},
	} {
		t.Run(name, func(t *testing.T) {
			_, room := ForPlacement(east, test.requested)
			if got := room.Free(test.load).Of(corev1.ResourceCPU); got != test.want {
				t.Errorf("free %d, want %d", got, test.want)
			}
			if !equality.Semantic.DeepEqual(east.Status, fullStatus()) {
				t.Error("the cluster was changed")
			}
		})
	}
}

// A cluster that does not answer has a condition for that since it was heard last, until it answers, whatever Ready says.
func TestAClusterThatDoesNotAnswer(t *testing.T) {
	heard := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	ready := &metav1.Condition{Type: v1alpha1.ClusterReady, Status: metav1.ConditionTrue, Reason: "ClusterReady"}
	last := Next(v1alpha1.ClusterStatus{}, Observation{Ready: ready}, heard)
	silent := Next(last, Observation{Ready: ready, Answered: true, Silent: heard}, heard.Add(8*time.Second))
	found := meta.FindStatusCondition(silent.Conditions, v1alpha1.ClusterAnswering)
	if found == nil || found.Status != metav1.ConditionFalse || !found.LastTransitionTime.Time.Equal(heard) || !IsReady(silent) {
		t.Fatalf("conditions are %+v, want that it has not answered since %s, and that it is ready", silent.Conditions, heard)
	}
	if later := Next(silent, Observation{Ready: ready, Silent: heard.Add(300 * time.Millisecond)}, heard.Add(time.Minute)); !equality.Semantic.DeepEqual(later, silent) {
		t.Errorf("while it is silent its status becomes %+v", later.Conditions)
	}
	if unknown := Next(silent, Observation{Ready: ready}, heard.Add(time.Minute)); !equality.Semantic.DeepEqual(unknown, silent) {
		t.Errorf("before it was asked by a new server its status becomes %+v", unknown.Conditions)
	}
	if back := Next(silent, Observation{Ready: ready, Answered: true}, heard.Add(time.Minute)); !equality.Semantic.DeepEqual(back, last) {
		t.Errorf("once it answers conditions are %+v, want %+v", back.Conditions, last.Conditions)
	}
}
