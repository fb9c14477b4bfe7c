package summary

import (
	"reflect"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// mirror is the mirror of a template with a revision, "" for none, that runs nothing.
func mirror(name, revision string, edits ...func(*appsv1.ReplicaSet)) *appsv1.ReplicaSet {
	labels := map[string]string{appsv1.DefaultDeploymentUniqueLabelKey: name}
	out := &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}, Spec: appsv1.ReplicaSetSpec{Replicas: ptr.To[int32](0)}}
	if revision != "" {
		metav1.SetMetaDataAnnotation(&out.ObjectMeta, annotationRevision, revision)
	}
	for _, edit := range edits {
		edit(out)
	}
	return out
}

func byHand(in *appsv1.ReplicaSet) { in.Labels = nil }

func history(of string) func(*appsv1.ReplicaSet) {
	return func(in *appsv1.ReplicaSet) {
		metav1.SetMetaDataAnnotation(&in.ObjectMeta, annotationRevisionHistory, of)
	}
}

func made(at int64) func(*appsv1.ReplicaSet) {
	return func(in *appsv1.ReplicaSet) { in.CreationTimestamp = metav1.NewTime(time.Unix(at, 0)) }
}

func TestRevisions(t *testing.T) {
	tests := map[string]struct {
		current string
		mirrors []*appsv1.ReplicaSet
		want    map[string]Revision
	}{
		"none":                    {"a", nil, map[string]Revision{}},
		"the first template is 1": {"a", []*appsv1.ReplicaSet{mirror("a", "")}, map[string]Revision{"a": {Number: 1}}},
		"a new template is one up": {
			"b", []*appsv1.ReplicaSet{mirror("a", "4"), mirror("b", "")}, map[string]Revision{"a": {Number: 4}, "b": {Number: 5}},
		},
		"an unchanged one keeps its number": {
			"b", []*appsv1.ReplicaSet{mirror("a", "4"), mirror("b", "5")}, map[string]Revision{"a": {Number: 4}, "b": {Number: 5}},
		},
		"an unchanged one keeps its number when the others were pruned": {
			"b", []*appsv1.ReplicaSet{mirror("b", "5")}, map[string]Revision{"b": {Number: 5}},
		},
		"an old template that is used again is one up and remembers": {
			"a", []*appsv1.ReplicaSet{mirror("a", "4"), mirror("b", "5")},
			map[string]Revision{"a": {Number: 6, History: "4"}, "b": {Number: 5}},
		},
		"it remembers every time": {
			"a", []*appsv1.ReplicaSet{mirror("a", "6", history("2,4")), mirror("b", "7")},
			map[string]Revision{"a": {Number: 8, History: "2,4,6"}, "b": {Number: 7}},
		},
		"others without a number are numbered in the order of making": {
			"c", []*appsv1.ReplicaSet{mirror("c", "", made(3)), mirror("b", "", made(1)), mirror("a", "", made(2))},
			map[string]Revision{"b": {Number: 1}, "a": {Number: 2}, "c": {Number: 3}},
		},
		"one made by hand stays without a number, as with a Deployment controller": {
			"b", []*appsv1.ReplicaSet{mirror("a", "", byHand), mirror("b", "")}, map[string]Revision{"a": {}, "b": {Number: 1}},
		},
		"one made by hand that brings a number along counts": {
			"b", []*appsv1.ReplicaSet{mirror("a", "41", byHand), mirror("b", "")}, map[string]Revision{"a": {Number: 41}, "b": {Number: 42}},
		},
		"nothing is in use": {
			"", []*appsv1.ReplicaSet{mirror("a", "4")}, map[string]Revision{"a": {Number: 4}},
		},
		"a number that is none counts as missing": {
			"a", []*appsv1.ReplicaSet{mirror("a", "four")}, map[string]Revision{"a": {Number: 1}},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got := Revisions(test.current, test.mirrors)
			if !reflect.DeepEqual(got, test.want) {
				t.Errorf("Revisions = %+v, want %+v", got, test.want)
			}
			for _, m := range test.mirrors {
				got[m.Name].Annotate(m)
				if got[m.Name].Annotate(m) {
					t.Errorf("annotating %s again changes it", m.Name)
				}
			}
			if again := Revisions(test.current, test.mirrors); !reflect.DeepEqual(again, got) {
				t.Errorf("after annotating: %+v, want %+v", again, got)
			}
		})
	}
	t.Run("the history drops its oldest numbers when it gets too long", func(t *testing.T) {
		long := strings.Repeat("1234,", 399) + "5678"
		got := Revisions("a", []*appsv1.ReplicaSet{mirror("a", "9000", history(long)), mirror("b", "9001")})["a"].History
		if len(got) > historyLimit || !strings.HasSuffix(got, ",5678,9000") {
			t.Errorf("history has %d characters and ends in %s", len(got), got[len(got)-12:])
		}
	})
}

func TestPrune(t *testing.T) {
	running := func(in *appsv1.ReplicaSet) { in.Spec.Replicas = ptr.To[int32](1) }
	stopping := func(in *appsv1.ReplicaSet) { in.Status.Replicas = 1 }
	unobserved := func(in *appsv1.ReplicaSet) { in.Generation = 2 }
	deleting := func(in *appsv1.ReplicaSet) { in.DeletionTimestamp = ptr.To(now) }
	tests := map[string]struct {
		limit   *int32
		mirrors []*appsv1.ReplicaSet
		want    []string
	}{
		"history within the limit stays": {
			ptr.To[int32](2), []*appsv1.ReplicaSet{mirror("a", "1"), mirror("b", "2"), mirror("now", "3")}, nil,
		},
		"the oldest beyond the limit go": {
			ptr.To[int32](1), []*appsv1.ReplicaSet{mirror("c", "10"), mirror("b", "9"), mirror("a", "2"), mirror("now", "11")},
			[]string{"a", "b"},
		},
		"no history at all": {
			ptr.To[int32](0), []*appsv1.ReplicaSet{mirror("now", "2"), mirror("a", "1")}, []string{"a"},
		},
		"without a limit everything stays": {
			nil, []*appsv1.ReplicaSet{mirror("a", "1"), mirror("now", "2")}, nil,
		},
		"what runs stays": {
			ptr.To[int32](0), []*appsv1.ReplicaSet{mirror("a", "1", running), mirror("b", "2", stopping), mirror("c", "3", unobserved)}, nil,
		},
		"what is being deleted counts not": {
			ptr.To[int32](1), []*appsv1.ReplicaSet{mirror("a", "1", deleting), mirror("b", "2")}, nil,
		},
		"of one revision the older goes": {
			ptr.To[int32](1), []*appsv1.ReplicaSet{mirror("a", "", made(2)), mirror("b", "", made(1))}, []string{"b"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			owner := web(1, func(in *appsv1.Deployment) { in.Spec.RevisionHistoryLimit = test.limit })
			var got []string
			for _, m := range Prune(owner, "now", test.mirrors) {
				got = append(got, m.Name)
			}
			if !reflect.DeepEqual(got, test.want) {
				t.Errorf("Prune = %v, want %v", got, test.want)
			}
		})
	}
}
