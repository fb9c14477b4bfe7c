package planning

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	grpcstatus "google.golang.org/grpc/status"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/delivery"
	"github.com/manifold-dev/manifold/pkg/delivery/plugins/deployments"
	"github.com/manifold-dev/manifold/pkg/delivery/plugins/wire/deployment"
	"github.com/manifold-dev/manifold/pkg/delivery/plugins/wire/model"
	"github.com/manifold-dev/manifold/pkg/delivery/plugins/wire/planpreview"
)

var offered = []string{"TOY_SYNC", "TOY_UNDO"}

// through has a release go through these stages.
func through(stages ...v1alpha1.Stage) func(*Question) {
	return func(q *Question) {
		q.Application.Spec.Pipeline = &v1alpha1.Pipeline{Stages: stages}
		q.Change.Stages = make([]delivery.Stage, len(stages))
		q.Change.Always = true
	}
}

// told writes the stages of a plan in a line: id, name, plugin and index of each, "<" before those that take back.
func told(stages []v1alpha1.Stage) string {
	var out []string
	for _, stage := range stages {
		text := stage.ID + " " + stage.Name
		if stage.Plugin != "" {
			text += fmt.Sprintf(" %s/%d", stage.Plugin, stage.Planned.Index)
			if stage.Planned.Rollback {
				text = "<" + text
			}
		}
		out = append(out, text)
	}
	return strings.Join(out, "; ")
}

func TestStagesOfPluginsAndBuiltInOnesComeInTheOrderOfTheFile(t *testing.T) {
	toys := directoryOf(t, &toy{name: "toy", stages: offered, targets: []string{"dev", "prod"}}, &toy{name: "other", stages: []string{"OTHER", "TOY_UNDO", "WAIT"}})
	f := &files{}
	got, err := soon(toys, f).Plan(t.Context(), question(func(q *Question) {
		q.Application.Spec.PluginsOnly = false
		q.Application.Spec.Plugins = []v1alpha1.ApplicationPlugin{{Name: "toy", DeployTargets: []string{"dev"}}, {Name: "other"}}
		through(
			v1alpha1.Stage{Name: "OTHER"}, v1alpha1.Stage{Name: "TOY_SYNC", ID: "half", With: with(`{"part":50}`)}, v1alpha1.Stage{Name: "WAIT"},
			v1alpha1.Stage{Name: "WAIT", Plugin: "other"}, v1alpha1.Stage{Name: "TOY_SYNC"},
		)(q)
	}))
	if err != nil {
		t.Fatal(err)
	}
	want := "stage-0 OTHER other/0; half TOY_SYNC toy/1; stage-2 WAIT; stage-3 WAIT other/3; stage-4 TOY_SYNC toy/4; <rollback-half TOY_UNDO toy/1; <rollback-stage-0 TOY_UNDO other/0"
	if told(got.Stages) != want {
		t.Errorf("stages %s\nwant   %s", told(got.Stages), want)
	}
	if config := got.Stages[1].Planned.Metadata["config"]; config != `{"part":50}` || got.Stages[4].Planned.Metadata["config"] != "{}" {
		t.Errorf("the plugin was asked with %q", config)
	}
	if plugins := fmt.Sprint(got.Plugins); plugins != "[{toy [dev]} {other []}]" {
		t.Errorf("plugins %s", plugins)
	}
	if got.Strategy != "Pipeline" || f.out != 0 {
		t.Errorf("strategy %s, and %d folders are left", got.Strategy, f.out)
	}
}

func TestAPluginWhoseAnswerIsWrongFailsThePlan(t *testing.T) {
	stage := func(name string, index int32, change ...func(*model.PipelineStage)) *model.PipelineStage {
		out := &model.PipelineStage{Name: name, Index: index}
		for _, c := range change {
			c(out)
		}
		return out
	}
	back := func(s *model.PipelineStage) { s.Rollback = true }
	for name, test := range map[string]struct {
		answer []*model.PipelineStage
		err    error
		never  bool
		app    func(*v1alpha1.ApplicationSpec)
		want   string
	}{
		"none":                             {want: `plugin "toy" does not answer for stage TOY_SYNC (stages[0])`},
		"one of two":                       {answer: []*model.PipelineStage{stage("TOY_SYNC", 0)}, want: `does not answer for stage TOY_SYNC (stages[2])`},
		"a stage of others":                {answer: []*model.PipelineStage{stage("TOY_SYNC", 0), stage("WAIT", 1)}, want: `answers for stages[1] (WAIT), which is not its own`},
		"a stage that is not there":        {answer: []*model.PipelineStage{stage("TOY_SYNC", 7)}, want: `answers for stages[7] (TOY_SYNC), which is not its own: it was asked about TOY_SYNC (stages[0]), TOY_SYNC (stages[2])`},
		"a stage before the first":         {answer: []*model.PipelineStage{stage("TOY_SYNC", -1)}, want: `answers for stages[-1]`},
		"one twice":                        {answer: []*model.PipelineStage{stage("TOY_SYNC", 0), stage("TOY_SYNC", 0)}, want: `answers twice for stages[0] (TOY_SYNC)`},
		"another stage of its own":         {answer: []*model.PipelineStage{stage("TOY_UNDO", 0)}, want: `answers for stages[0] with stage TOY_UNDO in place of TOY_SYNC`},
		"one that takes back, twice":       {answer: []*model.PipelineStage{stage("TOY_UNDO", 0, back), stage("TOY_UNDO", 0, back)}, want: `answers twice for stages[0] (TOY_UNDO)`},
		"one that takes back what is none": {answer: []*model.PipelineStage{stage("TOY_UNDO", 1, back)}, want: `answers for stages[1] (TOY_UNDO), which is not its own`},
		"one that it does not offer":       {answer: []*model.PipelineStage{stage("ROLLBACK\n", 0, back)}, want: `plans stage ROLLBACK`},
		"one that takes back, unasked": {
			answer: []*model.PipelineStage{stage("TOY_UNDO", 0, back)}, app: func(spec *v1alpha1.ApplicationSpec) { spec.Rollback.When = v1alpha1.RollbackNever },
			want: `answers with stage TOY_UNDO, which takes back, and was not asked for one`,
		},
		"many":           {answer: []*model.PipelineStage{{}, {}, {}, {}, {}}, want: `answers with 5 stages, and was asked about`},
		"much metadata":  {answer: []*model.PipelineStage{stage("TOY_SYNC", 0, func(s *model.PipelineStage) { s.Metadata = map[string]string{"a": strings.Repeat("x", 5000)} })}, want: `notes 5001 bytes under 1 keys about stage TOY_SYNC`},
		"many approvers": {answer: []*model.PipelineStage{stage("TOY_SYNC", 0, func(s *model.PipelineStage) { s.AuthorizedOperators = make([]string, 51) })}, want: `names 51 people who may act on stage TOY_SYNC`},
		"100 MB":         {answer: []*model.PipelineStage{stage("TOY_SYNC", 0, func(s *model.PipelineStage) { s.Desc = strings.Repeat("x", 100<<20) })}, want: `plugin "toy" answers BuildPipelineSyncStages about TOY_SYNC (stages[0]), TOY_SYNC (stages[2]) with ResourceExhausted`},
		"an error":       {err: grpcstatus.Error(codes.InvalidArgument, "no\nsuch part"), want: `with InvalidArgument: no such part`},
		"nothing, ever":  {never: true, want: `plugin "toy" has not answered BuildPipelineSyncStages about TOY_SYNC (stages[0]), TOY_SYNC (stages[2]) within 200ms`},
		"no such call":   {err: grpcstatus.Error(codes.Unimplemented, ""), want: `plugin "toy" cannot plan stage TOY_SYNC`},
	} {
		t.Run(name, func(t *testing.T) {
			p := &toy{name: "toy", stages: offered}
			p.pipeline = func(*deployment.BuildPipelineSyncStagesRequest) (*deployment.BuildPipelineSyncStagesResponse, error) {
				if test.never {
					<-t.Context().Done()
				}
				return &deployment.BuildPipelineSyncStagesResponse{Stages: test.answer}, test.err
			}
			f, planner := &files{}, soon(directoryOf(t, p), nil)
			planner.Sources = f
			if !test.never {
				planner.Timeout = time.Minute
			}
			_, err := planner.Plan(t.Context(), question(func(q *Question) {
				q.Application.Spec.PluginsOnly = false
				through(v1alpha1.Stage{Name: "TOY_SYNC"}, v1alpha1.Stage{Name: "WAIT"}, v1alpha1.Stage{Name: "TOY_SYNC"})(q)
				if test.app != nil {
					test.app(&q.Application.Spec)
				}
			}))
			if wait := (WaitError{}); err == nil || errors.As(err, &wait) || !strings.Contains(err.Error(), test.want) || len(err.Error()) > 1000 {
				t.Errorf("error %v, want %q", err, test.want)
			}
			if f.out != 0 {
				t.Errorf("%d folders are left", f.out)
			}
		})
	}
}

func TestWhoRunsAStage(t *testing.T) {
	plugin := func(names ...string) (out []v1alpha1.ApplicationPlugin) {
		for _, name := range names {
			out = append(out, v1alpha1.ApplicationPlugin{Name: name})
		}
		return out
	}
	for name, test := range map[string]struct {
		uses   []v1alpha1.ApplicationPlugin
		mixed  bool
		stage  v1alpha1.Stage
		want   string // the plugin
		waits  string
		refuse string
	}{
		"the one that offers it":                                      {uses: plugin("toy", "third"), stage: v1alpha1.Stage{Name: "TOY_SYNC"}, want: "toy"},
		"the one that it names":                                       {uses: plugin("toy", "twin"), stage: v1alpha1.Stage{Name: "TOY_SYNC", Plugin: "twin"}, want: "twin"},
		"nobody, of two":                                              {uses: plugin("toy", "twin"), stage: v1alpha1.Stage{Name: "TOY_SYNC"}, refuse: `spec.pipeline.stages[0].plugin: stage TOY_SYNC is offered by several plugins: set this field to one of toy, twin`},
		"one of those of the application alone":                       {uses: plugin("twin"), stage: v1alpha1.Stage{Name: "TOY_SYNC"}, want: "twin"},
		"nobody, if only others would":                                {uses: plugin("third"), stage: v1alpha1.Stage{Name: "TOY_SYNC"}, refuse: `spec.pipeline.stages[0].name: none of spec.plugins offers stage TOY_SYNC; toy, twin would: add it there`},
		"nobody at all":                                               {uses: plugin("third"), stage: v1alpha1.Stage{Name: "MAGIC"}, refuse: `spec.pipeline.stages[0].name: no plugin offers stage MAGIC`},
		"not the one that it names":                                   {uses: plugin("third"), stage: v1alpha1.Stage{Name: "TOY_SYNC", Plugin: "third"}, refuse: `spec.pipeline.stages[0].name: plugin "third" has no stage TOY_SYNC; it has WAIT, TOY_UNDO`},
		"not one that is none of the application":                     {uses: plugin("third"), stage: v1alpha1.Stage{Name: "TOY_SYNC", Plugin: "toy"}, refuse: `spec.pipeline.stages[0].plugin: "toy" is none of spec.plugins`},
		"Manifold, if it is built in":                                 {uses: plugin("third"), mixed: true, stage: v1alpha1.Stage{Name: "WAIT"}, want: ""},
		"a plugin, if nothing else delivers":                          {uses: plugin("third"), stage: v1alpha1.Stage{Name: "WAIT"}, want: "third"},
		"Manifold, if it waits and no plugin of the application does": {uses: plugin("toy"), stage: v1alpha1.Stage{Name: "WAIT"}, want: ""},
		"a plugin that is not ready is waited for": {
			uses: plugin("toy", "lazy"), stage: v1alpha1.Stage{Name: "TOY_SYNC"}, waits: `spec.plugins[1]: plugin "lazy" is not ready: it starts`,
		},
		"and so is one that is not there": {uses: plugin("gone"), stage: v1alpha1.Stage{Name: "TOY_SYNC"}, waits: `spec.plugins[0]: plugin "gone" is not ready: there is no such Plugin`},
		"a deploy target that there is not": {
			uses: []v1alpha1.ApplicationPlugin{{Name: "toy", DeployTargets: []string{"dev", "moon"}}}, stage: v1alpha1.Stage{Name: "TOY_SYNC"},
			refuse: `spec.plugins[0].deployTargets[1]: plugin "toy" has no deploy target "moon"; it has dev, prod`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			d := directoryOf(t, &toy{name: "toy", stages: offered, targets: []string{"dev", "prod"}}, &toy{name: "twin", stages: offered},
				&toy{name: "third", stages: []string{"WAIT", "TOY_UNDO"}}, &toy{name: "lazy", why: "it starts"})
			got, err := soon(d, &files{}).Plan(t.Context(), question(func(q *Question) {
				q.Application.Spec.PluginsOnly, q.Application.Spec.Plugins = !test.mixed, test.uses
				through(test.stage)(q)
			}))
			wait := WaitError{}
			switch {
			case test.waits != "":
				if !errors.As(err, &wait) || wait.What != test.waits {
					t.Errorf("error %v, want to wait: %s", err, test.waits)
				}
			case test.refuse != "":
				if err == nil || errors.As(err, &wait) || err.Error() != test.refuse {
					t.Errorf("error %v\nwant  %s", err, test.refuse)
				}
			case err != nil:
				t.Error(err)
			case got.Stages[0].Plugin != test.want:
				t.Errorf("plugin %q runs it, want %q", got.Stages[0].Plugin, test.want)
			}
		})
	}
}

func TestPluginsAreAskedForTheStrategyLast(t *testing.T) {
	says := func(strategy model.SyncStrategy, summary string) func(*deployment.PlanPluginInput) (*deployment.DetermineStrategyResponse, error) {
		return func(in *deployment.PlanPluginInput) (*deployment.DetermineStrategyResponse, error) {
			if in.RunningDeploymentSource.GetCommitHash() != "web-v1" || in.TargetDeploymentSource.GetCommitHash() != "web-v2" {
				return nil, grpcstatus.Error(codes.Internal, "these are not the files")
			}
			return &deployment.DetermineStrategyResponse{SyncStrategy: strategy, Summary: summary}, nil
		}
	}
	quick, pipeline := says(model.SyncStrategy_QUICK_SYNC, "nothing new"), says(model.SyncStrategy_PIPELINE, "a new\npart")
	ran := map[string][]*unstructured.Unstructured{"default": nil}
	for name, test := range map[string]struct {
		a, b     func(*deployment.PlanPluginInput) (*deployment.DetermineStrategyResponse, error)
		change   func(*Question)
		first    bool
		strategy string
		reason   string
		asked    int
		err      string
	}{
		"the first that asks for the pipeline wins": {a: pipeline, b: quick, strategy: "Pipeline", reason: `plugin "toy": a new part`, asked: 1},
		"be it the last": {a: quick, b: pipeline, strategy: "Pipeline", reason: `plugin "other": a new part`, asked: 2},
		"none does":      {a: quick, b: quick, strategy: "QuickSync", reason: `plugin "toy": nothing new; plugin "other": nothing new`, asked: 2},
		"one cannot say": {b: pipeline, strategy: "Pipeline", reason: `plugin "other": a new part`, asked: 2},
		"one does not support it": {a: func(*deployment.PlanPluginInput) (*deployment.DetermineStrategyResponse, error) {
			return &deployment.DetermineStrategyResponse{Unsupported: true, SyncStrategy: model.SyncStrategy_PIPELINE}, nil
		}, strategy: "QuickSync", reason: "no plugin asks for the pipeline", asked: 2},
		"nobody can say":                       {strategy: "QuickSync", reason: "no plugin asks for the pipeline", asked: 2},
		"one answers with what is no strategy": {a: says(7, ""), err: `plugin "toy" answers DetermineStrategy with 7, which is no strategy`},
		"one fails": {a: func(*deployment.PlanPluginInput) (*deployment.DetermineStrategyResponse, error) {
			return nil, errors.New("boom")
		}, err: `plugin "toy" answers DetermineStrategy with Unknown: boom`},
		"the first release is quick, and nobody is asked": {a: pipeline, first: true, strategy: "QuickSync", reason: "it is the first release"},
		"somebody has asked for it":                       {a: quick, change: func(q *Question) { q.Change.Asked = "Pipeline" }, strategy: "Pipeline", reason: "it was asked for"},
		"the pipeline is always used":                     {a: quick, change: func(q *Question) { q.Change.Always = true }, strategy: "Pipeline", reason: "the application always uses its pipeline"},
		"the commit asks for a quick one":                 {a: pipeline, change: func(q *Question) { q.Change.Message, q.Change.QuickOn = "docs: a", "^docs" }, strategy: "QuickSync", reason: `the message of the commit matches "^docs"`},
		"there is no pipeline":                            {a: pipeline, change: func(q *Question) { q.Change.Stages, q.Application.Spec.Pipeline = nil, nil }, strategy: "QuickSync", reason: "the application has no pipeline"},
	} {
		t.Run(name, func(t *testing.T) {
			syncs := func(*deployment.BuildQuickSyncStagesRequest) (*deployment.BuildQuickSyncStagesResponse, error) {
				return &deployment.BuildQuickSyncStagesResponse{Stages: []*model.PipelineStage{{Name: "TOY_SYNC"}}}, nil
			}
			a, b := &toy{name: "toy", stages: offered, strategy: test.a, quick: syncs}, &toy{name: "other", stages: []string{"TOY_UNDO"}, strategy: test.b}
			f := &files{}
			planner := soon(directoryOf(t, a, b), f)
			planner.Timeout = time.Minute
			got, err := planner.Plan(t.Context(), question(func(q *Question) {
				q.Application.Spec.Plugins = []v1alpha1.ApplicationPlugin{{Name: "toy"}, {Name: "other"}}
				through(v1alpha1.Stage{Name: "TOY_SYNC"})(q)
				q.Change.Always, q.Change.Opaque = false, true
				if !test.first {
					q.Running, q.Change.Old = &v1alpha1.ApplicationRevision{}, ran
					q.Running.Name = "web-v1"
				}
				if test.change != nil {
					test.change(q)
				}
			}))
			if test.err != "" {
				if err == nil || !strings.Contains(err.Error(), test.err) {
					t.Errorf("error %v, want %q", err, test.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if asked := len(a.calls) + len(b.calls); got.Strategy != test.strategy || got.Reason != test.reason || asked != test.asked {
				t.Errorf("%s because %s, after %d questions; want %s because %s, after %d", got.Strategy, got.Reason, asked, test.strategy, test.reason, test.asked)
			}
			if f.out != 0 {
				t.Errorf("%d folders are left", f.out)
			}
		})
	}
}

func TestAQuickSyncIsWhatAllPluginsDo(t *testing.T) {
	answers := func(stages ...*model.PipelineStage) func(*deployment.BuildQuickSyncStagesRequest) (*deployment.BuildQuickSyncStagesResponse, error) {
		return func(*deployment.BuildQuickSyncStagesRequest) (*deployment.BuildQuickSyncStagesResponse, error) {
			return &deployment.BuildQuickSyncStagesResponse{Stages: stages}, nil
		}
	}
	sync, undo := &model.PipelineStage{Name: "TOY_SYNC", Desc: "All at once"}, &model.PipelineStage{Name: "TOY_UNDO", Rollback: true}
	for name, test := range map[string]struct {
		a, b  func(*deployment.BuildQuickSyncStagesRequest) (*deployment.BuildQuickSyncStagesResponse, error)
		mixed bool
		never bool
		want  string
		err   string
	}{
		"plugins alone":                  {a: answers(undo, sync), b: answers(sync, undo), want: "plugin-0 TOY_SYNC toy/0; plugin-1 TOY_SYNC other/0; <rollback-plugin-0 TOY_UNDO toy/0; <rollback-plugin-1 TOY_UNDO other/0"},
		"beside what is built in":        {a: answers(sync), mixed: true, want: "sync K8S_SYNC; plugin-1 TOY_SYNC toy/0"},
		"none of them, beside that":      {mixed: true, want: "sync K8S_SYNC"},
		"none of them":                   {err: "none of the plugins (toy, other) has a stage for a quick sync"},
		"nothing but what takes back":    {a: answers(undo), err: "none of the plugins"},
		"stages of others":               {a: answers(&model.PipelineStage{Name: "K8S_SYNC"}), err: `plugin "toy" plans stage K8S_SYNC, which it does not offer: it has TOY_SYNC, TOY_UNDO`},
		"too many":                       {a: answers(make([]*model.PipelineStage, 17)...), err: `plugin "toy" answers BuildQuickSyncStages with 17 stages, and 16 are allowed`},
		"what takes back, and is not to": {a: answers(sync, undo), never: true, err: "was not asked for one"},
	} {
		t.Run(name, func(t *testing.T) {
			planner := soon(directoryOf(t, &toy{name: "toy", stages: offered, quick: test.a}, &toy{name: "other", stages: offered, quick: test.b}), &files{})
			planner.Timeout = time.Minute
			got, err := planner.Plan(t.Context(), question(func(q *Question) {
				q.Application.Spec.Plugins = []v1alpha1.ApplicationPlugin{{Name: "toy"}, {Name: "other"}}
				q.Application.Spec.PluginsOnly = !test.mixed
				if test.never {
					q.Application.Spec.Rollback.When = v1alpha1.RollbackNever
				}
			}))
			switch {
			case test.err != "":
				if err == nil || !strings.Contains(err.Error(), test.err) {
					t.Errorf("error %v, want %q", err, test.err)
				}
			case err != nil:
				t.Error(err)
			case told(got.Stages) != test.want:
				t.Errorf("stages %s\nwant   %s", told(got.Stages), test.want)
			}
		})
	}
}

func TestVersionsAreShownAndBounded(t *testing.T) {
	quick := func(*deployment.BuildQuickSyncStagesRequest) (*deployment.BuildQuickSyncStagesResponse, error) {
		return &deployment.BuildQuickSyncStagesResponse{Stages: []*model.PipelineStage{{Name: "TOY_SYNC"}}}, nil
	}
	p := &toy{name: "toy", stages: offered, quick: quick}
	p.versions = func(in *deployment.PlanPluginInput) (*deployment.DetermineVersionsResponse, error) {
		out := &deployment.DetermineVersionsResponse{Versions: []*model.ArtifactVersion{
			{Kind: model.ArtifactVersion_CONTAINER_IMAGE, Name: "web", Version: "1.2\n3", Url: "https://registry.example/web"}, {Kind: 99, Version: strings.Repeat("x", 1000)},
		}}
		for range 100 {
			out.Versions = append(out.Versions, &model.ArtifactVersion{})
		}
		return out, nil
	}
	other := &toy{name: "other", versions: func(*deployment.PlanPluginInput) (*deployment.DetermineVersionsResponse, error) {
		return nil, errors.New("no idea")
	}}
	planner := soon(directoryOf(t, p, other), &files{})
	planner.Timeout = time.Minute
	got, err := planner.Plan(t.Context(), question(func(q *Question) {
		q.Application.Spec.Plugins = []v1alpha1.ApplicationPlugin{{Name: "toy"}, {Name: "other"}}
	}))
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Versions) != mostVersions || got.Versions[0] != (v1alpha1.ArtifactVersion{Plugin: "toy", Kind: "CONTAINER_IMAGE", Name: "web", Version: "1.2 3", URL: "https://registry.example/web"}) {
		t.Errorf("%d versions, the first of which is %+v", len(got.Versions), got.Versions[0])
	}
	if second := got.Versions[1]; second.Kind != "" || len(second.Version) > mostVersion {
		t.Errorf("the second is %+v", second)
	}
	for _, want := range []string{"of its versions the first 50 are shown", `its versions are not known: plugin "other" answers DetermineVersions with Unknown: no idea`} {
		if !strings.Contains(got.Reason, want) {
			t.Errorf("it says %q, and not %q", got.Reason, want)
		}
	}
}

func TestWhatMayPassIsWaitedFor(t *testing.T) {
	quick := func(*deployment.BuildQuickSyncStagesRequest) (*deployment.BuildQuickSyncStagesResponse, error) {
		return &deployment.BuildQuickSyncStagesResponse{Stages: []*model.PipelineStage{{Name: "TOY_SYNC"}}}, nil
	}
	for name, test := range map[string]struct {
		gone  bool
		err   error
		waits string
		fails string
	}{
		"a plugin that goes while it is asked":  {gone: true, waits: `plugin "toy" has gone while it was asked for BuildQuickSyncStages`},
		"a repository that does not answer now": {err: errors.New("no route to host"), waits: "no route to host"},
		"files that no plugin can ever get":     {err: fmt.Errorf("%w: too large", deployments.ErrFiles), fails: "too large"},
	} {
		t.Run(name, func(t *testing.T) {
			p := &toy{name: "toy", stages: offered, quick: quick}
			if test.gone {
				p.quick = func(*deployment.BuildQuickSyncStagesRequest) (*deployment.BuildQuickSyncStagesResponse, error) {
					return nil, grpcstatus.Error(codes.Unavailable, "transport is closing")
				}
			}
			got, err := soon(directoryOf(t, p), &files{err: test.err}).Plan(t.Context(), question(nil))
			wait := WaitError{}
			switch {
			case test.waits != "" && (!errors.As(err, &wait) || !strings.Contains(wait.What, test.waits)):
				t.Errorf("error %v, want to wait: %s", err, test.waits)
			case test.fails != "" && (errors.As(err, &wait) || err != nil || !strings.Contains(got.Reason, test.fails)):
				t.Errorf("error %v, reason %v, want %q", err, got, test.fails)
			}
		})
	}
}

func TestPreviewsAreShownForEachDeployTarget(t *testing.T) {
	result := func(target, summary string, same bool) *planpreview.PlanPreviewResult {
		return &planpreview.PlanPreviewResult{DeployTarget: target, Summary: summary, NoChange: same, Details: []byte("password: secret")}
	}
	for name, test := range map[string]struct {
		answer []*planpreview.PlanPreviewResult
		err    error
		want   string
	}{
		"all of them":             {answer: []*planpreview.PlanPreviewResult{result("prod", "1 added\n2 changed", false), result("dev", "", true)}, want: "[{toy dev  true} {toy prod 1 added 2 changed false}]"},
		"one, and one of others":  {answer: []*planpreview.PlanPreviewResult{result("dev", "1 added", false), result("moon", "all of it", false), nil}, want: `[{toy dev 1 added false} {toy prod not known: plugin "toy" does not say unknown}]`},
		"none, for it is a guess": {err: errors.New("boom"), want: `[{toy dev not known: plugin "toy" answers GetPlanPreview with Unknown: boom unknown} {toy prod not known: plugin "toy" answers GetPlanPreview with Unknown: boom unknown}]`},
		"it is not supported":     {err: grpcstatus.Error(codes.Unimplemented, ""), want: "[]"},
	} {
		t.Run(name, func(t *testing.T) {
			p := &toy{name: "toy", stages: offered, targets: []string{"dev", "prod"}}
			p.preview = func(in *planpreview.GetPlanPreviewRequest) (*planpreview.GetPlanPreviewResponse, error) {
				if in.TargetDeploymentSource.GetCommitHash() != "web-v2" || in.RunningDeploymentSource != nil || in.ApplicationId != "a" {
					return nil, grpcstatus.Error(codes.Internal, "this is not what was to be asked")
				}
				return &planpreview.GetPlanPreviewResponse{Results: test.answer}, test.err
			}
			f := &files{}
			planner := soon(directoryOf(t, p, &toy{name: "other", stages: []string{"OTHER"}}), f)
			planner.Timeout = time.Minute
			got, err := planner.Plan(t.Context(), question(func(q *Question) {
				q.Application.Spec.Plugins = []v1alpha1.ApplicationPlugin{{Name: "toy"}, {Name: "other"}}
				through(v1alpha1.Stage{Name: "TOY_SYNC"})(q)
			}))
			if err != nil {
				t.Fatal(err)
			}
			if said := previewed(got.Previews); said != test.want || f.out != 0 {
				t.Errorf("%s\nwant %s, with %d folders left", said, test.want, f.out)
			}
		})
	}
}
