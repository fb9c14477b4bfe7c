package promotion

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/manifold-dev/manifold/pkg/delivery/weave"
)

func deepCopy[T any](t *testing.T, of *T) *T {
	t.Helper()
	text, err := json.Marshal(of)
	if err != nil {
		t.Fatal(err)
	}
	out := new(T)
	if err := json.Unmarshal(text, out); err != nil {
		t.Fatal(err)
	}
	return out
}

// copied is a pipeline whose status can be changed by itself.
func copied(of *weave.Pipeline) *weave.Pipeline {
	out := *of
	out.Status.Environments = map[string]*weave.EnvironmentStatus{}
	for name, status := range of.Status.Environments {
		one := *status
		one.Targets = slices.Clone(status.Targets)
		out.Status.Environments[name] = &one
	}
	return &out
}

// keep writes into a status what was decided.
func keep(p *weave.Pipeline, d Decision) {
	for name, told := range d.Environments {
		p.Status.Environments[name].WaitingStatus, p.Status.Environments[name].Promotion = told.Waiting, told.Promotion
	}
}

// world is a pipeline over targets that come to run what is written into them, a while later, and a status that tells so, a while later still.
type world struct {
	*testing.T
	random *rand.Rand
	now    time.Time
	stored *weave.Pipeline
	// wanted and running are versions by target, and broken are those whose targets cannot become ready.
	wanted, running map[string]string
	ready           map[string]bool
	broken, silent  map[string]bool
	// had are the versions that a target has had, ready: the status tells of each target at another time.
	had map[string]map[string]bool
	// asked are those that persons have asked for.
	asked map[string]bool
	log   []string
}

func newWorld(t *testing.T, seed int64, how weave.Promotion) *world {
	w := &world{
		T: t, random: rand.New(rand.NewSource(seed)), now: noon, stored: chain(how, "1,1", "1", "1,1"),
		wanted: map[string]string{}, running: map[string]string{}, ready: map[string]bool{}, broken: map[string]bool{}, silent: map[string]bool{},
		had: map[string]map[string]bool{}, asked: map[string]bool{},
	}
	for _, e := range w.stored.Spec.Environments {
		for _, target := range e.Targets {
			w.had[target.Namespace] = map[string]bool{}
			w.wanted[target.Namespace], w.running[target.Namespace], w.ready[target.Namespace] = "1", "1", true
		}
	}
	w.note()
	return w
}

// note keeps which versions are ready in truth.
func (w *world) note() {
	for _, target := range w.targets() {
		if w.ready[target] {
			w.had[target][w.running[target]] = true
		}
	}
}

// verified reports whether all targets of an environment have been ready with a version.
func (w *world) verified(index int, version string) bool {
	for _, target := range w.stored.Spec.Environments[index].Targets {
		if !w.had[target.Namespace][version] {
			return false
		}
	}
	return true
}

// move has targets run what they are to run.
func (w *world) move(namespace string) {
	w.running[namespace] = w.wanted[namespace]
	w.ready[namespace] = !w.broken[namespace]
	w.note()
}

// tell has the status of a target tell how it is.
func (w *world) tell(namespace string) {
	for _, e := range w.stored.Spec.Environments {
		for i, target := range e.Targets {
			if target.Namespace != namespace {
				continue
			}
			how := w.running[namespace]
			switch {
			case w.silent[namespace]:
				how += "?"
			case w.broken[namespace]:
				how += "!"
			case !w.ready[namespace]:
				how += "~"
			}
			w.stored.Status.Environments[e.Name].Targets[i] = runs(namespace, how)
		}
	}
}

// decide is one look of the controller, which may crash after any step, or before what it has done is told.
func (w *world) decide(crashes bool) {
	p := copied(w.stored) // as it reads it
	d := Decide(p, w.now)
	for _, step := range d.Steps {
		if crashes && w.random.Intn(4) == 0 {
			return
		}
		err := w.carryOut(p, step)
		if crashes && w.random.Intn(4) == 0 {
			return
		}
		status, _ := step.Done(Result{Err: err})
		told := d.Environments[step.Environment]
		told.Promotion = &status
		d.Environments[step.Environment] = told
	}
	keep(w.stored, d)
	if d.Begun && !(crashes && w.random.Intn(4) == 0) {
		w.decide(crashes)
	}
}

func (w *world) carryOut(p *weave.Pipeline, step Step) error {
	revision := step.Next.Revision
	before := p.Spec.Environments[max(step.Index-1, 0)].Name
	if !w.verified(max(step.Index-1, 0), revision) && !w.asked[step.Environment+"="+revision] {
		w.Errorf("%s gets %s, which %s has not verified: %s", step.Environment, revision, before, strings.Join(w.log, ", "))
	}
	if p.Status.Paused != nil {
		w.Errorf("%s gets %s although it is paused", step.Environment, revision)
	}
	if w.random.Intn(5) == 0 {
		return errors.New("not now")
	}
	for _, target := range p.Spec.Environments[step.Index].Targets {
		w.wanted[target.Namespace] = revision
	}
	w.log = append(w.log, step.Environment+" gets "+revision)
	return nil
}

func (w *world) targets() (out []string) {
	for _, e := range w.stored.Spec.Environments {
		for _, target := range e.Targets {
			out = append(out, target.Namespace)
		}
	}
	return out
}

// happen is one thing of many.
func (w *world) happen(newest *int) {
	all := w.targets()
	target := all[w.random.Intn(len(all))]
	switch w.random.Intn(14) {
	case 0:
		*newest++
		for _, of := range w.stored.Spec.Environments[0].Targets {
			w.wanted[of.Namespace] = fmt.Sprint(*newest)
		}
		w.log = append(w.log, fmt.Sprintf("dev is to run %d", *newest))
	case 1:
		w.broken[target] = !w.broken[target]
		w.ready[target] = !w.broken[target]
		w.note()
		w.log = append(w.log, fmt.Sprintf("%s broken %t", target, w.broken[target]))
	case 2:
		w.silent[target] = !w.silent[target]
	case 3:
		if w.stored.Status.Paused == nil {
			w.stored.Status.Paused = &weave.Pause{By: "jane"}
		} else {
			w.stored.Status.Paused = nil
		}
	case 4:
		e := w.stored.Spec.Environments[1+w.random.Intn(2)].Name
		revision := fmt.Sprint(1 + w.random.Intn(*newest))
		w.asked[e+"="+revision] = true
		w.stored.Status.Environments[e].Asked = &weave.Ask{Revision: revision, By: "jane", At: at(int(w.now.Sub(noon) / time.Second))}
		w.log = append(w.log, "jane asks for "+revision+" in "+e)
	case 5, 6, 7:
		w.move(target)
		w.log = append(w.log, target+" runs "+w.running[target])
	case 8, 9, 10:
		w.tell(target)
	case 11, 12:
		w.decide(true)
	case 13:
		w.now = w.now.Add(time.Duration(w.random.Intn(5000)) * time.Millisecond)
	}
}

// settle repairs all, and has persons ask for what is newest where it waits or where they hold something else.
func (w *world) settle(newest int) {
	w.broken, w.silent, w.stored.Status.Paused = map[string]bool{}, map[string]bool{}, nil
	for range 30 {
		for _, target := range w.targets() {
			w.move(target)
			w.tell(target)
		}
		w.now = w.now.Add(10 * time.Minute)
		w.decide(false)
		for _, e := range w.stored.Spec.Environments[1:] {
			s := w.stored.Status.Environments[e.Name]
			if s.Asked == nil || s.Asked.Revision != fmt.Sprint(newest) && w.now.Sub(noon) > 2*time.Hour {
				if w.verified(0, fmt.Sprint(newest)) {
					w.asked[e.Name+"="+fmt.Sprint(newest)] = true
					s.Asked = &weave.Ask{Revision: fmt.Sprint(newest), By: "jane", At: at(int(w.now.Sub(noon) / time.Second))}
				}
			}
		}
	}
}

func TestWhateverHappensNothingIsPromotedThatIsNotVerifiedAndAllArrives(t *testing.T) {
	for seed := range int64(1000) {
		how := []weave.Promotion{direct, manual, {Supersede: true, Strategy: direct.Strategy}, {Strategy: weave.Strategy{Notification: &weave.Notification{}}}}[seed%4]
		w := newWorld(t, seed, how)
		newest := 1
		for range 120 {
			w.happen(&newest)
		}
		w.settle(newest)
		for _, target := range w.targets() {
			if w.running[target] != fmt.Sprint(newest) {
				t.Fatalf("seed %d: %s runs %s, want %d: %s\n%s", seed, target, w.running[target], newest, strings.Join(w.log, ", "), Decide(w.stored, w.now).Condition.Message)
			}
		}
		before := jsonOf(t, w.stored)
		w.decide(false)
		d := Decide(w.stored, w.now)
		if len(d.Steps) > 0 || len(d.Events) > 0 || d.Condition.Reason != "Settled" {
			t.Fatalf("seed %d: after all has arrived there are %v and %v: %s", seed, d.Steps, d.Events, d.Condition.Message)
		}
		if after := jsonOf(t, w.stored); after != before {
			t.Fatalf("seed %d: what has arrived is told anew:\n%s\n%s", seed, before, after)
		}
		if t.Failed() {
			t.FailNow()
		}
	}
}

// Nobody asks for anything: what is automatic arrives by itself.
func TestWithoutPersonsTheNewestArrives(t *testing.T) {
	for seed := range int64(200) {
		w := newWorld(t, seed, direct)
		newest := 1
		for range 120 {
			all := w.targets()
			target := all[w.random.Intn(len(all))]
			switch w.random.Intn(6) {
			case 0:
				newest++
				for _, of := range w.stored.Spec.Environments[0].Targets {
					w.wanted[of.Namespace] = fmt.Sprint(newest)
				}
			case 1, 2:
				w.move(target)
			case 3, 4:
				w.tell(target)
			case 5:
				w.decide(true)
			}
		}
		for range 30 {
			for _, target := range w.targets() {
				w.move(target)
				w.tell(target)
			}
			w.now = w.now.Add(10 * time.Minute)
			w.decide(true)
		}
		for _, target := range w.targets() {
			if w.running[target] != fmt.Sprint(newest) {
				t.Fatalf("seed %d: %s runs %s, want %d: %s\n%s", seed, target, w.running[target], newest, strings.Join(w.log, ", "), Decide(w.stored, w.now).Condition.Message)
			}
		}
	}
}

func jsonOf(t *testing.T, of any) string {
	t.Helper()
	text, err := json.Marshal(of)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
