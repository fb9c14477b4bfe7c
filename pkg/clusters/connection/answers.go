package connection

import (
	"sync"
	"sync/atomic"
)

// Answers tells by its probes whether a cluster answers at this moment, which is sooner than its conditions do. A nil one always answers.
type Answers struct {
	silent atomic.Bool
	mu     sync.Mutex
	again  chan struct{} // closed when the cluster begins to answer; nil if nobody waits for that
}

// NewAnswers returns those of a cluster that answers.
func NewAnswers() *Answers { return &Answers{} }

// Silent reports whether the cluster has not answered the last time that it was asked.
func (a *Answers) Silent() bool { return a != nil && a.silent.Load() }

// Again returns what is closed when the cluster answers again after it was silent, counted from now.
func (a *Answers) Again() <-chan struct{} {
	if a == nil {
		return nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.again == nil {
		a.again = make(chan struct{})
	}
	return a.again
}

// Note takes down whether the cluster has answered.
func (a *Answers) Note(answered bool) {
	if !a.silent.Swap(!answered) || !answered {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.again != nil {
		close(a.again)
		a.again = nil
	}
}
