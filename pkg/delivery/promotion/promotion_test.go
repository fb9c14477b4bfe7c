package promotion

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/manifold-dev/manifold/pkg/delivery/weave"
)

var (
	noon   = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	direct = weave.Promotion{Strategy: weave.Strategy{Direct: &weave.Direct{ServiceAccountName: "promoter"}}}
	manual = weave.Promotion{Manual: true, Strategy: direct.Strategy}
	pulled = weave.Promotion{Strategy: weave.Strategy{PullRequest: &weave.PullRequest{}}}
)

func at(seconds int) metav1.Time {
	return metav1.NewTime(noon.Add(time.Duration(seconds) * time.Second))
}

// runs is a target status of namespace that runs a Deployment at a version. After it there may be "!" for one that has failed, "~" for one on its way and
// "?" for one that cannot be read. It runs nothing at "".
func runs(namespace, version string) weave.TargetStatus {
	out := weave.TargetStatus{Namespace: namespace, Ready: true}
	if version == "" {
		return out
	}
	w := weave.WorkloadStatus{Kind: "Deployment", Name: "web", Version: strings.TrimRight(version, "!~?"), Ready: true, Images: []string{"ghcr.io/shop/web:" + strings.TrimRight(version, "!~?")}}
	switch {
	case strings.HasSuffix(version, "!"):
		w.Ready, w.Failed, w.Message = false, true, "0 of 2 pods are ready"
	case strings.HasSuffix(version, "~"):
		w.Ready = false
	case strings.HasSuffix(version, "?"):
		out.Error = "the cluster does not answer"
	}
	out.Ready = w.Ready
	out.Workloads = []weave.WorkloadStatus{w}
	return out
}

// chain is a pipeline over dev, staging and prod that run so; one environment has several targets where commas separate versions.
func chain(how weave.Promotion, versions ...string) *weave.Pipeline {
	out := &weave.Pipeline{TypeMeta: metav1.TypeMeta{APIVersion: weave.Group + "/v1alpha1", Kind: weave.Kind}, ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", Generation: 1}}
	out.Spec.AppRef = &weave.AppReference{APIVersion: "apps/v1", Kind: "Deployment", Name: "web"}
	out.Spec.Promotion = &how
	out.Status = weave.Status{ObservedGeneration: 1, Environments: map[string]*weave.EnvironmentStatus{}}
	for i, name := range []string{"dev", "staging", "prod"}[:len(versions)] {
		e, status := weave.Environment{Name: name}, &weave.EnvironmentStatus{}
		for j, version := range strings.Split(versions[i], ",") {
			namespace := fmt.Sprintf("%s-%d", name, j)
			e.Targets, status.Targets = append(e.Targets, weave.Target{Namespace: namespace}), append(status.Targets, runs(namespace, version))
		}
		out.Spec.Environments = append(out.Spec.Environments, e)
		out.Status.Environments[name] = status
	}
	return out
}

func told(revision string, phase weave.PromotionPhase, seconds int) *weave.PromotionStatus {
	return &weave.PromotionStatus{Revision: revision, Strategy: Direct, Phase: phase, At: at(seconds)}
}

// steps writes what is to be done, as "staging=2 prod=1", once it is told that it has begun.
func steps(t *testing.T, p *weave.Pipeline, d Decision) string {
	t.Helper()
	if d.Begun {
		p = deepCopy(t, p)
		keep(p, d)
		d = Decide(p, noon)
		if d.Begun {
			t.Errorf("it begins twice: %+v", d)
		}
	}
	var out []string
	for _, s := range d.Steps {
		out = append(out, s.Environment+"="+s.Next.Revision)
	}
	return strings.Join(out, " ")
}

func TestWhatIsPromoted(t *testing.T) {
	ask := func(revision string, seconds int) *weave.Ask {
		return &weave.Ask{Revision: revision, By: "jane", At: at(seconds)}
	}
	for name, test := range map[string]struct {
		pipeline *weave.Pipeline
		change   func(*weave.Pipeline)
		want     string
		waits    string // in prod
		phase    weave.PromotionPhase
		reason   string
		says     string
	}{
		"what dev has verified goes to staging, and what staging has to prod": {
			pipeline: chain(direct, "3", "2", "1"), want: "staging=3 prod=2", phase: weave.PromotionBegun, reason: "Promoting",
		},
		"nothing goes on that all targets have not": {
			pipeline: chain(direct, "2,1", "1,1", "1"), want: "", reason: "Settled", says: "different versions",
		},
		"nothing goes on that one target is not ready with": {
			pipeline: chain(direct, "2,2~", "1", "1"), want: "",
		},
		"all targets have it": {
			pipeline: chain(direct, "2,2", "1,2~", "1"), want: "staging=2",
		},
		"a target that cannot be read is neither verified nor failed": {
			pipeline: chain(direct, "2,2?", "1", "1"), change: func(p *weave.Pipeline) {
				p.Status.Environments["staging"].Promotion = told("2", weave.PromotionFailed, -60)
			},
			want: "", reason: "NotVerified", says: "staging: 2 is tried when dev has verified it",
		},
		"a target that is not looked at yet is not verified": {
			pipeline: chain(direct, "2,2", "1", "1"), change: func(p *weave.Pipeline) {
				p.Status.Environments["dev"].Targets = p.Status.Environments["dev"].Targets[:1]
			}, want: "", says: "dev-1 has not been looked at yet",
		},
		"a target with more workloads than are listed is not verified": {
			pipeline: chain(direct, "2", "1", "1"), change: func(p *weave.Pipeline) { p.Status.Environments["dev"].Targets[0].MoreWorkloads = 3 },
			want: "", says: "3 more workloads",
		},
		"a target that runs nothing is not verified": {pipeline: chain(direct, "2,", "1", "1"), want: "", says: "runs nothing of the app"},
		"what has been promoted is not again": {
			pipeline: chain(direct, "2", "1~", "1"), change: func(p *weave.Pipeline) {
				p.Status.Environments["staging"].Promotion = told("2", weave.PromotionStarted, -5)
			}, want: "", reason: "Verifying",
		},
		"what has arrived is verified": {
			pipeline: chain(direct, "2", "2", "2"), change: func(p *weave.Pipeline) {
				p.Status.Environments["prod"].Promotion = told("2", weave.PromotionStarted, -5)
			}, want: "", phase: weave.PromotionVerified, reason: "Settled",
		},
		"what somebody has put in its place since stays": {
			pipeline: chain(direct, "2", "2", "0"), change: func(p *weave.Pipeline) {
				p.Status.Environments["prod"].Promotion = told("2", weave.PromotionVerified, -5)
			}, want: "", phase: weave.PromotionVerified, reason: "NotPromoted", says: "not again until a person asks",
		},
		"until there is a newer one": {
			pipeline: chain(direct, "3", "3", "0"), change: func(p *weave.Pipeline) {
				p.Status.Environments["prod"].Promotion = told("2", weave.PromotionVerified, -5)
			}, want: "prod=3", phase: weave.PromotionBegun,
		},
		"a newer version does not overtake one that is being verified": {
			pipeline: chain(direct, "3", "3", "2~"), change: func(p *weave.Pipeline) {
				p.Status.Environments["prod"].Promotion = told("2", weave.PromotionStarted, -5)
			}, want: "", phase: weave.PromotionStarted, reason: "Verifying", says: "3 follows it",
		},
		"unless the pipeline says so": {
			pipeline: chain(weave.Promotion{Supersede: true, Strategy: direct.Strategy}, "3", "3", "2~"), change: func(p *weave.Pipeline) {
				p.Status.Environments["prod"].Promotion = told("2", weave.PromotionStarted, -5)
			}, want: "prod=3", phase: weave.PromotionBegun,
		},
		"one that has failed is followed by a newer one": {
			pipeline: chain(direct, "3", "3", "2!"), change: func(p *weave.Pipeline) {
				p.Status.Environments["prod"].Promotion = told("2", weave.PromotionStarted, -5)
			}, want: "prod=3", phase: weave.PromotionBegun,
		},
		"one that has failed stays until there is a newer one": {
			pipeline: chain(direct, "2", "2", "2!"), change: func(p *weave.Pipeline) {
				p.Status.Environments["prod"].Promotion = told("2", weave.PromotionStarted, -5)
			}, want: "", phase: weave.PromotionStarted, reason: "NotVerified", says: "0 of 2 pods",
		},
		"manual waits for a person": {
			pipeline: chain(manual, "2", "2", "1"), want: "", waits: "2", phase: weave.PromotionWaiting, reason: "Waiting", says: "2 waits for a person",
		},
		"an environment says it otherwise than the pipeline": {
			pipeline: chain(direct, "3", "2", "1"), change: func(p *weave.Pipeline) { p.Spec.Environments[2].Promotion = &manual },
			want: "staging=3", waits: "2", phase: weave.PromotionWaiting,
		},
		"who asks for what waits has it promoted": {
			pipeline: chain(manual, "2", "2", "1"), change: func(p *weave.Pipeline) {
				s := p.Status.Environments["prod"]
				s.WaitingStatus, s.Promotion, s.Asked = &weave.WaitingStatus{Revision: "2"}, told("2", weave.PromotionWaiting, -5), ask("2", -5)
			}, want: "prod=2", phase: weave.PromotionBegun,
		},
		"what was asked for before is not asked for again": {
			pipeline: chain(manual, "3", "3", "2"), change: func(p *weave.Pipeline) {
				s := p.Status.Environments["prod"]
				s.Promotion, s.Asked = told("2", weave.PromotionVerified, -5), ask("2", -5)
			}, want: "", waits: "3", phase: weave.PromotionWaiting,
		},
		"nor is it when the newer one waits": {
			pipeline: chain(manual, "3", "3", "2"), change: func(p *weave.Pipeline) {
				s := p.Status.Environments["prod"]
				s.WaitingStatus, s.Promotion, s.Asked = &weave.WaitingStatus{Revision: "3"}, told("3", weave.PromotionWaiting, -4), ask("2", -5)
			}, want: "", waits: "3", phase: weave.PromotionWaiting,
		},
		"an older version is promoted if a person asks for it": {
			pipeline: chain(direct, "3", "3", "3"), change: func(p *weave.Pipeline) {
				s := p.Status.Environments["prod"]
				s.Promotion, s.Asked = told("3", weave.PromotionVerified, -5), ask("2", -1)
			}, want: "prod=2", phase: weave.PromotionBegun,
		},
		"and stays until it is lifted": {
			pipeline: chain(direct, "4", "4", "2"), change: func(p *weave.Pipeline) {
				s := p.Status.Environments["prod"]
				s.Promotion, s.Asked = told("2", weave.PromotionVerified, -1), ask("2", -1)
				s.Promotion.By, s.Promotion.Held = "jane", true
			}, want: "", phase: weave.PromotionVerified, reason: "Held", says: "held at 2 by jane: 4 is not promoted",
		},
		"it is lifted by who asks for the newest": {
			pipeline: chain(direct, "4", "4", "2"), change: func(p *weave.Pipeline) {
				s := p.Status.Environments["prod"]
				s.Promotion, s.Asked = told("2", weave.PromotionVerified, -5), ask("4", -1)
				s.Promotion.By, s.Promotion.Held = "jane", true
			}, want: "prod=4", phase: weave.PromotionBegun,
		},
		"or by who takes back what was asked for": {
			pipeline: chain(direct, "4", "4", "2"), change: func(p *weave.Pipeline) {
				s := p.Status.Environments["prod"]
				s.Promotion = told("2", weave.PromotionVerified, -5)
				s.Promotion.By, s.Promotion.Held = "jane", true
			}, want: "prod=4", phase: weave.PromotionBegun,
		},
		"what a person holds is not promoted further": {
			pipeline: chain(direct, "4", "2", "3"), change: func(p *weave.Pipeline) {
				s := p.Status.Environments["staging"]
				s.Promotion, s.Asked = told("2", weave.PromotionVerified, -1), ask("2", -1)
				s.Promotion.By, s.Promotion.Held = "jane", true
			}, want: "", reason: "Held", says: "what a person holds staging at",
		},
		"a person asks for what others wait for": {
			pipeline: chain(direct, "4", "4", "3~"), change: func(p *weave.Pipeline) {
				s := p.Status.Environments["prod"]
				s.Promotion, s.Asked = told("3", weave.PromotionStarted, -5), ask("4", -1)
			}, want: "prod=4", phase: weave.PromotionBegun,
		},
		"a person starts it in the first environment": {
			pipeline: chain(direct, "1", "1", "1"), change: func(p *weave.Pipeline) { p.Status.Environments["dev"].Asked = ask("2", -1) },
			want: "dev=2",
		},
		"nothing begins while it is paused": {
			pipeline: chain(direct, "3", "2", "1"), change: func(p *weave.Pipeline) { p.Status.Paused = &weave.Pause{By: "joe"} },
			want: "", reason: "Paused", says: "paused by joe",
		},
		"nor does what a person asks for": {
			pipeline: chain(direct, "1", "1", "1"), change: func(p *weave.Pipeline) {
				p.Status.Paused, p.Status.Environments["prod"].Asked = &weave.Pause{By: "joe"}, ask("0", -1)
			}, want: "", reason: "Paused", says: "0 is asked for by jane, and waits",
		},
		"nor is what has failed tried again": {
			pipeline: chain(direct, "2", "2", "1"), change: func(p *weave.Pipeline) {
				p.Status.Paused, p.Status.Environments["prod"].Promotion = &weave.Pause{By: "joe"}, told("2", weave.PromotionFailed, -500)
			}, want: "", phase: weave.PromotionFailed, reason: "Paused",
		},
		"what waits is taken back when it has failed before": {
			pipeline: chain(manual, "2", "2!", "1"), change: func(p *weave.Pipeline) {
				s := p.Status.Environments["prod"]
				s.WaitingStatus, s.Promotion = &weave.WaitingStatus{Revision: "2"}, told("2", weave.PromotionWaiting, -5)
			}, want: "", phase: weave.PromotionRevoked, reason: "NotVerified", says: "it has failed in staging",
		},
		"and waits again when that is repaired": {
			pipeline: chain(manual, "2", "2", "1"), change: func(p *weave.Pipeline) {
				p.Status.Environments["prod"].Promotion = told("2", weave.PromotionRevoked, -5)
			}, want: "", waits: "2", phase: weave.PromotionWaiting,
		},
		"what waits goes on waiting while it is not known": {
			pipeline: chain(manual, "2", "2?", "1"), change: func(p *weave.Pipeline) {
				s := p.Status.Environments["prod"]
				s.WaitingStatus, s.Promotion = &weave.WaitingStatus{Revision: "2"}, told("2", weave.PromotionWaiting, -5)
			}, want: "", waits: "2", phase: weave.PromotionWaiting,
		},
		"and while the next one is on its way": {
			pipeline: chain(manual, "3", "3~", "1"), change: func(p *weave.Pipeline) {
				s := p.Status.Environments["prod"]
				s.WaitingStatus, s.Promotion = &weave.WaitingStatus{Revision: "2"}, told("2", weave.PromotionWaiting, -5)
			}, want: "", waits: "2", phase: weave.PromotionWaiting,
		},
		"a newer one waits in its place": {
			pipeline: chain(manual, "3", "3", "1"), change: func(p *weave.Pipeline) {
				s := p.Status.Environments["prod"]
				s.WaitingStatus, s.Promotion = &weave.WaitingStatus{Revision: "2"}, told("2", weave.PromotionWaiting, -5)
			}, want: "", waits: "3", phase: weave.PromotionWaiting,
		},
		"what runs already does not wait": {
			pipeline: chain(manual, "2", "2", "2"), change: func(p *weave.Pipeline) {
				s := p.Status.Environments["prod"]
				s.WaitingStatus, s.Promotion = &weave.WaitingStatus{Revision: "2"}, told("2", weave.PromotionWaiting, -5)
			}, want: "", phase: weave.PromotionVerified, reason: "Settled",
		},
		"what has failed is tried again later": {
			pipeline: chain(direct, "2", "2", "1"), change: func(p *weave.Pipeline) {
				s := p.Status.Environments["prod"]
				s.Promotion = told("2", weave.PromotionFailed, -1)
				s.Promotion.Attempts, s.Promotion.Message = 1, "forbidden"
			}, want: "", phase: weave.PromotionFailed, reason: "Failed", says: "is tried again: forbidden",
		},
		"and then": {
			pipeline: chain(direct, "2", "2", "1"), change: func(p *weave.Pipeline) {
				s := p.Status.Environments["prod"]
				s.Promotion = told("2", weave.PromotionFailed, -2)
				s.Promotion.Attempts = 1
			}, want: "prod=2", phase: weave.PromotionFailed,
		},
		"a newer one takes the place of what could not be promoted": {
			pipeline: chain(direct, "3", "3", "1"), change: func(p *weave.Pipeline) {
				s := p.Status.Environments["prod"]
				s.Promotion = told("2", weave.PromotionFailed, -1)
				s.Promotion.Attempts = 1
			}, want: "prod=3", phase: weave.PromotionBegun,
		},
		"what could not be promoted is given up when it fails before": {
			pipeline: chain(direct, "2", "2!", "1"), change: func(p *weave.Pipeline) {
				p.Status.Environments["prod"].Promotion = told("2", weave.PromotionFailed, -100)
			}, want: "", phase: weave.PromotionRevoked,
		},
		"and begins again when that is repaired": {
			pipeline: chain(direct, "2", "2", "1"), change: func(p *weave.Pipeline) {
				p.Status.Environments["prod"].Promotion = told("2", weave.PromotionRevoked, -100)
			}, want: "prod=2", phase: weave.PromotionBegun,
		},
		"a pull request that a person has closed is not opened again": {
			pipeline: chain(pulled, "2", "2", "1"), change: func(p *weave.Pipeline) {
				s := p.Status.Environments["prod"]
				s.Promotion = told("2", weave.PromotionRevoked, -100)
				s.Promotion.URL = "https://forge/1"
			}, want: "", phase: weave.PromotionRevoked, reason: "NotVerified",
		},
		"but a newer one is": {
			pipeline: chain(pulled, "3", "3", "1"), change: func(p *weave.Pipeline) {
				s := p.Status.Environments["prod"]
				s.Promotion = told("2", weave.PromotionRevoked, -100)
				s.Promotion.URL = "https://forge/1"
			}, want: "prod=3", phase: weave.PromotionBegun,
		},
		"without a strategy nothing is promoted": {
			pipeline: chain(direct, "2", "1", "1"), change: func(p *weave.Pipeline) { p.Spec.Promotion = nil },
			want: "", reason: "NotPromoted", says: "nothing is promoted to it",
		},
		"and who asks is told": {
			pipeline: chain(direct, "1", "1", "1"), change: func(p *weave.Pipeline) { p.Spec.Promotion, p.Status.Environments["prod"].Asked = nil, ask("2", -1) },
			want: "", reason: "Failed", says: "does not say how versions are promoted",
		},
		"one environment has nothing to be promoted to": {pipeline: chain(direct, "2"), want: "", reason: "Settled", says: "dev: runs 2"},
		"what was looked at before the pipeline was changed does not count": {
			pipeline: chain(direct, "3", "2", "1"), change: func(p *weave.Pipeline) { p.Generation = 2 }, want: "", reason: "Unknown",
		},
		"an environment that is there twice is refused": {
			pipeline: chain(direct, "3", "2", "1"), change: func(p *weave.Pipeline) { p.Spec.Environments[2].Name = "dev" }, want: "", reason: "Unknown", says: "spec.environments[2].name",
		},
	} {
		t.Run(name, func(t *testing.T) {
			if test.change != nil {
				test.change(test.pipeline)
			}
			before := jsonOf(t, test.pipeline)
			got := Decide(test.pipeline, noon)
			if promoted := steps(t, test.pipeline, got); promoted != test.want {
				t.Errorf("promoted is %q, want %q", promoted, test.want)
			}
			of := got.Environments["prod"]
			if waits := of.Waiting; (waits == nil) != (test.waits == "") || waits != nil && waits.Revision != test.waits {
				t.Errorf("%+v waits, want %q", waits, test.waits)
			}
			if of.Promotion == nil && test.phase != "" || of.Promotion != nil && of.Promotion.Phase != test.phase {
				t.Errorf("the promotion is %+v, want phase %q", of.Promotion, test.phase)
			}
			if test.reason != "" && got.Condition.Reason != test.reason || !strings.Contains(got.Condition.Message, test.says) {
				t.Errorf("the condition is %s: %s; want %s with %q", got.Condition.Reason, got.Condition.Message, test.reason, test.says)
			}
			if jsonOf(t, test.pipeline) != before {
				t.Error("the pipeline that was decided by has changed")
			}
			if again := Decide(test.pipeline, noon); !reflect.DeepEqual(again, got) {
				t.Errorf("decided again it is %+v, want %+v", again, got)
			}
		})
	}
}

func TestNothingIsPromotedToATargetThatItsAuthorMayNotSee(t *testing.T) {
	for name, change := range map[string]func(*weave.Pipeline){
		"though the environment before has a newer version": func(*weave.Pipeline) {},
		"though a person asks for it": func(p *weave.Pipeline) {
			p.Status.Environments["staging"].Asked = &weave.Ask{Revision: "2", By: "eve", At: at(-1)}
		},
		"though one had begun": func(p *weave.Pipeline) {
			p.Status.Environments["staging"].Promotion = told("2", weave.PromotionBegun, -1)
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := chain(direct, "2", "1,1")
			change(p)
			if got := steps(t, p, Decide(p, noon)); got != "staging=2" {
				t.Fatalf("with the right, the steps are %q", got)
			}
			target := &p.Status.Environments["staging"].Targets[1]
			*target = weave.TargetStatus{Namespace: target.Namespace, Denied: true, Error: "ann has lost the right"}
			d := Decide(p, noon)
			if got := steps(t, p, d); got != "" {
				t.Errorf("the steps are %q", got)
			}
			if d.Condition.Reason != "Denied" || !strings.Contains(d.Condition.Message, "staging: nothing is promoted to it: staging-1 is not known: ann has lost the right") {
				t.Errorf("the condition is %+v", d.Condition)
			}
		})
	}
}

func TestNothingIsPromotedWithWhatItsAuthorHasLostTheRightTo(t *testing.T) {
	p := chain(pulled, "2", "1")
	p.Status.Environments["staging"].Denied = "ann has lost the right"
	d := Decide(p, noon)
	if got := steps(t, p, d); got != "" || d.Condition.Reason != "Denied" || !strings.Contains(d.Condition.Message, "staging: nothing is promoted to it: ann has lost the right") {
		t.Errorf("the steps are %q, and the condition is %+v", got, d.Condition)
	}
	p.Status.Environments["staging"].Promotion = &weave.PromotionStatus{Revision: "2", Strategy: PullRequest, Phase: weave.PromotionStarted, URL: "https://forge/1", At: at(-60)}
	if d = Decide(p, noon); len(d.Open) > 0 {
		t.Errorf("the forge is to be asked about %+v", d.Open)
	}
	p.Status.Environments["staging"].Denied = ""
	if d = Decide(p, noon); len(d.Open) != 1 {
		t.Errorf("with the right, the forge is to be asked about %+v", d.Open)
	}
}

func TestThatCallsAreRefusedIsToldAndKeepsNothingFromBeingPromoted(t *testing.T) {
	p := chain(pulled, "2", "1")
	p.Status.Environments["staging"].WebhookDenied = "ann has lost the right"
	d := Decide(p, noon)
	if got := steps(t, p, d); got != "staging=2" || !strings.Contains(d.Condition.Message, "calls of the webhooks about it are refused: ann has lost the right") {
		t.Errorf("the steps are %q, and the condition is %+v", got, d.Condition)
	}
}

func TestWhatWasRefusedIsNoStepAndIsToldToWait(t *testing.T) {
	p := chain(pulled, "2", "1")
	p.Status.Environments["staging"].Promotion = &weave.PromotionStatus{
		Revision: "2", Strategy: PullRequest, Phase: weave.PromotionFailed, At: at(-3600), Attempts: 1, Refused: true, Message: "there is no marker",
	}
	d := Decide(p, noon)
	if got := steps(t, p, d); got != "" || len(d.Refused) != 1 || d.Refused[0].Environment != "staging" || !d.Again.IsZero() {
		t.Errorf("the steps are %q, refused %+v, again at %v", got, d.Refused, d.Again)
	}
	if d.Condition.Reason != "Refused" || !strings.Contains(d.Condition.Message, "once the pipeline, its Secret or the repository has changed: there is no marker") {
		t.Errorf("the condition is %+v", d.Condition)
	}
	p.Status.Environments["staging"].Asked = &weave.Ask{Revision: "2", By: "eve", At: at(-1)}
	if got := steps(t, p, Decide(p, noon)); got != "staging=2" {
		t.Errorf("a person asks for it, and the steps are %q", got)
	}
	p = chain(pulled, "3", "1")
	p.Status.Environments["staging"].Promotion = &weave.PromotionStatus{Revision: "2", Strategy: PullRequest, Phase: weave.PromotionFailed, At: at(-3600), Refused: true}
	if d = Decide(p, noon); d.Environments["staging"].Promotion.Refused {
		t.Error("what was said of another version is said of this one")
	}
	if got := steps(t, p, d); got != "staging=3" {
		t.Errorf("there is another version, and the steps are %q", got)
	}
}

func TestWhatWasToldIsNoEventAgain(t *testing.T) {
	p := chain(manual, "2", "2", "1")
	first := Decide(p, noon)
	if len(first.Events) != 1 || first.Events[0].Reason != ReasonWaiting {
		t.Fatalf("events are %v", first.Events)
	}
	keep(p, first)
	if again := Decide(p, noon.Add(time.Minute)); len(again.Events) > 0 || !reflect.DeepEqual(again.Environments, first.Environments) {
		t.Errorf("events are %v, told is %v", again.Events, again.Environments)
	}
	p.Status.Environments["staging"].Targets[0] = runs("staging-0", "2!")
	second := Decide(p, noon)
	if len(second.Events) != 1 || second.Events[0].Reason != ReasonRevoked {
		t.Fatalf("events are %v", second.Events)
	}
	keep(p, second)
	if again := Decide(p, noon); len(again.Events) > 0 {
		t.Errorf("events are %v", again.Events)
	}
}

func TestAPromotionAfterWhatWasAskedForIsToldWithALaterTime(t *testing.T) {
	p := chain(direct, "3", "3", "2")
	s := p.Status.Environments["prod"]
	s.Promotion, s.Asked = told("2", weave.PromotionVerified, 0), &weave.Ask{Revision: "2", By: "jane", At: at(0)}
	got := Decide(p, noon)
	if next := got.Environments["prod"].Promotion; steps(t, p, got) != "prod=3" || !next.At.After(s.Asked.At.Time) {
		t.Errorf("it is %+v", next)
	}
}

func TestAttemptsAreFurtherAndFurtherApart(t *testing.T) {
	for attempts, want := range map[int32]time.Duration{0: 0, 1: 2 * time.Second, 2: 6 * time.Second, 3: 14 * time.Second, 8: 510 * time.Second, 9: 810 * time.Second, 10: 1110 * time.Second} {
		if got := pauses(attempts); got != want {
			t.Errorf("attempt %d is after %s, want %s", attempts+1, got, want)
		}
	}
}

func TestHowAStepIsTold(t *testing.T) {
	step := Step{Environment: "prod", Next: weave.PromotionStatus{Revision: "2", Strategy: Direct, At: at(0), Attempts: 1}}
	for name, test := range map[string]struct {
		before *weave.PromotionStatus
		result Result
		want   weave.PromotionStatus
		reason string
	}{
		"done":             {result: Result{}, want: weave.PromotionStatus{Phase: weave.PromotionStarted}, reason: ReasonStarted},
		"by pull request":  {result: Result{URL: "u", Message: "waits"}, want: weave.PromotionStatus{Phase: weave.PromotionStarted, URL: "u", Message: "waits"}, reason: ReasonStarted},
		"declined":         {result: Result{URL: "u", Message: "closed", Declined: true}, want: weave.PromotionStatus{Phase: weave.PromotionRevoked, URL: "u", Message: "closed"}, reason: ReasonRevoked},
		"failed":           {result: Result{Err: fmt.Errorf("a\nb")}, want: weave.PromotionStatus{Phase: weave.PromotionFailed, Message: "a b"}, reason: ReasonFailed},
		"failed as before": {before: &weave.PromotionStatus{Phase: weave.PromotionFailed, Message: "a"}, result: Result{Err: fmt.Errorf("a")}, want: weave.PromotionStatus{Phase: weave.PromotionFailed, Message: "a"}},
	} {
		t.Run(name, func(t *testing.T) {
			step := step
			step.Before = test.before
			got, event := step.Done(test.result)
			test.want.Revision, test.want.Strategy, test.want.At, test.want.Attempts = "2", Direct, at(0), 2
			if got != test.want || (event == nil) != (test.reason == "") || event != nil && event.Reason != test.reason {
				t.Errorf("it is %+v with %v, want %+v with %s", got, event, test.want, test.reason)
			}
		})
	}
}

func TestTheNameOfAPromotionIsItsOwn(t *testing.T) {
	step := Step{Environment: "prod", Next: *told("2", weave.PromotionBegun, 0)}
	same := step
	same.Next.Attempts, same.Next.Phase, same.Next.Message = 3, weave.PromotionFailed, "not now"
	if step.ID("uid") != same.ID("uid") {
		t.Error("the same promotion has two names")
	}
	seen := map[string]string{step.ID("uid"): "the first", step.ID("other"): "another pipeline"}
	for name, change := range map[string]func(*Step){
		"another environment":      func(s *Step) { s.Environment = "staging" },
		"another version":          func(s *Step) { s.Next.Revision = "3" },
		"the same at a later time": func(s *Step) { s.Next.At = at(1) },
		"asked for":                func(s *Step) { s.Next.By = "jane" },
	} {
		other := step
		change(&other)
		id := other.ID("uid")
		if before, has := seen[id]; has {
			t.Errorf("%s has the name of %s", name, before)
		}
		seen[id] = name
	}
}

func TestTheVersionOfSeveralWorkloads(t *testing.T) {
	w := func(kind, name, version string) weave.WorkloadStatus {
		return weave.WorkloadStatus{Kind: kind, Name: name, Version: version}
	}
	for name, test := range map[string]struct {
		workloads []weave.WorkloadStatus
		want      string
	}{
		"none":                      {nil, ""},
		"one":                       {[]weave.WorkloadStatus{w("Deployment", "web", "1.2")}, "1.2"},
		"all the same":              {[]weave.WorkloadStatus{w("Deployment", "web", "1.2"), w("HelmRelease", "api", "1.2")}, "1.2"},
		"different, in any order":   {[]weave.WorkloadStatus{w("Deployment", "web", "1.3"), w("Deployment", "api", "1.2")}, "Deployment/api=1.2;Deployment/web=1.3"},
		"one that is not known":     {[]weave.WorkloadStatus{w("Deployment", "web", "1.3"), w("Deployment", "api", "")}, ""},
		"one of which is very long": {[]weave.WorkloadStatus{w("Deployment", "web", strings.Repeat("1", 600)), w("Deployment", "api", "2")}, "2 workloads sha256:"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := RevisionOf(test.workloads); got != test.want && !(strings.HasSuffix(test.want, ":") && strings.HasPrefix(got, test.want)) {
				t.Errorf("it is %q, want %q", got, test.want)
			}
		})
	}
}

func TestTargetsAreToldApartByTheirClusters(t *testing.T) {
	ref := func(name string) *weave.ClusterReference {
		return &weave.ClusterReference{Kind: weave.KindGitopsCluster, Name: name}
	}
	of := []weave.TargetStatus{
		{Namespace: "web", Kind: weave.KindGitopsCluster, Name: "dev-us"},
		{Namespace: "web", ClusterRef: ref("dev-eu")},
		{Namespace: "web"},
	}
	for i, target := range []weave.Target{{Namespace: "web", ClusterRef: ref("dev-us")}, {Namespace: "web", ClusterRef: ref("dev-eu")}, {Namespace: "web"}} {
		if got := StatusOf(target, of); got != &of[i] {
			t.Errorf("target %s has %+v", Name(target), got)
		}
	}
	for _, target := range []weave.Target{{Namespace: "other"}, {Namespace: "web", ClusterRef: ref("dev-au")}} {
		if got := StatusOf(target, of); got != nil {
			t.Errorf("target %s has %+v", Name(target), got)
		}
	}
}
