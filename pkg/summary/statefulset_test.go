package summary

import (
	"reflect"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/placement"
	"github.com/manifold-dev/manifold/pkg/projection"
)

// set is a StatefulSet of web:2 at generation 2 that ran web:1 before, which was observed.
func set(replicas int32, edits ...func(*appsv1.StatefulSet)) *appsv1.StatefulSet {
	in := &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "db", UID: "uid-of-db", Generation: 2},
		Spec: appsv1.StatefulSetSpec{
			Replicas: ptr.To(replicas), Template: templateOf("web:2"), RevisionHistoryLimit: ptr.To[int32](10),
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}},
		},
		Status: appsv1.StatefulSetStatus{ObservedGeneration: 1, CurrentRevision: revision("web:1"), UpdateRevision: revision("web:1")},
	}
	for _, edit := range edits {
		edit(in)
	}
	return in
}

func hashOf(image string) string {
	template := templateOf(image)
	return projection.TemplateHash(&template)
}

// revision is the name upstream of the revision with that image.
func revision(image string) string { return RevisionName("db", hashOf(image)) }

// fresh is one that has no status yet.
func fresh(in *appsv1.StatefulSet) { in.Status = appsv1.StatefulSetStatus{} }

func seen(in *appsv1.StatefulSet) { in.Status.ObservedGeneration = in.Generation }

// part is the report of a cluster on generation 2 that has so many pods of the old and of the new template, ready as many. Its own
// revisions are called old and new.
func part(old, updated, ready int32) Report {
	out := Report{Generation: 2, Revisions: map[string]string{"old": hashOf("web:1"), "new": hashOf("web:2")}}
	below := &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Generation: 7, Annotations: map[string]string{v1alpha1.AnnotationTemplate: hashOf("web:2")}},
		Status: appsv1.StatefulSetStatus{
			ObservedGeneration: 7, Replicas: old + updated, ReadyReplicas: ready, AvailableReplicas: ready,
			CurrentReplicas: old, CurrentRevision: "old", UpdatedReplicas: updated, UpdateRevision: "new",
		},
	}
	if old == 0 && ready == updated {
		below.Status.CurrentRevision, below.Status.CurrentReplicas = "new", updated
	}
	out.Live = below
	return out
}

// before is the report of a cluster that still carries out generation 1, completely.
func before(replicas int32) Report {
	out := part(0, replicas, replicas)
	out.Generation = 1
	out.Live.(*appsv1.StatefulSet).Annotations[v1alpha1.AnnotationTemplate] = hashOf("web:1")
	s := &out.Live.(*appsv1.StatefulSet).Status
	s.CurrentRevision, s.UpdateRevision = "old", "old"
	return out
}

func ranges(replicas ...int32) placement.Decision {
	out, start := placement.Decision{}, int32(0)
	for i, n := range replicas {
		out[[]string{"east", "west", "north"}[i]] = placement.Share{Replicas: n, Start: start}
		start += n
	}
	return out
}

// counters are what a test says of a status.
type counters struct {
	replicas, ready, available, current, updated int32
	// currentImage and updateImage are those of the revisions.
	currentImage, updateImage string
	observed                  int64
}

func countersOf(s appsv1.StatefulSetStatus) counters {
	images := map[string]string{revision("web:1"): "web:1", revision("web:2"): "web:2"}
	return counters{
		s.Replicas, s.ReadyReplicas, s.AvailableReplicas, s.CurrentReplicas, s.UpdatedReplicas,
		images[s.CurrentRevision], images[s.UpdateRevision], s.ObservedGeneration,
	}
}

func TestStatefulSet(t *testing.T) {
	// remembered is what the breakdown keeps of a cluster that nobody can ask.
	remembered := func(generation int64, replicas int32) Report {
		return statefulSetKind.build().LastKnown(ClusterStatus{
			Replicas: replicas, Ready: replicas, Available: replicas, Updated: replicas, Generation: generation,
		})
	}
	silentPart := func(in Report) Report {
		in.Stale = true
		return in
	}
	for name, test := range map[string]struct {
		in       *appsv1.StatefulSet
		decision placement.Decision
		reports  map[string]Report
		unplaced string
		want     counters
	}{
		"whole in one cluster, rolled out": {
			in: set(3), decision: ranges(3), reports: map[string]Report{"east": part(0, 3, 3)},
			want: counters{3, 3, 3, 3, 3, "web:2", "web:2", 2},
		},
		"whole in one cluster, in the middle of it": {
			in: set(3), decision: ranges(3), reports: map[string]Report{"east": part(2, 1, 2)},
			want: counters{3, 2, 2, 2, 1, "web:1", "web:2", 2},
		},
		"divided, rolled out": {
			in: set(5), decision: ranges(3, 2), reports: map[string]Report{"east": part(0, 3, 3), "west": part(0, 2, 2)},
			want: counters{5, 5, 5, 5, 5, "web:2", "web:2", 2},
		},
		"divided, one part is done and the other is not": {
			in: set(5), decision: ranges(3, 2), reports: map[string]Report{"east": part(2, 1, 3), "west": part(0, 2, 2)},
			want: counters{5, 5, 5, 2, 3, "web:1", "web:2", 2},
		},
		"a partition keeps the current revision": {
			in: set(5), decision: ranges(3, 2), reports: map[string]Report{"east": part(3, 0, 3), "west": part(0, 2, 2)},
			want: counters{5, 5, 5, 3, 2, "web:1", "web:2", 2},
		},
		"one cluster is on an older generation": {
			in: set(5), decision: ranges(3, 2), reports: map[string]Report{"east": part(0, 3, 3), "west": before(2)},
			want: counters{5, 5, 5, 2, 3, "web:1", "web:2", 1},
		},
		"all updated, one not ready": {
			in: set(3), decision: ranges(3), reports: map[string]Report{"east": part(0, 3, 2)},
			want: counters{3, 2, 2, 0, 3, "web:1", "web:2", 2},
		},
		"nothing reported yet": {
			in: set(3, fresh), decision: ranges(3), want: counters{currentImage: "web:2", updateImage: "web:2"},
		},
		"a new one starts": {
			in: set(3, fresh), decision: ranges(3), reports: map[string]Report{"east": part(0, 1, 0)},
			want: counters{1, 0, 0, 1, 1, "web:2", "web:2", 2},
		},
		"one cluster is silent, and confirmed before": {
			in: set(5, seen), decision: ranges(3, 2), reports: map[string]Report{"east": part(0, 3, 3), "west": silentPart(part(0, 2, 2))},
			want: counters{5, 5, 5, 5, 5, "web:2", "web:2", 2},
		},
		"one cluster is silent, and did not confirm": {
			in: set(5), decision: ranges(3, 2), reports: map[string]Report{"east": part(0, 3, 3), "west": silentPart(before(2))},
			want: counters{5, 5, 5, 2, 3, "web:1", "web:2", 1},
		},
		"one cluster is only remembered, with this generation": {
			in: set(5, seen), decision: ranges(3, 2), reports: map[string]Report{"east": part(0, 3, 3), "west": remembered(2, 2)},
			want: counters{5, 5, 5, 5, 5, "web:2", "web:2", 2},
		},
		"one cluster is only remembered, with an older one": {
			in: set(5), decision: ranges(3, 2), reports: map[string]Report{"east": part(0, 3, 3), "west": remembered(1, 2)},
			want: counters{5, 5, 5, 0, 3, "web:1", "web:2", 1},
		},
		"a cluster that left still runs its pods, which are not updated": {
			in: set(3, seen), decision: ranges(3), reports: map[string]Report{"east": part(0, 3, 3), "west": part(0, 2, 2)},
			want: counters{5, 5, 5, 0, 3, "web:1", "web:2", 2},
		},
		"unplaced is observed": {
			in: set(3, fresh), unplaced: "no cluster has room",
			want: counters{currentImage: "web:2", updateImage: "web:2", observed: 2},
		},
		"being placed is not": {
			in: set(3), want: counters{currentImage: "web:1", updateImage: "web:2", observed: 1},
		},
		"scaled to nothing": {
			in: set(0), decision: ranges(0), reports: map[string]Report{"east": part(0, 0, 0)},
			want: counters{currentImage: "web:2", updateImage: "web:2", observed: 2},
		},
		"fewer are placed than asked for": {
			in: set(5), decision: ranges(3), reports: map[string]Report{"east": part(0, 3, 3)},
			want: counters{3, 3, 3, 0, 3, "web:1", "web:2", 2},
		},
		"a cluster has not seen its new template, so the counters are of the old one": {
			in: set(3), decision: ranges(3), reports: map[string]Report{"east": func() Report {
				r := before(3)
				r.Live.(*appsv1.StatefulSet).Annotations[v1alpha1.AnnotationTemplate] = hashOf("web:2")
				r.Live.(*appsv1.StatefulSet).Generation++
				return r
			}()},
			want: counters{3, 3, 3, 3, 0, "web:1", "web:2", 1},
		},
	} {
		t.Run(name, func(t *testing.T) {
			before := test.in.DeepCopy()
			got := StatefulSet(test.in, Input{Decision: test.decision, Reports: test.reports, Unplaced: test.unplaced})
			if countersOf(got) != test.want {
				t.Errorf("got  %+v\nwant %+v", countersOf(got), test.want)
			}
			if !reflect.DeepEqual(before, test.in) {
				t.Error("the input was changed")
			}
			if got.CollisionCount == nil {
				t.Error("there is no count of collisions")
			}
			test.in.Status = got
			if again := StatefulSet(test.in, Input{Decision: test.decision, Reports: test.reports, Unplaced: test.unplaced}); !reflect.DeepEqual(got, again) {
				t.Errorf("summarised again it is %+v, want %+v", again, got)
			}
		})
	}
}

func TestConditionsOfStatefulSets(t *testing.T) {
	early, late := metav1.NewTime(time.Unix(100, 0)), metav1.NewTime(time.Unix(200, 0))
	says := func(status, message string, at metav1.Time) Report {
		out := part(0, 1, 1)
		out.Live.(*appsv1.StatefulSet).Status.Conditions = []appsv1.StatefulSetCondition{
			{Type: "Progressing", Status: "True", Reason: "Recreate", Message: message, LastTransitionTime: at},
		}
		out.Live.(*appsv1.StatefulSet).Status.Conditions[0].Status = "True"
		if status != "True" {
			out.Live.(*appsv1.StatefulSet).Status.Conditions[0].Status = "False"
		}
		return out
	}
	own := func(in *appsv1.StatefulSet) {
		in.Status.Conditions = []appsv1.StatefulSetCondition{{Type: "Backup", Status: "True"}, {Type: "Progressing", Status: "True"}}
	}
	for name, test := range map[string]struct {
		reports map[string]Report
		want    []appsv1.StatefulSetCondition
	}{
		"none of ours without one below": {
			reports: map[string]Report{"east": part(0, 1, 1)}, want: []appsv1.StatefulSetCondition{{Type: "Backup", Status: "True"}},
		},
		"that of one cluster": {
			reports: map[string]Report{"east": says("False", "done", early)},
			want: []appsv1.StatefulSetCondition{{Type: "Backup", Status: "True"},
				{Type: "Progressing", Status: "False", Reason: "Recreate", Message: "done", LastTransitionTime: early}},
		},
		"clusters that agree": {
			reports: map[string]Report{"east": says("False", "done", late), "west": says("False", "done", early)},
			want: []appsv1.StatefulSetCondition{{Type: "Backup", Status: "True"},
				{Type: "Progressing", Status: "False", Reason: "Recreate", Message: "done", LastTransitionTime: late}},
		},
		"clusters that do not": {
			reports: map[string]Report{"east": says("False", "done", late), "west": says("True", "deleting", early)},
			want: []appsv1.StatefulSetCondition{{Type: "Backup", Status: "True"},
				{Type: "Progressing", Status: "Unknown", Reason: "ClustersDiffer", LastTransitionTime: late,
					Message: `cluster "east": done; cluster "west": deleting`}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := StatefulSet(set(2, own), Input{Decision: ranges(1, 1), Reports: test.reports}).Conditions
			if !reflect.DeepEqual(got, test.want) {
				t.Errorf("got  %+v\nwant %+v", got, test.want)
			}
		})
	}
}

func TestSettledStatefulSets(t *testing.T) {
	kind := statefulSetKind.build()
	below := func(old, updated, ready int32, edits ...func(*appsv1.StatefulSet)) *appsv1.StatefulSet {
		out := part(old, updated, ready).Live.(*appsv1.StatefulSet)
		out.Spec.Replicas = ptr.To[int32](3)
		for _, edit := range edits {
			edit(out)
		}
		return out
	}
	partition := func(in *appsv1.StatefulSet) {
		in.Spec.UpdateStrategy.RollingUpdate = &appsv1.RollingUpdateStatefulSetStrategy{Partition: ptr.To[int32](2)}
	}
	onDelete := func(in *appsv1.StatefulSet) { in.Spec.UpdateStrategy.Type = appsv1.OnDeleteStatefulSetStrategyType }
	for name, test := range map[string]struct {
		live *appsv1.StatefulSet
		want bool
	}{
		"all are updated and available":      {below(0, 3, 3), true},
		"one is not available":               {below(0, 3, 2), false},
		"one is missing":                     {below(0, 2, 2), false},
		"old ones are left":                  {below(1, 2, 3), false},
		"old ones are left by a partition":   {below(2, 1, 3, partition), true},
		"old ones are left until deleted":    {below(3, 0, 3, onDelete), true},
		"its controller has not seen it yet": {below(0, 3, 3, func(in *appsv1.StatefulSet) { in.Generation++ }), false},
	} {
		if got := kind.Settled(test.live); got != test.want {
			t.Errorf("%s: settled is %t, want %t", name, got, test.want)
		}
	}
}

func TestTheBreakdownTellsWhereARangeStarts(t *testing.T) {
	report := part(0, 2, 2)
	report.Live.(*appsv1.StatefulSet).Spec.Ordinals = &appsv1.StatefulSetOrdinals{Start: 3}
	got := statefulSetKind.build().BreakdownOf(map[string]Report{"west": report}).String()
	if want := `{"west":{"replicas":2,"ready":2,"available":2,"updated":2,"start":3,"generation":2}}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
