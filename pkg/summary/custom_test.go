package summary

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/google/go-cmp/cmp"
)

// gizmo is an object of a custom kind at a generation with a status, "" for none.
func gizmo(t *testing.T, generation int64, status string) *unstructured.Unstructured {
	t.Helper()
	text := `{"apiVersion":"example.com/v1","kind":"Gizmo","metadata":{"name":"one"}`
	if status != "" {
		text += `,"status":` + status
	}
	out := &unstructured.Unstructured{}
	if err := out.UnmarshalJSON([]byte(text + "}")); err != nil {
		t.Fatal(err)
	}
	out.SetGeneration(generation)
	return out
}

// copies are reports of clusters whose copies carry out generation 3 and are at generation 7 of their own.
func copies(t *testing.T, statuses map[string]string) map[string]CustomReport {
	t.Helper()
	out := map[string]CustomReport{}
	for cluster, status := range statuses {
		out[cluster] = CustomReport{Generation: 3, Live: gizmo(t, 7, status)}
	}
	return out
}

// mustSay is what a cluster says of its copy.
func mustSay(of CustomReport) map[string]any {
	said, _ := of.said()
	return said
}

func TestCustomStatus(t *testing.T) {
	now := metav1.NewTime(time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC))
	for name, test := range map[string]struct {
		above    string // the status that the object, at generation 3, has
		statuses map[string]string
		change   func(map[string]CustomReport)
		counts   bool
		want     string
	}{
		"none where it is placed nowhere": {above: `{"phase":"Up"}`, want: `null`},
		"that of one cluster as it is, unknown fields too": {
			statuses: map[string]string{"east": `{"phase":"Up","future":{"x":[1,{"y":null}]},"count":3,"share":0.5}`},
			want:     `{"phase":"Up","future":{"x":[1,{"y":null}]},"count":3,"share":0.5}`,
		},
		"none while the one cluster has not said anything": {
			above: `{"phase":"Up"}`, statuses: map[string]string{"east": ""}, want: `null`,
		},
		"what one cluster has observed is what it carries out": {
			statuses: map[string]string{"east": `{"observedGeneration":7,"conditions":[{"type":"Ready","status":"True","observedGeneration":7}]}`},
			want:     `{"observedGeneration":3,"conditions":[{"type":"Ready","status":"True","observedGeneration":3}]}`,
		},
		"what it has not observed yet stays behind": {
			above:    `{"observedGeneration":2}`,
			statuses: map[string]string{"east": `{"observedGeneration":6}`},
			want:     `{"observedGeneration":2}`,
		},
		"a cluster on an older generation has not observed this one": {
			above:    `{"observedGeneration":3}`,
			statuses: map[string]string{"east": `{"observedGeneration":7,"phase":"Up"}`},
			change:   func(r map[string]CustomReport) { c := r["east"]; c.Generation = 2; r["east"] = c },
			want:     `{"observedGeneration":2,"phase":"Up"}`,
		},
		"a generation that counts the status too means nothing": {
			statuses: map[string]string{"east": `{"observedGeneration":6}`}, counts: true, want: `{"observedGeneration":6}`,
		},
		"of several what all of them say": {
			statuses: map[string]string{
				"east": `{"phase":"Up","url":"east.example.com","size":{"disk":2,"free":1},"zones":["a"],"observedGeneration":7}`,
				"west": `{"phase":"Up","url":"west.example.com","size":{"disk":2,"free":0},"zones":["a","b"],"observedGeneration":6}`,
			},
			want: `{"phase":"Up","size":{"disk":2},"observedGeneration":0}`,
		},
		"nothing while one of several is silent from the beginning": {
			statuses: map[string]string{"east": `{"phase":"Up"}`, "west": `{"phase":"Up"}`},
			change:   func(r map[string]CustomReport) { r["west"] = CustomReport{Stale: true} },
			want:     `null`,
		},
		"the last that is known of a silent one counts": {
			statuses: map[string]string{"east": `{"phase":"Up"}`, "west": `{"phase":"Up"}`},
			change:   func(r map[string]CustomReport) { c := r["west"]; c.Stale = true; r["west"] = c },
			want:     `{"phase":"Up"}`,
		},
		"conditions that all agree on are theirs": {
			statuses: map[string]string{
				"east": `{"conditions":[{"type":"Ready","status":"True","reason":"Fine","message":"ok","lastTransitionTime":"2026-11-20T10:00:00Z","observedGeneration":7}]}`,
				"west": `{"conditions":[{"type":"Ready","status":"True","reason":"Fine","message":"ok","lastTransitionTime":"2026-11-20T11:00:00Z","observedGeneration":7}]}`,
			},
			want: `{"conditions":[{"type":"Ready","status":"True","reason":"Fine","message":"ok","lastTransitionTime":"2026-11-20T10:00:00Z","observedGeneration":3}]}`,
		},
		"a condition that they do not agree on is Unknown and says what each says": {
			statuses: map[string]string{
				"east": `{"conditions":[{"type":"Ready","status":"True"}]}`,
				"west": `{"conditions":[{"type":"Ready","status":"False","reason":"NoDisk","message":"full"},{"type":"Synced","status":"True"}]}`,
			},
			want: `{"conditions":[
				{"type":"Ready","status":"Unknown","reason":"ClustersDiffer","lastTransitionTime":"2026-11-20T12:00:00Z",
				 "message":"cluster \"east\": True; cluster \"west\": False (NoDisk): full"},
				{"type":"Synced","status":"Unknown","reason":"ClustersDiffer","lastTransitionTime":"2026-11-20T12:00:00Z",
				 "message":"cluster \"east\": does not say; cluster \"west\": True"}]}`,
		},
		"a condition that is as it was keeps its time": {
			above: `{"conditions":[{"type":"Ready","status":"Unknown","lastTransitionTime":"2026-11-20T09:00:00Z"}]}`,
			statuses: map[string]string{
				"east": `{"conditions":[{"type":"Ready","status":"True"}]}`, "west": `{"conditions":[{"type":"Ready","status":"False"}]}`,
			},
			want: `{"conditions":[{"type":"Ready","status":"Unknown","reason":"ClustersDiffer","lastTransitionTime":"2026-11-20T09:00:00Z",
				"message":"cluster \"east\": True; cluster \"west\": False"}]}`,
		},
		"conditions of another shape are a value like any other": {
			statuses: map[string]string{"east": `{"conditions":["a"],"x":1}`, "west": `{"conditions":["b"],"x":1}`},
			want:     `{"x":1}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			in, reports := gizmo(t, 3, test.above), copies(t, test.statuses)
			if test.change != nil {
				test.change(reports)
			}
			before := in.DeepCopy()
			got := CustomStatus(in, CustomInput{
				Clusters: clustersOfCustom(reports), Reports: reports, CountsStatus: test.counts, Now: now,
			})
			want := gizmo(t, 0, `{"want":`+test.want+`}`).Object["status"].(map[string]any)["want"]
			var have any
			if got != nil {
				have = got
			}
			if diff := cmp.Diff(want, have); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(before.Object, in.Object); diff != "" {
				t.Errorf("the object was changed: %s", diff)
			}
		})
	}
}

func clustersOfCustom(reports map[string]CustomReport) []string {
	var out []string
	for _, name := range []string{"east", "north", "west"} {
		if _, ok := reports[name]; ok {
			out = append(out, name)
		}
	}
	return out
}

// Where a status is about an older generation of the copy it says nothing of the one that is there.
func TestCopiesThatAreNotReady(t *testing.T) {
	for name, test := range map[string]struct {
		status string
		counts bool
		want   bool
	}{
		"one that says nothing is taken as it is":  {status: `{}`},
		"one that has no such condition":           {status: `{"conditions":[{"type":"Synced","status":"False"}],"phase":"Pending"}`},
		"one that is ready":                        {status: `{"conditions":[{"type":"Ready","status":"True"}]}`},
		"one that is not":                          {status: `{"conditions":[{"type":"Ready","status":"False"}]}`, want: true},
		"one that does not know":                   {status: `{"conditions":[{"type":"Available","status":"Unknown"}]}`, want: true},
		"one that was ready as it was before":      {status: `{"observedGeneration":6,"conditions":[{"type":"Ready","status":"True"}]}`, want: true},
		"one whose controller has seen what it is": {status: `{"observedGeneration":7}`},
		"one whose controller has not seen it":     {status: `{"observedGeneration":6}`, want: true},
		"one whose generation counts its status":   {status: `{"observedGeneration":6,"phase":"Up"}`, counts: true},
		"one of these that is not ready":           {status: `{"conditions":[{"type":"Ready","status":"False"}]}`, counts: true, want: true},
	} {
		t.Run(name, func(t *testing.T) {
			got := CustomBreakdownOf(CustomInput{Reports: copies(t, map[string]string{"east": test.status}), CountsStatus: test.counts}, nil)["east"]
			if got.Unready != test.want {
				t.Errorf("unready: %t, want %t", got.Unready, test.want)
			}
		})
	}
}

func TestCustomBreakdown(t *testing.T) {
	ready := `{"conditions":[{"reason":"NoDisk","status":"False","type":"Ready"}],"phase":"Waiting"}`
	one := CustomBreakdownOf(CustomInput{Reports: copies(t, map[string]string{"east": ready})}, nil)
	if got, want := one.String(), `{"east":{"generation":3,"state":"Ready=False (NoDisk)","unready":true}}`; got != want {
		t.Errorf("breakdown of one cluster %s, want %s", got, want)
	}
	reports := copies(t, map[string]string{"east": ready, "west": `{"phase":"Up"}`})
	reports["north"] = CustomReport{Stale: true}
	reports["south"] = CustomReport{Problem: "no right"}
	last := CustomBreakdown{"north": {Generation: 2, State: "Up", Status: map[string]any{"phase": "Up"}}}
	several := CustomBreakdownOf(CustomInput{Reports: reports}, last).String()
	want := `{"east":{"generation":3,"state":"Ready=False (NoDisk)","unready":true,"status":` + ready + `},` +
		`"north":{"generation":2,"stale":true,"state":"Up","status":{"phase":"Up"}},"south":{"problem":"no right"},` +
		`"west":{"generation":3,"state":"Up","status":{"phase":"Up"}}}`
	if several != want {
		t.Errorf("breakdown of several clusters\n%s, want\n%s", several, want)
	}
	back, err := ParseCustomBreakdown(several)
	if err != nil || back.String() != several {
		t.Errorf("it reads as %s, error %v", back, err)
	}
	if common, err := ParseBreakdown(several); err != nil || common["south"].Problem != "no right" || common["east"].Generation != 3 {
		t.Errorf("it does not read as the breakdown of a workload: %v, error %v", common, err)
	}

	large := `{"phase":"Up","log":"` + strings.Repeat("x", maxStatuses) + `"}`
	got := CustomBreakdownOf(CustomInput{Reports: copies(t, map[string]string{"east": large, "west": `{"phase":"Up"}`})}, nil).String()
	if want := `{"east":{"generation":3,"state":"Up","omitted":true},"west":{"generation":3,"state":"Up","omitted":true}}`; got != want {
		t.Errorf("breakdown of large statuses %.200s, want %s", got, want)
	}
}

// FuzzCustomStatus checks that whatever clusters say gives a status that says of a field only what all say, and that the breakdown reads
// as it was written.
func FuzzCustomStatus(f *testing.F) {
	f.Add(`{"a":1}`, `{"a":1,"b":{"c":[]}}`)
	f.Add(`{"conditions":[{"type":"Ready","status":"True"}]}`, `{"conditions":[{"type":"Ready"}]}`)
	f.Add(`{"observedGeneration":"x","conditions":{}}`, `{"observedGeneration":3,"conditions":null}`)
	f.Fuzz(func(t *testing.T, east, west string) {
		var one, other map[string]any
		if json.Unmarshal([]byte(east), &one) != nil || json.Unmarshal([]byte(west), &other) != nil {
			t.Skip()
		}
		reports := copies(t, map[string]string{"east": east, "west": west})
		got := CustomStatus(gizmo(t, 3, ""), CustomInput{Clusters: []string{"east", "west"}, Reports: reports})
		for key, value := range got {
			if key != "conditions" && key != "observedGeneration" {
				for _, status := range []map[string]any{mustSay(reports["east"]), mustSay(reports["west"])} {
					if _, nested := value.(map[string]any); !nested && !cmp.Equal(status[key], value) {
						t.Errorf("%s: %v, but a cluster says %v", key, value, status[key])
					}
				}
			}
		}
		text := CustomBreakdownOf(CustomInput{Reports: reports}, nil).String()
		if back, err := ParseCustomBreakdown(text); err != nil || back.String() != text {
			t.Errorf("%s reads as %s, error %v", text, back, err)
		}
	})
}
