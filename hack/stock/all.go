package stock

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
)

// StartAll starts clusters at the same time. When one does not start, none is left running.
func StartAll(ctx context.Context, options ...Options) ([]*Cluster, error) {
	clusters := make([]*Cluster, len(options))
	var progress sync.Mutex
	group, ctx := errgroup.WithContext(ctx)
	for i, o := range options {
		if o.Progress != nil {
			o.Progress = &lockedWriter{mu: &progress, out: o.Progress}
		}
		group.Go(func() (err error) {
			clusters[i], err = Start(ctx, o)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, errors.Join(err, StopAll(clusters))
	}
	return clusters, nil
}

// StopAll stops the clusters and waits until they are gone.
func StopAll(clusters []*Cluster) error {
	var group errgroup.Group
	for _, c := range clusters {
		if c != nil {
			group.Go(c.Stop)
		}
	}
	return group.Wait()
}

// Wait returns nil when the context ends, or an error when a component of a cluster has ended before.
func Wait(ctx context.Context, clusters []*Cluster) error {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		for _, c := range clusters {
			if err := c.exited(); err != nil {
				return fmt.Errorf("cluster %q: %w", c.Name(), err)
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// lockedWriter lets several goroutines write lines to one place.
type lockedWriter struct {
	mu  *sync.Mutex
	out io.Writer
}

func (w *lockedWriter) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.out.Write(p)
}
