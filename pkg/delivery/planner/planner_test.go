package planner

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	"github.com/manifold-dev/manifold/pkg/delivery"
)

// objects reads manifests that are separated by "---".
func objects(t *testing.T, text string) []*unstructured.Unstructured {
	t.Helper()
	var out []*unstructured.Unstructured
	for _, document := range strings.Split(text, "---\n") {
		object := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(document), &object.Object); err != nil {
			t.Fatal(err)
		}
		out = append(out, object)
	}
	return out
}

func web(image string, replicas int) string {
	return fmt.Sprintf(`{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}, spec: {replicas: %d, template: {spec: {containers: [{name: web, image: "%s"}]}}}}`, replicas, image)
}

const (
	settings = `{apiVersion: v1, kind: ConfigMap, metadata: {name: settings}, data: {a: b}}`
	service  = `{apiVersion: v1, kind: Service, metadata: {name: web}, spec: {ports: [{port: 80}]}}`
)

func TestStrategy(t *testing.T) {
	pipeline := []delivery.Stage{{Name: delivery.StageCanaryRollout}}
	for name, test := range map[string]struct {
		change   Change
		old, now string // of the one target
		want     string
		reason   string
		err      string
	}{
		"without a pipeline it is quick":               {change: Change{Always: true}, now: web("a", 1), want: QuickSync, reason: "no pipeline"},
		"somebody has asked for the pipeline":          {change: Change{Asked: Pipeline, Stages: pipeline}, now: web("a", 1), want: Pipeline, reason: "asked"},
		"somebody has asked for a quick one":           {change: Change{Asked: QuickSync, Stages: pipeline, Always: true}, old: web("a", 1), now: web("b", 1), want: QuickSync, reason: "asked"},
		"somebody has asked for what there is not":     {change: Change{Asked: Pipeline}, err: "no pipeline"},
		"somebody has asked for what nobody knows":     {change: Change{Asked: "Magic", Stages: pipeline}, err: `no strategy "Magic"`},
		"it always uses the pipeline":                  {change: Change{Stages: pipeline, Always: true}, old: service, now: service, want: Pipeline, reason: "always"},
		"the message asks for the pipeline":            {change: Change{Stages: pipeline, PipelineOn: "^feat", Message: "feat: a"}, old: service, now: service, want: Pipeline, reason: `"^feat"`},
		"the message asks for a quick one":             {change: Change{Stages: pipeline, QuickOn: "^fix", Message: "fix: a"}, old: web("a", 1), now: web("b", 1), want: QuickSync, reason: `"^fix"`},
		"the message asks for both":                    {change: Change{Stages: pipeline, PipelineOn: "a", QuickOn: "a", Message: "a"}, old: service, now: service, want: Pipeline, reason: `"a"`},
		"the message asks for neither":                 {change: Change{Stages: pipeline, PipelineOn: "^feat", QuickOn: "^fix", Message: "docs"}, old: service, now: service, want: QuickSync, reason: "neither"},
		"a pattern that is none":                       {change: Change{Stages: pipeline, QuickOn: "("}, now: service, err: "planner.commitMatcher.quickSync"},
		"the first release is quick":                   {change: Change{Stages: pipeline}, now: web("a", 1), want: QuickSync, reason: "first"},
		"a pod template has changed":                   {change: Change{Stages: pipeline}, old: web("a", 1), now: web("b", 1), want: Pipeline, reason: "pod template of Deployment web"},
		"replicas alone have":                          {change: Change{Stages: pipeline}, old: web("a", 1), now: web("a", 5), want: QuickSync, reason: "neither"},
		"a ConfigMap has":                              {change: Change{Stages: pipeline}, old: settings, now: strings.Replace(settings, "a: b", "a: c", 1), want: Pipeline, reason: "ConfigMap settings has changed"},
		"the label of a ConfigMap has":                 {change: Change{Stages: pipeline}, old: settings, now: strings.Replace(settings, "name: settings", "name: settings, labels: {a: b}", 1), want: QuickSync, reason: "neither"},
		"a ConfigMap is new":                           {change: Change{Stages: pipeline}, old: service, now: service + "\n---\n" + settings, want: Pipeline, reason: "ConfigMap settings is new"},
		"a ConfigMap is gone":                          {change: Change{Stages: pipeline}, old: service + "\n---\n" + settings, now: service, want: Pipeline, reason: "ConfigMap settings is gone"},
		"a workload is new":                            {change: Change{Stages: pipeline}, old: service, now: service + "\n---\n" + web("a", 1), want: Pipeline, reason: "Deployment web is new"},
		"a Service has changed":                        {change: Change{Stages: pipeline}, old: service, now: strings.Replace(service, "80", "81", 1), want: QuickSync, reason: "neither"},
		"a template that holds no pod is no workload":  {change: Change{Stages: pipeline}, old: `{kind: Thing, metadata: {name: a}, spec: {template: x}}`, now: `{kind: Thing, metadata: {name: a}, spec: {template: y}}`, want: QuickSync, reason: "neither"},
		"a custom kind with a pod template is as good": {change: Change{Stages: pipeline}, old: `{kind: Roll, metadata: {name: a}, spec: {template: {spec: {a: 1}}}}`, now: `{kind: Roll, metadata: {name: a}, spec: {template: {spec: {a: 2}}}}`, want: Pipeline, reason: "pod template of Roll a"},
	} {
		t.Run(name, func(t *testing.T) {
			change := test.change
			if test.old != "" {
				change.Old = map[string][]*unstructured.Unstructured{"all": objects(t, test.old)}
			}
			if test.now != "" {
				change.New = map[string][]*unstructured.Unstructured{"all": objects(t, test.now), "new": objects(t, web("x", 1))}
			}
			got, reason, err := Strategy(change)
			if test.err != "" {
				if err == nil || !strings.Contains(err.Error(), test.err) {
					t.Errorf("error %v, want one with %q", err, test.err)
				}
				return
			}
			if err != nil || got != test.want || !strings.Contains(reason, test.reason) {
				t.Errorf("%s because %s, %v, want %s because %s", got, reason, err, test.want, test.reason)
			}
		})
	}
}

func TestStages(t *testing.T) {
	pipeline := []delivery.Stage{{Name: delivery.StageCanaryRollout}, {ID: "agree", Name: delivery.StageApproval}}
	if got := Stages(QuickSync, pipeline); len(got) != 1 || got[0].Name != delivery.StageSync || got[0].ID == "" {
		t.Errorf("quick: %v", got)
	}
	got := Stages(Pipeline, pipeline)
	if len(got) != 2 || got[0].ID != "stage-0" || got[1].ID != "agree" || pipeline[0].ID != "" {
		t.Errorf("pipeline: %v of %v", got, pipeline)
	}
}

func TestCheck(t *testing.T) {
	wave := func(n int32, targets ...string) delivery.Wave {
		return delivery.Wave{MaxConcurrency: ptr.To(intstr.FromInt32(n)), Targets: targets}
	}
	for name, test := range map[string]struct {
		stage delivery.Stage
		want  string
	}{
		"all is well":                            {stage: delivery.Stage{Name: delivery.StageSync, Targets: []string{"x"}, Waves: []delivery.Wave{wave(1, "x")}}},
		"a stage that does not exist":            {stage: delivery.Stage{Name: "K8S_HOPE"}, want: `stages[1].name: there is no stage "K8S_HOPE"`},
		"a rollback is not for pipelines":        {stage: delivery.Stage{Name: delivery.StageRollback}, want: "stages[1].name"},
		"two of one ID":                          {stage: delivery.Stage{ID: "first", Name: delivery.StageSync}, want: "stages[1].id"},
		"a target that does not exist":           {stage: delivery.Stage{Name: delivery.StageSync, Targets: []string{"z"}}, want: `stages[1].targets: the application has no target "z"`},
		"a wave's target that does not exist":    {stage: delivery.Stage{Name: delivery.StageSync, Waves: []delivery.Wave{wave(1, "z")}}, want: "stages[1].waves[0].targets"},
		"a wave's target of another stage":       {stage: delivery.Stage{Name: delivery.StageSync, Targets: []string{"x"}, Waves: []delivery.Wave{wave(1, "y")}}, want: "stages[1].waves[0].targets"},
		"a wave that lets nobody begin":          {stage: delivery.Stage{Name: delivery.StageSync, Waves: []delivery.Wave{wave(0)}}, want: "stages[1].waves[0].maxConcurrency"},
		"a target that the release is not about": {stage: delivery.Stage{Name: delivery.StageSync, Targets: []string{"other"}, Waves: []delivery.Wave{wave(1, "other")}}},
		"shares that do not add up":              {stage: delivery.Stage{Name: delivery.StageTrafficRouting, Traffic: map[string]int32{"canary": 120}}, want: "stages[1].with.traffic.canary"},
	} {
		t.Run(name, func(t *testing.T) {
			if test.stage.ID == "" {
				test.stage.ID = "second"
			}
			err := Check(delivery.Release{
				Targets: []delivery.Target{{Name: "x", Cluster: "a"}, {Name: "y", Cluster: "b"}}, Others: []string{"other"},
				Stages: []delivery.Stage{{ID: "first", Name: delivery.StageWait}, test.stage},
			})
			if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
				t.Errorf("error %v, want %q", err, test.want)
			}
		})
	}
}

func TestStagesOfOtherTargets(t *testing.T) {
	canary, sync := delivery.Stage{Name: delivery.StageCanaryRollout}, delivery.Stage{Name: delivery.StageSync}
	of := func(stage delivery.Stage, targets ...string) delivery.Stage {
		stage.Targets = targets
		return stage
	}
	route := func(shares map[string]int32) delivery.Stage {
		return delivery.Stage{Name: delivery.StageTrafficRouting, Traffic: shares}
	}
	for name, test := range map[string]struct {
		stage  delivery.Stage
		stages []delivery.Stage
		whole  bool
		want   string
	}{
		"a stage of all targets":                {stage: sync},
		"a stage of other targets":              {stage: of(sync, "west", "north"), want: "the release is about none of its targets"},
		"a stage of one, and of another one":    {stage: of(sync, "east", "west")},
		"all targets are the release's":         {stage: of(sync, "west"), whole: true},
		"requests to a copy in other targets":   {stage: route(map[string]int32{"canary": 20}), stages: []delivery.Stage{of(canary, "west")}, want: "the release makes no canary in its targets"},
		"requests to a copy that is made":       {stage: route(map[string]int32{"canary": 20}), stages: []delivery.Stage{of(canary, "west"), of(canary, "east")}},
		"requests to the primary alone":         {stage: route(map[string]int32{"primary": 100, "canary": 0}), stages: []delivery.Stage{of(canary, "west")}},
		"requests to a copy that nothing makes": {stage: route(map[string]int32{"baseline": 5}), stages: []delivery.Stage{canary}, want: "no baseline"},
	} {
		release := delivery.Release{Stages: append(test.stages, test.stage), Others: []string{"west", "north"}}
		if test.whole {
			release.Others = nil
		}
		if got := Elsewhere(test.stage, release); (got == "") != (test.want == "") || !strings.Contains(got, test.want) {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}

func TestSkips(t *testing.T) {
	for name, test := range map[string]struct {
		on     delivery.SkipOn
		commit delivery.Commit
		want   bool
	}{
		"nothing is left out":              {commit: delivery.Commit{Message: "a", Paths: []string{"a"}}},
		"a message with the prefix":        {on: delivery.SkipOn{Prefixes: []string{"[skip]"}}, commit: delivery.Commit{Message: "[skip] a"}, want: true},
		"a message with it further on":     {on: delivery.SkipOn{Prefixes: []string{"[skip]"}}, commit: delivery.Commit{Message: "a [skip]"}},
		"an empty prefix is none":          {on: delivery.SkipOn{Prefixes: []string{""}}, commit: delivery.Commit{Message: "a"}},
		"all that changes matches":         {on: delivery.SkipOn{Paths: []string{"docs/**", "*.md"}}, commit: delivery.Commit{Paths: []string{"docs/a/b.txt", "README.md"}}, want: true},
		"not all of it does":               {on: delivery.SkipOn{Paths: []string{"docs/**"}}, commit: delivery.Commit{Paths: []string{"docs/a", "main.go"}}},
		"nothing is known of what changes": {on: delivery.SkipOn{Paths: []string{"**"}}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Skips(test.on, test.commit); (got != "") != test.want {
				t.Errorf("%q, want %t", got, test.want)
			}
		})
	}
}

// Rule 9 and what happens to a second revision while one runs.
func TestNextRelease(t *testing.T) {
	auto := func(name string) Request { return Request{Name: name, Revision: "web-" + name} }
	person := func(name string) Request { return Request{Name: name, Revision: "web-" + name, Person: true} }
	for name, test := range map[string]struct {
		running     *Running
		waiting     []Request
		concurrency string
		pin         string
		suspended   bool
		want        Turn
	}{
		"nothing waits":                               {want: Turn{}},
		"one begins":                                  {waiting: []Request{auto("a")}, want: Turn{Begin: "a"}},
		"the newest of automation begins":             {waiting: []Request{auto("a"), auto("b")}, want: Turn{Begin: "b", Superseded: map[string]string{"a": "b is newer"}}},
		"one waits while another runs":                {running: &Running{Request: auto("a")}, waiting: []Request{auto("b")}, concurrency: Queue, want: Turn{Waits: "a runs"}},
		"one that runs is not superseded in silence":  {running: &Running{Request: auto("a")}, waiting: []Request{auto("b")}, want: Turn{Waits: "a runs"}},
		"it is cancelled where that is wanted":        {running: &Running{Request: auto("a")}, waiting: []Request{auto("b")}, concurrency: Supersede, want: Turn{Begin: "b", Cancel: true}},
		"a rollback is never cut off":                 {running: &Running{Request: auto("a"), RollingBack: true}, waiting: []Request{auto("b")}, concurrency: Supersede, want: Turn{Waits: "a is being rolled back"}},
		"nor what a person has asked for":             {running: &Running{Request: person("a")}, waiting: []Request{auto("b")}, concurrency: Supersede, want: Turn{Waits: "a runs, which somebody has asked for"}},
		"unless by a person":                          {running: &Running{Request: person("a")}, waiting: []Request{person("b")}, concurrency: Supersede, want: Turn{Begin: "b", Cancel: true}},
		"what people ask for is released in order":    {waiting: []Request{person("a"), person("b"), auto("c")}, want: Turn{Begin: "a"}},
		"and before what automation asked for before": {waiting: []Request{auto("a"), person("b")}, want: Turn{Begin: "b", Superseded: map[string]string{"a": "b is newer"}}},
		"a pin holds against automation":              {pin: "web-x", waiting: []Request{auto("a")}, want: Turn{Superseded: map[string]string{"a": "the application is pinned to web-x"}}},
		"but not against what it pins":                {pin: "web-a", waiting: []Request{auto("a"), auto("b")}, want: Turn{Begin: "a", Superseded: map[string]string{"b": "the application is pinned to web-a"}}},
		"nor against people":                          {pin: "web-x", waiting: []Request{person("a")}, want: Turn{Begin: "a"}},
		"a pause holds against all":                   {suspended: true, waiting: []Request{person("a")}, want: Turn{Waits: "the application is suspended"}},
	} {
		t.Run(name, func(t *testing.T) {
			if test.want.Superseded == nil {
				test.want.Superseded = map[string]string{}
			}
			if diff := cmp.Diff(test.want, Next(test.running, test.waiting, test.concurrency, test.pin, test.suspended)); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}
