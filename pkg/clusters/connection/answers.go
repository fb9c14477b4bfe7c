package connection

import "sync/atomic"

// Answers tells by its probes whether a cluster answers at this moment, which is sooner than its conditions do. A nil one always answers.
type Answers struct {
	silent atomic.Bool
	again  chan struct{} // holds one when the cluster has begun to answer again
}

// NewAnswers returns those of a cluster that answers.
func NewAnswers() *Answers { return &Answers{again: make(chan struct{}, 1)} }

// Silent reports whether the cluster has not answered the last time that it was asked.
func (a *Answers) Silent() bool { return a != nil && a.silent.Load() }

// Again is received from when the cluster answers again after it was silent.
func (a *Answers) Again() <-chan struct{} {
	if a == nil {
		return nil
	}
	return a.again
}

// Note takes down whether the cluster has answered.
func (a *Answers) Note(answered bool) {
	if a.silent.Swap(!answered) && answered {
		select {
		case a.again <- struct{}{}:
		default: // it holds one already
		}
	}
}
