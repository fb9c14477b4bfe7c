package main

import (
	"context"
	"errors"
	"os"
	"runtime"
	"time"

	"github.com/manifold-dev/manifold/hack/stock"
	"github.com/manifold-dev/manifold/hack/stock/process"
)

// machine is everything that runs for the benchmark.
type machine struct {
	clusters []*stock.Cluster
	// hub is nil when the clusters alone are measured.
	hub *hub
}

// snapshot is what had been used up at one time.
type snapshot struct {
	at                 time.Time
	clusterCPU, hubCPU time.Duration
	// ownCPU is what this process took, allCPU what all processes of the machine took.
	ownCPU, allCPU time.Duration
	requests       requests
}

// begin and end take a snapshot each, so that what reading the hub's metrics costs falls outside of what is between them.
func (m *machine) begin(ctx context.Context) (s snapshot, err error) {
	if m.hub != nil {
		if s.requests, err = m.hub.requests(ctx); err != nil {
			return s, err
		}
	}
	return s, m.readCPU(&s)
}

func (m *machine) end(ctx context.Context) (s snapshot, err error) {
	if err := m.readCPU(&s); err != nil || m.hub == nil {
		return s, err
	}
	s.requests, err = m.hub.requests(ctx)
	return s, err
}

func (m *machine) readCPU(s *snapshot) (err error) {
	s.at = time.Now()
	if s.clusterCPU, s.hubCPU, err = m.cpu(); err != nil {
		return err
	}
	own, err := process.UsageOf(os.Getpid())
	if err != nil {
		return err
	}
	s.ownCPU = own.CPU
	s.allCPU, err = process.MachineCPU()
	return err
}

// others is the part of the machine that went to processes which are not measured.
func (s snapshot) others(before snapshot) float64 {
	measured := func(s snapshot) time.Duration { return s.clusterCPU + s.hubCPU + s.ownCPU }
	capacity := s.at.Sub(before.at).Seconds() * float64(runtime.NumCPU())
	return max(0, (s.allCPU-before.allCPU-measured(s)+measured(before)).Seconds()/capacity)
}

func (m *machine) cpu() (clusters, hub time.Duration, err error) {
	for _, c := range m.clusters {
		usage, err := c.Usage()
		if err != nil {
			return 0, 0, err
		}
		for _, u := range usage {
			clusters += u.CPU
		}
	}
	if m.hub != nil {
		u, err := process.UsageOf(m.hub.Process().PID())
		if err != nil {
			return 0, 0, err
		}
		hub = u.CPU
	}
	return clusters, hub, nil
}

// Quiet is when all that runs together takes less than a third of one processor for a second. It is waited for before and after each
// measurement, so that none pays for what another left to do.
const (
	quietWindow = time.Second
	quietCPU    = 300 * time.Millisecond
)

func (m *machine) settle(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, waitTimeout, errors.New("the processes did not become quiet"))
	defer cancel()
	clusters, hub, err := m.cpu()
	if err != nil {
		return err
	}
	last := clusters + hub
	tick := time.NewTicker(quietWindow)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-tick.C:
		}
		if clusters, hub, err = m.cpu(); err != nil {
			return err
		}
		if now := clusters + hub; now-last < quietCPU {
			return nil
		} else {
			last = now
		}
	}
}
