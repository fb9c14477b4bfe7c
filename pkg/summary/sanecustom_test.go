package summary

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/google/go-cmp/cmp"

	"github.com/manifold-dev/manifold/internal/text"
	"github.com/manifold-dev/manifold/pkg/projection"
)

// nested returns a value of so many levels.
func nested(levels int) any {
	var out any = "bottom"
	for i := range levels {
		if out = any([]any{out}); i%2 == 0 {
			out = map[string]any{"a": out.([]any)[0]}
		}
	}
	return out
}

func TestOfAStatusThatIsNestedTooDeepTheConditionsAreLeft(t *testing.T) {
	conditions := []any{map[string]any{"type": "Ready", "status": "True", "reason": "Up", "message": ""}}
	for levels, wantWhole := range map[int]bool{1: true, projection.DeepestContent - 1: true, projection.DeepestContent: false, 9000: false} {
		in := map[string]any{"deep": nested(levels), "phase": "Up", "conditions": conditions}
		want := map[string]any{"conditions": conditions}
		if wantWhole {
			want = in
		}
		if got, whole := saneCustom(in); whole != wantWhole || !reflect.DeepEqual(got, want) {
			t.Errorf("of %d levels it is whole: %t, with %d fields", levels, whole, len(got))
		}
	}
}

func TestWhatACustomObjectSaysIsBoundedAndCleaned(t *testing.T) {
	long := strings.Repeat("a", 10_000)
	condition := func(of, reason, message string) map[string]any {
		return map[string]any{"type": of, "status": "True", "reason": reason, "message": message, "extra": "kept\x1b[2J"}
	}
	large := map[string]any{
		"blob": strings.Repeat("x", mostCustomStatus), "observedGeneration": int64(7), "conditions": []any{condition("Ready", "Up", long)},
	}
	for name, test := range map[string]struct {
		in, want  map[string]any
		wantWhole bool
	}{
		"nothing": {wantWhole: true},
		"what is in order stays": {
			in:        map[string]any{"phase": "Läuft", "lines": "a\n\tb", "n": int64(3), "x": 0.5, "no": nil, "yes": true, "list": []any{"a", map[string]any{"b": "c"}}, "conditions": []any{}},
			want:      map[string]any{"phase": "Läuft", "lines": "a\n\tb", "n": int64(3), "x": 0.5, "no": nil, "yes": true, "list": []any{"a", map[string]any{"b": "c"}}, "conditions": []any{}},
			wantWhole: true,
		},
		"what a terminal obeys is written out": {
			in:        map[string]any{"phase": "\x1b[2JReady", "in": []any{map[string]any{"a\x1b": "b\x07"}}},
			want:      map[string]any{"phase": "^[[2JReady", "in": []any{map[string]any{"a^[": `b\u0007`}}},
			wantWhole: true,
		},
		"words of conditions are cut": {
			in: map[string]any{"conditions": []any{condition("Ready", long, strings.Repeat(long, 4))}},
			want: map[string]any{"conditions": []any{map[string]any{
				"type": "Ready", "status": "True", "reason": text.Line(long, mostReason), "message": text.Line(long, mostText), "extra": "kept^[[2J",
			}}},
			wantWhole: true,
		},
		"a message that any condition may have stays": {
			in: map[string]any{"conditions": []any{condition("Ready", "Up", long+"\n\x1b[2J")}},
			want: map[string]any{"conditions": []any{map[string]any{
				"type": "Ready", "status": "True", "reason": "Up", "message": long + "\n^[[2J", "extra": "kept^[[2J",
			}}},
			wantWhole: true,
		},
		"a condition whose type nobody writes is left out": {
			in:        map[string]any{"conditions": []any{condition(long, "", ""), condition("a\x1b", "", "")}},
			want:      map[string]any{"conditions": []any{}},
			wantWhole: true,
		},
		"of what is too large the conditions are left": {
			in: large,
			want: map[string]any{"observedGeneration": int64(7), "conditions": []any{map[string]any{
				"type": "Ready", "status": "True", "reason": "Up", "message": text.Line(long, mostText),
			}}},
		},
		"so of what has too many values": {in: map[string]any{"list": make([]any, mostCustomStatus)}, want: map[string]any{}},
	} {
		t.Run(name, func(t *testing.T) {
			before := runtime.DeepCopyJSON(test.in)
			got, whole := saneCustom(test.in)
			if whole != test.wantWhole {
				t.Errorf("whole: %t, want %t", whole, test.wantWhole)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(before, test.in); diff != "" {
				t.Errorf("what the cluster holds was changed: %s", diff)
			}
			if again, _ := saneCustom(got); !cmp.Equal(got, again) {
				t.Errorf("what is sane is not again: %s", cmp.Diff(got, again))
			}
		})
	}
}

// A cluster can say as much as its API server takes, of each of thousands of objects.
func TestTheStatusOfACustomObjectIsBoundedWhateverItsClustersSay(t *testing.T) {
	reports, clusters := map[string]CustomReport{}, []string{}
	for i := range 20 {
		var conditions []any
		for j := range 500 {
			conditions = append(conditions, map[string]any{"type": fmt.Sprintf("Of%d-%d", i, j), "status": "False", "message": strings.Repeat("m", 2_000)})
		}
		name := fmt.Sprint("c", i)
		live := gizmo(t, 7, "{}")
		live.Object["status"] = map[string]any{"conditions": conditions, "blob": strings.Repeat("x", 1<<20)}
		clusters = append(clusters, name)
		reports[name] = CustomReport{Generation: 3, Live: live}
	}
	for _, of := range [][]string{clusters[:1], clusters} {
		got := CustomStatus(gizmo(t, 3, ""), CustomInput{Clusters: of, Reports: reports, Now: metav1.Now()})
		data, err := json.Marshal(got)
		if err != nil || len(data) > 1<<20 {
			t.Errorf("the status of %d clusters has %d bytes, %v", len(of), len(data), err)
		}
	}
	if got := CustomBreakdownOf(CustomInput{Reports: reports}, nil); len(got.String()) > maxStatuses || !got["c0"].Omitted {
		t.Errorf("the breakdown has %d bytes, omitted: %t", len(got.String()), got["c0"].Omitted)
	}
}

func TestWhatMostClustersTellIsNotCrowdedOut(t *testing.T) {
	statuses := map[string]string{"honest": `{"conditions":[{"type":"Ready","status":"True"}]}`, "other": `{"conditions":[{"type":"Ready","status":"True"}]}`}
	var forged []string
	for i := range mostCustomConditions {
		forged = append(forged, fmt.Sprintf(`{"type":"F%d","status":"True"}`, i))
	}
	statuses["a-forger"] = `{"conditions":[` + strings.Join(forged, ",") + `]}`
	got := CustomStatus(gizmo(t, 3, ""), CustomInput{Clusters: []string{"a-forger", "honest", "other"}, Reports: copies(t, statuses), Now: metav1.Now()})
	conditions := conditionsOf(got)
	if len(conditions) != mostCustomConditions || conditions[0]["type"] != "Ready" {
		t.Errorf("of %d conditions the first is %v, want that of most clusters", len(conditions), conditions[0])
	}
}
