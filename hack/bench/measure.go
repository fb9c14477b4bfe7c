package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
)

// waitTimeout bounds every single wait: what takes longer does not work.
const waitTimeout = 5 * time.Minute

// bench is one run.
type bench struct {
	options options
	ways    []way
	machine *machine
	report  *report
}

// run measures every way in turn, round after round, so that what the machine does meanwhile hits all alike.
func (b *bench) run(ctx context.Context) error {
	for round := range b.options.rounds {
		for _, w := range b.ways {
			if err := b.burst(ctx, w, round); err != nil {
				return fmt.Errorf("create %d Deployments at once, %s: %w", b.options.count, w.name, err)
			}
		}
		for _, w := range b.ways {
			if err := b.steady(ctx, w, round); err != nil {
				return fmt.Errorf("create one Deployment a second, %s: %w", w.name, err)
			}
		}
	}
	return nil
}

// inNamespace calls measure with a fresh namespace that has proven to work, and removes it afterwards.
func (b *bench) inNamespace(ctx context.Context, w way, name string, measure func(namespace string) error) error {
	fmt.Fprintf(os.Stderr, "bench: %s\n", name)
	if err := w.createNamespace(ctx, name); err != nil {
		return err
	}
	if err := w.warmUp(ctx, name); err != nil {
		return fmt.Errorf("create the first Deployment of the namespace: %w", err)
	}
	if err := b.machine.settle(ctx); err != nil {
		return err
	}
	if err := measure(name); err != nil {
		return err
	}
	if err := w.deleteNamespace(ctx, name); err != nil {
		return err
	}
	return b.machine.settle(ctx)
}

func (w way) warmUp(ctx context.Context, namespace string) error {
	const name = "first"
	o, err := w.observe(ctx, namespace, 1)
	if err != nil {
		return err
	}
	defer o.stop()
	if err := w.createDeployment(ctx, namespace, name); err != nil {
		return err
	}
	return o.wait(ctx)
}

// wait waits until all Deployments are present and ready.
func (o *observation) wait(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, waitTimeout)
	defer cancel()
	if _, err := o.present.wait(ctx); err != nil {
		return fmt.Errorf("until present on all clusters: %w", err)
	}
	if _, err := o.ready.wait(ctx); err != nil {
		return fmt.Errorf("until ready: %w", err)
	}
	return nil
}

// burst measures how long it takes to create many Deployments at once, and what it costs.
func (b *bench) burst(ctx context.Context, w way, round int) error {
	return b.inNamespace(ctx, w, fmt.Sprintf("burst-%s-%d", w.name, round), func(namespace string) error {
		o, err := w.observe(ctx, namespace, b.options.count+1) // the first of the namespace is among them
		if err != nil {
			return err
		}
		defer o.stop()
		before, err := b.machine.begin(ctx)
		if err != nil {
			return err
		}
		start := time.Now()
		var group errgroup.Group
		group.SetLimit(b.options.workers)
		for i := range b.options.count {
			group.Go(func() error { return w.createDeployment(ctx, namespace, fmt.Sprintf("app-%03d", i)) })
		}
		if err := group.Wait(); err != nil {
			return err
		}
		if err := o.wait(ctx); err != nil {
			return err
		}
		// What follows, such as events, is part of the cost.
		if err := b.machine.settle(ctx); err != nil {
			return err
		}
		after, err := b.machine.end(ctx)
		if err != nil {
			return err
		}
		b.report.addBurst(w.name, burst{
			Present: seconds(o.present.last.Sub(start)),
			Ready:   seconds(o.ready.last.Sub(start)),
			Cost:    after.since(before, b.options.count),
			Others:  after.others(before),
		})
		return nil
	})
}

// steady measures how long each of some Deployments takes when nothing else goes on.
func (b *bench) steady(ctx context.Context, w way, round int) error {
	return b.inNamespace(ctx, w, fmt.Sprintf("steady-%s-%d", w.name, round), func(namespace string) error {
		o, err := w.observe(ctx, namespace, b.options.seconds+1)
		if err != nil {
			return err
		}
		defer o.stop()
		created := map[string]time.Time{}
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		for i := range b.options.seconds {
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-tick.C:
			}
			name := fmt.Sprintf("app-%03d", i)
			created[name] = time.Now()
			if err := w.createDeployment(ctx, namespace, name); err != nil {
				return err
			}
		}
		if err := o.wait(ctx); err != nil {
			return err
		}
		var present, ready []float64
		for name, start := range created {
			present = append(present, seconds(o.present.when(name).Sub(start)))
			ready = append(ready, seconds(o.ready.when(name).Sub(start)))
		}
		b.report.addSteady(w.name, steady{Present: median(present), Ready: median(ready)})
		return nil
	})
}

func seconds(d time.Duration) float64 {
	return d.Seconds()
}

// median of no values is 0.
func median(values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	middle := len(sorted) / 2
	if len(sorted)%2 == 1 {
		return sorted[middle]
	}
	return (sorted[middle-1] + sorted[middle]) / 2
}
