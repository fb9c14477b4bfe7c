package engine

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/delivery"
	"github.com/manifold-dev/manifold/pkg/delivery/read"
)

var (
	v1 = delivery.Revision{Name: "web-v1", Hash: "aaa"}
	v2 = delivery.Revision{Name: "web-v2", Hash: "bbb"}
	t0 = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
)

// world plays the clusters of a release: they apply what the set says some time after it was written, get ready some time after that, and what
// they say of it is heard some time later still.
type world struct {
	now      time.Time
	release  delivery.Release
	status   delivery.Status
	orders   delivery.Orders
	measured map[string][]delivery.Measurement
	scripts  map[string]delivery.Outcome
	calls    map[string]delivery.Outcome
	clusters map[string]*actual
	// due is when the engine wants to be asked again, and news that there is something that it has not seen.
	due  time.Time
	news bool
	// fresh says that the status is what the engine has just answered, and was not read back since.
	fresh bool
	// random is nil where nothing is delayed.
	random *rand.Rand
	// people is nil where the test itself agrees, measures and runs scripts.
	people *people
}

// actual is what really is in a cluster.
type actual struct {
	replicas int32
	silent   bool
	// broken are the revisions that never get ready here, refused those that are not taken.
	broken, refused map[string]bool
	// told is what is on its way to the cluster, edit the last that has arrived, and applied what it has of them: it says that it was told before
	// all is applied.
	told    []told
	edit    int64
	applied told
	ready   map[string]time.Time // when each variant is ready, by its fingerprint
	// said are the reports on their way, and heard is the last one that has arrived.
	said  []said
	last  delivery.Cluster
	heard delivery.Cluster
}

type told struct {
	heard, at time.Time
	edit      int64
	set       delivery.Set
}

type said struct {
	at     time.Time
	report delivery.Cluster
}

func (w *world) delay(most time.Duration) time.Duration {
	if w.random == nil {
		return 0
	}
	return time.Duration(w.random.Int64N(int64(most)))
}

// newWorld has v1 as the primary everywhere, and a release of v2.
func newWorld(clusters int, stages ...delivery.Stage) *world {
	w := &world{now: t0, clusters: map[string]*actual{}, scripts: map[string]delivery.Outcome{}, calls: map[string]delivery.Outcome{}, measured: map[string][]delivery.Measurement{}}
	stable := delivery.Set{delivery.Primary: {Clusters: map[string]delivery.Part{}}}
	for i := range clusters {
		name := fmt.Sprintf("c%d", i)
		stable[delivery.Primary].Clusters[name] = delivery.Part{Revision: v1, Target: name, Traffic: 100, Routed: true}
		w.release.Targets = append(w.release.Targets, delivery.Target{Name: name, Cluster: name})
	}
	for i := range stages {
		if stages[i].ID == "" {
			stages[i].ID = fmt.Sprintf("stage-%d", i)
		}
	}
	w.release.Name, w.release.Revision, w.release.Stages = "web-r1", v2, stages
	w.release.Current, w.release.Stable = stable, &stable
	w.release.Progress, w.release.Drain = 10*time.Minute, 30*time.Second
	for i := range clusters {
		name := fmt.Sprintf("c%d", i)
		c := &actual{replicas: 3, ready: map[string]time.Time{}, broken: map[string]bool{}, refused: map[string]bool{}}
		c.applied = told{set: stable.Clone()}
		part := stable[delivery.Primary].Clusters[name]
		c.ready[delivery.Primary+part.Fingerprint()] = t0.Add(-time.Hour)
		w.clusters[name] = c
		c.heard = w.look(name)
		c.heard.Heard = t0
	}
	return w
}

// look is what a cluster says of itself now.
func (w *world) look(name string) delivery.Cluster {
	c := w.clusters[name]
	out := delivery.Cluster{Edit: c.edit, Variants: map[string]delivery.Report{}, Wanted: map[string]int32{"Deployment/web": c.replicas}, Behind: []string{"Deployment/web"}}
	for variant := range c.applied.set {
		part, has := c.applied.set.Part(variant, name)
		if !has {
			continue
		}
		report := delivery.Report{Fingerprint: part.Fingerprint(), Current: true, Weight: part.Traffic}
		if c.refused[part.Revision.Name] {
			report.Failure = "denied by policy"
		}
		if at, known := c.ready[variant+part.Fingerprint()]; known && !at.After(w.now) && !c.broken[part.Revision.Name] {
			report.Ready, report.ReadySince, report.Endpoints, report.Pods = true, at, 1, 1
		}
		out.Variants[variant] = report
	}
	return out
}

// observed is what is heard of all clusters.
func (w *world) observed() delivery.Observed {
	out := delivery.Observed{Clusters: map[string]delivery.Cluster{}, Orders: w.orders, Measured: w.measured, Scripts: w.scripts, Calls: w.calls}
	for name, c := range w.clusters {
		out.Clusters[name] = c.heard
	}
	if w.people != nil {
		out.Orders, out.Scripts = read.Orders(w.people.requests, w.status), w.people.scripts
	}
	return out
}

// carry lets the clusters do what is due by now.
func (w *world) carry() {
	for _, name := range slices.Sorted(maps.Keys(w.clusters)) {
		c := w.clusters[name]
		if c.silent {
			continue
		}
		for _, told := range c.told {
			if !told.heard.After(w.now) {
				c.edit = told.edit
			}
		}
		for len(c.told) > 0 && !c.told[0].at.After(w.now) {
			c.applied, c.told = c.told[0], c.told[1:]
			for _, variant := range c.applied.set.Names() {
				if part, has := c.applied.set.Part(variant, name); has {
					key := variant + part.Fingerprint()
					if _, known := c.ready[key]; !known {
						c.ready[key] = w.now.Add(w.delay(20 * time.Second))
					}
				}
			}
			for key := range c.ready {
				if !slices.ContainsFunc(c.applied.set.Names(), func(v string) bool {
					part, has := c.applied.set.Part(v, name)
					return has && v+part.Fingerprint() == key
				}) {
					delete(c.ready, key) // its pods are gone
				}
			}
		}
		if report := w.look(name); !reflect.DeepEqual(report, c.last) {
			at := w.now.Add(w.delay(15 * time.Second))
			if n := len(c.said); n > 0 && at.Before(c.said[n-1].at) {
				at = c.said[n-1].at // reports of one cluster arrive in order
			}
			c.said, c.last = append(c.said, said{at, report}), report
		}
		for len(c.said) > 0 && !c.said[0].at.After(w.now) {
			labels := c.heard.Labels
			c.heard, c.said, w.news = c.said[0].report, c.said[1:], true
			c.heard.Labels = labels
		}
		c.heard.Heard = w.now
	}
	if w.people != nil && w.people.act(w.now) {
		w.news = true
	}
}

// ask asks the engine, and once more where something was to be measured. Whoever dies in between has measured nothing.
func (w *world) ask() Result {
	seen := w.observed()
	result := Next(w.release, w.status, seen, w.now)
	if w.people == nil {
		return result
	}
	if seen.Measured = w.people.measure(result.Measure, w.now); len(seen.Measured) > 0 {
		result = Next(w.release, w.status, seen, w.now)
	}
	w.people.asked(result.Due, w.now)
	return result
}

// next asks the engine, and tells the clusters what has changed for them.
func (w *world) next() Result {
	result := w.ask()
	for _, name := range slices.Sorted(maps.Keys(w.clusters)) {
		c := w.clusters[name]
		if result.Status.Edits[name] > w.status.Edits[name] {
			heard := w.now.Add(w.delay(10 * time.Second))
			at := heard.Add(w.delay(10 * time.Second))
			if n := len(c.told); n > 0 && at.Before(c.told[n-1].at) {
				at = c.told[n-1].at
			}
			c.told = append(c.told, told{heard, at, result.Status.Edits[name], result.Status.Set.Clone()})
		}
	}
	w.status, w.due, w.news, w.fresh = result.Status, result.At, false, true
	return result
}

// run lets time pass until the release has ended, step by step, with something done before each.
func (w *world) run(t *testing.T, most time.Duration, before func()) {
	t.Helper()
	for end := w.now.Add(most); !w.status.Phase.Ended(); w.now = w.now.Add(2 * time.Second) {
		if w.now.After(end) {
			t.Fatalf("it has not ended within %s: %s", most, render(w.status))
		}
		if before != nil {
			before()
		}
		w.carry()
		// It is asked when there is something to see, or when it has said so: what it has not said it would miss.
		if w.news || w.status.Start.IsZero() || !w.due.IsZero() && !w.due.After(w.now) || before != nil && w.random == nil {
			w.next()
		}
	}
}

// render shows a status in a failed test.
func render(status delivery.Status) string {
	out, err := json.MarshalIndent(status, "", " ")
	if err != nil {
		return err.Error()
	}
	return string(out)
}

// again is a status as it is after a restart: written into a release, stored, and read back.
func again(t *testing.T, status delivery.Status) delivery.Status {
	t.Helper()
	var written, stored v1alpha1.ReleaseStatus
	read.Write(status, &written)
	text, err := json.Marshal(written)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &stored); err != nil {
		t.Fatal(err)
	}
	return read.Status(stored)
}

// restart has the engine go on with what it has written. A status that was read back already stays as it is.
func (w *world) restart(t *testing.T) {
	t.Helper()
	if w.fresh {
		w.status, w.fresh = again(t, w.status), false
	}
}

// phases are those of a stage's targets, by cluster.
func phases(of delivery.StageStatus) map[string]delivery.Phase {
	out := map[string]delivery.Phase{}
	for _, t := range of.Targets {
		out[t.Cluster] = t.Phase
	}
	return out
}

// sorted are the clusters in an order that does not change.
func (w *world) sorted() []*actual {
	var out []*actual
	for _, name := range slices.Sorted(maps.Keys(w.clusters)) {
		out = append(out, w.clusters[name])
	}
	return out
}

// primary is the revision that each cluster really runs as its primary.
func (w *world) primary() map[string]string {
	out := map[string]string{}
	for name, c := range w.clusters {
		if part, has := c.applied.set.Part(delivery.Primary, name); has {
			out[name] = part.Revision.Name
		}
	}
	return out
}
