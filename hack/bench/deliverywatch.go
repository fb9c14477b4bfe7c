package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/tools/cache"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/generated/clientset/versioned"
)

// deliveryTimeout bounds each wait.
const deliveryTimeout = 15 * time.Minute

// span is a time that something took, as a watch has shown it.
type span struct{ begin, end time.Time }

func (s span) seconds() float64 { return s.end.Sub(s.begin).Seconds() }

// progress is what a watch has shown of releases.
type progress struct {
	mu sync.Mutex
	// stages are how long the stages of each release took, by revision and stage, and waves when each wave of a stage was done.
	stages map[string]map[string]*span
	waves  map[string]map[int32]time.Time
	// ended has the phase of each release that is over, by its revision.
	ended map[string]v1alpha1.ReleasePhase
	moved chan struct{} // holds one when something has changed
}

// whileWatching has releases measured while they are watched.
func whileWatching(ctx context.Context, client versioned.Interface, measure func(ctx context.Context, seen *progress) error) error {
	ctx, cancel := context.WithCancel(ctx)
	var watching sync.WaitGroup
	defer watching.Wait()
	defer cancel()
	seen, err := watchReleases(ctx, client, &watching)
	if err != nil {
		return err
	}
	return measure(ctx, seen)
}

// watchReleases watches the releases of all applications until the context ends.
func watchReleases(ctx context.Context, client versioned.Interface, watching *sync.WaitGroup) (*progress, error) {
	p := &progress{
		stages: map[string]map[string]*span{}, waves: map[string]map[int32]time.Time{}, ended: map[string]v1alpha1.ReleasePhase{},
		moved: make(chan struct{}, 1),
	}
	informer := cache.NewSharedInformer(
		cache.NewListWatchFromClient(client.DeliveryV1alpha1().RESTClient(), "releases", metav1.NamespaceAll, fields.Everything()), &v1alpha1.Release{}, 0)
	handle, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { p.notice(object.(*v1alpha1.Release), time.Now()) },
		UpdateFunc: func(_, object any) { p.notice(object.(*v1alpha1.Release), time.Now()) },
	})
	if err != nil {
		return nil, err
	}
	watching.Go(func() { informer.RunWithContext(ctx) })
	begin, cancel := context.WithTimeout(ctx, waitTimeout)
	defer cancel()
	if !cache.WaitForCacheSync(begin.Done(), handle.HasSynced) {
		return nil, fmt.Errorf("watch releases: %w", begin.Err())
	}
	return p, nil
}

// notice takes note of how far a release is. A stage that begins and ends between two looks took no time.
func (p *progress) notice(release *v1alpha1.Release, now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	revision := release.Spec.Revision
	if p.stages[revision] == nil {
		p.stages[revision], p.waves[revision] = map[string]*span{}, map[int32]time.Time{}
	}
	for _, stage := range release.Status.Stages {
		if stage.Phase == "" || stage.Phase == v1alpha1.StageNotStarted {
			continue
		}
		of := p.stages[revision][stage.ID]
		if of == nil {
			of = &span{begin: now}
			p.stages[revision][stage.ID] = of
		}
		if stage.Phase.Ended() && of.end.IsZero() {
			of.end = now
		}
		for _, wave := range doneWaves(stage.Targets) {
			if _, known := p.waves[revision][wave]; !known {
				p.waves[revision][wave] = now
			}
		}
	}
	if phase := release.Status.Phase; phase.Ended() {
		p.ended[revision] = phase
	}
	select {
	case p.moved <- struct{}{}:
	default:
	}
}

// doneWaves are the waves of which all targets are done.
func doneWaves(targets []v1alpha1.StageTargetStatus) []int32 {
	open, done := map[int32]bool{}, map[int32]bool{}
	for _, t := range targets {
		if t.Phase.Ended() {
			done[t.Wave] = true
		} else {
			open[t.Wave] = true
		}
	}
	var out []int32
	for wave := range done {
		if !open[wave] {
			out = append(out, wave)
		}
	}
	return out
}

// released waits until a version of all applications is released.
func (p *progress) released(ctx context.Context, names []string, version int64) error {
	ctx, cancel := context.WithTimeout(ctx, deliveryTimeout)
	defer cancel()
	for {
		left, err := p.open(names, version)
		if err != nil || left == "" {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait until %s is released: %w", left, ctx.Err())
		case <-p.moved:
		}
	}
}

// open is a revision that is not released yet, "" if there is none. One that never will be is an error.
func (p *progress) open(names []string, version int64) (left string, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, name := range names {
		revision := v1alpha1.RevisionName(name, version)
		switch phase := p.ended[revision]; phase {
		case v1alpha1.ReleaseSucceeded:
		case "":
			left = revision
		default:
			return revision, fmt.Errorf("the release of %s is %s", revision, phase)
		}
	}
	return left, nil
}

// latencies are how long the stages of all applications took that have an ID, in seconds.
func (p *progress) latencies(names []string, version int64, id string) []float64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	var out []float64
	for _, name := range names {
		if of := p.stages[v1alpha1.RevisionName(name, version)][id]; of != nil {
			out = append(out, of.seconds())
		}
	}
	return out
}

// steps are how long the waves of a stage took one after the other, in seconds.
func (p *progress) steps(revision, id string, waves int) ([]float64, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	of := p.stages[revision][id]
	if of == nil {
		return nil, fmt.Errorf("%s was released without stage %q", revision, id)
	}
	var out []float64
	last := of.begin
	for wave := range waves {
		end, done := p.waves[revision][int32(wave)]
		if !done {
			return nil, fmt.Errorf("%s was released without wave %d of stage %q", revision, wave, id)
		}
		out = append(out, end.Sub(last).Seconds())
		last = end
	}
	return out, nil
}
