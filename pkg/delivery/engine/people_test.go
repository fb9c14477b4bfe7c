package engine

import (
	"hash/fnv"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/delivery"
	"github.com/manifold-dev/manifold/pkg/delivery/stages"
)

// people play those who agree, measure and run scripts, each some time after they were asked. When they do goes by what they were asked alone, so
// asking more often changes nothing. What they have done is in the API or in clusters, and survives whoever asks.
type people struct {
	seed uint64
	// fails has scripts fail, and bad has measurements be bad.
	fails, bad bool
	due        map[string]task
	requests   []v1alpha1.ReleaseRequest
	scripts    map[string]delivery.Outcome
}

// task is something that somebody has begun, and what comes of it.
type task struct {
	at time.Time
	do func()
}

func newPeople(seed uint64) *people {
	return &people{seed: seed, due: map[string]task{}, scripts: map[string]delivery.Outcome{}}
}

// begin has something be done some time from now, once.
func (p *people) begin(what string, now time.Time, do func()) {
	if _, begun := p.due[what]; begun {
		return
	}
	sum := fnv.New64a()
	sum.Write([]byte(what))
	delay := rand.New(rand.NewPCG(p.seed, sum.Sum64())).Int64N(int64(40 * time.Second))
	p.due[what] = task{now.Add(time.Duration(delay)), do}
}

// asked has them begin with what a release asks for.
func (p *people) asked(due stages.Due, now time.Time) {
	for _, id := range due.Approve {
		for _, user := range []string{"jane", "joe"} {
			p.begin("approve/"+id+"/"+user, now, func() {
				at := p.due["approve/"+id+"/"+user].at
				p.requests = append(p.requests, v1alpha1.ReleaseRequest{Type: v1alpha1.RequestApprove, Stage: id, Attempt: 1, User: user, Time: metav1.NewTime(at.Truncate(time.Second))})
			})
		}
	}
	for _, script := range due.Scripts {
		name := script.Name
		if _, begun := p.scripts[name]; !begun {
			p.scripts[name] = delivery.Outcome{Phase: delivery.Running, Since: now}
		}
		p.begin("script/"+name, now, func() {
			outcome := delivery.Outcome{Phase: delivery.Succeeded}
			if p.fails && !script.Undo {
				outcome = delivery.Outcome{Phase: delivery.Failed, Message: "exit 1"}
			}
			p.scripts[name] = outcome
		})
	}
}

// act does what is due by now, and reports whether there was anything.
func (p *people) act(now time.Time) (news bool) {
	for _, what := range slices.Sorted(maps.Keys(p.due)) {
		if t := p.due[what]; t.do != nil && !t.at.After(now) {
			t.do()
			p.due[what], news = task{at: t.at}, true
		}
	}
	return news
}

// measure looks at the metrics that are due.
func (p *people) measure(due []stages.Measure, now time.Time) map[string][]delivery.Measurement {
	out := map[string][]delivery.Measurement{}
	for _, m := range due {
		if !m.At.After(now) {
			values := []float64{0}
			if p.bad {
				values = []float64{1}
			}
			out[m.Stage] = append(out[m.Stage], delivery.Measurement{Metric: m.Metric, Time: now, Values: values})
		}
	}
	return out
}
